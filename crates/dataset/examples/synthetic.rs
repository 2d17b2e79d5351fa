//! Makes a synthetic data set: `synthetic -o DIR [--gib N | --mib N] [--seed N] [--nodes N] [--rank
//! N]`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use homenode_dataset::DatasetWriter;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_model::Bytes;

/// What the command line asks for.
fn spec(args: &[String]) -> Result<(SyntheticSpec, Bytes, PathBuf), String> {
    let (mut size, mut out) = (Bytes::mib(64), None);
    let mut changes: Vec<(&str, u64)> = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number =
            || value.parse::<f64>().ok().filter(|n| *n >= 0.0).ok_or(format!("{word} {value}: no number"));
        match word.as_str() {
            "-o" | "--output" => out = Some(PathBuf::from(value)),
            "--gib" => size = Bytes((number()? * (1_u64 << 30) as f64) as u64),
            "--mib" => size = Bytes((number()? * (1_u64 << 20) as f64) as u64),
            "--seed" | "--nodes" | "--rank" => changes.push((word, number()? as u64)),
            _ => {
                return Err(format!(
                    "'{word}' is no option; there are -o, --gib, --mib, --seed, --nodes, --rank"
                ));
            }
        }
    }
    let mut spec = SyntheticSpec::of_size(size);
    for (word, n) in changes {
        match word {
            "--seed" => spec.seed = n,
            "--nodes" if (2..=64).contains(&n) => spec.nodes = n as u16,
            "--nodes" => return Err(format!("--nodes {n}: 2 to 64")),
            _ => spec.rank = Some(n as u32),
        }
    }
    // The size decides when it ends, because the bytes of a row are not known before.
    spec.iterations = spec.iterations.saturating_mul(4);
    Ok((spec, size, out.ok_or("-o DIR says where it goes")?))
}

fn make(args: &[String]) -> Result<(), String> {
    let (spec, size, out) = spec(args)?;
    let begin = Instant::now();
    let mut writer = DatasetWriter::create(&out, spec.meta()).map_err(|e| e.to_string())?;
    let mut said = Instant::now();
    let ended = spec.fill(&mut writer, &mut |done, writer| {
        let written = writer.written();
        if said.elapsed().as_secs() >= 10 {
            said = Instant::now();
            eprintln!("synthetic: {} % of {size}, {done} iterations", written * 100 / size.0.max(1));
        }
        written < size.0
    });
    let ended = ended.map_err(|e| e.to_string())?;
    writer.flush().map_err(|e| e.to_string())?;
    let bytes = writer.written();
    writer.finish(ended).map_err(|e| e.to_string())?;
    let seconds = begin.elapsed().as_secs_f64();
    let rate = bytes as f64 / 1e6 / seconds;
    eprintln!("synthetic: {bytes} bytes in {seconds:.1} s, {rate:.0} MB/s: {}", out.display());
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match make(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("synthetic: {why}");
            ExitCode::from(2)
        }
    }
}
