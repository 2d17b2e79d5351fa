//! OpenMP's allocators: the trait `partition` decides on which nodes an allocation's pages lie.
//!
//! libgomp and libomp take the trait and do nothing about it. The front ends here pass each call on
//! to the copy of the run-time that the caller would have reached ([`crate::callers`]), and then
//! place the whole pages of the memory:
//!
//! | `partition` | pages |
//! |---|---|
//! | `nearest` | on the node of the calling thread |
//! | `blocked` | a block on each node |
//! | `interleaved` | on the nodes in turns |
//!
//! The kernel limits the pieces of one array. So a turn of a large array is several pages long.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use homenode_model::NodeId;
use homenode_runtime::placing::spread::{self, PagesToPlace};
use homenode_runtime::placing::{PAGE, Span, threads};

use crate::forward::{call, real};
use crate::stub::front;
use crate::{callers, state};

/// The number of the first entry point here, behind those of [`crate::loops_static_kmpc`].
const BASE: usize = 160;

/// `omp_atk_partition`.
const PARTITION: i32 = 8;
/// `omp_atv_nearest`, `omp_atv_blocked`, `omp_atv_interleaved`.
const NEAREST: usize = 16;
const BLOCKED: usize = 17;
const INTERLEAVED: usize = 18;
/// Pieces of one allocation at most; the kernel has a policy for each.
const PIECES: usize = 512;
/// Allocators with a partition that are known at once.
const ALLOCATORS: usize = 64;

/// `omp_alloctrait_t`.
#[repr(C)]
pub struct Trait {
    key: i32,
    value: usize,
}

struct Allocator {
    /// 0: free.
    handle: AtomicUsize,
    partition: AtomicU8,
}

static KNOWN: [Allocator; ALLOCATORS] =
    [const { Allocator { handle: AtomicUsize::new(0), partition: AtomicU8::new(0) } }; ALLOCATORS];

/// Allocators with a partition that were ever made.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn place_of(handle: usize) -> Option<&'static Allocator> {
    KNOWN.iter().find(|a| a.handle.load(Ordering::Acquire) == handle)
}

fn remember(handle: usize, partition: usize) {
    let free =
        KNOWN.iter().find(|a| a.handle.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    if let Some(place) = free {
        place.partition.store(partition as u8, Ordering::Relaxed);
        place.handle.store(handle, Ordering::Release);
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

/// The function of a run-time that a call is meant for. `None`: no loaded run-time has one, and the
/// answer is null.
fn target(caller: usize, entry: usize) -> Option<callers::Target> {
    callers::target(caller, entry, NAMES.get(entry.wrapping_sub(BASE))?)
}

/// Notes the partition of an allocator that was made.
///
/// # Safety
/// `traits` is null or has `count` traits.
unsafe fn made(handle: usize, count: usize, traits: usize) {
    let traits = traits as *const Trait;
    if handle == 0 || traits.is_null() || !state::running() {
        return;
    }
    // The lower half of the word is the number.
    let count = usize::try_from(count as i32).unwrap_or(0);
    // SAFETY: the caller's promise.
    let traits = (0..count).map(|i| unsafe { &*traits.add(i) });
    let partition = traits.filter(|t| t.key == PARTITION).map(|t| t.value).next_back();
    if let Some(partition) = partition.filter(|p| (NEAREST..=INTERLEAVED).contains(p)) {
        remember(handle, partition);
    }
}

fn ends(handle: usize) {
    if handle > 1
        && let Some(place) = place_of(handle)
    {
        place.handle.store(0, Ordering::Release);
    }
}

macro_rules! allocating {
    ($($(#[$doc:meta])* $name:ident($words:ident) $bytes:expr, $handle:expr;)*) => { $(
        front! {
            $(#[$doc])*
            fn $name($words, caller, entry) {
                let Some(target) = target(caller, entry) else { return 0 };
                // SAFETY: the caller's arguments.
                let p = unsafe { call(real(target), $words) };
                placed(p, $bytes, $handle, caller);
                p
            }
        }
    )* };
}

allocating! {
    /// `(bytes, allocator)`
    plain(w) w[0], w[1];
    /// `(thread or alignment or what is freed, bytes, allocator)`
    second(w) w[1], w[2];
    /// `(thread, alignment, bytes, allocator)`
    third(w) w[2], w[3];
    /// `(number, bytes of each, allocator)`
    cleared(w) w[0].saturating_mul(w[1]), w[2];
    /// `(alignment, number, bytes of each, allocator)`
    aligned_cleared(w) w[1].saturating_mul(w[2]), w[3];
}

front! {
    /// `(memory space, number of traits, traits)`
    fn init(words, caller, entry) {
        let Some(target) = target(caller, entry) else { return 0 };
        // SAFETY: the caller's arguments.
        unsafe {
            let handle = call(real(target), words);
            made(handle, words[1], words[2]);
            handle
        }
    }
}
front! {
    /// `(thread, memory space, number of traits, traits)`
    fn init_by_thread(words, caller, entry) {
        let Some(target) = target(caller, entry) else { return 0 };
        // SAFETY: the caller's arguments.
        unsafe {
            let handle = call(real(target), words);
            made(handle, words[2], words[3]);
            handle
        }
    }
}
front! {
    /// `(allocator)`
    fn destroy(words, caller, entry) {
        ends(words[0]);
        // SAFETY: the caller's arguments.
        target(caller, entry).map_or(0, |target| unsafe { call(real(target), words) })
    }
}
front! {
    /// `(thread, allocator)`
    fn destroy_by_thread(words, caller, entry) {
        ends(words[1]);
        // SAFETY: the caller's arguments.
        target(caller, entry).map_or(0, |target| unsafe { call(real(target), words) })
    }
}

macro_rules! entries {
    ($($how:ident $name:ident)*) => {
        /// Names of the entry points, by number.
        static NAMES: &[&CStr] = &[$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(s) => s,
            Err(_) => panic!("a symbol has no zero byte"),
        }),*];
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Entry { $($name),* }
        $(
            /// Passes its arguments on, with its return address and number.
            ///
            /// # Safety
            /// As OpenMP's function of this name, or that of its run-time.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                crate::stub::stub!($how, BASE + Entry::$name as usize)
            }
        )*
    };
}

entries! {
    init omp_init_allocator
    init_by_thread __kmpc_init_allocator
    destroy omp_destroy_allocator
    destroy_by_thread __kmpc_destroy_allocator
    plain omp_alloc
    second omp_aligned_alloc
    second omp_realloc
    second GOMP_alloc
    second __kmpc_alloc
    third __kmpc_aligned_alloc
    cleared omp_calloc
    aligned_cleared omp_aligned_calloc
}

/// The thread's default allocator.
fn default_allocator(caller: usize) -> usize {
    let entry = BASE + NAMES.len();
    callers::target(caller, entry, c"omp_get_default_allocator").map_or(0, |target| {
        // SAFETY: the function of that name; it has no arguments.
        unsafe { call(real(target), [0; 8]) }
    })
}

/// Places fresh memory as its allocator wants it.
fn placed(p: usize, bytes: usize, handle: usize, caller: usize) {
    // In most programs there is no allocator with a partition.
    if p == 0 || bytes < PAGE || COUNT.load(Ordering::Relaxed) == 0 || !state::running() || state::inside() {
        return;
    }
    let asked = if handle == 0 { default_allocator(caller) } else { handle };
    let Some(place) = (asked > 1).then(|| place_of(asked)).flatten() else { return };
    let partition = usize::from(place.partition.load(Ordering::Relaxed));
    // Pages at the borders may hold something else, too.
    let (start, end) = (p.next_multiple_of(PAGE), (p + bytes) / PAGE * PAGE);
    if start < end {
        let span = Span { start, end };
        state::with(|driver| driver.placed(span, true));
        state::guarded(|| {
            let nodes = spread::nodes();
            // Memory that cannot be placed stays where its first touch puts it.
            let _ = spread::spread(&wanted(span, partition, &nodes, threads::here().1));
        });
    }
}

/// Which pages go where.
fn wanted(span: Span, partition: usize, nodes: &[NodeId], here: NodeId) -> Vec<PagesToPlace> {
    let pages = (span.end - span.start) / PAGE;
    let piece = |from: usize, to: usize, node| PagesToPlace {
        span: Span { start: span.start + from * PAGE, end: span.start + to * PAGE },
        node,
    };
    let n = nodes.len().max(1);
    match partition {
        NEAREST => vec![piece(0, pages, here)],
        BLOCKED => (0..nodes.len())
            .map(|i| piece(pages * i / n, pages * (i + 1) / n, nodes[i]))
            .filter(|w| w.span.start < w.span.end)
            .collect(),
        _ => {
            let turn = pages.div_ceil(PIECES).max(1);
            let begins = (0..pages).step_by(turn).enumerate();
            begins.map(|(i, from)| piece(from, (from + turn).min(pages), nodes[i % n])).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes_of(pages: usize, partition: usize) -> Vec<u16> {
        let span = Span::new(0x1000_0000, pages * PAGE);
        let all = wanted(span, partition, &[NodeId(0), NodeId(2), NodeId(3)], NodeId(2));
        let mut at = span.start;
        let mut nodes = Vec::new();
        for w in all {
            assert_eq!(w.span.start, at);
            nodes.extend(vec![w.node.0; (w.span.end - w.span.start) / PAGE]);
            at = w.span.end;
        }
        assert_eq!(at, span.end);
        nodes
    }

    #[test]
    fn each_page_has_the_node_that_the_partition_gives_it() {
        assert_eq!(nodes_of(4, NEAREST), [2, 2, 2, 2]);
        assert_eq!(nodes_of(7, BLOCKED), [0, 0, 2, 2, 3, 3, 3]);
        assert_eq!(nodes_of(2, BLOCKED), [2, 3]);
        assert_eq!(nodes_of(5, INTERLEAVED), [0, 2, 3, 0, 2]);
        // Turns of two pages: no more than 512 pieces.
        assert_eq!(nodes_of(1000, INTERLEAVED)[..6], [0, 0, 2, 2, 3, 3]);
    }
}
