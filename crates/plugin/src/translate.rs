//! Virtual to physical pages, kept for one virtual CPU.

/// log2 of the page size that translations are kept for; larger pages are several of these.
pub const PAGE_SHIFT: u32 = 12;
const OFFSET: u64 = (1 << PAGE_SHIFT) - 1;
const ENTRIES: usize = 512;

/// In [`Entry::physical`]: a store to the page is known.
const STORED: u64 = 1;

/// A virtual page's address with the epoch in its last bits, and the physical page's address with
/// [`STORED`].
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u64,
    physical: u64,
}

/// What is known of one CPU's translations.
#[derive(Debug)]
pub struct Translations {
    entries: Box<[Entry; ENTRIES]>,
    /// 1 to 4095; 0 is in no tag that means anything.
    epoch: u64,
}

impl Default for Translations {
    fn default() -> Self {
        Self { entries: Box::new([Entry { tag: 0, physical: 0 }; ENTRIES]), epoch: 1 }
    }
}

impl Translations {
    const fn place(address: u64) -> usize {
        (address >> PAGE_SHIFT) as usize % ENTRIES
    }

    /// The physical address of a virtual one, if it is known, and whether a store to its page is.
    #[inline]
    pub fn get(&self, address: u64) -> Option<(u64, bool)> {
        let Entry { tag, physical } = self.entries[Self::place(address)];
        let found = (physical & !OFFSET | (address & OFFSET), physical & STORED != 0);
        (tag == (address & !OFFSET | self.epoch)).then_some(found)
    }

    /// Keeps what QEMU said of the page of `address`, and whether a store to the page is known.
    pub fn put(&mut self, address: u64, physical: u64, stored: bool) {
        let tag = address & !OFFSET | self.epoch;
        let physical = physical & !OFFSET | if stored { STORED } else { 0 };
        self.entries[Self::place(address)] = Entry { tag, physical };
    }

    /// Forgets everything: the CPU is about to.
    pub fn forget(&mut self) {
        self.epoch += 1;
        if self.epoch > OFFSET {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_after_an_invalidation() {
        let mut t = Translations::default();
        let far = (7 + ENTRIES as u64) << PAGE_SHIFT;
        assert_eq!(t.get(0), None);
        t.put(7 << PAGE_SHIFT, 70 << PAGE_SHIFT, true);
        t.put(far + 5, 71 << PAGE_SHIFT | 5, false);
        let at = 71 << PAGE_SHIFT | 9;
        assert_eq!((t.get(7 << PAGE_SHIFT), t.get(far | 9)), (None, Some((at, false))));
        t.put(far, 71 << PAGE_SHIFT, true);
        assert_eq!(t.get(far | 9), Some((at, true)));
        for _ in 0..2 * OFFSET {
            t.forget();
            assert_eq!(t.get(far), None);
        }
    }
}
