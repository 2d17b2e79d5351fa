//! Moves of pages, all of them: neighbours that move together are one.

use homenode_model::{NodeId, PageNo, Ps, ThreadId};

/// Why a page moved, as stage 3 knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveCause {
    /// It was armed and followed its toucher.
    NextTouch,
    /// The policy decided so.
    Policy,
}

/// A run of pages that moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When the first of them began to move.
    pub at: Ps,
    /// What they cost the thread, waiting for other moves included.
    pub cost: Ps,
    /// First page, by canonical address.
    pub page: u32,
    /// How many.
    pub pages: u32,
    /// The thread that moved them.
    pub thread: ThreadId,
    /// The region, or [`NO_REGION`](super::NO_REGION).
    pub region: u32,
    /// Where in the sequence of iteration marks: how many came before.
    pub(super) marks: u32,
    /// Former home.
    pub from: NodeId,
    /// New home.
    pub to: NodeId,
    /// Why.
    pub cause: MoveCause,
    /// They came back to a node where they had lived.
    pub ping_pong: bool,
}

impl Move {
    /// Whether `next` goes on where this ends, in all but time.
    fn goes_on(&self, next: &Self) -> bool {
        let key = |m: &Self| (m.marks, m.thread, m.region, m.from, m.to, m.cause, m.ping_pong);
        key(self) == key(next) && self.page + self.pages == next.page
    }

    fn join(&mut self, next: &Self) {
        self.pages += next.pages;
        self.cost += next.cost;
        self.at = self.at.min(next.at);
    }
}

/// The moves of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    all: Vec<Move>,
    /// Neighbours of one thread are one, whatever time lies between: what was too many before.
    joined: bool,
    /// Moves of single pages that are not listed.
    lost: u64,
}

impl Moves {
    /// Adds one. `most`: how many may be kept.
    pub(super) fn push(&mut self, new: Move, most: usize) {
        if self.extends_last(&new) {
            return;
        }
        if self.all.len() >= most {
            if !self.shrink(most) {
                self.lost += 1;
                return;
            }
            if self.extends_last(&new) {
                return;
            }
        }
        self.all.push(new);
    }

    /// Joins a move to the last one, if it goes on with that.
    fn extends_last(&mut self, new: &Move) -> bool {
        let joined = self.joined;
        let last = self.all.last_mut();
        let last = last.filter(|l| l.goes_on(new) && (joined || l.at + l.cost == new.at));
        last.map(|l| l.join(new)).is_some()
    }

    /// Joins neighbours; whether there is room again.
    #[cold]
    fn shrink(&mut self, most: usize) -> bool {
        if self.lost > 0 {
            return false;
        }
        self.joined = true;
        self.all.sort_by_key(|m| (m.marks, m.thread, m.region, m.from, m.to, m.cause, m.ping_pong, m.page));
        let mut kept: Vec<Move> = Vec::new();
        for next in &self.all {
            match kept.last_mut() {
                Some(last) if last.goes_on(next) => last.join(next),
                _ => kept.push(*next),
            }
        }
        kept.sort_by_key(|m| (m.at, m.page));
        self.all = kept;
        self.all.len() < most - most / 4
    }

    pub(super) fn finish(&mut self) {
        self.all.sort_by_key(|m| (m.at, m.page));
    }

    /// The moves by time.
    pub fn all(&self) -> &[Move] {
        &self.all
    }

    /// Whether neighbours are one though time lies between their moves.
    pub const fn joined(&self) -> bool {
        self.joined
    }

    /// Moves of single pages that are not listed.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

/// The page of a canonical number that has been checked.
pub(super) const fn page(page: PageNo) -> u32 {
    page.0 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_move(at: u64, page: u32) -> Move {
        Move {
            at: Ps(at),
            cost: Ps(10),
            page,
            pages: 1,
            thread: ThreadId(0),
            region: 0,
            marks: 0,
            from: NodeId(0),
            to: NodeId(1),
            cause: MoveCause::Policy,
            ping_pong: false,
        }
    }

    #[test]
    fn pages_that_move_one_after_the_other_are_one_run() {
        let mut moves = Moves::default();
        for (at, page) in [(0, 5), (10, 6), (20, 7), (31, 8), (41, 10)] {
            moves.push(a_move(at, page), 100);
        }
        let found: Vec<_> = moves.all().iter().map(|m| (m.at.0, m.page, m.pages, m.cost.0)).collect();
        assert_eq!(found, [(0, 5, 3, 30), (31, 8, 1, 10), (41, 10, 1, 10)]);
    }

    #[test]
    fn too_many_are_joined_before_any_is_lost() {
        let mut moves = Moves::default();
        for i in 0..1000 {
            moves.push(a_move(u64::from(i) * 100, i), 50);
        }
        assert_eq!((moves.all().len(), moves.joined(), moves.lost()), (1, true, 0));
        assert_eq!(moves.all()[0].pages, 1000);
        // What cannot be joined is counted.
        for i in 0..1000 {
            moves.push(a_move(i * 1000, 5000 + 2 * i as u32), 50);
        }
        let listed: u64 = moves.all().iter().map(|m| u64::from(m.pages)).sum();
        assert_eq!(listed + moves.lost(), 2000);
        assert!(moves.all().len() <= 50 && moves.lost() > 0);
    }
}
