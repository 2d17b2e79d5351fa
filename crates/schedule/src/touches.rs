//! Which pages the values of a loop's variable were seen to touch, and the nodes that follow.
//!
//! # Problem
//!
//! An iteration belongs to the node that has its data. The run-time sees some touches of pages,
//! each while a thread executes a chunk. Pages move afterwards, so homes have to be asked for anew.
//!
//! # Approach
//!
//! A touch is kept with the values of its chunk. When homes are asked for, each touch is a vote of
//! its chunk's values for the node that has the page by then. Chunks of several executions may
//! overlap; a value's node is the one with most votes, and of equal ones the one with the lower
//! number.
//!
//! # Limits
//!
//! A page that many chunks touch is seen in one of them: the first touch makes it accessible. The
//! [`MOST`] latest touches are kept.

use std::collections::{BTreeMap, BTreeSet};

/// Touches of a loop that are kept.
pub const MOST: usize = 1 << 13;
/// Executions between two questions for homes, at most.
const LONGEST: u64 = 64;

/// A touch: the values of the chunk from the first number up to, not including, the second one, and
/// the page.
pub type ChunkTouch = (i128, i128, usize);

/// The touches of a loop.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    kept: BTreeSet<ChunkTouch>,
    /// In the order in which they came.
    order: std::collections::VecDeque<ChunkTouch>,
    executions: u64,
    /// Execution in which homes are asked for next.
    due: u64,
}

impl Touches {
    /// Adds touches of an execution.
    pub fn add(&mut self, touches: impl IntoIterator<Item = ChunkTouch>) {
        for touch in touches {
            if touch.0 < touch.1 && self.kept.insert(touch) {
                self.order.push_back(touch);
                // New knowledge is of use at once.
                self.due = self.executions + 1;
            }
            if self.order.len() > MOST
                && let Some(oldest) = self.order.pop_front()
            {
                self.kept.remove(&oldest);
            }
        }
    }

    /// Whether no touch is known.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The loop is executed once more. `true`: homes are to be asked for: after new touches, and
    /// then after twice as many executions each time, [`LONGEST`] at most.
    pub fn is_due(&mut self) -> bool {
        self.executions += 1;
        if self.is_empty() || self.executions < self.due {
            return false;
        }
        self.due = self.executions + self.executions.min(LONGEST);
        true
    }

    /// The nodes of values, ascending. `nodes_of` has the node of each page, `None` where it is not
    /// known.
    pub fn nodes(&self, nodes_of: impl Fn(&[usize]) -> Vec<Option<u16>>) -> Vec<(i128, i128, u16)> {
        let pages: Vec<usize> = self.kept.iter().map(|t| t.2).collect();
        let nodes = nodes_of(&pages);
        // Where votes begin and end.
        let mut votes: Vec<(i128, u16, i32)> = Vec::with_capacity(2 * pages.len());
        for ((low, high, _), node) in self.kept.iter().zip(nodes) {
            if let Some(node) = node {
                votes.extend([(*low, node, 1), (*high, node, -1)]);
            }
        }
        votes.sort_unstable();
        let mut ranges: Vec<(i128, i128, u16)> = Vec::new();
        let mut count: BTreeMap<u16, i32> = BTreeMap::new();
        for (i, (at, node, vote)) in votes.iter().enumerate() {
            *count.entry(*node).or_default() += vote;
            let Some((next, ..)) = votes.get(i + 1).filter(|next| next.0 > *at) else { continue };
            let most = count.iter().max_by_key(|(node, votes)| (**votes, std::cmp::Reverse(**node)));
            if let Some((node, _)) = most.filter(|(_, votes)| **votes > 0) {
                ranges.push((*at, *next, *node));
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_node_of_most_of_its_pages() {
        let mut touches = Touches::default();
        touches.add([(0, 10, 1), (0, 10, 2), (0, 10, 3), (20, 30, 4), (5, 25, 5), (5, 25, 6), (5, 5, 7)]);
        let node = |page: &usize| [None, Some(0), Some(0), Some(1), Some(2), Some(1), Some(1)][*page];
        let nodes = touches.nodes(|pages| pages.iter().map(node).collect());
        // 0..5: nodes 0 0 1; 5..10: 0 0 1 1 1; 10..25: 1 1 and from 20 on 2; 25..30: 2.
        assert_eq!(nodes, [(0, 5, 0), (5, 10, 1), (10, 20, 1), (20, 25, 1), (25, 30, 2)]);
        assert_eq!(touches.nodes(|pages| vec![None; pages.len()]), []);
    }

    #[test]
    fn homes_are_asked_for_after_new_touches_and_then_less_and_less() {
        let mut touches = Touches::default();
        assert!(!touches.is_due(), "nothing is known");
        touches.add([(0, 10, 1)]);
        let due: Vec<u32> = (2..40).filter(|_| touches.is_due()).map(|_| 1).collect();
        assert_eq!(due.len(), 5, "executions 2, 4, 8, 16, 32");
        touches.add([(0, 10, 1)]);
        assert!(!touches.is_due(), "it was known");
        touches.add([(10, 20, 1)]);
        assert!(touches.is_due());
        assert!(!touches.is_due());
    }

    #[test]
    fn the_latest_touches_are_kept() {
        let mut touches = Touches::default();
        touches.add((0..MOST as i128 + 5).map(|i| (i, i + 1, 0)));
        let nodes = touches.nodes(|pages| vec![Some(0); pages.len()]);
        assert_eq!((nodes.len(), nodes[0].0), (MOST, 5));
    }
}
