//! Front ends publish what the kernel is about to use, and hold what is about to change.

use homenode_sys::Span;

use super::inflight::{self, InFlight};
use super::{calls, disarm, events, fault};

/// The kernel is about to read or write these buffers. Brings armed pages in them over first;
/// nothing in them is armed until [`retire`]. Costs some 20 ns if nothing is armed. The caller is a
/// front end with the list in its frame, and has not published anything else there.
pub fn publish(buffers: &[Span]) -> InFlight {
    let mine = inflight::keep(buffers);
    if let Some(mine) = mine {
        if mine != InFlight::NOTHING {
            calls::enter(buffers.as_ptr() as usize, mine);
        }
        // A raw system call of the program may have just moved this memory, and its contents may
        // not be in place yet.
        events::wait();
        buffers.iter().for_each(|b| fault::bring(*b));
    }
    mine.unwrap_or(InFlight::NOTHING)
}

/// This memory is about to change. Disarms it, with untouched pages in place; it is not armed until
/// [`retire`].
pub fn hold(memory: Span) -> InFlight {
    let mine = inflight::keep(&[memory]);
    match mine {
        None | Some(InFlight::NOTHING) => InFlight::NOTHING,
        Some(mine) => {
            inflight::remember(memory);
            disarm::disarm(memory);
            mine.of_change()
        }
    }
}

/// Nothing is armed until [`retire`]; armed memory stays armed. As [`publish`], once in a frame.
#[inline(always)]
pub fn quiet() -> InFlight {
    let here = 0_u8;
    quiet_in(&raw const here as usize)
}

/// As [`quiet`], in the frame at this address.
pub fn quiet_in(frame: usize) -> InFlight {
    let mine = inflight::keep_quiet();
    if mine != InFlight::NOTHING {
        calls::enter(frame, mine);
    }
    mine
}

/// Gives up the buffers of calls that the calling thread has left by a jump. For front ends that
/// publish nothing.
#[inline(always)]
pub fn give_up_left() {
    let here = 0_u8;
    calls::left(&raw const here as usize);
}

/// The call has returned.
pub fn retire(done: InFlight) {
    if done != InFlight::NOTHING {
        calls::leave(done);
        inflight::give_up(done);
    }
}
