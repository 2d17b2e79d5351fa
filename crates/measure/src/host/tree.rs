//! The files of `sys` and `proc` under a folder, or in one text file that
//! `scripts/record-sysfs.sh` wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Largest recording that is read; 64 nodes of 64 CPUs have about 6 MiB.
const MOST: u64 = 64 << 20;

/// What stands for `/`.
pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Contents by path, where the root is a recording and not a folder.
    recorded: Option<BTreeMap<String, String>>,
}

/// `== PATH` begins a file, what follows is its contents. A stranger may have made the recording:
/// characters that a terminal obeys, or that turn text around, become U+FFFD.
fn recorded(text: &str) -> BTreeMap<String, String> {
    let is_obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    let text = text.replace(is_obeyed, "\u{fffd}");
    let mut files = BTreeMap::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("== "), &mut open) {
            (Some(path), _) => files.extend(open.replace((path.trim().to_owned(), String::new()))),
            (None, Some((_, contents))) => *contents += &format!("{line}\n"),
            // What comes before the first file is a comment.
            (None, None) => {}
        }
    }
    files.extend(open);
    files
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        let is_recording = fs::metadata(root).is_ok_and(|m| m.is_file() && m.len() <= MOST);
        let text = is_recording.then(|| fs::read_to_string(root).unwrap_or_default());
        Self { root: root.into(), recorded: text.map(|t| recorded(&t)) }
    }

    /// A file's text without the white space around it; `None` if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = match &self.recorded {
            Some(files) => files.get(path).cloned(),
            None => fs::read_to_string(self.root.join(path)).ok(),
        };
        text.map(|t| t.trim().to_owned())
    }

    /// The names in a folder, sorted.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        if let Some(files) = &self.recorded {
            let inside =
                files.keys().filter_map(|f| f.strip_prefix(path)?.strip_prefix('/')?.split('/').next());
            let names: BTreeSet<&str> = inside.collect();
            return names.into_iter().map(str::to_owned).collect();
        }
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A list of CPUs or nodes such as `0-3,8`.
    pub(super) fn list(&self, path: &str) -> Option<BTreeSet<u32>> {
        self.text(path).map(|t| numbers(&t))
    }
}

/// `0-3,8` as numbers; nonsense is left out.
pub(super) fn numbers(list: &str) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for range in list.trim().split(',').filter(|r| !r.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            all.extend(first..=last.min(first.saturating_add(1 << 16)));
        }
    }
    all
}
