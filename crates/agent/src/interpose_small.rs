//! Small things that the kernel reads or writes: socket addresses, sets of CPUs and descriptors,
//! times, limits, and how a child ended.

use std::ffi::{c_char, c_int, c_long, c_void};

use homenode_runtime::moving::{self, Span};

use crate::finish;
use crate::interpose::{buffers, path, span};
use crate::interpose_privileges::by_prctl;
use crate::next::next;

type Socket = *mut libc::sockaddr;
type Length = *mut libc::socklen_t;
type Offset = *mut i64;
type Set = *mut libc::fd_set;
type Time = *const libc::timespec;
type TimeOut = *mut libc::timespec;
type Signals = *const libc::sigset_t;
type Text = *const c_char;

/// Bytes of the longest socket address.
const ADDRESS: usize = 128;

/// Span of a socket address that the kernel writes.
fn address(p: Socket) -> Span {
    span(p.cast::<u8>(), ADDRESS)
}

/// Span of as many bytes at `p` as `length` says.
fn room(p: *mut c_void, length: Length) -> Span {
    // SAFETY: null or the caller's length.
    span(p, unsafe { length.as_ref() }.map_or(0, |n| *n as usize))
}

/// Span of the first `n` descriptors' bits, in whole words as the kernel uses them.
pub fn bits(set: Set, n: c_int) -> Span {
    span(set.cast::<u64>(), (n.max(0) as usize).div_ceil(64))
}

buffers! {
    accept(fd: i32, from: Socket, n: Length) -> i32, [address(from), span(n, 1)];
    accept4(fd: i32, from: Socket, n: Length, flags: i32) -> i32, [address(from), span(n, 1)];
    getsockname(fd: i32, to: Socket, n: Length) -> i32, [address(to), span(n, 1)];
    getpeername(fd: i32, to: Socket, n: Length) -> i32, [address(to), span(n, 1)];
    connect(fd: i32, to: *const libc::sockaddr, n: libc::socklen_t) -> i32, [span(to.cast::<u8>(), n as usize)];
    bind(fd: i32, to: *const libc::sockaddr, n: libc::socklen_t) -> i32, [span(to.cast::<u8>(), n as usize)];
    getsockopt(fd: i32, level: i32, name: i32, p: *mut c_void, n: Length) -> i32, [room(p, n), span(n, 1)];
    socketpair(domain: i32, kind: i32, protocol: i32, fds: *mut i32) -> i32, [span(fds, 2)];
    pipe(fds: *mut i32) -> i32, [span(fds, 2)];
    pipe2(fds: *mut i32, flags: i32) -> i32, [span(fds, 2)];
    select(n: i32, r: Set, w: Set, e: Set, wait: *mut libc::timeval) -> i32,
        [bits(r, n), bits(w, n), bits(e, n), span(wait, 1)];
    epoll_ctl(fd: i32, what: i32, of: i32, event: *mut libc::epoll_event) -> i32, [span(event, 1)];
    copy_file_range(from: i32, at: Offset, to: i32, there: Offset, n: usize, flags: u32) -> isize,
        [span(at, 1), span(there, 1)];
    splice(from: i32, at: Offset, to: i32, there: Offset, n: usize, flags: u32) -> isize,
        [span(at, 1), span(there, 1)];
    sendfile(to: i32, from: i32, at: Offset, n: usize) -> isize, [span(at, 1)];
    sendfile64(to: i32, from: i32, at: Offset, n: usize) -> isize, [span(at, 1)];
    getdents64(fd: i32, p: *mut c_void, n: usize) -> isize, [span(p, n)];
    getentropy(p: *mut c_void, n: usize) -> i32, [span(p, n)];
}

buffers! {
    sched_getaffinity(pid: i32, n: usize, set: *mut c_void) -> i32, [span(set, n)];
    sched_setaffinity(pid: i32, n: usize, set: *const c_void) -> i32, [span(set, n)];
    pthread_getaffinity_np(thread: libc::pthread_t, n: usize, set: *mut c_void) -> i32, [span(set, n)];
    pthread_setaffinity_np(thread: libc::pthread_t, n: usize, set: *const c_void) -> i32, [span(set, n)];
    sched_getparam(pid: i32, p: *mut libc::sched_param) -> i32, [span(p, 1)];
    sched_setparam(pid: i32, p: *const libc::sched_param) -> i32, [span(p, 1)];
    sched_setscheduler(pid: i32, policy: i32, p: *const libc::sched_param) -> i32, [span(p, 1)];
    getgroups(n: i32, p: *mut libc::gid_t) -> i32, [span(p, n.max(0) as usize)];
    wait(status: *mut i32) -> i32, [span(status, 1)];
    waitpid(pid: i32, status: *mut i32, flags: i32) -> i32, [span(status, 1)];
    wait3(status: *mut i32, flags: i32, used: *mut libc::rusage) -> i32, [span(status, 1), span(used, 1)];
    wait4(pid: i32, status: *mut i32, flags: i32, used: *mut libc::rusage) -> i32,
        [span(status, 1), span(used, 1)];
    waitid(kind: u32, pid: u32, info: *mut libc::siginfo_t, flags: i32) -> i32, [span(info, 1)];
    getrusage(who: i32, used: *mut libc::rusage) -> i32, [span(used, 1)];
    times(used: *mut libc::tms) -> libc::clock_t, [span(used, 1)];
    uname(name: *mut libc::utsname) -> i32, [span(name, 1)];
    sysinfo(info: *mut libc::sysinfo) -> i32, [span(info, 1)];
    getrlimit(of: u32, limit: *mut libc::rlimit) -> i32, [span(limit, 1)];
    getrlimit64(of: u32, limit: *mut libc::rlimit) -> i32, [span(limit, 1)];
    mincore(at: *mut c_void, n: usize, out: *mut u8) -> i32, [span(out, n.div_ceil(4096))];
}

buffers! {
    nanosleep(time: Time, left: TimeOut) -> i32, [span(time, 1), span(left, 1)];
    clock_nanosleep(clock: i32, flags: i32, time: Time, left: TimeOut) -> i32, [span(time, 1), span(left, 1)];
    clock_getres(clock: i32, out: TimeOut) -> i32, [span(out, 1)];
    clock_settime(clock: i32, time: Time) -> i32, [span(time, 1)];
    getitimer(which: u32, out: *mut libc::itimerval) -> i32, [span(out, 1)];
    setitimer(which: u32, new: *const libc::itimerval, old: *mut libc::itimerval) -> i32,
        [span(new, 1), span(old, 1)];
    timer_gettime(timer: *mut c_void, out: *mut libc::itimerspec) -> i32, [span(out, 1)];
    timer_settime(timer: *mut c_void, flags: i32, new: *const libc::itimerspec, old: *mut libc::itimerspec) -> i32,
        [span(new, 1), span(old, 1)];
    timerfd_gettime(fd: i32, out: *mut libc::itimerspec) -> i32, [span(out, 1)];
    timerfd_settime(fd: i32, flags: i32, new: *const libc::itimerspec, old: *mut libc::itimerspec) -> i32,
        [span(new, 1), span(old, 1)];
    sigpending(out: *mut libc::sigset_t) -> i32, [span(out, 1)];
    sigwaitinfo(set: Signals, info: *mut libc::siginfo_t) -> i32, [span(set, 1), span(info, 1)];
    sigtimedwait(set: Signals, info: *mut libc::siginfo_t, wait: Time) -> i32,
        [span(set, 1), span(info, 1), span(wait, 1)];
    sigwait(set: Signals, signal: *mut i32) -> i32, [span(set, 1), span(signal, 1)];
}

buffers! {
    msgsnd(queue: i32, p: *const c_void, n: usize, flags: i32) -> i32, [message(p, n)];
    msgrcv(queue: i32, p: *mut c_void, n: usize, kind: c_long, flags: i32) -> isize, [message(p, n)];
    msgctl(queue: i32, what: i32, p: *mut libc::msqid_ds) -> i32, [span(p, 1)];
    shmctl(memory: i32, what: i32, p: *mut libc::shmid_ds) -> i32, [span(p, 1)];
    semop(all: i32, p: *mut libc::sembuf, n: usize) -> i32, [span(p, n)];
    semtimedop(all: i32, p: *mut libc::sembuf, n: usize, wait: Time) -> i32, [span(p, n), span(wait, 1)];
    // The last argument is a number, a structure or an array of numbers. If it was not passed, the
    // kernel ignores it.
    semctl(all: i32, which: i32, what: i32, p: *mut c_void) -> i32, [span(p, SEMAPHORES)];
    mq_open(name: Text, flags: i32, mode: u32, p: *mut libc::mq_attr) -> i32,
        [path(name), span(p, usize::from(flags & libc::O_CREAT != 0))];
    mq_unlink(name: Text) -> i32, [path(name)];
    mq_getattr(queue: i32, p: *mut libc::mq_attr) -> i32, [span(p, 1)];
    mq_setattr(queue: i32, new: *const libc::mq_attr, old: *mut libc::mq_attr) -> i32, [span(new, 1), span(old, 1)];
    mq_send(queue: i32, p: *const c_void, n: usize, first: u32) -> i32, [span(p, n)];
    mq_timedsend(queue: i32, p: *const c_void, n: usize, first: u32, wait: Time) -> i32, [span(p, n), span(wait, 1)];
    mq_receive(queue: i32, p: *mut c_void, n: usize, first: *mut u32) -> isize, [span(p, n), span(first, 1)];
    mq_timedreceive(queue: i32, p: *mut c_void, n: usize, first: *mut u32, wait: Time) -> isize,
        [span(p, n), span(first, 1), span(wait, 1)];
}

/// Span of a message: its kind and `n` bytes.
fn message(p: *const c_void, n: usize) -> Span {
    span(p, n.saturating_add(size_of::<c_long>()))
}

/// Bytes of the numbers of the largest set of semaphores (`SEMMSL`).
const SEMAPHORES: usize = 32_000 * 2;

buffers! {
    thrd_sleep(time: Time, left: TimeOut) -> i32, [span(time, 1), span(left, 1)];
    sched_rr_get_interval(pid: i32, out: TimeOut) -> i32, [span(out, 1)];
    adjtimex(p: *mut libc::timex) -> i32, [span(p, 1)];
    clock_adjtime(clock: i32, p: *mut libc::timex) -> i32, [span(p, 1)];
    signalfd(fd: i32, set: Signals, flags: i32) -> i32, [span(set, 1)];
    eventfd_read(fd: i32, p: *mut u64) -> i32, [span(p, 1)];
    pthread_setname_np(thread: libc::pthread_t, name: Text) -> i32, [span(name, NAME)];
    pthread_getname_np(thread: libc::pthread_t, name: *mut c_char, n: usize) -> i32, [span(name, n)];
    ttyname_r(fd: i32, p: *mut c_char, n: usize) -> i32, [span(p, n)];
    ptsname_r(fd: i32, p: *mut c_char, n: usize) -> i32, [span(p, n)];
}

/// Bytes of a thread's name.
const NAME: usize = 16;

/// `prctl`. What it reads or writes is short.
///
/// # Safety
/// As `prctl`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(what: i32, a: usize, b: usize, c: usize, d: usize) -> i32 {
    let Some(f) = next!(prctl: unsafe extern "C" fn(i32, usize, usize, usize, usize) -> i32) else {
        return -1;
    };
    /// Names a mapping; since Linux 5.17.
    const PR_SET_VMA: i32 = 0x5356_4d41;
    const SHORT: usize = 256;
    if what == libc::PR_SET_SECCOMP {
        finish::stop();
    }
    by_prctl(what);
    let held = (what == PR_SET_VMA).then(|| moving::before_change(Span::new(b, c)));
    // The argument may be a number. Publishing it is harmless: no memory is there.
    let flight = moving::publish(&[Span::new(a, SHORT), Span::new(d, SHORT)]);
    // SAFETY: the caller's arguments; those that were not passed are not looked at.
    let result = unsafe { f(what, a, b, c, d) };
    moving::retire(flight);
    held.into_iter().for_each(moving::retire);
    result
}

/// `clock_gettime`. Publishes the buffer for clocks that only the kernel can read.
///
/// # Safety
/// As `clock_gettime`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: i32, out: TimeOut) -> i32 {
    let Some(f) = next!(clock_gettime: unsafe extern "C" fn(i32, TimeOut) -> i32) else { return -1 };
    if (0..=libc::CLOCK_TAI).contains(&clock)
        && !matches!(clock, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID)
    {
        // SAFETY: the caller's arguments.
        return unsafe { f(clock, out) };
    }
    let flight = moving::publish(&[span(out, 1)]);
    // SAFETY: as above.
    let result = unsafe { f(clock, out) };
    moving::retire(flight);
    result
}

macro_rules! controls {
    ($($name:ident)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: a lock or an owner is published.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(fd: i32, command: i32, argument: usize) -> i32 {
            let Some(f) = next!($name: unsafe extern "C-unwind" fn(i32, i32, usize) -> i32) else { return -1 };
            // Other commands take a number or no argument.
            let flight = match command {
                libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW
                | libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW
                | F_SETOWN_EX..=F_GETOWNER_UIDS
                | F_GET_RW_HINT..=F_SET_FILE_RW_HINT => {
                    Some(moving::publish(&[Span::new(argument, size_of::<libc::flock>())]))
                }
                _ => None,
            };
            // SAFETY: the caller's arguments.
            let result = unsafe { f(fd, command, argument) };
            if let Some(flight) = flight {
                moving::retire(flight);
            }
            result
        }
    )* };
}

// <linux/fcntl.h>, <asm-generic/fcntl.h>
const F_SETOWN_EX: i32 = 15;
const F_GETOWNER_UIDS: i32 = 17;
const F_GET_RW_HINT: i32 = 1024 + 11;
const F_SET_FILE_RW_HINT: i32 = 1024 + 14;

controls! { fcntl fcntl64 }
