//! Signals and waits.

use homenode_model::ThreadId;

use super::counter::{Counter, NOBODY};
use super::thread::State;
use super::turns::Turns;
use super::{Memory, MemoryError};
use crate::stream::MemWhat;
use homenode_order::step::{Sync, SyncId};

impl Memory {
    /// Carries out the synchronisation at hand; `Thread::advance` has waited for the thread's
    /// accesses under way.
    pub(super) fn sync(&mut self, t: usize, sync: Sync) {
        match sync {
            Sync::Signal(id) => self.signal(t, id),
            Sync::Wait { id, n } => self.wait(t, id, n),
            Sync::End => self.end(t),
        }
    }

    fn signal(&mut self, t: usize, id: SyncId) {
        let counter = &mut self.counters.row_mut(id.0 as usize)[0];
        counter.count = counter.count.saturating_add(1);
        counter.time = counter.time.max(self.threads[t].now);
        let Counter { time, count, waiter: mut next } = *counter;
        // Those who still wait are chained anew.
        counter.waiter = NOBODY;
        self.next(t);
        while next != NOBODY {
            let w = next as usize;
            next = self.threads[w].next_waiter;
            match self.threads[w].state {
                State::Waiting(n) if n > count => self.chain(w, id),
                _ => {
                    self.threads[w].wait_until(time);
                    self.next(w);
                }
            }
        }
    }

    fn wait(&mut self, t: usize, id: SyncId, n: u32) {
        let counter = self.counters.row_mut(id.0 as usize)[0];
        if counter.count >= n {
            self.threads[t].wait_until(counter.time);
            self.next(t);
            return;
        }
        self.threads[t].state = State::Waiting(n);
        self.turns.set(t, Turns::NEVER);
        self.chain(t, id);
    }

    fn chain(&mut self, t: usize, id: SyncId) {
        let counter = &mut self.counters.row_mut(id.0 as usize)[0];
        self.threads[t].next_waiter = counter.waiter;
        counter.waiter = t as u32;
    }

    /// That nobody waits for ever.
    pub(super) fn check_ended(&self) -> Result<(), MemoryError> {
        for (thread, state) in (0u32..).map(ThreadId).zip(&self.threads) {
            match (state.state, state.state != State::Ended) {
                (State::Waiting(wants), _) => {
                    let MemWhat::Sync(Sync::Wait { id, .. }) = state.item() else {
                        unreachable!("only a wait waits")
                    };
                    let had = self.counters.row(id.0 as usize).map_or(0, |c| c[0].count);
                    return Err(MemoryError::Deadlock { thread, id, wants, had });
                }
                (_, true) => return Err(MemoryError::Clock { thread }),
                _ => {}
            }
        }
        Ok(())
    }
}
