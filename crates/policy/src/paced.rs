//! Paced: another policy's moves, one at a time, so much time apart.
//!
//! # Problem
//!
//! A policy that decides at the end of an iteration hands over all its moves at once, and whoever
//! carries them out keeps the program waiting until the last one is done. Where a page costs a
//! millisecond and there are thousands, that is longer than the program runs.
//!
//! # Approach
//!
//! Nikolopoulos, Ayguadé and Polychronopoulos, sections 3.1.1 and 4.1.2: a thread of the engine's
//! own moves the pages while the program goes on, on a spare processor or on one that it shares. A
//! thread moves one page after the other, so as many pages are in place as there was time for. The
//! paper does not say what becomes of moves that are still to do when the next iteration ends.
//! Chosen here: the newest decisions replace them, since they rest on the newest counts.
//!
//! # Terms
//!
//! *Pace*: what one move takes. *Backlog*: moves that are decided and not yet asked for.
//!
//! # Algorithm
//!
//! 1. The inner policy sees every event. All its decisions but moves go on at once.
//! 2. When it decides moves, they replace the backlog, in their order.
//! 3. While there is a backlog, its first move goes to the driver each time that a pace has gone
//!    by, the first one a pace after it was decided: a page is at its new home when its move ends.
//! 4. A page that is freed leaves the backlog.
//!
//! # Properties
//!
//! - `a_pace_apart`: between two moves a pace goes by at least.
//! - `the_same_moves_in_the_end`: with time enough after each interval, pages end where the inner
//!   policy alone puts them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, Ns};

use crate::{Policy, Step};

/// See the module.
pub struct Paced {
    inner: Box<dyn Policy>,
    pace: Ns,
    backlog: VecDeque<Decision>,
    /// When the move under way ends.
    next: Ns,
    /// What the inner policy decides, before it is sorted.
    decided: DecisionBuf,
}

impl Paced {
    /// The moves of `inner`, each taking `pace`.
    pub fn new(inner: Box<dyn Policy>, pace: Ns) -> Self {
        Self { inner, pace, backlog: VecDeque::new(), next: Ns(0), decided: DecisionBuf::new() }
    }
    /// Moves go to the backlog, everything else goes on. Whether anything does.
    fn sort(&mut self, now: Ns, out: &mut DecisionBuf) -> bool {
        let is_move = |d: &&Decision| matches!(d, Decision::Move { .. });
        let all = self.decided.as_slice();
        if all.iter().any(|d| is_move(&d)) {
            if self.backlog.is_empty() {
                self.next = self.next.max(now + self.pace);
            }
            self.backlog.clear();
            self.backlog.extend(all.iter().filter(is_move));
        }
        all.iter().filter(|d| !is_move(d)).for_each(|d| out.push(*d));
        !out.as_slice().is_empty()
    }
}

impl Policy for Paced {
    fn interest(&self) -> Interest {
        self.inner.interest()
    }
    #[inline]
    fn observe(&mut self, event: &Event) {
        if let Event::Free { pages, .. } = event {
            self.backlog.retain(|d| !matches!(d, Decision::Move { page, .. } if pages.contains(*page)));
        }
        self.inner.observe(event);
    }
    fn poll(&mut self, now: Ns, out: &mut DecisionBuf) -> Step {
        let mut wake = None;
        loop {
            self.decided.clear();
            match self.inner.poll(now, &mut self.decided) {
                Step::Act if self.sort(now, out) => return Step::Act,
                // Nothing but moves: what it wants besides is not known yet.
                Step::Act => continue,
                Step::WakeAt(at) => wake = Some(at),
                Step::Idle => {}
            }
            break;
        }
        if now >= self.next
            && let Some(decision) = self.backlog.pop_front()
        {
            self.next = now + self.pace;
            out.push(decision);
            return Step::Act;
        }
        let own = (!self.backlog.is_empty()).then_some(self.next);
        match (wake, own) {
            (Some(a), Some(b)) => Step::WakeAt(a.min(b)),
            (Some(at), None) | (None, Some(at)) => Step::WakeAt(at),
            (None, None) => Step::Idle,
        }
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        self.inner.outcome(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::competitive::{EAGER, policy};
    use crate::testing::{Bench, counts, machine, roomy};
    use homenode_model::NodeId;
    use proptest::prelude::*;

    const PACE: Ns = Ns(1000);

    proptest! {
        #[test]
        fn a_pace_apart(rounds in counts(), steps in proptest::collection::vec(1u64..3000, 1..40)) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, Paced::new(policy(&context, &EAGER), PACE));
            bench.iteration(&[]);
            let (mut now, mut last) = (0, 0);
            for (round, step) in rounds.iter().cycle().zip(&steps) {
                let before = bench.moves;
                bench.iteration(round);
                bench.later(Ns(*step));
                now += step;
                let moved = bench.moves - before;
                prop_assert!(moved <= 1, "one poll, {} moves", moved);
                if moved == 1 {
                    prop_assert!(last == 0 || now - last >= PACE.0, "{} after {}", now, last);
                    last = now;
                }
            }
        }

        #[test]
        fn the_same_moves_in_the_end(rounds in counts()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, Paced::new(policy(&context, &EAGER), PACE));
            let mut alone = Bench::new(&context, policy(&context, &EAGER));
            bench.iteration(&[]);
            alone.iteration(&[]);
            for round in &rounds {
                bench.iteration(round);
                alone.iteration(round);
                for _ in 0..64 {
                    bench.later(PACE);
                }
                for row in round {
                    prop_assert_eq!(bench.home(row.page), alone.home(row.page));
                }
            }
        }
    }

    #[test]
    fn a_freed_page_is_not_moved() {
        let context = machine(&roomy());
        let mut bench = Bench::new(&context, Paced::new(policy(&context, &EAGER), PACE));
        let page = homenode_model::PageNo(3);
        bench.iteration(&[]);
        bench.fault(page, NodeId(0));
        let row = crate::testing::Row { page, counts: [0, 0, 50, 0], write: false };
        bench.iteration(&[row]);
        bench.free(homenode_model::ObjectId(0), homenode_model::PageRange { first: page, count: 1 });
        bench.later(PACE);
        assert_eq!(bench.moves, 0);
    }
}
