//! What the policy gets of the samples that a source tells.
//!
//! - A source that samples accesses gives *counts* ([`Event::Accesses`], each sample times its
//!   period).
//! - A source of presence gives *draws*. `presence` gets each of them ([`Event::Touched`]).
//!   Policies that compare nodes get the draws of a block once there are [`ENOUGH`].
//! - Policies with thresholds in accesses get nothing if no source counts.
//! - A recording keeps all samples ([`crate::stream`]), and asks for pages of all blocks in turn.

use std::collections::BTreeSet;

use homenode_model::{AccessKind, Event, Interest, NodeId, Ns, PageNo, PageRange};
use homenode_policy::{Policy, Step};
use homenode_sources::tally::SampleTally;
use homenode_sources::{AddressTouch, AnswerKind, Source};
use homenode_sys::Span;

use super::pace::Pace;
use crate::driver::settings::DriverSettings;
use crate::guard::holdback::block_of;
use crate::watch::choice::Eyes;
use crate::watch::numbers::PAGE;
use crate::watch::objects::Object;
use crate::watch::turns::Turns;
use crate::watch::{ChosenSource, Draws};

/// Draws of a block that a policy gets at a time. With eight, 60 to 40 looks like 40 to 60 one time
/// in four, and 80 to 20 looks like 20 to 80 one time in ten thousand.
const ENOUGH: u32 = 8;
/// The same for `daemon`, which ignores pages with fewer than 16 accesses in a period.
const ENOUGH_AT_WAKES: u32 = 16;
/// The report mentions pauses of the source if they are more than one in this many parts of the
/// time.
const WORTH_TELLING: u64 = 4;
/// Shortest time between two looks at the end of a region.
const SHORTEST_LOOK: Ns = Ns(1_000_000);
/// The same until an iteration is known. Most programs have shown two iterations by then.
const SHORTEST_EARLY_LOOK: Ns = Ns(100_000_000);

/// What the policy gets.
enum Telling {
    /// Each touch.
    Touches,
    /// Samples of accesses, as counts.
    Counts(SampleTally),
    /// Draws of blocks with enough of them.
    Proportions(Draws),
    /// Nothing. Samples are for a recording, and pages are asked for in turn.
    Kept(Turns),
    /// Nothing. The policy needs counts and there are none.
    Nothing,
}

/// Totals of what was seen and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceTotals {
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
pub struct SourceWatch {
    /// The source.
    pub eyes: Eyes,
    /// How many pages the source is asked for, and when.
    pub pace: Pace,
    /// Totals.
    pub seen: SourceTotals,
    /// When to look for new objects again, for a recording.
    pub look_new: Ns,
    telling: Telling,
    interest: Interest,
    wake: Option<Ns>,
    looked: Ns,
    paid: Ns,
    /// Held-back blocks that the policy wanted to move.
    held: BTreeSet<usize>,
    /// Objects that the source has left for the time of a move.
    left: BTreeSet<usize>,
    touches: Vec<AddressTouch>,
    /// Whether the source was left for good and the reason was noted.
    is_over: bool,
}

impl SourceWatch {
    /// Watches by the `chosen` source, for a policy with this interest. Adds what cannot be done to
    /// `notes`.
    pub fn new(
        chosen: ChosenSource,
        interest: Interest,
        settings: &DriverSettings,
        notes: &mut Vec<String>,
    ) -> Self {
        let ChosenSource { eyes, refused } = chosen;
        notes.extend(refused);
        let nodes = settings.machine.nodes();
        let enough = if interest.counts_at_wakes { ENOUGH_AT_WAKES } else { ENOUGH };
        let telling = match eyes.says() {
            Some(says) if settings.record && !says.counts() => Telling::Kept(Turns::default()),
            _ if !interest.counts() => Telling::Touches,
            Some(says) if says.counts() => Telling::Counts(SampleTally::new(nodes)),
            Some(_) if interest.by_proportion => Telling::Proportions(Draws::new(nodes, enough)),
            _ => Telling::Nothing,
        };
        if matches!(telling, Telling::Nothing) {
            notes.push(format!(
                "the policy {} needs counts of accesses, and {} tell no counts here: it decided nothing",
                settings.policy,
                eyes.name()
            ));
        }
        let writers_only = matches!(eyes.says(), Some(AnswerKind::Presence { writers_only: true }));
        if writers_only {
            notes.push("memory that is only read was not watched: this source tells of writers alone".into());
        }
        let pace = Pace::new(
            settings.machine.cpus().len().max(1) as u64,
            settings.record,
            settings.budget.permille,
            homenode_sys::call::now(),
        );
        let seen = SourceTotals {
            name: eyes.name(),
            says: eyes.says().map_or_else(|| "nothing".into(), |s| s.to_string()),
            cost: pace.cost(),
            one_in: match eyes.says() {
                Some(AnswerKind::Sampled { one_in }) => Some(one_in),
                _ => None,
            },
            writers_only,
            ..SourceTotals::default()
        };
        Self {
            eyes,
            pace,
            seen,
            look_new: Ns::ZERO,
            telling,
            interest,
            wake: None,
            looked: Ns::ZERO,
            paid: Ns::ZERO,
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
                "nothing was watched for {:.1} s: reports of the program's many page faults would have cost too much",
                paused.0 as f64 * 1e-9
            ));
        }
        match &self.telling {
            Telling::Counts(tally) if tally.dropped() > 0 => all.push(format!(
                "{} samples were not counted: there is room for {} pages between two looks",
                tally.dropped(),
                SampleTally::PLACES
            )),
            Telling::Proportions(draws) if self.seen.blocks == 0 && self.seen.told > 0 => all.push(format!(
                "the policy decides about a block of 64 KiB from {} samples of it on, and none had as many \
                 ({} samples in all): a longer run or a larger --budget gives more",
                draws.enough(),
                self.seen.told
            )),
            _ => {}
        }
        all
    }

    /// Leaves the source for good, by `leave`. Returns what could not be done, one sentence each.
    pub fn leave_source(&mut self, elapsed: Ns, leave: impl FnOnce(&mut dyn Source)) -> Vec<String> {
        let cannot = self.cannot(elapsed);
        if let Eyes::Source(source) = &mut self.eyes {
            leave(&mut **source);
        }
        self.telling = Telling::Nothing;
        cannot
    }

    /// What the program has paid for samples, besides costs that are measured where they occur.
    pub const fn paid(&self) -> Ns {
        self.paid
    }

    /// Gives an object to the source, one stretch of equal home at a time.
    pub fn watch(&mut self, object: &Object) {
        let (Eyes::Source(source), false) = (&mut self.eyes, self.is_over) else { return };
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
    pub fn dies(&mut self, object: &Object) {
        let whole = object.whole_pages();
        if let Eyes::Source(source) = &mut self.eyes {
            source.gone(Span { start: whole.start, end: whole.end });
        }
        if let Telling::Proportions(draws) = &mut self.telling {
            draws.forget(object.pages);
        }
        self.held.retain(|b| !whole.contains(b));
    }

    /// A watched object's pages are about to move: the source lets go of the whole object until
    /// [`SourceWatch::take_left`]. A part would be a mapping of its own meanwhile, and `mremap`
    /// fails on several mappings.
    pub fn leave_for_now(&mut self, object: &Object) {
        let (Eyes::Source(source), false) = (&mut self.eyes, self.is_over) else { return };
        if object.treatment.watched && self.left.insert(object.address) {
            let whole = object.whole_pages();
            source.leave(Span { start: whole.start, end: whole.end });
        }
    }

    /// Removes and returns the objects that the source has left for the time of a move.
    pub fn take_left(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.left)
    }

    /// The policy wants these held-back pages of an object elsewhere.
    pub fn hold(&mut self, object: &Object, pages: PageRange) {
        let block = block_of(object.bytes);
        let start = object.whole_pages().start + (pages.first.0 - object.pages.first.0) as usize * PAGE;
        for page in (start..start + pages.count as usize * PAGE).step_by(PAGE) {
            self.held.insert(page & !(block - 1));
        }
    }

    /// Whether the policy wanted the block of `block` bytes at this address elsewhere while it was
    /// held back.
    pub fn is_held(&self, address: usize, block: usize) -> bool {
        self.held.contains(&(address & !(block - 1)))
    }

    /// The source was asked for pages: notes how many it was asked for so far, and the cost.
    pub const fn note_pace(&mut self) {
        (self.seen.asked, self.seen.cost) = (self.pace.asked(), self.pace.cost());
    }

    /// Notes when the policy wants to be polled.
    pub const fn wake_at(&mut self, step: Step) {
        self.wake = match step {
            Step::WakeAt(at) => Some(at),
            Step::Act | Step::Idle => None,
        };
    }

    /// When the policy wants to be polled, if it said so.
    pub const fn wake(&self) -> Option<Ns> {
        self.wake
    }

    /// Somebody looks at the samples now.
    pub const fn looks(&mut self, now: Ns) {
        self.looked = now;
    }

    /// Whether the policy wants to decide at the end of a region, and the last look is long enough
    /// ago. `started`: when homenode started. `knows_iteration`: whether an iteration is known.
    pub fn is_look_due(&self, now: Ns, started: Ns, knows_iteration: bool) -> bool {
        let since = now - started.max(self.looked);
        self.interest.counts_by_region
            && if self.interest.counts_by_iteration {
                !knows_iteration && since >= SHORTEST_EARLY_LOOK
            } else {
                since >= SHORTEST_LOOK
            }
    }

    /// Whether the policy wants counts at the start of an `iteration`, or at the end of a region.
    pub const fn wants_counts(&self, iteration: bool) -> bool {
        if iteration { self.interest.counts_by_iteration } else { self.interest.counts_by_region }
    }

    /// Whether the policy wants counts when it wakes.
    pub const fn wants_counts_at_wakes(&self) -> bool {
        self.interest.counts_at_wakes
    }

    /// Removes and returns the touches that the source reports. [`SourceWatch::done`] takes the
    /// list back.
    pub fn drain(&mut self) -> Vec<AddressTouch> {
        let mut touches = std::mem::take(&mut self.touches);
        if let Eyes::Source(source) = &mut self.eyes {
            source.drain(&mut |t| touches.push(t));
            self.seen.lost = source.lost();
            // The handlers of armed pages measure their faults themselves.
            self.paid += source.cost().times(touches.len() as u64);
        }
        touches
    }

    /// Keeps the memory of the list for the next [`SourceWatch::drain`].
    pub fn done(&mut self, mut touches: Vec<AddressTouch>) {
        touches.clear();
        self.touches = touches;
    }

    /// Counts a touch by `node` of a page at `home`. `has_moved`: whether pages have moved.
    pub const fn count(&mut self, home: NodeId, node: NodeId, has_moved: bool) {
        self.seen.told += 1;
        if !has_moved {
            self.seen.before.0 += (home.0 != node.0) as u64;
            self.seen.before.1 += 1;
        }
    }

    /// Keeps a sample until the policy gets it. Returns whether the policy gets it at once, as a
    /// touch.
    pub fn keep(&mut self, page: PageNo, node: NodeId, kind: Option<AccessKind>) -> bool {
        match &mut self.telling {
            Telling::Touches => return true,
            Telling::Counts(tally) => tally.add(page, node, kind.unwrap_or(AccessKind::Read)),
            Telling::Proportions(draws) => draws.add(page, node),
            Telling::Kept(_) | Telling::Nothing => {}
        }
        false
    }

    /// Gives the policy the accesses since the last time, or the draws of blocks with enough of
    /// them. `home`: the home of a page.
    pub fn give_counts(&mut self, policy: &mut dyn Policy, home: impl Fn(PageNo) -> Option<NodeId>) {
        let one_in = self.seen.one_in.unwrap_or(1);
        let kind = if self.seen.writers_only { AccessKind::Write } else { AccessKind::Read };
        match &mut self.telling {
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
                self.seen.blocks += 1;
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

    /// Chooses the pages of a request, at most as many as the pace allows. `end`: one past the
    /// largest number of a page. Returns the pages and the allowed number; `None` if nothing is to
    /// be asked for.
    pub fn choose(&mut self, now: Ns, end: u64) -> Option<(Vec<PageNo>, usize)> {
        if !matches!(self.telling, Telling::Proportions(_) | Telling::Kept(_)) {
            return None;
        }
        let allowed = self.pace.room_of_request(now);
        let mut pages = Vec::with_capacity(allowed);
        match &mut self.telling {
            Telling::Proportions(draws) => draws.choose(allowed, end, &mut pages),
            Telling::Kept(turns) => turns.choose(allowed, end, &mut pages),
            _ => {}
        }
        Some((pages, allowed))
    }

    /// Whether samples are for a recording alone. Objects are watched before all of their pages
    /// exist then.
    pub const fn only_records(&self) -> bool {
        matches!(self.telling, Telling::Kept(_))
    }

    /// Notes the size of homenode's tables. `own`: bytes of the tables elsewhere. `program`: bytes
    /// of watched memory. `record`: the totals of memory that has died since are kept.
    pub fn note_state(&mut self, mut own: u64, program: u64, record: bool) {
        if let Eyes::Source(s) = &self.eyes {
            own += s.state_bytes() as u64;
        }
        own += match &self.telling {
            Telling::Counts(tally) => tally.bytes() as u64,
            Telling::Proportions(draws) => draws.bytes() as u64,
            Telling::Touches | Telling::Kept(_) | Telling::Nothing => 0,
        };
        let (own_before, program_before) = self.seen.state;
        self.seen.state = if record {
            (own_before.max(own), program_before.max(program))
        } else {
            (own_before, program_before).max((own, program))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::{Bytes, DecisionBuf, MoveOutcome};
    use homenode_wire::settings;

    /// A policy that only listens.
    #[derive(Default)]
    struct Listener(Vec<Event>);

    impl Policy for Listener {
        fn interest(&self) -> Interest {
            Interest::default()
        }
        fn observe(&mut self, event: &Event) {
            self.0.push(*event);
        }
        fn poll(&mut self, _: Ns, _: &mut DecisionBuf) -> Step {
            Step::Idle
        }
        fn outcome(&mut self, _: &MoveOutcome) {}
    }

    fn counted(interest: Interest, eyes: Eyes) -> SourceWatch {
        watching(eyes, "competitive", interest).0
    }

    fn watching(eyes: Eyes, policy: &str, interest: Interest) -> (SourceWatch, Vec<String>) {
        let machine = settings::MachineNodes::even(2, 1, Bytes::mib(1), 20);
        let asked = settings::Settings { machine, policy: policy.into(), ..Default::default() };
        let settings = DriverSettings::of("/nowhere".as_ref(), asked).unwrap();
        let mut notes = Vec::new();
        let chosen = ChosenSource { eyes, refused: Vec::new() };
        (SourceWatch::new(chosen, interest, &settings, &mut notes), notes)
    }

    #[test]
    fn samples_that_were_not_counted_are_told_once() {
        let (mut w, _) = watching(Eyes::Nobody, "", Interest::default());
        let mut tally = SampleTally::new(1);
        let more = (SampleTally::PLACES + 5) as u64;
        (0..more).for_each(|page| tally.add(PageNo(page), NodeId(0), AccessKind::Read));
        let dropped = tally.dropped();
        assert!(dropped >= 5);
        w.telling = Telling::Counts(tally);
        let text =
            format!("{dropped} samples were not counted: there is room for 32768 pages between two looks");
        assert_eq!(w.cannot(Ns(1)), [text]);
        assert_eq!(w.cannot(Ns(1)), [""; 0]);
    }
    #[test]
    fn draws_of_a_block_are_given_once_there_are_enough() {
        let by_region = Interest { counts_by_region: true, by_proportion: true, ..Interest::default() };
        let mut w = counted(by_region, Eyes::Armed);
        let home = |page: PageNo| (page.0 < 8).then_some(NodeId(0));
        let mut listener = Listener::default();
        for i in 0..u64::from(ENOUGH) {
            assert!(listener.0.is_empty());
            assert!(!w.keep(PageNo(i), NodeId(1), None));
            w.give_counts(&mut listener, home);
        }
        let of = |page| Event::Accesses {
            page: PageNo(page),
            home: NodeId(0),
            node: NodeId(1),
            kind: AccessKind::Read,
            count: ENOUGH,
        };
        assert_eq!(listener.0, (0..8).map(of).collect::<Vec<_>>(), "each page with a home");
        assert_eq!(w.seen.blocks, 1);
    }

    #[test]
    fn touches_go_to_a_policy_without_counts_and_nothing_to_one_that_needs_them() {
        let (mut w, notes) = watching(Eyes::Armed, "presence", Interest::default());
        assert!(notes.is_empty() && w.keep(PageNo(1), NodeId(1), None));
        let by_region = Interest { counts_by_region: true, ..Interest::default() };
        let (mut w, notes) = watching(Eyes::Armed, "out-u", by_region);
        assert!(notes.len() == 1 && notes[0].contains("it decided nothing"), "{notes:?}");
        assert!(!w.keep(PageNo(1), NodeId(1), None) && w.choose(Ns(1 << 40), 64).is_none());
    }

    #[test]
    fn the_end_of_a_region_is_looked_at_until_an_iteration_is_known() {
        let either = Interest { counts_by_region: true, counts_by_iteration: true, ..Interest::default() };
        let mut w = counted(either, Eyes::Armed);
        let (early, start) = (SHORTEST_EARLY_LOOK, Ns(77));
        let due = |w: &SourceWatch, since: Ns, known| w.is_look_due(start + since, start, known);
        assert_eq!(
            [due(&w, early - Ns(1), false), due(&w, early, false), due(&w, early, true)],
            [false, true, false]
        );
        w.looks(start + early);
        assert!(!due(&w, early + SHORTEST_LOOK, false) && due(&w, early + early, false));
        let region = Interest { counts_by_region: true, ..Interest::default() };
        assert!(due(&counted(region, Eyes::Armed), SHORTEST_LOOK, true));
        assert!(!due(&counted(Interest::default(), Eyes::Armed), early, false));
    }

    #[test]
    fn touches_before_anything_moved_are_counted_apart() {
        let mut w = counted(Interest::default(), Eyes::Nobody);
        for (node, has_moved) in [(0, false), (1, false), (1, true)] {
            w.count(NodeId(0), NodeId(node), has_moved);
        }
        assert_eq!((w.seen.told, w.seen.before), (3, (1, 2)));
        w.note_state(5, 700, false);
        w.note_state(9, 60, false);
        assert_eq!(w.seen.state, (9, 60), "the larger tables");
    }
}
