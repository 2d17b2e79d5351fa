//! What the policy is told, and wants.

use homenode_model::{DecisionBuf, Histogram, Interest, NodeId, PageNo};

/// What the policy is told, and wants.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) interest: Interest,
    /// Accesses since the driver last reported accesses to the policy, if the policy wants them.
    pub(super) histogram: Option<Histogram>,
    /// The pages in it, in order of their first access.
    pub(super) listed: Vec<PageNo>,
    /// When the policy wants to be polled though nothing happens.
    pub(super) wake: u64,
    /// It was polled for that, and no step came since.
    pub(super) polled: bool,
    pub(super) decisions: DecisionBuf,
    /// Frames that were given up while a decision was carried out: the policy hears of the outcome
    /// first.
    pub(super) gone: Vec<(PageNo, NodeId)>,
}

impl Told {
    pub(super) fn new(interest: Interest, nodes: usize) -> Self {
        Self {
            interest,
            histogram: interest.counts().then(|| Histogram::new(nodes)),
            listed: Vec::new(),
            wake: u64::MAX,
            polled: false,
            decisions: DecisionBuf::new(),
            gone: Vec::new(),
        }
    }

    /// Whether the policy wants to know of the first touches after a region begins.
    pub(super) const fn touches_by_region(&self) -> bool {
        self.interest.touches_by_region
    }
}
