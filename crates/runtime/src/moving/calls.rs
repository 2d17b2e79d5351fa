//! The open calls of a thread: system calls that have published buffers and have not returned.
//!
//! A call may never return: a signal handler leaves it by `siglongjmp`, or its thread is cancelled.
//! This module finds such calls and gives their buffers up. A call from a signal handler or a
//! call-back lies deeper on the stack than the call that it interrupts. So a thread that runs as
//! high on the stack as the frame of an open call has left that call, if both are on one stack.
//! That is checked only if the addresses suggest it.

use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

use super::inflight::{self, InFlight};
use super::running_stack;

/// An open call: an address in the front end's frame, and its published buffers.
#[derive(Clone, Copy)]
struct Call {
    frame: usize,
    flight: InFlight,
}

const NONE: Call = Call { frame: 0, flight: InFlight::NOTHING };
/// Depth of nested calls. Deeper ones are not known here, and stay published if they are left.
const DEEP: usize = 8;

/// A handler may come between any two instructions, and may not return. So an entry that is counted
/// and not yet written means nothing, and an entry is forgotten before its buffers are given up.
struct Calls {
    count: Cell<usize>,
    open: [Cell<Call>; DEEP],
}

thread_local! {
    static CALLS: Calls = const { Calls { count: Cell::new(0), open: [const { Cell::new(NONE) }; DEEP] } };
}

impl Calls {
    fn push(&self, call: Call) {
        let n = self.count.get();
        if let Some(place) = self.open.get(n) {
            self.count.set(n + 1);
            compiler_fence(Ordering::SeqCst);
            place.set(call);
        }
    }

    /// The innermost call.
    fn top(&self) -> Option<Call> {
        Some(self.open[self.count.get().checked_sub(1)?].get())
    }

    /// Forgets the call at `n`, and trailing empty entries.
    fn forget(&self, n: usize) {
        self.open[n].set(NONE);
        compiler_fence(Ordering::SeqCst);
        while self.top().is_some_and(|call| call.frame == 0) {
            self.count.set(self.count.get() - 1);
        }
    }

    /// Gives the innermost call up if `is_left` says that the thread has left it.
    fn give_up(&self, is_left: impl Fn(Call) -> bool) -> bool {
        let Some(call) = self.top().filter(|call| call.frame == 0 || is_left(*call)) else { return false };
        self.forget(self.count.get() - 1);
        inflight::give_up(call.flight);
        true
    }
}

/// A front end has published buffers. `frame` is an address in its frame. At most once in a frame.
pub fn enter(frame: usize, flight: InFlight) {
    left(frame);
    CALLS.with(|calls| calls.push(Call { frame, flight }));
}

/// The call with these buffers returns.
pub fn leave(flight: InFlight) {
    CALLS.with(|calls| {
        let mine = (0..calls.count.get()).rev().find(|n| calls.open[*n].get().flight == flight);
        mine.into_iter().for_each(|n| calls.forget(n));
    });
}

/// The calling thread has come to a frame with this address: gives up deeper calls that it has
/// left.
#[inline]
pub fn left(frame: usize) {
    CALLS.with(|calls| {
        let is_left = |call: Call| call.frame <= frame && running_stack::on_first_stack(call.frame, frame);
        while calls.count.get() > 0 && calls.give_up(is_left) {}
    });
}

/// The calling thread ends.
pub fn end() {
    CALLS.with(|calls| while calls.give_up(|_| true) {});
}
