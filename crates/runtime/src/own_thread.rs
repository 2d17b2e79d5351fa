//! homenode's own threads in the program's process.
//!
//! The kernel delivers a signal for the process to any thread that does not block it. If a thread
//! of homenode's took it, the program's handler would run in an unexpected thread, and a thread
//! that waits for the signal (`sigsuspend`, `pause`) would wait for ever. So homenode's threads
//! block all signals that others send.

use std::io;
use std::thread::Builder;

pub use homenode_sys::call::thread_id;
pub use homenode_sys::own_threads;
use homenode_sys::signal::{Set, replace_mask};

/// Starts a thread without capabilities, on a stack of `stack` bytes. From its first instruction
/// on, it blocks all signals that others send. `run` must sleep by [`own_threads::sleep`] alone,
/// and end when that says so.
///
/// # Errors
/// The system's answer; `EAGAIN` if homenode's own threads are ending.
pub fn start(name: &str, stack: usize, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let permit = own_threads::permit().ok_or_else(|| io::Error::from_raw_os_error(libc::EAGAIN))?;
    let builder = Builder::new().name(name.to_owned()).stack_size(stack);
    // A thread inherits its maker's mask.
    let mask = replace_mask(Set::FOR_OWN_THREADS);
    let made = builder.spawn(|| {
        own_threads::begin();
        run();
        own_threads::end();
    });
    replace_mask(mask);
    if made.is_err() {
        permit.refused();
    }
    made.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::signal::mask;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_of_our_own_takes_no_signals_and_its_maker_does() {
        let before = mask();
        let (tell, told) = channel();
        start("own", 64 << 10, move || tell.send(mask()).unwrap()).unwrap();
        let theirs = told.recv().unwrap();
        assert_eq!(mask(), before);
        // These two nobody can block.
        for signal in (1..=64).filter(|s| ![libc::SIGKILL, libc::SIGSTOP].contains(s)) {
            assert_eq!(theirs.has(signal), Set::FOR_OWN_THREADS.has(signal), "{signal}");
        }
        assert!([libc::SIGUSR1, libc::SIGCHLD, libc::SIGALRM, libc::SIGTERM].iter().all(|s| theirs.has(*s)));
    }
}
