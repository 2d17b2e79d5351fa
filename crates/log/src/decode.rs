//! A chunk's payload to records. See [`crate::encode`] for the layout.

use homenode_model::{LineNo, Ticks};

use crate::encode::{CLOCK_LONG, HEAD_MARK, LAST, PC, Place, SUCC, SUCC_NONE, follow, successor};
use crate::error::Wrong;
use crate::mark::MAX_WORDS;
use crate::varint::{self, unzigzag};
use crate::{Mark, Record, RecordKind};

/// Most records in a chunk.
pub const MAX_RECORDS: usize = crate::encode::MAX_CHUNK_WORDS / 2;

/// An access. [`ChunkDecoder::pc`] knows its program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// As in [`Record`].
    pub tick: Ticks,
    /// Line of the virtual address in the recorded process.
    pub line: LineNo,
    /// Store.
    pub write: bool,
    /// Number of its program counter within the chunk.
    pub place: u16,
}

/// Walks through the records of one chunk.
#[derive(Debug, Default)]
pub struct ChunkDecoder {
    raw: Vec<u8>,
    head: usize,
    heads_end: usize,
    delta: usize,
    extra: usize,
    tick: u64,
    cur: u16,
    last_new: u64,
    places: Vec<Place>,
    /// What [`ChunkDecoder::accesses`] met; [`ChunkDecoder::next`] says it.
    failed: Option<Wrong>,
}

fn expected<T>(expected: &str, found: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Expected { expected: expected.into(), found: found.into() })
}

impl ChunkDecoder {
    /// Starts on another payload, whose first clock delta counts from `tick`; `fill` puts the
    /// payload into the buffer.
    ///
    /// # Errors
    /// What `fill` says; [`Wrong::Expected`] if the columns do not add up to the payload.
    pub fn start(
        &mut self,
        tick: u64,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        (self.head, self.heads_end) = (0, 0);
        self.failed = None;
        fill(&mut self.raw)?;
        let len = |i: usize| match self.raw.get(i * 4..i * 4 + 4) {
            Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d]) as usize),
            _ => expected("the lengths of three columns", format!("{} bytes", self.raw.len())),
        };
        let (heads, deltas, extra) = (len(0)?, len(1)?, len(2)?);
        if heads > MAX_RECORDS || 12 + heads + deltas + extra != self.raw.len() {
            return expected(
                &format!("columns that fill the payload of {} bytes", self.raw.len()),
                format!("columns of {heads}, {deltas} and {extra} bytes"),
            );
        }
        self.head = 12;
        self.heads_end = 12 + heads;
        self.delta = self.heads_end;
        self.extra = self.heads_end + deltas;
        self.tick = tick;
        self.cur = 0;
        self.last_new = 0;
        self.places.clear();
        self.places.push([0; 4]);
        Ok(())
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// [`Wrong::Expected`] where the payload does not follow the format; decoding must not go on
    /// then.
    #[inline]
    #[allow(clippy::should_implement_trait)] // not an iterator: callers hold the decoder and refill it
    pub fn next(&mut self) -> Result<Option<Record>, Wrong> {
        if let Some(wrong) = self.failed.take() {
            return Err(wrong);
        }
        if self.head == self.heads_end {
            return Ok(None);
        }
        let head = self.raw[self.head];
        self.head += 1;
        if head & 31 == HEAD_MARK {
            return self.mark().map(Some);
        }
        let Access { tick, line, write, place } = self.access(head)?;
        Ok(Some(Record { tick, what: RecordKind::Access { line, write, pc: self.pc(place) } }))
    }

    /// The program counter of an access of the chunk at hand, by [`Access::place`]; 0 where it is
    /// unknown.
    pub fn pc(&self, place: u16) -> u64 {
        self.places.get(usize::from(place)).map_or(0, |p| p[PC])
    }

    /// The program counters of the chunk's accesses, as far as it has been read.
    pub fn pcs(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.iter().skip(1).map(|p| p[PC])
    }

    /// Puts the accesses up to the next mark, at most `most`, behind those of `out`. None does not
    /// mean that there are no more records: [`ChunkDecoder::next`] knows.
    pub fn accesses(&mut self, out: &mut Vec<Access>, most: usize) {
        for _ in 0..most {
            if self.head == self.heads_end || self.failed.is_some() {
                return;
            }
            let head = self.raw[self.head];
            if head & 31 == HEAD_MARK {
                return;
            }
            self.head += 1;
            match self.access(head) {
                Ok(access) => out.push(access),
                Err(wrong) => {
                    self.failed = Some(wrong);
                    return;
                }
            }
        }
    }

    /// The next mark of the chunk, and nothing of what comes before it: a tenth of the work. `None`
    /// after the last. In a chunk of which marks have been asked for, records cannot be.
    ///
    /// # Errors
    /// As [`ChunkDecoder::next`], for a chunk that is only peeked at.
    pub fn next_mark(&mut self) -> Result<Option<Mark>, Wrong> {
        loop {
            self.head += usual(&self.raw[self.head..self.heads_end]);
            if self.head == self.heads_end {
                return Ok(None);
            }
            let head = self.raw[self.head];
            self.head += 1;
            if head & 31 == HEAD_MARK {
                let RecordKind::Mark(mark) = self.mark()?.what else { continue };
                return Ok(Some(mark));
            }
            if head >> 5 & 3 == SUCC_NONE {
                self.new_successor()?;
            }
            if head & 31 == CLOCK_LONG {
                self.extra()?;
            }
        }
    }

    /// The access whose head has just been read; afterwards `cur` is its place.
    #[inline(always)]
    fn access(&mut self, head: u8) -> Result<Access, Wrong> {
        let slot = head >> 5 & 3;
        let id = if slot == SUCC_NONE {
            self.new_successor()?
        } else {
            successor(self.places[usize::from(self.cur)][SUCC], slot)
        };
        let mut ticks = u64::from(head & 31);
        if head & 31 == CLOCK_LONG {
            ticks = ticks.saturating_add(self.extra()?);
        }
        self.tick = self.tick.saturating_add(ticks);
        self.cur = id;
        let Some(delta) = varint::get(&self.raw, &mut self.delta) else {
            return expected("a line delta", "the end of the chunk");
        };
        let place = &mut self.places[usize::from(id)];
        place[LAST] = place[LAST].wrapping_add(unzigzag(delta) as u64) & LINE_MASK;
        let line = LineNo(place[LAST]);
        Ok(Access { tick: Ticks(self.tick), line, write: head & 0x80 != 0, place: id })
    }

    fn extra(&mut self) -> Result<u64, Wrong> {
        match varint::get(&self.raw, &mut self.extra) {
            Some(v) => Ok(v),
            None => expected("a number", "the end of the chunk"),
        }
    }

    #[cold]
    fn new_successor(&mut self) -> Result<u16, Wrong> {
        let id = self.extra()?;
        let known = self.places.len() as u64;
        if id > known || id > MAX_RECORDS as u64 {
            return expected(&format!("a place below {known}"), format!("place {id}"));
        }
        if id == known {
            let pc = self.last_new.wrapping_add(unzigzag(self.extra()?) as u64);
            self.last_new = pc;
            self.places.push([pc, 0, 0, 0]);
        }
        let succ = &mut self.places[usize::from(self.cur)][SUCC];
        *succ = follow(*succ, id as u16);
        Ok(id as u16)
    }

    #[cold]
    fn mark(&mut self) -> Result<Record, Wrong> {
        let (code, delta, n) = (self.extra()?, self.extra()?, self.extra()? as usize);
        if n > MAX_WORDS {
            return expected(&format!("at most {MAX_WORDS} words of a mark"), n.to_string());
        }
        let mut words = [0; MAX_WORDS];
        for w in &mut words[..n] {
            *w = self.extra()?;
        }
        self.tick = self.tick.saturating_add(delta);
        match u8::try_from(code).ok().and_then(|c| Mark::from_words(c, &words[..n])) {
            Some(mark) => Ok(Record { tick: Ticks(self.tick), what: RecordKind::Mark(mark) }),
            None => expected("a mark", format!("code {code} with {n} words")),
        }
    }
}

/// How many heads at the beginning are of accesses that take nothing from `extra`.
fn usual(heads: &[u8]) -> usize {
    const AT_ONCE: usize = 32;
    let special = |head: u8| (head & 31 >= CLOCK_LONG) | (head & 0x60 == SUCC_NONE << 5);
    let none = |heads: &[u8; AT_ONCE]| !heads.iter().fold(false, |any, head| any | special(*head));
    let (many, _) = heads.as_chunks::<AT_ONCE>();
    let skipped = AT_ONCE * many.iter().take_while(|heads| none(heads)).count();
    skipped + heads[skipped..].iter().take_while(|head| !special(**head)).count()
}

/// Lines of 64-bit addresses.
const LINE_MASK: u64 = u64::MAX >> LineNo::SHIFT;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, MARK_WORDS, MAX_DELTA, SKIP, access_words, mark_words};
    use proptest::prelude::*;

    fn words_of(records: &[Record]) -> Vec<u64> {
        let (mut out, mut tick) = (Vec::new(), 0);
        for r in records {
            let mut delta = r.tick.0 - tick;
            tick = r.tick.0;
            match r.what {
                RecordKind::Access { line, write, pc } => {
                    if delta > MAX_DELTA {
                        out.extend([SKIP, delta]);
                        delta = 0;
                    }
                    out.extend(access_words(line.0, write, pc, delta));
                }
                RecordKind::Mark(m) => {
                    let mut w = [0; MARK_WORDS];
                    let n = mark_words(&m, delta, &mut w);
                    out.extend(&w[..n]);
                }
            }
        }
        out
    }

    fn decoded(raw: &[u8]) -> Result<Vec<Record>, Wrong> {
        let mut d = ChunkDecoder::default();
        d.start(0, |b| {
            b.clear();
            b.extend_from_slice(raw);
            Ok(())
        })?;
        let mut out = Vec::new();
        while let Some(r) = d.next()? {
            out.push(r);
        }
        Ok(out)
    }

    /// The same through [`ChunkDecoder::accesses`], `most` at a time.
    fn decoded_in_batches(raw: &[u8], most: usize) -> Result<Vec<Record>, Wrong> {
        let mut d = ChunkDecoder::default();
        d.start(0, |b| {
            b.clear();
            b.extend_from_slice(raw);
            Ok(())
        })?;
        let (mut out, mut batch) = (Vec::new(), Vec::new());
        loop {
            d.accesses(&mut batch, most);
            let full = !batch.is_empty();
            out.extend(batch.drain(..).map(|Access { tick, line, write, place }| Record {
                tick,
                what: RecordKind::Access { line, write, pc: d.pc(place) },
            }));
            if !full {
                match d.next()? {
                    Some(r) => out.push(r),
                    None => return Ok(out),
                }
            }
        }
    }

    fn marks(raw: &[u8]) -> Result<Vec<Mark>, Wrong> {
        let mut d = ChunkDecoder::default();
        d.start(0, |b| {
            b.clear();
            b.extend_from_slice(raw);
            Ok(())
        })?;
        std::iter::from_fn(|| d.next_mark().transpose()).collect()
    }

    fn record() -> impl Strategy<Value = (u64, RecordKind)> {
        let clock = prop_oneof![4 => 0..40u64, 1 => 0..1_000_000u64];
        let access = (0..1u64 << 50, any::<bool>(), prop_oneof![0..6u64, 0..1u64 << 47])
            .prop_map(|(line, write, pc)| RecordKind::Access { line: LineNo(line), write, pc });
        let mark = (any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(address, bytes, order)| RecordKind::Mark(Mark::NextTouch { address, bytes, order }));
        (clock, prop_oneof![9 => access, 1 => mark])
    }

    proptest! {
        #[test]
        fn records_survive(list in prop::collection::vec(record(), 0..400)) {
            let mut tick = 0;
            let records: Vec<Record> = list.into_iter().map(|(d, what)| {
                tick += d;
                Record { tick: Ticks(tick), what }
            }).collect();
            let mut encoder = Encoder::new();
            encoder.encode(&words_of(&[])); // the state of an earlier chunk must not show
            let encoded = encoder.encode(&words_of(&records));
            prop_assert_eq!(encoded.records as usize, records.len());
            prop_assert_eq!(encoded.ticks, tick);
            prop_assert_eq!(&decoded(encoded.raw).unwrap(), &records);
            prop_assert_eq!(&decoded_in_batches(encoded.raw, 1 + records.len() % 7).unwrap(), &records);
            let is_mark = |r: &Record| if let RecordKind::Mark(mark) = r.what { Some(mark) } else { None };
            let all: Vec<Mark> = records.iter().filter_map(is_mark).collect();
            prop_assert_eq!(marks(encoded.raw).unwrap(), all);
        }

        #[test]
        fn damage_never_panics(list in prop::collection::vec(record(), 1..50), at: usize, byte: u8, cut: usize) {
            let records: Vec<Record> =
                list.into_iter().map(|(d, what)| Record { tick: Ticks(d), what }).collect();
            let mut sorted = records;
            sorted.sort_by_key(|r| r.tick);
            let mut encoder = Encoder::new();
            let mut raw = encoder.encode(&words_of(&sorted)).raw.to_vec();
            let n = raw.len();
            raw[at % n] = byte;
            raw.truncate(n - cut % n);
            let (one, batch) = (decoded(&raw), decoded_in_batches(&raw, 3));
            let _ = marks(&raw);
            prop_assert_eq!(one.is_ok(), batch.is_ok());
            if let (Ok(one), Ok(batch)) = (one, batch) {
                prop_assert_eq!(one.len(), batch.len());
            }
        }
    }

    #[test]
    fn words_of_a_half_written_record_are_ignored() {
        let mut words = access_words(7, true, 9, 1).to_vec();
        words.push(access_words(8, true, 9, 1)[0]);
        let mut encoder = Encoder::new();
        assert_eq!(encoder.encode(&words).records, 1);
    }
}
