//! Memory that the kernel is reading or writing for the program.
//!
//! A system call that meets an armed page fails or stops short, because the kernel cannot run
//! homenode's handler. So front ends publish a call's buffers before the call. The publisher stores
//! the buffer and then looks at the blocks. The thread that arms claims the blocks and then looks
//! at the buffers. So at least one of them sees the other ([`homenode_lockless::flights`]).

use std::sync::atomic::{AtomicUsize, Ordering};

pub use homenode_lockless::InFlight;
use homenode_lockless::{Changes, Flights};
use homenode_sys::{PAGE, Span, call};

use super::mechanism::Mechanism;
use super::state;

/// Published buffers at a time. With more, nothing is armed until there are fewer.
const SLOTS: usize = 1024;
static FLIGHTS: Flights<SLOTS> = Flights::new();

/// Number of remembered changes.
const CHANGES: usize = 1024;
static CHANGED: Changes<CHANGES> = Changes::new();

/// Notes a change for a thread that is arming and has already looked at the mappings.
pub fn remember(memory: Span) {
    CHANGED.note(memory.start, memory.end);
}

/// The number of changes so far. A thread that arms reads it before it looks at the mappings.
pub fn changes() -> usize {
    LISTED.load(Ordering::SeqCst).min(CHANGED.count())
}

/// Number of changes before the last list of live memory.
static LISTED: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The caller, the only thread that arms, is about to list memory for arming. Memory that goes from
/// now on is not armed, even if it is in the list: something else may lie there by then, such as a
/// thread's stack.
pub fn about_to_list() {
    LISTED.store(CHANGED.count(), Ordering::SeqCst);
}

/// Whether some of `span` may have changed after the first `since` changes. The caller has claimed
/// its blocks.
pub fn changed(since: usize, span: Span) -> bool {
    CHANGED.any_since(since, |start, end| Span { start, end }.outer(PAGE).overlaps(span))
}

/// Publishes buffers, or holds memory. `None`: nothing can be armed.
pub fn keep(buffers: &[Span]) -> Option<InFlight> {
    if state::mechanism() == Mechanism::None {
        return None;
    }
    Some(FLIGHTS.publish(buffers.iter().map(|b| (b.start, b.end)), own_place()))
}

/// A number that differs between threads: threads are distinguished by their stacks.
fn own_place() -> usize {
    let here = 0_u8;
    (((&raw const here as usize >> 12) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// Nothing is armed until this is given up. [`InFlight::NOTHING`]: nothing can be armed.
pub fn keep_quiet() -> InFlight {
    if state::mechanism() == Mechanism::None {
        return InFlight::NOTHING;
    }
    begin_quiet();
    InFlight::ALL
}

/// Nobody is in the call any more.
pub fn give_up(done: InFlight) {
    FLIGHTS.retire(done, &CHANGED);
}

/// Calls `see` with the published parts of `span`. The caller has claimed its blocks. `false`:
/// nothing at all may be armed.
pub fn each_in(span: Span, mut see: impl FnMut(Span)) -> bool {
    FLIGHTS.each(|start, end| {
        let buffer = Span { start, end };
        if buffer.overlaps(span) {
            see(buffer.cut(span));
        }
    })
}

/// Runs `f`, which claims blocks, asks [`each_in`], and takes pages away. Under the lock.
pub fn choosing<R>(f: impl FnOnce() -> R) -> R {
    FLIGHTS.choosing(std::process::id(), f)
}

fn begin_quiet() {
    FLIGHTS.begin_quiet(std::process::id(), call::Wait::a_moment);
}

/// Nothing is armed while this lives, in this process and in its forked children.
#[must_use]
#[derive(Debug)]
pub struct Quiet(());

impl Quiet {
    /// Starts now. Armed memory stays armed.
    pub fn new() -> Self {
        begin_quiet();
        Self(())
    }
}

impl Default for Quiet {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        FLIGHTS.end_quiet();
    }
}

#[cfg(test)]
mod tests {
    use super::super::calls;
    use super::super::publish::{give_up_left, retire};
    use super::*;

    #[test]
    fn a_change_is_seen_by_who_looked_before_it() {
        let (span, other) = (Span::new(0x71_0000_0000, 0x1000), Span::new(0x72_0000_0000, 0x1000));
        let before = changes();
        let remember = |span: Span| CHANGED.note(span.start, span.end);
        assert!(!changed(before, span));
        remember(span);
        assert!(changed(before, span) && !changed(before, other) && !changed(changes(), span));
        (0..CHANGES).for_each(|_| remember(other));
        assert!(changed(before, span), "forgotten is not unchanged");
    }

    #[test]
    fn quiet_begins_when_who_is_choosing_is_done() {
        use std::sync::atomic::AtomicBool;
        static DONE: AtomicBool = AtomicBool::new(false);
        let quiet = choosing(|| {
            let other = std::thread::spawn(|| {
                drop(Quiet::new());
                DONE.load(Ordering::SeqCst)
            });
            while !FLIGHTS.is_quiet() {
                call::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            DONE.store(true, Ordering::SeqCst);
            other
        });
        assert!(quiet.join().unwrap());
    }

    #[test]
    fn what_is_noted_is_seen_until_it_is_retired() {
        let buffer = Span::new(0x70_0000_1000, 0x2000);
        let flight = FLIGHTS.publish([(buffer.start, buffer.end)].into_iter(), own_place());
        let mut seen = Vec::new();
        each_in(Span::new(0x70_0000_2000, 0x10_000), |s| seen.push(s));
        assert_eq!(seen, [Span::new(0x70_0000_2000, 0x1000)]);
        retire(flight);
        let mut seen = 0;
        each_in(buffer, |_| seen += 1);
        assert_eq!(seen, 0);
    }

    /// As a front end whose call does not come back, or does later.
    #[inline(never)]
    fn open(buffer: Span, meanwhile: fn()) -> InFlight {
        let here = 0_u8;
        let flight = FLIGHTS.publish([(buffer.start, buffer.end)].into_iter(), own_place());
        calls::enter(&raw const here as usize, flight);
        meanwhile();
        flight
    }

    #[test]
    fn what_was_left_is_given_up_by_who_is_higher_on_the_stack() {
        let buffer = Span::new(0x73_0000_0000, 0x1000);
        let published = || {
            let mut seen = 0;
            each_in(buffer, |_| seen += 1);
            seen
        };
        let _ = open(buffer, give_up_left);
        assert_eq!(published(), 1, "what calls from within it is deeper");
        give_up_left();
        assert_eq!(published(), 0, "it was left");
        let _ = open(buffer, || ());
        let flight = open(buffer, || ());
        assert_eq!(published(), 1, "a call of the same frame was left");
        retire(flight);
        assert_eq!(published(), 0);
        for _ in 0..20 {
            let _ = open(buffer, || ());
        }
        calls::end();
        assert_eq!(published(), 0, "the thread ends");
    }
}
