//! Buffers in flight: memory that system calls are reading or writing.
//!
//! A front end publishes the buffers of a call, and then looks whether their blocks are armed or
//! claimed. The thread that arms claims the blocks, and then looks at the published buffers. A
//! fence stands between the two steps on both sides. So at least one of them sees the other.

use super::changes::Changes;
use super::sync::{AtomicU32, AtomicUsize, Ordering, fence};

/// Separate buffers of one call.
pub const EACH: usize = 4;
/// The slot is being filled.
const TAKEN: usize = 1;
const NO_SLOT: u16 = u16::MAX;

/// Published buffers of a call. There is no destructor, because cancellation may leave a call and
/// must not run one.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    slots: [u16; EACH],
    quiet: bool,
    changes: bool,
}

impl InFlight {
    /// No buffers.
    pub const NOTHING: Self = Self { slots: [NO_SLOT; EACH], quiet: false, changes: false };
    /// All memory. See [`Flights::begin_quiet`].
    pub const ALL: Self = Self { quiet: true, ..Self::NOTHING };

    /// The same memory, of a call that changes the mappings.
    pub const fn of_change(self) -> Self {
        Self { changes: true, ..self }
    }
}

/// A published buffer. `start` is 0 in a free slot.
pub(super) struct Slot {
    pub(super) start: AtomicUsize,
    pub(super) end: AtomicUsize,
}

/// The published buffers of all threads, at most `SLOTS`. With more, nothing may be armed.
pub struct Flights<const SLOTS: usize> {
    pub(super) slots: [Slot; SLOTS],
    /// One past the highest slot ever used.
    pub(super) used: AtomicUsize,
    /// Nothing may be armed while this is not 0.
    pub(super) quiet: AtomicU32,
    /// The process in which a thread is choosing pages to arm, or 0.
    pub(super) choosing: AtomicU32,
}

impl<const SLOTS: usize> Flights<SLOTS> {
    /// Publishes buffers, given as first address and end. The caller looks at their blocks
    /// afterwards. `near`: where to look for free slots first, a different number for each thread.
    pub fn publish(&self, buffers: impl ExactSizeIterator<Item = (usize, usize)>, near: usize) -> InFlight {
        let mut mine = InFlight::NOTHING;
        if buffers.len() <= EACH {
            for (slot, buffer) in mine.slots.iter_mut().zip(buffers) {
                match self.note(buffer, near) {
                    Some(at) => *slot = at,
                    None => mine.quiet = true,
                }
            }
        } else {
            mine.quiet = true;
        }
        if mine.quiet {
            self.quiet.fetch_add(1, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
        mine
    }

    /// Writes a buffer down. `None`: there is no free slot.
    fn note(&self, (start, end): (usize, usize), near: usize) -> Option<u16> {
        if start >= end {
            return Some(NO_SLOT);
        }
        for i in 0..SLOTS {
            let at = (near + i) % SLOTS;
            let slot = &self.slots[at];
            let free = slot.start.load(Ordering::Relaxed) == 0
                && slot.start.compare_exchange(0, TAKEN, Ordering::SeqCst, Ordering::Relaxed).is_ok();
            if free {
                slot.end.store(end, Ordering::SeqCst);
                slot.start.store(start.max(TAKEN + 1), Ordering::SeqCst);
                if self.used.load(Ordering::Relaxed) <= at {
                    self.used.fetch_max(at + 1, Ordering::SeqCst);
                }
                return Some(at as u16);
            }
        }
        None
    }

    /// The call has returned, or nobody is in it any more. If it has changed the mappings, that is
    /// noted before the memory is free: see [`super::changes`].
    pub fn retire<const LENGTH: usize>(&self, done: InFlight, changes: &Changes<LENGTH>) {
        if done.changes {
            for slot in done.slots.iter().filter_map(|s| self.slots.get(usize::from(*s))) {
                changes.note(slot.start.load(Ordering::SeqCst), slot.end.load(Ordering::SeqCst));
            }
            if done.quiet {
                changes.note(0, isize::MAX as usize);
            }
        }
        for slot in done.slots.iter().filter_map(|s| self.slots.get(usize::from(*s))) {
            slot.start.store(0, Ordering::Release);
        }
        if done.quiet {
            self.end_quiet();
        }
    }

    /// Calls `see` with each published buffer: first address and end. The caller has claimed the
    /// blocks that it wants to arm. `false`: nothing at all may be armed.
    pub fn each(&self, mut see: impl FnMut(usize, usize)) -> bool {
        fence(Ordering::SeqCst);
        for slot in self.slots.iter().take(self.used.load(Ordering::SeqCst)) {
            let start = slot.start.load(Ordering::SeqCst);
            if start > TAKEN {
                see(start, slot.end.load(Ordering::SeqCst));
            }
        }
        !self.is_quiet()
    }

    /// Whether nothing may be armed.
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::SeqCst) != 0
    }

    /// Runs `f`, which claims blocks, asks [`Self::each`], and takes pages away. One thread at a
    /// time. `process`: the number of this process, which is not 0.
    pub fn choosing<R>(&self, process: u32, f: impl FnOnce() -> R) -> R {
        self.choosing.store(process, Ordering::SeqCst);
        let result = f();
        self.choosing.store(0, Ordering::SeqCst);
        result
    }

    /// Nothing is armed from now on until [`Self::end_quiet`]. Calls `pause` while a thread of this
    /// process is choosing: the thread may not have seen the call, and may not have taken all pages
    /// away yet. A bare child only has the memory of such a thread.
    pub fn begin_quiet<W: Default>(&self, process: u32, pause: impl Fn(&mut W)) {
        self.quiet.fetch_add(1, Ordering::SeqCst);
        let (who, mut wait) = (self.choosing.load(Ordering::SeqCst), W::default());
        while who != 0 && self.choosing.load(Ordering::SeqCst) == who && who == process {
            pause(&mut wait);
        }
    }

    /// Ends what one [`Self::begin_quiet`] began.
    pub fn end_quiet(&self) {
        self.quiet.fetch_sub(1, Ordering::SeqCst);
    }
}
