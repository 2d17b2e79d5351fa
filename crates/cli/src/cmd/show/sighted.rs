//! `homenode show` of a recording of who was seen while a program ran: the same table, without what only counts can tell.

use std::cmp::Reverse;

use homenode_log::recording::Recording;

use super::shares;
use crate::args::show::ShowArgs;
use crate::counted::objects::Object;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::sighted::{About, Sighted, Totals};
use crate::table::{Cell, Column, Table};

pub fn run(args: &ShowArgs, recording: &Recording) -> Result<Exit> {
    if args.machine.is_some() || args.policy.is_some() || args.page.is_some() {
        return Err(CliError::usage("this recording has counts by page and node, not a trace")
            .tried("simulate it on a machine, with a policy or a page size")
            .hint("leave --machine, --policy and --page out: it shows where Linux placed the pages"));
    }
    let sighted = Sighted::open(recording)?;
    let about = &sighted.about;
    let mut table = Table::new("show", 1, columns());
    let all = objects(&sighted);
    for shown in all.iter().take(args.top) {
        table.row(row(shown, about));
    }
    let pretended = if about.pretended { ", pretended" } else { "" };
    table.fact("machine", Cell::text(format!("{} nodes{pretended}", about.nodes)));
    table.fact("policy", Cell::text("as Linux placed them"));
    table.fact("recording", Cell::text(about.says()));
    table.fact("source", Cell::text(about.source.as_str()));
    let hidden = all.len().saturating_sub(args.top);
    if hidden > 0 {
        table.note(format!("{hidden} more objects: --top shows them"));
    }
    if about.early > 0 {
        let seconds = about.covers as f64 * 1e-9;
        table.note(format!(
            "recorded in part: the program ended early; this is what was seen by {seconds:.1} s"
        ));
    }
    about.bias.iter().for_each(|text| table.note(text.as_str()));
    let exit = args.output.print(&table)?;
    Ok(if about.early > 0 && exit == Exit::Done { Exit::Partial } else { exit })
}

/// An object's line.
struct Shown<'a> {
    object: &'a Object,
    told: u64,
    totals: Totals,
}

/// Those that were most often seen by another node than theirs first.
fn objects(sighted: &Sighted) -> Vec<Shown<'_>> {
    let shown = |(object, totals): (_, Totals)| Shown { object, told: totals.by.iter().sum(), totals };
    let mut all: Vec<_> = sighted.objects.iter().zip(sighted.by_object()).map(shown).collect();
    all.sort_by_key(|s| (Reverse(s.totals.remote), Reverse(s.told), &s.object.name, s.object.address));
    all
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
        Column::number("told", "times told"),
        Column::text("address", "address"),
    ]
}

fn row(shown: &Shown<'_>, about: &About) -> Vec<Cell> {
    vec![
        Cell::text(shown.object.name.as_str()),
        Cell::int(shown.object.bytes.div_ceil(1024)),
        match about.one_in {
            Some(n) => Cell::int(shown.told.saturating_mul(n)),
            None => Cell::missing("presence: the source tells who came, not how often"),
        },
        Cell::percent(shown.totals.remote as f64 / shown.told.max(1) as f64, 1),
        Cell::missing("nothing counts what was waited for"),
        Cell::text(shares(&shown.totals.by)),
        Cell::text(shares(&shown.totals.at)),
        Cell::int(shown.told),
        Cell::text(format!("{:#x}", shown.object.address)),
    ]
}
