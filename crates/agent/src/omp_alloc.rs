//! OpenMP's allocators: the trait `partition` decides on which nodes an allocation's pages lie.
//!
//! libgomp and libomp take the trait and do nothing about it. The front ends here pass each call
//! on, and then place the whole pages of the memory:
//!
//! | `partition` | pages |
//! |---|---|
//! | `nearest` | on the node of the calling thread |
//! | `blocked` | a block on each node |
//! | `interleaved` | on the nodes in turns |
//!
//! The kernel limits the pieces of one array. So a turn of a large array is several pages long.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use homenode_model::NodeId;
use homenode_runtime::placing::spread::{self, Wanted};
use homenode_runtime::placing::{PAGE, Span, threads};

use crate::next::next;
use crate::state;

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

fn place_of(handle: usize) -> Option<&'static Allocator> {
    KNOWN.iter().find(|a| a.handle.load(Ordering::Acquire) == handle)
}

fn remember(handle: usize, partition: usize) {
    let free =
        KNOWN.iter().find(|a| a.handle.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    if let Some(place) = free {
        place.partition.store(partition as u8, Ordering::Relaxed);
        place.handle.store(handle, Ordering::Release);
    }
}

/// Makes an allocator.
///
/// # Safety
/// As OpenMP's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_init_allocator(space: usize, count: i32, traits: *const Trait) -> usize {
    let Some(f) = next!(omp_init_allocator: unsafe extern "C" fn(usize, i32, *const Trait) -> usize) else {
        return 0;
    };
    // SAFETY: the caller's arguments.
    let handle = unsafe { f(space, count, traits) };
    if handle != 0 && state::running() && !traits.is_null() {
        let of = |i: i32| {
            // SAFETY: the caller's promise: there are `count` traits.
            unsafe { &*traits.add(i as usize) }
        };
        let partition = (0..count).map(of).filter(|t| t.key == PARTITION).map(|t| t.value).next_back();
        if let Some(partition) = partition.filter(|p| (NEAREST..=INTERLEAVED).contains(p)) {
            remember(handle, partition);
        }
    }
    handle
}

/// Ends an allocator.
///
/// # Safety
/// As OpenMP's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_destroy_allocator(handle: usize) {
    if handle > 1
        && let Some(place) = place_of(handle)
    {
        place.handle.store(0, Ordering::Release);
    }
    if let Some(f) = next!(omp_destroy_allocator: unsafe extern "C" fn(usize)) {
        // SAFETY: the caller's argument.
        unsafe { f(handle) }
    }
}

/// Places fresh memory as its allocator wants it.
fn placed(p: *mut c_void, bytes: usize, handle: usize) -> *mut c_void {
    if p.is_null() || bytes < PAGE || !state::running() || state::inside() {
        return p;
    }
    let asked = match handle {
        // The thread's default allocator.
        0 => next!(omp_get_default_allocator: unsafe extern "C" fn() -> usize).map_or(0, |f| {
            // SAFETY: it has no arguments.
            unsafe { f() }
        }),
        handle => handle,
    };
    let Some(place) = (asked > 1).then(|| place_of(asked)).flatten() else { return p };
    let partition = usize::from(place.partition.load(Ordering::Relaxed));
    // Pages at the borders may hold something else, too.
    let (start, end) = ((p as usize).next_multiple_of(PAGE), (p as usize + bytes) / PAGE * PAGE);
    if start < end {
        let span = Span { start, end };
        state::with(|driver| driver.placed(span, true));
        state::guarded(|| {
            let nodes = spread::nodes();
            // Memory that cannot be placed stays where its first touch puts it.
            let _ = spread::spread(&wanted(span, partition, &nodes, threads::here().1));
        });
    }
    p
}

/// Which pages go where.
fn wanted(span: Span, partition: usize, nodes: &[NodeId], here: NodeId) -> Vec<Wanted> {
    let pages = (span.end - span.start) / PAGE;
    let piece = |from: usize, to: usize, node| Wanted {
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

macro_rules! allocating {
    ($($name:ident($($arg:ident),*) $bytes:expr;)*) => { $(
        /// Allocates, and places the pages.
        ///
        /// # Safety
        /// As OpenMP's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: usize,)* handle: usize) -> *mut c_void {
            type Real = unsafe extern "C" fn($(allocating!(@ $arg usize),)* usize) -> *mut c_void;
            let Some(f) = next!($name: Real) else { return std::ptr::null_mut() };
            // SAFETY: the caller's arguments.
            placed(unsafe { f($($arg,)* handle) }, $bytes, handle)
        }
    )* };
    (@ $arg:ident $ty:ty) => { $ty };
}

allocating! {
    omp_alloc(bytes) bytes;
    omp_aligned_alloc(align, bytes) bytes;
    omp_calloc(n, size) n.saturating_mul(size);
    omp_aligned_calloc(align, n, size) n.saturating_mul(size);
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
