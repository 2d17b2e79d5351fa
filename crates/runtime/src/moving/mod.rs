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
//!
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
//!
//! # Layers
//!
//! A file uses files of its own layer or of lower ones, and no two files use each other.
//!
//! | layer | files |
//! |---|---|
//! | moves to known nodes, and the start | `kernel`, `one_home`, `start` |
//! | arming | `arm`, `group`, `candidates` |
//! | front ends | `program`, `publish`, `handler_stack`, `remap`, `pinning` |
//! | disarming | `disarm` |
//! | faults | `signals`, `fault` |
//! | the lock, and what only its owner uses | `deaf_threads`, `pieces`, `lock` |
//! | the kernel's events | `events` |
//! | what handlers read and write without locks | `shadow`, `homes`, `touches`, `calls`, `running_stack`, `inflight` |
//! | table and state | `table`, `state`, `stacks` |
//! | plain types, and moves without the table | `mechanism`, `reports`, `chunks` |
//!
//! `fault` and the files that it uses run in signal handlers. They do not use the program's
//! allocator, and take no lock but that of the block that they work on.

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
mod homes;
mod inflight;
mod kernel;
mod lock;
mod mechanism;
mod one_home;
mod pieces;
mod pinning;
mod program;
mod publish;
mod remap;
mod reports;
mod running_stack;
mod shadow;
pub mod signals;
mod stacks;
mod start;
mod state;
mod table;
mod touches;

pub use homenode_sys::{Span, descriptor};

pub use arm::{arm, arm_as, can_stay};
pub use disarm::{armed, disarm, disarm_all, may_be_armed, restore_huge_pages, settle};
pub use fault::{listen, on_fault};
pub use homes::{homes, prefer, pretend_home};
pub use inflight::{InFlight, about_to_list};
pub use kernel::{PageTarget, move_pages};
pub use mechanism::{Manner, Mechanism, MovingOptions, Started};
pub use one_home::{homes_on, one_home};
pub use pinning::{has_peers, pinning, pins, see_family, see_option, see_path, see_sending};
pub use program::{
    bare_fork_in_child, bare_fork_in_parent, before_bare_fork, before_change, before_free, before_process,
    exclude, fresh,
};
pub use publish::{give_up_left, publish, quiet, retire};
pub use remap::remap_in_parts;
pub use reports::{ArmReport, MoveReport, MovingTotals, Touch, Why};
pub use start::{NO_NEXT_TOUCH, can_make_huge_pages, leave, start, stop};
pub use state::{counters, current_node, mechanism, node_of_cpu, note_serial, pretended, sees_first_touches};
pub use touches::drain;
