//! Explicit distribution: BLOCK, CYCLIC(k) and blocks in two dimensions of each object's pages.
//!
//! # Problem
//!
//! A programmer knows that thread i works on the i-th part of an array. First touch does not know
//! that.
//!
//! # Approach
//!
//! High Performance Fortran's distributions, as SGI's `c$distribute` and Compaq's OpenMP extensions
//! offered them, at page granularity, for every object alike.
//!
//! # Terms
//!
//! *Object's pages*: those of one allocation, P of them. *Turn*: position in the ascending list of
//! the N nodes that the pages are dealt to. These are the nodes with memory that run threads. In a
//! live program, threads may run wherever the process has CPUs. Where a driver knows no such node,
//! and with `nodes=all`, they are all nodes with memory: BLOCK over 64 nodes puts 15 of 16 pages of
//! a program with four threads on nodes that never use them.
//!
//! # Algorithm
//!
//! Page i of an object goes to turn
//!
//! - BLOCK: i div ⌈P/N⌉. P = 10, N = 4: blocks of 3, 3, 3, 1.
//! - CYCLIC(k): (i div k) mod N.
//! - BLOCK, BLOCK: the object is a matrix of R rows, row after row, and the nodes are a grid of A
//!   across and N/A down. The byte in the middle of page i lies in some row r and at a share s of
//!   that row: turn ⌊r (N/A) / R⌋ · A + ⌊s A⌋. A row shorter than a page for each node across has
//!   no parts that pages could tell apart: there A counts as 1. The contract tells of pages, not of
//!   shapes, so R is an option, and the object's length is taken to be its pages.
//!
//! A page that two objects share belongs to the one that begins later. A page of no object goes to
//! the toucher, a page for a full node to the nearest with room.
//!
//! # Properties
//!
//! - `blocks_are_contiguous_and_full`: BLOCK's homes never descend along an object, and every block
//!   but the last two that hold pages is ⌈P/N⌉ long.
//! - `cyclic_repeats`: pages i and i + kN have the same home.
//! - `tiles_are_rectangles`: in two dimensions, pages of the same rows and the same part of them
//!   have one home, and each node has a tile.
//! - `the_toucher_does_not_matter`: with room everywhere, homes do not depend on who touches, or
//!   when.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use homenode_model::{
    Decision, DecisionBuf, Event, Interest, MoveOutcome, NodeId, Ns, ObjectId, PageNo, PageRange,
};

use crate::homes::Homes;
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// How an object's pages are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// One contiguous block a node.
    Block,
    /// This many pages a node in turn; 0 counts as 1.
    Cyclic(u64),
    /// Rectangles of a matrix stored by rows.
    Tiles {
        /// Its rows; 0 counts as 1.
        rows: u64,
        /// Nodes across. If this does not divide the number of nodes, it counts as one.
        across: u64,
    },
}

impl Distribution {
    /// Turn of page `i` of an object of `pages` pages on `nodes` nodes.
    fn turn(self, i: u64, pages: u64, nodes: u64) -> u64 {
        match self {
            Self::Block => i / pages.div_ceil(nodes).max(1),
            Self::Cyclic(k) => i / k.max(1) % nodes,
            Self::Tiles { rows, across } => tile(i, pages, nodes, rows.max(1), across.max(1)),
        }
    }
}

/// Turn of page `i` in two dimensions. Places are counted in half pages: a page's middle is a whole
/// number of them.
fn tile(i: u64, pages: u64, nodes: u64, rows: u64, across: u64) -> u64 {
    let (middle, length) = (u128::from(2 * i + 1), u128::from(2 * pages));
    let across = if nodes.is_multiple_of(across) && pages / rows >= across { across } else { 1 };
    let down = u128::from(nodes / across);
    // The row is middle · rows / length. The remainder is the share of the row, in units of 1 /
    // length.
    let scaled = middle * u128::from(rows);
    let (row, part) = (scaled / length, scaled % length);
    (row * down / u128::from(rows) * u128::from(across) + part * u128::from(across) / length) as u64
}

/// See the module.
#[derive(Debug)]
pub struct Explicit {
    how: Distribution,
    nodes: Vec<NodeId>,
    /// Number of pages by (first page, object).
    objects: BTreeMap<(u64, ObjectId), u64>,
    homes: Homes,
    queue: Queue,
}

impl Explicit {
    /// Deals every object's pages to `nodes` by `how`.
    pub fn new(context: &PolicyContext, how: Distribution, nodes: Vec<NodeId>) -> Self {
        Self { how, nodes, objects: BTreeMap::new(), homes: Homes::new(context), queue: Queue::new() }
    }
    /// The object of `page`. Objects are disjoint except for the pages at their ends, so only those
    /// with the highest first page up to `page` can contain it.
    fn object_of(&self, page: PageNo) -> Option<PageRange> {
        let below = self.objects.range(..=(page.0, ObjectId(u32::MAX)));
        let mut below = below.rev().map(|(&(first, _), &count)| PageRange { first: PageNo(first), count });
        let last = below.next()?;
        core::iter::once(last).chain(below.take_while(|o| o.first == last.first)).find(|o| o.contains(page))
    }
    fn wanted(&self, page: PageNo) -> Option<NodeId> {
        let object = self.object_of(page)?;
        let nodes = self.nodes.len() as u64;
        if nodes == 0 {
            return None;
        }
        let turn = self.how.turn(page.0 - object.first.0, object.count, nodes);
        self.nodes.get(turn as usize).copied()
    }
}

impl Policy for Explicit {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Alloc { object, pages } => {
                // Several small allocations of one site may begin on one page. The longest
                // represents them.
                let count = self.objects.entry((pages.first.0, object)).or_default();
                *count = pages.count.max(*count);
            }
            Event::Fault { page, node } => {
                let wanted = self.wanted(page).unwrap_or(node);
                if let Some(node) = self.homes.settle(page, wanted) {
                    self.queue.push(Decision::Place { page, node });
                }
            }
            Event::Free { object, pages } => {
                self.homes.free(pages);
                // The freed pages are those wholly inside. The allocation began on the same page or
                // the one before.
                let first = pages.first.0;
                let starts = [Some(first), first.checked_sub(1)].into_iter().flatten();
                let mut keys = starts.map(|start| (start, object));
                if let Some(key) = keys.find(|key| self.objects.contains_key(key)) {
                    self.objects.remove(&key);
                }
            }
            _ => {}
        }
    }
    fn poll(&mut self, _now: Ns, out: &mut DecisionBuf) -> Step {
        self.queue.pour(out)
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        self.homes.moved(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, NODES, machine, roomy, touches};
    use proptest::prelude::*;

    const OBJECT: ObjectId = ObjectId(7);

    fn dealt(how: Distribution, first: u64, count: u64) -> Vec<NodeId> {
        let context = machine(&roomy());
        let mut bench = Bench::new(&context, Explicit::new(&context, how, context.distribution_nodes()));
        let pages = PageRange { first: PageNo(first), count };
        bench.observe(&Event::Alloc { object: OBJECT, pages });
        pages.iter().map(|p| bench.fault(p, NodeId(0)).unwrap()).collect()
    }

    #[test]
    fn ten_pages_over_three_nodes() {
        let turns = |how| dealt(how, 5, 10).iter().map(|n| n.0).collect::<Vec<_>>();
        assert_eq!(turns(Distribution::Block), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        assert_eq!(turns(Distribution::Cyclic(2)), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1]);
    }

    #[test]
    fn only_nodes_that_run_threads_get_pages_where_they_are_known() {
        let context = machine(&roomy()).with_running([NodeId(2), NodeId(0), NodeId(2)]);
        let mut bench = Bench::new(&context, crate::build("block", &context).unwrap());
        let pages = PageRange { first: PageNo(0), count: 4 };
        bench.observe(&Event::Alloc { object: OBJECT, pages });
        let homes: Vec<u16> = pages.iter().map(|p| bench.fault(p, NodeId(1)).unwrap().0).collect();
        assert_eq!(homes, [0, 0, 2, 2]);
        let mut bench = Bench::new(&context, crate::build("block:nodes=all", &context).unwrap());
        bench.observe(&Event::Alloc { object: OBJECT, pages });
        let homes: Vec<u16> = pages.iter().map(|p| bench.fault(p, NodeId(1)).unwrap().0).collect();
        assert_eq!(homes, [0, 0, 1, 1], "four pages on three nodes: blocks of two");
    }

    #[test]
    fn a_shared_page_belongs_to_the_later_object_and_a_stray_one_to_the_toucher() {
        let context = machine(&roomy());
        let mut bench =
            Bench::new(&context, Explicit::new(&context, Distribution::Block, context.distribution_nodes()));
        for (object, first, count) in [(0, 10, 4), (1, 13, 1), (2, 13, 6)] {
            let pages = PageRange { first: PageNo(first), count };
            bench.observe(&Event::Alloc { object: ObjectId(object), pages });
        }
        assert_eq!(bench.fault(PageNo(12), NodeId(0)), Some(NodeId(1)));
        assert_eq!(bench.fault(PageNo(13), NodeId(2)), Some(NodeId(0)));
        assert_eq!(bench.fault(PageNo(18), NodeId(0)), Some(NodeId(2)));
        assert_eq!(bench.fault(PageNo(40), NodeId(1)), Some(NodeId(1)));
    }

    #[test]
    fn a_freed_object_is_forgotten_though_its_first_page_is_shared() {
        let context = machine(&roomy());
        let mut bench =
            Bench::new(&context, Explicit::new(&context, Distribution::Block, context.distribution_nodes()));
        bench.observe(&Event::Alloc { object: OBJECT, pages: PageRange { first: PageNo(3), count: 6 } });
        bench.observe(&Event::Free { object: OBJECT, pages: PageRange { first: PageNo(4), count: 5 } });
        assert_eq!(bench.fault(PageNo(8), NodeId(1)), Some(NodeId(1)));
    }

    proptest! {
        #[test]
        fn blocks_are_contiguous_and_full(first in 0u64..1000, count in 1u64..200) {
            let homes = dealt(Distribution::Block, first, count);
            prop_assert!(homes.is_sorted());
            let length = (count as usize).div_ceil(3);
            let blocks: Vec<usize> = homes.chunk_by(|a, b| a == b).map(<[NodeId]>::len).collect();
            let full = blocks.len().saturating_sub(2);
            prop_assert!(blocks[..full].iter().all(|b| *b == length));
            prop_assert!(blocks.iter().all(|b| *b <= length));
        }

        #[test]
        fn cyclic_repeats(first in 0u64..1000, count in 1u64..200, k in 1u64..9) {
            let homes = dealt(Distribution::Cyclic(k), first, count);
            let round = k as usize * 3;
            for i in round..homes.len() {
                prop_assert_eq!(homes[i], homes[i - round]);
            }
        }

        #[test]
        fn tiles_are_rectangles(row_pages in 3u64..20, band in 1u64..12, first in 0u64..100) {
            // Three nodes across, all rows in one band; three down, rows of a page each.
            let rows = band;
            let homes = dealt(Distribution::Tiles { rows, across: 3 }, first, rows * row_pages);
            let row = |r: u64| &homes[(r * row_pages) as usize..((r + 1) * row_pages) as usize];
            for r in 1..rows {
                prop_assert_eq!(row(r), row(0));
            }
            prop_assert!(row(0).is_sorted() && row(0).last() == Some(&NodeId(2)) && row(0)[0] == NodeId(0));
            let homes = dealt(Distribution::Tiles { rows: 3 * band, across: 1 }, first, 3 * band * row_pages);
            let third = (band * row_pages) as usize;
            for (tile, node) in homes.chunks(third).zip(0..) {
                prop_assert!(tile.iter().all(|h| *h == NodeId(node)));
            }
        }

        #[test]
        fn the_toucher_does_not_matter((_, touches) in touches(), k in 1u64..5) {
            let context = machine(&roomy());
            let alloc = Event::Alloc { object: OBJECT, pages: PageRange { first: PageNo(0), count: 64 } };
            let how = Distribution::Cyclic(k);
            let mut one = Bench::new(&context, Explicit::new(&context, how, context.distribution_nodes()));
            let mut other = Bench::new(&context, Explicit::new(&context, how, context.distribution_nodes()));
            one.observe(&alloc);
            other.observe(&alloc);
            for (page, node) in &touches {
                one.fault(*page, *node);
            }
            for (page, node) in touches.iter().rev() {
                other.fault(*page, NodeId((node.0 + 1) % NODES as u16));
            }
            prop_assert_eq!(one.homes(), other.homes());
        }
    }
}
