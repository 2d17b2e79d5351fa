//! Draws: presence by block, collected until it is enough to decide whose block it is.
//!
//! A *draw* is the next toucher of a page that was asked for at a random time. A draw is not a
//! count: it says that a node came first this time, not how often it touches the page. But draws at
//! times that are independent of the program's phases are fair: their shares are the nodes' shares
//! of the time (60 to 40 takes 41 to 133 draws, 90 to 10 takes five). Wherever draws are shown,
//! they carry the source's [`AnswerKind::Presence`](homenode_sources::AnswerKind).
//!
//! The 16 pages of a block share their draws. After a decision, the draws of the block are dropped,
//! and the block rests for twice as many rounds as the last time, so settled blocks cost nothing. A
//! *silent* block has a page that was asked for and that nobody has touched yet: memory that is
//! only read, if the source sees writers alone, or unused memory. It rests for one pass, then
//! three, seven and so on. The page that waits will tell; asking for more pages of the block would
//! only see one sweep several times.
//!
//! State: 2 bytes a node and 4 bytes for each block of 64 KiB; with four nodes 192 KiB a GiB.

use homenode_model::{NodeId, PageNo, PageRange, Rows};

pub use super::turns::PAGES;
use super::turns::{LOOKS, Turns, mix};

/// Longest rest, in passes over all blocks.
const LONGEST: u16 = 1 << 10;
/// A silent block rests for less than this many passes.
const SILENT: u16 = 1 << 6;

#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// Passes left to rest.
    left: u16,
    /// Length of the rest after the next decision, as an exponent of two.
    patience: u8,
    /// Pages that were asked for since somebody was last found here.
    silent: u8,
}

/// See the module.
#[derive(Debug)]
pub struct Draws {
    nodes: usize,
    /// Draws that a decision about a block needs.
    enough: u32,
    draws: Rows<u16>,
    rests: Vec<Rest>,
    ripe: Vec<u64>,
    turns: Turns,
    number: u64,
}

impl Draws {
    /// Without draws. A block is ripe with `enough` draws.
    pub fn new(nodes: usize, enough: u32) -> Self {
        Self {
            nodes,
            enough,
            draws: Rows::new(nodes, 0),
            rests: Vec::new(),
            ripe: Vec::new(),
            turns: Turns::default(),
            number: 0,
        }
    }

    fn rest(&mut self, block: u64) -> &mut Rest {
        let i = block as usize;
        if self.rests.len() <= i {
            self.rests.resize(i + 1, Rest::default());
        }
        &mut self.rests[i]
    }

    /// Adds a draw of a page.
    pub fn add(&mut self, page: PageNo, node: NodeId) {
        if node.index() >= self.nodes {
            return;
        }
        let block = page.0 / PAGES;
        let rest = self.rest(block);
        if std::mem::take(&mut rest.silent) > 0 {
            rest.left = 0;
        }
        let row = self.draws.row_mut(block as usize);
        row[node.index()] = row[node.index()].saturating_add(1);
        if row.iter().map(|n| u32::from(*n)).sum::<u32>() == self.enough {
            self.ripe.push(block);
        }
    }

    /// Reports the ripe blocks, ascending, with the draws of each node, and drops these draws.
    pub fn take_ripe(&mut self, mut tell: impl FnMut(PageRange, &[u16])) {
        let mut ripe = std::mem::take(&mut self.ripe);
        ripe.sort_unstable();
        for block in ripe.drain(..) {
            tell(
                PageRange { first: PageNo(block * PAGES), count: PAGES },
                self.draws.row_mut(block as usize),
            );
            self.draws.row_mut(block as usize).fill(0);
            let rest = self.rest(block);
            rest.silent = 0;
            rest.left = LONGEST.min(1 << rest.patience);
            rest.patience = (rest.patience + 1).min(LONGEST.ilog2() as u8);
        }
        self.ripe = ripe;
    }

    /// Draws that a decision about a block needs.
    pub const fn enough(&self) -> u32 {
        self.enough
    }

    /// Number of ripe blocks.
    pub fn ripe(&self) -> usize {
        self.ripe.len()
    }

    /// Forgets pages that do not exist any more.
    pub fn forget(&mut self, pages: PageRange) {
        if pages.count == 0 {
            return;
        }
        for block in pages.first.0 / PAGES..=(pages.first.0 + pages.count - 1) / PAGES {
            if (block as usize) < self.rests.len() {
                self.rests[block as usize] = Rest::default();
                self.draws.row_mut(block as usize).fill(0);
                self.ripe.retain(|b| *b != block);
            }
        }
    }

    /// Chooses pages to ask for next: one page of each of at most `wanted` blocks below `end`,
    /// another page each time. Blocks come in the order of [`Turns`].
    pub fn choose(&mut self, wanted: usize, end: u64, out: &mut Vec<PageNo>) {
        let blocks = end.div_ceil(PAGES);
        self.number += 1;
        for _ in 0..blocks.min(LOOKS) {
            if out.len() >= wanted {
                break;
            }
            let Some((block, _)) = self.turns.next(blocks) else { break };
            let rest = self.rest(block);
            if rest.left > 0 {
                rest.left -= 1;
                continue;
            }
            rest.left = SILENT.min(1 << rest.silent.min(15)) - 1;
            rest.silent = rest.silent.saturating_add(1);
            out.push(PageNo(block * PAGES + mix(block ^ self.number << 32) % PAGES));
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.rests.capacity() * (size_of::<Rest>() + self.nodes * size_of::<u16>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_told_once_it_has_enough() {
        let mut d = Draws::new(2, 8);
        for i in 0..7 {
            d.add(PageNo(i), NodeId(1));
        }
        d.take_ripe(|_, _| panic!("seven are not enough"));
        d.add(PageNo(15), NodeId(0));
        d.add(PageNo(16), NodeId(0));
        let mut told = Vec::new();
        d.take_ripe(|pages, draws| told.push((pages.first.0, pages.count, draws.to_vec())));
        assert_eq!(told, [(0, 16, vec![1, 7])]);
        d.take_ripe(|_, _| panic!("once"));
    }

    #[test]
    fn what_is_decided_rests_ever_longer() {
        let mut d = Draws::new(2, 1);
        let mut asked = 0;
        for _ in 0..1000 {
            let mut out = Vec::new();
            d.choose(10, PAGES, &mut out);
            asked += out.len();
            out.iter().for_each(|p| d.add(*p, NodeId(0)));
            d.take_ripe(|_, _| ());
        }
        assert!(asked < 12, "{asked}");
    }

    #[test]
    fn where_nobody_is_found_is_asked_ever_more_rarely_until_somebody_is() {
        let mut d = Draws::new(2, 100);
        let asked = |d: &mut Draws, passes: usize| {
            let mut out = Vec::new();
            (0..passes).for_each(|_| d.choose(10, PAGES, &mut out));
            out.len()
        };
        assert_eq!(asked(&mut d, 64), 7, "in the passes 0, 1, 3, 7, 15, 31 and 63");
        assert_eq!(asked(&mut d, 640), 10);
        d.add(PageNo(3), NodeId(1));
        assert_eq!(asked(&mut d, 4), 3);
    }

    #[test]
    fn what_is_decided_rests_though_somebody_is_found_there_afterwards() {
        let mut d = Draws::new(2, 8);
        let (mut asked, mut out) = (0, Vec::new());
        for _ in 0..200 {
            // Ten askings a round, of pages that are touched before the next.
            for _ in 0..10 {
                out.drain(..).for_each(|page| d.add(page, NodeId(0)));
                d.choose(10, PAGES, &mut out);
                asked += out.len();
            }
            d.take_ripe(|_, _| ());
        }
        assert!(asked < 200, "{asked} of 2000");
    }

    #[test]
    fn every_block_has_its_turn_and_every_page() {
        let mut d = Draws::new(2, 1000);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..400 {
            let mut out = Vec::new();
            d.choose(3, 5 * PAGES, &mut out);
            assert_eq!(out.len(), 3);
            out.iter().for_each(|page| d.add(*page, NodeId(0)));
            seen.extend(out);
        }
        assert_eq!(seen.len() as u64, 5 * PAGES);
    }

    #[test]
    fn the_first_pages_are_of_all_memory() {
        let (mut d, mut out) = (Draws::new(2, 8), Vec::new());
        d.choose(32, 8192, &mut out);
        assert_eq!(out.len(), 32);
        for part in 0..4 {
            let n = out.iter().filter(|p| p.0 / 2048 == part).count();
            assert!((6..=10).contains(&n), "{n} of part {part}: {out:?}");
        }
    }

    #[test]
    fn freed_pages_leave_nothing() {
        let mut d = Draws::new(2, 2);
        d.add(PageNo(3), NodeId(1));
        d.add(PageNo(3), NodeId(1));
        d.forget(PageRange { first: PageNo(0), count: 4 });
        d.add(PageNo(3), NodeId(0));
        d.take_ripe(|_, _| panic!("it was forgotten"));
        assert!(d.bytes() > 0);
    }
}
