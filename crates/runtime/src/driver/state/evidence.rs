//! What shows whether moving pays: held-back blocks, probes, pilots, and where threads run.

use homenode_model::{Ns, ObjectId};
use homenode_wire::facts::Verdict;

use super::licence::Spent;
use super::pilots::Trial;
use super::probes::Probing;
use crate::driver::mover::Touch;
use crate::guard::HoldBack;
use crate::stream::threads::SeenOn;

/// See the module.
#[derive(Debug, Default)]
pub struct MovingEvidence {
    /// The guard: held-back blocks, and its verdict.
    pub hold: HoldBack,
    /// Probes: whether memory should follow once more.
    pub probing: Probing,
    /// Pilots: whether memory should follow at all.
    pub trial: Trial,
    /// The nodes on which the program's threads were seen.
    pub seen_on: SeenOn,
}

impl MovingEvidence {
    /// The object at this address has died.
    pub fn forget(&mut self, address: usize) {
        self.probing.forget(address);
        self.trial.forget(address);
    }

    /// Everything was disarmed, because the budget had run out.
    pub fn disarmed(&mut self, now: Ns) {
        self.probing.disarmed();
        self.trial.disarmed(now);
    }

    /// A touch brought pages of an object. `remote`: how many of them were on another node.
    pub fn touched(&mut self, object: (usize, ObjectId), touch: &Touch, remote: u64) {
        self.probing.touched(object, touch, remote);
        self.trial.touched(object, touch, remote > 0);
    }

    /// Whether the guard's verdict is that moving pays.
    pub fn pays(&self) -> bool {
        matches!(self.hold.verdict(), Verdict::Pays | Verdict::AtHome | Verdict::Evener)
    }

    /// Whether the guard's verdict is that moving does not pay.
    pub fn is_against(&self) -> bool {
        matches!(self.hold.verdict(), Verdict::NoGain | Verdict::Harms)
    }

    /// Pilots grant the licence of the trial.
    pub fn grant_licence(&mut self, spent: Spent) {
        self.trial.licence.grant(spent, self.seen_on.any_changes());
    }

    /// Before more is armed: reviews the licence of the trial.
    pub fn review_licence(&mut self, spent: Spent) {
        let pays = self.pays();
        self.trial.licence.review(spent, pays, self.seen_on.any_changes());
    }
}
