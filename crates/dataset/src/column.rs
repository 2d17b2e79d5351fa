//! Columns in memory: what a table's chunk is made of.

use std::ops::Range;

use crate::foreign::cleaned;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers from 0.
    Int,
    /// True or false, kept as 1 and 0.
    Flag,
    /// A word of a closed list.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// A list of whole numbers.
    Ints,
    /// A list of texts.
    Texts,
}

/// A column's values, one after the other. Lists and texts have an end for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// One number a row.
    Ints(Vec<u64>),
    /// One text a row.
    Texts(Texts),
    /// One list of numbers a row: all numbers, and where each row's end.
    IntLists(Vec<u64>, Vec<u32>),
    /// One list of texts a row.
    TextLists(Texts, Vec<u32>),
}

/// Texts, one after the other in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Adds one.
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }

    /// The text at `index`; empty where there is none.
    pub fn get(&self, index: usize) -> &str {
        let Some(end) = self.ends.get(index) else { return "" };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..*end).unwrap_or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Bytes of all texts together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> FromIterator<&'a str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|t| all.push(t));
        all
    }
}

/// A column: its values, and which rows have one. A row without has the empty value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnData {
    values: Values,
    /// By row; `None`: all rows have a value.
    present: Option<Vec<bool>>,
    rows: usize,
}

impl ColumnData {
    /// An empty column.
    pub fn new(kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Int | ColumnKind::Flag => Values::Ints(Vec::new()),
            ColumnKind::Word(_) | ColumnKind::Text => Values::Texts(Texts::default()),
            ColumnKind::Ints => Values::IntLists(Vec::new(), Vec::new()),
            ColumnKind::Texts => Values::TextLists(Texts::default(), Vec::new()),
        };
        Self { values, present: None, rows: 0 }
    }

    /// A column of these parts; `None` where they do not fit each other.
    pub fn of(values: Values, present: Option<Vec<bool>>) -> Option<Self> {
        let ends = |ends: &[u32], all: usize| {
            ends.is_sorted() && ends.last().map_or(0, |e| *e as usize) == all && all <= u32::MAX as usize
        };
        let rows = match &values {
            Values::Ints(all) => all.len(),
            Values::Texts(all) => all.len(),
            Values::IntLists(all, e) => ends(e, all.len()).then_some(e.len())?,
            Values::TextLists(all, e) => ends(e, all.len()).then_some(e.len())?,
        };
        let fits = present.as_ref().is_none_or(|p| p.len() == rows);
        fits.then_some(Self { values, present, rows })
    }

    /// A column of `rows` rows without a value.
    pub fn absent(kind: ColumnKind, rows: usize) -> Self {
        let mut column = Self::new(kind);
        (0..rows).for_each(|_| column.push_none());
        column
    }

    /// A column of the same kind without rows.
    pub(crate) fn emptied(&self) -> Self {
        let values = match self.values {
            Values::Ints(_) => Values::Ints(Vec::new()),
            Values::Texts(_) => Values::Texts(Texts::default()),
            Values::IntLists(..) => Values::IntLists(Vec::new(), Vec::new()),
            Values::TextLists(..) => Values::TextLists(Texts::default(), Vec::new()),
        };
        Self { values, present: None, rows: 0 }
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Its values.
    pub const fn values(&self) -> &Values {
        &self.values
    }

    /// Which rows have a value; `None`: all.
    pub fn present(&self) -> Option<&[bool]> {
        self.present.as_deref()
    }

    /// Whether the row has a value.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|p| p.get(row).copied().unwrap_or(false))
    }

    #[inline]
    fn pushed(&mut self) {
        self.rows += 1;
        if let Some(present) = &mut self.present {
            present.push(true);
        }
    }

    /// Adds a number. A column of another kind takes the empty value.
    #[inline]
    pub fn push_int(&mut self, value: u64) {
        match &mut self.values {
            Values::Ints(all) => {
                all.push(value);
                self.pushed();
            }
            _ => self.push_none(),
        }
    }

    /// Adds a text without what a terminal would obey. A column of another kind takes the empty
    /// value.
    pub fn push_text(&mut self, value: &str) {
        match &mut self.values {
            Values::Texts(all) => {
                all.push(&cleaned(value));
                self.pushed();
            }
            _ => self.push_none(),
        }
    }

    /// Adds a list of numbers. A column of another kind takes the empty value.
    pub fn push_ints(&mut self, value: &[u64]) {
        match &mut self.values {
            Values::IntLists(all, ends) => {
                all.extend_from_slice(value);
                ends.push(all.len() as u32);
                self.pushed();
            }
            _ => self.push_none(),
        }
    }

    /// Adds a list of texts. A column of another kind takes the empty value.
    pub fn push_texts(&mut self, value: &[String]) {
        match &mut self.values {
            Values::TextLists(all, ends) => {
                value.iter().for_each(|t| all.push(&cleaned(t)));
                ends.push(all.len() as u32);
                self.pushed();
            }
            _ => self.push_none(),
        }
    }

    /// Bytes that it takes in memory, about.
    pub fn memory(&self) -> usize {
        let values = match &self.values {
            Values::Ints(all) => all.len() * 8,
            Values::Texts(all) => all.bytes() + all.len() * 8,
            Values::IntLists(all, ends) => all.len() * 8 + ends.len() * 4,
            Values::TextLists(all, ends) => all.bytes() + all.len() * 8 + ends.len() * 4,
        };
        values + self.present.as_ref().map_or(0, Vec::len)
    }

    /// Adds `base` to every number. Lists and texts stay as they are.
    pub fn add(&mut self, base: u64) {
        if let (Values::Ints(all), true) = (&mut self.values, base > 0) {
            let present = self.present.as_deref();
            for (row, value) in all.iter_mut().enumerate() {
                // A row without a value keeps the empty one.
                if present.is_none_or(|p| p[row]) {
                    *value = value.saturating_add(base);
                }
            }
        }
    }

    /// These rows of it.
    #[must_use]
    fn slice(&self, rows: Range<usize>) -> Self {
        let mut part = self.emptied();
        for row in rows.start..rows.end.min(self.rows) {
            if !self.has(row) {
                part.push_none();
                continue;
            }
            match &self.values {
                Values::Ints(all) => part.push_int(all[row]),
                Values::Texts(all) => part.push_text(all.get(row)),
                Values::IntLists(..) => part.push_ints(self.ints(row).unwrap_or_default()),
                Values::TextLists(..) => part.push_texts(&self.texts(row).unwrap_or_default()),
            }
        }
        part
    }

    /// Adds a row without a value.
    pub fn push_none(&mut self) {
        let rows = self.rows;
        self.present.get_or_insert_with(|| vec![true; rows]).push(false);
        match &mut self.values {
            Values::Ints(all) => all.push(0),
            Values::Texts(all) => all.push(""),
            Values::IntLists(all, ends) => ends.push(all.len() as u32),
            Values::TextLists(all, ends) => ends.push(all.len() as u32),
        }
        self.rows += 1;
    }

    /// The number at `row`; `None` where there is none.
    #[inline]
    pub fn int(&self, row: usize) -> Option<u64> {
        match &self.values {
            Values::Ints(all) if self.has(row) => all.get(row).copied(),
            _ => None,
        }
    }

    /// The text at `row`; `None` where there is none.
    pub fn text(&self, row: usize) -> Option<&str> {
        match &self.values {
            Values::Texts(all) if self.has(row) && row < self.rows => Some(all.get(row)),
            _ => None,
        }
    }

    /// The list of numbers at `row`; `None` where there is none.
    pub fn ints(&self, row: usize) -> Option<&[u64]> {
        match &self.values {
            Values::IntLists(all, ends) if self.has(row) => all.get(range(ends, row)?),
            _ => None,
        }
    }

    /// The list of texts at `row`; `None` where there is none.
    pub fn texts(&self, row: usize) -> Option<Vec<String>> {
        match &self.values {
            Values::TextLists(all, ends) if self.has(row) => {
                Some(range(ends, row)?.map(|i| all.get(i).to_owned()).collect())
            }
            _ => None,
        }
    }
}

fn range(ends: &[u32], row: usize) -> Option<Range<usize>> {
    let start = row.checked_sub(1).map_or(0, |before| ends.get(before).copied().unwrap_or(0));
    Some(start as usize..*ends.get(row)? as usize)
}

/// Some rows of a table, by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In the order of the table's columns; each has the same number of rows.
    pub columns: Vec<ColumnData>,
}

impl Chunk {
    /// An empty chunk with columns of these kinds.
    pub fn new(kinds: impl IntoIterator<Item = ColumnKind>) -> Self {
        Self { columns: kinds.into_iter().map(ColumnData::new).collect() }
    }

    /// A chunk of the same columns without rows.
    pub(crate) fn emptied(&self) -> Self {
        Self { columns: self.columns.iter().map(ColumnData::emptied).collect() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, ColumnData::rows)
    }

    /// Bytes that it takes in memory, about.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(ColumnData::memory).sum()
    }

    /// These rows of it; rows that it lacks are left out.
    #[must_use]
    pub fn slice(&self, rows: Range<usize>) -> Self {
        Self { columns: self.columns.iter().map(|c| c.slice(rows.clone())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_gives_back_what_it_took() {
        let mut c = ColumnData::new(ColumnKind::Text);
        c.push_text("a");
        c.push_none();
        c.push_text("");
        assert_eq!([c.text(0), c.text(1), c.text(2), c.text(3)], [Some("a"), None, Some(""), None]);
        let mut c = ColumnData::new(ColumnKind::Ints);
        c.push_ints(&[5, 258]);
        c.push_ints(&[]);
        c.push_none();
        assert_eq!([c.ints(0), c.ints(1), c.ints(2)], [Some(&[5, 258][..]), Some(&[][..]), None]);
        let mut c = ColumnData::new(ColumnKind::Texts);
        c.push_none();
        c.push_texts(&["f".into(), "g".into()]);
        assert_eq!((c.texts(0), c.texts(1)), (None, Some(vec!["f".to_owned(), "g".into()])));
    }

    #[test]
    fn a_value_of_another_kind_is_no_value() {
        let mut c = ColumnData::new(ColumnKind::Int);
        c.push_text("x");
        c.push_int(7);
        assert_eq!((c.rows(), c.int(0), c.int(1), c.text(1)), (2, None, Some(7), None));
    }

    #[test]
    fn a_slice_has_the_rows_of_the_whole() {
        let mut chunk = Chunk::new([ColumnKind::Int, ColumnKind::Texts]);
        for row in 0..5 {
            if row == 2 {
                chunk.columns.iter_mut().for_each(ColumnData::push_none);
            } else {
                chunk.columns[0].push_int(row);
                chunk.columns[1].push_texts(&[format!("t{row}")]);
            }
        }
        let part = chunk.slice(1..4);
        assert_eq!((part.rows(), part.columns[0].int(0), part.columns[0].int(1)), (3, Some(1), None));
        assert_eq!(part.columns[1].texts(2), Some(vec!["t3".to_owned()]));
        assert_eq!(chunk.slice(0..99), chunk);
        let mut moved = part.columns[0].clone();
        moved.add(10);
        assert_eq!([moved.int(0), moved.int(1), moved.int(2)], [Some(11), None, Some(13)]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!(ColumnData::of(Values::Ints(vec![1]), Some(vec![true, false])).is_none());
        assert!(ColumnData::of(Values::IntLists(vec![1, 2], vec![2, 1]), None).is_none());
        assert!(ColumnData::of(Values::IntLists(vec![1, 2], vec![1]), None).is_none());
        assert!(ColumnData::of(Values::IntLists(vec![1, 2], vec![1, 2]), None).is_some());
    }
}
