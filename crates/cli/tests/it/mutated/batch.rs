//! A batch of damaged inputs in one process: the commands run in it, one after the other, under a
//! limit of memory and a watchdog.
//!
//! A crash, a hang or a failed allocation ends the process. Its parent then knows the input by the
//! file `at`, and goes on behind it with a new process.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::inputs::Input;
use super::mutate::{Rng, mutated_bytes};
use super::{read, table};
use crate::hostile_recordings::attempt_within;

/// CPU time after which an input is one that hangs.
const HANGS: Duration = Duration::from_secs(5);
/// An input that waits for somebody needs no CPU time.
const WAITS: Duration = Duration::from_secs(60);
/// Bytes of memory in use that an input may take, the process itself included.
const MOST_MEMORY: u64 = 256 << 20;
/// Turns for one in which an input that needs a process of its own runs.
const DEAR: u64 = 16;
/// What the command needs of a stack, as in `src/main.rs`.
const STACK: usize = 8 << 20;

/// Files in the folder of a batch.
pub const AT: &str = "at";
pub const SAID: &str = "said";
pub const RESULTS: &str = "results";
pub const WRONG: &str = "wrong";
pub const SOUND: &str = "sound";

/// What came of one input.
pub struct Outcome {
    pub status: Option<i32>,
    pub cpu: Duration,
    pub memory: u64,
}

impl Outcome {
    pub fn line(&self) -> String {
        let status = self.status.map_or("none".into(), |s| s.to_string());
        format!("{status} {} {}\n", self.cpu.as_millis(), self.memory)
    }

    pub fn of_line(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let status = words.next()?.parse().ok();
        let cpu = Duration::from_millis(words.next()?.parse().ok()?);
        Some(Self { status, cpu, memory: words.next()?.parse().ok()? })
    }
}

/// Damages the input. Half of the damage lies behind checksums and compression, which no accident
/// passes.
fn damaged(input: &Input, other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let (of, deep) = (&input.sound[..], rng.below(2) == 0);
    let extension = input.path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match (extension, deep) {
        ("hntable", true) => table::packed(&mutated_bytes(&table::unpacked(of), other, rng)),
        ("hnlog", true) => read::packed(&mutated_bytes(&read::unpacked(of), other, rng)),
        (_, true) if of.starts_with(&homenode_wire::frame::MAGIC) => resealed(&mutated_bytes(of, other, rng)),
        _ => mutated_bytes(of, other, rng),
    }
}

/// The frames of a stream with their checksums made right, as far as their lengths lead.
fn resealed(bytes: &[u8]) -> Vec<u8> {
    use homenode_wire::frame::{HEADER, MAGIC};
    let mut out = bytes.to_vec();
    let mut at = 0;
    while out.get(at..at + HEADER).is_some_and(|head| head.starts_with(&MAGIC)) {
        let length = u32::from_le_bytes([out[at + 8], out[at + 9], out[at + 10], out[at + 11]]) as usize;
        let end = (at + HEADER).saturating_add(length).min(out.len());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&out[at..at + 12]);
        crc.update(&out[at + HEADER..end]);
        out[at + 12..at + HEADER].copy_from_slice(&crc.finalize().to_le_bytes());
        at = end;
    }
    out
}

/// CPU time of this process.
fn cpu() -> Duration {
    /// Length of a tick in milliseconds, the same on all architectures of Linux that homenode runs
    /// on.
    const TICK: u64 = 10;
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // "utime" and "stime" of proc(5).
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * TICK)
}

/// Most bytes of memory that were in use since the last call.
fn peak_of_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kib << 10
}

/// Ends the process when the input `at` takes too long.
fn watch(at: &'static AtomicU64) {
    std::thread::spawn(move || {
        let (mut last, mut since, mut used) = (0, Instant::now(), cpu());
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let now = at.load(Ordering::Relaxed);
            if now != last {
                (last, since, used) = (now, Instant::now(), cpu());
            } else if cpu() - used > HANGS || since.elapsed() > WAITS {
                eprintln!("it hangs: {:?} of CPU time, {:?}", cpu() - used, since.elapsed());
                std::process::abort();
            }
        }
    });
}

/// The status of a command line that runs in this process. `None`: it panicked.
fn in_process(line: &str) -> Option<i32> {
    let words = line.split(' ').map(OsString::from);
    let args: Vec<OsString> = std::iter::once("homenode".into()).chain(words).collect();
    let main = std::thread::Builder::new().stack_size(STACK).spawn(move || match &args[1..] {
        [call, path] if call == "@plan" => match homenode_plan::file::PlanFile::read(Path::new(path)) {
            Ok(plan) => ExitCode::from(u8::from(plan.bytes() == 0)),
            Err(error) => {
                println!("{error}");
                ExitCode::from(2)
            }
        },
        [call, path] if call == "@schedules" => {
            let bytes = fs::read(path).unwrap();
            match homenode_wire::decode::<homenode_wire::schedule::Schedules>(&bytes) {
                Ok(_) => ExitCode::SUCCESS,
                Err(error) => {
                    println!("{error}");
                    ExitCode::from(2)
                }
            }
        }
        _ => homenode_cli::main(&args),
    });
    let code = main.unwrap().join().ok()?;
    (0..=255).find(|n| ExitCode::from(*n) == code).map(i32::from)
}

/// Whether a command line needs a process of its own: it runs a program, or has a child read.
fn is_dear(line: &str) -> bool {
    line.starts_with("run ") || line.ends_with(".xml")
}

/// Damages the inputs `from` to `to` of a seed in the folder `dir`, which is the current one. The
/// damage of an input depends on the seed and its number alone.
pub fn run(dir: &Path, inputs: &[Input], seed: u64, from: u64, to: u64) {
    static INPUT: AtomicU64 = AtomicU64::new(u64::MAX);
    watch(&INPUT);
    let mut results = fs::File::options().append(true).create(true).open(dir.join(RESULTS)).unwrap();
    let said = fs::File::options().write(true).open(dir.join(SAID)).unwrap();
    for number in from..to {
        let mut rng = Rng(seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        for _ in 0..8 {
            rng.below(2);
        }
        let input = (0..).map(|n| &inputs[(number + n) as usize % inputs.len()]);
        let turn = number / inputs.len() as u64;
        let is_cheap =
            |input: &&Input| !input.commands.iter().all(|c| is_dear(c)) || turn.is_multiple_of(DEAR);
        let input = input.into_iter().find(is_cheap).unwrap();
        let other = &inputs[rng.below(inputs.len())].sound;
        let commands: Vec<&String> =
            input.commands.iter().filter(|c| !is_dear(c) || turn.is_multiple_of(DEAR)).collect();
        let line = commands[rng.below(commands.len())];
        fs::write(dir.join(&input.path), damaged(input, other, &mut rng)).unwrap();
        fs::write(dir.join(AT), format!("{number} {} {line}", input.path.display())).unwrap();
        for left in ["out", "out.html"].map(|name| dir.join(name)) {
            let _ = fs::remove_dir_all(&left);
            let _ = fs::remove_file(&left);
        }
        let begin = cpu();
        peak_of_memory();
        INPUT.store(number, Ordering::Relaxed);
        let mut text = String::new();
        let status = if is_dear(line) {
            let words: Vec<&str> = line.split(' ').collect();
            let (status, said) = attempt_within(dir, &words, super::LIMIT);
            text = said;
            status
        } else {
            in_process(line)
        };
        let outcome = Outcome { status, cpu: cpu().saturating_sub(begin), memory: peak_of_memory() };
        std::io::stdout().flush().unwrap();
        let bytes = fs::read(dir.join(SAID)).unwrap();
        said.set_len(0).unwrap();
        text += &String::from_utf8_lossy(&bytes);
        let wrong = judge(&outcome, &text);
        if !wrong.is_empty() {
            let kept = dir.with_extension(format!("wrong-{number}"));
            fs::copy(dir.join(&input.path), &kept).unwrap();
            let what = format!(
                "input {number}, {}, `{line}`: {}: {:?}, {} MiB ({}): {text:.800}\n",
                input.format,
                wrong.join(", "),
                outcome.status,
                outcome.memory >> 20,
                kept.display()
            );
            fs::File::options()
                .append(true)
                .create(true)
                .open(dir.join(WRONG))
                .unwrap()
                .write_all(what.as_bytes())
                .unwrap();
        }
        results.write_all(outcome.line().as_bytes()).unwrap();
        fs::write(dir.join(&input.path), &input.sound).unwrap();
    }
}

/// What is wrong with an outcome.
fn judge(outcome: &Outcome, said: &str) -> Vec<&'static str> {
    // A plan is for a program, whose launcher ends with 125 or the program's own status.
    let known = matches!(outcome.status, Some(0..=3 | 125..=127));
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t') || c == '\u{202e}';
    let all = [
        (!known, "a status that --help does not tell of"),
        (said.contains("panicked"), "a panic"),
        (said.chars().any(obeyed), "a terminal would obey"),
        (outcome.cpu > HANGS, "it hangs"),
        (outcome.memory > MOST_MEMORY, "too much memory"),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

/// Writes what a batch needs beside the inputs: their list and sound copies.
pub fn save(dir: &Path, inputs: &[Input]) {
    let sound = dir.join(SOUND);
    fs::create_dir(&sound).unwrap();
    let mut list = Vec::new();
    for (n, input) in inputs.iter().enumerate() {
        fs::write(sound.join(n.to_string()), &input.sound).unwrap();
        list.push((&input.format, &input.path, &input.commands));
    }
    fs::write(sound.join("list.json"), serde_json::to_vec(&list).unwrap()).unwrap();
}

/// Reads what [`save`] wrote.
pub fn load(dir: &Path) -> Vec<Input> {
    let sound = dir.join(SOUND);
    let list: Vec<(String, PathBuf, Vec<String>)> =
        serde_json::from_slice(&fs::read(sound.join("list.json")).unwrap()).unwrap();
    let input = |(n, (format, path, commands)): (usize, _)| {
        let sound = fs::read(sound.join(n.to_string())).unwrap();
        Input { format, path, sound, commands }
    };
    list.into_iter().enumerate().map(input).collect()
}
