//! Schemes on this machine: wall times in pairs, with proof of where pages and threads were.
//!
//! Each repetition runs every scheme once, one after the other, so that whatever else the machine
//! does meets all of them. A scheme's time is compared with that of the first scheme in the same
//! repetition. Threads are bound, each to a CPU, node by node, unless the environment says
//! otherwise. The kernel tells where pages live while a program runs ([`seen`]).

mod balancing;
mod predicted;
mod seen;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::{env, thread};

use homenode_error::{Context, Error, Result};
use homenode_kernels::Kernel;
use homenode_launch::folder::Folder;
use homenode_launch::record::shown;
use homenode_launch::{child, program};
use homenode_runtime::nodes::Nodes;
use homenode_statistics::Sorted;
use homenode_table::{Cell, Column, Emphasis, Table};
use homenode_task::Task;

use crate::scheme::{TrialScheme, select};
use balancing::Balancing;
pub use predicted::Prediction;
use seen::ObservedRun;

/// Repetitions unless asked for others: the fewest from which an interval leaves one run out.
pub const REPETITIONS: u32 = 9;
/// Variables that say where OpenMP's threads run.
const BINDING: [&str; 4] = ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"];

/// What to run, and how often.
#[derive(Clone, Debug)]
pub struct HostTrial {
    /// The kernel, where the program is one.
    pub kernel: Option<Kernel>,
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without those of a scheme.
    pub args: Vec<OsString>,
    /// Schemes by name; none: all.
    pub policies: Vec<String>,
    /// Repetitions.
    pub repetitions: u32,
    /// OpenMP's threads; none: a thread a CPU.
    pub threads: Option<u32>,
    /// Nodes that `homenode run` pretends.
    pub pretend_nodes: Option<u16>,
    /// What predicts the times beside the measured ones.
    pub prediction: Option<Prediction>,
}

/// One run of the program.
#[derive(Clone, Debug)]
struct Run {
    seconds: f64,
    seen: ObservedRun,
}

/// All runs of one scheme.
struct Tried {
    name: &'static str,
    scheme: TrialScheme,
    /// Simulated time in picoseconds.
    predicted: Option<u64>,
    /// By repetition.
    runs: Vec<std::result::Result<Run, String>>,
}

struct Bench<'a> {
    request: &'a HostTrial,
    nodes: Nodes,
    balancing: Balancing,
    folder: Folder,
    task: &'a dyn Task,
}

/// The table without rows: its columns.
pub fn table() -> Table {
    let columns = vec![
        Column::text("scheme", "scheme"),
        Column::unit("time", "time", "s"),
        Column::number("to_first", "to the first"),
        Column::number("low", "from"),
        Column::number("high", "to"),
        Column::number("predicted", "predicted"),
        Column::text("homes", "pages by node, %"),
        Column::number("changed", "threads that changed nodes"),
    ];
    Table::new("compare-host", 1, columns)
}

/// Runs every scheme in every repetition. The table, and whether it lacks something.
///
/// # Errors
/// A scheme is unknown, this machine has one node and none are pretended, or no program can be
/// started.
pub fn run(request: &HostTrial, task: &dyn Task) -> Result<(Table, bool)> {
    let schemes = select(&request.policies, request.kernel.is_some(), "this machine")?;
    let nodes = Nodes::here();
    if nodes.with_memory() < 2 && request.pretend_nodes.is_none() {
        return Err(one_node(&schemes, request));
    }
    // What is wrong with the recording is told before anything runs.
    let predicted = match &request.prediction {
        Some(prediction) => predicted::times(prediction, &schemes, task)?,
        None => vec![None; schemes.len()],
    };
    let bench = Bench {
        request,
        nodes,
        balancing: Balancing::here(),
        folder: Folder::new("compare-host", None)?,
        task,
    };
    let mut tried: Vec<Tried> = schemes
        .iter()
        .zip(predicted)
        .map(|((name, scheme), predicted)| Tried { name, scheme: *scheme, predicted, runs: Vec::new() })
        .collect();
    let all = u64::from(request.repetitions) * tried.len() as u64;
    let mut progress = task.progress("running schemes", Some(all));
    // The first run reads the program from the disk; nobody counts it.
    let warm = bench.one(tried[0].scheme)?;
    warm.map_err(|why| Error::failed(format!("cannot compare {}", shown(&request.program))).tried(why))?;
    'all: for _ in 0..request.repetitions {
        for one in &mut tried {
            if task.stop_asked() {
                break 'all;
            }
            let run = bench.one(one.scheme)?;
            if task.stop_asked() {
                break 'all;
            }
            one.runs.push(run);
            progress.advance(1);
        }
    }
    progress.finish();
    Ok(bench.result(&tried))
}

/// On one node all schemes are one: what would run elsewhere.
fn one_node(schemes: &[(&'static str, TrialScheme)], request: &HostTrial) -> Error {
    let names: Vec<&str> = schemes.iter().map(|(name, _)| *name).collect();
    Error::usage("this machine has one node with memory: every scheme places pages alike")
        .tried(format!(
            "would run {} {} times each, in turns: {}",
            shown(&request.program),
            request.repetitions,
            names.join(", ")
        ))
        .hint(
            "run it on a machine with several nodes; --pretend-nodes 2 tries it here, and -m MACHINE without --on host simulates one",
        )
}

impl Bench<'_> {
    /// One run of a scheme; the inner error is a reason why this scheme has no number.
    fn one(&self, scheme: TrialScheme) -> Result<std::result::Result<Run, String>> {
        if let Err(why) = self.balancing.switch(scheme == TrialScheme::Balancing)
            && scheme == TrialScheme::Balancing
        {
            return Ok(Err(why));
        }
        let mut command = match self.command(scheme) {
            Ok(command) => command,
            Err(why) => return Ok(Err(why)),
        };
        let output = self.folder.path.join("output");
        let cannot = || format!("cannot write {}", output.display());
        let file = File::create(&output).context(cannot)?;
        command.stdin(Stdio::null()).stdout(file.try_clone().context(cannot)?).stderr(file);
        self.environment(&mut command);
        let by_cpu = match self.request.pretend_nodes {
            Some(n) => self.nodes.pretend(n).node_by_cpu(),
            None => self.nodes.node_by_cpu(),
        };
        let (tell, ended) = mpsc::channel();
        let (mut ended, mut look) = (Some(ended), None);
        let ran = child::run_watched(
            command,
            self.request.program.as_os_str(),
            &self.request.program,
            self.task,
            &mut |process| {
                let by_cpu = by_cpu.clone();
                look = ended.take().map(|e| thread::spawn(move || ObservedRun::of(process, &by_cpu, &e)));
            },
        )?;
        drop(tell);
        let seen = look.and_then(|look| look.join().ok()).unwrap_or_default();
        if ran.status.success() {
            return Ok(Ok(Run { seconds: ran.elapsed.as_secs_f64(), seen }));
        }
        let text = fs::read_to_string(&output).unwrap_or_default();
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("(it wrote nothing)");
        Ok(Err(format!("the program failed ({}): {}", ran.status, last.trim())))
    }

    /// The program as a scheme runs it, or why it cannot.
    fn command(&self, scheme: TrialScheme) -> std::result::Result<Command, String> {
        let request = self.request;
        let mut command = match scheme {
            TrialScheme::FirstTouch | TrialScheme::ParallelInit | TrialScheme::Balancing => {
                Command::new(&request.program)
            }
            TrialScheme::Interleave => {
                let numactl = program::find(OsStr::new("numactl"))
                    .map_err(|_| "numactl is not installed here (package numactl)".to_owned())?;
                let mut command = Command::new(numactl);
                command.arg("--interleave=all").arg("--").arg(&request.program);
                command
            }
            TrialScheme::Live(policy) => {
                let own = env::current_exe().map_err(|e| format!("cannot tell where homenode is: {e}"))?;
                let mut command = Command::new(own);
                command.args(["run", "--quiet", "--policy", policy]);
                if let Some(n) = request.pretend_nodes {
                    command.arg("--pretend-nodes").arg(n.to_string());
                }
                command.arg("--").arg(&request.program);
                command
            }
        };
        command.args(&request.args);
        if let Some(kernel) = &request.kernel {
            command.args(match scheme {
                TrialScheme::ParallelInit => &kernel.options_parallel,
                _ => &kernel.options_serial,
            });
        }
        Ok(command)
    }

    /// Threads, and a CPU for each.
    fn environment(&self, command: &mut Command) {
        command.env("OMP_NUM_THREADS", self.threads().to_string());
        if !BINDING.iter().any(|name| env::var_os(name).is_some_and(|v| !v.is_empty())) {
            command.env("OMP_PLACES", self.nodes.places()).env("OMP_PROC_BIND", "spread");
        }
    }

    fn threads(&self) -> u32 {
        let cpus = || self.nodes.usable().iter().map(|node| self.nodes.cpus(*node).len()).sum::<usize>();
        self.request.threads.unwrap_or_else(|| cpus().max(1) as u32)
    }

    fn result(&self, tried: &[Tried]) -> (Table, bool) {
        let mut table = table();
        let first = &tried[0];
        let rows: Vec<Compared> = tried.iter().map(|one| Compared::of(one, first)).collect();
        let best = fastest(&rows);
        table.answer(match (&best, self.request.pretend_nodes) {
            (_, Some(n)) => format!("{n} nodes are pretended: times show what homenode costs, and no gain"),
            (Some(row), None) => format!(
                "{} is fastest: {:.0} % less time than {} [{:.0}, {:.0}]",
                row.name,
                (1.0 - row.ratio) * 100.0,
                first.name,
                (1.0 - row.high) * 100.0,
                (1.0 - row.low) * 100.0
            ),
            (None, None) => format!("no scheme is faster than {} by more than chance gives", first.name),
        });
        let done = tried.iter().map(|one| one.runs.len()).min().unwrap_or(0);
        let whole = done == self.request.repetitions as usize;
        if !whole {
            table.warn(format!("interrupted: {done} of {} repetitions are whole", self.request.repetitions));
        }
        table.fact("program", Cell::text(shown(&self.request.program)));
        table.fact("threads", Cell::int(self.threads()));
        table.fact("nodes", Cell::int(self.nodes.with_memory() as u64));
        table.fact("repetitions", Cell::int(done as u64));
        table.fact("cpu", Cell::text(cpu_model()));
        table.fact("linux", Cell::text(linux()));
        for (one, compared) in tried.iter().zip(&rows) {
            let emphasis = match &best {
                Some(best) if best.name == one.name => Emphasis::Best,
                _ => Emphasis::None,
            };
            table.row_with(emphasis, row(one, compared, one.name == first.name));
            let times: Vec<String> =
                one.runs.iter().flatten().map(|run| format!("{:.4}", run.seconds)).collect();
            table.explain(format!("{}: runs took {} s", one.name, times.join(" ")));
        }
        table.note("time: median of the whole program's wall time; runs of a repetition are neighbours");
        table.note(format!(
            "to the first: median over that of {} in the same repetition, with its 95 % interval (sign test)",
            first.name
        ));
        if let Some(prediction) = &self.request.prediction {
            table.note(format!(
                "predicted: simulated time of the whole program over that of {}, from {} on {}",
                first.name,
                shown(&prediction.recording),
                prediction.machine.name
            ));
        }
        table.explain("pages by node: private pages, as the kernel told at the last look before the end");
        if self.balancing.was_on() {
            table.note(
                "NUMA balancing is on here; where it could not be switched off, it was at work in all rows",
            );
        }
        let failed = tried.iter().any(|one| one.runs.iter().any(std::result::Result::is_err));
        (table, failed || !whole)
    }
}

/// A scheme beside the first one.
struct Compared {
    name: &'static str,
    time: Option<f64>,
    ratio: f64,
    low: f64,
    high: f64,
    /// Simulated time over that of the first.
    predicted: Option<f64>,
}

impl Compared {
    fn of(one: &Tried, first: &Tried) -> Self {
        let seconds = |run: &std::result::Result<Run, String>| run.as_ref().ok().map(|r| r.seconds);
        let ratios: Vec<f64> =
            one.runs.iter().zip(&first.runs).filter_map(|(a, b)| Some(seconds(a)? / seconds(b)?)).collect();
        let times = Sorted::of(one.runs.iter().filter_map(seconds).collect::<Vec<f64>>());
        let ratios = Sorted::of(ratios);
        let (low, high) = ratios.interval().unwrap_or((f64::NAN, f64::NAN));
        Self {
            name: one.name,
            time: times.median(),
            ratio: ratios.median().unwrap_or(f64::NAN),
            low,
            high,
            predicted: one
                .predicted
                .zip(first.predicted.filter(|t| *t > 0))
                .map(|(one, first)| one as f64 / first as f64),
        }
    }
}

/// The scheme with the least time among those whose interval lies below that of the first.
fn fastest(rows: &[Compared]) -> Option<&Compared> {
    rows.iter().filter(|row| row.high < 1.0).min_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

fn row(one: &Tried, compared: &Compared, is_first: bool) -> Vec<Cell> {
    let why = one.runs.iter().find_map(|r| r.as_ref().err().cloned());
    let missing = |otherwise: &str| Cell::missing(why.clone().unwrap_or_else(|| otherwise.into()));
    let ratio = |value: f64| match value.is_finite() {
        _ if is_first => Cell::missing("the first is compared with no other"),
        true => Cell::float(value, 3),
        false => missing("an interval takes six repetitions"),
    };
    let last = one.runs.iter().flatten().next_back();
    let homes = last.and_then(|run| run.seen.homes());
    let changed = one.runs.iter().flatten().map(|run| run.seen.changed()).max();
    vec![
        Cell::text(one.name),
        compared.time.map_or_else(|| missing("it did not run"), |t| Cell::float(t, 3)),
        ratio(compared.ratio),
        ratio(compared.low),
        ratio(compared.high),
        match compared.predicted {
            _ if is_first => Cell::missing("the first is compared with no other"),
            Some(value) => Cell::float(value, 3),
            None => Cell::missing("not simulated: --predict REC does that, but for Linux's balancing"),
        },
        homes.map_or_else(|| missing("the run was over before the first look at it"), Cell::text),
        changed.map_or_else(|| missing("it did not run"), |n| Cell::int(n as u64)),
    ]
}

fn cpu_model() -> String {
    let all = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = all.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(|| "unknown".into(), |(_, name)| name.trim().into())
}

fn linux() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "unknown".into(), |r| r.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &'static str, seconds: &[f64]) -> Tried {
        let run = |s: &f64| Ok(Run { seconds: *s, seen: ObservedRun::default() });
        Tried {
            name,
            scheme: TrialScheme::FirstTouch,
            predicted: None,
            runs: seconds.iter().map(run).collect(),
        }
    }

    #[test]
    fn a_scheme_is_compared_with_its_neighbours_in_time() {
        // The machine becomes slower all the while; the ratio stays.
        let first = tried("first-touch", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let half = tried("next-touch", &[0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        let noisy = tried("interleave", &[0.4, 2.5, 1.5, 5.0, 2.0, 7.0]);
        let rows: Vec<Compared> = [&first, &half, &noisy].map(|one| Compared::of(one, &first)).into();
        assert_eq!((rows[1].ratio, rows[1].low, rows[1].high), (0.5, 0.5, 0.5));
        assert!(rows[2].high > 1.0);
        assert_eq!(fastest(&rows).map(|r| r.name), Some("next-touch"));
        assert!(fastest(&rows[..1]).is_none());
    }

    #[test]
    fn predicted_times_stand_beside_measured_ones() {
        let first = Tried { predicted: Some(400), ..tried("first-touch", &[1.0]) };
        let half = Tried { predicted: Some(100), ..tried("next-touch", &[0.5]) };
        assert_eq!(Compared::of(&half, &first).predicted, Some(0.25));
        let cells = row(&half, &Compared::of(&half, &first), false);
        assert!(matches!(cells[5], Cell::Float(ratio, _) if ratio == 0.25));
        assert_eq!(Compared::of(&tried("balancing", &[1.0]), &first).predicted, None);
    }

    #[test]
    fn a_failed_scheme_says_why() {
        let first = tried("first-touch", &[1.0]);
        let broken = Tried { runs: vec![Err("no numactl".into())], ..tried("interleave", &[]) };
        let mut cells = row(&broken, &Compared::of(&broken, &first), false);
        // What is simulated does not depend on a run.
        cells.remove(5);
        assert!(
            cells[1..].iter().all(|c| matches!(c, Cell::Missing(why) if why == "no numactl")),
            "{cells:?}"
        );
    }
}
