//! Migrate on next touch.
//!
//! # Problem
//!
//! A program whose data is initialised by one thread, or read from a file, or whose access pattern changes, has its pages
//! where they were first touched and not where they are used.
//!
//! # Approach
//!
//! The program says when the pattern that counts begins; from then on each page follows whoever touches it next, once.
//! Löf, Nordén and Holmgren (SI+MIG), Solaris' `madvise(MADV_ACCESS_LWP)`.
//!
//! # Terms
//!
//! *Request*: the program names a range. *Armed*: the page tells of its next touch. *Toucher's memory*: the toucher, or
//! the nearest node with memory if it has none.
//!
//! # Algorithm
//!
//! 1. Faults: as first touch.
//! 2. Request: arm all its pages.
//! 3. Touch of an armed page: move it to the toucher's memory unless it is there; a touch disarms. With no room there the
//!    page stays: any other node would be a guess.
//!
//! A move that fails is not tried again before the next request.
//!
//! # Properties
//!
//! - `a_request_moves_a_page_at_most_once`: between two requests of a page at most one move of it.
//! - `a_moved_page_is_where_it_was_touched`: every move goes to the toucher's memory.
//! - `nothing_moves_unasked`: without a request it decides what first touch decides.

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, Ns};

use crate::homes::Homes;
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// See the module.
#[derive(Debug)]
pub struct NextTouch {
    homes: Homes,
    queue: Queue,
}

impl NextTouch {
    /// For the machine of `context`.
    pub fn new(context: &PolicyContext) -> Self {
        Self { homes: Homes::new(context), queue: Queue::new() }
    }
}

impl Policy for NextTouch {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Fault { page, node } => {
                if let Some(node) = self.homes.settle(page, node) {
                    self.queue.push(Decision::Place { page, node });
                }
            }
            Event::NextTouchRequest { pages } => self.queue.push(Decision::Arm { pages }),
            Event::Touched { page, home, node } => match self.homes.nearest(node) {
                Some(to) if to != home && self.homes.has_room(to) => {
                    self.queue.push(Decision::Move { page, to });
                }
                _ => {}
            },
            Event::Free { pages, .. } => self.homes.free(pages),
            _ => {}
        }
    }
    fn poll(&mut self, _now: Ns, out: &mut DecisionBuf) -> Step {
        self.queue.pour(out)
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        self.homes.moved(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FirstTouch;
    use crate::testing::{Bench, machine, roomy, touches};
    use homenode_model::{PageNo, PageRange};
    use proptest::prelude::*;

    const ALL: PageRange = PageRange { first: PageNo(0), count: 64 };

    proptest! {
        #[test]
        fn a_request_moves_a_page_at_most_once((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, NextTouch::new(&context));
            for (page, node) in &touches {
                bench.fault(*page, *node);
            }
            for _ in 0..2 {
                bench.request(ALL);
                let mut moves = [0u64; 64];
                for (page, node) in touches.iter().rev() {
                    let before = bench.moves;
                    bench.touch(*page, *node);
                    moves[page.index()] += bench.moves - before;
                }
                prop_assert!(moves.iter().all(|m| *m <= 1));
            }
        }

        #[test]
        fn a_moved_page_is_where_it_was_touched((_, touches) in touches()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, NextTouch::new(&context));
            for (page, node) in &touches {
                bench.fault(*page, *node);
            }
            bench.request(ALL);
            let mut seen = [false; 64];
            for (page, node) in touches.iter().rev() {
                bench.touch(*page, *node);
                if !core::mem::replace(&mut seen[page.index()], true) {
                    prop_assert_eq!(bench.home(*page), Some(context.nearest[node.index()][0]));
                }
            }
        }

        #[test]
        fn nothing_moves_unasked((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, NextTouch::new(&context));
            let mut plain = Bench::new(&context, FirstTouch::new(&context));
            for (page, node) in touches {
                prop_assert_eq!(bench.fault(page, node), plain.fault(page, node));
                bench.touch(page, node);
            }
            prop_assert_eq!(bench.moves, 0);
        }
    }
}
