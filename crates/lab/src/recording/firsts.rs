//! Who touched pages first, as far as the monitor can tell.
//!
//! The monitor counts by interval, not by time. For the interval in which a page is first seen it
//! knows which nodes came. If it was one node, that node touched the page first. If there were
//! several, the page's home tells, because the kernel puts a page on the node of its first toucher.
//! A thread is named if it alone ran on that node then.

use homenode_dataset::tables::FirstTouch;
use homenode_dataset::{DatasetError, Sink};
use homenode_model::{NodeId, Ns, ObjectId, ThreadId};

/// A page that a node accessed in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touch {
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

/// A thread's stay on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The node.
    pub node: u16,
    /// Its start.
    pub from: Ns,
    /// Its end.
    pub until: Ns,
}

/// The thread of a process that was the only one on a node during a time.
fn alone(stays: &[Stay], process: u32, node: u16, (begin, end): (Ns, Ns)) -> Option<ThreadId> {
    let there = |s: &&Stay| s.process == process && s.node == node && s.from <= end && begin <= s.until;
    let mut all = stays.iter().filter(there).map(|s| s.thread);
    let first = all.next()?;
    all.all(|t| t == first).then_some(ThreadId(first))
}

/// Writes the rows. `process`: the process of an object that was allocated once; for other objects
/// it is unknown which allocation a page belonged to. `times`: begin and end of an interval.
///
/// # Errors
/// `to` takes no more.
pub fn fill(
    mut touches: Vec<Touch>,
    stays: &[Stay],
    process: impl Fn(u32) -> Option<u32>,
    times: impl Fn(u32) -> (Ns, Ns),
    to: &mut impl Sink,
) -> Result<(), DatasetError> {
    touches.sort_unstable();
    let mut run: Option<(FirstTouch, u32)> = None;
    for page in touches.chunk_by(|a, b| (a.object, a.page) == (b.object, b.page)) {
        let first = page[0];
        let Some(process) = process(first.object) else { continue };
        let mut then = page.iter().take_while(|t| t.interval == first.interval);
        let node = if then.all(|t| t.node == first.node) { first.node } else { first.home };
        if let Some((row, interval)) = &mut run
            && (row.object.0, row.page + row.pages, row.node.0, *interval)
                == (first.object, first.page, node, first.interval)
        {
            row.pages += 1;
            continue;
        }
        let row = FirstTouch {
            object: ObjectId(first.object),
            page: first.page,
            pages: 1,
            thread: alone(stays, process, node, times(first.interval)),
            node: NodeId(node),
            time_ns: None,
            file: None,
            line: None,
            function: None,
        };
        if let Some((row, _)) = run.replace((row, first.interval)) {
            to.push(&row)?;
        }
    }
    run.map_or(Ok(()), |(row, _)| to.push(&row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_dataset::{Basis, Dataset, Kind, Memory, Meta};

    fn touch(page: u64, interval: u32, visit: u32, home: u16, node: u16) -> Touch {
        Touch { object: 0, page, interval, visit, home, node }
    }

    fn rows(touches: Vec<Touch>, stays: &[Stay]) -> Vec<(u64, u64, u16, Option<u32>)> {
        let mut tables = Memory::default();
        let of = |object| (object == 0).then_some(7);
        fill(touches, stays, of, |i| (Ns(u64::from(i) * 10), Ns(u64::from(i) * 10 + 10)), &mut tables)
            .unwrap();
        let set = Dataset::of_memory(Meta::new(Kind::Lab, Basis::Emulated, Vec::new()), tables);
        set.rows::<FirstTouch>().map(|t| (t.page, t.pages, t.node.0, t.thread.map(|t| t.0))).collect()
    }

    #[test]
    fn the_first_interval_of_a_page_tells() {
        let stay = |thread, node, from| Stay { process: 7, thread, node, from: Ns(from), until: Ns(100) };
        let stays = [stay(1, 0, 0), stay(2, 1, 0), stay(3, 1, 15)];
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
        assert_eq!(rows(touches, &stays), [(0, 2, 0, Some(1)), (2, 2, 1, Some(2)), (4, 1, 1, None)]);
    }

    #[test]
    fn of_what_was_allocated_several_times_nothing_is_told() {
        assert_eq!(rows(vec![Touch { object: 1, ..touch(0, 0, 0, 0, 0) }], &[]), []);
        assert_eq!(rows(Vec::new(), &[]), []);
    }
}
