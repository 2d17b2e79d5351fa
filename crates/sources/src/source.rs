//! The common interface of all sources.

use std::fmt;

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sys::Span;

/// The kind of a source's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// One in a number of accesses: counts, with the error of a sample.
    Sampled {
        /// Accesses that one sample stands for.
        one_in: u64,
    },
    /// Presence: that a node touched an address, and in which order; not how often.
    Presence {
        /// Whether the source sees stores alone.
        writers_only: bool,
    },
}

impl AnswerKind {
    /// Whether a policy can use the answers as counts.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Sampled { .. })
    }
}

impl fmt::Display for AnswerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sampled { one_in } => write!(f, "sampled (one in {one_in})"),
            Self::Presence { writers_only: false } => f.write_str("presence (order only)"),
            Self::Presence { writers_only: true } => f.write_str("presence (order only) of writers"),
        }
    }
}

/// A touch of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTouch {
    /// The touched address.
    pub address: usize,
    /// The node of the CPU that touched it.
    pub node: NodeId,
    /// The time, by the monotonic clock.
    pub time: Ns,
    /// Load or store, if known.
    pub kind: Option<AccessKind>,
}

/// The node of each CPU, real or pretended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    node: Vec<Option<NodeId>>,
}

impl Cpus {
    /// By CPU number; `None` for CPUs without a node.
    pub const fn new(node: Vec<Option<NodeId>>) -> Self {
        Self { node }
    }
    /// The node of a CPU.
    pub fn node(&self, cpu: u32) -> Option<NodeId> {
        self.node.get(cpu as usize).copied().flatten()
    }
    /// The CPUs that have a node.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.node).filter(|(_, n)| n.is_some()).map(|(c, _)| c)
    }
    /// Number of CPU numbers.
    pub const fn len(&self) -> usize {
        self.node.len()
    }
    /// Whether there are no CPUs.
    pub const fn is_empty(&self) -> bool {
        self.node.is_empty()
    }
}

/// A source: tells who touches what. Made once a process, before its threads.
pub trait Source: Send {
    /// The source's name, for a person.
    fn name(&self) -> &'static str;
    /// The kind of its answers.
    fn says(&self) -> AnswerKind;
    /// Whether pages' homes matter to the source. It then wants each stretch of one home in a call
    /// of its own.
    fn by_home(&self) -> bool {
        false
    }
    /// Watches this memory, whose pages are at `home`. It may be more than the source can watch at
    /// a time.
    fn watch(&mut self, span: Span, home: NodeId);
    /// This memory is about to move, to be freed, or to change its owner: stops watching it, and
    /// restores it.
    fn leave(&mut self, span: Span);
    /// This memory is about to be freed: stops watching it. The source need not do what the kernel
    /// does at unmapping.
    fn gone(&mut self, span: Span) {
        self.leave(span);
    }
    /// Asks for the next toucher of each of these pages. Sources that need no asking do nothing.
    /// Returns the number of pages that will be answered.
    fn ask(&mut self, pages: &[usize]) -> usize;
    /// Reports what was seen since the last call, oldest first for each CPU.
    fn drain(&mut self, tell: &mut dyn FnMut(AddressTouch));
    /// Stops watching everything.
    fn stop(&mut self);
    /// As [`Source::stop`] when the process is about to end: nothing need be restored that ends
    /// with it.
    fn end(&mut self) {
        self.stop();
    }
    /// The cost of one sample for the program's threads, as far as measured.
    fn cost(&self) -> Ns;
    /// The cost of one request for the asking thread.
    fn asking(&self) -> Ns {
        Ns::ZERO
    }
    /// For how long the source reported nothing, because the program caused too many other events.
    fn paused(&self) -> Ns {
        Ns::ZERO
    }
    /// What the source could not do so far, one sentence each.
    fn cannot(&self) -> Vec<String> {
        Vec::new()
    }
    /// Touches that were not reported, because there were too many.
    fn lost(&self) -> u64;
    /// Bytes of memory in use, independent of the program's size.
    fn state_bytes(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_is_never_called_a_count() {
        for writers_only in [false, true] {
            let says = AnswerKind::Presence { writers_only };
            assert!(!says.counts() && says.to_string().starts_with("presence (order only)"));
        }
        assert_eq!(AnswerKind::Sampled { one_in: 5000 }.to_string(), "sampled (one in 5000)");
    }

    #[test]
    fn cpus_without_a_node_are_left_out() {
        let cpus = Cpus::new(vec![Some(NodeId(0)), None, Some(NodeId(1))]);
        assert_eq!(cpus.all().collect::<Vec<_>>(), [0, 2]);
        assert_eq!((cpus.node(2), cpus.node(1), cpus.node(77)), (Some(NodeId(1)), None, None));
    }
}
