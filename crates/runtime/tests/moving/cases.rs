//! What holds for every mechanism of next touch. Each file that includes this is a process of its
//! own: one has one mover.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use homenode_model::{Bytes, NodeId, Ns};
use homenode_runtime::moving::{self, Manner, Mechanism, MovingOptions, PageTarget, Span, Why};
use homenode_sys::memory::{Protection, map, map_aligned, unmap};
use homenode_sys::{HUGE, PAGE};

use super::MECHANISM;

static ONE: Mutex<()> = Mutex::new(());

/// Starts the mover, one test at a time. `None`: this machine lacks the mechanism, which is said.
pub fn ready() -> Option<MutexGuard<'static, ()>> {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mechanism = Some(MECHANISM);
    let options =
        MovingOptions { pretend_nodes: Some(2), mechanism, copy_unseen: true, ..MovingOptions::default() };
    let started = moving::start(&options);
    if started.mechanism != MECHANISM {
        println!("skipped: {:?}", started.reasons);
        return None;
    }
    moving::disarm_all();
    moving::drain(|_| {});
    Some(guard)
}

/// Memory of one test, each word its own address.
pub struct Memory(pub Span);

impl Memory {
    pub fn new(bytes: usize) -> Self {
        let m = Self(map_aligned(bytes, HUGE, Protection::ReadWrite).unwrap());
        m.fill();
        m
    }
    /// In huge pages, if there are any.
    #[allow(dead_code)]
    pub fn huge(bytes: usize) -> Self {
        let m = Self(map_aligned(bytes, HUGE, Protection::ReadWrite).unwrap());
        let _ = homenode_sys::memory::prefer_huge(m.0, true);
        m.fill();
        m
    }
    fn fill(&self) {
        for at in (self.0.start..self.0.end).step_by(8) {
            // SAFETY: this test's memory.
            unsafe { (at as *mut usize).write(at) };
        }
    }
    pub fn read(&self, page: usize) -> usize {
        // SAFETY: this test's memory.
        unsafe { ptr::read_volatile((self.0.start + page * PAGE) as *const usize) }
    }
    /// Words that are not what `fill` wrote.
    pub fn wrong(&self) -> usize {
        let is_wrong = |at: &usize| {
            // SAFETY: this test's memory.
            unsafe { ptr::read_volatile(*at as *const usize) != *at }
        };
        (self.0.start..self.0.end).step_by(8).filter(is_wrong).count()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        gone(self.0);
    }
}

/// Unmaps a test's memory as front ends do: another test may get the same addresses.
fn gone(m: Span) {
    let held = moving::before_free(m);
    // SAFETY: the memory of a test that is done with it.
    unsafe { unmap(m).unwrap() };
    moving::retire(held);
}

fn run_on(cpu: usize) {
    // SAFETY: a set of CPUs on the stack.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

pub fn on_node(node: u16, f: impl FnOnce() + Send) {
    std::thread::scope(|s| {
        s.spawn(|| {
            run_on(usize::from(node));
            // One CPU alone: everything is node 0.
            if moving::current_node() == NodeId(node) {
                f();
            }
        });
    });
}

fn two_cpus() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    if !two {
        println!("skipped: one CPU");
    }
    two
}

#[test]
fn what_is_armed_comes_with_its_contents_to_the_toucher() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(4 * HUGE + 3 * PAGE);
    let before = moving::counters();
    let report = moving::arm(&[m.0]);
    assert_eq!(report.armed, m.0.bytes(), "{report:?}");
    assert_eq!(m.wrong(), 0);
    let after = moving::counters();
    assert!(after.arms > before.arms && after.faults > before.faults);
    assert_eq!(after.copied - before.copied, m.0.bytes());
    let mut told = 0;
    moving::drain(|t| told += t.span.len());
    assert_eq!(told, m.0.len());
}

#[test]
fn each_thread_gets_what_it_touches() {
    let Some(_one) = ready() else { return };
    if !two_cpus() {
        return;
    }
    // Halves of two windows each, so that no unit of any mechanism is shared.
    let m = Memory::new(4 * HUGE);
    moving::arm(&[m.0]);
    let touch = |first: usize| {
        (first..first + 2 * HUGE / PAGE).for_each(|p| assert_eq!(m.read(p), m.0.start + p * PAGE))
    };
    on_node(0, || touch(0));
    on_node(1, || touch(2 * HUGE / PAGE));
    let pages: Vec<usize> = (m.0.start..m.0.end).step_by(PAGE).collect();
    let mut homes = vec![None; pages.len()];
    moving::homes(&pages, &mut homes);
    let (low, high) = homes.split_at(pages.len() / 2);
    assert!(low.iter().all(|h| *h == Some(NodeId(0))) && high.iter().all(|h| *h == Some(NodeId(1))));
}

#[test]
fn untouched_pages_come_back_as_they_were() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(2 * HUGE);
    assert_eq!(moving::arm(&[m.0]).armed, m.0.bytes());
    assert_eq!(m.read(3), m.0.start + 3 * PAGE);
    let before = moving::counters();
    moving::disarm_all();
    let after = moving::counters();
    assert!(after.returned - before.returned >= Bytes(HUGE as u64));
    assert_eq!(m.wrong(), 0);
    assert_eq!(moving::counters().faults, after.faults);
}

#[test]
fn arming_again_arms_what_was_touched() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(2 * HUGE);
    for round in 0..5 {
        let armed = moving::arm(&[m.0]);
        assert_eq!(armed.armed + armed.skipped[Why::Armed as usize], m.0.bytes());
        m.read(round);
    }
    assert_eq!(m.wrong(), 0);
    moving::settle();
    assert_eq!(m.wrong(), 0);
}

#[test]
fn pages_never_touched_before_are_zero() {
    let Some(_one) = ready() else { return };
    let m = map(HUGE, Protection::ReadWrite).unwrap();
    assert_eq!(moving::arm(&[m]).armed, m.bytes());
    // SAFETY: this test's memory.
    unsafe {
        assert_eq!((m.start as *const u64).read_volatile(), 0);
        ((m.end - 8) as *mut u64).write_volatile(4);
        moving::disarm_all();
        assert_eq!(((m.end - 8) as *const u64).read_volatile(), 4);
    }
    gone(m);
}

#[test]
fn a_touch_brings_no_page_of_a_neighbour_into_being_that_waits_for_its_first_touch() {
    let Some(_one) = ready().filter(|_| MECHANISM == Mechanism::UserFault) else { return };
    let m = map_aligned(HUGE, HUGE, Protection::ReadWrite).unwrap();
    let page = |i: usize| Span::new(m.start + i * PAGE, PAGE);
    let [untouched, used] = [Span::new(m.start, 8 * PAGE), Span::new(m.start + 8 * PAGE, 8 * PAGE)];
    for order in [
        [(untouched, Manner::Alone), (used, Manner::Around)],
        [(used, Manner::Around), (untouched, Manner::Alone)],
    ] {
        for i in 8..16 {
            // SAFETY: this test's memory.
            unsafe { (page(i).start as *mut usize).write_volatile(i) };
        }
        for (span, manner) in order {
            assert_eq!(moving::arm_as(&[span], manner).armed, span.bytes());
        }
        // SAFETY: this test's memory.
        assert_eq!(unsafe { (page(9).start as *const usize).read_volatile() }, 9);
        let pages: Vec<usize> = (0..16).map(|i| page(i).start).collect();
        let mut homes = vec![None; 16];
        moving::homes(&pages, &mut homes);
        assert!(homes[..8].iter().all(Option::is_none), "{homes:?}");
        assert!(homes[8..].iter().all(Option::is_some), "{homes:?}");
        moving::disarm_all();
    }
    gone(m);
}

#[test]
fn published_and_excluded_pages_are_left_alone() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(HUGE);
    let buffer = Span::new(m.0.start + 5 * PAGE + 1, PAGE);
    let lock = Span::new(m.0.start + 100 * PAGE + 8, 8);
    let flight = moving::publish(&[buffer]);
    moving::exclude(lock);
    let report = moving::arm(&[m.0]);
    assert_eq!(report.skipped[Why::InFlight as usize], Bytes(2 * PAGE as u64));
    assert_eq!(report.skipped[Why::Excluded as usize], Bytes(PAGE as u64));
    assert_eq!(report.armed, m.0.bytes() - Bytes(3 * PAGE as u64));
    moving::retire(flight);
    // Now it is armed, and comes over before the kernel gets it.
    moving::arm(&[m.0]);
    let flight = moving::publish(&[buffer]);
    assert!(moving::counters().published >= Bytes(2 * PAGE as u64));
    moving::retire(flight);
    assert_eq!(m.wrong(), 0);
}

#[test]
fn only_private_anonymous_memory_is_armed() {
    let Some(_one) = ready() else { return };
    let shared = {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let p =
            unsafe { libc::mmap(ptr::null_mut(), HUGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        Span::new(p as usize, HUGE)
    };
    let here = [0_u8; 3 * PAGE];
    let stack = Span::new((&raw const here) as usize, here.len());
    let guard = map(HUGE, Protection::None).unwrap();
    for (span, why) in [(shared, Why::NotAnonymous), (stack, Why::Stack), (guard, Why::Inaccessible)] {
        let report = moving::arm(&[span]);
        assert_eq!(report.armed, Bytes::ZERO);
        assert_eq!(report.skipped[why as usize], span.inner(PAGE).bytes(), "{why}: {report:?}");
    }
    let locked = Memory::new(4 * PAGE);
    // SAFETY: this test's memory.
    if unsafe { libc::mlock(locked.0.start as *const _, locked.0.len()) } == 0 {
        assert_eq!(moving::arm(&[locked.0]).skipped[Why::Locked as usize], locked.0.bytes());
    } else {
        println!("skipped: mlock is not allowed");
    }
    gone(shared);
    gone(guard);
}

#[test]
fn known_homes_are_reached_and_contents_kept() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(2 * HUGE);
    let page = |i: usize| m.0.start + i * PAGE;
    let mut moves: Vec<PageTarget> =
        (0..64).map(|i| PageTarget::new(page(i), NodeId(i as u16 / 32 % 2))).collect();
    moves.push(PageTarget::new(map(PAGE, Protection::ReadWrite).unwrap().start, NodeId(1)));
    let report = moving::move_pages(&mut moves, Ns(1_000_000));
    assert_eq!(
        (report.moved, report.already),
        (Bytes(32 * PAGE as u64), Bytes(32 * PAGE as u64)),
        "{report:?}"
    );
    assert_eq!(report.no_page, Bytes(PAGE as u64));
    let mut homes = [None; 2];
    moving::homes(&[page(0), page(63)], &mut homes);
    assert_eq!(homes, [Some(NodeId(0)), Some(NodeId(1))]);
    assert_eq!(m.wrong(), 0);
}

/// `adds` increments a thread of words spread over armed memory, which is armed again all the
/// while.
fn increments_survive(adds: u64) {
    let Some(_one) = ready() else { return };
    const THREADS: usize = 2;
    let m = map_aligned(4 * HUGE, HUGE, Protection::ReadWrite).unwrap();
    let (done, arms) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|s| {
        let writers: Vec<_> = (0..THREADS)
            .map(|t| {
                s.spawn(move || {
                    let words = m.len() / 8;
                    for i in 0..adds {
                        // A page's next word each time, each thread its own words.
                        let word = (i as usize * 521 % (words / THREADS)) * THREADS + t;
                        let at = (m.start + word * 8) as *mut u64;
                        // SAFETY: this test's memory, this thread's word.
                        unsafe { at.write_volatile(at.read_volatile() + 1) };
                    }
                })
            })
            .collect();
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let n = arms.fetch_add(1, Ordering::Relaxed);
                moving::arm(&[m]);
                if n % 4 == 3 {
                    moving::disarm_all();
                }
                moving::drain(|_| {});
            }
        });
        writers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    moving::disarm_all();
    // SAFETY: this test's memory.
    let sum: u64 = (m.start..m.end).step_by(8).map(|at| unsafe { (at as *const u64).read() }).sum();
    println!("{} arms, {:?}", arms.load(Ordering::Relaxed), moving::counters());
    assert!(arms.load(Ordering::Relaxed) > 0);
    assert_eq!(sum, adds * THREADS as u64, "lost updates");
    gone(m);
}

#[test]
fn no_update_is_lost() {
    increments_survive(if MECHANISM == Mechanism::UserFault { 2_000_000 } else { 1_000_000 });
}

#[test]
#[ignore = "takes minutes"]
fn no_update_of_a_hundred_million_is_lost() {
    increments_survive(50_000_000);
}

#[test]
fn what_is_freed_is_disarmed_at_once_and_held_until_it_has_gone() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(2 * HUGE);
    assert_eq!(moving::arm(&[m.0]).armed, m.0.bytes());
    let before = moving::counters();
    let held = moving::before_free(m.0);
    assert_eq!(moving::armed(), Bytes::ZERO);
    assert_eq!(moving::counters().returned - before.returned, m.0.bytes());
    let report = moving::arm(&[m.0]);
    assert_eq!((report.armed, report.skipped[Why::InFlight as usize]), (Bytes::ZERO, m.0.bytes()));
    moving::retire(held);
    assert_eq!(moving::arm(&[m.0]).armed, m.0.bytes());
    assert_eq!(m.wrong(), 0);
}

#[test]
fn a_forked_child_has_all_its_memory() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(2 * HUGE);
    assert_eq!(moving::arm(&[m.0]).armed, m.0.bytes());
    m.read(0);
    // SAFETY: the child only looks at memory and exits.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(i32::from(m.wrong() != 0));
        }
        let mut status = -1;
        libc::waitpid(child, &raw mut status, 0);
        assert_eq!(status, 0);
    }
    assert_eq!(m.wrong(), 0);
    assert_eq!(moving::arm(&[m.0]).armed, m.0.bytes());
    assert_eq!(m.wrong(), 0);
}

/// Pages here and there, several in a block, in any order and two of them twice; in a block of two
/// mappings with one between that cannot be read.
#[test]
fn many_spans_are_armed_by_one_call() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(6 * HUGE);
    let closed = Span::new(m.0.start + 5 * PAGE, PAGE);
    homenode_sys::memory::prefer_huge(m.0, false).unwrap();
    // SAFETY: this test's memory, of which nobody reads that page now.
    unsafe { homenode_sys::memory::protect(closed, Protection::None).unwrap() };
    let chosen = [700, 3, 5, 9, 8, 9, 18, 2 * 512 + 1, 2 * 512 + 17, 700];
    let spans: Vec<Span> = chosen.iter().map(|p| Span::new(m.0.start + p * PAGE, PAGE)).collect();
    let before = moving::counters();
    let report = moving::arm(&spans);
    assert_eq!(report.armed, Bytes(7 * PAGE as u64), "{report:?}");
    assert_eq!(report.skipped[Why::Inaccessible as usize], Bytes(PAGE as u64));
    assert_eq!(moving::counters().arms, before.arms + 1);
    // SAFETY: as above.
    unsafe { homenode_sys::memory::protect(closed, Protection::ReadWrite).unwrap() };
    assert_eq!(m.wrong(), 0);
    let mut told = std::collections::BTreeSet::new();
    moving::drain(|t| told.extend(t.span.pieces(PAGE).map(|p| (p.start - m.0.start) / PAGE)));
    let expected = [3, 8, 9, 18, 700, 1025, 1041];
    assert!(expected.iter().all(|p| told.contains(p)), "{told:?}");
    // All over again, and untouched.
    assert_eq!(moving::arm(&spans).armed, Bytes(8 * PAGE as u64));
    moving::disarm_all();
    assert_eq!(m.wrong(), 0);
}

/// More than are armed together, each with others of its block.
#[test]
fn thousands_of_spans_are_armed_by_one_call() {
    let Some(_one) = ready() else { return };
    let m = Memory::new(16 * HUGE);
    homenode_sys::memory::prefer_huge(m.0, false).unwrap();
    let spans: Vec<Span> =
        (0..m.0.pages()).filter(|p| p % 3 == 0).map(|p| Span::new(m.0.start + p * PAGE, PAGE)).collect();
    assert_eq!(moving::arm(&spans).armed, Bytes((spans.len() * PAGE) as u64));
    assert_eq!(m.wrong(), 0);
    assert_eq!(moving::arm(&spans).armed, Bytes((spans.len() * PAGE) as u64));
    moving::disarm_all();
    assert_eq!(m.wrong(), 0);
}
