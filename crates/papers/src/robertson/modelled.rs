//! Table 2 on a description: a recording of the heat program, with its pages on bricks of one's
//! choice.

use std::sync::Arc;

use homenode_error::{Error, Result};
use homenode_launch::record::FILTER_LINES;
use homenode_machine::Machine;
use homenode_measure::{Host, NodeNumber, NodePair};
use homenode_model::{Bytes, CpuId, NodeId, Placement, Topology};
use homenode_schemes::scheme::{Layout, Variant};
use homenode_sim::memory::{Outcome, Percent};
use homenode_table::{Cell, Column, Table};
use homenode_task::Task;

use super::heat::{GRID, ITERATIONS, TABLE_2, verdicts};
use super::stand_ins::{self, StandIns, shown as words_of};
use crate::ask::Ask;
use crate::runs::{Case, Run, Workshop};
use crate::series::Series;
use crate::verdict::Shown;

/// Iterations that are simulated; all further ones are like the last.
const SIMULATED: u32 = 4;
/// With `--small` the grid is this many times smaller in each direction, and caches by its square.
const SMALLER: u32 = 8;

/// Table 2, each row a simulation.
pub(super) fn table2(machine: &Machine, ask: &Ask, task: &dyn Task) -> Result<Shown> {
    let stand_ins = StandIns::of(&Host::like(machine))?;
    let smaller = if ask.small { SMALLER } else { 1 };
    let mut topology = machine.topology_for("heat");
    for cache in &mut topology.caches {
        cache.size.0 /= u64::from(smaller * smaller);
    }
    let simulated = ask.iterations.unwrap_or(SIMULATED);
    let run = Run {
        iterations: simulated,
        more: ["--size", &(GRID.0 / smaller).to_string(), "--columns", &(GRID.1 / smaller).to_string()]
            .map(str::to_owned)
            .to_vec(),
        ..Run::new("", 2, Variant::Parallel, homenode_schemes::filter_lines(&topology, FILTER_LINES))
    };
    let page = if ask.small { Bytes::kib(4) } else { homenode_schemes::page_size(&topology, None)? };
    let on = Bricks { topology: Arc::new(topology), page };
    let shop = Workshop { folder: ask.folder.clone(), workers: ask.workers, task };
    // Where each thread touches first is what it updates.
    let apart = on.case([NodeId(0), second(&on.topology)?], None)?;
    let probe = shop.outcomes("heat", &run, std::slice::from_ref(&apart))?;
    let owners = probe.first().map(|o| o.placement.clone()).unwrap_or_default();
    let wanted: Vec<_> = TABLE_2.iter().map(|row| stand_ins.pairs(row.pairs)).collect();
    let mut cases = Vec::new();
    for pairs in wanted.iter().flatten().filter(|p| !p.is_empty()) {
        let [first, second] = [index(machine, pairs[0].cpu), index(machine, pairs[1].cpu)];
        let memory = [pairs[0].memory, pairs[1].memory].map(|n| index(machine, n));
        cases.push(on.case([first, second], Some(on.placed(&owners, memory)))?);
    }
    let mut outcomes = shop.outcomes("heat", &run, &cases)?.into_iter();
    let mut best = Vec::new();
    for pairs in &wanted {
        let placed = matches!(pairs, Ok(p) if !p.is_empty());
        best.push(if placed { outcomes.next().and_then(|o| time(&o)) } else { None });
    }
    let mut table = rows(&wanted, &best);
    table.fact("our_machine", Cell::text(format!("simulated: {}", machine.topology.name)));
    table.note(format!(
        "ours: kernel:heat, {} x {} points of 8 bytes, {simulated} of {ITERATIONS} iterations simulated{}",
        GRID.0 / smaller,
        GRID.1 / smaller,
        if smaller > 1 { format!(", caches 1/{}", smaller * smaller) } else { String::new() }
    ));
    table
        .note("a simulation has one time: no average and no deviation; --machine this runs the program here");
    stand_ins.remarks().into_iter().for_each(|r| table.note(r));
    let mut shown = Shown::new(table);
    verdicts(&mut shown, &best);
    shown.lacks.extend(LACKS);
    Ok(shown)
}

/// Why the times are not the paper's.
const LACKS: [&str; 2] = [
    "all rows: the paper's 3.2 s are 83 ns a point of a thread, and ours 20 ns. The paper does not say what its program \
     does besides four loads and a store a point, so the memory has a larger share in our times",
    "other jobs on the machine, and where IRIX places threads and pages (2.6)",
];

/// Seconds of all iterations.
fn time(outcome: &Outcome) -> Option<f64> {
    Series(outcome.iterations()).carried_on(ITERATIONS as usize).map(|t| t.secs())
}

/// The description's own number of a node.
fn index(machine: &Machine, node: NodeNumber) -> NodeId {
    let os = machine.os.as_ref();
    let at = os.and_then(|os| os.nodes.iter().position(|n| *n == u32::from(node.0)));
    NodeId(at.map_or(node.0, |i| i as u16))
}

/// Another node with CPUs than the first.
fn second(topology: &Topology) -> Result<NodeId> {
    let two = topology.nodes_with_cpus();
    two.get(1).copied().ok_or_else(|| {
        Error::usage(format!("{} has one node with CPUs", topology.name)).hint("Table 2 takes two at least")
    })
}

/// The machine whose bricks threads and pages are put on.
struct Bricks {
    topology: Arc<Topology>,
    page: Bytes,
}

impl Bricks {
    /// Threads on CPUs of their nodes, pages by first touch or where `homes` says.
    fn case(&self, threads: [NodeId; 2], homes: Option<Arc<Placement>>) -> Result<Case> {
        let policy = if homes.is_some() { "plan" } else { "first-touch" };
        let new = Case::new(self.topology.clone(), self.page, Layout::Spread, Percent::ZERO);
        Ok(Case { policy: policy.into(), binding: Some(self.cpus(threads)?), homes, ..new })
    }

    /// A CPU for each thread, another one where both are on one node.
    fn cpus(&self, nodes: [NodeId; 2]) -> Result<Vec<CpuId>> {
        let lacking = || Error::usage(format!("{} has nodes with fewer than two CPUs", self.topology.name));
        let nth = |node, n| self.topology.cpus_of(node).nth(n).ok_or_else(lacking);
        Ok(vec![nth(nodes[0], 0)?, nth(nodes[1], usize::from(nodes[0] == nodes[1]))?])
    }

    /// Each page that thread i owns on `memory[i]`.
    fn placed(&self, owners: &Placement, memory: [NodeId; 2]) -> Arc<Placement> {
        let mut homes = Placement::new();
        for (page, owner) in owners.iter() {
            homes.set(page, memory[usize::from(owner != NodeId(0))]);
        }
        Arc::new(homes)
    }
}

fn rows(wanted: &[std::result::Result<Vec<NodePair>, String>], best: &[Option<f64>]) -> Table {
    let columns = vec![
        Column::text("experiment", "exp."),
        Column::text("bricks", "bricks"),
        Column::text("nodes", "nodes here"),
        Column::unit("paper_best", "best, paper", "s"),
        Column::unit("best", "ours", "s"),
        Column::number("paper_relative", "best / 2.1, paper"),
        Column::number("relative", "ours"),
        Column::unit("difference", "difference", "%"),
    ];
    let mut table = Table::new("robertson-table2-simulated", 1, columns);
    for ((row, pairs), ours) in TABLE_2.iter().zip(wanted).zip(best) {
        let bricks = if row.pairs.is_empty() { "IRIX".into() } else { stand_ins::words(row.pairs) };
        let why = match pairs {
            Err(why) => why.clone(),
            Ok(p) if p.is_empty() => "the paper does not say where the system placed them".into(),
            Ok(_) => "not simulated".into(),
        };
        let number =
            |v: Option<f64>, digits| v.map_or_else(|| Cell::missing(why.clone()), |v| Cell::float(v, digits));
        let paper = row.best / TABLE_2[0].best;
        let relative = ours.zip(best[0]).map(|(a, b)| a / b);
        table.row(vec![
            Cell::text(row.number),
            Cell::text(bricks),
            pairs.as_ref().map_or_else(|w| Cell::missing(w.clone()), |p| Cell::text(words_of(p))),
            Cell::float(row.best, 1),
            number(*ours, 3),
            Cell::float(paper, 2),
            number(relative, 2),
            number(relative.map(|r| 100.0 * (r / paper - 1.0)), 1),
        ]);
    }
    table
}
