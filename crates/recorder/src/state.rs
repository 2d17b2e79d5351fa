//! The recorder's state for the whole process: on or off, and where the recording is.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::{io, process};

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

/// Default number of the filter's lines: 4096 × 64 B.
pub const DEFAULT_FILTER_LINES: u32 = 4096;

/// Whether events are to be recorded.
#[inline]
pub fn recording() -> bool {
    STATE.load(Ordering::Relaxed) == RECORDING
}

/// Whether nothing will be recorded any more.
#[inline]
pub fn off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Whether accesses are counted and nothing is stored, to measure the cost of the instrumentation
/// alone.
#[inline]
pub fn count_only() -> bool {
    COUNT_ONLY.load(Ordering::Relaxed) != 0
}

/// Lines of a thread's filter; 0: none.
#[inline]
pub fn filter_lines() -> u32 {
    FILTER_LINES.load(Ordering::Relaxed)
}

/// The next number of the global order.
#[inline]
pub fn order() -> u64 {
    ORDER.fetch_add(1, Ordering::AcqRel) + 1
}

/// File descriptor of the recording's directory.
#[inline]
pub fn dir() -> i32 {
    DIR.load(Ordering::Relaxed)
}

/// Where and how to record.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The recording's directory.
    pub directory: PathBuf,
    /// Lines of the filter: 0 or a power of two up to 1048576.
    pub filter_lines: u32,
    /// Only count; see [`count_only`].
    pub count_only: bool,
    /// With several processes and one recording, the first process gets the recording. Without this
    /// option, the launcher takes care of that.
    pub claim: bool,
}

/// Opens the recording and switches the recorder on.
///
/// # Errors
/// The reason; the recorder is then off for good.
pub fn open(options: &RecorderOptions) -> Result<(), String> {
    let opened = prepare(options);
    PROCESS.store(process::id(), Ordering::Relaxed);
    STATE.store(if opened.is_ok() { RECORDING } else { OFF }, Ordering::Release);
    opened
}

fn prepare(options: &RecorderOptions) -> Result<(), String> {
    let lines = options.filter_lines;
    if lines != 0 && !(lines.is_power_of_two() && lines <= 1 << 20) {
        return Err("the filter's lines must be 0 or a power of two up to 1048576".into());
    }
    FILTER_LINES.store(lines, Ordering::Relaxed);
    COUNT_ONLY.store(options.count_only.into(), Ordering::Relaxed);
    let path = CString::new(options.directory.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let dir = high(io::open_at(libc::AT_FDCWD, &path, libc::O_DIRECTORY | libc::O_RDONLY));
    if dir < 0 {
        return Err(format!("cannot open the recording's directory {}", options.directory.display()));
    }
    if options.claim && !claim(dir) {
        io::close(dir);
        return Err("another process is in this recording already; this one is not recorded".into());
    }
    DIR.store(dir, Ordering::Relaxed);
    // The launcher made this file with room in it, so that writing to it works on a full disk.
    STATUS.store(high(io::open_at(dir, c"status", libc::O_RDWR)), Ordering::Relaxed);
    Ok(())
}

/// The first process makes this file. Logs of two processes in one directory would be unreadable.
fn claim(dir: i32) -> bool {
    let first = io::open_at(dir, c"modules.txt", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL);
    let taken = first < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EEXIST);
    if first >= 0 {
        io::close(first);
    }
    !taken
}

/// Whether [`open`] has been called, or the recorder switched off.
pub fn decided() -> bool {
    STATE.load(Ordering::Acquire) != UNKNOWN
}

/// Stays off silently: nobody asked for a recording, or this is a forked child.
pub fn stay_off() {
    STATE.store(OFF, Ordering::Release);
}

/// Prints one line to the program's standard error.
#[cold]
pub fn complain(text: &str) {
    let line = format!("homenode: recorder: {text}\n");
    io::write(2, line.as_bytes());
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

/// Switches the recorder off for good, and writes the reason into the recording.
#[cold]
pub fn switch_off(why: &str) {
    if STATE.swap(OFF, Ordering::AcqRel) != RECORDING {
        return;
    }
    let fd = STATUS.load(Ordering::Relaxed);
    if fd >= 0 {
        io::write_first(fd, why.as_bytes());
    }
    complain(why);
}

/// Whether this process is the recorded one. A child of vfork has the same memory and must leave it
/// alone.
pub fn own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == process::id()
}

/// Whether this process is the recorded one and still records.
pub fn records_here() -> bool {
    STATE.load(Ordering::Acquire) == RECORDING && own_process()
}
