//! The threads of the process by number: those that start, live, or have ended.

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::{process, state};

/// Most threads that are recorded in one process.
pub const MAX_THREADS: usize = 4096;

/// Above all numbers of threads.
const NO_MORE: u32 = 1 << 31;

/// What there is of each thread, by the thread's number.
pub(crate) struct Registry<T> {
    /// How many numbers were given; with [`NO_MORE`] once the process ends.
    given: AtomicU32,
    /// How many threads live that have their log.
    live: AtomicU32,
    /// Null: the thread makes its log. [`Registry::GONE`]: it has ended.
    places: [AtomicPtr<T>; MAX_THREADS],
}

impl<T> Registry<T> {
    /// In the place of a thread that has ended.
    const GONE: *mut T = without_provenance_mut(1);

    /// A registry without threads.
    pub const fn new() -> Self {
        Self {
            given: AtomicU32::new(0),
            live: AtomicU32::new(0),
            places: [const { AtomicPtr::new(null_mut()) }; MAX_THREADS],
        }
    }

    /// The number of a new thread. The thread makes its log and registers ([`Self::add`]), and
    /// [`Self::close`] waits for that. `None` if there are too many threads, or the process ends.
    pub fn number(&self) -> Option<u32> {
        let index = self.given.fetch_add(1, Ordering::AcqRel);
        if index & NO_MORE != 0 {
            return None;
        }
        if index as usize >= MAX_THREADS {
            state::switch_off("stopped: more than 4096 threads");
            return None;
        }
        Some(index)
    }

    /// Makes a thread known that has its log.
    pub fn add(&self, index: u32, thread: *mut T) {
        self.live.fetch_add(1, Ordering::AcqRel);
        self.places[index as usize].store(thread, Ordering::Release);
    }

    /// Removes a thread that has ended.
    pub fn remove(&self, index: u32) {
        self.live.fetch_sub(1, Ordering::AcqRel);
        if let Some(place) = self.places.get(index as usize) {
            place.store(Self::GONE, Ordering::Release);
        }
    }

    /// Whether more than one registered thread lives.
    #[inline]
    pub fn several(&self) -> bool {
        self.live.load(Ordering::Relaxed) > 1
    }

    /// All registered threads that live.
    pub fn threads(&self) -> impl Iterator<Item = *mut T> {
        let n = self.given.load(Ordering::Acquire) & !NO_MORE;
        self.first(n).map(|p| p.load(Ordering::Acquire)).filter(|p| !p.is_null() && *p != Self::GONE)
    }

    /// Gives no more numbers, and waits until each thread that has a number has registered.
    pub fn close(&self) {
        let numbers = self.given.fetch_or(NO_MORE, Ordering::AcqRel) & !NO_MORE;
        for place in self.first(numbers) {
            // A log without an end would make the whole recording one that was cut off.
            process::wait_until(|| !place.load(Ordering::Acquire).is_null());
        }
    }

    /// The places of the first `n` numbers.
    fn first(&self, n: u32) -> impl Iterator<Item = &AtomicPtr<T>> {
        self.places[..(n as usize).min(MAX_THREADS)].iter()
    }
}
