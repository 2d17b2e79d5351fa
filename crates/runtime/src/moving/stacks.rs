//! The stacks for homenode's handlers: which thread has which, and what the thread keeps there.
//!
//! [`super::handler_stack`] gives the stacks to threads. This module runs in signal handlers: it
//! takes no lock and allocates nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use homenode_sys::{PAGE, Span, call};

/// Usable bytes of a stack, beside the kernel's frame. The program's handlers may run there.
const USABLE: usize = 256 << 10;
/// Threads with a stack, at a time.
const MOST: usize = 1024;
/// The slot is taken.
pub const TAKEN: usize = 1;

/// Lowest usable addresses of the stacks. They are never unmapped: a thread that ends leaves its
/// stack to the next one.
pub static STACKS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// The kernel's number of the thread that owns the stack; 0: none. A thread without thread-local
/// storage of its own (`clone`) finds its maker's place under [`KEY`], and must not run on that
/// stack.
pub static OWNERS: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
/// The place of the thread's own in `STACKS`, and one; given up by the C library's destructors at
/// the thread's end.
pub static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

/// Bytes of a stack. The kernel's frame has all registers: 11 KiB on processors with matrix
/// registers.
pub fn size() -> usize {
    // SAFETY: asks for a number; 0 where the kernel does not say.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    (USABLE + 4 * frame).next_multiple_of(PAGE)
}

/// The stack that homenode has given to the calling thread, whether or not it uses that one; empty
/// if none.
#[inline]
pub fn own() -> Span {
    let Some(Some(key)) = KEY.get() else { return Span::EMPTY };
    // SAFETY: asks for a number.
    let place = unsafe { libc::pthread_getspecific(*key) } as usize;
    match STACKS.get(place.wrapping_sub(1)) {
        Some(stack) if OWNERS[place - 1].load(Ordering::Relaxed) == call::thread_id() => {
            Span::new(stack.load(Ordering::Relaxed) & !TAKEN, size())
        }
        _ => Span::EMPTY,
    }
}

/// Number of threads with a stack: those whose start front ends have seen.
pub fn owners() -> usize {
    OWNERS.iter().filter(|owner| owner.load(Ordering::Relaxed) != 0).count()
}

/// Whether the thread with this number has a stack.
pub fn is_owner(thread: i32) -> bool {
    OWNERS.iter().any(|owner| owner.load(Ordering::Relaxed) == thread)
}

/// In a forked child: its only thread has another number than in the parent.
pub fn in_child() {
    let Some(Some(key)) = KEY.get() else { return };
    // SAFETY: asks for a number.
    let place = unsafe { libc::pthread_getspecific(*key) } as usize;
    for (n, owner) in OWNERS.iter().enumerate() {
        let mine = n + 1 == place;
        owner.store(if mine { call::thread_id() } else { 0 }, Ordering::Relaxed);
    }
}

/// The stack for handlers that the kernel knows for the calling thread.
pub fn in_use() -> libc::stack_t {
    // SAFETY: all fields may be zero; the kernel writes one structure.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        call::raw(libc::SYS_sigaltstack, [0, &raw mut now as usize, 0, 0, 0, 0]);
        now
    }
}

/// Work for a fault address. Returns whether it was done.
pub type OnFault = extern "C" fn(usize) -> bool;

/// Calls `f` on the calling thread's own stack, for handlers. If the program has given the thread a
/// stack for handlers, homenode's handler runs on that stack, which may have room for little more
/// than the kernel's frame.
pub fn call(f: OnFault, argument: usize) -> bool {
    let (own, here) = (own(), 0_u8);
    if own.is_empty() || own.contains(&raw const here as usize) {
        return f(argument);
    }
    // SAFETY: nothing runs there, for the kernel would have put the frame there, too, if it was in
    // use; and nothing interrupts `f`.
    unsafe { on_stack(own.end & !15, f, argument) }
}

#[cfg(target_arch = "x86_64")]
unsafe fn on_stack(top: usize, f: OnFault, argument: usize) -> bool {
    let result: usize;
    // SAFETY: the caller's stack, aligned as a call wants it; this one is back before anything
    // else.
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "mov rsp, rax",
            "call {f}",
            "mov rsp, r12",
            f = in(reg) f,
            in("rdi") argument,
            inlateout("rax") top => result,
            out("r12") _,
            clobber_abi("C"),
        );
    }
    result as u8 != 0
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn on_stack(_: usize, f: OnFault, argument: usize) -> bool {
    f(argument)
}

/// Notes whether the calling thread copies a signal's frame to the interrupted stack. If it faults
/// meanwhile, there is no stack left.
pub fn set_copying(is: bool) {
    let own = own();
    if !own.is_empty() {
        // SAFETY: the lower end of the thread's own stack, which is longer than all that runs
        // there.
        unsafe { (own.start as *mut usize).write_volatile(usize::from(is)) };
    }
}

/// The last value of [`set_copying`].
pub fn is_copying() -> bool {
    let own = own();
    // SAFETY: as above.
    !own.is_empty() && unsafe { (own.start as *const usize).read_volatile() } != 0
}

/// The word behind that of [`set_copying`].
fn held_word() -> Option<*mut usize> {
    let own = own();
    (!own.is_empty()).then(|| (own.start as *mut usize).wrapping_add(1))
}

/// Keeps a number for the calling thread: see `signals::hold`. Nothing is kept for a thread without
/// a stack.
pub fn set_held(signals: usize) {
    // SAFETY: as in `set_copying`.
    held_word().into_iter().for_each(|word| unsafe { word.write_volatile(signals) });
}

/// The last value of [`set_held`].
pub fn held() -> usize {
    // SAFETY: as in `set_copying`.
    held_word().map_or(0, |word| unsafe { word.read_volatile() })
}
