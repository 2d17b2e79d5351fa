//! Memory that the kernel is reading or writing for the program.
//!
//! A system call that meets an armed page fails or stops short, because the kernel cannot run
//! homenode's handler. So front ends publish a call's buffers before the call. The publisher stores
//! the buffer and then looks at the blocks. The thread that arms claims the blocks and then looks
//! at the buffers. So at least one of them sees the other.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use homenode_sys::{PAGE, Span, call};

use super::mechanism::Mechanism;
use super::state;

/// Published buffers at a time. With more, nothing is armed until there are fewer.
const SLOTS: usize = 1024;
/// Separate buffers of one call.
const EACH: usize = 4;

struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
}

static TABLE: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; SLOTS];
/// One past the highest slot ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Nothing is armed while this is not 0.
static QUIET: AtomicU32 = AtomicU32::new(0);
/// The process in which a thread is choosing pages to arm, or 0.
static CHOOSING: AtomicU32 = AtomicU32::new(0);
/// The slot is being filled.
const TAKEN: usize = 1;
const NO_SLOT: u16 = u16::MAX;

/// Published buffers. Pass them to [`super::retire`] when the call has returned. There is no
/// destructor, because cancellation may leave a call and must not run one; [`super::calls`] then
/// gives the buffers up.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    slots: [u16; EACH],
    quiet: bool,
}

impl InFlight {
    /// Of no buffers.
    pub const NOTHING: Self = Self { slots: [NO_SLOT; EACH], quiet: false };
}

/// Number of remembered changes.
const CHANGES: usize = 1024;
static CHANGED: [Slot; CHANGES] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; CHANGES];
/// Changes so far. One count is before a change is written down, the other one after; they are
/// equal when none is in between.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Notes a change for a thread that is arming and has already looked at the mappings.
pub fn remember(memory: Span) {
    let at = BEGUN.fetch_add(1, Ordering::SeqCst) % CHANGES;
    CHANGED[at].start.store(memory.start, Ordering::SeqCst);
    CHANGED[at].end.store(memory.end, Ordering::SeqCst);
    WRITTEN.fetch_add(1, Ordering::SeqCst);
}

/// The number of changes so far. A thread that arms reads it before it looks at the mappings.
pub fn changes() -> usize {
    LISTED.load(Ordering::SeqCst).min(WRITTEN.load(Ordering::SeqCst))
}

/// Number of changes before the last list of live memory.
static LISTED: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The caller, the only thread that arms, is about to list memory for arming. Memory that goes from
/// now on is not armed, even if it is in the list: something else may lie there by then, such as a
/// thread's stack.
pub fn about_to_list() {
    LISTED.store(WRITTEN.load(Ordering::SeqCst), Ordering::SeqCst);
}

/// Whether some of `span` may have changed after the first `since` changes. The caller has claimed
/// its blocks.
pub fn changed(since: usize, span: Span) -> bool {
    let now = BEGUN.load(Ordering::SeqCst);
    if now != WRITTEN.load(Ordering::SeqCst) || now - since.min(now) >= CHANGES {
        return now != since;
    }
    (since..now).any(|i| {
        let c = &CHANGED[i % CHANGES];
        Span { start: c.start.load(Ordering::SeqCst), end: c.end.load(Ordering::SeqCst) }
            .outer(PAGE)
            .overlaps(span)
    })
}

/// Publishes buffers, or holds memory. `None`: nothing can be armed.
pub fn keep(buffers: &[Span]) -> Option<InFlight> {
    if state::mechanism() == Mechanism::None {
        return None;
    }
    let mut mine = InFlight::NOTHING;
    if buffers.len() <= EACH {
        for (slot, buffer) in mine.slots.iter_mut().zip(buffers) {
            match note(*buffer) {
                Some(at) => *slot = at,
                None => mine.quiet = true,
            }
        }
    } else {
        mine.quiet = true;
    }
    if mine.quiet {
        QUIET.fetch_add(1, Ordering::SeqCst);
    }
    fence(Ordering::SeqCst);
    Some(mine)
}

/// Nothing is armed until this is given up. [`InFlight::NOTHING`]: nothing can be armed.
pub fn keep_quiet() -> InFlight {
    if state::mechanism() == Mechanism::None {
        return InFlight::NOTHING;
    }
    begin_quiet();
    InFlight { quiet: true, ..InFlight::NOTHING }
}

/// Nobody is in the call any more.
pub fn give_up(done: InFlight) {
    for slot in done.slots.iter().filter_map(|s| TABLE.get(usize::from(*s))) {
        slot.start.store(0, Ordering::Release);
    }
    if done.quiet {
        QUIET.fetch_sub(1, Ordering::SeqCst);
    }
}

fn note(buffer: Span) -> Option<u16> {
    if buffer.is_empty() {
        return Some(NO_SLOT);
    }
    // Threads are distinguished by their stacks.
    let here = 0_u8;
    let first = ((&raw const here as usize >> 12) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    for i in 0..SLOTS {
        let at = (first as usize + i) % SLOTS;
        let slot = &TABLE[at];
        let free = slot.start.load(Ordering::Relaxed) == 0
            && slot.start.compare_exchange(0, TAKEN, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if free {
            slot.end.store(buffer.end, Ordering::SeqCst);
            slot.start.store(buffer.start.max(TAKEN + 1), Ordering::SeqCst);
            if USED.load(Ordering::Relaxed) <= at {
                USED.fetch_max(at + 1, Ordering::SeqCst);
            }
            return Some(at as u16);
        }
    }
    None
}

/// Calls `see` with the published parts of `span`. The caller has claimed its blocks. `false`:
/// nothing at all may be armed.
pub fn each_in(span: Span, mut see: impl FnMut(Span)) -> bool {
    fence(Ordering::SeqCst);
    for slot in TABLE.iter().take(USED.load(Ordering::SeqCst)) {
        let start = slot.start.load(Ordering::SeqCst);
        if start > TAKEN {
            let buffer = Span { start, end: slot.end.load(Ordering::SeqCst) };
            if buffer.overlaps(span) {
                see(buffer.cut(span));
            }
        }
    }
    QUIET.load(Ordering::SeqCst) == 0
}

/// Runs `f`, which claims blocks, asks [`each_in`], and takes pages away. Under the lock.
pub fn choosing<R>(f: impl FnOnce() -> R) -> R {
    CHOOSING.store(std::process::id(), Ordering::SeqCst);
    let result = f();
    CHOOSING.store(0, Ordering::SeqCst);
    result
}

fn begin_quiet() {
    QUIET.fetch_add(1, Ordering::SeqCst);
    // A thread that saw no `Quiet` a moment ago may not have taken all pages away yet. A bare child
    // only has the memory of such a thread.
    let (who, mut wait) = (CHOOSING.load(Ordering::SeqCst), call::Wait::default());
    while who != 0 && CHOOSING.load(Ordering::SeqCst) == who && who == std::process::id() {
        wait.a_moment();
    }
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
        QUIET.fetch_sub(1, Ordering::SeqCst);
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
            while QUIET.load(Ordering::SeqCst) == 0 {
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
        let slot = note(buffer).unwrap();
        let mut seen = Vec::new();
        each_in(Span::new(0x70_0000_2000, 0x10_000), |s| seen.push(s));
        assert_eq!(seen, [Span::new(0x70_0000_2000, 0x1000)]);
        let mut slots = [NO_SLOT; EACH];
        slots[0] = slot;
        retire(InFlight { slots, quiet: false });
        let mut seen = 0;
        each_in(buffer, |_| seen += 1);
        assert_eq!(seen, 0);
    }

    /// As a front end whose call does not come back, or does later.
    #[inline(never)]
    fn open(buffer: Span, meanwhile: fn()) -> InFlight {
        let here = 0_u8;
        let mut flight = InFlight::NOTHING;
        flight.slots[0] = note(buffer).unwrap();
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
