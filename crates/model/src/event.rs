//! What a policy is told.

use crate::{NodeId, ObjectId, PageNo};

/// Load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum AccessKind {
    /// Load.
    Read = 0,
    /// Store, or atomic read-modify-write.
    Write = 1,
}

/// Pages `first .. first + count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRange {
    /// First page.
    pub first: PageNo,
    /// How many.
    pub count: u64,
}

impl PageRange {
    /// The pages, ascending.
    pub fn iter(self) -> impl Iterator<Item = PageNo> {
        (self.first.0..self.first.0.saturating_add(self.count)).map(PageNo)
    }
    /// The same as indices into a table.
    pub const fn indices(self) -> core::ops::Range<usize> {
        self.first.0 as usize..self.first.0.saturating_add(self.count) as usize
    }
    /// Whether `page` is one of them.
    pub const fn contains(self, page: PageNo) -> bool {
        page.0 >= self.first.0 && page.0 - self.first.0 < self.count
    }
}

/// Something that happened to the program, in the driver's total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Pages now belong to an object. Pages shared with another object's end are named by both.
    Alloc {
        /// The object.
        object: ObjectId,
        /// Its pages.
        pages: PageRange,
    },
    /// The object's pages are gone, those that it has to itself; they have no home any more. Told
    /// though there are none.
    Free {
        /// The object.
        object: ObjectId,
        /// The pages that lie wholly inside it.
        pages: PageRange,
    },
    /// A page without a home is touched by `node`. Unless the policy answers with
    /// [`crate::Decision::Place`] at the next poll, the page goes to the toucher's nearest memory,
    /// as Linux does.
    Fault {
        /// The page.
        page: PageNo,
        /// Who touched it.
        node: NodeId,
    },
    /// A page armed by [`crate::Decision::Arm`] is touched, for the first time since; it is no
    /// longer armed.
    Touched {
        /// The page.
        page: PageNo,
        /// Its home.
        home: NodeId,
        /// Who touched it.
        node: NodeId,
    },
    /// `count` main-memory accesses of `node` to `page` since the driver last reported
    /// them. Delivered before `RegionEnd`, `Iteration` and wake-ups, as the [`Interest`] asks, in
    /// ascending order of (page, node, kind). Reads that a copy served count as well.
    Accesses {
        /// The page.
        page: PageNo,
        /// Its home now.
        home: NodeId,
        /// Who accessed it.
        node: NodeId,
        /// Load or store.
        kind: AccessKind,
        /// How often.
        count: u32,
    },
    /// A parallel region starts, before any of its threads runs.
    RegionBegin {
        /// Which region of the source (dense id), not which instance.
        region: u32,
    },
    /// All threads of the region have joined.
    RegionEnd {
        /// As in `RegionBegin`.
        region: u32,
    },
    /// The program says that one round of its outer loop ends and the next begins; the first comes
    /// before round 0.
    Iteration {
        /// The round that begins.
        number: u32,
    },
    /// The copies of a page are gone ([`crate::Decision::Replicate`]): somebody wrote to it, or its
    /// memory was needed for a page without a home.
    Collapsed {
        /// The page.
        page: PageNo,
        /// Its home, the only place where it still is.
        home: NodeId,
    },
    /// A node gave up its frame of a page ([`crate::Decision::ReplicateLines`]), because its memory
    /// was needed for another frame or for a page without a home.
    FrameGone {
        /// The page.
        page: PageNo,
        /// The node.
        node: NodeId,
    },
    /// The program asks for these pages to go to whoever touches them next.
    NextTouchRequest {
        /// The pages that lie wholly inside the range asked for.
        pages: PageRange,
    },
}

/// Which events a policy wants; drivers need not gather the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// [`Event::Fault`].
    pub faults: bool,
    /// [`Event::Accesses`] at the end of regions.
    pub counts_by_region: bool,
    /// [`Event::Accesses`] at iteration marks.
    pub counts_by_iteration: bool,
    /// [`Event::Accesses`] before a poll whose time has come (`Step::WakeAt`), not before those
    /// that follow an event.
    pub counts_at_wakes: bool,
    /// Pages are armed at the start of regions: the driver must notice the first touch of each 4
    /// KiB unit after every [`Event::RegionBegin`] even where the access hits a cache. A driver
    /// that sees page faults does so anyhow; the simulator has to be told beforehand. Without it,
    /// what is armed otherwise than by a [`Event::NextTouchRequest`] is noticed at its first access
    /// to main memory.
    pub touches_by_region: bool,
    /// Single touches at random times ([`Event::Touched`]) of the pages that it arms: a live driver
    /// needs a source that tells of them.
    pub draws: bool,
    /// The policy compares nodes with each other. Draws of presence serve as [`Event::Accesses`]
    /// then: proportions are enough.
    pub by_proportion: bool,
}

impl Interest {
    /// Whether it wants [`Event::Accesses`] at all.
    pub const fn counts(self) -> bool {
        self.counts_by_region || self.counts_by_iteration || self.counts_at_wakes
    }
}
