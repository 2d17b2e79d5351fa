//! `homenode show` of a data set: an answer, a table, notes; or a picture.

use homenode_dataset::Dataset;
use homenode_dataset::foreign::without_escapes;
use homenode_report::map::MapSize;
use homenode_report::moves::MoveSummary;
use homenode_report::objects::ObjectReport;
use homenode_report::summary::Summary;
use homenode_report::{Map, Moved, RecordingReport};
use homenode_text::page::{self, PageDetail};
use homenode_text::table::markdown;
use homenode_text::{answer, map, objects};
use serde::Serialize;

use crate::args::show::ShowArgs;
use crate::exit::Exit;
use crate::output::{Format, say, terminal_width, to_stdout};
use homenode_error::{Context as _, Result};

/// Columns where there is no terminal.
const WIDTH: u16 = 80;
/// Lines of pages in a map.
const HEIGHT: u16 = 24;

/// Columns of the output: what was asked for, the terminal's, else 80.
pub fn columns(asked: Option<u16>) -> usize {
    let of_terminal = || std::io::IsTerminal::is_terminal(&std::io::stdout()).then(terminal_width).flatten();
    asked.or_else(of_terminal).unwrap_or(WIDTH).max(40).into()
}

pub fn run(args: &ShowArgs, set: &Dataset) -> Result<Exit> {
    let report = RecordingReport::of(set);
    let exit = if args.map { picture(args, set, &report)? } else { list(args, &report)? };
    Ok(if report.summary.whole || exit != Exit::Done { exit } else { Exit::Partial })
}

fn picture(args: &ShowArgs, set: &Dataset, report: &RecordingReport) -> Result<Exit> {
    let width = columns(args.width);
    let height = args.height.unwrap_or(HEIGHT).into();
    let map = Map::of(set, report, MapSize { width: map::room(width), height });
    let text = match args.output.format() {
        Format::Json => json(&MapDocument { schema: "homenode/map/1", summary: &report.summary, map: &map })?,
        _ => answer::partial(&report.summary) + &map::draw(&map, width, args.color.wanted()),
    };
    to_stdout(&text)?;
    Ok(Exit::Done)
}

fn list(args: &ShowArgs, report: &RecordingReport) -> Result<Exit> {
    let rows = objects::table(report, args.top.unwrap_or(usize::MAX));
    let exit = args.output.judge(&rows)?;
    let text = match args.output.format() {
        Format::Csv => without_escapes(&rows.to_csv()).into_owned(),
        Format::Markdown => answer::partial(&report.summary) + &markdown(&rows),
        Format::Json => {
            let most = args.top.unwrap_or(usize::MAX).min(report.objects.len());
            json(&Document {
                schema: "homenode/show/2",
                summary: &report.summary,
                moves: report.moves.as_ref(),
                moved_most: &report.moved_most,
                objects_in_all: report.objects.len(),
                objects: &report.objects[..most],
            })?
        }
        Format::Table => page::page(
            report,
            PageDetail {
                width: columns(args.width),
                bold: args.color.wanted(),
                top: args.top(),
                verbose: args.verbose,
            },
        ),
    };
    if args.output.format() == Format::Csv {
        // CSV has no room for it.
        answer::partial(&report.summary).lines().for_each(say);
    }
    to_stdout(&text)?;
    Ok(exit)
}

/// The form of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    summary: &'a Summary,
    moves: Option<&'a MoveSummary>,
    moved_most: &'a [Moved],
    objects_in_all: usize,
    objects: &'a [ObjectReport],
}

/// The form of `--map --json`.
#[derive(Serialize)]
struct MapDocument<'a> {
    schema: &'a str,
    summary: &'a Summary,
    map: &'a Map,
}

/// A result as JSON, with its keys in their order.
pub fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).context(|| "cannot make JSON of the result".into())? + "\n")
}
