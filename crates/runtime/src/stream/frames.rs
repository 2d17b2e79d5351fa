//! Records that wait, and the frames in which they are appended to the file.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{FromRawFd as _, IntoRawFd as _};

use homenode_model::Ns;
use homenode_sys::descriptor;
use homenode_wire::live::{BUFFER, Dropped, LiveRecord, Writer};

use super::budget::{self, Room};

/// Most records that wait to be written.
pub const PENDING: usize = 4096;
/// Longest wait of a record. A program that is killed loses waiting records.
pub const LONGEST_WAIT: Ns = Ns(200_000_000);
/// Kinds of [`Dropped`].
const KINDS: usize = 9;

/// The target of frames. Tests keep them in memory.
#[derive(Debug)]
enum Sink {
    File(File),
    Kept(Vec<u8>),
    /// The disk is full, and nothing more is written.
    Full,
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::File(file) => {
                if file.write_all(bytes).is_err() {
                    self.close();
                }
            }
            Self::Kept(all) => all.extend_from_slice(bytes),
            Self::Full => {}
        }
    }

    fn close(&mut self) {
        if let Self::File(file) = std::mem::replace(self, Self::Full) {
            descriptor::close(file.into_raw_fd());
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Frames {
    sink: Sink,
    frame: Box<[u8]>,
    pending: Vec<LiveRecord>,
    /// The budget of bytes.
    pub room: Room,
    flushed: Ns,
    dropped: [u64; KINDS],
}

impl Frames {
    /// Frames for a file, from `now` on.
    pub fn to_file(file: File, now: Ns) -> Self {
        // SAFETY: the descriptor is the file's own, which is given up for it.
        let kept = unsafe { File::from_raw_fd(descriptor::keep(file.into_raw_fd())) };
        Self::to(Sink::File(kept), now)
    }

    /// Frames that are kept in memory, for tests.
    pub fn kept(now: Ns) -> Self {
        Self::to(Sink::Kept(Vec::new()), now)
    }

    fn to(sink: Sink, now: Ns) -> Self {
        Self {
            sink,
            frame: vec![0; BUFFER].into(),
            pending: Vec::new(),
            room: Room::default(),
            flushed: now,
            dropped: [0; KINDS],
        }
    }

    /// The frames that were kept in memory.
    pub fn bytes(&self) -> &[u8] {
        if let Sink::Kept(bytes) = &self.sink { bytes } else { &[] }
    }

    /// Whether the disk is full, so that nothing more is written.
    #[cfg(test)]
    pub const fn is_full(&self) -> bool {
        matches!(self.sink, Sink::Full)
    }

    /// Adds a record.
    pub fn put(&mut self, record: LiveRecord) {
        if self.pending.len() >= PENDING {
            self.write();
        }
        self.pending.push(record);
    }

    /// Records of this kind are left out.
    pub fn leave_out(&mut self, what: Dropped, how_many: u64) {
        if let Some(n) = self.dropped.get_mut(what as usize) {
            *n += how_many;
        }
    }

    /// Adds a record for each kind of which records were left out.
    pub fn put_left_out(&mut self) {
        for (i, what) in ALL_DROPPED.into_iter().enumerate() {
            let how_many = self.dropped[i];
            if how_many > 0 {
                self.put(LiveRecord::Dropped { what, how_many });
            }
        }
    }

    /// Number of waiting records.
    pub const fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of memory, about.
    pub const fn state_bytes(&self) -> usize {
        BUFFER + self.pending.capacity() * size_of::<LiveRecord>()
    }

    /// Whether records have waited long enough.
    pub const fn is_flush_due(&self, now: Ns) -> bool {
        now.0.saturating_sub(self.flushed.0) >= LONGEST_WAIT.0 || self.pending.len() >= PENDING / 2
    }

    /// Writes the waiting records.
    pub fn flush(&mut self, now: Ns) {
        self.write();
        self.flushed = now;
    }

    /// Encodes the waiting records into frames and appends these.
    pub fn write(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut rest = pending.drain(..).peekable();
        while rest.peek().is_some() {
            let Ok(mut frame) = Writer::new(&mut self.frame) else { break };
            while let Some(record) = rest.peek() {
                if !self.room.has(record, frame.len()) {
                    let what = budget::kind(record);
                    rest.next();
                    if let Some(n) = what.and_then(|w| self.dropped.get_mut(w as usize)) {
                        *n += 1;
                    }
                    continue;
                }
                if frame.add(record).is_err() {
                    if frame.is_empty() {
                        // The record does not fit any frame and cannot be written.
                        rest.next();
                    }
                    break;
                }
                rest.next();
            }
            let bytes = frame.finish();
            self.room.took(bytes.len());
            self.sink.write(bytes);
        }
        drop(rest);
        // Its memory is used again.
        self.pending = pending;
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.sink.close();
    }
}

/// In the order of their numbers.
const ALL_DROPPED: [Dropped; KINDS] = [
    Dropped::Touches,
    Dropped::Samples,
    Dropped::Migrations,
    Dropped::Objects,
    Dropped::Regions,
    Dropped::Seen,
    Dropped::Homes,
    Dropped::FirstTouches,
    Dropped::Intervals,
];
