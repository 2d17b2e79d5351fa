//! Moves pages to their nodes: next touch, moves by the kernel, pretended nodes.
//!
//! A process has one mover. The driver starts it, and asks it to move or to arm memory. Front ends
//! tell it what the program does to its memory, its signals and its files, before the C library
//! does it. The order of a program's life:
//!
//! 1. [`start()`] once, before the program's threads: probes the machine, and takes over SIGBUS and
//!    SIGSEGV.
//! 2. [`move_pages`] if the homes are known, in the calling thread, while the others wait.
//! 3. [`arm()`] if the next toucher should get the pages. It skips memory that must not be armed,
//!    and reports how much and why. A thread that touches an armed page faults, the page comes to
//!    its node with the rest of its 64 KiB, and the thread goes on.
//! 4. [`drain`] reports which node touched what, [`settle`] unregisters memory all of which has
//!    been touched, [`restore_huge_pages`] restores huge pages that arming has split, and
//!    [`disarm_all`] disarms everything: untouched pages stay on their nodes.
//! 5. [`stop`] at the end, or if something is wrong: everything is disarmed, for good.
//!
//! Front ends (the agent's exported functions) must make these calls, before the real function
//! unless said otherwise:
//!
//! | function of the program | call |
//! |---|---|
//! | `free`, `munmap`, `realloc`, `mremap` | [`before_free`] of the memory; [`retire`] when the call has returned |
//! | `mprotect`, `madvise`, `mlock` … | [`before_change`] of the memory; [`retire`] when the call has returned |
//! | `read`, `write`, `recv` … (the kernel reads or writes memory) | [`publish()`]; [`retire`] when the call has returned |
//! | memory that somebody keeps using: stacks, locks, buffers of `aio_*` | [`exclude`], for as long as the memory lives |
//! | `posix_spawn`, `execve`, `system` | [`before_process`]; [`retire`] when the call has returned |
//! | `printf` and its kin | [`quiet`]; [`retire`] when the call has returned |
//! | `fork` | nothing: the C library calls a handler; a child has no mover |
//! | `_Fork`, `clone` and its kin without shared memory | [`before_bare_fork`]; then [`bare_fork_in_parent`] and [`bare_fork_in_child`] |
//! | `sigaction`, `signal` of SIGBUS or SIGSEGV; signal masks | [`signals`] |
//! | `sigaltstack`; the start of a thread | [`handler_stack`] |
//! | `io_uring_setup`, `io_setup`, `open` of a device | [`pins`], [`see_path`] |
//! | `socket`, `setsockopt`; flags of `send` and its kin | [`see_family`], [`see_option`]; [`see_sending`] |
//!
//! None of these calls panics, allocates with the program's allocator, or changes `errno`. Without
//! [`start()`] they do nothing, at the cost of one load.
//!
//! # What may be armed
//!
//! Whole pages of private anonymous memory, by `/proc/self/maps` at that moment, that are readable,
//! not locked, not in flight to or from the kernel, and not excluded.
//!
//! Nothing may be armed, by any mechanism, once anything in the process can pin memory, or can have
//! the kernel, a device or a peer use it at any time. Armed memory is then disarmed, and only
//! [`move_pages`] and [`prefer`] go on. See [`pinning()`].
//!
//! # What the program does past the C library
//!
//! With userfaultfd the kernel reports every `munmap`, `mremap` and `madvise`, whoever makes it,
//! and the mover only puts a page where one is missing. Without it, two calls copy a block and put
//! the copy in its place. Nothing shows if the program gives the block up between them, and the
//! kernel has no call that swaps two mappings. So the mover makes such copies only if the user has
//! said that the program makes no such calls ([`MovingOptions::copy_unseen`]). Otherwise
//! [`Mechanism::Protect`] moves by the kernel, which loses nothing. On pretended nodes it then
//! notes the homes and copies nothing.

//! # Pretended nodes
//!
//! The machine has one node. Its CPUs are dealt into several nodes, and a table keeps the home of
//! each page. The home of a page is the node of the thread that touched the page first:
//!
//! | first touch | what homenode knows |
//! |---|---|
//! | of a page that did not exist when a region began | seen: such pages are armed, and their first toucher faults ([`sees_first_touches`]) |
//! | before the first region, or of memory that is younger than the region's start, seen later | assumed: the node of the thread that started the next region, at that moment |
//! | without userfaultfd, or under a policy that watches memory instead of arming it | assumed, as above |
//!
//! The assumption is wrong for memory that a thread of a team allocates and initialises within one
//! region, and for the part of a serial initialisation after which its thread changed CPUs. Memory
//! that is freed and allocated anew counts as new. A seen touch of a large object takes the rest of
//! its 64 KiB along, as an armed one does. Huge pages are not pretended: a real kernel may give 2
//! MiB to one first touch.

mod arm;
mod calls;
mod candidates;
mod chunks;
pub mod deaf_threads;
mod disarm;
mod events;
mod fault;
mod group;
pub mod handler_stack;
mod inflight;
mod kernel;
mod one_home;
mod pieces;
mod pinning;
mod program;
mod remap;
pub mod signals;
mod start;
mod state;
mod table;
mod touches;

use std::fmt;

use homenode_model::{Bytes, NodeId, Ns};
pub use homenode_sys::{Span, descriptor};

pub use arm::{arm, arm_as, can_stay};
pub use disarm::{armed, disarm, disarm_all, may_be_armed, restore_huge_pages, settle};
pub use fault::{listen, on_fault};
pub use inflight::{InFlight, about_to_list, give_up_left, publish, quiet, retire};
pub use kernel::{MoveReport, PageTarget, homes, move_pages, prefer, pretend_home};
pub use one_home::{homes_on, one_home};
pub use pinning::{has_peers, pinning, pins, see_family, see_option, see_path, see_sending};
pub use program::{
    bare_fork_in_child, bare_fork_in_parent, before_bare_fork, before_change, before_free, before_process,
    exclude, fresh,
};
pub use remap::remap_in_parts;
pub use start::{NO_NEXT_TOUCH, can_make_huge_pages, leave, start, stop};
pub use state::{counters, current_node, mechanism, node_of_cpu, note_serial, pretended, sees_first_touches};
pub use touches::drain;

/// The mechanisms of next touch, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// userfaultfd: missing pages raise SIGBUS in their toucher, which copies them from a shadow.
    UserFault,
    /// Inaccessible 2 MiB blocks: the toucher makes them accessible and has the kernel move them.
    Protect,
    /// Inaccessible 2 MiB blocks: the toucher copies them to fresh memory, which takes their place.
    /// For containers that forbid all calls that name nodes, and only with
    /// [`MovingOptions::copy_unseen`].
    CopyRemap,
    /// No next touch: [`Started::reasons`] says why.
    None,
}

impl Mechanism {
    /// The name, to follow "by".
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserFault => "userfaultfd",
            Self::Protect => "protected blocks",
            Self::CopyRemap => "copied blocks",
            Self::None => "none",
        }
    }
}

/// What a touch of an armed page does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// The page comes to its toucher, with the rest of its block.
    #[default]
    Around,
    /// The page comes to its toucher, alone.
    Alone,
    /// The page stays where it is, and [`drain`] reports who touched it.
    Stays,
}

/// How to start.
#[derive(Clone, Copy, Debug, Default)]
pub struct MovingOptions {
    /// Deal the CPUs into this many nodes and keep a table of page homes, instead of using the
    /// machine's nodes. Moves by the kernel become copies.
    pub pretend_nodes: Option<u16>,
    /// The pretended node of each CPU; without it as [`crate::nodes::Nodes::pretend`] deals them.
    pub pretend_cpus: Option<&'static [u16]>,
    /// Use this mechanism or none.
    pub mechanism: Option<Mechanism>,
    /// Copy blocks if there is no userfaultfd. A copy takes 0.2 ms. A `munmap`, `mremap` or
    /// `madvise` that the program makes past the C library meanwhile is not seen, and the memory
    /// that it gave up comes back. Only for programs that make no such calls.
    pub copy_unseen: bool,
    /// Pages must be able to stay on their node ([`Manner::Stays`]).
    pub stay: bool,
    /// Bytes that come with one touch under [`Mechanism::UserFault`]: a power of two from a page to
    /// 64 KiB (the default).
    pub fault_around: Option<Bytes>,
}

/// What the mover can use.
#[derive(Clone, Debug)]
pub struct Started {
    /// What [`arm()`] will use.
    pub mechanism: Mechanism,
    /// What better mechanisms lack, one sentence each: what was tried, and the system's answer.
    pub reasons: Vec<String>,
    /// Whether the kernel moves pages ([`move_pages`]).
    pub kernel_moves: bool,
}

/// Why memory was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// There is no mechanism, or the mover was stopped.
    Off,
    /// Not whole pages.
    Partial,
    /// Not private anonymous memory, or not mapped at all.
    NotAnonymous,
    /// Not readable: the program keeps it inaccessible.
    Inaccessible,
    /// Locked in memory.
    Locked,
    /// A stack or thread-local storage.
    Stack,
    /// The kernel is reading or writing the memory now.
    InFlight,
    /// Excluded for ever: the memory holds a lock, a stack, or an asynchronous buffer.
    Excluded,
    /// Already armed.
    Armed,
    /// Something in the process can pin memory ([`pinning()`] names it): nothing is armed.
    Pinning,
    /// A system call failed.
    Failed,
    /// A thread blocks the signal of an armed page, and a touch would end the process.
    Deaf,
}

impl Why {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::Off,
        Self::Partial,
        Self::NotAnonymous,
        Self::Inaccessible,
        Self::Locked,
        Self::Stack,
        Self::InFlight,
        Self::Excluded,
        Self::Armed,
        Self::Pinning,
        Self::Failed,
        Self::Deaf,
    ];
    /// A part of a sentence: "not armed: …".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Off => "next touch is not available or was stopped",
            Self::Partial => "pages shared with other objects",
            Self::NotAnonymous => "file-backed, shared or unmapped",
            Self::Inaccessible => "made inaccessible by the program",
            Self::Locked => "locked in memory",
            Self::Stack => "stack",
            Self::InFlight => "in use by a system call",
            Self::Excluded => "holds locks, stacks or asynchronous buffers",
            Self::Armed => "armed already",
            Self::Pinning => "something in the process can pin memory",
            Self::Failed => "a system call failed",
            Self::Deaf => "a thread blocks the signals that next touch needs",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The result of [`arm()`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmReport {
    /// Armed.
    pub armed: Bytes,
    /// Not armed, by [`Why`].
    pub skipped: [Bytes; Why::ALL.len()],
    /// The last system call that failed, if one did.
    pub error: Option<homenode_sys::Error>,
    /// How long it took.
    pub took: Ns,
}

impl ArmReport {
    /// Skipped bytes by reason.
    pub fn reasons(&self) -> impl Iterator<Item = (Why, Bytes)> + '_ {
        Why::ALL.into_iter().zip(self.skipped).filter(|(_, b)| *b != Bytes::ZERO)
    }
}

/// A first touch since arming, reported by [`drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The pages that came with it: up to 64 KiB (2 MiB with protected blocks).
    pub span: Span,
    /// Who touched it.
    pub node: NodeId,
    /// Whether the pages stayed in place: as asked ([`Manner::Stays`]), or because the kernel
    /// refused to move them.
    pub stayed: bool,
}

/// Totals since [`start()`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovingTotals {
    /// Calls of [`arm()`] that armed something.
    pub arms: u64,
    /// Bytes armed, all calls together.
    pub armed: Bytes,
    /// Faults handled.
    pub faults: u64,
    /// Bytes copied to the node of their toucher.
    pub copied: Bytes,
    /// Bytes moved by the kernel.
    pub moved: Bytes,
    /// Bytes that the kernel did not move for their toucher.
    pub refused: Bytes,
    /// Bytes that were disarmed untouched.
    pub returned: Bytes,
    /// Bytes that came over before a system call because its buffer was published.
    pub published: Bytes,
    /// Huge pages brought back.
    pub collapsed: u64,
    /// Touches that [`drain`] lost.
    pub touches_lost: u64,
    /// CPU time in fault handlers, all threads together.
    pub in_handlers: Ns,
    /// CPU time of the program's threads in front ends that brought or disarmed memory.
    pub in_calls: Ns,
    /// CPU time of the thread that reads what the kernel tells of the program's mappings.
    pub in_events: Ns,
}
