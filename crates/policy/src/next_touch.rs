//! Migrate on next touch.
//!
//! # Problem
//!
//! If one thread initialises the data, or reads it from a file, or if the access pattern changes,
//! pages are on the node of their first touch and not where they are used.
//!
//! # Approach
//!
//! The program marks where the pattern that counts begins. From then on each page follows its next
//! toucher, once (Löf, Nordén and Holmgren, SI+MIG; Solaris' `madvise(MADV_ACCESS_LWP)`). The same
//! paper's conclusions propose a way that needs no change of the program: a request for all shared
//! data at the start of every parallel region. It may cost more than it gains if regions are many
//! and short. A request at the first region alone lies between the two.
//!
//! The paper does not say which objects are shared, nor what the first region is. We chose: all
//! objects, or those that an option names. The first region is the program's first, and once more
//! the first after the first iteration mark: what came before the mark was initialisation, and
//! nobody knows beforehand whether there will be a mark.
//!
//! # Terms
//!
//! *Request*: the program names a range. *Armed*: the page tells of its next touch. *Toucher's
//! memory*: the toucher, or the nearest node with memory if it has none. *Chosen*: a page of an
//! object that the option `objects` names.
//!
//! # Algorithm
//!
//! 1. Faults: as first touch (option `from`).
//! 2. Arm the chosen pages of a request, always. Arm all chosen pages when the first region begins,
//!    and when the first after the first iteration mark begins (`at=first-region`, as the live
//!    runtime does by default). Arm all chosen pages whenever a region begins (`at=region`).
//! 3. Touch of an armed page: move it to the toucher's memory unless it is there; a touch disarms.
//!    With no room there the page stays: any other node would be a guess.
//!
//! A move that fails is not tried again before the page is armed again.
//!
//! # Properties
//!
//! - `a_request_moves_a_page_at_most_once`: between two requests of a page at most one move of it.
//! - `a_moved_page_is_where_it_was_touched`: every move goes to the toucher's memory.
//! - `nothing_moves_unasked`: without a request or region it decides what first touch decides.
//! - `a_region_moves_a_page_at_most_once`: the same between two starts of regions, at `at=region`.
//! - `the_first_region_counts_twice_at_most`: at `at=first-region` and without a request, no page
//!   moves more than twice.
//! - `other_objects_stay`: pages that are not chosen never move.

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, Ns, PageNo, PageRange};

use crate::homes::Homes;
use crate::initial::{Initial, Start};
use crate::objects::{Chosen, Objects};
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// When pages are armed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// When the program asks.
    #[default]
    Request,
    /// When the program asks, at the first region, and at the first after the first iteration mark.
    FirstRegion,
    /// When the program asks, and at every region.
    Region,
}

/// See the module.
#[derive(Debug)]
pub struct NextTouch {
    start: Start,
    homes: Homes,
    queue: Queue,
    at: At,
    chosen: Chosen,
    /// Whether the next region counts as a first one.
    first: bool,
    /// Whether there was an iteration mark.
    marked: bool,
}

impl NextTouch {
    /// For the machine of `context`: pages move when the program asks for it.
    pub fn new(context: &PolicyContext) -> Self {
        Self::with(context, Initial::FirstTouch, At::Request, Objects::All)
    }
    /// Pages start by `initial`. Pages of `objects` are armed at the moments of `at`.
    pub fn with(context: &PolicyContext, initial: Initial, at: At, objects: Objects) -> Self {
        Self {
            start: Start::new(context, initial),
            homes: Homes::new(context),
            queue: Queue::new(),
            at,
            chosen: Chosen::new(objects),
            first: true,
            marked: false,
        }
    }
    fn arm(&mut self, pages: PageRange) {
        self.chosen.within(pages).into_iter().for_each(|pages| self.queue.push(Decision::Arm { pages }));
    }
    fn begin_region(&mut self) {
        let first = core::mem::take(&mut self.first);
        if self.at == At::Region || first && self.at == At::FirstRegion {
            // As many as exist: drivers arm those that have a home.
            self.arm(PageRange { first: PageNo(0), count: self.homes.end() });
        }
    }
}

impl Policy for NextTouch {
    fn interest(&self) -> Interest {
        Interest { faults: true, touches_by_region: self.at != At::Request, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        self.chosen.observe(event);
        match *event {
            Event::Fault { page, node } => {
                if let Some(node) = self.homes.settle(page, self.start.wanted(page, node)) {
                    self.queue.push(Decision::Place { page, node });
                }
            }
            Event::NextTouchRequest { pages } => self.arm(pages),
            Event::RegionBegin { .. } => self.begin_region(),
            Event::Iteration { .. } => self.first |= !core::mem::replace(&mut self.marked, true),
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
    use homenode_model::{NodeId, ObjectId};
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
        fn a_region_moves_a_page_at_most_once((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let policy = NextTouch::with(&context, Initial::FirstTouch, At::Region, Objects::All);
            let mut bench = Bench::new(&context, policy);
            for (page, node) in &touches {
                bench.fault(*page, *node);
            }
            for shift in 0..3 {
                bench.observe(&Event::RegionBegin { region: 0 });
                let mut moves = [0u64; 64];
                for (page, node) in &touches {
                    let before = bench.moves;
                    bench.touch(*page, NodeId((node.0 + shift) % 3));
                    moves[page.index()] += bench.moves - before;
                }
                prop_assert!(moves.iter().all(|m| *m <= 1));
                bench.observe(&Event::RegionEnd { region: 0 });
            }
        }

        #[test]
        fn the_first_region_counts_twice_at_most((_, touches) in touches(), marked in 0u32..6) {
            let context = machine(&roomy());
            let policy = NextTouch::with(&context, Initial::FirstTouch, At::FirstRegion, Objects::All);
            let mut bench = Bench::new(&context, policy);
            let mut moves = [0u64; 64];
            for round in 0..6 {
                if round >= marked {
                    bench.observe(&Event::Iteration { number: round });
                }
                bench.observe(&Event::RegionBegin { region: round });
                for (page, node) in &touches {
                    let node = NodeId((node.0 + round as u16) % 3);
                    bench.fault(*page, node);
                    let before = bench.moves;
                    bench.touch(*page, node);
                    moves[page.index()] += bench.moves - before;
                }
            }
            prop_assert!(moves.iter().all(|m| *m <= 2));
        }

        #[test]
        fn other_objects_stay((_, touches) in touches()) {
            let context = machine(&roomy());
            let objects = Objects::Ids([ObjectId(1)].to_vec());
            let policy = NextTouch::with(&context, Initial::FirstTouch, At::Region, objects);
            let mut bench = Bench::new(&context, policy);
            for (object, first) in [(0, 0), (1, 20), (2, 40)] {
                let pages = PageRange { first: PageNo(first), count: 20 };
                bench.observe(&Event::Alloc { object: ObjectId(object), pages });
            }
            touches.iter().for_each(|(page, _)| _ = bench.fault(*page, NodeId(0)));
            bench.observe(&Event::RegionBegin { region: 0 });
            touches.iter().for_each(|(page, _)| bench.touch(*page, NodeId(1)));
            for (page, home) in bench.homes().iter() {
                prop_assert_eq!(home, NodeId(u16::from((20..40).contains(&page.0))));
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
