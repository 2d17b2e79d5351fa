//! The distribution (`hn_distribute`) that serves the users of an array's pages best.
//!
//! # Approach
//! The candidates are one block a node, and chunks of pages dealt to the nodes in turns. A chunk is
//! one page, or as many pages as often lie in a row between two changes of the owner. The simplest
//! candidate wins whose latency of all accesses is at most 1 % above the least. The array counts as
//! one dimension, because a recording does not know the extents of allocated memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_model::{NodeId, ObjectId, PageNo, Placement, Ps, Topology};
use homenode_sim::memory::Outcome;
use homenode_simulated::places::ObjectMap;

use crate::effect::{pages, waits};

/// Lengths of chunks that are tried.
const LENGTHS: usize = 3;

/// Which node has which pages of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageDistribution {
    /// One block a node: `HN_BLOCK`.
    Block,
    /// Chunks in turns, each of this number of pages: `HN_CYCLIC`.
    Cyclic(u64),
}

impl PageDistribution {
    /// The place in the list of nodes that has a page of an array.
    const fn turn(self, page: u64, pages: u64, nodes: u64) -> u64 {
        match self {
            Self::Block => page / pages.div_ceil(nodes),
            Self::Cyclic(chunk) => page / chunk % nodes,
        }
    }

    /// In the words of the C API. A page has `page` bytes.
    pub fn words(self, page: u64) -> String {
        match self {
            Self::Block => "by HN_BLOCK over the nodes".into(),
            Self::Cyclic(chunk) => {
                format!("by HN_CYCLIC over the nodes, in chunks of {} KiB", chunk * page / 1024)
            }
        }
    }
}

/// A page that is used.
struct Used {
    page: PageNo,
    /// The page's number in its array, and the pages of the array.
    within: u64,
    of: u64,
    /// The users' latency by home, in the order of the nodes.
    waits: Vec<Ps>,
}

impl Used {
    /// The best home, as a place in the list of nodes.
    fn owner(&self) -> usize {
        (0..self.waits.len()).min_by_key(|n| (self.waits[*n], *n)).unwrap_or(0)
    }
}

/// The best distribution of each of the objects over `nodes`, and its placement. `None`: there are
/// fewer than two nodes, or no pages.
pub fn best(
    machine: &Topology,
    outcome: &Outcome,
    places: &ObjectMap<'_>,
    objects: &[ObjectId],
    nodes: &[NodeId],
) -> Option<(PageDistribution, Placement)> {
    let used: Vec<Used> = pages(outcome, places, objects)
        .map(|(page, row)| {
            let placed = places.page(page.0);
            Used {
                page,
                within: placed.page,
                of: placed.page.saturating_add(placed.rest),
                waits: nodes.iter().map(|home| waits(machine, row, *home)).collect(),
            }
        })
        .collect();
    if nodes.len() < 2 || used.is_empty() {
        return None;
    }
    let home = |distribution: PageDistribution, used: &Used| {
        let turn = distribution.turn(used.within, used.of, nodes.len() as u64);
        usize::try_from(turn).unwrap_or(usize::MAX).min(nodes.len() - 1)
    };
    let lengths = runs(used.iter().map(|u| (u.page, u.owner())));
    let cyclic = std::iter::once(1).chain(lengths).map(PageDistribution::Cyclic);
    let tried: Vec<(PageDistribution, Ps)> = std::iter::once(PageDistribution::Block)
        .chain(cyclic)
        .map(|d| (d, used.iter().map(|u| u.waits[home(d, u)]).sum::<Ps>()))
        .collect();
    let least = tried.iter().map(|(_, waits)| waits.0).min()?;
    let (distribution, _) = *tried.iter().find(|(_, waits)| waits.0 <= least.saturating_add(least / 100))?;
    let mut plan = Placement::new();
    used.iter().for_each(|u| plan.set(u.page, nodes[home(distribution, u)]));
    Some((distribution, plan))
}

/// The most frequent lengths of runs of neighbouring pages with one owner, most frequent first.
fn runs(owners: impl Iterator<Item = (PageNo, usize)>) -> Vec<u64> {
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    let mut run: Option<(PageNo, usize, u64)> = None;
    for (page, owner) in owners {
        match &mut run {
            Some((last, of, length)) if *of == owner && last.0 + 1 == page.0 => {
                (*last, *length) = (page, *length + 1);
            }
            _ => {
                if let Some((.., length)) = run.replace((page, owner, 1)) {
                    *lengths.entry(length).or_default() += 1;
                }
            }
        }
    }
    if let Some((.., length)) = run {
        *lengths.entry(length).or_default() += 1;
    }
    let mut all: Vec<(u64, u64)> = lengths.into_iter().collect();
    all.sort_by_key(|(length, times)| (Reverse(*times), *length));
    all.into_iter().map(|(length, _)| length).take(LENGTHS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_contiguous_and_chunks_take_turns() {
        let homes = |d: PageDistribution| (0..10).map(|p| d.turn(p, 10, 3)).collect::<Vec<_>>();
        assert_eq!(homes(PageDistribution::Block), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        assert_eq!(homes(PageDistribution::Cyclic(2)), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1]);
    }

    #[test]
    fn runs_end_where_the_owner_changes_and_where_pages_are_missing() {
        let owners = [0, 0, 1, 1, 0, 0, 1].into_iter().enumerate();
        let all: Vec<(PageNo, usize)> = owners.map(|(p, o)| (PageNo(p as u64), o)).collect();
        assert_eq!(runs(all.iter().copied()), [2, 1]);
        let gap = [(PageNo(0), 0), (PageNo(2), 0), (PageNo(3), 0)];
        assert_eq!(runs(gap.into_iter()), [1, 2]);
        assert!(runs(std::iter::empty()).is_empty());
    }

    #[test]
    fn the_words_name_the_chunk_in_bytes() {
        assert_eq!(
            PageDistribution::Cyclic(4).words(4096),
            "by HN_CYCLIC over the nodes, in chunks of 16 KiB"
        );
        let header = include_str!("../../../include/homenode.h");
        assert!(
            header.contains("HN_BLOCK")
                && header.contains("HN_CYCLIC(")
                && header.contains("int hn_distribute(")
        );
    }
}
