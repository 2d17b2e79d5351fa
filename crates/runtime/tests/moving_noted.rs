//! Pretended nodes where nothing may be copied: no userfaultfd, and nobody said that the program
//! makes no system calls of its own. Homes are noted and pages stay; so what the program gives up,
//! by whatever call, is gone.

use std::sync::atomic::{AtomicBool, Ordering};

use homenode_model::{Bytes, NodeId, Ns};
use homenode_runtime::moving::{self, Mechanism, MovingOptions, PageTarget};
use homenode_sys::memory::{Protection, discard, map_aligned};
use homenode_sys::{HUGE, PAGE, Span};

fn start(mechanism: Mechanism) -> moving::Started {
    moving::start(&MovingOptions {
        pretend_nodes: Some(2),
        mechanism: Some(mechanism),
        ..MovingOptions::default()
    })
}

#[test]
fn memory_that_is_given_up_past_the_c_library_stays_zero() {
    let started = start(Mechanism::Protect);
    assert_eq!(started.mechanism, Mechanism::Protect, "{:?}", started.reasons);
    assert!(
        started.reasons.iter().any(|r| r.contains("noted") && r.contains("--copy-unseen")),
        "{started:?}"
    );
    let m = map_aligned(2 * HUGE, HUGE, Protection::ReadWrite).unwrap();
    let words = || (m.start..m.end).step_by(PAGE).map(|at| at as *mut usize);
    let half = Span::new(m.start, HUGE);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                let to = NodeId(round % 2);
                let mut moves: Vec<PageTarget> =
                    (m.start..m.end).step_by(PAGE).map(|page| PageTarget::new(page, to)).collect();
                moving::move_pages(&mut moves, Ns(1_000_000));
                moving::arm(&[m]);
            }
        });
        for round in 1..400 {
            // SAFETY: this test's memory.
            unsafe {
                words().for_each(|p| p.write_volatile(round));
                // The system call itself: nobody is told.
                discard(half).unwrap();
                let wrong =
                    words().filter(|p| p.read_volatile() != usize::from(*p as usize >= half.end) * round);
                assert_eq!(wrong.count(), 0, "round {round}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    moving::disarm_all();
    assert_eq!(moving::counters().copied, Bytes::ZERO);
    let mut moves = [PageTarget::new(m.end - PAGE, NodeId(1))];
    moving::move_pages(&mut moves, Ns(1_000_000));
    let mut homes = [None];
    moving::homes(&[m.end - PAGE], &mut homes);
    assert_eq!(homes, [Some(NodeId(1))]);
    // A second start answers as the first: that blocks are not copied unasked is seen where the
    // mechanism is asked for (tests of the library in a program behind a filter of system calls).
    assert_eq!(start(Mechanism::CopyRemap).mechanism, Mechanism::Protect);
}
