//! The messages between guest and host ([`homenode_wire::lab`]), on the ports between them.

use std::io::{self, Read, Write};
use std::path::Component;

use homenode_wire::Message;
use homenode_wire::lab::Back;
pub use homenode_wire::lab::{
    EntryKind, GuestCommand, GuestJob, GuestMessage, ProgramEnd, ReturnedFile, Time, User, WrittenBytes,
};

/// Names of the ports, as in the guest's `/sys/class/virtio-ports`.
pub const PORTS: [&str; 5] = ["control", "stdin", "stdout", "stderr", "files"];

/// The file with the guest's job.
pub const JOB: &str = "/.homenode/job";

/// Standard input, output and error of a program that runs apart.
pub const STREAMS: [&str; 3] = ["/.homenode/stdin", "/.homenode/stdout", "/.homenode/stderr"];

fn bad(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Sends a message.
///
/// # Errors
/// The system's answer, or the message exceeds its bounds.
pub fn say<M: Message>(to: &mut impl Write, message: &M) -> io::Result<()> {
    to.write_all(&homenode_wire::encode(message).map_err(bad)?)
}

/// Writes an entry of the stream of files; a file's bytes must follow.
///
/// # Errors
/// As [`say`].
pub fn write_entry(to: &mut impl Write, entry: ReturnedFile) -> io::Result<()> {
    say(to, &Back::Entry(entry))
}

/// Writes the end of the stream of files.
///
/// # Errors
/// As [`say`].
pub fn write_end(to: &mut impl Write) -> io::Result<()> {
    say(to, &Back::End)
}

/// Reads the next entry of the stream of files; `None` at the end.
///
/// # Errors
/// The stream ends early, or an entry makes no sense or points out of the folder.
pub fn read_entry(from: &mut impl Read) -> io::Result<Option<ReturnedFile>> {
    let mut entry = match homenode_wire::read(from).map_err(|e| bad(format!("the guest sent {e}")))? {
        Back::Entry(entry) => entry,
        Back::End => return Ok(None),
    };
    let plain = entry.path.components().all(|c| matches!(c, Component::Normal(_)));
    if !plain || entry.path.as_os_str().is_empty() {
        let path = entry.path.display();
        return Err(bad(format!("the guest sent a file outside of the working directory: {path}")));
    }
    entry.mode &= 0o7777;
    entry.modified.nanoseconds = entry.modified.nanoseconds.min(999_999_999);
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: EntryKind) -> ReturnedFile {
        ReturnedFile { path: path.into(), kind, mode: 0o644, modified: Time { seconds: -1, nanoseconds: 5 } }
    }

    #[test]
    fn entries_survive_and_stay_inside() {
        for kind in [EntryKind::Folder, EntryKind::File(7), EntryKind::Link("../x".into()), EntryKind::Gone] {
            let mut bytes = Vec::new();
            write_entry(&mut bytes, entry("a/b", kind.clone())).unwrap();
            write_end(&mut bytes).unwrap();
            let mut from = &bytes[..];
            assert_eq!(read_entry(&mut from).unwrap(), Some(entry("a/b", kind)));
            assert_eq!(read_entry(&mut from).unwrap(), None);
            let first = bytes.len() - homenode_wire::encode(&Back::End).unwrap().len();
            for n in 0..first {
                assert!(read_entry(&mut &bytes[..n]).is_err());
            }
        }
        for outside in ["/etc/passwd", "../x", "a/../../x", ""] {
            let mut bytes = Vec::new();
            write_entry(&mut bytes, entry(outside, EntryKind::Folder)).unwrap();
            let error = read_entry(&mut &bytes[..]).unwrap_err().to_string();
            assert!(error.contains("outside of the working directory"), "{outside}: {error}");
        }
    }

    #[test]
    fn modes_and_times_are_those_of_files() {
        let mut bytes = Vec::new();
        let strange = ReturnedFile {
            mode: u32::MAX,
            modified: Time { seconds: 1, nanoseconds: u32::MAX },
            ..entry("a", EntryKind::Folder)
        };
        write_entry(&mut bytes, strange).unwrap();
        let read = read_entry(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!((read.mode, read.modified.nanoseconds), (0o7777, 999_999_999));
    }
}
