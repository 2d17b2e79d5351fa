//! The rules that no compiler checks. Each check returns its complaints; an empty list is a pass.

mod book;
mod circles;
mod edges;
mod files;
mod functions;
mod guarantees;
mod names;
mod policies;
mod prose;
mod unsafety;

use crate::texts::{self, TextFile};
use crate::{CommandResult, c_api, map, metadata, root};

/// Runs all checks and prints all complaints.
pub fn run() -> CommandResult {
    let files = texts::collect(&root())?;
    let packages = metadata::workspace()?;
    let complaints: Vec<String> = [
        edges::check(&packages, &files),
        edges::check_ghosts(&packages, &files),
        edges::check_reasons(&packages, &files),
        edges::check_closures(&packages),
        circles::check(&map::drawings(&files)),
        names::check(&files),
        functions::check(&files),
        unsafety::check(&files),
        policies::check(&files),
        prose::check(&files),
        files::check_lengths(&files),
        files::check_widths(&files),
        files::check_markers(&files),
        files::check_cargo(&files),
        files::check_no_std(&files),
        files::check_licences(&files, &packages),
        c_api::check(&files),
        guarantees::check(&files),
        book::check(&files, |path| root().join(path).exists()),
    ]
    .concat();
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        n => Err(format!("{n} to put right")),
    }
}

#[cfg(test)]
fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}
