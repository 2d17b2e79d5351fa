//! Policies that need to know who touches what: asks for samples, passes them on, moves pages.
//!
//! # Approach
//!
//! The driver passes on samples with their basis:
//!
//! - A source that samples accesses gives *counts* ([`Event::Accesses`], each sample times its
//!   period).
//! - A source of presence gives *draws*. `presence` gets each of them ([`Event::Touched`]).
//!   Policies that compare nodes (competitive, daemon) get the draws of a block once there are
//!   [`ENOUGH`].
//! - Policies with thresholds in accesses (out-u, out-w, in-w) get nothing if no source counts.
//! - A recording keeps all samples ([`crate::stream`]), and asks for pages of all blocks in turn.
//!
//! A thread of homenode's own asks for pages at exponentially distributed random times: as many as
//! the budget allows at the measured cost of one. The driver carries out decisions where the policy
//! makes them: at the start of an iteration, at a region's end, or (daemon) when its period ends.

use std::collections::BTreeSet;

use homenode_model::{AccessKind, Event, Interest, NodeId, Ns, PageNo, PageRange};
use homenode_policy::Step;
use homenode_sources::budget::{Budget, lately};
use homenode_sources::tally::Tally;
use homenode_sources::{Says, Source, Touch};
use homenode_sys::Span;

use super::mover::Manner;
use super::run::Driver;
use super::settings::Settings;
use crate::guard::holdback::{Group, block_of};
use crate::stream::Stream;
use crate::watch::choice::{Eyes, Wanted};
use crate::watch::numbers::PAGE;
use crate::watch::sightings::Turns;
use crate::watch::{Chosen, Draws};

/// Draws of a block that a policy gets at a time. With eight, 60 to 40 looks like 40 to 60 one time
/// in four, and 80 to 20 looks like 20 to 80 one time in ten thousand.
const ENOUGH: u32 = 8;
/// The same for `daemon`, which ignores pages with fewer than 16 accesses in a period.
const ENOUGH_AT_WAKES: u32 = 16;
/// Average time between two requests for pages.
const GAP: Ns = Ns(5_000_000);
/// How often that time is doubled, at most, while nothing is open.
const LAZIEST: u32 = 6;
/// Pages that make a batch worthwhile. A batch of fewer pages costs more in wake-ups than it yields
/// in samples, so the driver asks half as often.
const WORTH: usize = 16;
/// How often the rate is halved for that reason, at most.
const RAREST: u32 = 3;
/// Pages of a batch, at most.
const AT_ONCE: usize = 256;
/// Pages of the first batch, before the cost of one in the running program is known.
const FIRST: usize = 16;
/// Thousandths of the CPUs' time that samples may take: half of the budget's share.
const SHARE: u64 = 5;
/// Thousandths of elapsed time that homenode's own thread may take for samples. On a full machine,
/// one of the team's threads loses that time, and all others wait for it at the next barrier.
const SHARE_OF_ONE: u64 = 20;
/// The same two limits for a recording.
const SHARE_RECORDED: u64 = 30;
const SHARE_OF_ONE_RECORDED: u64 = 60;
/// Highest cost that a sample counts with: a quarter of what homenode's own thread may save up.
const DEAREST: Ns = Ns(5_000_000);
/// Assumed cost of taking a page away and of the fault afterwards, until it is measured.
const ARMED_COST: Ns = Ns(12_000);
/// The report mentions pauses of the source if they are more than one in this many parts of the
/// time.
const WORTH_TELLING: u64 = 4;
/// Shortest time between two looks at the end of a region.
const SHORTEST_LOOK: Ns = Ns(1_000_000);
/// The same until an iteration is known. Most programs have shown two iterations by then.
const SHORTEST_EARLY_LOOK: Ns = Ns(100_000_000);
/// Policies that need proportions only.
const BY_PROPORTION: [&str; 3] = ["competitive", "competitive-balanced", "daemon"];

/// What the policy gets.
enum Telling {
    /// Each touch.
    Touches,
    /// Samples of accesses, as counts.
    Counts(Tally),
    /// Draws of blocks with enough of them.
    Proportions(Draws),
    /// Nothing. Samples are for a recording, and pages are asked for in turn.
    Kept(Turns),
    /// Nothing. The policy needs counts and there are none.
    Nothing,
}

/// Totals of what was seen and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Name of the source.
    pub name: &'static str,
    /// Basis of its answers, in words.
    pub says: String,
    /// Number of touches that the source reported.
    pub told: u64,
    /// Number of pages asked for.
    pub asked: u64,
    /// Number of lost touches.
    pub lost: u64,
    /// Cost of one sample for the program.
    pub cost: Ns,
    /// Bytes of homenode's tables, and bytes of program memory that they cover.
    pub state: (u64, u64),
    /// Number of blocks that the policy got by proportions.
    pub blocks: u64,
    /// Touches before anything had moved: those from another node than the page's, and all.
    pub before: (u64, u64),
    /// Accesses that one sample stands for; `None` for presence, or without a source.
    pub one_in: Option<u64>,
    /// Whether the source sees stores only.
    pub writers_only: bool,
}

/// See the module.
pub struct Watching {
    eyes: Eyes,
    telling: Telling,
    interest: Interest,
    budget: Budget,
    /// Budget of homenode's own thread.
    own: Budget,
    /// Cost of a sample for that thread.
    own_cost: Ns,
    wake: Option<Ns>,
    pub(super) seen: Watched,
    looked: Ns,
    /// When to look for new objects again, for a recording.
    pub(super) look_new: Ns,
    number: u64,
    /// Average own work for handling a sample.
    handling: Ns,
    /// Total time spent on asking.
    asking: Ns,
    /// See [`Watching::paid`].
    paid: Ns,
    /// Requests in a row that found nothing to ask for.
    idle: u32,
    /// How often the time between two requests was doubled because the budget allowed few pages.
    rare: u32,
    /// Held-back blocks that the policy wanted to move.
    held: BTreeSet<usize>,
    /// Objects that the source has left for the time of a move.
    left: BTreeSet<usize>,
    touches: Vec<Touch>,
    /// Whether the source was left for good and the reason was noted.
    is_over: bool,
}

impl Watching {
    /// Watches by the `chosen` source, for a policy with this interest. Adds what cannot be done to
    /// `notes`.
    pub fn new(chosen: Chosen, interest: Interest, settings: &Settings, notes: &mut Vec<String>) -> Self {
        let Chosen { eyes, refused } = chosen;
        notes.extend(refused);
        let nodes = settings.machine.nodes();
        let name = settings.policy.split(':').next().unwrap_or_default();
        let enough = if interest.counts_at_wakes { ENOUGH_AT_WAKES } else { ENOUGH };
        let telling = match eyes.says() {
            Some(says) if settings.record && !says.counts() => Telling::Kept(Turns::default()),
            _ if !interest.counts() => Telling::Touches,
            Some(says) if says.counts() => Telling::Counts(Tally::new(nodes)),
            Some(_) if BY_PROPORTION.contains(&name) => Telling::Proportions(Draws::new(nodes, enough)),
            _ => Telling::Nothing,
        };
        if matches!(telling, Telling::Nothing) {
            notes.push(format!(
                "the policy {} needs counts of accesses, and {} tell no counts here: it decided nothing",
                settings.policy,
                eyes.name()
            ));
        }
        if matches!(eyes.says(), Some(Says::Presence { writers_only: true })) {
            notes.push("memory that is only read was not watched: this source tells of writers alone".into());
        }
        let seen = Watched {
            name: eyes.name(),
            says: eyes.says().map_or_else(|| "nothing".into(), |s| s.to_string()),
            cost: ARMED_COST,
            one_in: match eyes.says() {
                Some(Says::Sampled { one_in }) => Some(one_in),
                _ => None,
            },
            writers_only: matches!(eyes.says(), Some(Says::Presence { writers_only: true })),
            ..Watched::default()
        };
        let cpus = settings.machine.cpus().len().max(1) as u64;
        let (share, of_one) = match settings.record {
            true => (SHARE_RECORDED, SHARE_OF_ONE_RECORDED),
            false => (SHARE, SHARE_OF_ONE),
        };
        let now = homenode_sys::call::now();
        Self {
            eyes,
            telling,
            interest,
            budget: Budget::new(share * cpus, now),
            own: Budget::new(of_one, now),
            own_cost: ARMED_COST,
            wake: None,
            seen,
            looked: Ns::ZERO,
            look_new: Ns::ZERO,
            number: 0,
            handling: Ns::ZERO,
            asking: Ns::ZERO,
            paid: Ns::ZERO,
            idle: 0,
            rare: 0,
            held: BTreeSet::new(),
            left: BTreeSet::new(),
            touches: Vec::new(),
            is_over: false,
        }
    }

    /// What could not be done, one sentence each. Each is returned once.
    fn cannot(&mut self, elapsed: Ns) -> Vec<String> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        let (mut all, mut paused) = (Vec::new(), Ns::ZERO);
        if let Eyes::Source(source) = &self.eyes {
            all = source.cannot();
            paused = source.paused();
        }
        if paused.0 * WORTH_TELLING > elapsed.0 {
            all.push(format!(
                "nothing was watched for {:.1} s: the program had so many page faults that to be told of each would have cost too much",
                paused.0 as f64 * 1e-9
            ));
        }
        match &self.telling {
            Telling::Counts(tally) if tally.dropped() > 0 => all.push(format!(
                "{} samples were not counted: there is room for {} pages between two looks",
                tally.dropped(),
                Tally::PLACES
            )),
            _ => {}
        }
        all
    }

    /// What the program has paid for samples, besides costs that are measured where they occur.
    pub(super) const fn paid(&self) -> Ns {
        self.paid
    }

    /// Notes the time of handling a sample. Sometimes pages moved in between and others had the
    /// CPU's caches; one such time must not stop the asking.
    fn handle(&mut self, took: Ns) {
        let most = self.handling.max(Ns(1_000)).times(4);
        self.handling = Ns((self.handling.0 * 7 + took.min(most).0) / 8);
    }

    /// How many of `wanted` pages may be asked for now.
    fn room(&mut self, wanted: usize, now: Ns) -> usize {
        let most = if self.seen.asked == 0 { FIRST } else { AT_ONCE };
        // One sample with an exceptional cost must not end the asking for good.
        let (cost, own) = (self.seen.cost.min(DEAREST), self.own_cost.min(DEAREST));
        wanted.min(most).min(self.budget.room(cost, now)).min(self.own.room(own, now))
    }

    /// Pages were asked for, which took `took`. `fault`: the program's price of a page. `own`: the
    /// recent price for homenode's thread.
    fn asked(&mut self, pages: u64, took: Ns, own: Ns, fault: Ns) {
        (self.own_cost, self.seen.cost) = (own, own + fault);
        self.seen.asked += pages;
        self.asking += took;
        let took = took + self.handling.times(pages);
        self.own.spend(took);
        self.budget.spend(took + fault.times(pages));
    }

    fn wants_asking(&self) -> bool {
        matches!(self.telling, Telling::Proportions(_) | Telling::Kept(_))
    }

    /// Time until the next request.
    fn gap(&mut self) -> Ns {
        self.number += 1;
        let x = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        // Exponentially distributed: -ln u, u in (0, 1].
        let u = ((x >> 40) + 1) as f64 / (1_u64 << 24) as f64;
        Ns(((GAP.0 << self.idle.min(LAZIEST).max(self.rare)) as f64 * -u.ln()) as u64)
    }
}

impl Driver {
    /// Gives new objects to policy and source, as far as the budget has room: `all`, or those whose
    /// turn it is to be looked at.
    pub(super) fn watch_new(&mut self, all: bool) {
        self.wait_new(all);
        if !self.waiting.is_empty() {
            // The initialisation is not a draw: its first touches are faults like those that the
            // source reports.
            self.drain();
        }
        self.take_turns();
        self.note_state();
    }

    /// The policy knows an object: from now on the source watches it.
    pub(super) fn watch_whole(&mut self, address: usize) {
        if let Some(o) = self.objects.at(address) {
            o.watched = true;
        }
        self.watch_object(address);
    }

    /// Gives an object to the source, one stretch of equal home at a time.
    fn watch_object(&mut self, address: usize) {
        let Some(Watching { eyes: Eyes::Source(source), is_over: false, .. }) = &mut self.watching else {
            return;
        };
        let Some(object) = self.objects.get(address) else { return };
        let whole = object.whole_pages();
        if !source.by_home() {
            return source.watch(Span { start: whole.start, end: whole.end }, NodeId(0));
        }
        let home = |i: u64| object.home(PageNo(object.pages.first.0 + i));
        let mut from = 0;
        for i in 1..=object.pages.count {
            if i == object.pages.count || home(i) != home(from) {
                if let Some(node) = home(from) {
                    let span = Span::new(whole.start + from as usize * PAGE, (i - from) as usize * PAGE);
                    source.watch(span, node);
                }
                from = i;
            }
        }
    }

    /// An object dies: the source stops watching it, and its samples are void.
    pub(super) fn unwatch(&mut self, address: usize) {
        let Some(watching) = &mut self.watching else { return };
        let Some(object) = self.objects.get(address) else { return };
        let whole = object.whole_pages();
        if let Eyes::Source(source) = &mut watching.eyes {
            source.gone(Span { start: whole.start, end: whole.end });
        }
        if let Telling::Proportions(draws) = &mut watching.telling {
            draws.forget(object.pages);
        }
        watching.held.retain(|b| !whole.contains(b));
    }

    /// An object's pages are about to move: the source lets go of the whole object until
    /// [`Driver::watch_again`]. A part would be a mapping of its own meanwhile, and `mremap` fails
    /// on several mappings.
    pub(super) fn leave_for_now(&mut self, address: usize) {
        let Some(Watching { eyes: Eyes::Source(source), left, is_over: false, .. }) = &mut self.watching
        else {
            return;
        };
        let Some(object) = self.objects.get(address).filter(|o| o.watched) else { return };
        if left.insert(object.address) {
            let whole = object.whole_pages();
            source.leave(Span { start: whole.start, end: whole.end });
        }
    }

    /// The moves are done.
    pub(super) fn watch_again(&mut self) {
        let Some(watching) = &mut self.watching else { return };
        for address in std::mem::take(&mut watching.left) {
            self.watch_object(address);
        }
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
        let elapsed = (self.clocks.wall)() - self.started;
        let Some(watching) = &mut self.watching else { return };
        let cannot = watching.cannot(elapsed);
        if let Eyes::Source(source) = &mut watching.eyes {
            leave(&mut **source);
        }
        watching.telling = Telling::Nothing;
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
        let Some(watching) = &mut self.watching else { return };
        let Some(object) = self.objects.numbers().address(pages.first).and_then(|a| self.objects.get(a))
        else {
            return;
        };
        let block = block_of(object.bytes);
        let start = object.whole_pages().start + (pages.first.0 - object.pages.first.0) as usize * PAGE;
        for page in (start..start + pages.count as usize * PAGE).step_by(PAGE) {
            watching.held.insert(page & !(block - 1));
        }
    }

    /// The policy asks for the next touch of pages.
    pub(super) fn ask(&mut self, pages: PageRange) {
        let now = (self.clocks.wall)();
        let Some(watching) = &mut self.watching else { return };
        let allowed = watching.room(pages.count as usize, now);
        let list: Vec<usize> =
            pages.iter().take(allowed).filter_map(|p| self.objects.numbers().address(p)).collect();
        self.ask_for(&list);
    }

    fn ask_for(&mut self, pages: &[usize]) {
        let Some(watching) = &mut self.watching else { return };
        let before = (self.clocks.thread)();
        match &mut watching.eyes {
            Eyes::Source(source) => {
                let asked = source.ask(pages) as u64;
                let took = (self.clocks.thread)() - before;
                let (own, fault) = (source.asking() + watching.handling, source.cost());
                watching.asked(asked, took, own, fault);
            }
            Eyes::Armed => {
                let spans: Vec<Span> = pages.iter().map(|page| Span::new(*page, PAGE)).collect();
                let asked = if spans.is_empty() { 0 } else { self.mover.arm(&spans, Manner::Stays).pages };
                let took = (self.clocks.thread)() - before;
                let after = self.mover.counters();
                let fault = Ns(after.own.0.checked_div(after.faults).unwrap_or(0));
                let own = lately(watching.own_cost, took + watching.handling.times(asked), asked);
                watching.asked(asked, took, own, fault);
            }
            Eyes::Nobody => {}
        }
    }

    /// Notes when the policy wants to be polled.
    pub(super) fn wake_at(&mut self, step: Step) {
        if let Some(watching) = &mut self.watching {
            watching.wake = match step {
                Step::WakeAt(at) => Some(at),
                Step::Act | Step::Idle => None,
            };
        }
    }

    /// Whether the policy wants to decide at the end of a region, and the last look is long enough
    /// ago.
    pub(super) fn is_look_due(&self, now: Ns) -> bool {
        let Some(Watching { interest, looked, .. }) = &self.watching else { return false };
        let (either, since) = (interest.counts_by_iteration, now - self.started.max(*looked));
        interest.counts_by_region
            && if either {
                !self.knows_iteration() && since >= SHORTEST_EARLY_LOOK
            } else {
                since >= SHORTEST_LOOK
            }
    }

    /// Takes the samples since the last look, and gives the policy what it wants now: at the start
    /// of an `iteration`, or at the end of a region.
    pub(super) fn look(&mut self, iteration: bool) {
        let now = (self.clocks.wall)();
        let Some(watching) = &mut self.watching else { return };
        watching.looked = now;
        self.drain();
        let Some(Watching { interest, .. }) = &self.watching else { return };
        if if iteration { interest.counts_by_iteration } else { interest.counts_by_region } {
            self.tell_counts();
        }
    }

    fn drain(&mut self) {
        let Some(watching) = &mut self.watching else { return };
        let mut touches = std::mem::take(&mut watching.touches);
        if let Eyes::Source(source) = &mut watching.eyes {
            source.drain(&mut |t| touches.push(t));
            watching.seen.lost = source.lost();
            // The handlers of armed pages measure their faults themselves.
            watching.paid += source.cost().times(touches.len() as u64);
        }
        for t in touches.drain(..) {
            self.told(t.address, t.node, t.kind);
        }
        if let Some(watching) = &mut self.watching {
            watching.touches = touches;
        }
    }

    /// Somebody touched a page that was taken away and stays on its node.
    pub(super) fn armed_told(&mut self, address: usize, node: NodeId) {
        self.told(address, node, None);
    }

    fn told(&mut self, address: usize, node: NodeId, kind: Option<AccessKind>) {
        let Some(object) = self.objects.at(address).filter(|o| o.watched) else { return };
        let whole = object.whole_pages();
        if !whole.contains(&address) || node.index() >= self.settings.machine.nodes() {
            return;
        }
        let index = ((address - whole.start) / PAGE) as u64;
        let (page, start, bytes) = (PageNo(object.pages.first.0 + index), object.address, object.bytes);
        object.touch(node, 1);
        let Some(home) = object.home(page).or_else(|| self.find_home(start, page)) else { return };
        let object = self.objects.get(address);
        let moved = object.is_some_and(|o| o.has_moved(address));
        let homes = object.and_then(|o| o.homes_of(page)).unwrap_or((home, home));
        let block = block_of(bytes);
        let Some(watching) = &mut self.watching else { return };
        if let (Some(stream), Some(object)) = (&mut self.stream, self.objects.at(address)) {
            stream.saw(object, index, (node, home), kind);
        }
        watching.seen.told += 1;
        if !self.has_moved {
            watching.seen.before.0 += u64::from(home != node);
            watching.seen.before.1 += 1;
        }
        let group = if self.ruled.has(address) {
            // The program has ruled on this page.
            None
        } else if moved {
            Some(Group::Moved)
        } else {
            let held = watching.held.contains(&(address & !(block - 1)));
            (held && self.hold.group(address, block) == Group::Held).then_some(Group::Held)
        };
        let compared = group.and_then(|group| Some((group, self.hold.saw((group, address), homes, node)?)));
        match &mut watching.telling {
            Telling::Touches => self.tell(Event::Touched { page, home, node }),
            Telling::Counts(tally) => tally.add(page, node, kind.unwrap_or(AccessKind::Read)),
            Telling::Proportions(draws) => draws.add(page, node),
            Telling::Kept(_) | Telling::Nothing => {}
        }
        if let Some(compared) = compared {
            self.record_sample(address, compared, node);
        }
    }

    /// The home of a page that came to exist after the first look at its object. Gives it to the
    /// policy.
    fn find_home(&mut self, object: usize, page: PageNo) -> Option<NodeId> {
        let address = self.objects.numbers().address(page)?;
        let mut home = Vec::with_capacity(1);
        self.mover.homes(address, 1, None, &mut home);
        let home = home.first().copied().flatten()?;
        let o = self.objects.at(object)?;
        if o.was_at(home, page.0 - o.pages.first.0) {
            self.record_home(object, page, home);
            self.tell(Event::Fault { page, node: home });
        }
        Some(home)
    }

    /// Gives the policy the accesses since the last time, or the draws of blocks with enough of
    /// them.
    fn tell_counts(&mut self) {
        let Some(Watching { eyes, telling, seen, .. }) = &mut self.watching else { return };
        let one_in = match eyes.says() {
            Some(Says::Sampled { one_in }) => one_in,
            _ => 1,
        };
        let kind = match eyes.says() {
            Some(Says::Presence { writers_only: true }) => AccessKind::Write,
            _ => AccessKind::Read,
        };
        let (policy, objects) = (&mut self.policy, &self.objects);
        let home = |page: PageNo| objects.numbers().address(page).and_then(|a| objects.get(a)?.home(page));
        match telling {
            Telling::Counts(tally) => {
                for row in tally.rows() {
                    let Some(home) = home(row.page) else { continue };
                    for (node, counts) in (0u16..).map(NodeId).zip(row.counts) {
                        for (kind, n) in [AccessKind::Read, AccessKind::Write].into_iter().zip(counts) {
                            let count = u32::try_from(u64::from(*n) * one_in).unwrap_or(u32::MAX);
                            if count > 0 {
                                policy.observe(&Event::Accesses { page: row.page, home, node, kind, count });
                            }
                        }
                    }
                }
                tally.clear();
            }
            Telling::Proportions(draws) => draws.take_ripe(|pages, draws| {
                seen.blocks += 1;
                for page in pages.iter() {
                    let Some(home) = home(page) else { continue };
                    for (node, n) in (0u16..).map(NodeId).zip(draws).filter(|(_, n)| **n > 0) {
                        let count = u32::from(*n);
                        policy.observe(&Event::Accesses { page, home, node, kind, count });
                    }
                }
            }),
            Telling::Touches | Telling::Kept(_) | Telling::Nothing => {}
        }
    }

    /// Runs in homenode's own thread from time to time: takes samples, wakes the policy, asks for
    /// pages. Returns the time until the next call; `None`: never again.
    pub fn tick(&mut self) -> Option<Ns> {
        self.beside(|d| d.timed(|d, _| d.heavy(Self::tick_measured)))
    }

    fn tick_measured(&mut self) -> Option<Ns> {
        let done = |d: &Self| d.watching.as_ref().map_or((Ns::ZERO, 0), |w| (w.asking, w.seen.told));
        let (begin, (asking, told)) = ((self.clocks.thread)(), done(self));
        let next = self.tick_now();
        let took = (self.clocks.thread)() - begin;
        if let Some(w) = &mut self.watching
            && let Some(each) = took.0.saturating_sub((w.asking - asking).0).checked_div(w.seen.told - told)
        {
            w.handle(Ns(each));
        }
        next
    }

    fn tick_now(&mut self) -> Option<Ns> {
        if self.watching.is_none() || !self.within_budget() {
            return None;
        }
        self.take_all_touches();
        if matches!(self.watching, Some(Watching { eyes: Eyes::Armed, .. })) {
            // Touched pages are no longer registered. Each would otherwise be a mapping of its own
            // for ever.
            self.mover.settle();
            self.leave_armed();
        }
        self.drain();
        self.watch_for_recording();
        let now = (self.clocks.wall)() - self.started;
        let Some(Watching { wake, interest, .. }) = &mut self.watching else { return None };
        if wake.is_some_and(|at| at <= now) {
            if interest.counts_at_wakes {
                self.tell_counts();
            }
            self.poll();
        }
        self.ask_anew();
        let now = (self.clocks.wall)();
        self.end_interval_if_due(now, false);
        let now = now - self.started;
        let watching = self.watching.as_mut()?;
        let gap = if matches!(watching.eyes, Eyes::Nobody) { Ns(u64::MAX) } else { watching.gap() };
        Some(watching.wake.map_or(gap, |at| Ns(at.0.saturating_sub(now.0)).min(gap)))
    }

    fn ask_anew(&mut self) {
        let now = (self.clocks.wall)();
        let end = self.objects.numbers().end();
        let Some(watching) = self.watching.as_mut().filter(|w| w.wants_asking()) else { return };
        let allowed = watching.room(AT_ONCE, now);
        watching.rare =
            if allowed < WORTH { RAREST.min(watching.rare + 1) } else { watching.rare.saturating_sub(1) };
        let mut pages = Vec::with_capacity(allowed);
        match &mut watching.telling {
            Telling::Proportions(draws) => draws.choose(allowed, end, &mut pages),
            Telling::Kept(turns) => turns.choose(allowed, end, &mut pages),
            _ => return,
        }
        if matches!(watching.telling, Telling::Kept(_)) {
            // Objects are watched before all of their pages exist.
            for page in &pages {
                let unknown = |o: &&crate::watch::Object| o.watched && o.home(*page).is_none();
                let at = self.objects.numbers().address(*page);
                if let Some(o) = at.and_then(|a| self.objects.get(a)).filter(unknown) {
                    self.find_home(o.address, *page);
                }
            }
        }
        let objects = &self.objects;
        let address = |page: PageNo| {
            let address = objects.numbers().address(page)?;
            objects.get(address).filter(|o| o.watched && o.home(page).is_some()).map(|_| address)
        };
        let list: Vec<usize> = pages.into_iter().filter_map(address).collect();
        let Some(watching) = &mut self.watching else { return };
        watching.idle = if list.is_empty() && allowed > 0 { watching.idle + 1 } else { 0 };
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
        let moves: Vec<_> = self.objects.live().filter(|o| o.watched).map(block).collect();
        self.move_ranges(moves);
        let pages: Vec<usize> =
            self.objects.live().filter(|o| o.watched).map(|o| o.whole_pages().start).collect();
        self.ask_for(&pages);
    }

    /// Whether [`Driver::tick`] has something to do.
    pub fn wants_ticks(&self) -> bool {
        self.watching.is_some()
    }

    /// Totals of what was seen; `None` if nothing was watched.
    pub fn watched(&self) -> Option<&Watched> {
        self.watching.as_ref().map(|w| &w.seen)
    }

    /// Notes the size of homenode's tables.
    fn note_state(&mut self) {
        let (mut program, mut own) = (0, 0);
        for o in self.objects.live().filter(|o| o.watched) {
            program += o.bytes as u64;
            own += o.pages.count * 3;
        }
        let Some(watching) = &mut self.watching else { return };
        if let Eyes::Source(s) = &watching.eyes {
            own += s.state_bytes() as u64;
        }
        own += self.stream.as_ref().map_or(0, Stream::state_bytes) as u64;
        own += match &watching.telling {
            Telling::Counts(tally) => tally.bytes() as u64,
            Telling::Proportions(draws) => draws.bytes() as u64,
            Telling::Touches | Telling::Kept(_) | Telling::Nothing => 0,
        };
        let (own_before, program_before) = watching.seen.state;
        watching.seen.state = if self.settings.record {
            // Keeps the totals of memory that has died since.
            (own_before.max(own), program_before.max(program))
        } else {
            (own_before, program_before).max((own, program))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let machine = homenode_wire::settings::Machine::even(1, 1, homenode_model::Bytes::mib(1), 20);
        let asked = homenode_wire::settings::Settings { machine, ..Default::default() };
        Settings::of("/nowhere".as_ref(), asked).unwrap()
    }

    #[test]
    fn one_long_time_does_not_make_a_sample_dear_and_many_do() {
        let settings = settings();
        let chosen = Chosen { eyes: Eyes::Armed, refused: Vec::new() };
        let mut w = Watching::new(chosen, Interest::default(), &settings, &mut Vec::new());
        (0..50).for_each(|_| w.handle(Ns(2_000)));
        w.handle(Ns(65_000_000));
        assert!(w.handling < Ns(3_000), "{:?}", w.handling);
        (0..100).for_each(|_| w.handle(Ns(65_000_000)));
        assert!(w.handling > Ns(60_000_000), "{:?}", w.handling);
    }

    #[test]
    fn samples_that_were_not_counted_are_told_once() {
        let settings = settings();
        let chosen = Chosen { eyes: Eyes::Nobody, refused: Vec::new() };
        let mut w = Watching::new(chosen, Interest::default(), &settings, &mut Vec::new());
        let mut tally = Tally::new(1);
        let more = (Tally::PLACES + 5) as u64;
        (0..more).for_each(|page| tally.add(PageNo(page), NodeId(0), AccessKind::Read));
        let dropped = tally.dropped();
        assert!(dropped >= 5);
        w.telling = Telling::Counts(tally);
        let text =
            format!("{dropped} samples were not counted: there is room for 32768 pages between two looks");
        assert_eq!(w.cannot(Ns(1)), [text]);
        assert_eq!(w.cannot(Ns(1)), [""; 0]);
    }
}
