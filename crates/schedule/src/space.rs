//! The iterations of a loop, numbered from zero, and their chunks.

/// A range of iterations, by index: from `begin` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// The first index.
    pub begin: u64,
    /// One past the last index.
    pub end: u64,
}

impl Run {
    /// The number of iterations.
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Whether there is no iteration.
    pub const fn is_empty(&self) -> bool {
        self.begin >= self.end
    }
}

/// The values of a loop's variable: `first`, `first + step`, … `count` of them.
///
/// Values are those of the program's type, signed or not. Compiled code passes them as 64 bits,
/// which [`Space::value`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    first: i128,
    step: i128,
    /// The bound as the program has it: not reached where loops exclude it.
    bound: i128,
    count: u64,
}

impl Space {
    /// `for (i = first; i < bound; i += step)`, or `i > bound` where `step` is negative. `None`
    /// where `step` is zero or the trip count is above 2⁶⁴ − 1.
    pub fn excluding(first: i128, bound: i128, step: i128) -> Option<Self> {
        if step == 0 {
            return None;
        }
        let (from, to) = if step > 0 { (first, bound) } else { (bound, first) };
        let distance = to.checked_sub(from)?;
        let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        Some(Self { first, step, bound, count: u64::try_from(count).ok()? })
    }

    /// `for (i = first; i <= last; i += step)`, or `i >= last` where `step` is negative. `None` as
    /// in [`Space::excluding`].
    pub fn including(first: i128, last: i128, step: i128) -> Option<Self> {
        Self::excluding(first, last.checked_add(step.signum())?, step)
    }

    /// The trip count.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The value of the first iteration, the step, the excluded bound.
    pub const fn parts(&self) -> (i128, i128, i128) {
        (self.first, self.step, self.bound)
    }

    /// The value of the loop's variable in an iteration, in the lower bits of a word.
    #[inline]
    pub const fn value(&self, index: u64) -> u64 {
        (self.first as u64).wrapping_add(index.wrapping_mul(self.step as u64))
    }

    /// The value that ends a run: of the iteration behind the run, or the loop's own bound.
    #[inline]
    pub const fn bound(&self, end: u64) -> u64 {
        if end >= self.count { self.bound as u64 } else { self.value(end) }
    }

    /// The index of the iteration with this value, which [`Space::value`] returned or compiled code
    /// would accept.
    pub fn index(&self, value: u64) -> u64 {
        let distance = if self.step > 0 {
            value.wrapping_sub(self.first as u64)
        } else {
            (self.first as u64).wrapping_sub(value)
        };
        // A step above 2⁶⁴ has one iteration.
        u64::try_from(self.step.unsigned_abs()).map_or(0, |step| distance / step.max(1))
    }

    /// The end of a run, by the value that ends the run: the inverse of [`Space::bound`].
    pub fn end(&self, bound: u64) -> u64 {
        if bound == self.bound as u64 { self.count } else { self.index(bound) }
    }

    /// Where a run lies on the axis of the loop's variable: from the lowest value up to, not
    /// including, the other number.
    pub fn place(&self, run: Run) -> (i128, i128) {
        let at = |index: u64| self.first + i128::from(index) * self.step;
        let (a, b) = (at(run.begin), at(run.end));
        // Downwards, an iteration covers what lies below its value.
        if self.step > 0 { (a, b) } else { (b + 1, a + 1) }
    }
}

/// The chunks of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopChunks {
    count: u64,
    size: u64,
}

impl LoopChunks {
    /// Chunks of `size` iterations, of `count` in all. Size 0 is size 1.
    pub const fn new(count: u64, size: u64) -> Self {
        Self { count, size: if size == 0 { 1 } else { size } }
    }

    /// How many chunks there are.
    pub const fn number(&self) -> u64 {
        self.count.div_ceil(self.size)
    }

    /// Iterations of a chunk, but for the last one.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Trip count.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The iterations of the chunks from `begin` up to, not including, `end`.
    #[inline]
    pub fn runs(&self, begin: u64, end: u64) -> Run {
        // Beyond the last chunk a product may not fit: there is no such iteration.
        let at = |chunk: u64| match chunk.checked_mul(self.size) {
            Some(index) if index < self.count => index,
            _ => self.count,
        };
        Run { begin: at(begin), end: at(end) }
    }

    /// The iterations of the thread of that number where each thread of a team gets one range of
    /// neighbouring chunks. The ranges differ by at most one chunk; a range may be empty.
    #[inline]
    pub fn block(&self, thread: u32, team: u32) -> Run {
        let border = |n: u32| {
            let part = u128::from(self.number()) * u128::from(n) / u128::from(team.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        self.runs(border(thread), border(thread.saturating_add(1)))
    }

    /// The iterations of a chunk.
    #[inline]
    pub fn run(&self, chunk: u64) -> Run {
        self.runs(chunk, chunk.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(space: Space) -> Vec<i64> {
        (0..space.count()).map(|i| space.value(i) as i64).collect()
    }

    #[test]
    fn a_loop_has_the_values_that_c_gives_it() {
        for (first, bound, step) in [(0, 10, 1), (0, 10, 3), (10, 0, -1), (10, 0, -4), (-7, 8, 5), (3, 3, 1)]
        {
            let mut want = Vec::new();
            let mut i = first;
            while if step > 0 { i < bound } else { i > bound } {
                want.push(i);
                i += step;
            }
            let space = Space::excluding(first.into(), bound.into(), step.into()).unwrap();
            assert_eq!(values(space), want, "{first} {bound} {step}");
        }
        assert_eq!(values(Space::including(5, 1, -2).unwrap()), [5, 3, 1]);
        assert_eq!(values(Space::including(1, 6, 5).unwrap()), [1, 6]);
        assert_eq!(Space::excluding(5, 1, 1).unwrap().count(), 0);
        assert_eq!(Space::excluding(i128::MIN, i128::MAX, 1), None);
        assert_eq!((Space::excluding(0, 5, 0), Space::excluding(0, 0, 0)), (None, None));
    }

    #[test]
    fn the_largest_loops_fit_or_are_refused() {
        let (low, high) = (i128::from(i64::MIN), i128::from(i64::MAX));
        assert_eq!(Space::including(low, high, 1), None, "2^64 iterations");
        let half = Space::excluding(0, 1 << 63, 1).unwrap();
        assert_eq!(half.count(), 1 << 63);
        let all = Space::excluding(low, high, 1).unwrap();
        assert_eq!((all.count(), all.value(all.count() - 1) as i64), (u64::MAX, i64::MAX - 1));
        let unsigned = Space::excluding(u64::MAX.into(), 0, -1).unwrap();
        assert_eq!((unsigned.count(), unsigned.value(u64::MAX - 1)), (u64::MAX, 1));
        let wide = Space::excluding(0, u64::MAX.into(), (1 << 63) + 1).unwrap();
        assert_eq!((wide.count(), wide.value(1), wide.index((1 << 63) + 1)), (2, (1 << 63) + 1, 1));
    }

    #[test]
    fn the_last_run_ends_with_the_loops_own_bound() {
        let space = Space::excluding(0, 10, 4).unwrap();
        assert_eq!((space.count(), space.bound(2), space.bound(3)), (3, 8, 10));
        assert_eq!((space.end(8), space.end(10)), (2, 3));
    }

    #[test]
    fn a_run_has_a_place_whatever_the_direction() {
        let up = Space::excluding(10, 20, 1).unwrap();
        let down = Space::excluding(19, 9, -1).unwrap();
        assert_eq!(up.place(Run { begin: 2, end: 5 }), (12, 15));
        assert_eq!(down.place(Run { begin: 0, end: 3 }), (17, 20));
        let strided = Space::excluding(0, 100, 10).unwrap();
        assert_eq!(strided.place(Run { begin: 1, end: 2 }), (10, 20));
    }

    proptest! {
        #[test]
        fn index_and_value_are_inverse(first in any::<i64>(), bound in any::<i64>(), step in any::<i64>(), at in any::<u64>()) {
            if let Some(space) = Space::excluding(first.into(), bound.into(), step.into()) {
                if space.count() > 0 {
                    let index = at % space.count();
                    prop_assert_eq!(space.index(space.value(index)), index);
                    prop_assert_eq!(space.end(space.bound(index + 1)), index + 1);
                }
            } else {
                prop_assert_eq!(step, 0);
            }
        }

        #[test]
        fn chunks_cover_each_iteration_once(count in 0u64..500, size in 0u64..70) {
            let chunks = LoopChunks::new(count, size);
            let mut next = 0;
            for k in 0..chunks.number() {
                let run = chunks.run(k);
                prop_assert_eq!(run.begin, next);
                prop_assert!(!run.is_empty() && run.len() <= chunks.size());
                next = run.end;
            }
            prop_assert_eq!(next, count);
        }

        #[test]
        fn huge_chunks_do_not_overflow(count in any::<u64>(), size in any::<u64>(), k in any::<u64>()) {
            let chunks = LoopChunks::new(count, size);
            let run = chunks.run(k);
            prop_assert!(run.begin <= run.end && run.end <= count);
            prop_assert_eq!(run.is_empty(), k >= chunks.number());
        }
    }
}
