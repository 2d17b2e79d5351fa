//! The data that a check of the filter needs, in one cache line.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, compiler_fence};

use crate::recorder::Recorder;

/// A thread's fields of the fast path, at fixed offsets. Rewritten code knows the offsets, too
/// (`homenode_compilers::rewrite`).
///
/// The filter is two tables of the same length: the line last used at each place, and that line
/// again if it was written. So an access asks one table one question: is this entry its line? An
/// empty table is all zeros, because line 0 holds no data of any program.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct FastPath {
    /// Table of used lines.
    pub used: *mut u64,
    /// Table of written lines: at each place 0, or the entry of `used`.
    pub written: *mut u64,
    /// Number of executed accesses.
    pub clock: u64,
    /// Number of the filter's lines minus one.
    pub mask: u64,
    /// The thread's recorder, or null.
    pub recorder: *mut Recorder,
    /// Whether nothing is recorded for this thread any more.
    pub closed: bool,
    /// Whether the thread is being set up. Events of the set-up itself are not recorded.
    pub starting: bool,
    /// The number that the thread's creator gave it.
    pub id: u64,
}

/// log2 of the bytes of a line.
pub const LINE_SHIFT: u32 = homenode_model::LineNo::SHIFT;
const _: () = assert!(size_of::<FastPath>() == 64);

/// The filter of threads without a recorder. It is empty, so every access takes the slow path,
/// which makes the recorder or returns at once.
pub static EMPTY: AtomicU64 = AtomicU64::new(0);

/// Lines of the filter of a thread that is never recorded.
const UNRECORDED_LINES: usize = 512;
/// Such filters: more threads than these share them.
const UNRECORDED_FILTERS: usize = 64;

/// Filters of threads that are never recorded. They only spare most accesses the slow path, and
/// nobody reads anything out of them: threads that share one cost each other time, no more.
static UNRECORDED: [[AtomicU64; UNRECORDED_LINES]; UNRECORDED_FILTERS] =
    [const { [const { AtomicU64::new(0) }; UNRECORDED_LINES] }; UNRECORDED_FILTERS];
/// Threads that were given such a filter.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

impl FastPath {
    /// The block of a thread that is not recorded.
    pub const fn idle() -> Self {
        Self {
            used: EMPTY.as_ptr(),
            written: EMPTY.as_ptr(),
            clock: 0,
            mask: 0,
            recorder: null_mut(),
            closed: false,
            starting: false,
            id: 0,
        }
    }

    /// Records nothing for this thread any more. Its accesses fill a filter of their own, so that
    /// most of them stay on the fast path.
    pub fn forget(&mut self) {
        self.recorder = null_mut();
        if UNRECORDED.as_ptr_range().contains(&self.used.cast_const().cast()) {
            return;
        }
        let filter = &UNRECORDED[GIVEN.fetch_add(1, Ordering::Relaxed) % UNRECORDED_FILTERS];
        self.closed = true;
        // A signal handler of this thread never finds a table with the mask of a larger one.
        self.mask = 0;
        compiler_fence(Ordering::SeqCst);
        self.used = filter[0].as_ptr();
        self.written = filter[0].as_ptr();
        compiler_fence(Ordering::SeqCst);
        self.mask = UNRECORDED_LINES as u64 - 1;
    }

    /// Records all the bytes `address .. address + bytes`, one access a line. The clock counts 64
    /// bytes as one access, however they lie: stacks are aligned to 16 bytes, so the lines that
    /// they share with other data differ from run to run.
    ///
    /// # Safety
    /// `block` is the calling thread's, and has a recorder.
    pub unsafe fn range(block: *mut Self, address: u64, bytes: u64, write: bool, pc: u64) {
        if bytes == 0 {
            return;
        }
        let (first, last) = (address >> LINE_SHIFT, (address + bytes - 1) >> LINE_SHIFT);
        let ticks = bytes.div_ceil(1 << LINE_SHIFT);
        for line in first..=last {
            // SAFETY: the caller's promise.
            unsafe {
                (*block).clock += u64::from(line - first < ticks);
                if !(*block).seen(line, write) && !(*block).recorder.is_null() {
                    (*(*block).recorder).access(line, write, pc);
                }
            }
        }
    }

    /// Whether the filter has seen this access.
    #[inline(always)]
    pub fn seen(&self, line: u64, write: bool) -> bool {
        let table = if write { self.written } else { self.used };
        // SAFETY: `mask` is below the tables' length.
        unsafe { *table.add((line & self.mask) as usize) == line }
    }
}
