//! What a run on the lab leaves: a data set of what the monitor counted and what the processes
//! told.
//!
//! | step | where |
//! |---|---|
//! | the marks that the processes wrote, read back | [`marks`] |
//! | objects, regions and iterations with their names | [`told`] |
//! | whose memory a page is in an interval | [`owner`] |
//! | the tables | [`fill`] |
//! | the modelled machine and what its CPUs did: `lab.json` | [`about`] |
//!
//! # Times
//!
//! All times are those of the guest's clock since the program was started. The monitor counts
//! intervals and has no clock. Where each interval began with a call of `hn_iteration`, the
//! program's own processes tell when. Otherwise an interval has a share of the program's time like
//! its share of the modelled time.
//!
//! # Bounds
//!
//! At most [`fill::MOST_ROWS`] rows of accesses are written: of more, neighbouring pages are
//! counted together. At most [`told::MOST_OBJECTS`] objects have names, and [`told::MOST_PIECES`]
//! allocations are followed; what follows belongs to nobody. The data set says which of these
//! bounds were met.

pub mod about;
pub mod fill;
mod firsts;
pub mod marks;
pub mod owner;
pub mod told;

use homenode_model::{Ns, Topology};

use crate::machine::Machine;
use crate::monitor::Found;
use told::Told;

/// A run on the lab, with all that was told of it.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What the monitor counted.
    pub found: &'a Found,
    /// What the processes told.
    pub told: &'a Told,
    /// The virtual machine.
    pub machine: &'a Machine,
    /// The modelled machine behind it.
    pub modelled: &'a Topology,
    /// From the program's start to its end.
    pub elapsed: Ns,
    /// Linux's NUMA balancing; none: as the kernel has it.
    pub balancing: Option<bool>,
}
