//! What the launcher says on a socket, each order answered when it has been carried out.

use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

use homenode_wire::bounded::line;
use homenode_wire::monitor::{MonitorAnswer, MonitorCommand};

/// Listens on a thread of its own; `act` carries out each order, or says why not.
///
/// # Safety
/// `fd` is an open socket that nobody else uses.
pub unsafe fn listen(fd: i32, act: impl Fn(MonitorCommand) -> Result<(), String> + Send + 'static) {
    // SAFETY: the caller's promise.
    let mut socket = unsafe { UnixStream::from_raw_fd(fd) };
    thread::spawn(move || {
        while let Ok(order) = homenode_wire::read(&mut socket) {
            let answer = MonitorAnswer { failed: act(order).err().map(|why| line(&why)) };
            let Ok(answer) = homenode_wire::encode(&answer) else { return };
            if socket.write_all(&answer).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    #[test]
    fn each_order_is_answered() {
        let (mut own, its) = UnixStream::pair().unwrap();
        // SAFETY: the other end of a pair, which is given up for it.
        unsafe { listen(its.into_raw_fd(), |MonitorCommand::End| Err("a\nb".into())) };
        for _ in 0..2 {
            own.write_all(&homenode_wire::encode(&MonitorCommand::End).unwrap()).unwrap();
            let answer: MonitorAnswer = homenode_wire::read(&mut own).unwrap();
            assert_eq!(answer.failed.as_deref(), Some("a b"));
        }
    }
}
