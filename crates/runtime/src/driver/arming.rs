//! Carries out the decisions of a policy, and tells the policy the outcome.

use homenode_model::{Decision, DecisionBuf, Event, MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange};
use homenode_sys::Span;
use homenode_wire::facts::Arming;
use homenode_wire::live::MoveOrigin;

use super::mover::{Manner, Touch};
use super::run::Driver;
use super::state::arming::{SameTarget, ToArm};
use super::state::memory::AROUND;
use crate::guard::holdback::{Group, block_of};
use crate::stream::MovedPage;
use crate::watch::Object;
use crate::watch::numbers::PAGE;

/// Pages whose homes the driver asks for in one call.
const ASK: usize = 4096;
/// The driver arms an object by blocks only if a node's part of it is at least this many times as
/// long as what one touch brings along.
const PARTS: usize = 4;
/// Bytes of the largest object whose first touches are seen page by page.
const EACH: usize = 64 << 20;

impl Driver {
    /// Queues all objects for arming. Large ones that were armed before are armed only if they need
    /// it.
    pub(super) fn request_all(&mut self) {
        self.arming.arms_all();
        self.wait_new(true);
        self.wait_once_more();
    }

    /// Arms the part of each object that lies in a range. Returns the number of pages.
    pub(super) fn request(&mut self, address: usize, bytes: usize) -> u64 {
        let ranges = self.memory.ranges(address, bytes);
        for pages in &ranges {
            let Some(start) = self.memory.address(pages.first) else { continue };
            let known = self.memory.objects.at(start).is_some_and(|o| o.treatment.armed);
            if !known
                && let Some((first, whole)) = self.memory.objects.at(start).map(|o| (o.address, o.pages))
            {
                self.introduce(first, whole);
                self.memory.objects.seen(first);
            }
        }
        let armed = self.request_pages(&ranges);
        if armed > 0 && !self.evidence.hold.off {
            ranges.iter().for_each(|pages| self.rule(*pages));
        }
        armed
    }

    /// Marks these pages as ruled by the program.
    fn rule(&mut self, pages: PageRange) {
        self.moves.later.forget(pages);
        self.memory.rule(pages);
    }

    /// Tells the policy where these pages of an object are, as if each page was touched there now,
    /// and moves the pages that the policy wants elsewhere. Returns how many of the pages exist.
    pub(super) fn introduce(&mut self, object: usize, pages: PageRange) -> u64 {
        let Some(start) = self.memory.address(pages.first) else { return 0 };
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
                    self.arming.miss(start + (at as usize + i) * PAGE);
                    continue;
                };
                there += 1;
                let page = PageNo(pages.first.0 + at + i as u64);
                let news =
                    self.memory.objects.at(object).is_some_and(|o| o.was_at(home, page.0 - o.pages.first.0));
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

    /// Arms the pages of the object at `address` that do not exist yet. This includes held-back
    /// blocks, because a first touch moves nothing. Returns the number of pages.
    pub(super) fn await_first_touches(&mut self, address: usize) -> u64 {
        let missing = self.arming.take_missing();
        if missing.is_empty() || !self.mover.sees_first_touches() {
            return 0;
        }
        let Some(object) = self.memory.objects.at(address) else { return 0 };
        object.treatment.awaited = true;
        let manner = if object.bytes <= EACH { Manner::Alone } else { Manner::Around };
        let spans: Vec<Span> =
            missing.into_iter().flat_map(|span| self.memory.placed.rest_of(span)).collect();
        if spans.is_empty() { 0 } else { self.mover.arm(&spans, manner).pages }
    }

    /// Carries out decisions in order. Neighbouring pages with one target go together. Returns the
    /// number of armed pages.
    pub(super) fn carry_out(&mut self, decisions: &DecisionBuf) -> u64 {
        let mut list = ToArm::default();
        let mut run: Option<SameTarget> = None;
        for decision in decisions.as_slice() {
            match *decision {
                Decision::Arm { pages } if self.watching.is_some() => self.ask(pages),
                Decision::Arm { pages } => self.add_to_arm(pages, &mut list),
                Decision::Place { page, node } => {
                    self.add_to_run(&mut run, same_target(page, node, false));
                }
                Decision::Move { page, to } => {
                    self.add_to_run(&mut run, same_target(page, to, true));
                }
                Decision::Replicate { page, on } | Decision::ReplicateLines { page, on } => {
                    self.refuse_copy(page, on);
                }
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
    fn add_to_run(&mut self, run: &mut Option<SameTarget>, next: SameTarget) {
        if !run.as_mut().is_some_and(|run| run.is_extended(&next))
            && let Some(run) = run.replace(next)
        {
            self.bring(&run);
        }
    }

    /// Collects the pages of a run that are not at its target. Answers at once for the others that
    /// the policy wants moved.
    fn bring(&mut self, run: &SameTarget) {
        self.moves.later.forget(run.pages);
        let (mut at, end) = (run.pages.first.0, run.pages.first.0 + run.pages.count);
        while at < end {
            let page = PageNo(at);
            let Some(object) = self.memory.object(page) else {
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
                let there = d.memory.objects.get(start).and_then(|o| o.home(p)) == Some(run.to);
                if there {
                    Some(MoveResult::AlreadyThere)
                } else if d.memory.placed.has(address(p)) || run.told && d.is_held(address(p), block) {
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
                        self.moves.list.stay(pages, run.to);
                    }
                    self.answer(run, pages, result);
                }
                None => self.moves.list.add(pages, run.to, run.told),
            }
            at += count;
        }
    }

    /// Whether a page is held back for the comparison.
    fn is_held(&self, address: usize, block: usize) -> bool {
        self.evidence.hold.group(address, block) == Group::Held
    }

    /// Tells the policy the outcome for pages that it wants moved.
    fn answer(&mut self, run: &SameTarget, pages: PageRange, result: MoveResult) {
        if run.told {
            for page in pages.iter() {
                self.policy.outcome(&MoveOutcome { page, to: run.to, result, cost: Ns::ZERO });
            }
        }
    }

    /// Adds pages to `list`, without held-back blocks unless the program asks for them.
    fn add_to_arm(&mut self, pages: PageRange, list: &mut ToArm) {
        let Some(start) = self.memory.address(pages.first) else { return };
        self.memory.objects.at(start).into_iter().for_each(|o| o.treatment.armed = true);
        let Some(object) = self.memory.objects.get(start) else { return };
        let (block, list) = (block_of(object.bytes), list.of(self.manner(object)));
        let end = start + pages.count as usize * PAGE;
        let mut from = start;
        if !self.arming.asked {
            for held in (Span { start, end }).pieces(block) {
                if self.evidence.hold.group(held.start, block) == Group::Held {
                    list.extend(self.memory.placed.rest_of(Span { start: from, end: held.start }));
                    from = held.end;
                }
            }
        }
        list.extend(self.memory.placed.rest_of(Span { start: from, end }));
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

    /// The manner in which pages of an object of `bytes` bytes come to their toucher: one by one if
    /// a node's part may be no longer than what one touch brings along.
    pub(super) fn manner(&self, object: &Object) -> Manner {
        let small = object.bytes < self.settings.machine.nodes() * PARTS * AROUND * PAGE;
        let alone = (small || object.treatment.mixed) && self.settings.arming == Arming::First;
        if alone { Manner::Alone } else { Manner::Around }
    }

    /// Arms seams once more, to come page by page.
    pub(super) fn arm_seams(&mut self) {
        self.arm(&ToArm::alone(self.memory.seams()));
    }

    /// Tells the policy of the touches since the last call.
    pub(super) fn take_touches(&mut self) {
        let mut touches = std::mem::take(&mut self.buffers.touches);
        touches.clear();
        self.mover.touches(&mut |t| touches.push(t));
        if !touches.is_empty() {
            self.arming.touched();
            self.heavy(Self::first_touches);
            self.heavy(|d| touches.iter().for_each(|t| d.touch(t)));
        }
        self.buffers.touches = touches;
    }

    fn touch(&mut self, touch: &Touch) {
        let Some(object) = self.memory.objects.at(touch.address) else { return };
        if !touch.moved {
            return self.armed_told(touch.address, touch.node);
        }
        if object.treatment.only_awaits() {
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
        if let Some(stream) = &mut self.recording.stream {
            // Nobody is known to have touched the pages that came along.
            let home = object.home(page(index)).unwrap_or(touch.node);
            stream.saw(object, index, (touch.node, home), None);
        }
        self.moves.later.forget(PageRange { first: PageNo(first + index), count });
        let homes = object.homes_of(PageNo(first + index));
        let sample = self.evidence.hold.touched(touch.address, homes, touch.node);
        if let Some((group, Some(home))) = sample {
            self.record_sample(touch.address, (group, home), touch.node);
        }
        self.evidence.touched(id, touch, remote);
        let (node, now) = (touch.node, self.account.now());
        let mut decisions = std::mem::take(&mut self.buffers.decisions);
        for i in index..index + count {
            let page = PageNo(first + i);
            let Some(object) = self.memory.objects.at(touch.address) else { break };
            let Some(home) = object.home(page) else {
                object.was_at(node, i);
                self.record_home(touch.address, page, node);
                continue;
            };
            object.note_touch(page);
            if home != node {
                let back = object.note_move(page, node);
                if let Some(stream) = &mut self.recording.stream {
                    let moved = MovedPage {
                        from: home,
                        to: node,
                        cause: MoveOrigin::NextTouch,
                        cost: None,
                        outcome: MoveResult::Moved,
                    };
                    stream.moved(object, i, moved, now);
                }
                if sample.is_none() {
                    self.evidence.trial.licence.page_moved();
                    self.moves.counts.with_touch(back);
                }
            }
            self.policy.observe(&Event::Touched { page, home, node });
            decisions.clear();
            self.policy.poll(self.account.elapsed(), &mut decisions);
            for d in decisions.as_slice() {
                self.after_touch(*d, page, touch);
            }
        }
        self.buffers.decisions = decisions;
    }

    /// Handles a decision after a touch. The touch itself has mostly done what the policy wants.
    fn after_touch(&mut self, decision: Decision, page: PageNo, touch: &Touch) {
        match decision {
            Decision::Move { page: p, to } if p == page && to == touch.node && touch.moved => {
                self.policy.outcome(&MoveOutcome { page, to, result: MoveResult::Moved, cost: Ns::ZERO });
            }
            Decision::Move { page, to } => {
                // One page at a time, because the policy is in the middle of its answer to a touch.
                let one = PageRange { first: page, count: 1 };
                self.moves.later.forget(one);
                self.moves.list.add(one, to, true);
                self.move_collected();
            }
            Decision::Arm { pages } => {
                let mut list = ToArm::default();
                self.add_to_arm(pages, &mut list);
                self.arm(&list);
            }
            Decision::Replicate { page, on } | Decision::ReplicateLines { page, on } => {
                self.refuse_copy(page, on);
            }
            _ => {}
        }
    }

    /// Refuses a copy: Linux keeps no copies of a process's pages on several nodes.
    fn refuse_copy(&mut self, page: PageNo, to: NodeId) {
        let result = MoveResult::Unsupported;
        self.policy.outcome(&MoveOutcome { page, to, result, cost: Ns::ZERO });
    }
}

/// One page with its target.
const fn same_target(page: PageNo, to: NodeId, told: bool) -> SameTarget {
    SameTarget { pages: PageRange { first: page, count: 1 }, to, told }
}
