//! Every way of the hostile programs under every setting of homenode: 0 differences to the program
//! alone.
//!
//! | program of `tests/hostile` | its ways (`--list`) |
//! |---|---|
//! | `ends` | to end a process, by hand; `endings`: who ends it × how |
//! | `births` | to make a thread or a process × to end the thread |
//! | `privileges` | to give up privileges, by hand; `rights`: who changes them × what changes |
//! | `efault` | one: all calls of `calls.rs`, by buffer, path, vector and result |
//!
//! The settings are the product of [`KINDS`] and of being armed or watched anew every millisecond,
//! or as homenode does by default. A program that is built to be recorded is not armed: its second
//! setting is a filter of 16 lines, so that most accesses leave the program's own code.
//!
//! `make test` takes a part of the product, drawn by a seed (`HOMENODE_PRODUCT=SEED:CASES`). `make
//! test-long` takes all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_model::{Bytes, Ns};
use homenode_wire::facts::{Arming, Budget, Facts};
use homenode_wire::settings::{self, MachineNodes, Settings, Wanted};

use super::{End, end};

/// What homenode does in a program.
struct Kind {
    name: &'static str,
    set: fn(&mut Settings),
    /// Pages are away while they are armed, so the program can wait for that.
    takes_away: bool,
}

fn watches(settings: &mut Settings, policy: &str, source: Wanted) {
    settings.arming = Arming::Watch;
    settings.policy = policy.into();
    settings.source = source;
}

/// The kinds that load a library into the program. [`INSTRUMENTED`] follows them.
const KINDS: &[Kind] = &[
    Kind { name: "default", set: |s| s.trial = true, takes_away: true },
    Kind { name: "region", set: |s| s.arming = Arming::Region, takes_away: true },
    Kind { name: "competitive", set: |s| watches(s, "competitive", Wanted::Auto), takes_away: false },
    Kind { name: "writes", set: |s| watches(s, "competitive", Wanted::Writes), takes_away: false },
    Kind { name: "blocks", set: |s| watches(s, "competitive", Wanted::Blocks), takes_away: true },
    Kind {
        name: "record live",
        set: |s| {
            watches(s, "next-touch", Wanted::Blocks);
            s.record = true;
        },
        takes_away: false,
    },
];
const INSTRUMENTED: usize = KINDS.len();
const SETTINGS: usize = 2 * (KINDS.len() + 1);

/// A setting by number: its kind, and whether everything is armed every millisecond.
const fn setting(number: usize) -> (usize, bool) {
    (number / 2, number % 2 == 1)
}

fn name_of(number: usize) -> String {
    let (kind, often) = setting(number);
    let name = KINDS.get(kind).map_or("instrumented", |k| k.name);
    format!("{name}{}", if often { ", every ms" } else { "" })
}

const PROGRAMS: [&str; 6] = ["endings", "births", "rights", "ends", "privileges", "efault"];

/// What is no difference of homenode's: words of the way and of the setting, and the line of
/// `docs/guarantees.md` that tells of it.
const KNOWN: &[(&str, &str, &str)] = &[];

fn is_known(way: &str, setting: &str) -> bool {
    KNOWN.iter().any(|(in_way, in_setting, _)| way.contains(in_way) && setting.contains(in_setting))
}

/// The programs, built.
struct Bench {
    library: PathBuf,
    folder: PathBuf,
    /// Whether there is a compiler driver for programs that are recorded.
    instruments: bool,
}

impl Bench {
    fn new(test: &str) -> Option<Self> {
        let library = super::library()?;
        let folder = super::folder(test);
        std::fs::write(folder.join("calls.inc"), super::calls::text()).unwrap();
        let driver = library.with_file_name("homenode-cc");
        let instruments = driver.exists() && library.with_file_name("libhomenode_trace.so").exists();
        for name in PROGRAMS {
            super::compile(name, &folder);
            if instruments {
                let mut command = Command::new(&driver);
                command.args(["-O1", "-std=gnu17", "-pthread", "-w", "-I"]).arg(&folder).arg("-o");
                command.arg(folder.join(format!("{name}-recorded"))).arg(super::source(name)).arg("-ldl");
                let done = command.env("HOMENODE_LIB_DIR", library.parent().unwrap()).output().unwrap();
                assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
            }
        }
        if !instruments {
            println!("skipped: instrumented programs: homenode-cc is not built");
        }
        Some(Self { library, folder, instruments })
    }

    /// Number of the program, and way, of everything that can be done.
    fn ways(&self) -> Vec<(usize, String)> {
        let mut all = Vec::new();
        for (number, name) in PROGRAMS.iter().enumerate() {
            let ways = match *name {
                "ends" | "privileges" => super::ways(name, "WAY("),
                "efault" => vec!["all".to_owned()],
                _ => {
                    let listed = Command::new(self.folder.join(name)).arg("--list").output().unwrap();
                    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
                }
            };
            all.extend(ways.into_iter().map(|way| (number, way)));
        }
        all
    }

    fn alone(&self, program: usize, way: &str, folder: &Path) -> End {
        end(Command::new(self.folder.join(PROGRAMS[program])).arg(way), folder)
    }

    /// How it ends with homenode, and a number above 0 if homenode armed, watched or recorded.
    fn with(&self, program: usize, way: &str, number: usize, folder: &Path) -> (End, u64) {
        let (kind, often) = setting(number);
        let reports = folder.join("reports");
        let _ = std::fs::remove_dir_all(&reports);
        std::fs::create_dir(&reports).unwrap();
        if kind == INSTRUMENTED {
            std::fs::create_dir(reports.join("threads")).unwrap();
            std::fs::write(reports.join("status"), [b'\n'; 4096]).unwrap();
            let mut command = Command::new(self.folder.join(format!("{}-recorded", PROGRAMS[program])));
            command.arg(way).env("HOMENODE_TRACE_DIR", &reports);
            if often {
                command.env("HOMENODE_TRACE_FILTER", "16");
            }
            let ended = end(&mut command, folder);
            let logs = std::fs::read_dir(reports.join("threads")).unwrap().flatten();
            return (ended, logs.filter(|e| e.metadata().is_ok_and(|m| m.len() > 0)).count() as u64);
        }
        let kind = &KINDS[kind];
        let mut settings = Settings {
            policy: "next-touch".into(),
            machine: MachineNodes::even(2, 1, Bytes::gib(1), 20),
            pretend: true,
            budget: Budget::DEFAULT,
            ..Settings::default()
        };
        (kind.set)(&mut settings);
        if often {
            settings.budget = Budget { permille: 1000, fixed: Ns(100_000_000_000) };
            settings.force = true;
        }
        if settings.record {
            settings.stream = Some(reports.join("stream"));
            std::fs::create_dir(reports.join("stream")).unwrap();
        }
        std::fs::write(reports.join(settings::FILE), homenode_wire::encode(&settings).unwrap()).unwrap();
        let mut command = Command::new(self.folder.join(PROGRAMS[program]));
        command.arg(way).env("LD_PRELOAD", &self.library).env(settings::RUN_DIR, &reports);
        if often {
            command.env("HOMENODE_RUN_FORCE_ARM", "1");
            if kind.takes_away {
                command.env("HOSTILE_ARMED", "1");
            }
        }
        let ended = end(&mut command, folder);
        let files = std::fs::read_dir(&reports).unwrap().flatten();
        let files = files.filter(|e| e.file_name().to_string_lossy().starts_with("report."));
        let read = |path: PathBuf| homenode_wire::decode::<Facts>(&std::fs::read(path).ok()?).ok();
        let worked = |f: Facts| f.counters.armed_pages + f.counters.faults + f.watch.map_or(0, |_| 1);
        (ended, files.filter_map(|e| read(e.path())).map(worked).sum())
    }
}

/// What came of the cases of one setting.
#[derive(Default)]
struct Count {
    ran: u64,
    worked: u64,
}

/// Runs the cases, one for each CPU at a time and two at least: programs, ways and numbers of
/// settings. What differs, in words, and the counts by setting.
fn run(bench: &Bench, cases: &[(usize, String, usize)]) -> (Vec<String>, BTreeMap<String, Count>) {
    let next = AtomicUsize::new(0);
    let alone: Mutex<BTreeMap<(usize, &str), End>> = Mutex::default();
    let results: Mutex<(Vec<String>, BTreeMap<String, Count>)> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(2, |n| n.get().max(2)) {
            let (next, alone, results) = (&next, &alone, &results);
            let folder = bench.folder.join(format!("worker-{worker}"));
            std::fs::create_dir_all(&folder).unwrap();
            scope.spawn(move || {
                while let Some((program, way, number)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let key = (*program, way.as_str());
                    let known = alone.lock().unwrap().get(&key).cloned();
                    let want = known.unwrap_or_else(|| bench.alone(*program, way, &folder));
                    alone.lock().unwrap().insert(key, want.clone());
                    let (got, worked) = bench.with(*program, way, *number, &folder);
                    let setting = name_of(*number);
                    let differs = (got != want && !is_known(way, &setting)).then(|| {
                        let said = std::fs::read(folder.join("err")).unwrap_or_default();
                        let again = bench.alone(*program, way, &folder);
                        let same = if again == want { "twice" } else { "NOT THE SAME TWICE" };
                        format!(
                            "{} {way} ({setting}): alone ({same}) {want:?}, with homenode {got:?} {:.600}",
                            PROGRAMS[*program],
                            String::from_utf8_lossy(&said)
                        )
                    });
                    let mut results = results.lock().unwrap();
                    if let Some(why) = differs {
                        eprintln!("{why}");
                        results.0.push(why);
                    }
                    let count = results.1.entry(setting).or_default();
                    count.ran += 1;
                    count.worked += u64::from(worked > 0);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// Every way under every setting.
fn all_cases(bench: &Bench) -> Vec<(usize, String, usize)> {
    let mut cases = Vec::new();
    for (program, way) in bench.ways() {
        for number in 0..SETTINGS {
            if bench.instruments || setting(number).0 != INSTRUMENTED {
                cases.push((program, way.clone(), number));
            }
        }
    }
    cases
}

fn check(test: &str, choose: impl Fn(Vec<(usize, String, usize)>) -> Vec<(usize, String, usize)>) {
    let Some(bench) = Bench::new(test) else {
        return println!("skipped: libhomenode.so is not built");
    };
    let all = all_cases(&bench);
    let in_all = all.len();
    assert!(in_all >= 1400 * 12, "{in_all} cases");
    let cases = choose(all);
    let (different, counts) = run(&bench, &cases);
    println!(
        "{} of {in_all} cases, {} differ; by setting: those that ran, and those in which homenode did something",
        cases.len(),
        different.len()
    );
    for (setting, count) in &counts {
        println!("{setting}: {} {}", count.ran, count.worked);
    }
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different.join("\n"));
    // Armed every millisecond, most of these programs are; many end without a report.
    let often: Vec<&Count> = counts.iter().filter(|(s, _)| s.ends_with("every ms")).map(|(_, c)| c).collect();
    let (ran, worked): (u64, u64) = (often.iter().map(|c| c.ran).sum(), often.iter().map(|c| c.worked).sum());
    assert!(worked * 4 >= ran, "homenode did something in {worked} of {ran} runs");
}

fn asked() -> Option<(u64, usize)> {
    let asked = std::env::var("HOMENODE_PRODUCT").ok()?;
    let (seed, cases) = asked.split_once(':').expect("SEED:CASES");
    Some((seed.parse().expect("a seed"), cases.parse().expect("a number of cases")))
}

#[test]
fn a_part_of_all_ways_under_all_settings() {
    let (seed, count) = asked().unwrap_or((1, 300));
    check("product", |mut all| {
        let mut state = seed;
        for i in 0..count.min(all.len()) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rest = all.len() - i;
            all.swap(i, i + (state >> 33) as usize % rest);
        }
        all.truncate(count);
        all
    });
}

/// `HOMENODE_PRODUCT_ONLY` takes the cases whose program, way and setting have these words.
#[test]
#[ignore = "takes half an hour"]
fn all_ways_under_all_settings() {
    let only = std::env::var("HOMENODE_PRODUCT_ONLY").unwrap_or_default();
    check("product-all", |all| {
        let text = |(p, way, n): &(usize, String, usize)| format!("{} {way} ({})", PROGRAMS[*p], name_of(*n));
        all.into_iter().filter(|case| only.split('+').all(|word| text(case).contains(word))).collect()
    });
}
