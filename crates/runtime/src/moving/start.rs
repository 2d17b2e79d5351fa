//! Starts the mover: probes the mechanisms and chooses one.

use homenode_sys::memory::{self, Protection};
use homenode_sys::numa::{self, MemoryPolicy, PageStatus};
use homenode_sys::uffd::{Features, Uffd};
use homenode_sys::{HUGE, PAGE, Result, Span, call, own_threads};
use std::sync::atomic::Ordering;

use crate::nodes::Nodes;

use super::mechanism::{Mechanism, MovingOptions, Started};
use super::state::{self, KERNEL_MOVES, POLICIES, STARTED, TAKE_BACK};
use super::{disarm, events, fault, pieces, program, signals};

/// Why the mover does not copy blocks without `--copy-unseen`.
const UNSEEN: &str = "without userfaultfd nothing tells of a munmap, mremap or madvise that the program makes past the C library, \
    and what it gave up in the middle of a copy would come back (--copy-unseen, for a program that makes none)";

/// How a reason begins that holds for this process and not for the machine.
pub const NO_NEXT_TOUCH: &str = "no next touch in this process:";

/// Probes the machine, and takes over SIGBUS and SIGSEGV. Once a process; later calls return the
/// first answer.
pub fn start(options: &MovingOptions) -> Started {
    STARTED.get_or_init(|| first_start(options)).clone()
}

/// Disarms everything, for good. Later calls answer that the mover is off.
pub fn stop() {
    state::turn_off();
    disarm::disarm_all();
}

/// As [`stop`], and ends homenode's own threads, whoever has made them. Returns whether all have
/// ended. Not to be called from one of them.
pub fn leave() -> bool {
    stop();
    // Memory that is still registered has events, which the reader must read.
    !pieces::any() && own_threads::end_all(events::wake_reader)
}

fn first_start(options: &MovingOptions) -> Started {
    let mut reasons = Vec::new();
    if let Some(bytes) = options.fault_around {
        fault::set_around(bytes);
    }
    if let Some(nodes) = options.pretend_nodes {
        match options.pretend_cpus {
            Some(cpus) => state::pretend(nodes, cpus),
            None => state::pretend(nodes, &Nodes::here().pretend(nodes).node_by_cpu()),
        }
    }
    state::COPY_UNSEEN.store(options.copy_unseen, Ordering::Relaxed);
    let kernel_moves = note("pages cannot be moved by the kernel", moves_work(), &mut reasons);
    KERNEL_MOVES.store(kernel_moves, Ordering::Relaxed);
    let policies = note("policies of memory cannot be set", policies_work(), &mut reasons);
    POLICIES.store(policies, Ordering::Relaxed);
    // Armed memory takes its place in the address space twice. What the program itself asks for
    // comes first.
    let room = call::limit(libc::RLIMIT_AS).or_else(|| call::limit(libc::RLIMIT_DATA)).is_none();
    if !room {
        // A limit that a person can change stands before features that the machine lacks.
        reasons.insert(0, limited());
    }
    let wanted = |m: Mechanism| room && options.mechanism.is_none_or(|only| only == m);
    let pretended = options.pretend_nodes.is_some();
    let mut mechanism = Mechanism::None;
    if wanted(Mechanism::UserFault) && note("no user-space page faults", user_faults(), &mut reasons) {
        if options.stay && !TAKE_BACK.load(Ordering::Relaxed) {
            reasons.push(
                "user-space page faults not used: this kernel puts no page back (UFFDIO_MOVE)".to_owned(),
            );
        } else if policies || pretended {
            mechanism = Mechanism::UserFault;
        } else {
            reasons.push("user-space page faults not used: pages would go where the policy says".to_owned());
        }
    }
    if mechanism == Mechanism::None && wanted(Mechanism::Protect) && (kernel_moves || pretended) {
        mechanism = Mechanism::Protect;
    }
    if mechanism == Mechanism::None && wanted(Mechanism::CopyRemap) {
        if options.copy_unseen {
            mechanism = Mechanism::CopyRemap;
        } else {
            reasons.push(format!("blocks were not copied: {UNSEEN}"));
        }
    }
    if mechanism == Mechanism::Protect && pretended && !options.copy_unseen {
        reasons.push(format!("pretended moves were noted and nothing was copied: {UNSEEN}"));
    }
    if mechanism != Mechanism::None {
        let ready = note("signals cannot be handled", signals::install(), &mut reasons);
        if !ready || !program::watch_forks() {
            mechanism = Mechanism::None;
        }
    }
    state::choose(mechanism);
    Started { mechanism, reasons, kernel_moves }
}

/// The sentence about the limit.
fn limited() -> String {
    let [address_space, data] = [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(call::limit);
    let (bytes, option) = match address_space {
        Some(bytes) => (bytes, "-v"),
        None => (data.unwrap_or(0), "-d"),
    };
    format!(
        "{NO_NEXT_TOUCH} its address space is limited to {} MiB (ulimit {option}), and what is armed takes its place there twice",
        bytes >> 20
    )
}

fn note(what: &str, done: Result<()>, reasons: &mut Vec<String>) -> bool {
    if let Err(e) = &done {
        reasons.push(format!("{what}: {e}"));
    }
    done.is_ok()
}

fn moves_work() -> Result<()> {
    let here = 0_u8;
    numa::query(&[&raw const here as usize & !(PAGE - 1)], &mut [PageStatus::UNKNOWN])
}

/// Runs `f` with two spans of fresh memory of `bytes` bytes.
fn with_memory(bytes: usize, f: impl FnOnce(Span, Span) -> Result<()>) -> Result<()> {
    let memory = memory::map_aligned(2 * bytes, HUGE, Protection::ReadWrite)?;
    let done = f(Span::new(memory.start, bytes), Span::new(memory.start + bytes, bytes));
    // SAFETY: nobody else knows it.
    unsafe { memory::unmap(memory)? };
    done
}

fn policies_work() -> Result<()> {
    with_memory(PAGE, |m, _| {
        numa::set_policy(m, &MemoryPolicy::LOCAL)?;
        numa::policy_of(m.start).map(drop)
    })
}

/// Whether the kernel can make a huge page of small ones here. Restoring split huge pages needs
/// that. Takes some 6 ms.
pub fn can_make_huge_pages() -> bool {
    let tried = with_memory(HUGE, |m, _| memory::populate(m).and_then(|()| memory::collapse(m)));
    tried.is_ok()
}

/// Opens the descriptor and tries everything that arming does. The reader of events starts with the
/// first need ([`events::has_reader`]).
fn user_faults() -> Result<()> {
    let needed =
        Features::SIGBUS.and(Features::EVENT_REMAP).and(Features::EVENT_REMOVE).and(Features::EVENT_UNMAP);
    let offered = Uffd::offered()?;
    let wanted = if offered.has(Features::MOVE) { needed.and(Features::MOVE) } else { needed };
    TAKE_BACK.store(offered.has(Features::MOVE), Ordering::Relaxed);
    let uffd = Uffd::open(wanted)?;
    with_memory(HUGE, |a, b| {
        // SAFETY: memory of this function alone.
        unsafe { memory::move_leaving_mapping(a, b.start) }
    })?;
    state::set_uffd(uffd);
    Ok(())
}
