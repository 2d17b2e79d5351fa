//! Whether memory that has come to who touched it is to follow once more.
//!
//! # Problem
//!
//! Pages follow their next touch in the first region, and that may be an initialisation, which touches them otherwise than what
//! follows. When the program's iteration is known they are to follow once more. To arm all memory for that copies all of it once more,
//! and in most programs nothing moves then.
//!
//! # Approach
//!
//! Of a large object what comes with one touch, 64 KiB, is armed in each of many stretches of one length: a *probe*. Where in its
//! stretch it lies is drawn by lot, another one each time. If more than one probe in [`REMOTE`] comes from another node, the whole object
//! follows; else it stays as it is, for a hundredth of the cost. What is elsewhere of it then is less than that, or shorter than a stretch.
//! A small object follows as a whole.

use std::collections::BTreeMap;

use homenode_model::{NodeId, PageNo, PageRange};
use homenode_sys::Span;

use super::arming::AROUND;
use super::mover::{Manner, Touch};
use super::run::Driver;
use super::waiting::Why;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;

/// Bytes of a probe.
const PROBE: usize = AROUND * PAGE;
/// Probes of a stretch's length, at least: 1 MiB.
const SHORTEST: usize = 16;
/// An object's stretches: of the shortest at least so many a node, or it follows as a whole; and at most so many in all.
const LEAST: usize = 2;
const MOST: usize = 1024;
/// The object follows if more than one in so many of its probes does.
const REMOTE: u32 = 32;

/// The probes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probes {
    /// Length of a stretch, in probes.
    stretch: usize,
    /// Which time this is.
    lot: u32,
    armed: u32,
    remote: u32,
}

impl Probes {
    /// For an object of so many bytes; `None`: it is too small.
    fn new(bytes: usize, nodes: usize, lot: u32) -> Option<Self> {
        if bytes / (SHORTEST * PROBE) < LEAST * nodes {
            return None;
        }
        let stretch = (bytes / PROBE).div_ceil(MOST).next_power_of_two().max(SHORTEST);
        Some(Self { stretch, lot, armed: 0, remote: 0 })
    }

    /// Whether the probe of its stretch is the one with this address.
    fn is_at(&self, address: usize) -> bool {
        let (stretch, place) = (address / PROBE / self.stretch, address / PROBE % self.stretch);
        let x = (stretch as u64 ^ u64::from(self.lot).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        x as usize % self.stretch == place
    }

    /// Those that begin in `part` and end in `whole`.
    fn within(&self, part: Span, whole: Span) -> impl Iterator<Item = Span> {
        let first = part.start.next_multiple_of(PROBE);
        let all = (first..part.end).step_by(PROBE).map(|at| Span::new(at, PROBE));
        all.filter(move |probe| probe.end <= whole.end && self.is_at(probe.start))
    }
}

/// The objects that have probes, by address.
#[derive(Debug, Default)]
pub(super) struct Probing(BTreeMap<usize, Probes>);

impl Probing {
    /// The object at this address has none, or none any more.
    pub fn forget(&mut self, address: usize) {
        self.0.remove(&address);
    }
}

impl Driver {
    /// The objects that were armed wait to be armed once more, the large ones to be probed whether they need to be.
    pub(super) fn wait_probes(&mut self, lot: u32) {
        let nodes = self.settings.machine.nodes();
        for object in self.objects.live().filter(|o| o.armed) {
            if self.waiting.waits(object.address) {
                continue;
            }
            let around = self.manner(object.bytes) == Manner::Around;
            let why = match Probes::new(object.bytes, nodes, lot).filter(|_| around) {
                Some(probes) => {
                    self.probing.0.insert(object.address, probes);
                    Why::Probed
                }
                None => Why::Again,
            };
            self.waiting.add(why, object.address, object.id);
        }
    }

    /// Adds the object's probes among these pages. How many pages.
    pub(super) fn add_probes(
        &mut self,
        address: usize,
        pages: PageRange,
        list: &mut Vec<(usize, PageRange)>,
    ) -> u64 {
        let (Some(object), Some(probes)) = (self.objects.get(address), self.probing.0.get_mut(&address))
        else {
            return 0;
        };
        let (whole, first) = (object.whole_pages(), object.pages.first.0);
        let whole = Span { start: whole.start, end: whole.end };
        let part =
            Span::new(whole.start + (pages.first.0 - first) as usize * PAGE, pages.count as usize * PAGE);
        let before = list.len();
        // What is held back has not come to anybody yet.
        let (hold, block) = (&self.hold, block_of(object.bytes));
        let came = probes.within(part, whole).filter(|probe| !hold.was_held(probe.start, block));
        list.extend(came.map(|probe| {
            let first = PageNo(first + ((probe.start - whole.start) / PAGE) as u64);
            (address, PageRange { first, count: AROUND as u64 })
        }));
        let added = list.len() - before;
        probes.armed += added as u32;
        (added * AROUND) as u64
    }

    /// Armed memory of the object at `object`, which was at `home`, was touched: if it was a probe, it may tell that all of the object is to
    /// follow.
    pub(super) fn probed(&mut self, object: usize, touch: &Touch, home: Option<NodeId>) {
        let (Some(o), Some(probes)) = (self.objects.get(object), self.probing.0.get_mut(&object)) else {
            return;
        };
        // Samples and seams come one by one.
        let moved = touch.pages > 1 && home.is_some_and(|home| home != touch.node);
        if !moved || !probes.is_at(touch.address) || self.hold.was_held(touch.address, block_of(o.bytes)) {
            return;
        }
        probes.remote += 1;
        if probes.remote * REMOTE > probes.armed {
            self.probing.forget(object);
            self.waiting.add(Why::Again, object, o.id);
            self.waiting.at_once();
            self.armed_all = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_has_one_probe_and_another_one_the_next_time() {
        let whole = Span::new(0x7000_1000, 64 << 20);
        let starts = |lot| -> Vec<usize> {
            let probes = Probes::new(whole.len(), 2, lot).unwrap();
            whole.pieces(5 << 20).flat_map(|part| probes.within(part, whole).map(|p| p.start)).collect()
        };
        let (first, second) = (starts(1), starts(2));
        assert!(
            (62..=64).contains(&first.len()),
            "all but where the object begins and ends: {}",
            first.len()
        );
        assert!(first.windows(2).all(|w| w[0] >> 20 < w[1] >> 20), "in order, one a MiB");
        assert!(first.iter().filter(|p| second.contains(p)).count() < 16);
    }

    #[test]
    fn small_objects_have_none_and_the_largest_not_too_many() {
        assert_eq!(Probes::new((8 << 20) - 1, 4, 0), None);
        let of = |bytes| Probes::new(bytes, 4, 0).map(|p| bytes / PROBE / p.stretch);
        assert_eq!([of(8 << 20), of(1 << 30), of(1 << 40), of(3 << 39)], [8, 1024, 1024, 768].map(Some));
    }
}
