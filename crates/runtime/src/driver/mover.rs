//! The driver's interface to a mover of pages. Tests use a mover of their own.

use homenode_model::{MoveResult, NodeId, Ns};
use homenode_sys::Span;
use homenode_wire::facts::MoverCounters;

pub use crate::moving::Manner;

/// The result of an order to arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Armed {
    /// Pages that now follow their next touch.
    pub pages: u64,
    /// Pages that were not armed: not anonymous, locked, in use by a system call, or missing.
    pub skipped: u64,
}

/// A touch of armed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// First byte of the first page.
    pub address: usize,
    /// Pages that this touch brought along.
    pub pages: u32,
    /// The toucher's node. The pages are there now, unless `moved` is false.
    pub node: NodeId,
    /// Whether the pages are at `node` now.
    pub moved: bool,
}

/// Moves pages.
pub trait Mover: Send {
    /// Arms these spans: their pages come in this manner when they are touched. Spans are whole
    /// pages, and no page occurs twice. One call for many spans costs little more than one for a
    /// single span.
    fn arm(&mut self, spans: &[Span], manner: Manner) -> Armed;
    /// Number of armed pages.
    fn armed(&self) -> u64;
    /// Whether the mover can do [`Manner::Stays`].
    fn can_stay(&self) -> bool;
    /// Disarms everything. Contents are in place.
    fn disarm(&mut self);
    /// Tidies up touched memory, at a moment when the team sleeps.
    fn settle(&mut self);
    /// Restores huge pages that arming has split, for about `cap`, at a moment when the team
    /// sleeps. Returns whether there are more.
    fn restore_huge_pages(&mut self, cap: Ns) -> bool;
    /// Reports the touches since the last call.
    fn touches(&mut self, tell: &mut dyn FnMut(Touch));
    /// The node that has all pages of a range, if the mover can tell faster than by page.
    fn one_home(&mut self, address: usize, pages: usize) -> Option<NodeId>;
    /// Appends the home of each page of a range to `out`; `None` where there is no page. `one`: the
    /// known home of all pages of the range, if there is one.
    fn homes(&mut self, address: usize, pages: usize, one: Option<NodeId>, out: &mut Vec<Option<NodeId>>);
    /// Moves whole pages, each to a node; no page occurs twice. Appends each outcome to `out`,
    /// which is empty before, in the order of `pages`.
    fn move_pages(&mut self, pages: &[(usize, NodeId)], out: &mut Vec<MoveResult>);
    /// Whether [`Mover::move_pages`] may move pages that the program uses meanwhile.
    fn moves_in_use(&self) -> bool;
    /// Sets the node on which future pages of the range will lie; `None`: on the toucher's. Returns
    /// `false` if this mover has no such policies.
    ///
    /// # Errors
    /// The system's answer.
    fn prefer(&mut self, address: usize, bytes: usize, node: Option<NodeId>) -> Result<bool, String>;
    /// Reports the program's threads: number, the CPU that the thread ran on last, whether it may
    /// run on CPUs of one node only. `node_of`: the node of a CPU.
    fn threads(&self, _node_of: &dyn Fn(u32) -> Option<NodeId>, _tell: &mut dyn FnMut(u32, u32, bool)) {}
    /// The calling thread is about to start a team.
    fn team_starts(&mut self) {}
    /// Whether to arm pages that do not exist yet, because only their first touch tells their home.
    fn sees_first_touches(&self) -> bool {
        false
    }
    /// Totals.
    fn counters(&self) -> MoverCounters;
    /// What the mover cannot do on this machine, one sentence each.
    fn cannot(&self) -> Vec<String>;
}
