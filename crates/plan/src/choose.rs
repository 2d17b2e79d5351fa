//! The best plan for the next run: from the recording as it is, and under each schedule of its
//! dynamic loops that is to be tried. The schedule whose plan takes least time wins.

use std::path::Path;
use std::sync::Arc;

use homenode_error::{Error, Result};
use homenode_log::recording::Recording;
use homenode_model::{Bytes, Cache, Matrix, Node, NodeId, Ps, Topology};
use homenode_schemes::regroup::{self, Schedule};
use homenode_schemes::scheme::{self, Variant};
use homenode_schemes::yardsticks::YardstickSet;
use homenode_schemes::{self as schemes, LoadedRecording, SchemeGrid as Schemes, SchemeResults};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::yardsticks::Meets;
use homenode_task::Task;

use crate::file::{PlanFile, SCHEMA};
use crate::make;

/// The machine of the next run.
#[derive(Clone, Debug)]
pub struct NextMachine {
    /// Its nodes, caches and latencies.
    pub topology: Arc<Topology>,
    /// The kernel's number of each node.
    pub numbers: Vec<u16>,
    /// The nodes are pretended: the machine has others.
    pub pretended: bool,
}

impl NextMachine {
    /// The machine that `name` says, or this one, with its CPUs dealt into `nodes` pretended nodes.
    ///
    /// # Errors
    /// There is no such machine, or it has one node with memory.
    pub fn of(name: &str, nodes: Option<u16>) -> Result<Self> {
        let machine = schemes::machine(name)?;
        let mut topology = machine.topology;
        if let Some(n) = nodes {
            topology = pretend(&topology, usize::from(n));
        }
        let count = topology.nodes.len();
        if topology.nodes_with_memory().len() < 2 {
            return Err(Error::usage(format!(
                "{} has one node with memory: there is nothing to plan",
                topology.name
            ))
            .hint("name the machine of the next run with --machine, or --pretend-nodes 2 to try it here"));
        }
        let real = machine.os.filter(|_| nodes.is_none());
        let numbers = match real {
            Some(os) => os.nodes.iter().map(|n| *n as u16).collect(),
            None => (0..count as u16).collect(),
        };
        Ok(Self { topology: Arc::new(topology), numbers, pretended: nodes.is_some() })
    }
}

/// The CPUs of a machine dealt into `n` nodes, in contiguous groups, as
/// `homenode run --pretend-nodes` deals them. Another node is assumed to have twice the latency.
///
/// Only the smallest cache is modelled, with the size of the recorder's filter. Programs that are
/// tried on pretended nodes are often so small that larger caches would hold all their data. Then
/// no access would show who uses which page.
fn pretend(here: &Topology, n: usize) -> Topology {
    let all: Bytes = here.nodes.iter().map(|node| node.memory).sum();
    let local = here.latency.at(NodeId(0), NodeId(0));
    let first = here.nodes[0].clone();
    let cpus = here.cpus.len();
    let node_of = |cpu: usize| (0..n).find(|i| cpu < (i + 1) * cpus / n).unwrap_or(n - 1);
    Topology {
        name: format!("this machine as {n} nodes"),
        nodes: vec![Node { memory: Bytes(all.0 / n as u64), ..first }; n],
        cpus: (0..cpus).map(|c| NodeId(node_of(c) as u16)).collect(),
        latency: Matrix::from_fn(n, |a, b| if a == b { local } else { local.times(2) }),
        link: Matrix::from_fn(n, |_, _| homenode_model::MbPerS(0)),
        caches: here
            .caches
            .first()
            .map(|c| Cache { size: Bytes::kib(256), ways: 1, ..c.clone() })
            .into_iter()
            .collect(),
        ..here.clone()
    }
}

/// Where the results of the two schemes are: by machine and scheme.
const FIRST_TOUCH: (usize, usize) = (0, 0);
const PLANNED: (usize, usize) = (0, 1);

/// First touch and the plan, as `homenode compare` simulates them.
fn simulated(
    loaded: &LoadedRecording,
    target: &NextMachine,
    page: Bytes,
    task: &dyn Task,
) -> Result<SchemeResults> {
    let schemes = ["first-touch", schemes::PLAN].map(str::to_owned);
    let both = Schemes {
        machines: vec![target.topology.clone()],
        pages: vec![page],
        schemes: scheme::select(&scheme::of_recording(), &schemes)?,
        jobs: 1,
        options: MemoryOptions::default(),
        extent: YardstickSet::None,
    };
    both.run(loaded, Variant::Serial, task)
}

/// A schedule, and the plan that goes with it.
struct Candidate {
    schedule: Option<Schedule>,
    loaded: LoadedRecording,
    simulated: SchemeResults,
    about: Option<String>,
}

impl Candidate {
    fn of(
        schedule: Option<Schedule>,
        recording: Recording,
        about: Option<String>,
        target: &NextMachine,
        page: Bytes,
        task: &dyn Task,
    ) -> Result<Self> {
        let loaded = LoadedRecording::new(recording)?;
        let simulated = simulated(&loaded, target, page, task)?;
        Ok(Self { schedule, loaded, simulated, about })
    }

    fn outcome(&self, place: (usize, usize), machine: &str) -> Result<Outcome> {
        match self.simulated.cells.get(&place) {
            Some(Ok(outcome)) => Ok((**outcome).clone()),
            Some(Err(e)) => Err(Error::usage(format!("the recording does not fit {machine}"))
                .tried(e)
                .hint("record with fewer threads, or name a larger --machine")),
            None => Err(Error::failed("nothing was simulated")),
        }
    }
}

/// A schedule that was tried with its own plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// `None`: as recorded.
    pub schedule: Option<Schedule>,
    /// Simulated time of the timed part with the plan.
    pub timed: Ps,
    /// How even the schedule is, in words.
    pub about: Option<String>,
}

/// The best plan, and what it is expected to bring.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The plan.
    pub plan: PlanFile,
    /// The schedule that goes with it; `None`: the recorded one.
    pub schedule: Option<Schedule>,
    /// Every schedule that was tried, the recorded one first.
    pub tried: Vec<Tried>,
    /// Today's placement, with the recorded schedule.
    pub first_touch: Outcome,
    /// The plan with its schedule.
    pub with_plan: Outcome,
    /// Accesses, and those that stay remote even if each page lives where it is used most.
    pub bound: Meets,
    /// Which part of the program was timed, in words.
    pub timed: String,
    /// What the recording lacks, a sentence each.
    pub lacking: Vec<String>,
}

/// Finds the best plan for `target`, of pages of `page` bytes. Copies of the recording under other
/// schedules lie in `folder` meanwhile.
///
/// # Errors
/// The recording is damaged or does not fit the target, or `task` stops.
pub fn choose(
    recording: Recording,
    schedules: &[Schedule],
    target: &NextMachine,
    page: Bytes,
    folder: &Path,
    task: &dyn Task,
) -> Result<Chosen> {
    let mut all = vec![Candidate::of(None, recording, None, target, page, task)?];
    for schedule in schedules {
        let path = folder.join(schedule.as_str());
        let (copy, summary) = regroup::regroup(&all[0].loaded.recording, *schedule, &path, task)?;
        let about = Some(format!("imbalance {:.1} %", summary.imbalance()));
        all.push(Candidate::of(Some(*schedule), copy, about, target, page, task)?);
    }
    let machine = &target.topology.name;
    let mut tried = Vec::new();
    for candidate in &all {
        let timed = candidate.outcome(PLANNED, machine)?.timed;
        tried.push(Tried { schedule: candidate.schedule, timed, about: candidate.about.clone() });
    }
    // Of equal ones the first: the program's own schedule.
    let best = (0..all.len()).min_by_key(|i| tried[*i].timed).unwrap_or(0);
    let Candidate { schedule, loaded, simulated, .. } = &all[best];
    let (first_touch, with_plan) =
        (all[0].outcome(FIRST_TOUCH, machine)?, all[best].outcome(PLANNED, machine)?);
    let planned = simulated.planned.get(&PLANNED).cloned().unwrap_or_default();
    let topology = &target.topology;
    let plan = PlanFile {
        schema: SCHEMA.into(),
        command: loaded.recording.meta.command.clone(),
        counts: loaded.recording.meta.kind.clone(),
        machine: machine.clone(),
        nodes: target.numbers.clone(),
        pretended: target.pretended,
        page: page.0,
        ranks: 1,
        threads: with_plan.cpus.iter().map(|c| target.numbers[topology.node_of(*c).index()]).collect(),
        objects: make::objects(loaded, &simulated.trace, &planned.homes, page.0, &target.numbers),
    };
    Ok(Chosen {
        plan,
        schedule: *schedule,
        tried,
        bound: planned.bound,
        timed: schemes::timed_part(&simulated.trace, &with_plan),
        lacking: schemes::warnings(&loaded.recording, &simulated.trace),
        first_touch,
        with_plan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_dealt_as_run_deals_them() {
        let machine = homenode_machine::preset("epyc-nps4").unwrap().topology;
        let two = pretend(&machine, 2);
        let second = two.cpus.iter().position(|n| *n == NodeId(1)).unwrap();
        assert_eq!(
            (second, two.cpus.len(), two.nodes.len()),
            (machine.cpus.len() / 2, machine.cpus.len(), 2)
        );
        assert_eq!(two.latency.at(NodeId(0), NodeId(1)), two.latency.at(NodeId(0), NodeId(0)).times(2));
        two.check().unwrap();
    }
}
