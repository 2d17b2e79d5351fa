//! Whether memory that has come to who touched it is to follow once more.
//!
//! # Problem
//!
//! Pages follow their next touch in the first region, and that may be an initialisation, which
//! touches them otherwise than what follows. When the program's iteration is known they are to
//! follow once more. To arm all memory for that copies all of it once more, and in most programs
//! nothing moves then.
//!
//! # Approach
//!
//! Of a large object what comes with one touch, 64 KiB, is armed in each of many stretches of one
//! length: a *probe*. Where in its stretch it lies is drawn by lot, another one each time. At the
//! begins of later rounds those that were touched are counted: if more than one in [`REMOTE`] came
//! from another node, and some of all that were armed, the whole object follows; else it stays as
//! it is, for a sixteenth of the cost, and of a very large one for less. A small object follows as
//! a whole.
//!
//! While that waits, and for [`ROUNDS`] after something was armed for it, nobody judges whether
//! moving pays: it would be judged of what is being put right.

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
/// Probes of a stretch's length, at least: 1 MiB.
const SHORTEST: usize = 16;
/// Of fewer stretches a node than this an object follows as a whole.
const LEAST: usize = 2;
/// Probes of all objects together: each is a mapping of its own until it is touched.
const MOST: usize = 2048;
/// The object follows if more than one in so many of its probes that were touched does.
const REMOTE: u32 = 32;
/// And more than one in so many of those that were armed: who touches one of many may do so once.
const REMOTE_OF_ALL: u32 = 48;
/// Rounds in which what is touched at all is touched.
const ROUNDS: u32 = 2;

/// Where the probes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lot {
    /// Length of a stretch, in probes.
    stretch: usize,
    /// Which time this is.
    time: u32,
}

impl Lot {
    /// For objects of so many bytes in all.
    fn new(bytes: usize, time: u32) -> Self {
        Self { stretch: (bytes / PROBE).div_ceil(MOST).next_power_of_two().max(SHORTEST), time }
    }

    /// Whether an object of so many bytes has enough stretches.
    fn is_for(self, bytes: usize, nodes: usize) -> bool {
        bytes / (self.stretch * PROBE) >= LEAST * nodes
    }

    /// Those that begin in `part` and end in `whole`.
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
    /// Armed, and not touched so far.
    open: BTreeSet<usize>,
    /// Armed in all; touched; and of these from another node.
    armed: u32,
    told: u32,
    remote: u32,
    /// So many had been touched when they were last counted.
    counted: u32,
    /// Rounds that have begun since all were armed.
    rounds: u32,
}

impl Probes {
    const fn new(id: ObjectId, lot: Lot) -> Self {
        Self { id, lot, open: BTreeSet::new(), armed: 0, told: 0, remote: 0, counted: 0, rounds: 0 }
    }

    /// Whether there is something to count.
    const fn is_news(&self) -> bool {
        self.rounds < ROUNDS || self.told > self.counted
    }

    /// Whether so many are elsewhere that all of the object is to follow.
    const fn tell_to_follow(&self) -> bool {
        self.remote * REMOTE > self.told && self.remote * REMOTE_OF_ALL > self.armed
    }
}

/// The objects that have probes, by address.
#[derive(Debug, Default)]
pub(super) struct Probing {
    probes: BTreeMap<usize, Probes>,
    /// Those that are to be probed when all of them has been armed for the first time.
    late: BTreeSet<usize>,
    time: u32,
    /// Rounds in which nothing is judged.
    calm: u32,
}

impl Probing {
    /// The object at this address is gone.
    pub fn forget(&mut self, address: usize) {
        self.probes.remove(&address);
        self.late.remove(&address);
    }

    /// One page in so many of the object is to be armed.
    pub fn one_in(&self, address: usize) -> u64 {
        self.probes.get(&address).map_or(1, |p| p.lot.stretch as u64)
    }

    /// Whether there is something to count, or to probe.
    fn is_due(&self, waiting: &Waiting) -> bool {
        let counts = |(at, p): (&usize, &Probes)| p.is_news() && !waiting.waits_for(Why::Probed, *at);
        self.probes.iter().any(counts) || self.late.iter().any(|at| !waiting.waits(*at))
    }

    /// Something follows once more: what is judged now would be what it was before.
    pub const fn follows(&mut self) {
        self.calm = ROUNDS;
    }

    /// Nothing is armed any more: what had been is to be probed anew.
    pub fn disarmed(&mut self) {
        self.late.extend(std::mem::take(&mut self.probes).into_keys());
    }
}

impl Driver {
    /// The objects that were armed wait to be armed once more, the large ones to be probed whether
    /// they need to be.
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
                // A few of its pages tell, as before.
                if !self.trial.waits_for(at) {
                    self.waiting.add(Why::New, at, id);
                }
            } else if self.trial.takes_followed(at) {
                // It has just come to where it is used.
            } else if self.waiting.waits_for(Why::New, at) {
                self.probing.late.insert(at);
            } else if self.waiting.waits(at)
                || self.probing.probes.get(&at).is_some_and(|p| p.rounds < ROUNDS)
            {
                // It is about to.
            } else if lot.is_for(bytes, nodes) && self.manner(bytes) == Manner::Around {
                self.waiting.add(Why::Probed, at, id);
                self.probing.probes.insert(at, Probes::new(id, lot));
            } else {
                self.waiting.add(Why::Again, at, id);
            }
        }
    }

    /// Adds the object's probes among these pages. How many pages.
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
            // What is held back has not come to anybody yet, and what the program has placed stays.
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

    /// Whether there are pages. Where those are that have come to be by now is noted.
    fn has_pages(&mut self, object: usize, pages: PageRange) -> bool {
        let known = |page| self.objects.get(object).and_then(|o| o.home(page)).is_some();
        pages.iter().all(known) || self.introduce(object, pages) > 0
    }

    /// Pages of an object were touched together; so many of them were on another node. If that was
    /// a probe, it tells.
    pub(super) fn probed(&mut self, object: (usize, ObjectId), touch: &Touch, remote: u64) {
        let Some(probes) = self.probing.probes.get_mut(&object.0).filter(|p| p.id == object.1) else {
            return;
        };
        // Samples and seams come one by one.
        if touch.pages > 1 && probes.open.remove(&(touch.address & !(PROBE - 1))) {
            probes.told += 1;
            probes.remote += u32::from(2 * remote >= u64::from(touch.pages));
        }
    }

    /// At the begin of a round, of a level of the iteration that was `found` now or of one that is
    /// known: arms what is to follow once more. Whether there was anything like that, so that it is
    /// too early to judge.
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

    /// Has the objects follow whose probes have told that they are elsewhere than where they are
    /// used. Whether there are any.
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
