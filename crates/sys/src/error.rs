//! The failure of a system call.

use std::fmt;

use crate::Span;

/// The kernel's error number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// In use or pinned, perhaps for a moment only.
    pub const BUSY: Self = Self(libc::EBUSY);
}

/// The errors that the project meets, with names and meanings.
const NAMES: &[(i32, &str, &str)] = &[
    (libc::EPERM, "EPERM", "not permitted"),
    (libc::ENOENT, "ENOENT", "no such thing"),
    (libc::ESRCH, "ESRCH", "no such process"),
    (libc::EINTR, "EINTR", "interrupted"),
    (libc::EIO, "EIO", "input or output error"),
    (libc::E2BIG, "E2BIG", "too large"),
    (libc::EBADF, "EBADF", "bad descriptor"),
    (libc::EAGAIN, "EAGAIN", "try again"),
    (libc::ENOMEM, "ENOMEM", "no memory"),
    (libc::EACCES, "EACCES", "access denied"),
    (libc::EFAULT, "EFAULT", "memory that is not there"),
    (libc::EBUSY, "EBUSY", "in use or pinned"),
    (libc::EEXIST, "EEXIST", "there already"),
    (libc::ENODEV, "ENODEV", "no such device or node"),
    (libc::EINVAL, "EINVAL", "refused as invalid"),
    (libc::EMFILE, "EMFILE", "too many open files"),
    (libc::ENOSYS, "ENOSYS", "this kernel or container has no such call"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP", "not supported here"),
];

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(n, ..)| *n == self.0) {
            Some((_, name, meaning)) => write!(f, "{meaning} ({name})"),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A system call, the memory that it was for, and the kernel's answer. Made without allocating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}{}: {errno}", OfMemory(*on))]
pub struct Error {
    /// The call, with the operation where it has several.
    pub call: &'static str,
    /// The memory; empty if the call was for none.
    pub on: Span,
    /// What the kernel said.
    pub errno: Errno,
}

/// The memory that a call was for, behind the call's name; nothing if there was none.
struct OfMemory(Span);

impl fmt::Display for OfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " of {}", self.0) }
    }
}

/// The result of a call, or its failure.
pub type Result<T> = std::result::Result<T, Error>;

/// Converts the kernel's return value into a result.
#[inline]
pub fn check(call: &'static str, on: Span, returned: isize) -> Result<usize> {
    if returned < 0 { Err(Error { call, on, errno: Errno(-returned as i32) }) } else { Ok(returned as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_tried_on_what_and_what_the_kernel_said() {
        let e = Error { call: "mbind", on: Span::new(0x1000, 0x2000), errno: Errno(libc::EPERM) };
        assert_eq!(e.to_string(), "mbind of 0x1000-0x3000: not permitted (EPERM)");
        let e = Error { call: "userfaultfd", on: Span::EMPTY, errno: Errno(9999) };
        assert_eq!(e.to_string(), "userfaultfd: error 9999");
    }
}
