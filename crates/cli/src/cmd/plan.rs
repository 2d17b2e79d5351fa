//! `homenode plan`: the best static placement for the next run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_error::{Error, Result};
use homenode_model::{Bytes, Cache, Matrix, Node, NodeId, Topology};
use homenode_plan::file::{self, Object};
use homenode_plan::make;
use homenode_schemes::scheme::{self, Variant};
use homenode_schemes::yardsticks::Extent;
use homenode_schemes::{self as schemes, Loaded, Plan, Simulated};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::yardsticks::Meets;
use homenode_table::{Cell, Column, Table};

use crate::args::plan::PlanArgs;
use crate::exit::Exit;
use crate::open::recording;
use crate::output::say;
use crate::tables;
use crate::task::Terminal;

/// The machine of the next run.
struct Target {
    topology: Arc<Topology>,
    /// The kernel's number of each node.
    numbers: Vec<u16>,
    pretended: bool,
}

impl PlanArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        self.output.check(&columns())?;
        let target = self.target()?;
        let page = schemes::page_size(&target.topology, None)?;
        tables::refuse(&self.recording, "plan from")?;
        let recording = recording(&self.recording, "plan from")?;
        let approximate = schemes::fit(&target.topology, recording.meta.filter_lines)?;
        let loaded = Loaded::new(recording)?;
        let simulated = simulated(&loaded, &target, page, &task)?;
        let outcome = |place| match simulated.cells.get(&place) {
            Some(Ok(outcome)) => Ok(outcome),
            Some(Err(e)) => Err(Error::usage(format!("the recording does not fit {}", target.topology.name))
                .tried(e)
                .hint("record with fewer threads, or name a larger --machine")),
            None => Err(Error::failed("nothing was simulated")),
        };
        let (first_touch, with_plan) = (outcome(FIRST_TOUCH)?, outcome(PLANNED)?);
        let planned = simulated.planned.get(&PLANNED).cloned().unwrap_or_default();
        let objects = make::objects(&loaded, &simulated.trace, &planned.homes, page.0, &target.numbers);
        let plan = file::Plan {
            schema: file::SCHEMA.into(),
            command: loaded.recording.meta.command.clone(),
            counts: loaded.recording.meta.kind.clone(),
            machine: target.topology.name.clone(),
            nodes: target.numbers.clone(),
            pretended: target.pretended,
            page: page.0,
            ranks: 1,
            threads: with_plan
                .cpus
                .iter()
                .map(|c| target.numbers[target.topology.node_of(*c).index()])
                .collect(),
            objects,
        };
        let path = self.path();
        plan.write(&path)?;
        if !self.quiet {
            say(format_args!("plan: {} ({} objects)", path.display(), plan.objects.len()));
        }
        let mut table = table(&plan, self.top);
        table.answer(answer(&target.topology.name, first_touch, with_plan));
        table.fact("machine", Cell::text(schemes::describe(&target.topology, page, None)));
        table.fact("recording", Cell::text(loaded.recording.meta.kind.as_str()));
        table.fact("timed", Cell::text(schemes::timed_part(&simulated.trace, first_touch)));
        table.fact("remote_first_touch", remote(first_touch.timed_counts.total()));
        table.fact("remote_plan", remote(with_plan.timed_counts.total()));
        let Meets { accesses, remote: away } = planned.bound;
        table.fact("remote_latency_bound", remote((accesses - away, away)));
        table.explain(
            "remote: share of the timed memory accesses that go to another node, as 'homenode compare' simulates them. The \
             plan keeps to what the nodes hold and balances their load; the latency bound does neither",
        );
        if let Some(why) = approximate {
            table.note(format!("approximate: {why}"));
        }
        let warnings = schemes::warnings(&loaded.recording, &simulated.trace);
        let whole = warnings.is_empty();
        warnings.into_iter().for_each(|w| table.warn(w));
        let exit = self.output.print(&table)?;
        Ok(if !whole && exit == Exit::Done { Exit::Partial } else { exit })
    }

    fn path(&self) -> PathBuf {
        self.file.clone().unwrap_or_else(|| {
            let name = self.recording.file_name().map_or(Path::new("plan"), Path::new);
            name.with_extension("hnplan")
        })
    }

    fn target(&self) -> Result<Target> {
        let machine = schemes::machine(&self.machine)?;
        let mut topology = machine.topology;
        if let Some(n) = self.pretend_nodes {
            topology = pretend(&topology, usize::from(n));
        }
        let nodes = topology.nodes.len();
        if topology.nodes_with_memory().len() < 2 {
            return Err(Error::usage(format!(
                "{} has one node with memory: there is nothing to plan",
                topology.name
            ))
            .hint("name the machine of the next run with --machine, or --pretend-nodes 2 to try it here"));
        }
        let real = machine.os.filter(|_| self.pretend_nodes.is_none());
        let numbers = match real {
            Some(os) => os.nodes.iter().map(|n| *n as u16).collect(),
            None => (0..nodes as u16).collect(),
        };
        Ok(Target { topology: Arc::new(topology), numbers, pretended: self.pretend_nodes.is_some() })
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
fn simulated(loaded: &Loaded, target: &Target, page: Bytes, task: &Terminal) -> Result<Simulated> {
    let schemes = ["first-touch", schemes::PLAN].map(str::to_owned);
    let both = Plan {
        machines: vec![target.topology.clone()],
        pages: vec![page],
        schemes: scheme::select(&scheme::of_recording(), &schemes)?,
        jobs: 1,
        options: MemoryOptions::default(),
        extent: Extent::None,
    };
    both.run(loaded, Variant::Serial, task)
}

/// What the plan is expected to bring.
fn answer(machine: &str, today: &Outcome, planned: &Outcome) -> String {
    let share = |(local, remote): (u64, u64)| remote as f64 / (local + remote).max(1) as f64 * 100.0;
    let (before, after) = (share(today.timed_counts.total()), share(planned.timed_counts.total()));
    let saved = match today.timed.0 {
        0 => 0.0,
        all => (all as f64 - planned.timed.0 as f64) / all as f64 * 100.0,
    };
    let time = match saved {
        s if s >= 0.5 => format!("{s:.0} % less time than first touch"),
        s if s <= -0.5 => format!("{:.0} % more time than first touch", -s),
        _ => "no less time than first touch".to_owned(),
    };
    format!("{machine}: the plan takes {time} (simulated); remote {before:.0} → {after:.0} %")
}

/// The remote share of local and remote accesses.
fn remote((local, remote): (u64, u64)) -> Cell {
    Cell::percent(remote as f64 / (local + remote).max(1) as f64, 1)
}

/// The table without rows.
fn columns() -> Table {
    let columns = vec![
        Column::text("object", "object"),
        Column::unit("bytes", "size", "KiB"),
        Column::number("stretches", "stretches"),
        Column::text("homes", "lives on (node:%)"),
    ];
    Table::new("planned", 1, columns)
}

fn table(plan: &file::Plan, top: usize) -> Table {
    let mut table = columns();
    let mut largest: Vec<&Object> = plan.objects.iter().collect();
    largest.sort_by_key(|o| (std::cmp::Reverse(o.bytes), o.order));
    for object in largest.iter().take(top) {
        let by_node = |n: &u16| -> u64 { object.homes.iter().filter(|h| h.2 == *n).map(|h| h.1).sum() };
        let all = object.homes.iter().map(|h| h.1).sum::<u64>().max(1);
        let shares =
            plan.nodes.iter().map(|n| (n, (by_node(n) * 100 + all / 2) / all)).filter(|(_, p)| *p > 0);
        let shares: Vec<String> = shares.map(|(n, p)| format!("{n}:{p}")).collect();
        table.row(vec![
            Cell::text(object.name.as_str()),
            Cell::int(object.bytes.div_ceil(1024)),
            Cell::int(object.homes.len() as u64),
            Cell::text(shares.join(" ")),
        ]);
    }
    if plan.objects.len() > top {
        table.note(format!("{} more objects: --top shows them", plan.objects.len() - top));
    }
    table
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
