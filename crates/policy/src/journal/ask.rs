//! What another policy would have decided.
//!
//! The journal has the program's run under the recorded policy: which page was touched when, and by
//! which node. Another policy gets the same events, with the homes that *its own* decisions make;
//! its moves succeed if there is room. The journal does not have the changes of timing that a move
//! would have caused, nor touches of pages that the recorded policy did not arm. So the answer is
//! that policy's opinion, not a simulation.

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, MoveResult, NodeId, Ns, PageNo};

use super::JournalError;
use super::code::Record;
use super::read::open;
use crate::homes::Homes;
use crate::{Policy, PolicyContext, Step};

/// The answers of another policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Number of events that it got.
    pub events: u64,
    /// Homes that it assigned.
    pub places: u64,
    /// Moves that it wanted and that there was room for.
    pub moves: u64,
    /// Copies that it wanted and that there was room for.
    pub replicas: u64,
    /// Moves and copies that it wanted in vain.
    pub refused: u64,
}

/// Polls at one event after which a policy counts as broken.
const MAX_POLLS: u32 = 1 << 10;

/// Feeds the journal to the policy of `spec`, and calls `each` with its decisions, in order.
///
/// # Errors
/// The bytes are no journal or damaged, the journal lacks events that the policy needs, or there is
/// no such policy.
pub fn ask(bytes: &[u8], spec: &str, mut each: impl FnMut(Ns, Decision)) -> Result<Asked, JournalError> {
    let (header, mut decoder) = open(bytes)?;
    let policy = crate::build(spec, &header.context).map_err(JournalError::Policy)?;
    if let Some(what) = lacking(policy.interest(), header.interest) {
        return Err(JournalError::Lacks { what, recorded: header.spec });
    }
    let mut driver = Driver { policy, homes: Homes::new(&header.context), asked: Asked::default() };
    while !decoder.is_over() {
        match decoder.record()? {
            Record::End => break,
            Record::Event(event) => driver.tell(event),
            Record::Poll(now, _) => driver.decide(now, &header.context, &mut each),
            Record::Outcome(_) => {}
        }
    }
    Ok(driver.asked)
}

/// The first thing that a policy wants and the journal lacks.
fn lacking(wants: Interest, has: Interest) -> Option<&'static str> {
    let lacks = |wants: bool, has: bool| wants && !has;
    if lacks(wants.faults, has.faults) {
        Some("first touches")
    } else if lacks(wants.counts_by_iteration, has.counts()) {
        Some("access counts at iterations")
    } else if lacks(wants.counts_by_region, has.counts()) {
        Some("access counts at the end of regions")
    } else if lacks(wants.counts_at_wakes, has.counts_at_wakes) {
        Some("access counts from time to time")
    } else {
        None
    }
}

struct Driver<P> {
    policy: P,
    homes: Homes,
    asked: Asked,
}

impl<P: Policy> Driver<P> {
    fn tell(&mut self, event: Event) {
        self.asked.events += 1;
        let event = match event {
            Event::Touched { page, home, node } => Event::Touched { page, home: self.home(page, home), node },
            Event::Accesses { page, home, node, kind, count } => {
                Event::Accesses { page, home: self.home(page, home), node, kind, count }
            }
            Event::Collapsed { page, home } => Event::Collapsed { page, home: self.home(page, home) },
            Event::Fault { page, node } => {
                // The home if the policy says nothing.
                self.homes.settle(page, node);
                event
            }
            Event::Free { pages, .. } => {
                self.homes.free(pages);
                event
            }
            _ => event,
        };
        self.policy.observe(&event);
    }
    /// The home of a page by this policy's decisions; before the first one, the recorded home.
    fn home(&mut self, page: PageNo, recorded: NodeId) -> NodeId {
        let known = self.homes.home(page);
        known.or_else(|| self.homes.settle(page, recorded)).unwrap_or(recorded)
    }
    fn decide(&mut self, now: Ns, context: &PolicyContext, each: &mut impl FnMut(Ns, Decision)) {
        let mut out = DecisionBuf::new();
        for _ in 0..MAX_POLLS {
            out.clear();
            if self.policy.poll(now, &mut out) != Step::Act {
                return;
            }
            for decision in out.as_slice() {
                each(now, *decision);
                self.carry_out(*decision, context);
            }
        }
    }
    fn carry_out(&mut self, decision: Decision, context: &PolicyContext) {
        match decision {
            Decision::Place { page, node } if node.index() < context.nodes() => {
                self.asked.places += 1;
                self.homes.settle(page, node);
            }
            Decision::Move { page, to } if to.index() < context.nodes() => {
                self.answer(page, to, MoveResult::Moved);
            }
            Decision::Replicate { page, on } | Decision::ReplicateLines { page, on }
                if on.index() < context.nodes() =>
            {
                self.answer(page, on, MoveResult::Replicated);
            }
            _ => {}
        }
    }
    fn answer(&mut self, page: PageNo, to: NodeId, success: MoveResult) {
        let result = match self.homes.home(page) {
            None => MoveResult::NoPage,
            Some(home) if home == to => MoveResult::AlreadyThere,
            Some(_) if !self.homes.has_room(to) => MoveResult::NoMemory,
            Some(_) => success,
        };
        let outcome = MoveOutcome { page, to, result, cost: Ns::ZERO };
        self.homes.moved(&outcome);
        match result {
            MoveResult::Moved => self.asked.moves += 1,
            MoveResult::Replicated => self.asked.replicas += 1,
            _ => self.asked.refused += 1,
        }
        self.policy.outcome(&outcome);
    }
}
