//! Deaf threads: threads that block the signal of an armed page. If such a thread touches an armed
//! page, the kernel ends the process.
//!
//! Front ends keep the signal out of every mask that they see. They do not see a mask that the
//! program sets by a system call of its own, nor threads that the C library makes for itself. So
//! the mover asks the kernel before it arms, and arms nothing while such a thread lives. The
//! kernel's own moves need no signals and go on.
//!
//! Cost: one system call for each arming (about 1 µs) if all threads are known. About 20 µs for
//! each thread if threads have come or gone since the last look, and once a second; and at every
//! arming for each thread whose start no front end saw. A thread that front ends know may block the
//! signal later by a system call of its own. The mover then notices within a second, or never.

use std::ffi::CStr;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use homenode_model::Ns;
use homenode_sys::file::File;
use homenode_sys::signal::Set;
use homenode_sys::{call, own_threads};

use super::lock::Locked;
use super::mechanism::Mechanism;
use super::{stacks, state};

/// Workers that the C library makes with all signals blocked, by what they wait for. They never
/// touch memory that may be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Workers {
    /// Those of a timer with `SIGEV_THREAD` (`timer_create`), which wait for it to expire.
    Timers = 1,
    /// Those of `mq_notify` with `SIGEV_THREAD`, which wait for messages of the kernel.
    Queues = 2,
    /// Those that carry out requests (`aio_*`, `getaddrinfo_a`).
    Orders = 4,
}

static WORKERS: AtomicU32 = AtomicU32::new(0);

/// From a front end: the C library is about to make such workers.
pub fn expect_workers(of: Workers) {
    WORKERS.fetch_or(of as u32, Ordering::Relaxed);
}

/// Time of the last look at all threads, and their number then.
static THREADS: AtomicUsize = AtomicUsize::new(0);
static LOOKED: AtomicU64 = AtomicU64::new(0);
/// Whether the last look found a deaf thread.
static FOUND: AtomicBool = AtomicBool::new(false);
const EVERY: Ns = Ns(1_000_000_000);

/// Whether an armed page would end the process, because a thread is deaf.
pub fn any(_: &Locked) -> bool {
    let now = call::now();
    let threads = own_threads::in_process().unwrap_or(usize::MAX);
    let changed = THREADS.swap(threads, Ordering::Relaxed) != threads;
    let due = || now.0.saturating_sub(LOOKED.load(Ordering::Relaxed)) >= EVERY.0;
    let whole = changed || FOUND.load(Ordering::Relaxed) || due();
    let known = || stacks::owners() + own_threads::count();
    if !whole && threads <= known() {
        return false;
    }
    if whole {
        LOOKED.store(now.0, Ordering::Relaxed);
    }
    let Ok(folder) = File::folder(c"/proc/self/task") else { return false };
    let mut found = false;
    let _ = folder.entries(|name| {
        let known = || number(name).is_some_and(stacks::is_owner);
        if !name.to_bytes().starts_with(b".") && (whole || !known()) {
            found = is_deaf(name);
        }
        !found
    });
    FOUND.store(found, Ordering::Relaxed);
    found
}

fn number(name: &CStr) -> Option<i32> {
    name.to_str().ok()?.parse().ok()
}

/// The deaf thread found last. It does not get the time of [`PATIENT`] again.
static LAST: AtomicI32 = AtomicI32::new(0);

/// The C library blocks all signals for a moment when it makes a thread or a child. On a busy
/// machine, the thread may lose its CPU during that moment.
const TRIES: u32 = 3;
/// Tries where the mask may be the C library's own: each waits twice as long, 13 ms together.
const PATIENT: u32 = 9;

fn is_deaf(task: &CStr) -> bool {
    let id = number(task).unwrap_or(0);
    let mut tries = 1;
    for n in 0.. {
        let Some(set) = blocked_by(task).filter(|set| set.has(signal())) else { return false };
        if is_worker(task) {
            return false;
        }
        let passes = set.has_all_of_glibc() && LAST.load(Ordering::Relaxed) != id;
        tries = tries.max(if passes { PATIENT } else { TRIES });
        if n + 1 >= tries {
            break;
        }
        call::sleep(Ns(50_000 << n));
    }
    LAST.store(id, Ordering::Relaxed);
    true
}

fn signal() -> i32 {
    if state::chosen() == Mechanism::UserFault { libc::SIGBUS } else { libc::SIGSEGV }
}

fn blocked_by(task: &CStr) -> Option<Set> {
    let mut text = [0; 4096];
    read(task, "status", &mut text).and_then(blocked)
}

/// The blocked signals in a thread's `status` file of `/proc`.
fn blocked(status: &[u8]) -> Option<Set> {
    let line = status.split(|c| *c == b'\n').find_map(|l| l.strip_prefix(b"SigBlk:"))?;
    u64::from_str_radix(std::str::from_utf8(line).ok()?.trim(), 16).ok().map(Set)
}

fn is_worker(task: &CStr) -> bool {
    let expected = WORKERS.load(Ordering::Relaxed);
    let mut text = [0; 256];
    expected != 0 && read(task, "syscall", &mut text).is_some_and(|line| waits_as(line, expected))
}

/// Whether a thread with this `syscall` file of `/proc` waits as one of the expected workers does.
fn waits_as(line: &[u8], expected: u32) -> bool {
    let word = line.split(|c| c.is_ascii_whitespace()).next().and_then(|w| std::str::from_utf8(w).ok());
    let Some(number) = word.and_then(|w| w.parse::<libc::c_long>().ok()) else { return false };
    let kinds: &[(Workers, &[libc::c_long])] = &[
        (Workers::Timers, &[libc::SYS_rt_sigtimedwait]),
        (Workers::Queues, &[libc::SYS_recvfrom]),
        (
            Workers::Orders,
            &[libc::SYS_futex, libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_fsync, libc::SYS_fdatasync],
        ),
    ];
    kinds.iter().any(|(kind, calls)| expected & *kind as u32 != 0 && calls.contains(&number))
}

/// The beginning of a file of one thread.
fn read<'a>(task: &CStr, file: &str, into: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut path = [0_u8; 64];
    // What is left is zeros, and one at least.
    let room = path.len() - 1;
    write!(&mut path[..room], "/proc/self/task/{}/{file}", task.to_str().ok()?).ok()?;
    let file = File::open(CStr::from_bytes_until_nul(&path).ok()?).ok()?;
    let n = file.read_all(into).ok()?;
    into.get(..n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::signal::replace_mask;
    use std::ffi::CString;
    use std::sync::mpsc::channel;

    #[test]
    fn who_blocks_everything_is_found_and_a_worker_of_the_library_is_not() {
        let (tell, told) = channel();
        let (end, ends) = channel::<()>();
        let deaf = std::thread::spawn(move || {
            replace_mask(Set(u64::MAX));
            tell.send(call::thread_id()).unwrap();
            let _ = ends.recv();
        });
        let task = CString::new(told.recv().unwrap().to_string()).unwrap();
        let me = CString::new(call::thread_id().to_string()).unwrap();
        assert!(is_deaf(&task) && !is_deaf(&me));
        // It sleeps on a futex, as an idle worker does.
        expect_workers(Workers::Orders);
        assert!(!is_deaf(&task));
        WORKERS.store(0, Ordering::Relaxed);
        drop(end);
        deaf.join().unwrap();
    }

    #[test]
    fn what_proc_says_is_understood_or_nothing() {
        let status = b"Name:\tx\nSigPnd:\t0\nSigBlk:\t0000000000000440\nSigIgn:\t0\n";
        let set = blocked(status).unwrap();
        assert!(set.has(libc::SIGBUS) && set.has(libc::SIGSEGV) && !set.has(libc::SIGTERM));
        assert_eq!(blocked(b"SigBlk:\tx\n"), None);
        assert_eq!(blocked(b""), None);
        assert!(waits_as(b"128 0x7f 0x0 0x0 0x8 0x0 0x0 0x7f 0x7f\n", Workers::Timers as u32));
        assert!(!waits_as(b"128 0x7f 0x0 0x0 0x8 0x0 0x0 0x7f 0x7f\n", Workers::Queues as u32));
        assert!(!waits_as(b"running\n", u32::MAX) && !waits_as(b"", u32::MAX));
    }
}
