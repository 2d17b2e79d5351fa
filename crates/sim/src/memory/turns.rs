//! Whose turn it is: the thread with the smallest (time, index).

/// A winner tree over the threads: changing a time and finding the smallest cost log₂(threads) comparisons, and no
/// memory is moved. Left wins ties, so that equal times go by thread index.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Time by thread, padded with [`Turns::NEVER`] to a power of two.
    times: Vec<u64>,
    /// `winner[1]` is the thread whose turn it is; node i has children 2i and 2i + 1, leaves start at `times.len()`.
    winner: Vec<u32>,
}

impl Turns {
    /// The time of a thread that waits for another, or has ended.
    pub(super) const NEVER: u64 = u64::MAX;

    pub(super) fn new() -> Self {
        Self { times: vec![Self::NEVER], winner: vec![0, 0] }
    }
    /// Makes room for `threads` threads; new ones have their turn never.
    pub(super) fn grow(&mut self, threads: usize) {
        let leaves = threads.next_power_of_two();
        if leaves <= self.times.len() {
            return;
        }
        self.times.resize(leaves, Self::NEVER);
        self.winner = vec![0; 2 * leaves];
        for t in 0..leaves {
            self.winner[leaves + t] = t as u32;
        }
        for node in (1..leaves).rev() {
            self.winner[node] = self.play(node);
        }
    }
    #[inline]
    fn play(&self, node: usize) -> u32 {
        let (left, right) = (self.winner[2 * node], self.winner[2 * node + 1]);
        if self.times[right as usize] < self.times[left as usize] { right } else { left }
    }
    /// Sets the time of `thread`.
    #[inline]
    pub(super) fn set(&mut self, thread: usize, time: u64) {
        self.times[thread] = time;
        let mut node = (self.times.len() + thread) / 2;
        while node > 0 {
            self.winner[node] = self.play(node);
            node /= 2;
        }
    }
    /// The smallest time and its thread.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let thread = self.winner[1] as usize;
        (self.times[thread], thread)
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
