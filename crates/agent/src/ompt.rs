//! LLVM's libomp, by the OpenMP tools interface (OpenMP 5.0, section 4): regions and barriers.
//!
//! libomp takes one tool. If the program names another one (by a library that defines
//! `ompt_start_tool`, or in `OMP_TOOL_LIBRARIES`), homenode asks that tool first. For events that
//! both want, homenode's call-back calls the other tool's. homenode uses none of the data words
//! that libomp keeps for tools, so they are the other tool's.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use homenode_hooks::ompt::{
    AnyFunction, BEGIN, END, EXPLICIT_BARRIERS, GetCallback, IMPLICIT_TASK, INITIAL, ImplicitTask, Lookup,
    PARALLEL_BEGIN, PARALLEL_END, ParallelBegin, ParallelEnd, SET_ALWAYS, SYNC_REGION, SetCallback,
    StartTool, StartToolResult, SyncRegion,
};

use crate::{gomp, loops, loops_kmpc, regions, start, state};

static mut RESULT: StartToolResult = StartToolResult { initialize, finalize, tool_data: 0 };

/// The other tool's answer; null: there is no other.
static OTHER: AtomicPtr<StartToolResult> = AtomicPtr::new(std::ptr::null_mut());
/// libomp's `ompt_set_callback`. The other tool gets homenode's.
static SET: AtomicUsize = AtomicUsize::new(0);
/// libomp's look-up function.
static LOOKUP: AtomicUsize = AtomicUsize::new(0);
/// The other tool's call-backs for the events that homenode uses, in the order of [`OURS`]. 0:
/// none.
static THEIRS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Events that homenode uses. It uses the last one only if it hands out the iterations of loops.
const OURS: [c_int; 4] = [PARALLEL_BEGIN, PARALLEL_END, SYNC_REGION, IMPLICIT_TASK];
/// Called by libomp when it is loaded.
///
/// # Safety
/// As the interface says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_start_tool(version: c_uint, runtime: *const c_char) -> *mut StartToolResult {
    start::start();
    // SAFETY: libomp's arguments.
    let other = unsafe { other_tool(version, runtime) };
    if !state::running() && !loops::asked() {
        return other;
    }
    OTHER.store(other, Ordering::Release);
    &raw mut RESULT
}

/// Starts the tool that libomp would have found without homenode. Null: there is none.
unsafe fn other_tool(version: c_uint, runtime: *const c_char) -> *mut StartToolResult {
    // SAFETY: the symbol has this type wherever it is defined; libraries that are no tools are
    // closed again.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"ompt_start_tool".as_ptr());
        let own = ompt_start_tool as *const () as *mut c_void;
        if !next.is_null() && next != own {
            let start: StartTool = std::mem::transmute(next);
            let result = start(version, runtime);
            if !result.is_null() {
                return result;
            }
        }
        let list = std::env::var("OMP_TOOL_LIBRARIES").unwrap_or_default();
        for path in list.split(':').filter(|p| !p.is_empty()) {
            let Ok(path) = std::ffi::CString::new(path) else { continue };
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY);
            if handle.is_null() {
                continue;
            }
            let start = libc::dlsym(handle, c"ompt_start_tool".as_ptr());
            if !start.is_null() && start != own {
                let start: StartTool = std::mem::transmute(start);
                let result = start(version, runtime);
                if !result.is_null() {
                    return result;
                }
            }
            libc::dlclose(handle);
        }
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn initialize(lookup: Lookup, device: c_int, data: *mut u64) -> c_int {
    // SAFETY: the interface promises this type for this name; the other tool is initialised as
    // libomp would have done it, but that its registrations for homenode's events come to us.
    unsafe {
        LOOKUP.store(lookup as usize, Ordering::Release);
        let Some(set) = lookup(c"ompt_set_callback".as_ptr()) else { return 0 };
        SET.store(set as usize, Ordering::Release);
        let set: SetCallback = std::mem::transmute(set);
        let callbacks: [*const (); OURS.len()] = [
            parallel_begin as *const (),
            parallel_end as *const (),
            sync_region as *const (),
            implicit_task as *const (),
        ];
        for (which, f) in OURS.into_iter().zip(callbacks).filter(|(which, _)| wanted(*which)) {
            set(which, Some(std::mem::transmute::<*const (), AnyFunction>(f)));
        }
        if let Some(other) = OTHER.load(Ordering::Acquire).as_mut()
            && (other.initialize)(lookup_for_other, device, &raw mut other.tool_data) == 0
        {
            OTHER.store(std::ptr::null_mut(), Ordering::Release);
        }
        let _ = data;
    }
    1
}

unsafe extern "C" fn finalize(_data: *mut u64) {
    // SAFETY: the other tool's answer lives as long as the tool.
    unsafe {
        if let Some(other) = OTHER.load(Ordering::Acquire).as_mut() {
            (other.finalize)(&raw mut other.tool_data);
        }
    }
}

unsafe extern "C" fn lookup_for_other(name: *const c_char) -> Option<AnyFunction> {
    // SAFETY: the other tool's C string; our own functions have the types that the interface gives
    // to these names.
    unsafe {
        match CStr::from_ptr(name).to_bytes() {
            b"ompt_set_callback" => {
                Some(std::mem::transmute::<*const (), AnyFunction>(set_for_other as *const ()))
            }
            b"ompt_get_callback" => {
                Some(std::mem::transmute::<*const (), AnyFunction>(get_for_other as *const ()))
            }
            _ => {
                let lookup: Lookup = std::mem::transmute(LOOKUP.load(Ordering::Acquire));
                lookup(name)
            }
        }
    }
}

/// Whether homenode registers for an event.
fn wanted(which: c_int) -> bool {
    which != IMPLICIT_TASK || loops::asked()
}

fn theirs(which: c_int) -> Option<&'static AtomicUsize> {
    OURS.iter().position(|o| *o == which && wanted(which)).map(|i| &THEIRS[i])
}

unsafe extern "C" fn set_for_other(which: c_int, callback: Option<AnyFunction>) -> c_int {
    if let Some(place) = theirs(which) {
        place.store(callback.map_or(0, |f| f as usize), Ordering::Release);
        return SET_ALWAYS;
    }
    // SAFETY: libomp's own function, kept in `initialize`.
    unsafe {
        let set: SetCallback = std::mem::transmute(SET.load(Ordering::Acquire));
        set(which, callback)
    }
}

unsafe extern "C" fn get_for_other(which: c_int, out: *mut Option<AnyFunction>) -> c_int {
    // SAFETY: the other tool's place for the answer; libomp's own function for all other events.
    unsafe {
        if let Some(place) = theirs(which) {
            let f = place.load(Ordering::Acquire);
            if f != 0 {
                *out = Some(std::mem::transmute::<usize, AnyFunction>(f));
            }
            return c_int::from(f != 0);
        }
        let lookup: Lookup = std::mem::transmute(LOOKUP.load(Ordering::Acquire));
        let Some(get) = lookup(c"ompt_get_callback".as_ptr()) else { return 0 };
        let get: GetCallback = std::mem::transmute(get);
        get(which, out)
    }
}

/// The other tool's call-back for the event of this index in [`OURS`], as its type.
unsafe fn their<F>(which: usize) -> Option<F> {
    let f = THEIRS[which].load(Ordering::Acquire);
    // SAFETY: the caller names the event's own type; registered function pointers are as large as a
    // word.
    (f != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&f) })
}

unsafe extern "C" fn parallel_begin(
    task: *mut u64,
    frame: *const c_void,
    parallel: *mut u64,
    threads: c_uint,
    flags: c_int,
    caller: *const c_void,
) {
    regions::begin(0, caller as usize, || threads as usize);
    // SAFETY: libomp's arguments.
    unsafe {
        if let Some(f) = their::<ParallelBegin>(0) {
            f(task, frame, parallel, threads, flags, caller);
        }
    }
}

unsafe extern "C" fn parallel_end(parallel: *mut u64, task: *mut u64, flags: c_int, caller: *const c_void) {
    regions::end();
    // SAFETY: libomp's arguments.
    unsafe {
        if let Some(f) = their::<ParallelEnd>(1) {
            f(parallel, task, flags, caller);
        }
    }
}

unsafe extern "C" fn sync_region(
    kind: c_int,
    endpoint: c_int,
    parallel: *mut u64,
    task: *mut u64,
    caller: *const c_void,
) {
    // A region ends with a barrier, too, but then `parallel` is null. Before LLVM 15 it has the
    // same kind as a loop's barrier.
    if endpoint == END && !parallel.is_null() && EXPLICIT_BARRIERS.contains(&kind) && !gomp::waiting() {
        regions::barrier(caller as usize);
    }
    // SAFETY: libomp's arguments.
    unsafe {
        if let Some(f) = their::<SyncRegion>(2) {
            f(kind, endpoint, parallel, task, caller);
        }
    }
}

/// A thread enters or leaves a team.
unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    parallel: *mut u64,
    task: *mut u64,
    threads: c_uint,
    number: c_uint,
    flags: c_int,
) {
    if flags & INITIAL == 0 {
        match endpoint {
            BEGIN => loops_kmpc::enters(parallel.addr(), threads, number),
            END => loops_kmpc::leaves(),
            _ => {}
        }
    }
    // SAFETY: libomp's arguments.
    unsafe {
        if let Some(f) = their::<ImplicitTask>(3) {
            f(endpoint, parallel, task, threads, number, flags);
        }
    }
}
