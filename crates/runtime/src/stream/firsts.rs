//! Who touched which pages first: each page once, neighbouring pages in one record.

use std::collections::BTreeMap;

use homenode_model::{NodeId, Ns};
use homenode_wire::live::{LiveRecord, ObjectNo, Pages, ThreadNo};

/// Open runs. A loop that fills several arrays at a time has one for each array and thread.
const OPEN: usize = 32;

/// What the pages of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toucher {
    /// The thread.
    pub thread: ThreadNo,
    /// The thread's node.
    pub node: NodeId,
    /// Address of the instruction.
    pub pc: u64,
}

/// Neighbouring pages with one toucher.
#[derive(Clone, Copy, Debug)]
pub struct TouchRun {
    object: ObjectNo,
    pages: Pages,
    toucher: Toucher,
    time: Ns,
}

impl TouchRun {
    /// The record for a reader.
    pub const fn record(self) -> LiveRecord {
        let Self { object, pages, toucher: Toucher { thread, node, pc }, time } = self;
        LiveRecord::FirstTouch { object, pages, thread: Some(thread), node, time, pc }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct FirstTouchStream {
    /// A bit for each page that has been told, by object.
    told: BTreeMap<ObjectNo, Vec<u64>>,
    /// Open runs, the oldest first.
    open: Vec<TouchRun>,
}

impl FirstTouchStream {
    /// Whether the page has been told.
    pub fn knows(&self, object: ObjectNo, page: u32) -> bool {
        let word = self.told.get(&object).and_then(|words| words.get(page as usize / 64));
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Adds the first touch of a page. Returns the record of a run that gives way to it, if any.
    pub fn add(&mut self, object: ObjectNo, page: u32, toucher: Toucher, time: Ns) -> Option<LiveRecord> {
        let words = self.told.entry(object).or_default();
        let at = page as usize / 64;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words[at] |= 1 << (page % 64);
        let follows = |run: &TouchRun| {
            (run.object, run.toucher) == (object, toucher)
                && run.pages.first.saturating_add(run.pages.count) == page
        };
        if let Some(run) = self.open.iter_mut().rev().find(|run| follows(run)) {
            run.pages.count += 1;
            return None;
        }
        let oldest = (self.open.len() >= OPEN).then(|| self.open.remove(0).record());
        self.open.push(TouchRun { object, pages: Pages { first: page, count: 1 }, toucher, time });
        oldest
    }

    /// Ends all open runs.
    pub fn take_runs(&mut self) -> Vec<TouchRun> {
        std::mem::take(&mut self.open)
    }

    /// The object is gone.
    pub fn gone(&mut self, object: ObjectNo) {
        self.told.remove(&object);
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.told.values().map(|words| words.capacity() * size_of::<u64>()).sum()
    }
}
