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
//!   object pass both tests, or when the guard's verdict is that moving pays. [`Licence`] says when
//!   it ends.
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

use homenode_model::{NodeId, Ns, ObjectId};

use super::licence::Licence;
use super::memory::AROUND;
use super::waiting::GAP;
use crate::driver::mover::Touch;
use crate::watch::numbers::PAGE;

/// Pages of the smallest object with pilots. A smaller one is armed as a whole.
pub const LEAST: u64 = 64;
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
pub const ONE_BLOCK_IN: usize = 3;
/// Blocks of an object, at most.
pub const BLOCKS: usize = 8;
/// Starts of regions without a touched pilot after which the driver waits no longer.
const QUIET: u32 = 16;
/// The shortest time after which the pilots of an object that stays are armed again.
const SOONEST: Ns = Ns(100_000_000);

/// The pilots of an object.
#[derive(Debug)]
pub struct Pilots {
    /// The object.
    pub id: ObjectId,
    /// Addresses of armed pilots that nobody has touched yet.
    open: BTreeSet<usize>,
    armed: u32,
    told: u32,
    /// Pilots that came from another node.
    pub far: Vec<usize>,
    /// Addresses of companions that nobody has touched yet.
    beside: BTreeSet<usize>,
    /// Who touched pilots and companions.
    pub users: BTreeMap<usize, NodeId>,
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
pub enum PilotsSay {
    /// Too few were touched.
    Nothing,
    /// The object stays where it is.
    Stay,
    /// Pilots that came from another node should be armed once more.
    TryAgain,
    /// The whole object should follow.
    Follow,
    /// One node alone has touched the pilots of all objects: they are armed again later.
    AskLater,
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
    pub fn are_mixed(&self) -> bool {
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

    /// Whether enough second pilots were touched to spend the whole budget.
    pub const fn are_sure(&self) -> bool {
        self.told >= SURE
    }

    /// Evaluates the pilots at the start of a region.
    fn says(&mut self) -> PilotsSay {
        self.quiet = if self.told == self.seen { self.quiet + 1 } else { 0 };
        self.seen = self.told;
        let enough = 2 * self.told >= self.armed || self.told > 1 && self.quiet >= QUIET;
        let far = self.far.len() as u32;
        match self.again {
            _ if !enough || self.told == 0 => PilotsSay::Nothing,
            false if far * FAR < self.told => PilotsSay::Stay,
            false => PilotsSay::TryAgain,
            true if far * STRAY <= self.told => PilotsSay::Follow,
            true => PilotsSay::Stay,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Trial {
    /// Pilots by the object's address.
    pilots: BTreeMap<usize, Pilots>,
    /// Whether a pilot was touched since the last count.
    news: bool,
    starts: u32,
    /// Objects that should follow, but whose pages have not been located yet.
    unlooked: BTreeSet<usize>,
    /// Whether the whole budget may be spent.
    pub licence: Licence,
    /// Objects that follow because of their pilots, and have not been asked for since.
    followed: BTreeSet<usize>,
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
    pub fn take_rested(&mut self, now: Ns) -> Vec<(usize, ObjectId)> {
        if self.rests_until.is_none_or(|until| now < until) {
            return Vec::new();
        }
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

    /// Pilots of an object are armed.
    pub fn begin(&mut self, address: usize, id: ObjectId, pilots: BTreeSet<usize>) {
        self.pilots.insert(address, Pilots::new(id, pilots, false));
    }

    /// Pilots of an object are armed once more, with companions, and with blocks and the nodes that
    /// used their pilots.
    pub fn begin_again(
        &mut self,
        address: usize,
        id: ObjectId,
        pilots: BTreeSet<usize>,
        beside: BTreeSet<usize>,
        blocks: BTreeMap<usize, NodeId>,
    ) {
        let again = Pilots::new(id, pilots, true);
        let armed = again.armed + blocks.len() as u32;
        self.pilots.insert(address, Pilots { armed, beside, blocks, ..again });
    }

    /// Removes and returns the pilots of an object.
    pub fn take(&mut self, address: usize) -> Option<Pilots> {
        self.pilots.remove(&address)
    }

    /// Counts the touch of a page, if the page is a pilot. `is_far`: it was on another node.
    pub fn touched(&mut self, (address, id): (usize, ObjectId), touch: &Touch, is_far: bool) {
        let Some(pilots) = self.pilots.get_mut(&address).filter(|p| p.id == id) else { return };
        if pilots.took(touch) {
            self.news = true;
            return;
        }
        if pilots.open.remove(&touch.address) {
            pilots.told += 1;
            pilots.far.extend(is_far.then_some(touch.address));
            self.news = true;
            self.nodes.insert(touch.node);
        } else if !pilots.beside.remove(&touch.address) {
            return;
        }
        pilots.users.insert(touch.address, touch.node);
    }

    /// At the start of a region: what the pilots of each object say.
    pub fn count(&mut self) -> Vec<(usize, PilotsSay)> {
        self.starts = self.starts.wrapping_add(1);
        // Most programs have many more regions than touched pilots.
        if self.pilots.is_empty() || !self.news && !self.starts.is_multiple_of(QUIET) {
            return Vec::new();
        }
        self.news = false;
        // Threads that run on one node at a time have no right placement.
        let several = self.nodes.len() > 1;
        let judged = |says| match says {
            PilotsSay::TryAgain | PilotsSay::Follow if !several => PilotsSay::AskLater,
            says => says,
        };
        self.pilots.iter_mut().map(|(at, p)| (*at, judged(p.says()))).collect()
    }

    /// Whether the object's pilots are armed for the second time.
    pub fn tests_again(&self, address: usize) -> bool {
        self.pilots.get(&address).is_some_and(|p| p.again)
    }

    /// The object's pilots are armed again when the program, which has run for `elapsed`, has run
    /// twice as long.
    pub fn ask_later(&mut self, address: usize, now: Ns, elapsed: Ns) {
        let Some(pilots) = self.pilots.remove(&address) else { return };
        self.rests(address, pilots.id, now + elapsed.max(SOONEST));
    }

    /// All of the object follows.
    pub fn follows(&mut self, address: usize) {
        self.unlooked.insert(address);
        self.followed.insert(address);
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
pub fn drawn(count: u64) -> impl Iterator<Item = u64> {
    let stretch = count.div_ceil(MOST).max(SHORTEST);
    (0..count.div_ceil(stretch)).map(move |i| {
        let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        (i * stretch + x % stretch).min(count - 1)
    })
}

/// The page [`APART`] pages farther on among those that one touch brings along, from their begin
/// again after their end.
pub const fn companion(page: usize) -> usize {
    let around = AROUND * PAGE;
    page / around * around + (page + APART * PAGE) % around
}

/// The first byte of the pages that one touch brings along with this one.
pub const fn neighbourhood(page: usize) -> usize {
    page & !(AROUND * PAGE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(pilots(false, 7, 7).says(), PilotsSay::Nothing);
        assert_eq!(pilots(false, 16, 1).says(), PilotsSay::Stay);
        assert_eq!(pilots(false, 16, 2).says(), PilotsSay::TryAgain);
        assert_eq!(pilots(true, 16, 2).says(), PilotsSay::Follow);
        assert_eq!(pilots(true, 16, 3).says(), PilotsSay::Stay);
        let mut few = pilots(false, 3, 3);
        let waits = (0..QUIET).map(|_| few.says()).filter(|s| *s == PilotsSay::Nothing).count();
        assert_eq!((waits as u32, few.says()), (QUIET, PilotsSay::TryAgain), "nobody touches the others");
    }
}
