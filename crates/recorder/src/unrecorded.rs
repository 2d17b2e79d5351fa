//! The filters of threads that are not recorded. Nobody reads anything out of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The filter of threads without a recorder. It is empty, so every access takes the slow path,
/// which makes the recorder or returns at once.
pub static EMPTY: AtomicU64 = AtomicU64::new(0);

/// Lines of the filter of a thread that is never recorded.
pub(crate) const LINES: usize = 512;
/// Such filters: more threads than these share them.
const FILTERS: usize = 64;

/// Filters of threads that are never recorded. They only spare most accesses the slow path: threads
/// that share one cost each other time, no more.
static UNRECORDED: [[AtomicU64; LINES]; FILTERS] = [const { [const { AtomicU64::new(0) }; LINES] }; FILTERS];
/// Threads that were given such a filter.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// Whether the table is that of a thread that is never recorded.
pub(crate) fn is_table(table: *const u64) -> bool {
    UNRECORDED.as_ptr_range().contains(&table.cast())
}

/// The table for one more thread that is never recorded.
pub(crate) fn next_table() -> *mut u64 {
    UNRECORDED[GIVEN.fetch_add(1, Ordering::Relaxed) % FILTERS][0].as_ptr()
}
