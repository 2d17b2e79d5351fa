//! Options of `homenode run` that say who hands out the iterations of loops.

use std::path::PathBuf;

use clap::Args;
use homenode_wire::schedule::{Mode, RequestedSchedule};

/// Who hands out the iterations of parallel loops.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleArgs {
    /// Hand out the iterations of schedule(dynamic|guided|runtime) loops: record (the program's own
    /// hand-out, recorded), replay (as recorded), block, cyclic, affinity (to the node that
    /// executed them first), auto (the fastest)
    #[arg(long, value_name = "MODE")]
    pub schedule: Option<Mode>,
    /// Replay the schedules that an earlier run wrote to FILE
    #[arg(long, value_name = "FILE", requires = "schedule")]
    pub schedule_from: Option<PathBuf>,
    /// Write the recorded schedules to FILE
    #[arg(long, value_name = "FILE", requires = "schedule")]
    pub schedule_to: Option<PathBuf>,
}

impl ScheduleArgs {
    /// For the library in the program.
    pub fn asked(&self) -> Option<RequestedSchedule> {
        let (from, to) = (self.schedule_from.is_some(), self.schedule_to.is_some());
        self.schedule.map(|mode| RequestedSchedule { mode, from, to })
    }
}
