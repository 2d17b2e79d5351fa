//! A stack for homenode's handlers in each thread of the program.
//!
//! The kernel writes a signal's frame to the stack that the thread runs on. That may be armed
//! memory: the program takes the stacks of coroutines from its allocator, and the C library does
//! not know them. So handlers get a stack of their own (`sigaltstack`). If the program sets one,
//! the program's is used, and homenode's comes back when the program gives its own up.
//! `sigaltstack` tells the program what the program has set. The program's handlers run on
//! homenode's stack in one case: handlers of other signals with `SA_ONSTACK`, in a thread without a
//! stack from the program.
//! (`SA_ONSTACK`) in a thread that was never given one run on ours.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use homenode_sys::memory::{self, Protection};
use homenode_sys::{PAGE, Span, call, maps};

use super::table::{self, BLOCK, Block};
use super::{Mechanism, calls, state};

/// Usable bytes of a stack, beside the kernel's frame. The program's handlers may run there.
const USABLE: usize = 256 << 10;
/// Threads with a stack, at a time.
const MOST: usize = 1024;
/// The slot is taken.
const TAKEN: usize = 1;

/// Lowest usable addresses of the stacks. They are never unmapped: a thread that ends leaves its
/// stack to the next one.
static STACKS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// The kernel's number of the thread that owns the stack; 0: none. A thread without thread-local
/// storage of its own (`clone`) finds its maker's place under [`KEY`], and must not run on that
/// stack.
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

/// Bytes of a stack. The kernel's frame has all registers: 11 KiB on processors with matrix
/// registers.
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
    /// A stack that was left, or a new one. `None`: there is no memory, or there are too many
    /// threads.
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
        let made = memory::map(PAGE + size(), Protection::ReadWrite).and_then(|all| {
            // A guard page stops overflows.
            // SAFETY: just made, known to nobody.
            unsafe { memory::protect(Span::new(all.start, PAGE), Protection::None) }.map(|()| all)
        });
        let Ok(all) = made else {
            STACKS[place].store(0, Ordering::Relaxed);
            return None;
        };
        table::note_own(all);
        STACKS[place].store((all.start + PAGE) | TAKEN, Ordering::Release);
        Some(Self::at(place, all.start + PAGE))
    }

    /// The stack's memory. The maker may leave a message for the new owner at the lower end.
    pub const fn memory(&self) -> Span {
        self.memory
    }

    /// A number for the thread that should have the stack, for [`Spare::of_place`].
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

    /// Makes the stack the calling thread's, unless the program has given the thread one.
    pub fn adopt(self) {
        let Some(key) = key() else { return };
        // SAFETY: the key's value is a number; the kernel gets the address of memory that is this
        // thread's alone.
        unsafe {
            if libc::pthread_setspecific(key, (self.place + 1) as *const libc::c_void) != 0 {
                return self.leave();
            }
        }
        OWNERS[self.place].store(call::thread_id(), Ordering::Release);
        // The maker may have left its message there.
        set_copying(false);
        set_held(0);
        let now = in_use();
        if now.ss_flags & libc::SS_DISABLE != 0 {
            install(self.memory);
        } else {
            super::exclude(Span::new(now.ss_sp as usize, now.ss_size));
        }
    }

    /// Leaves the stack to the next thread.
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

/// Makes sure that the calling thread, one of the program's, has a stack.
pub fn give() {
    if own().is_empty() {
        Spare::take().into_iter().for_each(Spare::adopt);
    }
}

/// The stack that homenode has given to the calling thread, whether or not it uses that one; empty
/// if none.
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

/// Bytes that homenode's own work may need below the stack pointer.
const DEPTH: usize = 64 << 10;

/// The caller is about to claim blocks, and runs on any stack. Makes sure that the part of the
/// stack that it will use is not armed, now or later. A thread would wait for ever for a block that
/// it has claimed itself.
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
        // The block's owner may have looked before that.
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

/// Whether the calling thread runs on its first stack, and both addresses lie there. Reads the
/// process's mappings, so call it on suspicion only.
pub fn on_first_stack(one: usize, other: usize) -> bool {
    // A handler may have another stack, which may lie within this one, in an array of the
    // program's.
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

/// A thread has touched a page near its stack pointer, so the page is part of a stack, and so are
/// the pages that it will push to. For handlers: claims no block.
pub fn note_stack(address: usize, pointer: usize) {
    /// Bytes below the stack pointer that leaf functions use.
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
