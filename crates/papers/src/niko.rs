//! Nikolopoulos, Ayguadé and Polychronopoulos, "Runtime vs. Manual Data Distribution for
//! Architecture-Agnostic Shared-Memory Programming Models".
//!
//! **Versions.** *Automatic*: pages round robin, the default of the paper's machine. *Manual*: each
//! page on the node whose thread initialises it, since the paper says of that initialisation that
//! "its functionality is equivalent to that of a `DISTRIBUTE (*,...,*,BLOCK)` directive" (section
//! 4.1). *Online*: the paper's engine (policy `competitive`), which looks at the counts of an
//! iteration at its end and then moves one page after the other on a processor of its own
//! (`pace`), from round robin. *Offline*: the homes that the same criterion gives for a whole
//! recording, given at first touch (`plan:by=competitive`). *Balanced*: the engine with
//! `competitive-balanced`, which the paper does not have.
//!
//! **50–50 sharing.** The paper adds half of the time that the engine's thread computes to the time
//! of the program (section 4.1.2); so do we.
//!
//! **Processors.** P processors are the first P/2 nodes of the machine, two a node.
//!
//! **Size.** Where the class is not the paper's, caches shrink with the data, and pages and the
//! time of a move shrink alike: the share of the data that fits the caches and the share of a run
//! in which all pages could be moved stay as they are.

mod figures;
mod lu;
mod numbers;
mod shares;

use std::sync::Arc;

use homenode_error::{Error, Result, suggest};
use homenode_kernels::Kernel;
use homenode_launch::record::FILTER_LINES;
use homenode_model::{Bytes, Matrix, NodeId, Ns, Topology};
use homenode_schemes::scheme::{Layout, Variant};
use homenode_sim::memory::{MoveWorker, Outcome, Percent};
use homenode_table::Table;
use homenode_task::Task;

use crate::ask::Ask;
use crate::runs::{Case, Run, Workshop};
use crate::series::Series;
use numbers::{PROGRAMS, Program};

/// The machine of the paper.
const MACHINE: &str = "origin2000";
/// Numbers of processors that the paper draws, from where placement matters ("from the 16-processor
/// scale and beyond").
const PROCESSORS: [u32; 4] = [16, 32, 64, 128];
/// With `--small`.
const FEW: [u32; 2] = [4, 8];
/// The number of processors that the text's numbers are of.
const ALL: u32 = 128;
/// Page size of the paper's machine.
const PAGE: u64 = 16 << 10;
/// The smallest that the simulator has.
const LEAST_PAGE: u64 = 4 << 10;

/// A version of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Automatic,
    Manual,
    Online,
    Offline,
    Balanced,
}

impl Version {
    const EACH: [Self; 5] = [Self::Automatic, Self::Manual, Self::Online, Self::Offline, Self::Balanced];

    const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
            Self::Online => "online",
            Self::Offline => "offline",
            Self::Balanced => "balanced",
        }
    }
    /// The policy, where a move takes `pace`.
    fn policy(self, pace: Ns) -> String {
        let engine = |name| format!("{name}:from=round-robin,horizon=0,pace={}us", (pace.0 / 1000).max(1));
        match self {
            Self::Automatic => "round-robin".into(),
            Self::Manual => "first-touch".into(),
            Self::Online => engine("competitive"),
            Self::Offline => "plan:by=competitive".into(),
            Self::Balanced => engine("competitive-balanced"),
        }
    }
}

/// The paper's experiments.
pub struct Niko<'a> {
    ask: &'a Ask,
    machine: homenode_machine::Machine,
    shop: Workshop<'a>,
}

/// A program in a class.
struct Experiment {
    program: &'static Program,
    class: String,
    /// Caches are divided by this.
    shrunk: u64,
    page: Bytes,
}

/// What a version of a program did.
struct Seen {
    version: Version,
    outcome: Outcome,
    /// Of all the paper's iterations.
    time: f64,
    /// The engine's own time.
    engine: f64,
}

impl Seen {
    /// With half of the engine's time on the program's processors.
    fn shared(&self) -> f64 {
        self.time + self.engine / 2.0
    }
    /// Local and remote accesses of the timed part.
    fn accesses(&self) -> (u64, u64) {
        self.outcome.timed_counts.total()
    }
    fn remote_share(&self) -> f64 {
        let (local, remote) = self.accesses();
        remote as f64 / (local + remote).max(1) as f64
    }
}

fn of(all: &[Seen], version: Version) -> Option<&Seen> {
    all.iter().find(|s| s.version == version)
}

impl<'a> Niko<'a> {
    /// On the paper's machine, or the one asked for.
    ///
    /// # Errors
    /// The machine is not there.
    pub fn new(ask: &'a Ask, task: &'a dyn Task) -> Result<Self> {
        let machine = homenode_schemes::machine(ask.machine.as_deref().unwrap_or(MACHINE))?;
        let shop = Workshop { folder: ask.folder.clone(), workers: ask.workers, task };
        Ok(Self { ask, machine, shop })
    }

    fn processors(&self) -> Result<Vec<u32>> {
        let usual: &[u32] = if self.ask.small { &FEW } else { &PROCESSORS };
        self.ask.processors_or(usual, self.machine.topology.cpus.len() as u32)
    }

    /// The largest number of processors: the paper's figures 2, 3, 5 and 9 are of all.
    fn most(&self) -> Result<u32> {
        Ok(self.processors()?.last().copied().unwrap_or(ALL))
    }

    /// Those of `names` that are asked for.
    fn programs(&self, names: &[&str]) -> Result<Vec<&'static Program>> {
        let kernels: Vec<&str> = PROGRAMS.iter().map(|p| p.kernel).collect();
        for name in &self.ask.programs {
            if !PROGRAMS.iter().any(|p| p.is(name)) {
                return Err(suggest::unknown(
                    "program of the paper",
                    name,
                    &kernels,
                    "homenode paper --help",
                ));
            }
        }
        let wanted =
            |p: &&Program| self.ask.programs.is_empty() || self.ask.programs.iter().any(|name| p.is(name));
        Ok(PROGRAMS.iter().filter(|p| names.contains(&p.name)).filter(wanted).collect())
    }

    fn experiment(&self, program: &'static Program, table: &mut Table) -> Result<Experiment> {
        let class = self.ask.class_of("S", program.usual);
        let shrunk = match class == program.class {
            true => 1,
            false => program.smaller.iter().find(|(c, _)| *c == class).map(|(_, s)| *s).ok_or_else(|| {
                let known: Vec<&str> = program.smaller.iter().map(|(c, _)| *c).collect();
                Error::usage(format!("{} has no class {class} here", program.name)).hint(format!(
                    "the paper's is {}, smaller ones are {}",
                    program.class,
                    known.join(", ")
                ))
            })?,
        };
        let page = Bytes((PAGE / shrunk).max(LEAST_PAGE));
        let Simulated { simulated, all } = self.iterations(program, 1);
        table.note(format!(
            "{}: class {class} (the paper's is {}), {simulated} of {all} iterations simulated, caches 1/{shrunk}, pages of \
             {} KiB{}",
            program.name,
            program.class,
            page.0 >> 10,
            program.note(&class).map_or(String::new(), |n| format!("; {n}"))
        ));
        Ok(Experiment { program, class, shrunk, page })
    }

    /// Iterations to simulate, and those of the paper; `times` as many as the paper's.
    fn iterations(&self, program: &Program, times: u32) -> Simulated {
        let all = program.iterations * times;
        Simulated { simulated: self.ask.iterations.unwrap_or(program.simulated * times).min(all), all }
    }

    /// The first `processors / 2` nodes, with caches and moves of the experiment's size.
    fn part(&self, experiment: &Experiment, processors: u32) -> Topology {
        let mut part = first_nodes(&self.machine.topology_for(experiment.program.kernel), processors);
        for cache in &mut part.caches {
            cache.size.0 /= experiment.shrunk;
        }
        part.migration.fixed.0 = part.migration.fixed.0 * experiment.page.0 / PAGE;
        part
    }

    /// All versions of a program on `processors` processors, with `times` the paper's number of
    /// iterations.
    fn versions(
        &self,
        experiment: &Experiment,
        processors: u32,
        versions: &[Version],
        times: u32,
    ) -> Result<Vec<Seen>> {
        let part = self.part(experiment, processors);
        let pace = part.migration.of(experiment.page, u64::from(processors) - 1);
        let filter_lines = homenode_schemes::filter_lines(&part, FILTER_LINES);
        let machine = Arc::new(part);
        let iterations = self.iterations(experiment.program, times);
        let run = Run {
            iterations: iterations.simulated,
            ..Run::new(&experiment.class, processors, Variant::Parallel, filter_lines)
        };
        let case = |version: &Version| Case {
            policy: version.policy(pace),
            mover: MoveWorker::Apart,
            ..Case::new(machine.clone(), experiment.page, Layout::Spread, Percent::ZERO)
        };
        let cases: Vec<Case> = versions.iter().map(case).collect();
        let outcomes = self.shop.outcomes(experiment.program.kernel, &run, &cases)?;
        let seen = |(version, outcome): (&Version, Outcome)| {
            let series = Series(outcome.iterations());
            let time = series.carried_on(iterations.all as usize).unwrap_or(outcome.timed).secs();
            Seen { version: *version, time, engine: outcome.migration.secs(), outcome }
        };
        Ok(versions.iter().zip(outcomes).map(seen).collect())
    }
}

/// Iterations that are simulated, and those that the paper runs.
struct Simulated {
    simulated: u32,
    all: u32,
}

/// The machine cut down to its first nodes: as many as it takes to have `processors` CPUs.
fn first_nodes(machine: &Topology, processors: u32) -> Topology {
    let mut nodes = 0;
    let mut cpus = 0;
    while cpus < processors as usize && nodes < machine.nodes.len() {
        cpus += machine.cpus_of(NodeId(nodes as u16)).count();
        nodes += 1;
    }
    Topology {
        name: format!("{} with {processors} processors", machine.name),
        nodes: machine.nodes[..nodes].to_vec(),
        cpus: machine.cpus.iter().copied().filter(|n| n.index() < nodes).collect(),
        latency: Matrix::from_fn(nodes, |a, b| machine.latency.at(NodeId(a as u16), NodeId(b as u16))),
        link: Matrix::from_fn(nodes, |a, b| machine.link.at(NodeId(a as u16), NodeId(b as u16))),
        ..machine.clone()
    }
}

/// The program's kernel, or why there is none.
fn is_there(kernel: &str) -> Result<()> {
    Kernel::find(kernel).map(|_| ())
}

/// Seconds with four digits that count.
fn digits(seconds: f64) -> usize {
    let above = seconds.abs().max(1e-9).log10().floor() as i32;
    (3 - above).clamp(0, 9) as usize
}

/// The mean of `values`; none of none.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_machine_has_its_near_nodes() {
        let all = homenode_machine::resolve(MACHINE).unwrap().topology;
        let part = first_nodes(&all, 16);
        assert_eq!((part.nodes.len(), part.cpus.len()), (8, 16));
        part.check().unwrap();
        assert_eq!(part.latency.at(NodeId(0), NodeId(7)), all.latency.at(NodeId(0), NodeId(7)));
        assert_eq!(first_nodes(&all, 128).nodes.len(), 64);
        // "At this scale, the ratio of remote-to-local memory access latency approaches 2:1".
        let (mut sum, mut pairs) = (0, 0);
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            sum += part.latency.at(NodeId(a), NodeId(b)).0;
            pairs += 1;
        }
        let ratio = f64::from(u32::try_from(sum / pairs).unwrap()) / 315.0;
        assert!((1.5..2.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn digits_follow_the_size() {
        assert_eq!((digits(123.4), digits(1.5), digits(0.0123), digits(0.0)), (1, 3, 5, 9));
    }
}
