//! What a simulation did, to which page and when: for whoever wants more than sums.
//!
//! # Problem
//! Stage 3 serves each access once and forgets it. A data set wants to know for each interval and
//! region which node accessed which page at which home, where pages lived, and each move; within
//! memory that does not grow with the length of the run.
//!
//! # Approach
//! A [`Collector`] is told by stage 3 of each access that a CPU waited for data for
//! ([`Counts::ACCESSES`](crate::memory::Counts::ACCESSES)), each fault, home, move, allocation and
//! mark. It counts into a row a page ([`cells`]) and moves the rows to the interval's cells when
//! the region, the interval or a page's home changes.
//!
//! *Intervals*: one an iteration, one before the first and one after the last. A program without
//! iterations has up to [`MOST_INTERVALS`] of equal length: whenever there are more, two become
//! one.
//!
//! # Bounds
//! [`Collect::budget`] bounds what grows with time: half of it is for cells, a quarter each for
//! moves and stays. What is exceeded is coarsened, and [`Coarsened`] says so.
//!
//! 1. Cells: blocks of 16 pages, then of 512, then intervals that are twice as long, again and
//!    again. A block lies within one object and begins at a multiple of its length there.
//! 2. Stays: longer intervals.
//! 3. Moves: neighbours that one thread moves in one interval are one. If these are still too many,
//!    further ones are counted and not listed.
//!
//! Beside that a page that was ever touched costs 36 bytes, 8 more for 64 nodes each, and 8 a node.
//!
//! # Properties
//! - The sum over the cells of all timed intervals is
//!   [`Outcome::timed_counts`](crate::memory::Outcome), whatever was coarsened.
//! - Nothing depends on the number of workers or on how the memory stream is cut.

pub mod cells;
pub mod extents;
pub mod homes;
pub mod moves;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use homenode_model::{AccessKind, Bytes, NodeId, ObjectId, PageNo, PageRange, Ps, ThreadId};

pub use cells::{CountCell, NO_REGION, NOBODYS};
pub use extents::{Extent, Extents, Life};
pub use homes::{PageFirstTouch, Stay};
pub use moves::{Move, MoveCause};

use cells::{Cells, Fresh};
use homenode_order::step::ByteRange;
use homes::Homes;
use moves::Moves;

/// Intervals that a program without iterations has at most.
pub const MOST_INTERVALS: u32 = 64;
/// Fewer intervals than these are not made fewer still.
const LEAST_INTERVALS: usize = 4;
/// Length of the first interval of a program without iterations.
const SHORTEST: Ps = Ps(1 << 20);
/// Pages of a block, from fine to coarse.
const BLOCKS: [u64; 3] = [1, 16, 512];

/// Whether and how to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collect {
    /// Most memory of what grows with time.
    pub budget: Bytes,
}

impl Default for Collect {
    fn default() -> Self {
        Self { budget: Bytes::mib(256) }
    }
}

/// An interval of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// When it began.
    pub begin: Ps,
    /// When it ended.
    pub end: Ps,
    /// The iteration that it is; `None` outside of iterations, and where it is several.
    pub iteration: Option<u32>,
    /// Whether results count it.
    pub timed: bool,
    /// What accesses did in it.
    pub cells: Cells,
    /// Regions that ended in it: how often, and for how long they ran.
    pub regions: BTreeMap<u32, (u64, Ps)>,
    /// Iterations that it has.
    rounds: u32,
}

impl Interval {
    fn absorb(&mut self, mut other: Self) {
        self.cells.extend(other.cells.take());
        if self.cells.is_due() {
            self.cells.add_up();
        }
        for (region, (runs, time)) in other.regions {
            let all = self.regions.entry(region).or_default();
            *all = (all.0 + runs, all.1 + time);
        }
        self.rounds += other.rounds;
    }
}

/// What was coarsened, and what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarsened {
    /// Pages of a block.
    pub block: u64,
    /// Iterations of an interval; 0: the program has none.
    pub rounds: u32,
    /// Equal intervals that there may be.
    pub intervals: u32,
    /// Neighbours that one thread moved in one interval are one move.
    pub moves: bool,
    /// Moves of single pages that are not listed.
    pub lost_moves: u64,
}

/// What was collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// In order.
    pub intervals: Vec<Interval>,
    /// Stays by page; their intervals are those above.
    pub stays: Vec<Stay>,
    /// First touches by page.
    pub firsts: Vec<(u32, PageFirstTouch)>,
    /// Moves by time.
    pub moves: Moves,
    /// Which page belongs to which object.
    pub extents: Extents,
    /// What was coarsened.
    pub coarsened: Coarsened,
    /// By number of iteration marks that came before: the interval.
    after: Vec<u32>,
    /// Length of equal intervals, if they are that.
    equal: Option<Ps>,
}

impl Collected {
    /// The interval that a move lies in.
    pub fn interval_of(&self, a_move: &Move) -> u32 {
        let last = self.intervals.len().saturating_sub(1) as u32;
        match self.equal {
            Some(length) => u32::try_from(a_move.at.0 / length.0).unwrap_or(last).min(last),
            None => self.after.get(a_move.marks as usize).copied().unwrap_or(last),
        }
    }
}

/// How the run is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    /// There was no mark yet: intervals of this length.
    Equal { length: u64 },
    /// Intervals of this number of iterations.
    Rounds { each: u32 },
}

/// See the module.
#[derive(Debug)]
pub struct Collector {
    budget: u64,
    division: Division,
    /// Equal intervals that there may be.
    most: u32,
    /// Pages of a block.
    block: u64,
    /// Intervals that are over; with marks, the first is what came before.
    done: Vec<Interval>,
    /// Their cells' memory.
    done_bytes: u64,
    /// The interval under way; with marks, what came since the last one.
    piece: Interval,
    /// When an equal interval ends.
    ends: u64,
    /// Marks so far.
    marks: u32,
    region: u32,
    /// Regions that run, the latest last.
    open: Vec<(ThreadId, u32)>,
    fresh: Fresh,
    homes: Homes,
    moves: Moves,
    extents: Extents,
}

impl Collector {
    pub(crate) fn new(nodes: usize, page: Bytes, how: &Collect) -> Self {
        Self {
            budget: how.budget.0,
            division: Division::Equal { length: SHORTEST.0 },
            most: MOST_INTERVALS,
            block: BLOCKS[0],
            done: Vec::new(),
            done_bytes: 0,
            piece: Interval::default(),
            ends: SHORTEST.0,
            marks: 0,
            region: NO_REGION,
            open: Vec::new(),
            fresh: Fresh::new(nodes),
            homes: Homes::new(nodes, page),
            moves: Moves::default(),
            extents: Extents::new(page),
        }
    }

    /// Number of the interval under way, for [`Homes`]: by marks, or by place.
    fn now(&self) -> u32 {
        match self.division {
            Division::Equal { .. } => self.done.len() as u32,
            Division::Rounds { .. } => self.marks,
        }
    }

    /// An access that a CPU waited for data for, served by the memory of `home`.
    #[inline]
    pub(crate) fn served(&mut self, now: u64, page: PageNo, node: NodeId, home: NodeId, kind: AccessKind) {
        if now >= self.ends {
            self.pass_ends(now);
        }
        if !self.fresh.note(page, node, home, kind) {
            self.turn(page, node, home, kind);
        }
    }

    /// The page's row is another home's, or it is full.
    #[cold]
    fn turn(&mut self, page: PageNo, node: NodeId, home: NodeId, kind: AccessKind) {
        self.fresh.flush(page, self.region, &mut self.piece.cells);
        self.fresh.note(page, node, home, kind);
        self.add_up_if_due();
    }

    /// Moves what was counted to the cells of the interval under way.
    fn flush(&mut self) {
        self.fresh.flush_all(self.region, &mut self.piece.cells);
        self.add_up_if_due();
    }

    fn add_up_if_due(&mut self) {
        if self.piece.cells.is_due() {
            self.add_up_piece();
            self.keep_within_budget();
        }
    }

    fn add_up_piece(&mut self) {
        let Self { piece, extents, block, .. } = self;
        match *block {
            1 => piece.cells.add_up(),
            block => piece.cells.map_pages(|page| block_of(extents, page, block)),
        }
    }

    /// The equal interval under way is over.
    #[cold]
    fn pass_ends(&mut self, now: u64) {
        self.flush();
        while now >= self.ends
            && let Division::Equal { length } = self.division
        {
            self.close_piece();
            self.ends = self.ends.saturating_add(length);
            if self.done.len() as u32 >= self.most {
                self.double();
            }
        }
        self.keep_within_budget();
    }

    /// The piece becomes an interval that is over.
    fn close_piece(&mut self) {
        self.add_up_piece();
        self.done_bytes += self.piece.cells.bytes() as u64;
        self.done.push(std::mem::take(&mut self.piece));
    }

    /// Makes one of two equal intervals. Their number must be even.
    fn double(&mut self) {
        let Division::Equal { length } = &mut self.division else { return };
        *length = length.saturating_mul(2);
        self.ends = (self.done.len() as u64 / 2 + 1).saturating_mul(*length);
        self.homes.coarsen(
            // The new interval i ends with the old one 2 i + 1.
            |from, until| {
                let (from, until) = (from / 2, until.checked_sub(1)? / 2);
                (from <= until).then_some((from, until))
            },
            |now| now / 2,
        );
        self.join_pairs(0);
    }

    /// Joins intervals in pairs, from `first` on.
    fn join_pairs(&mut self, first: usize) {
        let mut all = std::mem::take(&mut self.done).into_iter();
        self.done.extend(all.by_ref().take(first));
        while let Some(mut one) = all.next() {
            if let Some(two) = all.next() {
                one.absorb(two);
            }
            one.cells.add_up();
            self.done.push(one);
        }
        self.done_bytes = self.done.iter().map(|i| i.cells.bytes() as u64).sum();
    }

    /// Round `number` begins: what came since the last mark is over.
    pub(crate) fn iteration(&mut self, number: u32) {
        self.flush();
        if self.marks == 0 {
            self.begin_rounds();
        } else {
            self.end_round();
        }
        self.piece.iteration = Some(number);
        self.piece.rounds = 1;
        self.marks += 1;
        self.keep_within_budget();
    }

    /// The first mark: all before it is one interval.
    fn begin_rounds(&mut self) {
        let mut before = Interval::default();
        self.done.drain(..).for_each(|i| before.absorb(i));
        before.absorb(std::mem::take(&mut self.piece));
        std::mem::swap(&mut self.piece, &mut before);
        self.done_bytes = 0;
        self.close_piece();
        self.division = Division::Rounds { each: 1 };
        self.ends = u64::MAX;
        // No interval has ended yet.
        self.homes.coarsen(|_, _| None, |_| 0);
    }

    fn end_round(&mut self) {
        let Division::Rounds { each } = self.division else { return };
        self.add_up_piece();
        if self.done.len() > 1
            && let Some(last) = self.done.last_mut()
            && last.rounds < each
        {
            let before = last.cells.bytes() as u64;
            last.absorb(std::mem::take(&mut self.piece));
            last.iteration = None;
            self.done_bytes = (self.done_bytes + last.cells.bytes() as u64).saturating_sub(before);
            return;
        }
        self.close_piece();
    }

    /// Coarsens what has become too much.
    fn keep_within_budget(&mut self) {
        let cells = |s: &Self| s.done_bytes + s.piece.cells.bytes() as u64;
        while cells(self) > self.budget / 2 && (self.coarsen_blocks() || self.lengthen()) {}
        while self.homes.bytes() as u64 > self.budget / 4 && self.lengthen() {}
    }

    /// Makes blocks larger; whether they could be.
    #[cold]
    fn coarsen_blocks(&mut self) -> bool {
        let Some(block) = BLOCKS.into_iter().find(|b| *b > self.block) else { return false };
        self.block = block;
        let Self { done, piece, extents, .. } = self;
        for cells in done.iter_mut().map(|i| &mut i.cells).chain([&mut piece.cells]) {
            cells.map_pages(|page| block_of(extents, page, block));
        }
        self.done_bytes = self.done.iter().map(|i| i.cells.bytes() as u64).sum();
        true
    }

    /// Makes intervals twice as long; whether they could be.
    #[cold]
    fn lengthen(&mut self) -> bool {
        if self.done.len() < LEAST_INTERVALS {
            return false;
        }
        match self.division {
            Division::Equal { .. } => {
                self.most /= 2;
                // An odd one out stays under way.
                if !self.done.len().is_multiple_of(2)
                    && let Some(last) = self.done.pop()
                {
                    let mut last = last;
                    last.absorb(std::mem::take(&mut self.piece));
                    self.piece = last;
                }
                self.double();
            }
            Division::Rounds { each } => {
                self.division = Division::Rounds { each: each.saturating_mul(2) };
                self.join_pairs(1);
                let marks = each.saturating_mul(2);
                for i in self.done.iter_mut().skip(1).filter(|i| i.rounds > 1) {
                    i.iteration = None;
                }
                // A stay counts if one of the new intervals ends in it: after every `marks`
                // marks, and now.
                let (now, last) = (self.marks, |n: u32| n.next_multiple_of(marks));
                self.homes.coarsen(
                    |from, until| (last(from) <= until || until + 1 >= now).then_some((from, until)),
                    |since| since,
                );
            }
        }
        true
    }

    /// A page without a home is touched.
    pub(crate) fn touched(&mut self, page: PageNo, touch: PageFirstTouch) {
        self.homes.touched(page, touch);
    }

    /// A page gets a home by its first touch.
    pub(crate) fn placed(&mut self, page: PageNo, home: NodeId) {
        let now = self.now();
        self.homes.settle(page, home, now);
    }

    /// A page moves.
    pub(crate) fn moved(
        &mut self,
        at: Ps,
        cost: Ps,
        thread: ThreadId,
        page: PageNo,
        (from, to): (NodeId, NodeId),
        cause: MoveCause,
    ) {
        let now = self.now();
        let ping_pong = self.homes.settle(page, to, now);
        let (page, region, marks) = (moves::page(page), self.region, self.marks);
        let most = (self.budget / 4) as usize / size_of::<Move>();
        let a_move = Move { at, cost, page, pages: 1, thread, region, marks, from, to, cause, ping_pong };
        self.moves.push(a_move, most);
    }

    /// An object gets bytes.
    pub(crate) fn allocated(&mut self, now: Ps, object: ObjectId, range: ByteRange) {
        self.extents.allocated(object, range, now);
        let interval = self.now();
        self.homes.allocated(range, interval);
    }

    /// An object loses bytes; `inside` are the pages that it had for itself.
    pub(crate) fn freed(&mut self, now: Ps, object: ObjectId, range: ByteRange, inside: PageRange) {
        self.extents.freed(object, now);
        let interval = self.now();
        self.homes.freed(range, inside, interval);
    }

    /// Moves what was counted to the cells, for what comes now is in another region.
    fn turn_region(&mut self, now: Ps) {
        if now.0 >= self.ends {
            self.pass_ends(now.0);
        }
        self.flush();
    }

    /// A region begins.
    pub(crate) fn region_begins(&mut self, now: Ps, thread: ThreadId, region: u32) {
        self.turn_region(now);
        self.open.push((thread, region));
        self.region = region;
    }

    /// A region has ended that began on this thread.
    pub(crate) fn region_ends(&mut self, now: Ps, thread: ThreadId, region: u32, took: Ps) {
        self.turn_region(now);
        if let Some(at) = self.open.iter().rposition(|r| *r == (thread, region)) {
            self.open.remove(at);
        }
        self.region = self.open.last().map_or(NO_REGION, |(_, region)| *region);
        let all = self.piece.regions.entry(region).or_default();
        *all = (all.0 + 1, all.1 + took);
    }

    /// The run is over at `end`; `marks` are the iteration marks with their numbers.
    pub(crate) fn finish(mut self, end: Ps, marks: &[(u32, Ps)]) -> Collected {
        self.flush();
        let last = self.now();
        self.close_piece();
        while self.done_bytes > self.budget / 2 && self.coarsen_blocks() {}
        self.done.iter_mut().for_each(|i| i.cells.add_up());
        let (mut after, mut equal) = (Vec::new(), None);
        match self.division {
            Division::Equal { length } => {
                equal = Some(Ps(length));
                for (i, interval) in (0u64..).zip(&mut self.done) {
                    interval.begin = Ps(i * length);
                    interval.end = Ps((i + 1) * length).min(end);
                    interval.timed = true;
                }
            }
            Division::Rounds { each } => {
                let intervals = self.done.len() as u32;
                let of = |mark: u32| match mark {
                    0 => 0,
                    m if m == self.marks => intervals - 1,
                    m => 1 + (m - 1) / each,
                };
                after = (0..=self.marks).map(of).collect();
                let only = self.marks == 1;
                for (i, interval) in (0u32..).zip(&mut self.done) {
                    let marked = |m: u32| marks.get(m as usize).map_or(end, |(_, at)| *at);
                    let is_last = i + 1 == intervals;
                    interval.begin = match i {
                        0 => Ps::ZERO,
                        _ if is_last => marked(self.marks - 1),
                        _ => marked((i - 1) * each),
                    };
                    interval.end = match i {
                        _ if is_last => end,
                        0 => marked(0),
                        _ => marked((i * each).min(self.marks - 1)),
                    };
                    interval.timed = i > 0 && (!is_last || only);
                    if !interval.timed {
                        interval.iteration = None;
                    }
                }
            }
        }
        let (mut stays, firsts) = self.homes.finish(last);
        if equal.is_none() {
            stays.retain_mut(|stay| in_intervals(&after, stay));
        }
        self.moves.finish();
        let rounds = if let Division::Rounds { each } = self.division { each } else { 0 };
        let coarsened = Coarsened {
            block: self.block,
            rounds,
            intervals: self.most,
            moves: self.moves.joined(),
            lost_moves: self.moves.lost(),
        };
        Collected {
            intervals: self.done,
            stays,
            firsts,
            moves: self.moves,
            extents: self.extents,
            coarsened,
            after,
            equal,
        }
    }
}

/// Puts a stay into the intervals that end in it; whether there is one. Until now it is told by
/// marks: `after[m]` is the interval that follows m marks.
fn in_intervals(after: &[u32], stay: &mut Stay) -> bool {
    let of = |marks: u32| after.get(marks as usize).copied().unwrap_or(0);
    // The interval of m marks ends where that of m + 1 marks is another one.
    let ends = |marks: u32| after.get(marks as usize + 1).is_none_or(|next| *next != of(marks));
    let from = of(stay.from);
    let until = of(stay.until);
    let until = if ends(stay.until) { Some(until) } else { until.checked_sub(1) };
    match until {
        Some(until) if from <= until => {
            (stay.from, stay.until) = (from, until);
            true
        }
        _ => false,
    }
}

/// The block of `pages` pages that a page, or a finer block, lies in.
fn block_of(extents: &Extents, page: u32, pages: u64) -> u32 {
    let nobodys = page & NOBODYS != 0;
    let page = u64::from(page & !NOBODYS);
    match extents.owner(page).filter(|_| !nobodys) {
        Some(extent) => extents.block_owned(extent, page, pages) as u32,
        None => (page / pages * pages) as u32 | NOBODYS,
    }
}
