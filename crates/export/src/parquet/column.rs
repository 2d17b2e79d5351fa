//! A column of a row group: rows become pages, pages wait until the row group is over.

use std::collections::HashMap;
use std::io::{self, Write};

use homenode_dataset::column::{ColumnData, ColumnKind, Values};
use homenode_dataset::schema::ColumnInfo;

use super::compact::Struct;
use super::encode::{self, width};
use super::pack::Packer;

/// Values of a page.
const PAGE_VALUES: usize = 1 << 14;
/// Bytes of texts of a page.
const PAGE_BYTES: usize = 1 << 20;
/// Bytes of a dictionary from which on texts are written as they are.
const DICTIONARY_BYTES: usize = 1 << 20;

/// Numbers of the format.
pub mod format {
    pub const BOOLEAN: i32 = 0;
    pub const INT64: i32 = 2;
    pub const BYTE_ARRAY: i32 = 6;
    pub const PLAIN: i32 = 0;
    pub const RLE: i32 = 3;
    pub const DELTA_BINARY_PACKED: i32 = 5;
    pub const RLE_DICTIONARY: i32 = 8;
    pub const ZSTD: i32 = 6;
    pub const DATA_PAGE: i32 = 0;
    pub const DICTIONARY_PAGE: i32 = 2;
}

/// What the footer says of a column of a row group.
pub struct ChunkInfo {
    pub encodings: Vec<i32>,
    pub values: i64,
    /// Bytes with page headers, before and after packing.
    pub full: i64,
    pub stored: i64,
    /// Byte of the file.
    pub dictionary: Option<i64>,
    pub data: i64,
    pub nulls: i64,
    pub bounds: Option<(i64, i64)>,
}

/// Values of a page that is not written yet.
enum Waiting {
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
    Texts(Words),
}

/// Words that are looked for one by one before a map is asked.
const FEW: usize = 8;

/// Texts and their dictionary.
#[derive(Default)]
struct Words {
    /// Those that came first.
    few: Vec<Box<str>>,
    /// The others.
    numbers: HashMap<Box<str>, u32>,
    /// Number of the text that came last.
    last: u32,
    /// The dictionary's page.
    dictionary: Vec<u8>,
    /// Of this page.
    which: Vec<u32>,
    /// Of this page, once the dictionary is full.
    plain: Vec<u8>,
    plain_texts: usize,
    full: bool,
}

impl Words {
    fn len(&self) -> usize {
        self.few.len() + self.numbers.len()
    }

    fn push(&mut self, text: &str) {
        if self.full {
            encode::text(&mut self.plain, text);
            self.plain_texts += 1;
            return;
        }
        // Most texts are the one before.
        if self.few.get(self.last as usize).is_none_or(|w| **w != *text) {
            self.last = self.number(text);
        }
        self.which.push(self.last);
    }

    fn number(&mut self, text: &str) -> u32 {
        let found = self.few.iter().position(|w| **w == *text).map(|n| n as u32);
        if let Some(number) = found.or_else(|| self.numbers.get(text).copied()) {
            return number;
        }
        let number = self.len() as u32;
        encode::text(&mut self.dictionary, text);
        if self.few.len() < FEW {
            self.few.push(text.into());
        } else {
            self.numbers.insert(text.into(), number);
        }
        number
    }
}

/// A column while a row group is written.
pub struct ColumnWriter {
    kind: ColumnKind,
    /// Highest definition level: rows may lack a value, a list may be empty.
    most: u32,
    list: bool,
    definitions: Vec<u32>,
    repetitions: Vec<u32>,
    waiting: Waiting,
    /// Finished pages.
    pages: Vec<u8>,
    /// Bytes of the pages before packing.
    full: usize,
    /// A page's bytes.
    body: Vec<u8>,
    plain: bool,
    dictionary: bool,
    values: u64,
    nulls: u64,
    bounds: Option<(i64, i64)>,
    /// Numbers that a signed integer cannot hold.
    clipped: u64,
}

impl ColumnWriter {
    pub fn new(info: &ColumnInfo) -> Self {
        let list = matches!(info.kind, ColumnKind::Ints | ColumnKind::Texts);
        let waiting = match info.kind {
            ColumnKind::Int | ColumnKind::Ints => Waiting::Numbers(Vec::new()),
            ColumnKind::Flag => Waiting::Flags(Vec::new()),
            ColumnKind::Word(_) | ColumnKind::Text | ColumnKind::Texts => Waiting::Texts(Words::default()),
        };
        Self {
            kind: info.kind,
            most: u32::from(info.optional) + u32::from(list),
            list,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            waiting,
            pages: Vec::new(),
            full: 0,
            body: Vec::new(),
            plain: false,
            dictionary: false,
            values: 0,
            nulls: 0,
            bounds: None,
            clipped: 0,
        }
    }

    /// Bytes that wait for the row group's end.
    pub fn waits(&self) -> usize {
        let words = match &self.waiting {
            Waiting::Texts(w) => 3 * w.dictionary.len(),
            _ => 0,
        };
        self.pages.len() + words
    }

    /// Numbers that did not fit until now.
    pub const fn clipped(&self) -> u64 {
        self.clipped
    }

    fn number(&mut self, value: u64) {
        let value = i64::try_from(value).unwrap_or_else(|_| {
            self.clipped += 1;
            i64::MAX
        });
        let (least, most) = self.bounds.unwrap_or((value, value));
        self.bounds = Some((least.min(value), most.max(value)));
        if let Waiting::Numbers(all) = &mut self.waiting {
            all.push(value);
        }
    }

    fn flag(&mut self, value: u64) {
        if let Waiting::Flags(all) = &mut self.waiting {
            all.push(value != 0);
        }
    }

    fn text(&mut self, value: &str) {
        if let Waiting::Texts(all) = &mut self.waiting {
            all.push(value);
        }
    }

    /// Adds rows `from..to` of a column, which all fit into a page.
    fn push(&mut self, column: &ColumnData, from: usize, to: usize) {
        let present = column.present();
        if !self.list {
            let full = self.most;
            match present {
                None => {
                    self.definitions.extend(std::iter::repeat_n(full, if full > 0 { to - from } else { 0 }))
                }
                Some(p) if full > 0 => self.definitions.extend(p[from..to].iter().map(|p| u32::from(*p))),
                Some(_) => {}
            }
            let rows = (from..to).filter(|r| full == 0 || present.is_none_or(|p| p[*r]));
            match (column.values(), self.kind) {
                (Values::Ints(all), ColumnKind::Flag) => rows.for_each(|r| self.flag(all[r])),
                (Values::Ints(all), _) if present.is_none() => self.numbers(&all[from..to]),
                (Values::Ints(all), _) => rows.for_each(|r| self.number(all[r])),
                (Values::Texts(all), _) => rows.for_each(|r| self.text(all.get(r))),
                _ => {}
            }
            return;
        }
        for row in from..to {
            // A list without a value, an empty one, and elements have levels of their own.
            let optional = self.most - 1;
            if optional > 0 && !column.has(row) {
                self.levels(0, 0);
                continue;
            }
            let elements = match column.values() {
                Values::IntLists(..) => {
                    let all = column.ints(row).unwrap_or_default();
                    all.iter().for_each(|v| self.number(*v));
                    all.len()
                }
                _ => {
                    let all = column.texts(row).unwrap_or_default();
                    all.iter().for_each(|v| self.text(v));
                    all.len()
                }
            };
            match elements {
                0 => self.levels(0, optional),
                n => (0..n).for_each(|i| self.levels(u32::from(i > 0), self.most)),
            }
        }
    }

    /// As [`ColumnWriter::number`] of each, in one loop.
    fn numbers(&mut self, values: &[u64]) {
        let Some(most) = values.iter().copied().max() else { return };
        if most > i64::MAX as u64 {
            return values.iter().for_each(|v| self.number(*v));
        }
        let (least, most) = (values.iter().copied().min().unwrap_or(0) as i64, most as i64);
        let before = self.bounds.unwrap_or((least, most));
        self.bounds = Some((before.0.min(least), before.1.max(most)));
        if let Waiting::Numbers(all) = &mut self.waiting {
            all.extend(values.iter().map(|v| *v as i64));
        }
    }

    fn levels(&mut self, repetition: u32, definition: u32) {
        self.repetitions.push(repetition);
        self.definitions.push(definition);
    }

    /// Adds the rows of a column.
    pub fn add(&mut self, column: &ColumnData, packer: &mut Packer) -> io::Result<()> {
        let rows = column.rows();
        // Lists and texts may be long: few rows at a time.
        let step = match self.kind {
            ColumnKind::Int | ColumnKind::Flag | ColumnKind::Word(_) => PAGE_VALUES,
            _ => 64,
        };
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + step.min(PAGE_VALUES - self.waiting_values().min(PAGE_VALUES - 1)));
            self.push(column, from, to);
            from = to;
            if self.waiting_values() >= PAGE_VALUES || self.waiting_bytes() >= PAGE_BYTES {
                self.page(packer)?;
            }
        }
        Ok(())
    }

    /// Values of the page with those that are missing.
    fn waiting_values(&self) -> usize {
        match &self.waiting {
            _ if self.most > 0 => self.definitions.len(),
            Waiting::Numbers(all) => all.len(),
            Waiting::Flags(all) => all.len(),
            Waiting::Texts(all) => all.which.len() + all.plain_texts,
        }
    }

    fn waiting_bytes(&self) -> usize {
        match &self.waiting {
            Waiting::Texts(all) => all.plain.len() + all.dictionary.len().saturating_sub(DICTIONARY_BYTES),
            _ => 0,
        }
    }

    /// Writes the page.
    fn page(&mut self, packer: &mut Packer) -> io::Result<()> {
        let values = self.waiting_values();
        if values == 0 {
            return Ok(());
        }
        self.body.clear();
        for (most, levels) in
            [(u32::from(self.list), &mut self.repetitions), (self.most, &mut self.definitions)]
        {
            if most > 0 {
                let at = self.body.len();
                self.body.extend_from_slice(&[0; 4]);
                encode::runs(&mut self.body, levels, width(u64::from(most)));
                let length = (self.body.len() - at - 4) as u32;
                self.body[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
        }
        let present = match self.most {
            0 => values,
            most => self.definitions.iter().filter(|d| **d == most).count(),
        };
        self.nulls += (values - present) as u64;
        self.values += values as u64;
        self.repetitions.clear();
        self.definitions.clear();
        let encoding = match &mut self.waiting {
            Waiting::Numbers(all) => {
                encode::delta(&mut self.body, all);
                all.clear();
                format::DELTA_BINARY_PACKED
            }
            Waiting::Flags(all) => {
                encode::bits(&mut self.body, all);
                all.clear();
                self.plain = true;
                format::PLAIN
            }
            Waiting::Texts(all) if all.full => {
                self.body.append(&mut all.plain);
                all.plain_texts = 0;
                self.plain = true;
                format::PLAIN
            }
            Waiting::Texts(all) => {
                let width = width(all.len().saturating_sub(1) as u64).max(1);
                self.body.push(width as u8);
                encode::runs(&mut self.body, &all.which, width);
                all.which.clear();
                all.full = all.dictionary.len() >= DICTIONARY_BYTES;
                self.dictionary = true;
                format::RLE_DICTIONARY
            }
        };
        let packed = packer.pack(&self.body)?;
        let before = self.pages.len();
        Struct::write(&mut self.pages, |page| {
            page.i32(1, format::DATA_PAGE);
            page.i32(2, self.body.len() as i32);
            page.i32(3, packed.len() as i32);
            page.inner(5, |data| {
                data.i32(1, values as i32);
                data.i32(2, encoding);
                data.i32(3, format::RLE);
                data.i32(4, format::RLE);
            });
        });
        self.full += self.pages.len() - before + self.body.len();
        self.pages.extend_from_slice(packed);
        Ok(())
    }

    /// Ends the row group: writes its pages at byte `offset` of the file.
    pub fn finish(&mut self, to: &mut impl Write, offset: u64, packer: &mut Packer) -> io::Result<ChunkInfo> {
        self.page(packer)?;
        let mut dictionary = Vec::new();
        let mut full = self.full;
        if let Waiting::Texts(words) = &mut self.waiting {
            let words = std::mem::take(words);
            if self.dictionary {
                let packed = packer.pack(&words.dictionary)?;
                Struct::write(&mut dictionary, |page| {
                    page.i32(1, format::DICTIONARY_PAGE);
                    page.i32(2, words.dictionary.len() as i32);
                    page.i32(3, packed.len() as i32);
                    page.inner(7, |data| {
                        data.i32(1, words.len() as i32);
                        data.i32(2, format::PLAIN);
                    });
                });
                full += dictionary.len() + words.dictionary.len();
                dictionary.extend_from_slice(packed);
            }
        }
        to.write_all(&dictionary)?;
        to.write_all(&self.pages)?;
        let mut encodings = vec![format::RLE];
        encodings.extend(matches!(self.waiting, Waiting::Numbers(_)).then_some(format::DELTA_BINARY_PACKED));
        // The dictionary itself is plain.
        encodings.extend((self.plain || self.dictionary).then_some(format::PLAIN));
        encodings.extend(self.dictionary.then_some(format::RLE_DICTIONARY));
        let info = ChunkInfo {
            encodings,
            values: self.values as i64,
            full: full as i64,
            stored: (dictionary.len() + self.pages.len()) as i64,
            dictionary: self.dictionary.then_some(offset as i64),
            data: (offset + dictionary.len() as u64) as i64,
            nulls: self.nulls as i64,
            bounds: self.bounds,
        };
        self.pages.clear();
        (self.plain, self.dictionary, self.full) = (false, false, 0);
        (self.values, self.nulls, self.bounds) = (0, 0, None);
        Ok(info)
    }
}
