//! What the page is told: one JSON object.
//!
//! Nodes are told by index plus one into [`PageModel::nodes`], so that 0 is none; an index behind
//! the last one is a node that the recording does not list. Times are nanoseconds on the
//! recording's clock.

use std::collections::BTreeSet;

use homenode_dataset::tables::{FirstTouch, Link, Region};
use homenode_report::moves::MoveSummary as Moved;
use homenode_report::objects::ObjectReport;
use homenode_report::summary::Summary;
use homenode_report::time::Timeline;
use serde::Serialize;

use crate::findings::Findings;
use crate::source::{self, Excerpt};
use crate::tiles::axis::Columns;
use crate::tiles::grid::{GridBand, GridLevel};
use crate::tiles::moves::RecordedMoves;
use crate::tiles::nodes::RecordedNodes;
use crate::tiles::rounds::GroupedRounds;
use crate::tiles::traffic::Traffic;

/// Everything that the page shows.
#[derive(Clone, Debug, Serialize)]
pub struct PageModel {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Version of homenode that made the recording.
    pub homenode: String,
    /// Basis of the recording's counts, in words.
    pub basis: String,
    /// What tells this recording apart from the one beside it; empty where there is none.
    pub label: String,
    /// The first lines: what is remote, which array, whether moving paid.
    pub answer: Vec<String>,
    /// What to change in the source; none while it is not known yet.
    pub findings: Option<Findings>,
    /// Lines of the source around places that the page names.
    pub sources: Vec<Excerpt>,
    /// The recording beside this one, on the same axes.
    pub against: Option<Box<PageModel>>,
    /// Numbers of objects that are one: here, and in the recording beside this one.
    pub pairs: Vec<[u32; 2]>,
    /// What changed from this recording to the one beside it, in words.
    pub changes: Vec<String>,
    /// The recording as a whole.
    pub summary: Summary,
    /// What moved, as a whole.
    pub moved: Option<Moved>,
    /// Numbers of the nodes.
    pub nodes: Vec<u16>,
    /// What lies between them.
    pub links: Vec<LinkModel>,
    /// Columns of the pictures.
    pub time: TimeModel,
    /// Regions of the source.
    pub regions: Vec<RegionModel>,
    /// Iterations of the outer loop.
    pub rounds: GroupedRounds,
    /// Accesses from node to node.
    pub traffic: Traffic,
    /// Moves.
    pub moves: RecordedMoves,
    /// Objects with a picture, those with most remote accesses first.
    pub objects: Vec<ObjectModel>,
    /// Other objects, in the same order, as far as there is room.
    pub others: Vec<ObjectReport>,
    /// Objects of the recording.
    pub objects_in_all: u64,
    /// Objects of which something is known, and which have no picture.
    pub objects_without_picture: u64,
    /// Finest levels that were left out to stay below the size of a file.
    pub levels_left_out: u32,
    /// Whether somebody stopped the reading: what is shown is then not all.
    pub stopped: bool,
    /// A first look: one row of accesses in this number was read. None: all were.
    pub one_in: Option<u64>,
}

impl PageModel {
    /// The places in the source that the page names, those of findings first.
    pub fn places(&self) -> Vec<(String, u32)> {
        let mut all = Vec::new();
        for finding in self.findings.iter().flat_map(|f| &f.findings) {
            let of_fixes = finding.fixes.iter().filter_map(|f| f.at.as_ref());
            let of_variables = finding.variables.iter().map(|v| &v.place);
            all.extend(of_fixes.chain(of_variables).map(|at| (at.file.clone(), at.line)));
        }
        for object in &self.objects {
            all.push((object.report.file.clone(), object.report.line));
            all.extend(object.report.first_touch.iter().take(2).map(|t| (t.file.clone(), t.line)));
        }
        all.extend(self.regions.iter().map(|r| (r.file.clone(), r.line)));
        let mut known = BTreeSet::new();
        let named = all.into_iter().filter_map(|(file, line)| Some((file?, line?)));
        named.filter(|place| known.insert(place.clone())).take(4 * source::MOST).collect()
    }
}

/// An object with its pictures.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectModel {
    /// What is known of it.
    pub report: ObjectReport,
    /// Its pages.
    pub pages: u64,
    /// Its pictures, finest first.
    pub levels: Vec<GridLevel>,
    /// Its bands over all time that counts, of `1 << profile_shift` pages.
    pub profile: Vec<GridBand>,
    /// See `profile`.
    pub profile_shift: u32,
    /// Who touched its pages first.
    pub touches: Vec<FirstTouchRun>,
    /// Runs of pages whose first touch is not told.
    pub touches_left_out: u64,
}

/// The first touch of a run of pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstTouchRun {
    /// First page.
    pub page: u64,
    /// Pages.
    pub pages: u64,
    /// Thread.
    pub thread: Option<u32>,
    /// Index of the node plus one.
    pub node: usize,
    /// When the first of them was touched.
    pub time_ns: Option<u64>,
    /// File of the code.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// Function.
    pub function: Option<String>,
}

impl FirstTouchRun {
    pub(crate) fn of(t: &FirstTouch, nodes: &RecordedNodes) -> Self {
        Self {
            page: t.page,
            pages: t.pages,
            thread: t.thread.map(|t| t.0),
            node: nodes.index(t.node) + 1,
            time_ns: t.time_ns.map(|t| t.0),
            file: t.file.clone(),
            line: t.line,
            function: t.function.clone(),
        }
    }

    /// Whether the next run goes on where this one ends, by the same code and thread.
    pub(crate) fn goes_on(&self, next: &Self) -> bool {
        self.page.checked_add(self.pages) == Some(next.page)
            && self.pages.checked_add(next.pages).is_some()
            && (self.thread, self.node, self.line) == (next.thread, next.node, next.line)
            && (&self.file, &self.function) == (&next.file, &next.function)
    }
}

/// What lies between two nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkModel {
    /// The accessing node's number.
    pub from: u16,
    /// The home's number.
    pub to: u16,
    /// The kernel's distance.
    pub distance: Option<u32>,
    /// Latency in picoseconds.
    pub latency_ps: Option<u64>,
    /// Bandwidth.
    pub mb_per_s: Option<u64>,
}

impl LinkModel {
    pub(crate) fn of(l: &Link) -> Self {
        Self {
            from: l.from_node.0,
            to: l.to_node.0,
            distance: l.distance,
            latency_ps: l.latency_ps.map(|p| p.0),
            mb_per_s: l.bandwidth_mb_per_s,
        }
    }
}

/// A region of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegionModel {
    /// Its number.
    pub region: u32,
    /// How it was recognised.
    pub kind: &'static str,
    /// Function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// How often it ran.
    pub runs: u64,
    /// Time of all runs.
    pub time_ns: u64,
}

impl RegionModel {
    pub(crate) fn of(r: &Region) -> Self {
        Self {
            region: r.region.0,
            kind: r.kind.as_str(),
            function: r.function.clone(),
            file: r.file.clone(),
            line: r.line,
            runs: r.runs,
            time_ns: r.time_ns.0,
        }
    }
}

/// The columns of the finest pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimeModel {
    /// Intervals of the recording.
    pub intervals: usize,
    /// A column holds `1 << shift` intervals.
    pub shift: u32,
    /// When each column began.
    pub begin_ns: Vec<u64>,
    /// When the last one ended.
    pub end_ns: u64,
    /// Whether results count an interval of the column: 1, else 0.
    pub timed: Vec<u8>,
    /// Iteration of the column's first interval that lies in one.
    pub iteration: Vec<Option<u32>>,
}

impl TimeModel {
    pub(crate) fn of(timeline: &Timeline, columns: Columns) -> Self {
        let all = timeline.intervals();
        let mut begin_ns = Vec::new();
        let (mut timed, mut iteration) = (Vec::new(), Vec::new());
        for column in 0..columns.count() {
            let (from, to) = columns.range(column);
            let group = &all[from.min(all.len())..to.min(all.len())];
            let last = begin_ns.last().copied().unwrap_or(0);
            // Hostile intervals may go back in time: an axis does not.
            begin_ns.push(group.first().map_or(last, |i| i.begin_ns.0).max(last));
            timed.push(u8::from(group.iter().any(|i| i.timed)));
            iteration.push(group.iter().find_map(|i| i.iteration));
        }
        let shown = &all[columns.first.min(all.len())..(columns.first + columns.intervals).min(all.len())];
        let end = shown.iter().map(|i| i.end_ns.0).max().unwrap_or(0);
        let end_ns = end.max(begin_ns.last().copied().unwrap_or(0).saturating_add(1));
        Self { intervals: columns.intervals, shift: columns.shift, begin_ns, end_ns, timed, iteration }
    }
}
