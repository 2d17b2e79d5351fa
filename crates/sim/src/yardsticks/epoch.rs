//! What happened in one epoch: who accessed which page, and how long each thread computed.

use homenode_model::{PageNo, PageRange, Rows};

use super::costs::{Costs, Counts};

/// Counts by page and thread since the epoch began.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    counts: Rows<Counts>,
    /// Pages with a count, in order of their first.
    pages: Vec<PageNo>,
    /// Pages that were freed meanwhile: what is counted may be of two lives.
    freed: Vec<PageNo>,
    listed: Rows<u8>,
    /// Time that each thread computed.
    pub(super) busy: Vec<u64>,
    /// Each thread's misses and upgrades at the latency of its nearest memory.
    pub(super) least: Vec<u64>,
    /// Whether the thread did anything.
    pub(super) active: Vec<bool>,
    /// All controllers' time at work if every page were served by the fastest.
    pub(super) served: u64,
}

const COUNTED: u8 = 1;
const FREED: u8 = 2;

impl Epoch {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            counts: Rows::new(threads, Counts::NONE),
            pages: Vec::new(),
            freed: Vec::new(),
            listed: Rows::new(1, 0),
            busy: vec![0; threads],
            least: vec![0; threads],
            active: vec![false; threads],
            served: 0,
        }
    }
    #[inline]
    pub(super) fn add(&mut self, costs: &Costs, thread: usize, page: PageNo, what: Counts) {
        let listed = &mut self.listed.row_mut(page.index())[0];
        if *listed & COUNTED == 0 {
            *listed |= COUNTED;
            self.pages.push(page);
        }
        self.counts.row_mut(page.index())[thread].add(what);
        let node = costs.threads[thread].index();
        self.least[thread] = self.least[thread].saturating_add(costs.waiting_least(what, node));
        self.active[thread] = true;
        let served = (0..costs.homes.len()).map(|h| costs.serving(what, node, h)).min();
        self.served = self.served.saturating_add(served.unwrap_or(0));
    }
    pub(super) fn compute(&mut self, thread: usize, time: u64) {
        self.busy[thread] = self.busy[thread].saturating_add(time);
        self.active[thread] |= time > 0;
    }
    /// The pages' lives end; others may begin. Pages that nobody ever counted are nobody's concern.
    pub(super) fn free(&mut self, pages: PageRange) {
        for (page, row) in self.listed.range_mut(pages.indices()) {
            if row[0] & FREED == 0 {
                row[0] |= FREED;
                self.freed.push(PageNo(page as u64));
            }
        }
    }
    pub(super) fn was_freed(&self, page: PageNo) -> bool {
        self.listed.row(page.index()).is_some_and(|r| r[0] & FREED != 0)
    }
    /// Pages with counts; ascending once [`Epoch::sort`] was called.
    pub(super) fn pages(&self) -> &[PageNo] {
        &self.pages
    }
    /// Brings the pages into ascending order.
    pub(super) fn sort(&mut self) {
        self.pages.sort_unstable();
        self.freed.sort_unstable();
    }
    /// Pages that were freed.
    pub(super) fn freed(&self) -> &[PageNo] {
        &self.freed
    }
    /// Counts of `page`, by thread.
    pub(super) fn row(&self, page: PageNo) -> &[Counts] {
        self.counts.row(page.index()).unwrap_or(&[])
    }
    /// Threads' least times: computing and waiting one after the other, or side by side where
    /// accesses overlap.
    pub(super) fn floors(&self, outstanding: u64) -> impl Iterator<Item = u64> + '_ {
        self.busy.iter().zip(&self.least).map(move |(busy, least)| {
            if outstanding == 1 { busy.saturating_add(*least) } else { (*busy).max(least / outstanding) }
        })
    }
    /// Begins the next.
    pub(super) fn clear(&mut self) {
        for page in self.pages.drain(..) {
            self.counts.row_mut(page.index()).fill(Counts::NONE);
            self.listed.row_mut(page.index())[0] = 0;
        }
        for page in self.freed.drain(..) {
            self.listed.row_mut(page.index())[0] = 0;
        }
        self.busy.fill(0);
        self.least.fill(0);
        self.active.fill(false);
        self.served = 0;
    }
}
