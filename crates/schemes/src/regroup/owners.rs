//! Which thread of a team used a page first inside of parallel regions.

use std::collections::HashMap;

/// Bytes of a page, as a power of two: whoever recorded the program had these.
pub const PAGE_SHIFT: u32 = 12;

/// The first user of each page. Pages that one thread alone touched before the first region have
/// none: where they live is a question of placement, and no hint for the schedule.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    by_page: HashMap<u64, u32>,
    last: Option<u64>,
}

impl Owners {
    /// The page's first user.
    pub fn of(&self, page: u64) -> Option<usize> {
        self.by_page.get(&page).map(|t| *t as usize)
    }

    /// A thread uses a page; the first one keeps it.
    pub fn take(&mut self, page: u64, thread: usize) {
        // Neighbouring accesses mostly go to one page.
        if self.last.replace(page) != Some(page) {
            self.by_page.entry(page).or_insert(thread as u32);
        }
    }
}
