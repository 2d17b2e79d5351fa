//! The journal: everything that a driver gave a policy and everything that the policy decided, as
//! bytes.
//!
//! # Problem
//!
//! A policy decided something on a live machine, in a simulation, or in the lab. Was the policy the
//! cause, or the driver's events? And what would another policy have decided?
//!
//! # Approach
//!
//! A policy is a function of its events, so a list of events is enough to run it again.
//! [`Journalled`] stands between any driver and any policy and writes down what passes, in order.
//! [`check`] feeds the list to a fresh policy and compares the decisions. [`ask()`] feeds it to
//! another policy.
//!
//! # Format
//!
//! `HNPJ`, then version 2, then the policy's spec (as [`crate::build`] takes it), its interest and
//! its [`PolicyContext`](crate::PolicyContext), then records until one that says it is the last.
//! Numbers are LEB128; pages and times are differences from the page and the time before (zigzag);
//! the lists of records, steps, decisions and results are in the module `code`. Everything is a
//! function of what passed: two journals of the same run are the same bytes.
//!
//! Journals of strangers are hostile input: reading checks every number against the context, and
//! the memory that a policy may come to need is bounded ([`MAX_CELLS`]).
//!
//! # Properties
//!
//! - `a_fresh_policy_decides_the_same`: whatever was recorded of a policy checks as identical, and
//!   recording the replay gives the same bytes.
//! - `another_decision_is_found`: with one decision changed, checking names it.
//! - `no_journal_panics`: not with any byte changed, cut off or inserted.

mod ask;
mod code;
mod read;
mod write;

pub use ask::{Asked, ask};
pub use read::{Checked, Difference, Header, check, header};
pub use write::{Journalled, Sink};

use alloc::string::String;

use crate::SpecError;

/// First bytes of a journal.
const MAGIC: &[u8; 4] = b"HNPJ";
/// The version that is written.
const VERSION: u64 = 2;
/// The oldest version that is read. It does not have the nodes that threads run on.
const OLDEST: u64 = 1;
/// Pages from this number on are refused, as in the simulator: 4 TiB of 4 KiB pages.
const MAX_PAGES: u64 = 1 << 30;
/// Machines with this many nodes or more are refused.
const MAX_NODES: u64 = 1 << 10;
/// Bound of (thousands of pages) × nodes that a journal may name: 1 GiB of a policy's counters.
pub const MAX_CELLS: u64 = 1 << 16;

/// Why a journal cannot be read or replayed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The bytes do not begin as a journal.
    #[error(
        "this is no policy journal: it does not begin with HNPJ ('homenode compare --journal DIR' makes them)"
    )]
    NotAJournal,
    /// A version that this homenode does not know.
    #[error("the journal is of version {0}, this homenode reads version {VERSION}: use a newer one")]
    Version(u64),
    /// It ends within a record.
    #[error("the journal is cut off: a record at byte {at} has no end")]
    Short {
        /// Where.
        at: usize,
    },
    /// Something in it makes no sense.
    #[error("the journal is damaged at byte {at}: {what}")]
    Bad {
        /// Where.
        at: usize,
        /// What.
        what: &'static str,
    },
    /// It names more memory than a replay may need.
    #[error("the journal names more memory than a replay may use: it is damaged")]
    TooLarge,
    /// There is no policy of the recorded or the requested name.
    #[error("{0}")]
    Policy(SpecError),
    /// The policy needs events that the journal's driver did not record.
    #[error(
        "the policy wants {what}, which the journal does not have, because `{recorded}` did not: make a \
         journal of a policy that does"
    )]
    Lacks {
        /// Which.
        what: &'static str,
        /// The policy that was recorded.
        recorded: String,
    },
}

#[cfg(test)]
mod tests;
