//! Who touched which pages first: each page once, from page faults, and from homes where no fault
//! told.
//!
//! One fault may bring a whole huge page. So a fault that is the only one in its 2 MiB of memory
//! tells who touched first all pages there that were on the fault's node at the first look.

use std::collections::BTreeMap;
use std::ops::Range;

use homenode_model::{NodeId, Ns};
use homenode_wire::live::ThreadNo;

/// Bytes of a page, as [`homenode_wire::live::Pages`] counts.
const PAGE: u64 = 4096;
/// Pages of a huge page.
const HUGE: u64 = 512;

/// Who it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectToucher {
    /// The thread.
    pub thread: Option<ThreadNo>,
    /// When, on the stream's clock.
    pub time: Ns,
    /// Address of the instruction; 0: not known.
    pub pc: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    end: u64,
    node: NodeId,
    /// `None`: only the page's home is known.
    toucher: Option<ObjectToucher>,
}

/// The first touches of one object.
#[derive(Clone, Debug, Default)]
pub struct ObjectFirstTouches {
    /// Runs of pages without overlaps, by their first page.
    runs: BTreeMap<u64, Run>,
}

impl ObjectFirstTouches {
    /// The parts of `pages` that no run has.
    fn gaps(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        let mut at = pages.start;
        let before = self.runs.range(..pages.start).next_back();
        let mut gaps = Vec::new();
        for (first, run) in before.into_iter().chain(self.runs.range(pages.clone())) {
            if *first > at {
                gaps.push(at..*first);
            }
            at = at.max(run.end);
        }
        if at < pages.end {
            gaps.push(at..pages.end);
        }
        gaps
    }

    fn insert(&mut self, pages: &Range<u64>, node: NodeId, toucher: Option<ObjectToucher>) {
        self.runs.insert(pages.start, Run { end: pages.end, node, toucher });
    }

    /// A fault told the first touch of `pages`. Returns those that were not known before.
    pub fn add(&mut self, pages: Range<u64>, node: NodeId, toucher: ObjectToucher) -> Vec<Range<u64>> {
        let gaps = self.gaps(pages);
        for gap in &gaps {
            self.insert(gap, node, Some(toucher));
        }
        gaps
    }

    /// `pages` were on `node` at the first look; the object begins at `address`. Returns those
    /// whose first touch no fault told, with who it was where that follows from a huge page.
    pub fn rest(
        &mut self,
        pages: Range<u64>,
        node: NodeId,
        address: u64,
    ) -> Vec<(Range<u64>, Option<ObjectToucher>)> {
        let mut found: Vec<(Range<u64>, Option<ObjectToucher>)> = Vec::new();
        for gap in self.gaps(pages) {
            let mut at = gap.start;
            while at < gap.end {
                // Page numbers of the 2 MiB of memory around the page.
                let into = (address / PAGE).wrapping_add(at) % HUGE;
                let huge = at.saturating_sub(into)..at + (HUGE - into);
                let toucher = self.only_one(huge.clone(), node);
                // Without a run in the next huge pages they have no toucher either.
                let next = self.runs.range(huge.end..).next().map_or(gap.end, |(first, _)| *first);
                let skipped = if toucher.is_none() { next.saturating_sub(huge.end) / HUGE * HUGE } else { 0 };
                let end = (huge.end + skipped).min(gap.end);
                match found.last_mut() {
                    Some((run, same)) if *same == toucher && run.end == at => {
                        run.end = end;
                    }
                    _ => found.push((at..end, toucher)),
                }
                at = end;
            }
        }
        for (run, _) in &found {
            self.insert(run, node, None);
        }
        found
    }

    /// Who touched one of these pages on this node, if the faults name one page alone.
    fn only_one(&self, pages: Range<u64>, node: NodeId) -> Option<ObjectToucher> {
        let before = self.runs.range(..pages.start).next_back().filter(|(_, run)| run.end > pages.start);
        let mut told = before.into_iter().chain(self.runs.range(pages)).filter(|(_, r)| r.toucher.is_some());
        let (first, run) = told.next()?;
        let alone = told.next().is_none() && run.end - first == 1 && run.node == node;
        run.toucher.filter(|_| alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: ObjectToucher = ObjectToucher { thread: Some(ThreadNo(3)), time: Ns(7), pc: 0x40_0000 };
    const ON: NodeId = NodeId(1);

    #[test]
    fn each_page_is_told_once() {
        let mut f = ObjectFirstTouches::default();
        let first = 4..8;
        assert_eq!(f.add(first.clone(), ON, BY), std::slice::from_ref(&first));
        assert_eq!(f.add(2..10, NodeId(0), BY), [2..4, 8..10]);
        assert_eq!(f.add(5..6, NodeId(0), BY), []);
        assert_eq!(f.rest(0..12, NodeId(0), 0), [(0..2, None), (10..12, None)]);
        assert_eq!(f.rest(0..12, NodeId(0), 0), []);
    }

    #[test]
    fn the_only_fault_of_a_huge_page_tells_for_all_of_it() {
        let mut f = ObjectFirstTouches::default();
        // The object begins two pages before a border of 2 MiB.
        let address = (HUGE * 9 - 2) * PAGE;
        f.add(3..4, ON, BY);
        f.add(514..515, ON, BY);
        f.add(600..602, ON, BY);
        let all = f.rest(0..1100, ON, address);
        let named: Vec<(Range<u64>, bool)> = all.iter().map(|(r, t)| (r.clone(), t.is_some())).collect();
        assert_eq!(
            named,
            [(0..2, false), (2..3, true), (4..514, true), (515..600, false), (602..1100, false)],
            "three pages were touched one by one in the second"
        );
        let mut other = ObjectFirstTouches::default();
        other.add(3..4, NodeId(0), BY);
        assert!(other.rest(2..514, ON, address).iter().all(|(_, t)| t.is_none()), "on another node");
    }
}
