//! The protocol and nothing else: a handler that copies what was touched from where it was moved
//! to, and frees it there. What next touch costs on a machine before homenode adds anything.

use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_sys::memory::{Protection, discard, map_aligned, move_leaving_mapping, prefer_huge, unmap};
use homenode_sys::signal::{Action, Set, set_action};
use homenode_sys::uffd::{Features, Uffd, WatchedFaults};
use homenode_sys::{HUGE, PAGE, Span};

use crate::{BYTES, ROUNDS, median, touch};

static UFFD: std::sync::OnceLock<Uffd> = std::sync::OnceLock::new();
/// Bytes that come with a touch, and how far from there they are.
static AROUND: AtomicUsize = AtomicUsize::new(PAGE);
static AWAY: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn on_fault(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let around = AROUND.load(Ordering::Relaxed);
    // SAFETY: the kernel's information; the memory there is known to `next_touch` alone, which
    // waits.
    unsafe {
        let touched = Span::new((*info).si_addr() as usize & !(around - 1), around);
        let from = touched.start.wrapping_add(AWAY.load(Ordering::Relaxed));
        let copied = UFFD.get().map(|u| u.copy(touched, from).done);
        if copied != Some(around) || discard(Span::new(from, around)).is_err() {
            std::process::abort();
        }
    }
}

fn fresh(access: Protection) -> Span {
    let m = map_aligned(BYTES / 4, HUGE, access).expect("memory");
    prefer_huge(m, false).expect("small pages");
    m
}

/// Nanoseconds a page of first touch and of next touch after it, in order.
fn once(around: usize) -> (f64, f64) {
    let (m, shadow) = (fresh(Protection::ReadWrite), fresh(Protection::None));
    AROUND.store(around, Ordering::Relaxed);
    AWAY.store(shadow.start.wrapping_sub(m.start), Ordering::Relaxed);
    let first = touch(m, PAGE);
    let uffd = UFFD.get().expect("opened");
    // SAFETY: memory of this function's own; the handler is there.
    unsafe {
        uffd.register(m, WatchedFaults::Missing).expect("register");
        move_leaving_mapping(m, shadow.start).expect("move");
        uffd.unregister(shadow).expect("unregister");
    }
    let next = touch(m, PAGE);
    for known in [m, shadow] {
        // SAFETY: as above.
        unsafe { unmap(known).expect("unmap") };
    }
    (first, next)
}

/// In a process of its own: the mover has these signals otherwise.
pub fn run() {
    let uffd = Uffd::open(Features::SIGBUS).expect("user-space page faults");
    UFFD.set(uffd).expect("once");
    // SAFETY: it uses nothing but what is set before the first fault.
    unsafe { set_action(libc::SIGBUS, &Action::new(on_fault, 0, Set::NONE)).expect("a handler") };
    for (name, around) in [("sweep", 64 << 10), ("single-page", PAGE)] {
        let ratios = (0..ROUNDS).map(|_| once(around)).map(|(first, next)| next / first).collect();
        println!("bench: next-touch/bare-{name} {:.3} x", median(ratios));
    }
}
