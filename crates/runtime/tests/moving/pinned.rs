//! What holds for every mechanism once something in the process can have the kernel, a device or a
//! peer use memory behind the program's back: nothing is taken away from it any more, and the
//! kernel still moves. With this machine's own nodes, even if there is one. Each file that includes
//! this is a process of its own: what can pin memory is known for good.

use std::net::TcpListener;
use std::os::fd::AsRawFd;

use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_runtime::moving::{self, Manner, Mechanism, MovingOptions, PageTarget, Why};
use homenode_sys::memory::{Protection, map_aligned};
use homenode_sys::{HUGE, PAGE, Span, maps};

use super::MECHANISM;

/// Whether the kernel can read and write all of it, as for who has it in an order to io_uring.
fn kernel_has(m: Span) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: two descriptors of this function's; a byte of each page goes through the pipe, and
    // comes back to where it was.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let well = m.pieces(PAGE).all(|page| {
            libc::write(pipe[1], page.start as *const _, 1) == 1
                && libc::read(pipe[0], page.start as *mut _, 1) == 1
        });
        pipe.iter().for_each(|fd| _ = libc::close(*fd));
        well
    }
}

fn accessible(m: Span) -> bool {
    let mut all = true;
    maps::each(|mapping| {
        all &= !mapping.span.overlaps(m) || mapping.read && mapping.write;
        true
    })
    .unwrap();
    all
}

#[test]
fn nothing_is_taken_away_once_something_can_pin_memory() {
    let started = moving::start(&MovingOptions { mechanism: Some(MECHANISM), ..MovingOptions::default() });
    if started.mechanism != MECHANISM {
        return println!("skipped: {:?}", started.reasons);
    }
    let m = map_aligned(4 * HUGE, HUGE, Protection::ReadWrite).unwrap();
    let words = || (m.start..m.end).step_by(8).map(|at| at as *mut usize);
    // SAFETY: this test's memory.
    words().for_each(|p| unsafe { p.write(p as usize) });
    let (first, second) = (Span::new(m.start, 2 * HUGE), Span::new(m.start + 2 * HUGE, 2 * HUGE));
    assert_eq!(moving::arm(&[first]).armed, first.bytes());
    assert!(!kernel_has(first), "armed memory is not there for the kernel");
    assert!(moving::armed() > Bytes::ZERO);
    // By a call that no front end sees; its descriptor is one among many, and is looked at when
    // memory is next armed.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let on = 1_i32;
    // SAFETY: a number of that length.
    let set = unsafe {
        let (of, value) = (socket.as_raw_fd(), (&raw const on).cast());
        libc::setsockopt(of, libc::SOL_SOCKET, libc::SO_ZEROCOPY, value, size_of::<i32>() as u32)
    };
    assert_eq!(set, 0);
    for manner in [Manner::Around, Manner::Alone, Manner::Stays] {
        let report = moving::arm_as(&[second], manner);
        assert_eq!(report.armed, Bytes::ZERO, "{manner:?}: {report:?}");
        assert_eq!(report.skipped[Why::Pinning as usize], second.bytes(), "{manner:?}: {report:?}");
        assert_eq!(moving::armed(), Bytes::ZERO, "what was armed before is not any more");
        assert!(accessible(m) && kernel_has(m), "{manner:?}");
    }
    assert_eq!(moving::mechanism(), Mechanism::None);
    assert!(!moving::can_stay());
    assert!(moving::pinning().is_some_and(|why| why.contains("MSG_ZEROCOPY")), "{:?}", moving::pinning());
    // SAFETY: as above.
    assert!(words().all(|p| unsafe { p.read() } == p as usize));
    // What is known still goes by the kernel.
    let mut home = [None];
    moving::homes(&[m.start], &mut home);
    let mut moves = [PageTarget::new(m.start, home[0].unwrap_or(NodeId(0)))];
    let report = moving::move_pages(&mut moves, Ns(1_000_000));
    if started.kernel_moves {
        assert_eq!((moves[0].result, report.error), (MoveResult::AlreadyThere, None));
    }
}
