//! The rules that no compiler checks. Each check returns its complaints; an empty list is a pass.

mod book;
mod edges;
mod files;
mod guarantees;
mod policies;
mod unsafety;

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Outcome, c_api, metadata, none, root};

/// A text file of the repository.
pub struct File {
    /// From the root, with slashes.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// Never looked into: not ours, or not source.
const SKIPPED: &[&str] = &[".git", "target", "build", "fixtures", "node_modules"];

/// Runs all checks and prints all complaints.
pub fn run(args: &[String]) -> Outcome {
    none(args)?;
    let files = collect(&root())?;
    let packages = metadata::workspace()?;
    let complaints: Vec<String> = [
        edges::check(&packages, &files),
        edges::check_ghosts(&packages, &files),
        edges::check_reasons(&packages, &files),
        edges::check_closures(&packages),
        unsafety::check(&files),
        policies::check(&files),
        files::check_lengths(&files),
        files::check_widths(&files),
        files::check_markers(&files),
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

/// All text files below `root`, in the order of their paths.
fn collect(root: &Path) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(root.join(&folder)).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let entry = entry.map_err(|e| format!("{}: {e}", folder.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            let kind = entry.file_type().map_err(|e| format!("{}: {e}", path.display()))?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) && !name.ends_with(".hnrec") {
                open.push(path);
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(root.join(&path))
            {
                files.push(File { path: path.to_string_lossy().into_owned(), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}
