//! One pass over the tables fills all pictures.

use std::collections::BTreeMap;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{
    Access, FirstTouch, IntervalNo, Iteration, Link, Migration, MigrationOutcome, OwnCost, Region, Residency,
};
use homenode_model::ObjectId;
use homenode_report::objects::ObjectReport;
use homenode_report::summary::Scope;
use homenode_report::time::Timeline;
use homenode_report::{RecordingReport, Unit};
use homenode_statistics::Sorted;

use super::axis::{Bands, Columns};
use super::grid::{Finished, Grid, GridLevel};
use super::nodes::RecordedNodes;
use super::pyramid::write::{BUFFERED, PyramidRun};
use super::pyramid::{Pyramid, PyramidError, PyramidWriter, Recipe};
use super::{moves, rounds, traffic};
use crate::model::{FirstTouchRun, LinkModel, ObjectModel, PageModel, RegionModel, TimeModel};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PyramidBudget {
    /// Numbers of all grids together, of which each takes 16 bytes: cells times nodes.
    pub numbers: usize,
    /// Columns of time.
    pub columns: usize,
    /// Bands of pages of all objects together, but one an object at least.
    pub bands: usize,
    /// Objects with a picture of their own.
    pub objects: usize,
    /// Moves that are told one by one.
    pub moves: usize,
    /// Runs of first touches that are told, of all objects together.
    pub touches: usize,
}

impl PyramidBudget {
    /// For a page in one file.
    pub const FILE: Self =
        Self { numbers: 1 << 21, columns: 384, bands: 6000, objects: 200, moves: 10_000, touches: 4000 };
    /// This, for each of two recordings on one page.
    #[must_use]
    pub const fn halved(self) -> Self {
        Self {
            numbers: self.numbers / 2,
            bands: self.bands / 2,
            objects: self.objects / 2,
            moves: self.moves / 2,
            touches: self.touches / 2,
            ..self
        }
    }

    /// For a page from a server.
    pub const SERVER: Self =
        Self { numbers: 3 << 20, columns: 768, bands: 16_000, objects: 500, moves: 40_000, touches: 20_000 };
}

/// Most rows of small tables: links and regions.
const MOST_ROWS: usize = 4096;
/// Most iterations that are told one by one.
const MOST_ROUNDS: usize = 2000;
/// Most nodes, routes and reasons of one object. Its sums still tell of all.
const MOST_OF_OBJECT: usize = 16;

/// Pages of an object: by its size, and at least those that were seen.
pub fn pages(object: &ObjectReport, page_bytes: u64) -> u64 {
    let page = page_bytes.max(1);
    let told = object.residency.iter().map(|n| n.pages).fold(0, u64::saturating_add);
    object.bytes.0.saturating_add(object.address % page).div_ceil(page).max(told).max(1)
}

/// What a share of the object's accesses counts: accesses, or sightings of presence.
pub(crate) fn weight(unit: Unit, seen: u64, count: u64) -> u64 {
    if unit == Unit::Sightings { seen } else { count }
}

/// How many bands each object may have: in proportion to the square root of its pages, so that a
/// small object beside a large one has some, too.
fn shares(pages: &[u64], bands: u64) -> Vec<u64> {
    let roots: Vec<u64> = pages.iter().map(|p| p.isqrt().max(1)).collect();
    let all: u128 = roots.iter().map(|r| u128::from(*r)).sum();
    roots.iter().map(|r| (u128::from(bands) * u128::from(*r) / all.max(1)).max(1) as u64).collect()
}

/// Numbers of intervals as positions, quickly for rows of one interval that follow each other.
pub(crate) struct Positions<'a> {
    timeline: &'a Timeline,
    last: Option<(IntervalNo, usize)>,
}

impl<'a> Positions<'a> {
    pub(crate) const fn new(timeline: &'a Timeline) -> Self {
        Self { timeline, last: None }
    }

    pub(crate) fn of(&mut self, number: IntervalNo) -> usize {
        match self.last {
            Some((known, at)) if known == number => at,
            _ => self.last.insert((number, self.timeline.position(number))).1,
        }
    }
}

/// Begins the pyramid of a recording.
pub type Begin<'a> = &'a mut dyn FnMut(Recipe) -> Result<PyramidWriter, PyramidError>;

/// Reads a data set. `report` is the report of the same data set; `more` gets the number of rows
/// that were read, and says whether to go on.
pub fn build(
    set: &Dataset,
    report: &RecordingReport,
    budget: PyramidBudget,
    more: &mut dyn FnMut(u64) -> bool,
) -> PageModel {
    let mut none = |_| Err(PyramidError::Damaged("nobody asks for one"));
    build_with(set, report, budget, &mut none, more).0
}

/// As [`build`], and fills a pyramid in the same pass.
pub fn build_with(
    set: &Dataset,
    report: &RecordingReport,
    budget: PyramidBudget,
    begin: Begin<'_>,
    more: &mut dyn FnMut(u64) -> bool,
) -> (PageModel, Result<PyramidWriter, PyramidError>) {
    let timeline = Timeline::of(set);
    let nodes = RecordedNodes::of(set, report);
    let intervals = timeline.intervals().len().max(1);
    let columns = Columns::of(0, intervals, budget.columns);
    let cells = (budget.numbers / nodes.count()).max(1);

    let drawn = |o: &&ObjectReport| o.object.is_some() && o.is_used();
    let used = report.objects.iter().filter(drawn).count();
    // Each object takes a row of cells at least.
    let room = budget.objects.min(cells / columns.count()).max(1);
    let page_bytes = report.summary.page_bytes;
    let chosen: Vec<&ObjectReport> = report.objects.iter().filter(drawn).take(room).collect();
    let sizes: Vec<u64> = chosen.iter().map(|o| pages(o, page_bytes)).collect();
    let bands = shares(&sizes, (cells / columns.count()).clamp(1, budget.bands.max(1)) as u64);
    let grid = |(size, most): (&u64, u64)| {
        let bands = Bands { open: true, ..Bands::of(0, *size, most) };
        Grid::new(bands, columns, nodes.count())
    };
    let grids: Vec<Grid> = sizes.iter().zip(bands).map(grid).collect();
    let places: BTreeMap<Option<ObjectId>, usize> =
        chosen.iter().enumerate().map(|(i, o)| (o.object, i)).collect();

    let objects = chosen.iter().zip(&sizes).filter_map(|(o, pages)| Some((o.object?, *pages))).collect();
    let grain = grain(set, |o| places.contains_key(&o));
    let pyramid = begin(Recipe { objects, intervals, nodes: nodes.count(), grain, buffered: BUFFERED });
    let units = chosen.iter().map(|o| o.remote.of).collect();
    let mut pictures = Pictures { timeline: &timeline, nodes: &nodes, places, units, grids, pyramid };
    let everything = report.summary.scope == Scope::Everything;
    let mut moves = moves::Gathering::new(columns, budget.moves);
    let mut traffic = traffic::Gathering::new(intervals, chosen.len(), nodes.count());
    let mut reader = Reader { more, stopped: false, rows: 0 };
    pictures.read(set, &mut reader, &mut moves, &mut traffic, everything);
    let Pictures { places, grids, pyramid, .. } = pictures;
    let stopped = reader.stopped;
    let timed: Vec<bool> = timeline.intervals().iter().map(|i| everything || i.timed).collect();
    let mut touches = first_touches(set, &places, &nodes, budget.touches);
    let finished: Vec<Finished> = grids.into_iter().map(|g| g.finish(&timed)).collect();
    let own_cost: Vec<OwnCost> = set.rows::<OwnCost>().collect();
    let rounds = rounds::GroupedRounds::of(set.rows::<Iteration>().collect(), &own_cost, MOST_ROUNDS);
    let objects = chosen.iter().copied().zip(sizes).zip(finished).enumerate();
    let object = |(place, ((object, pages), finished))| {
        object_model(object, pages, finished, touches.remove(&place).unwrap_or_default())
    };
    let model = PageModel {
        schema: "homenode/view/1",
        homenode: set.meta().homenode.clone(),
        basis: set.meta().basis.clone(),
        label: String::new(),
        answer: Vec::new(),
        findings: None,
        sources: Vec::new(),
        against: None,
        pairs: Vec::new(),
        changes: Vec::new(),
        nodes: nodes.listed().iter().map(|n| n.0).collect(),
        links: links(set),
        time: TimeModel::of(&timeline, columns),
        regions: regions(set),
        rounds,
        traffic: traffic.finish(),
        moves: moves.finish(),
        objects_without_picture: (used - chosen.len()) as u64,
        objects_in_all: report.objects.len() as u64,
        others: others(report, &chosen, budget.objects),
        summary: report.summary.clone(),
        moved: report.moves.clone().map(trimmed_moves),
        objects: objects.map(object).collect(),
        levels_left_out: 0,
        stopped,
        one_in: None,
    };
    (model, pyramid)
}

/// The pictures of the chosen objects, while rows are read.
struct Pictures<'a> {
    timeline: &'a Timeline,
    nodes: &'a RecordedNodes,
    /// Where an object's picture is in the lists.
    places: BTreeMap<Option<ObjectId>, usize>,
    units: Vec<Unit>,
    grids: Vec<Grid>,
    pyramid: Result<PyramidWriter, PyramidError>,
}

impl Pictures<'_> {
    /// Reads homes, moves and accesses. Traffic is that of the timed part, or of everything.
    fn read(
        &mut self,
        set: &Dataset,
        reader: &mut Reader<'_>,
        moves: &mut moves::Gathering,
        traffic: &mut traffic::Gathering,
        everything: bool,
    ) {
        for run in reader.rows(set.rows::<Residency>()) {
            self.lives(&run);
        }
        let mut positions = Positions::new(self.timeline);
        for m in reader.rows(set.rows::<Migration>()) {
            let at = positions.of(m.interval);
            moves.add(&m, at, self.nodes);
            self.moved(&m, at);
        }
        for a in reader.rows(set.rows::<Access>()) {
            let at = positions.of(a.interval);
            let place = self.touched(&a, at);
            if everything || self.timeline.is_timed(a.interval) {
                let (node, home) = (self.nodes.index(a.node), self.nodes.index(a.home));
                let place = place.map_or(0, |p| p as u32 + 1);
                traffic.add(place, a.region.map_or(0, |r| r.0.saturating_add(1)), at, node, home, a.tally);
            }
        }
    }

    /// Pages were at home on a node for some intervals.
    fn lives(&mut self, run: &Residency) {
        let Some(place) = self.places.get(&run.object).copied() else { return };
        let first = self.timeline.position(run.interval);
        let last = self.timeline.position(run.until).max(first);
        let home = self.nodes.index(run.home);
        self.grids[place].lives(run.page, run.pages, first, last, home);
        if let Ok(pyramid) = &mut self.pyramid {
            pyramid.lives(PyramidRun { object: place, page: run.page, pages: run.pages }, first, last, home);
        }
    }

    /// Pages moved in the interval at `at`.
    fn moved(&mut self, m: &Migration, at: usize) {
        let Some(place) = self.places.get(&m.object).copied() else { return };
        if m.outcome == MigrationOutcome::Refused {
            return;
        }
        let back = if m.outcome == MigrationOutcome::PingPong { m.pages } else { 0 };
        self.grids[place].moved((m.page, m.pages), at, m.pages, back);
        if let Ok(pyramid) = &mut self.pyramid {
            pyramid.moved(PyramidRun { object: place, page: m.page, pages: m.pages }, at, back > 0);
        }
    }

    /// Pages were used in the interval at `at`. Returns where the object's picture is.
    fn touched(&mut self, a: &Access, at: usize) -> Option<usize> {
        let place = self.places.get(&a.object).copied()?;
        let (node, home) = (self.nodes.index(a.node), self.nodes.index(a.home));
        let count = a.tally.count().map_or(0, |c| c.parts().0);
        let weight = weight(self.units[place], a.tally.seen(), count);
        let remote = if node == home { 0 } else { weight };
        self.grids[place].touched((a.page, a.pages), at, node, weight, remote);
        if let Ok(pyramid) = &mut self.pyramid {
            let run = PyramidRun { object: place, page: a.page, pages: a.pages };
            pyramid.touched(run, at, node, weight, remote > 0);
        }
        Some(place)
    }
}

fn object_model(
    object: &ObjectReport,
    pages: u64,
    finished: Finished,
    (touches, touches_left_out): (Vec<FirstTouchRun>, u64),
) -> ObjectModel {
    ObjectModel {
        report: trimmed(object),
        pages,
        profile_shift: finished.levels.first().map_or(0, |l| l.page_shift),
        levels: finished.levels,
        profile: finished.profile,
        touches,
        touches_left_out,
    }
}

/// Rows by which the grain is judged.
const SAMPLE: usize = 1 << 14;

/// Pages of a usual row of accesses, of the objects that are wanted.
pub(crate) fn grain(set: &Dataset, wanted: impl Fn(Option<ObjectId>) -> bool) -> u64 {
    let rows = set.rows::<Access>().take(SAMPLE).filter(|a| wanted(a.object));
    Sorted::of(rows.map(|a| a.pages).collect::<Vec<u64>>()).upper_median().unwrap_or(1)
}

/// Rows while somebody may ask to stop.
struct Reader<'a> {
    more: &'a mut dyn FnMut(u64) -> bool,
    stopped: bool,
    rows: u64,
}

impl Reader<'_> {
    /// The rows, until somebody asks to stop.
    fn rows<T>(&mut self, rows: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        rows.take_while(move |_| {
            self.rows += 1;
            if self.rows.is_multiple_of(1 << 16) {
                self.stopped |= !(self.more)(self.rows);
            }
            !self.stopped
        })
    }
}

/// Objects without a picture: known to the tables alone.
fn others(report: &RecordingReport, chosen: &[&ObjectReport], most: usize) -> Vec<ObjectReport> {
    let has_picture = |o: &ObjectReport| chosen.iter().any(|c| c.object == o.object);
    report.objects.iter().filter(|o| !has_picture(o)).take(most).map(trimmed).collect()
}

fn trimmed(object: &ObjectReport) -> ObjectReport {
    let mut object = object.clone();
    clip(&mut object.id);
    clip(&mut object.name);
    let texts = [&mut object.element_type, &mut object.file, &mut object.function];
    texts.into_iter().flatten().for_each(clip);
    object.first_touch.iter_mut().flat_map(|t| [&mut t.file, &mut t.function]).flatten().for_each(clip);
    object.used_by.truncate(MOST_OF_OBJECT);
    object.accessed_on.truncate(MOST_OF_OBJECT);
    object.residency.truncate(MOST_OF_OBJECT);
    object.first_touch.truncate(MOST_OF_OBJECT);
    object.moves = object.moves.map(trimmed_moves);
    object
}

/// Most characters of a text of an object.
const MOST_TEXT: usize = 2000;

/// Cuts a text that no screen shows.
fn clip(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(MOST_TEXT) {
        text.truncate(at);
        text.push('…');
    }
}

fn trimmed_moves(mut moves: homenode_report::moves::MoveSummary) -> homenode_report::moves::MoveSummary {
    moves.routes.truncate(MOST_OF_OBJECT);
    moves.reasons.truncate(MOST_OF_OBJECT);
    moves
}

fn links(set: &Dataset) -> Vec<LinkModel> {
    set.rows::<Link>().take(MOST_ROWS).map(|l| LinkModel::of(&l)).collect()
}

fn regions(set: &Dataset) -> Vec<RegionModel> {
    set.rows::<Region>().take(MOST_ROWS).map(|r| RegionModel::of(&r)).collect()
}

/// First touches by the object's place, and how many runs of pages there was no room for.
type Touches = BTreeMap<usize, (Vec<FirstTouchRun>, u64)>;

fn first_touches(
    set: &Dataset,
    places: &BTreeMap<Option<ObjectId>, usize>,
    nodes: &RecordedNodes,
    most: usize,
) -> Touches {
    let mut all = Touches::new();
    let each = (most / places.len().max(1)).max(4);
    for touch in set.rows::<FirstTouch>() {
        let Some(place) = places.get(&Some(touch.object)) else { continue };
        let (kept, left) = all.entry(*place).or_default();
        let touch = FirstTouchRun::of(&touch, nodes);
        let room = kept.len() < each;
        match kept.last_mut().filter(|last| last.goes_on(&touch)) {
            Some(last) => last.pages += touch.pages,
            None if room => kept.push(touch),
            None => *left += 1,
        }
    }
    all
}

/// A finer picture of a part of one object: `pages` from `page` on, `intervals` from the position
/// `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// The object.
    pub object: ObjectId,
    /// First page.
    pub page: u64,
    /// How many.
    pub pages: u64,
    /// Position of the first interval.
    pub first: usize,
    /// How many.
    pub intervals: usize,
}

/// Most bands and most columns of a finer picture.
const FINER: usize = 512;
/// Most numbers of a finer picture, of which each takes 16 bytes: cells times nodes.
const FINER_NUMBERS: usize = 1 << 21;

/// A finer picture, and its columns' times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finer {
    /// The picture, at the finest level alone.
    pub levels: Vec<GridLevel>,
    /// When each column began.
    pub begin_ns: Vec<u64>,
    /// When the last one ended.
    pub end_ns: u64,
}

impl Finer {
    /// The picture in bytes: the length of a JSON text (four bytes, the lowest first), the text,
    /// and the planes one after the other. In the text, a plane is the number of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut planes = Vec::new();
        let levels: Vec<serde_json::Value> = self.levels.iter().map(|l| l.with_planes(&mut planes)).collect();
        let head = serde_json::json!({ "levels": levels, "begin_ns": self.begin_ns, "end_ns": self.end_ns });
        let head = head.to_string();
        let mut out = (head.len() as u32).to_le_bytes().to_vec();
        out.extend(head.as_bytes());
        out.extend(planes);
        out
    }
}

/// The empty grid of a window. Its cells begin at multiples of their size.
fn grid(timeline: &Timeline, nodes: &RecordedNodes, window: Window) -> Grid {
    let intervals = timeline.intervals().len().max(1);
    let first = window.first.min(intervals - 1);
    let side = (FINER_NUMBERS / nodes.count()).isqrt().clamp(1, FINER);
    let columns = Columns::of(first, window.intervals.clamp(1, intervals - first), side);
    let bands = Bands::of(window.page, window.pages, side as u64);
    let (shift, end) = (columns.shift, first + columns.intervals);
    let first = first >> shift << shift;
    let end = end.div_ceil(1 << shift).saturating_mul(1 << shift).min(intervals);
    let columns = Columns { first, intervals: end - first, shift };
    let (shift, end) = (bands.shift, bands.first.saturating_add(bands.pages));
    let first = bands.first >> shift << shift;
    let end = end.div_ceil(1 << shift).saturating_mul(1 << shift);
    let bands = Bands { first, pages: end - first, shift, open: false };
    Grid::new(bands, columns, nodes.count())
}

/// Draws a window of one object finer than the model has it: from a pyramid, or from the tables
/// where there is none or it is damaged.
pub fn finer(
    set: &Dataset,
    timeline: &Timeline,
    nodes: &RecordedNodes,
    unit: Unit,
    window: Window,
    pyramid: Option<&Pyramid>,
) -> Finer {
    let mut drawn = grid(timeline, nodes, window);
    let object = window.object;
    let filled = pyramid.filter(|p| p.has(object)).is_some_and(|p| match p.fill(&mut drawn, object) {
        Ok(()) => true,
        Err(_) => {
            drawn = grid(timeline, nodes, window);
            false
        }
    });
    if !filled {
        fill(&mut drawn, set, timeline, nodes, unit, object);
    }
    let TimeModel { begin_ns, end_ns, .. } = TimeModel::of(timeline, drawn.columns);
    let mut level = drawn.finish_finest();
    // Bands are whole, the object's last one may not be.
    let end = window.page.saturating_add(window.pages.max(1));
    level.pages = level.pages.min(end.saturating_sub(level.first_page)).max(1);
    Finer { levels: vec![level], begin_ns, end_ns }
}

/// Adds the rows of an object to a grid.
fn fill(
    grid: &mut Grid,
    set: &Dataset,
    timeline: &Timeline,
    nodes: &RecordedNodes,
    unit: Unit,
    object: ObjectId,
) {
    let object = Some(object);
    for run in set.rows::<Residency>().filter(|r| r.object == object) {
        let first = timeline.position(run.interval);
        let last = timeline.position(run.until).max(first);
        grid.lives(run.page, run.pages, first, last, nodes.index(run.home));
    }
    for m in set.rows::<Migration>().filter(|m| m.object == object && m.outcome != MigrationOutcome::Refused)
    {
        let back = if m.outcome == MigrationOutcome::PingPong { m.pages } else { 0 };
        grid.moved((m.page, m.pages), timeline.position(m.interval), m.pages, back);
    }
    let mut positions = Positions::new(timeline);
    for a in set.rows::<Access>().filter(|a| a.object == object) {
        let at = positions.of(a.interval);
        let weight = weight(unit, a.tally.seen(), a.tally.count().map_or(0, |c| c.parts().0));
        let remote = if a.node == a.home { 0 } else { weight };
        grid.touched((a.page, a.pages), at, nodes.index(a.node), weight, remote);
    }
}
