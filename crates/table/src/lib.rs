//! One table, three forms: for the terminal, `--json`, `--csv`, all from the same cells.
//!
//! Rounding happens on the terminal only, which the command draws; the other two carry the values.
//! A cell without a value says why. [`FailIf`] is a condition on a table.

#![forbid(unsafe_code)]

mod fail_if;
mod machine_readable;

pub use fail_if::FailIf;

/// Where a column's cells stand on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs: JSON key, CSV heading, word in `--fail-if`. `snake_case`; part of the
    /// schema.
    pub key: &'static str,
    /// Its heading for people.
    pub title: String,
    /// Unit of its numbers.
    pub unit: Option<&'static str>,
    /// Where its cells stand.
    pub align: Align,
    /// For people, its text stands below that of the column before it.
    pub below: bool,
}

impl Column {
    /// A column of text.
    pub fn text(key: &'static str, title: impl Into<String>) -> Self {
        Self { key, title: title.into(), unit: None, align: Align::Left, below: false }
    }
    /// The column, with its text below that of the column before it where people read.
    #[must_use]
    pub const fn below(mut self) -> Self {
        self.below = true;
        self
    }
    /// A column of numbers without a unit.
    pub fn number(key: &'static str, title: impl Into<String>) -> Self {
        Self { align: Align::Right, ..Self::text(key, title) }
    }
    /// A column of numbers in `unit`; of [`Cell::percent`] cells, that is `%`.
    pub fn unit(key: &'static str, title: impl Into<String>, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..Self::number(key, title) }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A whole number.
    Int(i128),
    /// A number, and how many digits after the point are worth showing.
    Float(f64, usize),
    /// In percent, and how many digits after the point are worth showing.
    Percent(f64, usize),
    /// No value, and why.
    Missing(String),
}

impl Cell {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
    /// A whole number.
    pub fn int(value: impl Into<i128>) -> Self {
        Self::Int(value.into())
    }
    /// A number shown with `digits` digits after the point.
    pub const fn float(value: f64, digits: usize) -> Self {
        Self::Float(value, digits)
    }
    /// A share of 0 to 1, shown in percent with `digits` digits after the point.
    pub const fn percent(share: f64, digits: usize) -> Self {
        Self::Percent(share * 100.0, digits)
    }
    /// No value, and why.
    pub fn missing(why: impl Into<String>) -> Self {
        Self::Missing(why.into())
    }
    /// The number in it, in its column's unit.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(i) => Some(*i as f64),
            Self::Float(x, _) | Self::Percent(x, _) if x.is_finite() => Some(*x),
            _ => None,
        }
    }
}

/// How a row stands out on a terminal with colours. Never the only carrier of its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emphasis {
    /// Not at all.
    #[default]
    None,
    /// The best of its kind.
    Best,
    /// Not a competitor: a bound, a yardstick.
    Yardstick,
}

/// A row: one cell a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its cells.
    pub cells: Vec<Cell>,
    /// How it stands out.
    pub emphasis: Emphasis,
}

/// A table. Its name and version make the schema `homenode/<name>/<version>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    name: &'static str,
    version: u32,
    answers: Vec<String>,
    facts: Vec<(&'static str, Cell)>,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: Vec<String>,
    legend: Vec<String>,
    warnings: Vec<String>,
    sentences: bool,
}

impl Table {
    /// An empty table.
    ///
    /// # Panics
    /// When two columns have the same key.
    pub fn new(name: &'static str, version: u32, columns: Vec<Column>) -> Self {
        for (i, c) in columns.iter().enumerate() {
            assert!(columns[..i].iter().all(|o| o.key != c.key), "two columns '{}'", c.key);
        }
        Self {
            name,
            version,
            answers: Vec::new(),
            facts: Vec::new(),
            columns,
            rows: Vec::new(),
            notes: Vec::new(),
            legend: Vec::new(),
            warnings: Vec::new(),
            sentences: false,
        }
    }

    /// Its cells hold sentences, which break even where nobody knows the width of a line.
    #[must_use]
    pub const fn of_sentences(mut self) -> Self {
        self.sentences = true;
        self
    }

    /// Whether its cells hold sentences.
    pub const fn has_sentences(&self) -> bool {
        self.sentences
    }

    /// Adds a sentence of the answer that the table is the evidence of: shown below the warnings,
    /// `answer` in JSON, left out of CSV. No new line in it.
    pub fn answer(&mut self, sentence: impl Into<String>) {
        self.answers.push(sentence.into());
    }

    /// Adds what everybody must know who reads the table: shown before all else, `warnings` in
    /// JSON. No new line in it.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds something that is true of the whole table (program, machine, kind of recording): shown
    /// above it, `facts` in JSON, left out of CSV.
    pub fn fact(&mut self, key: &'static str, value: Cell) {
        self.facts.push((key, value));
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not one cell a column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.row_with(Emphasis::None, cells);
    }

    /// Adds a row that stands out.
    ///
    /// # Panics
    /// When it has not one cell a column.
    pub fn row_with(&mut self, emphasis: Emphasis, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell a column");
        self.rows.push(Row { cells, emphasis });
    }

    /// Adds a note: shown below it, `notes` in JSON, left out of CSV. No new line in it.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds what a column or row means: shown to people who ask for it, `notes` in JSON, left out
    /// of CSV. No new line in it.
    pub fn explain(&mut self, meaning: impl Into<String>) {
        self.legend.push(meaning.into());
    }

    /// Makes the `index`th row stand out.
    pub fn emphasise(&mut self, index: usize, emphasis: Emphasis) {
        if let Some(row) = self.rows.get_mut(index) {
            row.emphasis = emphasis;
        }
    }

    /// The version of its form: `homenode/<name>/<version>`.
    pub fn schema(&self) -> String {
        format!("homenode/{}/{}", self.name, self.version)
    }
    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
    /// Its rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
    /// Sentences of the answer.
    pub fn answers(&self) -> &[String] {
        &self.answers
    }
    /// What is true of the whole table.
    pub fn facts(&self) -> &[(&'static str, Cell)] {
        &self.facts
    }

    /// Its warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
    /// What its columns and rows mean.
    pub fn legend(&self) -> &[String] {
        &self.legend
    }
    /// Its notes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How many columns it has.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// A table with all that a table can have, for tests of its forms.
#[doc(hidden)]
pub fn example() -> Table {
    let mut t = Table::new(
        "example",
        1,
        vec![
            Column::text("scheme", "scheme"),
            Column::unit("time", "time", "s"),
            Column::number("moves", "moves"),
            Column::unit("remote", "remote", "%"),
        ],
    );
    t.fact("program", Cell::text("nas-cg W"));
    t.fact("threads", Cell::int(16));
    t.row(vec![Cell::text("first-touch"), Cell::float(12.3456, 2), Cell::int(0), Cell::percent(0.262, 1)]);
    t.row_with(
        Emphasis::Best,
        vec![Cell::text("next-touch"), Cell::float(7.0, 2), Cell::int(18_743), Cell::percent(0.017, 1)],
    );
    t.row(vec![
        Cell::text("replay, \"last\""),
        Cell::missing("the program was stopped"),
        Cell::int(5),
        Cell::percent(0.0, 1),
    ]);
    t.note("times are modelled");
    t
}
