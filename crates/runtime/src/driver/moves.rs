//! Moves pages in turns, as far as the budget has room, and tells policy and recording the outcome.

use homenode_model::{MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange};
use homenode_sys::HUGE;
use homenode_wire::facts::KnownMoves;
use homenode_wire::live::MoveOrigin;

use super::run::Driver;
use super::state::moves::WantedMove;
use super::state::waiting;
use crate::guard::Verdict;
use crate::stream::MovedPage;
use crate::watch::numbers::PAGE;

/// Most pages that move in one turn beside the team: a huge page, about a millisecond. Marks of the
/// program wait for a turn.
const TURN: u64 = (HUGE / PAGE) as u64;
/// Time between two looks for a region that runs.
const REST: Ns = Ns(2_000_000);

/// Moves whose outcome no policy waits for.
fn untold(moves: Vec<(PageNo, NodeId)>) -> Vec<WantedMove> {
    moves.into_iter().map(|(page, to)| WantedMove { page, to, told: false }).collect()
}

impl Driver {
    /// Moves pages that the policy knows nothing of. Returns how many moved.
    pub(super) fn move_ranges(&mut self, ranges: impl IntoIterator<Item = (PageRange, NodeId)>) -> u64 {
        for (pages, to) in ranges {
            self.moves.later.forget(pages);
            self.moves.list.add(pages, to, false);
        }
        self.move_collected()
    }

    /// Moves all collected pages, as far as the budget has room. Returns how many moved.
    pub(super) fn move_collected(&mut self) -> u64 {
        let moves = self.moves.list.take(self.memory.objects.numbers());
        if moves.is_empty() { 0 } else { self.move_in_turns(moves).0 }
    }

    /// Moves pages in one call, because the kernel is fastest with many. Tells the policy the
    /// outcome of each page that it wanted moved. Returns how many moved.
    pub(super) fn move_pages(&mut self, moves: &[WantedMove]) -> u64 {
        let moves: Vec<(&WantedMove, usize)> =
            moves.iter().filter_map(|m| Some((m, self.memory.address(m.page)?))).collect();
        let list: Vec<(usize, NodeId)> = moves.iter().map(|(m, address)| (*address, m.to)).collect();
        if list.is_empty() {
            return 0;
        }
        let (mut moved, mut ping_pongs) = (0, 0);
        list.iter().for_each(|(address, _)| self.leave_for_now(*address));
        let begin = self.account.thread_time();
        let mut results = Vec::with_capacity(list.len());
        self.mover.move_pages(&list, &mut results);
        let cost = Ns((self.account.thread_time() - begin).0 / list.len() as u64);
        let (now, unasked) = (self.account.now(), self.cause_of_moves());
        for ((m, address), result) in moves.into_iter().zip(results) {
            if let Some(o) = self.memory.objects.at(address) {
                let before = o.home(m.page).filter(|home| *home != m.to);
                if let (Some(stream), Some(from)) = (&mut self.recording.stream, before) {
                    let cause = if m.told { MoveOrigin::Policy } else { unasked };
                    let moved = MovedPage { from, to: m.to, cause, cost: Some(cost), outcome: result };
                    stream.moved(o, m.page.0 - o.pages.first.0, moved, now);
                }
                match result {
                    MoveResult::Moved => {
                        moved += 1;
                        ping_pongs += u64::from(o.note_move(m.page, m.to));
                    }
                    MoveResult::AlreadyThere => o.set_home(m.page, m.to),
                    // The rest of a huge page may have taken this page elsewhere.
                    MoveResult::Busy => {
                        let mut now = Vec::with_capacity(1);
                        self.mover.homes(address, 1, None, &mut now);
                        now.into_iter().flatten().for_each(|node| o.set_home(m.page, node));
                    }
                    _ => {}
                }
            }
            if m.told {
                self.policy.outcome(&MoveOutcome { page: m.page, to: m.to, result, cost });
            }
        }
        self.watch_again();
        self.moves.counts.by_kernel(moved, ping_pongs);
        moved
    }

    /// Whether it is time to look for room for waiting moves.
    pub(super) fn is_move_due(&self, now: Ns) -> bool {
        self.moves.later.is_due(now) && (!self.account.is_stopped() || self.moves.later.is_undoing())
    }

    /// Moves waiting pages, as far as the budget has room. Returns how many moved.
    pub(super) fn move_later(&mut self) -> u64 {
        self.moves.later.looks(self.account.now());
        let mut moved = 0;
        loop {
            if self.moves.overlap.is_chosen() || self.moves.overlap.takes_the_rest() {
                return moved;
            }
            let room = self.turn();
            let moves = self.moves.later.take_turn(room);
            if moves.is_empty() {
                return moved;
            }
            let n = moves.len();
            let (now, waits) = self.move_in_turns(untold(moves));
            moved += now;
            if waits == n {
                return moved;
            }
        }
    }

    /// Moves pages in turns, as far as the budget has room. The others wait, or their policy is
    /// told that they stay. Returns how many moved, and how many wait.
    pub(super) fn move_in_turns(&mut self, mut moves: Vec<WantedMove>) -> (u64, usize) {
        let mut room = self.room_asleep(&moves);
        if (moves.len() as u64) > room && room > 0 {
            // Huge pages move whole, so all wanted pages of one have the same turn.
            moves.sort_by_cached_key(|m| self.memory.address(m.page));
        }
        let (mut moved, mut rest) = (0, &moves[..]);
        loop {
            let (now, waits) = rest.split_at(self.whole_units(rest, room));
            if now.is_empty() {
                break;
            }
            moved += self.move_now(now);
            rest = waits;
            room = self.room_asleep(rest);
        }
        rest.iter().for_each(|m| self.put_off(m));
        self.note_undone(moved);
        (moved, rest.len())
    }

    /// Whether pages wait for a thread of homenode's own to move them while the team runs.
    pub fn wants_mover(&self) -> bool {
        self.moves.overlap.is_on() && self.moves.later.waits()
    }

    /// Runs in a thread of homenode's own: moves some waiting pages while the team runs. Returns
    /// the time until the next call; `None`: nothing waits.
    pub fn move_beside(&mut self) -> Option<Ns> {
        self.beside(|d| d.timed(|d, _| d.heavy(Self::move_beside_now)))
    }

    fn move_beside_now(&mut self) -> Option<Ns> {
        let is_over = self.account.is_stopped() && !self.moves.later.is_undoing();
        if is_over || !self.moves.later.waits() {
            return None;
        }
        if !self.moves.overlap.is_on() {
            return Some(REST);
        }
        // The team does not wait, so the room for time that it waits for does not matter.
        let room = self.room_at(self.moves.later.price().0, Ns(1)).min(TURN);
        let mut moves = untold(self.moves.later.take_turn(room));
        moves.sort_by_cached_key(|m| self.memory.address(m.page));
        let (now, waits) = moves.split_at(self.whole_units(&moves, room));
        waits.iter().for_each(|m| self.put_off(m));
        if now.is_empty() {
            return Some(waiting::GAP);
        }
        let begin = self.account.thread_time();
        let moved = self.move_pages(now);
        let took = self.account.thread_time() - begin;
        self.moves.later.took(took, now.len() as u64);
        self.moves.overlap.moved_beside(now.len() as u64, took);
        self.note_undone(moved);
        Some(Ns::ZERO)
    }

    /// No thread could be made that moves pages while the team runs.
    pub fn has_no_mover(&mut self) {
        self.moves.overlap.is_unable();
        self.note("all pages moved while the team slept: no thread could be made for it".into());
    }

    /// What moves of pages with a known target cost.
    pub fn known_moves(&self) -> KnownMoves {
        self.moves.overlap.told()
    }

    /// If pages go back, counts that `moved` more have gone back.
    pub(super) fn note_undone(&mut self, moved: u64) {
        let Some(undone) = self.moves.later.went_back(moved) else { return };
        let why = match self.evidence.hold.verdict() {
            Verdict::NoGain => "made no difference",
            _ => "made it worse",
        };
        self.account.stop(format!("moving {why} (presence samples); {undone} pages were moved back"));
    }

    /// How many of these pages move now, while the team sleeps.
    fn room_asleep(&self, moves: &[WantedMove]) -> u64 {
        // A policy that waits for the outcome gets it now.
        let leaves = self.moves.overlap.takes_the_rest() && !moves.iter().any(|m| m.told);
        if leaves { 0 } else { self.turn() }
    }

    /// Pages of the next turn; 0 if there is no room.
    fn turn(&self) -> u64 {
        let (price, most) = self.moves.later.price();
        self.room_at(price, price).min(most)
    }

    /// How many of `moves` make a turn of at most `room` pages that ends with a whole huge page.
    fn whole_units(&self, moves: &[WantedMove], room: u64) -> usize {
        let n = room.min(moves.len() as u64) as usize;
        let unit = |m: &WantedMove| self.memory.address(m.page).map(|a| a / HUGE);
        match (n.checked_sub(1).map(|last| unit(&moves[last])), moves.get(n).map(unit)) {
            (Some(last), Some(next)) if last == next => {
                moves[..n].iter().rposition(|m| unit(m) != last).map_or(0, |i| i + 1)
            }
            _ => n,
        }
    }

    fn move_now(&mut self, moves: &[WantedMove]) -> u64 {
        let (begin, wall) = (self.account.thread_time(), self.account.now());
        let moved = self.move_pages(moves);
        let n = moves.len() as u64;
        self.moves.later.took(self.account.thread_time() - begin, n);
        self.moves.overlap.moved_asleep(n, self.account.now() - wall);
        moved
    }

    /// Puts a move off for lack of room.
    fn put_off(&mut self, m: &WantedMove) {
        let home = self.memory.home(m.page);
        self.moves.later.put_off(m.page, m.to, home, m.told);
        if m.told {
            let result = MoveResult::Busy;
            self.policy.outcome(&MoveOutcome { page: m.page, to: m.to, result, cost: Ns::ZERO });
        }
    }

    /// Whether pages wait for the team to run, and the budget has room for them.
    pub(super) fn is_cut_short(&self) -> bool {
        self.moves.overlap.told().beside > 0 && self.moves.later.waits() && self.turn() > 0
    }

    /// Pages that the budget had no room to move; the verb for the report; whether the budget is
    /// the only reason.
    pub(super) fn not_moved(&self) -> (u64, &'static str, bool) {
        let back = self.moves.later.is_undoing();
        let what = if back { "moved back" } else { "moved" };
        (self.moves.later.left_out(), what, back || !self.account.is_stopped())
    }
}
