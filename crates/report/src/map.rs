//! Where pages lived, as a grid: rows are bands of an object's pages, columns are intervals.

use std::collections::BTreeMap;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Access, IntervalNo, Migration, MigrationOutcome, Residency};
use homenode_model::{NodeId, Ns, ObjectId};
use serde::Serialize;

use crate::objects::ObjectReport;
use crate::report::RecordingReport;
use crate::serial;
use crate::time::Timeline;

/// Most bands of one object.
const MOST_BANDS: u64 = 32;
/// Pages above which a run of pages weighs no more. Sums of weights cannot overflow.
const MOST_PAGES: u64 = 1 << 40;
/// Most cells of a map.
const MOST_CELLS: usize = 1 << 20;

/// How large a map may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSize {
    /// Most columns.
    pub width: usize,
    /// Most bands of all objects together.
    pub height: usize,
}

/// What a map was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MapSource {
    /// The table `residency`: all pages.
    Residency,
    /// The table `accesses`: the homes of pages that were accessed.
    Accesses,
}

/// Intervals that share a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapColumn {
    /// The first of them.
    #[serde(serialize_with = "serial::number")]
    pub interval: IntervalNo,
    /// The last of them.
    #[serde(serialize_with = "serial::number")]
    pub until: IntervalNo,
    /// When the first one began.
    #[serde(serialize_with = "serial::number")]
    pub begin_ns: Ns,
    /// When the last one ended.
    #[serde(serialize_with = "serial::number")]
    pub end_ns: Ns,
    /// Iteration of the first interval that lies in one.
    pub iteration: Option<u32>,
    /// Whether results count one of the intervals.
    pub timed: bool,
}

/// A band of pages in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MapCell {
    /// The node that was home to most pages; none where no page lived.
    #[serde(serialize_with = "serial::number_or_null")]
    pub home: Option<NodeId>,
    /// Percent of the pages that lived which had that home, rounded down.
    pub percent: u8,
    /// Pages that moved.
    pub moved: u64,
    /// How many of these moved back.
    pub ping_pongs: u64,
}

impl MapCell {
    /// Whether no node was home to three quarters of the pages.
    pub const fn is_mixed(&self) -> bool {
        self.home.is_some() && self.percent < 75
    }
}

/// Consecutive pages of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Band {
    /// The first page.
    pub page: u64,
    /// How many.
    pub pages: u64,
    /// One a column.
    pub cells: Vec<MapCell>,
}

/// An object's bands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapObject {
    /// Number in the recording; none for memory that nobody knows.
    #[serde(serialize_with = "serial::number_or_null")]
    pub object: Option<ObjectId>,
    /// Name that is the same in every recording.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Its pages.
    pub pages: u64,
    /// Its bands, first page first.
    pub bands: Vec<Band>,
}

/// The picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Map {
    /// What it was made from.
    pub source: MapSource,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Columns, in the order of time.
    pub columns: Vec<MapColumn>,
    /// Nodes that are home to anything in the picture, ascending.
    #[serde(serialize_with = "serial::numbers")]
    pub homes: Vec<NodeId>,
    /// Objects, the largest first.
    pub objects: Vec<MapObject>,
    /// Objects with pages that the picture has no room for.
    pub objects_left_out: u64,
}

/// Pages × intervals by column, of one home in one band. Kept as differences between columns, so
/// that a run over many intervals takes as much memory and time as one over few.
#[derive(Debug, Default)]
struct Weights(BTreeMap<usize, Weight>);

/// What changes at a column.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    /// Pages that live in this column and all later ones, less those that no longer do.
    step: i128,
    /// Pages × intervals of runs that do not fill the column.
    part: u128,
}

impl Weights {
    fn at(&mut self, column: usize) -> &mut Weight {
        self.0.entry(column).or_default()
    }
}

/// Bands of one object while tables are read.
struct Rows<'a> {
    object: &'a ObjectReport,
    pages: u64,
    bands: u64,
    weights: BTreeMap<(u64, NodeId), Weights>,
    moves: BTreeMap<(u64, usize), (u64, u64)>,
}

impl Rows<'_> {
    /// First page of a band.
    fn start(&self, band: u64) -> u64 {
        (u128::from(self.pages) * u128::from(band) / u128::from(self.bands)) as u64
    }

    /// The bands that the pages touch, each with the number of pages in it.
    fn bands(&self, page: u64, pages: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let end = page.saturating_add(pages);
        // Pages behind the object's end belong to its last band.
        let last = self.bands - 1;
        (0..self.bands).filter_map(move |band| {
            let (from, to) = (self.start(band), if band == last { u64::MAX } else { self.start(band + 1) });
            let inside = end.min(to).saturating_sub(page.max(from));
            (inside > 0).then_some((band, inside.min(MOST_PAGES)))
        })
    }
}

/// How intervals become columns.
struct Binning {
    intervals: usize,
    columns: usize,
}

impl Binning {
    /// The first interval of a column; also of the column behind the last one.
    const fn start(&self, column: usize) -> usize {
        (self.intervals as u128 * column as u128 / self.columns as u128) as usize
    }

    /// The column of an interval.
    fn column(&self, interval: usize) -> usize {
        let near = (interval as u128 * self.columns as u128 / self.intervals as u128) as usize;
        // The division rounds down, so that the interval may belong to the next column.
        let next = near + 1 < self.columns && self.start(near + 1) <= interval;
        (near + usize::from(next)).min(self.columns - 1)
    }

    fn width(&self, column: usize) -> u128 {
        (self.start(column + 1) - self.start(column)) as u128
    }
}

impl Map {
    /// Draws a data set. `report` is the report of the same data set.
    pub fn of(set: &Dataset, report: &RecordingReport, size: MapSize) -> Self {
        let timeline = Timeline::of(set);
        let intervals = timeline.intervals().len().max(1);
        let height = size.height.clamp(1, 1 << 10);
        let columns = size.width.clamp(1, MOST_CELLS / height).min(intervals);
        let binning = Binning { intervals, columns };
        let (mut rows, left_out) = choose(report, height);
        let numbers: BTreeMap<Option<ObjectId>, usize> =
            rows.iter().enumerate().map(|(i, r)| (r.object.object, i)).collect();
        let mut source = MapSource::Residency;
        if !residency(set, &timeline, &binning, &numbers, &mut rows) {
            source = MapSource::Accesses;
            accesses(set, &timeline, &binning, &numbers, &mut rows);
        }
        for m in set.rows::<Migration>() {
            let Some(row) = numbers.get(&m.object).and_then(|i| rows.get_mut(*i)) else { continue };
            if m.outcome == MigrationOutcome::Refused {
                continue;
            }
            let column = binning.column(timeline.position(m.interval));
            let bands: Vec<_> = row.bands(m.page, m.pages).collect();
            for (band, pages) in bands {
                let (moved, back) = row.moves.entry((band, column)).or_default();
                *moved = moved.saturating_add(pages);
                if m.outcome == MigrationOutcome::PingPong {
                    *back = back.saturating_add(pages);
                }
            }
        }
        let objects: Vec<MapObject> = rows.into_iter().map(|r| finish(r, &binning)).collect();
        let cells = objects.iter().flat_map(|o| &o.bands).flat_map(|b| &b.cells);
        let homes: std::collections::BTreeSet<NodeId> = cells.filter_map(|c| c.home).collect();
        Self {
            source,
            page_bytes: report.summary.page_bytes,
            columns: (0..columns).map(|c| column(&timeline, &binning, c)).collect(),
            homes: homes.into_iter().collect(),
            objects,
            objects_left_out: left_out,
        }
    }
}

/// The objects of the picture: the largest first, of equal ones in the order of the report. A band
/// each, and more bands for the large ones. And how many objects there is no room for.
fn choose(report: &RecordingReport, height: usize) -> (Vec<Rows<'_>>, u64) {
    let page = report.summary.page_bytes.max(1);
    let pages = |o: &ObjectReport| {
        let told: u64 = o.residency.iter().map(|n| n.pages).fold(0, u64::saturating_add);
        o.bytes.0.saturating_add(o.address % page).div_ceil(page).max(told).max(1)
    };
    // Pages of memory that nobody knows are not counted within one object.
    let drawn = |o: &&ObjectReport| o.object.is_some() && o.is_used();
    let mut chosen: Vec<&ObjectReport> = report.objects.iter().filter(drawn).collect();
    let all = chosen.len();
    chosen.sort_by_key(|o| std::cmp::Reverse(pages(o)));
    chosen.truncate((height / 2).max(1));
    let total: u128 = chosen.iter().map(|o| u128::from(pages(o))).sum();
    let spare = height.saturating_sub(chosen.len()) as u128;
    let rows = chosen.iter().map(|object| {
        let pages = pages(object);
        let more = (spare * u128::from(pages)).checked_div(total).unwrap_or(0) as u64;
        Rows {
            object,
            pages,
            // Halves and quarters: arrays are mostly shared out so.
            bands: 1 << (1 + more).min(MOST_BANDS).min(pages).ilog2(),
            weights: BTreeMap::new(),
            moves: BTreeMap::new(),
        }
    });
    (rows.collect(), (all - chosen.len()) as u64)
}

/// Adds the residency; says whether there was any.
fn residency(
    set: &Dataset,
    timeline: &Timeline,
    binning: &Binning,
    numbers: &BTreeMap<Option<ObjectId>, usize>,
    rows: &mut [Rows<'_>],
) -> bool {
    let mut any = false;
    for run in set.rows::<Residency>() {
        any = true;
        let Some(row) = numbers.get(&run.object).and_then(|i| rows.get_mut(*i)) else { continue };
        let first = timeline.position(run.interval);
        let last = timeline.position(run.until).max(first);
        let bands: Vec<_> = row.bands(run.page, run.pages).collect();
        for (band, pages) in bands {
            let weights = row.weights.entry((band, run.home)).or_default();
            add_run(weights, binning, first, last, pages);
        }
    }
    any
}

/// Adds pages that lived from the interval `first` to the interval `last`.
fn add_run(weights: &mut Weights, binning: &Binning, first: usize, last: usize, pages: u64) {
    let (left, right) = (binning.column(first), binning.column(last));
    let pages = u128::from(pages);
    if left == right {
        weights.at(left).part += pages * (last - first + 1) as u128;
        return;
    }
    weights.at(left).part += pages * (binning.start(left + 1) - first) as u128;
    weights.at(right).part += pages * (last + 1 - binning.start(right)) as u128;
    weights.at(left + 1).step += pages as i128;
    weights.at(right).step -= pages as i128;
}

fn accesses(
    set: &Dataset,
    timeline: &Timeline,
    binning: &Binning,
    numbers: &BTreeMap<Option<ObjectId>, usize>,
    rows: &mut [Rows<'_>],
) {
    for a in set.rows::<Access>() {
        let Some(row) = numbers.get(&a.object).and_then(|i| rows.get_mut(*i)) else { continue };
        let column = binning.column(timeline.position(a.interval));
        let bands: Vec<_> = row.bands(a.page, a.pages).collect();
        for (band, pages) in bands {
            row.weights.entry((band, a.home)).or_default().at(column).part += u128::from(pages);
        }
    }
}

fn finish(row: Rows<'_>, binning: &Binning) -> MapObject {
    let bands = (0..row.bands).map(|band| {
        // By column: the weight of all homes, and the heaviest one. Homes come in their order, so
        // that of two that weigh the same the lower number counts.
        let mut all = vec![0_u128; binning.columns];
        let mut heaviest: Vec<(u128, Option<NodeId>)> = vec![(0, None); binning.columns];
        for ((_, home), weights) in row.weights.range((band, NodeId(0))..=(band, NodeId(u16::MAX))) {
            let mut pages = 0_i128;
            for column in 0..binning.columns {
                let change = weights.0.get(&column).copied().unwrap_or_default();
                pages += change.step;
                let weight = change.part + u128::try_from(pages).unwrap_or(0) * binning.width(column);
                all[column] += weight;
                if weight > heaviest[column].0 {
                    heaviest[column] = (weight, Some(*home));
                }
            }
        }
        let cells = (0..binning.columns).map(|column| {
            let (weight, home) = heaviest[column];
            let (moved, ping_pongs) = row.moves.get(&(band, column)).copied().unwrap_or_default();
            let percent = (weight * 100).checked_div(all[column]).unwrap_or(0) as u8;
            MapCell { home, percent, moved, ping_pongs }
        });
        let page = row.start(band);
        Band { page, pages: row.start(band + 1) - page, cells: cells.collect() }
    });
    MapObject {
        object: row.object.object,
        id: row.object.id.clone(),
        name: row.object.name.clone(),
        pages: row.pages,
        bands: bands.collect(),
    }
}

fn column(timeline: &Timeline, binning: &Binning, column: usize) -> MapColumn {
    let all = timeline.intervals().get(binning.start(column)..binning.start(column + 1)).unwrap_or(&[]);
    MapColumn {
        // A recording without intervals has one column, and no times.
        interval: all.first().map_or(IntervalNo(0), |i| i.interval),
        until: all.last().map_or(IntervalNo(0), |i| i.interval),
        begin_ns: all.first().map_or(Ns::ZERO, |i| i.begin_ns),
        end_ns: all.last().map_or(Ns::ZERO, |i| i.end_ns),
        iteration: all.iter().find_map(|i| i.iteration),
        timed: all.is_empty() || all.iter().any(|i| i.timed),
    }
}
