//! Where the program's threads run, for the report.

use homenode_model::Ns;

use super::run::Driver;

impl Driver {
    /// Looks on which nodes the threads are now.
    pub(super) fn look_at_threads(&mut self, now: Ns) {
        let begin = (self.clocks.thread)();
        let Self { seen_on, settings, mover, .. } = self;
        let node_of = |cpu: u32| settings.machine.node_of(cpu as usize);
        mover.threads(&node_of, &mut |id, cpu, bound| {
            if let Some(node) = node_of(cpu) {
                seen_on.saw(id, node, bound);
            }
        });
        self.seen_on.looked(now, (self.clocks.thread)() - begin);
    }
}
