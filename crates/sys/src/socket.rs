//! The kind of a descriptor's socket, asked from the kernel.

use crate::call::raw;
use crate::error::check;
use crate::{Result, Span};

/// The number in option `name` of `SOL_SOCKET`.
///
/// # Errors
/// `ENOTSOCK` if `fd` is no socket, `EBADF` if it is not open, or another answer of the kernel.
pub fn option(fd: i32, name: i32) -> Result<i32> {
    let (mut value, mut length) = (0_i32, size_of::<i32>() as u32);
    let (at, n) = (&raw mut value as usize, &raw mut length as usize);
    // SAFETY: the kernel writes a number and its length.
    let r = unsafe {
        raw(libc::SYS_getsockopt, [fd as usize, libc::SOL_SOCKET as usize, name as usize, at, n, 0])
    };
    check("getsockopt", Span::EMPTY, r).map(|_| value)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_socket_tells_what_it_is_and_others_that_they_are_none() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(option(socket.as_raw_fd(), libc::SO_DOMAIN).unwrap(), libc::AF_INET);
        assert_eq!(option(socket.as_raw_fd(), libc::SO_TYPE).unwrap(), libc::SOCK_DGRAM);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(option(file.as_raw_fd(), libc::SO_DOMAIN).unwrap_err().errno.0, libc::ENOTSOCK);
        assert_eq!(option(-1, libc::SO_DOMAIN).unwrap_err().errno.0, libc::EBADF);
    }
}
