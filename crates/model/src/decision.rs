//! What a policy decides, and what became of it.

use alloc::vec::Vec;

use crate::{NodeId, Ns, PageNo, PageRange};

/// An order to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Home for a page that has none yet: the answer to [`crate::Event::Fault`]. Costs nothing
    /// beyond the fault.
    Place {
        /// The page.
        page: PageNo,
        /// Its home.
        node: NodeId,
    },
    /// Move a page. The driver answers with a [`MoveOutcome`].
    Move {
        /// The page.
        page: PageNo,
        /// Where to.
        to: NodeId,
    },
    /// Tell [`crate::Event::Touched`] at the next touch of each of these pages that has a home.
    Arm {
        /// The pages.
        pages: PageRange,
    },
    /// Keep a copy of a page beside its home: reads of `on`'s CPUs are local from then on. The
    /// driver answers with a [`MoveOutcome`]. The first write to the page makes all its copies go
    /// ([`crate::Event::Collapsed`]); so do, without an event, a move of the page and the end of
    /// its object.
    Replicate {
        /// The page.
        page: PageNo,
        /// The node that gets a copy.
        on: NodeId,
    },
    /// Allot a frame for a page beside its home, whose lines come when `on`'s CPUs use them:
    /// replication that hardware keeps coherent by cache line. A write makes its line go from all
    /// other frames, and no more. The driver answers with a [`MoveOutcome`]. Frames go, without an
    /// event, with a move of the page and the end of its object.
    ReplicateLines {
        /// The page.
        page: PageNo,
        /// The node that gets a frame.
        on: NodeId,
    },
}

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum MoveResult {
    /// The page is at its new home.
    Moved,
    /// It was there already.
    AlreadyThere,
    /// In use by somebody (EBUSY), pinned: it stays where it is.
    Busy,
    /// The target has no free memory (ENOMEM).
    NoMemory,
    /// The page has no home yet or is gone (ENOENT).
    NoPage,
    /// The node now has a copy of the page, or a frame for it.
    Replicated,
    /// This driver cannot do it: it has no copies of pages, or none on a node of that number.
    Unsupported,
}

/// The driver's answer to one [`Decision::Move`], [`Decision::Replicate`] or
/// [`Decision::ReplicateLines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveOutcome {
    /// The page.
    pub page: PageNo,
    /// Where it, or its copy, was asked to go.
    pub to: NodeId,
    /// How it ended.
    pub result: MoveResult,
    /// What it cost the thread that did it.
    pub cost: Ns,
}

/// Where a policy writes its decisions; reused from poll to poll so that deciding does not
/// allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionBuf {
    list: Vec<Decision>,
}

impl DecisionBuf {
    /// Empty.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }
    /// Adds one; order is kept.
    #[inline]
    pub fn push(&mut self, decision: Decision) {
        self.list.push(decision);
    }
    /// Adds all of `list`, which is empty afterwards; both keep their memory between them.
    pub fn append(&mut self, list: &mut Vec<Decision>) {
        if self.list.is_empty() {
            core::mem::swap(&mut self.list, list);
        } else {
            self.list.append(list);
        }
    }
    /// The decisions, in order.
    pub fn as_slice(&self) -> &[Decision] {
        &self.list
    }
    /// Forgets them, keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
    }
}
