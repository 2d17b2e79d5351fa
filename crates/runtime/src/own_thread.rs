//! Threads of homenode's own in the program's process.
//!
//! A signal that is sent to the process goes to any thread that does not block it. A handler of the program's that ran in a thread of
//! homenode's would run where nobody expects it, and who waits for the signal (`sigsuspend`, `pause`) would wait for ever.

use std::io;
use std::thread::Builder;

use homenode_sys::signal::{Set, replace_mask};

/// Starts a thread with all signals blocked that others send, from its first instruction on, on a stack of `stack` bytes.
///
/// # Errors
/// What the system said.
pub fn start(name: &str, stack: usize, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = Builder::new().name(name.to_owned()).stack_size(stack);
    // A thread has its maker's mask.
    let mask = replace_mask(Set::FOR_OWN_THREADS);
    let made = builder.spawn(run);
    replace_mask(mask);
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
