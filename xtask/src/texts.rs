//! The text files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
pub struct TextFile {
    /// From the root, with slashes.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// Never looked into: not ours, or not source.
const SKIPPED: &[&str] = &[".git", "target", "build", "fixtures", "node_modules"];

/// All text files below `root`, in the order of their paths.
pub fn collect(root: &Path) -> Result<Vec<TextFile>, String> {
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
                files.push(TextFile { path: path.to_string_lossy().into_owned(), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
