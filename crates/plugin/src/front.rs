//! The accesses that change nothing in the caches, found without a lock.
//!
//! For each first-level cache a table holds the most recently used line of each set, and whether a store to it needs
//! nobody. A load of that line, or a store that needs nobody, leaves every cache, the order in the set and the directory as
//! they are, so it is a hit and that is all. Everything else takes the lock, changes the model and then the tables: the
//! accessing cache's entry, and those of caches that lost the line or their sole knowledge of it. That the tables are read
//! without the lock puts such an access before a change that is under way, an order that the guest could have seen, too.

use std::sync::atomic::{AtomicU64, Ordering};

use homenode_cache::{Agent, Line};

/// No line has this number; bit 0 is "a store needs nobody".
const NOTHING: u64 = u64::MAX;

/// The table of all first-level caches.
#[derive(Debug)]
pub struct Front {
    entries: Vec<AtomicU64>,
    sets: u64,
    agents: usize,
}

impl Front {
    /// Empty tables for first-level caches of so many sets, a power of two.
    pub fn new(agents: usize, sets: u64) -> Self {
        let entries = (0..agents * sets as usize).map(|_| AtomicU64::new(NOTHING)).collect();
        Self { entries, sets, agents }
    }

    #[inline]
    fn entry(&self, agent: usize, line: Line) -> &AtomicU64 {
        &self.entries[agent * self.sets as usize + (line.0 & (self.sets - 1)) as usize]
    }

    /// Whether the access changes nothing.
    #[inline]
    pub fn hit(&self, agent: Agent, line: Line, write: bool) -> bool {
        let entry = self.entry(agent.index(), line).load(Ordering::Relaxed);
        entry == (line.0 << 1 | 1) || (!write && entry == line.0 << 1)
    }

    /// Follows the model, which has just made this access; under the lock.
    pub fn follow(&self, agent: Agent, line: Line, write: bool) {
        let (shared, own) = (line.0 << 1, line.0 << 1 | 1);
        for other in (0..self.agents).filter(|a| *a != agent.index()) {
            let entry = self.entry(other, line);
            let is = entry.load(Ordering::Relaxed);
            if write && (is == shared || is == own) {
                entry.store(NOTHING, Ordering::Relaxed);
            } else if is == own {
                entry.store(shared, Ordering::Relaxed);
            }
        }
        let entry = self.entry(agent.index(), line);
        // A load of a line that was this cache's own leaves it so, but that is a hit and does not come here.
        entry.store(if write { own } else { shared }, Ordering::Relaxed);
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        self.entries.iter().for_each(|e| e.store(NOTHING, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_cache::{Hierarchy, Miss, Shape};
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
        let front = Front::new(4, sets);
        let (mut state, mut skipped) = (1, 0);
        let mut misses: [Vec<(u64, Option<Miss>)>; 2] = [Vec::new(), Vec::new()];
        for i in 0..400_000_u64 {
            let r = random(&mut state);
            let agent = Agent((r % 4) as u32);
            // Mostly few lines, in few sets, so that sets overflow and lines are shared.
            let line = Line((r >> 8) % 3 + ((r >> 20) % 12) * sets + ((r >> 40) % 64 / 63) * 7 * sets);
            let write = (r >> 60).is_multiple_of(4);
            let a = all.access(agent, line, write).unwrap();
            if a.miss.is_some() || a.level > 0 {
                misses[0].push((i, a.miss));
            }
            if front.hit(agent, line, write) {
                skipped += 1;
                continue;
            }
            let b = some.access(agent, line, write).unwrap();
            front.follow(agent, line, write);
            if b.miss.is_some() || b.level > 0 {
                misses[1].push((i, b.miss));
            }
        }
        assert!(skipped > 1000, "{skipped}");
        assert!(misses[0] == misses[1], "{} and {}", misses[0].len(), misses[1].len());
    }
}
