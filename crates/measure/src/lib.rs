//! Measuring a machine: what it costs a CPU of one node to use the memory of another.
//!
//! Robertson and Rendell's requirements (section 2 of their paper) are the method: bind the thread,
//! place the pages, *and read both back*. Every number here is a [`MeasuredCell`]: what was
//! measured ([`Subject`]), the number with its distribution ([`SampleSummary`]), and the proof of
//! where thread and pages were before and after ([`Proof`]). A cell whose proof fails has no
//! number.
//!
//! | you want | you call |
//! |---|---|
//! | what there is | [`Host::this`], [`Host::at`] a recorded tree, [`Host::like`] a described machine |
//! | what to measure | [`MeasureRequest`], [`plan()`] → [`MeasurePlan`]: the [`Visit`]s, and what is refused and why |
//! | to measure it all | [`measure()`] with a [`Prober`] → [`Measurement`] |
//! | one thing | [`Prober::probe`] with a [`Visit`]; [`HostMeasurer`] measures, [`Synthetic`] computes from a described machine |
//! | to read one again, or compare | [`Measurement::from_json`], [`diff`] |
//! | it elsewhere | [`machine_file`], [`memory_attributes`] |
//!
//! ```no_run
//! use homenode_measure::{Chase, Host, Item, Node, PageSize, Pair, Prober, Real, Streams};
//! use std::time::Duration;
//! let host = Host::this().unwrap();
//! let mut real = Real::new(&host);
//! // Idle latency: 256 MiB, a slot every 256 bytes, huge pages.
//! let chase = Chase { buffer: 256 << 20, stride: 256, page: PageSize::Huge, laps: 5, time: Duration::from_secs(5) };
//! let local = Pair::new(0, 0);
//! let cells = real.probe(&Item::Latency { pair: local, chase }, &|| false);
//! // Robertson's Table 1, experiment 2.3: each thread on the other's memory, at once.
//! let streams = Streams::triad(&[Pair::new(0, 1), Pair::new(1, 0)], 40_000_000);
//! let cells = real.probe(&Item::Bandwidth(streams), &|| false);
//! ```

#![forbid(unsafe_code)]

mod ask;
mod axes;
mod cell;
mod compare;
mod export;
mod host;
mod item;
mod measurement;
mod passes;
mod prober;
mod real;
mod stats;
mod streaming;
mod synthetic;

pub use ask::{IDLE, MeasurePlan, MeasureRequest, MeasurementKind, plan};
pub use axes::{CpuNumber, Mix, NodeNumber, NodePair, Op, PageSize, Stores};
pub use cell::{CellUnit, Credibility, MeasuredCell, Proof, Subject};
pub use compare::{CellChange, CellDifference, diff};
pub use export::{machine_file, memory_attributes};
pub use host::{Firmware, Host, HostError, HostNode, HostState};
pub use item::{Chase, CoreToCore, Load, MigrationTest, Streams, Visit};
pub use measurement::{KNEE, Measurement, ReadError, knee, measure, passes_on};
pub use prober::Prober;
pub use real::{HostMeasurer, Sabotage};
pub use stats::SampleSummary;
pub use synthetic::Synthetic;
