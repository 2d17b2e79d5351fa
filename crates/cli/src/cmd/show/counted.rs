//! `homenode show` of what the lab's monitor counted: the same table, with pages where Linux had them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_log::recording::Recording;
use homenode_model::{NodeId, Ps};

use super::{Shown, columns, row};
use crate::args::show::ShowArgs;
use crate::counted::Counted;
use crate::counted::objects::Kind;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::table::{Cell, Table};

pub fn run(args: &ShowArgs, recording: &Recording) -> Result<Exit> {
    if args.machine.is_some() || args.policy.is_some() || args.page.is_some() {
        return Err(CliError::usage("this recording has counts by page and node, not a trace")
            .tried("simulate it on a machine, with a policy or a page size")
            .hint("leave --machine, --policy and --page out: it shows where Linux placed the pages"));
    }
    let counted = Counted::open(recording)?;
    let objects = objects(&counted);
    let mut table = Table::new("show", 1, columns());
    for shown in objects.iter().take(args.top) {
        table.row(row(shown));
    }
    table.fact("machine", Cell::text(format!("{}, Linux {}", counted.about.machine, counted.about.linux)));
    table.fact("policy", Cell::text("as Linux placed them"));
    table.fact("recording", Cell::text(recording.meta.kind.as_str()));
    if counted.about.iterations > 1 {
        table.note("counted between the first and the last iteration that the program told of");
    }
    let hidden = objects.len().saturating_sub(args.top);
    if hidden > 0 {
        table.note(format!("{hidden} more objects: --top shows them"));
    }
    table.note("accesses and pages are measured under emulation; avoidable is modelled: latency that the best static home of each page would save");
    args.output.print(&table)
}

/// Objects of one name, of all processes, as one.
fn objects(counted: &Counted) -> Vec<Shown> {
    let nodes = counted.about.latency.len();
    let fresh = |name: Option<&str>| Shown {
        name: name.map(str::to_owned),
        bytes: 0,
        by: vec![0; nodes],
        at: vec![0; nodes],
        remote: 0,
        avoidable: Ps::ZERO,
    };
    // Stacks are one thing, as they are in traces.
    let name = |object: usize| {
        let o = &counted.objects[object];
        (o.kind != Kind::Stack).then_some(o.name.as_str())
    };
    let mut all: BTreeMap<Option<&str>, Shown> = BTreeMap::new();
    for o in counted.objects.iter().filter(|o| o.kind != Kind::Stack) {
        let shown = all.entry(Some(&o.name)).or_insert_with(|| fresh(Some(&o.name)));
        shown.bytes = shown.bytes.max(o.bytes);
    }
    // What the nodes did to a page, while it was at one place.
    let mut pages: BTreeMap<(u32, u64, u16, Option<usize>), Vec<u64>> = BTreeMap::new();
    for r in counted.timed() {
        let by = pages.entry((r.process, r.address, r.home, r.object)).or_insert_with(|| vec![0; nodes]);
        by[usize::from(r.node)] += r.loads + r.stores;
    }
    for ((_, _, home, object), by) in pages {
        let shown = all.entry(object.and_then(name)).or_insert_with(|| fresh(None));
        let cost = |home: NodeId| -> Ps {
            let each = (0u16..).map(NodeId).zip(&by);
            each.map(|(node, n)| counted.about.latency.at(node, home).ps().times(*n)).sum()
        };
        let best = (0..nodes as u16).map(NodeId).map(cost).min().unwrap_or_default();
        shown.avoidable += cost(NodeId(home)) - best;
        for (node, n) in by.iter().enumerate() {
            shown.by[node] += n;
            shown.at[usize::from(home)] += n;
            shown.remote += if node == usize::from(home) { 0 } else { *n };
        }
    }
    let mut all: Vec<Shown> = all.into_values().filter(|s| s.by.iter().any(|n| *n > 0)).collect();
    all.sort_by_key(|s| (Reverse(s.avoidable), Reverse(s.by.iter().sum::<u64>()), s.name.clone()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::objects::Object;
    use crate::counted::{About, Row};
    use homenode_model::{Matrix, Ns};

    #[test]
    fn a_page_on_the_wrong_node_is_avoidable_and_stacks_are_one() {
        let object =
            |address, kind, name: &str| Object { process: 7, address, bytes: 4096, kind, name: name.into() };
        let row = |address, home, node, object| Row {
            interval: 0,
            process: 7,
            address,
            physical: 0,
            home,
            node,
            loads: 10,
            stores: 0,
            object,
        };
        let counted = Counted {
            rows: vec![row(0, 0, 1, Some(0)), row(4096, 1, 1, Some(1)), row(8192, 0, 0, None)],
            objects: vec![object(0, Kind::Static, "a"), object(4096, Kind::Stack, "stack of thread 0")],
            about: About {
                machine: "m".into(),
                linux: "6".into(),
                latency: Matrix::from_fn(2, |i, j| Ns(if i == j { 100 } else { 200 })),
                program: 30,
                iterations: 0,
            },
        };
        let all = objects(&counted);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].name.as_deref(), all[0].remote, all[0].avoidable), (Some("a"), 10, Ns(1000).ps()));
        assert_eq!(
            (all[1].name.as_deref(), &all[1].by[..], &all[1].at[..]),
            (None, &[10, 10][..], &[10, 10][..])
        );
    }
}
