//! Whether moving pays, judged by comparison with held-back blocks.
//!
//! # Problem
//!
//! A faster iteration after a move does not show that the move helped: the program may have entered
//! another phase. With one run there is no second run to compare.
//!
//! # Approach
//!
//! The driver holds back one block in [`ONE_IN`] of the candidates. Afterwards it arms pages of
//! both groups one by one, at the start of iterations, and sees who touches them. If moved pages
//! are touched from remote nodes less often than held-back pages, moving pays, and the held-back
//! blocks are released. If more often, moving harms, and moved pages go back. These are *presence*
//! samples: who came first, not how often.
//!
//! The two groups differ. Moved pages were touched from another node before; held-back pages are of
//! all kinds, and many would never have moved. So the moved pages must speak against moving, too: a
//! page that its new node touches more often than its old node does not go back. If the new nodes
//! touch the moved pages clearly more often, moving pays, whatever the held-back pages show. If the
//! old nodes do, moving harms.
//!
//! Without a difference, moving pays if pages are spread more evenly over the nodes than before,
//! because the memories work side by side. Otherwise moved pages go back. It takes many samples to
//! say that there is no difference. If there are fewer, and no more can be had, there is no
//! verdict, and everything is released.
//!
//! Pages of one block have mostly the same user. So the noise of a comparison is that of as many
//! samples as there are blocks ([`PIECE`]), not pages. An object of 8 MiB has six held-back blocks.

use homenode_model::NodeId;
use homenode_wire::facts::Verdict;

use std::collections::BTreeSet;

use super::super::watch::numbers::PAGE;

/// One block in this many is held back: 5 %.
pub const ONE_IN: u64 = 20;
/// Samples of each group that a verdict needs.
pub const ENOUGH: u64 = 24;
/// Samples of each group that the verdict *no difference* needs. With fewer, a difference of 20
/// points would often not show.
const MANY: u64 = 12 * ENOUGH;
/// Iterations in which samples are taken. A small program may have no block to hold back, or nobody
/// touches it.
const ROUNDS: u32 = 48;
/// A difference of the two shares counts if it is larger than this many standard deviations of
/// chance: before there are [`MANY`] samples, and at that last comparison. The groups are compared
/// after each round of samples, so chance has many tries before: with two standard deviations it
/// gave a verdict in one of four runs of a program without a difference.
const SIGMAS: [f64; 2] = [3.0, 2.0];
/// Bytes of memory whose samples count as one in the noise: the shortest block.
const PIECE: usize = 64 << 10;
/// Pages of each group that are armed at the start of an iteration.
const AT_ONCE: usize = 16;

/// The group of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The block may move.
    Moved,
    /// The block is held back.
    Held,
}

/// See the module.
#[derive(Debug, Default)]
pub struct HoldBack {
    /// Nothing is held back or judged.
    pub off: bool,
    samples: [RemoteShare; 2],
    /// Pieces of memory that the samples of each group are of.
    pieces: [BTreeSet<usize>; 2],
    /// Touches of moved pages by the node that they had left.
    back: u64,
    verdict: Option<Verdict>,
    pending: Vec<(usize, Group)>,
    rounds: u32,
    released: bool,
}

/// Touches, and those of them from remote nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteShare {
    /// Touches from remote nodes.
    pub remote: u64,
    /// All touches.
    pub all: u64,
}

impl RemoteShare {
    fn count(self) -> f64 {
        self.all as f64
    }

    /// The remote share.
    fn part(self) -> f64 {
        self.remote as f64 / self.count()
    }
}

/// Bytes of a block that is held back as a whole. An object has about 64 blocks, and a block is at
/// most a huge page, so that holding back splits no more mappings than needed.
pub fn block_of(object_bytes: usize) -> usize {
    (object_bytes / 64).next_power_of_two().clamp(PIECE, 2 << 20)
}

impl HoldBack {
    /// Without samples. `off`: hold nothing back and do not judge.
    pub fn new(off: bool) -> Self {
        Self { off, ..Self::default() }
    }

    /// The group of the block at `address`, in blocks of `block` bytes.
    pub fn group(&self, address: usize, block: usize) -> Group {
        if self.verdict.is_none() && !self.released && self.was_held(address, block) {
            Group::Held
        } else {
            Group::Moved
        }
    }

    /// Whether the block at `address` is or was held back.
    pub fn was_held(&self, address: usize, block: usize) -> bool {
        let number = (address / block) as u64;
        // One of each ONE_IN in a row, so that every part of a small object has some. Which of them
        // is mixed well, so that held-back blocks have no period in common with a distribution.
        let x = (number / ONE_IN).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
        !self.off && number % ONE_IN == mixed % ONE_IN
    }

    /// Number of pages of each group (moved, held back) to arm in this round; none after the last
    /// round.
    pub fn wanted(&mut self) -> [usize; 2] {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            return [0, 0];
        }
        self.samples.map(|s| if s.all < MANY { AT_ONCE } else { 0 })
    }

    /// Whether all rounds are over without a verdict. Blocks without a verdict must not stay held
    /// back.
    pub fn is_exhausted(&self) -> bool {
        let [moved, held] = self.samples;
        // If all pages are watched, there is one held-back sample for some twenty of moved pages.
        let nobody_there = [ENOUGH, MANY].iter().any(|n| moved.all > 2 * ONE_IN * n && held.all < *n);
        (self.rounds > ROUNDS || nobody_there) && self.verdict.is_none() && !self.released
    }

    /// Holds nothing back any more, whatever the verdict.
    pub fn release(&mut self) {
        self.released = true;
    }

    /// Counts a touch by `node` that was not asked for, of the page at `address` that is at `home`
    /// and was at `first`. Returns the home that the touch was compared with. `None`: there is a
    /// verdict already, and its numbers stay.
    pub fn saw(
        &mut self,
        (group, address): (Group, usize),
        (home, first): (NodeId, NodeId),
        node: NodeId,
    ) -> Option<NodeId> {
        if self.verdict.is_some() {
            return None;
        }
        // Samples and seams bring neighbours along. A held-back page counts by the home at which it
        // was held.
        let home = if group == Group::Held { first } else { home };
        let share = &mut self.samples[group as usize];
        share.all += 1;
        share.remote += u64::from(home != node);
        self.pieces[group as usize].insert(address / PIECE);
        self.back += u64::from(group == Group::Moved && home != node && first == node);
        Some(home)
    }

    /// Notes that a page was armed as a sample of its group.
    pub fn sampled(&mut self, page: usize, group: Group) {
        self.pending.push((page & !(PAGE - 1), group));
    }

    /// Drops all samples: they are of pages that are about to move once more.
    pub fn start_again(&mut self) {
        if self.verdict.is_none() {
            (self.samples, self.pieces, self.back, self.rounds) = Default::default();
        }
        self.pending.clear();
    }

    /// Whether a sample is pending.
    pub fn is_sampling(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Counts the touch of a page, if it was a sample. `homes`: its home now, and its first home.
    /// Returns its group and the home that it was compared with, if it was compared.
    pub fn touched(
        &mut self,
        page: usize,
        homes: Option<(NodeId, NodeId)>,
        node: NodeId,
    ) -> Option<(Group, Option<NodeId>)> {
        let i = self.pending.iter().position(|(p, _)| *p == page & !(PAGE - 1))?;
        let (_, group) = self.pending.swap_remove(i);
        Some((group, homes.and_then(|homes| self.saw((group, page), homes, node))))
    }

    /// Drops samples that nobody touched.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// The verdict by the samples. Once there is one it stays. `is_evener`: whether pages are
    /// spread more evenly than before they moved. `threads_change`: threads change nodes. A page is
    /// then remote wherever it is, so a verdict against moving is not given.
    pub fn judge(&mut self, threads_change: bool, is_evener: impl FnOnce() -> bool) -> Verdict {
        if self.verdict.is_none() {
            let against = |v: &Verdict| matches!(v, Verdict::NoGain | Verdict::Harms);
            self.verdict = self.compare(is_evener).filter(|v| !(threads_change && against(v)));
        }
        self.verdict()
    }

    fn compare(&self, is_evener: impl FnOnce() -> bool) -> Option<Verdict> {
        let [moved, held] = self.samples;
        if moved.all.min(held.all) < ENOUGH {
            return None;
        }
        let is_last = moved.all.min(held.all) >= MANY;
        let sigmas = SIGMAS[usize::from(is_last)];
        let both = RemoteShare { remote: moved.remote + held.remote, all: moved.all + held.all };
        let [of_moved, of_held] = [&self.pieces[0], &self.pieces[1]].map(|pieces| pieces.len() as f64);
        let noise = sigmas * (both.part() * (1.0 - both.part()) * (1.0 / of_moved + 1.0 / of_held)).sqrt();
        let gain = held.part() - moved.part();
        if gain > noise {
            return Some(Verdict::Pays);
        }
        let (here, back) = ((moved.all - moved.remote) as f64, self.back as f64);
        if here - back > sigmas * (here + back).sqrt() {
            return Some(Verdict::AtHome);
        }
        let returns = back - here > sigmas * (here + back).sqrt();
        if returns || -gain > noise && back >= here {
            return Some(Verdict::Harms);
        }
        if !is_last {
            return None;
        }
        Some(if is_evener() { Verdict::Evener } else { Verdict::NoGain })
    }

    /// The verdict, if there is one.
    pub fn verdict(&self) -> Verdict {
        self.verdict.unwrap_or(Verdict::Open)
    }

    /// Samples of moved pages, and of held-back pages.
    pub fn samples(&self) -> (RemoteShare, RemoteShare) {
        (self.samples[0], self.samples[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_in_twenty_is_held_back_and_some_of_each_part() {
        let h = HoldBack::default();
        let all: Vec<usize> =
            (0..20_000).filter(|i| h.group(i * (64 << 10), 64 << 10) == Group::Held).collect();
        let held = all.len();
        assert_eq!(held, 1000);
        assert!(all.windows(2).all(|w| w[1] - w[0] < 2 * ONE_IN as usize));
        let gaps: std::collections::BTreeSet<usize> = all.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.len() > 20, "no period: {gaps:?}");
        let mut released = HoldBack::default();
        released.release();
        let was = (0..20_000).filter(|i| released.was_held(i * (64 << 10), 64 << 10)).count();
        assert_eq!((was, released.group(0, 64 << 10)), (held, Group::Moved), "it was, and is no more");
        assert!(HoldBack::new(true).group(0, 64 << 10) == Group::Moved);
    }

    /// Groups of `all` samples each: `moved` and `held` of them are remote. `back` of the moved
    /// pages' samples come from the node that the page has left. Pages moved from node 1 to 0 or
    /// are held back on 0; there is a third node. Each sample is of a block of its own.
    fn of(all: u64, [moved, back]: [u64; 2], held: u64) -> HoldBack {
        let mut h = HoldBack::default();
        for i in 0..all {
            let page = (16 + i as usize) * PIECE;
            h.sampled(page, Group::Moved);
            let node = if i < back { 1 } else { 2 * u16::from(i < moved) };
            assert!(h.touched(page + 8, Some((NodeId(0), NodeId(1))), NodeId(node)).is_some());
            h.sampled(page, Group::Held);
            let node = NodeId(u16::from(i < held));
            assert_eq!(
                h.touched(page + 8, Some((NodeId(0), NodeId(0))), node),
                Some((Group::Held, Some(NodeId(0))))
            );
        }
        h
    }

    fn judged(all: u64, moved: [u64; 2], held: u64) -> Verdict {
        let [even, uneven] = [true, false].map(|is_evener| of(all, moved, held).judge(false, || is_evener));
        assert_eq!(even, uneven);
        even
    }

    #[test]
    fn the_groups_are_compared() {
        assert_eq!(judged(ENOUGH, [1, 1], 12), Verdict::Pays);
        assert_eq!(judged(ENOUGH, [20, 20], 2), Verdict::Harms);
        assert_eq!(judged(ENOUGH - 1, [1, 1], 12), Verdict::Open);
        assert_eq!(HoldBack::default().judge(false, || true), Verdict::Open);
        // Where threads change nodes, nothing is said against moving.
        let judged = |moved, held, change| of(ENOUGH, [moved, moved], held).judge(change, || true);
        assert_eq!(judged(20, 2, true), Verdict::Open);
        assert_eq!(judged(1, 12, true), Verdict::Pays);
    }

    #[test]
    fn what_is_used_more_from_where_it_is_now_than_from_where_it_was_stays() {
        // Nearly all was right before: few of those held back would have moved.
        assert_eq!(judged(ENOUGH, [0, 0], 0), Verdict::AtHome);
        assert_eq!(
            judged(ENOUGH, [4, 4], 0),
            Verdict::AtHome,
            "more than those held back, but less than half"
        );
        assert_eq!(judged(ENOUGH, [9, 9], 9), Verdict::Open, "9 and 15 may be chance");
        assert_eq!(judged(ENOUGH, [14, 0], 0), Verdict::AtHome, "10 and 0 are not; others use it, too");
        assert_eq!(judged(ENOUGH, [22, 22], 22), Verdict::Harms, "2 and 22: the old node uses it");
        assert_eq!(
            judged(ENOUGH, [16, 6], 2),
            Verdict::Open,
            "it would be no better where it was, by 8 and 6"
        );
    }

    #[test]
    fn no_difference_pays_where_the_memories_share_it_more_evenly() {
        let all = MANY / 2;
        assert_eq!(
            judged(all, [all * 3 / 4, all / 4], all * 3 / 4),
            Verdict::Open,
            "it takes more samples to say so"
        );
        for (is_evener, verdict) in [(false, Verdict::NoGain), (true, Verdict::Evener)] {
            assert_eq!(of(MANY, [MANY * 3 / 4, MANY / 4], MANY * 3 / 4).judge(false, || is_evener), verdict);
        }
    }

    #[test]
    fn a_held_page_that_a_sample_took_along_counts_where_it_was_held() {
        let mut h = HoldBack::default();
        h.saw((Group::Held, 0), (NodeId(1), NodeId(0)), NodeId(1));
        h.saw((Group::Held, 0), (NodeId(1), NodeId(0)), NodeId(0));
        assert_eq!(h.samples().1, RemoteShare { remote: 1, all: 2 });
    }

    #[test]
    fn held_blocks_that_nobody_uses_any_more_are_let_go() {
        let mut h = of(ENOUGH + 6, [18, 18], 18);
        let saw = |h: &mut HoldBack| {
            assert_eq!(h.saw((Group::Moved, 0), (NodeId(0), NodeId(1)), NodeId(1)), Some(NodeId(0)))
        };
        (0..ONE_IN * MANY).for_each(|_| saw(&mut h));
        assert!(!h.is_exhausted(), "one in twenty is what there should be");
        (0..ONE_IN * MANY).for_each(|_| saw(&mut h));
        assert!(h.is_exhausted() && of(ENOUGH + 6, [18, 18], 18).judge(false, || true) == Verdict::Open);
    }

    #[test]
    fn sampling_comes_to_an_end() {
        let mut h = HoldBack::default();
        let asked: usize = (0..1000).map(|_| h.wanted().iter().sum::<usize>()).sum();
        assert_eq!(asked, ROUNDS as usize * 2 * AT_ONCE);
        assert!(h.is_exhausted());
        h.release();
        assert!(!h.is_exhausted() && (0..1000).all(|i| h.group(i << 16, 64 << 10) == Group::Moved));
    }

    #[test]
    fn blocks_are_neither_tiny_nor_larger_than_a_huge_page() {
        assert_eq!(
            [block_of(64 << 10), block_of(16 << 20), block_of(1 << 30)],
            [64 << 10, 256 << 10, 2 << 20]
        );
    }
}
