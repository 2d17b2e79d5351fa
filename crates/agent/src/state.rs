//! The process's only driver, and the rules by which front ends (the replaced functions) call it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

use homenode_model::Ns;
use homenode_runtime::driver::Driver;

use crate::told::{self, Told};

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// There is a driver, and this process is not a forked child.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// homenode's first internal error, with its place in the source.
static BROKEN: OnceLock<String> = OnceLock::new();
/// Id of the process that homenode started in. A forked child leaves no report.
static PROCESS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The thread is executing homenode. Its allocations are homenode's, not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Writes a line to standard error. Allocates, so signal handlers must not call it.
pub fn complain(text: &str) {
    let line = format!("homenode: {text}\n");
    // SAFETY: the buffer is the line. A failure is ignored: there is nowhere to report it.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Whether homenode is on: front ends report to the driver.
#[inline]
pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// Whether the calling thread is executing homenode.
#[inline]
pub fn inside() -> bool {
    INSIDE.get()
}

/// Keeps the driver. Front ends do not report to it before [`begin`].
pub fn install(driver: Driver) {
    *DRIVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(driver);
}

/// Turns homenode on: front ends report to the driver from now on. `began`: CPU time of the process
/// when homenode began to start.
pub fn begin(began: Ns) {
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    driver.iter_mut().for_each(|d| d.started_up(began));
    RUNNING.store(true, Ordering::Release);
}

/// Turns homenode off: front ends do not report to the driver any more. Returns whether homenode
/// was on.
pub fn turn_off() -> bool {
    RUNNING.swap(false, Ordering::AcqRel)
}

/// Takes the driver away for good, and runs `last` with it. Threads that wait for the driver wait
/// until `last` returns.
pub fn take(last: impl FnOnce(Driver)) {
    guarded(|| {
        let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut driver) = driver.take() else { return };
        told::tell_all(&mut driver);
        last(driver);
    });
}

/// Whether an internal error has turned homenode off.
pub fn is_broken() -> bool {
    BROKEN.get().is_some()
}

/// homenode's internal error as a phrase for a message.
pub fn broken() -> Option<String> {
    BROKEN.get().map(|what| format!("an error of homenode's own ({what})"))
}

/// Has the place and text of a panic noted. The default hook would print to the program's standard
/// error.
pub fn note_panics() {
    std::panic::set_hook(Box::new(note_panic));
}

fn note_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, ToString::to_string);
    let _ = BROKEN.set(format!("{place}: {text}"));
}

/// Runs `f` as homenode. Restores `errno`, counts allocations as homenode's, and turns homenode off
/// if `f` panics. `None`: the thread was executing homenode already, or `f` panicked.
pub fn guarded<R>(f: impl FnOnce() -> R) -> Option<R> {
    if INSIDE.replace(true) {
        return None;
    }
    // SAFETY: this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    let result = catch_unwind(AssertUnwindSafe(f));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    INSIDE.set(false);
    if result.is_err() {
        RUNNING.store(false, Ordering::Relaxed);
        complain(&format!("{}: it is off from here on; the program goes on", broken().unwrap_or_default()));
    }
    result.ok()
}

/// Runs `f` with the driver. Waits for the driver's lock. `None`: there is no driver, or the thread
/// is executing homenode already.
pub fn with<R>(f: impl FnOnce(&mut Driver) -> R) -> Option<R> {
    if !running() {
        return None;
    }
    guarded(|| {
        let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
        driver.as_mut().map(|driver| {
            told::tell_all(driver);
            f(driver)
        })
    })?
}

/// Reports `what` to the driver and never waits. If another thread holds the driver, the report is
/// kept, and the next caller delivers it.
pub fn tell(what: Told) {
    if !running() {
        return;
    }
    guarded(|| match DRIVER.try_lock() {
        Ok(mut driver) => {
            if let Some(driver) = driver.as_mut() {
                told::tell_all(driver);
                told::tell(driver, what);
            }
        }
        Err(TryLockError::Poisoned(_)) => {}
        Err(TryLockError::WouldBlock) => told::keep(what),
    });
}

/// homenode starts in this process.
pub fn starts_here() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// Whether the caller is in the process that homenode started in. False in a child of `vfork`,
/// which shares the parent's memory.
pub fn is_own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}
