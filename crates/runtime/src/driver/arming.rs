//! Carries out the decisions of a policy, and tells the policy the outcome.

use std::collections::BTreeSet;

use homenode_model::{Decision, DecisionBuf, Event, MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange};
use homenode_sys::{HUGE, Span};
use homenode_wire::live::Cause;

use super::mover::{Manner, Touch};
use super::probing::Probing;
use super::run::Driver;
use crate::guard::Verdict;
use crate::guard::holdback::{Group, block_of};
use crate::stream::Moved;
use crate::watch::numbers::PAGE;
use crate::watch::{Object, Objects};
use homenode_wire::facts::Arming;

/// Pages whose homes the driver asks for in one call.
const ASK: usize = 4096;
/// Pages that one touch brings along.
pub(super) const AROUND: usize = 16;
/// The driver arms an object by blocks only if a node's part of it is at least this many times as
/// long as what one touch brings along.
const PARTS: usize = 4;
/// The driver looks at seams only if they make up at most one part in this many of an object.
const SEAMS: usize = 8;
/// Samples that one round takes of a held-back block.
const HELD: usize = 4;
/// Bytes of the largest object whose first touches are seen page by page.
const EACH: usize = 64 << 20;
/// Pages are spread more evenly if the node with most of them now has at most this many eighths of
/// what one node had before.
const EVENER: u64 = 7;

/// A page that should move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub page: PageNo,
    pub to: NodeId,
    /// Whether the policy wants to know the outcome.
    pub told: bool,
}

/// Neighbouring pages with the same target node.
struct Run {
    pages: PageRange,
    to: NodeId,
    /// Whether the policy wants to know the outcome of each page.
    told: bool,
}

impl Run {
    const fn new(page: PageNo, to: NodeId, told: bool) -> Self {
        Self { pages: PageRange { first: page, count: 1 }, to, told }
    }
}

/// Spans to arm, by the manner in which their pages come to the toucher.
#[derive(Default)]
pub(super) struct ToArm {
    pub(super) around: Vec<Span>,
    pub(super) alone: Vec<Span>,
}

impl ToArm {
    /// Spans whose pages come one by one.
    pub(super) fn alone(alone: Vec<Span>) -> Self {
        Self { alone, ..Self::default() }
    }

    pub(super) const fn of(&mut self, manner: Manner) -> &mut Vec<Span> {
        match manner {
            Manner::Alone => &mut self.alone,
            _ => &mut self.around,
        }
    }
}

impl Driver {
    /// Queues all objects for arming. Large ones that were armed before are armed only if they need
    /// it.
    pub(super) fn request_all(&mut self) {
        self.armed_all = true;
        self.wait_new(true);
        self.wait_once_more();
    }

    /// Arms the part of each object that lies in a range. Returns the number of pages.
    pub(super) fn request(&mut self, address: usize, bytes: usize) -> u64 {
        let ranges = self.ranges(address, bytes);
        for pages in &ranges {
            let Some(start) = self.objects.numbers().address(pages.first) else { continue };
            let known = self.objects.at(start).is_some_and(|o| o.armed);
            if !known && let Some((first, whole)) = self.objects.at(start).map(|o| (o.address, o.pages)) {
                self.introduce(first, whole);
                self.objects.seen(first);
            }
        }
        let armed = self.request_pages(&ranges);
        if armed > 0 && !self.hold.off {
            ranges.iter().for_each(|pages| self.rule(*pages));
        }
        armed
    }

    /// Marks these pages as ruled by the program.
    fn rule(&mut self, pages: PageRange) {
        self.later.forget(pages);
        if let Some(start) = self.objects.numbers().address(pages.first) {
            self.ruled.add(Span::new(start, pages.count as usize * PAGE));
        }
    }

    /// Tells the policy where these pages of an object are, as if each page was touched there now,
    /// and moves the pages that the policy wants elsewhere. Returns how many of the pages exist.
    pub(super) fn introduce(&mut self, object: usize, pages: PageRange) -> u64 {
        let Some(start) = self.objects.numbers().address(pages.first) else { return 0 };
        let mut homes = Vec::with_capacity(ASK);
        let one = self.mover.one_home(start, pages.count as usize);
        let mut there = 0;
        let mut at = 0;
        while at < pages.count {
            let n = (pages.count - at).min(ASK as u64);
            homes.clear();
            self.mover.homes(start + at as usize * PAGE, n as usize, one, &mut homes);
            for (i, home) in homes.iter().enumerate() {
                let Some(home) = *home else {
                    self.miss(start + (at as usize + i) * PAGE);
                    continue;
                };
                there += 1;
                let page = PageNo(pages.first.0 + at + i as u64);
                let news = self.objects.at(object).is_some_and(|o| o.was_at(home, page.0 - o.pages.first.0));
                if news {
                    self.record_home(object, page, home);
                }
                if news {
                    self.policy.observe(&Event::Fault { page, node: home });
                }
            }
            self.poll();
            at += n;
        }
        there
    }

    /// The page does not exist yet. If first touches are watched, arms the page and its neighbours,
    /// to see who touches it first.
    fn miss(&mut self, page: usize) {
        match self.missing.last_mut() {
            Some(span) if span.end == page => span.end += PAGE,
            _ => self.missing.push(Span::new(page, PAGE)),
        }
    }

    /// Arms the pages of the object at `address` that do not exist yet. This includes held-back
    /// blocks, because a first touch moves nothing. Returns the number of pages.
    pub(super) fn await_first_touches(&mut self, address: usize) -> u64 {
        let missing = std::mem::take(&mut self.missing);
        if missing.is_empty() || !self.mover.sees_first_touches() {
            return 0;
        }
        let Some(object) = self.objects.at(address) else { return 0 };
        object.awaited = true;
        let manner = if object.bytes <= EACH { Manner::Alone } else { Manner::Around };
        let spans: Vec<Span> = missing.into_iter().flat_map(|span| self.placed.rest_of(span)).collect();
        if spans.is_empty() { 0 } else { self.mover.arm(&spans, manner).pages }
    }

    /// Carries out decisions in order. Neighbouring pages with one target go together. Returns the
    /// number of armed pages.
    pub(super) fn carry_out(&mut self, decisions: &DecisionBuf) -> u64 {
        let mut list = ToArm::default();
        let mut run: Option<Run> = None;
        for decision in decisions.as_slice() {
            match *decision {
                Decision::Arm { pages } if self.watching.is_some() => self.ask(pages),
                Decision::Arm { pages } => self.add_to_arm(pages, &mut list),
                Decision::Place { page, node } => {
                    self.add_to_run(&mut run, Run::new(page, node, false));
                }
                Decision::Move { page, to } => {
                    self.add_to_run(&mut run, Run::new(page, to, true));
                }
                Decision::Replicate { page, on } => self.refuse_copy(page, on),
                _ => {}
            }
        }
        if let Some(run) = run {
            self.bring(&run);
        }
        self.move_collected();
        self.arm(&list)
    }

    /// Extends the run by `next`, or carries it out and begins another one.
    fn add_to_run(&mut self, run: &mut Option<Run>, next: Run) {
        match run {
            Some(r)
                if r.to == next.to
                    && r.told == next.told
                    && r.pages.first.0 + r.pages.count == next.pages.first.0 =>
            {
                r.pages.count += 1;
            }
            _ => {
                if let Some(run) = run.replace(next) {
                    self.bring(&run);
                }
            }
        }
    }

    /// Collects the pages of a run that are not at its target. Answers at once for the others that
    /// the policy wants moved.
    fn bring(&mut self, run: &Run) {
        self.later.forget(run.pages);
        let (mut at, end) = (run.pages.first.0, run.pages.first.0 + run.pages.count);
        while at < end {
            let page = PageNo(at);
            let object = self.objects.numbers().address(page).and_then(|a| self.objects.at(a));
            let Some(object) = object else {
                self.answer(run, PageRange { first: page, count: 1 }, MoveResult::NoPage);
                at += 1;
                continue;
            };
            let (first, start) = (object.pages.first.0, object.whole_pages().start);
            let block = block_of(object.bytes);
            let last = end.min(first + object.pages.count);
            let address = |p: PageNo| start + (p.0 - first) as usize * PAGE;
            // The outcome that the pages from here on share, and how many share it.
            let kind = |d: &Self, p: PageNo| {
                let there = d.objects.get(start).and_then(|o| o.home(p)) == Some(run.to);
                if there {
                    Some(MoveResult::AlreadyThere)
                } else if d.placed.has(address(p)) || run.told && d.is_held(address(p), block) {
                    // The program has ruled on the page, or the page is held back: it stays, as a
                    // busy page does.
                    Some(MoveResult::Busy)
                } else {
                    None
                }
            };
            let same = kind(self, page);
            let count = (at..last).take_while(|p| kind(self, PageNo(*p)) == same).count() as u64;
            let pages = PageRange { first: page, count };
            match same {
                Some(result) => {
                    if result == MoveResult::Busy {
                        self.note_held(pages);
                    } else if !run.told {
                        self.stays.extend(pages.iter().map(|p| Wanted { page: p, to: run.to, told: false }));
                    }
                    self.answer(run, pages, result);
                }
                None => {
                    self.moves.extend(pages.iter().map(|p| Wanted { page: p, to: run.to, told: run.told }))
                }
            }
            at += count;
        }
    }

    /// Tells the policy the outcome for pages that it wants moved.
    fn answer(&mut self, run: &Run, pages: PageRange, result: MoveResult) {
        if run.told {
            for page in pages.iter() {
                self.policy.outcome(&MoveOutcome { page, to: run.to, result, cost: Ns::ZERO });
            }
        }
    }

    /// Moves pages that the policy knows nothing of. Returns how many moved.
    pub(super) fn move_ranges(&mut self, ranges: impl IntoIterator<Item = (PageRange, NodeId)>) -> u64 {
        for (pages, to) in ranges {
            self.later.forget(pages);
            self.moves.extend(pages.iter().map(|page| Wanted { page, to, told: false }));
        }
        self.move_collected()
    }

    /// Moves all collected pages, as far as the budget has room. Returns how many moved.
    fn move_collected(&mut self) -> u64 {
        let mut moves = std::mem::take(&mut self.moves);
        let numbers = self.objects.numbers();
        let stays = std::mem::take(&mut self.stays);
        if !moves.is_empty() {
            // In a huge page, the pages that should stay count, too.
            let unit = |w: &Wanted| numbers.address(w.page).map(|address| address & !(HUGE - 1));
            let units: BTreeSet<usize> = moves.iter().filter_map(unit).collect();
            moves.extend(stays.into_iter().filter(|w| unit(w).is_some_and(|u| units.contains(&u))));
        }
        moves.retain(|m| numbers.address(m.page).is_some());
        if moves.is_empty() { 0 } else { self.move_in_turns(moves).0 }
    }

    /// Moves pages in one call, because the kernel is fastest with many. Tells the policy the
    /// outcome of each page that it wanted moved. Returns how many moved.
    pub(super) fn move_pages(&mut self, moves: &[Wanted]) -> u64 {
        let numbers = self.objects.numbers();
        let moves: Vec<(&Wanted, usize)> =
            moves.iter().filter_map(|m| Some((m, numbers.address(m.page)?))).collect();
        let list: Vec<(usize, NodeId)> = moves.iter().map(|(m, address)| (*address, m.to)).collect();
        if list.is_empty() {
            return 0;
        }
        let mut moved = 0;
        list.iter().for_each(|(address, _)| self.leave_for_now(*address));
        let begin = (self.clocks.thread)();
        let mut results = Vec::with_capacity(list.len());
        self.mover.move_pages(&list, &mut results);
        let cost = Ns(((self.clocks.thread)() - begin).0 / list.len() as u64);
        let (now, unasked) = ((self.clocks.wall)(), self.cause_of_moves());
        for ((m, address), result) in moves.into_iter().zip(results) {
            if let Some(o) = self.objects.at(address) {
                let before = o.home(m.page).filter(|home| *home != m.to);
                if let (Some(stream), Some(from)) = (&mut self.stream, before) {
                    let cause = if m.told { Cause::Policy } else { unasked };
                    let moved = Moved { from, to: m.to, cause, cost: Some(cost), outcome: result };
                    stream.moved(o, m.page.0 - o.pages.first.0, moved, now);
                }
                match result {
                    MoveResult::Moved => {
                        moved += 1;
                        self.ping_pongs_now += u64::from(o.note_move(m.page, m.to));
                    }
                    MoveResult::AlreadyThere => o.set_home(m.page, m.to),
                    // The rest of a huge page may have taken this page elsewhere.
                    MoveResult::Busy => {
                        let mut now = Vec::with_capacity(1);
                        self.mover.homes(address, 1, None, &mut now);
                        now.into_iter().flatten().for_each(|node| o.set_home(m.page, node));
                    }
                    _ => {}
                }
            }
            if m.told {
                self.policy.outcome(&MoveOutcome { page: m.page, to: m.to, result, cost });
            }
        }
        self.watch_again();
        self.moved_in_round += moved;
        self.has_moved |= moved > 0;
        moved
    }

    /// Adds pages to `list`, without held-back blocks unless the program asks for them.
    fn add_to_arm(&mut self, pages: PageRange, list: &mut ToArm) {
        let Some(start) = self.objects.numbers().address(pages.first) else { return };
        self.objects.at(start).into_iter().for_each(|o| o.armed = true);
        let Some(object) = self.objects.get(start) else { return };
        let (block, list) = (block_of(object.bytes), list.of(self.manner(object)));
        let end = start + pages.count as usize * PAGE;
        let mut from = start;
        if !self.asked {
            for held in (Span { start, end }).pieces(block) {
                if self.hold.group(held.start, block) == Group::Held {
                    list.extend(self.placed.rest_of(Span { start: from, end: held.start }));
                    from = held.end;
                }
            }
        }
        list.extend(self.placed.rest_of(Span { start: from, end }));
    }

    /// Arms the spans of `list`. Returns the number of pages.
    pub(super) fn arm(&mut self, list: &ToArm) -> u64 {
        let mut armed = 0;
        for (spans, manner) in [(&list.around, Manner::Around), (&list.alone, Manner::Alone)] {
            if !spans.is_empty() {
                armed += self.mover.arm(spans, manner).pages;
            }
        }
        armed
    }

    /// Arms the held-back blocks, as far as the budget has room.
    fn arm_held(&mut self) {
        self.armed_all = true;
        self.wait_held();
        self.take_turns();
    }

    /// The manner in which pages of an object of `bytes` bytes come to their toucher: one by one if
    /// a node's part may be no longer than what one touch brings along.
    pub(super) fn manner(&self, object: &Object) -> Manner {
        let small = object.bytes < self.settings.machine.nodes() * PARTS * AROUND * PAGE;
        let alone = (small || object.mixed) && self.settings.arming == Arming::First;
        if alone { Manner::Alone } else { Manner::Around }
    }

    /// Arms seams once more, to come page by page. At a seam, homes of two nodes meet, and whoever
    /// came first to a block has brought the pages of both.
    pub(super) fn arm_seams(&mut self) {
        let mut list = Vec::new();
        for object in self.objects.live().filter(|o| o.armed && !o.pilot) {
            let seams = object.seams(AROUND);
            let bytes: usize = seams.iter().map(|(from, to)| to - from).sum();
            // A pattern that consists of seams has no seams to correct.
            if bytes <= object.bytes / SEAMS {
                list.extend(seams);
            }
        }
        let rest = |(start, end)| self.placed.rest_of(Span { start, end });
        let alone: Vec<Span> = list.into_iter().flat_map(rest).collect();
        self.arm(&ToArm { alone, ..ToArm::default() });
    }

    /// Tells the policy of the touches since the last call.
    pub(super) fn take_touches(&mut self) {
        let mut touches = std::mem::take(&mut self.touches);
        touches.clear();
        self.mover.touches(&mut |t| touches.push(t));
        if !touches.is_empty() {
            self.unsettled = true;
            self.heavy(Self::first_touches);
            self.heavy(|d| touches.iter().for_each(|t| d.touch(t)));
        }
        self.touches = touches;
    }

    fn touch(&mut self, touch: &Touch) {
        let Some(object) = self.objects.at(touch.address) else { return };
        if !touch.moved {
            return self.armed_told(touch.address, touch.node);
        }
        if object.awaited && !object.armed {
            // A first touch. The mover has noted the home, and reports it when the object is looked
            // at.
            return;
        }
        let (id, whole, first) = ((object.address, object.id), object.whole_pages(), object.pages.first.0);
        let index = (touch.address.saturating_sub(whole.start) / PAGE) as u64;
        let count = u64::from(touch.pages).min(object.pages.count.saturating_sub(index));
        object.touch(touch.node, count);
        let page = |i| PageNo(first + i);
        let elsewhere = |i: &u64| object.home(page(*i)).is_some_and(|home| home != touch.node);
        let remote = (index..index + count).filter(elsewhere).count() as u64;
        if let Some(stream) = &mut self.stream {
            // Nobody is known to have touched the pages that came along.
            let home = object.home(page(index)).unwrap_or(touch.node);
            stream.saw(object, index, (touch.node, home), None);
        }
        self.later.forget(PageRange { first: PageNo(first + index), count });
        let homes = object.homes_of(PageNo(first + index));
        let sample = self.hold.touched(touch.address, homes, touch.node);
        if let Some((group, Some(home))) = sample {
            self.record_sample(touch.address, (group, home), touch.node);
        }
        self.probed(id, touch, remote);
        self.pilot_told(id, touch, remote > 0);
        let (node, now) = (touch.node, (self.clocks.wall)());
        let mut decisions = std::mem::take(&mut self.decisions);
        for i in index..index + count {
            let page = PageNo(first + i);
            let Some(object) = self.objects.at(touch.address) else { break };
            let Some(home) = object.home(page) else {
                object.was_at(node, i);
                self.record_home(touch.address, page, node);
                continue;
            };
            object.note_touch(page);
            if home != node {
                let back = object.note_move(page, node);
                if let Some(stream) = &mut self.stream {
                    let moved = Moved {
                        from: home,
                        to: node,
                        cause: Cause::NextTouch,
                        cost: None,
                        outcome: MoveResult::Moved,
                    };
                    stream.moved(object, i, moved, now);
                }
                if sample.is_none() {
                    self.trial.moved += 1;
                    self.has_moved = true;
                    self.moved_now += 1;
                    self.ping_pongs_now += u64::from(back);
                }
            }
            self.policy.observe(&Event::Touched { page, home, node });
            decisions.clear();
            self.policy.poll((self.clocks.wall)() - self.started, &mut decisions);
            for d in decisions.as_slice() {
                self.after_touch(*d, page, touch);
            }
        }
        self.decisions = decisions;
    }

    /// Handles a decision after a touch. The touch itself has mostly done what the policy wants.
    fn after_touch(&mut self, decision: Decision, page: PageNo, touch: &Touch) {
        match decision {
            Decision::Move { page: p, to } if p == page && to == touch.node && touch.moved => {
                self.policy.outcome(&MoveOutcome { page, to, result: MoveResult::Moved, cost: Ns::ZERO });
            }
            Decision::Move { page, to } => {
                // One page at a time, because the policy is in the middle of its answer to a touch.
                self.later.forget(PageRange { first: page, count: 1 });
                self.moves.push(Wanted { page, to, told: true });
                self.move_collected();
            }
            Decision::Arm { pages } => {
                let mut list = ToArm::default();
                self.add_to_arm(pages, &mut list);
                self.arm(&list);
            }
            Decision::Replicate { page, on } => self.refuse_copy(page, on),
            _ => {}
        }
    }

    /// Refuses a copy: Linux keeps no copies of a process's pages on several nodes.
    fn refuse_copy(&mut self, page: PageNo, to: NodeId) {
        let result = MoveResult::Unsupported;
        self.policy.outcome(&MoveOutcome { page, to, result, cost: Ns::ZERO });
    }

    /// At the start of a round: takes samples of both groups, or acts on the verdict.
    pub(super) fn judge(&mut self) {
        if self.hold.off
            || self.hold.verdict() != Verdict::Open
            || self.objects.live().all(|o| o.moved == 0 || o.pilot)
        {
            return;
        }
        let watched = self.watching.is_some();
        let (objects, threads_change) = (&self.objects, self.seen_on.any_changes());
        match self.hold.judge(threads_change, || is_evener(objects)) {
            Verdict::Open if self.hold.is_exhausted() => {
                // No verdict is possible. Blocks that stay held back would only lose by that.
                self.hold.forget_pending();
                self.hold.release();
                if !watched {
                    self.arm_held();
                }
            }
            Verdict::Open if watched || !self.within_budget() => {}
            Verdict::Open => self.take_samples(),
            Verdict::Pays | Verdict::AtHome | Verdict::Evener => {
                self.hold.forget_pending();
                if !watched {
                    self.arm_held();
                }
            }
            Verdict::NoGain | Verdict::Harms => {
                self.hold.forget_pending();
                self.undo();
            }
        }
    }

    /// Whether a page is held back for the comparison.
    fn is_held(&self, address: usize, block: usize) -> bool {
        self.hold.group(address, block) == Group::Held
    }

    /// Arms one page in each of some moved blocks, and of some held-back blocks. Where there are
    /// few held-back blocks, it arms several pages in each.
    fn take_samples(&mut self) {
        self.hold.forget_pending();
        let wanted = self.hold.wanted();
        if wanted == [0, 0] {
            return;
        }
        let [moved, held] = [Group::Moved, Group::Held].map(|group| self.blocks_by_lot(group));
        // Without the other group there is nothing to compare.
        if held.is_empty() && self.hold.samples().1.all == 0 {
            return;
        }
        let of_each = (wanted[1] / held.len().max(1)).clamp(1, HELD);
        let held = held.iter().flat_map(|b| self.pages_by_lot(*b, of_each)).take(wanted[1]);
        let has_moved = |page: &usize| self.objects.get(*page).is_some_and(|o| o.has_moved(*page));
        let moved = moved.iter().flat_map(|b| self.pages_by_lot(*b, 1)).filter(has_moved).take(wanted[0]);
        let picked: Vec<(usize, Group)> =
            held.map(|p| (p, Group::Held)).chain(moved.map(|p| (p, Group::Moved))).collect();
        let mut alone: Vec<Span> = picked.iter().map(|(page, _)| Span::new(*page, PAGE)).collect();
        alone.sort_unstable_by_key(|s| s.start);
        // Nobody touches pages that could not be armed. The next round forgets them.
        if self.arm(&ToArm { alone, ..ToArm::default() }) > 0 {
            picked.into_iter().for_each(|(page, group)| self.hold.sampled(page, group));
        }
    }

    /// All blocks of a group, in an order that differs from round to round. So samples come from
    /// all memory, and the verdict holds for all memory.
    fn blocks_by_lot(&self, group: Group) -> Vec<Span> {
        let mut blocks = Vec::new();
        for object in self.objects.live().filter(|o| o.armed && !o.pilot) {
            let (whole, block) = (object.whole_pages(), block_of(object.bytes));
            let all = Span { start: whole.start, end: whole.end }.pieces(block);
            blocks.extend(all.filter(|b| self.hold.group(b.start, block) == group));
        }
        blocks.sort_by_cached_key(|b| self.draw(b.start));
        blocks
    }

    /// `count` different pages of the block, others each round. Leaves out pages that the program
    /// has ruled on.
    fn pages_by_lot(&self, block: Span, count: usize) -> impl Iterator<Item = usize> {
        let (pages, first) = (block.pages(), self.draw(block.start));
        let count = count.min(pages);
        let page = move |i| block.start + (first + i * (pages / count)) % pages * PAGE;
        (0..count).map(page).filter(|page| !self.ruled.has(*page))
    }

    /// A number that differs from round to round.
    fn draw(&self, salt: usize) -> usize {
        let x = (salt as u64 ^ self.times().rounds.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
    }

    /// Moves everything back: each block to its former home. It moves as much as the budget has
    /// room for now, and the rest later.
    fn undo(&mut self) {
        self.mover.disarm();
        // Other threads of the team may have touched pages before the disarming.
        self.take_touches();
        self.objects.note_contested();
        self.stop_watching();
        self.probing = Probing::default();
        self.later.undo();
        let back: Vec<_> = self.objects.live().flat_map(Object::moved_ranges).collect();
        let back: Vec<_> = back.into_iter().flat_map(|(pages, home)| self.not_ruled(pages, home)).collect();
        self.move_ranges(back);
        self.note_undone(0);
    }

    /// The parts of these pages that the program has not ruled on.
    fn not_ruled(&self, pages: PageRange, home: NodeId) -> Vec<(PageRange, NodeId)> {
        let Some(start) = self.objects.numbers().address(pages.first) else { return Vec::new() };
        let rest = self.ruled.rest_of(Span::new(start, pages.count as usize * PAGE)).into_iter();
        let rest = rest.map(|span| span.inner(PAGE)).filter(|span| !span.is_empty());
        let range = |span: Span| PageRange {
            first: PageNo(pages.first.0 + ((span.start - start) / PAGE) as u64),
            count: span.pages() as u64,
        };
        rest.map(|span| (range(span), home)).collect()
    }
}

/// Whether pages are spread more evenly over the nodes than when they were first seen.
fn is_evener(objects: &Objects) -> bool {
    let (mut before, mut now) = (Vec::new(), Vec::new());
    objects.live().for_each(|o| o.add_homes(&mut before, &mut now));
    let most = |pages: Vec<u64>| pages.into_iter().max().unwrap_or(0);
    let (before, now) = (most(before), most(now));
    before > 0 && now * 8 <= before * EVENER
}
