//! The first stores of processes to their pages.
//!
//! A page's first store is met where a CPU has no translation for the page, or has one that no
//! store has used yet. A page that the kernel takes away and gives again has a first store once
//! more: of a process's stores to a page, the first one of each interval is kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use homenode_wire::monitor::{CALLS, ExecutedCode, FirstStore};

/// Stores that are kept at most.
const MOST: usize = 1 << 22;
/// Codes that are kept at most. Stores of further ones have none.
const CODES: usize = 1 << 16;
/// Virtual page and process in one word.
const PROCESS: u32 = 48;

#[derive(Debug, Default)]
struct Kept {
    interval: u32,
    /// CPU and number of the code, by process, page and interval.
    stores: BTreeMap<(u16, u64, u32), (u32, u32)>,
    codes: BTreeMap<ExecutedCode, u32>,
}

/// All first stores.
#[derive(Debug)]
pub struct FirstStores {
    /// By physical page: the process and virtual page whose store to it is known, plus 1; 0: none.
    known: Box<[AtomicU64]>,
    kept: Mutex<Kept>,
}

impl FirstStores {
    /// Of a guest with this many pages of memory.
    pub fn new(pages: u64) -> Self {
        Self { known: (0..pages).map(|_| AtomicU64::new(0)).collect(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process stores to a page. `code` is asked if the store is a first one.
    pub fn store(
        &self,
        (process, page, physical): (u16, u64, u64),
        cpu: usize,
        code: impl FnOnce() -> ExecutedCode,
    ) {
        let Some(known) = self.known.get(physical as usize) else { return };
        let seen = (u64::from(process) << PROCESS | page & ((1 << PROCESS) - 1)) + 1;
        if known.swap(seen, Ordering::Relaxed) == seen {
            return;
        }
        let mut kept = self.kept();
        let Kept { interval, stores, codes } = &mut *kept;
        let key = (process, page, *interval);
        if stores.len() >= MOST || stores.contains_key(&key) {
            return;
        }
        let next = codes.len();
        let code = if next < CODES { code() } else { ExecutedCode::default() };
        let code = *codes.entry(code).or_insert(next as u32);
        stores.insert(key, (cpu as u32, code));
    }

    /// The first interval begins anew: what was stored before it counts as its own.
    pub fn restart(&self) {
        let mut kept = self.kept();
        kept.interval = 0;
        for ((process, page, _), store) in std::mem::take(&mut kept.stores) {
            kept.stores.entry((process, page, 0)).or_insert(store);
        }
    }

    /// A new interval begins.
    pub fn next_interval(&self) {
        self.kept().interval += 1;
    }

    /// What is known: the code by number, and the stores by process, page and interval.
    pub fn found(&self) -> (Vec<ExecutedCode>, Vec<FirstStore>) {
        let kept = self.kept();
        let mut codes = vec![ExecutedCode { at: 0, calls: [0; CALLS] }; kept.codes.len()];
        kept.codes.iter().for_each(|(code, number)| codes[*number as usize] = *code);
        let first = |(&(process, page, interval), &(cpu, code)): (&(u16, u64, u32), &(u32, u32))| {
            FirstStore { interval, process, page, cpu, code }
        };
        (codes, kept.stores.iter().map(first).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_store_of_an_interval_is_kept() {
        let firsts = FirstStores::new(8);
        let code = |at| move || ExecutedCode { at, calls: [0; CALLS] };
        firsts.store((1, 100, 3), 0, code(10));
        firsts.store((1, 100, 3), 1, || panic!("the page is known"));
        firsts.store((1, 101, 4), 1, code(20));
        // Moved: the same page at another place, in the same interval.
        firsts.store((1, 100, 5), 1, || panic!("the page has a store"));
        firsts.next_interval();
        firsts.store((1, 100, 6), 1, code(20));
        firsts.store((2, 100, 3), 1, code(10));
        firsts.store((2, 100, 99), 1, || panic!("there is no such memory"));
        let first = |interval, process, page, cpu, code| FirstStore { interval, process, page, cpu, code };
        let (codes, stores) = firsts.found();
        assert_eq!(codes.iter().map(|c| c.at).collect::<Vec<_>>(), [10, 20]);
        let all =
            [first(0, 1, 100, 0, 0), first(1, 1, 100, 1, 1), first(0, 1, 101, 1, 1), first(1, 2, 100, 1, 0)];
        assert_eq!(stores, all);
        firsts.restart();
        let all = [first(0, 1, 100, 0, 0), first(0, 1, 101, 1, 1), first(0, 2, 100, 1, 0)];
        assert_eq!(firsts.found().1, all);
    }
}
