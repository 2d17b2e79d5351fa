//! The trial: what homenode may spend before moving has shown a gain, and how a few pages show one.
//!
//! # Problem
//!
//! If all pages follow their next touch, each is copied once, for some microseconds a page. In most
//! programs nothing moves then: first touch had placed the pages where they are used, or other
//! threads use them each time. A budget of seconds would mostly be wasted.
//!
//! # Approach
//!
//! - *Allowance.* Until something has shown a gain, homenode's own time may be 2.5 % of the
//!   process's CPU time or 40 ms, whichever is more. Pages that are armed already may cost a little
//!   more than that, so that 3 % or 50 ms hold. The budget of the settings holds besides.
//! - *Pilots.* In an object of [`LEAST`] pages or more, the driver arms single pages: one in each
//!   of at most [`MOST`] equal stretches, drawn at random. If less than one in [`FAR`] of the
//!   touched pilots came from another node, it arms nothing else of the object. Otherwise it arms
//!   those that came once more, on their new node. If another node touches at most one in [`STRAY`]
//!   of these, moving lasts, and the whole object follows. As long as one node alone has touched
//!   all pilots of all objects, no object follows. Programs whose threads steal work fail the
//!   second test.
//! - *Neighbours.* Each pilot that is armed once more has a companion: the page [`APART`] pages
//!   farther on among those that one touch brings along. If they often have different users, each
//!   page follows alone. Loops with `schedule(static, 1)` over short rows are such a case.
//! - *Blocks.* For some pilots, all pages that one touch brings along are armed the second time. If
//!   another node than the pilot's often takes them, each page follows alone. That is so in a
//!   pipeline: the first thread reads a page at the border of each part before its owner does.
//! - *Phases.* A program may use its memory otherwise later. Half of the pilots of an object that
//!   stays are armed again when the program has run twice as long as it had then.
//! - *Licence.* The licence gives the whole budget. The driver grants it when [`SURE`] pilots of an
//!   object pass both tests, or when the guard's verdict is that moving pays; the verdict grants it
//!   once. After each [`REVIEW`] of own time the driver withdraws the licence if less than one in
//!   [`GAINS`] of the pages copied since then had another home, or if each such page cost more than
//!   [`PRICE`]. There is no licence while threads change nodes.
//!
//! All this holds for runs without a budget of the user's (`Settings::trial`), and for memory that
//! is armed without a request.
//!
//! # Properties
//!
//! `what_is_used_where_it_is_costs_a_few_pages`, `what_one_thread_initialised_follows_as_a_whole`,
//! `what_other_nodes_use_each_time_stays`, `another_phase_is_found`,
//! `a_trial_goes_on_after_a_pause`, `parts_as_short_as_what_one_touch_brings_follow_page_by_page`,
//! `without_a_gain_the_allowance_holds` in `tests/driver/trial.rs`.

use std::collections::{BTreeMap, BTreeSet};

use homenode_model::{Event, NodeId, Ns, ObjectId, PageNo, PageRange};
use homenode_sys::Span;
use homenode_wire::facts::Arming;

use super::arming::{AROUND, ToArm};
use super::mover::{Manner, Touch};
use super::run::Driver;
use super::waiting::{GAP, Why};
use crate::guard::Verdict;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;
use crate::watch::objects::Object;

/// Allowance in thousandths of the process's CPU time, and of elapsed time.
const PERMILLE: u64 = 25;
/// The least allowance.
const FIXED: Ns = Ns(40_000_000);
/// Pages of the smallest object with pilots. A smaller one is armed as a whole.
const LEAST: u64 = 64;
/// Pilots of an object, at most.
const MOST: u64 = 64;
/// Pages of the shortest stretch.
const SHORTEST: u64 = 8;
/// The driver arms pilots again if at least one in `FAR` was touched from another node.
const FAR: u32 = 8;
/// An object follows if another node touches at most one in `STRAY` of its second pilots.
const STRAY: u32 = 8;
/// Second pilots that must be touched before the whole budget may be spent.
const SURE: u32 = 12;
/// Pages between a pilot and its companion. Odd, and no divisor of [`AROUND`]: parts of 1, 2, 4 or
/// 8 pages that two nodes use in turn show.
const APART: usize = 5;
/// Pairs, or blocks, that it takes to tell whether neighbouring pages have different users.
const PAIRS: usize = 4;
/// One in this many of the pilots that are armed once more is armed as a block, up to [`BLOCKS`].
const ONE_BLOCK_IN: usize = 3;
const BLOCKS: usize = 8;
/// Starts of regions without a touched pilot after which the driver waits no longer.
const QUIET: u32 = 16;
/// Own time between two reviews of the licence. Below: the part of the copied pages that must have
/// moved, and what a moved page may have cost.
const REVIEW: Ns = Ns(30_000_000);
const GAINS: u64 = 16;
const PRICE: Ns = Ns(100_000);
/// The shortest time after which the pilots of an object that stays are armed again.
const SOONEST: Ns = Ns(100_000_000);

/// The allowance for `of`: CPU time of the process, or elapsed time.
pub(super) fn allows(of: Ns) -> Ns {
    Ns(of.0 / 1000).times(PERMILLE).max(FIXED)
}

/// The pilots of an object.
#[derive(Debug)]
struct Pilots {
    id: ObjectId,
    /// Addresses of armed pilots that nobody has touched yet.
    open: BTreeSet<usize>,
    armed: u32,
    told: u32,
    /// Pilots that came from another node.
    far: Vec<usize>,
    /// Addresses of companions that nobody has touched yet.
    beside: BTreeSet<usize>,
    /// Who touched pilots and companions.
    users: BTreeMap<usize, NodeId>,
    /// Blocks that nobody has touched yet, and the nodes that used their pilots.
    blocks: BTreeMap<usize, NodeId>,
    /// Touched blocks, and those of them that another node took.
    taken: [u32; 2],
    /// Whether these pilots are armed for the second time.
    again: bool,
    /// Starts of regions since a pilot was last touched.
    quiet: u32,
    /// Number of touched pilots at that time.
    seen: u32,
}

/// The result of an object's pilots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    Stay,
    TryAgain,
    Follow,
}

impl Pilots {
    fn new(id: ObjectId, open: BTreeSet<usize>, again: bool) -> Self {
        let armed = open.len() as u32;
        let (far, beside, users, blocks, taken) = Default::default();
        Self { id, open, armed, told: 0, far, beside, users, blocks, taken, again, quiet: 0, seen: 0 }
    }

    /// Counts the touch of pages that came together. Returns whether they were a block of these.
    fn took(&mut self, touch: &Touch) -> bool {
        let Some(pilots) = self.blocks.remove(&neighbourhood(touch.address)).filter(|_| touch.pages > 1)
        else {
            return false;
        };
        self.taken[0] += 1;
        self.taken[1] += u32::from(pilots != touch.node);
        self.told += 1;
        true
    }

    /// These pilots when all of them were disarmed, to be armed once more later. `Err`: too few
    /// were touched.
    fn paused(mut self) -> Result<Self, ObjectId> {
        if self.again {
            // They had come to their users before.
            self.far = self.open.iter().chain(self.users.keys()).copied().collect();
            (self.again, self.told, self.armed) = (false, self.far.len() as u32, self.far.len() as u32);
        }
        if self.told == 0 || 2 * self.told < self.armed {
            return Err(self.id);
        }
        self.armed = self.told;
        (self.open, self.beside, self.blocks) = Default::default();
        Ok(self)
    }

    /// Whether pilots and their companions often have different users, or another node often takes
    /// a block.
    fn are_mixed(&self) -> bool {
        let [all, astray] = self.taken;
        if all as usize >= PAIRS && astray * STRAY > all {
            return true;
        }
        let users = self.users.iter();
        let pairs: Vec<bool> =
            users.filter_map(|(at, n)| Some(self.users.get(&companion(*at))? != n)).collect();
        let differ = pairs.iter().filter(|differ| **differ).count();
        pairs.len() >= PAIRS && differ * STRAY as usize > pairs.len()
    }

    /// Evaluates the pilots at the start of a region.
    fn says(&mut self) -> Says {
        self.quiet = if self.told == self.seen { self.quiet + 1 } else { 0 };
        self.seen = self.told;
        let enough = 2 * self.told >= self.armed || self.told > 1 && self.quiet >= QUIET;
        let far = self.far.len() as u32;
        match self.again {
            _ if !enough || self.told == 0 => Says::Nothing,
            false if far * FAR < self.told => Says::Stay,
            false => Says::TryAgain,
            true if far * STRAY <= self.told => Says::Follow,
            true => Says::Stay,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Pilots by the object's address.
    pilots: BTreeMap<usize, Pilots>,
    /// Whether a pilot was touched since the last count.
    news: bool,
    starts: u32,
    /// Objects that should follow, but whose pages have not been located yet.
    unlooked: BTreeSet<usize>,
    /// The licence: moving has shown a gain, and the budget holds.
    licence: bool,
    /// Own time, copied pages and moved pages at the last review of the licence.
    reviewed: (Ns, u64, u64),
    /// Whether the guard's verdict has granted the licence.
    by_verdict: bool,
    /// Objects that follow because of their pilots, and have not been asked for since.
    followed: BTreeSet<usize>,
    /// Pages that moved with a touch.
    pub moved: u64,
    /// The nodes that touched pilots. If there is one only, the whole team runs there now, and its
    /// threads may run elsewhere soon.
    nodes: BTreeSet<NodeId>,
    /// Objects that stay, by address, and the time at which their pilots are armed again.
    resting: BTreeMap<usize, (ObjectId, Ns)>,
    /// The earliest of these times.
    rests_until: Option<Ns>,
}

impl Trial {
    /// Drops the object at this address, which has died.
    pub fn forget(&mut self, address: usize) {
        self.pilots.remove(&address);
        self.unlooked.remove(&address);
        self.followed.remove(&address);
        self.resting.remove(&address);
    }

    fn rests(&mut self, address: usize, id: ObjectId, until: Ns) {
        self.resting.insert(address, (id, until));
        self.rests_until = Some(self.rests_until.map_or(until, |earliest| earliest.min(until)));
    }

    /// Removes and returns the objects whose pilots are to be armed again by now.
    fn take_rested(&mut self, now: Ns) -> Vec<(usize, ObjectId)> {
        let rested = self.resting.extract_if(.., |_, (_, until)| *until <= now);
        let rested = rested.map(|(address, (id, _))| (address, id)).collect();
        self.rests_until = self.resting.values().map(|(_, until)| *until).min();
        rested
    }

    /// Everything was disarmed, because the budget had run out. The trial goes on once there is
    /// room: from pilots that have come to their users, or from new ones.
    pub fn disarmed(&mut self, now: Ns) {
        for (address, pilots) in std::mem::take(&mut self.pilots) {
            match pilots.paused() {
                Ok(pilots) => _ = self.pilots.insert(address, pilots),
                Err(id) => self.rests(address, id, now + GAP),
            }
        }
    }

    /// Whether the object has armed pilots.
    pub fn waits_for(&self, address: usize) -> bool {
        self.pilots.contains_key(&address)
    }

    /// Whether the object has followed since the last call. Its pilots have told more than the
    /// probes of one round would.
    pub fn takes_followed(&mut self, address: usize) -> bool {
        self.followed.remove(&address)
    }

    /// Whether the pages of the object must be located before it follows. With `last`, that is over
    /// after this call.
    pub fn takes_unlooked(&mut self, address: usize, last: bool) -> bool {
        if last { self.unlooked.remove(&address) } else { self.unlooked.contains(&address) }
    }
}

/// Indices of the pages drawn from an object of `count` pages. They are the same each time, because
/// on pretended nodes homenode knows the homes only of pages whose first touch it saw.
fn drawn(count: u64) -> impl Iterator<Item = u64> {
    let stretch = count.div_ceil(MOST).max(SHORTEST);
    (0..count.div_ceil(stretch)).map(move |i| {
        let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        (i * stretch + x % stretch).min(count - 1)
    })
}

/// The page [`APART`] pages farther on among those that one touch brings along, from their begin
/// again after their end.
const fn companion(page: usize) -> usize {
    let around = AROUND * PAGE;
    page / around * around + (page + APART * PAGE) % around
}

/// The first byte of the pages that one touch brings along with this one.
const fn neighbourhood(page: usize) -> usize {
    page & !(AROUND * PAGE - 1)
}

impl Driver {
    /// Whether the trial holds: there is no gain so far, and no budget of the user's.
    pub fn is_on_trial(&self) -> bool {
        self.has_trial() && !self.trial.licence
    }

    fn has_trial(&self) -> bool {
        let unasked = matches!(self.settings.arming, Arming::First | Arming::Region);
        self.settings.trial && unasked && !self.settings.force && self.plan.is_none()
    }

    /// Whether pilots should test the object, which was never armed.
    pub(super) fn is_for_pilots(&self, address: usize) -> bool {
        let pages = self.objects.get(address).map_or(0, |o| o.pages.count);
        self.has_trial() && self.settings.arming == Arming::First && pages >= LEAST
    }

    /// Whether pages may be located for the recording alone. On trial a recording takes at most
    /// half of the allowance for itself.
    pub(super) fn may_locate(&self) -> bool {
        !self.is_on_trial() || self.recording.0 < allows(self.cpu_time()).0 / 2
    }

    /// Arms pilots of the object if there is room for that many pages; `None` if there is no room.
    /// Returns the number of armed pages. They include pages that do not exist yet: their first
    /// touch will tell their home.
    pub(super) fn send_pilots(&mut self, address: usize, room: u64) -> Option<u64> {
        let Some(object) = self.objects.get(address) else { return Some(0) };
        let (id, pages, block) = (object.id, object.pages, block_of(object.bytes));
        let (start, again) = (object.whole_pages().start, object.pilot);
        let (mut there, mut missing) = (BTreeSet::new(), Vec::new());
        for index in drawn(pages.count).step_by(if again { 2 } else { 1 }) {
            let (at, page) = (start + index as usize * PAGE, PageNo(pages.first.0 + index));
            if self.hold.was_held(at, block) || self.placed.has(at) {
                continue;
            }
            if (there.len() + missing.len()) as u64 >= room {
                return None;
            }
            if self.has_page(address, page, at) {
                there.insert(at);
            } else {
                missing.push(Span::new(at, PAGE));
            }
        }
        let alone: Vec<Span> = there.iter().map(|at| Span::new(*at, PAGE)).collect();
        let mut armed = self.arm(&ToArm::alone(alone));
        if !again && !missing.is_empty() && self.mover.sees_first_touches() {
            armed += self.mover.arm(&missing, Manner::Alone).pages;
            self.objects.at(address).into_iter().for_each(|o| o.awaited = true);
        }
        if !there.is_empty() {
            self.objects.seen(address);
            self.objects.at(address).into_iter().for_each(|o| (o.armed, o.pilot) = (true, true));
            self.trial.pilots.insert(address, Pilots::new(id, there, false));
        }
        Some(armed)
    }

    /// Whether the page of the object exists. Notes its home.
    fn has_page(&mut self, object: usize, page: PageNo, at: usize) -> bool {
        if self.objects.get(object).and_then(|o| o.home(page)).is_some() {
            return true;
        }
        let mut home = Vec::with_capacity(1);
        self.mover.homes(at, 1, None, &mut home);
        let Some(home) = home.into_iter().flatten().next() else { return false };
        if self.objects.at(object).is_some_and(|o| o.was_at(home, page.0 - o.pages.first.0)) {
            self.record_home(object, page, home);
            self.policy.observe(&Event::Fault { page, node: home });
        }
        true
    }

    /// Counts the touch of a page, if the page is a pilot. `is_far`: it was on another node.
    pub(super) fn pilot_told(&mut self, object: (usize, ObjectId), touch: &Touch, is_far: bool) {
        let Some(pilots) = self.trial.pilots.get_mut(&object.0).filter(|p| p.id == object.1) else { return };
        if pilots.took(touch) {
            self.trial.news = true;
            return;
        }
        if pilots.open.remove(&touch.address) {
            pilots.told += 1;
            pilots.far.extend(is_far.then_some(touch.address));
            self.trial.news = true;
            self.trial.nodes.insert(touch.node);
        } else if !pilots.beside.remove(&touch.address) {
            return;
        }
        pilots.users.insert(touch.address, touch.node);
    }

    /// At the start of a region: evaluates the pilots. Returns whether an object should follow.
    pub(super) fn count_pilots(&mut self) -> bool {
        let trial = &mut self.trial;
        trial.starts = trial.starts.wrapping_add(1);
        // Most programs have many more regions than touched pilots.
        if trial.pilots.is_empty() || !trial.news && !trial.starts.is_multiple_of(QUIET) {
            return false;
        }
        trial.news = false;
        let said: Vec<(usize, Says)> = trial.pilots.iter_mut().map(|(at, p)| (*at, p.says())).collect();
        let mut follows = false;
        for (address, says) in said {
            match says {
                Says::Nothing => {}
                Says::Stay => self.stays(address),
                // Threads that run on one node at a time have no right placement.
                Says::TryAgain | Says::Follow if self.trial.nodes.len() < 2 => self.asks_later(address),
                Says::TryAgain => self.heavy(|d| d.arm_again(address)),
                Says::Follow => {
                    self.all_follows(address);
                    follows = true;
                }
            }
        }
        follows
    }

    /// Notes that the object stays where it is for now.
    fn stays(&mut self, address: usize) {
        let again = self.trial.pilots.get(&address).is_some_and(|p| p.again);
        self.objects.at(address).into_iter().for_each(|o| o.contested = again);
        self.asks_later(address);
    }

    /// Lets the object's pilots be armed again when the program has run twice as long.
    fn asks_later(&mut self, address: usize) {
        let Some(pilots) = self.trial.pilots.remove(&address) else { return };
        let until = (self.clocks.wall)() + self.elapsed().max(SOONEST);
        self.trial.rests(address, pilots.id, until);
    }

    /// Queues objects whose pilots are to be armed again. Returns whether there are any.
    pub(super) fn wait_rested(&mut self, now: Ns) -> bool {
        if self.trial.rests_until.is_none_or(|until| now < until) {
            return false;
        }
        let rested = self.trial.take_rested(now);
        for (address, id) in &rested {
            self.waiting.add(Why::New, *address, *id);
        }
        !rested.is_empty()
    }

    /// Arms the pilots that came from another node once more, if the budget has room.
    fn arm_again(&mut self, address: usize) {
        if !self.within_budget() {
            return;
        }
        let Some(pilots) = self.trial.pilots.remove(&address) else { return };
        let mut far: BTreeSet<usize> = pilots.far.into_iter().collect();
        let blocks = self.blocks_of(address, &far, &pilots.users);
        far.retain(|at| !blocks.contains_key(&neighbourhood(*at)));
        let mut beside = self.companions(address, &far);
        beside.retain(|at| !blocks.contains_key(&neighbourhood(*at)));
        let alone = far.union(&beside).map(|at| Span::new(*at, PAGE)).collect();
        let around = blocks.keys().map(|at| Span::new(*at, AROUND * PAGE)).collect();
        if self.arm(&ToArm { around, alone }) > 0 {
            let again = Pilots::new(pilots.id, far, true);
            let armed = again.armed + blocks.len() as u32;
            self.trial.pilots.insert(address, Pilots { armed, beside, blocks, ..again });
        }
    }

    /// Blocks around some of the pilots, with the nodes that used these. All pages of a block
    /// exist.
    fn blocks_of(
        &mut self,
        address: usize,
        pilots: &BTreeSet<usize>,
        users: &BTreeMap<usize, NodeId>,
    ) -> BTreeMap<usize, NodeId> {
        let Some(object) = self.objects.get(address) else { return BTreeMap::new() };
        let (start, first, count) = (object.whole_pages().start, object.pages.first.0, object.pages.count);
        let whole = start..=start + count as usize * PAGE;
        let mut blocks = BTreeMap::new();
        for (at, node) in pilots.iter().step_by(ONE_BLOCK_IN).filter_map(|at| Some((*at, *users.get(at)?))) {
            let span = Span::new(neighbourhood(at), AROUND * PAGE);
            let is_whole = whole.contains(&span.start) && whole.contains(&span.end);
            let is_free = pilots.range(span.start..span.end).count() == 1;
            let is_full = blocks.len() == BLOCKS || !is_whole || !is_free;
            if is_full || self.placed.rest_of(span) != [span] {
                continue;
            }
            let first = PageNo(first + ((span.start - start) / PAGE) as u64);
            if self.has_pages(address, PageRange { first, count: AROUND as u64 }) {
                blocks.insert(span.start, node);
            }
        }
        blocks
    }

    /// The companions of pilots that exist and are no pilots themselves.
    fn companions(&mut self, address: usize, pilots: &BTreeSet<usize>) -> BTreeSet<usize> {
        let Some(object) = self.objects.get(address) else { return BTreeSet::new() };
        let (start, first, count) = (object.whole_pages().start, object.pages.first.0, object.pages.count);
        let whole = start..start + count as usize * PAGE;
        let beside = pilots.iter().map(|at| companion(*at)).filter(|at| whole.contains(at));
        let beside: Vec<usize> = beside.filter(|at| !pilots.contains(at) && !self.placed.has(*at)).collect();
        let page = |at: usize| PageNo(first + ((at - start) / PAGE) as u64);
        beside.into_iter().filter(|at| self.has_page(address, page(*at), *at)).collect()
    }

    /// Lets all of the object follow its next touch, and grants the licence if enough pilots agree.
    fn all_follows(&mut self, address: usize) {
        let Some(pilots) = self.trial.pilots.remove(&address) else { return };
        let sure = pilots.told >= SURE;
        let Some(object) = self.objects.at(address) else { return };
        (object.pilot, object.contested, object.mixed) = (false, false, pilots.are_mixed());
        let id = object.id;
        self.trial.unlooked.insert(address);
        self.trial.followed.insert(address);
        self.waiting.add(Why::Again, address, id);
        if sure {
            self.give_licence();
        }
    }

    fn give_licence(&mut self) {
        // While threads change nodes, no gain is known to last.
        if !self.trial.licence && !self.seen_on.any_changes() {
            self.trial.licence = true;
            self.trial.reviewed = self.account();
        }
    }

    /// Before more is armed: withdraws the licence if it brings too little, or grants it by the
    /// guard's verdict.
    pub(super) fn review_licence(&mut self) {
        if !self.has_trial() {
            return;
        }
        let pays = matches!(self.hold.verdict(), Verdict::Pays | Verdict::AtHome | Verdict::Evener);
        // A small gain does not justify spending more than it brings.
        if pays && !self.trial.by_verdict && self.own_time() <= PRICE.times(self.trial.moved) {
            self.trial.by_verdict = true;
            return self.give_licence();
        }
        self.trial.licence &= !self.seen_on.any_changes();
        let (now, before) = (self.account(), self.trial.reviewed);
        let (own, copied, moved) = (now.0 - before.0, now.1 - before.1, now.2 - before.2);
        if self.trial.licence && own >= REVIEW {
            self.trial.licence = moved * GAINS >= copied && own <= PRICE.times(moved);
            self.trial.reviewed = now;
        }
    }

    /// Own time, copied pages, and moved pages.
    fn account(&self) -> (Ns, u64, u64) {
        (self.own_time(), self.mover.counters().copies, self.trial.moved)
    }

    /// Bytes of objects that other nodes use each time.
    pub fn contested(&self) -> u64 {
        let all = self.objects.live().chain(self.objects.past());
        all.filter(|o| self.is_contested(o)).map(|o| o.bytes as u64).sum()
    }

    /// Whether no placement of the object lasts: its pilots said so, or its pages went back and
    /// forth. The guard's undo moves pages back, too, and has noted before which objects these are.
    pub fn is_contested(&self, object: &Object) -> bool {
        let is_undone = matches!(self.hold.verdict(), Verdict::NoGain | Verdict::Harms);
        object.contested || !is_undone && object.goes_back_and_forth()
    }

    /// Notes the objects that other nodes use each time.
    pub(super) fn note_strays(&mut self) {
        let mib = self.contested() >> 20;
        if mib > 0 {
            self.note(format!(
                "{mib} MiB were used by another node each time that homenode looked: no placement would last"
            ));
        }
    }

    /// Locates these pages of an object that follows, if nobody has. `last`: these are its last
    /// pages.
    pub(super) fn look_for(&mut self, object: usize, pages: PageRange, last: bool) {
        if self.trial.takes_unlooked(object, last) {
            self.introduce(object, pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_is_below_three_per_cent_or_fifty_milliseconds() {
        assert_eq!([0, 1_000_000_000].map(|t| allows(Ns(t))), [Ns(40_000_000); 2]);
        assert_eq!(allows(Ns(10_000_000_000)), Ns(250_000_000));
    }

    #[test]
    fn pilots_are_few_and_of_all_parts() {
        for count in [LEAST, 1000, 4096, 1 << 20] {
            let pages: Vec<u64> = drawn(count).collect();
            assert!((8..=MOST).contains(&(pages.len() as u64)), "{count}: {}", pages.len());
            assert!(pages.windows(2).all(|w| w[0] < w[1]) && pages.iter().all(|p| *p < count));
            for quarter in 0..4 {
                let of = pages.iter().filter(|p| **p * 4 / count == quarter).count();
                assert!(of >= 2, "{count}: {of} in quarter {quarter}");
            }
        }
    }

    #[test]
    fn an_object_follows_only_if_its_pilots_stay_where_they_came() {
        let pilots = |again, told, far| Pilots {
            told,
            far: (0..far).collect(),
            ..Pilots::new(ObjectId(0), (0..16).map(|i| i * PAGE).collect(), again)
        };
        assert_eq!(pilots(false, 7, 7).says(), Says::Nothing);
        assert_eq!(pilots(false, 16, 1).says(), Says::Stay);
        assert_eq!(pilots(false, 16, 2).says(), Says::TryAgain);
        assert_eq!(pilots(true, 16, 2).says(), Says::Follow);
        assert_eq!(pilots(true, 16, 3).says(), Says::Stay);
        let mut few = pilots(false, 3, 3);
        let waits = (0..QUIET).map(|_| few.says()).filter(|s| *s == Says::Nothing).count();
        assert_eq!((waits as u32, few.says()), (QUIET, Says::TryAgain), "nobody touches the others");
    }
}
