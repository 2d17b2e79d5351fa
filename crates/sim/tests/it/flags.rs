//! The compiler and its flags may change how often a program accesses memory, but not which lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_model::{LineNo, ThreadId, Ticks};
use homenode_order::StepSink;
use homenode_order::step::{Mark, Sync};
use homenode_order::{ProgramFacts, open};

use crate::support::{Recorded, build_kernels, exists, fresh_dir, must, record, tools};

/// Most that the sets of touched lines may differ, relative to the reference.
const LINES: f64 = 0.01;

/// Lines of allocations that are touched between the first iteration mark and the last, as
/// (allocation, line in it).
#[derive(Default)]
struct Touched {
    /// First line of each live allocation: one past its last, its number.
    live: BTreeMap<u64, (u64, usize)>,
    allocations: usize,
    /// Since the last iteration mark, and before it.
    since: BTreeSet<(usize, u64)>,
    lines: BTreeSet<(usize, u64)>,
    marks: u32,
}

impl StepSink for Touched {
    fn access(&mut self, _: ThreadId, _: Ticks, line: LineNo, _: bool) -> bool {
        if let Some((first, (end, number))) = self.live.range(..=line.0).next_back()
            && line.0 < *end
        {
            self.since.insert((*number, line.0 - first));
        }
        false
    }
    fn sync(&mut self, _: ThreadId, _: Ticks, _: Sync) {}
    fn mark(&mut self, _: ThreadId, _: Ticks, mark: Mark) {
        let first = |first: u64| first >> LineNo::SHIFT;
        match mark {
            Mark::Alloc { range, .. } => {
                let end = first(range.first + range.bytes - 1) + 1;
                self.live.insert(first(range.first), (end, self.allocations));
                self.allocations += 1;
            }
            Mark::Free { range, .. } => {
                self.live.remove(&first(range.first));
            }
            Mark::Iteration { .. } => {
                let since = std::mem::take(&mut self.since);
                if self.marks > 0 {
                    self.lines.extend(since);
                }
                self.marks += 1;
            }
            _ => {}
        }
    }
}

fn touched(recorded: &Recorded) -> BTreeSet<(usize, u64)> {
    let mut order = open(&recorded.logs(), ProgramFacts::default()).unwrap();
    let mut touched = Touched::default();
    while order.advance(&mut touched, 1 << 20).unwrap() {}
    let _ = std::fs::remove_dir_all(&recorded.dir);
    if touched.marks < 2 { touched.since } else { touched.lines }
}

/// Runs every build of a compiler and compares its lines with those of the compiler's first build;
/// among compilers, only how many there are: with another OpenMP library `malloc` aligns arrays
/// otherwise.
fn compare(builds: &[(&str, String, PathBuf)], args: &[&str]) {
    let mut references: Vec<(&str, BTreeSet<(usize, u64)>)> = Vec::new();
    for (compiler, name, program) in builds {
        let lines = touched(&record(&format!("flags-{name}"), program, args, 4096));
        assert!(lines.len() > 1000, "{name}: next to nothing was recorded");
        let Some((_, reference)) = references.iter().find(|(c, _)| c == compiler) else {
            println!("{name}: {} lines", lines.len());
            references.push((compiler, lines));
            continue;
        };
        let off = reference.symmetric_difference(&lines).count();
        println!("{name}: {} lines, {off} not as with the first flags", lines.len());
        assert!(off as f64 <= LINES * reference.len() as f64, "{name}: {off} of {} lines", reference.len());
    }
    let counts: Vec<usize> = references.iter().map(|(_, lines)| lines.len()).collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    if let (Some(least), Some(most)) = (least, most) {
        assert!((most - least) as f64 <= LINES * *most as f64, "{counts:?} lines by compiler");
    }
}

const FLAGS: [(&str, &str); 4] =
    [("O3", "-O3"), ("O1", "-O1"), ("native", "-O3 -march=native"), ("O1-native", "-O1 -march=native")];

#[test]
fn a_c_program_touches_the_same_lines_whatever_built_it() {
    let tools = match tools() {
        Ok(dir) => dir,
        Err(why) => return println!("skipped: {why}"),
    };
    let dir = fresh_dir("flags");
    let mut builds = Vec::new();
    for compiler in ["gcc", "clang"] {
        if !exists(compiler) {
            println!("skipped: {compiler} is not installed");
            continue;
        }
        for (name, flags) in FLAGS {
            let program = dir.join(format!("{compiler}-{name}"));
            must(
                Command::new(tools.join("homenode-cc"))
                    .env("HOMENODE_CC", compiler)
                    .env("HOMENODE_LIB_DIR", tools)
                    .current_dir(&dir)
                    .args(flags.split(' '))
                    .args(["-fopenmp", "-o"])
                    .arg(&program)
                    .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lines.c")),
            );
            builds.push((compiler, format!("{compiler}-{name}"), program));
        }
    }
    compare(&builds, &[]);
}

#[test]
fn mg_touches_the_same_lines_whatever_built_it() {
    let mut builds = Vec::new();
    for compiler in ["gcc", "clang"] {
        for (name, flags) in &FLAGS[..3] {
            match build_kernels(&format!("{compiler}-{name}"), compiler, flags) {
                Ok(dir) => builds.push((compiler, format!("mg-{compiler}-{name}"), dir.join("nas-mg"))),
                Err(why) => {
                    println!("skipped: {why}");
                    break;
                }
            }
        }
    }
    compare(&builds, &["--class", "S", "--threads", "4"]);
}
