//! The functions of `homenode.h` for distributed arrays. `cargo xtask c-api` reads this file after
//! `capi.rs`.
//!
//! A handle is a value in the program's memory. The library keeps the ranges of distributed arrays
//! alone ([`crate::distributed`]). What owns what is computed in
//! [`homenode_schedule::distribution`].

use std::ffi::c_void;

use homenode_model::NodeId;
use homenode_model::code::{
    HN_BLOCK, HN_DIMENSIONS, HN_END, HN_IDLE, HN_OK, HN_OVER_NODES, HN_PARTIAL, HN_STAR,
};
use homenode_runtime::placing::spread::{self, PagesToPlace};
use homenode_runtime::placing::{Failure, PAGE, Result, Span, pages_of, threads};
use homenode_schedule::distribution::{
    DIMENSIONS, DimensionFormat, DistributedArray, DistributedDimension, PARTS,
};
use homenode_schedule::page_owners;
use homenode_schedule::share::ThreadShare;

use crate::capi::{answer, put, tell_placed};
use crate::{distributed, loops};

/// An array and how it is distributed. hn_distribute and hn_alloc_padded fill it in; the fields are
/// there to read. It may be copied, and needs no release.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C programs call it")]
pub struct hn_distribution {
    /// the first element
    pub address: *mut c_void,
    /// bytes of the array, with the padding of its rows
    pub bytes: u64,
    /// bytes of an element
    pub element: u64,
    /// elements from one row of the innermost dimension to the next
    pub leading: u64,
    /// bytes that hn_alloc_padded allocated; 0: the memory is the program's own
    pub allocated: u64,
    /// indices of each dimension, the outermost first
    pub extents: [u64; 7],
    /// block borders are multiples of this
    pub units: [u64; 7],
    /// HN_STAR, HN_BLOCK, or the chunk size of HN_CYCLIC
    pub spec: [i64; 7],
    /// parts in each dimension
    pub grid: [i32; 7],
    /// how many dimensions there are
    pub dims: i32,
    /// HN_OVER_NODES, or the number of parts that was asked for
    pub over: i32,
    /// tells a handle from other memory
    pub mark: u32,
}

/// Pages of a distributed array by where they are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "as C programs call it")]
pub struct hn_spread {
    /// pages that the array touches
    pub pages: u64,
    /// on the node that owns most of the page
    pub there: u64,
    /// on other nodes
    pub elsewhere: u64,
    /// not in memory: never written, or swapped out
    pub absent: u64,
    /// the system does not say
    pub unknown: u64,
    /// bytes of the array, with the padding of its rows
    pub bytes: u64,
    /// bytes of them whose page belongs to another node: what rounding to pages put elsewhere
    pub stray: u64,
}

// # Distributed arrays

/// Distributes an array over nodes or threads, and fills in `handle`. The array has `dims`
/// dimensions, the outermost first (C's order), with `extents[0]`, `extents[1]`, … indices and
/// elements of `element` bytes. Each dimension is HN_STAR (not distributed), HN_BLOCK (one range a
/// part) or HN_CYCLIC(k) (chunks of `k` indices in turn). `over` is HN_OVER_NODES, or a number of
/// parts, such as omp_get_max_threads(): neighbouring parts then share a node. Each page goes to
/// the node that owns most of it; existing pages move, and contents stay. HN_PARTIAL: some pages
/// are elsewhere. `homenode run` does not move a distributed array.
///
/// # Safety
/// `extents` and `spec` may be read `dims` times, `handle` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_distribute(
    address: *mut c_void,
    extents: *const usize,
    element: usize,
    dims: i32,
    spec: *const i64,
    over: i32,
    handle: *mut hn_distribution,
) -> i32 {
    // SAFETY: the caller's promise.
    tell_placed(address, unsafe { plain_bytes(extents, element, dims) }, true);
    answer(|| {
        // SAFETY: the caller's promises.
        let array = unsafe { asked(extents, element, dims, spec, over, false) }?;
        if handle.is_null() {
            return Err(no_handle("hn_distribute"));
        }
        if address.is_null() {
            return Err(Failure::invalid("hn_distribute: there is no array at address 0"));
        }
        let made = filled(&array, address, over, 0);
        spread_to_nodes(&made, &array, "hn_distribute", |()| {
            // SAFETY: the caller's promise.
            unsafe { put(handle, made) }
        })
    })
}

/// Distributes the array of `handle` anew, as `spec` and `over` say. Pages move; contents stay.
///
/// # Safety
/// `handle` may be read and written, `spec` may be read as often as the array has dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_redistribute(handle: *mut hn_distribution, spec: *const i64, over: i32) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { tell(handle, true) };
    answer(|| {
        // SAFETY: the caller's promise.
        let (old, known) = unsafe { known(handle, "hn_redistribute") }?;
        distributed::check_alive(old.address as usize, "hn_redistribute")?;
        let extents: Vec<u64> = known.dims().iter().map(|d| d.extent()).collect();
        // SAFETY: the caller's promise.
        let specs = unsafe { specs(spec, extents.len()) }?;
        let plain =
            DistributedArray::new(&extents, &specs, old.element, parts(over)?).map_err(Failure::invalid)?;
        let array = DistributedArray::of(plain.dims(), old.element, old.leading).map_err(Failure::invalid)?;
        let made = filled(&array, old.address, over, old.allocated);
        spread_to_nodes(&made, &array, "hn_redistribute", |()| {
            // SAFETY: the caller's promise.
            unsafe { put(handle, made) }
        })
    })
}

/// Allocates a distributed array in which no page has elements of two parts, and fills in `handle`:
/// `handle->address` is the array, `handle->leading` the number of elements from one row of the
/// innermost dimension to the next. Rows are padded, or block borders are rounded to pages, where
/// that costs less. The memory is zero. hn_free_padded gives it back.
///
/// # Safety
/// `extents` and `spec` may be read `dims` times, `handle` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_alloc_padded(
    extents: *const usize,
    element: usize,
    dims: i32,
    spec: *const i64,
    over: i32,
    handle: *mut hn_distribution,
) -> i32 {
    let code = answer(|| {
        // SAFETY: the caller's promises.
        let array = unsafe { asked(extents, element, dims, spec, over, true) }?;
        if handle.is_null() {
            return Err(no_handle("hn_alloc_padded"));
        }
        let bytes = usize::try_from(array.bytes()).ok().and_then(|b| b.checked_next_multiple_of(PAGE));
        let bytes = bytes.ok_or_else(|| Failure::invalid("the array is larger than memory"))?;
        let memory = spread::allocate(bytes)?;
        let made = filled(&array, memory.start as *mut c_void, over, bytes as u64);
        let placed = spread_to_nodes(&made, &array, "hn_alloc_padded", |()| {
            // SAFETY: the caller's promise.
            unsafe { put(handle, made) }
        });
        if let Err(f) = &placed
            && f.code != HN_PARTIAL
        {
            // SAFETY: from `allocate`, and nobody else knows the memory yet.
            let _ = unsafe { spread::free(memory) };
        }
        placed
    });
    if code == HN_OK || code == HN_PARTIAL {
        // SAFETY: filled in above.
        unsafe { tell(handle, true) };
    }
    code
}

/// Frees the array of hn_alloc_padded, and clears `handle`. Other arrays are the program's own, and
/// are refused.
///
/// # Safety
/// `handle` may be read and written, and nobody uses the array any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_free_padded(handle: *mut hn_distribution) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { tell(handle, false) };
    answer(|| {
        // SAFETY: the caller's promise.
        let (old, _) = unsafe { known(handle, "hn_free_padded") }?;
        if old.allocated == 0 {
            return Err(Failure::invalid(
                "hn_free_padded: hn_alloc_padded did not allocate this array; free it as it was allocated",
            ));
        }
        let memory = Span::new(old.address as usize, old.allocated as usize);
        // SAFETY: the caller's promise; the length is that of the allocation.
        unsafe { spread::free(memory) }?;
        distributed::gone(memory);
        // SAFETY: the caller's promise.
        unsafe { put(handle, hn_distribution { mark: 0, address: std::ptr::null_mut(), ..old }) };
        Ok(())
    })
}

/// Reads back where the pages of a distributed array are. HN_OK: all are on the node that owns most
/// of the page. HN_PARTIAL: some are not. `found` receives the counts, with the bytes that rounding
/// to pages put elsewhere, and may be null.
///
/// # Safety
/// `handle` may be read, `found` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_verify_distribution(
    handle: *const hn_distribution,
    found: *mut hn_spread,
) -> i32 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (of, array) = unsafe { known(handle, "hn_verify_distribution") }?;
        distributed::check_alive(of.address as usize, "hn_verify_distribution")?;
        let (wanted, stray) = wanted(&of, &array)?;
        let counted = spread::count(&wanted).map_err(|mut f| {
            f.text = format!("hn_verify_distribution: {}; was the array freed?", f.text);
            f
        })?;
        let told = hn_spread {
            pages: counted.pages,
            there: counted.there,
            elsewhere: counted.elsewhere,
            absent: counted.absent,
            unknown: counted.unknown,
            bytes: of.bytes,
            stray,
        };
        // SAFETY: the caller's promise.
        unsafe { put(found, told) };
        if counted.there == counted.pages { Ok(()) } else { Err(spread::partial(&counted)) }
    })
}

/// Stores the part and the node that own the element with `indices` (one for each dimension, the
/// outermost first). Either pointer may be null.
///
/// # Safety
/// `handle` may be read, `indices` may be read as often as the array has dimensions, each other
/// pointer is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_owner(
    handle: *const hn_distribution,
    indices: *const usize,
    part: *mut i32,
    node: *mut i32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (_, array) = unsafe { known(handle, "hn_owner") }?;
        // SAFETY: the caller's promise.
        let indices = unsafe { numbers(indices, array.dims().len(), "hn_owner: indices") }?;
        if let Some((i, d)) = indices.iter().zip(array.dims()).find(|(i, d)| **i >= d.extent()) {
            return Err(Failure::invalid(format!(
                "hn_owner: index {i} is outside of a dimension of {} indices",
                d.extent()
            )));
        }
        let owner = array.owner(&indices);
        // SAFETY: the caller's promise.
        unsafe {
            put(part, owner as i32);
            put(node, node_of(owner, array.parts(), &nodes()?).0.into());
        }
        Ok(())
    })
}

/// Stores in `low` and `high` the range of dimension `dim` that thread `thread` of `team` threads
/// works on: from `low` up to, not including, `high`. The ranges of all threads of a team, whatever
/// its size, cover the array once. A range may be empty. HN_EINVAL: the thread's indices are no one
/// range (HN_CYCLIC); use hn_next_of. hn_range asks for the calling thread.
///
/// # Safety
/// `handle` may be read, `low` and `high` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_range_of(
    handle: *const hn_distribution,
    dim: i32,
    thread: i32,
    team: i32,
    low: *mut usize,
    high: *mut usize,
) -> i32 {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe {
            put(low, 0);
            put(high, 0);
        }
        // SAFETY: the caller's promise.
        let (_, array) = unsafe { known(handle, "hn_range") }?;
        let (share, dim) = share(&array, dim, thread, team, "hn_range")?;
        if low.is_null() || high.is_null() {
            return Err(Failure::invalid("hn_range: no place for the answer (null)"));
        }
        if !share.is_one_range(dim) {
            return Err(Failure::invalid(format!(
                "hn_range: dimension {dim} is cyclic, and a thread has more than one range of it; use hn_next"
            )));
        }
        if let Some(run) = share.run(dim, 0) {
            // SAFETY: the caller's promise.
            unsafe {
                put(low, run.begin as usize);
                put(high, run.end as usize);
            }
        }
        Ok(())
    })
}

/// Stores in `low` and `high` the next range of dimension `dim` that thread `thread` of `team`
/// threads works on. `cursor` is 0 before the first call. HN_END: there is no further range.
/// hn_next asks for the calling thread.
///
/// # Safety
/// `handle` may be read, `cursor` may be read and written, `low` and `high` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_next_of(
    handle: *const hn_distribution,
    dim: i32,
    thread: i32,
    team: i32,
    cursor: *mut u64,
    low: *mut usize,
    high: *mut usize,
) -> i32 {
    let mut ends = false;
    let code = answer(|| {
        // SAFETY: the caller's promise.
        let (_, array) = unsafe { known(handle, "hn_next") }?;
        let (share, dim) = share(&array, dim, thread, team, "hn_next")?;
        if low.is_null() || high.is_null() || cursor.is_null() {
            return Err(Failure::invalid("hn_next: no place for the answer (null)"));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let at = cursor.read_unaligned();
            match share.run(dim, at) {
                Some(run) => {
                    put(low, run.begin as usize);
                    put(high, run.end as usize);
                    put(cursor, at + 1);
                }
                None => ends = true,
            }
        }
        Ok(())
    });
    if ends && code == HN_OK { HN_END } else { code }
}

/// Binds the calling thread, which is thread `thread` of `team` threads, to the node of its part of
/// the array. hn_bind_share asks for the calling thread's number.
///
/// # Safety
/// `handle` may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_bind_share_of(handle: *const hn_distribution, thread: i32, team: i32) -> i32 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (_, array) = unsafe { known(handle, "hn_bind_share") }?;
        let (share, _) = share(&array, 0, thread, team, "hn_bind_share")?;
        threads::bind_share(node_of(share.part(), array.parts(), &nodes()?))
    })
}

/// Says that the next loop with a schedule of the run-time's (`dynamic`, `guided`, `runtime`) that
/// the calling thread starts, or the first one of the next team that it starts, is loop `id`.
/// `homenode run --schedule` deals loops with one id alike, wherever they are in the source. The id
/// holds for one loop. HN_IDLE: homenode does not hand out loops.
#[unsafe(no_mangle)]
pub extern "C" fn hn_loop(id: u32) -> i32 {
    if loops::name_next(id) { HN_OK } else { HN_IDLE }
}

/// `hn_distribution::mark` of a handle.
const MARK: u32 = 0x686e_6431;

fn no_handle(who: &str) -> Failure {
    Failure::invalid(format!("{who}: no place for the handle (null)"))
}

/// Tells the live runtime that the program places the array of a handle (`true`), or is done with
/// it.
///
/// # Safety
/// `handle` is null or may be read.
unsafe fn tell(handle: *const hn_distribution, by_program: bool) {
    if !handle.is_null() {
        // SAFETY: the caller's promise.
        let of = unsafe { handle.read_unaligned() };
        if of.mark == MARK && (by_program || of.allocated > 0) {
            tell_placed(of.address, of.bytes as usize, by_program);
        }
    }
}

/// The bytes of an array; 0 if the arguments make no sense.
///
/// # Safety
/// `extents` is null or may be read `dims` times.
unsafe fn plain_bytes(extents: *const usize, element: usize, dims: i32) -> usize {
    let count = usize::try_from(dims).unwrap_or(0);
    if extents.is_null() || count > DIMENSIONS {
        return 0;
    }
    // SAFETY: the caller's promise.
    (0..count)
        .map(|i| unsafe { extents.add(i).read_unaligned() })
        .try_fold(element, usize::checked_mul)
        .unwrap_or(0)
}

/// What a program asks for.
///
/// # Safety
/// `extents` and `spec` may be read `dims` times.
unsafe fn asked(
    extents: *const usize,
    element: usize,
    dims: i32,
    spec: *const i64,
    over: i32,
    is_padded: bool,
) -> Result<DistributedArray> {
    let count = usize::try_from(dims).ok().filter(|n| (1..=DIMENSIONS).contains(n)).ok_or_else(|| {
        Failure::invalid(format!("an array has 1 to {HN_DIMENSIONS} dimensions, not {dims}"))
    })?;
    // SAFETY: the caller's promises.
    let (extents, specs) = unsafe { (numbers(extents, count, "extents")?, specs(spec, count)?) };
    let (parts, element) = (parts(over)?, element as u64);
    let made = match is_padded {
        true => DistributedArray::padded(&extents, &specs, element, parts, PAGE as u64),
        false => DistributedArray::new(&extents, &specs, element, parts),
    };
    made.map_err(Failure::invalid)
}

/// # Safety
/// `at` may be read `count` times.
unsafe fn numbers(at: *const usize, count: usize, what: &str) -> Result<Vec<u64>> {
    if at.is_null() {
        return Err(Failure::invalid(format!("{what}: no array of {count} numbers (null)")));
    }
    // SAFETY: the caller's promise; C programs may hand over what is not aligned.
    Ok((0..count).map(|i| unsafe { at.add(i).read_unaligned() } as u64).collect())
}

/// # Safety
/// `at` may be read `count` times.
unsafe fn specs(at: *const i64, count: usize) -> Result<Vec<DimensionFormat>> {
    if at.is_null() {
        return Err(Failure::invalid(format!("spec: no array of {count} numbers (null)")));
    }
    // SAFETY: as in `numbers`.
    (0..count).map(|i| spec(unsafe { at.add(i).read_unaligned() })).collect()
}

fn spec(number: i64) -> Result<DimensionFormat> {
    match number {
        n if n == i64::from(HN_BLOCK) => Ok(DimensionFormat::Block),
        n if n == i64::from(HN_STAR) => Ok(DimensionFormat::Star),
        n if n > 0 => Ok(DimensionFormat::Cyclic(n.unsigned_abs())),
        n => Err(Failure::invalid(format!(
            "spec {n}: a dimension is HN_STAR, HN_BLOCK, or HN_CYCLIC(k) with k of 1 or more"
        ))),
    }
}

fn parts(over: i32) -> Result<u64> {
    if over == HN_OVER_NODES {
        return Ok(nodes()?.len() as u64);
    }
    u64::try_from(over).ok().filter(|n| *n <= PARTS).ok_or_else(|| {
        Failure::invalid(format!(
            "over {over}: an array is distributed over HN_OVER_NODES or 1 to {PARTS} parts"
        ))
    })
}

fn nodes() -> Result<Vec<NodeId>> {
    let nodes = spread::nodes();
    if nodes.is_empty() {
        return Err(Failure::no_node("no node has memory that this process may use"));
    }
    Ok(nodes)
}

/// Neighbouring parts share a node, as neighbouring threads do.
fn node_of(part: u64, parts: u64, nodes: &[NodeId]) -> NodeId {
    nodes[(part * nodes.len() as u64 / parts) as usize]
}

fn filled(array: &DistributedArray, address: *mut c_void, over: i32, allocated: u64) -> hn_distribution {
    let mut handle = hn_distribution {
        address,
        bytes: array.bytes(),
        element: array.element(),
        leading: array.leading(),
        allocated,
        extents: [1; 7],
        units: [1; 7],
        spec: [HN_STAR.into(); 7],
        grid: [1; 7],
        dims: array.dims().len() as i32,
        over,
        mark: MARK,
    };
    for (i, d) in array.dims().iter().enumerate() {
        handle.extents[i] = d.extent();
        handle.units[i] = d.unit();
        handle.grid[i] = d.parts() as i32;
        handle.spec[i] = match d.spec() {
            DimensionFormat::Star => HN_STAR.into(),
            DimensionFormat::Block => HN_BLOCK.into(),
            DimensionFormat::Cyclic(size) => size as i64,
        };
    }
    handle
}

/// The distribution of a handle. Memory that is none is refused.
///
/// # Safety
/// `handle` is null or may be read.
unsafe fn known(handle: *const hn_distribution, who: &str) -> Result<(hn_distribution, DistributedArray)> {
    if handle.is_null() {
        return Err(no_handle(who));
    }
    // SAFETY: the caller's promise.
    let of = unsafe { handle.read_unaligned() };
    let refuse = |why: String| Failure::invalid(format!("{who}: this is no handle of hn_distribute: {why}"));
    let count = usize::try_from(of.dims).unwrap_or(0);
    if of.mark != MARK || count == 0 || count > DIMENSIONS {
        return Err(refuse("it was not filled in, or the array was freed".into()));
    }
    let dim = |i: usize| {
        DistributedDimension::new(
            of.extents[i],
            spec(of.spec[i]).map_err(|f| f.text)?,
            u64::try_from(of.grid[i]).unwrap_or(0),
            of.units[i],
        )
    };
    let dims: Vec<DistributedDimension> =
        (0..count).map(dim).collect::<std::result::Result<_, _>>().map_err(refuse)?;
    let array = DistributedArray::of(&dims, of.element, of.leading).map_err(refuse)?;
    Ok((of, array))
}

fn share<'a>(
    array: &'a DistributedArray,
    dim: i32,
    thread: i32,
    team: i32,
    who: &str,
) -> Result<(ThreadShare<'a>, usize)> {
    let number = usize::try_from(dim).ok().filter(|d| *d < array.dims().len()).ok_or_else(|| {
        Failure::invalid(format!("{who}: there is no dimension {dim}; the array has {}", array.dims().len()))
    })?;
    let threads = u32::try_from(thread).ok().zip(u32::try_from(team).ok());
    let share = threads.and_then(|(thread, team)| ThreadShare::new(array, thread, team));
    let share = share
        .ok_or_else(|| Failure::invalid(format!("{who}: there is no thread {thread} in a team of {team}")))?;
    Ok((share, number))
}

/// The pages of an array with their nodes, and the bytes that rounding put elsewhere.
fn wanted(of: &hn_distribution, array: &DistributedArray) -> Result<(Vec<PagesToPlace>, u64)> {
    let nodes = nodes()?;
    let bytes = usize::try_from(array.bytes()).unwrap_or(usize::MAX);
    let whole = pages_of(of.address as usize, bytes)?;
    let offset = (of.address as usize - whole.start) as u64;
    let (mut wanted, mut stray) = (Vec::new(), 0);
    let index = |part| (part * nodes.len() as u64 / array.parts()) as u16;
    page_owners::each(array, offset, PAGE as u64, index, |run| {
        let start = whole.start + run.pages.begin as usize * PAGE;
        let span = Span { start, end: start + run.pages.len() as usize * PAGE };
        wanted.push(PagesToPlace { span, node: nodes[usize::from(run.node)] });
        stray += run.stray;
    });
    Ok((wanted, stray))
}

/// Puts an array on its nodes. `keep` stores the handle, also where some pages are elsewhere.
fn spread_to_nodes(
    of: &hn_distribution,
    array: &DistributedArray,
    who: &str,
    keep: impl FnOnce(()),
) -> Result<()> {
    let memory = Span::new(of.address as usize, usize::try_from(of.bytes).unwrap_or(usize::MAX));
    distributed::check(memory, who)?;
    let (wanted, _) = wanted(of, array)?;
    let done = spread::spread(&wanted).map_err(|mut f| {
        f.text = format!("{who}: {}", f.text);
        f
    });
    if done.as_ref().map_or_else(|f| f.code == HN_PARTIAL, |()| true) {
        distributed::enter(memory);
        keep(());
    }
    done
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use homenode_model::code::HN_EINVAL;

    use super::*;
    use crate::capi::hn_last_error;

    fn last() -> String {
        // SAFETY: what it says of itself.
        unsafe { CStr::from_ptr(hn_last_error()) }.to_str().unwrap().to_owned()
    }

    fn empty() -> hn_distribution {
        // SAFETY: numbers and a null pointer.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn an_array_is_distributed_read_back_and_freed() {
        let mut handle = empty();
        let (extents, spec) = ([300, 100], [HN_BLOCK.into(), HN_STAR.into()]);
        // SAFETY: places of this test.
        unsafe {
            let code = hn_alloc_padded(extents.as_ptr(), 8, 2, spec.as_ptr(), 3, &raw mut handle);
            assert_eq!(code, HN_OK, "{}", last());
            assert_eq!((handle.grid[0], handle.dims, handle.extents[1]), (3, 2, 100));
            let memory = std::slice::from_raw_parts_mut(handle.address.cast::<u8>(), handle.bytes as usize);
            memory.fill(7);
            let mut found = hn_spread::default();
            assert_eq!(hn_verify_distribution(&raw const handle, &raw mut found), HN_OK, "{}", last());
            assert_eq!((found.there, found.stray, found.elsewhere), (found.pages, 0, 0));
            // Another distribution of the same memory.
            let cyclic = [5, HN_STAR.into()];
            assert_eq!(hn_redistribute(&raw mut handle, cyclic.as_ptr(), 2), HN_OK, "{}", last());
            let (mut low, mut high, mut cursor) = (0, 0, 0);
            let mut covered = 0;
            for thread in 0..2 {
                cursor = 0;
                while hn_next_of(
                    &raw const handle,
                    0,
                    thread,
                    2,
                    &raw mut cursor,
                    &raw mut low,
                    &raw mut high,
                ) == HN_OK
                {
                    covered += high - low;
                }
            }
            assert_eq!((covered, cursor), (300, 30));
            assert_eq!(hn_range_of(&raw const handle, 0, 0, 2, &raw mut low, &raw mut high), HN_EINVAL);
            assert!(last().contains("use hn_next"), "{}", last());
            assert_eq!(hn_range_of(&raw const handle, 1, 0, 2, &raw mut low, &raw mut high), HN_OK);
            assert_eq!((low, high), (0, 100));
            let mut part = -1;
            let owner = |i: usize, part: *mut i32| {
                hn_owner(&raw const handle, [i, 0].as_ptr(), part, std::ptr::null_mut())
            };
            assert_eq!((owner(7, &raw mut part), part), (HN_OK, 1));
            assert_eq!(owner(300, &raw mut part), HN_EINVAL);
            let copy = handle;
            assert_eq!(hn_free_padded(&raw mut handle), HN_OK, "{}", last());
            assert_eq!(hn_free_padded(&raw mut handle), HN_EINVAL);
            // A copy of the handle does not know that the memory is gone: the system does.
            assert_eq!(hn_verify_distribution(&raw const copy, std::ptr::null_mut()), HN_EINVAL);
            assert!(last().contains("was freed after it was distributed"), "{}", last());
        }
        assert_eq!(hn_loop(3), HN_IDLE);
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let mut handle = empty();
        let mut memory = [0u8; 4096];
        let address: *mut c_void = memory.as_mut_ptr().cast();
        let mut ask = |extents: &[usize], spec: &[i64], element, dims, over| {
            // SAFETY: places of this test.
            let code = unsafe {
                let handle = &raw mut handle;
                hn_distribute(address, extents.as_ptr(), element, dims, spec.as_ptr(), over, handle)
            };
            assert_eq!(code, HN_EINVAL);
            last()
        };
        let block = i64::from(HN_BLOCK);
        assert!(ask(&[8], &[0], 8, 1, 0).contains("spec 0"));
        assert!(ask(&[8], &[-5], 8, 1, 0).contains("spec -5"));
        assert!(ask(&[8], &[block], 8, 8, 0).contains("1 to 7 dimensions"));
        assert!(ask(&[8], &[block], 8, -1, 0).contains("not -1"));
        assert!(ask(&[8], &[block], 0, 1, 0).contains("0 bytes"));
        assert!(ask(&[0], &[block], 8, 1, 0).contains("0 indices"));
        assert!(ask(&[8], &[block], 8, 1, -1).contains("over -1"));
        assert!(ask(&[usize::MAX], &[block], 8, 1, 2).contains("indices"));
        assert!(ask(&[1 << 40, 1 << 30], &[block, block], 8, 2, 2).contains("2^63"));
        let (mut low, mut high) = (1, 1);
        // SAFETY: places of this test.
        unsafe {
            assert_eq!(hn_range_of(&raw const handle, 0, 0, 1, &raw mut low, &raw mut high), HN_EINVAL);
            assert_eq!((low, high), (0, 0), "nothing to do where nothing is known");
            assert!(last().contains("no handle"), "{}", last());
            assert_eq!(hn_verify_distribution(std::ptr::null(), std::ptr::null_mut()), HN_EINVAL);
            let extents = [512];
            let code = hn_distribute(address, extents.as_ptr(), 8, 1, [block].as_ptr(), 2, &raw mut handle);
            assert_eq!(code, HN_OK, "{}", last());
            assert_eq!(hn_free_padded(&raw mut handle), HN_EINVAL);
            assert_eq!(hn_range_of(&raw const handle, 1, 0, 1, &raw mut low, &raw mut high), HN_EINVAL);
            assert_eq!(hn_range_of(&raw const handle, 0, 2, 2, &raw mut low, &raw mut high), HN_EINVAL);
            assert!(last().contains("no thread 2 in a team of 2"), "{}", last());
            let mut broken = handle;
            broken.grid[0] = 0;
            assert_eq!(hn_range_of(&raw const broken, 0, 0, 1, &raw mut low, &raw mut high), HN_EINVAL);
        }
    }
}
