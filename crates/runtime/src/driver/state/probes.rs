//! Probes: whether memory that followed its first toucher should follow once more.
//!
//! # Problem
//!
//! Pages follow their next touch in the first region. That region may be an initialisation, which
//! touches pages otherwise than the regions after it. So pages should follow once more when the
//! program's iteration is known. Arming all memory for this copies all of it again, and in most
//! programs nothing moves then.
//!
//! # Approach
//!
//! The driver divides a large object into stretches of equal length. In each it arms a *probe*: the
//! 64 KiB that come with one touch, at a random place that differs each time. At the start of
//! later rounds it counts the touched probes. The whole object follows if more than one in
//! [`REMOTE`] of them, and more than one in [`REMOTE_OF_ALL`] of all armed probes, came from
//! another node. Otherwise the object stays as it is, for a sixteenth of the cost of arming it, and
//! less for a very large one. A small object follows as a whole.
//!
//! Meanwhile, and for [`ROUNDS`] rounds after something was armed to follow, the guard does not
//! judge. The guard would otherwise judge pages that are still being corrected.

use std::collections::{BTreeMap, BTreeSet};

use homenode_model::ObjectId;
use homenode_sys::Span;

use super::memory::AROUND;
use super::waiting::{Waiting, Why};
use crate::driver::mover::Touch;
use crate::watch::numbers::PAGE;

/// Bytes of a probe.
const PROBE: usize = AROUND * PAGE;
/// Length of a stretch in probes, at least: 1 MiB.
const SHORTEST: usize = 16;
/// An object with fewer stretches a node than this follows as a whole.
const LEAST: usize = 2;
/// Probes of all objects together. Each is a mapping of its own until it is touched.
const MOST: usize = 2048;
/// The object follows if more than one in this many of its touched probes came from another node,
const REMOTE: u32 = 32;
/// and more than one in this many of its armed probes. If few probes are touched, a single touch
/// says little.
const REMOTE_OF_ALL: u32 = 48;
/// Rounds after which a page that is used at all has been touched.
const ROUNDS: u32 = 2;

/// Where the probes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    /// Length of a stretch, in probes.
    stretch: usize,
    /// Number of the draw: each draw puts the probes elsewhere.
    time: u32,
}

impl Lot {
    /// Places for objects of `bytes` bytes in all.
    fn new(bytes: usize, time: u32) -> Self {
        Self { stretch: (bytes / PROBE).div_ceil(MOST).next_power_of_two().max(SHORTEST), time }
    }

    /// Whether an object of `bytes` bytes has enough stretches.
    pub fn is_for(self, bytes: usize, nodes: usize) -> bool {
        bytes / (self.stretch * PROBE) >= LEAST * nodes
    }

    /// The probes that begin in `part` and end in `whole`.
    pub fn within(self, part: Span, whole: Span) -> impl Iterator<Item = Span> {
        let bytes = self.stretch * PROBE;
        let probe = move |stretch: usize| {
            let x =
                (stretch as u64 ^ u64::from(self.time).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
            Span::new(stretch * bytes + x as usize % self.stretch * PROBE, PROBE)
        };
        let all = (part.start / bytes..part.end.div_ceil(bytes)).map(probe);
        all.filter(move |probe| {
            part.contains(probe.start) && whole.start <= probe.start && probe.end <= whole.end
        })
    }
}

/// The probes of an object.
#[derive(Debug)]
struct Probes {
    id: ObjectId,
    lot: Lot,
    /// Addresses of armed probes that nobody has touched yet.
    open: BTreeSet<usize>,
    /// Armed probes. Below: touched probes, and those of them that came from another node.
    armed: u32,
    told: u32,
    remote: u32,
    /// Touched probes at the last count.
    counted: u32,
    /// Rounds that have begun since all probes were armed.
    rounds: u32,
}

impl Probes {
    const fn new(id: ObjectId, lot: Lot) -> Self {
        Self { id, lot, open: BTreeSet::new(), armed: 0, told: 0, remote: 0, counted: 0, rounds: 0 }
    }

    /// Whether a count may say something new: the first rounds are not over, or more probes were
    /// touched.
    const fn is_news(&self) -> bool {
        self.rounds < ROUNDS || self.told > self.counted
    }

    /// Whether enough probes came from another node for the whole object to follow.
    const fn tell_to_follow(&self) -> bool {
        self.remote * REMOTE > self.told && self.remote * REMOTE_OF_ALL > self.armed
    }
}

/// Objects with probes, by address.
#[derive(Debug, Default)]
pub struct Probing {
    probes: BTreeMap<usize, Probes>,
    /// Objects that get probes once all of them has been armed for the first time.
    late: BTreeSet<usize>,
    time: u32,
    /// Rounds left in which the guard does not judge.
    calm: u32,
}

impl Probing {
    /// Drops the object at this address, which has died.
    pub fn forget(&mut self, address: usize) {
        self.probes.remove(&address);
        self.late.remove(&address);
    }

    /// The driver arms one in this many of the object's pages.
    pub fn one_in(&self, address: usize) -> u64 {
        self.probes.get(&address).map_or(1, |p| p.lot.stretch as u64)
    }

    /// Whether there is something to count, or to probe.
    pub fn is_due(&self, waiting: &Waiting) -> bool {
        let counts = |(at, p): (&usize, &Probes)| p.is_news() && !waiting.waits_for(Why::Probed, *at);
        self.probes.iter().any(counts) || self.late.iter().any(|at| !waiting.waits(*at))
    }

    /// Something follows once more. The guard would otherwise judge the state before it.
    pub const fn follows(&mut self) {
        self.calm = ROUNDS;
    }

    /// Probes are drawn anew from now on.
    pub const fn draw_anew(&mut self) {
        self.time += 1;
    }

    /// Where the probes of objects of `bytes` bytes in all lie.
    pub fn lot(&self, bytes: usize) -> Lot {
        Lot::new(bytes, self.time)
    }

    /// Removes and returns the objects that get probes once all of them has been armed.
    pub fn take_late(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.late)
    }

    /// The object gets probes once all of it has been armed for the first time.
    pub fn probe_later(&mut self, address: usize) {
        self.late.insert(address);
    }

    /// Whether the object's probes have been armed for too few rounds to be counted.
    pub fn is_fresh(&self, address: usize) -> bool {
        self.probes.get(&address).is_some_and(|p| p.rounds < ROUNDS)
    }

    /// The object gets probes.
    pub fn begin(&mut self, address: usize, id: ObjectId, lot: Lot) {
        self.probes.insert(address, Probes::new(id, lot));
    }

    /// Where the probes of this object lie. Drops the probes of an object that was at this address
    /// before.
    pub fn lot_of(&mut self, address: usize, id: ObjectId) -> Option<Lot> {
        let (owner, lot) = self.probes.get(&address).map(|p| (p.id, p.lot))?;
        if owner != id {
            self.forget(address);
        }
        (owner == id).then_some(lot)
    }

    /// A probe of the object is armed.
    pub fn armed(&mut self, address: usize, probe: usize) {
        if let Some(p) = self.probes.get_mut(&address) {
            p.armed += 1;
            p.open.insert(probe);
        }
    }

    /// Counts a touch that brought pages of an object together, if it was a probe's. `remote`: how
    /// many of the pages were on another node.
    pub fn touched(&mut self, (address, id): (usize, ObjectId), touch: &Touch, remote: u64) {
        let Some(probes) = self.probes.get_mut(&address).filter(|p| p.id == id) else { return };
        // Samples and seams come page by page.
        if touch.pages > 1 && probes.open.remove(&(touch.address & !(PROBE - 1))) {
            probes.told += 1;
            probes.remote += u32::from(2 * remote >= u64::from(touch.pages));
        }
    }

    /// At the start of a round: counts the probes. Removes and returns the objects that should
    /// follow. `waiting`: objects whose probes are not all armed yet.
    pub fn count(&mut self, waiting: &Waiting) -> Vec<(usize, ObjectId)> {
        let mut follow = Vec::new();
        self.probes.retain(|address, p| {
            if waiting.waits_for(Why::Probed, *address) {
                return true;
            }
            p.rounds += 1;
            let follows = p.told > std::mem::replace(&mut p.counted, p.told) && p.tell_to_follow();
            if follows {
                follow.push((*address, p.id));
            }
            !follows && !p.open.is_empty()
        });
        follow
    }

    /// A round begins. Returns whether something followed so lately that the guard does not judge.
    pub fn round_begins(&mut self) -> bool {
        let calm = self.calm > 0;
        self.calm -= u32::from(calm);
        calm
    }

    /// Everything was disarmed. Armed probes are drawn anew.
    pub fn disarmed(&mut self) {
        self.late.extend(std::mem::take(&mut self.probes).into_keys());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_has_one_probe_and_another_one_the_next_time() {
        let whole = Span::new(0x7000_1000, 64 << 20);
        let starts = |time| -> Vec<usize> {
            let lot = Lot::new(whole.len(), time);
            whole.pieces(5 << 20).flat_map(|part| lot.within(part, whole).map(|p| p.start)).collect()
        };
        let (first, second) = (starts(1), starts(2));
        assert!(
            (62..=65).contains(&first.len()),
            "all but where the object begins and ends: {}",
            first.len()
        );
        assert!(first.windows(2).all(|w| w[0] >> 20 < w[1] >> 20), "in order, one a MiB");
        assert!(first.iter().filter(|p| second.contains(p)).count() < 16);
    }

    #[test]
    fn an_object_follows_when_its_probes_come_from_another_node() {
        let id = ObjectId(7);
        let said = |remote: usize, waits: bool| {
            let (mut probing, mut waiting) = (Probing::default(), Waiting::default());
            let lot = probing.lot(64 << 20);
            probing.begin(PAGE, id, lot);
            (0..64).for_each(|i| probing.armed(PAGE, i * PROBE));
            if waits {
                waiting.add(Why::Probed, PAGE, id);
            }
            for i in 0..32 {
                let touch = Touch {
                    address: i * PROBE + 5 * PAGE,
                    pages: 16,
                    node: homenode_model::NodeId(1),
                    moved: true,
                };
                let far = if i < remote { 8 } else { 7 };
                probing.touched((PAGE, id), &touch, far);
                probing.touched((PAGE, id), &touch, 16);
                probing.touched((PAGE, ObjectId(8)), &touch, 16);
                probing.touched((PAGE, id), &Touch { pages: 1, address: (63 - i) * PROBE, ..touch }, 1);
            }
            probing.count(&waiting)
        };
        assert_eq!([said(1, false), said(2, true)], [vec![], vec![]], "few, or not all are armed");
        assert_eq!(said(2, false), [(PAGE, id)]);
    }

    #[test]
    fn probes_of_a_former_owner_are_void_and_disarmed_ones_are_drawn_later() {
        let mut probing = Probing::default();
        let lot = probing.lot(8 << 20);
        [1, 2].into_iter().for_each(|at| probing.begin(at, ObjectId(at as u32), lot));
        assert_eq!((probing.lot_of(1, ObjectId(1)), probing.lot_of(1, ObjectId(9))), (Some(lot), None));
        assert_eq!((probing.lot_of(1, ObjectId(1)), probing.is_fresh(2)), (None, true));
        probing.disarmed();
        assert_eq!((probing.take_late(), probing.is_fresh(2)), (BTreeSet::from([2]), false));
        probing.draw_anew();
        assert_ne!(probing.lot(8 << 20), lot);
    }

    #[test]
    fn the_guard_does_not_judge_for_two_rounds_after_something_followed() {
        let mut probing = Probing::default();
        probing.follows();
        assert_eq!([(); 3].map(|()| probing.round_begins()), [true, true, false]);
    }

    #[test]
    fn small_objects_have_none_and_all_together_not_too_many() {
        let lot = Lot::new(8 << 20, 0);
        assert!(lot.is_for(8 << 20, 4) && !lot.is_for((8 << 20) - 1, 4));
        let probes = |bytes| bytes / PROBE / Lot::new(bytes, 0).stretch;
        assert_eq!([8 << 20, 1 << 30, 1 << 40, 3 << 39].map(probes), [8, 1024, 2048, 1536]);
    }
}
