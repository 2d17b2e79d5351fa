//! The system call itself.

/// Makes system call `number`; what the kernel returned: negative is an error number.
///
/// # Safety
/// The call's own demands on its arguments.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub unsafe fn raw(number: libc::c_long, a: [usize; 6]) -> isize {
    let returned: isize;
    // SAFETY: the kernel's calling convention on x86-64 (syscall(2)); what the call does is the
    // caller's to answer for.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => returned,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    returned
}

/// Makes system call `number`; what the kernel returned: negative is an error number.
///
/// # Safety
/// The call's own demands on its arguments.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub unsafe fn raw(number: libc::c_long, a: [usize; 6]) -> isize {
    let returned: isize;
    // SAFETY: the kernel's calling convention on arm64 (syscall(2)); what the call does is the
    // caller's to answer for.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a[0] as isize => returned,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack)
        );
    }
    returned
}

/// Makes system call `number`; what the kernel returned: negative is an error number.
///
/// # Safety
/// The call's own demands on its arguments.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn raw(number: libc::c_long, a: [usize; 6]) -> isize {
    // SAFETY: glibc's errno of this thread, put back afterwards; what the call does is the caller's
    // to answer for.
    unsafe {
        let errno = *libc::__errno_location();
        let mut returned = libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) as isize;
        if returned < 0 {
            returned = -(*libc::__errno_location() as isize);
        }
        *libc::__errno_location() = errno;
        returned
    }
}

/// Yields the CPU to another thread.
pub fn yield_now() {
    // SAFETY: no arguments.
    unsafe { raw(libc::SYS_sched_yield, [0; 6]) };
}

/// Waits for another thread that is about to finish something: yields the CPU at first, and then
/// sleeps in between.
///
/// A CPU with a yielding thread goes on using its memory, so the kernel interrupts it whenever
/// mappings change: 512 times while a GiB is moved, 10 µs each in a virtual machine. A CPU with a
/// sleeping thread is left alone (arch/x86/mm/tlb.c, `tlb_is_not_lazy`).
#[derive(Debug, Default)]
pub struct Wait {
    sleeps_after: Option<homenode_model::Ns>,
}

impl Wait {
    /// Time of yielding. Bringing a block takes less.
    const YIELDS: homenode_model::Ns = homenode_model::Ns(20_000);

    /// Lets the other thread go on for a moment. Signal handlers may call it.
    pub fn a_moment(&mut self) {
        let now = now();
        if now < *self.sleeps_after.get_or_insert(now + Self::YIELDS) {
            return yield_now();
        }
        sleep(homenode_model::Ns(20_000));
    }
}

/// Sleeps for less than a second.
pub fn sleep(time: homenode_model::Ns) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.0.min(999_999_999) as i64 };
    // SAFETY: a time on the stack; nothing is written.
    unsafe { raw(libc::SYS_nanosleep, [&raw const time as usize, 0, 0, 0, 0, 0]) };
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: no arguments.
    unsafe { raw(libc::SYS_gettid, [0; 6]) as i32 }
}

/// The process's limit of a resource (`RLIMIT_*`), if it has one.
pub fn limit(of: u32) -> Option<u64> {
    let mut limit = libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: 0 };
    // SAFETY: the kernel writes one structure.
    unsafe { raw(libc::SYS_prlimit64, [0, of as usize, 0, &raw mut limit as usize, 0, 0]) };
    (limit.rlim_cur != libc::RLIM64_INFINITY).then_some(limit.rlim_cur)
}

/// Nanoseconds since boot, from the vDSO.
pub fn now() -> homenode_model::Ns {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, without the time of other threads. A system call of about 0.2
/// µs.
pub fn thread_time() -> homenode_model::Ns {
    cpu_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process's threads, including those that have ended.
pub fn process_time() -> homenode_model::Ns {
    cpu_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Page faults of this process's threads so far, without those that waited for a device.
pub fn minor_faults() -> u64 {
    // SAFETY: all fields are numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one structure.
    unsafe { raw(libc::SYS_getrusage, [libc::RUSAGE_SELF as usize, &raw mut usage as usize, 0, 0, 0, 0]) };
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// Bypasses the C library: its function may have a front end of homenode's own, which would ask for
/// this time again.
fn cpu_clock(id: libc::clockid_t) -> homenode_model::Ns {
    /// The thread may run on memory that is taken away between its last touch and the call.
    const TRIES: usize = 1000;
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    for _ in 0..TRIES {
        let place = &raw mut t;
        // SAFETY: touches and writes one timespec.
        let done = unsafe {
            place.write_volatile(libc::timespec { tv_sec: 0, tv_nsec: 0 });
            raw(libc::SYS_clock_gettime, [id as usize, place as usize, 0, 0, 0, 0])
        };
        if done == 0 {
            break;
        }
    }
    homenode_model::Ns(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

fn clock(id: libc::clockid_t) -> homenode_model::Ns {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; these clocks always exist, so errno is not set.
    unsafe { libc::clock_gettime(id, &raw mut t) };
    homenode_model::Ns(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}
