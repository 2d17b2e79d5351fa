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
//! *In a chunk* the accesses become three columns, so that the compressor sees alike bytes side by side. A program's
//! accesses come from few places in its source, each place walks through memory in its own steady way, and places
//! follow each other in loops. So each program counter keeps the line it touched last and three counters that have
//! followed it (a newcomer takes their places in turn; nothing is sorted, so that nothing has to be guessed by the
//! branch predictor):
//!
//! * `heads`, a byte a record: bit 7 store, bits 5–6 which of the three successors this counter is (3: none, its
//!   number stands in `extra`), bits 0–4 clock delta (30: the rest stands in `extra`; 31: the record is a mark, in
//!   `extra`);
//! * `deltas`, a zigzag varint an access: line minus the last line of the same counter;
//! * `extra`: varints for everything rare.
//!
//! NAS CG and MG come out at 0.1 to 3 bytes an access after LZ4.

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

/// What is known of one program counter within a chunk. The decoder keeps the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub pc: u64,
    pub last: u64,
    pub succ: [u16; 3],
    victim: u8,
}

impl Place {
    /// A counter that has not been seen before.
    pub fn new(pc: u64) -> Self {
        Self { pc, ..Self::default() }
    }

    /// Which successor `id` is.
    #[inline]
    fn slot(&self, id: u16) -> u8 {
        let [a, b, c] = self.succ;
        let not = |x: u16| u8::from(x != id);
        not(a) * (1 + not(b) * (1 + not(c)))
    }

    /// Makes `id` a successor.
    #[inline]
    pub fn follow(&mut self, id: u16) {
        let at = usize::from(self.victim);
        self.succ[at] = id;
        self.victim = if at == 2 { 0 } else { self.victim + 1 };
    }
}

const HASH: usize = 1 << 16;

/// Turns in-memory records into chunk payloads. All its memory is taken at creation.
pub struct Encoder {
    places: Vec<Place>,
    /// Open addressing, `generation << 16 | place`.
    hash: Vec<u32>,
    generation: u16,
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
    /// The place of the last access.
    cur: u16,
    /// The counter that was last new.
    last_new: u64,
    skipped: u64,
    ticks: u64,
    ordered: bool,
    marks: bool,
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
    /// Takes about 3 MB of address space, of which little is ever touched.
    pub fn new() -> Self {
        Self {
            places: Vec::with_capacity(MAX_CHUNK_WORDS / 2 + 1),
            hash: vec![0; HASH],
            generation: 0,
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

    /// Adds whole records to the chunk. Words behind the last whole record, and those beyond [`MAX_CHUNK_WORDS`] in all,
    /// are ignored.
    pub fn add(&mut self, words: &[u64]) {
        let words = &words[..words.len().min(MAX_CHUNK_WORDS - self.at.words)];
        if self.places.is_empty() {
            self.reset();
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

    /// Adds accesses as long as each comes from a known place that has followed the one before it, which is the usual
    /// case. Returns the position of the first record that is not so. Everything it needs is at hand in locals, and no
    /// record waits for the one before it: a place is found from its program counter alone.
    fn add_usual(&mut self, words: &[u64], mut at: usize) -> usize {
        let generation = self.generation;
        let (Ok(hash), places) = (<&[u32; HASH]>::try_from(&self.hash[..]), &mut self.places[..]) else {
            return at;
        };
        let (head_bytes, delta_bytes, extra_bytes) =
            (&mut self.heads[..], &mut self.deltas[..], &mut self.extra[..]);
        let At { mut heads, mut deltas, mut extra, mut cur, mut ticks, skipped, .. } = self.at;
        while let (Some(&[w0, w1]), 0) = (words.get(at..at + 2), skipped) {
            let pc = w1 >> 16;
            let cell = hash[Self::hash_of(pc)];
            let id = cell as u16;
            let Some(place) = places.get(usize::from(id)) else { break };
            let slot = match places.get(usize::from(cur)) {
                Some(before) => before.slot(id),
                None => SUCC_NONE,
            };
            let unknown = (cell >> 16) as u16 != generation || place.pc != pc;
            if w0 & 0xff > 1 || unknown || slot == SUCC_NONE {
                break;
            }
            let last = place.last;
            let Some(head) = head_bytes.get_mut(heads) else { break };
            at += 2;
            let (line, write, delta) = (w0 >> 8, w0 as u8 & 1, w1 & MAX_DELTA);
            ticks = ticks.saturating_add(delta);
            let short = delta.min(u64::from(CLOCK_LONG)) as u8;
            *head = write << 7 | slot << 5 | short;
            heads += 1;
            if short == CLOCK_LONG {
                extra = varint::put_short(extra_bytes, extra, delta - u64::from(CLOCK_LONG));
            }
            deltas = varint::put_short(delta_bytes, deltas, zigzag(line.wrapping_sub(last) as i64));
            places[usize::from(id)].last = line;
            cur = id;
        }
        self.at = At { heads, deltas, extra, cur, ticks, ..self.at };
        at
    }

    /// Adds an access of any kind.
    #[cold]
    fn add_access(&mut self, w0: u64, w1: u64) {
        let (line, write, pc) = (w0 >> 8, w0 as u8 & 1, w1 >> 16);
        let delta = (w1 & MAX_DELTA) + std::mem::take(&mut self.at.skipped);
        self.at.ticks = self.at.ticks.saturating_add(delta);
        let (slot, id) = self.place(pc);
        let short = delta.min(u64::from(CLOCK_LONG)) as u8;
        if short == CLOCK_LONG {
            self.at.extra = varint::put(&mut self.extra, self.at.extra, delta - u64::from(CLOCK_LONG));
        }
        self.heads[self.at.heads] = write << 7 | slot << 5 | short;
        self.at.heads += 1;
        self.at.cur = id;
        let place = &mut self.places[usize::from(id)];
        let step = zigzag(line.wrapping_sub(place.last) as i64);
        self.at.deltas = varint::put_short(&mut self.deltas, self.at.deltas, step);
        place.last = line;
    }

    /// Ends the chunk; the next one starts anew.
    pub fn finish(&mut self) -> Encoded<'_> {
        let At { heads, deltas, extra, ticks, ordered, marks, .. } = std::mem::take(&mut self.at);
        self.places.clear();
        self.join(heads, deltas, extra);
        Encoded { raw: &self.raw, records: heads as u32, ticks, ordered, marks }
    }

    fn reset(&mut self) {
        self.places.clear();
        self.places.push(Place::default());
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.hash.fill(0);
            self.generation = 1;
        }
    }

    #[inline]
    fn hash_of(pc: u64) -> usize {
        (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
    }

    /// Which successor of the last access's place the counter `pc` is, and its number; writes the number to `extra` if
    /// it is none.
    fn place(&mut self, pc: u64) -> (u8, u16) {
        let (id, new) = self.find(pc);
        let cur = usize::from(self.at.cur);
        let slot = self.places[cur].slot(id);
        if slot != SUCC_NONE {
            return (slot, id);
        }
        self.at.extra = varint::put(&mut self.extra, self.at.extra, u64::from(id));
        if new {
            let step = zigzag(pc.wrapping_sub(self.at.last_new) as i64);
            self.at.extra = varint::put(&mut self.extra, self.at.extra, step);
            self.at.last_new = pc;
        }
        self.places[cur].follow(id);
        (SUCC_NONE, id)
    }

    fn find(&mut self, pc: u64) -> (u16, bool) {
        if pc == 0 {
            return (0, false);
        }
        let mut at = Self::hash_of(pc);
        loop {
            let cell = self.hash[at];
            if (cell >> 16) as u16 != self.generation {
                let id = self.places.len() as u16;
                self.places.push(Place::new(pc));
                self.hash[at] = u32::from(self.generation) << 16 | u32::from(id);
                return (id, true);
            }
            if self.places[usize::from(cell as u16)].pc == pc {
                return (cell as u16, false);
            }
            at = (at + 1) % HASH;
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
