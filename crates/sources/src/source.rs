//! The common interface of all sources.

use std::fmt;

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sys::Span;

/// What a source's answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// One in so many accesses: counts, with the error of a sample.
    Sampled {
        /// Accesses that one sample stands for.
        one_in: u64,
    },
    /// That somebody touched it, and in which order; not how often.
    Presence {
        /// It sees stores alone.
        writers_only: bool,
    },
}

impl Says {
    /// Whether a policy can count with it.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Sampled { .. })
    }
}

impl fmt::Display for Says {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sampled { one_in } => write!(f, "sampled (one in {one_in})"),
            Self::Presence { writers_only: false } => f.write_str("presence (order only)"),
            Self::Presence { writers_only: true } => f.write_str("presence (order only) of writers"),
        }
    }
}

/// Somebody touched an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What was touched.
    pub address: usize,
    /// The node of the CPU that did it.
    pub node: NodeId,
    /// When, by the monotonic clock.
    pub time: Ns,
    /// Load or store, where that is known.
    pub kind: Option<AccessKind>,
}

/// The node of each CPU, real or pretended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    node: Vec<Option<NodeId>>,
}

impl Cpus {
    /// By CPU number; `None`: none of ours.
    pub const fn new(node: Vec<Option<NodeId>>) -> Self {
        Self { node }
    }
    /// The node of a CPU.
    pub fn node(&self, cpu: u32) -> Option<NodeId> {
        self.node.get(cpu as usize).copied().flatten()
    }
    /// Those that have a node.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.node).filter(|(_, n)| n.is_some()).map(|(c, _)| c)
    }
    /// How many numbers there are.
    pub const fn len(&self) -> usize {
        self.node.len()
    }
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.node.is_empty()
    }
}

/// Tells who touches what. Made once a process, before its threads.
pub trait Source: Send {
    /// What it is, in words for a person.
    fn name(&self) -> &'static str;
    /// What its answers are.
    fn says(&self) -> Says;
    /// Whether it matters to it where pages are: then it wants each stretch of one home by itself.
    fn by_home(&self) -> bool {
        false
    }
    /// This memory is to be watched, whose pages are at `home`. It may be more than the source can
    /// have at a time.
    fn watch(&mut self, span: Span, home: NodeId);
    /// This memory is about to move, to go, or to change its owner: it is watched no longer, and as
    /// it was before.
    fn leave(&mut self, span: Span);
    /// This memory is about to go: it is watched no longer. What the kernel does by itself when it
    /// is unmapped need not be done before.
    fn gone(&mut self, span: Span) {
        self.leave(span);
    }
    /// The next toucher of each of these pages is wanted. Sources that need no asking do nothing.
    /// How many will be told.
    fn ask(&mut self, pages: &[usize]) -> usize;
    /// Hands over what was seen since the last time, oldest first as far as one CPU goes.
    fn drain(&mut self, tell: &mut dyn FnMut(Touch));
    /// Nothing is watched any more.
    fn stop(&mut self);
    /// The same where the process is about to end: what goes with it need not be put back.
    fn end(&mut self) {
        self.stop();
    }
    /// What one sample costs the program's threads, as far as it was measured.
    fn cost(&self) -> Ns;
    /// What asking for one takes the thread that asks.
    fn asking(&self) -> Ns {
        Ns::ZERO
    }
    /// For how long it told nothing, because the program did too much that it would have been told
    /// of, too.
    fn paused(&self) -> Ns {
        Ns::ZERO
    }
    /// What it could not do so far, a sentence each.
    fn cannot(&self) -> Vec<String> {
        Vec::new()
    }
    /// Touches that were not told, because there were too many.
    fn lost(&self) -> u64;
    /// Bytes of memory that it takes, whatever the program's size.
    fn state_bytes(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_is_never_called_a_count() {
        for writers_only in [false, true] {
            let says = Says::Presence { writers_only };
            assert!(!says.counts() && says.to_string().starts_with("presence (order only)"));
        }
        assert_eq!(Says::Sampled { one_in: 5000 }.to_string(), "sampled (one in 5000)");
    }

    #[test]
    fn cpus_without_a_node_are_left_out() {
        let cpus = Cpus::new(vec![Some(NodeId(0)), None, Some(NodeId(1))]);
        assert_eq!(cpus.all().collect::<Vec<_>>(), [0, 2]);
        assert_eq!((cpus.node(2), cpus.node(1), cpus.node(77)), (Some(NodeId(1)), None, None));
    }
}
