//! The accesses that change nothing in the caches, found by one look at a table of the CPU's own.
//!
//! The table holds lines that the CPU used, under their virtual addresses, and whether a store to each needs nobody. Each is the
//! most recently used line of its set of the first-level cache: a load of it, or a store that needs nobody, leaves every cache,
//! the order in the set and the directory as they are. A second table says where the line of a set is, so that the next line of
//! that set takes its place, wherever it has its own.
//!
//! Only its CPU enters lines; whoever changes the model, under its lock, takes out what another CPU has lost. An access that
//! is answered before that happens stands before the change, an order that the guest could have seen, too. A line that is just
//! being entered may be missed: the model hears of that access later, and then the CPU has it again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use homenode_cache::Line;

/// No line has this number; bit 0 is "a store needs nobody".
const NOTHING: u64 = u64::MAX;

/// Entries at most: both tables stay in the host's first caches.
const MOST: u64 = 2048;

/// The table of one CPU.
#[derive(Debug)]
pub struct Front {
    /// Virtual lines.
    known: Box<[AtomicU64]>,
    /// The physical line of each.
    lines: Box<[AtomicU64]>,
    /// By set, or by the last bits of sets: where its line is, if it is there.
    places: Box<[AtomicU32]>,
    mask: u64,
}

impl Front {
    /// For a first-level cache of so many sets.
    pub fn new(sets: u64) -> Self {
        // Lines with the same last bits as one in the same set: then too many make room, never too few.
        let entries = MOST.min(1 << sets.trailing_zeros().min(63));
        let table = || (0..entries).map(|_| AtomicU64::new(NOTHING)).collect();
        let places = (0..entries).map(|_| AtomicU32::new(0)).collect();
        Self { known: table(), lines: table(), places, mask: entries - 1 }
    }

    /// Whether an access to a virtual line changes nothing.
    #[inline(always)]
    pub fn hit(&self, virtual_line: u64, write: bool) -> bool {
        // The mask keeps it inside; the compiler cannot know.
        let Some(entry) = self.known.get((virtual_line & self.mask) as usize) else { return false };
        let entry = entry.load(Ordering::Relaxed);
        entry == (virtual_line << 1 | 1) || (!write && entry == virtual_line << 1)
    }

    /// The CPU has used this line, and the model will hear of it before it hears of a later access of this CPU.
    #[inline]
    pub fn enter(&self, virtual_line: u64, line: Line, write: bool) {
        let at = (virtual_line & self.mask) as usize;
        self.lose_set(line);
        self.places[(line.0 & self.mask) as usize].store(at as u32, Ordering::Relaxed);
        self.lines[at].store(line.0, Ordering::Relaxed);
        self.known[at].store(virtual_line << 1 | u64::from(write), Ordering::Relaxed);
    }

    /// Another CPU has used `line`, or taken it.
    #[inline]
    pub fn lose(&self, line: Line) {
        let at = self.places[(line.0 & self.mask) as usize].load(Ordering::Relaxed) as usize;
        if self.lines[at].load(Ordering::Relaxed) == line.0 {
            self.known[at].store(NOTHING, Ordering::Relaxed);
        }
    }

    /// A line of this set has been used: another one in it is no longer the last.
    #[inline]
    pub fn lose_set(&self, line: Line) {
        let at = self.places[(line.0 & self.mask) as usize].load(Ordering::Relaxed) as usize;
        if (self.lines[at].load(Ordering::Relaxed) ^ line.0) & self.mask == 0 {
            self.known[at].store(NOTHING, Ordering::Relaxed);
        }
    }

    /// Virtual addresses may mean something else from now on.
    pub fn forget(&self) {
        self.known.iter().for_each(|e| e.store(NOTHING, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_cache::{Agent, Hierarchy, Miss, Shape};
    use homenode_model::CpuId;

    /// The machine with the most contradictions: several nodes, shared outer caches.
    fn shape() -> Shape {
        let machine = homenode_machine::preset("epyc-nps4").unwrap().topology;
        Shape::new(&machine, &[0, 1, 8, 16].map(CpuId)).unwrap()
    }

    /// Numbers that look random and are the same everywhere (SplitMix64).
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    #[test]
    fn skipping_what_changes_nothing_changes_nothing() {
        let shape = shape();
        let sets = 1024;
        let (mut all, mut some) =
            (Hierarchy::<u64>::new(&shape, 64).unwrap(), Hierarchy::<u64>::new(&shape, 64).unwrap());
        let fronts: Vec<Front> = (0..4).map(|_| Front::new(sets)).collect();
        let (mut state, mut skipped) = (1, 0);
        let mut misses: [Vec<(u64, Option<Miss>)>; 2] = [Vec::new(), Vec::new()];
        for i in 0..400_000_u64 {
            let r = random(&mut state);
            let cpu = (r % 4) as usize;
            let agent = Agent(cpu as u32);
            // Mostly few lines, in few sets, so that sets overflow and lines are shared.
            let line = Line((r >> 8) % 3 + ((r >> 20) % 12) * sets + ((r >> 40) % 64 / 63) * 7 * sets);
            // Another address, with other last bits from those on that tell places in a page apart.
            let virtual_line = (line.0 & 63) | (((line.0 >> 6).wrapping_mul(0x9e37_79b9) % (1 << 30)) << 6);
            let write = (r >> 60).is_multiple_of(4);
            let a = all.access(agent, line, write).unwrap();
            if a.miss.is_some() || a.level > 0 {
                misses[0].push((i, a.miss));
            }
            if fronts[cpu].hit(virtual_line, write) {
                skipped += 1;
                continue;
            }
            fronts[cpu].enter(virtual_line, line, write);
            let b = some.access(agent, line, write).unwrap();
            // What follows the model in the monitor: nobody else knows a line that a private cache answers.
            if usize::from(b.level) >= some.private() || b.miss.is_some() {
                fronts.iter().enumerate().filter(|(i, _)| *i != cpu).for_each(|(_, f)| f.lose(line));
            }
            if b.miss.is_some() || b.level > 0 {
                misses[1].push((i, b.miss));
            }
        }
        assert!(skipped > 1000, "{skipped}");
        assert!(misses[0] == misses[1], "{} and {}", misses[0].len(), misses[1].len());
    }

    #[test]
    fn what_is_lost_is_not_known() {
        let front = Front::new(8);
        front.enter(0x1003, Line(5), false);
        assert!(front.hit(0x1003, false) && !front.hit(0x1003, true) && !front.hit(0x2003, false));
        front.lose(Line(13));
        assert!(front.hit(0x1003, false), "another line");
        front.lose(Line(5));
        assert!(!front.hit(0x1003, false));
        front.enter(0x1003, Line(5), true);
        assert!(front.hit(0x1003, true) && front.hit(0x1003, false));
        front.enter(0x1004, Line(13), false);
        assert!(!front.hit(0x1003, false) && front.hit(0x1004, false), "the same set, another place");
        front.enter(0x100c, Line(6), false);
        assert!(front.hit(0x100c, false) && !front.hit(0x1004, false), "the same place, another set");
        front.lose_set(Line(5));
        assert!(front.hit(0x100c, false), "it is not of that set any more");
        front.lose_set(Line(14));
        assert!(!front.hit(0x100c, false));
        front.enter(0x1003, Line(5), true);
        front.forget();
        assert!(!front.hit(0x1003, false));
    }
}
