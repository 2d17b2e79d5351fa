//! The recording of a run on the lab: a data set of the monitor's counts and the processes' marks.
//!
//! | step | module |
//! |---|---|
//! | Reading the marks that the processes wrote | [`marks`] |
//! | Objects, regions and iterations with their names | [`told`] |
//! | Which object owns a page in an interval | [`owner`] |
//! | The tables | [`fill`] |
//! | The modelled machine and its CPUs: `lab.json` | [`about`] |
//!
//! # Times
//!
//! All times are of the guest's clock since the start of the program. The monitor counts intervals
//! and has no clock. If each interval began with a call of `hn_iteration`, the program's processes
//! tell when. Otherwise an interval has a share of the program's time like its share of the
//! modelled time.
//!
//! # Bounds
//!
//! At most [`fill::MOST_ROWS`] rows of accesses are written; beyond that, neighbouring pages are
//! counted together. At most [`told::MOST_OBJECTS`] objects have names, and at most
//! [`told::MOST_PIECES`] allocations are followed; memory beyond that has no object. The data set
//! says which of these bounds were met.

pub mod about;
pub mod fill;
mod firsts;
pub mod marks;
pub mod owner;
pub mod told;

use homenode_model::{Ns, Topology};

use crate::machine::VirtualMachine;
use crate::monitor::MonitorReport;
use told::ProcessReports;

/// A run on the lab, with everything that was reported of it.
#[derive(Clone, Copy, Debug)]
pub struct LabRun<'a> {
    /// The monitor's counts.
    pub found: &'a MonitorReport,
    /// The processes' reports.
    pub told: &'a ProcessReports,
    /// The virtual machine.
    pub machine: &'a VirtualMachine,
    /// The modelled machine behind it.
    pub modelled: &'a Topology,
    /// From the program's start to its end.
    pub elapsed: Ns,
    /// Linux's NUMA balancing; `None`: the kernel's default.
    pub balancing: Option<bool>,
}
