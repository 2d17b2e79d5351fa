//! Weighted interleave: more pages where memory is faster.
//!
//! # Problem
//!
//! Round robin gives every memory the same share. Where their bandwidths differ, as with memory
//! behind CXL, the slowest limits a program that streams.
//!
//! # Approach
//!
//! Interleave in proportion to weights; as Linux' `MPOL_WEIGHTED_INTERLEAVE` (6.9). The weights are
//! given, or the bandwidths of the memories, which is what makes all of them finish a uniform
//! stream at the same time.
//!
//! # Terms
//!
//! *Weight* w(n) of a node with memory, W their sum. *Round*: a sequence of W turns in which n has
//! w(n).
//!
//! # Algorithm
//!
//! The round is made by smooth weighted round robin: every node gains w(n) of credit a turn, the
//! one with the most has the turn (ties: the lowest) and pays W. Weights 5, 1, 1: a a b a c a a.
//! The home of page p is turn p mod W. A full node passes the page to the nearest with room.
//! Weights are divided by their common divisor; bandwidths are first rounded to at most 255, nodes
//! whose bandwidth is not limited count as the fastest of those whose is.
//!
//! # Properties
//!
//! - `shares_follow_the_weights`: any W pages in a row give each node exactly w(n).
//! - `equal_weights_are_round_robin`: with equal weights it decides what round robin decides.

use alloc::vec;
use alloc::vec::Vec;

use homenode_model::{NodeId, PageNo};

use crate::PolicyContext;
use crate::at_first_touch::{AtFirstTouch, FirstHome, in_turn};

/// Weights from here on are refused.
pub const MAX_WEIGHT: u64 = 256;

/// See the module.
pub type Weighted = AtFirstTouch<ByWeight>;

/// Pages in turn on the nodes of a round.
#[derive(Debug)]
pub struct ByWeight {
    round: Vec<NodeId>,
}

impl Weighted {
    /// Weights by position among the nodes with memory. Nodes without a weight get 0. If no node
    /// has a weight, all have 1.
    pub fn new(context: &PolicyContext, weights: &[u64]) -> Self {
        let nodes = context.memory_nodes();
        let weight = |i: usize| weights.get(i).copied().unwrap_or(0).min(MAX_WEIGHT - 1);
        let mut weights: Vec<u64> = (0..nodes.len()).map(weight).collect();
        if weights.iter().all(|w| *w == 0) {
            weights.fill(1);
        }
        Self::with(context, ByWeight { round: round(&nodes, &weights) })
    }
    /// Weights by bandwidth.
    pub fn by_bandwidth(context: &PolicyContext) -> Self {
        let of = |n: &NodeId| context.bandwidth.get(n.index()).map_or(0, |b| b.0);
        let bandwidths: Vec<u64> = context.memory_nodes().iter().map(of).collect();
        let most = bandwidths.iter().copied().max().unwrap_or(0).max(1);
        let weight = |b: &u64| match *b {
            0 => MAX_WEIGHT - 1,
            b => (u128::from(b) * u128::from(MAX_WEIGHT - 1) / u128::from(most)).max(1) as u64,
        };
        Self::new(context, &bandwidths.iter().map(weight).collect::<Vec<u64>>())
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn round(nodes: &[NodeId], weights: &[u64]) -> Vec<NodeId> {
    let common = weights.iter().copied().fold(0, divisor).max(1);
    let weights: Vec<i64> = weights.iter().map(|w| (w / common) as i64).collect();
    let sum: i64 = weights.iter().sum();
    let mut credit = vec![0; weights.len()];
    let turn = |_| {
        credit.iter_mut().zip(&weights).for_each(|(c, w)| *c += w);
        // The first node among those with the most credit.
        let next = (0..credit.len()).max_by_key(|i| (credit[*i], core::cmp::Reverse(*i)))?;
        credit[next] -= sum;
        nodes.get(next).copied()
    };
    (0..sum).filter_map(turn).collect()
}

impl FirstHome for ByWeight {
    fn wanted(&self, page: PageNo, toucher: NodeId) -> NodeId {
        in_turn(&self.round, page, toucher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RoundRobin;
    use crate::testing::{Bench, machine, roomy, touches};
    use homenode_model::MbPerS;
    use proptest::prelude::*;

    #[test]
    fn turns_are_spread() {
        let nodes = [NodeId(0), NodeId(1), NodeId(2)];
        let turns: Vec<u16> = round(&nodes, &[10, 2, 2]).iter().map(|n| n.0).collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn bandwidth_sets_the_weights() {
        let mut context = machine(&roomy());
        context.bandwidth = [20_000, 5_000, 0, 7].map(MbPerS).to_vec();
        let policy = Weighted::by_bandwidth(&context);
        let count = |n: u16| policy.first.round.iter().filter(|h| h.0 == n).count();
        assert_eq!([count(0), count(1), count(2)], [85, 21, 85]);
    }

    proptest! {
        #[test]
        fn shares_follow_the_weights(weights in proptest::array::uniform3(0u64..20), first in 0u64..1000) {
            prop_assume!(weights.iter().any(|w| *w > 0));
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, Weighted::new(&context, &weights));
            let sum: u64 = weights.iter().sum();
            (first..first + sum).for_each(|p| _ = bench.fault(PageNo(p), NodeId(0)));
            for (node, weight) in (0u16..).map(NodeId).zip(weights) {
                prop_assert_eq!(bench.used(node), weight);
            }
        }

        #[test]
        fn equal_weights_are_round_robin((capacity, touches) in touches(), weight in 1u64..9) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, Weighted::new(&context, &[weight; 3]));
            let mut plain = Bench::new(&context, RoundRobin::new(&context));
            for (page, node) in touches {
                prop_assert_eq!(bench.fault(page, node), plain.fault(page, node));
            }
        }
    }
}
