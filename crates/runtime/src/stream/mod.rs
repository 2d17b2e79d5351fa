//! The stream of a recording: records of what happens while the program runs, appended to a file.
//!
//! | part | module |
//! |---|---|
//! | The stream: records, intervals, flushing | here |
//! | Waiting records, and the frames in the file | [`frames`] |
//! | The budget of bytes | [`budget`] |
//! | Runs of pages that move together | [`runs`] |
//! | Who touched which pages first | [`firsts`] |
//! | Where the program's threads run | [`threads`] |
//!
//! # State and growth
//!
//! The stream holds at most [`frames::PENDING`] records and one frame: some 700 KiB. The file grows
//! by at most [`budget::PER_SECOND`] and [`budget::PER_PAGE`]. If it would grow by more, intervals
//! become longer, and neighbouring pages of sightings are joined. Records without room are counted,
//! and the count is written.

pub mod budget;
pub mod firsts;
pub mod frames;
pub mod runs;
pub mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sources::first_touches::PageFault;
use homenode_wire::facts::LoadedFile;
use homenode_wire::live::{
    Dropped, IntervalNo, IterationNo, LiveRecord, ObjectNo, Pages, RegionIdentity, RegionNo,
};

use crate::watch::Object;
use crate::watch::numbers::PAGE;
use crate::watch::sightings::{Sighting, Sightings};
use firsts::{FirstTouchStream, Toucher};
use frames::Frames;
pub use runs::MovedPage;
use runs::{OpenRuns, PageRun};
use threads::Threads;

/// The shortest interval.
const SHORTEST: Ns = Ns(1_000_000);
/// An interval is at least this part of the elapsed time, so that the number of intervals is
/// bounded.
const PART: u64 = 2048;
/// Length of intervals if the program's rounds are not known.
const WITHOUT_ROUNDS: Ns = Ns(50_000_000);

/// The current interval.
#[derive(Debug)]
struct Interval {
    index: u32,
    begin: Ns,
    /// Regions that ended in the interval: runs and time.
    regions: BTreeMap<u32, (u32, Ns)>,
}

/// See the module.
#[derive(Debug)]
pub struct Stream {
    frames: Frames,
    runs: OpenRuns,
    /// The wall clock when the recording began.
    started: Ns,
    interval: Interval,
    region: Option<u32>,
    known_regions: Vec<bool>,
    round_at: Option<Ns>,
    threads: Threads,
    modules: BTreeSet<(u64, String)>,
    sightings: Sightings,
    firsts: FirstTouchStream,
    /// The last written round: its start and its number.
    last_round: Option<(Ns, IterationNo)>,
}

impl Stream {
    /// A stream to a new file of this process in `folder`, at the moment `now`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(folder: &Path, now: Ns) -> Result<Self, String> {
        let path = folder.join(LiveRecord::file_name(std::process::id()));
        let mut file = OpenOptions::new();
        let file = file.append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Self::to(Frames::to_file(file, now), now))
    }

    /// A stream that keeps its bytes, for tests.
    pub fn kept(now: Ns) -> Self {
        Self::to(Frames::kept(now), now)
    }

    /// What a stream for tests has written.
    pub fn bytes(&self) -> &[u8] {
        self.frames.bytes()
    }

    fn to(frames: Frames, now: Ns) -> Self {
        Self {
            frames,
            runs: OpenRuns::default(),
            started: now,
            interval: Interval { index: 0, begin: Ns::ZERO, regions: BTreeMap::new() },
            region: None,
            known_regions: Vec::new(),
            round_at: None,
            threads: Threads::default(),
            modules: BTreeSet::new(),
            sightings: Sightings::default(),
            firsts: FirstTouchStream::default(),
            last_round: None,
        }
    }

    /// The recording's time at `now`.
    const fn time(&self, now: Ns) -> Ns {
        Ns(now.0.saturating_sub(self.started.0))
    }

    /// Adds a record as it is.
    pub fn put(&mut self, record: LiveRecord) {
        self.frames.put(record);
    }

    /// The object's number; the first time its record is written.
    fn number(&mut self, object: &mut Object) -> ObjectNo {
        let number = ObjectNo(object.id.0);
        if !std::mem::replace(&mut object.is_recorded, true) {
            self.frames.room.add_pages(object.pages.count);
            self.put(LiveRecord::Object {
                number,
                origin: object.origin.clone(),
                address: object.address as u64,
                bytes: homenode_model::Bytes(object.bytes as u64),
                birth: self.time(object.born),
                python: object.python.as_deref().map(homenode_wire::bounded::line),
            });
        }
        number
    }

    /// The object has died.
    pub fn gone(&mut self, object: &Object, now: Ns) {
        if object.is_recorded {
            self.end_runs();
            self.firsts.gone(ObjectNo(object.id.0));
            self.put(LiveRecord::ObjectGone { number: ObjectNo(object.id.0), death: self.time(now) });
        }
    }

    /// Page `index` of the object's whole pages moved, or should have moved.
    pub fn moved(&mut self, object: &mut Object, index: u64, moved: MovedPage, now: Ns) {
        let number = self.number(object);
        let page = page_of(object, index);
        let run = PageRun { object: number, time: self.time(now), region: self.region.map(RegionNo), moved };
        // The record of the page's home comes before the record of its move.
        if self.runs.home_covers(number, page) {
            self.end_home();
        }
        if let Some((run, pages)) = self.runs.moved(run, page) {
            self.put_move(run, pages);
        }
    }

    fn put_move(&mut self, run: PageRun, pages: Pages) {
        let PageRun { object, time, region, moved } = run;
        let MovedPage { from, to, cause, cost, outcome } = moved;
        let cost = cost.map(|c| c.times(u64::from(pages.count)));
        self.put(LiveRecord::Migration { time, object, pages, from, to, cause, region, cost, outcome });
    }

    /// Page `index` of the object's whole pages was at `node` at the first look.
    pub fn home(&mut self, object: &mut Object, index: u64, node: NodeId) {
        let number = self.number(object);
        let page = page_of(object, index);
        if self.runs.move_covers(number, page) {
            self.end_moved();
        }
        if let Some((object, node, pages)) = self.runs.home((number, node), page) {
            self.put_home(object, node, pages);
        }
    }

    fn put_home(&mut self, object: ObjectNo, node: NodeId, pages: Pages) {
        let interval = IntervalNo(self.interval.index);
        self.put(LiveRecord::Home { interval, object, pages, node: Some(node) });
    }

    fn end_runs(&mut self) {
        self.end_moved();
        self.end_home();
    }

    fn end_moved(&mut self) {
        if let Some((run, pages)) = self.runs.take_moved() {
            self.put_move(run, pages);
        }
    }

    fn end_home(&mut self) {
        if let Some((object, node, pages)) = self.runs.take_home() {
            self.put_home(object, node, pages);
        }
    }

    /// The guard sampled page `index` of the object's whole pages.
    pub fn sample(
        &mut self,
        object: &mut Object,
        index: u64,
        seen: (NodeId, NodeId),
        held_back: bool,
        now: Ns,
    ) {
        let number = self.number(object);
        let (node, home) = seen;
        let (time, page) = (self.time(now), page_of(object, index));
        self.put(LiveRecord::Sample { time, object: number, page, held_back, node, home });
    }

    /// A node was seen at page `index` of the object's whole pages, with this home.
    pub fn saw(
        &mut self,
        object: &mut Object,
        index: u64,
        (node, home): (NodeId, NodeId),
        kind: Option<AccessKind>,
    ) {
        let (object, page) = (self.number(object).0, page_of(object, index));
        self.sightings.add(Sighting { object, page, region: self.region, home, node, kind });
    }

    /// A fault told the first touch of a page, counted from the page with the object's first byte.
    /// A later fault of the page is none.
    pub fn touched_first(&mut self, object: &mut Object, page: u32, fault: &PageFault) {
        let number = ObjectNo(object.id.0);
        if self.firsts.knows(number, page) {
            return;
        }
        let number = self.number(object);
        let time = self.time(fault.time);
        let thread = self.threads.number(fault.thread, fault.cpu, time);
        let toucher = Toucher { thread, node: fault.node, pc: fault.pc };
        if let Some(record) = self.firsts.add(number, page, toucher, time) {
            self.put(record);
        }
    }

    /// These were all first touches so far. A reader gets them before the pages' homes.
    pub fn end_first_touches(&mut self) {
        for run in self.firsts.take_runs() {
            self.put(run.record());
        }
    }

    /// Sightings that were lost for lack of room.
    pub const fn sightings_lost(&self) -> u64 {
        self.sightings.lost()
    }

    /// Bytes of memory for the stream, about.
    pub fn state_bytes(&self) -> usize {
        self.sightings.bytes() + self.firsts.bytes() + self.frames.state_bytes()
    }

    /// Writes a row of sightings in the interval. The row stands for `pages` pages.
    fn put_seen(&mut self, row: Sighting, told: u32, pages: u32) {
        self.put(LiveRecord::Seen {
            interval: IntervalNo(self.interval.index),
            region: row.region.map(RegionNo),
            object: ObjectNo(row.object),
            pages: Pages { first: row.page, count: pages },
            node: row.node,
            home: row.home,
            kind: row.kind,
            told,
        });
    }

    /// Writes the loaded files, except those that are known already.
    pub fn know_modules(&mut self, modules: &[LoadedFile]) {
        for module in modules {
            if self.modules.insert((module.base, module.path.clone())) {
                self.put(LiveRecord::Module(module.clone()));
            }
        }
    }

    /// A region begins.
    pub fn region_begins(&mut self, region: u32, function: u64, caller: u64) {
        let i = region as usize;
        if self.known_regions.len() <= i {
            self.known_regions.resize(i + 1, false);
        }
        if !std::mem::replace(&mut self.known_regions[i], true) {
            self.put(LiveRecord::Region {
                number: RegionNo(region),
                key: RegionIdentity { function, caller },
            });
        }
        self.end_runs();
        self.region = Some(region);
    }

    /// The region has ended, after `took`.
    pub fn region_ends(&mut self, took: Ns) {
        self.end_runs();
        let Some(region) = self.region.take() else { return };
        let (runs, time) = self.interval.regions.entry(region).or_default();
        *runs = runs.saturating_add(1);
        *time += took;
    }

    /// A round of the iteration has ended, and the next begins.
    pub fn round(&mut self, number: u64, told: bool, now: Ns) {
        let end = self.time(now);
        let Some(begin) = self.round_at.replace(end) else { return };
        if end.0 - begin.0 < SHORTEST.0 {
            // Rounds that are shorter than an interval are joined, too.
            self.frames.leave_out(Dropped::Intervals, 1);
            return;
        }
        let number = IterationNo(u32::try_from(number.saturating_sub(1)).unwrap_or(u32::MAX));
        self.last_round = Some((begin, number));
        self.put(LiveRecord::Iteration { number, begin, end, told });
    }

    /// Another loop than before is the iteration now.
    pub const fn new_level(&mut self) {
        self.round_at = None;
    }

    /// Whether the interval is long enough to end now. It ends with a round, or with a region if
    /// the program's rounds are not known.
    pub fn is_interval_due(&self, now: Ns, round_ends: bool) -> bool {
        let time = self.time(now);
        let shortest = if round_ends { SHORTEST } else { WITHOUT_ROUNDS };
        let least = shortest.0.max(time.0 / PART) << self.frames.room.doublings();
        let knows_rounds = self.round_at.is_some_and(|at| time.0 - at.0 < least.saturating_mul(4));
        (round_ends || !knows_rounds) && time.0.saturating_sub(self.interval.begin.0) >= least
    }

    /// Whether records have waited long enough.
    pub fn is_flush_due(&self, now: Ns) -> bool {
        self.frames.is_flush_due(now)
    }

    /// Ends the interval. Its sightings have been added before. `own` and `cpu`: CPU time of
    /// homenode and of the process until now.
    pub fn end_interval(&mut self, own: Ns, cpu: Ns, now: Ns) {
        self.end_runs();
        let end = self.time(now);
        let index = IntervalNo(self.interval.index);
        self.frames.room.reach(end);
        let (rows, pages) = self.sightings.take(self.frames.room.rows_of_seen(self.frames.waiting()));
        rows.into_iter().for_each(|(row, told)| self.put_seen(row, told, pages));
        for (region, (runs, time)) in std::mem::take(&mut self.interval.regions) {
            self.put(LiveRecord::RegionTime { interval: index, region: RegionNo(region), runs, time });
        }
        for stay in self.threads.look(end) {
            self.put(stay);
        }
        self.put(LiveRecord::Own { time: end, own, cpu });
        // An interval that several rounds share belongs to none.
        let iteration = self.last_round.filter(|(begin, _)| *begin == self.interval.begin).map(|(_, n)| n);
        self.put(LiveRecord::Interval { index, begin: self.interval.begin, end, iteration });
        self.interval.index += 1;
        self.interval.begin = end;
    }

    /// Sets the nodes of CPUs, for telling where threads run.
    pub fn know_cpus(&mut self, node_of: Vec<Option<NodeId>>) {
        self.threads.know(node_of);
    }

    /// Writes the waiting records.
    pub fn flush(&mut self, now: Ns) {
        self.end_runs();
        self.frames.flush(now);
        self.frames.room.time_is(self.time(now));
    }

    /// The recording ends.
    pub fn end(&mut self, whole: bool, now: Ns) {
        self.end_runs();
        for stay in self.threads.end(self.time(now)) {
            self.put(stay);
        }
        // Records that find no room now are counted below.
        self.frames.write();
        self.frames.put_left_out();
        self.put(LiveRecord::End { whole });
        self.flush(now);
    }
}

/// Number of the whole page `index`, counted from the page with the object's first byte.
fn page_of(object: &Object, index: u64) -> u32 {
    let first = u64::from(!object.address.is_multiple_of(PAGE));
    u32::try_from(first + index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
