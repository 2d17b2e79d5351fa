//! SIGBUS and SIGSEGV: homenode's handler runs first, and calls the program's for faults that are
//! not homenode's.
//!
//! The kernel knows homenode's handler alone. This module keeps the actions that the program sets
//! by `sigaction` and its kin, and returns them when asked. So the front ends of these functions
//! call [`program_action`] for these two signals instead of the real function. They call
//! [`without_faults`] for masks, because the kernel would kill a thread at an armed page if it
//! blocked the signals.
//!
//! homenode's handler runs on a stack of its own ([`super::handler_stack`]). The program's handler
//! runs where it would run without homenode.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub use homenode_sys::signal::Set;
use homenode_sys::signal::{Action, action, mask, replace_mask, set_action};
use homenode_sys::{Result, call};

use super::mechanism::Mechanism;
use super::{fault, running_stack, stacks, state};

/// The two signals.
const OURS: [i32; 2] = [libc::SIGBUS, libc::SIGSEGV];

/// The action that the program wants.
struct Program {
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

static PROGRAM: [Program; 2] =
    [const { Program { handler: AtomicUsize::new(0), flags: AtomicU64::new(0), mask: AtomicU64::new(0) } };
        2];
/// Blocked while a handler of the program runs that must not be interrupted by its own signal: a
/// fault in the handler then ends the program. The signal is glibc's own (SIGSETXID). glibc blocks
/// it only where it blocks all, and no program can block it. Leaving a handler by `siglongjmp`
/// unblocks it.
const IN_HANDLER: u64 = 1 << 32;

static INSTALLED: AtomicBool = AtomicBool::new(false);

fn program(signal: i32) -> Option<&'static Program> {
    OURS.iter().position(|s| *s == signal).map(|i| &PROGRAM[i])
}

/// Takes over the two signals' actions, and unblocks the signals in this thread.
///
/// # Errors
/// The kernel's answer.
pub fn install() -> Result<()> {
    // Faults at armed memory inside the program's handlers, called by this one, are handled as
    // well. Other signals wait.
    let flags = libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART;
    let ours = Action::new(entry, flags, Set::ASYNCHRONOUS);
    for (signal, program) in OURS.into_iter().zip(&PROGRAM) {
        // SAFETY: this library is never unloaded; `entry` does only what handlers may.
        let old = unsafe { set_action(signal, &ours)? };
        program.handler.store(old.handler, Ordering::SeqCst);
        program.flags.store(old.flags, Ordering::SeqCst);
        program.mask.store(old.mask.0, Ordering::SeqCst);
    }
    INSTALLED.store(true, Ordering::SeqCst);
    let now = mask();
    replace_mask(Set(now.0 & Set::ASYNCHRONOUS.0 & !IN_HANDLER));
    Ok(())
}

/// The process is about to become or make another program, which inherits this thread's mask.
/// Unblocks the signal that is only blocked because a handler of the program runs. [`block_again`]
/// undoes that if the call fails.
pub fn let_through() -> Option<Set> {
    let now = mask();
    (now.0 & IN_HANDLER != 0).then(|| replace_mask(Set(now.0 & !IN_HANDLER)))
}

/// See [`let_through`].
pub fn block_again(was: Option<Set>) {
    if let Some(was) = was {
        replace_mask(was);
    }
}

/// Unblocks the two faults in the calling thread, whoever made it. Returns the mask before, for
/// [`block_as`].
pub fn admit_faults() -> Set {
    let now = mask();
    if INSTALLED.load(Ordering::Relaxed) {
        replace_mask(Set(now.0 & Set::ASYNCHRONOUS.0));
    }
    now
}

/// Restores the mask before [`admit_faults`].
pub fn block_as(before: Set) {
    stacks::set_held(0);
    replace_mask(before);
}

/// The calling thread, which has a stack for handlers, behaves as if it blocked those of the two
/// faults that `before` blocks. A fault of the program's own ends it, and a signal that is sent to
/// the thread waits.
pub fn hold(before: Set) {
    let blocked = OURS.iter().enumerate().filter(|(_, signal)| before.has(**signal));
    stacks::set_held(blocked.map(|(n, _)| 1 << n).sum());
}

/// The calling thread has changed its mask by `how` and `set`: signals that it unblocks come.
pub fn changed_mask(how: i32, set: &libc::sigset_t) {
    if stacks::held() == 0 {
        return;
    }
    // SAFETY: glibc's set begins with the kernel's 8 bytes.
    let set = Set(unsafe { std::ptr::from_ref(set).cast::<u64>().read_unaligned() });
    for (n, signal) in OURS.into_iter().enumerate() {
        let (blocked, waits) = (1 << n, 1 << (n + OURS.len()));
        let unblocks = match how {
            libc::SIG_UNBLOCK => set.has(signal),
            libc::SIG_SETMASK => !set.has(signal),
            _ => false,
        };
        let held = stacks::held();
        if unblocks && held & blocked != 0 {
            stacks::set_held(held & !(blocked | waits));
            if held & waits != 0 {
                send_to_this_thread(signal);
            }
        }
    }
}

/// Whether the calling thread holds the signal back. `sent`: it was sent to the thread, so it waits
/// from now on.
fn is_held(signal: i32, sent: bool) -> bool {
    let Some(n) = OURS.iter().position(|s| *s == signal) else { return false };
    let held = stacks::held();
    if held & 1 << n == 0 {
        return false;
    }
    if sent {
        stacks::set_held(held | 1 << (n + OURS.len()));
    }
    true
}

/// Whether the kernel still has homenode's handlers. It does not if the program set its own by a
/// system call that no front end saw.
pub fn are_ours() -> bool {
    INSTALLED.load(Ordering::SeqCst)
        && OURS.into_iter().all(|s| action(s).is_ok_and(|a| a.handler == entry as *const () as usize))
}

unsafe extern "C" fn entry(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    /// `BUS_ADRERR` and `SEGV_ACCERR` (include/uapi/asm-generic/siginfo.h).
    const FAULT: i32 = 2;
    /// `SI_TKILL`.
    const TO_THREAD: i32 = -6;
    // SAFETY: the kernel's own structure.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Missing pages raise SIGBUS alone. An access that the program has forbidden must not be
    // repeated.
    let possible = code == FAULT && (signal == libc::SIGBUS || state::chosen() != Mechanism::UserFault);
    if possible && stacks::call(fault::on_fault, address) {
        // SAFETY: the kernel's own structure.
        running_stack::note_stack(address, unsafe { stack_pointer(context.cast()) });
        return;
    }
    // SAFETY: the kernel's own structure.
    let in_handler = unsafe { mask_of(context.cast()) } & IN_HANDLER != 0;
    if code == TO_THREAD && is_held(signal, true) {
        return;
    }
    let blocked = in_handler || is_held(signal, false);
    if code > 0 && (blocked || stacks::is_copying()) {
        // The kernel does the same if a thread has the signal blocked, or no stack left for a
        // frame.
        return die(signal, false);
    }
    // SAFETY: passed on as it came.
    unsafe { chain(signal, info, context) };
}

/// Carries out the program's action.
unsafe fn chain(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(program) = program(signal) else { return };
    // SAFETY: the kernel's own structure.
    let sent = unsafe { (*info).si_code } <= 0;
    let flags = program.flags.load(Ordering::SeqCst);
    let blocked = program.mask.load(Ordering::SeqCst);
    let handler = match program.handler.load(Ordering::SeqCst) {
        libc::SIG_IGN if sent => return,
        libc::SIG_DFL | libc::SIG_IGN => return die(signal, sent),
        handler => handler,
    };
    if flags & libc::SA_RESETHAND as u32 as u64 != 0 {
        program.handler.store(libc::SIG_DFL, Ordering::SeqCst);
    }
    // SAFETY: the frame that the kernel made.
    let placed = unsafe {
        let moves = flags & libc::SA_ONSTACK as u64 == 0 || is_on_ours(context.cast());
        moves.then(|| frame::place_below(info, context.cast())).flatten()
    };
    // As the kernel would block: what was blocked, and what the handler asks for; but never the
    // faults. SAFETY: the context that the kernel made.
    let before = unsafe { mask_of(context.cast()) };
    let again = flags & libc::SA_NODEFER as u64 != 0;
    replace_mask(Set((before | blocked) & Set::ASYNCHRONOUS.0 | if again { 0 } else { IN_HANDLER }));
    // SAFETY: the program's handler. One that takes the number alone does not mind the other two
    // arguments (the calling convention of all supported machines).
    unsafe {
        if let Some(placed) = placed {
            placed.run(signal, handler);
        }
        let handler: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
            std::mem::transmute(handler);
        handler(signal, info, context);
    }
}

/// Whether the frame lies on the stack that homenode has given to the thread, not on one of the
/// program's.
unsafe fn is_on_ours(context: *const libc::ucontext_t) -> bool {
    stacks::own().contains(context as usize)
}

/// The signals that the interrupted code blocks.
unsafe fn mask_of(context: *const libc::ucontext_t) -> u64 {
    // SAFETY: the kernel's own structure, whose mask has 8 bytes.
    unsafe { std::ptr::read_unaligned((&raw const (*context).uc_sigmask).cast::<u64>()) }
}

/// The stack pointer of the interrupted code.
unsafe fn stack_pointer(context: *const libc::ucontext_t) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's own structure.
    unsafe {
        (*context).uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel's own structure.
    unsafe {
        (*context).uc_mcontext.sp as usize
    }
}

/// A signal's frame (arch/x86/include/asm/sigframe.h, arch/x86/kernel/signal_64.c).
#[cfg(target_arch = "x86_64")]
mod frame {
    use homenode_sys::Span;

    use crate::moving::stacks;

    /// Bytes before the context: the return address of the handler.
    const RETURN: usize = size_of::<usize>();
    /// Bytes below the stack pointer that leaf functions use.
    const RED_ZONE: usize = 128;

    /// A copy of a frame below the used part of the interrupted stack, where the kernel would have
    /// written it.
    pub struct PlacedFrame {
        start: usize,
        info: usize,
    }

    /// `None`: the frame is on that stack already, or its form is unknown.
    pub unsafe fn place_below(
        info: *mut libc::siginfo_t,
        context: *mut libc::ucontext_t,
    ) -> Option<PlacedFrame> {
        // SAFETY: the kernel's own structures, and memory below the interrupted code's red zone,
        // which is unused.
        unsafe {
            let pointer = super::stack_pointer(context);
            let other = Span::new((*context).uc_stack.ss_sp as usize, (*context).uc_stack.ss_size);
            let start = context as usize - RETURN;
            let old = Span { start, end: info as usize + size_of::<libc::siginfo_t>() };
            // For the kernel, a stack contains its end and not its beginning.
            let was_there = pointer > other.start && pointer <= other.end;
            if !other.contains(start) || was_there || old.end < start || old.len() > 1024 {
                return None;
            }
            let registers = (*context).uc_mcontext.fpregs as usize;
            let registers = Span::new(registers, extent(registers));
            // An invalid pointer fails at the first byte.
            let top = pointer.wrapping_sub(RED_ZONE + registers.len()) & !63;
            let frame = (top.wrapping_sub(old.len()) & !15).wrapping_sub(RETURN);
            stacks::set_copying(true);
            copy(registers, top);
            copy(old, frame);
            stacks::set_copying(false);
            if !registers.is_empty() {
                let context = (frame + RETURN) as *mut libc::ucontext_t;
                (*context).uc_mcontext.fpregs = top as *mut _;
            }
            Some(PlacedFrame { start: frame, info: frame + (info as usize - start) })
        }
    }

    impl PlacedFrame {
        /// Continues in the handler, which returns to the interrupted code. Nothing of the caller's
        /// stack is needed any more.
        pub unsafe fn run(self, signal: i32, handler: usize) -> ! {
            // SAFETY: the stack pointer is where the kernel puts it at a handler's start, above it
            // the address to return to.
            unsafe {
                std::arch::asm!(
                    "mov rsp, rcx",
                    "xor eax, eax",
                    "jmp r11",
                    in("rcx") self.start,
                    in("r11") handler,
                    in("rdi") signal,
                    in("rsi") self.info,
                    in("rdx") self.start + RETURN,
                    options(noreturn)
                );
            }
        }
    }

    unsafe fn copy(from: Span, to: usize) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.start as *const u8, to as *mut u8, from.len()) };
    }

    /// Bytes of the saved vector registers (arch/x86/include/uapi/asm/sigcontext.h): their length
    /// is kept in what processors leave unused of the first 512.
    unsafe fn extent(registers: usize) -> usize {
        const LEGACY: usize = 512;
        const MARK: usize = 464;
        const MAGIC: u32 = 0x4650_5853;
        if registers == 0 {
            return 0;
        }
        // SAFETY: the kernel's own structure.
        unsafe {
            let [magic, bytes] = ((registers + MARK) as *const [u32; 2]).read_unaligned();
            if magic == MAGIC { bytes as usize } else { LEGACY }
        }
    }
}

/// On other architectures, where the agent does not run, the program's handler stays on homenode's
/// stack.
#[cfg(not(target_arch = "x86_64"))]
mod frame {
    pub struct PlacedFrame;

    pub unsafe fn place_below(_: *mut libc::siginfo_t, _: *mut libc::ucontext_t) -> Option<PlacedFrame> {
        None
    }

    impl PlacedFrame {
        pub unsafe fn run(self, _: i32, _: usize) {}
    }
}

/// The default action: the access is repeated, or the signal sent again, which ends the program.
fn die(signal: i32, sent: bool) {
    // SAFETY: the default needs nothing.
    let _ = unsafe { set_action(signal, &Action::default_action()) };
    if sent {
        send_to_this_thread(signal);
    }
}

fn send_to_this_thread(signal: i32) {
    let (process, thread) = (std::process::id() as usize, call::thread_id() as usize);
    // SAFETY: plain numbers.
    unsafe { call::raw(libc::SYS_tgkill, [process, thread, signal as usize, 0, 0, 0]) };
}

/// Replaces `sigaction` for SIGBUS and SIGSEGV. Returns the program's action before; sets `new`, if
/// any. `None`: it is another signal, or homenode has not taken the signals over, so the real
/// function should be called.
///
/// # Safety
/// As `sigaction`: the handler that `new` names is one.
pub unsafe fn program_action(signal: i32, new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    let program = program(signal).filter(|_| INSTALLED.load(Ordering::SeqCst))?;
    // SAFETY: all its fields may be zero.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    old.sa_sigaction = program.handler.load(Ordering::SeqCst);
    old.sa_flags = program.flags.load(Ordering::SeqCst) as i32 & !RESTORER;
    // SAFETY: glibc's set begins with the kernel's 8 bytes.
    unsafe { (&raw mut old.sa_mask).cast::<u64>().write_unaligned(program.mask.load(Ordering::SeqCst)) };
    if let Some(new) = new {
        // SAFETY: the same.
        let blocked = unsafe { (&raw const new.sa_mask).cast::<u64>().read_unaligned() };
        program.flags.store(new.sa_flags as u32 as u64, Ordering::SeqCst);
        program.mask.store(blocked, Ordering::SeqCst);
        program.handler.store(new.sa_sigaction, Ordering::SeqCst);
    }
    Some(old)
}

/// `SA_RESTORER`, which is the C library's own business.
const RESTORER: i32 = 0x0400_0000;

/// The set without SIGBUS and SIGSEGV, if homenode has taken them over. A front end passes it to
/// the real function of every call that blocks signals.
pub fn without_faults(set: &libc::sigset_t) -> libc::sigset_t {
    let mut set = *set;
    if INSTALLED.load(Ordering::Relaxed) {
        let first = (&raw mut set).cast::<u64>();
        // SAFETY: glibc's set begins with the kernel's 8 bytes.
        unsafe { first.write_unaligned(first.read_unaligned() & Set::ASYNCHRONOUS.0) };
    }
    set
}
