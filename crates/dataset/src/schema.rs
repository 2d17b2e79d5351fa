//! How a row type names its columns, and how its values get into them and out again.
//!
//! [`table!`](crate::schema::table) declares a row once. The struct, its columns, their
//! documentation and their order all come from that one declaration.

use homenode_model::{AccessKind, Bytes, NodeId, Ns, ObjectId, Ps, ThreadId};

use crate::column::{Chunk, ColumnData, ColumnKind};
use crate::error::DatasetError;

/// Why a row cannot be read back: what contradicts what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowContradiction(pub &'static str);

/// A column that a field takes.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPart {
    /// Its name; empty: that of the field.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether rows may lack a value.
    pub optional: bool,
    /// What it means; empty: as the field's documentation says.
    pub doc: &'static str,
    /// Its unit; empty: that of the field.
    pub unit: &'static str,
}

impl ColumnPart {
    /// The only column of a field.
    pub const fn only(kind: ColumnKind, unit: &'static str) -> Self {
        Self { name: "", kind, optional: false, doc: "", unit }
    }

    /// The same, where rows may lack a value.
    const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// One of several columns of a field.
    pub const fn named(
        name: &'static str,
        kind: ColumnKind,
        optional: bool,
        doc: &'static str,
        unit: &'static str,
    ) -> Self {
        Self { name, kind, optional, doc, unit }
    }
}

/// A value that fills one column, or a few that belong together.
pub trait Field: Sized {
    /// Its columns.
    const PARTS: &'static [ColumnPart];
    /// Adds the value; `to` has as many columns as [`Field::PARTS`].
    fn put(&self, to: &mut [ColumnData]);
    /// Reads the value of `row`.
    ///
    /// # Errors
    /// The columns contradict each other or hold no such value.
    fn take(from: &[ColumnData], row: usize) -> Result<Self, RowContradiction>;
}

/// A field of one column that may be missing.
pub trait Single: Sized {
    /// The column where every row has a value.
    const PART: ColumnPart;
    /// Adds it.
    fn put_one(&self, to: &mut ColumnData);
    /// Reads it; `None`: this is no such value.
    fn take_one(from: &ColumnData, row: usize) -> Option<Self>;
}

impl<T: Single> Field for T {
    const PARTS: &'static [ColumnPart] = &[T::PART];
    #[inline]
    fn put(&self, to: &mut [ColumnData]) {
        self.put_one(&mut to[0]);
    }
    #[inline]
    fn take(from: &[ColumnData], row: usize) -> Result<Self, RowContradiction> {
        T::take_one(&from[0], row).ok_or(RowContradiction("a value is missing or out of its range"))
    }
}

impl<T: Single> Field for Option<T> {
    const PARTS: &'static [ColumnPart] = &[T::PART.optional()];
    #[inline]
    fn put(&self, to: &mut [ColumnData]) {
        match self {
            Some(value) => value.put_one(&mut to[0]),
            None => to[0].push_none(),
        }
    }
    #[inline]
    fn take(from: &[ColumnData], row: usize) -> Result<Self, RowContradiction> {
        if !from[0].has(row) {
            return Ok(None);
        }
        T::take_one(&from[0], row).map(Some).ok_or(RowContradiction("a value is out of its range"))
    }
}

macro_rules! number {
    ($($type:ty, $unit:literal, $to:expr, $from:expr;)*) => { $(
        impl Single for $type {
            const PART: ColumnPart = ColumnPart::only(ColumnKind::Int, $unit);
            #[inline]
            fn put_one(&self, to: &mut ColumnData) {
                to.push_int($to(*self));
            }
            #[inline]
            fn take_one(from: &ColumnData, row: usize) -> Option<Self> {
                from.int(row).and_then($from)
            }
        }
    )* };
}

number! {
    u64, "", |n| n, Some;
    u32, "", u64::from, |n| u32::try_from(n).ok();
    u16, "", u64::from, |n| u16::try_from(n).ok();
    NodeId, "", |n: NodeId| u64::from(n.0), |n| u16::try_from(n).ok().map(NodeId);
    ObjectId, "", |n: ObjectId| u64::from(n.0), |n| u32::try_from(n).ok().map(ObjectId);
    ThreadId, "", |n: ThreadId| u64::from(n.0), |n| u32::try_from(n).ok().map(ThreadId);
    Ns, "ns", |n: Ns| n.0, |n| Some(Ns(n));
    Ps, "ps", |n: Ps| n.0, |n| Some(Ps(n));
    Bytes, "bytes", |n: Bytes| n.0, |n| Some(Bytes(n));
}

impl Single for bool {
    const PART: ColumnPart = ColumnPart::only(ColumnKind::Flag, "");
    fn put_one(&self, to: &mut ColumnData) {
        to.push_int(u64::from(*self));
    }
    fn take_one(from: &ColumnData, row: usize) -> Option<Self> {
        match from.int(row)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Single for String {
    const PART: ColumnPart = ColumnPart::only(ColumnKind::Text, "");
    fn put_one(&self, to: &mut ColumnData) {
        to.push_text(self);
    }
    fn take_one(from: &ColumnData, row: usize) -> Option<Self> {
        from.text(row).map(str::to_owned)
    }
}

impl Single for Vec<u64> {
    const PART: ColumnPart = ColumnPart::only(ColumnKind::Ints, "");
    fn put_one(&self, to: &mut ColumnData) {
        to.push_ints(self);
    }
    fn take_one(from: &ColumnData, row: usize) -> Option<Self> {
        from.ints(row).map(<[u64]>::to_vec)
    }
}

impl Single for Vec<String> {
    const PART: ColumnPart = ColumnPart::only(ColumnKind::Texts, "");
    fn put_one(&self, to: &mut ColumnData) {
        to.push_texts(self);
    }
    fn take_one(from: &ColumnData, row: usize) -> Option<Self> {
        from.texts(row)
    }
}

/// The words for loads and stores.
const ACCESS_WORDS: &[&str] = &["load", "store"];

impl Single for AccessKind {
    const PART: ColumnPart = ColumnPart::only(ColumnKind::Word(ACCESS_WORDS), "");
    fn put_one(&self, to: &mut ColumnData) {
        to.push_text(ACCESS_WORDS[*self as usize]);
    }
    fn take_one(from: &ColumnData, row: usize) -> Option<Self> {
        match from.text(row)? {
            "load" => Some(Self::Read),
            "store" => Some(Self::Write),
            _ => None,
        }
    }
}

/// Declares an enum whose values are words in a table.
macro_rules! words {
    (
        $(#[$doc:meta])*
        pub enum $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $word:literal ),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[$vdoc])* $variant ),* }

        impl $name {
            /// All words, in the order of the values.
            pub const WORDS: &'static [&'static str] = &[$($word),*];
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word ),* }
            }

            /// The value of a word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $( $word => Some(Self::$variant), )* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::schema::Single for $name {
            const PART: $crate::schema::ColumnPart =
                $crate::schema::ColumnPart::only($crate::column::ColumnKind::Word(Self::WORDS), "");
            fn put_one(&self, to: &mut $crate::column::ColumnData) {
                to.push_text(self.as_str());
            }
            fn take_one(from: &$crate::column::ColumnData, row: usize) -> Option<Self> {
                Self::from_word(from.text(row)?)
            }
        }
    };
}
pub(crate) use words;

/// A column as readers of a table know it.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether rows may lack a value.
    pub optional: bool,
    /// What it means: a sentence or two.
    pub doc: &'static str,
    /// Unit of its numbers; empty where they have none.
    pub unit: &'static str,
}

/// A row type: its table's name, columns and conversion.
pub trait TableRow: Sized {
    /// The table's name: that of its file.
    const NAME: &'static str;
    /// What a row is.
    const DOC: &'static str;
    /// Its columns in order.
    fn columns() -> Vec<ColumnInfo>;
    /// Adds this row.
    fn put(&self, to: &mut Chunk);
    /// Reads row `row`.
    ///
    /// # Errors
    /// The row is not one of this table.
    fn take(from: &Chunk, row: usize) -> Result<Self, RowContradiction>;
    /// An empty chunk of this table.
    fn chunk() -> Chunk {
        Chunk::new(Self::columns().into_iter().map(|c| c.kind))
    }
}

/// What takes rows: a data set on disk or in memory.
pub trait RowSink {
    /// Adds a row to its table.
    ///
    /// # Errors
    /// It cannot be written.
    fn push<T: TableRow>(&mut self, row: &T) -> Result<(), DatasetError>;

    /// Adds the rows of a chunk of the table. Rows that make no sense are left out.
    ///
    /// # Errors
    /// They cannot be written.
    fn push_chunk<T: TableRow>(&mut self, chunk: &Chunk) -> Result<(), DatasetError> {
        (0..chunk.rows()).filter_map(|row| T::take(chunk, row).ok()).try_for_each(|row| self.push(&row))
    }
}

/// Adds the columns of a field to `all`; `doc` and `unit` hold where the columns have none.
pub(crate) fn columns_of<F: Field>(
    all: &mut Vec<ColumnInfo>,
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
) {
    let or = |own: &'static str, field: &'static str| if own.is_empty() { field } else { own };
    all.extend(F::PARTS.iter().map(|p| ColumnInfo {
        name: or(p.name, name),
        kind: p.kind,
        optional: p.optional,
        doc: or(p.doc, doc).trim_ascii(),
        unit: or(p.unit, unit),
    }));
}

/// Declares a table: the row struct, its columns and their documentation.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        $table:literal $row:ident {
            $( $(#[doc = $fdoc:literal])* $field:ident : $type:ty $(= $unit:literal)? ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $row { $( $(#[doc = $fdoc])* pub $field: $type ),* }

        impl $crate::schema::TableRow for $row {
            const NAME: &'static str = $table;
            const DOC: &'static str = concat!($($doc),*);

            fn columns() -> Vec<$crate::schema::ColumnInfo> {
                let mut all = Vec::new();
                $( $crate::schema::columns_of::<$type>(
                    &mut all, stringify!($field), concat!($($fdoc),*), concat!($($unit)?)
                ); )*
                all
            }

            fn put(&self, to: &mut $crate::column::Chunk) {
                let mut rest = &mut to.columns[..];
                $(
                    let n = <$type as $crate::schema::Field>::PARTS.len();
                    let (mine, others) = std::mem::take(&mut rest).split_at_mut(n);
                    $crate::schema::Field::put(&self.$field, mine);
                    rest = others;
                )*
                debug_assert!(rest.is_empty(), "a column without a field");
            }

            fn take(from: &$crate::column::Chunk, row: usize) -> Result<Self, $crate::schema::RowContradiction> {
                let mut rest = &from.columns[..];
                $(
                    let n = <$type as $crate::schema::Field>::PARTS.len();
                    let Some((mine, others)) = rest.split_at_checked(n) else {
                        return Err($crate::schema::RowContradiction("a column is missing"));
                    };
                    let $field = <$type as $crate::schema::Field>::take(mine, row)?;
                    rest = others;
                )*
                debug_assert!(rest.is_empty(), "a column without a field");
                Ok(Self { $($field),* })
            }
        }
    };
}
pub(crate) use table;
