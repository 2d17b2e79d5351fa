//! SIGKILL at random points of each kind of recording. What is left is readable, says in its first
//! line that it is not whole, and no temporary folder outlives the next start.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lab;
use crate::support::{compilers, fresh, homenode, instrumented, outcome, plain, run};

/// Writes to an array with two threads, in rounds, and says when it has come to its end.
const VICTIM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 1 << 19 };
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double *a = malloc(N * sizeof *a);
    if (!a) return 1;
    memset(a, 0, N * sizeof *a);
    for (int round = 0; round < rounds; round++) {
        #pragma omp parallel for num_threads(2) schedule(static)
        for (int i = 0; i < N; i++) a[i] += a[(i + 64) % N] + round;
    }
    free(a);
    puts("the end");
    return 0;
}
"#;

/// A way to record: its name, the command without the program, rounds of the program.
struct Kind {
    name: &'static str,
    words: &'static str,
    program: &'static str,
    rounds: u32,
    /// Points of the others for one of this kind.
    one_of: u64,
}

const KINDS: &[Kind] = &[
    Kind { name: "instrumented", words: "record -o r", program: "own", rounds: 6, one_of: 1 },
    Kind {
        name: "live",
        words: "record --on live --source blocks --pretend-nodes 2 -o r",
        program: "app",
        rounds: 60,
        one_of: 1,
    },
    Kind {
        name: "run --record",
        words: "run --pretend-nodes 2 --policy next-touch=region --record r",
        program: "app",
        rounds: 60,
        one_of: 1,
    },
    Kind { name: "emulator", words: "record --on emulator -o r", program: "app", rounds: 3, one_of: 1 },
    Kind { name: "compare", words: "compare -m 2s-xeon --keep r", program: "own", rounds: 5, one_of: 1 },
    // It keeps nothing: what it leaves among the temporary files goes.
    Kind { name: "explain", words: "explain -m 2s-xeon", program: "own", rounds: 5, one_of: 4 },
    // Each boots a virtual machine.
    Kind { name: "lab", words: "record --on lab --accel tcg -o r", program: "app", rounds: 1, one_of: 50 },
];

/// Whom SIGKILL ends.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// homenode, and all that it started, at once.
    Group,
    /// homenode alone; the program goes on for a while.
    Homenode,
    /// The program alone.
    Program,
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

/// Processes of the group that are no zombies: pid and name.
fn alive(group: u32) -> Vec<(u32, String)> {
    let folders = fs::read_dir("/proc").unwrap().flatten();
    let pids = folders.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let there = fields[0] != "Z" && fields[2].parse() == Ok(group);
        there.then(|| (pid, before.split_once('(').map_or("", |(_, n)| n).to_owned()))
    };
    pids.filter_map(of).collect()
}

fn kill(target: &str) {
    let _ = Command::new("kill").args(["-KILL", "--", target]).stderr(Stdio::null()).status();
}

/// Waits until nothing of the group is alive.
fn wait_for_the_end(group: u32) {
    let begin = Instant::now();
    while !alive(group).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?} survive SIGKILL", alive(group));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What is left where temporary files go.
fn left(temporary: &Path) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = fs::read_dir(temporary).unwrap().flatten().map(|e| e.path()).collect();
    left.sort();
    left
}

fn started(dir: &Path, kind: &Kind) -> Child {
    let mut command = homenode(dir);
    command.args(kind.words.split(' ')).arg("--").arg(format!("./{}", kind.program));
    command.arg(kind.rounds.to_string()).env("TMPDIR", dir.join("tmp")).process_group(0);
    // The kernel that all tests of the lab share.
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME") {
        command.env("XDG_CACHE_HOME", cache);
    }
    let file = |name: &str| fs::File::create(dir.join(name)).unwrap();
    command.stdout(file("out")).stderr(file("err")).spawn().unwrap()
}

/// Kills at this point, and then whatever is left. Whether the program had come to its end.
fn killed(dir: &Path, kind: &Kind, after: Duration, victim: Victim) -> bool {
    let mut child = started(dir, kind);
    let group = child.id();
    std::thread::sleep(after);
    match victim {
        Victim::Group => kill(&format!("-{group}")),
        Victim::Homenode => {
            kill(&group.to_string());
            std::thread::sleep(Duration::from_millis(50));
        }
        Victim::Program => {
            for (pid, _) in alive(group).into_iter().filter(|(pid, _)| *pid != group) {
                kill(&pid.to_string());
            }
            // homenode finishes by itself.
            let begin = Instant::now();
            while child.try_wait().unwrap().is_none() && begin.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    kill(&format!("-{group}"));
    let _ = child.wait();
    wait_for_the_end(group);
    fs::read_to_string(dir.join("out")).unwrap().contains("the end")
}

/// What came of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    /// Killed before anything was recorded.
    Nothing,
    /// A part, which says so.
    Part,
    /// All of it.
    Whole,
}

/// Reads what is left, by every command that should be able to; what is wrong, in words. `ended`:
/// the program had come to its end.
fn read(dir: &Path, kind: &Kind, ended: bool) -> Result<Left, String> {
    if kind.name != "compare" {
        return read_one(dir, "r", ended);
    }
    // The recording of the program, and a data set of each scheme.
    let inside = fs::read_dir(dir.join("r")).into_iter().flatten().flatten();
    let mut all: Vec<Result<Left, String>> = Vec::new();
    for entry in inside.filter(|e| e.path().is_dir()) {
        let name = format!("r/{}", entry.file_name().to_str().unwrap());
        all.push(read_one(dir, &name, says_that_it_ended(&entry.path())));
    }
    let all: Vec<Left> = all.into_iter().collect::<Result<_, _>>()?;
    Ok(all.into_iter().max().unwrap_or(Left::Nothing))
}

/// Whether the description of a recording tells of an end.
fn says_that_it_ended(recording: &Path) -> bool {
    let read = |file: &&str| fs::read_to_string(recording.join(file)).ok();
    let text = ["meta.json", "dataset.json"].iter().find_map(read).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    !json["ended"].is_null() && json["ended"]["signal"].is_null()
}

/// Reads one recording.
fn read_one(dir: &Path, recording: &str, ended: bool) -> Result<Left, String> {
    if !dir.join(recording).exists() {
        return Ok(Left::Nothing);
    }
    // homenode was killed while it made the folder: nothing says what it is.
    let described = ["meta.json", "dataset.json"].iter().any(|file| dir.join(recording).join(file).exists());
    let mut worst = Left::Whole;
    // 'explain' does not say yet that a simulated data set has no end.
    let is_simulated = recording.ends_with(".hnrec");
    for command in ["rec check", "show -q", "explain -q"] {
        if is_simulated && command == "explain -q" {
            continue;
        }
        let words = format!("{command} {recording}");
        let (status, out, err) = run(dir, &words.split(' ').collect::<Vec<_>>());
        let all = out.clone() + &err;
        let first = all.lines().find(|l| !l.is_empty()).unwrap_or_default();
        let told = |text: &str| text.contains("not whole") || text.contains("cut off");
        // Killed before its first record, a recording is empty. If homenode alone was killed, the
        // logs are whole, and the names are missing.
        let others: [&str; 3] =
            ["empty: no thread was recorded", "readable and never finished", "inside of the header"];
        let checked = told(&all) || others.iter().any(|text| all.contains(text));
        let told = if command == "rec check" { checked } else { told(first) };
        match status {
            Some(2) if !described && all.contains("has no meta.json") => worst = Left::Nothing,
            Some(3) if told && all.contains("the recording has no thread") => worst = Left::Nothing,
            Some(3) if told && worst == Left::Whole => worst = Left::Part,
            Some(3) if told => {}
            Some(0) if ended && worst == Left::Whole => {}
            _ => return Err(format!("'{words}' ends with {status:?} (program ended: {ended}):\n{all}")),
        }
    }
    Ok(worst)
}

/// Kills at `points` points of each kind; the points come from `seed`.
fn kill_at(test: &str, seed: u64, points: u64) {
    if !compilers() {
        return;
    }
    let emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    let wrong = Mutex::new(Vec::new());
    for (number, kind) in KINDS.iter().enumerate() {
        if kind.name == "emulator" && !emulator {
            println!("skipped: there is no qemu-x86_64 (qemu-user)");
            continue;
        }
        let points = points / kind.one_of;
        if points == 0 || kind.name == "lab" && !lab::there() {
            continue;
        }
        let (counts, whole) =
            kill_one_kind(&format!("{test}-{number}"), kind, &drawn(seed, number, points), &wrong);
        println!("{}: {points} points in {whole:?}, seed {seed}: {counts:?}", kind.name);
    }
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// Points of a kind: thousandths of the time that the whole takes, and whom SIGKILL ends.
fn drawn(seed: u64, number: usize, points: u64) -> Vec<(u64, Victim)> {
    let mut rng = Rng(seed ^ (number as u64) << 32);
    let victims = [Victim::Group, Victim::Homenode, Victim::Program];
    (0..points).map(|_| (rng.below(1100), victims[rng.below(3) as usize])).collect()
}

/// Kills one kind at these points, at as many at a time as there are pairs of CPUs. What was left,
/// and how long a whole recording takes.
fn kill_one_kind(
    test: &str,
    kind: &Kind,
    points: &[(u64, Victim)],
    wrong: &Mutex<Vec<String>>,
) -> (BTreeMap<Left, u32>, Duration) {
    let workers = (std::thread::available_parallelism().map_or(1, NonZero::get) / 2).max(1);
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(BTreeMap::new());
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers)
            .map(|worker| {
                let folder = fresh(&format!("{test}-{worker}"));
                let (next, counts) = (&next, &counts);
                scope.spawn(move || kill_at_points(&folder, kind, points, next, counts, wrong))
            })
            .collect();
        longest = started.into_iter().map(|w| w.join().unwrap()).max().unwrap_or_default();
    });
    (counts.into_inner().unwrap(), longest)
}

/// Kills in one folder, at the points that nobody has taken. How long a whole recording takes.
fn kill_at_points(
    dir: &Path,
    kind: &Kind,
    points: &[(u64, Victim)],
    next: &AtomicUsize,
    counts: &Mutex<BTreeMap<Left, u32>>,
    wrong: &Mutex<Vec<String>>,
) -> Duration {
    if kind.program == "own" {
        instrumented(dir, "own", VICTIM);
    } else {
        plain(dir, "app", VICTIM);
    }
    let temporary = dir.join("tmp");
    fs::create_dir(&temporary).unwrap();
    // How long it takes here and now says where the points lie.
    let begin = Instant::now();
    let (status, out, err) = outcome(&started(dir, kind).wait_with_output().unwrap());
    let said = fs::read_to_string(dir.join("err")).unwrap();
    assert_eq!(status, Some(0), "{}: {out}{err}{said}", kind.name);
    let whole = begin.elapsed();
    assert_eq!(left(&temporary), [] as [PathBuf; 0], "{}: left by a whole run", kind.name);
    loop {
        let point = next.fetch_add(1, Ordering::Relaxed);
        let Some((thousandths, victim)) = points.get(point).copied() else { return whole };
        let _ = fs::remove_dir_all(dir.join("r"));
        let after = whole.mul_f64(thousandths as f64 / 1000.0);
        let ended = killed(dir, kind, after, victim);
        let what = format!("{} point {point}: {victim:?} after {after:?} of {whole:?}", kind.name);
        let found = |why: String| {
            println!("{why}");
            wrong.lock().unwrap().push(why);
        };
        match read(dir, kind, ended) {
            Ok(left) => *counts.lock().unwrap().entry(left).or_default() += 1,
            Err(why) => found(format!("{what}: {why}")),
        }
        // The next start clears up.
        let _ = homenode(dir)
            .args(["run", "-q", "--pretend-nodes", "2", "--", "/bin/true"])
            .env("TMPDIR", &temporary)
            .output();
        let left = left(&temporary);
        if !left.is_empty() {
            found(format!("{what}: left after the next start: {left:?}"));
            left.iter().for_each(|p| drop(fs::remove_dir_all(p)));
        }
    }
}

/// Eight points of each kind that needs no virtual machine, 42 in all.
#[test]
fn at_a_few_random_points() {
    kill_at("killed-few", 1, 8);
}

/// `HOMENODE_KILLS=SEED:POINTS` sets another seed and the points of each kind.
#[test]
#[ignore = "takes more than an hour"]
fn at_a_thousand_random_points_of_each_kind() {
    let asked = std::env::var("HOMENODE_KILLS").ok();
    let asked = asked.as_deref().map(|text| text.split_once(':').expect("SEED:POINTS"));
    let number = |text: &str| text.parse().expect("a number");
    let (seed, points) = asked.map_or((2, 1000), |(seed, points)| (number(seed), number(points)));
    kill_at("killed-many", seed, points);
}
