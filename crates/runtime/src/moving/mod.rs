//! Pages to their nodes: next touch, kernel moves, pretended nodes.
//!
//! One process has one mover. The driver starts it, asks it to move or to arm memory, and hands it
//! what the program does to its memory, its signals and its files before the C library gets to see
//! it. Order of a program's life:
//!
//! 1. [`start()`] once, before the program's threads: probes what there is, stands in front of
//!    SIGBUS and SIGSEGV.
//! 2. [`move_pages`] where the homes are known, in the calling thread, while the others wait.
//! 3. [`arm()`] where the next toucher is to get the pages. It skips what must not be touched and
//!    says how much and why. Threads that touch an armed page fault, the page comes to their node
//!    with the rest of its 64 KiB, they go on.
//! 4. [`drain`] tells which node touched what, [`settle`] ends what has been touched altogether,
//!    [`restore_huge_pages`] brings the huge pages back that arming split, [`disarm_all`] ends it
//!    all: untouched pages stay on their nodes.
//! 5. [`stop`] at the end or when something is wrong: everything is disarmed, for good.
//!
//! What front ends (the agent's exported functions) must call, before the real function unless said
//! otherwise:
//!
//! | function of the program | what to call |
//! |---|---|
//! | `free`, `munmap`, `realloc`, `mremap` | [`before_free`] of the memory; [`retire`] when the call has returned |
//! | `mprotect`, `madvise`, `mlock` … | [`before_change`] of the memory; [`retire`] when the call has returned |
//! | `read`, `write`, `recv` … : memory that the kernel reads or writes | [`publish()`]; [`retire`] when the call has returned |
//! | memory that somebody holds on to: stacks, locks, buffers of `aio_*` | [`exclude`], for as long as it lives |
//! | `posix_spawn`, `execve`, `system` | [`before_process`]; [`retire`] when the call has returned |
//! | `printf` and its kin | [`quiet`]; [`retire`] when the call has returned |
//! | `fork` | nothing: the C library tells of it; a child has no mover |
//! | `_Fork`, `clone` and its like without shared memory | [`before_bare_fork`]; then [`bare_fork_in_parent`] and [`bare_fork_in_child`] |
//! | `sigaction`, `signal` of SIGBUS or SIGSEGV; signal masks | [`signals`] |
//! | `sigaltstack`; the begin of a thread | [`handler_stack`] |
//! | `io_uring_setup`, `io_setup`, `open` of a device | [`pins`], [`see_path`] |
//! | `socket`, `setsockopt`; flags of `send` and its like | [`see_family`], [`see_option`]; [`see_sending`] |
//!
//! None of these panics, allocates with the program's allocator or changes `errno`. Without
//! [`start()`] they do nothing, at the cost of one load.
//!
//! # What may be armed
//!
//! Whole pages of private anonymous memory, as `/proc/self/maps` has it at that moment, that are
//! readable, not locked, not in flight to or from the kernel, not excluded. Nothing at all, by any
//! mechanism, as soon as anything in the process can pin memory or has the kernel, a device or a
//! peer use it when it likes: what is armed is disarmed then, and only [`move_pages`] and
//! [`prefer`] go on. See [`pinning()`].
//!
//! # What the program does past the C library
//!
//! By userfaultfd the kernel tells of every `munmap`, `mremap` and `madvise`, whoever makes it, and
//! a page is only ever put where one is missing. Without it a block is copied and the copy put in
//! its place by two calls, and between these nothing shows that the program has given the block up:
//! no one call of the kernel's swaps two mappings. Such copies are made only where somebody has
//! said that the program makes no such calls ([`Options::copy_unseen`]). Elsewhere
//! [`Mechanism::Protect`] moves by the kernel, which loses nothing; on pretended nodes it then
//! notes the homes and copies nothing.

//! # Pretended nodes
//!
//! The machine has one node; its CPUs are dealt into several, and a table keeps the home of each
//! page. A page's home is the node of the thread that touched the page first:
//!
//! | first touch | what is known |
//! |---|---|
//! | of a page that was not there when a region began | seen: such pages are armed, and their first toucher faults ([`sees_first_touches`]) |
//! | before the first region, or of memory that is younger than the region's begin, seen later | assumed: the node of the thread that started the next region, at that moment |
//! | where there is no userfaultfd, or a policy has memory watched instead of armed | assumed, as above |
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
pub use disarm::{armed, disarm, disarm_all, restore_huge_pages, settle};
pub use fault::on_fault;
pub use inflight::{InFlight, about_to_list, give_up_left, publish, quiet, retire};
pub use kernel::{Move, MoveReport, homes, move_pages, prefer, pretend_home};
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

/// How next touch is done, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// userfaultfd: missing pages raise SIGBUS in their toucher, which copies them from a shadow.
    UserFault,
    /// Inaccessible 2 MiB blocks: the toucher makes them accessible and has the kernel move them.
    Protect,
    /// Inaccessible 2 MiB blocks: the toucher copies them to fresh memory and puts that in their
    /// place. For containers that forbid all calls that name nodes, and only with
    /// [`Options::copy_unseen`].
    CopyRemap,
    /// No next touch: [`Started::reasons`] says why.
    None,
}

impl Mechanism {
    /// In words, as after "by".
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
    /// The page stays where it is, and [`drain`] tells who touched it.
    Stays,
}

/// How to start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Deal the CPUs into so many nodes and keep a table of page homes, instead of the machine's
    /// nodes. Kernel moves become copies.
    pub pretend_nodes: Option<u16>,
    /// The pretended node of each CPU; without it as [`crate::nodes::Nodes::pretend`] deals them.
    pub pretend_cpus: Option<&'static [u16]>,
    /// This mechanism or none.
    pub mechanism: Option<Mechanism>,
    /// Copy blocks where there is no userfaultfd. A `munmap`, `mremap` or `madvise` that the
    /// program makes past the C library in the middle of a copy (0.2 ms) is not seen then, and what
    /// it gave up comes back: only for programs that make none.
    pub copy_unseen: bool,
    /// Pages must be able to stay on their node ([`Manner::Stays`]).
    pub stay: bool,
    /// What comes with one touch under [`Mechanism::UserFault`]: a power of two from a page to 64
    /// KiB, which it is unless told.
    pub fault_around: Option<Bytes>,
}

/// What the mover has to work with.
#[derive(Clone, Debug)]
pub struct Started {
    /// What [`arm()`] will use.
    pub mechanism: Mechanism,
    /// What better mechanisms lack, each a sentence: what was tried and what the system said.
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
    /// The kernel is reading or writing it now.
    InFlight,
    /// Excluded, for ever: it holds a lock, a stack, an asynchronous buffer.
    Excluded,
    /// Already armed.
    Armed,
    /// Something in the process can pin memory ([`pinning()`] names it): nothing is armed.
    Pinning,
    /// A system call failed.
    Failed,
    /// A thread blocks the signal of an armed page, and would be ended by it.
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
    /// As part of a sentence: "not armed: …".
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

/// What [`arm()`] did.
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
    /// What was skipped, and why.
    pub fn reasons(&self) -> impl Iterator<Item = (Why, Bytes)> + '_ {
        Why::ALL.into_iter().zip(self.skipped).filter(|(_, b)| *b != Bytes::ZERO)
    }
}

/// A first touch since arming, told by [`drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What came with it: up to 64 KiB (2 MiB by protected blocks), whole pages.
    pub span: Span,
    /// Who touched it.
    pub node: NodeId,
    /// It stayed where it was: as it was to ([`Manner::Stays`]), or for the kernel refused to move
    /// it.
    pub stayed: bool,
}

/// What has happened since [`start()`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
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
    /// Bytes that the kernel left where they were when their toucher had them moved.
    pub refused: Bytes,
    /// Bytes that were disarmed untouched.
    pub returned: Bytes,
    /// Bytes that a system call's buffer brought over before the call.
    pub published: Bytes,
    /// Huge pages brought back.
    pub collapsed: u64,
    /// Touches that [`drain`] could not tell any more.
    pub touches_lost: u64,
    /// CPU time in fault handlers, all threads together.
    pub in_handlers: Ns,
    /// CPU time of the program's threads in front ends that brought or disarmed memory.
    pub in_calls: Ns,
    /// CPU time of the thread that reads what the kernel tells of the program's mappings.
    pub in_events: Ns,
}
