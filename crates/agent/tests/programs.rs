//! Programs from a grammar end under homenode as they do alone: same output, same status or signal.
//!
//! A seed is a program (`programs/grammar.rs`), the compiler of the interpreter that runs it
//! (`tests/hostile/interpreter.c`), and homenode's settings. A program mixes threads, allocations,
//! system calls, signals, children and parallel regions, and prints a digest of all it saw.
//! `cargo xtask fuzz-programs` runs any range of seeds, and makes a program that differs smaller.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use homenode_model::{Bytes, Ns};
use homenode_wire::facts::{Arming, Budget, Facts};
use homenode_wire::schedule::{Mode, RequestedSchedule};
use homenode_wire::settings::{self, MachineNodes, Settings, Wanted};

#[path = "programs/grammar.rs"]
mod grammar;

/// `FIRST:COUNT`, the seeds of the long test; and whether to make what differs smaller.
const SEEDS: &str = "HOMENODE_PROGRAMS";
const SHRINK: &str = "HOMENODE_PROGRAMS_SHRINK";

/// Far more than any of these programs takes, on a busy machine, too.
const LIMIT: Duration = Duration::from_secs(90);

/// How homenode is set for a run.
struct How {
    name: &'static str,
    set: fn(&mut Settings),
    /// Milliseconds from one arming of everything to the next, without asking policy or guard.
    every: Option<&'static str>,
    loops: bool,
}

fn watched(settings: &mut Settings, policy: &str, source: Wanted) {
    settings.arming = Arming::Watch;
    settings.policy = policy.into();
    settings.source = source;
}

fn unbounded(settings: &mut Settings) {
    settings.budget = Budget { permille: 1000, fixed: Ns(100_000_000_000) };
    settings.force = true;
}

const HOW: &[How] = &[
    How { name: "default", set: |s| s.trial = true, every: None, loops: false },
    How {
        name: "asked, armed every ms",
        set: |s| {
            s.arming = Arming::Asked;
            s.force = true;
        },
        every: Some("1"),
        loops: false,
    },
    How {
        name: "region",
        set: |s| {
            s.arming = Arming::Region;
            unbounded(s);
        },
        every: None,
        loops: false,
    },
    How {
        name: "region, armed every ms",
        set: |s| {
            s.arming = Arming::Region;
            unbounded(s);
        },
        every: Some("1"),
        loops: false,
    },
    How {
        name: "competitive by writes, shaken every ms",
        set: |s| {
            watched(s, "competitive", Wanted::Writes);
            unbounded(s);
        },
        every: Some("1"),
        loops: false,
    },
    How {
        name: "competitive by blocks, shaken every ms",
        set: |s| {
            watched(s, "competitive", Wanted::Blocks);
            unbounded(s);
        },
        every: Some("1"),
        loops: false,
    },
    How {
        name: "presence",
        set: |s| {
            watched(s, "presence", Wanted::Auto);
            unbounded(s);
        },
        every: None,
        loops: false,
    },
    How {
        name: "recorded live",
        set: |s| {
            watched(s, "first-touch", Wanted::Blocks);
            s.record = true;
        },
        every: None,
        loops: false,
    },
    How {
        name: "loops by affinity, armed every ms",
        set: |s| {
            s.arming = Arming::Asked;
            s.force = true;
            s.schedule = Some(RequestedSchedule { mode: Mode::Affinity, from: false, to: false });
        },
        every: Some("1"),
        loops: true,
    },
];

/// How a program ended: status or signal, and its own output. `None`: it did not, in time.
type End = Option<(Option<i32>, Option<i32>, String)>;

/// The interpreters, one a compiler, and the libraries of this profile's build.
struct Bench {
    folder: PathBuf,
    interpreters: Vec<PathBuf>,
    library: PathBuf,
    loops: PathBuf,
}

fn bench(test: &str) -> Option<Bench> {
    let here = std::env::current_exe().ok()?;
    let built = here.parent()?.parent()?;
    let [library, loops] = ["libhomenode.so", "libhomenode_loops.so"].map(|f| built.join(f));
    if !library.exists() || !loops.exists() {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/interpreter.c");
    let mut interpreters = Vec::new();
    for compiler in ["gcc", "clang"] {
        let out = folder.join(compiler);
        let mut command = Command::new(compiler);
        command.args(["-O1", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-pthread", "-o"]);
        match command.arg(&out).arg(&source).arg("-ldl").output() {
            Ok(done) if done.status.success() => interpreters.push(out),
            Ok(done) if compiler == "gcc" => panic!("{}", String::from_utf8_lossy(&done.stderr)),
            _ => println!("skipped: there is no {compiler} with OpenMP"),
        }
    }
    Some(Bench { folder, interpreters, library, loops })
}

/// A program of a seed, on its way through both runs.
struct Case<'a> {
    bench: &'a Bench,
    folder: PathBuf,
    interpreter: &'a Path,
    how: &'static How,
}

impl<'a> Case<'a> {
    fn of(bench: &'a Bench, seed: u64, folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).unwrap();
        // Not from the program's own numbers, so that a program can be tried with all settings.
        let mut rng = grammar::Rng(seed ^ 0x686f_6d65_6e6f_6465);
        let interpreter = &bench.interpreters[rng.below(bench.interpreters.len() as u64) as usize];
        let how = &HOW[rng.below(HOW.len() as u64) as usize];
        Self { bench, folder, interpreter, how }
    }

    fn end(&self, command: &mut Command) -> End {
        let file = |n: &str| std::fs::File::create(self.folder.join(n)).unwrap();
        command.arg(self.folder.join("program")).current_dir(&self.folder);
        command.env("OMP_WAIT_POLICY", "passive").env("OMP_DYNAMIC", "false");
        let mut child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let out = String::from_utf8_lossy(&std::fs::read(self.folder.join("out")).unwrap()).into_owned();
        Some((status.code(), status.signal(), out))
    }

    fn alone(&self) -> End {
        self.end(&mut Command::new(self.interpreter))
    }

    /// How it ends with homenode, and how many pages were armed or looked at.
    fn with(&self) -> (End, u64) {
        let reports = self.folder.join("reports");
        let _ = std::fs::remove_dir_all(&reports);
        std::fs::create_dir(&reports).unwrap();
        let mut settings = Settings {
            policy: "next-touch".into(),
            machine: MachineNodes::even(2, 1, Bytes::gib(1), 20),
            pretend: true,
            budget: Budget::DEFAULT,
            ..Settings::default()
        };
        (self.how.set)(&mut settings);
        if settings.record {
            settings.stream = Some(reports.join("stream"));
            std::fs::create_dir(reports.join("stream")).unwrap();
        }
        let bytes = homenode_wire::encode(&settings).unwrap();
        std::fs::write(reports.join(settings::FILE), bytes).unwrap();
        let mut command = Command::new(self.interpreter);
        let mut preload = self.bench.library.clone().into_os_string();
        if self.how.loops {
            preload = format!("{}:{}", self.bench.loops.display(), self.bench.library.display()).into();
        }
        command.env("LD_PRELOAD", preload).env(settings::RUN_DIR, &reports);
        if let Some(every) = self.how.every {
            command.env("HOMENODE_RUN_FORCE_ARM", every);
        }
        let end = self.end(&mut command);
        let reports = std::fs::read_dir(&reports).unwrap().flatten();
        let reports = reports.filter(|e| e.file_name().to_string_lossy().starts_with("report."));
        let read = |path: PathBuf| homenode_wire::decode::<Facts>(&std::fs::read(path).ok()?).ok();
        let armed =
            reports.filter_map(|e| read(e.path())).map(|f| f.counters.armed_pages + f.counters.faults);
        (end, armed.sum())
    }

    fn set(&self, text: &str) {
        std::fs::write(self.folder.join("program"), text).unwrap();
    }

    /// What differs in one of `tries` runs, in words.
    fn differs(&self, text: &str, tries: u32) -> Result<Option<String>, String> {
        self.set(text);
        let alone = self.alone();
        if alone.is_none() || self.alone() != alone {
            return Err(format!("not the same twice without homenode: {alone:?}"));
        }
        Ok((0..tries).find_map(|_| {
            let with = self.with().0;
            let said = || std::fs::read_to_string(self.folder.join("err")).unwrap_or_default();
            (with != alone).then(|| format!("alone {alone:?}, with homenode {with:?} {}", said()))
        }))
    }

    /// A program with fewer lines that still differs.
    fn shrunk(&self, text: &str) -> String {
        let mut text = text.to_owned();
        loop {
            let smaller = grammar::pieces(&text).into_iter().map(|p| grammar::without(&text, &p));
            match smaller.into_iter().find(|t| matches!(self.differs(t, 6), Ok(Some(_)))) {
                Some(smaller) => text = smaller,
                None => return text,
            }
        }
    }

    /// Runs the program of this seed alone and with homenode.
    fn run(&self, seed: u64) -> Result<u64, String> {
        let text = grammar::program(seed);
        self.set(&text);
        let alone = self.alone();
        assert!(alone.is_some(), "seed {seed} does not end alone:\n{text}");
        let (with, armed) = self.with();
        if with == alone {
            return Ok(armed);
        }
        let said = std::fs::read_to_string(self.folder.join("err")).unwrap_or_default();
        let again = self.alone();
        let name = self.how.name;
        let mut why = format!(
            "seed {seed} ({name}, {}): alone {alone:?}, again {again:?}, with homenode {with:?} {said}",
            self.interpreter.file_name().unwrap().display()
        );
        if again == alone && std::env::var_os(SHRINK).is_some() {
            let small = self.shrunk(&text);
            why += &format!("\n{small}{:?}", self.differs(&small, 20));
        }
        Err(why)
    }
}

/// Runs the programs of these seeds, two at a time, and says what differs. Returns how many were
/// armed.
fn run_all(test: &str, first: u64, count: u64) -> Option<u64> {
    let bench = bench(test)?;
    let (next, armed) = (AtomicU64::new(0), AtomicU64::new(0));
    let different = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (bench, next, armed, different) = (&bench, &next, &armed, &different);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let seed = first + at;
                    let case = Case::of(bench, seed, bench.folder.join(format!("worker-{worker}")));
                    match case.run(seed) {
                        Ok(n) => drop(armed.fetch_add(u64::from(n > 0), Ordering::Relaxed)),
                        Err(why) => {
                            eprintln!("{why}");
                            different.lock().unwrap().push(why);
                        }
                    }
                }
            });
        }
    });
    let different = different.into_inner().unwrap();
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
    Some(armed.into_inner())
}

#[test]
fn programs_from_a_grammar_end_as_without_homenode() {
    match run_all("some", 0, 200) {
        // With the default settings few of these short programs have anything to gain.
        Some(armed) => assert!(armed >= 60, "homenode took pages away in {armed} of 200 programs only"),
        None => println!("skipped: libhomenode.so is not built"),
    }
}

/// `HOMENODE_PROGRAMS=FIRST:COUNT` sets the seeds.
#[test]
#[ignore = "takes about an hour"]
fn ten_thousand_programs_end_as_without_homenode() {
    let asked = std::env::var(SEEDS).ok();
    let seeds = asked.as_deref().and_then(|s| s.split_once(':'));
    let seeds = seeds.and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?)));
    assert_eq!(asked.is_some(), seeds.is_some(), "{SEEDS} is FIRST:COUNT");
    let (first, count) = seeds.unwrap_or((1000, 10_000));
    match run_all("many", first, count) {
        Some(armed) => println!("{count} programs, pages taken away in {armed} of them, 0 differ"),
        None => println!("skipped: libhomenode.so is not built"),
    }
}
