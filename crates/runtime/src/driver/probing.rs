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

use homenode_model::{ObjectId, PageNo, PageRange};
use homenode_sys::Span;

use super::arming::AROUND;
use super::mover::{Manner, Touch};
use super::run::Driver;
use super::waiting::{Waiting, Why};
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;
use homenode_wire::facts::Arming;

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
struct Lot {
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
    fn is_for(self, bytes: usize, nodes: usize) -> bool {
        bytes / (self.stretch * PROBE) >= LEAST * nodes
    }

    /// The probes that begin in `part` and end in `whole`.
    fn within(self, part: Span, whole: Span) -> impl Iterator<Item = Span> {
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
pub(super) struct Probing {
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
    fn is_due(&self, waiting: &Waiting) -> bool {
        let counts = |(at, p): (&usize, &Probes)| p.is_news() && !waiting.waits_for(Why::Probed, *at);
        self.probes.iter().any(counts) || self.late.iter().any(|at| !waiting.waits(*at))
    }

    /// Something follows once more. The guard would otherwise judge the state before it.
    pub const fn follows(&mut self) {
        self.calm = ROUNDS;
    }

    /// Everything was disarmed. Armed probes are drawn anew.
    pub fn disarmed(&mut self) {
        self.late.extend(std::mem::take(&mut self.probes).into_keys());
    }
}

impl Driver {
    /// Queues armed objects for following once more. Large objects are probed first.
    pub(super) fn wait_once_more(&mut self) {
        self.probing.time += 1;
        let armed = self.objects.live().filter(|o| o.armed).map(|o| o.address).collect();
        self.wait_probed(armed);
    }

    fn wait_probed(&mut self, objects: BTreeSet<usize>) {
        let nodes = self.settings.machine.nodes();
        let bytes = self.objects.live().filter(|o| o.armed).map(|o| o.bytes).sum();
        let lot = Lot::new(bytes, self.probing.time);
        for at in objects {
            let Some(object) = self.objects.get(at) else { continue };
            let (id, bytes) = (object.id, object.bytes);
            if object.pilot {
                // Pilots of it tell, as before.
                if !self.trial.waits_for(at) {
                    self.waiting.add(Why::New, at, id);
                }
            } else if self.trial.takes_followed(at) {
                // The object has just come to where it is used.
            } else if self.waiting.waits_for(Why::New, at) {
                self.probing.late.insert(at);
            } else if self.waiting.waits(at)
                || self.probing.probes.get(&at).is_some_and(|p| p.rounds < ROUNDS)
            {
                // The object is about to come to where it is used.
            } else if lot.is_for(bytes, nodes) && self.manner(object) == Manner::Around {
                self.waiting.add(Why::Probed, at, id);
                self.probing.probes.insert(at, Probes::new(id, lot));
            } else {
                self.waiting.add(Why::Again, at, id);
            }
        }
    }

    /// Adds the object's probes among these pages. Returns the number of pages.
    pub(super) fn add_probes(
        &mut self,
        address: usize,
        pages: PageRange,
        list: &mut Vec<(usize, PageRange)>,
    ) -> u64 {
        let (Some(object), Some(probes)) = (self.objects.get(address), self.probing.probes.get(&address))
        else {
            return 0;
        };
        if probes.id != object.id {
            self.probing.forget(address);
            return 0;
        }
        let (lot, first, block) = (probes.lot, object.pages.first.0, block_of(object.bytes));
        let whole = Span { start: object.whole_pages().start, end: object.whole_pages().end };
        let from = whole.start + (pages.first.0 - first) as usize * PAGE;
        let mut added = 0;
        for probe in lot.within(Span::new(from, pages.count as usize * PAGE), whole) {
            let pages = PageRange {
                first: PageNo(first + ((probe.start - whole.start) / PAGE) as u64),
                count: AROUND as u64,
            };
            // Leaves out held-back blocks, which have not come to anybody yet, and memory that the
            // program has placed.
            let came = !self.hold.was_held(probe.start, block) && self.placed.rest_of(probe) == [probe];
            if came && self.has_pages(address, pages) {
                list.push((address, pages));
                added += pages.count;
                if let Some(p) = self.probing.probes.get_mut(&address) {
                    p.armed += 1;
                    p.open.insert(probe.start);
                }
            }
        }
        added
    }

    /// Whether the pages exist. Notes the homes of pages that have come to exist.
    pub(super) fn has_pages(&mut self, object: usize, pages: PageRange) -> bool {
        let known = |page| self.objects.get(object).and_then(|o| o.home(page)).is_some();
        pages.iter().all(known) || self.introduce(object, pages) > 0
    }

    /// Counts a touch that brought pages of an object together, if it was a probe's. `remote`: how
    /// many of the pages were on another node.
    pub(super) fn probed(&mut self, object: (usize, ObjectId), touch: &Touch, remote: u64) {
        let Some(probes) = self.probing.probes.get_mut(&object.0).filter(|p| p.id == object.1) else {
            return;
        };
        // Samples and seams come page by page.
        if touch.pages > 1 && probes.open.remove(&(touch.address & !(PROBE - 1))) {
            probes.told += 1;
            probes.remote += u32::from(2 * remote >= u64::from(touch.pages));
        }
    }

    /// At the start of a round: arms what should follow once more. The round is of a level of the
    /// iteration that was `found` now, or of a known one. Returns whether something follows or is
    /// probed, so that judging is too early.
    pub(super) fn correct(&mut self, found: bool) -> bool {
        if found || self.probing.is_due(&self.waiting) {
            self.heavy(|d| {
                if found {
                    d.request_all();
                }
                let late = std::mem::take(&mut d.probing.late);
                let more = !late.is_empty();
                d.wait_probed(late);
                if (d.count_probes() || more || found) && d.within_budget() {
                    d.take_turns();
                }
            });
        }
        let armed = self.probing.calm > 0;
        self.probing.calm -= u32::from(armed);
        let corrects = armed || self.settings.arming == Arming::First && self.waiting.corrects();
        if corrects {
            self.hold.start_again();
        }
        corrects
    }

    /// Arms the objects whose probes came from other nodes. Returns whether there are any.
    fn count_probes(&mut self) -> bool {
        let mut follow = Vec::new();
        let waiting = &self.waiting;
        self.probing.probes.retain(|address, p| {
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
        let any = !follow.is_empty();
        self.armed_all |= any;
        follow.into_iter().for_each(|(address, id)| self.waiting.add(Why::Again, address, id));
        any
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
    fn small_objects_have_none_and_all_together_not_too_many() {
        let lot = Lot::new(8 << 20, 0);
        assert!(lot.is_for(8 << 20, 4) && !lot.is_for((8 << 20) - 1, 4));
        let probes = |bytes| bytes / PROBE / Lot::new(bytes, 0).stretch;
        assert_eq!([8 << 20, 1 << 30, 1 << 40, 3 << 39].map(probes), [8, 1024, 2048, 1536]);
    }
}
