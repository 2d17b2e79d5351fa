//! QEMU's word for an access, read without asking QEMU: its functions do the same, at the price of
//! a call for each access.

/// log2 of its size is in these bits …
const SIZE: u32 = 4;
const SIZE_MASK: u32 = 7;
/// … and whether it reads, whether it writes in these.
pub const READ: u32 = 1 << 16;
/// As above.
pub const WRITE: u32 = 1 << 17;

/// Whether QEMU's words are as above: asked with the functions that read them.
pub fn understood(is_store: impl Fn(u32) -> bool, size_shift: impl Fn(u32) -> u32) -> bool {
    (0..5).all(|s| size_shift(s << SIZE | READ) == s && size_shift(s << SIZE | WRITE | READ) == s)
        && is_store(WRITE)
        && is_store(READ | WRITE)
        && !is_store(READ)
}

/// Whether it writes, and its bytes.
#[inline(always)]
pub const fn read(what: u32) -> (bool, u64) {
    (what & WRITE != 0, 1 << (what >> SIZE & SIZE_MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemus_words_are_checked() {
        let shift = |what: u32| what >> 4 & 7;
        assert!(understood(|what| what & WRITE != 0, shift));
        assert!(!understood(|what| what & READ != 0, shift));
        assert!(!understood(|what| what & WRITE != 0, |what| what & 7));
        assert_eq!(read(WRITE | 3 << 4), (true, 8));
        assert_eq!(read(READ), (false, 1));
    }
}
