//! The ring that an event writes to: a page of the kernel's own, then records in a power of two of
//! pages.

use std::sync::atomic::{AtomicU64, Ordering};

use super::event::{PerfEvent, SampleFields};
use super::record::{self, HEAD, PerfRecord};
use crate::call::raw;
use crate::error::check;
use crate::memory::unmap;
use crate::{Error, PAGE, Result, Span};

/// Offsets of the two ends in the kernel's page (`struct perf_event_mmap_page`).
pub(super) const DATA_HEAD: usize = 1024;
pub(super) const DATA_TAIL: usize = 1032;
/// Longest record that is decoded: a sample of all fields is shorter.
const LONGEST: usize = 256;

/// An event's ring. If the event is dropped first, nothing more comes.
#[derive(Debug)]
pub struct Ring {
    pub(super) memory: Span,
    pub(super) bytes: usize,
    fields: SampleFields,
    lost: u64,
    /// The AUX buffer, or nothing ([`super::aux`]).
    pub(super) aux: Span,
}

impl Ring {
    /// A ring of `pages` pages, rounded up to a power of two.
    ///
    /// # Errors
    /// `EPERM` beyond what a user may lock (`perf_event_mlock_kb`), `EINVAL` for an event that
    /// inherits on all CPUs.
    pub fn map(event: &PerfEvent, pages: usize) -> Result<Self> {
        let bytes = pages.clamp(1, 1 << 16).next_power_of_two() * PAGE;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping where the kernel likes.
        let r = unsafe {
            raw(libc::SYS_mmap, [0, PAGE + bytes, access as usize, flags as usize, event.fd() as usize, 0])
        };
        let start = check("mmap(perf ring)", Span::EMPTY, r)?;
        Ok(Self::of(Span::new(start, PAGE + bytes), event.fields()))
    }

    /// The ring in `memory`, a mapping that it takes over: the kernel's page, then a power of two
    /// of pages.
    pub(super) const fn of(memory: Span, fields: SampleFields) -> Self {
        Self { memory, bytes: memory.len() - PAGE, fields, lost: 0, aux: Span::EMPTY }
    }

    /// A number in the kernel's page.
    pub(super) fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the mapping's first page, aligned, shared with the kernel as an atomic
        // number.
        unsafe { &*((self.memory.start + offset) as *const AtomicU64) }
    }

    /// Reports all records since the last call, in the order of the ring, and makes room.
    ///
    /// # Errors
    /// The ring's contents make no sense. All of it was dropped.
    pub fn drain(&mut self, mut tell: impl FnMut(PerfRecord)) -> Result<()> {
        let head = self.end(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.end(DATA_TAIL).load(Ordering::Relaxed);
        let mut result = Ok(());
        while tail < head {
            let mut start = [0; HEAD];
            self.copy(tail, &mut start);
            let Some(length) = record::length(start).filter(|l| *l as u64 <= head - tail) else {
                result = Err(Error {
                    call: "reading a perf ring",
                    on: Span::EMPTY,
                    errno: crate::Errno(libc::EIO),
                });
                tail = head;
                break;
            };
            let mut bytes = [0; LONGEST];
            let part = &mut bytes[..length.min(LONGEST)];
            self.copy(tail, part);
            match record::decode(part, self.fields) {
                Some(PerfRecord::Lost(n)) => {
                    self.lost += n;
                    tell(PerfRecord::Lost(n));
                }
                Some(record) => tell(record),
                None => {}
            }
            tail += length as u64;
        }
        self.end(DATA_TAIL).store(tail, Ordering::Release);
        result
    }

    fn copy(&self, at: u64, into: &mut [u8]) {
        copy(Span::new(self.memory.start + PAGE, self.bytes), at, into);
    }

    /// Number of records that found no room, as far as the kernel has reported.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes of address space that it takes.
    pub const fn bytes(&self) -> usize {
        self.memory.len() + self.aux.len()
    }
}

/// Copies bytes from position `at` of a ring's buffer, which is no shorter than `into`. They may
/// wrap around its end.
pub(super) fn copy(buffer: Span, at: u64, into: &mut [u8]) {
    assert!(into.len() <= buffer.len());
    if into.is_empty() {
        return;
    }
    let offset = (at % buffer.len() as u64) as usize;
    let first = into.len().min(buffer.len() - offset);
    let data = buffer.start as *const u8;
    // SAFETY: both parts lie in the buffer, which a ring has mapped; the kernel does not write
    // between tail and head.
    unsafe {
        std::ptr::copy_nonoverlapping(data.add(offset), into.as_mut_ptr(), first);
        std::ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), into.len() - first);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for memory in [self.aux, self.memory] {
            // SAFETY: made by `map`, `map_aux` or `Pretend`; nobody has a reference into it any
            // more.
            let _ = unsafe { unmap(memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CounterSpec, EventTarget};
    use super::*;
    use crate::memory::{Protection, map, prefer_huge};

    fn ready(pages: usize) -> Option<(PerfEvent, Ring)> {
        let me = EventTarget { thread: 0, cpu: None, inherit: false };
        let opened = PerfEvent::open(&CounterSpec::page_faults(), me, None)
            .and_then(|event| Ring::map(&event, pages).map(|ring| (event, ring)));
        match opened {
            Ok(both) => Some(both),
            Err(e) => {
                println!("skipped: {e}");
                None
            }
        }
    }

    fn touch(m: Span) {
        for page in m.pieces(PAGE) {
            // SAFETY: a test's mapping.
            unsafe { (page.start as *mut u8).write_volatile(1) };
        }
    }

    #[test]
    fn every_touched_page_is_told_with_its_address() {
        let Some((event, mut ring)) = ready(16) else { return };
        // Several rounds: the ring goes round its end.
        for round in 0..20 {
            let m = map(60 * PAGE, Protection::ReadWrite).unwrap();
            let _ = prefer_huge(m, false);
            event.enable().unwrap();
            touch(m);
            event.disable().unwrap();
            let mut seen = Vec::new();
            ring.drain(|r| {
                if let PerfRecord::Sample(s) = r
                    && m.contains(s.address as usize)
                {
                    assert_eq!((s.process, s.thread), (std::process::id(), crate::call::thread_id() as u32));
                    assert!(s.time <= crate::call::now());
                    seen.push(s.address as usize & !(PAGE - 1));
                }
            })
            .unwrap();
            let pages: Vec<usize> = m.pieces(PAGE).map(|p| p.start).collect();
            assert_eq!(seen, pages, "round {round}");
            // SAFETY: this test's mapping.
            unsafe { unmap(m).unwrap() };
        }
        assert_eq!(ring.lost(), 0);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let Some((event, mut ring)) = ready(1) else { return };
        let m = map(4096 * PAGE, Protection::ReadWrite).unwrap();
        let _ = prefer_huge(m, false);
        event.enable().unwrap();
        touch(m);
        // The kernel tells of what was lost with the next record that finds room.
        let mut samples = 0;
        ring.drain(|r| samples += u64::from(matches!(r, PerfRecord::Sample(_)))).unwrap();
        let more = map(PAGE, Protection::ReadWrite).unwrap();
        touch(more);
        event.disable().unwrap();
        ring.drain(|r| samples += u64::from(matches!(r, PerfRecord::Sample(_)))).unwrap();
        assert!(ring.lost() > 0 && samples + ring.lost() >= 4097, "{samples} and {} lost", ring.lost());
        assert_eq!(event.count().unwrap(), samples + ring.lost());
        // SAFETY: this test's mappings.
        unsafe {
            unmap(m).unwrap();
            unmap(more).unwrap();
        }
    }

    /// As threads that are there already share the ring of their CPU.
    #[test]
    fn another_threads_event_writes_to_the_same_ring() {
        let before = crate::affinity::get().unwrap();
        let cpu = before.iter().next().unwrap();
        crate::affinity::pin(cpu).unwrap();
        let (send, ids) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            send.send(crate::call::thread_id()).unwrap();
            if wait.recv().is_ok() {
                let scratch = crate::memory::ScratchMemory::new(8 * PAGE).unwrap();
                scratch.touch();
            }
        });
        let id = ids.recv().unwrap();
        let target = |thread| EventTarget { thread, cpu: Some(cpu), inherit: true };
        let opened = PerfEvent::open(&CounterSpec::page_faults(), target(0), None).and_then(|mine| {
            let ring = Ring::map(&mine, 16)?;
            let theirs = PerfEvent::open(&CounterSpec::page_faults(), target(id), None)?;
            theirs.write_to(&mine)?;
            Ok((mine, ring, theirs))
        });
        match opened {
            Err(e) => println!("skipped: {e}"),
            Ok((mine, mut ring, theirs)) => {
                theirs.enable().unwrap();
                go.send(()).unwrap();
                other.join().unwrap();
                let mut seen = 0;
                ring.drain(|r| {
                    if let PerfRecord::Sample(s) = r {
                        seen += u32::from(s.thread == id as u32 && s.cpu == cpu);
                    }
                })
                .unwrap();
                assert!(seen >= 8, "{seen}");
                assert!(mine.write_to(&theirs).is_err(), "who has a ring goes nowhere else");
            }
        }
        crate::affinity::set(&before).unwrap();
    }
}
