//! `libhomenode`: what a program that includes `homenode.h` links.
//!
//! Started directly, a program finds these functions here and they do nothing. Under the recorder, whose library comes
//! earlier in the link order and exports the same names, the calls become marks of the recording.

use std::ffi::{CStr, c_char, c_void};

const OK: i32 = 0;
const IDLE: i32 = 1;
const EINVAL: i32 = 2;

/// Round `number` of the outer loop begins.
#[unsafe(no_mangle)]
pub extern "C" fn hn_iteration(_number: u32) -> i32 {
    IDLE
}

/// Whole pages of the range go to whoever touches them next.
#[unsafe(no_mangle)]
pub extern "C" fn hn_next_touch(address: *const c_void, length: usize) -> i32 {
    let overflows = (address as usize).checked_add(length).is_none();
    if address.is_null() || overflows { EINVAL } else { IDLE }
}

/// Text of a return code; never null.
#[unsafe(no_mangle)]
pub extern "C" fn hn_message(code: i32) -> *const c_char {
    let text: &CStr = match code {
        OK => c"done",
        IDLE => c"homenode is not watching this program",
        EINVAL => c"an argument makes no sense: null, or a range beyond the address space",
        _ => c"not a homenode code",
    };
    text.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text_and_bad_ranges_are_refused() {
        let text = |c| unsafe { CStr::from_ptr(hn_message(c)) }.to_str().unwrap();
        assert_ne!(text(OK), text(IDLE));
        assert_eq!(text(99), "not a homenode code");
        assert_eq!(hn_next_touch(std::ptr::null(), 8), EINVAL);
        assert_eq!(hn_next_touch(std::ptr::without_provenance(8), usize::MAX), EINVAL);
        assert_eq!(hn_iteration(0), IDLE);
    }
}
