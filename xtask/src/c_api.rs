//! The C header and the Fortran module, made from the Rust source of the C API, so that the three
//! cannot differ.
//!
//! The source is read line by line, in the form that rustfmt gives it; what is not understood is an
//! error, never left out.

mod api;
mod comment;
mod fortran;
mod header;
mod parse;

use std::fs;

use crate::texts::TextFile;
use crate::{CommandResult, root};
use api::CApi;

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
