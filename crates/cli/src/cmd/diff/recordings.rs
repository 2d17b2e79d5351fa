//! `homenode diff` of two recordings.

use homenode_dataset::foreign::without_escapes;
use homenode_error::Result;
use homenode_report::RecordingReport;
use homenode_report::diff::{Diff, ObjectDiff};
use homenode_text::changes;
use homenode_text::page::PageDetail;
use homenode_text::table::markdown;
use serde::Serialize;

use crate::args::diff::DiffArgs;
use crate::cmd::show::{columns_of, json_of};
use crate::exit::Exit;
use crate::output::{Format, say, to_stdout};

/// Objects listed for people unless --top says otherwise.
const TOP: usize = 20;

pub fn run(args: &DiffArgs, before: &RecordingReport, after: &RecordingReport) -> Result<Exit> {
    let mut diff = Diff::of(before, after);
    let unchanged = diff.objects.len();
    if !args.all {
        diff.objects.retain(ObjectDiff::is_changed);
    }
    let unchanged = unchanged - diff.objects.len();
    let rows = changes::table(&diff);
    let exit = args.output.judge(&rows)?;
    if let Some(top) = args.top {
        diff.objects.truncate(top);
    }
    if args.output.format() == Format::Csv {
        // CSV has no room for it.
        changes::partial(&diff).into_iter().for_each(say);
    }
    let text = match args.output.format() {
        Format::Csv => without_escapes(&changes::table(&diff).to_csv()).into_owned(),
        Format::Markdown => {
            let partial = changes::partial(&diff).map(|p| p + "\n\n").unwrap_or_default();
            partial + &markdown(&changes::table(&diff))
        }
        Format::Json => {
            let schema = "homenode/diff/1";
            json_of(&Document { schema, unchanged_objects: unchanged, diff: &diff })?
        }
        Format::Table => changes::page(&diff, unchanged, shown(args)),
    };
    to_stdout(&text)?;
    Ok(if diff.whole || exit != Exit::Done { exit } else { Exit::Partial })
}

fn shown(args: &DiffArgs) -> PageDetail {
    let top = args.top.unwrap_or(TOP);
    PageDetail { width: columns_of(None), bold: args.color.wanted(), top, verbose: false }
}

/// The form of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    unchanged_objects: usize,
    #[serde(flatten)]
    diff: &'a Diff,
}
