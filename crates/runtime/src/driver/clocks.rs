//! The clocks by which the driver measures itself. Tests have their own.

use homenode_model::Ns;
use homenode_sys::call;

/// Where times come from.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Time that passes; a few nanoseconds a look.
    pub wall: fn() -> Ns,
    /// CPU time of the calling thread; a system call.
    pub thread: fn() -> Ns,
    /// CPU time of the process, all threads; a system call.
    pub process: fn() -> Ns,
}

impl Clocks {
    /// The kernel's.
    pub const KERNEL: Self = Self { wall: call::now, thread: call::thread_time, process: call::process_time };
}
