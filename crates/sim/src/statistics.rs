//! The statistics that the papers print of a run.

use homenode_model::{Histogram, NodeId, PageNo, Ps};

use crate::memory::{Migration, Outcome};

/// Moves of pages, as Tao et al. count them (Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// All.
    pub migrations: u64,
    /// Moves of a page back to where it came from by its last move.
    pub ping_pongs: u64,
    /// Moves of a page that has moved before, to a third node ("moved to a node and then to another
    /// node").
    pub multiple: u64,
    /// Moves away from the node that accesses the page most, over the timed part ("accessed most
    /// frequently by the local node but migrated to a remote node"). A page that two nodes access
    /// alike is nobody's.
    pub incorrect: u64,
    /// Moves that were carried out but are not among the listed ones: they are in `migrations`
    /// alone.
    pub unlisted: u64,
}

/// Local and remote accesses of a node's CPUs (Nikolopoulos et al., Fig. 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeAccesses {
    /// Accesses to its own memory.
    pub local: u64,
    /// Accesses to other nodes' memory.
    pub remote: u64,
    /// Accesses of other nodes to its memory: what makes it contended.
    pub served: u64,
}

/// One round of the outer loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundStatistics {
    /// Its number.
    pub number: u32,
    /// Its length (Löf et al., Figs. 1 to 3).
    pub time: Ps,
    /// Moves that began in it, of those listed.
    pub moves: u64,
}

/// Counts the moves of `outcome`.
pub fn moves(outcome: &Outcome) -> Moves {
    let mut moves = Moves {
        migrations: outcome.moved,
        unlisted: outcome.moved - outcome.migrations.len() as u64,
        ..Moves::default()
    };
    let mut list: Vec<&Migration> = outcome.migrations.iter().collect();
    // Moves of one page stay in their order.
    list.sort_by_key(|m| m.page);
    let references = outcome.references();
    let mut last: Option<&Migration> = None;
    for migration in list {
        if let Some(before) = last.filter(|l| l.page == migration.page) {
            let back = before.from == migration.to;
            moves.ping_pongs += u64::from(back);
            moves.multiple += u64::from(!back);
        }
        moves.incorrect += u64::from(is_main_user(&references, migration.page, migration.from));
        last = Some(migration);
    }
    moves
}

/// Whether `node` accesses `page` more than any other does.
fn is_main_user(histogram: &Histogram, page: PageNo, node: NodeId) -> bool {
    let own = histogram.total(page, node);
    let mut others = (0..histogram.nodes() as u16).map(NodeId).filter(|n| *n != node);
    others.all(|other| histogram.total(page, other) < own)
}

/// Accesses by node, over the timed part.
pub fn by_node(outcome: &Outcome) -> Vec<NodeAccesses> {
    let counts = &outcome.timed_counts;
    let nodes = || (0..counts.nodes() as u16).map(NodeId);
    let of = |node| NodeAccesses {
        local: counts.local(node),
        remote: counts.remote(node),
        served: nodes().filter(|n| *n != node).map(|n| counts.accesses(n, node)).sum(),
    };
    nodes().map(of).collect()
}

/// The rounds between consecutive iteration marks.
pub fn rounds(outcome: &Outcome) -> Vec<RoundStatistics> {
    let mut begun: Vec<Ps> = outcome.migrations.iter().map(|m| m.at).collect();
    begun.sort_unstable();
    let before = |at: Ps| begun.partition_point(|m| *m < at) as u64;
    let pairs = outcome.marks.windows(2);
    let round = |w: &[crate::memory::IterationMark]| RoundStatistics {
        number: w[0].number,
        time: w[1].at - w[0].at,
        moves: before(w[1].at) - before(w[0].at),
    };
    pairs.map(round).collect()
}

/// Time spent moving pages as a share of the run (Nikolopoulos et al., Fig. 3): of all threads'
/// time.
pub fn overhead(outcome: &Outcome) -> f64 {
    let all: u64 = outcome.threads.iter().map(|t| t.end.0).sum();
    outcome.migration.0 as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::testing::{Program, machine};
    use homenode_model::ThreadId;

    fn outcome(moves: &[(u64, u16, u16)]) -> Outcome {
        let mut outcome = machine(3).run(
            &[homenode_model::CpuId(0)],
            "first-touch",
            &[Program::new().reads(0..1, 5).end()],
        );
        outcome.moved = moves.len() as u64;
        outcome.migrations = (0u64..)
            .zip(moves)
            .map(|(at, (page, from, to))| Migration {
                at: Ps(at),
                thread: ThreadId(0),
                page: PageNo(*page),
                from: NodeId(*from),
                to: NodeId(*to),
                cost: Ps(1),
            })
            .collect();
        outcome
    }

    #[test]
    fn moves_are_counted_as_the_paper_defines_them() {
        // Page 0 is read by node 0 alone. It goes away (wrong), comes back, and goes on to a third
        // node from there.
        let o = outcome(&[(0, 0, 1), (7, 0, 1), (0, 1, 0), (0, 0, 2), (7, 1, 2)]);
        let m = moves(&o);
        assert_eq!((m.migrations, m.unlisted), (5, 0));
        assert_eq!(m.ping_pongs, 1, "page 0 comes back");
        assert_eq!(m.multiple, 2, "page 0 goes on to node 2, and so does page 7");
        assert_eq!(m.incorrect, 2, "page 0 leaves its user twice; nobody uses page 7");
    }

    #[test]
    fn moves_that_are_not_listed_are_owned_up_to() {
        let mut o = outcome(&[(0, 0, 1)]);
        o.moved = 10;
        assert_eq!((moves(&o).migrations, moves(&o).unlisted), (10, 9));
    }

    #[test]
    fn nodes_tell_local_remote_and_served() {
        let nodes = by_node(&outcome(&[]));
        assert_eq!(nodes[0], NodeAccesses { local: 5, remote: 0, served: 0 });
        assert_eq!(nodes[1], NodeAccesses::default());
    }
}
