//! Copies the files that the program wrote in the guest back to the host.
//!
//! The guest is not trusted. It names paths, and a link from one run may stand where the next run
//! has a folder. So nothing is written outside of the working directory, whatever is in it. Each
//! entry's folder is opened beneath it without following links ([`beneath`]), and making the entry
//! follows no link either. Only plain files, folders and links are made. Of a file's permissions,
//! those for reading, writing and executing are kept; setuid, setgid and sticky bits are not.

use std::ffi::{OsStr, OsString};
use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::wire::{EntryKind, ReturnedFile, Time, read_entry};

/// The result of copying files back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Files and links that were written here.
    pub written: Vec<PathBuf>,
    /// Files that the program removed in the guest and that still exist on the host.
    pub gone: Vec<PathBuf>,
    /// Files that could not be written, with the system's answer.
    pub failed: Vec<String>,
}

/// Reads all entries of the stream and writes them under `folder`.
///
/// # Errors
/// The stream ends early or makes no sense. Files that cannot be written are in
/// [`Brought::failed`].
pub fn back(from: &mut impl Read, folder: &Path) -> io::Result<Brought> {
    let mut brought = Brought::default();
    let root = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    while let Some(entry) = read_entry(from)? {
        let place = Place::of(&root, &entry.path);
        let written = match (&entry.kind, place) {
            (EntryKind::Gone, place) => {
                if place.is_ok_and(|place| place.kind().is_some()) {
                    brought.gone.push(entry.path);
                }
                continue;
            }
            (EntryKind::File(size), place) => file(from, *size, place, &entry)?,
            (_, Err(e)) => Err(e),
            (EntryKind::Folder, Ok(place)) => place.create_folder(),
            (EntryKind::Link(target), Ok(place)) => place.link(target),
        };
        match written {
            Ok(()) if entry.kind == EntryKind::Folder => {}
            Ok(()) => brought.written.push(entry.path),
            Err(e) => brought.failed.push(format!("{}: {e}", folder.join(&entry.path).display())),
        }
    }
    Ok(brought)
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder beneath `root`. No part of the path is a link, and none leads up.
fn beneath(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    if path.components().any(|c| !matches!(c, Component::Normal(_))) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if path.as_os_str().is_empty() {
        return root.try_clone();
    }
    let only = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, path, FOLDER, Mode::empty(), only) {
        // Before Linux 5.6, and in containers that forbid the call.
        Err(Errno::NOSYS | Errno::PERM) => part_by_part(root, path),
        opened => Ok(opened?),
    }
}

/// The same without `openat2`.
fn part_by_part(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut at = root.try_clone()?;
    for part in path {
        at = rustix::fs::openat(&at, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}

/// The place of an entry: a name in an open folder.
struct Place<'a> {
    folder: OwnedFd,
    name: &'a OsStr,
}

impl<'a> Place<'a> {
    fn of(root: &OwnedFd, path: &'a Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { folder: beneath(root, path.parent().unwrap_or(Path::new("")))?, name })
    }

    /// The kind of the existing file there; `None` if there is none.
    fn kind(&self) -> Option<FileType> {
        let is = rustix::fs::statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(is.st_mode))
    }

    fn create_folder(&self) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.folder, self.name, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) if self.kind() == Some(FileType::Directory) => Ok(()),
            other => Ok(other?),
        }
    }

    fn link(&self, target: &Path) -> io::Result<()> {
        if self.kind().is_some_and(|kind| kind != FileType::Directory) {
            self.remove(self.name)?;
        }
        Ok(rustix::fs::symlinkat(target, &self.folder, self.name)?)
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// A new file beside it, which replaces it when it is complete.
    fn part(&self) -> io::Result<Part<'_>> {
        let mut name = self.name.to_owned();
        name.push(format!(".homenode-{}", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let make = || rustix::fs::openat(&self.folder, &name, flags, Mode::from_raw_mode(0o600));
        let made = match make() {
            // Left by a killed run with this number, or put there by the program.
            Err(Errno::EXIST) => {
                self.remove(&name)?;
                make()
            }
            other => other,
        };
        Ok(Part { file: File::from(made?), place: self, name: Some(name) })
    }
}

/// A temporary file, removed when dropped, unless [`Part::keep`] has kept it.
struct Part<'a> {
    file: File,
    place: &'a Place<'a>,
    name: Option<OsString>,
}

impl Part<'_> {
    fn keep(mut self, entry: &ReturnedFile) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(entry.mode & 0o777))?;
        let Time { seconds: secs, nanoseconds: nanos } = entry.modified;
        let secs = Duration::new(u64::try_from(secs).unwrap_or(0), nanos);
        self.file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + secs))?;
        if let Some(name) = &self.name {
            rustix::fs::renameat(&self.place.folder, name, &self.place.folder, self.place.name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = self.place.remove(name);
        }
    }
}

/// The outer error is the stream's, the inner one this disk's. All bytes are read in any case.
fn file(
    from: &mut impl Read,
    size: u64,
    to: io::Result<Place<'_>>,
    entry: &ReturnedFile,
) -> io::Result<io::Result<()>> {
    let place = to.as_ref();
    let mut part = match place {
        Ok(place) => place.part(),
        Err(e) => Err(io::Error::new(e.kind(), e.to_string())),
    };
    let mut left = size;
    let mut buffer = vec![0; 64 << 10];
    while left > 0 {
        let n = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        from.read_exact(&mut buffer[..n])?;
        left -= n as u64;
        if let Ok(open) = &mut part
            && let Err(e) = io::Write::write_all(&mut open.file, &buffer[..n])
        {
            part = Err(e);
        }
    }
    Ok(part.and_then(|part| part.keep(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;

    use crate::wire::{write_end, write_entry};

    fn entry(path: &str, kind: EntryKind) -> ReturnedFile {
        ReturnedFile {
            path: path.into(),
            kind,
            mode: 0o640,
            modified: Time { seconds: 1_000_000, nanoseconds: 5 },
        }
    }

    #[test]
    fn files_folders_and_links_come_back() {
        let dir = Scratch::new("lab").unwrap();
        fs::write(dir.path().join("old"), "before").unwrap();
        let mut stream = Vec::new();
        write_entry(&mut stream, entry("d", EntryKind::Folder)).unwrap();
        write_entry(&mut stream, entry("d/f", EntryKind::File(5))).unwrap();
        stream.extend_from_slice(b"hello");
        write_entry(&mut stream, entry("l", EntryKind::Link("d/f".into()))).unwrap();
        write_entry(&mut stream, entry("no/such/folder", EntryKind::File(2))).unwrap();
        stream.extend_from_slice(b"xx");
        write_entry(&mut stream, entry("old", EntryKind::Gone)).unwrap();
        write_end(&mut stream).unwrap();
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

    /// A stream of these entries; files hold "evil".
    fn stream(entries: &[(&str, EntryKind, u32)]) -> Vec<u8> {
        let mut stream = Vec::new();
        for (path, kind, mode) in entries {
            let modified = Time { seconds: 1, nanoseconds: 0 };
            let entry = ReturnedFile { path: path.into(), kind: kind.clone(), mode: *mode, modified };
            write_entry(&mut stream, entry).unwrap();
            if matches!(kind, EntryKind::File(_)) {
                stream.extend_from_slice(b"evil");
            }
        }
        write_end(&mut stream).unwrap();
        stream
    }

    #[test]
    fn nothing_is_written_through_a_link_of_an_earlier_run() {
        let dir = Scratch::new("lab").unwrap();
        let (inside, outside) = (dir.path().join("work"), dir.path().join("home"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "good").unwrap();
        let link = |to: &Path| EntryKind::Link(to.to_owned());
        let first = stream(&[
            ("d", link(&outside), 0),
            ("up", link(Path::new("..")), 0),
            ("f", link(&outside.join("file")), 0),
        ]);
        assert_eq!(back(&mut &first[..], &inside).unwrap().written.len(), 3);
        // Somebody else's link stands where the new file is first written.
        let part = format!("g.homenode-{}", std::process::id());
        symlink(outside.join("file"), inside.join(part)).unwrap();
        let second = stream(&[
            ("d", EntryKind::Folder, 0o755),
            ("d/file", EntryKind::File(4), 0o644),
            ("d/new/deeper", EntryKind::Folder, 0o755),
            ("d/link", link(Path::new("x")), 0),
            ("d/file", EntryKind::Gone, 0),
            ("up/home/file", EntryKind::File(4), 0o644),
            ("f", EntryKind::File(4), 0o644),
            ("g", EntryKind::File(4), 0o644),
        ]);
        let brought = back(&mut &second[..], &inside).unwrap();
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"good");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(brought.written, [Path::new("f"), Path::new("g")], "in the place of the links");
        assert!(fs::symlink_metadata(inside.join("f")).unwrap().is_file());
        assert_eq!(brought.failed.len(), 5, "{:?}", brought.failed);
        assert!(brought.gone.is_empty());
        let left = fs::read_dir(&inside).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
        assert_eq!(left.len(), 4, "{left:?}");
    }

    #[test]
    fn both_ways_to_open_a_folder_refuse_links_and_ways_up() {
        let dir = Scratch::new("lab").unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("a", dir.path().join("l")).unwrap();
        symlink("/", dir.path().join("a/root")).unwrap();
        let root = rustix::fs::open(dir.path(), FOLDER, Mode::empty()).unwrap();
        for open in [beneath, part_by_part] {
            assert!(open(&root, Path::new("a/b")).is_ok());
            for refused in ["l", "l/b", "a/root", "a/root/tmp", "none", "a/b/c"] {
                assert!(open(&root, Path::new(refused)).is_err(), "{refused}");
            }
        }
        for refused in ["..", "a/../..", "/", "/tmp"] {
            assert!(beneath(&root, Path::new(refused)).is_err(), "{refused}");
        }
        assert!(beneath(&root, Path::new("")).is_ok());
    }

    #[test]
    fn bits_that_give_rights_away_do_not_come_back() {
        let dir = Scratch::new("lab").unwrap();
        let files = stream(&[("s", EntryKind::File(4), 0o6755), ("t", EntryKind::File(4), 0o1777)]);
        assert_eq!(back(&mut &files[..], dir.path()).unwrap().written.len(), 2);
        for (name, mode) in [("s", 0o755), ("t", 0o777)] {
            let is = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(is, mode, "{name}");
        }
    }
}
