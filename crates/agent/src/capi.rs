//! The functions of `homenode.h`.

use std::ffi::{CStr, c_char, c_void};

use crate::state;

const OK: i32 = 0;
const IDLE: i32 = 1;
const EINVAL: i32 = 2;

/// Round `number` of the outer loop begins.
#[unsafe(no_mangle)]
pub extern "C" fn hn_iteration(number: u32) -> i32 {
    match state::with(|d| d.iteration(number)) {
        Some(()) => OK,
        None => IDLE,
    }
}

/// Whole pages of the range go to whoever touches them next.
#[unsafe(no_mangle)]
pub extern "C" fn hn_next_touch(address: *const c_void, length: usize) -> i32 {
    let overflows = (address as usize).checked_add(length).is_none();
    if address.is_null() || overflows {
        return EINVAL;
    }
    match state::with(|d| d.next_touch(address as usize, length)) {
        Some(true) => OK,
        _ => IDLE,
    }
}

/// Text of a return code; never null.
#[unsafe(no_mangle)]
pub extern "C" fn hn_message(code: i32) -> *const c_char {
    let text: &CStr = match code {
        OK => c"done",
        IDLE => c"homenode is not watching this program, or can do nothing for this memory",
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
