//! The OpenMP tools interface (OpenMP 5.0, section 4), by which LLVM's libomp tells of its regions.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// A function whose type its name says.
pub type AnyFunction = unsafe extern "C" fn();
/// `ompt_function_lookup_t`.
pub type Lookup = unsafe extern "C" fn(*const c_char) -> Option<AnyFunction>;
/// `ompt_set_callback_t`.
pub type SetCallback = unsafe extern "C" fn(c_int, Option<AnyFunction>) -> c_int;
/// `ompt_get_callback_t`.
pub type GetCallback = unsafe extern "C" fn(c_int, *mut Option<AnyFunction>) -> c_int;
/// `ompt_start_tool`.
pub type StartTool = unsafe extern "C" fn(c_uint, *const c_char) -> *mut StartToolResult;
/// `ompt_callback_parallel_begin_t`.
pub type ParallelBegin =
    unsafe extern "C" fn(*mut u64, *const c_void, *mut u64, c_uint, c_int, *const c_void);
/// `ompt_callback_parallel_end_t`.
pub type ParallelEnd = unsafe extern "C" fn(*mut u64, *mut u64, c_int, *const c_void);
/// `ompt_callback_implicit_task_t`.
pub type ImplicitTask = unsafe extern "C" fn(c_int, *mut u64, *mut u64, c_uint, c_uint, c_int);
/// `ompt_callback_sync_region_t`.
pub type SyncRegion = unsafe extern "C" fn(c_int, c_int, *mut u64, *mut u64, *const c_void);

/// `ompt_start_tool_result_t`.
#[repr(C)]
pub struct StartToolResult {
    /// Called once, with libomp's look-up function. Returns 0 if the tool wants nothing.
    pub initialize: unsafe extern "C" fn(Lookup, c_int, *mut u64) -> c_int,
    /// Called at the end.
    pub finalize: unsafe extern "C" fn(*mut u64),
    /// The tool's own word. libomp passes its address to both.
    pub tool_data: u64,
}

/// `ompt_callbacks_t`: the start of a parallel region.
pub const PARALLEL_BEGIN: c_int = 3;
/// `ompt_callbacks_t`: the end of a parallel region.
pub const PARALLEL_END: c_int = 4;
/// `ompt_callbacks_t`: a thread enters or leaves a team.
pub const IMPLICIT_TASK: c_int = 7;
/// `ompt_callbacks_t`: a lock was released.
pub const MUTEX_RELEASED: c_int = 17;
/// `ompt_callbacks_t`: a barrier, a taskwait, a taskgroup or a reduction.
pub const SYNC_REGION: c_int = 23;
/// `ompt_callbacks_t`: a lock was acquired.
pub const MUTEX_ACQUIRED: c_int = 27;

/// `ompt_scope_endpoint_t`: the event begins.
pub const BEGIN: c_int = 1;
/// `ompt_scope_endpoint_t`: the event ends.
pub const END: c_int = 2;

/// `ompt_task_flag_t`: the task of a thread that no region has made.
pub const INITIAL: c_int = 1;

/// `ompt_sync_region_t`: barriers that can be in a program's source. 4, 9 and 10 are implicit ones.
pub const EXPLICIT_BARRIERS: [c_int; 4] = [1, 2, 3, 8];
/// `ompt_sync_region_t`: a taskwait.
pub const TASKWAIT: c_int = 5;
/// `ompt_sync_region_t`: the end of a taskgroup.
pub const TASKGROUP: c_int = 6;
/// `ompt_sync_region_t`: a reduction.
pub const REDUCTION: c_int = 7;

/// `ompt_set_result_t`: libomp calls the tool at each event.
pub const SET_ALWAYS: c_int = 5;
