//! What guest and host say to each other: lines on the control port, entries on the files port.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Names of the ports as the guest finds them in `/sys/class/virtio-ports`.
pub const PORTS: [&str; 5] = ["control", "stdin", "stdout", "stderr", "files"];

/// What the guest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It has booted and is about to start the program.
    Ready,
    /// The program has started.
    Started,
    /// The program could not be started: the system's error number.
    CannotRun(i32),
    /// The program has ended.
    Ended {
        /// How.
        status: Status,
        /// Bytes that it wrote to stdout and stderr: whoever reads them knows when there is no more to come.
        written: [u64; 2],
        /// Processes that the kernel killed for want of memory.
        out_of_memory: u64,
        /// How long it took, by the guest's clock, in nanoseconds.
        took: u64,
    },
    /// All files have been sent.
    Bye,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this status.
    Exit(u8),
    /// By this signal.
    Signal(u8),
}

impl Said {
    /// As a line.
    pub fn line(&self) -> String {
        match self {
            Self::Ready => "ready\n".into(),
            Self::Started => "started\n".into(),
            Self::CannotRun(errno) => format!("cannot-run {errno}\n"),
            Self::Ended { status, written: [out, err], out_of_memory, took } => {
                let (how, n) = match status {
                    Status::Exit(n) => ("exit", n),
                    Status::Signal(n) => ("signal", n),
                };
                format!("ended {how} {n} {out} {err} {out_of_memory} {took}\n")
            }
            Self::Bye => "bye\n".into(),
        }
    }

    /// From a line.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(match words[..] {
            ["ready"] => Self::Ready,
            ["started"] => Self::Started,
            ["bye"] => Self::Bye,
            ["cannot-run", errno] => Self::CannotRun(errno.parse().ok()?),
            ["ended", how, n, out, err, oom, took] => Self::Ended {
                status: match how {
                    "exit" => Status::Exit(n.parse().ok()?),
                    "signal" => Status::Signal(n.parse().ok()?),
                    _ => return None,
                },
                written: [out.parse().ok()?, err.parse().ok()?],
                out_of_memory: oom.parse().ok()?,
                took: took.parse().ok()?,
            },
            _ => return None,
        })
    }
}

/// A file that comes back, without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the folder that is watched.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Permissions.
    pub mode: u32,
    /// When it was changed: seconds and nanoseconds since 1970.
    pub modified: (i64, u32),
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file with so many bytes, which follow.
    File(u64),
    /// A symbolic link.
    Link(PathBuf),
    /// Nothing: it was removed.
    Gone,
}

/// No path is longer (PATH_MAX).
const LONGEST: u32 = 4096;

impl Entry {
    /// Writes it; a file's bytes must follow.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, size, target) = match &self.kind {
            EntryKind::Folder => (b'd', 0, Path::new("")),
            EntryKind::File(size) => (b'f', *size, Path::new("")),
            EntryKind::Link(target) => (b'l', 0, target.as_path()),
            EntryKind::Gone => (b'g', 0, Path::new("")),
        };
        let mut head = vec![kind];
        head.extend_from_slice(&self.mode.to_le_bytes());
        head.extend_from_slice(&self.modified.0.to_le_bytes());
        head.extend_from_slice(&self.modified.1.to_le_bytes());
        head.extend_from_slice(&size.to_le_bytes());
        for path in [self.path.as_path(), target] {
            let bytes = path.as_os_str().as_bytes();
            head.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            head.extend_from_slice(bytes);
        }
        to.write_all(&head)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// What the system said.
    pub fn write_end(to: &mut impl Write) -> io::Result<()> {
        to.write_all(b"e")
    }

    /// Reads the next; `None` at the end.
    ///
    /// # Errors
    /// The stream ends early, or an entry makes no sense or points out of the folder.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the guest sent {what}"));
        let kind = take::<1>(from)?[0];
        if kind == b'e' {
            return Ok(None);
        }
        let mode = u32::from_le_bytes(take(from)?) & 0o7777;
        let modified = (i64::from_le_bytes(take(from)?), u32::from_le_bytes(take(from)?).min(999_999_999));
        let size = u64::from_le_bytes(take(from)?);
        let path = PathBuf::from(text(from)?);
        let target = PathBuf::from(text(from)?);
        let plain = path.components().all(|c| matches!(c, Component::Normal(_)));
        if !plain || path.as_os_str().is_empty() {
            return Err(bad(&format!("a file outside of the working directory: {}", path.display())));
        }
        let kind = match kind {
            b'd' => EntryKind::Folder,
            b'f' => EntryKind::File(size),
            b'l' => EntryKind::Link(target),
            b'g' => EntryKind::Gone,
            other => return Err(bad(&format!("an entry of kind {other}"))),
        };
        Ok(Some(Self { path, kind, mode, modified }))
    }
}

fn take<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(from: &mut impl Read) -> io::Result<OsString> {
    let length = u32::from_le_bytes(take(from)?);
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the guest sent a path that is too long"));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive() {
        let ended = |status| Said::Ended { status, written: [3, u64::MAX], out_of_memory: 1, took: 9 };
        for said in [
            Said::Ready,
            Said::Started,
            Said::CannotRun(13),
            Said::Bye,
            ended(Status::Exit(255)),
            ended(Status::Signal(9)),
        ] {
            assert_eq!(Said::parse(&said.line()), Some(said));
        }
        for bad in ["", "ended", "ended exit 256 0 0 0 0", "ended x 0 0 0 0 0", "ready now"] {
            assert_eq!(Said::parse(bad), None, "{bad}");
        }
    }

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.into(), kind, mode: 0o644, modified: (-1, 5) }
    }

    #[test]
    fn entries_survive_and_stay_inside() {
        for kind in [EntryKind::Folder, EntryKind::File(7), EntryKind::Link("../x".into()), EntryKind::Gone] {
            let mut bytes = Vec::new();
            entry("a/b", kind.clone()).write(&mut bytes).unwrap();
            Entry::write_end(&mut bytes).unwrap();
            let mut from = &bytes[..];
            assert_eq!(Entry::read(&mut from).unwrap(), Some(entry("a/b", kind)));
            assert_eq!(Entry::read(&mut from).unwrap(), None);
            for n in 0..bytes.len() - 1 {
                assert!(Entry::read(&mut &bytes[..n]).is_err());
            }
        }
        for outside in ["/etc/passwd", "../x", "a/../../x", ""] {
            let mut bytes = Vec::new();
            entry(outside, EntryKind::Folder).write(&mut bytes).unwrap();
            assert!(Entry::read(&mut &bytes[..]).is_err(), "{outside}");
        }
    }
}
