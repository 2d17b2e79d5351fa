//! A ring of pointers through a block, for measuring latency: no load can start before the one
//! before it has ended.

use std::ops::Range;

use crate::block::AnonymousMemory;

/// A block whose slots, `stride` bytes apart, hold pointers to each other. The ring keeps the
/// walk's position, so that pieces of a walk continue each other and no address occurs twice in a
/// lap.
///
/// A slot is larger than a pointer. Each cycle uses another place in all slots: another line if a
/// slot has several. A cycle is written one lap before it is walked. So the data has been in no
/// cache for far more than a lap, and a cache would have to hold all lines of the block, not one of
/// each slot. Neighbouring slots use different places. At the same place in all slots, a cycle
/// would leave most sets of the caches to the page tables.
#[derive(Debug)]
pub struct Ring {
    block: AnonymousMemory,
    stride: usize,
    /// Address of the next slot to read; 0 without a cycle.
    at: usize,
    /// Steps until the cycle closes.
    left: u64,
    /// The next cycle to walk.
    waiting: Option<Cycle>,
    /// The place of the last written cycle, one of [`Ring::places`].
    place: usize,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    start: usize,
    slots: u64,
}

const LINE: usize = 64;

/// A number that is independent of the slot's number.
const fn scattered(slot: u32) -> usize {
    (slot.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

impl Ring {
    /// A ring without a cycle. The stride is at least 8 bytes and is rounded down to a multiple of
    /// 8.
    pub const fn new(block: AnonymousMemory, stride: usize) -> Self {
        let stride = if stride < 8 { 8 } else { stride & !7 };
        Self { block, stride, at: 0, left: 0, waiting: None, place: 0 }
    }

    /// Number of slots.
    pub const fn slots(&self) -> usize {
        self.block.span().len() / self.stride
    }

    /// The memory.
    pub const fn block(&self) -> &AnonymousMemory {
        &self.block
    }

    /// Steps until the cycle closes. Then it is time for another one.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Distance of the places in a slot in bytes, and their number.
    const fn places(&self) -> (usize, usize) {
        let distance = if self.stride >= 2 * LINE { LINE } else { 8 };
        (distance, self.stride / distance)
    }

    /// Starts the waiting cycle and writes the next one. `shuffle` gives the order in which a cycle
    /// visits the slots. It is called twice if no cycle waits. If a slot has no room for two
    /// cycles, one is written only now.
    ///
    /// # Panics
    /// If an order names a slot that does not exist.
    pub fn turn(&mut self, order: &mut Vec<u32>, mut shuffle: impl FnMut(&mut Vec<u32>)) {
        let mut write = |ring: &mut Self| {
            shuffle(order);
            ring.waiting = ring.link(order);
        };
        if self.waiting.is_none() {
            write(self);
        }
        let Some(Cycle { start, slots }) = self.waiting.take() else { return };
        (self.at, self.left) = (start, slots);
        if self.places().1 > 1 {
            write(self);
        }
    }

    /// Writes the cycle that visits the slots in this order.
    fn link(&mut self, order: &[u32]) -> Option<Cycle> {
        let slots = self.slots();
        assert!(order.iter().all(|s| (*s as usize) < slots), "a slot outside of the ring");
        let (distance, places) = self.places();
        self.place = (self.place + 1) % places;
        let (place, step, start) = (self.place, self.stride / 8, self.block.span().start);
        let word = |slot: u32| slot as usize * step + (place + scattered(slot)) % places * distance / 8;
        let words = self.block.words();
        for (i, slot) in order.iter().enumerate() {
            let next = start + word(order[(i + 1) % order.len()]) * 8;
            words[word(*slot)].store(next as u64, std::sync::atomic::Ordering::Relaxed);
        }
        order.first().map(|s| Cycle { start: start + word(*s) * 8, slots: order.len() as u64 })
    }

    /// Walks `steps` steps, at most to the end of the cycle. Returns the number of steps.
    #[inline(never)]
    pub fn walk(&mut self, steps: u64) -> u64 {
        if self.at == 0 {
            return 0;
        }
        let steps = steps.min(self.left);
        let mut at = self.at as *const usize;
        let Range { start, mut end } = 0..steps;
        while end > start {
            // SAFETY: `at` is a slot of `order` in the last `link`, and each of these holds the
            // address of another of them: nobody else can write the block, which this has
            // exclusively.
            at = unsafe { at.read() as *const usize };
            end -= 1;
        }
        self.at = std::hint::black_box(at) as usize;
        self.left -= steps;
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HUGE;

    #[test]
    fn a_walk_visits_every_slot_once_and_comes_back() {
        for stride in [8, 64, 256, 4096] {
            let mut ring = Ring::new(AnonymousMemory::new(HUGE).unwrap(), stride);
            let slots = (HUGE / stride) as u32;
            assert_eq!((ring.slots(), ring.walk(5)), (slots as usize, 0), "no cycle yet");
            // Odd numbers and powers of two have no common divisor.
            let order = |lap: u32| (0..slots).map(|i| i * (205 + 2 * lap) % slots).collect::<Vec<u32>>();
            let (mut asked, mut places) = (0, Vec::new());
            for lap in 0..5 {
                ring.turn(&mut Vec::new(), |o| {
                    *o = order(asked);
                    asked += 1;
                });
                let first = ring.at;
                let start = ring.block().span().start;
                let mut seen = Vec::new();
                while ring.left() > 0 {
                    seen.push(((ring.at - start) / stride) as u32);
                    assert_eq!(ring.walk(1), 1);
                }
                assert_eq!((seen, ring.at), (order(lap), first), "stride {stride}, lap {lap}");
                assert_eq!(ring.walk(1), 0, "a cycle is walked once");
                places.push((first - start) % stride);
            }
            let (distance, n) = ring.places();
            assert!(places.windows(2).all(|p| p[1] == (p[0] + distance) % (distance * n)), "{places:?}");
        }
    }

    #[test]
    #[should_panic(expected = "a slot outside of the ring")]
    fn a_slot_that_does_not_exist_is_refused() {
        Ring::new(AnonymousMemory::new(HUGE).unwrap(), 4096).turn(&mut Vec::new(), |o| *o = vec![0, 512]);
    }
}
