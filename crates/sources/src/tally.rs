//! Samples by page, node and kind, in bounded memory.
//!
//! The table has a fixed number of pages, whatever the program's size. An interval has no more
//! pages than samples, and the budget bounds the samples. Samples of pages without a place count as
//! dropped.

use homenode_model::{AccessKind, NodeId, PageNo};

/// Places tried for a page.
const TRIES: usize = 32;
const EMPTY: u64 = u64::MAX;

/// The table.
#[derive(Debug)]
pub struct SampleTally {
    nodes: usize,
    pages: Vec<u64>,
    /// Reads and writes, by place and node.
    counts: Vec<[u32; 2]>,
    used: Vec<u32>,
    samples: u64,
    dropped: u64,
}

/// Samples of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSamples<'a> {
    /// The page.
    pub page: PageNo,
    /// Reads and writes, by node.
    pub counts: &'a [[u32; 2]],
}

impl SampleTally {
    /// Pages of one interval; a power of two.
    pub const PLACES: usize = 1 << 15;

    /// An empty table for this many nodes. It takes its memory at the first sample.
    pub const fn new(nodes: usize) -> Self {
        Self { nodes, pages: Vec::new(), counts: Vec::new(), used: Vec::new(), samples: 0, dropped: 0 }
    }

    /// Bytes of memory, at most.
    pub const fn bytes(&self) -> usize {
        Self::PLACES * (8 + 4 + 8 * self.nodes)
    }

    /// Adds a sample.
    pub fn add(&mut self, page: PageNo, node: NodeId, kind: AccessKind) {
        if self.pages.is_empty() {
            self.pages = vec![EMPTY; Self::PLACES];
            self.counts = vec![[0; 2]; Self::PLACES * self.nodes];
            self.used = Vec::with_capacity(Self::PLACES);
        }
        self.samples += 1;
        match self.place(page.0) {
            Some(place) if node.index() < self.nodes => {
                let cell = &mut self.counts[place * self.nodes + node.index()][kind as usize];
                *cell = cell.saturating_add(1);
            }
            _ => self.dropped += 1,
        }
    }

    fn place(&mut self, page: u64) -> Option<usize> {
        let first = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        for at in (0..TRIES).map(|i| (first + i) % Self::PLACES) {
            if self.pages[at] == page {
                return Some(at);
            }
            if self.pages[at] == EMPTY {
                self.pages[at] = page;
                self.used.push(at as u32);
                return Some(at);
            }
        }
        None
    }

    /// Pages with samples, ascending.
    pub fn rows(&mut self) -> impl Iterator<Item = PageSamples<'_>> {
        let pages = &self.pages;
        self.used.sort_unstable_by_key(|u| pages[*u as usize]);
        self.used.iter().map(|u| {
            let at = *u as usize;
            let counts = &self.counts[at * self.nodes..(at + 1) * self.nodes];
            PageSamples { page: PageNo(self.pages[at]), counts }
        })
    }

    /// Samples since the last [`SampleTally::clear`].
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Samples without a place, since the start.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Forgets the counts, keeps the memory.
    pub fn clear(&mut self) {
        for u in self.used.drain(..) {
            let at = u as usize;
            self.pages[at] = EMPTY;
            self.counts[at * self.nodes..(at + 1) * self.nodes].fill([0; 2]);
        }
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn what_was_added_is_there_ascending(
            samples in proptest::collection::vec((0u64..5000, 0u16..3, any::<bool>()), 0..2000)
        ) {
            let mut tally = SampleTally::new(3);
            let mut want: BTreeMap<u64, [[u32; 2]; 3]> = BTreeMap::new();
            for round in 0..2 {
                for (page, node, write) in &samples {
                    let kind = if *write { AccessKind::Write } else { AccessKind::Read };
                    tally.add(PageNo(*page), NodeId(*node), kind);
                    if round == 1 {
                        want.entry(*page).or_default()[*node as usize][kind as usize] += 1;
                    }
                }
                if round == 0 {
                    tally.clear();
                }
            }
            let have: Vec<_> = tally.rows().map(|r| (r.page.0, r.counts.to_vec())).collect();
            let want: Vec<_> = want.into_iter().map(|(p, c)| (p, c.to_vec())).collect();
            prop_assert_eq!(have, want);
            prop_assert_eq!((tally.samples(), tally.dropped()), (samples.len() as u64, 0));
        }
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_counted() {
        let mut tally = SampleTally::new(2);
        let all = 4 * SampleTally::PLACES as u64;
        (0..all).for_each(|p| tally.add(PageNo(p * 7919), NodeId(1), AccessKind::Read));
        assert!(
            tally.used.len() <= SampleTally::PLACES && tally.dropped() >= all - SampleTally::PLACES as u64
        );
        assert_eq!(tally.rows().count() as u64 + tally.dropped(), all);
    }
}
