//! Whose turn it is: the thread with the smallest (time, index).

/// A winner tree over the threads: changing a time and finding the smallest cost log₂(threads)
/// comparisons, and no memory is moved. Equal times go by thread index.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Node 1 is the root, node i has the children 2i and 2i + 1, and the second half are the
    /// leaves, one a thread. A node holds the (time, thread) that is smaller of its children's,
    /// itself and not where to find it: so the loads on the way up do not wait for each other.
    nodes: Vec<(u64, u32)>,
}

impl Turns {
    /// The time of a thread that waits for another, or has ended.
    pub(super) const NEVER: u64 = u64::MAX;

    pub(super) fn new() -> Self {
        Self { nodes: vec![(Self::NEVER, 0); 2] }
    }
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }
    /// Makes room for `threads` threads; new ones have their turn never.
    pub(super) fn grow(&mut self, threads: usize) {
        let leaves = threads.next_power_of_two();
        if leaves <= self.leaves() {
            return;
        }
        let old = self.nodes.split_off(self.leaves());
        let new = (old.len()..leaves).map(|t| (Self::NEVER, t as u32));
        self.nodes = vec![(Self::NEVER, 0); leaves];
        self.nodes.extend(old.into_iter().chain(new));
        for node in (1..leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }
    /// Sets the time of `thread`.
    #[inline]
    pub(super) fn set(&mut self, thread: usize, time: u64) {
        let mut node = self.leaves() + thread;
        let mut winner = (time, thread as u32);
        self.nodes[node] = winner;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = winner;
        }
    }
    /// The smallest time and its thread.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let (time, thread) = self.nodes[1];
        (time, thread as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_minimum_with_ties_by_index(
            sets in proptest::collection::vec((0usize..13, 0u64..8), 1..60)
        ) {
            let mut turns = Turns::new();
            let mut plain = [Turns::NEVER; 13];
            for (i, (thread, time)) in sets.into_iter().enumerate() {
                turns.grow(if i < 5 { thread + 1 } else { 13 });
                turns.set(thread, time);
                plain[thread] = time;
                let first = plain.iter().enumerate().map(|(t, k)| (*k, t)).min().unwrap();
                prop_assert_eq!(turns.first(), first);
            }
        }
    }
}
