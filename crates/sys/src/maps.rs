//! The process's mappings (`/proc/self/maps`, `smaps`, `status`), without allocation.

use std::ffi::CStr;

use homenode_model::{Bytes, NodeId};

use crate::call::raw;
use crate::file::File;
use crate::{Result, Span};

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Where.
    pub span: Span,
    /// Loads are allowed.
    pub read: bool,
    /// Stores are allowed.
    pub write: bool,
    /// It may hold code.
    pub execute: bool,
    /// Shared with other processes.
    pub shared: bool,
    /// Whether it has no file behind it.
    pub anonymous: bool,
    /// Its name, if any: a path, `[heap]`, `[stack]`, `[anon:…]`.
    pub name: &'a [u8],
}

impl Mapping<'_> {
    /// Whether it is private, without a file, and not one of the kernel's own.
    pub fn is_private_anonymous(&self) -> bool {
        let plain = self.name.is_empty() || self.name == b"[heap]" || self.name.starts_with(b"[anon:");
        self.anonymous && !self.shared && plain
    }
    /// The initial thread's stack.
    pub fn is_stack(&self) -> bool {
        self.name.starts_with(b"[stack")
    }
}

/// Longest line that is read: a path of 4096 bytes (the kernel writes some bytes as `\ooo`) and 80
/// more.
const LINE: usize = 8192;
/// Bytes read at a time.
const BUFFER: usize = 2 * LINE;

/// Calls `see` with each mapping of this process in ascending order, until it says `false`.
///
/// # Errors
/// `/proc` is not there or not readable.
pub fn each(mut see: impl FnMut(&Mapping<'_>) -> bool) -> Result<()> {
    lines(c"/proc/self/maps", |line| mapping(line).is_none_or(|m| see(&m)))
}

/// More properties of a mapping than `maps` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Locked in memory (`lo`).
    pub locked: bool,
    /// Not copied at fork, as devices need it (`dc`), or emptied there (`wf`).
    pub not_at_fork: bool,
    /// Somebody handles its faults (`um`, `uw`).
    pub user_faults: bool,
    /// Grows downwards (`gd`): a stack.
    pub grows_down: bool,
    /// Bytes in huge pages.
    pub huge: Bytes,
}

/// Calls `see` with each mapping and its properties in `smaps`, until it returns `false`. The
/// kernel looks at every page of the process for it: about 10 ns a small page.
///
/// # Errors
/// `/proc` does not exist or is not readable.
/// `/proc` is not there or not readable.
pub fn each_with_flags(mut see: impl FnMut(Span, Flags) -> bool) -> Result<()> {
    let (mut at, mut flags) = (Span::EMPTY, Flags::default());
    lines(c"/proc/self/smaps", |line| {
        if let Some(m) = mapping(line) {
            (at, flags) = (m.span, Flags::default());
        } else if let Some(rest) = line.strip_prefix(b"AnonHugePages:") {
            flags.huge = Bytes::kib(number(rest));
        } else if let Some(rest) = line.strip_prefix(b"VmFlags:") {
            for flag in rest.split(|c| *c == b' ') {
                match flag {
                    b"lo" => flags.locked = true,
                    b"dc" | b"wf" => flags.not_at_fork = true,
                    b"um" | b"uw" => flags.user_faults = true,
                    b"gd" => flags.grows_down = true,
                    _ => {}
                }
            }
            return see(at, flags);
        }
        true
    })
}

/// The process's memory that must not move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Locked (`VmLck`).
    pub locked: Bytes,
    /// Pinned for devices and io_uring, if these account for it (`VmPin`).
    pub pinned: Bytes,
}

/// Asks how much memory is locked or pinned.
///
/// # Errors
/// `/proc` is not there or not readable.
pub fn fixed() -> Result<Fixed> {
    let mut fixed = Fixed::default();
    lines(c"/proc/self/status", |line| {
        if let Some(rest) = line.strip_prefix(b"VmLck:") {
            fixed.locked = Bytes::kib(number(rest));
        } else if let Some(rest) = line.strip_prefix(b"VmPin:") {
            fixed.pinned = Bytes::kib(number(rest));
            return false;
        }
        true
    })?;
    Ok(fixed)
}

/// Calls `see` with each line until it says `false`.
///
/// # Errors
/// The file is not there or not readable.
pub fn lines(path: &CStr, mut see: impl FnMut(&[u8]) -> bool) -> Result<()> {
    let file = File::open(path)?;
    let mut buffer = [0; BUFFER];
    let mut have = 0;
    loop {
        let n = file.read(&mut buffer[have..])?;
        have += n;
        let mut rest = &buffer[..have];
        while let Some(end) = rest.iter().position(|c| *c == b'\n') {
            if !see(&rest[..end]) {
                return Ok(());
            }
            rest = &rest[end + 1..];
        }
        if n == 0 {
            return Ok(());
        }
        // A line that fills the buffer is longer than any line of interest, and is dropped.
        let left = if rest.len() == BUFFER { 0 } else { rest.len() };
        let begin = have - left;
        buffer.copy_within(begin..have, 0);
        have = left;
    }
}

/// The decimal number after spaces.
fn number(text: &[u8]) -> u64 {
    let digits = text.iter().skip_while(|c| c.is_ascii_whitespace()).take_while(|c| c.is_ascii_digit());
    digits.fold(0, |n: u64, c| n.saturating_mul(10).saturating_add(u64::from(c - b'0')))
}

/// The hexadecimal number that ends at `end`.
fn hexadecimal(text: &mut &[u8], end: u8) -> Option<usize> {
    let at = text.iter().position(|c| *c == end)?;
    let n = text[..at]
        .iter()
        .try_fold(0_usize, |n, c| Some(n.checked_mul(16)? + (*c as char).to_digit(16)? as usize))?;
    *text = &text[at + 1..];
    Some(n)
}

/// `start-end rwxp offset major:minor inode   name`; `None` for what is no such line.
fn mapping(line: &[u8]) -> Option<Mapping<'_>> {
    let mut rest = line;
    let start = hexadecimal(&mut rest, b'-')?;
    let end = hexadecimal(&mut rest, b' ')?;
    let mut words = rest.splitn(5, |c| *c == b' ');
    let (access, _offset, _device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let [r, w, x, s] = *access else { return None };
    Some(Mapping {
        span: Span { start, end },
        read: r == b'r',
        write: w == b'w',
        execute: x == b'x',
        shared: s == b's',
        anonymous: inode == b"0",
        name: words.next().unwrap_or_default().trim_ascii(),
    })
}

/// Calls `see` with the beginning of each mapping, the node with most of its pages, and the number
/// of nodes with some, ascending, by `numa_maps`. This needs none of the calls that name nodes. The
/// kernel looks at every page of the process for it.
///
/// # Errors
/// `/proc` does not exist or is not readable, or the kernel has no nodes.
pub fn each_node(mut see: impl FnMut(usize, Option<NodeId>, usize)) -> Result<()> {
    lines(c"/proc/self/numa_maps", |line| {
        let mut rest = line;
        if let Some(start) = hexadecimal(&mut rest, b' ') {
            let (most, nodes) = most_on(rest);
            see(start, most, nodes);
        }
        true
    })
}

/// The node with most pages of `… N0=12 N1=3 …` (among equals the first), and the number of nodes.
fn most_on(words: &[u8]) -> (Option<NodeId>, usize) {
    let count = |word: &[u8]| {
        let rest = word.strip_prefix(b"N")?;
        let at = rest.iter().position(|c| *c == b'=')?;
        let node = rest[..at].first()?.is_ascii_digit().then(|| number(&rest[..at]))?;
        Some((number(&rest[at + 1..]), std::cmp::Reverse(u16::try_from(node).ok()?)))
    };
    let counts = || words.split(|c| *c == b' ').filter_map(count);
    (counts().max().map(|most| NodeId(most.1.0)), counts().count())
}

/// Bytes of the process that are in memory.
///
/// # Errors
/// `/proc` is not there or not readable.
pub fn resident() -> Result<Bytes> {
    let mut pages = 0;
    lines(c"/proc/self/statm", |line| {
        let second = line.iter().position(|c| *c == b' ').unwrap_or(line.len());
        pages = number(&line[second..]);
        false
    })?;
    Ok(Bytes(pages * crate::PAGE as u64))
}

/// The result of a page walk for one page size.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` (include/uapi/linux/fs.h, Linux 6.7).
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const PAGEMAP_SCAN: usize = 3 << 30 | size_of::<Scan>() << 16 | (b'f' as usize) << 8 | 16;
const PAGE_IS_HUGE: u64 = 1 << 6;

/// Calls `see` with each whole 2 MiB unit of `span` that is a huge page (`PAGEMAP_SCAN`). It asks
/// for each unit by the unit's first page: about 0.3 µs. For a longer range the kernel would look
/// at every small page.
///
/// # Errors
/// `ENOTTY` before Linux 6.7.
pub fn huge_units(span: Span, mut see: impl FnMut(Span)) -> Result<()> {
    let file = File::open(c"/proc/self/pagemap")?;
    for unit in span.inner(crate::HUGE).pieces(crate::HUGE) {
        let mut found = Region::default();
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start: unit.start as u64,
            end: (unit.start + crate::PAGE) as u64,
            walk_end: 0,
            regions: &raw mut found as u64,
            regions_len: 1,
            max_pages: 0,
            category_inverted: 0,
            category_mask: PAGE_IS_HUGE,
            category_anyof_mask: 0,
            return_mask: PAGE_IS_HUGE,
        };
        // SAFETY: the structure is what this request takes, and one region is writable.
        let r = unsafe {
            raw(libc::SYS_ioctl, [file.fd() as usize, PAGEMAP_SCAN, &raw mut scan as usize, 0, 0, 0])
        };
        if crate::error::check("ioctl(PAGEMAP_SCAN)", unit, r)? > 0 {
            see(unit);
        }
    }
    Ok(())
}

/// A page's entry in `/proc/self/pagemap`: whether it exists, and whether it is swapped out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry(pub u64);

impl PageEntry {
    /// In memory.
    pub const fn present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }
    /// Swapped out.
    pub const fn swapped(self) -> bool {
        self.0 >> 62 & 1 == 1
    }
    /// Mapped in this process alone: neither shared with a child nor the page of zeros.
    pub const fn exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }
}

/// Reads the entries of the pages from `address` on.
///
/// # Errors
/// `/proc` is not there or not readable.
pub fn page_entries(address: usize, into: &mut [PageEntry]) -> Result<usize> {
    let file = File::open(c"/proc/self/pagemap")?;
    let bytes = size_of_val(into);
    // SAFETY: a slice of numbers as the bytes it consists of; every pattern of bits is an entry.
    let raw = unsafe { std::slice::from_raw_parts_mut(into.as_mut_ptr().cast::<u8>(), bytes) };
    file.read_at(raw, (address / crate::PAGE * 8) as u64).map(|n| n / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;
    use crate::memory::{Protection, map, unmap};

    #[test]
    fn lines_are_understood() {
        let m = mapping(b"7f00-8000 rw-p 00000000 00:00 0 ").unwrap();
        assert!(m.is_private_anonymous() && m.span == Span { start: 0x7f00, end: 0x8000 });
        let m = mapping(b"1000-2000 rw-p 00001000 fd:01 1234      /usr/lib/x y.so (deleted)").unwrap();
        assert!(!m.is_private_anonymous() && m.name == b"/usr/lib/x y.so (deleted)");
        assert!(mapping(b"1000-2000 rw-s 0 00:01 5 /dev/zero (deleted)").unwrap().shared);
        assert!(mapping(b"1000-2000 rw-p 0 00:00 0          [stack]").unwrap().is_stack());
        assert!(!mapping(b"1000-2000 r--p 0 00:00 0    [vvar]").unwrap().is_private_anonymous());
        for bad in [&b""[..], b"x", b"1-2", b"1-2 rw", b"ffffffffffffffffff-1 rw-p 0 0 0 ", b"Size:   4 kB"] {
            assert_eq!(mapping(bad), None);
        }
    }

    #[test]
    fn the_node_with_most_pages_is_found() {
        let of = |line: &str| most_on(line.as_bytes());
        assert_eq!(of("default anon=9 dirty=9 N0=2 N1=7 kernelpagesize_kB=4"), (Some(NodeId(1)), 2));
        assert_eq!(of("default N2=4 N1=4 "), (Some(NodeId(1)), 2));
        assert_eq!(of("default N3=4"), (Some(NodeId(3)), 1));
        assert_eq!((of("default"), of("Nx N=3 N99999999=1")), ((None, 0), (None, 0)));
    }

    #[test]
    fn the_own_mappings_are_found_and_ascend() {
        let mine = map(3 * PAGE, Protection::ReadWrite).unwrap();
        let (mut last, mut found, mut stack) = (0, false, false);
        each(|m| {
            assert!(m.span.start >= last);
            last = m.span.end;
            found |= m.is_private_anonymous() && m.span.cut(mine) == mine;
            stack |= m.is_stack();
            true
        })
        .unwrap();
        assert!(found && stack);
        // SAFETY: this test's mapping.
        unsafe { unmap(mine).unwrap() };
    }

    #[test]
    fn a_huge_page_shows() {
        use crate::HUGE;
        let mine = crate::memory::map_aligned(2 * HUGE, HUGE, Protection::ReadWrite).unwrap();
        let (first, second) = (Span::new(mine.start, HUGE), Span::new(mine.start + HUGE, HUGE));
        let made = crate::memory::prefer_huge(second, false)
            .and_then(|()| crate::memory::populate(mine))
            .and_then(|()| crate::memory::collapse(first));
        let mut found = Vec::new();
        match made.and_then(|()| huge_units(mine, |unit| found.push(unit))) {
            Ok(()) => assert_eq!(found, [first]),
            Err(e) => println!("skipped: {e}"),
        }
        // SAFETY: this test's mapping.
        unsafe { unmap(mine).unwrap() };
    }

    #[test]
    fn a_lock_shows() {
        let mine = map(2 * PAGE, Protection::ReadWrite).unwrap();
        // SAFETY: this test's mapping.
        unsafe {
            if libc::mlock(mine.start as *const _, mine.len()) != 0 {
                return println!("skipped: mlock is not allowed");
            }
            assert!(fixed().unwrap().locked >= mine.bytes());
            let mut locked = false;
            each_with_flags(|s, f| {
                locked |= s.cut(mine) == mine && f.locked;
                true
            })
            .unwrap();
            assert!(locked);
            unmap(mine).unwrap();
        }
    }
}
