//! Where the loader finds libraries: ld.so(8).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::elf;

/// The folders in which the loader looks for libraries.
#[derive(Debug)]
pub struct Loader {
    library_path: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    known: BTreeMap<PathBuf, bool>,
}

/// Folders that the loader searches without configuration.
const BUILT_IN: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

impl Loader {
    /// This system's folders, with the program's `LD_LIBRARY_PATH`.
    pub fn new(library_path: Option<&OsStr>) -> Self {
        let mut folders = Vec::new();
        configured(Path::new("/etc/ld.so.conf"), 0, &mut folders);
        folders.extend(BUILT_IN.map(PathBuf::from));
        let library_path = library_path.map(|p| std::env::split_paths(p).collect()).unwrap_or_default();
        Self { library_path, folders, known: BTreeMap::new() }
    }

    /// The file that `name` means with these run paths: `before` LD_LIBRARY_PATH and `after` it.
    pub fn find(&mut self, name: &str, before: &[PathBuf], after: &[PathBuf]) -> Option<PathBuf> {
        let all = before.iter().chain(&self.library_path).chain(after).chain(&self.folders);
        let known = &mut self.known;
        all.map(|f| f.join(name))
            .find(|path| *known.entry(path.clone()).or_insert_with(|| path.is_file() && elf::is_ours(path)))
    }

    /// The folders that [`Loader::find`] searches, for a message.
    pub fn places(&self, before: &[PathBuf], after: &[PathBuf]) -> String {
        let all = before.iter().chain(&self.library_path).chain(after).chain(&self.folders);
        all.map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// The folders that a configuration file names, and those in files that it includes.
fn configured(file: &Path, depth: u32, into: &mut Vec<PathBuf>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    for line in text.lines().map(|l| l.split('#').next().unwrap_or_default().trim()) {
        if let Some(pattern) = line.strip_prefix("include").map(str::trim).filter(|_| depth < 8) {
            let base = file.parent().unwrap_or(Path::new("/"));
            included(&base.join(pattern)).iter().for_each(|f| configured(f, depth + 1, into));
        } else if line.starts_with('/') {
            into.push(line.into());
        }
    }
}

/// Expands `/etc/ld.so.conf.d/*.conf`, the only pattern in use.
fn included(pattern: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name().and_then(OsStr::to_str)) else {
        return Vec::new();
    };
    let Some((head, tail)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .filter(|e| e.file_name().to_str().is_some_and(|n| n.starts_with(head) && n.ends_with(tail)))
        .map(|e| e.path())
        .collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_found_and_run_paths_go_first() {
        let mut loader = Loader::new(None);
        let plain = loader.find("libc.so.6", &[], &[]).unwrap();
        let folder = plain.parent().unwrap().to_owned();
        assert_eq!(loader.find("libc.so.6", &["/no/such".into(), folder], &[]), Some(plain));
        assert_eq!(loader.find("libno-such.so.1", &[], &[]), None);
        assert!(loader.places(&["/first".into()], &[]).starts_with("/first, "));
    }
}
