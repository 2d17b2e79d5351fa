//! What is known of a variable: its name, its elements, its dimensions, and how it was found.

use std::fmt;

use homenode_log::recording::{Elements, FieldRecord, SourcePlace};

/// A variable of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// As the source writes it: `u`, `grid->cells`, `this->data_`, `g%u`. The value of an index is
    /// left out: `rows[]`.
    pub name: String,
    /// What kind of variable holds the data, or the pointer to the data.
    pub scope: VariableScope,
    /// The function, Fortran module, namespace or common block that declares the variable.
    pub within: Option<String>,
    /// The type of one element as the source writes it, `double` or `struct cell`; `None` without
    /// debugging information on variables.
    pub type_name: Option<String>,
    /// Bytes of one element.
    pub element_bytes: Option<u64>,
    /// The dimensions as the source writes them. One dimension at least for what was allocated;
    /// none for a static scalar.
    pub dimensions: Vec<Dimension>,
    /// Which dimension is contiguous.
    pub order: ElementOrder,
    /// The element's fields; empty unless the element is a structure.
    pub fields: Vec<StructField>,
    /// Where the variable is declared, of a member where the member is; the function is the one
    /// that declares a local variable. Without debugging information on variables: where it is
    /// assigned to.
    pub declared: SourcePlace,
    /// What found the variable.
    pub found_by: FoundBy,
    /// The call whose result it holds, an index into the calls asked for: 0 is the allocating call,
    /// 1 that of the program's own allocating function.
    pub call: usize,
}

impl Variable {
    /// Extents of an array of `bytes` bytes, slowest first; empty unless all of them are known and
    /// fit.
    pub fn extents(&self, bytes: u64) -> Vec<u64> {
        let all: Option<Vec<u64>> = self.dimensions.iter().map(|d| d.extent).collect();
        let mut all = all.unwrap_or_default();
        if self.order == ElementOrder::ColumnMajor {
            all.reverse();
        }
        let elements = all.iter().fold(1_u64, |n, e| n.saturating_mul(*e));
        let fits = self.element_bytes.is_none_or(|e| elements.saturating_mul(e) <= bytes);
        if fits { all } else { Vec::new() }
    }

    /// What a recording keeps of its elements.
    pub fn elements(&self, bytes: u64) -> Elements {
        Elements {
            element_type: self.type_name.clone(),
            element_bytes: self.element_bytes,
            extents: self.extents(bytes),
            fields: self.element_fields(),
        }
    }

    /// The fields of an element in the words of a recording, in their order in memory.
    pub fn element_fields(&self) -> Vec<FieldRecord> {
        let of = |f: &StructField| FieldRecord {
            name: f.name.clone(),
            field_type: f.type_name.clone(),
            offset: f.offset,
            bytes: f.bytes.unwrap_or(0),
        };
        let mut fields: Vec<FieldRecord> = self.fields.iter().map(of).collect();
        fields.sort_by_key(|f| f.offset);
        fields
    }
}

/// One dimension of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// Lowest index; `None` where the program chooses it while it runs.
    pub lower: Option<i64>,
    /// Number of indices; `None` where the program chooses it while it runs.
    pub extent: Option<u64>,
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructField {
    /// Its name.
    pub name: String,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Bytes; `None` for an incomplete type.
    pub bytes: Option<u64>,
    /// Its type as the source writes it.
    pub type_name: String,
}

/// What kind of variable it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VariableScope {
    /// Of a function.
    Local,
    /// A function's parameter.
    Parameter,
    /// Visible in other files: of C, C++, or a Fortran module.
    Global,
    /// Of one file, or of a function but kept between calls.
    Static,
    /// A part of a structure or an array that a variable holds or points to.
    Member,
    /// Of a Fortran common block.
    Common,
    /// The source text has the name, and nothing tells where it is declared.
    Unknown,
}

/// The order of an array's elements in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementOrder {
    /// The last dimension is contiguous: C and C++.
    #[default]
    RowMajor,
    /// The first dimension is contiguous: Fortran.
    ColumnMajor,
}

/// What found a variable. The first of these that applies is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FoundBy {
    /// The debugging information gives its address.
    Address,
    /// The instructions after the allocating call put the pointer into it.
    Instructions,
    /// Its address was passed to the call that allocated: `posix_memalign`, methods of containers.
    Argument,
    /// It is the only variable that is declared on the line of the call.
    Declaration,
    /// It is the only target of an assignment or of an `allocate` on the line of the call, in the
    /// source file.
    SourceText,
}

macro_rules! words {
    ($($type:ty { $($variant:ident $word:literal,)* })*) => {$(
        impl $type {
            /// One word, for tables.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

words! {
    VariableScope {
        Local "local",
        Parameter "parameter",
        Global "global",
        Static "static",
        Member "member",
        Common "common",
        Unknown "unknown",
    }
    ElementOrder {
        RowMajor "row-major",
        ColumnMajor "column-major",
    }
    FoundBy {
        Address "address",
        Instructions "instructions",
        Argument "argument",
        Declaration "declaration",
        SourceText "source-text",
    }
}

/// A variable with an address of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticVariable {
    /// The variable.
    pub variable: Variable,
    /// Address relative to the module's base.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
}
