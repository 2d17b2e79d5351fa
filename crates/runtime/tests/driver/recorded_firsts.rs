//! Who touches pages first, in a recording: what page faults tell, and what they do not.

use super::*;

use homenode_sources::first_touches::PageFault;
use homenode_wire::live::{LiveReader, LiveRecord, Pages, ThreadNo};

const OBJECT: usize = BASE + (1 << 30);
const PAGES: usize = 64;

fn fault(page: usize, thread: u32, node: u16, time: u64) -> PageFault {
    let (address, pc) = (OBJECT + page * PAGE + 8, 0x40_0000 + u64::from(thread));
    PageFault { address, thread, cpu: 0, node: NodeId(node), time: Ns(time), pc }
}

/// A recorded driver with an object that is born at millisecond 10.
fn recorded() -> (Driver, Shared) {
    let (mut d, world) = driver("next-touch", None, &[Set::Force(false)]);
    d.record_in_memory();
    later(10_000_000);
    d.born(OBJECT, PAGES * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    (d, world)
}

/// Object's pages, thread, node and time of each record, in the order of the stream.
fn told(d: &mut Driver) -> Vec<(Pages, Option<ThreadNo>, u16, u64)> {
    d.end();
    d.end_recording();
    let one = |r: LiveRecord| match r {
        LiveRecord::FirstTouch { pages, thread, node, time, .. } => Some((pages, thread, node.0, time.0)),
        _ => None,
    };
    LiveReader::new(d.recorded_bytes()).filter_map(|r| one(r.unwrap())).collect()
}

const fn pages(first: u32, count: u32) -> Pages {
    Pages { first, count }
}

#[test]
fn neighbouring_pages_of_one_thread_are_one_record() {
    let (mut d, _) = recorded();
    let now = WALL.get();
    // Two threads in turns, as a schedule deals them.
    let faults: Vec<PageFault> = (0..8)
        .flat_map(|i| [fault(i, 100, 0, now + i as u64), fault(32 + i, 200, 1, now + i as u64)])
        .collect();
    d.first_faults(&faults);
    let all = told(&mut d);
    let brief: Vec<_> = all.iter().map(|(pages, _, node, _)| (*pages, *node)).collect();
    assert_eq!(brief, [(pages(0, 8), 0), (pages(32, 8), 1)]);
    assert!(all[0].1.is_some() && all[0].1 != all[1].1, "{all:?}");
    assert!(all.iter().all(|(.., time)| *time >= 10_000_000), "since the start: {all:?}");
}

#[test]
fn a_page_is_told_once_and_no_later_fault_is_a_first_touch() {
    let (mut d, world) = recorded();
    let now = WALL.get();
    d.first_faults(&[fault(3, 100, 0, now), fault(3, 200, 1, now + 1)]);
    // The memory's former owner, and memory that is no object.
    d.first_faults(&[fault(5, 100, 0, now - 5_000_000), fault(PAGES, 100, 0, now)]);
    // The driver has found page 9 on node 1. A fault of it comes from an arming.
    world.lock().unwrap().homes.insert(OBJECT + 9 * PAGE, NodeId(1));
    d.region_begin(RegionKey { function: 7, caller: 9 });
    d.region_end();
    d.first_faults(&[fault(9, 100, 0, now + 2), fault(10, 100, 0, now + 3)]);
    let brief: Vec<_> = told(&mut d).iter().map(|(pages, _, node, _)| (*pages, *node)).collect();
    assert_eq!(brief, [(pages(3, 1), 0), (pages(10, 1), 0)]);
}

#[test]
fn memory_that_is_freed_and_allocated_anew_is_fresh() {
    let (mut d, _) = recorded();
    d.first_faults(&[fault(3, 100, 0, WALL.get())]);
    d.dies(OBJECT);
    later(1_000_000);
    d.born(OBJECT, PAGES * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    d.first_faults(&[fault(3, 200, 1, WALL.get())]);
    let brief: Vec<_> = told(&mut d).iter().map(|(pages, _, node, _)| (*pages, *node)).collect();
    assert_eq!(brief, [(pages(3, 1), 0), (pages(3, 1), 1)]);
}
