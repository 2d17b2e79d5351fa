//! Return codes of the C API, and their texts. The header and the Fortran module are made from this
//! file.

use core::ffi::CStr;

/// done, or noted in the recording
pub const HN_OK: i32 = 0;
/// homenode is not watching this program: nothing to do
pub const HN_IDLE: i32 = 1;
/// an argument makes no sense (null, a range beyond the address space or not mapped)
pub const HN_EINVAL: i32 = 2;
/// there is no such node or CPU, it lacks what was asked for, or this process may not use it
pub const HN_ENODE: i32 = 3;
/// the system forbids the call
pub const HN_EPERM: i32 = 4;
/// the node has not enough free memory
pub const HN_ENOMEM: i32 = 5;
/// done for a part: some pages are elsewhere, or not in memory
pub const HN_PARTIAL: i32 = 6;
/// the array is too short for the answer
pub const HN_ERANGE: i32 = 7;
/// a system call failed in another way: see hn_last_error
pub const HN_ESYSTEM: i32 = 8;
/// `hn_next`: there are no more indices for this thread
pub const HN_END: i32 = 9;

/// `hn_where`: the page is not in memory (never written, or swapped out)
pub const HN_ABSENT: i32 = -1;
/// `hn_where`: the system does not say where the page is
pub const HN_UNKNOWN: i32 = -2;
/// `hn_place`: the node of the thread that touches a page first, as without homenode
pub const HN_FIRST_TOUCH: i32 = -1;
/// `hn_distribute`: each part gets one range of this dimension, as `schedule(static)` would give it
pub const HN_BLOCK: i32 = -1;
/// `hn_distribute`: this dimension is not distributed
pub const HN_STAR: i32 = -2;
/// `hn_distribute`: one part for each node that has memory and CPUs
pub const HN_OVER_NODES: i32 = 0;
/// `hn_distribute`: most dimensions of an array
pub const HN_DIMENSIONS: i32 = 7;

/// Text of a return code; never null.
pub const fn message(code: i32) -> &'static CStr {
    match code {
        HN_OK => c"done",
        HN_IDLE => c"homenode is not watching this program, or can do nothing for this memory",
        HN_EINVAL => c"an argument makes no sense: null, or a range beyond the address space or not mapped",
        HN_ENODE => c"no such node or CPU, or it lacks what was asked for, or this process may not use it",
        HN_EPERM => c"the system forbids the call: a container needs the capability SYS_NICE for it",
        HN_ENOMEM => c"the node has not enough free memory",
        HN_PARTIAL => c"some pages are elsewhere, or not in memory",
        HN_ERANGE => c"the array is too short for the answer",
        HN_ESYSTEM => c"a system call failed: hn_last_error tells which",
        HN_END => c"there are no more indices for this thread",
        _ => c"not a homenode code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text_of_its_own() {
        let texts: alloc::collections::BTreeSet<_> = (HN_OK..=HN_END + 1).map(message).collect();
        assert_eq!(texts.len(), HN_END as usize + 2);
    }
}
