//! A policy that carries out what was decided in advance: a [`HomePath`].

use std::sync::Arc;

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, Ns};
use homenode_policy::{Policy, Step};

use super::path::HomePath;

/// Places pages at first use as the way says (pages that it does not name: where they are touched),
/// and moves them at the iteration marks that it names. A node without room leaves a page where the
/// driver puts it.
#[derive(Clone, Debug)]
pub struct Script {
    way: Arc<HomePath>,
    /// Moves before this are done.
    next: usize,
    queue: Vec<Decision>,
}

impl Script {
    /// Follows `way`.
    pub const fn new(way: Arc<HomePath>) -> Self {
        Self { way, next: 0, queue: Vec::new() }
    }
}

impl Policy for Script {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Fault { page, .. } => {
                if let Some(node) = self.way.first.home(page) {
                    self.queue.push(Decision::Place { page, node });
                }
            }
            Event::Iteration { number } => {
                while let Some(&(at, page, to)) = self.way.moves.get(self.next).filter(|m| m.0 <= number) {
                    self.next += 1;
                    if at == number {
                        self.queue.push(Decision::Move { page, to });
                    }
                }
            }
            _ => {}
        }
    }
    fn poll(&mut self, _now: Ns, out: &mut DecisionBuf) -> Step {
        if self.queue.is_empty() {
            return Step::Idle;
        }
        self.queue.drain(..).for_each(|d| out.push(d));
        Step::Act
    }
    fn outcome(&mut self, _outcome: &MoveOutcome) {}
}
