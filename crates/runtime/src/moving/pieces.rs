//! The spans that are registered or protected, with what must be restored. Under the lock.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_sys::memory::{Protection, map};
use homenode_sys::numa::MemoryPolicy;
use homenode_sys::{Result, Span};

use super::lock::Locked;
use super::table;

/// A stretch of one mapping within one GiB.
#[derive(Clone, Copy)]
pub struct Piece {
    /// Where.
    pub span: Span,
    /// The memory's policy before; `None` where it could not be asked for or was not changed.
    pub policy: Option<MemoryPolicy>,
}

/// Most pieces at a time. Nothing more is armed beyond that.
const MOST: usize = 1 << 14;

struct Pieces {
    list: UnsafeCell<*mut Piece>,
    count: AtomicUsize,
}

// SAFETY: the list is only used under the lock (`Locked` is asked for).
unsafe impl Sync for Pieces {}

static PIECES: Pieces = Pieces { list: UnsafeCell::new(std::ptr::null_mut()), count: AtomicUsize::new(0) };

/// Whether there is any piece. Works without the lock.
#[inline]
pub fn any() -> bool {
    PIECES.count.load(Ordering::SeqCst) != 0
}

/// The list.
///
/// # Errors
/// No memory for it.
fn list(_: &Locked) -> Result<*mut Piece> {
    // SAFETY: under the lock.
    let list = unsafe { &mut *PIECES.list.get() };
    if list.is_null() {
        let memory = map(MOST * size_of::<Piece>(), Protection::ReadWrite)?;
        table::note_own(memory);
        *list = memory.start as *mut Piece;
    }
    Ok(*list)
}

/// Adds a piece. `false` if there is no room.
pub fn add(lock: &Locked, piece: Piece) -> bool {
    let count = PIECES.count.load(Ordering::Relaxed);
    let Ok(list) = list(lock) else { return false };
    if count == MOST {
        return false;
    }
    // SAFETY: within the list, under the lock.
    unsafe { list.add(count).write(piece) };
    PIECES.count.store(count + 1, Ordering::SeqCst);
    true
}

/// Removes and returns a piece that overlaps `span`, if there is one.
pub fn take(lock: &Locked, span: Span) -> Option<Piece> {
    let list = list(lock).ok()?;
    let count = PIECES.count.load(Ordering::Relaxed);
    // SAFETY: within the list, under the lock.
    let at = (0..count).find(|i| unsafe { (*list.add(*i)).span.overlaps(span) })?;
    // SAFETY: the same.
    let piece = unsafe { list.add(at).replace(*list.add(count - 1)) };
    PIECES.count.store(count - 1, Ordering::SeqCst);
    Some(piece)
}

/// Whether one piece covers all of `span`.
pub fn covers(lock: &Locked, span: Span) -> bool {
    (0..).map_while(|i| at(lock, i)).any(|p| p.span.cut(span) == span)
}

/// The piece at an index of the list, if there are that many.
pub fn at(lock: &Locked, place: usize) -> Option<Piece> {
    let list = list(lock).ok()?;
    // SAFETY: within the list, under the lock.
    (place < PIECES.count.load(Ordering::Relaxed)).then(|| unsafe { *list.add(place) })
}

/// In a forked child: there are no pieces.
pub fn forget() {
    PIECES.count.store(0, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_taken_out() {
        let Some(lock) = Locked::new() else { panic!("the lock is free") };
        let piece = |start: usize| Piece { span: Span::new(start, 0x1000), policy: None };
        for start in [0x1000, 0x4000, 0x8000] {
            assert!(add(&lock, piece(start)));
        }
        assert_eq!(take(&lock, Span::new(0x4800, 1)).map(|p| p.span), Some(Span::new(0x4000, 0x1000)));
        assert!(take(&lock, Span::new(0x4000, 0x1000)).is_none());
        assert_eq!(take(&lock, Span::new(0, usize::MAX)).map(|p| p.span.start), Some(0x1000));
        assert_eq!(take(&lock, Span::new(0, usize::MAX)).map(|p| p.span.start), Some(0x8000));
        assert!(at(&lock, 0).is_none() && !any());
    }
}
