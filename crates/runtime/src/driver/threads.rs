//! Where the program's threads run, for the report.

use homenode_model::Ns;

use super::run::Driver;

impl Driver {
    /// Looks on which nodes the threads are now.
    pub(super) fn look_at_threads(&mut self, now: Ns) {
        let begin = self.account.thread_time();
        let seen_on = &mut self.evidence.seen_on;
        let node_of = |cpu: u32| self.settings.machine.node_of(cpu as usize);
        self.mover.threads(&node_of, &mut |id, cpu, bound| {
            if let Some(node) = node_of(cpu) {
                seen_on.saw(id, node, bound);
            }
        });
        self.evidence.seen_on.looked(now, self.account.thread_time() - begin);
    }
}
