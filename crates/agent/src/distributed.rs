//! Which arrays the program has distributed, and which of them it has freed since.
//!
//! A handle is a value in the program's memory. With this list the library recognises arrays that
//! overlap, and handles whose array is gone although its memory is still mapped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use homenode_runtime::placing::{Failure, Result, Span};

/// Arrays that are kept; of more the oldest is forgotten.
const MOST: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Array {
    memory: Span,
    freed: bool,
}

static ARRAYS: Mutex<Vec<Array>> = Mutex::new(Vec::new());
/// How many there are, so that `free` costs one look where there is none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all() -> MutexGuard<'static, Vec<Array>> {
    ARRAYS.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn overlap(a: Span, b: Span) -> bool {
    a.start < b.end && b.start < a.end
}

/// Whether two arrays are the same one. Another distribution of an array may have other rows.
const fn same(a: Span, b: Span) -> bool {
    a.start == b.start
}

/// Refuses an array that overlaps another one.
///
/// # Errors
/// It does, and which one it is.
pub fn check(memory: Span, what: &str) -> Result<()> {
    let other =
        all().iter().copied().find(|a| !a.freed && overlap(a.memory, memory) && !same(a.memory, memory));
    match other {
        None => Ok(()),
        Some(Array { memory: other, .. }) => Err(Failure::invalid(format!(
            "{what}: the array at {:#x} (up to {:#x}) overlaps the one at {:#x} (up to {:#x}), which is distributed \
             already: distribute them as one array",
            memory.start, memory.end, other.start, other.end
        ))),
    }
}

/// The array is distributed.
pub fn enter(memory: Span) {
    let mut all = all();
    all.retain(|a| !overlap(a.memory, memory));
    if all.len() == MOST {
        all.remove(0);
    }
    all.push(Array { memory, freed: false });
    COUNT.store(all.len(), Ordering::Relaxed);
}

/// Refuses an array that was freed after it was distributed.
///
/// # Errors
/// It was.
pub fn check_alive(address: usize, what: &str) -> Result<()> {
    let freed = all().iter().any(|a| a.freed && a.memory.start == address);
    if freed {
        return Err(Failure::invalid(format!(
            "{what}: the array at {address:#x} was freed after it was distributed: distribute the new one"
        )));
    }
    Ok(())
}

/// Memory goes back to the allocator or the system. Waits for nobody: an allocator may hold its
/// locks.
#[inline]
pub fn gone(memory: Span) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        mark(memory);
    }
}

#[cold]
fn mark(memory: Span) {
    let Ok(mut all) = ARRAYS.try_lock() else { return };
    all.iter_mut().filter(|a| overlap(a.memory, memory)).for_each(|a| a.freed = true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_overlap_are_told_and_freed_ones_are_not_in_the_way() {
        let at = |start: usize, bytes: usize| Span::new(0x10_0000_0000 + start, bytes);
        check(at(0, 100_000), "hn_distribute").unwrap();
        enter(at(0, 100_000));
        // The same array anew, and its neighbour.
        check(at(0, 50_000), "hn_distribute").unwrap();
        check(at(100_000, 10), "hn_distribute").unwrap();
        let error = check(at(99_999, 10), "hn_distribute").unwrap_err();
        assert!(error.text.contains("overlaps the one at 0x1000000000"), "{}", error.text);
        check_alive(0x10_0000_0000, "hn_verify_distribution").unwrap();
        gone(at(0, 200_000));
        let error = check_alive(0x10_0000_0000, "hn_verify_distribution").unwrap_err();
        assert!(error.text.contains("was freed"), "{}", error.text);
        check(at(50_000, 10), "hn_distribute").unwrap();
        enter(at(0, 1000));
        check_alive(0x10_0000_0000, "hn_verify_distribution").unwrap();
        all().clear();
        COUNT.store(0, Ordering::Relaxed);
    }
}
