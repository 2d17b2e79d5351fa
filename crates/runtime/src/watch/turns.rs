//! The order in which blocks of pages have their turn: each once a pass, and any part of a pass is
//! spread over all of the memory.
//!
//! Asking takes time, so a short run may see a small part of its memory. In the order of addresses
//! that part would be the beginning of the first array, which the first thread uses alone.
//!
//! The next block is 0.618 times all blocks further on, around the end: the golden section, whose
//! multiples lie about evenly. Steps of a half, a quarter and so on would meet one node alone where
//! the pages were dealt out to the nodes in turn.

use homenode_model::PageNo;

/// Pages of a block.
pub const PAGES: u64 = 16;
/// Blocks looked at in one call.
pub(super) const LOOKS: u64 = 4096;
/// The golden section.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// A number that looks random.
pub(super) const fn mix(n: u64) -> u64 {
    let x = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 31)
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// Blocks for which the step is.
    blocks: u64,
    step: u64,
    done: u64,
    pass: u64,
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Turns {
    /// The next block of `blocks`, and the number of the pass; nothing if there are none.
    pub fn next(&mut self, blocks: u64) -> Option<(u64, u64)> {
        if blocks == 0 {
            return None;
        }
        if self.blocks != blocks {
            let mut step = ((blocks as f64 * GOLDEN) as u64).max(1);
            while common_divisor(step, blocks) != 1 {
                step += 1;
            }
            (self.blocks, self.step) = (blocks, step);
        }
        if self.done >= blocks {
            (self.done, self.pass) = (0, self.pass + 1);
        }
        let block = (u128::from(self.done) * u128::from(self.step) % u128::from(blocks)) as u64;
        self.done += 1;
        Some((block, self.pass))
    }

    /// Pages of at most `wanted` blocks of those below `end`; another page of a block each time.
    pub fn choose(&mut self, wanted: usize, end: u64, out: &mut Vec<PageNo>) {
        let blocks = end.div_ceil(PAGES);
        for _ in 0..blocks.min(LOOKS) {
            if out.len() >= wanted {
                return;
            }
            let Some((block, pass)) = self.next(blocks) else { return };
            out.push(PageNo(block * PAGES + mix(block ^ pass << 32) % PAGES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_its_turn_and_a_part_of_a_pass_is_of_all_memory() {
        let blocks = 300;
        let (mut turns, mut pages) = (Turns::default(), Vec::new());
        while pages.len() < blocks {
            turns.choose(pages.len() + 7, blocks as u64 * PAGES, &mut pages);
        }
        let of = |pages: &[PageNo]| pages.iter().map(|p| p.0 / PAGES).collect::<Vec<_>>();
        let mut first = of(&pages[..blocks]);
        assert!(first[..75].iter().filter(|b| **b < 150).count().abs_diff(37) < 4, "{first:?}");
        first.sort_unstable();
        assert_eq!(first, (0..blocks as u64).collect::<Vec<_>>());
        // Every page comes, in time.
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..400 {
            let mut pages = Vec::new();
            turns.choose(10, 10 * PAGES, &mut pages);
            seen.extend(pages);
        }
        assert_eq!(seen.len() as u64, 10 * PAGES);
    }

    #[test]
    fn every_number_of_blocks_is_gone_through_whole() {
        for blocks in (1..200).chain([1 << 20]) {
            let mut turns = Turns::default();
            let mut seen = vec![false; blocks as usize];
            for _ in 0..blocks {
                seen[turns.next(blocks).unwrap().0 as usize] = true;
            }
            assert!(seen.iter().all(|s| *s), "{blocks}");
            assert_eq!(turns.next(blocks), Some((0, 1)));
        }
        assert_eq!(Turns::default().next(0), None);
    }

    #[test]
    fn a_part_of_a_pass_meets_all_nodes_whatever_the_distribution() {
        let blocks = 1 << 14;
        for stretch in [1, 2, 8, 64, 1 << 12] {
            let (mut turns, mut nodes) = (Turns::default(), [0_u32; 4]);
            for _ in 0..32 {
                let (block, _) = turns.next(blocks).unwrap();
                nodes[(block / stretch % 4) as usize] += 1;
            }
            assert!(nodes.iter().all(|n| (5..=11).contains(n)), "{stretch} blocks each: {nodes:?}");
        }
    }
}
