//! What the mover reports: what was armed and why not, what moved, who touched what, totals.

use std::fmt;

use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_sys::{Error, PAGE, Span};

/// Why memory was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// There is no mechanism, or the mover was stopped.
    Off,
    /// Not whole pages.
    Partial,
    /// Not private anonymous memory, or not mapped at all.
    NotAnonymous,
    /// Not readable: the program keeps it inaccessible.
    Inaccessible,
    /// Locked in memory.
    Locked,
    /// A stack or thread-local storage.
    Stack,
    /// The kernel is reading or writing the memory now.
    InFlight,
    /// Excluded for ever: the memory holds a lock, a stack, or an asynchronous buffer.
    Excluded,
    /// Already armed.
    Armed,
    /// Something in the process can pin memory ([`super::pinning()`] names it): nothing is armed.
    Pinning,
    /// A system call failed.
    Failed,
    /// A thread blocks the signal of an armed page, and a touch would end the process.
    Deaf,
}

impl Why {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::Off,
        Self::Partial,
        Self::NotAnonymous,
        Self::Inaccessible,
        Self::Locked,
        Self::Stack,
        Self::InFlight,
        Self::Excluded,
        Self::Armed,
        Self::Pinning,
        Self::Failed,
        Self::Deaf,
    ];
    /// A part of a sentence: "not armed: …".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Off => "next touch is not available or was stopped",
            Self::Partial => "pages shared with other objects",
            Self::NotAnonymous => "file-backed, shared or unmapped",
            Self::Inaccessible => "made inaccessible by the program",
            Self::Locked => "locked in memory",
            Self::Stack => "stack",
            Self::InFlight => "in use by a system call",
            Self::Excluded => "holds locks, stacks or asynchronous buffers",
            Self::Armed => "armed already",
            Self::Pinning => "something in the process can pin memory",
            Self::Failed => "a system call failed",
            Self::Deaf => "a thread blocks the signals that next touch needs",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The result of [`super::arm()`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmReport {
    /// Armed.
    pub armed: Bytes,
    /// Not armed, by [`Why`].
    pub skipped: [Bytes; Why::ALL.len()],
    /// The last system call that failed, if one did.
    pub error: Option<Error>,
    /// How long it took.
    pub took: Ns,
}

impl ArmReport {
    /// Skipped bytes by reason.
    pub fn reasons(&self) -> impl Iterator<Item = (Why, Bytes)> + '_ {
        Why::ALL.into_iter().zip(self.skipped).filter(|(_, b)| *b != Bytes::ZERO)
    }

    /// Counts bytes that were not armed.
    pub fn skip(&mut self, why: Why, bytes: usize) {
        self.skipped[why as usize] += Bytes(bytes as u64);
    }

    /// Counts bytes that were not armed because a system call failed.
    pub fn fail(&mut self, error: Error, bytes: usize) {
        self.error = Some(error);
        self.skip(Why::Failed, bytes);
    }
}

/// The outcome of several moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// Moved.
    pub moved: Bytes,
    /// Were there already.
    pub already: Bytes,
    /// In use or pinned, or parts of huge pages that go elsewhere.
    pub busy: Bytes,
    /// Of these, the parts of huge pages.
    pub with_others: Bytes,
    /// The target has no memory.
    pub no_memory: Bytes,
    /// Have no home: never touched, or gone.
    pub no_page: Bytes,
    /// The last system call that failed as a whole, if one did.
    pub error: Option<Error>,
    /// How long it took this thread.
    pub took: Ns,
}

impl MoveReport {
    /// Adds the outcome of one page.
    pub fn note(&mut self, result: MoveResult) {
        let sum = match result {
            MoveResult::Moved => &mut self.moved,
            MoveResult::AlreadyThere => &mut self.already,
            MoveResult::Busy => &mut self.busy,
            MoveResult::NoMemory => &mut self.no_memory,
            MoveResult::NoPage => &mut self.no_page,
            // The kernel's moves never answer this: the kernel keeps no copies of pages.
            MoveResult::Replicated | MoveResult::Unsupported => return,
        };
        *sum += Bytes(PAGE as u64);
    }
}

/// A first touch since arming, reported by [`super::drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The pages that came with it: up to 64 KiB (2 MiB with protected blocks).
    pub span: Span,
    /// Who touched it.
    pub node: NodeId,
    /// Whether the pages stayed in place: as asked ([`super::Manner::Stays`]), or because the
    /// kernel refused to move them.
    pub stayed: bool,
}

/// Totals since [`super::start()`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovingTotals {
    /// Calls of [`super::arm()`] that armed something.
    pub arms: u64,
    /// Bytes armed, all calls together.
    pub armed: Bytes,
    /// Faults handled.
    pub faults: u64,
    /// Bytes copied to the node of their toucher.
    pub copied: Bytes,
    /// Bytes moved by the kernel.
    pub moved: Bytes,
    /// Bytes that the kernel did not move for their toucher.
    pub refused: Bytes,
    /// Bytes that were disarmed untouched.
    pub returned: Bytes,
    /// Bytes that came over before a system call because its buffer was published.
    pub published: Bytes,
    /// Huge pages brought back.
    pub collapsed: u64,
    /// Touches that [`super::drain`] lost.
    pub touches_lost: u64,
    /// CPU time in fault handlers, all threads together.
    pub in_handlers: Ns,
    /// CPU time of the program's threads in front ends that brought or disarmed memory.
    pub in_calls: Ns,
    /// CPU time of the thread that reads what the kernel tells of the program's mappings.
    pub in_events: Ns,
}
