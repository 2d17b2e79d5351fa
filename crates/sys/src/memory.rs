//! Mappings: making, moving, protecting and advising them.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::call::raw;
use crate::error::check;
use crate::{PAGE, Result, Span};

/// `MADV_COLLAPSE` (include/uapi/asm-generic/mman-common.h, Linux 6.1).
const MADV_COLLAPSE: usize = 25;
/// `MADV_POPULATE_WRITE` (the same, Linux 5.14).
const MADV_POPULATE_WRITE: usize = 23;
/// `MREMAP_DONTUNMAP` (include/uapi/linux/mman.h, Linux 5.7).
const MREMAP_DONTUNMAP: i32 = 4;

/// The accesses that a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    None,
    /// Loads.
    Read,
    /// Loads and stores.
    ReadWrite,
}

impl Protection {
    const fn bits(self) -> usize {
        (match self {
            Self::None => libc::PROT_NONE,
            Self::Read => libc::PROT_READ,
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        }) as usize
    }
}

/// New private anonymous memory, zero, not accounted for until it is touched.
///
/// # Errors
/// No address space, or over the process's limit.
pub fn map(bytes: usize, access: Protection) -> Result<Span> {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    // SAFETY: a new mapping where the kernel likes; no existing memory changes.
    let p = unsafe { raw(libc::SYS_mmap, [0, bytes, access.bits(), flags, usize::MAX, 0]) };
    check("mmap", Span::new(0, bytes), p).map(|p| Span::new(p, bytes))
}

/// As [`map`], but starting at a multiple of `align` (a power of two, at least a page).
///
/// # Errors
/// As [`map`].
pub fn map_aligned(bytes: usize, align: usize, access: Protection) -> Result<Span> {
    let all = map(bytes.saturating_add(align), access)?;
    let start = all.start.next_multiple_of(align);
    let wanted = Span::new(start, bytes);
    // SAFETY: both ends are parts of the mapping just made, which nobody else knows.
    unsafe {
        unmap(Span { start: all.start, end: start })?;
        unmap(Span { start: wanted.end, end: all.end })?;
    }
    Ok(wanted)
}

/// Unmaps.
///
/// # Safety
/// Nobody uses the memory any more.
///
/// # Errors
/// The kernel's answer.
pub unsafe fn unmap(span: Span) -> Result<()> {
    if span.is_empty() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let r = unsafe { raw(libc::SYS_munmap, [span.start, span.len(), 0, 0, 0, 0]) };
    check("munmap", span, r).map(drop)
}

/// Moves the pages of `from` (one mapping) to address `to`, and replaces the mappings there. The
/// mapping of `from` stays, without its pages.
///
/// # Safety
/// Users of `from` can handle that its pages are gone; nobody uses the memory at `to`.
///
/// # Errors
/// The kernel's answer. Nothing has changed then, except that `to` may be unmapped.
pub unsafe fn move_leaving_mapping(from: Span, to: usize) -> Result<()> {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | MREMAP_DONTUNMAP) as usize;
    // SAFETY: the caller's promise.
    let r = unsafe { raw(libc::SYS_mremap, [from.start, from.len(), from.len(), flags, to, 0]) };
    check("mremap(MREMAP_DONTUNMAP)", from, r).map(drop)
}

/// Whether the whole span lies in one mapping, so that one `mremap` can move it. Until Linux 6.17,
/// a move of several mappings fails after the mappings at its target are gone (mm/mremap.c,
/// `mremap_to`).
///
/// The trick is to ask for a length that cannot exist: the kernel checks for one mapping before it
/// checks the length (`vma_to_resize`).
pub fn is_one_mapping(span: Span) -> bool {
    // A longer mapping would meet the stack or the end of the address space.
    const TOO_LONG: usize = (1 << 47) - PAGE;
    // SAFETY: the mapping cannot become so long, and must not move.
    let r = unsafe { raw(libc::SYS_mremap, [span.start, span.len(), TOO_LONG, 0, 0, 0]) };
    r != -(libc::EFAULT as isize)
}

/// Moves a mapping with its pages to address `to`, whose mappings are replaced.
///
/// # Safety
/// Nobody uses `from` by its old address, nor what lies at `to`.
///
/// # Errors
/// The kernel's answer.
pub unsafe fn move_mapping(from: Span, to: usize) -> Result<()> {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    // SAFETY: the caller's promise.
    let r = unsafe { raw(libc::SYS_mremap, [from.start, from.len(), from.len(), flags, to, 0]) };
    check("mremap(MREMAP_FIXED)", from, r).map(drop)
}

/// Changes the allowed accesses.
///
/// # Safety
/// Users of the memory can handle the faults.
///
/// # Errors
/// The kernel's answer: `ENOMEM` if a part is not mapped, or if there would be too many mappings.
pub unsafe fn protect(span: Span, access: Protection) -> Result<()> {
    // SAFETY: the caller's promise.
    let r = unsafe { raw(libc::SYS_mprotect, [span.start, span.len(), access.bits(), 0, 0, 0]) };
    check("mprotect", span, r).map(drop)
}

/// Frees the pages: what is read there next is zero.
///
/// # Safety
/// Nobody needs the contents any more.
///
/// # Errors
/// The kernel's answer: `EINVAL` for locked memory.
pub unsafe fn discard(span: Span) -> Result<()> {
    // SAFETY: the caller's promise.
    let r = unsafe { advise(span, libc::MADV_DONTNEED as usize) };
    check("madvise(MADV_DONTNEED)", span, r).map(drop)
}

/// Makes the kernel put the memory's whole 2 MiB units into huge pages. Contents stay.
///
/// # Errors
/// The kernel's answer: `EINVAL` if it cannot do that, `EAGAIN` or `ENOMEM` if there is no huge
/// page.
pub fn collapse(span: Span) -> Result<()> {
    // SAFETY: contents and addresses stay.
    let r = unsafe { advise(span, MADV_COLLAPSE) };
    check("madvise(MADV_COLLAPSE)", span, r).map(drop)
}

/// Makes the kernel touch every page as if it were written, on the caller's node. Contents stay.
///
/// # Errors
/// The kernel's answer: `EINVAL` before Linux 5.14.
pub fn populate(span: Span) -> Result<()> {
    // SAFETY: contents and addresses stay.
    let r = unsafe { advise(span, MADV_POPULATE_WRITE) };
    check("madvise(MADV_POPULATE_WRITE)", span, r).map(drop)
}

/// homenode's own memory for tests and measurements, in small pages. Unmapped when dropped.
#[derive(Debug)]
pub struct ScratchMemory(Span);

impl ScratchMemory {
    /// Nothing of it was touched.
    ///
    /// # Errors
    /// As [`map`].
    pub fn new(bytes: usize) -> Result<Self> {
        let memory = map(bytes, Protection::ReadWrite)?;
        // A kernel without huge pages refuses this, and needs no such request.
        let _ = prefer_huge(memory, false);
        Ok(Self(memory))
    }
    /// Where it is.
    pub const fn span(&self) -> Span {
        self.0
    }
    /// Stores to each page in the calling thread. Contents stay.
    pub fn touch(&self) {
        for page in self.0.pieces(crate::PAGE) {
            // SAFETY: mapped while this lives.
            let byte = unsafe { &*(page.start as *const AtomicU8) };
            // The compiler would turn an addition of 0 into a load.
            byte.fetch_add(1, Ordering::Relaxed);
            byte.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for ScratchMemory {
    fn drop(&mut self) {
        // SAFETY: made by `new`; who has the span has been told that it ends here.
        let _ = unsafe { unmap(self.0) };
    }
}

/// Makes the kernel use small pages (`false`), or huge pages if possible.
///
/// # Errors
/// The kernel's answer: `EINVAL` if it has no transparent huge pages.
pub fn prefer_huge(span: Span, huge: bool) -> Result<()> {
    let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // SAFETY: contents and addresses stay.
    let r = unsafe { advise(span, advice as usize) };
    check("madvise(MADV_HUGEPAGE)", span, r).map(drop)
}

/// Whether every page is mapped, resident or not.
pub fn is_mapped(span: Span) -> bool {
    let whole = span.outer(crate::PAGE);
    // SAFETY: MS_ASYNC without a file does nothing but look for holes.
    unsafe { raw(libc::SYS_msync, [whole.start, whole.len(), libc::MS_ASYNC as usize, 0, 0, 0]) == 0 }
}

unsafe fn advise(span: Span, advice: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { raw(libc::SYS_madvise, [span.start, span.len(), advice, 0, 0, 0]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HUGE;

    #[test]
    fn pages_move_and_the_mapping_stays() {
        let a = map_aligned(4 * PAGE, HUGE, Protection::ReadWrite).unwrap();
        let b = map_aligned(4 * PAGE, HUGE, Protection::None).unwrap();
        assert_eq!(a.start % HUGE, 0);
        let (at, to) = (a.start as *mut u64, b.start as *const u64);
        // SAFETY: both are mappings of this test.
        unsafe {
            at.write_volatile(7);
            move_leaving_mapping(a, b.start).unwrap();
            assert_eq!((at.read_volatile(), to.read_volatile()), (0, 7));
            unmap(a).unwrap();
            assert!(!is_mapped(a) && is_mapped(b));
            unmap(b).unwrap();
        }
    }

    #[test]
    fn a_span_of_several_mappings_is_known() {
        let all = map_aligned(4 * PAGE, HUGE, Protection::ReadWrite).unwrap();
        let part =
            |first: usize, end: usize| Span { start: all.start + first * PAGE, end: all.start + end * PAGE };
        assert!(is_one_mapping(all) && is_one_mapping(part(1, 2)));
        // SAFETY: nobody touches it.
        unsafe { protect(part(1, 2), Protection::None).unwrap() };
        let one = [(0, 1), (1, 2), (2, 4), (3, 4)].map(|(first, end)| is_one_mapping(part(first, end)));
        let several = [(0, 2), (1, 3), (0, 4)].map(|(first, end)| is_one_mapping(part(first, end)));
        assert_eq!((one, several), ([true; 4], [false; 3]));
        // SAFETY: a mapping of this test.
        unsafe { unmap(all).unwrap() };
        assert!(!is_mapped(all) && !is_one_mapping(all));
    }

    #[test]
    fn what_fails_says_so() {
        let e = collapse(Span::new(PAGE, PAGE)).unwrap_err();
        assert!(e.to_string().starts_with("madvise(MADV_COLLAPSE) of 0x1000-0x2000: "), "{e}");
        assert!(map(usize::MAX / 2, Protection::None).is_err());
    }
}
