//! What a program under way did until now, in a few sums.

use homenode_model::{MoveResult, Ns};
use homenode_wire::live::LiveRecord;
use serde::Serialize;

/// What a program did until now, in a few sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pulse {
    /// Processes with a stream.
    pub processes: u64,
    /// The time of the last thing that was told, since the start of its process.
    pub time_ns: u64,
    /// Intervals that ended.
    pub intervals: u64,
    /// Rounds of the outer loop that ended.
    pub iterations: u64,
    /// What the last round took.
    pub last_iteration_ns: Option<u64>,
    /// Pages that moved.
    pub moved: u64,
    /// Pages whose move was refused.
    pub refused: u64,
    /// How often somebody was seen at pages.
    pub sightings: u64,
    /// How often of these from another node than the pages' home.
    pub remote: u64,
    /// homenode's own CPU time.
    pub own_ns: u64,
    /// CPU time of the processes.
    pub cpu_ns: u64,
}

impl Pulse {
    /// Adds what a record says.
    pub(crate) fn add(&mut self, record: &LiveRecord) {
        let mut now = |time: Ns| self.time_ns = self.time_ns.max(time.0);
        match *record {
            LiveRecord::Interval { end, .. } => {
                now(end);
                self.intervals += 1;
            }
            LiveRecord::Iteration { begin, end, .. } => {
                now(end);
                self.iterations += 1;
                self.last_iteration_ns = Some(end.0.saturating_sub(begin.0));
            }
            LiveRecord::Migration { time, pages, outcome, .. } => {
                now(time);
                let sum = match outcome {
                    MoveResult::AlreadyThere => return,
                    MoveResult::Moved => &mut self.moved,
                    _ => &mut self.refused,
                };
                *sum = sum.saturating_add(pages.count.into());
            }
            LiveRecord::Seen { node, home, told, .. } => {
                self.sightings = self.sightings.saturating_add(told.into());
                if node != home {
                    self.remote = self.remote.saturating_add(told.into());
                }
            }
            LiveRecord::Own { time, .. } => now(time),
            _ => {}
        }
    }
}
