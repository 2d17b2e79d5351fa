//! Policies that need to know who touches what: asks for samples, passes them on, moves pages.
//!
//! A thread of homenode's own asks for pages at random times ([`super::state::pace`]). The driver
//! carries out decisions where the policy makes them: at the start of an iteration, at a region's
//! end, or (daemon) when its period ends. [`super::state::watching`] says what the policy gets.

use homenode_model::{AccessKind, Event, NodeId, Ns, PageNo, PageRange};
use homenode_policy::Step;
use homenode_sources::Source;
use homenode_sys::Span;

use super::mover::Manner;
use super::run::Driver;
use super::state::watching::{SourceTotals, SourceWatch};
use crate::guard::holdback::{Group, block_of};
use crate::stream::Stream;
use crate::watch::choice::{Eyes, Wanted};
use crate::watch::numbers::PAGE;

impl Driver {
    /// Gives new objects to policy and source, as far as the budget has room: `all`, or those whose
    /// turn it is to be looked at.
    pub(super) fn watch_new(&mut self, all: bool) {
        self.wait_new(all);
        if !self.arming.waiting.is_empty() {
            // The initialisation is not a draw: its first touches are faults like those that the
            // source reports.
            self.drain();
        }
        self.take_turns();
        self.note_state();
    }

    /// The policy knows an object: from now on the source watches it.
    pub(super) fn watch_whole(&mut self, address: usize) {
        if let Some(o) = self.memory.objects.at(address) {
            o.treatment.watched = true;
        }
        self.watch_object(address);
    }

    fn watch_object(&mut self, address: usize) {
        if let (Some(watching), Some(object)) = (&mut self.watching, self.memory.objects.get(address)) {
            watching.watch(object);
        }
    }

    /// An object dies: the source stops watching it, and its samples are void.
    pub(super) fn unwatch(&mut self, address: usize) {
        if let (Some(watching), Some(object)) = (&mut self.watching, self.memory.objects.get(address)) {
            watching.dies(object);
        }
    }

    /// An object's pages are about to move: the source lets go of the object until
    /// [`Driver::watch_again`].
    pub(super) fn leave_for_now(&mut self, address: usize) {
        if let (Some(watching), Some(object)) = (&mut self.watching, self.memory.objects.get(address)) {
            watching.leave_for_now(object);
        }
    }

    /// The moves are done.
    pub(super) fn watch_again(&mut self) {
        let left = self.watching.as_mut().map(SourceWatch::take_left).unwrap_or_default();
        left.into_iter().for_each(|address| self.watch_object(address));
    }

    /// Stops watching everything.
    pub(super) fn stop_watching(&mut self) {
        self.leave_source(|source| source.stop());
    }

    /// The same at the end of the process.
    pub(super) fn end_watching(&mut self) {
        self.leave_source(|source| source.end());
    }

    fn leave_source(&mut self, leave: impl FnOnce(&mut dyn Source)) {
        self.note_state();
        let elapsed = self.account.elapsed();
        let Some(watching) = &mut self.watching else { return };
        let cannot = watching.leave_source(elapsed, leave);
        cannot.into_iter().for_each(|note| self.note(note));
    }

    /// Pages can no longer be taken away, and there is no other source. The policy keeps what it
    /// knows.
    fn leave_armed(&mut self) {
        if self.mover.can_stay() {
            return;
        }
        self.stop_watching();
        if let Some(watching) = &mut self.watching {
            watching.eyes = Eyes::Nobody;
        }
        self.note(format!(
            "source {} ended after {:.1} s: pages cannot be taken away and put back any more",
            Wanted::Blocks,
            self.elapsed().0 as f64 * 1e-9
        ));
    }

    /// Notes held-back pages that the policy wants elsewhere.
    pub(super) fn note_held(&mut self, pages: PageRange) {
        if let (Some(watching), Some(object)) = (&mut self.watching, self.memory.object(pages.first)) {
            watching.hold(object, pages);
        }
    }

    /// The policy asks for the next touch of pages.
    pub(super) fn ask(&mut self, pages: PageRange) {
        let now = self.account.now();
        let Some(watching) = &mut self.watching else { return };
        let allowed = watching.pace.room(pages.count as usize, now);
        let list: Vec<usize> = pages.iter().take(allowed).filter_map(|p| self.memory.address(p)).collect();
        self.ask_for(&list);
    }

    fn ask_for(&mut self, pages: &[usize]) {
        let Some(watching) = &mut self.watching else { return };
        let before = self.account.thread_time();
        match &mut watching.eyes {
            Eyes::Source(source) => {
                let asked = source.ask(pages) as u64;
                let took = self.account.thread_time() - before;
                watching.pace.asked_source(asked, took, source.asking(), source.cost());
            }
            Eyes::Armed => {
                let spans: Vec<Span> = pages.iter().map(|page| Span::new(*page, PAGE)).collect();
                let asked = if spans.is_empty() { 0 } else { self.mover.arm(&spans, Manner::Stays).pages };
                let took = self.account.thread_time() - before;
                let after = self.mover.counters();
                let fault = Ns(after.own.0.checked_div(after.faults).unwrap_or(0));
                watching.pace.asked_mover(asked, took, fault);
            }
            Eyes::Nobody => {}
        }
        watching.note_pace();
    }

    /// Notes when the policy wants to be polled.
    pub(super) fn wake_at(&mut self, step: Step) {
        if let Some(watching) = &mut self.watching {
            watching.wake_at(step);
        }
    }

    /// Whether the policy wants to decide at the end of a region, and the last look is long enough
    /// ago.
    pub(super) fn is_look_due(&self, now: Ns) -> bool {
        let (started, knows) = (self.account.started(), self.marks.knows_iteration());
        self.watching.as_ref().is_some_and(|w| w.is_look_due(now, started, knows))
    }

    /// Takes the samples since the last look, and gives the policy what it wants now: at the start
    /// of an `iteration`, or at the end of a region.
    pub(super) fn look(&mut self, iteration: bool) {
        let now = self.account.now();
        let Some(watching) = &mut self.watching else { return };
        watching.looks(now);
        self.drain();
        if self.watching.as_ref().is_some_and(|w| w.wants_counts(iteration)) {
            self.tell_counts();
        }
    }

    fn drain(&mut self) {
        let Some(watching) = &mut self.watching else { return };
        let touches = watching.drain();
        for t in &touches {
            self.told(t.address, t.node, t.kind);
        }
        if let Some(watching) = &mut self.watching {
            watching.done(touches);
        }
    }

    /// Somebody touched a page that was taken away and stays on its node.
    pub(super) fn armed_told(&mut self, address: usize, node: NodeId) {
        self.told(address, node, None);
    }

    fn told(&mut self, address: usize, node: NodeId, kind: Option<AccessKind>) {
        let Some(object) = self.memory.objects.at(address).filter(|o| o.treatment.watched) else { return };
        let whole = object.whole_pages();
        if !whole.contains(&address) || node.index() >= self.settings.machine.nodes() {
            return;
        }
        let index = ((address - whole.start) / PAGE) as u64;
        let (page, start, bytes) = (PageNo(object.pages.first.0 + index), object.address, object.bytes);
        object.touch(node, 1);
        let Some(home) = object.home(page).or_else(|| self.find_home(start, page)) else { return };
        let object = self.memory.objects.get(address);
        let moved = object.is_some_and(|o| o.has_moved(address));
        let homes = object.and_then(|o| o.homes_of(page)).unwrap_or((home, home));
        let block = block_of(bytes);
        let Some(watching) = &mut self.watching else { return };
        if let (Some(stream), Some(object)) = (&mut self.recording.stream, self.memory.objects.at(address)) {
            stream.saw(object, index, (node, home), kind);
        }
        watching.count(home, node, self.moves.counts.ever);
        let group = if self.memory.ruled.has(address) {
            // The program has ruled on this page.
            None
        } else if moved {
            Some(Group::Moved)
        } else {
            let held = watching.is_held(address, block);
            (held && self.evidence.hold.group(address, block) == Group::Held).then_some(Group::Held)
        };
        let compared =
            group.and_then(|group| Some((group, self.evidence.hold.saw((group, address), homes, node)?)));
        if watching.keep(page, node, kind) {
            self.tell(Event::Touched { page, home, node });
        }
        if let Some(compared) = compared {
            self.record_sample(address, compared, node);
        }
    }

    /// The home of a page that came to exist after the first look at its object. Gives it to the
    /// policy.
    fn find_home(&mut self, object: usize, page: PageNo) -> Option<NodeId> {
        let address = self.memory.address(page)?;
        let mut home = Vec::with_capacity(1);
        self.mover.homes(address, 1, None, &mut home);
        let home = home.first().copied().flatten()?;
        let o = self.memory.objects.at(object)?;
        if o.was_at(home, page.0 - o.pages.first.0) {
            self.record_home(object, page, home);
            self.tell(Event::Fault { page, node: home });
        }
        Some(home)
    }

    /// Gives the policy the accesses since the last time, or the draws of blocks with enough of
    /// them.
    fn tell_counts(&mut self) {
        if let Some(watching) = &mut self.watching {
            watching.give_counts(&mut *self.policy, |page| self.memory.home(page));
        }
    }

    /// Runs in homenode's own thread from time to time: takes samples, wakes the policy, asks for
    /// pages. Returns the time until the next call; `None`: never again.
    pub fn tick(&mut self) -> Option<Ns> {
        self.beside(|d| d.timed(|d, _| d.heavy(Self::tick_measured)))
    }

    fn tick_measured(&mut self) -> Option<Ns> {
        let done = |d: &Self| d.watching.as_ref().map_or((Ns::ZERO, 0), |w| (w.pace.asking(), w.seen.told));
        let (begin, (asking, told)) = (self.account.thread_time(), done(self));
        let next = self.tick_now();
        let took = self.account.thread_time() - begin;
        if let Some(w) = &mut self.watching
            && let Some(each) =
                took.0.saturating_sub((w.pace.asking() - asking).0).checked_div(w.seen.told - told)
        {
            w.pace.handled(Ns(each));
        }
        next
    }

    fn tick_now(&mut self) -> Option<Ns> {
        if self.watching.is_none() || !self.within_budget() {
            return None;
        }
        self.take_all_touches();
        if matches!(self.watching, Some(SourceWatch { eyes: Eyes::Armed, .. })) {
            // Touched pages are no longer registered. Each would otherwise be a mapping of its own
            // for ever.
            self.mover.settle();
            self.leave_armed();
        }
        self.drain();
        self.watch_for_recording();
        let now = self.account.elapsed();
        let watching = self.watching.as_ref()?;
        if watching.wake().is_some_and(|at| at <= now) {
            if watching.wants_counts_at_wakes() {
                self.tell_counts();
            }
            self.poll();
        }
        self.ask_anew();
        let now = self.account.now();
        self.end_interval_if_due(now, false);
        let now = now - self.account.started();
        let watching = self.watching.as_mut()?;
        let gap = if matches!(watching.eyes, Eyes::Nobody) { Ns(u64::MAX) } else { watching.pace.gap() };
        Some(watching.wake().map_or(gap, |at| Ns(at.0.saturating_sub(now.0)).min(gap)))
    }

    fn ask_anew(&mut self) {
        let now = self.account.now();
        let end = self.memory.objects.numbers().end();
        let Some(watching) = &mut self.watching else { return };
        let Some((pages, allowed)) = watching.choose(now, end) else { return };
        if watching.only_records() {
            // Objects are watched before all of their pages exist.
            for page in &pages {
                let unknown = |o: &&crate::watch::Object| o.treatment.watched && o.home(*page).is_none();
                if let Some(o) = self.memory.object(*page).filter(unknown) {
                    self.find_home(o.address, *page);
                }
            }
        }
        let address = |page: PageNo| {
            let address = self.memory.address(page)?;
            let is_watched = |o: &&crate::watch::Object| o.treatment.watched && o.home(page).is_some();
            self.memory.objects.get(address).filter(is_watched).map(|_| address)
        };
        let list: Vec<usize> = pages.into_iter().filter_map(address).collect();
        let Some(watching) = &mut self.watching else { return };
        watching.pace.found(list.len(), allowed);
        self.ask_for(&list);
    }

    /// For tests of hostile programs: watches everything, asks for everything, and moves blocks to
    /// and fro whatever the policy says.
    pub fn shake(&mut self, number: u64) {
        self.watch_new(true);
        self.tick();
        let nodes = self.settings.machine.nodes() as u64;
        let block = |o: &crate::watch::Object| {
            let i = number.wrapping_mul(7) % o.pages.count.div_ceil(16);
            let first = PageNo(o.pages.first.0 + i * 16);
            let count = 16.min(o.pages.count - i * 16);
            // The first move goes away from where a serial start has put the block.
            (PageRange { first, count }, NodeId(((number / 3 + 1) % nodes) as u16))
        };
        let moves: Vec<_> = self.memory.objects.live().filter(|o| o.treatment.watched).map(block).collect();
        self.move_ranges(moves);
        let pages: Vec<usize> = self
            .memory
            .objects
            .live()
            .filter(|o| o.treatment.watched)
            .map(|o| o.whole_pages().start)
            .collect();
        self.ask_for(&pages);
    }

    /// Whether [`Driver::tick`] has something to do.
    pub fn wants_ticks(&self) -> bool {
        self.watching.is_some()
    }

    /// Totals of what was seen; `None` if nothing was watched.
    pub fn watched(&self) -> Option<&SourceTotals> {
        self.watching.as_ref().map(|w| &w.seen)
    }

    /// Notes the size of homenode's tables.
    fn note_state(&mut self) {
        let (mut program, mut own) = (0, 0);
        for o in self.memory.objects.live().filter(|o| o.treatment.watched) {
            program += o.bytes as u64;
            own += o.pages.count * 3;
        }
        own += self.recording.stream.as_ref().map_or(0, Stream::state_bytes) as u64;
        if let Some(watching) = &mut self.watching {
            watching.note_state(own, program, self.settings.record);
        }
    }
}
