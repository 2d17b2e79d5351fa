//! Whether updates are lost while their memory is armed again and again: two threads on two nodes
//! add up 10⁸ ones, a third arms.

use std::sync::atomic::{AtomicBool, Ordering};

use homenode_runtime::moving;
use homenode_sys::memory::{Protection, map_aligned};
use homenode_sys::{HUGE, Span};

use crate::{bind_to, gone, show_since};

/// Altogether.
const UPDATES: u64 = 100_000_000;
const THREADS: usize = 2;
const BYTES: usize = 4 * HUGE;
const WORDS: usize = BYTES / size_of::<u64>();
/// From one update to the next: another page, and in the end each of the thread's words.
const STEP: usize = 521;

/// Adds a thread's share of ones to its own words, which lie between the others'.
fn add(m: Span, thread: usize) {
    for i in 0..UPDATES as usize / THREADS {
        let word = i * STEP % (WORDS / THREADS) * THREADS + thread;
        let at = (m.start + word * size_of::<u64>()) as *mut u64;
        // SAFETY: memory of this benchmark, and this thread's word.
        unsafe { at.write_volatile(at.read_volatile() + 1) };
    }
}

/// Arms the memory until it is done; every fourth time what is armed goes back untouched, too.
fn arm(m: Span, done: &AtomicBool) {
    for n in 1_u64.. {
        moving::arm(&[m]);
        if n % 4 == 0 {
            moving::disarm_all();
        }
        moving::drain(|_| {});
        if done.load(Ordering::Relaxed) {
            return;
        }
    }
}

pub fn run() {
    let m = map_aligned(BYTES, HUGE, Protection::ReadWrite).expect("memory");
    let (before, done) = (moving::counters(), AtomicBool::new(false));
    std::thread::scope(|s| {
        let adding: Vec<_> = (0..THREADS)
            .map(|thread| {
                s.spawn(move || {
                    bind_to(thread % 2);
                    add(m, thread);
                })
            })
            .collect();
        s.spawn(|| arm(m, &done));
        adding.into_iter().for_each(|t| t.join().expect("it adds"));
        done.store(true, Ordering::Relaxed);
    });
    moving::disarm_all();
    // SAFETY: memory of this benchmark, to which nobody writes any more.
    let read = |at: usize| unsafe { (at as *const u64).read() };
    let sum: u64 = (m.start..m.end).step_by(size_of::<u64>()).map(read).sum();
    println!("bench: next-touch/lost-updates {} updates", UPDATES.abs_diff(sum));
    show_since(&before, "10⁸ updates");
    assert_eq!(sum, UPDATES, "updates were lost");
    gone(m);
}
