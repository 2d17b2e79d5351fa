//! Where Python code allocates: file, line and function of the innermost frames.
//!
//! The interpreter cannot be asked inside of an allocation. Since 3.11, asking for a frame makes an
//! object, which allocates, and the interpreter's allocator may be the caller. So homenode asks for
//! a *pending call*, as signal handlers do. The interpreter's main thread makes the call between
//! two instructions, mostly on the line that allocated, or soon after. Only the process's first
//! thread asks, and only while it holds the interpreter's lock: for other threads, the frames would
//! be another thread's.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use homenode_hooks::python::{FrameFunctions, PythonObject, is_interpreter, symbol};

use crate::{first_thread, state};

/// Frames of an allocation that are kept.
const FRAMES: usize = 3;
/// Allocations that wait for one pending call; of more nothing is known.
const WAITING: usize = 64;
type Call = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The interpreter's own functions.
struct Interpreter {
    add_pending_call: unsafe extern "C" fn(Call, *mut c_void) -> c_int,
    of_frames: FrameFunctions,
}

static FOUND: AtomicPtr<Interpreter> = AtomicPtr::new(std::ptr::null_mut());
static LOOKED: AtomicUsize = AtomicUsize::new(0);
static ADDRESSES: [AtomicUsize; WAITING] = [const { AtomicUsize::new(0) }; WAITING];
/// A pending call was asked for and has not been made.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether one of the loaded files is an interpreter.
fn has_python() -> bool {
    crate::modules::loaded().iter().any(|m| is_interpreter(m.path.as_bytes()))
}

impl Interpreter {
    /// The process's, if it has one of 3.9 or later that shows its functions.
    fn get() -> Option<&'static Self> {
        // SAFETY: null or leaked below.
        if let Some(found) = unsafe { FOUND.load(Ordering::Acquire).as_ref() } {
            return Some(found);
        }
        // Ever more rarely, for most programs have none.
        if !(LOOKED.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
            return None;
        }
        let found = state::guarded(|| has_python().then(Self::look)).flatten().flatten()?;
        FOUND.store(Box::into_raw(Box::new(found)), Ordering::Release);
        // SAFETY: just stored, by this thread or, as good, by another.
        unsafe { FOUND.load(Ordering::Acquire).as_ref() }
    }

    fn look() -> Option<Self> {
        // SAFETY: the type of the interpreter's headers.
        let add_pending_call = unsafe { symbol(c"Py_AddPendingCall")? };
        Some(Self { add_pending_call, of_frames: FrameFunctions::look()? })
    }

    /// `file:line (function)` of a frame.
    ///
    /// # Safety
    /// The calling thread holds the interpreter's lock and the frame.
    unsafe fn describe(&self, frame: PythonObject, out: &mut String) {
        // SAFETY: the caller's promise; what is new is given up again.
        unsafe {
            let code = (self.of_frames.code)(frame);
            for (name, before, after) in [(c"co_filename", "", ""), (c"co_name", " (", ")")] {
                let value = (self.of_frames.attribute)(code, name.as_ptr());
                let text = if value.is_null() { std::ptr::null() } else { (self.of_frames.text)(value) };
                let known = if text.is_null() { c"?" } else { CStr::from_ptr(text) };
                let _ = write!(out, "{before}{}{after}", known.to_string_lossy());
                if name == c"co_filename" {
                    let _ = write!(out, ":{}", (self.of_frames.line)(frame));
                }
                if !value.is_null() {
                    (self.of_frames.give_up)(value);
                }
                (self.of_frames.clear_error)();
            }
            (self.of_frames.give_up)(code);
        }
    }

    /// The innermost frames, from the inside out.
    ///
    /// # Safety
    /// The calling thread holds the interpreter's lock.
    unsafe fn frames(&self) -> String {
        let mut text = String::new();
        // SAFETY: the caller's promise. The first frame is borrowed, those behind it are new.
        unsafe {
            let mut frame = (self.of_frames.frame)();
            for i in 0..FRAMES {
                if frame.is_null() {
                    break;
                }
                text.push_str(if i > 0 { " < " } else { "" });
                self.describe(frame, &mut text);
                let outer = (self.of_frames.back)(frame);
                if i > 0 {
                    (self.of_frames.give_up)(frame);
                }
                frame = outer;
            }
            if !frame.is_null() {
                (self.of_frames.give_up)(frame);
            }
        }
        text
    }
}

thread_local! {
    /// What the kernel has said of the thread: two system calls for every object are a tenth of
    /// what one costs.
    static FIRST: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The thread is the process's first, in which Python runs its pending calls. (In a forked child
/// there is no homenode.)
fn is_first_thread() -> bool {
    FIRST.get().unwrap_or_else(|| {
        let first = first_thread::is_calling();
        FIRST.set(Some(first));
        first
    })
}

/// An object has come to life at `address`: if Python code runs in this thread, it is asked where
/// it stands.
pub fn born(address: usize) {
    if !is_first_thread() {
        return;
    }
    let Some(python) = Interpreter::get() else { return };
    // SAFETY: both may be asked by any thread at any time.
    if unsafe { (python.of_frames.is_initialised)() == 0 || (python.of_frames.has_lock)() == 0 } {
        return;
    }
    let free = |a: &&AtomicUsize| a.compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if ADDRESSES.iter().find(free).is_some() && !ASKED.swap(true, Ordering::AcqRel) {
        // SAFETY: what signal handlers may call, too; `look` lives as long as the library, which is
        // never unloaded.
        if unsafe { (python.add_pending_call)(look, std::ptr::null_mut()) } != 0 {
            ASKED.store(false, Ordering::Release);
        }
    }
}

/// Called by the interpreter, which holds its lock, between two instructions.
unsafe extern "C" fn look(_: *mut c_void) -> c_int {
    ASKED.store(false, Ordering::Release);
    // SAFETY: null or leaked.
    let Some(python) = (unsafe { FOUND.load(Ordering::Acquire).as_ref() }) else { return 0 };
    // SAFETY: the interpreter's promise.
    let text = unsafe { python.frames() };
    for place in &ADDRESSES {
        let address = place.swap(0, Ordering::AcqRel);
        if address != 0 && !text.is_empty() {
            state::with(|d| d.by_python(address, &text));
        }
    }
    0
}
