//! What a program places itself, by the C API. It meets the four requirements of Robertson and
//! Rendell, section 2: bind a thread, place memory, ask where a thread runs, ask where memory is.
//! All of it works with and without the live runtime in the process.
//!
//! | task | module |
//! |---|---|
//! | Threads on CPUs and nodes | [`threads`] |
//! | Memory on nodes: future and existing pages | [`memory`] |
//! | Pages of one array on several nodes | [`spread`] |
//! | Where each page is, and whether that is right | [`find`] |
//! | The nodes, real or pretended | [`machine`] |
//! | Failures: a code and a sentence | [`Failure`] |

mod failure;
pub mod find;
pub mod machine;
pub mod memory;
pub mod spread;
pub mod threads;

pub use failure::Failure;
pub use homenode_sys::{PAGE, Span};

/// The result of a placing call.
pub type Result<T> = std::result::Result<T, Failure>;

/// The pages that `bytes` from `address` on touch.
///
/// # Errors
/// The range is null, empty or beyond the address space.
pub fn pages_of(address: usize, bytes: usize) -> Result<Span> {
    if address == 0 || bytes == 0 {
        return Err(Failure::invalid(format!(
            "a range of {bytes} bytes at {address:#x}: there is nothing in it"
        )));
    }
    let end = address.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE));
    let Some(end) = end else {
        return Err(Failure::invalid(format!(
            "a range of {bytes} bytes at {address:#x}: it ends beyond the address space"
        )));
    };
    Ok(Span { start: address & !(PAGE - 1), end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_the_pages_that_it_touches() {
        assert_eq!(pages_of(0x1fff, 2), Ok(Span { start: 0x1000, end: 0x3000 }));
        assert_eq!(pages_of(0x1000, PAGE), Ok(Span { start: 0x1000, end: 0x2000 }));
        for (address, bytes) in [(0, 8), (0x1000, 0), (8, usize::MAX), (usize::MAX - 5, 5)] {
            let code = pages_of(address, bytes).map_err(|f| f.code);
            assert_eq!(code, Err(homenode_model::code::HN_EINVAL), "{address:#x} {bytes}");
        }
    }
}
