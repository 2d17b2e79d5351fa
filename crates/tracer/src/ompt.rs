//! LLVM's libomp, by the OpenMP tools interface (OpenMP 5.0, section 4): teams, members, barriers,
//! locks.
//!
//! libomp calls a worker's end-of-task call-back late, when it wakes the worker for the next team.
//! The clock has not moved meanwhile, so the mark has the right place.

use std::ffi::{c_char, c_int, c_uint, c_void};

use homenode_hooks::ompt::{
    AnyFunction, BEGIN, IMPLICIT_TASK, Lookup, MUTEX_ACQUIRED, MUTEX_RELEASED, PARALLEL_BEGIN, PARALLEL_END,
    REDUCTION, SYNC_REGION, SetCallback, StartToolResult, TASKGROUP, TASKWAIT,
};
use homenode_log::Mark;
use homenode_recorder::state;

use crate::{locks, start, teams, thread};

static mut RESULT: StartToolResult = StartToolResult { initialize, finalize, tool_data: 0 };

/// Called by libomp when it is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_start_tool(_omp_version: c_uint, _runtime: *const c_char) -> *mut StartToolResult {
    start::start();
    if state::recording() { &raw mut RESULT } else { std::ptr::null_mut() }
}

unsafe extern "C" fn initialize(lookup: Lookup, _device: c_int, _data: *mut u64) -> c_int {
    // SAFETY: the interface promises this type for this name.
    unsafe {
        let Some(set) = lookup(c"ompt_set_callback".as_ptr()) else { return 0 };
        let set: SetCallback = std::mem::transmute(set);
        let callbacks: [(c_int, *const ()); 6] = [
            (PARALLEL_BEGIN, parallel_begin as *const ()),
            (PARALLEL_END, parallel_end as *const ()),
            (IMPLICIT_TASK, implicit_task as *const ()),
            (SYNC_REGION, sync_region as *const ()),
            (MUTEX_ACQUIRED, mutex_acquired as *const ()),
            (MUTEX_RELEASED, mutex_released as *const ()),
        ];
        for (which, f) in callbacks {
            set(which, Some(std::mem::transmute::<*const (), AnyFunction>(f)));
        }
    }
    teams::leave_to_libomp();
    1
}

unsafe extern "C" fn finalize(_data: *mut u64) {}

unsafe extern "C" fn parallel_begin(
    _task: *mut u64,
    _frame: *const c_void,
    parallel: *mut u64,
    _threads: c_uint,
    _flags: c_int,
    caller: *const c_void,
) {
    let instance = teams::new_instance();
    // SAFETY: the interface gives every team a word of our own.
    unsafe { *parallel = instance };
    thread::mark(|| Mark::RegionFork { instance, pc: caller as u64 });
}

unsafe extern "C" fn parallel_end(
    parallel: *mut u64,
    _task: *mut u64,
    _flags: c_int,
    _caller: *const c_void,
) {
    // SAFETY: as above.
    let instance = unsafe { *parallel };
    thread::with(|t| {
        if t.instance() == Some(instance) {
            t.task_end();
        }
        t.mark(&Mark::RegionJoin { instance });
        t.synchronise();
    });
}

unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    parallel: *mut u64,
    task: *mut u64,
    team: c_uint,
    number: c_uint,
    _flags: c_int,
) {
    if endpoint == BEGIN {
        // SAFETY: the words of the team and of the task; the initial task has a team of its own
        // that never began.
        let instance = unsafe { parallel.as_ref().map_or(0, |p| *p) };
        if !task.is_null() {
            // SAFETY: the runtime's place for the task's data, which is not null.
            unsafe { *task = instance };
        }
        if instance != 0 {
            thread::with(|t| t.task_begin(instance, number.into(), team.into()));
        }
    } else {
        // SAFETY: as above.
        let instance = unsafe { task.as_ref().map_or(0, |t| *t) };
        thread::with(|t| {
            if instance != 0 && t.instance() == Some(instance) {
                t.task_end();
            }
        });
    }
}

unsafe extern "C" fn sync_region(
    kind: c_int,
    endpoint: c_int,
    _parallel: *mut u64,
    _task: *mut u64,
    _caller: *const c_void,
) {
    if kind == REDUCTION {
        return;
    }
    let waits_for_tasks = kind == TASKWAIT || kind == TASKGROUP;
    thread::with(|t| {
        if endpoint == BEGIN {
            if !waits_for_tasks {
                t.barrier();
            }
        } else {
            if waits_for_tasks {
                t.mark(&Mark::Flush {});
            }
            t.synchronise();
        }
    });
}

unsafe extern "C" fn mutex_acquired(_kind: c_int, lock: u64, _caller: *const c_void) {
    locks::acquired(lock);
}

unsafe extern "C" fn mutex_released(_kind: c_int, lock: u64, _caller: *const c_void) {
    // libomp calls this after the release. The number may then be larger than the next holder's;
    // the reader of the log handles that by the lock's changes of hands.
    locks::releases(lock);
}
