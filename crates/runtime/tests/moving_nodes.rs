//! Moving by `Mechanism::Protect` where nodes are real: what is told to have moved is what the
//! kernel says is there. Skipped on a machine of one node; in the lab:
//! `homenode lab run --thp never -- target/debug/deps/moving_nodes-…`.

use homenode_model::NodeId;
use homenode_runtime::moving::{self, Mechanism, MovingOptions};
use homenode_sys::memory::{Protection, map_aligned};
use homenode_sys::{HUGE, PAGE};

/// Runs `f` on the first CPU of another node than `node`; `false`: there is none.
fn elsewhere(node: NodeId, f: impl FnOnce(NodeId) + Send) -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|s| {
        s.spawn(|| {
            for cpu in 0..cpus {
                // SAFETY: a set of CPUs on the stack.
                unsafe {
                    let mut set: libc::cpu_set_t = std::mem::zeroed();
                    libc::CPU_SET(cpu, &mut set);
                    libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
                }
                let here = moving::current_node();
                if here != node {
                    f(here);
                    return true;
                }
            }
            false
        })
        .join()
        .unwrap()
    })
}

#[test]
fn what_is_told_to_have_moved_is_there() {
    let started =
        moving::start(&MovingOptions { mechanism: Some(Mechanism::Protect), ..MovingOptions::default() });
    if started.mechanism != Mechanism::Protect {
        return println!("skipped: {:?}", started.reasons);
    }
    let m = map_aligned(2 * HUGE, HUGE, Protection::ReadWrite).unwrap();
    let words = || m.pieces(PAGE).map(|page| page.start as *mut usize);
    // SAFETY: memory of this test's own.
    words().for_each(|p| unsafe { p.write(p as usize) });
    let pages: Vec<usize> = m.pieces(PAGE).map(|page| page.start).collect();
    let mut before = vec![None; pages.len()];
    moving::homes(&pages, &mut before);
    let Some(home) = before[0] else { return println!("skipped: nobody says where pages are") };
    assert_eq!(moving::arm(&[m]).armed, m.bytes());
    let mut node = home;
    let other = elsewhere(home, |here| {
        node = here;
        // SAFETY: as above.
        assert!(words().all(|p| unsafe { p.read_volatile() } == p as usize));
    });
    if !other {
        return println!("skipped: one node");
    }
    let mut told = [0; 2];
    moving::drain(|t| {
        assert_eq!(t.node, node);
        told[usize::from(t.stayed)] += t.span.pages();
    });
    let mut after = vec![None; pages.len()];
    moving::homes(&pages, &mut after);
    let there = after.iter().filter(|h| **h == Some(node)).count();
    println!("{there} of {} pages came; told: {told:?}", pages.len());
    // In a cpuset with one node's memory none comes.
    assert_eq!(told, [there, pages.len() - there]);
    let counters = moving::counters();
    assert_eq!(counters.refused.0 / PAGE as u64, told[1] as u64);
    // The rest of a huge page comes along with its first page, and is not counted.
    assert!(counters.moved.0 / PAGE as u64 <= told[0] as u64, "{counters:?}");
    assert_eq!(counters.moved.0 == 0, told[0] == 0, "{counters:?}");
}
