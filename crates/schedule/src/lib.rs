//! Who executes which iterations of a parallel loop: pure functions, values and atomics.
//!
//! | module | what |
//! |---|---|
//! | [`space`] | the iterations of a loop, numbered from zero, and their chunks |
//! | [`table`] | which thread executed which iterations: recorded, checked, replayed |
//! | [`batch`] | several chunks that a thread takes at once |
//! | [`deal`] | hands a thread its next iterations: block, cyclic, replayed, by affinity |
//! | [`homes`] | the node of each iteration, by the value of the loop's variable |
//! | [`exchange`] | who gets which range of a static loop, by the owners of its values |
//! | [`queues`] | a list of chunks for each node, shared by its threads, with stealing |
//! | [`shape`] | what a loop is known by |
//! | [`touches`] | which pages the values of a loop's variable were seen to touch |
//! | [`auto`] | which schedule is the fastest, by the times of a loop's executions |
//! | [`book`] | what is known of each loop, and what follows for its next execution |
//! | [`file`](mod@file) | recorded tables of a run for a later run |
//! | [`distribution`] | which part of a grid owns which elements of an array: BLOCK, CYCLIC(k), `*` |
//! | [`share`] | the indices of a distributed array that a thread of a team gets |
//! | [`page_owners`] | the node of each page of a distributed array |
//!
//! # Terms
//!
//! An *iteration* is known by its index, from zero up to the *trip count*. A *run* is a range of
//! indices. A *chunk* is a run of the program's chunk size; the last one may be shorter. A *team*
//! has threads with numbers from zero.
//!
//! # Properties
//!
//! - Each iteration is handed out once, to one thread of the team.
//! - The thread that executes the last iteration executes it last of all that it gets. Compiled
//!   code relies on this property for `lastprivate`.
//! - No function here allocates while chunks are handed out.
//!
//! There is no clock, no thread and no system call here.

#![forbid(unsafe_code)]

pub mod auto;
pub mod batch;
pub mod book;
pub mod deal;
pub mod distribution;
pub mod exchange;
pub mod file;
pub mod homes;
mod owners;
pub mod page_owners;
pub mod queues;
pub mod shape;
pub mod share;
pub mod space;
pub mod table;
pub mod touches;

pub use auto::{Auto, ScheduleCandidate};
pub use batch::{Batch, BatchSize};
pub use book::{Book, LoopExecution, LoopOutcome, StaticDecision, ThreadExecution};
pub use deal::{Cursor, Deal};
pub use homes::ValueHomes;
pub use queues::{NodeChunks, Queues, StealOrder};
pub use shape::Shape;
pub use space::{LoopChunks, Run, Space};
pub use table::IterationTable;
