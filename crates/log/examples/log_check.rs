//! Checks logs and prints what each holds: `cargo run --example log_check -- LOG...`

fn main() {
    for path in std::env::args_os().skip(1) {
        let path = std::path::PathBuf::from(path);
        let mut log = match homenode_log::file::LogReader::open(&path) {
            Ok(log) => log,
            Err(e) => {
                eprintln!("{e}");
                std::process::exit(1);
            }
        };
        let (report, damage) = homenode_log::check::check(&mut log);
        let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
        println!(
            "{}: {} accesses of {} ticks in {} chunks, {} marks, {:.3} bytes an access, complete {}",
            path.display(),
            report.accesses,
            report.ticks,
            report.chunks,
            report.marks,
            bytes as f64 / report.accesses.max(1) as f64,
            report.complete
        );
        for problem in &report.problems {
            println!("  {problem}");
        }
        if let Some(damage) = damage {
            println!("  {damage}");
        }
    }
}
