//! What the launcher says, on a socket: `begin` and `end`, each answered when it has been done.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

/// Listens on a thread of its own; `act` gets each word and returns the answer.
///
/// # Safety
/// `fd` is an open socket that nobody else uses.
pub unsafe fn listen(fd: i32, act: impl Fn(&str) -> String + Send + 'static) {
    // SAFETY: the caller's promise.
    let socket = unsafe { UnixStream::from_raw_fd(fd) };
    thread::spawn(move || {
        let Ok(mut answer) = socket.try_clone() else { return };
        for line in BufReader::new(socket).lines() {
            let Ok(line) = line else { return };
            let text = act(line.trim()).replace('\n', " ");
            if writeln!(answer, "{text}").is_err() {
                return;
            }
        }
    });
}
