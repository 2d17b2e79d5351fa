//! Who touched pages first, as far as the monitor can tell.
//!
//! The monitor meets the first store to a page: the CPU and the code. It counts by interval, not by
//! time. A thread is named if it alone ran on that CPU in that interval.
//!
//! A page without a store was only read. For the interval in which it is first seen the monitor
//! knows which nodes came. If it was one node, that node touched the page first. If there were
//! several, the page's home tells, because the kernel puts a page on the node of its first toucher.
//! A thread is named if it alone ran on that node then.

use std::collections::BTreeMap;

use homenode_dataset::tables::FirstTouch;
use homenode_dataset::{DatasetError, RowSink};
use homenode_log::recording::SourcePlace;
use homenode_model::{NodeId, Ns, ObjectId, ThreadId};

/// A page that a node accessed in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageTouch {
    /// The object.
    pub object: u32,
    /// The page, counted within the object.
    pub page: u64,
    /// The interval.
    pub interval: u32,
    /// The order in which the monitor met the page at this home.
    pub visit: u32,
    /// The page's home.
    pub home: u16,
    /// The accessing node.
    pub node: u16,
}

/// The first store to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageStore {
    /// The interval.
    pub interval: u32,
    /// The CPU.
    pub cpu: u32,
    /// Its node.
    pub node: u16,
    /// The source.
    pub place: SourcePlace,
}

/// A thread's stay on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStay {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The CPU.
    pub cpu: u32,
    /// Its node.
    pub node: u16,
    /// Its start.
    pub from: Ns,
    /// Its end.
    pub until: Ns,
}

/// The thread of a process that was the only one at a place during a time.
fn alone(
    stays: &[ThreadStay],
    process: u32,
    is_there: impl Fn(&ThreadStay) -> bool,
    (begin, end): (Ns, Ns),
) -> Option<ThreadId> {
    let there = |s: &&ThreadStay| s.process == process && is_there(s) && s.from <= end && begin <= s.until;
    let mut all = stays.iter().filter(there).map(|s| s.thread);
    let first = all.next()?;
    all.all(|t| t == first).then_some(ThreadId(first))
}

/// What is known of a page's first touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Toucher {
    interval: u32,
    node: u16,
    thread: Option<ThreadId>,
    place: SourcePlace,
}

/// Writes the rows. `stores`: first stores by object and page. `process`: the process of an object
/// that was allocated once; for other objects it is unknown which allocation a page belonged to.
/// `times`: begin and end of an interval.
///
/// # Errors
/// `to` takes no more.
pub fn fill(
    mut touches: Vec<PageTouch>,
    stores: &BTreeMap<(u32, u64), PageStore>,
    stays: &[ThreadStay],
    process: impl Fn(u32) -> Option<u32>,
    times: impl Fn(u32) -> (Ns, Ns),
    to: &mut impl RowSink,
) -> Result<(), DatasetError> {
    let mut pages: BTreeMap<(u32, u64), Toucher> = BTreeMap::new();
    for (key, store) in stores {
        let Some(process) = process(key.0) else { continue };
        let PageStore { interval, cpu, node, .. } = *store;
        let thread = alone(stays, process, |s| s.cpu == cpu, times(interval));
        pages.insert(*key, Toucher { interval, node, thread, place: store.place.clone() });
    }
    touches.sort_unstable();
    for page in touches.chunk_by(|a, b| (a.object, a.page) == (b.object, b.page)) {
        let first = page[0];
        let Some(process) = process(first.object) else { continue };
        pages.entry((first.object, first.page)).or_insert_with(|| {
            let mut then = page.iter().take_while(|t| t.interval == first.interval);
            let node = if then.all(|t| t.node == first.node) { first.node } else { first.home };
            let thread = alone(stays, process, |s| s.node == node, times(first.interval));
            Toucher { interval: first.interval, node, thread, place: SourcePlace::default() }
        });
    }
    let mut run: Option<(FirstTouch, Toucher)> = None;
    for ((object, page), toucher) in pages {
        if let Some((row, same)) = &mut run
            && (row.object.0, row.page + row.pages) == (object, page)
            && *same == toucher
        {
            row.pages += 1;
            continue;
        }
        let place = toucher.place.clone();
        let row = FirstTouch {
            object: ObjectId(object),
            page,
            pages: 1,
            thread: toucher.thread,
            node: NodeId(toucher.node),
            time_ns: None,
            file: place.file,
            line: place.line,
            function: place.function,
        };
        if let Some((row, _)) = run.replace((row, toucher)) {
            to.push(&row)?;
        }
    }
    run.map_or(Ok(()), |(row, _)| to.push(&row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_dataset::{Basis, Dataset, DatasetMeta, MemoryDataset, RecordingKind};

    fn touch(page: u64, interval: u32, visit: u32, home: u16, node: u16) -> PageTouch {
        PageTouch { object: 0, page, interval, visit, home, node }
    }

    type Row = (u64, u64, u16, Option<u32>, Option<u32>);

    /// First page, pages, node, thread and line of each row.
    fn rows(
        touches: Vec<PageTouch>,
        stores: &BTreeMap<(u32, u64), PageStore>,
        stays: &[ThreadStay],
    ) -> Vec<Row> {
        let mut tables = MemoryDataset::default();
        let of = |object| (object == 0).then_some(7);
        let times = |i| (Ns(u64::from(i) * 10), Ns(u64::from(i) * 10 + 10));
        fill(touches, stores, stays, of, times, &mut tables).unwrap();
        let set =
            Dataset::of_memory(DatasetMeta::new(RecordingKind::Lab, Basis::Emulated, Vec::new()), tables);
        let row = |t: FirstTouch| (t.page, t.pages, t.node.0, t.thread.map(|t| t.0), t.line);
        set.rows::<FirstTouch>().map(row).collect()
    }

    fn stay(thread: u32, cpu: u32, node: u16, from: u64) -> ThreadStay {
        ThreadStay { process: 7, thread, cpu, node, from: Ns(from), until: Ns(100) }
    }

    #[test]
    fn the_first_interval_of_a_page_tells() {
        let stays = [stay(1, 0, 0, 0), stay(2, 1, 1, 0), stay(3, 1, 1, 15)];
        let touches = vec![
            // Who came later does not count.
            touch(0, 0, 0, 0, 0),
            touch(0, 1, 5, 0, 1),
            touch(1, 0, 1, 0, 0),
            // Another home than the toucher's: the program has placed it.
            touch(2, 0, 2, 0, 1),
            // Two came: its home tells.
            touch(3, 0, 3, 1, 0),
            touch(3, 0, 3, 1, 1),
            // Two threads ran there then.
            touch(4, 2, 9, 1, 1),
        ];
        let none = BTreeMap::new();
        let all = [(0, 2, 0, Some(1), None), (2, 2, 1, Some(2), None), (4, 1, 1, None, None)];
        assert_eq!(rows(touches, &none, &stays), all);
    }

    #[test]
    fn a_store_tells_more_than_the_counts() {
        // Node 1 has two CPUs, each with a thread.
        let stays = [stay(1, 0, 0, 0), stay(2, 1, 1, 0), stay(3, 2, 1, 0)];
        let store = |cpu, line| {
            let place = SourcePlace { line: Some(line), ..SourcePlace::default() };
            PageStore { interval: 0, cpu, node: u16::from(cpu > 0), place }
        };
        let stores =
            [(0, store(1, 5)), (1, store(1, 5)), (2, store(2, 5)), (3, store(2, 6)), (9, store(0, 6))];
        let stores = stores.into_iter().map(|(page, store)| ((0, page), store)).collect();
        // Counts of node 0, of pages with a store and of one without.
        let touches = vec![touch(0, 0, 0, 0, 0), touch(3, 0, 1, 0, 0), touch(4, 0, 2, 0, 0)];
        let all = [
            (0, 2, 1, Some(2), Some(5)),
            (2, 1, 1, Some(3), Some(5)),
            (3, 1, 1, Some(3), Some(6)),
            (4, 1, 0, Some(1), None),
            (9, 1, 0, Some(1), Some(6)),
        ];
        assert_eq!(rows(touches, &stores, &stays), all);
    }

    #[test]
    fn of_what_was_allocated_several_times_nothing_is_told() {
        let none = BTreeMap::new();
        assert_eq!(rows(vec![PageTouch { object: 1, ..touch(0, 0, 0, 0, 0) }], &none, &[]), []);
        let store = PageStore { interval: 0, cpu: 0, node: 0, place: SourcePlace::default() };
        assert_eq!(rows(Vec::new(), &[((1, 0), store)].into(), &[]), []);
    }
}
