//! Why something cannot be measured here.

use homenode_sys::Error;

/// Why memory could not be had, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub why: String,
    pub remedy: String,
}

impl Trouble {
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }

    /// A call that a container's filter or a missing capability forbids.
    pub fn forbidden(what: &str, error: &Error) -> Self {
        Self::new(
            format!("{what}: {error}"),
            "in a container, allow it: docker run --cap-add SYS_NICE, or a seccomp profile with mbind and move_pages",
        )
    }
}
