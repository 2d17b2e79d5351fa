//! What host and guest of the lab say to each other.
//!
//! | port or file | host → guest | guest → host |
//! |---|---|---|
//! | control | [`GuestCommand`] | [`GuestMessage`] |
//! | files | – | [`Back`], each [`EntryKind::File`] followed by its bytes |
//! | `/.homenode/job` | [`GuestJob`] | – |

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use homenode_model::Ns;
use serde::{Deserialize, Serialize};

use crate::bounded::{os, oses, pairs, some_os};
use crate::frame::{Conversation, Message};

/// Arguments of a program.
pub const ARGUMENTS: usize = 1 << 16;
/// Variables of a program's environment.
pub const VARIABLES: usize = 1 << 16;
/// Bytes of an entry's path (`PATH_MAX`), twice, and what stands around them.
const ENTRY: usize = 16 << 10;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramEnd {
    /// With this status.
    Exit(u8),
    /// By this signal.
    Signal(u8),
}

/// Bytes that the program wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBytes {
    /// To its standard output.
    pub out: u64,
    /// To its standard error.
    pub err: u64,
}

/// What the guest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestMessage {
    /// It has booted and is about to start the program.
    Ready,
    /// The program has started.
    Started,
    /// The program could not be started: the system's error number.
    CannotRun(i32),
    /// The program has ended.
    Ended {
        /// How.
        status: ProgramEnd,
        /// What it wrote: whoever reads it knows when there is no more to come.
        written: WrittenBytes,
        /// Processes that the kernel killed for want of memory.
        out_of_memory: u64,
        /// How long it took, by the guest's clock.
        took: Ns,
    },
    /// All files have been sent.
    Bye,
}

impl Message for GuestMessage {
    const KIND: Conversation = Conversation::Said;
    const VERSION: u16 = 1;
    const MOST: usize = 256;
}

/// What the host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestCommand {
    /// Send this signal to the program.
    Signal(i32),
}

impl Message for GuestCommand {
    const KIND: Conversation = Conversation::Order;
    const VERSION: u16 = 1;
    const MOST: usize = 256;
}

/// A time since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    /// Seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds behind these.
    pub nanoseconds: u32,
}

/// A file that comes back, without its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedFile {
    /// Relative to the folder that is watched. The reader has to check that it stays inside.
    #[serde(with = "os")]
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Permissions.
    pub mode: u32,
    /// When it was changed.
    pub modified: Time,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file's length in bytes; the bytes follow the frame.
    File(u64),
    /// A symbolic link.
    Link(#[serde(with = "os")] PathBuf),
    /// Nothing: it was removed.
    Gone,
}

/// What stands in the stream of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Back {
    /// A file.
    Entry(ReturnedFile),
    /// There are no more.
    End,
}

impl Message for Back {
    const KIND: Conversation = Conversation::Back;
    const VERSION: u16 = 1;
    const MOST: usize = ENTRY;
}

/// Whom a program runs as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user's number.
    pub user: u32,
    /// The group's.
    pub group: u32,
}

/// What to run in the guest, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestJob {
    /// The program's path in the guest.
    #[serde(with = "os")]
    pub program: PathBuf,
    /// What it is called (`argv[0]`).
    #[serde(with = "os")]
    pub name: OsString,
    /// Its arguments.
    #[serde(serialize_with = "oses::write::<ARGUMENTS, _>", deserialize_with = "oses::read::<ARGUMENTS, _>")]
    pub args: Vec<OsString>,
    /// Its environment, all of it.
    #[serde(
        serialize_with = "pairs::write::<VARIABLES, _>",
        deserialize_with = "pairs::read::<VARIABLES, _>"
    )]
    pub env: BTreeMap<OsString, OsString>,
    /// Where it starts.
    #[serde(with = "os")]
    pub cwd: PathBuf,
    /// Whose files are watched for changes; `None`: nobody's.
    #[serde(with = "some_os")]
    pub sync: Option<PathBuf>,
    /// Whom it runs as.
    pub user: User,
    /// Nothing comes in or goes out while it runs: its streams are files.
    pub apart: bool,
    /// The folder in which the program's processes write their marks; it comes back.
    #[serde(with = "some_os")]
    pub marks: Option<PathBuf>,
}

impl Message for GuestJob {
    const KIND: Conversation = Conversation::Job;
    const VERSION: u16 = 1;
    const MOST: usize = 64 << 20;
}
