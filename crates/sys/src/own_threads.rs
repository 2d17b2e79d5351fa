//! homenode's own threads in the program's process: how many there are, and when they end.
//!
//! For everybody else, a thread of homenode's is a thread of the process. It would keep the process
//! alive when the program's threads have ended. The C library waits for it when the program changes
//! its user, and the kernel refuses `unshare(CLONE_NEWUSER)` beside it. So each one drops all
//! capabilities when it begins, and ends
//!
//! - when [`end_all`] asks for it, before the program does one of these things, or
//! - when it is alone: the first thread of the process has ended, and no other thread of the
//!   program is left.
//!
//! A thread of homenode's calls [`begin`] first, sleeps by [`sleep`] alone, and calls [`end`] last.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use homenode_model::Ns;

use crate::call::{self, raw};
use crate::file::File;

/// Most own threads at a time.
const MOST: usize = 16;

struct Own {
    /// The kernel's number of the thread; 0: the place is free.
    thread: AtomicI32,
    /// When the thread was about to end; 0: it runs.
    ended: AtomicU64,
}

static OWN: [Own; MOST] = [const { Own { thread: AtomicI32::new(0), ended: AtomicU64::new(0) } }; MOST];
/// Threads that are being made and have not begun.
static COMING: AtomicU32 = AtomicU32::new(0);
/// 1: the threads must end. Sleeping threads wait for a change.
static ENDING: AtomicU32 = AtomicU32::new(0);

/// Permission to make one thread.
#[derive(Debug)]
pub struct Permit(());

/// Asks for permission to make a thread. `None`: the threads are ending, or there are too many. If
/// no thread could be made, the maker calls [`Permit::refused`].
pub fn permit() -> Option<Permit> {
    COMING.fetch_add(1, Ordering::SeqCst);
    let permit = Permit(());
    if ENDING.load(Ordering::SeqCst) != 0 || count() + COMING.load(Ordering::SeqCst) as usize > MOST {
        permit.refused();
        return None;
    }
    Some(permit)
}

impl Permit {
    /// No thread was made.
    pub fn refused(self) {
        COMING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The calling thread is homenode's own, made with a permit. Drops all of its capabilities.
pub fn begin() {
    let me = call::thread_id();
    // Places of threads that have ended are used last, because somebody may be waiting for these
    // threads.
    let take = |own: &Own| {
        let was = own.thread.load(Ordering::SeqCst);
        let free = was == 0 || own.ended.load(Ordering::SeqCst) != 0;
        free && own.thread.compare_exchange(was, me, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    };
    if let Some(own) = OWN.iter().find(|own| take(own)) {
        own.ended.store(0, Ordering::SeqCst);
    }
    COMING.fetch_sub(1, Ordering::SeqCst);
    drop_capabilities();
}

/// The calling thread, which is homenode's own, is about to end.
pub fn end() {
    let me = call::thread_id();
    for own in OWN.iter().filter(|own| own.thread.load(Ordering::SeqCst) == me) {
        own.ended.store(call::now().0.max(1), Ordering::SeqCst);
    }
}

/// Number of running threads.
pub fn count() -> usize {
    let runs = |own: &&Own| own.thread.load(Ordering::SeqCst) != 0 && own.ended.load(Ordering::SeqCst) == 0;
    OWN.iter().filter(runs).count()
}

/// Whether any thread runs or is about to.
pub fn any() -> bool {
    COMING.load(Ordering::SeqCst) != 0 || count() != 0
}

/// Whether the calling thread, one of homenode's own, must end. Asks the kernel once a second.
pub fn are_to_end() -> bool {
    ENDING.load(Ordering::SeqCst) != 0 || is_alone_now()
}

/// Sleeps. `false`: the calling thread must end.
#[must_use]
pub fn sleep(time: Ns) -> bool {
    let mut left = time;
    loop {
        let part = Ns(left.0.min(LOOKS.0));
        let t = libc::timespec {
            tv_sec: (part.0 / 1_000_000_000) as i64,
            tv_nsec: (part.0 % 1_000_000_000) as i64,
        };
        let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
        // SAFETY: a word that lives for ever, and a time on the stack.
        unsafe {
            raw(libc::SYS_futex, [ENDING.as_ptr() as usize, wait, 0, &raw const t as usize, 0, 0]);
        }
        if are_to_end() {
            return false;
        }
        left = Ns(left.0 - part.0);
        if left.0 == 0 {
            return true;
        }
    }
}

/// Time between two checks whether the program's threads have ended.
const LOOKS: Ns = Ns(1_000_000_000);

/// How long [`end_all`] waits for a thread.
const PATIENCE: Ns = Ns(5_000_000_000);

/// Makes all own threads end, wakes them also by `wake`, and waits until the kernel has forgotten
/// them. No thread is made afterwards. Returns whether all have ended. Must not be called from one
/// of them, nor by a holder of something that one of them may wait for.
pub fn end_all(wake: impl Fn()) -> bool {
    ENDING.store(1, Ordering::SeqCst);
    let all = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: a word that lives for ever.
    unsafe { raw(libc::SYS_futex, [ENDING.as_ptr() as usize, all, i32::MAX as usize, 0, 0, 0]) };
    wake();
    let deadline = call::now().0 + PATIENCE.0;
    let mut wait = call::Wait::default();
    let mut wait_until = |done: &dyn Fn() -> bool| {
        while !done() {
            if call::now().0 > deadline {
                return false;
            }
            wait.a_moment();
        }
        true
    };
    wait_until(&|| COMING.load(Ordering::SeqCst) == 0) && OWN.iter().all(|own| wait_until(&|| own.is_gone()))
}

impl Own {
    /// Whether the kernel knows no such thread any more. Also true if the thread ended so long ago
    /// that its number may be another's.
    fn is_gone(&self) -> bool {
        /// Longest time from [`end`] to the thread's last instruction.
        const LAST: u64 = 500_000_000;
        let thread = self.thread.load(Ordering::SeqCst);
        let ended = self.ended.load(Ordering::SeqCst);
        thread == 0 || ended != 0 && call::now().0 > ended + LAST || !exists(thread)
    }
}

fn exists(thread: i32) -> bool {
    let process = std::process::id() as usize;
    // SAFETY: plain numbers; signal 0 only asks.
    unsafe { raw(libc::SYS_tgkill, [process, thread as usize, 0, 0, 0, 0]) == 0 }
}

/// In a forked child there are no own threads.
pub fn forget_all() {
    for own in &OWN {
        own.thread.store(0, Ordering::SeqCst);
        own.ended.store(0, Ordering::SeqCst);
    }
    COMING.store(0, Ordering::SeqCst);
    ENDING.store(1, Ordering::SeqCst);
}

/// Number of this process's threads, as the kernel counts them. The first one counts until the
/// process ends.
pub fn in_process() -> Option<usize> {
    // SAFETY: all fields may be zero.
    let mut is: libc::stat = unsafe { std::mem::zeroed() };
    let path = c"/proc/self/task".as_ptr() as usize;
    // SAFETY: a C string; the kernel writes one structure.
    let r =
        unsafe { raw(libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path, &raw mut is as usize, 0, 0, 0]) };
    // The folder itself and its parent are links, too.
    (r == 0).then(|| (is.st_nlink as usize).saturating_sub(2))
}

/// Whether only homenode's own threads are left. Asks once a second, and remembers for ever.
fn is_alone_now() -> bool {
    static ALONE: AtomicBool = AtomicBool::new(false);
    static LOOKED: AtomicU64 = AtomicU64::new(0);
    let now = call::now().0;
    let looked = LOOKED.load(Ordering::Relaxed);
    if now - looked.min(now) >= LOOKS.0
        && LOOKED.compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        && is_alone()
    {
        ALONE.store(true, Ordering::SeqCst);
        // Sleeping threads would not look for up to a second.
        ENDING.store(1, Ordering::SeqCst);
    }
    ALONE.load(Ordering::SeqCst)
}

fn is_alone() -> bool {
    in_process().is_some_and(|n| n <= count() + 1) && first_is_gone()
}

/// Whether the first thread of the process has ended and waits for the others.
fn first_is_gone() -> bool {
    let mut text = [0; 128];
    let read = File::open(c"/proc/self/stat").and_then(|f| f.read_all(&mut text));
    // The name is in parentheses, and may contain parentheses.
    let after = |text: &[u8]| text.iter().rposition(|c| *c == b')').and_then(|at| text.get(at + 2).copied());
    read.is_ok_and(|n| after(&text[..n]) == Some(b'Z'))
}

/// Capabilities belong to a thread.
fn drop_capabilities() {
    /// `_LINUX_CAPABILITY_VERSION_3` (include/uapi/linux/capability.h).
    const VERSION: u32 = 0x2008_0522;
    let (header, none) = ([VERSION, 0], [0_u32; 6]);
    // SAFETY: a header for the calling thread and two sets of three numbers.
    unsafe { raw(libc::SYS_capset, [header.as_ptr() as usize, none.as_ptr() as usize, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_and_this_process_has_its_first_one() {
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || ends.recv());
        assert!(in_process().unwrap() >= 2);
        assert!(!first_is_gone() && !is_alone());
        drop(end);
        let _ = thread.join();
    }
}
