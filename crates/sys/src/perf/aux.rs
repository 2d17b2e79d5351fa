//! The second buffer of a ring (perf calls it AUX), which a processor writes by itself: Arm's SPE,
//! Intel's PT and BTS.
//!
//! The ring's first page has the buffer's place, as an offset in the event's file behind the
//! records, and a second `mmap` makes it. The processor writes its bytes there. The ring gets a
//! short record of each stretch ([`super::record::AuxSpan`]): when the thread leaves its CPU, when
//! a number of bytes have come, or when the event is turned off. The reader of a stretch moves the
//! buffer's tail behind it. Until then the kernel does not write there, and turns the event off
//! when no room is left. (include/uapi/linux/perf_event.h; `perf_aux_output_begin` and `_end` in
//! kernel/events/ring_buffer.c.)

use std::sync::atomic::Ordering;

use super::event::PerfEvent;
use super::ring::{Ring, copy};
use crate::call::raw;
use crate::error::check;
use crate::{PAGE, Result, Span};

/// Offsets of the buffer's ends, place and size in the kernel's page
/// (`struct perf_event_mmap_page`).
pub(super) const HEAD: usize = 1056;
pub(super) const TAIL: usize = 1064;
const OFFSET: usize = 1072;
const SIZE: usize = 1080;

impl Ring {
    /// Gives the ring of `event` an AUX buffer of `pages` pages, at least two, rounded up to a
    /// power of two. Call it before the event is enabled.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for events without such a buffer, `EPERM` beyond what a user may lock
    /// (`perf_event_mlock_kb`), `ENOMEM`.
    pub fn map_aux(&mut self, event: &PerfEvent, pages: usize) -> Result<()> {
        let bytes = pages.clamp(2, 1 << 16).next_power_of_two() * PAGE;
        let offset = self.memory.len();
        // The kernel compares both values with the mapping that follows.
        self.end(OFFSET).store(offset as u64, Ordering::Relaxed);
        self.end(SIZE).store(bytes as u64, Ordering::Release);
        // A writable mapping makes the kernel respect the tail. Otherwise it overwrites unread
        // bytes.
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping where the kernel likes.
        let r = unsafe {
            raw(libc::SYS_mmap, [0, bytes, access as usize, flags as usize, event.fd() as usize, offset])
        };
        let start = check("mmap(perf AUX buffer)", Span::EMPTY, r)?;
        self.aux = Span::new(start, bytes);
        Ok(())
    }

    /// Bytes of the AUX buffer; 0 if there is none.
    pub const fn aux_bytes(&self) -> u64 {
        self.aux.len() as u64
    }

    /// Number of bytes ever written. A stretch behind this position may have been reported already,
    /// because the kernel reports first.
    pub fn aux_head(&self) -> u64 {
        self.end(HEAD).load(Ordering::Acquire)
    }

    /// Number of bytes ever read.
    pub fn aux_tail(&self) -> u64 {
        self.end(TAIL).load(Ordering::Relaxed)
    }

    /// Replaces the contents of `into` with a stretch that the ring has reported. `false`, without
    /// a change, if the stretch is not in the buffer.
    pub fn read_aux(&self, offset: u64, bytes: u64, into: &mut Vec<u8>) -> bool {
        into.clear();
        let end = offset.wrapping_sub(self.aux_tail()).saturating_add(bytes);
        if end > self.aux_bytes() {
            return false;
        }
        into.resize(bytes as usize, 0);
        copy(self.aux, offset, into);
        true
    }

    /// Releases everything before `to`, so that the kernel may write there. It never goes back.
    pub fn release_aux(&self, to: u64) {
        let ahead = to.wrapping_sub(self.aux_tail());
        if ahead <= self.aux_bytes() {
            // The reads come before this store: the kernel reads the tail and then writes.
            self.end(TAIL).store(to, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CounterSpec, EventTarget, PerfRecord, Pretend};
    use super::*;

    #[test]
    fn the_kernel_gives_no_such_buffer_to_events_that_write_none() {
        let me = EventTarget { thread: 0, cpu: None, inherit: false };
        let opened = PerfEvent::open(&CounterSpec::page_faults(), me, None)
            .and_then(|event| Ring::map(&event, 2).map(|ring| (event, ring)));
        let (event, mut ring) = match opened {
            Ok(both) => both,
            Err(e) => return println!("skipped: {e}"),
        };
        // `EINVAL` would say that place or size are not as the kernel has them.
        let e = ring.map_aux(&event, 4).unwrap_err();
        assert_eq!((e.call, e.errno.0), ("mmap(perf AUX buffer)", libc::EOPNOTSUPP));
        assert_eq!((ring.aux_bytes(), ring.bytes()), (0, 3 * PAGE));
    }

    #[test]
    fn stretches_are_read_round_the_end_and_make_room() {
        let mut pretend = Pretend::new(super::super::SampleFields::TRACE, 1, 2).unwrap();
        let mut bytes = Vec::new();
        for round in 0..50_u64 {
            let written: Vec<u8> = (0..3000).map(|i| (round * 7 + i) as u8).collect();
            assert!(pretend.trace(&written, 0, 7));
            let ring = pretend.ring();
            let mut told = Vec::new();
            ring.drain(|r| told.push(r)).unwrap();
            let [PerfRecord::Aux(s)] = told[..] else { panic!("{told:?}") };
            assert_eq!((s.offset, s.bytes, s.process), (round * 3000, 3000, 7));
            assert!(ring.read_aux(s.offset, s.bytes, &mut bytes));
            assert_eq!(bytes, written, "round {round}");
            ring.release_aux(s.offset + s.bytes);
            assert_eq!(ring.aux_tail(), ring.aux_head());
        }
    }

    #[test]
    fn what_is_not_in_the_buffer_is_not_read_and_no_tail_goes_back() {
        let mut pretend = Pretend::new(super::super::SampleFields::TRACE, 1, 2).unwrap();
        assert!(pretend.trace(&[1; 100], 0, 7) && pretend.trace(&[2; 8000], 0, 7));
        assert!(!pretend.trace(&[3; 200], 0, 7), "no room");
        let ring = pretend.ring();
        let mut bytes = vec![9];
        for (offset, long) in [(0, 8193), (8192, 1), (u64::MAX, 1), (u64::MAX, u64::MAX), (100, u64::MAX)] {
            assert!(!ring.read_aux(offset, long, &mut bytes) && bytes.is_empty(), "{offset} {long}");
        }
        ring.release_aux(100);
        assert!(!ring.read_aux(99, 1, &mut bytes), "it was given back");
        for to in [99, 0, 100 + 8193, u64::MAX] {
            ring.release_aux(to);
            assert_eq!(ring.aux_tail(), 100, "{to}");
        }
        assert!(ring.read_aux(100, 0, &mut bytes) && bytes.is_empty());
    }
}
