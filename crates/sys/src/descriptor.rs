//! homenode's own descriptors, in a process whose program may close or replace all descriptors that
//! it does not know.
//!
//! They get high numbers, so that the program's descriptors have the same numbers as without
//! homenode. Front ends ask [`is_own`] and leave them open. If the program closed a userfaultfd,
//! armed memory would be lost. If it put another file under the number, homenode would read the
//! program's data.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::call::{self, raw};

/// Most own descriptors at a time. Further ones are treated as the program's.
const MOST: usize = 1024;
static OWN: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];
const NONE: i32 = -1;
/// Marks a descriptor that is open for a moment only.
const PASSING: i32 = 1 << 30;
/// One past the highest place ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// No own descriptor has a lower number.
static LOWEST: AtomicI32 = AtomicI32::new(i32::MAX);

/// Notes that `fd`, just made, is homenode's own for a moment.
pub fn note(fd: i32) {
    add(fd | PASSING);
}

fn add(noted: i32) {
    let free =
        |place: &AtomicI32| place.compare_exchange(NONE, noted, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    if let Some(at) = OWN.iter().position(free) {
        USED.fetch_max(at + 1, Ordering::SeqCst);
        LOWEST.fetch_min(noted & !PASSING, Ordering::SeqCst);
    }
}

/// Notes that `fd`, just made, is homenode's own and stays open. Moves it to a high number if there
/// is room. Returns its number.
pub fn keep(fd: i32) -> i32 {
    /// Half of the usual limit. The kernel's table then becomes no longer than for many programs.
    const HIGHEST: u64 = 512;
    let from = call::limit(libc::RLIMIT_NOFILE).map_or(HIGHEST, |limit| (limit / 2).min(HIGHEST)) as usize;
    // SAFETY: duplicates a descriptor of ours.
    let high = unsafe { raw(libc::SYS_fcntl, [fd as usize, libc::F_DUPFD_CLOEXEC as usize, from, 0, 0, 0]) };
    let kept = if high < 0 { fd } else { high as i32 };
    add(kept);
    if kept != fd {
        close(fd);
    }
    kept
}

/// Closes a descriptor of homenode's own.
pub fn close(fd: i32) {
    for place in &OWN[..USED.load(Ordering::SeqCst)] {
        for noted in [fd, fd | PASSING] {
            let _ = place.compare_exchange(noted, NONE, Ordering::SeqCst, Ordering::Relaxed);
        }
    }
    // SAFETY: a number.
    unsafe { raw(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// In a forked child, which may close all of them.
pub fn forget_all() {
    OWN.iter().for_each(|place| place.store(NONE, Ordering::SeqCst));
}

/// Whether it is one of homenode's own.
#[inline]
pub fn is_own(fd: i32) -> bool {
    fd >= LOWEST.load(Ordering::Relaxed) && next_own(fd) == Some(fd)
}

/// The first own descriptor from `fd` on.
pub fn next_own(fd: i32) -> Option<i32> {
    noted().map(|noted| noted & !PASSING).filter(|own| *own >= fd).min()
}

/// Whether the descriptor stays homenode's. Waits for a descriptor that is about to be closed.
pub fn stays_own(fd: i32) -> bool {
    /// The caller may be a handler that interrupts the thread that should close it.
    const PATIENCE: u64 = 1_000_000_000;
    if !is_own(fd) {
        return false;
    }
    let deadline = call::now().0 + PATIENCE;
    while noted().any(|noted| noted == fd | PASSING) && call::now().0 < deadline {
        call::yield_now();
    }
    is_own(fd)
}

fn noted() -> impl Iterator<Item = i32> {
    let places = OWN[..USED.load(Ordering::SeqCst)].iter();
    places.map(|place| place.load(Ordering::SeqCst)).filter(|noted| *noted != NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_known_until_it_is_closed() {
        let made = || {
            // SAFETY: plain numbers.
            let fd = unsafe { raw(libc::SYS_eventfd2, [0; 6]) } as i32;
            assert!(fd >= 0);
            fd
        };
        let (low, kept) = (made(), keep(made()));
        assert!(kept > low + 64, "{kept} is among the program's");
        assert!(is_own(kept) && !is_own(low) && !is_own(-1));
        assert!(next_own(kept) == Some(kept) && next_own(0).is_some_and(|fd| fd <= kept));
        close(kept);
        close(low);
        // Another test may get the number at once, so once in a hundred tries must do.
        let is_forgotten = |_| {
            let kept = keep(made());
            close(kept);
            !is_own(kept)
        };
        assert!((0..100).any(is_forgotten));
    }
}
