//! Finds the files that the program wrote.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::wire::{EntryKind, ReturnedFile, Time, write_end, write_entry};

/// Values that change whenever a file does: inode, size, permissions, both times with nanoseconds.
type Mark = (u64, u64, u32, (i64, i64), (i64, i64));

/// A folder's files at one time.
#[derive(Debug, Default)]
pub struct Snapshot(BTreeMap<PathBuf, (Mark, bool)>);

impl Snapshot {
    /// The files now.
    pub fn take(folder: &Path) -> Self {
        let mut this = Self::default();
        this.walk(folder, Path::new(""));
        this
    }

    fn walk(&mut self, root: &Path, below: &Path) {
        let Ok(entries) = fs::read_dir(root.join(below)) else { return };
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let path = below.join(entry.file_name());
            let folder = about.is_dir();
            self.0.insert(path.clone(), (mark(&about), folder));
            if folder {
                self.walk(root, &path);
            }
        }
    }
}

fn mark(m: &Metadata) -> Mark {
    (m.ino(), m.size(), m.mode(), (m.mtime(), m.mtime_nsec()), (m.ctime(), m.ctime_nsec()))
}

/// Sends everything in `folder` that has changed.
///
/// # Errors
/// The port breaks. Files that disappear or cannot be read meanwhile are left out.
pub fn send(folder: &Path, before: &Snapshot, port: &mut File) -> io::Result<()> {
    let after = Snapshot::take(folder);
    let mut to = BufWriter::with_capacity(32 << 10, port);
    for (path, (mark, is_folder)) in &after.0 {
        let old = before.0.get(path);
        // A folder changes with every file in it.
        if old.is_some_and(|(o, was)| o == mark || (*is_folder && *was)) {
            continue;
        }
        one(folder, path, &mut to)?;
    }
    for path in before.0.keys().filter(|p| !after.0.contains_key(*p)) {
        let (path, kind, modified) = (path.clone(), EntryKind::Gone, Time::default());
        write_entry(&mut to, ReturnedFile { path, kind, mode: 0, modified })?;
    }
    write_end(&mut to)?;
    to.flush()
}

fn one(folder: &Path, path: &Path, to: &mut impl Write) -> io::Result<()> {
    let full = folder.join(path);
    let Ok(about) = full.symlink_metadata() else { return Ok(()) };
    let modified = Time { seconds: about.mtime(), nanoseconds: about.mtime_nsec() as u32 };
    let entry = |kind| ReturnedFile { path: path.to_owned(), kind, mode: about.mode() & 0o7777, modified };
    if about.is_dir() {
        return write_entry(to, entry(EntryKind::Folder));
    }
    if about.is_symlink() {
        let Ok(target) = fs::read_link(&full) else { return Ok(()) };
        return write_entry(to, entry(EntryKind::Link(target)));
    }
    if !about.is_file() {
        return Ok(());
    }
    let Ok(mut file) = File::open(&full) else { return Ok(()) };
    let size = about.len();
    write_entry(to, entry(EntryKind::File(size)))?;
    // Sends as many bytes as announced, even if a remaining process changes the file.
    let sent = io::copy(&mut Read::by_ref(&mut file).take(size), to)?;
    io::copy(&mut io::repeat(0).take(size - sent), to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bring;
    use homenode_scratch::Scratch;

    #[test]
    fn what_changed_arrives_and_nothing_else() {
        let (a, b) = (Scratch::new("lab").unwrap(), Scratch::new("lab").unwrap());
        let put = |name: &str, text: &str| fs::write(a.path().join(name), text).unwrap();
        fs::create_dir(a.path().join("d")).unwrap();
        ["same", "changed", "gone"].iter().for_each(|n| put(n, "before"));
        let before = Snapshot::take(a.path());
        put("changed", "after!");
        put("d/new", "");
        fs::remove_file(a.path().join("gone")).unwrap();
        fs::create_dir(b.path().join("d")).unwrap();
        let stream = b.path().join("stream");
        send(a.path(), &before, &mut File::create(&stream).unwrap()).unwrap();
        let brought = bring::back(&mut File::open(&stream).unwrap(), b.path()).unwrap();
        assert_eq!(brought.written, [Path::new("changed"), Path::new("d/new")]);
        assert!(brought.failed.is_empty() && brought.gone.is_empty(), "{brought:?}");
        assert_eq!(fs::read(b.path().join("changed")).unwrap(), b"after!");
    }
}
