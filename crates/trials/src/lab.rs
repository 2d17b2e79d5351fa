//! Schemes on the lab: a program on a real kernel, once for each way to place its pages.
//!
//! Each run is a boot of its own, under the monitor. Repetitions take turns, so that whatever else
//! the host does meets all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homenode_error::{Error, Result};
use homenode_kernels::Kernel;
use homenode_lab::monitor::{AccessOwner, MonitorReport};
use homenode_lab::run::{self as lab, Lab, Program, RunOutcome, StreamTargets, Supervision};
use homenode_lab::wire::ProgramEnd;
use homenode_launch::places;
use homenode_launch::program;
use homenode_launch::record::shown;
use homenode_model::{Bytes, Ps};
use homenode_schemes as schemes;
use homenode_statistics::Sorted;
use homenode_table::{Cell, Column, Table};
use homenode_task::Task;

use crate::scheme::{TrialScheme, select};

/// What a live policy may spend: the emulator is slow, and what is compared is where pages end up.
const BUDGET: &str = "90%+100s";

/// What to run, and how often.
pub struct LabTrial {
    /// The kernel, where the program is one.
    pub kernel: Option<Kernel>,
    /// The program, without a scheme's words.
    pub program: Program,
    /// The virtual machine, with its monitor.
    pub lab: Lab,
    /// Schemes by name; none: all.
    pub policies: Vec<String>,
    /// Repetitions.
    pub repetitions: u32,
}

/// What is measured of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    /// The slowest CPU's modelled time.
    modelled: Ps,
    local: u64,
    remote: u64,
    /// Pages of the program that were used in more than one node's memory.
    moved: u64,
    /// By the guest's clock.
    took: Duration,
}

impl Figures {
    fn of(outcome: &RunOutcome, found: &MonitorReport) -> Self {
        let mut figures = Self {
            modelled: found.cpus.iter().map(|c| c.time).max().unwrap_or_default(),
            took: outcome.elapsed,
            ..Self::default()
        };
        for cpu in &found.cpus {
            let share = found.of(cpu, AccessOwner::Program);
            figures.local += share.local;
            figures.remote += share.remote;
        }
        let mut homes: BTreeMap<(u16, u64), BTreeSet<u16>> = BTreeMap::new();
        for page in found.pages.iter().filter(|p| found.whose(p.process) == AccessOwner::Program) {
            homes.entry((page.process, page.page)).or_default().insert(page.home.0);
        }
        figures.moved = homes.values().filter(|h| h.len() > 1).count() as u64;
        figures
    }
}

/// The end of what the program wrote, for when it fails.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<Vec<u8>>>);

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(2000);
        kept.drain(..surplus);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tail {
    fn last_line(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept).into_owned();
        text.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("(it wrote nothing)").trim().to_owned()
    }
}

/// The table without rows: its columns.
pub fn table() -> Table {
    Table::new("compare-lab", 1, columns())
}

/// Runs every scheme in every repetition. The table, and whether a scheme failed. `signal` is the
/// next signal that homenode got and the program should.
///
/// # Errors
/// A scheme is unknown, or the lab fails.
pub fn run(
    request: &LabTrial,
    task: &dyn Task,
    signal: &mut dyn FnMut() -> Option<i32>,
) -> Result<(Table, bool)> {
    let schemes = select(&request.policies, request.kernel.is_some(), "the lab")?;
    let mut results: Vec<Vec<std::result::Result<Figures, String>>> = vec![Vec::new(); schemes.len()];
    let mut linux = String::new();
    for repetition in 1..=request.repetitions {
        for (i, (name, scheme)) in schemes.iter().enumerate() {
            task.remark(&format_args!("{name}, run {repetition} of {}", request.repetitions));
            let result = request.one(*scheme, signal)?;
            results[i].push(result.map(|(figures, version)| {
                linux = version;
                figures
            }));
        }
    }
    request.result(&schemes, &results, &linux)
}

impl LabTrial {
    /// The program as a scheme runs it, or why it cannot.
    fn prepared(&self, scheme: TrialScheme) -> std::result::Result<(Lab, Program), String> {
        let (mut lab, mut program) = (self.lab.clone(), self.program.clone());
        lab.numa_balancing = Some(scheme == TrialScheme::Balancing);
        if let Some(kernel) = &self.kernel {
            let options = if scheme == TrialScheme::ParallelInit {
                &kernel.options_parallel
            } else {
                &kernel.options_serial
            };
            program.args.extend(options.iter().map(OsString::from));
        }
        let under = |path: PathBuf, words: &[&str], program: Program| {
            let args = words.iter().map(OsString::from).chain([program.path.clone().into()]);
            Program { name: path.clone().into(), path, args: args.chain(program.args).collect() }
        };
        match scheme {
            TrialScheme::FirstTouch | TrialScheme::ParallelInit | TrialScheme::Balancing => {}
            TrialScheme::Interleave => {
                let numactl = program::find(OsStr::new("numactl"))
                    .map_err(|_| "numactl is not installed here (package numactl)".to_owned())?;
                lab.with.push(program.path.clone());
                program = under(numactl, &["--interleave=all", "--"], program);
            }
            TrialScheme::Live(policy) => {
                let own =
                    std::env::current_exe().map_err(|e| format!("cannot tell where homenode is: {e}"))?;
                let library = places::live_library().map_err(|e| e.message)?;
                lab.with.extend([program.path.clone(), library]);
                let words = ["run", "--quiet", "--policy", policy, "--budget", BUDGET, "--"];
                program = under(own, &words, program);
            }
        }
        Ok((lab, program))
    }

    /// A run; the inner error is the program's.
    #[allow(clippy::type_complexity)] // the outer error ends the comparison
    fn one(
        &self,
        scheme: TrialScheme,
        signal: &mut dyn FnMut() -> Option<i32>,
    ) -> Result<std::result::Result<(Figures, String), String>> {
        let (lab, program) = match self.prepared(scheme) {
            Ok(ready) => ready,
            Err(why) => return Ok(Err(why)),
        };
        let tail = Tail::default();
        let streams =
            StreamTargets { stdin: None, stdout: Box::new(tail.clone()), stderr: Box::new(tail.clone()) };
        let mut watch = Supervision { timeout: None, signal: &mut *signal, say: &mut |_| {} };
        let outcome = lab::run(&lab, &program, streams, &mut watch)?;
        let found = outcome.found.as_ref().ok_or_else(|| Error::failed("the monitor counted nothing"))?;
        Ok(match outcome.status {
            ProgramEnd::Exit(0) => Ok((Figures::of(&outcome, found), outcome.kernel.clone())),
            ProgramEnd::Exit(n) => Err(format!("it ended with status {n}: {}", tail.last_line())),
            ProgramEnd::Signal(n) => Err(format!("signal {n} ended it: {}", tail.last_line())),
        })
    }

    fn result(
        &self,
        schemes: &[(&'static str, TrialScheme)],
        results: &[Vec<std::result::Result<Figures, String>>],
        linux: &str,
    ) -> Result<(Table, bool)> {
        let mut table = table();
        let mut failed = false;
        let first = results.first().and_then(|r| median(r, |f| f.modelled.secs()));
        for ((name, _), runs) in schemes.iter().zip(results) {
            failed |= runs.iter().any(std::result::Result::is_err);
            table.row(row(name, runs, first));
        }
        let Some(monitoring) = &self.lab.monitor else { return Err(Error::failed("there is no monitor")) };
        let machine = &monitoring.machine;
        table.fact("program", Cell::text(shown(&self.program.path)));
        table.fact("machine", Cell::text(schemes::describe(machine, Bytes::kib(4), None)));
        table.fact("linux", Cell::text(linux));
        table.fact("repetitions", Cell::int(self.repetitions));
        table.explain(
            "memory accesses, remote, pages moved: measured, by a monitor outside of the guest (emulated)",
        );
        if self.kernel.is_some() {
            table.explain("counted: the timed iterations, with what moves pages in them");
        }
        table.explain(
            "modelled: time of the slowest CPU from caches and latencies, one miss at a time, or of the busiest controller, port or \
             link that it uses, if that is longer",
        );
        table.explain("emulated: by the guest's clock; an emulator's memory is equally far from all CPUs");
        table.explain("spread: largest minus smallest of the repetitions, in percent of the median");
        Ok((table, failed))
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("scheme", "scheme"),
        Column::unit("modelled", "modelled", "s"),
        Column::unit("spread", "spread", "%"),
        Column::number("relative", "to the first"),
        Column::number("accesses", "memory accesses"),
        Column::unit("remote", "remote", "%"),
        Column::unit("remote_spread", "spread", "points"),
        Column::number("moved", "pages moved"),
        Column::unit("emulated", "emulated", "s"),
    ]
}

type Runs = [std::result::Result<Figures, String>];

fn values(runs: &Runs, of: impl Fn(&Figures) -> f64) -> Vec<f64> {
    runs.iter().flatten().map(of).collect()
}

fn median(runs: &Runs, of: impl Fn(&Figures) -> f64) -> Option<f64> {
    Sorted::of(values(runs, of)).median()
}

fn spread(runs: &Runs, of: impl Fn(&Figures) -> f64) -> Option<f64> {
    Sorted::of(values(runs, of)).range()
}

fn row(name: &str, runs: &Runs, first: Option<f64>) -> Vec<Cell> {
    let why = runs.iter().find_map(|r| r.as_ref().err().cloned());
    let missing = |otherwise: &str| Cell::missing(why.clone().unwrap_or_else(|| otherwise.into()));
    let number = |value: Option<f64>, digits| {
        value.map_or_else(|| missing("it did not run"), |v| Cell::float(v, digits))
    };
    let remote = |f: &Figures| f.remote as f64 / (f.local + f.remote).max(1) as f64;
    let modelled = median(runs, |f| f.modelled.secs());
    let once = "one run has no spread";
    vec![
        Cell::text(name),
        number(modelled, 4),
        match (spread(runs, |f| f.modelled.secs()), modelled) {
            (Some(s), Some(m)) if m > 0.0 => Cell::percent(s / m, 1),
            _ => missing(once),
        },
        number(modelled.zip(first).filter(|(_, f)| *f > 0.0).map(|(m, f)| m / f), 3),
        number(median(runs, |f| (f.local + f.remote) as f64), 0),
        median(runs, remote).map_or_else(|| missing("it did not run"), |r| Cell::percent(r, 1)),
        spread(runs, remote).map_or_else(|| missing(once), |s| Cell::float(s * 100.0, 1)),
        number(median(runs, |f| f.moved as f64), 0),
        number(median(runs, |f| f.took.as_secs_f64()), 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_have_a_median_and_a_spread() {
        let run = |ps, local, remote| Ok(Figures { modelled: Ps(ps), local, remote, ..Figures::default() });
        let runs =
            [run(3_000_000_000, 3, 1), run(1_000_000_000, 1, 1), Err("no".into()), run(2_000_000_000, 1, 0)];
        assert_eq!(median(&runs, |f| f.modelled.secs()), Some(0.002));
        assert_eq!(spread(&runs, |f| f.modelled.secs()).map(|s| (s * 1e6).round()), Some(2000.0));
        assert_eq!(spread(&runs[..1], |f| f.modelled.secs()), None);
        let cells = row("x", &runs[2..3], None);
        assert!(cells[1..].iter().all(|c| matches!(c, Cell::Missing(why) if why == "no")), "{cells:?}");
    }

    #[test]
    fn the_end_of_the_output_is_kept() {
        let mut tail = Tail::default();
        for i in 0..1000 {
            writeln!(tail, "line {i}").unwrap();
        }
        assert_eq!(tail.last_line(), "line 999");
    }
}
