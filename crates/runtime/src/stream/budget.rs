//! The budget of bytes for a recording's file.

use homenode_model::Ns;
use homenode_wire::live::{Dropped, LiveRecord};

/// Bytes for each second of the program's time.
pub const PER_SECOND: u64 = 1 << 20;
/// Bytes for each page of the objects that take part.
pub const PER_PAGE: u64 = 32;
/// Bytes in any case: for the machine, the modules, the first objects.
const FIXED: u64 = 64 << 10;
/// Most bytes of a usual record.
const RECORD: u64 = 16;
/// How often the length of intervals is doubled, at most.
const LONGEST: u32 = 10;

/// Bytes written, and bytes allowed.
#[derive(Debug, Default)]
pub struct Room {
    written: u64,
    pages: u64,
    time: Ns,
    doublings: u32,
}

impl Room {
    /// Counts more pages that take part.
    pub const fn add_pages(&mut self, pages: u64) {
        self.pages = self.pages.saturating_add(pages);
    }

    /// Sets the elapsed time. If more than half of the room is used, intervals become longer.
    pub fn time_is(&mut self, time: Ns) {
        self.time = time;
        let allowed = self.allowed();
        if self.written > allowed / 2 && self.doublings < LONGEST {
            self.doublings += 1;
        } else if self.written < allowed / 8 {
            self.doublings = self.doublings.saturating_sub(1);
        }
    }

    /// Sets the elapsed time, and changes nothing else.
    pub const fn reach(&mut self, time: Ns) {
        if time.0 > self.time.0 {
            self.time = time;
        }
    }

    /// Rows of sightings that there is room for, behind `waiting` records. Half of the room is left
    /// to other records.
    pub const fn rows_of_seen(&self, waiting: usize) -> usize {
        let used = self.written.saturating_add(waiting as u64 * RECORD);
        (self.allowed().saturating_sub(used) / RECORD / 2) as usize
    }

    /// How often the length of intervals is doubled.
    pub const fn doublings(&self) -> u32 {
        self.doublings
    }

    const fn allowed(&self) -> u64 {
        let time = (self.time.0 / 1000).saturating_mul(PER_SECOND) / 1_000_000;
        FIXED + self.pages.saturating_mul(PER_PAGE) + time
    }

    /// Whether the record may be written behind `more` bytes that are about to be written.
    pub fn has(&self, record: &LiveRecord, more: usize) -> bool {
        kind(record).is_none() || self.written + more as u64 <= self.allowed()
    }

    /// Counts written bytes.
    pub const fn took(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }
}

/// The loss to count if a record finds no room. `None`: the record is always written, because
/// others refer to it or there are few of its kind.
pub const fn kind(record: &LiveRecord) -> Option<Dropped> {
    match record {
        LiveRecord::Migration { .. } => Some(Dropped::Migrations),
        LiveRecord::Seen { .. } => Some(Dropped::Seen),
        LiveRecord::Home { .. } => Some(Dropped::Homes),
        LiveRecord::Sample { .. } => Some(Dropped::Samples),
        LiveRecord::FirstTouch { .. } => Some(Dropped::FirstTouches),
        _ => None,
    }
}
