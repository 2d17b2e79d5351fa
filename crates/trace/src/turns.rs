//! In which order locks and atomically used addresses changed hands: a first pass over the few
//! chunks that have such marks.

use std::collections::{HashMap, VecDeque};
use std::io::Read;

use homenode_log::file::{LogReader, ORDERED};
use homenode_log::{LogError, Mark, RecordKind};

/// The recorded order of acquisitions, by lock.
#[derive(Clone, Debug, Default)]
pub struct LockTurns {
    by_lock: HashMap<u64, VecDeque<u64>>,
}

impl LockTurns {
    /// Adds the acquisitions of one thread's log.
    ///
    /// # Errors
    /// The log is damaged; the turns up to there have been added.
    pub fn add<R: Read>(&mut self, log: LogReader<R>) -> Result<(), LogError> {
        let mut log = log.only(ORDERED);
        while let Some(record) = log.next_record()? {
            match record.what {
                RecordKind::Mark(Mark::Acquire { lock, order }) => self.push(lock, order),
                RecordKind::Mark(Mark::Atomic { address, order, .. }) => self.push(address, order),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds one acquisition.
    pub fn push(&mut self, lock: u64, order: u64) {
        self.by_lock.entry(lock).or_default().push_back(order);
    }

    /// Puts every lock's acquisitions in order; to be called once, after the last `add`.
    pub fn sort(&mut self) {
        for turns in self.by_lock.values_mut() {
            turns.make_contiguous().sort_unstable();
        }
    }

    /// Whether acquisition `order` is the next one of `lock`. One that was never added never waits.
    pub fn is_next(&self, lock: u64, order: u64) -> bool {
        self.by_lock.get(&lock).and_then(VecDeque::front).is_none_or(|first| order <= *first)
    }

    /// The next acquisition of `lock` has happened.
    pub fn pass(&mut self, lock: u64) {
        if let Some(turns) = self.by_lock.get_mut(&lock) {
            turns.pop_front();
            if turns.is_empty() {
                self.by_lock.remove(&lock);
            }
        }
    }
}
