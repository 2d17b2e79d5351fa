//! Files that others have made: only regular ones of a bounded size are read, and nobody is waited
//! for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The same number on all architectures that homenode runs on.
const O_NONBLOCK: i32 = 0o4000;

fn wrong(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

/// Opens a regular file that somebody has named; a symbolic link to one is followed.
///
/// # Errors
/// What the system said, or that the path holds something else.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(wrong("it is not a regular file"));
    }
    Ok(file)
}

/// Opens a regular file of a recording; a symbolic link may lead anywhere and is refused.
///
/// # Errors
/// As [`open`], or it is a symbolic link.
pub fn open_within(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(wrong("it is a symbolic link"));
    }
    open(path)
}

/// Whether the path is a folder, and no symbolic link to one.
///
/// # Errors
/// It is not, or the system refuses.
pub fn folder(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?;
    match () {
        () if kind.is_dir() => Ok(()),
        () if kind.is_symlink() => Err(wrong("it is a symbolic link")),
        () => Err(wrong("it is not a folder")),
    }
}

/// The bytes of an open file of at most `most` bytes.
///
/// # Errors
/// It is longer, or cannot be read.
pub fn bytes(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.take(most.saturating_add(1)).read_to_end(&mut bytes)? as u64 > most {
        let why = format!("it is longer than the {most} bytes that are read");
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

/// The text of an open file of at most `most` bytes.
///
/// # Errors
/// It is longer, is no text, or cannot be read.
pub fn text(file: File, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(file, most)?).map_err(|e| io::Error::new(ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular"));
        assert!(open(Path::new("/proc")).is_err());
        assert!(open(Path::new("/proc/self/exe")).is_ok(), "a link that somebody names is followed");
        assert!(open_within(Path::new("/proc/self/exe")).unwrap_err().to_string().contains("symbolic"));
        let own = std::env::current_exe().unwrap();
        assert!(text(open_within(&own).unwrap(), 10).is_err());
        assert!(folder(Path::new("/proc")).is_ok() && folder(&own).is_err());
        assert!(folder(Path::new("/proc/self")).unwrap_err().to_string().contains("symbolic"));
    }
}
