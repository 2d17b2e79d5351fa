//! What may be armed of the requested memory, by its mappings at this moment.

use std::cell::UnsafeCell;

use homenode_model::Bytes;
use homenode_sys::memory::{Protection, map};
use homenode_sys::{PAGE, Result, Span, maps};

use super::lock::Locked;
use super::pinning;
use super::reports::Why;
use super::table::{self, BLOCKS, PageMask};

/// A part of a mapping that should be armed.
#[derive(Clone, Copy)]
pub struct Candidate {
    pub span: Span,
    /// Number of its mapping in the plan.
    pub mapping: u32,
    pub writable: bool,
    pub not: Option<Why>,
}

/// Candidates of one call. Memory beyond them counts as not anonymous.
const MOST: usize = 1 << 14;
/// Parts that are armed together.
pub const PARTS: usize = 256;

/// Memory that only arming uses.
struct Scratch {
    candidates: [Candidate; MOST],
    rooms: Rooms,
}

/// Memory of one mapping, within one GiB, that is armed together: one candidate, or several that
/// share blocks.
#[derive(Clone, Copy)]
pub struct Part {
    /// From the first candidate to the last.
    pub span: Span,
    /// Index of the first candidate, and one past the last.
    pub candidates: (usize, usize),
    /// Index of its blocks' pages in the rooms.
    pub at: usize,
    /// Whether the program may write to it.
    pub writable: bool,
}

/// Memory for what is armed together.
pub struct Rooms {
    pub parts: [Part; PARTS],
    /// Pages to arm, by block.
    pub pages: [PageMask; BLOCKS],
}

struct Shared(UnsafeCell<*mut Scratch>);

// SAFETY: only used under the lock (`Locked` is asked for).
unsafe impl Sync for Shared {}

static SCRATCH: Shared = Shared(UnsafeCell::new(std::ptr::null_mut()));

fn scratch(_: &Locked) -> Result<*mut Scratch> {
    // SAFETY: under the lock.
    let p = unsafe { &mut *SCRATCH.0.get() };
    if p.is_null() {
        let memory = map(size_of::<Scratch>().next_multiple_of(PAGE), Protection::ReadWrite)?;
        table::note_own(memory);
        *p = memory.start as *mut Scratch;
    }
    Ok(*p)
}

/// See the module.
pub struct ArmingPlan<'a> {
    /// By address, without overlaps.
    pub candidates: &'a [Candidate],
    pub rooms: &'a mut Rooms,
    /// Whether this machine uses huge pages, so that looking for them is worthwhile.
    pub huge: bool,
    /// Memory of the process that is locked or pinned.
    pub fixed: maps::Fixed,
}

impl<'a> ArmingPlan<'a> {
    /// Intersects the spans with the process's mappings.
    pub fn make(lock: &'a Locked, spans: &[Span]) -> Result<Self> {
        // SAFETY: zeroed memory under the lock, which has one plan at a time.
        let Scratch { candidates, rooms } = unsafe { &mut *scratch(lock)? };
        let (mut n, mut mapping, mut seen) = (0, 0, Seen(0));
        let within = spans.iter().fold(Span { start: usize::MAX, end: 0 }, |all, s| Span {
            start: all.start.min(s.start),
            end: all.end.max(s.end),
        });
        maps::each(|m| {
            if !m.is_private_anonymous() {
                pinning::see_mapping(m.name);
            }
            if !m.span.overlaps(within) || !(m.is_private_anonymous() || m.is_stack()) {
                return true;
            }
            let new = seen.rest_of(m.span);
            mapping += 1;
            for span in spans.iter().map(|s| s.inner(PAGE).cut(new)).filter(|s| !s.is_empty()) {
                if n < MOST {
                    let not = match () {
                        () if m.is_stack() => Some(Why::Stack),
                        () if !m.read => Some(Why::Inaccessible),
                        () => None,
                    };
                    candidates[n] = Candidate { span, mapping, writable: m.write, not };
                    n += 1;
                }
            }
            true
        })?;
        let candidates = &mut candidates[..n];
        let n = by_address(candidates);
        let candidates = &mut candidates[..n];
        let fixed = maps::fixed()?;
        if fixed.locked != Bytes::ZERO {
            Self::leave_out_locked(candidates)?;
        }
        Ok(Self { candidates, rooms, huge: huge_pages_exist(), fixed })
    }

    fn leave_out_locked(candidates: &mut [Candidate]) -> Result<()> {
        maps::each_with_flags(|span, flags| {
            let not = match () {
                () if flags.locked || flags.not_at_fork => Why::Locked,
                () if flags.grows_down => Why::Stack,
                () => return true,
            };
            candidates.iter_mut().filter(|c| c.span.overlaps(span)).for_each(|c| c.not = Some(not));
            true
        })
    }

    /// Bytes of all candidates.
    pub fn bytes(&self) -> usize {
        self.candidates.iter().map(|c| c.span.len()).sum()
    }
}

/// Sorts candidates and removes duplicates. Returns how many are left.
fn by_address(candidates: &mut [Candidate]) -> usize {
    candidates.sort_unstable_by_key(|c| (c.span.start, c.span.end));
    let (mut kept, mut end) = (0, 0);
    for i in 0..candidates.len() {
        let mut c = candidates[i];
        c.span.start = c.span.start.max(end);
        if c.span.start < c.span.end {
            end = c.span.end;
            candidates[kept] = c;
            kept += 1;
        }
    }
    kept
}

/// End of the last mapping read. The kernel writes its list a part at a time. If it joins mappings
/// in between, the next line begins before the end of the last one.
struct Seen(usize);

impl Seen {
    /// The new part of the next line.
    fn rest_of(&mut self, line: Span) -> Span {
        let news = Span { start: line.start.max(self.0), end: line.end };
        self.0 = self.0.max(line.end);
        news
    }
}

/// Whether the machine uses any transparent huge page: looking for them costs 0.3 µs for 2 MiB.
fn huge_pages_exist() -> bool {
    let mut some = false;
    let _ = maps::lines(c"/proc/meminfo", |line| match line.strip_prefix(b"AnonHugePages:") {
        Some(rest) => {
            some = rest.iter().any(|c| matches!(c, b'1'..=b'9'));
            false
        }
        None => true,
    });
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_is_told_twice() {
        let mut seen = Seen(0);
        let lines = [(1, 4), (4, 6), (2, 9), (3, 5), (9, 10)].map(|(start, end)| Span { start, end });
        let news: Vec<usize> = lines.into_iter().map(|line| seen.rest_of(line).len()).collect();
        assert_eq!(news, [3, 2, 3, 0, 1]);
    }

    #[test]
    fn what_is_asked_for_twice_is_one_candidate() {
        let of = |start, end| Candidate { span: Span { start, end }, mapping: 1, writable: true, not: None };
        let mut all = [of(7, 9), of(1, 4), of(2, 3), of(3, 6), of(7, 9)];
        let n = by_address(&mut all);
        let spans: Vec<_> = all[..n].iter().map(|c| (c.span.start, c.span.end)).collect();
        assert_eq!(spans, [(1, 4), (4, 6), (7, 9)]);
    }
}
