//! Decisions that wait until the driver polls.

use alloc::vec::Vec;

use homenode_model::{Decision, DecisionBuf};

use crate::Step;

/// First in, first out; keeps its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    list: Vec<Decision>,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new() }
    }
    pub(crate) fn push(&mut self, decision: Decision) {
        self.list.push(decision);
    }
    /// Hands over everything, in answer to a poll of a policy that only reacts to events.
    pub(crate) fn pour(&mut self, out: &mut DecisionBuf) -> Step {
        if self.list.is_empty() {
            return Step::Idle;
        }
        out.append(&mut self.list);
        Step::Act
    }
}
