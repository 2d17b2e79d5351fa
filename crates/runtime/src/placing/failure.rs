//! A failure of a placing call: a code for the program, and a sentence for a person.

use std::fmt;

use homenode_model::code::{HN_EINVAL, HN_ENODE, HN_ENOMEM, HN_EPERM, HN_ESYSTEM};
use homenode_sys::Error;

/// What a container's user can do.
const REMEDY: &str = "in a container, start it with --cap-add SYS_NICE";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The C API's return code.
    pub code: i32,
    /// What was tried, on what, what the system answered, and what to do.
    pub text: String,
}

impl Failure {
    /// With a code of [`homenode_model::code`].
    pub fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// An argument makes no sense.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(HN_EINVAL, text)
    }

    /// There is no such node or CPU for this process.
    pub fn no_node(text: impl Into<String>) -> Self {
        Self::new(HN_ENODE, text)
    }

    /// A system call failed while `doing` something.
    pub fn system(doing: impl fmt::Display, error: Error) -> Self {
        let code = match error.errno.0 {
            libc::EPERM | libc::EACCES | libc::ENOSYS => HN_EPERM,
            libc::EFAULT | libc::ENOENT => HN_EINVAL,
            libc::ENOMEM => HN_ENOMEM,
            libc::ENODEV => HN_ENODE,
            _ => HN_ESYSTEM,
        };
        let remedy = if code == HN_EPERM { format!("; {REMEDY}") } else { String::new() };
        Self::new(code, format!("{doing}: {error}{remedy}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::{Errno, Span};

    #[test]
    fn what_a_container_forbids_says_what_to_do() {
        let error = Error { call: "mbind", on: Span::new(0x1000, 0x1000), errno: Errno(libc::EPERM) };
        let f = Failure::system("cannot place memory on node 1", error);
        assert_eq!(f.code, HN_EPERM);
        assert_eq!(
            f.text,
            "cannot place memory on node 1: mbind of 0x1000-0x2000: not permitted (EPERM); \
             in a container, start it with --cap-add SYS_NICE"
        );
    }
}
