//! What a recording costs: NAS CG and MG, class A, one thread, processor seconds (user and system)
//! of the whole program.
//!
//! Natively, with accesses counted only, and recorded to disk, in turn, for several rounds: the
//! least of each, the median over the rounds of how many times the native time that is, and the
//! bytes an access takes in the log. GCC, the kernels' own flags (`-O3`).
//!
//! Needs CMake, gcc and gfortran, and the recorder beside the drivers (`cargo build --release`,
//! done here if need be).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROUNDS: usize = 5;

fn main() {
    if let Err(why) = measure() {
        println!("skipped: {why}");
    }
}

fn measure() -> Result<(), String> {
    for tool in ["cmake", "gcc", "gfortran"] {
        output(Command::new(tool).arg("--version")).map_err(|_| format!("{tool} is not installed"))?;
    }
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().map_err(|e| e.to_string())?;
    let drivers =
        Path::new(env!("CARGO_BIN_EXE_homenode-cc")).parent().map(Path::to_path_buf).unwrap_or_default();
    output(Command::new(env!("CARGO")).current_dir(&root).args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "homenode-tracer",
        "--package",
        "homenode-agent",
    ]))?;
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recording-bench");
    let (native, driven) = (dir.join("native"), dir.join("driven"));
    let plain = |name: &str| PathBuf::from(name);
    build(&root, &drivers, &native, &plain("gcc"), &plain("gfortran"))?;
    build(&root, &drivers, &driven, &drivers.join("homenode-cc"), &drivers.join("homenode-fc"))?;
    for kernel in ["nas-cg", "nas-mg"] {
        let mut bytes = 0.0;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push([
                run(&native.join(kernel), &dir, Mode::Plain)?,
                run(&driven.join(kernel), &dir, Mode::Count)?,
                run(&driven.join(kernel), &dir, Mode::Record)?,
            ]);
        }
        let least = |i: usize| rounds.iter().map(|r| r[i]).fold(f64::INFINITY, f64::min);
        let ratio = |i: usize| {
            let mut all: Vec<f64> = rounds.iter().map(|r| r[i] / r[0]).collect();
            all.sort_by(f64::total_cmp);
            all[ROUNDS / 2]
        };
        let log = dir.join("recording/threads/00000.hnlog");
        if let Ok(mut reader) = homenode_log::file::LogReader::open(&log) {
            let (report, _) = homenode_log::check::check(&mut reader);
            let size = std::fs::metadata(&log).map_or(0, |m| m.len());
            bytes = size as f64 / report.accesses.max(1) as f64;
            println!("{kernel}: {} accesses, {} passed the filter", report.ticks, report.accesses);
        }
        println!("bench: {kernel}/native {:.3} s", least(0));
        println!("bench: {kernel}/count {:.3} s", least(1));
        println!("bench: {kernel}/record {:.3} s", least(2));
        println!("bench: {kernel}/count-ratio {:.2} x", ratio(1));
        println!("bench: {kernel}/record-ratio {:.2} x", ratio(2));
        println!("bench: {kernel}/bytes {bytes:.3} B/event");
    }
    std::fs::remove_dir_all(dir.join("recording")).map_err(|e| e.to_string())
}

fn build(root: &Path, libraries: &Path, dir: &Path, cc: &Path, fc: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(dir);
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root.join("kernels")).arg("-B").arg(dir).env("CC", cc).env("FC", fc);
    let mut library = std::ffi::OsString::from("-DHOMENODE_LIB_DIR=");
    library.push(libraries);
    output(configure.arg(library))?;
    output(Command::new("cmake").arg("--build").arg(dir).args(["--target", "nas-cg", "nas-mg"])).map(drop)
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Plain,
    Count,
    Record,
}

/// Runs a kernel and gives its processor seconds.
fn run(kernel: &Path, dir: &Path, mode: Mode) -> Result<f64, String> {
    let recording = dir.join("recording");
    let _ = std::fs::remove_dir_all(&recording);
    std::fs::create_dir_all(recording.join("threads")).map_err(|e| e.to_string())?;
    std::fs::write(recording.join("status"), [b'\n'; 4096]).map_err(|e| e.to_string())?;
    let mut command = Command::new(kernel);
    command.args(["--class", "A", "--threads", "1"]).env("OMP_NUM_THREADS", "1");
    if mode != Mode::Plain {
        command.env("HOMENODE_TRACE_DIR", &recording);
    }
    if mode == Mode::Count {
        command.env("HOMENODE_TRACE_COUNT_ONLY", "1");
    }
    let before = children()?;
    output(&mut command)?;
    Ok(children()? - before)
}

/// Processor seconds of all children that have ended.
fn children() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|e| e.to_string())?;
    // The name may hold spaces; behind it, fields 16 and 17 of proc(5), in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n - 3).and_then(|f| f.parse::<f64>().ok());
    ticks(16)
        .zip(ticks(17))
        .map(|(user, system)| (user + system) / 100.0)
        .ok_or("no times in /proc/self/stat".into())
}

fn output(command: &mut Command) -> Result<String, String> {
    let out = command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
