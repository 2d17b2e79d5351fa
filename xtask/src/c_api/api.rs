//! The C API as data.

/// The C API, in the order of its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CApi {
    /// Codes: name, value, what it means. Those of a function's answers (negative, or of arguments)
    /// come behind the return codes.
    pub codes: Vec<Code>,
    /// Structures.
    pub structs: Vec<CStruct>,
    /// Headings and functions.
    pub items: Vec<Item>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub name: String,
    pub value: i32,
    pub about: String,
}

/// A structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CStruct {
    pub name: String,
    pub about: Vec<String>,
    /// Name, Rust type, what it is.
    pub fields: Vec<(String, String, String)>,
}

/// What stands in the second half of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Heading(String),
    Function(Function),
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub about: Vec<String>,
    /// Name, Rust type.
    pub arguments: Vec<(String, String)>,
    /// Rust type.
    pub returns: String,
}
