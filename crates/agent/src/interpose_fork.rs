//! Children with a copy of the memory, which must be complete when the child is made. The C library
//! reports `fork` by handlers; the calls here have none.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};

use homenode_runtime::moving;

use crate::finish;
use crate::next::next;

/// Makes a child by `make`, which returns what `fork` does: 0 in the child.
pub fn forked<N: Copy + Into<i64>>(make: impl FnOnce() -> N) -> N {
    moving::before_bare_fork();
    let child = make();
    if child.into() == 0 {
        in_child()
    } else {
        moving::bare_fork_in_parent()
    }
    child
}

fn in_child() {
    // SAFETY: this is the only thread of the child.
    unsafe { finish::in_child() };
    moving::bare_fork_in_child();
}

/// `_Fork`.
///
/// # Safety
/// As the function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Fork() -> i32 {
    // SAFETY: no arguments.
    next!(_Fork: unsafe extern "C" fn() -> i32).map_or(-1, |f| forked(|| unsafe { f() }))
}

/// `vfork`. Where homenode may arm memory, this is a `fork`, which POSIX allows: a front end has to
/// disarm the memory first, and a child of `vfork` cannot return through its frame. Elsewhere it is
/// the C library's `vfork`.
///
/// # Safety
/// As `vfork`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn vfork() -> i32 {
    naked_asm!("sub rsp, 8", "call {choose}", "add rsp, 8", "jmp rax", choose = sym fork_or_vfork)
}

unsafe extern "C" fn fork_or_vfork() -> *mut c_void {
    type Fork = unsafe extern "C" fn() -> i32;
    let bare = next!(vfork: Fork).filter(|_| moving::mechanism() == moving::Mechanism::None);
    bare.or(next!(fork: Fork)).map_or(std::ptr::null_mut(), |f| f as *mut c_void)
}

type Work = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

/// What the child runs, and its argument.
struct Child {
    run: Work,
    argument: *mut c_void,
}

unsafe extern "C-unwind" fn begin(child: *mut c_void) -> c_int {
    in_child();
    // SAFETY: the maker's, in the child's copy of its stack; the program's function with its
    // argument.
    unsafe {
        let Child { run, argument } = child.cast::<Child>().read();
        run(argument)
    }
}

/// `clone`. A child that shares the memory shares homenode, too. While the parent waits for such a
/// child to start another program, nothing is armed.
///
/// # Safety
/// As `clone`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    run: Option<Work>,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: usize,
    tls: usize,
    child: usize,
) -> c_int {
    // The caller passes the last three only if the flags say so. The C library ignores the others.
    type Real =
        unsafe extern "C" fn(Option<Work>, *mut c_void, c_int, *mut c_void, usize, usize, usize) -> c_int;
    let Some(f) = next!(clone: Real) else { return -1 };
    let Some(real) = run.filter(|_| flags & libc::CLONE_VM == 0) else {
        let quiet = (flags & libc::CLONE_VFORK != 0).then(moving::before_process);
        // SAFETY: the caller's arguments.
        let made = unsafe { f(run, stack, flags, argument, parent, tls, child) };
        quiet.into_iter().for_each(moving::retire);
        return made;
    };
    let mut work = Child { run: real, argument };
    // Only the parent returns here.
    // SAFETY: the caller's arguments; the child has a copy of this frame.
    forked(|| unsafe { f(Some(begin), stack, flags, (&raw mut work).cast(), parent, tls, child) })
}
