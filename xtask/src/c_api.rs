//! The C header and the Fortran module, made from the Rust source of the C API, so that the three
//! cannot differ.
//!
//! The source is read line by line, in the form that rustfmt gives it; what is not understood is an
//! error, never left out.

mod fortran;
mod header;
mod parse;

use std::fs;

use crate::texts::TextFile;
use crate::{CommandResult, root};

/// Return codes.
const CODES: &str = "crates/model/src/code.rs";
/// Structures and functions, in the order of the header.
const FUNCTIONS: [&str; 2] = ["crates/agent/src/capi.rs", "crates/agent/src/capi_distribute.rs"];
/// What is made, and how.
type Made = (&'static str, fn(&CApi) -> Result<String, String>);
const MADE: [Made; 3] = [
    ("include/homenode.h", header::text),
    ("fortran/homenode.f90", fortran::text),
    ("fortran/homenode_alone.c", header::alone),
];

/// Columns of a comment.
const WIDTH: usize = 100;

/// `lines` with at most `room` columns each: filled anew if one is longer. Empty lines stay.
fn filled(lines: &[String], room: usize) -> Vec<String> {
    if lines.iter().all(|l| l.chars().count() <= room) {
        return lines.to_vec();
    }
    let mut out: Vec<String> = Vec::new();
    for paragraph in lines.split(String::is_empty) {
        if !out.is_empty() {
            out.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.iter().flat_map(|l| l.split(' ')) {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                out.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push(line);
    }
    out
}

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

/// `cargo xtask c-api`: writes header and module.
pub fn run() -> CommandResult {
    let read = |path: &str| fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"));
    let functions = FUNCTIONS.map(read).into_iter().collect::<Result<Vec<_>, _>>()?;
    let api = parse::api(&read(CODES)?, &functions)?;
    for (path, make) in MADE {
        fs::write(root().join(path), make(&api)?).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}

/// Header and module are what the source says.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|f| f.path == path).map_or("", |f| &f.text);
    let api = match parse::api(text(CODES), &FUNCTIONS.map(text)) {
        Ok(api) => api,
        Err(why) => return vec![why],
    };
    let mut complaints = Vec::new();
    for (path, make) in MADE {
        match make(&api) {
            Ok(made) if made == text(path) => {}
            Ok(_) => {
                complaints.push(format!("{path}: not what {} says; run 'cargo xtask c-api'", FUNCTIONS[0]))
            }
            Err(why) => complaints.push(why),
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled_only_where_one_is_too_long() {
        let lines = ["one two", "three", "", "four"].map(str::to_owned);
        assert_eq!(filled(&lines, 7), lines);
        assert_eq!(filled(&lines, 5), ["one", "two", "three", "", "four"]);
        assert_eq!(filled(&["aa bb cc".into(), "dd".into()], 6), ["aa bb", "cc dd"]);
    }

    #[test]
    fn a_header_that_was_changed_by_hand_is_noticed() {
        let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        let mut files: Vec<TextFile> = [CODES, FUNCTIONS[0], FUNCTIONS[1], MADE[0].0, MADE[1].0, MADE[2].0]
            .map(|path| TextFile { path: path.to_owned(), text: read(path) })
            .into();
        assert_eq!(check(&files), Vec::<String>::new());
        files[3].text += "\n";
        assert_eq!(
            check(&files),
            [format!("include/homenode.h: not what {} says; run 'cargo xtask c-api'", FUNCTIONS[0])]
        );
    }
}
