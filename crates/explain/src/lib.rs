//! What to change in a program's source so that its memory lives where it is used.
//!
//! An [`Explanation`] is plain data that serialises: warnings, findings, or the reason why there is
//! no finding. It has no colours and no widths: those belong to whoever shows it.
//!
//! | module | what |
//! |---|---|
//! | [`explanation`] | the answer as data |
//! | [`place`] | places in the source |
//! | [`usage`] | who uses which page of an object, when and from which region |
//! | `uses` | the regions that use objects |
//! | [`lines`] | who uses which cache line of an object, and in which order |
//! | [`pattern`] | from usage to the fault that the source has |
//! | [`remedy`] | from the fault to fixes, in the source's words |
//! | [`effect`] | what a fix brings, simulated |
//! | [`distribution`] | the distribution of `hn_distribute` that serves an array's users best |
//! | [`exact`] | findings from a recording of every access |
//! | `changed` | fixes that change which lines a program accesses |
//! | `jobs` | the simulations of an explanation |
//! | `rounds` | whether rounds that are not simulated use memory as the simulated ones do |
//! | `sockets` | the machine with one node a socket |
//! | [`observed`] | findings from a data set of a live run: without effects |
//! | [`against`] | what a change of the program brought |
//! | [`numactl`] | a program behind numactl |
//! | [`source`] | whether the source moved since the program was built |
//! | [`warning`] | what a reader must know before the findings |
//!
//! # Approach
//!
//! 1. The recording is simulated on the machine as the program runs today: first touch.
//! 2. Objects with many remote accesses, or with many accesses to one node's memory, are looked at
//!    page by page and line by line. [`pattern`] says what the source does wrong.
//! 3. Each fix is simulated as the placement that it means. Swapped loops and a container that does
//!    not grow are simulated as changes of the recording. Other fixes that change what the program
//!    accesses have a bound as their effect: the time if every access were local.
//! 4. A finding whose first fix saves less than [`exact::LEAST`] percent of the time is left out.
//!
//! # Properties
//! - An effect comes from a simulation of the recording, or there is none.
//! - The same recording and machine give the same explanation.

#![forbid(unsafe_code)]

pub mod against;
mod changed;
pub mod distribution;
pub mod effect;
pub mod exact;
pub mod explanation;
mod group;
mod jobs;
pub mod lines;
pub mod numactl;
pub mod observed;
pub mod pattern;
pub mod place;
pub mod remedy;
mod rounds;
mod sockets;
pub mod source;
pub mod usage;
mod uses;
pub mod warning;

pub use exact::ExplainRequest;
pub use explanation::Explanation;
