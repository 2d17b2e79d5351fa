//! Calls by which the kernel reads or writes the program's memory. Each front end publishes the
//! memory before the call, so that the memory is not armed while the kernel works on it.

use std::ffi::{c_char, c_long, c_void};

use homenode_runtime::moving::descriptor::is_own;
use homenode_runtime::moving::{self, Span, signals};

use crate::finish;
use crate::interpose::{buffers, front, span, text};
use crate::interpose_descriptors::{bad_descriptor, between_own};
use crate::interpose_fork::forked;
use crate::interpose_limits;
use crate::interpose_privileges::{by_number, by_prctl};
use crate::kernel_calls;
use crate::kernel_calls::table::MOST;
use crate::next::next;

/// A vector of fewer buffers is published buffer by buffer.
const VECTOR: usize = 4;

/// Publishes a vector and its buffers during `f`. From [`VECTOR`] buffers on, publishes one span
/// that covers all. Not inlined, so that nothing else is published in its frame.
#[inline(never)]
unsafe fn with_vector<R>(vector: *const libc::iovec, n: usize, f: impl FnOnce() -> R) -> R {
    let mut spans = [Span::EMPTY; VECTOR + 1];
    let mut all = Span { start: usize::MAX, end: 0 };
    for i in 0..n.min(1024) {
        // SAFETY: the caller's vector has n elements.
        let v = unsafe { &*vector.add(i) };
        let s = span(v.iov_base, v.iov_len);
        if let Some(place) = spans.get_mut(i) {
            *place = s;
        }
        if !s.is_empty() {
            all = Span { start: all.start.min(s.start), end: all.end.max(s.end) };
        }
    }
    // Two spans: the vector itself, and all that its buffers cover.
    let own = span(vector, n);
    let flight = if n < VECTOR {
        spans[n] = own;
        moving::publish(&spans[..=n])
    } else {
        moving::publish(&[own, all])
    };
    let result = f();
    moving::retire(flight);
    result
}

type File = libc::FILE;
type Socket = *mut libc::sockaddr;
type Length = *mut libc::socklen_t;

buffers! {
    read(fd: i32, p: *mut c_void, n: usize) -> isize, [span(p, n)];
    write(fd: i32, p: *const c_void, n: usize) -> isize, [span(p, n)];
    pread(fd: i32, p: *mut c_void, n: usize, at: i64) -> isize, [span(p, n)];
    pread64(fd: i32, p: *mut c_void, n: usize, at: i64) -> isize, [span(p, n)];
    pwrite(fd: i32, p: *const c_void, n: usize, at: i64) -> isize, [span(p, n)];
    pwrite64(fd: i32, p: *const c_void, n: usize, at: i64) -> isize, [span(p, n)];
    recv(fd: i32, p: *mut c_void, n: usize, flags: i32) -> isize, [span(p, n)];
    recvfrom(fd: i32, p: *mut c_void, n: usize, flags: i32, from: Socket, len: Length) -> isize,
        [span(p, n), span(from, 8), span(len, 1)];
    fread(p: *mut c_void, size: usize, n: usize, file: *mut File) -> usize, [span(p, size.saturating_mul(n))];
    fread_unlocked(p: *mut c_void, size: usize, n: usize, file: *mut File) -> usize,
        [span(p, size.saturating_mul(n))];
    fwrite(p: *const c_void, size: usize, n: usize, file: *mut File) -> usize, [span(p, size.saturating_mul(n))];
    fwrite_unlocked(p: *const c_void, size: usize, n: usize, file: *mut File) -> usize,
        [span(p, size.saturating_mul(n))];
    fgets(p: *mut c_char, n: i32, file: *mut File) -> *mut c_char, [span(p, n.max(0) as usize)];
    fgets_unlocked(p: *mut c_char, n: i32, file: *mut File) -> *mut c_char, [span(p, n.max(0) as usize)];
    getrandom(p: *mut c_void, n: usize, flags: u32) -> isize, [span(p, n)];
    getcwd(p: *mut c_char, n: usize) -> *mut c_char, [span(p, if p.is_null() { 0 } else { n })];
    poll(p: *mut libc::pollfd, n: libc::nfds_t, wait: i32) -> i32, [span(p, n as usize)];
    epoll_wait(fd: i32, p: *mut libc::epoll_event, n: i32, wait: i32) -> i32, [span(p, n.max(0) as usize)];
}

buffers! {
    // SAFETY: the caller's string, with a null behind it.
    fputs(p: *const c_char, file: *mut File) -> i32, [unsafe { text(p) }];
    // SAFETY: as for `fputs`.
    fputs_unlocked(p: *const c_char, file: *mut File) -> i32, [unsafe { text(p) }];
    // SAFETY: as for `fputs`.
    puts(p: *const c_char) -> i32, [unsafe { text(p) }];
}

macro_rules! vectors {
    ($($name:ident($fd:ident: $f:ty, $v:ident: *const libc::iovec, $n:ident: i32 $(, $arg:ident: $ty:ty)*);)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: its buffers are published.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: $f, $v: *const libc::iovec, $n: i32 $(, $arg: $ty)*) -> isize {
            type Real = unsafe extern "C-unwind" fn($f, *const libc::iovec, i32 $(, $ty)*) -> isize;
            let Some(f) = next!($name: Real) else { return -1 };
            // SAFETY: the caller's arguments.
            unsafe { with_vector($v, $n.max(0) as usize, || f($fd, $v, $n $(, $arg)*)) }
        }
    )* };
}

vectors! {
    readv(fd: i32, v: *const libc::iovec, n: i32);
    writev(fd: i32, v: *const libc::iovec, n: i32);
    preadv(fd: i32, v: *const libc::iovec, n: i32, at: i64);
    preadv64(fd: i32, v: *const libc::iovec, n: i32, at: i64);
    pwritev(fd: i32, v: *const libc::iovec, n: i32, at: i64);
    pwritev64(fd: i32, v: *const libc::iovec, n: i32, at: i64);
    preadv2(fd: i32, v: *const libc::iovec, n: i32, at: i64, flags: i32);
    pwritev2(fd: i32, v: *const libc::iovec, n: i32, at: i64, flags: i32);
    preadv64v2(fd: i32, v: *const libc::iovec, n: i32, at: i64, flags: i32);
    pwritev64v2(fd: i32, v: *const libc::iovec, n: i32, at: i64, flags: i32);
}

/// `send`. Publishes the buffer.
///
/// # Safety
/// As `send`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(fd: i32, p: *const c_void, n: usize, flags: i32) -> isize {
    type Real = unsafe extern "C-unwind" fn(i32, *const c_void, usize, i32) -> isize;
    let Some(f) = next!(send: Real) else { return -1 };
    moving::see_sending(flags);
    let flight = moving::publish(&[span(p, n)]);
    // SAFETY: the caller's arguments.
    let result = unsafe { f(fd, p, n, flags) };
    moving::retire(flight);
    result
}

/// `sendto`. Publishes the buffer.
///
/// # Safety
/// As `sendto`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: i32,
    p: *const c_void,
    n: usize,
    flags: i32,
    to: *const libc::sockaddr,
    length: libc::socklen_t,
) -> isize {
    type To = *const libc::sockaddr;
    type Real = unsafe extern "C-unwind" fn(i32, *const c_void, usize, i32, To, libc::socklen_t) -> isize;
    let Some(f) = next!(sendto: Real) else { return -1 };
    moving::see_sending(flags);
    let flight = moving::publish(&[span(p, n), span(to.cast::<u8>(), length as usize)]);
    // SAFETY: the caller's arguments.
    let result = unsafe { f(fd, p, n, flags, to, length) };
    moving::retire(flight);
    result
}

macro_rules! messages {
    ($($name:ident($m:ty);)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: its buffers are published.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(fd: i32, message: $m, flags: i32) -> isize {
            let Some(f) = next!($name: unsafe extern "C-unwind" fn(i32, $m, i32) -> isize) else { return -1 };
            moving::see_sending(flags);
            // SAFETY: the caller's message.
            unsafe {
                let m = &*message;
                let own = moving::publish(&[
                    span(message, 1),
                    span(m.msg_name, m.msg_namelen as usize),
                    span(m.msg_control, m.msg_controllen as usize),
                ]);
                let result = with_vector(m.msg_iov, m.msg_iovlen as usize, || f(fd, message, flags));
                moving::retire(own);
                result
            }
        }
    )* };
}

messages! {
    sendmsg(*const libc::msghdr);
    recvmsg(*mut libc::msghdr);
}

macro_rules! many_messages {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: nothing is armed while it runs.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            fd: i32, messages: *mut libc::mmsghdr, n: u32, flags: i32 $(, $arg: $ty)*
        ) -> i32 {
            type Real = unsafe extern "C-unwind" fn(i32, *mut libc::mmsghdr, u32, i32 $(, $ty)*) -> i32;
            let Some(f) = next!($name: Real) else { return -1 };
            moving::see_sending(flags);
            let mut all = span(messages, n as usize);
            let mut add = |s: Span| {
                if !s.is_empty() {
                    all = Span { start: all.start.min(s.start), end: all.end.max(s.end) };
                }
            };
            $(add(span($arg, 1));)*
            for i in 0..n as usize {
                // SAFETY: the caller's n messages with their vectors.
                unsafe {
                    let m = &(*messages.add(i)).msg_hdr;
                    add(span(m.msg_name, m.msg_namelen as usize));
                    add(span(m.msg_control, m.msg_controllen as usize));
                    add(span(m.msg_iov, m.msg_iovlen as usize));
                    for v in 0..m.msg_iovlen as usize {
                        let v = &*m.msg_iov.add(v);
                        add(span(v.iov_base, v.iov_len));
                    }
                }
            }
            let flight = moving::publish(&[all]);
            // SAFETY: the caller's arguments.
            let result = unsafe { f(fd, messages, n, flags $(, $arg)*) };
            moving::retire(flight);
            result
        }
    )* };
}

many_messages! {
    sendmmsg();
    recvmmsg(wait: *mut libc::timespec);
}

macro_rules! peers {
    ($($name:ident)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: the buffers of this side are published.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            peer: i32, mine: *const libc::iovec, n: u64, theirs: *const libc::iovec, m: u64, flags: u64
        ) -> isize {
            type Vector = *const libc::iovec;
            type Real = unsafe extern "C-unwind" fn(i32, Vector, u64, Vector, u64, u64) -> isize;
            let Some(f) = next!($name: Real) else { return -1 };
            // SAFETY: the caller's arguments; where the peer is this process itself, its side is
            // published as well.
            unsafe {
                let call = || with_vector(mine, n as usize, || f(peer, mine, n, theirs, m, flags));
                if peer as u32 == std::process::id() { with_vector(theirs, m as usize, call) } else { call() }
            }
        }
    )* };
}

peers! { process_vm_readv process_vm_writev }

front! {
    /// The C library uses this memory as the stream's buffer from now on.
    setvbuf(file: *mut File, p: *mut c_char, mode: i32, n: usize) -> i32,
        if !p.is_null() { moving::exclude(span(p, n)) };
    /// The C library uses this memory as the stream's buffer from now on.
    setbuffer(file: *mut File, p: *mut c_char, n: usize) -> (),
        if !p.is_null() { moving::exclude(span(p, n)) };
    /// The C library uses this memory as the stream's buffer from now on.
    setbuf(file: *mut File, p: *mut c_char) -> (),
        if !p.is_null() { moving::exclude(span(p, libc::BUFSIZ as usize)) };
    /// The kernel may take the pages into the pipe.
    vmsplice(fd: i32, v: *const libc::iovec, n: usize, flags: u32) -> isize,
        moving::pins("a pipe that holds the program's own pages (vmsplice)");
    /// Of libaio.
    io_setup(n: i32, context: *mut c_void) -> i32, moving::pins("asynchronous I/O (io_setup)");
    /// Some options pin memory.
    socket(family: i32, kind: i32, protocol: i32) -> i32, moving::see_family(family);
    /// Some options pin memory. Publishes the buffer, too.
    setsockopt(fd: i32, level: i32, name: i32, p: *const c_void, n: libc::socklen_t) -> i32, {
        moving::see_option(level, name);
        moving::publish(&[span(p, n as usize)])
    };
    /// Of liburing.
    io_uring_queue_init(n: u32, ring: *mut c_void, flags: u32) -> i32, moving::pins(RING);
    /// Of liburing.
    io_uring_queue_init_params(n: u32, ring: *mut c_void, p: *mut c_void) -> i32, moving::pins(RING);
    /// Of liburing.
    io_uring_setup(n: u32, p: *mut c_void) -> i32, moving::pins(RING);
}

const RING: &str = "io_uring, which can register buffers";

/// `ioctl`. Publishes as many bytes as the request's number encodes.
///
/// # Safety
/// As `ioctl`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: i32, request: u64, argument: *mut c_void) -> i32 {
    let Some(f) = next!(ioctl: unsafe extern "C-unwind" fn(i32, u64, *mut c_void) -> i32) else { return -1 };
    // Older requests encode no size. Those of terminals and sockets are shorter than this.
    let bytes = match request >> 16 & 0x3fff {
        0 => 256,
        n => n as usize,
    };
    let flight = moving::publish(&[span(argument, bytes)]);
    // SAFETY: the caller's arguments.
    let result = unsafe { f(fd, request, argument) };
    moving::retire(flight);
    result
}

/// Bytes of a `timespec`.
const TIME: usize = size_of::<libc::timespec>();
/// Since Linux 5.16 and 6.7. The number is the same on all machines.
const SYS_FUTEX_WAITV: c_long = 449;
const SYS_FUTEX_WAIT: c_long = 455;

/// `struct futex_waitv` (include/uapi/linux/futex.h).
#[repr(C)]
struct FutexWait {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// Excludes the words that `futex` sleeps on or reads from arming. Returns the span of its timeout.
fn sleeps_on(word: usize, operation: usize, time: usize, other: usize) -> Span {
    moving::exclude(Span::new(word, 4));
    match operation as i32 & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT | libc::FUTEX_LOCK_PI | libc::FUTEX_WAIT_BITSET if time != 0 => {
            Span::new(time, TIME)
        }
        libc::FUTEX_WAIT_REQUEUE_PI => {
            moving::exclude(Span::new(other, 4));
            Span::new(time, if time == 0 { 0 } else { TIME })
        }
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_CMP_REQUEUE_PI | libc::FUTEX_WAKE_OP => {
            moving::exclude(Span::new(other, 4));
            Span::EMPTY
        }
        _ => Span::EMPTY,
    }
}

/// Excludes the words that `futex_waitv` sleeps on from arming.
unsafe fn exclude_each(waits: *const FutexWait, n: usize) {
    /// The kernel's own limit (`FUTEX_WAITV_MAX`).
    const MOST: usize = 128;
    for i in 0..n.min(MOST) {
        // SAFETY: the caller's vector of n.
        moving::exclude(Span::new(unsafe { (*waits.add(i)).address } as usize, 4));
    }
}

/// Bytes of the largest set of nodes that the kernel can be built for.
const NODES: usize = 128;

/// Whether a system call makes a child with a copy of the memory.
unsafe fn forks(number: c_long, a: usize) -> bool {
    let shares = |flags: u64| flags & libc::CLONE_VM as u64 != 0;
    match number {
        libc::SYS_fork | libc::SYS_vfork => true,
        libc::SYS_clone => !shares(a as u64),
        // SAFETY: the caller's `clone_args`, which begin with flags.
        libc::SYS_clone3 => a != 0 && !shares(unsafe { (a as *const u64).read_unaligned() }),
        _ => false,
    }
}

/// `syscall`. Treats the system calls that programs make this way as their own front ends do.
///
/// # Safety
/// As `syscall`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    g: usize,
) -> c_long {
    type Real = unsafe extern "C-unwind" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;
    let Some(f) = next!(syscall: Real) else { return -1 };
    by_number(number);
    interpose_limits::by_number(number, [a, b, c]);
    match number {
        libc::SYS_close if is_own(a as i32) => return bad_descriptor().into(),
        libc::SYS_close_range => {
            // SAFETY: parts of the caller's range.
            let close = |first, last, flags| unsafe {
                f(number, first as usize, last as usize, flags as usize, d, e, g) as i32
            };
            return between_own(a as u32, b as u32, c as i32, close).into();
        }
        _ => {}
    }
    let CallUnderWay { buffers, quiet, held, blocked } = prepare(number, [a, b, c, d, e, g]);
    let used = buffers.iter().rposition(|b| !b.is_empty()).map_or(0, |last| last + 1);
    let flight = if quiet { moving::before_process() } else { moving::publish(&buffers[..used]) };
    // SAFETY: the caller's arguments.
    let result = unsafe {
        if forks(number, a) {
            // Parent and child cannot both return to one stack: see the front end of `vfork`.
            let number = if number == libc::SYS_vfork { libc::SYS_fork } else { number };
            forked(|| f(number, a, b, c, d, e, g))
        } else {
            f(number, a, b, c, d, e, g)
        }
    };
    signals::block_again(blocked);
    moving::retire(flight);
    held.into_iter().for_each(moving::retire);
    result
}

/// What a system call needs while it is under way.
struct CallUnderWay {
    /// Memory that the kernel reads or writes.
    buffers: [Span; MOST],
    /// Nothing is armed meanwhile.
    quiet: bool,
    /// Memory that is given up, or changes.
    held: Option<moving::InFlight>,
    /// Signals that are let through until it ends.
    blocked: Option<signals::Set>,
}

/// Does what a system call needs before it begins.
fn prepare(number: c_long, [a, b, c, d, e, g]: [usize; 6]) -> CallUnderWay {
    let at = Span::new;
    let mut buffers = [Span::EMPTY; MOST];
    let (mut quiet, mut held, mut blocked) = (false, None, None);
    match number {
        libc::SYS_futex => buffers[0] = sleeps_on(a, b, d, e),
        SYS_FUTEX_WAIT => {
            moving::exclude(at(a, 4));
            buffers[0] = at(e, if e == 0 { 0 } else { TIME });
        }
        SYS_FUTEX_WAITV => {
            // SAFETY: the caller's vector.
            unsafe { exclude_each(a as *const FutexWait, b) };
            buffers[0] = at(a, b * size_of::<FutexWait>());
            buffers[1] = at(d, if d == 0 { 0 } else { TIME });
        }
        libc::SYS_rt_sigsuspend => buffers[0] = at(a, b),
        libc::SYS_prctl => {
            if a as i32 == libc::PR_SET_SECCOMP {
                finish::stop();
            }
            by_prctl(a as i32);
            // The argument may be a number. Publishing it is harmless: no memory is there.
            const SHORT: usize = 256;
            buffers[0] = at(b, SHORT);
            buffers[1] = at(e, SHORT);
        }
        libc::SYS_mmap => {
            held = (d as i32 & libc::MAP_FIXED != 0).then(|| moving::before_free(at(a, b)));
        }
        libc::SYS_mbind => {
            held = Some(moving::before_change(at(a, b)));
            buffers[0] = at(d, NODES);
        }
        libc::SYS_set_mempolicy => buffers[0] = at(b, NODES),
        libc::SYS_get_mempolicy => {
            buffers[0] = at(a, 4);
            buffers[1] = at(b, NODES);
        }
        libc::SYS_move_pages => {
            let n = b.saturating_mul(4);
            buffers[0] = at(c, n.saturating_mul(2));
            buffers[1] = at(d, if d == 0 { 0 } else { n });
            buffers[2] = at(e, n);
        }
        libc::SYS_munmap | libc::SYS_mremap => held = Some(moving::before_free(at(a, b))),
        libc::SYS_madvise | libc::SYS_mprotect | libc::SYS_mlock | libc::SYS_mlock2 => {
            held = Some(moving::before_change(at(a, b)));
        }
        libc::SYS_clone if a & (libc::CLONE_PARENT_SETTID | libc::CLONE_PIDFD) as usize != 0 => {
            buffers[0] = at(c, 4)
        }
        libc::SYS_clone3 => buffers[0] = at(a, b),
        libc::SYS_io_uring_setup | libc::SYS_io_uring_register => moving::pins(RING),
        libc::SYS_socket => moving::see_family(a as i32),
        libc::SYS_setsockopt => {
            moving::see_option(b as i32, c as i32);
            buffers[0] = at(d, e);
        }
        libc::SYS_io_setup => moving::pins("asynchronous I/O (io_setup)"),
        libc::SYS_seccomp => finish::stop(),
        libc::SYS_userfaultfd => moving::pins("user-space page faults of the program's own (userfaultfd)"),
        libc::SYS_vmsplice => moving::pins("a pipe that holds the program's own pages (vmsplice)"),
        libc::SYS_readv | libc::SYS_writev | libc::SYS_sendmsg | libc::SYS_recvmsg => {
            quiet = true;
        }
        libc::SYS_execve | libc::SYS_execveat => {
            quiet = true;
            blocked = signals::let_through();
        }
        _ => match kernel_calls::touches(number, &[a, b, c, d, e, g]) {
            Some(touched) => buffers = touched,
            // Its effect on memory is unknown, so nothing is armed meanwhile.
            None => quiet = true,
        },
    }
    CallUnderWay { buffers, quiet, held, blocked }
}
