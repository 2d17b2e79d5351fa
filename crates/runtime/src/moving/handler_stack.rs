//! A stack for our handlers in each thread of the program.
//!
//! The kernel writes a signal's frame to the stack that the thread runs on. That may be armed
//! memory: coroutines have stacks that the program takes from its allocator, and no function of the
//! C library is told of them. So handlers get a stack of their own (`sigaltstack`). A program that
//! sets one keeps it, and ours comes back when it gives its own up; a program that asks is told
//! what it has set. Of its handlers only those of other signals that ask for a stack of their own
//! (`SA_ONSTACK`) in a thread that was never given one run on ours.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use homenode_sys::memory::{self, Access};
use homenode_sys::{PAGE, Span, call, maps};

use super::table::{self, BLOCK, Block};
use super::{Mechanism, calls, state};

/// What can be used of one, beside what the kernel needs for a frame: handlers of the program's may
/// run there.
const USABLE: usize = 256 << 10;
/// Threads at a time that have one.
const MOST: usize = 1024;
/// Somebody has it.
const TAKEN: usize = 1;

/// Their lowest usable addresses. They are never unmapped: who ends leaves its own to who comes.
static STACKS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// The kernel's number of the thread that has it; 0: none. A thread without thread-local storage of
/// its own (`clone`) finds its maker's place under [`KEY`], whose stack it must not run on.
static OWNERS: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
/// The place of the thread's own in `STACKS`, and one; given up by the C library's destructors at
/// the thread's end.
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

fn key() -> Option<libc::pthread_key_t> {
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a function of this library, which is never unloaded.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0).then_some(key)
    })
}

/// Bytes of each: the kernel's frame has all registers, which are 11 KiB where there are matrices
/// among them.
fn size() -> usize {
    // SAFETY: asks for a number; 0 where the kernel does not say.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    (USABLE + 4 * frame).next_multiple_of(PAGE)
}

/// A stack that no thread runs on yet.
#[derive(Debug)]
pub struct Spare {
    place: usize,
    memory: Span,
}

impl Spare {
    /// One that was left, or a new one. `None`: there is no memory, or there are too many threads.
    pub fn take() -> Option<Self> {
        key()?;
        let taken = |(place, stack): (usize, &AtomicUsize)| {
            let start = stack.load(Ordering::Relaxed);
            let free = start & TAKEN == 0 && start != 0;
            (free && change(stack, start, start | TAKEN)).then(|| Self::at(place, start))
        };
        STACKS.iter().enumerate().find_map(taken).or_else(Self::make)
    }

    fn at(place: usize, start: usize) -> Self {
        Self { place, memory: Span::new(start, size()) }
    }

    fn make() -> Option<Self> {
        let place = STACKS.iter().position(|s| change(s, 0, TAKEN))?;
        let made = memory::map(PAGE + size(), Access::ReadWrite).and_then(|all| {
            // Who grows out of it is stopped.
            // SAFETY: just made, known to nobody.
            unsafe { memory::protect(Span::new(all.start, PAGE), Access::None) }.map(|()| all)
        });
        let Ok(all) = made else {
            STACKS[place].store(0, Ordering::Relaxed);
            return None;
        };
        table::note_own(all);
        STACKS[place].store((all.start + PAGE) | TAKEN, Ordering::Release);
        Some(Self::at(place, all.start + PAGE))
    }

    /// Its memory, for its maker to leave word for the thread that is to have it, at the lower end.
    pub const fn memory(&self) -> Span {
        self.memory
    }

    /// For the thread that is to have it: a number, and back.
    pub const fn place(&self) -> usize {
        self.place
    }

    /// The stack of that number.
    ///
    /// # Safety
    /// [`Spare::place`] told it, and whoever had it has forgotten it.
    pub unsafe fn of_place(place: usize) -> Self {
        Self::at(place, STACKS[place].load(Ordering::Acquire) & !TAKEN)
    }

    /// The calling thread's from now on, unless the program has given it one.
    pub fn adopt(self) {
        let Some(key) = key() else { return };
        // SAFETY: the key's value is a number; the kernel is told of memory that is this thread's
        // alone.
        unsafe {
            if libc::pthread_setspecific(key, (self.place + 1) as *const libc::c_void) != 0 {
                return self.leave();
            }
        }
        OWNERS[self.place].store(call::thread_id(), Ordering::Release);
        // Where its maker may have left word.
        set_copying(false);
        let now = in_use();
        if now.ss_flags & libc::SS_DISABLE != 0 {
            install(self.memory);
        } else {
            super::exclude(Span::new(now.ss_sp as usize, now.ss_size));
        }
    }

    /// To the next thread.
    pub fn leave(self) {
        OWNERS[self.place].store(0, Ordering::Release);
        STACKS[self.place].store(self.memory.start, Ordering::Release);
    }
}

fn change(stack: &AtomicUsize, from: usize, to: usize) -> bool {
    stack.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// The thread ends. Later destructors run on the thread's first stack, which is never armed.
unsafe extern "C" fn ends(place: *mut libc::c_void) {
    calls::end();
    if state::mechanism() == Mechanism::None {
        // It was turned off, perhaps because the program may not make such calls any more.
        return;
    }
    // SAFETY: `adopt` put it there.
    let spare = unsafe { Spare::of_place(place as usize - 1) };
    let now = in_use();
    if now.ss_sp as usize == spare.memory.start {
        // SAFETY: all fields may be zero.
        let mut none: libc::stack_t = unsafe { std::mem::zeroed() };
        none.ss_flags = libc::SS_DISABLE;
        if !set(&none) {
            // The thread ends on it.
            return;
        }
    }
    spare.leave();
}

/// Makes sure that the calling thread, which is the program's, has one.
pub fn give() {
    if own().is_empty() {
        Spare::take().into_iter().for_each(Spare::adopt);
    }
}

/// The stack that we have given to the calling thread, whether it uses it or one of the program's;
/// empty if none.
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

/// Threads that have one: those that front ends have seen begin.
pub fn owners() -> usize {
    OWNERS.iter().filter(|owner| owner.load(Ordering::Relaxed) != 0).count()
}

/// Whether the thread of this number has one.
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

fn in_use() -> libc::stack_t {
    // SAFETY: all fields may be zero; the kernel writes one structure.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        call::raw(libc::SYS_sigaltstack, [0, &raw mut now as usize, 0, 0, 0, 0]);
        now
    }
}

fn set(stack: &libc::stack_t) -> bool {
    // SAFETY: the kernel reads one structure.
    unsafe { call::raw(libc::SYS_sigaltstack, [std::ptr::from_ref(stack) as usize, 0, 0, 0, 0, 0]) == 0 }
}

fn install(memory: Span) {
    // SAFETY: all fields may be zero.
    let mut ours: libc::stack_t = unsafe { std::mem::zeroed() };
    ours.ss_sp = memory.start as *mut libc::c_void;
    ours.ss_size = memory.len();
    set(&ours);
}

/// Instead of `sigaltstack`, with the real function: what the program is told is what it has set.
///
/// # Safety
/// As `sigaltstack`.
pub unsafe fn program_stack(
    new: *const libc::stack_t,
    old: *mut libc::stack_t,
    real: unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> i32,
) -> i32 {
    // SAFETY: null or the caller's structures, which may be one and the same.
    unsafe {
        let new = new.as_ref().copied();
        let mut was = std::mem::zeroed::<libc::stack_t>();
        let code = real(new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref), &raw mut was);
        if code != 0 {
            return code;
        }
        let ours = own();
        if !ours.is_empty() && was.ss_sp as usize == ours.start {
            was = std::mem::zeroed();
            was.ss_flags = libc::SS_DISABLE;
        }
        if !old.is_null() {
            old.write(was);
        }
        if new.is_some_and(|new| new.ss_flags & libc::SS_DISABLE != 0) && !ours.is_empty() {
            install(ours);
        }
        0
    }
}

/// What is to be done at an address; whether it was.
pub type OnFault = extern "C" fn(usize) -> bool;

/// Calls `f` on the calling thread's own stack, for handlers: where the program has given the
/// thread a stack for its handlers, ours runs on that, which may have room for little more than the
/// kernel's frame.
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

/// What homenode's own work may need below the stack pointer.
const DEPTH: usize = 64 << 10;

/// The caller is about to claim blocks, and runs on any stack: of the part that it will use nothing
/// is armed now or later. Who waits for a block that it has claimed itself would wait for ever.
#[inline]
pub fn stand() {
    let here = 0_u8;
    let here = &raw const here as usize;
    if on_initial_stack(here) || own().is_empty() {
        return;
    }
    let below = Span { start: here.saturating_sub(DEPTH), end: here + PAGE }.outer(PAGE);
    for unit in below.pieces(BLOCK) {
        let Ok(block) = Block::make(unit.start) else { continue };
        let pages = block.pages_touched(unit);
        let word = block.word();
        if word.excluded() & pages == pages && !word.busy() && word.armed() & pages == 0 {
            continue;
        }
        block.exclude(pages);
        // Who has claimed it may have looked before that.
        let mut wait = call::Wait::default();
        while block.word().busy() {
            wait.a_moment();
        }
        for run in block.runs(block.word().armed() & pages) {
            for page in run.pieces(PAGE) {
                // SAFETY: armed memory is readable once it is touched.
                unsafe { (page.start as *const u8).read_volatile() };
            }
        }
    }
}

/// The initial thread's first stack is never armed, and nothing else lies so close below its end
/// (`MIN_GAP`, arch/x86/mm/mmap.c).
fn on_initial_stack(address: usize) -> bool {
    const GAP: usize = 128 << 20;
    static END: AtomicUsize = AtomicUsize::new(0);
    let mut end = END.load(Ordering::Relaxed);
    if end == 0 {
        // SAFETY: asks for an address; these bytes lie above all that is ever pushed.
        end = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        END.store(end, Ordering::Relaxed);
    }
    address < end && end - address < GAP
}

/// Whether the calling thread runs on the stack that it began on, and both addresses lie there.
/// Reads its mappings: for who suspects something.
pub fn on_first_stack(one: usize, other: usize) -> bool {
    // A handler may have another one, which may lie within this: in an array of the program's.
    if in_use().ss_flags & (libc::SS_ONSTACK | libc::SS_DISABLE) != 0 {
        return false;
    }
    if on_initial_stack(one) || on_initial_stack(other) {
        return on_initial_stack(one) && on_initial_stack(other);
    }
    // Threads have their thread-local storage above it, in the same mapping, and a guard below.
    // SAFETY: asks for an address.
    let end = unsafe { libc::pthread_self() } as usize;
    let mut found = false;
    let read = maps::each(|m| {
        found = m.span.contains(end) && m.span.contains(one) && m.span.contains(other);
        m.span.end <= end
    });
    read.is_ok() && found && one < end && other < end
}

/// A page was touched by who had its stack pointer there: it is part of a stack, and so is what
/// will be pushed next. For handlers: takes no block.
pub fn note_stack(address: usize, pointer: usize) {
    /// Leaf functions use so much below it.
    const RED_ZONE: usize = 128;
    let page = |a: usize| a / PAGE;
    if page(address) != page(pointer) && page(address) != page(pointer.saturating_sub(RED_ZONE)) {
        return;
    }
    let below = Span { start: address.saturating_sub(DEPTH), end: address + 1 }.outer(PAGE);
    for block in Block::all(below) {
        block.exclude(block.pages_touched(below));
    }
}

/// The calling thread copies a signal's frame to the stack that was interrupted, or has done so:
/// who faults meanwhile has no stack left.
pub fn set_copying(is: bool) {
    let own = own();
    if !own.is_empty() {
        // SAFETY: the lower end of the thread's own stack, which is longer than all that runs
        // there.
        unsafe { (own.start as *mut usize).write_volatile(usize::from(is)) };
    }
}

/// What [`set_copying`] was told last.
pub fn is_copying() -> bool {
    let own = own();
    // SAFETY: as above.
    !own.is_empty() && unsafe { (own.start as *const usize).read_volatile() } != 0
}
