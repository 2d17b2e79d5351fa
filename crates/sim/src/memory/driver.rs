//! The policy's driver: tells it what happens and does what it decides.

use homenode_model::{
    AccessKind, Bytes, Decision, Event, LineNo, MoveOutcome, MoveResult, NodeId, PageNo, Ps, ThreadId,
};
use homenode_policy::{MOST_POLLS, Step};

use super::outcome::{IterationMark, Migration, RegionTime};
use super::pages::Page;
use super::paths::Size;
use super::thread::{OpenRegion, State};
use super::{Memory, MemoryError, MoveWorker};
use homenode_order::firsts::UNIT;
use homenode_order::step::{ByteRange, Mark};

use crate::collect::{MoveCause, PageFirstTouch};
use crate::stream::MemWhat;

/// Lines of a unit whose first touch the order remembers.
const LINES_OF_UNIT: u64 = UNIT / LineNo::BYTES;

impl Memory {
    /// An access to a page that has no home or is armed. Afterwards it has a home; the thread's
    /// clock has moved on if pages were moved.
    #[cold]
    pub(super) fn trap(&mut self, t: usize, page: PageNo, state: Page) -> Result<(), MemoryError> {
        let node = self.threads[t].node;
        if state.is_placed() {
            self.ledger.touches += 1;
            self.pages.disarm(page);
            self.policy.observe(&Event::Touched { page, home: state.home(), node });
            self.touched = Some(page);
            let decided = self.decide(t);
            self.touched = None;
            return decided;
        }
        self.ledger.faults += 1;
        self.collect_fault(t, page);
        if self.told.interest.faults {
            self.policy.observe(&Event::Fault { page, node });
            self.decide(t)?;
        }
        if !self.pages.get(page).is_placed() {
            if self.pages.nearest_room(node).is_none() {
                self.give_up_copies(t)?;
            }
            let home = self.pages.nearest_room(node).ok_or(MemoryError::OutOfMemory { page, node })?;
            self.place(page, home);
        }
        Ok(())
    }

    /// Gives a page that has none a home. The caller has checked for room.
    fn place(&mut self, page: PageNo, home: NodeId) {
        self.pages.settle(page, home);
        if let Some(collector) = &mut self.collector {
            collector.placed(page, home);
        }
    }

    /// Tells the collector who touches a page that has no home.
    fn collect_fault(&mut self, t: usize, page: PageNo) {
        if let Some(collector) = &mut self.collector
            && let MemWhat::Access { line, .. } = self.threads[t].item()
        {
            let (thread, unit) = (ThreadId(t as u32), (line.0 / LINES_OF_UNIT) as u32);
            collector.touched(page, PageFirstTouch { thread, unit, at: Ps(self.threads[t].now) });
        }
    }

    /// A page without a home needs the memory of a frame or of copies.
    #[cold]
    fn give_up_copies(&mut self, t: usize) -> Result<(), MemoryError> {
        if let Some((page, node)) = self.pages.nearest_frame(self.threads[t].node) {
            self.give_up_frame(t, page, node);
            self.policy.observe(&Event::FrameGone { page, node });
            return self.decide(t);
        }
        for page in self.pages.copied() {
            self.pages.collapse(page);
            self.ledger.collapsed += 1;
            self.policy.observe(&Event::Collapsed { page, home: self.pages.get(page).home() });
        }
        self.decide(t)
    }

    /// A write of thread `t` to a page that has copies: they go, and the writer pays what a move
    /// would cost it, less the copying.
    #[cold]
    pub(super) fn collapse(&mut self, t: usize, page: PageNo) -> Result<(), MemoryError> {
        self.pages.collapse(page);
        self.charge(t, Bytes::ZERO, false);
        self.ledger.collapsed += 1;
        self.policy.observe(&Event::Collapsed { page, home: self.pages.get(page).home() });
        self.decide(t)
    }

    /// The policy's time has come; `t` is the thread whose turn it is. False when the policy was
    /// just polled and wants to be polled at the same moment again: a step must come between, so
    /// that time passes.
    #[cold]
    pub(super) fn wake_up(&mut self, t: usize) -> Result<bool, MemoryError> {
        if std::mem::take(&mut self.told.polled) {
            return Ok(false);
        }
        let now = self.threads[t].now;
        if self.told.interest.counts_at_wakes {
            self.tell_accesses();
        }
        self.decide(t)?;
        self.told.polled = self.told.wake <= now;
        self.turns.set(t, self.threads[t].now);
        Ok(true)
    }

    /// Polls the policy until it has nothing more to say, and carries out what it decides, on the
    /// time of thread `t`.
    fn decide(&mut self, t: usize) -> Result<(), MemoryError> {
        for _ in 0..MOST_POLLS {
            let mut decisions = std::mem::take(&mut self.told.decisions);
            decisions.clear();
            let step = self.policy.poll(Ps(self.threads[t].now).ns(), &mut decisions);
            for decision in decisions.as_slice() {
                self.carry_out(t, *decision);
            }
            self.told.decisions = decisions;
            self.told.wake = match step {
                Step::Act => continue,
                Step::WakeAt(at) => at.ps().0,
                Step::Idle => u64::MAX,
            };
            return Ok(());
        }
        Err(MemoryError::Restless { now: Ps(self.threads[t].now).ns() })
    }

    fn carry_out(&mut self, t: usize, decision: Decision) {
        match decision {
            Decision::Place { page, node } => {
                let free = page.0 < super::pages::MAX_PAGES && !self.pages.get(page).is_placed();
                if free && self.pages.has_room(node) {
                    self.place(page, node);
                } else {
                    self.ledger.places_refused += 1;
                }
            }
            Decision::Move { page, to } => self.answer(t, page, to, Self::move_page),
            Decision::Replicate { page, on } => self.answer(t, page, on, Self::replicate),
            Decision::ReplicateLines { page, on } => self.answer(t, page, on, Self::replicate_lines),
            Decision::Arm { pages } => self.pages.arm(pages),
            // A decision that this driver does not know cannot be carried out.
            _ => self.ledger.moves_refused += 1,
        }
    }

    /// Does something with a page and tells the policy what came of it.
    fn answer(
        &mut self,
        t: usize,
        page: PageNo,
        to: NodeId,
        act: fn(&mut Self, usize, PageNo, NodeId) -> MoveResult,
    ) {
        let before = (self.threads[t].now, self.ledger.migration);
        let result = act(self, t, page, to);
        self.ledger.moves_refused += u64::from(!matches!(result, MoveResult::Moved | MoveResult::Replicated));
        // What the thread waited for, or what an engine of its own spent on it.
        let cost = Ps(self.threads[t].now - before.0).max(self.ledger.migration - before.1).ns();
        self.policy.outcome(&MoveOutcome { page, to, result, cost });
        for (page, node) in self.told.gone.drain(..) {
            self.policy.observe(&Event::FrameGone { page, node });
        }
    }

    /// Thread `t` pays for `bytes` of a page that are moved or copied, and for the page tables;
    /// when it began to, and how long it took, waiting for others who do the same included. What an
    /// engine of its own can do (`decided`) is on the engine's time.
    fn charge(&mut self, t: usize, bytes: Bytes, decided: bool) -> (u64, Ps) {
        let others = self.alive.saturating_sub(1);
        let cost = self.fixed.migration.of(bytes, others).ps().0;
        if self.fixed.options.mover == MoveWorker::Apart && self.touched.is_none() && decided {
            self.ledger.migration += Ps(cost);
            return (self.threads[t].now, Ps(cost));
        }
        let thread = &mut self.threads[t];
        thread.drain();
        let begun = if self.fixed.migration.serialised { thread.now.max(self.lock) } else { thread.now };
        let done = begun.saturating_add(cost);
        self.lock = done;
        let took = Ps(done - thread.now);
        thread.spent.moving += took.0;
        thread.now = done;
        self.ledger.migration += took;
        if self.fixed.migration.stops {
            self.hold_up(t, cost);
        }
        (begun, took)
    }

    /// All others that run stand still for as long. Who waits for another is held up with that one.
    fn hold_up(&mut self, mover: usize, cost: u64) {
        for t in (0..self.threads.len()).filter(|t| *t != mover) {
            let thread = &mut self.threads[t];
            if matches!(thread.state, State::Ready | State::Starved) {
                thread.stand_still(cost);
                self.turns.set(t, thread.now);
            }
        }
    }

    fn replicate(&mut self, t: usize, page: PageNo, on: NodeId) -> MoveResult {
        if page.0 >= super::pages::MAX_PAGES || !self.pages.get(page).is_placed() {
            return MoveResult::NoPage;
        }
        let home = self.pages.get(page).home();
        if home == on || self.pages.has_copy(page, on) {
            return MoveResult::AlreadyThere;
        }
        if !self.pages.can_copy_to(on) {
            return MoveResult::Unsupported;
        }
        if self.pages.get(page).is_framed() {
            return MoveResult::Busy;
        }
        if !self.pages.has_room(on) {
            return MoveResult::NoMemory;
        }
        let (begun, _) = self.charge(t, self.fixed.page, true);
        self.pages.copy(page, on);
        if self.fixed.options.copy_traffic {
            self.paths.copy(begun, home, on);
        }
        self.ledger.replicated += 1;
        MoveResult::Replicated
    }

    /// Allots a frame on a node; the lines come when they are used.
    fn replicate_lines(&mut self, t: usize, page: PageNo, on: NodeId) -> MoveResult {
        let state = if page.0 < super::pages::MAX_PAGES { Some(self.pages.get(page)) } else { None };
        let Some(state) = state.filter(|s| s.is_placed()) else { return MoveResult::NoPage };
        if state.home() == on || self.pages.frames.has(page, on) {
            return MoveResult::AlreadyThere;
        }
        // Where remote lines are not cached, each access goes to the home.
        if !self.pages.can_copy_to(on) || !self.fixed.remote_cacheable {
            return MoveResult::Unsupported;
        }
        if state.is_copied() {
            return MoveResult::Busy;
        }
        if !self.pages.has_room(on) {
            let Some(least) = self.pages.frames.least_recently_missed(on, Some(page)) else {
                return MoveResult::NoMemory;
            };
            self.give_up_frame(t, least, on);
            self.told.gone.push((least, on));
        }
        self.charge(t, Bytes::ZERO, true);
        self.pages.allot(page, on);
        self.ledger.replicated += 1;
        MoveResult::Replicated
    }

    /// A node gives up its frame of a page; lines that are newer there go home.
    fn give_up_frame(&mut self, t: usize, page: PageNo, node: NodeId) {
        let home = self.pages.get(page).home();
        let owned = self.pages.give_up_frame(page, node);
        self.send_home(t, node, home, owned);
        self.ledger.lines.frames_given_up += 1;
    }

    /// `lines` of a frame on `node` are written back; nobody waits.
    fn send_home(&mut self, t: usize, node: NodeId, home: NodeId, lines: u64) {
        let now = self.threads[t].now;
        for _ in 0..lines {
            self.paths.store(now, node, home, Size::Line);
        }
    }

    fn move_page(&mut self, t: usize, page: PageNo, to: NodeId) -> MoveResult {
        let state = self.pages.get(page);
        if !state.is_placed() {
            return MoveResult::NoPage;
        }
        let from = state.home();
        if from == to {
            return MoveResult::AlreadyThere;
        }
        // A copy or a frame that is there already makes room for the page itself.
        let there = self.pages.has_copy(page, to) || self.pages.frames.has(page, to);
        if !self.pages.has_room(to) && !there {
            return MoveResult::NoMemory;
        }
        self.pages.collapse(page);
        for (node, lines) in self.pages.give_up_frames(page) {
            self.send_home(t, node, from, lines);
        }
        let (begun, waited_and_moved) = self.charge(t, self.fixed.page, true);
        self.pages.settle(page, to);
        if self.fixed.options.copy_traffic {
            self.paths.copy(begun, from, to);
        }
        self.ledger.moved += 1;
        if let Some(collector) = &mut self.collector {
            let touched = self.touched == Some(page);
            let cause = if touched { MoveCause::NextTouch } else { MoveCause::Policy };
            let thread = ThreadId(t as u32);
            collector.moved(Ps(begun), waited_and_moved, thread, page, (from, to), cause);
        }
        if self.ledger.migrations.len() < self.fixed.options.keep_migrations {
            let thread = ThreadId(t as u32);
            let migration = Migration { at: Ps(begun), thread, page, from, to, cost: waited_and_moved };
            self.ledger.migrations.push(migration);
        }
        MoveResult::Moved
    }

    /// Carries out the mark at hand.
    #[cold]
    pub(super) fn mark(&mut self, t: usize, mark: Mark) -> Result<(), MemoryError> {
        let outside =
            |range: ByteRange| MemoryError::Address { thread: ThreadId(t as u32), address: range.first };
        match mark {
            Mark::Alloc { object, range } => {
                let pages = self.pages.overlapping(range).ok_or_else(|| outside(range))?;
                if let Some(collector) = &mut self.collector {
                    collector.allocated(Ps(self.threads[t].now), object, range);
                }
                self.policy.observe(&Event::Alloc { object, pages });
            }
            Mark::Free { object, range } => {
                let pages = self.pages.inside(range).ok_or_else(|| outside(range))?;
                self.pages.free(pages);
                if let Some(collector) = &mut self.collector {
                    collector.freed(Ps(self.threads[t].now), object, range, pages);
                }
                self.policy.observe(&Event::Free { object, pages });
            }
            Mark::RegionBegin { region } => {
                let (local, remote) = self.accesses();
                let open = OpenRegion { region, begun: self.threads[t].now, local, remote };
                self.threads[t].regions.push(open);
                if let Some(collector) = &mut self.collector {
                    collector.region_begins(Ps(open.begun), ThreadId(t as u32), region);
                }
                self.policy.observe(&Event::RegionBegin { region });
            }
            Mark::RegionEnd { region } => {
                self.end_region(t, region);
                if self.told.interest.counts_by_region {
                    self.tell_accesses();
                }
                self.policy.observe(&Event::RegionEnd { region });
            }
            Mark::Iteration { number } => {
                if !self.begin_iteration(t, number) {
                    self.next(t);
                    return Ok(());
                }
                if self.told.interest.counts_by_iteration {
                    self.tell_accesses();
                }
                self.policy.observe(&Event::Iteration { number });
            }
            Mark::NextTouch { range } => {
                let pages = self.pages.inside(range).ok_or_else(|| outside(range))?;
                if pages.count > 0 {
                    self.policy.observe(&Event::NextTouchRequest { pages });
                }
            }
        }
        self.decide(t)?;
        self.next(t);
        Ok(())
    }

    /// Local and remote accesses so far.
    fn accesses(&self) -> (u64, u64) {
        self.threads.iter().fold((0, 0), |(l, r), t| (l + t.local, r + t.remote))
    }

    /// Closes the innermost open region of that number; an end without a begin is nobody's.
    fn end_region(&mut self, t: usize, region: u32) {
        let (local, remote) = self.accesses();
        let thread = &mut self.threads[t];
        let Some(at) = thread.regions.iter().rposition(|r| r.region == region) else { return };
        let open = thread.regions[at];
        thread.regions.truncate(at);
        let (now, time) = (Ps(thread.now), Ps(thread.now - open.begun));
        if let Some(collector) = &mut self.collector {
            collector.region_ends(now, ThreadId(t as u32), region, time);
        }
        let all = self.ledger.regions.entry(region).or_insert(RegionTime { region, ..RegionTime::default() });
        all.instances += 1;
        all.time += time;
        all.local += local - open.local;
        all.remote += remote - open.remote;
    }

    /// Notes an iteration mark. False when the mark is there already: several threads may say the
    /// same, and the latest counts.
    fn begin_iteration(&mut self, t: usize, number: u32) -> bool {
        let at = Ps(self.threads[t].now);
        if let Some(last) = self.ledger.marks.last_mut().filter(|m| m.number == number) {
            last.at = last.at.max(at);
            return false;
        }
        if let Some(collector) = &mut self.collector {
            collector.iteration(number);
        }
        let first = self.ledger.marks.is_empty();
        let (local, remote) = self.accesses();
        self.ledger.marks.push(IterationMark { number, at, local, remote });
        self.ledger.histogram.mark(first);
        if let Some(hits) = &mut self.ledger.hits {
            hits.mark(first);
        }
        let counts = self.ledger.counts.clone();
        match &mut self.ledger.at_marks {
            None => self.ledger.at_marks = Some((counts.clone(), counts)),
            Some((_, last)) => *last = counts,
        }
        true
    }

    /// Tells the policy of all accesses since the last time, ascending by (page, node, kind).
    fn tell_accesses(&mut self) {
        let Some(histogram) = &mut self.told.histogram else { return };
        self.told.listed.sort_unstable();
        for page in self.told.listed.drain(..) {
            self.pages.unlist(page);
            let state = self.pages.get(page);
            // A page that was freed since has no home to tell of, and nobody will ask where it
            // should be.
            for (node, cell) in (0u16..).map(NodeId).zip(histogram.row(page).unwrap_or_default()) {
                for kind in [AccessKind::Read, AccessKind::Write] {
                    let count = cell[kind as usize];
                    if count > 0 && state.is_placed() {
                        self.policy.observe(&Event::Accesses { page, home: state.home(), node, kind, count });
                    }
                }
            }
            histogram.clear_page(page);
        }
    }
}
