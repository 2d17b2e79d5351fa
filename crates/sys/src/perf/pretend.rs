//! A ring whose kernel is the caller, to test readers of rings where the kernel has no such events.

use std::sync::atomic::Ordering;

use super::aux::{HEAD, TAIL};
use super::event::SampleFields;
use super::ring::{DATA_HEAD, DATA_TAIL, Ring};
use crate::memory::{Protection, map};
use crate::{PAGE, Result, Span};

/// `PERF_RECORD_AUX`.
const AUX: u32 = 11;

/// See the module. The ring goes with it.
#[derive(Debug)]
pub struct Pretend {
    ring: Ring,
}

impl Pretend {
    /// A ring of `pages` pages of records with `fields`, and an AUX buffer of `aux` pages; powers
    /// of two.
    ///
    /// # Errors
    /// As [`map`].
    pub fn new(fields: SampleFields, pages: usize, aux: usize) -> Result<Self> {
        let pages = pages.clamp(1, 1 << 16).next_power_of_two();
        let mut ring = Ring::of(map((1 + pages) * PAGE, Protection::ReadWrite)?, fields);
        ring.aux = map(aux.clamp(1, 1 << 16).next_power_of_two() * PAGE, Protection::ReadWrite)?;
        Ok(Self { ring })
    }

    /// What a reader has.
    pub const fn ring(&mut self) -> &mut Ring {
        &mut self.ring
    }

    /// A record as the kernel writes it, if there is room.
    pub fn record(&mut self, kind: u32, words: &[u64]) -> bool {
        let length = 8 + 8 * words.len();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend((length as u16).to_ne_bytes());
        words.iter().for_each(|w| bytes.extend(w.to_ne_bytes()));
        let data = Span::new(self.ring.memory.start + PAGE, self.ring.bytes);
        self.append(data, [DATA_HEAD, DATA_TAIL], &bytes).is_some()
    }

    /// Bytes of a trace that end here, and the record of them: by this `process`, its first thread,
    /// at time 1 on CPU 0.
    pub fn trace(&mut self, bytes: &[u8], flags: u64, process: u32) -> bool {
        let Some(offset) = self.append(self.ring.aux, [HEAD, TAIL], bytes) else { return false };
        let mut whose = [0; 8];
        whose[..4].copy_from_slice(&process.to_ne_bytes());
        whose[4..].copy_from_slice(&process.to_ne_bytes());
        let words = [offset, bytes.len() as u64, flags, u64::from_ne_bytes(whose), 1, 0];
        self.record(AUX, &words)
    }

    /// Bytes of the AUX buffer that are padding, of which no record tells.
    pub fn skip(&self, bytes: u64) {
        let head = self.ring.end(HEAD);
        head.store(head.load(Ordering::Relaxed) + bytes, Ordering::Release);
    }

    /// Writes at the head, round the end of the buffer, and moves the head; where the bytes begin.
    fn append(&self, buffer: Span, [head, tail]: [usize; 2], bytes: &[u8]) -> Option<u64> {
        let at = self.ring.end(head).load(Ordering::Relaxed);
        let used = at - self.ring.end(tail).load(Ordering::Acquire);
        if used as usize + bytes.len() > buffer.len() {
            return None;
        }
        for (place, byte) in (at..).zip(bytes) {
            let place = buffer.start + (place % buffer.len() as u64) as usize;
            // SAFETY: within the buffer, which lives as long as the ring; nobody reads behind the
            // head.
            unsafe { (place as *mut u8).write(*byte) };
        }
        self.ring.end(head).store(at + bytes.len() as u64, Ordering::Release);
        Some(at)
    }
}
