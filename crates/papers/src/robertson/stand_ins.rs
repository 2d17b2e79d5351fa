//! Which of this machine's nodes stands for which of the paper's C-bricks.

use homenode_error::{Error, Result};
use homenode_measure::{Host, NodeNumber, NodePair};

/// A pair of the paper: the bricks of a thread and of its memory.
pub(super) type Bricks = (u16, u16);

/// How far a brick is from the one with the memory (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    Here,
    OneRouter,
    TwoRouters,
}

impl Away {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Here => "the same",
            Self::OneRouter => "one router away",
            Self::TwoRouters => "two routers away",
        }
    }
}

/// Nodes with CPUs and memory: the first, then the others from near to far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StandIns {
    first: NodeNumber,
    /// Others with their distance from the first, nearest first.
    others: Vec<(u32, NodeNumber)>,
}

impl StandIns {
    pub fn of(host: &Host) -> Result<Self> {
        let both: Vec<NodeNumber> =
            host.with_memory().into_iter().filter(|n| host.node(*n).is_some_and(|n| n.has_cpus())).collect();
        let Some(first) = both.first().copied() else {
            return Err(Error::failed("no node has both CPUs and memory that this process may use")
                .hint("'homenode doctor' lists nodes; a wider cpuset may help"));
        };
        // Where firmware says nothing, all are equally far.
        let mut others: Vec<(u32, NodeNumber)> =
            both[1..].iter().map(|n| (host.distance(first, *n).unwrap_or(20), *n)).collect();
        others.sort_unstable();
        Ok(Self { first, others })
    }

    pub const fn first(&self) -> NodeNumber {
        self.first
    }

    pub const fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// Which nodes are so far away: with two distances or more the farthest are two routers away,
    /// all others one.
    pub fn nodes(&self, away: Away) -> Vec<NodeNumber> {
        let farthest = self.others.last().map(|o| o.0).filter(|d| *d > self.others[0].0);
        let is = |d: u32| if Some(d) == farthest { Away::TwoRouters } else { Away::OneRouter };
        match away {
            Away::Here => vec![self.first],
            other => self.others.iter().filter(|(d, _)| is(*d) == other).map(|(_, n)| *n).collect(),
        }
    }

    pub fn lacking(&self, away: Away) -> String {
        match (self.others.len(), away) {
            (0, _) => "this machine has one node with CPUs and memory".into(),
            _ => "all other nodes of this machine are equally far".into(),
        }
    }

    /// Bricks 0 and 1 are neighbours, 9 and 10 far away.
    fn node(&self, brick: u16) -> Option<NodeNumber> {
        let n = self.others.len();
        let at = match brick {
            0 => return Some(self.first),
            1 => 0,
            9 => n.checked_sub(1)?,
            _ => n.checked_sub(2)?,
        };
        // No node stands for two bricks.
        let taken = brick != 1 && at == 0;
        self.others.get(at).filter(|_| !taken).map(|o| o.1)
    }

    /// The nodes of an experiment's bricks, or what is lacking.
    pub fn pairs(&self, bricks: &[Bricks]) -> std::result::Result<Vec<NodePair>, String> {
        let of = |brick: u16| {
            self.node(brick).ok_or_else(|| {
                format!(
                    "no node stands for brick {brick}: {} of this machine's have CPUs and memory",
                    self.len()
                )
            })
        };
        bricks.iter().map(|(cpu, memory)| Ok(NodePair { cpu: of(*cpu)?, memory: of(*memory)? })).collect()
    }

    pub fn remarks(&self) -> Vec<String> {
        let shown: Vec<String> =
            [0, 1, 9, 10].into_iter().filter_map(|b| Some(format!("brick {b}: {}", self.node(b)?))).collect();
        let mut said = vec![shown.join(", ")];
        if self.len() > 2 && self.nodes(Away::TwoRouters).is_empty() {
            said.push(
                "all other nodes are equally far: bricks 9 and 10 are no farther than brick 1 here".into(),
            );
        }
        said
    }
}

/// `0:0 1:1`
pub(super) fn words(bricks: &[Bricks]) -> String {
    bricks.iter().map(|(t, m)| format!("{t}:{m}")).collect::<Vec<_>>().join(" ")
}

/// `0:0 1:1`, of nodes.
pub(super) fn shown(pairs: &[NodePair]) -> String {
    pairs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_measure::HostNode;

    fn host(distances: &[u32]) -> Host {
        let node = |n: usize| HostNode {
            node: n as u16,
            cpus: vec![homenode_measure::CpuNumber(n as u32)],
            cores: vec![homenode_measure::CpuNumber(n as u32)],
            memory: 1 << 30,
            allowed: true,
            distances: if n == 0 { distances.to_vec() } else { Vec::new() },
            ..HostNode::default()
        };
        Host { nodes: (0..distances.len()).map(node).collect(), ..Host::default() }
    }

    fn nodes(distances: &[u32]) -> Vec<Option<u16>> {
        let all = StandIns::of(&host(distances)).unwrap();
        [0, 1, 9, 10].into_iter().map(|b| all.node(b).map(|n| n.0)).collect()
    }

    #[test]
    fn near_bricks_are_near_and_no_node_stands_for_two() {
        assert_eq!(nodes(&[10]), [Some(0), None, None, None]);
        assert_eq!(nodes(&[10, 21]), [Some(0), Some(1), None, None]);
        assert_eq!(nodes(&[10, 21, 21]), [Some(0), Some(1), Some(2), None]);
        assert_eq!(nodes(&[10, 32, 21, 32]), [Some(0), Some(2), Some(3), Some(1)]);
    }

    #[test]
    fn two_distances_make_two_classes() {
        let all = StandIns::of(&host(&[10, 32, 21, 32])).unwrap();
        assert_eq!(all.nodes(Away::OneRouter), [NodeNumber(2)]);
        assert_eq!(all.nodes(Away::TwoRouters), [NodeNumber(1), NodeNumber(3)]);
        let all = StandIns::of(&host(&[10, 21, 21])).unwrap();
        assert_eq!((all.nodes(Away::OneRouter).len(), all.nodes(Away::TwoRouters).len()), (2, 0));
        let nowhere = Host { nodes: vec![HostNode::default()], ..Host::default() };
        assert!(StandIns::of(&nowhere).is_err());
    }
}
