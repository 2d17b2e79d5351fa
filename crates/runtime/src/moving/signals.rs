//! SIGBUS and SIGSEGV: ours come first, the program's own are called for what is none of ours.
//!
//! The kernel knows our handler alone. What the program sets by `sigaction` and its like is kept
//! here and told it back; so front ends of these functions call [`program_action`] instead of the
//! real one for these two signals. And they call [`without_faults`] for masks: a thread that has
//! the signals blocked would be killed at an armed page.
//!
//! Ours runs on a stack of its own ([`handler_stack`]). The program's runs where it would without
//! ours.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use homenode_sys::signal::{Action, Set, action, mask, replace_mask, set_action};
use homenode_sys::{Result, call};

use super::{Mechanism, fault, handler_stack, state};

/// The two signals.
const OURS: [i32; 2] = [libc::SIGBUS, libc::SIGSEGV];

/// What the program wants to happen.
struct Program {
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

static PROGRAM: [Program; 2] =
    [const { Program { handler: AtomicUsize::new(0), flags: AtomicU64::new(0), mask: AtomicU64::new(0) } };
        2];
/// Blocked while a handler of the program's runs that is not to be interrupted by its own signal: a
/// fault of its own ends the program then. It is glibc's own (SIGSETXID), which blocks it only
/// where it blocks all, and which no program can block; to leave a handler by `siglongjmp` lets it
/// through.
const IN_HANDLER: u64 = 1 << 32;

static INSTALLED: AtomicBool = AtomicBool::new(false);

fn program(signal: i32) -> Option<&'static Program> {
    OURS.iter().position(|s| *s == signal).map(|i| &PROGRAM[i])
}

/// Stands in front of the program's handlers. And lets the signals through in this thread.
///
/// # Errors
/// What the kernel says.
pub fn install() -> Result<()> {
    // Faults at armed memory in the program's own handlers, called by ours, are handled as well;
    // those of others wait.
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

/// Another program is about to take this one's place, or to be made, and gets this thread's mask:
/// without what is only blocked because a handler of the program's runs. What [`block_again`] puts
/// back where nothing came of it.
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

/// Lets the two faults through in the calling thread, whoever made it; the mask before, for
/// [`block_as`].
pub fn admit_faults() -> Set {
    let now = mask();
    if INSTALLED.load(Ordering::Relaxed) {
        replace_mask(Set(now.0 & Set::ASYNCHRONOUS.0));
    }
    now
}

/// Blocks what was blocked before [`admit_faults`].
pub fn block_as(before: Set) {
    replace_mask(before);
}

/// Whether the kernel still has our handlers: not if the program set its own by a system call that
/// no front end saw.
pub fn are_ours() -> bool {
    INSTALLED.load(Ordering::SeqCst)
        && OURS.into_iter().all(|s| action(s).is_ok_and(|a| a.handler == entry as *const () as usize))
}

unsafe extern "C" fn entry(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    /// `BUS_ADRERR` and `SEGV_ACCERR` (include/uapi/asm-generic/siginfo.h).
    const FAULT: i32 = 2;
    // SAFETY: the kernel's own structure.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Missing pages raise SIGBUS alone: whose access the program has forbidden is not to try again.
    let possible = code == FAULT && (signal == libc::SIGBUS || state::chosen() != Mechanism::UserFault);
    if possible && handler_stack::call(fault::on_fault, address) {
        // SAFETY: the kernel's own structure.
        handler_stack::note_stack(address, unsafe { stack_pointer(context.cast()) });
        return;
    }
    // SAFETY: the kernel's own structure.
    let blocked = unsafe { mask_of(context.cast()) } & IN_HANDLER != 0;
    if code > 0 && (blocked || handler_stack::is_copying()) {
        // As the kernel does with who has the signal blocked, or no stack left for a frame.
        return die(signal, false);
    }
    // SAFETY: passed on as it came.
    unsafe { chain(signal, info, context) };
}

/// Does what the program wants to happen.
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

/// Whether the frame lies on the stack that we have given to the thread, not on one of the
/// program's.
unsafe fn is_on_ours(context: *const libc::ucontext_t) -> bool {
    handler_stack::own().contains(context as usize)
}

/// What the interrupted code blocks.
unsafe fn mask_of(context: *const libc::ucontext_t) -> u64 {
    // SAFETY: the kernel's own structure, whose mask has 8 bytes.
    unsafe { std::ptr::read_unaligned((&raw const (*context).uc_sigmask).cast::<u64>()) }
}

/// The interrupted code's.
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

    use crate::moving::handler_stack;

    /// What precedes the context: the address that the handler returns to.
    const RETURN: usize = size_of::<usize>();
    /// What leaf functions use below the stack pointer.
    const RED_ZONE: usize = 128;

    /// A copy of a frame below what is in use of the interrupted stack, as the kernel would have
    /// written it there.
    pub struct Placed {
        start: usize,
        info: usize,
    }

    /// `None`: the frame is on that stack already, or is none that we know.
    pub unsafe fn place_below(info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) -> Option<Placed> {
        // SAFETY: the kernel's own structures, and memory below the interrupted code's red zone,
        // which is unused.
        unsafe {
            let pointer = super::stack_pointer(context);
            let other = Span::new((*context).uc_stack.ss_sp as usize, (*context).uc_stack.ss_size);
            let start = context as usize - RETURN;
            let old = Span { start, end: info as usize + size_of::<libc::siginfo_t>() };
            // As the kernel has it, a stack contains its end, and not its beginning.
            let was_there = pointer > other.start && pointer <= other.end;
            if !other.contains(start) || was_there || old.end < start || old.len() > 1024 {
                return None;
            }
            let registers = (*context).uc_mcontext.fpregs as usize;
            let registers = Span::new(registers, extent(registers));
            // A pointer that is none fails at the first byte.
            let top = pointer.wrapping_sub(RED_ZONE + registers.len()) & !63;
            let frame = (top.wrapping_sub(old.len()) & !15).wrapping_sub(RETURN);
            handler_stack::set_copying(true);
            copy(registers, top);
            copy(old, frame);
            handler_stack::set_copying(false);
            if !registers.is_empty() {
                let context = (frame + RETURN) as *mut libc::ucontext_t;
                (*context).uc_mcontext.fpregs = top as *mut _;
            }
            Some(Placed { start: frame, info: frame + (info as usize - start) })
        }
    }

    impl Placed {
        /// Goes on in the handler, which returns to what was interrupted. Nothing of the caller's
        /// stack is needed any more.
        pub unsafe fn run(self, signal: i32, handler: usize) -> ! {
            // SAFETY: the stack pointer is where the kernel puts it at a handler's begin, above it
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

/// Where the agent does not run, the program's handler stays on our stack.
#[cfg(not(target_arch = "x86_64"))]
mod frame {
    pub struct Placed;

    pub unsafe fn place_below(_: *mut libc::siginfo_t, _: *mut libc::ucontext_t) -> Option<Placed> {
        None
    }

    impl Placed {
        pub unsafe fn run(self, _: i32, _: usize) {}
    }
}

/// The system's own doing: the access is made again, or the signal sent again, and ends the
/// program.
fn die(signal: i32, sent: bool) {
    // SAFETY: the default needs nothing.
    let _ = unsafe { set_action(signal, &Action::default_action()) };
    if sent {
        let (process, thread) = (std::process::id() as usize, call::thread_id() as usize);
        // SAFETY: plain numbers.
        unsafe { call::raw(libc::SYS_tgkill, [process, thread, signal as usize, 0, 0, 0]) };
    }
}

/// Instead of `sigaction` for SIGBUS and SIGSEGV: what the program set before; `new`, if any, is
/// what it wants from now on. `None`: not one of ours, or we do not stand in front: the real
/// function is to be called.
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

/// The same signals without SIGBUS and SIGSEGV, where we stand in front of them: what a front end
/// passes to the real function of whatever blocks signals.
pub fn without_faults(set: &libc::sigset_t) -> libc::sigset_t {
    let mut set = *set;
    if INSTALLED.load(Ordering::Relaxed) {
        let first = (&raw mut set).cast::<u64>();
        // SAFETY: glibc's set begins with the kernel's 8 bytes.
        unsafe { first.write_unaligned(first.read_unaligned() & Set::ASYNCHRONOUS.0) };
    }
    set
}
