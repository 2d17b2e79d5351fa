//! Files that the program wrote in the guest come back.

use std::fs::{self, File, FileTimes};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::wire::{Entry, EntryKind};

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Files and links that were written here.
    pub written: Vec<PathBuf>,
    /// What the program removed there and what is still here.
    pub gone: Vec<PathBuf>,
    /// What could not be written, with what the system said.
    pub failed: Vec<String>,
}

/// Reads all entries of the stream and writes them under `folder`.
///
/// # Errors
/// The stream ends early or makes no sense. What cannot be written is in [`Brought::failed`].
pub fn back(from: &mut impl Read, folder: &Path) -> io::Result<Brought> {
    let mut brought = Brought::default();
    while let Some(entry) = Entry::read(from)? {
        let to = folder.join(&entry.path);
        let written = match &entry.kind {
            EntryKind::Gone => {
                if to.symlink_metadata().is_ok() {
                    brought.gone.push(entry.path);
                }
                continue;
            }
            EntryKind::Folder => create_folder(&to),
            EntryKind::Link(target) => link(target, &to),
            EntryKind::File(size) => file(from, *size, &to, &entry)?,
        };
        match written {
            Ok(()) if entry.kind == EntryKind::Folder => {}
            Ok(()) => brought.written.push(entry.path),
            Err(e) => brought.failed.push(format!("{}: {e}", to.display())),
        }
    }
    Ok(brought)
}

fn create_folder(to: &Path) -> io::Result<()> {
    match fs::create_dir(to) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => Ok(()),
        other => other,
    }
}

fn link(target: &Path, to: &Path) -> io::Result<()> {
    if to.symlink_metadata().is_ok_and(|m| !m.is_dir()) {
        fs::remove_file(to)?;
    }
    symlink(target, to)
}

/// The outer error is the stream's, the inner one this disk's. All bytes are read in any case.
fn file(from: &mut impl Read, size: u64, to: &Path, entry: &Entry) -> io::Result<io::Result<()>> {
    let mut part = to.as_os_str().to_owned();
    part.push(format!(".homenode-{}", std::process::id()));
    let part = PathBuf::from(part);
    let mut written = File::create(&part);
    let mut left = size;
    let mut buffer = vec![0; 64 << 10];
    while left > 0 {
        let n = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if let Err(e) = from.read_exact(&mut buffer[..n]) {
            let _ = fs::remove_file(&part);
            return Err(e);
        }
        left -= n as u64;
        if let Ok(file) = &mut written
            && let Err(e) = io::Write::write_all(file, &buffer[..n])
        {
            written = Err(e);
        }
    }
    let done = written.and_then(|file| {
        file.set_permissions(fs::Permissions::from_mode(entry.mode))?;
        let (secs, nanos) = entry.modified;
        let secs = Duration::new(u64::try_from(secs).unwrap_or(0), nanos);
        file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + secs))?;
        fs::rename(&part, to)
    });
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.into(), kind, mode: 0o640, modified: (1_000_000, 5) }
    }

    #[test]
    fn files_folders_and_links_come_back() {
        let dir = Scratch::make(&std::env::temp_dir()).unwrap();
        fs::write(dir.path().join("old"), "before").unwrap();
        let mut stream = Vec::new();
        entry("d", EntryKind::Folder).write(&mut stream).unwrap();
        entry("d/f", EntryKind::File(5)).write(&mut stream).unwrap();
        stream.extend_from_slice(b"hello");
        entry("l", EntryKind::Link("d/f".into())).write(&mut stream).unwrap();
        entry("no/such/folder", EntryKind::File(2)).write(&mut stream).unwrap();
        stream.extend_from_slice(b"xx");
        entry("old", EntryKind::Gone).write(&mut stream).unwrap();
        Entry::write_end(&mut stream).unwrap();
        let brought = back(&mut &stream[..], dir.path()).unwrap();
        assert_eq!(brought.written, [Path::new("d/f"), Path::new("l")]);
        assert_eq!(brought.gone, [Path::new("old")]);
        assert_eq!(brought.failed.len(), 1);
        assert_eq!(fs::read(dir.path().join("l")).unwrap(), b"hello");
        let mode = fs::metadata(dir.path().join("d/f")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(fs::read(dir.path().join("old")).unwrap(), b"before", "nothing is removed here");
        assert!(back(&mut &stream[..40], dir.path()).is_err());
    }
}
