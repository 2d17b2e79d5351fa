//! What the program does to its memory and to itself. Front ends call these functions before it
//! happens.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use homenode_sys::{PAGE, Span, call};

use super::inflight::{InFlight, Quiet};
use super::lock::Locked;
use super::mechanism::Mechanism;
use super::table::{self, Block};
use super::{disarm, events, fault, pieces, publish, stacks, state};

/// The program is about to protect, advise or lock this memory. Disarms it. The memory is not armed
/// until the result is passed to [`super::retire`], after the change.
pub fn before_change(span: Span) -> InFlight {
    publish::hold(span)
}

/// The program is about to free, unmap or remap this memory. As [`before_change`], and forgets what
/// was known of it.
pub fn before_free(span: Span) -> InFlight {
    let held = publish::hold(span);
    fresh(span);
    let noted = state::pretended() != 0 || !state::KERNEL_MOVES.load(Ordering::Relaxed);
    if state::mechanism() != Mechanism::None && noted {
        table::forget_homes(span.inner(PAGE));
    }
    held
}

/// This memory is a new allocation: forgets what was known of it. Its former owner is done with it,
/// because the allocator has handed it out again.
pub fn fresh(span: Span) {
    if state::mechanism() != Mechanism::None {
        table::forget_split(span);
        for block in Block::all(span) {
            if block.word().excluded() != 0 {
                block.include(block.pages_in(span));
            }
        }
    }
}

/// Never arms these pages (again) while the memory lives: they hold a lock, a stack, or a buffer of
/// asynchronous I/O.
pub fn exclude(span: Span) {
    if state::mechanism() == Mechanism::None || span.is_empty() {
        return;
    }
    for unit in span.outer(PAGE).pieces(table::BLOCK) {
        let Ok(block) = Block::make(unit.start) else { return };
        let pages = block.pages_touched(unit);
        if block.word().excluded() & pages != pages {
            block.exclude(pages);
        }
        // Even if the pages were excluded before: the thread that did it may not have come to the
        // line below.
        fault::bring(unit);
    }
}

/// The program is about to start another (`exec`, `posix_spawn`, `system`). Disarms everything.
/// Nothing is armed until the result is passed to [`super::retire`].
#[inline(always)]
pub fn before_process() -> InFlight {
    let quiet = publish::quiet();
    disarm_for_process();
    quiet
}

/// A part of [`before_process`].
pub fn disarm_for_process() {
    state::in_front_end(disarm::disarm_all);
}

struct Fork {
    held: UnsafeCell<Option<(Quiet, Locked)>>,
    by: AtomicU32,
}

// SAFETY: `held` is only used by the thread whose number is in `by`.
unsafe impl Sync for Fork {}

static FORK: Fork = Fork { held: UnsafeCell::new(None), by: AtomicU32::new(0) };

extern "C" fn before_fork() {
    let quiet = Quiet::new();
    if let Some(lock) = Locked::new() {
        // The child gets the memory as it is now, so everything must be in place.
        if pieces::any() {
            state::in_front_end(|| disarm::everything(&lock));
        }
        FORK.by.store(call::thread_id() as u32, Ordering::SeqCst);
        // SAFETY: only the owner of the lock comes here.
        unsafe { *FORK.held.get() = Some((quiet, lock)) };
    }
}

fn after_fork() {
    // SAFETY: only the thread that forked, or its copy in the child, comes here with something
    // held.
    let held = unsafe { (*FORK.held.get()).take() };
    drop(held);
}

extern "C" fn in_parent() {
    if FORK.by.load(Ordering::SeqCst) == call::thread_id() as u32 {
        after_fork();
    }
}

/// In the child: the mover is off, and the memory is complete.
extern "C" fn in_child() {
    state::turn_off();
    state::forget_uffd();
    homenode_sys::descriptor::forget_all();
    homenode_sys::own_threads::forget_all();
    pieces::forget();
    stacks::in_child();
    events::in_child();
    after_fork();
    Locked::break_in_child();
}

/// The calling thread is about to make a child with a copy of the memory by a call without fork
/// handlers (`_Fork`, `clone`). Does what the fork handler does. Call one of the next two functions
/// afterwards.
pub fn before_bare_fork() {
    if state::chosen() != Mechanism::None {
        before_fork();
    }
}

/// In the parent, whether there is a child or not.
pub fn bare_fork_in_parent() {
    in_parent();
}

/// In the child.
pub fn bare_fork_in_child() {
    if state::chosen() != Mechanism::None {
        in_child();
    }
}

/// Installs the fork handlers, which the C library calls at every fork.
pub fn watch_forks() -> bool {
    static DONE: AtomicBool = AtomicBool::new(false);
    // SAFETY: functions of this library, which is never unloaded.
    DONE.swap(true, Ordering::SeqCst)
        || unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) } == 0
}
