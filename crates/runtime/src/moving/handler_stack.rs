//! A stack for homenode's handlers in each thread of the program.
//!
//! The kernel writes a signal's frame to the stack that the thread runs on. That may be armed
//! memory: the program takes the stacks of coroutines from its allocator, and the C library does
//! not know them. So handlers get a stack of their own (`sigaltstack`). If the program sets one,
//! the program's is used, and homenode's comes back when the program gives its own up.
//! `sigaltstack` tells the program what the program has set. The program's handlers run on
//! homenode's stack in one case: handlers of other signals with `SA_ONSTACK`, in a thread without a
//! stack from the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_sys::memory::{self, Protection};
use homenode_sys::{PAGE, Span, call};

use super::mechanism::Mechanism;
use super::stacks::{KEY, OWNERS, STACKS, TAKEN, in_use, own, set_copying, set_held, size};
use super::{calls, program, state, table};

fn key() -> Option<libc::pthread_key_t> {
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a function of this library, which is never unloaded.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0).then_some(key)
    })
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
            program::exclude(Span::new(now.ss_sp as usize, now.ss_size));
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
