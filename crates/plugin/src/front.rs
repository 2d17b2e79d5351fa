//! The accesses that change nothing in the caches, found by one look at a table of the CPU's own.
//!
//! Of the lines with the same last bits the table holds the one that the CPU used last, under its virtual address, and whether
//! a store to it needs nobody. It is the most recently used line of its set of the first-level cache: a load of it, or a store
//! that needs nobody, leaves every cache, the order in the set and the directory as they are. The table has at most as many
//! entries as a page has lines, so that virtual and physical line have the same place in it.
//!
//! Only its CPU enters lines; whoever changes the model, under its lock, takes out what another CPU has lost. An access that
//! is answered before that happens stands before the change, an order that the guest could have seen, too.

use std::sync::atomic::{AtomicU64, Ordering};

use homenode_cache::Line;

use crate::translate::PAGE_SHIFT;

/// No line has this number; bit 0 is "a store needs nobody".
const NOTHING: u64 = u64::MAX;

/// The table of one CPU.
#[derive(Debug)]
pub struct Front {
    /// Virtual lines.
    known: Box<[AtomicU64]>,
    /// The physical line of each.
    lines: Box<[AtomicU64]>,
    mask: u64,
}

impl Front {
    /// For a first-level cache of so many sets and lines of 2^`line_shift` bytes.
    pub fn new(sets: u64, line_shift: u32) -> Self {
        let entries = sets.min(1 << PAGE_SHIFT.saturating_sub(line_shift)).max(1);
        let table = || (0..entries).map(|_| AtomicU64::new(NOTHING)).collect();
        Self { known: table(), lines: table(), mask: entries - 1 }
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
        self.lines[at].store(line.0, Ordering::Relaxed);
        self.known[at].store(virtual_line << 1 | u64::from(write), Ordering::Relaxed);
    }

    /// Another CPU has used `line`, or taken it.
    #[inline]
    pub fn lose(&self, line: Line) {
        let at = (line.0 & self.mask) as usize;
        if self.lines[at].load(Ordering::Relaxed) == line.0 {
            self.known[at].store(NOTHING, Ordering::Relaxed);
        }
    }

    /// A CPU with the same first-level cache has used `line`: another one in its set is no longer the last.
    #[inline]
    pub fn lose_set(&self, line: Line) {
        self.known[(line.0 & self.mask) as usize].store(NOTHING, Ordering::Relaxed);
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
        let fronts: Vec<Front> = (0..4).map(|_| Front::new(sets, 6)).collect();
        let (mut state, mut skipped) = (1, 0);
        let mut misses: [Vec<(u64, Option<Miss>)>; 2] = [Vec::new(), Vec::new()];
        for i in 0..400_000_u64 {
            let r = random(&mut state);
            let cpu = (r % 4) as usize;
            let agent = Agent(cpu as u32);
            // Mostly few lines, in few sets, so that sets overflow and lines are shared.
            let line = Line((r >> 8) % 3 + ((r >> 20) % 12) * sets + ((r >> 40) % 64 / 63) * 7 * sets);
            // Another address with the same last bits.
            let virtual_line = line.0 + (64 << 20);
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
        let front = Front::new(8, 6);
        front.enter(0x1003, Line(3), false);
        assert!(front.hit(0x1003, false) && !front.hit(0x1003, true) && !front.hit(0x2003, false));
        front.lose(Line(11));
        assert!(front.hit(0x1003, false), "another line");
        front.lose(Line(3));
        assert!(!front.hit(0x1003, false));
        front.enter(0x1003, Line(3), true);
        assert!(front.hit(0x1003, true) && front.hit(0x1003, false));
        front.forget();
        assert!(!front.hit(0x1003, false));
    }
}
