//! Which calls the calling thread is in with something published, so that what it has left by a
//! jump (`siglongjmp` out of a signal's handler) or by its end (cancellation) does not stay
//! published for ever.
//!
//! A call from a signal's handler or from a call-back lies deeper on the stack than the one that it
//! interrupts. So who is as high on it as the frame of an open call has left that call; if both are
//! on one stack, which is only asked where it looks so.

use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

use super::handler_stack;
use super::inflight::{self, InFlight};

/// One that is open: an address in the front end's frame, and what it has published.
#[derive(Clone, Copy)]
struct Call {
    frame: usize,
    flight: InFlight,
}

const NONE: Call = Call { frame: 0, flight: InFlight::NOTHING };
/// Calls within calls. One that is deeper is not known here, and stays published if it is left.
const DEEP: usize = 8;

/// A handler may come between any two instructions, and may not return: what is counted and not yet
/// written is nothing, and what is given up is forgotten before.
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

    /// The innermost.
    fn top(&self) -> Option<Call> {
        Some(self.open[self.count.get().checked_sub(1)?].get())
    }

    /// Forgets the call at `n`, and what it leaves at the end.
    fn forget(&self, n: usize) {
        self.open[n].set(NONE);
        compiler_fence(Ordering::SeqCst);
        while self.top().is_some_and(|call| call.frame == 0) {
            self.count.set(self.count.get() - 1);
        }
    }

    /// Gives the innermost up if it is as `is_left` says.
    fn give_up(&self, is_left: impl Fn(Call) -> bool) -> bool {
        let Some(call) = self.top().filter(|call| call.frame == 0 || is_left(*call)) else { return false };
        self.forget(self.count.get() - 1);
        inflight::give_up(call.flight);
        true
    }
}

/// A front end has published something; `frame` is an address in its frame. Not twice in one frame.
pub fn enter(frame: usize, flight: InFlight) {
    left(frame);
    CALLS.with(|calls| calls.push(Call { frame, flight }));
}

/// The call that has published this returns.
pub fn leave(flight: InFlight) {
    CALLS.with(|calls| {
        let mine = (0..calls.count.get()).rev().find(|n| calls.open[*n].get().flight == flight);
        mine.into_iter().for_each(|n| calls.forget(n));
    });
}

/// The calling thread has come to a frame with this address: what calls have left that were deeper
/// is given up.
#[inline]
pub fn left(frame: usize) {
    CALLS.with(|calls| {
        let is_left = |call: Call| call.frame <= frame && handler_stack::on_first_stack(call.frame, frame);
        while calls.count.get() > 0 && calls.give_up(is_left) {}
    });
}

/// The calling thread ends.
pub fn end() {
    CALLS.with(|calls| while calls.give_up(|_| true) {});
}
