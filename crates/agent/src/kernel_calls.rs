//! System calls that a program makes by number (`syscall`): which memory of the program each of
//! them reads or writes.
//!
//! The [`table`] is the only list. The front end of `syscall` publishes the memory in the call's
//! row. `tests/harmless.rs` makes a program from the same rows, which calls each number on armed
//! memory and compares the answers with those on plain memory. A call without a row may do
//! anything, so nothing is armed while it runs.

pub mod table;

use homenode_runtime::moving::Span;
use libc::c_long;

use table::{CALLS, MOST, Size};

/// What a call touches. `None`: nobody knows.
pub fn touches(number: c_long, arguments: &[usize; 6]) -> Option<[Span; MOST]> {
    let row = CALLS.binary_search_by_key(&number, |call| call.number).ok()?;
    let mut spans = [Span::EMPTY; MOST];
    for (span, (at, size)) in spans.iter_mut().zip(CALLS[row].pointers) {
        let start = arguments[*at];
        let bytes = match *size {
            Size::Bytes(n) => n,
            Size::Each(count, n) => arguments[count].saturating_mul(n),
            Size::Bits(count) => arguments[count].div_ceil(64).saturating_mul(8),
            Size::Path => libc::PATH_MAX as usize,
            Size::Ioctl(request) => match arguments[request] >> 16 & 0x3fff {
                // Older requests do not say: what terminals and sockets take is shorter than this.
                0 => 256,
                n => n,
            },
        };
        if start != 0 {
            *span = Span::new(start, bytes);
        }
    }
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_fits() {
        assert!(CALLS.is_sorted_by_key(|c| c.number));
        assert!(CALLS.windows(2).all(|w| w[0].number != w[1].number));
        for call in CALLS {
            assert!(call.pointers.len() <= MOST && call.pointers.iter().all(|p| p.0 < 6), "{}", call.name);
        }
    }

    #[test]
    fn rows_become_spans() {
        let of = |number, a: [usize; 6]| touches(number, &a).unwrap();
        assert_eq!(of(libc::SYS_read, [3, 0x1000, 10, 0, 0, 0])[0], Span::new(0x1000, 10));
        assert_eq!(of(libc::SYS_getresuid, [0x1000, 0, 0x3000, 0, 0, 0])[2], Span::new(0x3000, 4));
        assert!(of(libc::SYS_getresuid, [0x1000, 0, 0x3000, 0, 0, 0])[1].is_empty());
        assert_eq!(of(libc::SYS_poll, [0x1000, 3, 0, 0, 0, 0])[0], Span::new(0x1000, 24));
        assert!(of(libc::SYS_getpid, [1; 6]).iter().all(|s| s.is_empty()));
        assert_eq!(touches(99_999, &[0; 6]), None);
    }
}
