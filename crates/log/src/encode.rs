//! Records in memory to a chunk.
//!
//! *In memory* (what a recorder's slow path writes, two stores an access):
//!
//! | record | words |
//! |---|---|
//! | access | `line << 8 \| write`, `pc << 16 \| clock delta` |
//! | clock skip | `2`, clock delta (deltas above 65 535) |
//! | mark | `words << 16 \| code << 8 \| 0xff`, clock delta, its words |
//!
//! *In a chunk* the accesses become three columns, so that the compressor sees alike bytes side by
//! side. A program's accesses come from few places in its source, each place walks through memory
//! in its own steady way, and places follow each other in loops. So each program counter keeps the
//! line it touched last and three counters that have followed it (a newcomer takes their places in
//! turn; nothing is sorted, so that nothing has to be guessed by the branch predictor):
//!
//! * `heads`, a byte a record: bit 7 store, bits 5–6 which of the three successors this counter is
//!   (3: none, its number stands in `extra`), bits 0–4 clock delta (30: the rest stands in `extra`;
//!   31: the record is a mark, in `extra`);
//! * `deltas`, a zigzag varint an access: line minus the last line of the same counter;
//! * `extra`: varints for everything rare.
//!
//! NAS MG comes out at 0.04 bytes an access after LZ4, NAS CG at 2.1 without (1.2 with it).

use crate::mark::{MAX_WORDS, Mark};
use crate::varint::{self, zigzag};

/// Most words of in-memory records in a chunk.
pub const MAX_CHUNK_WORDS: usize = 1 << 16;
/// Low byte of a mark's first word.
pub const MARK_TAG: u64 = 0xff;
/// First word of a clock skip.
pub const SKIP: u64 = 2;
/// Clock delta that an access's second word can hold.
pub const MAX_DELTA: u64 = 0xffff;
/// Words a mark can take in memory.
pub const MARK_WORDS: usize = 2 + MAX_WORDS;

pub(crate) const CLOCK_LONG: u8 = 30;
pub(crate) const HEAD_MARK: u8 = 31;
pub(crate) const SUCC_NONE: u8 = 3;

/// The two words of an access. `pc` has at most 48 bits, `delta` is at most [`MAX_DELTA`].
#[inline]
pub const fn access_words(line: u64, write: bool, pc: u64, delta: u64) -> [u64; 2] {
    [line << 8 | write as u64, pc << 16 | delta]
}

/// Writes a mark's words to `out`; returns how many.
pub fn mark_words(mark: &Mark, delta: u64, out: &mut [u64; MARK_WORDS]) -> usize {
    let (words, n) = mark.words();
    out[0] = (n as u64) << 16 | u64::from(mark.code()) << 8 | MARK_TAG;
    out[1] = delta;
    out[2..2 + n].copy_from_slice(&words[..n]);
    2 + n
}

const fn is_ordered(code: u8) -> bool {
    code == Mark::Acquire { lock: 0, order: 0 }.code()
        || code == Mark::Atomic { address: 0, write: 0, order: 0 }.code()
}

/// What is known of one program counter within a chunk: the counter, the line it touched last, and
/// three places that have followed it, 16 bits each, above them which of these the next newcomer
/// replaces. The decoder keeps the same.
///
/// An array of numbers, because only of such ones the allocator gives zeros that take no memory
/// until they are touched.
pub(crate) type Place = [u64; 4];
pub(crate) const PC: usize = 0;
pub(crate) const LAST: usize = 1;
pub(crate) const SUCC: usize = 2;

const LANES: u64 = 0x0001_0001_0001;

/// The highest bit of the lowest lane that is zero; bits above it mean nothing. 0 if none is.
#[inline]
const fn zero_lanes(lanes: u64) -> u64 {
    lanes.wrapping_sub(LANES) & !lanes & LANES << 15
}

/// Which successor `id` is, the first if it is several.
#[inline]
pub(crate) fn slot_of(succ: u64, id: u16) -> u8 {
    ((zero_lanes(succ ^ (u64::from(id) * LANES)) | 1 << 63).trailing_zeros() / 16) as u8
}

/// Successor number `slot` of 0, 1, 2.
#[inline]
pub(crate) fn successor(succ: u64, slot: u8) -> u16 {
    (succ >> (16 * slot)) as u16
}

/// Makes `id` a successor.
#[inline]
pub(crate) fn follow(succ: u64, id: u16) -> u64 {
    let victim = succ >> 48;
    let shift = 16 * victim;
    let lanes = succ & 0xffff_ffff_ffff & !(0xffff << shift) | u64::from(id) << shift;
    lanes | (((victim + 1) % 3) << 48)
}

/// What the encoder knows of a program counter: a [`Place`], its number three times, as [`SUCC`]
/// has numbers, and who followed it last: that one's slot, above it (from bit 16) which successor
/// it is, as a head has it. A power of two in size, so that it is found by a shift.
type Slot = [u64; 8];
const LANED: usize = 3;
const NEXT: usize = 4;

/// Which slot a [`NEXT`] names.
const fn next_slot(next: u64) -> usize {
    next as usize % SLOTS
}

/// A [`NEXT`].
const fn next_of(at: usize, number: u8) -> u64 {
    at as u64 | (number as u64) << (16 + 5)
}

/// Slots; more than twice as many as a chunk has records.
const SLOTS: usize = 1 << 16;

/// Where to look for a program counter first. Counters of one loop lie close together, and so do
/// their slots: in few pages and never on top of each other, for an instruction that accesses
/// memory has at least two bytes.
#[inline]
const fn slot_number(pc: u64) -> usize {
    ((pc >> 1) ^ (pc >> 17)) as usize % SLOTS
}

/// The slot of a program counter, or the one that it is to have. There is one, because a chunk has
/// fewer records.
fn find(slots: &[Slot], pc: u64) -> usize {
    let mut at = slot_number(pc);
    while pc != 0 && (at == 0 || ![0, pc].contains(&slots[at][PC])) {
        at = (at + 1) % SLOTS;
    }
    if pc == 0 { 0 } else { at }
}

/// Records that are looked at before their varints are written.
const BATCH: usize = 512;
/// Where fewer records than this came as foreseen, the next ones are looked up without foreseeing:
/// first a few, then more each time, up to [`MOST_UNFORESEEN`].
const SHORT: usize = 16;
const MOST_UNFORESEEN: usize = 256;

/// Turns in-memory records into chunk payloads. All its memory is taken at creation.
pub struct Encoder {
    /// Open addressing; the first is that of counter 0 and of no other, empty ones are zeros.
    slots: Vec<Slot>,
    /// Which slots are in use, by number.
    known: Vec<u16>,
    /// Line steps and long clock deltas of a batch.
    steps: Box<[u64; BATCH]>,
    longs: Box<[u16; BATCH]>,
    heads: Vec<u8>,
    deltas: Vec<u8>,
    extra: Vec<u8>,
    raw: Vec<u8>,
    at: At,
}

/// How far the chunk has come.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    /// Words taken.
    words: usize,
    /// Bytes in the columns.
    heads: usize,
    deltas: usize,
    extra: usize,
    /// The slot of the last access.
    cur: u16,
    /// How many records to look up after the next one that comes otherwise than foreseen.
    unforeseen: usize,
    /// The counter that was last new.
    last_new: u64,
    skipped: u64,
    ticks: u64,
    ordered: bool,
    marks: bool,
}

/// Columns of a batch, and what has been written to them.
struct Batch<'a> {
    slots: &'a mut [Slot; SLOTS],
    heads: &'a mut [u8],
    steps: &'a mut [u64; BATCH],
    longs: &'a mut [u16; BATCH],
    /// Records.
    n: usize,
    /// Long clock deltas.
    long: usize,
    ticks: u64,
    /// The slot of the last access.
    cur: usize,
}

impl Batch<'_> {
    /// Takes records while each comes from the place that [`NEXT`] names. One place waits for the
    /// one before it, but for no more than two loads.
    fn take_foreseen(&mut self, records: &[[u64; 2]]) {
        let (mut long, mut ticks, mut cur, mut n) = (self.long, self.ticks, self.cur, 0);
        let mut next = self.slots[cur][NEXT];
        let places = self.heads[self.n..].iter_mut().zip(&mut self.steps[self.n..]);
        for (&[w0, w1], (head, step)) in records.iter().zip(places) {
            let slot = &mut self.slots[next_slot(next)];
            if (w0 & 0xfe) | (w1 >> 16 ^ slot[PC]) != 0 {
                break;
            }
            cur = next_slot(next);
            let short = clock(w1, self.longs, &mut long, &mut ticks);
            *head = (w0 << 7) as u8 | (next >> 16) as u8 | short;
            *step = walk(slot, w0);
            next = slot[NEXT];
            n += 1;
        }
        (self.long, self.ticks, self.cur, self.n) = (long, ticks, cur, self.n + n);
    }

    /// Takes records while each comes from a known place that has followed the one before it. None
    /// waits for the one before it (a place is found from its program counter alone), and nothing
    /// but the end is a branch.
    fn take_known(&mut self, records: &[[u64; 2]]) {
        let (mut long, mut ticks, mut n, mut last) = (self.long, self.ticks, 0, 0);
        let mut succ = self.slots[self.cur][SUCC];
        let places = self.heads[self.n..].iter_mut().zip(&mut self.steps[self.n..]);
        for (&[w0, w1], (head, step)) in records.iter().zip(places) {
            let pc = w1 >> 16;
            let slot = &mut self.slots[slot_number(pc)];
            let lanes = zero_lanes(succ ^ slot[LANED]);
            if (w0 & 0xfe) | (pc ^ slot[PC]) != 0 || lanes == 0 {
                break;
            }
            let short = clock(w1, self.longs, &mut long, &mut ticks);
            *head = (w0 << 7) as u8 | ((lanes.trailing_zeros() & 0x30) as u8 * 2) | short;
            *step = walk(slot, w0);
            succ = slot[SUCC];
            last = pc;
            n += 1;
        }
        if n > 0 {
            self.cur = find(self.slots, last);
        }
        (self.long, self.ticks, self.n) = (long, ticks, self.n + n);
    }

    /// Takes one record as [`Batch::take_known`] does, and remembers who followed whom.
    fn learn(&mut self, record: &[[u64; 2]]) -> bool {
        let (before, n) = (self.cur, self.n);
        self.take_known(record);
        if self.n == n {
            return false;
        }
        self.slots[before][NEXT] = u64::from(self.heads[n] & 0x60) << 16 | self.cur as u64;
        true
    }
}

/// A head's part of a record's clock delta; what it has no room for goes to `longs`.
#[inline(always)]
fn clock(w1: u64, longs: &mut [u16; BATCH], long: &mut usize, ticks: &mut u64) -> u8 {
    let delta = w1 & MAX_DELTA;
    *ticks += delta;
    let short = delta.min(u64::from(CLOCK_LONG));
    longs[*long % BATCH] = (delta - short) as u16;
    *long += usize::from(short == u64::from(CLOCK_LONG));
    short as u8
}

/// How far the place has come since its last line, zigzag.
#[inline(always)]
fn walk(slot: &mut Slot, w0: u64) -> u64 {
    let line = w0 >> 8;
    let step = zigzag(line.wrapping_sub(slot[LAST]) as i64);
    slot[LAST] = line;
    step
}

/// A chunk before compression.
pub struct Encoded<'a> {
    /// The payload.
    pub raw: &'a [u8],
    /// Records in it, clock skips not counted.
    pub records: u32,
    /// Sum of all clock deltas.
    pub ticks: u64,
    /// Whether it has marks whose order among threads matters (`Acquire`, `Atomic`).
    pub ordered: bool,
    /// Whether it has any mark.
    pub marks: bool,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// Takes about 7 MB of address space, of which little is ever touched.
    pub fn new() -> Self {
        Self {
            slots: vec![[0; 8]; SLOTS],
            known: Vec::with_capacity(MAX_CHUNK_WORDS / 2 + 1),
            steps: Box::new([0; BATCH]),
            longs: Box::new([0; BATCH]),
            heads: vec![0; MAX_CHUNK_WORDS / 2],
            deltas: vec![0; MAX_CHUNK_WORDS / 2 * varint::MAX],
            extra: vec![0; MAX_CHUNK_WORDS * 12 + 64],
            raw: Vec::with_capacity(MAX_CHUNK_WORDS * 18 + 128),
            at: At::default(),
        }
    }

    /// Words taken since the last chunk was finished.
    pub const fn words(&self) -> usize {
        self.at.words
    }

    /// A chunk of these records.
    pub fn encode(&mut self, words: &[u64]) -> Encoded<'_> {
        self.add(words);
        self.finish()
    }

    /// Adds whole records to the chunk. Words behind the last whole record, and those beyond
    /// [`MAX_CHUNK_WORDS`] in all, are ignored.
    pub fn add(&mut self, words: &[u64]) {
        let words = &words[..words.len().min(MAX_CHUNK_WORDS - self.at.words)];
        if self.known.is_empty() {
            self.known.push(0);
        }
        let mut at = 0;
        while at + 2 <= words.len() {
            at = self.add_usual(words, at);
            let Some(&[w0, w1]) = words.get(at..at + 2) else { break };
            at += 2;
            if w0 & 0xff <= 1 {
                self.add_access(w0, w1);
            } else if w0 & 0xff == MARK_TAG {
                let n = (w0 >> 16) as usize;
                let Some(body) = words.get(at..at + n).filter(|_| n <= MAX_WORDS) else { break };
                at += n;
                self.at.marks = true;
                self.at.ordered |= is_ordered((w0 >> 8) as u8);
                let delta = w1.saturating_add(std::mem::take(&mut self.at.skipped));
                self.at.ticks = self.at.ticks.saturating_add(delta);
                self.heads[self.at.heads] = HEAD_MARK;
                self.at.heads += 1;
                for v in [w0 >> 8 & 0xff, delta, n as u64].iter().chain(body) {
                    self.at.extra = varint::put(&mut self.extra, self.at.extra, *v);
                }
            } else {
                self.at.skipped = self.at.skipped.saturating_add(w1);
            }
        }
        self.at.words += words.len();
    }

    /// Adds accesses as long as each comes from a known place that has followed the one before it,
    /// which is the usual case. Returns the position of the first record that is not so.
    ///
    /// First those that come as the last time, in a loop over a grid for example, as long as that
    /// goes well; the others after them. The varints are written behind, so that each loop keeps
    /// what it needs in registers.
    fn add_usual(&mut self, words: &[u64], at: usize) -> usize {
        let Ok(slots) = <&mut [Slot; SLOTS]>::try_from(&mut self.slots[..]) else { return at };
        if self.at.skipped != 0 {
            return at;
        }
        let (records, _) = words[at..].as_chunks::<2>();
        let records = &records[..records.len().min(BATCH)];
        let (steps, longs) = (&mut *self.steps, &mut *self.longs);
        let heads = &mut self.heads[self.at.heads..];
        let cur = usize::from(self.at.cur);
        let mut batch = Batch { slots, heads, steps, longs, n: 0, long: 0, ticks: 0, cur };
        loop {
            let from = batch.n;
            batch.take_foreseen(&records[from..]);
            let came = batch.n;
            if came == records.len() || !batch.learn(&records[came..=came]) {
                break;
            }
            if came - from >= SHORT {
                self.at.unforeseen = 0;
            } else {
                let (from, most) = (batch.n, self.at.unforeseen);
                batch.take_known(&records[from..records.len().min(from + most)]);
                self.at.unforeseen = (2 * most + 2).min(MOST_UNFORESEEN);
            }
        }
        let Batch { n, long, ticks, cur, .. } = batch;
        if n == 0 {
            return at;
        }
        self.at.cur = cur as u16;
        self.at.heads += n;
        self.at.ticks = self.at.ticks.saturating_add(ticks);
        self.at.deltas = varint::put_many(&mut self.deltas, self.at.deltas, &self.steps[..n]);
        for long in &self.longs[..long] {
            self.at.extra = varint::put_short(&mut self.extra, self.at.extra, u64::from(*long));
        }
        at + 2 * n
    }

    /// Adds an access of any kind.
    #[cold]
    fn add_access(&mut self, w0: u64, w1: u64) {
        let (line, write, pc) = (w0 >> 8, w0 as u8 & 1, w1 >> 16);
        let delta = (w1 & MAX_DELTA) + std::mem::take(&mut self.at.skipped);
        self.at.ticks = self.at.ticks.saturating_add(delta);
        let (succ, at) = self.place(pc);
        let short = delta.min(u64::from(CLOCK_LONG)) as u8;
        if short == CLOCK_LONG {
            self.at.extra = varint::put(&mut self.extra, self.at.extra, delta - u64::from(CLOCK_LONG));
        }
        self.heads[self.at.heads] = write << 7 | succ << 5 | short;
        self.at.heads += 1;
        self.at.cur = at as u16;
        let place = &mut self.slots[at];
        let step = zigzag(line.wrapping_sub(place[LAST]) as i64);
        self.at.deltas = varint::put_short(&mut self.deltas, self.at.deltas, step);
        place[LAST] = line;
    }

    /// Ends the chunk; the next one starts anew.
    pub fn finish(&mut self) -> Encoded<'_> {
        let At { heads, deltas, extra, ticks, ordered, marks, .. } = std::mem::take(&mut self.at);
        self.reset();
        self.join(heads, deltas, extra);
        Encoded { raw: &self.raw, records: heads as u32, ticks, ordered, marks }
    }

    /// Which successor of the last access's place the counter `pc` is, and its slot; writes its
    /// number to `extra` if it is none.
    fn place(&mut self, pc: u64) -> (u8, usize) {
        let at = find(&self.slots, pc);
        let new = pc != 0 && self.slots[at][PC] == 0;
        if new {
            let id = self.known.len() as u64;
            self.known.push(at as u16);
            self.slots[at] = [pc, 0, 0, id * LANES, 0, 0, 0, 0];
        }
        let id = self.slots[at][LANED] as u16;
        let succ = &mut self.slots[usize::from(self.at.cur)][SUCC];
        let slot = slot_of(*succ, id);
        if slot != SUCC_NONE {
            return (slot, at);
        }
        let newest = (*succ >> 48) as u8;
        *succ = follow(*succ, id);
        self.slots[usize::from(self.at.cur)][NEXT] = next_of(at, newest);
        self.at.extra = varint::put(&mut self.extra, self.at.extra, u64::from(id));
        if new {
            let step = zigzag(pc.wrapping_sub(self.at.last_new) as i64);
            self.at.extra = varint::put(&mut self.extra, self.at.extra, step);
            self.at.last_new = pc;
        }
        (SUCC_NONE, at)
    }

    /// Forgets all places.
    fn reset(&mut self) {
        for at in self.known.drain(..) {
            self.slots[usize::from(at)] = [0; 8];
        }
    }

    fn join(&mut self, heads: usize, deltas: usize, extra: usize) {
        self.raw.clear();
        for n in [heads, deltas, extra] {
            self.raw.extend_from_slice(&(n as u32).to_le_bytes());
        }
        self.raw.extend_from_slice(&self.heads[..heads]);
        self.raw.extend_from_slice(&self.deltas[..deltas]);
        self.raw.extend_from_slice(&self.extra[..extra]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each record by itself, by the way that takes anything.
    fn one_by_one(words: &[u64]) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.known.push(0);
        for &[w0, w1] in words.as_chunks::<2>().0 {
            encoder.add_access(w0, w1);
        }
        encoder.finish().raw.to_vec()
    }

    proptest! {
        /// Loops over a few places, with other ones in between, and with places whose slots
        /// collide.
        #[test]
        fn what_is_foreseen_is_written_as_what_is_not(
            loops in prop::collection::vec((prop::collection::vec(0..12u64, 1..20), 1..60usize), 1..12),
            far: bool,
            deltas in prop::collection::vec(0..40u64, 1..50),
        ) {
            let mut words = Vec::new();
            let mut deltas = deltas.iter().cycle();
            for (places, times) in &loops {
                for (time, place) in (0..*times).flat_map(|t| places.iter().map(move |p| (t, p))) {
                    let pc = if far { place << 19 | 8 } else { place * 8 };
                    let line = place * 1000 + time as u64 * (place + 1);
                    words.extend(access_words(line, place % 3 == 0, pc, *deltas.next().unwrap_or(&1)));
                }
            }
            words.truncate(MAX_CHUNK_WORDS);
            let whole = Encoder::new().encode(&words).raw.to_vec();
            prop_assert_eq!(whole, one_by_one(&words));
        }
    }
}
