//! `homenode show`: objects by avoidable time, who touches them, where they live.

pub(super) mod answer;
mod dataset;
mod objects;
mod picture;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use homenode_error::{Context, Error, Result};
use homenode_log::recording::Recording;
use homenode_model::{Bytes, NodeId, ObjectId, Ps, Topology};
use homenode_order::Trace;
use homenode_schemes::scheme::{self, Variant};
use homenode_schemes::yardsticks::Extent;
use homenode_schemes::{self as schemes, Loaded, Plan, Simulated};
use homenode_sim::collect::Collect;
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_simulated::places::Places;
use homenode_table::{Cell, Column, Table};

use crate::args::show::ShowArgs;
use crate::exit::Exit;
use crate::open::{Opened, Simulation, open};
use crate::task::Terminal;
pub(super) use dataset::{columns as columns_of, json as json_of};

/// What is simulated unless something else is asked for.
const MACHINE: &str = "sf15k";
const POLICY: &str = "first-touch";

impl ShowArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let how =
            Simulation { machine: self.machine.as_deref(), policy: self.policy.as_deref(), page: self.page };
        match open(&self.recording, &how)? {
            Opened::Dataset(set) => return dataset::run(&self, &set),
            Opened::NeedsSimulation if self.map => {
                return Err(Error::usage("this recording does not tell where pages lived")
                    .hint("leave --map out: 'homenode show' simulates the recording"));
            }
            Opened::NeedsSimulation => {}
        }
        let task = Terminal::watching(self.quiet)?;
        let recording = Recording::open(&self.recording).context(|| "cannot show".into())?;
        let machine = Arc::new(schemes::machine(self.machine.as_deref().unwrap_or(MACHINE))?.topology);
        let page = schemes::page_size(&machine, self.page)?;
        let approximate = schemes::fit(&machine, recording.meta.filter_lines)?;
        let loaded = Loaded::new(recording)?;
        let policy = self.policy.clone().unwrap_or_else(|| POLICY.into());
        let schemes = scheme::select(&scheme::of_recording(), &[policy])?;
        let plan = Plan {
            machines: vec![machine.clone()],
            pages: vec![page],
            schemes,
            jobs: 1,
            options: MemoryOptions { collect: Some(Collect::default()), ..MemoryOptions::default() },
            extent: Extent::None,
        };
        let Simulated { trace, mut cells, .. } = plan.run(&loaded, Variant::Serial, &task)?;
        let outcome = match cells.remove(&(0, 0)) {
            Some(Ok(outcome)) => outcome,
            Some(Err(why)) => return Err(Error::failed("cannot simulate this recording").tried(why)),
            None => return Err(Error::failed("nothing was simulated")),
        };
        let objects = objects(&machine, page, &trace, &outcome);
        let hidden = objects.len().saturating_sub(self.top());
        let mut table = table(&loaded, &trace, objects, self.top());
        let policy = &plan.schemes[0].name;
        table.fact("machine", Cell::text(schemes::describe(&machine, page, None)));
        table.fact("policy", Cell::text(policy.as_str()));
        table.fact("recording", Cell::text(loaded.recording.meta.kind.as_str()));
        table.fact("timed", Cell::text(schemes::timed_part(&trace, &outcome)));
        notes(&mut table, &loaded, &trace, approximate, hidden);
        let exit = self.output.print(&table)?;
        let whole = schemes::warnings(&loaded.recording, &trace).is_empty();
        Ok(if !whole && exit == Exit::Done { Exit::Partial } else { exit })
    }
}

/// What an object's pages met.
struct Used {
    /// Index in the trace's objects; `None`: stacks, the small heap, everything nobody has told of.
    object: Option<usize>,
    bytes: u64,
    /// Main-memory accesses by the accessing node.
    by: Vec<u64>,
    /// The same by the page's home at the end.
    at: Vec<u64>,
    remote: u64,
    avoidable: Ps,
}

/// A line of the table.
struct Shown {
    /// The object; `None`: stacks, the small heap, everything nobody has told of.
    name: Option<String>,
    /// 0: not one object.
    bytes: u64,
    /// Main-memory accesses by the accessing node.
    by: Vec<u64>,
    /// The same by the page's home.
    at: Vec<u64>,
    remote: u64,
    avoidable: Ps,
}

/// A page or block: the object's index, if it is in one, and its number.
type PageKey = (Option<usize>, u64);

/// Accesses by (accessing node, home).
type Counts = BTreeMap<(NodeId, NodeId), u64>;

/// What the timed accesses did, by object. Each access counts at the home that its page had then, as in `compare`.
fn objects(machine: &Topology, page: Bytes, trace: &Trace, outcome: &Outcome) -> Vec<Used> {
    let nodes = machine.nodes.len();
    let Some(collected) = &outcome.collected else { return Vec::new() };
    let places = Places::new(&collected.extents, trace, page);
    let mut pages: BTreeMap<PageKey, Counts> = BTreeMap::new();
    for cell in collected.intervals.iter().filter(|i| i.timed).flat_map(|i| i.cells.all()) {
        let placed = places.block(cell.page, collected.coarsened.block);
        // Stacks are told together with all that nobody knows.
        let object = placed.object.map(ObjectId::index).filter(|o| *o < trace.objects.len());
        let key = (object, if object.is_some() { placed.page } else { cell.page.into() });
        *pages.entry(key).or_default().entry((cell.node, cell.home)).or_default() += cell.count;
    }
    let mut all: BTreeMap<Option<usize>, Used> = BTreeMap::new();
    for ((object, _), counts) in pages {
        let used = all.entry(object).or_insert_with(|| Used {
            object,
            bytes: object.and_then(|o| trace.objects.get(o)).map_or(0, |o| o.bytes),
            by: vec![0; nodes],
            at: vec![0; nodes],
            remote: 0,
            avoidable: Ps::ZERO,
        });
        let cost = |to: Option<NodeId>| -> Ps {
            let each = counts.iter().map(|((node, home), n)| (*node, to.unwrap_or(*home), *n));
            each.map(|(node, home, n)| machine.latency.at(node, home).ps().times(n)).sum()
        };
        let best = machine.nodes_with_memory().into_iter().map(|n| cost(Some(n))).min().unwrap_or_default();
        used.avoidable += cost(None) - best;
        for ((node, home), n) in counts {
            used.by[node.index()] += n;
            used.at[home.index()] += n;
            used.remote += if node == home { 0 } else { n };
        }
    }
    let mut all: Vec<Used> = all.into_values().collect();
    all.sort_by_key(|u| (Reverse(u.avoidable), Reverse(u.by.iter().sum::<u64>()), u.object));
    all
}

/// Shares of nodes in percent, the small ones left out: `0: 75 1: 25`.
fn shares(counts: &[u64]) -> String {
    let total: u64 = counts.iter().sum();
    let mut parts = Vec::new();
    for (node, n) in counts.iter().enumerate() {
        let percent = (n * 100 + total / 2) / total.max(1);
        if percent > 0 {
            parts.push(format!("{node}:{percent}"));
        }
    }
    match parts.len() {
        0 => String::new(),
        n if n > 8 => format!("{} … ({n} nodes)", parts[..6].join(" ")),
        _ => parts.join(" "),
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("object", "object"),
        Column::unit("bytes", "size", "KiB"),
        Column::number("accesses", "memory accesses"),
        Column::unit("remote", "remote", "%"),
        Column::unit("avoidable", "avoidable", "ms"),
        Column::text("touched_by", "touched by (node:%)"),
        Column::text("lives_on", "lives on (node:%)"),
    ]
}

fn row(shown: &Shown) -> Vec<Cell> {
    let total: u64 = shown.by.iter().sum();
    vec![
        Cell::text(shown.name.as_deref().unwrap_or("(stacks, small heap)")),
        if shown.bytes > 0 { Cell::int(shown.bytes.div_ceil(1024)) } else { Cell::missing("not one object") },
        Cell::int(total),
        Cell::percent(shown.remote as f64 / total.max(1) as f64, 1),
        Cell::float(shown.avoidable.secs() * 1e3, 2),
        Cell::text(shares(&shown.by)),
        Cell::text(shares(&shown.at)),
    ]
}

fn table(loaded: &Loaded, trace: &Trace, objects: Vec<Used>, top: usize) -> Table {
    let mut table = Table::new("show", 1, columns());
    for used in objects.into_iter().take(top) {
        let name = used.object.and_then(|o| trace.objects.get(o)).map(|o| loaded.object_name(o));
        let Used { bytes, by, at, remote, avoidable, .. } = used;
        table.row(row(&Shown { name, bytes, by, at, remote, avoidable }));
    }
    table
}

fn notes(table: &mut Table, loaded: &Loaded, trace: &Trace, approximate: Option<String>, hidden: usize) {
    if hidden > 0 {
        table.note(format!("{hidden} more objects: --top shows them"));
    }
    table.note("avoidable: modelled latency that the best static home of each page would save");
    if let Some(why) = approximate {
        table.note(format!("approximate: {why}"));
    }
    schemes::false_sharing(trace).into_iter().for_each(|n| table.note(n));
    schemes::warnings(&loaded.recording, trace).into_iter().for_each(|w| table.warn(w));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_out_what_rounds_to_nothing() {
        assert_eq!(shares(&[750, 249, 1]), "0:75 1:25");
        assert_eq!(shares(&[0, 0]), "");
        assert_eq!(shares(&[1; 12]), "0:8 1:8 2:8 3:8 4:8 5:8 … (12 nodes)");
    }
}
