//! Carrying out what a policy decides, and telling it what became of it.

use std::collections::BTreeSet;

use homenode_model::{Decision, DecisionBuf, Event, MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange};
use homenode_sys::{HUGE, Span};

use super::mover::{Manner, Touch};
use super::run::Driver;
use super::settings::Arming;
use crate::guard::holdback::{Group, Verdict, block_of};
use crate::watch::numbers::PAGE;

/// Pages whose homes are asked for at once.
const ASK: usize = 4096;
/// Pages that come with a touch.
const AROUND: usize = 16;
/// A node's part of an object that is armed by blocks is at least so many times what comes with a touch.
const PARTS: usize = 4;
/// Seams are looked at where they are at most one part in so many of an object.
const SEAMS: usize = 8;
/// Samples of a block that is held back, in one round.
const HELD: usize = 4;

/// A page that is to be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    page: PageNo,
    to: NodeId,
    /// The policy is told what became of it.
    told: bool,
}

/// Pages that go to the same node.
struct Run {
    pages: PageRange,
    to: NodeId,
    /// The policy is told what became of each.
    told: bool,
}

impl Run {
    const fn new(page: PageNo, to: NodeId, told: bool) -> Self {
        Self { pages: PageRange { first: page, count: 1 }, to, told }
    }
}

impl Driver {
    /// Arms the objects that have pages and were not armed before; `all`, or those whose turn it is to be looked at. How many pages.
    pub(super) fn request_new(&mut self, all: bool) -> u64 {
        let mut armed = 0;
        for (address, pages) in self.objects.take_unseen(all) {
            if self.introduce(address, pages) > 0 {
                armed += self.request_pages(pages);
                self.objects.seen(address);
            }
        }
        armed
    }

    /// Arms all objects. How many pages.
    pub(super) fn request_all(&mut self) -> u64 {
        self.armed_all = true;
        self.request_new(true) + self.request_known()
    }

    /// Arms the objects that were armed before. How many pages.
    pub(super) fn request_known(&mut self) -> u64 {
        let mut armed = 0;
        let all: Vec<PageRange> = self.objects.live().filter(|o| o.armed).map(|o| o.pages).collect();
        for pages in all {
            armed += self.request_pages(pages);
        }
        armed
    }

    /// Arms what of the objects lies in a range. How many pages.
    pub(super) fn request(&mut self, address: usize, bytes: usize) -> u64 {
        let mut armed = 0;
        for pages in self.ranges(address, bytes) {
            let Some(start) = self.objects.numbers().address(pages.first) else { continue };
            let known = self.objects.at(start).is_some_and(|o| o.armed);
            if !known && let Some((first, whole)) = self.objects.at(start).map(|o| (o.address, o.pages)) {
                self.introduce(first, whole);
                self.objects.seen(first);
            }
            armed += self.request_pages(pages);
        }
        armed
    }

    fn request_pages(&mut self, pages: PageRange) -> u64 {
        self.policy.observe(&Event::NextTouchRequest { pages });
        self.poll()
    }

    /// Tells the policy where the pages of an object are, as if each was touched there now, and moves those that it
    /// wants elsewhere. How many pages there are.
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
                let Some(home) = *home else { continue };
                there += 1;
                let page = PageNo(pages.first.0 + at + i as u64);
                let news = self.objects.at(object).is_some_and(|o| o.was_at(home, page.0 - o.pages.first.0));
                if news {
                    self.policy.observe(&Event::Fault { page, node: home });
                }
            }
            self.poll();
            at += n;
        }
        there
    }

    /// Carries out decisions, in order; runs of pages that go the same way go at once. How many pages were armed.
    pub(super) fn carry_out(&mut self, decisions: &DecisionBuf) -> u64 {
        let mut armed = 0;
        let mut run: Option<Run> = None;
        for decision in decisions.as_slice() {
            match *decision {
                Decision::Arm { pages } if self.watching.is_some() => self.ask(pages),
                Decision::Arm { pages } => armed += self.arm(pages),
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
        armed
    }

    /// Makes the run longer, or carries it out and begins another.
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

    /// Collects the pages of a run that are not there. The others that the policy wants moved have their outcome.
    fn bring(&mut self, run: &Run) {
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
            // What the pages from here on have in common, and how many have it.
            let kind = |d: &Self, p: PageNo| {
                let there = d.objects.get(start).and_then(|o| o.home(p)) == Some(run.to);
                if there {
                    Some(MoveResult::AlreadyThere)
                } else if d.placed.has(address(p)) || run.told && d.is_held(address(p), block) {
                    // The program has said where it belongs, or it is held back: it stays, as a page in use does.
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

    /// Tells the policy what became of pages that it wants moved.
    fn answer(&mut self, run: &Run, pages: PageRange, result: MoveResult) {
        if run.told {
            for page in pages.iter() {
                self.policy.outcome(&MoveOutcome { page, to: run.to, result, cost: Ns::ZERO });
            }
        }
    }

    /// Moves pages that the policy knows nothing of. How many moved.
    pub(super) fn move_ranges(&mut self, ranges: impl IntoIterator<Item = (PageRange, NodeId)>) -> u64 {
        for (pages, to) in ranges {
            self.moves.extend(pages.iter().map(|page| Wanted { page, to, told: false }));
        }
        self.move_collected()
    }

    /// Moves all pages that were collected, in one go: the kernel is quickest with many. The policy learns what became of each that
    /// it wanted moved. How many moved.
    fn move_collected(&mut self) -> u64 {
        let mut moves = std::mem::take(&mut self.moves);
        let numbers = self.objects.numbers();
        let stays = std::mem::take(&mut self.stays);
        if !moves.is_empty() {
            // Of a huge page, those that are to stay have a say, too.
            let unit = |w: &Wanted| numbers.address(w.page).map(|address| address & !(HUGE - 1));
            let units: BTreeSet<usize> = moves.iter().filter_map(unit).collect();
            moves.extend(stays.into_iter().filter(|w| unit(w).is_some_and(|u| units.contains(&u))));
        }
        moves.retain(|m| numbers.address(m.page).is_some());
        let list: Vec<(usize, NodeId)> =
            moves.iter().filter_map(|m| Some((numbers.address(m.page)?, m.to))).collect();
        let mut moved = 0;
        if !list.is_empty() {
            list.iter().for_each(|(address, _)| self.leave_for_now(*address));
            let begin = (self.clocks.thread)();
            let mut results = Vec::with_capacity(list.len());
            self.mover.move_pages(&list, &mut results);
            let cost = Ns(((self.clocks.thread)() - begin).0 / list.len() as u64);
            for ((m, (address, to)), result) in moves.iter().zip(&list).zip(results) {
                if let Some(o) = self.objects.at(*address) {
                    match result {
                        MoveResult::Moved => {
                            moved += 1;
                            self.ping_pongs_now += u64::from(o.note_move(m.page, *to));
                        }
                        MoveResult::AlreadyThere => o.set_home(m.page, *to),
                        // The rest of a huge page may have taken it elsewhere.
                        MoveResult::Busy => {
                            let mut now = Vec::with_capacity(1);
                            self.mover.homes(*address, 1, None, &mut now);
                            now.into_iter().flatten().for_each(|node| o.set_home(m.page, node));
                        }
                        _ => {}
                    }
                }
                if m.told {
                    self.policy.outcome(&MoveOutcome { page: m.page, to: *to, result, cost });
                }
            }
            self.watch_again();
        }
        self.moved_in_round += moved;
        self.has_moved |= moved > 0;
        moves.clear();
        self.moves = moves;
        moved
    }

    /// Arms pages; but for the blocks that are held back, unless the program asks for it.
    fn arm(&mut self, pages: PageRange) -> u64 {
        let Some(start) = self.objects.numbers().address(pages.first) else { return 0 };
        let Some(object) = self.objects.at(start) else { return 0 };
        object.armed = true;
        let bytes = object.bytes;
        let (block, manner) = (block_of(bytes), self.manner(bytes));
        let end = start + pages.count as usize * PAGE;
        if self.asked {
            return self.arm_bytes(start, end, manner);
        }
        let (mut at, mut from, mut armed) = (start, start, 0);
        while at < end {
            let next = ((at / block + 1) * block).min(end);
            if self.hold.group(at, block) == Group::Held {
                armed += self.arm_bytes(from, at, manner);
                from = next;
            }
            at = next;
        }
        armed + self.arm_bytes(from, end, manner)
    }

    fn arm_bytes(&mut self, from: usize, to: usize, manner: Manner) -> u64 {
        let parts = self.placed.rest_of(Span { start: from, end: to });
        parts.into_iter().map(|part| self.mover.arm(part.start, part.len(), manner).pages).sum()
    }

    /// Arms the blocks that were held back. The others have come to their nodes: to arm them once more would copy all memory again.
    fn arm_held(&mut self) {
        self.armed_all = true;
        let mut held = Vec::new();
        for object in self.objects.live().filter(|o| o.armed) {
            let (whole, block) = (object.whole_pages(), block_of(object.bytes));
            let blocks = Span { start: whole.start, end: whole.end }.pieces(block);
            let blocks = blocks.filter(|b| self.hold.was_held(b.start, block));
            held.extend(blocks.map(|b| (b, self.manner(object.bytes))));
        }
        for (part, manner) in held {
            self.arm_bytes(part.start, part.end, manner);
        }
    }

    /// How the pages of an object of `bytes` come: where a node's part of it may be no longer than what comes with a touch, one by
    /// one.
    fn manner(&self, bytes: usize) -> Manner {
        let small = bytes < self.settings.machine.nodes() * PARTS * AROUND * PAGE;
        if small && self.settings.arming == Arming::First { Manner::Alone } else { Manner::Around }
    }

    /// Where homes of two nodes meet, the pages between were brought by whoever came first to one of them. They are armed once
    /// more, to come one by one.
    pub(super) fn arm_seams(&mut self) {
        let mut list = Vec::new();
        for object in self.objects.live().filter(|o| o.armed) {
            let seams = object.seams(AROUND);
            let bytes: usize = seams.iter().map(|(from, to)| to - from).sum();
            // A pattern that is made of seams is none that has any.
            if bytes <= object.bytes / SEAMS {
                list.extend(seams);
            }
        }
        for (from, to) in list {
            for part in self.placed.rest_of(Span { start: from, end: to }) {
                self.mover.arm(part.start, part.len(), Manner::Alone);
            }
        }
    }

    /// Tells the policy of the touches since the last time.
    pub(super) fn take_touches(&mut self) {
        let mut touches = std::mem::take(&mut self.touches);
        touches.clear();
        self.mover.touches(&mut |t| touches.push(t));
        if !touches.is_empty() {
            self.unsettled = true;
            self.heavy(|d| touches.iter().for_each(|t| d.touch(t)));
        }
        self.touches = touches;
    }

    fn touch(&mut self, touch: &Touch) {
        let Some(object) = self.objects.at(touch.address) else { return };
        if !touch.moved {
            return self.armed_told(touch.address, touch.node);
        }
        let (whole, first) = (object.whole_pages(), object.pages.first.0);
        let index = (touch.address.saturating_sub(whole.start) / PAGE) as u64;
        let count = u64::from(touch.pages).min(object.pages.count.saturating_sub(index));
        object.touch(touch.node, count);
        let home = object.home(PageNo(first + index));
        let sample = self.hold.touched(touch.address, home, touch.node);
        let node = touch.node;
        let mut decisions = std::mem::take(&mut self.decisions);
        for i in index..index + count {
            let page = PageNo(first + i);
            let Some(object) = self.objects.at(touch.address) else { break };
            let Some(home) = object.home(page) else {
                object.was_at(node, i);
                continue;
            };
            if home != node {
                let back = object.note_move(page, node);
                if !sample {
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

    /// What the policy wants after a touch has mostly been done by the touch.
    fn after_touch(&mut self, decision: Decision, page: PageNo, touch: &Touch) {
        match decision {
            Decision::Move { page: p, to } if p == page && to == touch.node && touch.moved => {
                self.policy.outcome(&MoveOutcome { page, to, result: MoveResult::Moved, cost: Ns::ZERO });
            }
            Decision::Move { page, to } => {
                // One by one, for the policy is in the middle of its answer to a touch.
                self.moves.push(Wanted { page, to, told: true });
                self.move_collected();
            }
            Decision::Arm { pages } => {
                self.arm(pages);
            }
            Decision::Replicate { page, on } => self.refuse_copy(page, on),
            _ => {}
        }
    }

    /// Linux keeps no copies of a process's pages on several nodes.
    fn refuse_copy(&mut self, page: PageNo, to: NodeId) {
        let result = MoveResult::Unsupported;
        self.policy.outcome(&MoveOutcome { page, to, result, cost: Ns::ZERO });
    }

    /// At the begin of a round: takes samples of both groups, or acts on the verdict.
    pub(super) fn judge(&mut self) {
        if self.hold.off || self.hold.verdict() != Verdict::Open || self.objects.live().all(|o| o.moved == 0)
        {
            return;
        }
        let watched = self.watching.is_some();
        match self.hold.judge() {
            Verdict::Open if self.hold.is_exhausted() => {
                // Nobody can tell; blocks that stay behind for that would only lose.
                self.hold.forget_pending();
                self.hold.release();
                if !watched {
                    self.arm_held();
                }
            }
            Verdict::Open if watched || !self.within_budget() => {}
            Verdict::Open => self.take_samples(),
            Verdict::Pays | Verdict::NoGain => {
                self.hold.forget_pending();
                if !watched {
                    self.arm_held();
                }
            }
            Verdict::Harms => {
                self.hold.forget_pending();
                self.undo();
            }
        }
    }

    /// Whether a page stays where it is for the comparison.
    fn is_held(&self, address: usize, block: usize) -> bool {
        self.hold.group(address, block) == Group::Held
    }

    /// Arms a page each of some blocks that moved, and a few of those that were held back, for these are few.
    fn take_samples(&mut self) {
        self.hold.forget_pending();
        let mut left = self.hold.wanted();
        if left == [0, 0] {
            return;
        }
        let mut picked: Vec<(usize, Group)> = Vec::with_capacity(left[0] + left[1]);
        for object in self.objects.live().filter(|o| o.armed) {
            let whole = object.whole_pages();
            let block = block_of(object.bytes);
            let mut at = whole.start;
            while at < whole.end && left != [0, 0] {
                let next = ((at / block + 1) * block).min(whole.end);
                let group = self.hold.group(at, block);
                let pages = (next - at) / PAGE;
                // Pages somewhere in the block, others each time, no two the same.
                let first = self.draw(at);
                for i in 0..if group == Group::Held { HELD.min(pages) } else { 1 } {
                    let page = at + (first + i * pages.div_ceil(HELD)) % pages.max(1) * PAGE;
                    let chosen = match group {
                        Group::Held => true,
                        Group::Moved => object.has_moved(page) && self.draw(page).is_multiple_of(4),
                    };
                    if chosen && left[group as usize] > 0 && !picked.contains(&(page, group)) {
                        left[group as usize] -= 1;
                        picked.push((page, group));
                    }
                }
                at = next;
            }
        }
        // Without the other group there is nothing to compare with.
        if !picked.iter().any(|(_, g)| *g == Group::Held) && self.hold.samples().1.all == 0 {
            picked.clear();
        }
        for (page, group) in picked {
            if self.mover.arm(page, PAGE, Manner::Alone).pages > 0 {
                self.hold.sampled(page, group);
            }
        }
    }

    /// A number that differs from round to round.
    fn draw(&self, salt: usize) -> usize {
        let x = (salt as u64 ^ self.times().rounds.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
    }

    /// Takes back what moved: every block goes to where it was.
    fn undo(&mut self) {
        self.mover.disarm();
        self.stop_watching();
        let back: Vec<_> = self.objects.live().flat_map(crate::watch::Object::moved_ranges).collect();
        let moved = self.move_ranges(back);
        self.stopped.get_or_insert_with(|| {
            format!("moving made it worse (presence samples); {moved} pages were moved back")
        });
    }
}
