//! What the driver asks of whoever moves pages. Another one stands in for it in tests.

use homenode_model::{MoveResult, NodeId, Ns};
use homenode_sys::Span;
use homenode_wire::facts::Counters;

pub use crate::moving::Manner;

/// What became of an order to arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Armed {
    /// Pages that now follow their next touch.
    pub pages: u64,
    /// Pages that stay as they are: not anonymous, locked, in use by a system call, or not there.
    pub skipped: u64,
}

/// A touch of armed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// First byte of the first page.
    pub address: usize,
    /// Pages that came along with this touch.
    pub pages: u32,
    /// The toucher's node; where they are now, unless `moved` is false.
    pub node: NodeId,
    /// They are at `node` now.
    pub moved: bool,
}

/// Moves pages.
pub trait Mover: Send {
    /// From now on the pages of these spans are taken in this manner when they are touched. Whole
    /// pages, none twice; one call for many spans costs little more than one for one.
    fn arm(&mut self, spans: &[Span], manner: Manner) -> Armed;
    /// Pages that are armed at this moment.
    fn armed(&self) -> u64;
    /// Whether [`Manner::Stays`] is possible.
    fn can_stay(&self) -> bool;
    /// Nothing is armed any more; contents are in place.
    fn disarm(&mut self);
    /// The memory is about to go or to change its owner: it is not armed any more.
    fn leave(&mut self, address: usize, bytes: usize);
    /// A moment when the team sleeps: what has been touched altogether can be tidied up.
    fn settle(&mut self);
    /// At such a moment: brings huge pages back that arming split, for about `cap`. Whether there
    /// are more.
    fn restore_huge_pages(&mut self, cap: Ns) -> bool;
    /// Tells of the touches since the last time.
    fn touches(&mut self, tell: &mut dyn FnMut(Touch));
    /// The node that has all pages of a range, if that is told more quickly than where each is.
    fn one_home(&mut self, address: usize, pages: usize) -> Option<NodeId>;
    /// Homes of the pages of a range, of all of which `one` is known to be the home, if there is
    /// one; `None` where there is no page. One entry a page.
    fn homes(&mut self, address: usize, pages: usize, one: Option<NodeId>, out: &mut Vec<Option<NodeId>>);
    /// Moves whole pages, each to a node, no page twice. How each fared goes to `out`, which is
    /// empty, in their order.
    fn move_pages(&mut self, pages: &[(usize, NodeId)], out: &mut Vec<MoveResult>);
    /// Pages of the range that come to be from now on are of `node`; `None`: of whoever touches
    /// them. `false`: there are no such policies here.
    ///
    /// # Errors
    /// What the system said.
    fn prefer(&mut self, address: usize, bytes: usize, node: Option<NodeId>) -> Result<bool, String>;
    /// Tells of the program's threads: number, the CPU that it ran on last, whether it may run on
    /// that one only.
    fn threads(&self, _tell: &mut dyn FnMut(u32, u32, bool)) {}
    /// The calling thread is about to start a team.
    fn team_starts(&mut self) {}
    /// Whether pages that are not there yet are to be armed, for their home is known only if their
    /// first touch is seen.
    fn sees_first_touches(&self) -> bool {
        false
    }
    /// Sums.
    fn counters(&self) -> Counters;
    /// What it cannot do on this machine, a sentence each.
    fn cannot(&self) -> Vec<String>;
}
