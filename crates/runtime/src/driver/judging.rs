//! Judges whether moving pays: takes samples of moved and of held-back pages, and acts on the
//! verdict.

use homenode_sys::Span;

use super::run::Driver;
use super::state::arming::ToArm;
use super::state::probes::Probing;
use crate::guard::Verdict;
use crate::guard::holdback::{Group, block_of};
use crate::watch::numbers::PAGE;

/// Samples that one round takes of a held-back block.
const HELD: usize = 4;

impl Driver {
    /// At the start of a round: takes samples of both groups, or acts on the verdict.
    pub(super) fn judge(&mut self) {
        if self.evidence.hold.off
            || self.evidence.hold.verdict() != Verdict::Open
            || self.memory.objects.live().all(|o| o.history.moved == 0 || o.treatment.pilot)
        {
            return;
        }
        let watched = self.watching.is_some();
        let threads_change = self.evidence.seen_on.any_changes();
        match self.evidence.hold.judge(threads_change, || self.memory.is_evener()) {
            Verdict::Open if self.evidence.hold.is_exhausted() => {
                // No verdict is possible. Blocks that stay held back would only lose by that.
                self.evidence.hold.forget_pending();
                self.evidence.hold.release();
                if !watched {
                    self.arm_held();
                }
            }
            Verdict::Open if watched || !self.within_budget() => {}
            Verdict::Open => self.take_samples(),
            Verdict::Pays | Verdict::AtHome | Verdict::Evener => {
                self.evidence.hold.forget_pending();
                if !watched {
                    self.arm_held();
                }
            }
            Verdict::NoGain | Verdict::Harms => {
                self.evidence.hold.forget_pending();
                self.undo();
            }
        }
    }

    /// Arms one page in each of some moved blocks, and of some held-back blocks. Where there are
    /// few held-back blocks, it arms several pages in each.
    fn take_samples(&mut self) {
        self.evidence.hold.forget_pending();
        let wanted = self.evidence.hold.wanted();
        if wanted == [0, 0] {
            return;
        }
        let [moved, held] = [Group::Moved, Group::Held].map(|group| self.blocks_by_lot(group));
        // Without the other group there is nothing to compare.
        if held.is_empty() && self.evidence.hold.samples().1.all == 0 {
            return;
        }
        let of_each = (wanted[1] / held.len().max(1)).clamp(1, HELD);
        let held = held.iter().flat_map(|b| self.pages_by_lot(*b, of_each)).take(wanted[1]);
        let has_moved = |page: &usize| self.memory.objects.get(*page).is_some_and(|o| o.has_moved(*page));
        let moved = moved.iter().flat_map(|b| self.pages_by_lot(*b, 1)).filter(has_moved).take(wanted[0]);
        let picked: Vec<(usize, Group)> =
            held.map(|p| (p, Group::Held)).chain(moved.map(|p| (p, Group::Moved))).collect();
        let mut alone: Vec<Span> = picked.iter().map(|(page, _)| Span::new(*page, PAGE)).collect();
        alone.sort_unstable_by_key(|s| s.start);
        // Nobody touches pages that could not be armed. The next round forgets them.
        if self.arm(&ToArm::alone(alone)) > 0 {
            picked.into_iter().for_each(|(page, group)| self.evidence.hold.sampled(page, group));
        }
    }

    /// All blocks of a group, in an order that differs from round to round. So samples come from
    /// all memory, and the verdict holds for all memory.
    fn blocks_by_lot(&self, group: Group) -> Vec<Span> {
        let mut blocks = Vec::new();
        for object in self.memory.objects.live().filter(|o| o.treatment.is_armed_whole()) {
            let (whole, block) = (object.whole_pages(), block_of(object.bytes));
            let all = Span { start: whole.start, end: whole.end }.pieces(block);
            blocks.extend(all.filter(|b| self.evidence.hold.group(b.start, block) == group));
        }
        blocks.sort_by_cached_key(|b| self.draw(b.start));
        blocks
    }

    /// `count` different pages of the block, others each round. Leaves out pages that the program
    /// has ruled on.
    fn pages_by_lot(&self, block: Span, count: usize) -> impl Iterator<Item = usize> {
        let (pages, first) = (block.pages(), self.draw(block.start));
        let count = count.min(pages);
        let page = move |i| block.start + (first + i * (pages / count)) % pages * PAGE;
        (0..count).map(page).filter(|page| !self.memory.ruled.has(*page))
    }

    /// A number that differs from round to round.
    fn draw(&self, salt: usize) -> usize {
        let x = (salt as u64 ^ self.times().rounds.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
    }

    /// Moves everything back: each block to its former home. It moves as much as the budget has
    /// room for now, and the rest later.
    fn undo(&mut self) {
        self.mover.disarm();
        // Other threads of the team may have touched pages before the disarming.
        self.take_touches();
        self.memory.objects.note_contested();
        self.stop_watching();
        self.evidence.probing = Probing::default();
        self.moves.later.undo();
        self.move_ranges(self.memory.moved());
        self.note_undone(0);
    }

    /// Arms the held-back blocks, as far as the budget has room.
    fn arm_held(&mut self) {
        self.arming.arms_all();
        self.wait_held();
        self.take_turns();
    }
}
