//! Carrying out what a policy decides, and telling it what became of it.

use homenode_model::{Decision, DecisionBuf, Event, MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange};
use homenode_sys::Span;

use super::mover::{Brought, Touch};
use super::run::Driver;
use crate::guard::holdback::{Group, Verdict, block_of};
use crate::watch::numbers::PAGE;

/// Starts of regions at which a new object is looked at for pages; one that has none by then is left to first touch.
const LOOKS: u8 = 3;
/// Pages whose homes are asked for at once.
const ASK: usize = 4096;

impl Driver {
    /// Whether an object has come that has not been armed yet.
    pub(super) fn has_new_objects(&self) -> bool {
        self.objects.unseen() > 0
    }

    /// Arms the objects that have pages and were not armed before. How many pages.
    pub(super) fn request_new(&mut self) -> u64 {
        let mut armed = 0;
        for (address, pages) in self.objects.take_unseen(LOOKS) {
            if self.introduce(address, pages) > 0 {
                armed += self.request_pages(pages);
                self.objects.seen(address);
            }
        }
        armed
    }

    /// Arms all objects. How many pages.
    pub(super) fn request_all(&mut self) -> u64 {
        let mut armed = self.request_new();
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
    fn introduce(&mut self, object: usize, pages: PageRange) -> u64 {
        let Some(start) = self.objects.numbers().address(pages.first) else { return 0 };
        let mut homes = Vec::with_capacity(ASK);
        let mut there = 0;
        let mut at = 0;
        while at < pages.count {
            let n = (pages.count - at).min(ASK as u64);
            homes.clear();
            self.mover.homes(start + at as usize * PAGE, n as usize, &mut homes);
            for (i, home) in homes.iter().enumerate() {
                let Some(home) = *home else { continue };
                there += 1;
                let page = PageNo(pages.first.0 + at + i as u64);
                if let Some(o) = self.objects.at(object) {
                    o.was_at(home, page.0 - o.pages.first.0);
                }
                self.policy.observe(&Event::Fault { page, node: home });
            }
            self.poll();
            at += n;
        }
        there
    }

    /// Carries out decisions, in order; runs of pages that go the same way go at once. How many pages were armed.
    pub(super) fn carry_out(&mut self, decisions: &DecisionBuf) -> u64 {
        let mut armed = 0;
        let mut run: Option<(PageRange, NodeId)> = None;
        for decision in decisions.as_slice() {
            match *decision {
                Decision::Arm { pages } => armed += self.arm(pages),
                Decision::Place { page, node } | Decision::Move { page, to: node } => match &mut run {
                    Some((pages, to)) if *to == node && pages.first.0 + pages.count == page.0 => {
                        pages.count += 1
                    }
                    _ => {
                        if let Some((pages, to)) = run.replace((PageRange { first: page, count: 1 }, node)) {
                            self.bring(pages, to);
                        }
                    }
                },
                Decision::Replicate { page, on } => self.refuse_copy(page, on),
                _ => {}
            }
        }
        if let Some((pages, to)) = run {
            self.bring(pages, to);
        }
        armed
    }

    /// Moves pages that are not at `to`.
    fn bring(&mut self, pages: PageRange, to: NodeId) {
        let Some(object) = self.objects.numbers().address(pages.first).and_then(|a| self.objects.at(a))
        else {
            return;
        };
        let (first, start) = (object.pages.first.0, object.whole_pages().start);
        let placed = |p: PageNo| self.placed.has(start + (p.0 - first) as usize * PAGE);
        let wrong = |p: PageNo| object.home(p).is_some_and(|h| h != to) && !placed(p);
        let mut list: Vec<PageRange> = Vec::new();
        for page in pages.iter().filter(|p| wrong(*p)) {
            match list.last_mut() {
                Some(r) if r.first.0 + r.count == page.0 => r.count += 1,
                _ => list.push(PageRange { first: page, count: 1 }),
            }
        }
        for range in list {
            self.move_range(range, to);
        }
    }

    pub(super) fn move_range(&mut self, pages: PageRange, to: NodeId) -> u64 {
        let Some(address) = self.objects.numbers().address(pages.first) else { return 0 };
        let before = self.mover.counters().own_ns;
        let Brought { there, moved, others } = self.mover.move_to(address, pages.count as usize, to);
        let cost = Ns((self.mover.counters().own_ns - before) / pages.count.max(1));
        for (i, page) in pages.iter().enumerate() {
            let result = if (i as u64) < there { MoveResult::Moved } else { others };
            self.policy.outcome(&MoveOutcome { page, to, result, cost });
        }
        if let Some(o) = self.objects.at(address) {
            o.moved += moved;
            for page in pages.iter().take(there as usize) {
                o.set_home(page, to);
            }
        }
        moved
    }

    /// Arms pages, but for the blocks that are held back.
    fn arm(&mut self, pages: PageRange) -> u64 {
        let Some(start) = self.objects.numbers().address(pages.first) else { return 0 };
        let Some(object) = self.objects.at(start) else { return 0 };
        object.armed = true;
        let block = block_of(object.bytes);
        let end = start + pages.count as usize * PAGE;
        let (mut at, mut from, mut armed) = (start, start, 0);
        while at < end {
            let next = ((at / block + 1) * block).min(end);
            if self.hold.group(at, block) == Group::Held {
                armed += self.arm_bytes(from, at);
                from = next;
            }
            at = next;
        }
        armed + self.arm_bytes(from, end)
    }

    fn arm_bytes(&mut self, from: usize, to: usize) -> u64 {
        let parts = self.placed.rest_of(Span { start: from, end: to });
        parts.into_iter().map(|part| self.mover.arm(part.start, part.len()).pages).sum()
    }

    /// Tells the policy of the touches since the last time.
    pub(super) fn take_touches(&mut self) {
        let mut touches = std::mem::take(&mut self.touches);
        touches.clear();
        self.mover.touches(&mut |t| touches.push(t));
        for touch in &touches {
            self.touch(touch);
        }
        self.touches = touches;
    }

    fn touch(&mut self, touch: &Touch) {
        let Some(object) = self.objects.at(touch.address) else { return };
        let whole = object.whole_pages();
        let index = touch.address.saturating_sub(whole.start) / PAGE;
        let first = PageNo(object.pages.first.0 + index as u64);
        let count = u64::from(touch.pages).min(object.pages.count.saturating_sub(index as u64));
        let home = touch.from.or_else(|| object.home(first));
        object.touch(touch.node, count);
        let sample = self.hold.touched(touch.address, home, touch.node);
        let moves = touch.moved && home.is_some_and(|h| h != touch.node);
        if moves {
            let object = self.objects.at(touch.address).expect("it was there above");
            let back = object.note_move(first, count, touch.node);
            object.moved += count;
            if !sample {
                self.moved_now += count;
                self.ping_pongs_now += back;
            }
        }
        let node = touch.node;
        let mut decisions = std::mem::take(&mut self.decisions);
        for page in (PageRange { first, count }).iter() {
            let Some(home) = home else { continue };
            self.policy.observe(&Event::Touched { page, home, node });
            decisions.clear();
            self.policy.poll((self.clock)(), &mut decisions);
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
                self.move_range(PageRange { first: page, count: 1 }, to);
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
    pub(super) fn judge(&mut self, now: Ns) {
        if self.hold.off || self.hold.verdict() != Verdict::Open || self.objects.live().all(|o| o.moved == 0)
        {
            return;
        }
        match self.hold.judge() {
            Verdict::Open if self.within_budget(now) => self.take_samples(),
            Verdict::Open => {}
            Verdict::Pays | Verdict::NoGain => {
                self.hold.forget_pending();
                self.request_all();
            }
            Verdict::Harms => {
                self.hold.forget_pending();
                self.undo();
            }
        }
    }

    /// Arms a page each of some blocks that moved and of some that were held back.
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
                // A page somewhere in the block, another one each time.
                let pages = (next - at) / PAGE;
                let page = at + self.draw(at) % pages.max(1) * PAGE;
                let moved = object.has_moved(page);
                if left[group as usize] > 0
                    && (group == Group::Held || moved)
                    && self.draw(page).is_multiple_of(4)
                {
                    left[group as usize] -= 1;
                    picked.push((page, group));
                }
                at = next;
            }
        }
        // Without the other group there is nothing to compare with.
        if !picked.iter().any(|(_, g)| *g == Group::Held) && self.hold.samples().1.all == 0 {
            picked.clear();
        }
        for (page, group) in picked {
            if self.mover.arm(page, PAGE).pages > 0 {
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
        let back: Vec<_> = self.objects.live().flat_map(crate::watch::Object::moved_ranges).collect();
        let mut moved = 0;
        for (pages, home) in back {
            moved += self.move_range(pages, home);
        }
        self.stopped.get_or_insert_with(|| {
            format!("moving made it worse (presence samples); {moved} pages were moved back")
        });
    }
}
