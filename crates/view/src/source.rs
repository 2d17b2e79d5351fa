//! Lines of the source around places that the page names.
//!
//! A path that a recording names is a stranger's word. Only its last parts are used, below a folder
//! that the user names; only files that are called as source files are, of ordinary size, are read;
//! and only lines around the named ones are shown.

use std::path::{Component, Path, PathBuf};

use homenode_dataset::foreign;
use serde::Serialize;

/// Lines before and behind a named one.
const AROUND: usize = 4;
/// Most bytes of a file.
const MOST_BYTES: u64 = 4 << 20;
/// Most excerpts of a page.
pub const MOST: usize = 60;
/// Most characters of a line.
const MOST_COLUMNS: usize = 160;
/// Most parts of a path that are looked for.
const MOST_PARTS: usize = 12;
/// What source files are called.
const ENDINGS: [&str; 25] = [
    "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "inc", "cu", "cuh", "f", "for", "f77", "f90",
    "f95", "f03", "f08", "F90", "F", "rs", "py", "jl", "go",
];

/// Some lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// The file, as the recording names it.
    pub file: String,
    /// The line that was named.
    pub line: u32,
    /// Number of the first line that is shown.
    pub first: u32,
    /// The lines.
    pub lines: Vec<String>,
}

/// Finds the file below `folder` that a recording calls `named`: the longest end of its path that
/// is there.
fn find(folder: &Path, named: &str) -> Option<PathBuf> {
    let ending = Path::new(named).extension()?.to_str()?;
    if !ENDINGS.contains(&ending) {
        return None;
    }
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for part in Path::new(named).components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::ParentDir => parts.clear(),
            _ => {}
        }
    }
    let from = parts.len().saturating_sub(MOST_PARTS);
    (from..parts.len()).map(|at| folder.join(parts[at..].iter().collect::<PathBuf>())).find(|path| {
        // What leads out of the folder by a link is not in it.
        let inside = || Some(path.canonicalize().ok()?.starts_with(folder.canonicalize().ok()?));
        path.is_file() && inside() == Some(true)
    })
}

fn cut(line: &str) -> String {
    let line = foreign::clean(&line.replace('\t', "    "));
    match line.char_indices().nth(MOST_COLUMNS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn excerpt(folder: &Path, file: &str, line: u32) -> Option<Excerpt> {
    let path = find(folder, file)?;
    let text = foreign::read(&path, MOST_BYTES).ok()?;
    let at = (line as usize).checked_sub(1)?;
    let first = at.saturating_sub(AROUND);
    let lines: Vec<String> = text.lines().skip(first).take(2 * AROUND + 1).map(cut).collect();
    // A file that ends before the line is another one than the program was built from.
    (lines.len() > at - first).then(|| Excerpt {
        file: file.to_owned(),
        line,
        first: first as u32 + 1,
        lines,
    })
}

/// Lines around places, from files below `folder`.
pub fn around(places: &[(String, u32)], folder: &Path) -> Vec<Excerpt> {
    places.iter().filter_map(|(file, line)| excerpt(folder, file, *line)).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("homenode-view-source-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("in/src")).unwrap();
        std::fs::write(folder.join("outside.c"), "secret\n").unwrap();
        std::fs::write(folder.join("in/src/a.c"), "one\ntwo\n\tthree <b>\nfour\n").unwrap();
        folder
    }

    #[test]
    fn a_line_is_found_by_the_end_of_its_path() {
        let folder = folder("found");
        for named in ["/home/somebody/project/src/a.c", "src/a.c", "../project/src/a.c"] {
            let found = excerpt(&folder.join("in"), named, 3).unwrap();
            assert_eq!((found.first, found.lines.len()), (1, 4), "{named}");
            assert_eq!(found.lines[2], "    three <b>");
        }
        assert_eq!(excerpt(&folder.join("in"), "src/a.c", 5), None, "it ends before that line");
        assert_eq!(excerpt(&folder.join("in"), "src/a.c", 0), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read() {
        let folder = folder("outside");
        let inside = folder.join("in");
        std::os::unix::fs::symlink(folder.join("outside.c"), inside.join("link.c")).unwrap();
        std::fs::write(inside.join("key"), "secret\n").unwrap();
        let outside = folder.join("outside.c");
        for named in ["../outside.c", "src/../../outside.c", "link.c", "key", "", outside.to_str().unwrap()] {
            assert_eq!(excerpt(&inside, named, 1), None, "{named}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
