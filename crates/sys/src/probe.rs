//! Whether performance events can be opened. Tries it.

use crate::call::raw;
use crate::error::check;
use crate::{Result, Span};

/// An event that every PMU or kernel has (include/uapi/linux/perf_event.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// `PERF_COUNT_HW_CPU_CYCLES`: there is a PMU.
    Cycles,
    /// `PERF_COUNT_SW_PAGE_FAULTS`: kernel alone.
    PageFaults,
}

/// `struct perf_event_attr` of Linux 5.13 (`PERF_ATTR_SIZE_VER7`), as words.
const WORDS: usize = 16;
/// `exclude_kernel` and `exclude_hv`, which ordinary users must ask for; `disabled`.
const USER_ONLY: u64 = 1 << 5 | 1 << 6 | 1;
const CLOEXEC: usize = 8;

/// Opens an event of the calling thread, and closes it.
///
/// # Errors
/// `EACCES` or `EPERM` where `perf_event_paranoid` or a container forbids it, `ENOENT` or
/// `EOPNOTSUPP` where there is no such event.
pub fn perf(what: Counted) -> Result<()> {
    let (kind, config) = match what {
        Counted::Cycles => (0, 0),
        Counted::PageFaults => (1, 2),
    };
    let mut attributes = [0_u64; WORDS];
    attributes[0] = kind | (size_of_val(&attributes) as u64) << 32;
    attributes[1] = config;
    attributes[5] = USER_ONLY;
    let at = attributes.as_ptr() as usize;
    // SAFETY: the structure has the length that it says; this thread, any CPU, no group.
    let fd = unsafe { raw(libc::SYS_perf_event_open, [at, 0, usize::MAX, usize::MAX, CLOEXEC, 0]) };
    check("perf_event_open", Span::EMPTY, fd).map(|fd| crate::descriptor::close(fd as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_or_says_why_not() {
        for what in [Counted::PageFaults, Counted::Cycles] {
            if let Err(e) = perf(what) {
                assert!(e.to_string().starts_with("perf_event_open: "));
                println!("skipped: {e}");
            }
        }
    }
}
