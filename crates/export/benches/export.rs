//! What it costs to export a data set, how much memory that takes, and how long opening one takes.
//!
//! The baseline is what no export can do without: reading and decoding every chunk. Each step runs
//! in a process of its own, so that its peak of memory is its own. Times are CPU time. The data set
//! is a generated one of 128 MiB, or the one that `HOMENODE_BENCH_SET` names; for one of 10 GiB:
//!
//! ```text
//! cargo xtask dataset --gib 10 -o /var/tmp/ten
//! HOMENODE_BENCH_SET=/var/tmp/ten cargo xtask bench export
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use homenode_dataset::column::Values;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{ALL, Object};
use homenode_dataset::{Dataset, DatasetWriter};
use homenode_export::{ExportOptions, export};
use homenode_model::Bytes;

/// CPU time of this thread in seconds.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Most memory that this process had resident, in MiB.
fn peak() -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// What a step prints: rows, seconds, MiB.
#[derive(Clone, Copy)]
struct Step {
    rows: f64,
    seconds: f64,
    peak: f64,
}

/// Runs one step in this process.
fn step(name: &str, set: &Path, out: &Path) -> Result<Step, String> {
    let (begin, wall) = (cpu(), Instant::now());
    let set = Dataset::open(set).map_err(|e| e.to_string())?;
    let (rows, seconds) = match name {
        "open" => {
            let objects = set.rows::<Object>().count();
            (objects as u64, wall.elapsed().as_secs_f64())
        }
        "decode" => {
            let (mut rows, mut sum) = (0, 0_u64);
            for chunk in ALL.iter().flat_map(|t| set.chunks_of(t.name, &(t.columns)())) {
                rows += chunk.rows() as u64;
                for column in &chunk.columns {
                    if let Values::Ints(all) = column.values() {
                        sum = all.iter().fold(sum, |s, v| s.wrapping_add(*v));
                    }
                }
            }
            std::hint::black_box(sum);
            (rows, cpu() - begin)
        }
        _ => {
            let done =
                export(&set, out, ExportOptions::default(), &mut |_| true).map_err(|e| e.to_string())?;
            (done.tables.iter().map(|t| t.written.rows).sum(), cpu() - begin)
        }
    };
    Ok(Step { rows: rows as f64, seconds, peak: peak() })
}

/// Runs one step in a process of its own.
fn measure(name: &str, set: &Path, out: &Path) -> Result<Step, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let ran = Command::new(own).arg(name).arg(set).arg(out).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    match numbers[..] {
        [rows, seconds, peak] if ran.status.success() => Ok(Step { rows, seconds, peak }),
        _ => Err(format!("{name}: {}", String::from_utf8_lossy(&ran.stderr))),
    }
}

fn size(folder: &Path) -> f64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |e: fs::DirEntry| match e.file_type() {
        Ok(t) if t.is_dir() => size(&e.path()),
        _ => e.metadata().map_or(0.0, |m| m.len() as f64),
    };
    entries.map(of).sum()
}

fn all(folder: &Path) -> Result<(), String> {
    let set = match std::env::var_os("HOMENODE_BENCH_SET") {
        Some(set) => PathBuf::from(set),
        None => {
            let set = folder.join("set");
            let spec = SyntheticSpec::of_size(Bytes::mib(128));
            let mut writer = DatasetWriter::create(&set, spec.meta()).map_err(|e| e.to_string())?;
            let begin = cpu();
            let ended = spec.fill(&mut writer, &mut |_, _| true).map_err(|e| e.to_string())?;
            writer.finish(ended).map_err(|e| e.to_string())?;
            println!("generator: {:.0} MB/s of CPU time", size(&set) / 1e6 / (cpu() - begin));
            set
        }
    };
    let out = folder.join("out");
    let open = measure("open", &set, &out)?;
    let decode = measure("decode", &set, &out)?;
    let exported = measure("export", &set, &out)?;
    let rate = |s: &Step| s.rows / 1e6 / s.seconds;
    println!("data set: {:.2} GB, {:.0} million rows", size(&set) / 1e9, decode.rows / 1e6);
    println!("open and list {} objects: {:.3} s", open.rows, open.seconds);
    println!("decode: {:.1} M rows/s/core, {:.0} MiB resident", rate(&decode), decode.peak);
    println!(
        "export: {:.1} M rows/s/core, {:.0} MiB resident, {:.2} GB",
        rate(&exported),
        exported.peak,
        size(&out) / 1e9
    );
    println!("export takes {:.2} × the time of decoding alone", exported.seconds / decode.seconds);
    println!("bench: dataset/open {:.4} s", open.seconds);
    println!("bench: dataset/decode {:.2} ns", decode.seconds * 1e9 / decode.rows);
    println!("bench: export/row {:.2} ns", exported.seconds * 1e9 / exported.rows);
    println!("bench: export/resident {:.1} MiB", exported.peak);
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let done = match &args[..] {
        [name, set, out] => step(name, Path::new(set), Path::new(out))
            .map(|s| println!("{} {} {}", s.rows, s.seconds, s.peak)),
        _ => {
            let base = std::env::var_os("HOMENODE_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
            let folder = base.join(format!("homenode-bench-export-{}", std::process::id()));
            let done = fs::create_dir(&folder).map_err(|e| e.to_string()).and_then(|()| all(&folder));
            let _ = fs::remove_dir_all(&folder);
            done
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
