//! The recorder's state for the whole process: on or off, where the recording is, which threads exist.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::thread::Thread;
use crate::{io, modules, process, thread, tls};

const UNKNOWN: u8 = 0;
const RECORDING: u8 = 1;
const OFF: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static DIR: AtomicI32 = AtomicI32::new(-1);
static STATUS: AtomicI32 = AtomicI32::new(-1);
static FILTER_LINES: AtomicU32 = AtomicU32::new(DEFAULT_FILTER_LINES);
static COUNT_ONLY: AtomicU8 = AtomicU8::new(0);
static ORDER: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicI32 = AtomicI32::new(0);
static LIVE: AtomicU32 = AtomicU32::new(0);
static THREADS: AtomicU32 = AtomicU32::new(0);

/// Lines of the filter unless told otherwise: 4096 × 64 B.
pub const DEFAULT_FILTER_LINES: u32 = 4096;
/// Most threads that are recorded in one process.
pub const MAX_THREADS: usize = 4096;

static REGISTRY: [AtomicPtr<Thread>; MAX_THREADS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_THREADS];

/// Whether events are to be recorded.
#[inline]
pub fn recording() -> bool {
    STATE.load(Ordering::Relaxed) == RECORDING
}

/// Whether nothing will be recorded any more.
pub fn off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Whether accesses are counted and nothing is stored (to measure what the instrumentation alone costs).
pub fn count_only() -> bool {
    COUNT_ONLY.load(Ordering::Relaxed) != 0
}

/// Lines of a thread's filter; 0: none.
pub fn filter_lines() -> u32 {
    FILTER_LINES.load(Ordering::Relaxed)
}

/// The next number of the global order.
#[inline]
pub fn order() -> u64 {
    ORDER.fetch_add(1, Ordering::AcqRel) + 1
}

/// Whether more than one recorded thread lives.
pub fn several() -> bool {
    LIVE.load(Ordering::Relaxed) > 1
}

/// File descriptor of the recording's directory.
pub fn dir() -> i32 {
    DIR.load(Ordering::Relaxed)
}

/// Runs when the library is loaded, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs when the process exits, after the program's own destructors.
#[used]
#[unsafe(link_section = ".fini_array")]
static STOP: extern "C" fn() = stop;

/// Reads the environment and starts the initial thread; idempotent.
pub extern "C" fn start() {
    if STATE.load(Ordering::Acquire) != UNKNOWN {
        return;
    }
    tls::publish_offset();
    PROCESS.store(process::id(), Ordering::Relaxed);
    let on = std::panic::catch_unwind(open).unwrap_or(false);
    STATE.store(if on { RECORDING } else { OFF }, Ordering::Release);
    if on {
        // SAFETY: the handler only stores to atomics and this thread's block.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        thread::start();
        thread::mark(|| homenode_log::Mark::Heap { address: modules::heap_start() });
        modules::write_new();
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn open() -> bool {
    if number("HOMENODE_TRACE_COUNT_ONLY") == Some(1) {
        COUNT_ONLY.store(1, Ordering::Relaxed);
    }
    let Some(path) = std::env::var_os("HOMENODE_TRACE_DIR") else { return false };
    if let Some(n) = number("HOMENODE_TRACE_FILTER") {
        let fits = n == 0 || n.is_power_of_two() && n <= 1 << 20;
        if !fits {
            thread::complain("HOMENODE_TRACE_FILTER must be 0 or a power of two up to 1048576");
            return false;
        }
        FILTER_LINES.store(n as u32, Ordering::Relaxed);
    }
    let Ok(path) = CString::new(path.as_bytes()) else { return false };
    let dir = high(io::open_at(libc::AT_FDCWD, &path, libc::O_DIRECTORY | libc::O_RDONLY));
    if dir < 0 {
        thread::complain("cannot open the recording's directory (HOMENODE_TRACE_DIR)");
        return false;
    }
    // Whoever comes first makes this file. Logs of two processes in one directory would be unreadable.
    let first = io::open_at(dir, c"modules.txt", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL);
    if first < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EEXIST) {
        thread::complain("another process is in this recording already; this one is not recorded");
        io::close(dir);
        return false;
    }
    io::close(first);
    DIR.store(dir, Ordering::Relaxed);
    // The launcher made this file with room in it, so that writing to it works on a full disk.
    STATUS.store(high(io::open_at(dir, c"status", libc::O_RDWR)), Ordering::Relaxed);
    true
}

/// Moves a descriptor to 800 and above, where programs neither expect nor close it.
pub fn high(fd: i32) -> i32 {
    if fd < 0 {
        return fd;
    }
    // SAFETY: both calls take any descriptor.
    unsafe {
        let up = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 800);
        if up < 0 {
            return fd;
        }
        io::close(fd);
        up
    }
}

/// Switches the recorder off for good and says why in the recording.
#[cold]
pub fn switch_off(why: &str) {
    if STATE.swap(OFF, Ordering::AcqRel) != RECORDING {
        return;
    }
    let fd = STATUS.load(Ordering::Relaxed);
    if fd >= 0 {
        io::write_first(fd, why.as_bytes());
    }
    thread::complain(why);
}

extern "C" fn in_child() {
    STATE.store(OFF, Ordering::Release);
    // SAFETY: the child's only thread, its own block.
    unsafe {
        let tls = tls::tls();
        (*tls).forget();
    }
}

/// Takes a place in the registry; `None` when there are too many threads.
pub fn register(thread: *mut Thread) -> Option<u32> {
    let index = THREADS.fetch_add(1, Ordering::AcqRel);
    let Some(place) = REGISTRY.get(index as usize) else {
        switch_off("stopped: more than 4096 threads");
        return None;
    };
    place.store(thread, Ordering::Release);
    LIVE.fetch_add(1, Ordering::AcqRel);
    Some(index)
}

/// A thread has ended; its recorder's memory stays, because others may still look at its filter.
pub fn unregister(index: u32) {
    LIVE.fetch_sub(1, Ordering::AcqRel);
    if let Some(place) = REGISTRY.get(index as usize) {
        place.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// The recorders of all live threads.
pub fn threads() -> impl Iterator<Item = *mut Thread> {
    let n = (THREADS.load(Ordering::Acquire) as usize).min(MAX_THREADS);
    REGISTRY[..n].iter().map(|p| p.load(Ordering::Acquire)).filter(|p| !p.is_null())
}

/// Writes out what all threads have, also those that still run.
pub extern "C" fn stop() {
    // A child of vfork has our memory and must leave it alone.
    if STATE.load(Ordering::Acquire) != RECORDING || PROCESS.load(Ordering::Relaxed) != process::id() {
        return;
    }
    let _ = std::panic::catch_unwind(|| {
        modules::write_new();
        for thread in threads() {
            // SAFETY: registered recorders are never freed.
            unsafe { Thread::close(thread, 1) };
        }
    });
    STATE.store(OFF, Ordering::Release);
}
