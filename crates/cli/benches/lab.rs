//! The lab's prices, each as a ratio within one run: the monitor against the same guest without it,
//! the user-mode monitor against the bare emulator, and what moving a page costs there.
//!
//! Elapsed and processor seconds, rounds in turn, medians. On a machine that does other things only
//! the processor seconds say something, and they say less than on an idle one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{fs, io};

use homenode_statistics::Sorted;

const ROUNDS: usize = 3;
/// The lab's machine: four nodes with the caches of `epyc-nps4`, which the monitor has unless it is
/// told otherwise.
const MACHINE: [&str; 8] = ["--nodes", "4", "--cpus", "1", "--mem", "512M", "--numa-balancing", "off"];

fn main() {
    if let Err(why) = measure() {
        println!("skipped: {why}");
    }
}

fn measure() -> Result<(), String> {
    for tool in ["qemu-system-x86_64", "qemu-x86_64", "cmake", "gcc", "gfortran"] {
        let there = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        there.map_err(|_| format!("{tool} is not installed"))?;
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-bench");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    println!("seconds: elapsed, processor; medians of {ROUNDS} rounds in turn");
    monitor(&dir)?;
    for (kernel, name) in [("kernel:nas-cg", "cg"), ("kernel:nas-mg", "mg")] {
        user_mode(&dir, kernel, name)?;
    }
    migration(&dir)
}

/// Elapsed and processor seconds, and those that the program ran in a guest.
#[derive(Clone, Copy, Default)]
struct Cost {
    elapsed: f64,
    processor: f64,
    ran: f64,
}

fn median(all: &[Cost]) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        Sorted::of(all.iter().map(of).collect::<Vec<f64>>()).upper_median().expect("there are rounds")
    };
    Cost { elapsed: middle(|c| c.elapsed), processor: middle(|c| c.processor), ran: middle(|c| c.ran) }
}

fn homenode(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homenode"));
    command.current_dir(dir).stdin(Stdio::null()).env("OMP_WAIT_POLICY", "passive");
    command
}

/// Processor seconds of the children that have been waited for, and of theirs.
fn children() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    // cutime and cstime, fields 16 and 17, in ticks of 1/100 s.
    let ticks = rest.split_whitespace().skip(13).take(2).filter_map(|f| f.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Runs it; what it wrote to stdout and stderr, and what it cost.
fn run(command: &mut Command) -> Result<(String, String, Cost), String> {
    let (before, begin) = (children(), Instant::now());
    let output = command.output().map_err(|e: io::Error| e.to_string())?;
    let cost = Cost { elapsed: begin.elapsed().as_secs_f64(), processor: children() - before, ran: 0.0 };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() { Ok((out, err, cost)) } else { Err(format!("{command:?}: {err}")) }
}

/// Seconds that the program ran in the guest, from the report.
fn ran(report: &str) -> Result<f64, String> {
    let found = report.split("ran ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    found.ok_or_else(|| format!("no run time in: {report}"))
}

fn lab(dir: &Path, words: &[&str], program: &[&str]) -> Result<(String, Cost), String> {
    let mut command = homenode(dir);
    command.args(words).args(MACHINE).args(["--no-cwd"]).args(program);
    let (out, err, cost) = run(&mut command)?;
    Ok((out, Cost { ran: ran(&err)?, ..cost }))
}

fn monitor(dir: &Path) -> Result<(), String> {
    let cg = ["kernel:nas-cg", "--class", "W", "--threads", "4"];
    let bare = ["lab", "run", "--accel", "tcg"];
    let recorded = ["record", "--on", "lab", "--force", "-o", "r"];
    let (mut boots, mut without, mut with) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        boots.push(lab(dir, &bare, &["--", "true"])?.1);
        without.push(lab(dir, &bare, &cg)?.1);
        with.push(lab(dir, &recorded, &cg)?.1);
    }
    let (boot, without, with) = (median(&boots), median(&without), median(&with));
    // The whole run, and what of it is the program's: a boot's time is in both.
    let (run, program) = (with.elapsed / without.elapsed, with.ran / without.ran);
    let processor = (with.processor - boot.processor) / (without.processor - boot.processor);
    println!(
        "NAS CG W, 4 threads, 4 nodes: {:.1} without the monitor, {:.1} with it: {run:.2} times; goal 2.5",
        without.elapsed, with.elapsed
    );
    println!(
        "of which the program {:.1} and {:.1}: {program:.2} times; processor time without a boot's {:.1} and {:.1}: {processor:.2} times",
        without.ran,
        with.ran,
        without.processor - boot.processor,
        with.processor - boot.processor
    );
    println!("bench: lab/monitor-run {run:.3} x");
    println!("bench: lab/monitor-program {program:.3} x");
    println!("bench: lab/monitor-processor {processor:.3} x");
    Ok(())
}

fn user_mode(dir: &Path, kernel: &str, name: &str) -> Result<(), String> {
    let words = [kernel, "--class", "W", "--threads", "2"];
    let recording = dir.join(name);
    let (mut bare, mut recorded) = (Vec::new(), Vec::new());
    let mut program: Option<PathBuf> = None;
    for _ in 0..ROUNDS {
        let mut command = homenode(dir);
        command.args(["record", "--on", "emulator", "--force", "-o"]).arg(&recording).args(words);
        recorded.push(run(&mut command)?.2);
        let program = program.get_or_insert(recorded_program(&recording)?);
        let mut command = Command::new("qemu-x86_64");
        command.current_dir(dir).stdin(Stdio::null());
        command.envs([("OMP_WAIT_POLICY", "passive"), ("OMP_NUM_THREADS", "2")]);
        command.arg(program).args(["--class", "W", "--threads", "2"]);
        bare.push(run(&mut command)?.2);
    }
    let (bare, recorded) = (median(&bare), median(&recorded));
    let (elapsed, processor) = (recorded.elapsed / bare.elapsed, recorded.processor / bare.processor);
    println!(
        "{kernel} W, 2 threads: {:.1}, {:.1} under bare qemu-x86_64, {:.1}, {:.1} recorded: {elapsed:.2} and \
         {processor:.2} times; goal 2.0",
        bare.elapsed, bare.processor, recorded.elapsed, recorded.processor
    );
    println!("bench: lab/user-{name}-elapsed {elapsed:.3} x");
    println!("bench: lab/user-{name}-processor {processor:.3} x");
    Ok(())
}

/// The program that a recording is of.
fn recorded_program(recording: &Path) -> Result<PathBuf, String> {
    let recording = homenode_log::recording::Recording::open(recording).map_err(|e| e.to_string())?;
    recording.meta.command.first().map(PathBuf::from).ok_or_else(|| "the recording has no command".into())
}

fn migration(dir: &Path) -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab/move.c");
    let mut gcc = Command::new("gcc");
    run(gcc.current_dir(dir).args(["-O2", "-pthread", "-o", "move"]).arg(source))?;
    let program = dir.join("move");
    let (out, _) = lab(dir, &["lab", "run", "--accel", "tcg"], &["--", &program.to_string_lossy()])?;
    let numbers: Vec<f64> = out.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [asleep, spinning] = numbers[..] else { return Err(format!("two numbers are wanted: {out}")) };
    println!(
        "moving a page: {:.0} µs with the team asleep, {:.0} µs while it spins",
        asleep / 1e3,
        spinning / 1e3
    );
    println!("bench: lab/move-asleep {:.1} us", asleep / 1e3);
    println!("bench: lab/move-spinning {:.1} us", spinning / 1e3);
    Ok(())
}
