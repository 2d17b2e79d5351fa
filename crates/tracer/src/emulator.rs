//! Recording in an emulated program: nothing is recorded here. The emulator's plug-in sees the
//! accesses, and this module passes the marks to it.

use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};

use homenode_log::Mark;
use homenode_recorder::channel::{CALL, ProgramMessage};

/// The variable that names the recording's directory to an emulated program.
pub const DIRECTORY: &str = "HOMENODE_EMULATOR_DIR";
/// The variable with the folder in which every process of a program makes a folder of its own, for
/// its marks alone. The accesses are counted elsewhere.
pub const MARKS: &str = "HOMENODE_MARKS_DIR";

static ACTIVE: AtomicBool = AtomicBool::new(false);
static OUTSIDE: AtomicBool = AtomicBool::new(false);

/// Whether the program was built without the recorder. Allocations then have their own names, and
/// libraries call them, too.
#[inline]
pub fn outside() -> bool {
    OUTSIDE.load(Ordering::Relaxed)
}

/// Whether the plug-in records.
#[inline]
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Whether only the program's marks are recorded, because the lab's monitor counts the accesses.
#[inline]
pub fn marks_alone() -> bool {
    outside() && !active()
}

/// Opens the recording. Notes whether it is the plug-in's.
pub fn begin() {
    let emulated = std::env::var_os(DIRECTORY).is_some();
    OUTSIDE.store(emulated || std::env::var_os(MARKS).is_some(), Ordering::Relaxed);
    ACTIVE.store(emulated, Ordering::Relaxed);
}

/// The process ends.
pub fn end() {
    if active() {
        tell(&ProgramMessage::Stop);
    }
}

/// Sends a mark.
pub fn mark(mark: &Mark) {
    tell(&ProgramMessage::Mark(*mark));
}

/// Makes the system call that the plug-in sees: directly, because the call fails and `errno` is the
/// program's.
pub fn tell(message: &ProgramMessage) {
    let [first, a, b, c, d, e] = message.words();
    // SAFETY: a system call that does nothing; the kernel's convention clobbers rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") CALL => _,
            in("rdi") first, in("rsi") a, in("rdx") b, in("r10") c, in("r8") d, in("r9") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
}
