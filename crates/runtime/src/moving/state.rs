//! The mover's state: on or off, the mechanism, pretended nodes, and totals.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU64, Ordering};

use homenode_model::{Bytes, NodeId, Ns};
use homenode_sys::uffd::Uffd;
use homenode_sys::{call, numa};

use super::mechanism::{Mechanism, Started};
use super::reports::MovingTotals;

static MECHANISM: AtomicU8 = AtomicU8::new(0);
static PRETEND: AtomicU16 = AtomicU16::new(0);
static UFFD: AtomicPtr<Uffd> = AtomicPtr::new(std::ptr::null_mut());
/// The answer of the first `start`.
pub static STARTED: OnceLock<Started> = OnceLock::new();
/// Whether `UFFDIO_MOVE` works.
pub static TAKE_BACK: AtomicBool = AtomicBool::new(false);
/// Whether memory policies can be set.
pub static POLICIES: AtomicBool = AtomicBool::new(false);

static OFF: AtomicBool = AtomicBool::new(false);

/// The mechanism of next touch; none once the mover is off.
#[inline]
pub fn mechanism() -> Mechanism {
    if OFF.load(Ordering::Relaxed) { Mechanism::None } else { chosen() }
}

/// Turns the mover off: nothing is armed any more, for good.
pub fn turn_off() {
    OFF.store(true, Ordering::SeqCst);
}

/// The mechanism by which armed memory was armed.
#[inline]
pub fn chosen() -> Mechanism {
    match MECHANISM.load(Ordering::Relaxed) {
        1 => Mechanism::UserFault,
        2 => Mechanism::Protect,
        3 => Mechanism::CopyRemap,
        _ => Mechanism::None,
    }
}

/// Sets the mechanism, once.
pub fn choose(mechanism: Mechanism) {
    let number = match mechanism {
        Mechanism::None => 0,
        Mechanism::UserFault => 1,
        Mechanism::Protect => 2,
        Mechanism::CopyRemap => 3,
    };
    MECHANISM.store(number, Ordering::SeqCst);
}

/// See [`super::MovingOptions::copy_unseen`].
pub static COPY_UNSEEN: AtomicBool = AtomicBool::new(false);

/// Whether protected blocks are copied, not moved by the kernel or left in place.
pub fn copies_blocks() -> bool {
    COPY_UNSEEN.load(Ordering::Relaxed) && (chosen() == Mechanism::CopyRemap || pretended() != 0)
}

/// Whether the kernel moves pages.
pub static KERNEL_MOVES: AtomicBool = AtomicBool::new(false);

/// The userfaultfd descriptor. It is never closed, except in a forked child.
pub fn uffd() -> Option<&'static Uffd> {
    // SAFETY: null or leaked by `set_uffd`.
    unsafe { UFFD.load(Ordering::Acquire).as_ref() }
}

/// Keeps the descriptor for good.
pub fn set_uffd(uffd: Uffd) {
    UFFD.store(Box::into_raw(Box::new(uffd)), Ordering::Release);
}

/// In a forked child: drops the parent's descriptor.
pub fn forget_uffd() {
    if let Some(uffd) = uffd() {
        homenode_sys::descriptor::close(uffd.fd());
    }
    UFFD.store(std::ptr::null_mut(), Ordering::Release);
}

/// Whether pages that do not exist yet should be armed to learn their homes: nodes are pretended,
/// and missing pages are told apart.
pub fn sees_first_touches() -> bool {
    pretended() != 0 && mechanism() == Mechanism::UserFault
}

/// Number of pretended nodes; 0 if nodes are real.
pub fn pretended() -> u16 {
    PRETEND.load(Ordering::Relaxed)
}

/// CPUs with this number or a higher one are on the first pretended node.
const CPUS: usize = 4096;
static DEALT: [AtomicU8; CPUS] = [const { AtomicU8::new(0) }; CPUS];

/// Pretends `nodes` nodes. `cpus`: the node of each CPU by its number.
pub fn pretend(nodes: u16, cpus: &[u16]) {
    for (dealt, node) in DEALT.iter().zip(cpus) {
        dealt.store((*node).min(254) as u8, Ordering::Relaxed);
    }
    PRETEND.store(nodes, Ordering::Relaxed);
}

/// The pretended node of the thread that runs between parallel regions.
static SERIAL: AtomicU8 = AtomicU8::new(0);

/// The caller starts a team. Memory whose first touch since the last region was not seen counts as
/// touched on the caller's node.
pub fn note_serial() {
    if pretended() != 0 {
        SERIAL.store(current_node().0.min(254) as u8, Ordering::Relaxed);
    }
}

/// The assumed home of a page whose first touch nobody has seen.
pub fn serial_node() -> NodeId {
    NodeId(SERIAL.load(Ordering::Relaxed).into())
}

/// The node of the caller's CPU.
#[inline]
pub fn current_node() -> NodeId {
    let (cpu, node) = numa::here();
    if pretended() == 0 { node } else { node_of_cpu(cpu) }
}

/// The pretended node of a CPU.
#[inline]
pub fn node_of_cpu(cpu: u32) -> NodeId {
    NodeId(DEALT.get(cpu as usize).map_or(0, |n| n.load(Ordering::Relaxed).into()))
}

macro_rules! counters {
    ($($name:ident)*) => { $(
        #[allow(missing_docs)]
        #[doc = concat!("See `Counters::", stringify!($name), "`, in lower case.")]
        pub static $name: AtomicU64 = AtomicU64::new(0);
    )* };
}
counters! { ARMS ARMED FAULTS COPIED MOVED REFUSED RETURNED PUBLISHED COLLAPSED TOUCHES_LOST IN_HANDLERS IN_CALLS IN_EVENTS }

/// Adds.
#[inline]
pub fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Runs `f` in a thread of the program, in a front end that works for homenode. The CPU time counts
/// as homenode's.
pub fn in_front_end<R>(f: impl FnOnce() -> R) -> R {
    let begin = call::thread_time();
    let result = f();
    count(&IN_CALLS, (call::thread_time() - begin).0);
    result
}

/// The totals so far.
pub fn counters() -> MovingTotals {
    let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
    MovingTotals {
        arms: get(&ARMS),
        armed: Bytes(get(&ARMED)),
        faults: get(&FAULTS),
        copied: Bytes(get(&COPIED)),
        moved: Bytes(get(&MOVED)),
        refused: Bytes(get(&REFUSED)),
        returned: Bytes(get(&RETURNED)),
        published: Bytes(get(&PUBLISHED)),
        collapsed: get(&COLLAPSED),
        touches_lost: get(&TOUCHES_LOST),
        in_handlers: Ns(get(&IN_HANDLERS)),
        in_calls: Ns(get(&IN_CALLS)),
        in_events: Ns(get(&IN_EVENTS)),
    }
}
