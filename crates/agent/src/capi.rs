//! The functions of `homenode.h`. `cargo xtask c-api` makes the header and the Fortran module from
//! this file: doc comments become theirs, headings are lines `// # …`.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_void};

use homenode_model::code::{self, HN_EINVAL, HN_ERANGE, HN_ESYSTEM, HN_FIRST_TOUCH, HN_IDLE, HN_OK};
use homenode_runtime::placing::find::{self, PageTotals};
use homenode_runtime::placing::machine::UsableNodes;
use homenode_runtime::placing::{Failure, Result, memory, pages_of, threads};

use crate::{interpose_loader, state};

/// What this process may use of a node.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "as C programs call it")]
pub struct hn_node {
    /// bytes of memory; 0: none, or none for this process
    pub memory: u64,
    /// bytes of it that are free now
    pub free_memory: u64,
    /// CPUs; 0: memory alone
    pub cpus: i32,
    /// the number of the node
    pub number: i32,
}

/// Pages of a range by where they are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "as C programs call it")]
pub struct hn_placement {
    /// pages that the range touches
    pub pages: u64,
    /// on the node asked for
    pub there: u64,
    /// on other nodes
    pub elsewhere: u64,
    /// not in memory: never written, or swapped out
    pub absent: u64,
    /// the system does not say
    pub unknown: u64,
}

// # What homenode cannot see

/// Says that round `number` (from 0) of the program's outer loop begins. Call it at the top of the
/// loop, from one thread, outside of parallel regions or inside `master`/`single`. Call it once
/// more after the loop, with the number of rounds: that ends the last round.
#[unsafe(no_mangle)]
pub extern "C" fn hn_iteration(number: u32) -> i32 {
    match state::with(|d| d.iteration(number)) {
        Some(()) => HN_OK,
        None => HN_IDLE,
    }
}

/// Asks homenode to move each whole page in [address, address + length) to the node of the thread
/// that touches the page next. The contents stay the same. Memory that cannot be moved safely
/// (shared, file-backed, pinned) stays where it is.
#[unsafe(no_mangle)]
pub extern "C" fn hn_next_touch(address: *const c_void, length: usize) -> i32 {
    let overflows = (address as usize).checked_add(length).is_none();
    if address.is_null() || overflows {
        return HN_EINVAL;
    }
    let asked = state::with(|d| {
        interpose_loader::report(d);
        d.next_touch(address as usize, length)
    });
    match asked {
        Some(true) => HN_OK,
        _ => HN_IDLE,
    }
}

// # Threads

/// Binds the calling thread to `cpu`.
#[unsafe(no_mangle)]
pub extern "C" fn hn_bind_cpu(cpu: i32) -> i32 {
    answer(|| threads::bind_cpu(cpu))
}

/// Binds the calling thread to the CPUs of `node`.
#[unsafe(no_mangle)]
pub extern "C" fn hn_bind_node(node: i32) -> i32 {
    answer(|| threads::bind_node(node))
}

/// Undoes hn_bind_cpu and hn_bind_node: the calling thread may run where it might before the first
/// of these calls.
#[unsafe(no_mangle)]
pub extern "C" fn hn_unbind() -> i32 {
    answer(threads::unbind)
}

/// Stores the CPU and the node that run the caller. Either pointer may be null. A thread that is
/// not bound may have moved to another CPU when the call returns.
///
/// # Safety
/// Each pointer is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_here(cpu: *mut i32, node: *mut i32) -> i32 {
    answer(|| {
        let (c, n) = threads::here();
        // SAFETY: the caller's promise.
        unsafe {
            put(cpu, c as i32);
            put(node, n.0.into());
        }
        Ok(())
    })
}

// # Memory

/// Sets the node of the pages of [address, address + length) that are not in memory yet. Such a
/// page comes from `node` at its first touch, whichever thread touches it, while the node has room.
/// With HN_FIRST_TOUCH it comes from the toucher's node, as without homenode. Pages that are in
/// memory stay. `homenode run` does not move memory that the program placed with this call.
#[unsafe(no_mangle)]
pub extern "C" fn hn_place(address: *const c_void, length: usize, node: i32) -> i32 {
    tell_placed(address, length, node != HN_FIRST_TOUCH);
    answer(|| memory::place(pages_of(address as usize, length)?, node))
}

/// Moves the pages of [address, address + length) that are in memory to `node`. The contents stay
/// the same. HN_PARTIAL: some pages are elsewhere afterwards. `found` receives the counts and may
/// be null. `homenode run` does not move memory that the program moved with this call.
///
/// # Safety
/// `found` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_move(
    address: *const c_void,
    length: usize,
    node: i32,
    found: *mut hn_placement,
) -> i32 {
    tell_placed(address, length, true);
    answer(|| {
        let span = pages_of(address as usize, length)?;
        let (counted, done) = memory::move_to(span, node);
        // SAFETY: the caller's promise.
        unsafe { put(found, counted.into()) };
        done
    })
}

/// Counts the pages of [address, address + length) by where they are. HN_OK: all are on `node`.
/// HN_PARTIAL: some are not. `found` receives the counts and may be null.
///
/// # Safety
/// `found` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_verify(
    address: *const c_void,
    length: usize,
    node: i32,
    found: *mut hn_placement,
) -> i32 {
    answer(|| {
        let span = pages_of(address as usize, length)?;
        let (counted, judged) = find::count(span, node);
        // SAFETY: the caller's promise.
        unsafe { put(found, counted.into()) };
        judged
    })
}

/// Stores the node of each page of [address, address + length) in `nodes`, or HN_ABSENT or
/// HN_UNKNOWN. `nodes` has room for `capacity` numbers. Stores the number of pages in `pages`,
/// which may be null. HN_ERANGE: there are more pages than `capacity`, and `nodes` has the first
/// `capacity` of them. To ask for the number of pages alone, pass `capacity` 0; `nodes` may then be
/// null.
///
/// # Safety
/// `nodes` may be written `capacity` times, `pages` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_where(
    address: *const c_void,
    length: usize,
    nodes: *mut i32,
    capacity: usize,
    pages: *mut usize,
) -> i32 {
    answer(|| {
        let span = pages_of(address as usize, length)?;
        // SAFETY: the caller's promise.
        let room = unsafe { room(nodes, capacity) }?;
        // SAFETY: as above.
        unsafe { put(pages, span.pages()) };
        let asked = find::first_pages(span, room.len());
        let mut next = room.iter_mut();
        let told = find::each(asked, |place| {
            if let Some(n) = next.next() {
                *n = place.number();
            }
        });
        told.and_then(|()| fits(span.pages(), capacity, "pages"))
    })
}

// # The machine

/// Stores the numbers of the nodes whose memory or CPUs this process may use in `nodes`, ascending.
/// The numbers may have gaps. `nodes` has room for `capacity` numbers. Stores how many nodes there
/// are in `count`, which may be null. HN_ERANGE: there are more nodes than `capacity`. To ask for
/// the count alone, pass `capacity` 0; `nodes` may then be null.
///
/// # Safety
/// `nodes` may be written `capacity` times, `count` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_nodes(nodes: *mut i32, capacity: usize, count: *mut usize) -> i32 {
    answer(|| {
        let numbers: Vec<i32> = UsableNodes::here().nodes().iter().map(|n| n.0.into()).collect();
        // SAFETY: the caller's promise.
        unsafe { list(&numbers, nodes, capacity, count, "nodes") }
    })
}

/// Stores what this process may use of node `number` in `node`.
///
/// # Safety
/// `node` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_node_info(number: i32, node: *mut hn_node) -> i32 {
    answer(|| {
        let machine = UsableNodes::here();
        let id = machine.node(number)?;
        let (memory, free) = machine.memory(id);
        let cpus = machine.cpus(id).len() as i32;
        let info = hn_node { memory: memory.0, free_memory: free.0, cpus, number };
        if node.is_null() {
            return Err(Failure::invalid("hn_node_info: no place for the answer (null)"));
        }
        // SAFETY: the caller's promise.
        unsafe { put(node, info) };
        Ok(())
    })
}

/// Stores the numbers of the CPUs of `node` that this process may use in `cpus`, ascending. Its
/// `capacity` and `count` work as those of hn_nodes.
///
/// # Safety
/// `cpus` may be written `capacity` times, `count` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_node_cpus(node: i32, cpus: *mut i32, capacity: usize, count: *mut usize) -> i32 {
    answer(|| {
        let machine = UsableNodes::here();
        let numbers: Vec<i32> = machine.cpus(machine.node(node)?).iter().map(|c| *c as i32).collect();
        // SAFETY: the caller's promise.
        unsafe { list(&numbers, cpus, capacity, count, "CPUs") }
    })
}

/// Stores in `distance` the system's distance from one node's CPUs (`from`) to another node's
/// memory (`to`). 10 is local; a larger number is farther.
///
/// # Safety
/// `distance` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_distance(from: i32, to: i32, distance: *mut i32) -> i32 {
    answer(|| {
        let machine = UsableNodes::here();
        let between = machine.distance(machine.node(from)?, machine.node(to)?).unwrap_or_default();
        if distance.is_null() {
            return Err(Failure::invalid("hn_distance: no place for the answer (null)"));
        }
        // SAFETY: the caller's promise.
        unsafe { put(distance, between as i32) };
        Ok(())
    })
}

// # What went wrong

/// Returns the text of a return code. It is never null. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn hn_message(code: i32) -> *const c_char {
    code::message(code).as_ptr()
}

/// Describes the last failure of these functions in the calling thread: what was tried, on what,
/// what the system said, and what to do. The text is empty if nothing has failed, and never null.
/// Do not free it. The next call that fails in this thread changes it.
#[unsafe(no_mangle)]
pub extern "C" fn hn_last_error() -> *const c_char {
    LAST.try_with(|last| last.get().cast::<c_char>().cast_const()).unwrap_or(c"".as_ptr())
}

/// Bytes of the longest text that [`hn_last_error`] keeps, with its closing zero.
const LONGEST: usize = 512;

thread_local! {
    /// The text of [`hn_last_error`]. It has no destructor: the program may ask while the thread
    /// ends.
    static LAST: UnsafeCell<[u8; LONGEST]> = const { UnsafeCell::new([0; LONGEST]) };
}

fn remember(text: &str) {
    let mut end = text.len().min(LONGEST - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let _ = LAST.try_with(|last| {
        // SAFETY: this thread's alone; nobody holds a reference into it, and C reads it when this
        // thread lets it.
        let buffer = unsafe { &mut *last.get() };
        buffer[..end].copy_from_slice(&text.as_bytes()[..end]);
        buffer[end..].fill(0);
    });
}

/// Tells the live runtime first, so that the runtime arms nothing there meanwhile.
pub(crate) fn tell_placed(address: *const c_void, length: usize, by_program: bool) {
    if let Ok(span) = pages_of(address as usize, length) {
        state::with(|d| d.placed(span, by_program));
    }
}

/// Runs `f` as homenode and turns its result into a return code.
pub(crate) fn answer(f: impl FnOnce() -> Result<()>) -> i32 {
    match state::guarded(f) {
        Some(Ok(())) => HN_OK,
        Some(Err(failure)) => {
            remember(&failure.text);
            failure.code
        }
        None => {
            remember("homenode was called from inside homenode (a signal handler?), or failed in itself");
            HN_ESYSTEM
        }
    }
}

/// # Safety
/// `to` is null or may be written.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise; C programs may hand over what is not aligned.
        unsafe { to.write_unaligned(value) };
    }
}

/// # Safety
/// `at` may be written `capacity` times.
unsafe fn room<'a>(at: *mut i32, capacity: usize) -> Result<&'a mut [i32]> {
    if capacity == 0 {
        return Ok(&mut []);
    }
    if at.is_null() || !at.is_aligned() || capacity > isize::MAX as usize / size_of::<i32>() {
        return Err(Failure::invalid(format!("{at:?} is no array of {capacity} numbers")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(at, capacity) })
}

/// # Safety
/// `at` may be written `capacity` times, `count` is null or may be written.
unsafe fn list(numbers: &[i32], at: *mut i32, capacity: usize, count: *mut usize, of: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    let room = unsafe { room(at, capacity) }?;
    room.iter_mut().zip(numbers).for_each(|(to, n)| *to = *n);
    // SAFETY: the caller's promise.
    unsafe { put(count, numbers.len()) };
    fits(numbers.len(), capacity, of)
}

fn fits(there: usize, capacity: usize, of: &str) -> Result<()> {
    if there <= capacity || capacity == 0 {
        return Ok(());
    }
    Err(Failure::new(HN_ERANGE, format!("{there} {of} and room for {capacity}")))
}

impl From<PageTotals> for hn_placement {
    fn from(f: PageTotals) -> Self {
        Self { pages: f.pages, there: f.there, elsewhere: f.elsewhere, absent: f.absent, unknown: f.unknown }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use homenode_model::code::{HN_ABSENT, HN_ENODE, HN_PARTIAL};

    use super::*;

    fn last() -> String {
        // SAFETY: what it says of itself.
        unsafe { CStr::from_ptr(hn_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn bad_ranges_are_refused_and_codes_have_texts() {
        // SAFETY: never null, ends with zero.
        let text = |c| unsafe { CStr::from_ptr(hn_message(c)) }.to_str().unwrap();
        assert_ne!(text(HN_OK), text(HN_IDLE));
        assert_eq!(text(99), "not a homenode code");
        assert_eq!(hn_next_touch(std::ptr::null(), 8), HN_EINVAL);
        assert_eq!(hn_next_touch(std::ptr::without_provenance(8), usize::MAX), HN_EINVAL);
        assert_eq!(hn_iteration(0), HN_IDLE);
        assert_eq!(hn_place(std::ptr::null(), 8, 0), HN_EINVAL);
        assert!(last().starts_with("a range of 8 bytes at 0x0"), "{}", last());
    }

    #[test]
    fn the_machine_is_told_and_short_arrays_are() {
        let (mut count, mut nodes) = (0, [0; 64]);
        // SAFETY: places of this test.
        unsafe {
            assert_eq!(hn_nodes(std::ptr::null_mut(), 0, &raw mut count), HN_OK);
            assert!(count > 0);
            assert_eq!(hn_nodes(nodes.as_mut_ptr(), nodes.len(), std::ptr::null_mut()), HN_OK);
            assert_eq!(hn_nodes(std::ptr::null_mut(), 3, &raw mut count), HN_EINVAL);
            let mut info = hn_node::default();
            assert_eq!(hn_node_info(nodes[0], &raw mut info), HN_OK);
            assert_eq!(info.number, nodes[0]);
            let mut cpus = [0; 1];
            let found = hn_node_cpus(nodes[0], cpus.as_mut_ptr(), 1, &raw mut count);
            assert_eq!(found == HN_ERANGE, count > 1);
            let mut distance = 0;
            assert_eq!(hn_distance(nodes[0], nodes[0], &raw mut distance), HN_OK);
            assert_eq!(distance, 10);
            assert_eq!(hn_node_info(-3, std::ptr::null_mut()), HN_ENODE);
            assert_eq!(hn_node_info(nodes[0], std::ptr::null_mut()), HN_EINVAL);
        }
    }

    #[test]
    fn pages_are_told_one_by_one() {
        let memory = vec![0_u8; 5 * 4096];
        let (mut pages, mut nodes) = (0, [7; 6]);
        let at = memory.as_ptr().cast();
        // SAFETY: places of this test.
        unsafe {
            assert_eq!(hn_where(at, memory.len(), std::ptr::null_mut(), 0, &raw mut pages), HN_OK);
            assert!((5..=6).contains(&pages));
            assert_eq!(hn_where(at, memory.len(), nodes.as_mut_ptr(), 2, &raw mut pages), HN_ERANGE);
            assert!(nodes[..2].iter().all(|n| *n >= HN_ABSENT) && nodes[2] == 7);
            let mut found = hn_placement::default();
            assert_eq!(hn_verify(at, memory.len(), 4000, &raw mut found), HN_ENODE);
            let code = hn_verify(at, memory.len(), nodes[0].max(0), &raw mut found);
            assert!(code == HN_OK || code == HN_PARTIAL);
            assert_eq!(found.pages, pages as u64);
        }
    }
}
