//! User-space page faults (userfaultfd(2), include/uapi/linux/userfaultfd.h).

use crate::call::raw;
use crate::error::check;
use crate::{Errno, Error, Result, Span, descriptor};

/// `USERFAULTFD_IOC`: the type of all its ioctls.
const TYPE: usize = 0xaa;
/// `_IOWR(type, nr, size)` and its relatives, as x86 and arm64 encode them.
const fn iowr(nr: usize, size: usize) -> usize {
    3 << 30 | size << 16 | TYPE << 8 | nr
}
const fn ior(nr: usize, size: usize) -> usize {
    2 << 30 | size << 16 | TYPE << 8 | nr
}
const API: usize = iowr(0x3f, 24);
const REGISTER: usize = iowr(0x00, 32);
const UNREGISTER: usize = ior(0x01, 16);
const WAKE: usize = ior(0x02, 16);
const COPY: usize = iowr(0x03, 40);
const ZEROPAGE: usize = iowr(0x04, 32);
const MOVE: usize = iowr(0x05, 40);
const WRITEPROTECT: usize = iowr(0x06, 24);
/// `UFFD_API`.
const VERSION: u64 = 0xaa;
/// `UFFD_USER_MODE_ONLY`: faults of the kernel are none of ours; what unprivileged processes may
/// ask for.
const USER_MODE_ONLY: i32 = 1;
const DONT_WAKE: u64 = 1;
const MOVE_ALLOW_HOLES: u64 = 2;

/// What to ask for (`UFFD_FEATURE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// Tell of `mremap`.
    pub const EVENT_REMAP: Self = Self(1 << 2);
    /// Tell of `madvise(MADV_DONTNEED)`.
    pub const EVENT_REMOVE: Self = Self(1 << 3);
    /// Tell of `munmap`.
    pub const EVENT_UNMAP: Self = Self(1 << 6);
    /// A fault is a SIGBUS in the thread that faults.
    pub const SIGBUS: Self = Self(1 << 7);
    /// Write protection without waiting (Linux 6.7).
    pub const WP_ASYNC: Self = Self(1 << 15);
    /// [`Uffd::take_back`] (Linux 6.8).
    pub const MOVE: Self = Self(1 << 16);

    /// All of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Whether all of `other` are among them.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Which faults of a range are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedFaults {
    /// Of pages that are not there.
    Missing,
    /// Of stores to pages that [`Uffd::write_protect`] protected.
    Writes,
}

/// Something that happened to registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UffdEvent {
    /// It now lies elsewhere.
    Remap {
        /// Where it was.
        from: Span,
        /// Where it begins now.
        to: usize,
    },
    /// Its pages were given up.
    Remove(Span),
    /// It was unmapped.
    Unmap(Span),
    /// Something else, by the kernel's number.
    Other(u8),
}

/// How a copy of several pages ended: the bytes that are done, and why it stopped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Bytes done.
    pub done: usize,
    /// `None`: all was done.
    pub stopped: Option<Errno>,
}

/// A descriptor for user-space faults.
#[derive(Debug)]
pub struct Uffd {
    fd: i32,
    /// What it was given, all that the kernel has included in [`Uffd::offered`].
    features: Features,
}

#[repr(C)]
struct Range {
    start: u64,
    len: u64,
}

impl Uffd {
    /// What this kernel has.
    ///
    /// # Errors
    /// `EPERM` or `ENOSYS` where it is forbidden or not built in.
    pub fn offered() -> Result<Features> {
        let probe = Self::create()?;
        probe.handshake(Features(0))
    }

    /// Opens one with `features`: non-blocking, closed at exec, faults of user mode alone.
    ///
    /// # Errors
    /// `EPERM` or `ENOSYS` where it is forbidden or not built in, `EINVAL` for features that the
    /// kernel lacks.
    pub fn open(features: Features) -> Result<Self> {
        let mut made = Self::create()?;
        made.handshake(features)?;
        made.features = features;
        Ok(made)
    }

    fn create() -> Result<Self> {
        let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY) as usize;
        // SAFETY: plain numbers.
        let fd = unsafe { raw(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]) };
        let fd = check("userfaultfd", Span::EMPTY, fd)? as i32;
        Ok(Self { fd: descriptor::keep(fd), features: Features(0) })
    }

    fn handshake(&self, features: Features) -> Result<Features> {
        let mut api = [VERSION, features.0, 0];
        self.ioctl("UFFDIO_API", Span::EMPTY, API, api.as_mut_ptr() as usize)?;
        Ok(Features(api[1]))
    }

    fn ioctl(&self, call: &'static str, on: Span, request: usize, argument: usize) -> Result<usize> {
        // SAFETY: `argument` is the structure of `request`, by the callers below.
        let r = unsafe { raw(libc::SYS_ioctl, [self.fd as usize, request, argument, 0, 0, 0]) };
        check(call, on, r)
    }

    /// The descriptor's number.
    pub const fn fd(&self) -> i32 {
        self.fd
    }

    /// Faults of `span` are told from now on. Of missing pages with SIGBUS: who touches one gets
    /// the signal.
    ///
    /// # Safety
    /// There is somebody who handles the faults.
    ///
    /// # Errors
    /// `EINVAL` for memory that is not anonymous, `EBUSY` for memory registered elsewhere.
    pub unsafe fn register(&self, span: Span, watch: WatchedFaults) -> Result<()> {
        let mode = match watch {
            WatchedFaults::Missing => 1,
            WatchedFaults::Writes => 2,
        };
        let mut a = [span.start as u64, span.len() as u64, mode, 0];
        self.ioctl("UFFDIO_REGISTER", span, REGISTER, a.as_mut_ptr() as usize).map(drop)
    }

    /// Faults of `span` are the kernel's again: missing pages are zero.
    ///
    /// # Safety
    /// No page of it is missing that has contents elsewhere.
    ///
    /// # Errors
    /// The kernel's answer.
    pub unsafe fn unregister(&self, span: Span) -> Result<()> {
        let mut a = Range { start: span.start as u64, len: span.len() as u64 };
        self.ioctl("UFFDIO_UNREGISTER", span, UNREGISTER, &raw mut a as usize).map(drop)
    }

    /// Wakes threads that wait for a page of `span`.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn wake(&self, span: Span) -> Result<()> {
        let mut a = Range { start: span.start as u64, len: span.len() as u64 };
        self.ioctl("UFFDIO_WAKE", span, WAKE, &raw mut a as usize).map(drop)
    }

    /// Puts copies of the memory at `from` into the missing pages of `span`, atomically for each
    /// page, on the caller's node.
    ///
    /// # Safety
    /// `from` is readable for the span's length and does not change meanwhile.
    #[inline]
    pub unsafe fn copy(&self, span: Span, from: usize) -> Partial {
        let mut a = [span.start as u64, from as u64, span.len() as u64, DONT_WAKE, 0];
        let r = self.ioctl("UFFDIO_COPY", span, COPY, a.as_mut_ptr() as usize);
        partial(r, a[4], span)
    }

    /// Fills missing pages of `span` with zeros.
    pub fn zero(&self, span: Span) -> Partial {
        let mut a = [span.start as u64, span.len() as u64, DONT_WAKE, 0];
        let r = self.ioctl("UFFDIO_ZEROPAGE", span, ZEROPAGE, a.as_mut_ptr() as usize);
        partial(r, a[3], span)
    }

    /// Moves the pages at `from` themselves into the missing pages of `span`; holes stay holes.
    ///
    /// # Safety
    /// Nobody uses the memory at `from`.
    pub unsafe fn take_back(&self, span: Span, from: usize) -> Partial {
        let mut a = [span.start as u64, from as u64, span.len() as u64, DONT_WAKE | MOVE_ALLOW_HOLES, 0];
        let r = self.ioctl("UFFDIO_MOVE", span, MOVE, a.as_mut_ptr() as usize);
        partial(r, a[4], span)
    }

    /// Protects `span` against stores, or no longer.
    ///
    /// # Safety
    /// There is somebody who handles the faults, or the descriptor has [`Features::WP_ASYNC`].
    ///
    /// # Errors
    /// The kernel's answer.
    pub unsafe fn write_protect(&self, span: Span, on: bool) -> Result<()> {
        let mut a = [span.start as u64, span.len() as u64, u64::from(on)];
        self.ioctl("UFFDIO_WRITEPROTECT", span, WRITEPROTECT, a.as_mut_ptr() as usize).map(drop)
    }

    /// Waits at most `milliseconds` for an event (negative: for ever). Returns whether one came.
    pub fn wait(&self, milliseconds: i32) -> bool {
        self.wait_or(-1, milliseconds)
    }

    /// The same, and no longer than until there is something to read from the descriptor `other`
    /// (negative: none).
    pub fn wait_or(&self, other: i32, milliseconds: i32) -> bool {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut p = [poll(self.fd), poll(other)];
        let t = libc::timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
        };
        let t = if milliseconds < 0 { 0 } else { &raw const t as usize };
        // SAFETY: two pollfds, one timespec or none; no signal mask.
        let r = unsafe { raw(libc::SYS_ppoll, [p.as_mut_ptr() as usize, 2, t, 0, 0, 0]) };
        r > 0 && p[0].revents & libc::POLLIN != 0
    }

    /// The next event, if one is there. Whoever caused it goes on when it has been read.
    pub fn event(&self) -> Option<UffdEvent> {
        let mut m = [0_u64; 4]; // struct uffd_msg: kind, then three numbers
        // SAFETY: 32 bytes are writable.
        let r = unsafe { raw(libc::SYS_read, [self.fd as usize, m.as_mut_ptr() as usize, 32, 0, 0, 0]) };
        if r != 32 {
            return None;
        }
        let range = |a: u64, b: u64| Span { start: a as usize, end: b as usize };
        Some(match m[0] as u8 {
            0x14 => UffdEvent::Remap { from: Span::new(m[1] as usize, m[3] as usize), to: m[2] as usize },
            0x15 => UffdEvent::Remove(range(m[1], m[2])),
            0x16 => UffdEvent::Unmap(range(m[1], m[2])),
            other => UffdEvent::Other(other),
        })
    }
}

/// Write protection that the kernel itself takes away at the first store (`UFFD_FEATURE_WP_ASYNC`,
/// Linux 6.7): nobody waits, no signal, no system call fails, contents and order of stores are as
/// they would be without it. All that is left of it is a minor fault, which counts as one. So none
/// of this is `unsafe`, whatever the memory.
#[derive(Debug)]
pub struct WriteWatch(Uffd);

impl WriteWatch {
    /// Opens one.
    ///
    /// # Errors
    /// `EINVAL` where the kernel does not have it, `EPERM` or `ENOSYS` where it is forbidden.
    pub fn open() -> Result<Self> {
        Uffd::open(Features::WP_ASYNC).map(Self)
    }
    /// Pages of `span` can be protected from now on.
    ///
    /// # Errors
    /// `EINVAL` for memory that is not anonymous, `EBUSY` for memory that another descriptor has.
    pub fn add(&self, span: Span) -> Result<()> {
        // SAFETY: such faults are the kernel's to handle.
        unsafe { self.0.register(span, WatchedFaults::Writes) }
    }
    /// They are as they were before.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn remove(&self, span: Span) -> Result<()> {
        // SAFETY: no page is missing that would not be missing without it.
        unsafe { self.0.unregister(span) }
    }
    /// The next store to each page of `span` is a fault. `ENOENT`: part of it is not ours (any
    /// more).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn protect(&self, span: Span) -> Result<()> {
        // SAFETY: the feature was asked for.
        unsafe { self.0.write_protect(span, true) }
    }
}

impl Drop for Uffd {
    fn drop(&mut self) {
        descriptor::close(self.fd);
    }
}

/// `done` is what the kernel wrote: bytes, or a negative error number where it did none.
#[inline]
fn partial(result: Result<usize>, done: u64, span: Span) -> Partial {
    let bytes = if (done as i64) < 0 { 0 } else { done as usize };
    match result {
        Ok(_) => Partial { done: span.len(), stopped: None },
        Err(Error { errno, .. }) => Partial { done: bytes, stopped: Some(errno) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;
    use crate::memory::{Protection, map, unmap};

    #[test]
    fn a_missing_page_gets_a_copy_and_a_present_one_is_left_alone() {
        let uffd = match Uffd::open(Features::SIGBUS) {
            Ok(u) => u,
            Err(e) => return println!("skipped: {e}"),
        };
        let from = map(2 * PAGE, Protection::ReadWrite).unwrap();
        let to = map(2 * PAGE, Protection::ReadWrite).unwrap();
        // SAFETY: this test's mappings; nothing missing is touched.
        unsafe {
            uffd.register(to, WatchedFaults::Missing).unwrap();
            (from.start as *mut u64).write(5);
            let first = Span::new(to.start, PAGE);
            assert_eq!(uffd.copy(first, from.start), Partial { done: PAGE, stopped: None });
            assert_eq!((to.start as *const u64).read_volatile(), 5);
            let again = uffd.copy(first, from.start);
            assert_eq!(again, Partial { done: 0, stopped: Some(Errno(libc::EEXIST)) });
            let rest = Span { start: first.end, end: to.end };
            assert_eq!(uffd.zero(rest), Partial { done: PAGE, stopped: None });
            uffd.unregister(to).unwrap();
            unmap(from).unwrap();
            unmap(to).unwrap();
        }
    }

    #[test]
    fn pages_come_back_without_a_copy_where_the_kernel_can() {
        match Uffd::offered() {
            Err(e) => return println!("skipped: {e}"),
            Ok(f) if !f.has(Features::MOVE) => return println!("skipped: no UFFDIO_MOVE"),
            Ok(_) => {}
        }
        let uffd = Uffd::open(Features::SIGBUS.and(Features::MOVE)).unwrap();
        let from = map(4 * PAGE, Protection::ReadWrite).unwrap();
        let to = map(4 * PAGE, Protection::ReadWrite).unwrap();
        // SAFETY: this test's mappings; nothing missing is touched.
        unsafe {
            ((from.start + PAGE) as *mut u64).write(9);
            uffd.register(to, WatchedFaults::Missing).unwrap();
            assert_eq!(uffd.take_back(to, from.start).stopped, None);
            uffd.unregister(to).unwrap();
            assert_eq!(((to.start + PAGE) as *const u64).read_volatile(), 9);
            unmap(from).unwrap();
            unmap(to).unwrap();
        }
    }
}
