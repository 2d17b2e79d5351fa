//! What `kernels/manifest.toml` says of a round against a recording: touched lines by region and
//! round, and roughly the number of accesses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_kernels::{self as kernels, Kernel, Work};
use homenode_model::{LineNo, ThreadId, Ticks};
use homenode_order::StepSink;
use homenode_order::step::{Mark, Sync};
use homenode_order::{ProgramFacts, open};

use crate::support::{compilers, fresh, homenode, outcome};

/// How far touched lines may be from the formula: 2 %, and the lines at the ends of some arrays.
const LINES: f64 = 0.02;
const ENDS: f64 = 2.0;
/// Loads and stores depend on the compiler (vectors, values kept in registers, stack): only their
/// order of magnitude counts.
const ACCESSES: f64 = 4.0;
/// Rounds that are recorded.
const ROUNDS: u32 = 2;

/// Lines of one round by region, in the order in which regions are first entered, and all its
/// accesses.
#[derive(Default)]
struct Round {
    regions: Vec<(u32, BTreeSet<u64>)>,
    began: u64,
    accesses: u64,
}

/// Reads a recording with one thread.
#[derive(Default)]
struct Rounds {
    /// First line of each live allocation: one past its last.
    live: BTreeMap<u64, u64>,
    region: Option<u32>,
    rounds: Vec<Round>,
}

impl Rounds {
    fn lines(&mut self) -> Option<&mut BTreeSet<u64>> {
        let region = self.region?;
        let regions = &mut self.rounds.last_mut()?.regions;
        let at = regions.iter().position(|(r, _)| *r == region).unwrap_or_else(|| {
            regions.push((region, BTreeSet::new()));
            regions.len() - 1
        });
        Some(&mut regions[at].1)
    }
}

impl StepSink for Rounds {
    fn access(&mut self, _: ThreadId, _: Ticks, line: LineNo, _: bool) -> bool {
        if self.live.range(..=line.0).next_back().is_some_and(|(_, end)| line.0 < *end)
            && let Some(lines) = self.lines()
        {
            lines.insert(line.0);
        }
        false
    }
    fn sync(&mut self, _: ThreadId, _: Ticks, _: Sync) {}
    fn mark(&mut self, _: ThreadId, tick: Ticks, mark: Mark) {
        let line = |byte: u64| byte >> LineNo::SHIFT;
        match mark {
            Mark::Alloc { range, .. } => {
                self.live.insert(line(range.first), line(range.first + range.bytes - 1) + 1);
            }
            Mark::Free { range, .. } => {
                self.live.remove(&line(range.first));
            }
            Mark::RegionBegin { region } => {
                self.region = Some(region);
                // A region that touches nothing counts, too.
                let _ = self.lines();
            }
            Mark::RegionEnd { .. } => self.region = None,
            Mark::Iteration { .. } => {
                if let Some(round) = self.rounds.last_mut() {
                    round.accesses = tick.0 - round.began;
                }
                self.rounds.push(Round { began: tick.0, ..Round::default() });
            }
            Mark::NextTouch { .. } => {}
        }
    }
}

fn record(dir: &Path, kernel: &Kernel, work: &Work, size: u64) -> Vec<Round> {
    let name = format!("{size}.hnrec");
    let output = homenode(dir)
        .env("XDG_CACHE_HOME", dir.parent().unwrap().join("cache"))
        .args(["record", "-o", &name, &format!("kernel:{}", kernel.name), "--threads", "1", "--"])
        .args(["--size", &size.to_string(), "--iterations", &ROUNDS.to_string()])
        .args(&work.tested_options)
        .output()
        .unwrap();
    let (status, out, err) = outcome(&output);
    assert_eq!(status, Some(0), "{}: {out}{err}", kernel.name);
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(dir.join(name).join("threads")).unwrap().map(|e| e.unwrap().path()).collect();
    logs.sort();
    let mut order = open(&logs, ProgramFacts::default()).unwrap();
    let mut rounds = Rounds::default();
    while order.advance(&mut rounds, 1 << 20).unwrap() {}
    // The last mark ends the last round.
    rounds.rounds.pop();
    rounds.rounds
}

/// What is wrong with a round, in sentences.
fn compare(name: &str, work: &Work, size: u64, number: u32, round: &Round) -> Vec<String> {
    let figures = work.figures(size, 1, number).unwrap();
    let at = format!("{name}, size {size}, round {number}");
    let mut wrong = Vec::new();
    if figures.lines.len() != round.regions.len() {
        let counts: Vec<usize> = round.regions.iter().map(|(_, lines)| lines.len()).collect();
        wrong.push(format!("{at}: {} regions in the manifest, recorded {counts:?}", figures.lines.len()));
        return wrong;
    }
    for ((region, expected), (_, lines)) in figures.lines.iter().zip(&round.regions) {
        let counted = lines.len() as f64;
        println!(
            "{at}, {region}: {expected:.1} lines, recorded {counted} ({:+.2} %)",
            (counted / expected - 1.0) * 100.0
        );
        if (counted - expected).abs() > (LINES * expected).max(ENDS) {
            wrong.push(format!("{at}, {region}: {expected:.1} lines by the manifest, {counted} recorded"));
        }
    }
    let expected = figures.loads + figures.stores;
    let ratio = round.accesses as f64 / expected;
    println!("{at}: {expected:.0} accesses, recorded {} ({ratio:.2} times)", round.accesses);
    if !(1.0 / ACCESSES..=ACCESSES).contains(&ratio) {
        wrong.push(format!(
            "{at}: {expected:.0} loads and stores by the manifest, {} recorded",
            round.accesses
        ));
    }
    wrong
}

#[test]
fn the_manifest_agrees_with_the_recorder() {
    if !compilers() || Command::new("cmake").arg("--version").output().is_err() {
        return println!("skipped: there is no cmake or no gcc");
    }
    let fortran = Command::new("gfortran").arg("--version").output().is_ok();
    let dir = fresh("kernel-work");
    let mut wrong = Vec::new();
    for kernel in kernels::all().unwrap() {
        if kernel.language == "Fortran" && !fortran {
            println!("skipped: {}: there is no gfortran", kernel.name);
            continue;
        }
        let Some(work) = &kernel.work else {
            println!("skipped: {}: the manifest does not say what a round does", kernel.name);
            continue;
        };
        let own = dir.join(&kernel.name);
        std::fs::create_dir(&own).unwrap();
        for size in work.tested {
            let rounds = record(&own, &kernel, work, size);
            assert_eq!(rounds.len(), ROUNDS as usize, "{}", kernel.name);
            for (number, round) in rounds.iter().enumerate() {
                wrong.extend(compare(&kernel.name, work, size, u32::try_from(number).unwrap(), round));
            }
        }
        std::fs::remove_dir_all(&own).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
