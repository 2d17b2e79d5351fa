//! `homenode show`: objects by avoidable time, who touches them, where they live.

mod counted;
mod sighted;

use std::cmp::Reverse;
use std::sync::Arc;

use homenode_log::recording::Recording;
use homenode_model::{Bytes, NodeId, PageNo, Ps, Topology};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::Trace;

use crate::args::show::ShowArgs;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::simulate::scheme::{self, Variant};
use crate::simulate::yardsticks::Extent;
use crate::simulate::{self, Loaded, Plan, Simulated};
use crate::table::{Cell, Column, Table};

/// What is simulated unless something else is asked for.
const MACHINE: &str = "sf15k";
const POLICY: &str = "first-touch";

impl ShowArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let interrupt = Interrupt::install(Second::Ends).context(|| "cannot watch for Ctrl-C".into())?;
        let recording = Recording::open(&self.recording).context(|| "cannot show".into())?;
        if crate::counted::is(&recording) {
            return counted::run(&self, &recording);
        }
        if crate::sighted::is(&recording) {
            return sighted::run(&self, &recording);
        }
        let machine = Arc::new(simulate::machine(self.machine.as_deref().unwrap_or(MACHINE))?.topology);
        let page = simulate::page_size(&machine, self.page)?;
        let approximate = simulate::fit(&machine, recording.meta.filter_lines)?;
        let loaded = Loaded::new(recording)?;
        let policy = self.policy.clone().unwrap_or_else(|| POLICY.into());
        let schemes = scheme::select(&scheme::of_recording(), &[policy])?;
        let plan = Plan {
            machines: vec![machine.clone()],
            pages: vec![page],
            schemes,
            jobs: 1,
            options: MemoryOptions::default(),
            extent: Extent::None,
        };
        let Simulated { trace, mut cells, .. } =
            plan.run(&loaded, Variant::Serial, self.quiet, &interrupt)?;
        let outcome = match cells.remove(&(0, 0)) {
            Some(Ok(outcome)) => outcome,
            Some(Err(why)) => return Err(CliError::failed("cannot simulate this recording").tried(why)),
            None => return Err(CliError::failed("nothing was simulated")),
        };
        let objects = objects(&machine, page, &trace, &outcome);
        let hidden = objects.len().saturating_sub(self.top);
        let mut table = table(&loaded, &trace, objects, self.top);
        let policy = &plan.schemes[0].name;
        table.fact("machine", Cell::text(simulate::describe(&machine, page, None)));
        table.fact("policy", Cell::text(policy.as_str()));
        table.fact("recording", Cell::text(loaded.recording.meta.kind.as_str()));
        notes(&mut table, &loaded, &trace, approximate, hidden);
        let exit = self.output.print(&table)?;
        let whole = simulate::warnings(&loaded.recording, &trace).is_empty();
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

/// Which object a page belongs to: the one with most bytes in it, the older one of equals.
pub(super) fn owners(page: Bytes, trace: &Trace, pages: usize) -> Vec<Option<(usize, u64)>> {
    let mut owner: Vec<Option<(usize, u64)>> = vec![None; pages];
    for (range, object) in &trace.ranges {
        let (first, end) = (range.first / page.0, (range.first + range.bytes).div_ceil(page.0));
        for p in first..end.min(pages as u64) {
            let (start, stop) =
                (range.first.max(p * page.0), (range.first + range.bytes).min((p + 1) * page.0));
            let place = &mut owner[p as usize];
            if place.is_none_or(|(_, bytes)| stop - start > bytes) {
                *place = Some((object.index(), stop - start));
            }
        }
    }
    owner
}

fn objects(machine: &Topology, page: Bytes, trace: &Trace, outcome: &Outcome) -> Vec<Used> {
    let nodes = machine.nodes.len();
    let fresh = |object: Option<usize>| Used {
        object,
        bytes: object.and_then(|o| trace.objects.get(o)).map_or(0, |o| o.bytes),
        by: vec![0; nodes],
        at: vec![0; nodes],
        remote: 0,
        avoidable: Ps::ZERO,
    };
    let mut all: Vec<Used> = (0..trace.objects.len()).map(|o| fresh(Some(o))).collect();
    all.push(fresh(None));
    let owner = owners(page, trace, outcome.histogram.pages());
    for (p, owner) in owner.iter().enumerate() {
        let page = PageNo(p as u64);
        let Some(row) = outcome.histogram.row(page) else { continue };
        let Some(home) = outcome.placement.home(page) else { continue };
        let last = all.len() - 1;
        let used = &mut all[owner.map_or(last, |(o, _)| o)];
        let counts: Vec<u64> = row.iter().map(|[r, w]| u64::from(*r) + u64::from(*w)).collect();
        let cost = |home: NodeId| -> Ps {
            let each = (0u16..).map(NodeId).zip(&counts);
            each.map(|(node, n)| machine.latency.at(node, home).ps().times(*n)).sum()
        };
        let best = machine.nodes_with_memory().into_iter().map(cost).min().unwrap_or_default();
        used.avoidable += cost(home) - best;
        for (node, n) in counts.iter().enumerate() {
            used.by[node] += n;
            used.at[home.index()] += n;
            used.remote += if node == home.index() { 0 } else { *n };
        }
    }
    all.retain(|u| u.by.iter().any(|n| *n > 0));
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
    for warning in
        simulate::false_sharing(trace).into_iter().chain(simulate::warnings(&loaded.recording, trace))
    {
        table.note(warning);
    }
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

    #[test]
    fn a_page_belongs_to_whom_most_of_it_belongs() {
        use homenode_model::ObjectId;
        use homenode_sim::stream::ByteRange;
        let range = |first, bytes, o| (ByteRange { first, bytes }, ObjectId(o));
        let trace = Trace {
            ranges: vec![range(4096, 4096 + 100, 0), range(8192 + 100, 4000, 1)],
            ..Trace::default()
        };
        let owner: Vec<_> = owners(Bytes(4096), &trace, 4).into_iter().map(|o| o.map(|(o, _)| o)).collect();
        assert_eq!(owner, [None, Some(0), Some(1), Some(1)]);
    }
}
