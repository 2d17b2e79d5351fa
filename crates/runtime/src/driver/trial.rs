//! What homenode may spend before moving has shown that it gains anything, and how a few pages
//! tell.
//!
//! # Problem
//!
//! To have all pages follow their next touch copies each once, for some microseconds a page. In
//! most programs nothing moves then: first touch had placed the pages where they are used, or other
//! threads use them each time. A budget that allows seconds of that is a licence to waste them.
//!
//! # Approach
//!
//! - *Allowance.* Until something has shown a gain, homenode's own time may be 2.5 % of the
//!   process's CPU time or 40 ms, whichever is more. What is armed already may cost a little more
//!   than that, so that 3 % or 50 ms hold. The budget of the settings holds besides.
//! - *Pilots.* Of an object of [`LEAST`] pages or more, single pages are armed, one in each of at
//!   most [`MOST`] equal stretches, drawn by lot. If less than one in [`FAR`] of those that were
//!   touched came from another node, nothing else of the object is armed. Otherwise those that came
//!   are armed again, on their new node. Only if at most one in [`STRAY`] of these is touched from
//!   another node again, moving lasts, and the object follows as a whole. While all pilots of all
//!   objects were touched by one and the same node, none follows. A program whose threads steal
//!   work from one another fails the second test.
//! - *Licence.* An object of which [`SURE`] pilots pass both, or the guard's verdict that moving
//!   pays, gives the whole budget. After each [`REVIEW`] of own time it is withdrawn if less than
//!   one in [`GAINS`] of the pages that were copied since had another home, or if a page that had
//!   one cost more than [`PRICE`]. The verdict gives it once. Nobody has it while threads change
//!   nodes.
//!
//! All this holds where the program was started without a budget of its user's (`Settings::trial`),
//! and for memory that is armed unasked.
//!
//! # Properties
//!
//! `what_is_used_where_it_is_costs_a_few_pages`, `what_one_thread_initialised_follows_as_a_whole`,
//! `what_other_nodes_use_each_time_stays`, `without_a_gain_the_allowance_holds` in
//! `tests/driver/trial.rs`.

use std::collections::{BTreeMap, BTreeSet};

use homenode_model::{Event, NodeId, Ns, ObjectId, PageNo, PageRange};
use homenode_sys::Span;
use homenode_wire::facts::Arming;

use super::arming::ToArm;
use super::mover::{Manner, Touch};
use super::run::Driver;
use super::waiting::Why;
use crate::guard::Verdict;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;

/// Allowance: thousandths of the process's CPU time, and of elapsed time.
const PERMILLE: u64 = 25;
/// The least allowance.
const FIXED: Ns = Ns(40_000_000);
/// Pages of the smallest object that has pilots. A smaller one is armed as a whole.
const LEAST: u64 = 64;
/// Pilots of an object, at most.
const MOST: u64 = 64;
/// Pages of the shortest stretch.
const SHORTEST: u64 = 8;
/// An object is tried again if at least one pilot in `FAR` was touched from another node.
const FAR: u32 = 8;
/// An object follows if another node touches at most one in `STRAY` of its second pilots.
const STRAY: u32 = 8;
/// Second pilots that have to tell before the whole budget may be spent.
const SURE: u32 = 12;
/// Starts of regions without news after which pilots that nobody touches are waited for no longer.
const QUIET: u32 = 16;
/// Own time under the licence after which it is looked at; the part of the copied pages that must
/// have moved; what one that did may have cost.
const REVIEW: Ns = Ns(30_000_000);
const GAINS: u64 = 16;
const PRICE: Ns = Ns(100_000);

/// What own time may be in `of`, which is CPU time of the process or time that has passed.
pub(super) fn allows(of: Ns) -> Ns {
    Ns(of.0 / 1000).times(PERMILLE).max(FIXED)
}

/// The pilots of an object.
#[derive(Debug)]
struct Pilots {
    id: ObjectId,
    /// Armed, and not touched so far.
    open: BTreeSet<usize>,
    armed: u32,
    told: u32,
    /// Those that came from another node.
    far: Vec<usize>,
    /// These are armed for the second time.
    again: bool,
    /// Starts of regions since one was touched last.
    quiet: u32,
    /// So many had been touched then.
    seen: u32,
}

/// What the pilots of an object say.
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
        Self { id, open, armed, told: 0, far: Vec::new(), again, quiet: 0, seen: 0 }
    }

    /// At the start of a region.
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
    /// By the object's address.
    pilots: BTreeMap<usize, Pilots>,
    /// A pilot was touched since they were last counted.
    news: bool,
    starts: u32,
    /// Objects that are to follow and whose pages have not been looked for.
    unlooked: BTreeSet<usize>,
    /// Moving has shown a gain: the budget holds.
    licence: bool,
    /// Own time, pages copied and pages moved when the licence was last looked at.
    reviewed: (Ns, u64, u64),
    /// The guard's verdict has given it.
    by_verdict: bool,
    /// Objects that follow because their pilots told, and have not been looked at again since.
    followed: BTreeSet<usize>,
    /// Pages that moved with a touch.
    pub moved: u64,
    /// The nodes that touched pilots. If it is one alone the team is there, now, and its threads
    /// may be elsewhere soon.
    nodes: BTreeSet<NodeId>,
    /// Bytes of objects that other nodes used each time.
    strays: u64,
}

impl Trial {
    /// The object at this address is gone.
    pub fn forget(&mut self, address: usize) {
        self.pilots.remove(&address);
        self.unlooked.remove(&address);
        self.followed.remove(&address);
    }

    /// Nothing is armed any more.
    pub fn disarmed(&mut self) {
        self.pilots.clear();
    }

    /// Whether pilots of the object are out.
    pub fn waits_for(&self, address: usize) -> bool {
        self.pilots.contains_key(&address)
    }

    /// Whether the object has followed since this was last asked: its pilots have told more than
    /// the probes of one round would.
    pub fn takes_followed(&mut self, address: usize) -> bool {
        self.followed.remove(&address)
    }

    /// Whether the pages of the object are to be looked for before it follows; from now on they are
    /// not, if this is the last of it.
    pub fn takes_unlooked(&mut self, address: usize, last: bool) -> bool {
        if last { self.unlooked.remove(&address) } else { self.unlooked.contains(&address) }
    }
}

/// The pages that are drawn of an object of `count` pages, by index: the same ones each time, for
/// on pretended nodes only of pages whose first touch was seen anything is known.
fn drawn(count: u64) -> impl Iterator<Item = u64> {
    let stretch = count.div_ceil(MOST).max(SHORTEST);
    (0..count.div_ceil(stretch)).map(move |i| {
        let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        (i * stretch + x % stretch).min(count - 1)
    })
}

impl Driver {
    /// Nothing has shown a gain so far, and the program was started without a budget of its user's.
    pub fn is_on_trial(&self) -> bool {
        self.has_trial() && !self.trial.licence
    }

    fn has_trial(&self) -> bool {
        let unasked = matches!(self.settings.arming, Arming::First | Arming::Region);
        self.settings.trial && unasked && !self.settings.force && self.plan.is_none()
    }

    /// Whether a few pages of the object that was never armed are to tell. A recording is to have
    /// where all pages are.
    pub(super) fn is_for_pilots(&self, address: usize) -> bool {
        let pages = self.objects.get(address).map_or(0, |o| o.pages.count);
        let placed = self.stream.is_some() || self.settings.arming != Arming::First;
        self.has_trial() && !placed && pages >= LEAST
    }

    /// Arms pilots of the object, if there is room for so many pages: `None`, there is none. How
    /// many pages were armed, those that are not there yet included, whose first touch is to tell
    /// their home.
    pub(super) fn send_pilots(&mut self, address: usize, room: u64) -> Option<u64> {
        let Some(object) = self.objects.get(address) else { return Some(0) };
        let (id, pages, block) = (object.id, object.pages, block_of(object.bytes));
        let (start, again) = (object.whole_pages().start, object.pilot);
        let (mut there, mut missing) = (BTreeSet::new(), Vec::new());
        for index in drawn(pages.count) {
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

    /// Whether the page of the object is there. Its home is noted.
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

    /// A page was touched; it was on another node, or not. If it is a pilot, it tells.
    pub(super) fn pilot_told(&mut self, object: (usize, ObjectId), touch: &Touch, is_far: bool) {
        let Some(pilots) = self.trial.pilots.get_mut(&object.0).filter(|p| p.id == object.1) else { return };
        if pilots.open.remove(&touch.address) {
            pilots.told += 1;
            pilots.far.extend(is_far.then_some(touch.address));
            self.trial.news = true;
            self.trial.nodes.insert(touch.node);
        }
    }

    /// At the start of a region: what the pilots say. Whether an object is to follow.
    pub(super) fn count_pilots(&mut self) -> bool {
        let trial = &mut self.trial;
        trial.starts = trial.starts.wrapping_add(1);
        // Most programs have many more regions than news.
        if trial.pilots.is_empty() || !trial.news && !trial.starts.is_multiple_of(QUIET) {
            return false;
        }
        trial.news = false;
        let said: Vec<(usize, Says)> = trial.pilots.iter_mut().map(|(at, p)| (*at, p.says())).collect();
        let mut follows = false;
        for (address, says) in said {
            match says {
                Says::Nothing => {}
                Says::Stay => {
                    let strays = self.trial.pilots.remove(&address).is_some_and(|p| p.again);
                    let bytes = self.objects.get(address).map_or(0, |o| o.bytes as u64);
                    self.trial.strays += if strays { bytes } else { 0 };
                }
                // Threads that run on one node at a time have no placement.
                Says::TryAgain | Says::Follow if self.trial.nodes.len() < 2 => {
                    self.trial.pilots.remove(&address);
                }
                Says::TryAgain => self.heavy(|d| d.arm_again(address)),
                Says::Follow => {
                    self.all_follows(address);
                    follows = true;
                }
            }
        }
        follows
    }

    /// Arms the pilots that came from another node once more.
    fn arm_again(&mut self, address: usize) {
        let Some(pilots) = self.trial.pilots.remove(&address) else { return };
        let far: BTreeSet<usize> = pilots.far.into_iter().collect();
        let alone: Vec<Span> = far.iter().map(|at| Span::new(*at, PAGE)).collect();
        if self.within_budget() && self.arm(&ToArm::alone(alone)) > 0 {
            self.trial.pilots.insert(address, Pilots::new(pilots.id, far, true));
        }
    }

    /// All of the object follows its next touch, and the budget is what the settings say.
    fn all_follows(&mut self, address: usize) {
        let sure = self.trial.pilots.remove(&address).is_some_and(|p| p.told >= SURE);
        let Some(object) = self.objects.at(address) else { return };
        object.pilot = false;
        let id = object.id;
        self.trial.unlooked.insert(address);
        self.trial.followed.insert(address);
        self.waiting.add(Why::Again, address, id);
        if sure {
            self.give_licence();
        }
    }

    fn give_licence(&mut self) {
        // Of threads that change nodes nobody can say that what they gain lasts.
        if !self.trial.licence && !self.seen_on.any_changes() {
            self.trial.licence = true;
            self.trial.reviewed = self.account();
        }
    }

    /// Before more is armed: whether the licence still holds, or there is one by the guard's
    /// verdict.
    pub(super) fn review_licence(&mut self) {
        if !self.has_trial() {
            return;
        }
        let pays = matches!(self.hold.verdict(), Verdict::Pays | Verdict::AtHome | Verdict::Evener);
        // A gain of little is no reason to spend more than it brings.
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

    /// Own time, pages copied, and of these pages moved.
    fn account(&self) -> (Ns, u64, u64) {
        (self.own_time(), self.mover.counters().copies, self.trial.moved)
    }

    /// What other nodes used each time.
    pub(super) fn note_strays(&mut self) {
        let mib = self.trial.strays >> 20;
        if mib > 0 {
            self.note(format!(
                "{mib} MiB were used by another node each time that homenode looked: no placement would last, and nothing of them was moved"
            ));
        }
    }

    /// Looks where these pages of an object that follows are, if nobody has; `last`: they are the
    /// last of it.
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
