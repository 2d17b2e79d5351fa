//! The calls that a CPU's program is in, as far as their stores and loads tell.
//!
//! A call stores its return address on the stack, and a return loads it from there. A store of
//! `memset` names no line of the program; the call of `memset` does. The stack grows down, so a
//! call or a return at an address ends all calls whose return addresses lie at or below it.
//!
//! Threads that take turns on a CPU share what is kept here. A thread's first store after such a
//! turn may be credited with a call of the other thread.

/// Calls that are kept: the innermost ones.
const KEPT: usize = 16;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, Default)]
struct Call {
    /// Where on the stack its return address lies.
    slot: u64,
    /// The return address.
    back: u64,
    /// Stands for the process.
    whose: usize,
}

/// The innermost calls of one CPU.
#[derive(Debug, Default)]
pub struct Calls {
    /// Call `n` is at `n % KEPT`.
    kept: [Call; KEPT],
    /// Calls that have not returned, those that are no longer kept included.
    depth: usize,
    /// How many of them are kept.
    count: usize,
}

impl Calls {
    /// A call stored the return address `back` at `slot`. `whose` stands for the process.
    #[inline]
    pub fn enter(&mut self, slot: u64, back: u64, whose: usize) {
        self.leave(slot);
        self.kept[self.depth % KEPT] = Call { slot, back, whose };
        self.depth = self.depth.wrapping_add(1);
        self.count = KEPT.min(self.count + 1);
    }

    /// A return loaded its address from `slot`.
    #[inline]
    pub fn leave(&mut self, slot: u64) {
        while self.count > 0 && self.kept[self.depth.wrapping_sub(1) % KEPT].slot <= slot {
            self.depth = self.depth.wrapping_sub(1);
            self.count -= 1;
        }
    }

    /// Return addresses of the calls of this process, innermost first; 0 where there is none.
    pub fn innermost<const N: usize>(&self, whose: usize) -> [u64; N] {
        let mut found = [0; N];
        let calls = (1..=self.count).map(|n| self.kept[self.depth.wrapping_sub(n) % KEPT]);
        for (place, call) in found.iter_mut().zip(calls.filter(|c| c.whose == whose)) {
            *place = call.back;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_returned_is_no_call_any_more() {
        let mut calls = Calls::default();
        calls.enter(1000, 1, 0);
        calls.enter(900, 2, 0);
        // The loader's own calls, before it jumps to the function.
        calls.enter(700, 3, 0);
        calls.leave(700);
        assert_eq!(calls.innermost::<3>(0), [2, 1, 0]);
        // A return that nobody saw: the next call at the same place tells.
        calls.enter(900, 4, 0);
        assert_eq!(calls.innermost::<3>(0), [4, 1, 0]);
        calls.leave(1000);
        assert_eq!(calls.innermost::<1>(0), [0]);
    }

    #[test]
    fn only_the_innermost_calls_of_the_process_are_told() {
        let mut calls = Calls::default();
        let depth = 2 * KEPT as u64;
        for n in 0..depth {
            calls.enter(10_000 - 8 * n, n + 1, (n % 2) as usize);
        }
        assert_eq!(calls.innermost::<2>(1), [depth, depth - 2]);
        assert_eq!(calls.innermost::<40>(0).iter().filter(|b| **b != 0).count(), KEPT / 2);
        (0..KEPT as u64).for_each(|n| calls.leave(10_000 - 8 * (depth - 1 - n)));
        assert_eq!(calls.innermost::<1>(0), [0], "the outer ones are not kept");
    }
}
