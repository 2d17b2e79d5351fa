//! A chunk as bytes, and back within a budget of memory.
//!
//! ```text
//! chunk  = column*
//! column = length u32 | kind u8 | absent | values
//! absent = how many rows have no value | rows up to each of them
//! values = numbers:  difference to the number before, of each row that has one
//!          texts:    dictionary, then the word of each row that has one
//!          lists:    length of each row's list, then all elements as above
//! ```
//!
//! Numbers are LEB128, differences zigzag. Bytes of strangers: every length is checked before
//! anything is allocated, and a chunk never takes more than [`BUDGET`] bytes of memory.

use std::collections::HashMap;

use crate::column::{Chunk, ColumnData, ColumnKind, Texts, Values};
use crate::foreign::clean;

/// Most bytes that a chunk may take in memory.
pub const BUDGET: usize = 48 << 20;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stored {
    Int = 0,
    Text = 1,
    Ints = 2,
    Texts = 3,
}

impl Stored {
    pub const fn of(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Int | ColumnKind::Flag => Self::Int,
            ColumnKind::Word(_) | ColumnKind::Text => Self::Text,
            ColumnKind::Ints => Self::Ints,
            ColumnKind::Texts => Self::Texts,
        }
    }

    const fn of_values(values: &Values) -> Self {
        match values {
            Values::Ints(_) => Self::Int,
            Values::Texts(_) => Self::Text,
            Values::IntLists(..) => Self::Ints,
            Values::TextLists(..) => Self::Texts,
        }
    }

    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Int),
            1 => Some(Self::Text),
            2 => Some(Self::Ints),
            3 => Some(Self::Texts),
            _ => None,
        }
    }
}

/// Adds a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Adds a text with its length.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

const fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

const fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// Adds differences.
fn put_steps(out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    let mut before = 0_u64;
    for v in values {
        put(out, zigzag(v.wrapping_sub(before) as i64));
        before = v;
    }
}

/// Words that are looked for one by one before a map is asked.
const FEW: usize = 8;

/// The words of some texts, in order of first occurrence.
#[derive(Default)]
struct Dictionary<'a> {
    /// Number of the text that came last.
    last: usize,
    words: Vec<&'a str>,
    numbers: HashMap<&'a str, u64>,
}

impl<'a> Dictionary<'a> {
    #[inline]
    fn number(&mut self, text: &'a str) -> u64 {
        // Most texts are the one before.
        if self.words.get(self.last).is_none_or(|w| *w != text) {
            self.last = self.find(text) as usize;
        }
        self.last as u64
    }

    fn find(&mut self, text: &'a str) -> u64 {
        if let Some(found) = self.words.iter().take(FEW).position(|w| *w == text) {
            return found as u64;
        }
        let next = self.words.len() as u64;
        if self.words.len() < FEW {
            self.words.push(text);
            return next;
        }
        *self.numbers.entry(text).or_insert_with(|| {
            self.words.push(text);
            next
        })
    }
}

fn put_texts<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    let mut dictionary = Dictionary::default();
    let which: Vec<u64> = texts.map(|t| dictionary.number(t)).collect();
    put(out, dictionary.words.len() as u64);
    dictionary.words.iter().for_each(|w| put_text(out, w));
    which.into_iter().for_each(|w| put(out, w));
}

fn put_column(out: &mut Vec<u8>, column: &ColumnData) {
    let present = column.present();
    let has = |row: usize| present.is_none_or(|p| p[row]);
    let rows = column.rows();
    out.push(Stored::of_values(column.values()) as u8);
    let absent = present.map_or(0, |p| p.iter().filter(|p| !**p).count());
    put(out, absent as u64);
    if let Some(present) = present {
        let mut before = 0;
        for (row, _) in present.iter().enumerate().filter(|(_, p)| !**p) {
            put(out, (row - before) as u64);
            before = row;
        }
    }
    let lengths = |out: &mut Vec<u8>, ends: &[u32]| {
        let mut before = 0;
        ends.iter().for_each(|e| put(out, u64::from(e - std::mem::replace(&mut before, *e))));
    };
    match column.values() {
        Values::Ints(all) if absent == 0 => put_steps(out, all.iter().copied()),
        Values::Ints(all) => put_steps(out, (0..rows).filter(|r| has(*r)).map(|r| all[r])),
        Values::Texts(all) => put_texts(out, (0..rows).filter(|r| has(*r)).map(|r| all.get(r))),
        Values::IntLists(all, ends) => {
            lengths(out, ends);
            put_steps(out, all.iter().copied());
        }
        Values::TextLists(all, ends) => {
            lengths(out, ends);
            put_texts(out, all.iter());
        }
    }
}

/// Adds the chunk's bytes.
pub fn encode(chunk: &Chunk, out: &mut Vec<u8>) {
    for column in &chunk.columns {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        put_column(out, column);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next number.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        if *first < 0x80 {
            self.0 = rest;
            return Some(u64::from(*first));
        }
        self.long()
    }

    fn long(&mut self) -> Option<u64> {
        let mut n = 0_u64;
        for (i, byte) in self.0.iter().take(10).enumerate() {
            if i == 9 && *byte > 1 {
                return None;
            }
            n |= u64::from(byte & 0x7f) << (7 * i);
            if *byte < 0x80 {
                self.0 = &self.0[i + 1..];
                return Some(n);
            }
        }
        None
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    /// The next text with its length.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// A number of things of which each takes a byte at least.
    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|n| *n <= self.0.len())
    }
}

/// Memory that may still be taken.
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

fn steps(bytes: &mut Bytes, sum: &mut u64) -> Option<u64> {
    *sum = sum.wrapping_add(unzigzag(bytes.number()?) as u64);
    Some(*sum)
}

/// The words of a dictionary, made harmless.
fn words(bytes: &mut Bytes, budget: &mut Budget) -> Option<Texts> {
    let count = bytes.count()?;
    budget.take(count.checked_mul(8)?)?;
    let mut words = Texts::default();
    for _ in 0..count {
        let word = clean(bytes.text()?);
        budget.take(word.len())?;
        words.push(&word);
    }
    Some(words)
}

fn word<'a>(bytes: &mut Bytes, words: &'a Texts, budget: &mut Budget) -> Option<&'a str> {
    let which = usize::try_from(bytes.number()?).ok().filter(|w| *w < words.len())?;
    let word = words.get(which);
    // A short dictionary must not become gigabytes of text.
    budget.take(word.len())?;
    Some(word)
}

/// Where each row's list ends.
fn ends(bytes: &mut Bytes, rows: usize, budget: &mut Budget) -> Option<Vec<u32>> {
    budget.take(rows.checked_mul(4)?)?;
    let mut end = 0_u32;
    let ends = (0..rows).map(|_| {
        end = end.checked_add(u32::try_from(bytes.number()?).ok()?)?;
        Some(end)
    });
    // Each element takes a byte at least.
    let ends: Vec<u32> = ends.collect::<Option<_>>()?;
    (ends.last().is_none_or(|e| *e as usize <= bytes.0.len())).then_some(ends)
}

fn column(mut bytes: Bytes, kind: Stored, rows: usize, budget: &mut Budget) -> Option<ColumnData> {
    let bytes = &mut bytes;
    if Stored::from_byte(bytes.byte()?)? != kind {
        return None;
    }
    let absent = bytes.count()?;
    let present = match absent {
        0 => None,
        _ => {
            budget.take(rows)?;
            let mut present = vec![true; rows];
            let mut row = 0_usize;
            for _ in 0..absent {
                row = row.checked_add(usize::try_from(bytes.number()?).ok()?)?;
                *present.get_mut(row)? = false;
            }
            Some(present)
        }
    };
    let has = |row: usize| present.as_ref().is_none_or(|p| p[row]);
    let values = match kind {
        Stored::Int => {
            budget.take(rows.checked_mul(8)?)?;
            let mut sum = 0;
            let mut all = Vec::with_capacity(rows);
            for row in 0..rows {
                all.push(if has(row) { steps(bytes, &mut sum)? } else { 0 });
            }
            Values::Ints(all)
        }
        Stored::Text => {
            budget.take(rows.checked_mul(8)?)?;
            let words = words(bytes, budget)?;
            let mut all = Texts::default();
            for row in 0..rows {
                all.push(if has(row) { word(bytes, &words, budget)? } else { "" });
            }
            Values::Texts(all)
        }
        Stored::Ints => {
            let ends = ends(bytes, rows, budget)?;
            let count = ends.last().map_or(0, |e| *e as usize);
            budget.take(count.checked_mul(8)?)?;
            let mut sum = 0;
            let all = (0..count).map(|_| steps(bytes, &mut sum)).collect::<Option<_>>()?;
            Values::IntLists(all, ends)
        }
        Stored::Texts => {
            let ends = ends(bytes, rows, budget)?;
            let count = ends.last().map_or(0, |e| *e as usize);
            budget.take(count.checked_mul(8)?)?;
            let words = words(bytes, budget)?;
            let mut all = Texts::default();
            for _ in 0..count {
                all.push(word(bytes, &words, budget)?);
            }
            Values::TextLists(all, ends)
        }
    };
    let whole = bytes.0.is_empty();
    ColumnData::of(values, present).filter(|c| whole && c.rows() == rows)
}

/// The columns of a chunk of `rows` rows, in the order of `wanted`: how each is stored and where;
/// none of a place: the column is not stored and has no values. `stored`: how many columns there
/// are. `None`: the bytes make no sense or need too much memory.
pub fn decode(
    bytes: &[u8],
    rows: usize,
    stored: usize,
    wanted: &[(ColumnKind, Option<usize>)],
) -> Option<Chunk> {
    let mut bytes = Bytes(bytes);
    let mut columns = Vec::with_capacity(stored);
    for _ in 0..stored {
        let length = bytes.take(4)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        columns.push(bytes.take(length as usize)?);
    }
    if !bytes.0.is_empty() {
        return None;
    }
    let mut budget = Budget(BUDGET);
    let wanted = wanted.iter().map(|(kind, place)| match place {
        Some(at) => column(Bytes(columns.get(*at)?), Stored::of(*kind), rows, &mut budget),
        None => {
            budget.take(rows.checked_mul(9)?)?;
            Some(ColumnData::absent(*kind, rows))
        }
    });
    Some(Chunk { columns: wanted.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> [ColumnKind; 4] {
        [ColumnKind::Int, ColumnKind::Text, ColumnKind::Ints, ColumnKind::Texts]
    }

    fn encoded(chunk: &Chunk) -> Vec<u8> {
        let mut out = Vec::new();
        encode(chunk, &mut out);
        out
    }

    fn all() -> Vec<(ColumnKind, Option<usize>)> {
        kinds().into_iter().zip((0..4).map(Some)).collect()
    }

    type Row = (Option<u64>, Option<String>, Option<Vec<u64>>, Option<Vec<String>>);

    fn chunk(rows: &[Row]) -> Chunk {
        let mut chunk = Chunk::new(kinds());
        for (int, text, ints, texts) in rows {
            let c = &mut chunk.columns;
            match int {
                Some(v) => c[0].push_int(*v),
                None => c[0].push_none(),
            }
            match text {
                Some(v) => c[1].push_text(v),
                None => c[1].push_none(),
            }
            match ints {
                Some(v) => c[2].push_ints(v),
                None => c[2].push_none(),
            }
            match texts {
                Some(v) => c[3].push_texts(v),
                None => c[3].push_none(),
            }
        }
        chunk
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let text = || "[a-c]{0,2}";
        prop::collection::vec(
            (
                prop::option::of(any::<u64>()),
                prop::option::of(text()),
                prop::option::of(prop::collection::vec(any::<u64>(), 0..4)),
                prop::option::of(prop::collection::vec(text(), 0..4)),
            ),
            1..50,
        )
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(rows in rows()) {
            let chunk = chunk(&rows);
            prop_assert_eq!(decode(&encoded(&chunk), rows.len(), 4, &all()), Some(chunk));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0_usize..9) {
            let chunk = decode(&bytes, rows, 1, &[(ColumnKind::Texts, Some(0))]);
            prop_assert!(chunk.is_none_or(|c| c.rows() == rows));
        }
    }

    #[test]
    fn columns_that_nobody_asks_for_are_skipped() {
        let chunk = chunk(&[(Some(7), Some("x".into()), None, None)]);
        let bytes = encoded(&chunk);
        let one = decode(&bytes, 1, 4, &[(ColumnKind::Text, Some(1)), (ColumnKind::Int, None)]).unwrap();
        assert_eq!((one.columns[0].text(0), one.columns[1].int(0)), (Some("x"), None));
        assert!(decode(&bytes, 1, 4, &[(ColumnKind::Text, Some(0))]).is_none(), "another kind");
        assert!(decode(&bytes, 2, 4, &all()).is_none(), "another number of rows");
    }

    #[test]
    fn a_small_chunk_cannot_become_gigabytes() {
        // A word of 4000 bytes, named a million times.
        let mut column = vec![Stored::Text as u8];
        put(&mut column, 0);
        put(&mut column, 1);
        put_text(&mut column, &"x".repeat(4000));
        column.resize(column.len() + (1 << 20), 0);
        let mut bytes = (column.len() as u32).to_le_bytes().to_vec();
        bytes.extend(column);
        assert!(decode(&bytes, 1 << 20, 1, &[(ColumnKind::Text, Some(0))]).is_none());
        // A list that claims more elements than there are bytes.
        let mut column = vec![Stored::Ints as u8, 0];
        put(&mut column, u64::from(u32::MAX));
        let mut bytes = (column.len() as u32).to_le_bytes().to_vec();
        bytes.extend(column);
        assert!(decode(&bytes, 1, 1, &[(ColumnKind::Ints, Some(0))]).is_none());
    }
}
