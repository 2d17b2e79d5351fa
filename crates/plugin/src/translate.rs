//! Virtual to physical pages, kept for one virtual CPU.

/// log2 of the page size that translations are kept for; larger pages are several of these.
pub const PAGE_SHIFT: u32 = 12;
const ENTRIES: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: u64,
    epoch: u64,
    physical: u64,
}

/// What is known of one CPU's translations.
#[derive(Debug)]
pub struct Translations {
    entries: Box<[Entry; ENTRIES]>,
    epoch: u64,
}

impl Default for Translations {
    fn default() -> Self {
        Self { entries: Box::new([Entry { page: 0, epoch: 0, physical: 0 }; ENTRIES]), epoch: 1 }
    }
}

impl Translations {
    /// The physical page of a virtual one, if it is known.
    #[inline]
    pub fn get(&self, page: u64) -> Option<u64> {
        let entry = &self.entries[page as usize % ENTRIES];
        (entry.page == page && entry.epoch == self.epoch).then_some(entry.physical)
    }

    /// Keeps what QEMU said.
    pub fn put(&mut self, page: u64, physical: u64) {
        self.entries[page as usize % ENTRIES] = Entry { page, epoch: self.epoch, physical };
    }

    /// Forgets everything: the CPU is about to.
    pub const fn forget(&mut self) {
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_after_an_invalidation() {
        let mut t = Translations::default();
        assert_eq!(t.get(0), None);
        t.put(7, 70);
        t.put(7 + ENTRIES as u64, 71);
        assert_eq!((t.get(7), t.get(7 + ENTRIES as u64)), (None, Some(71)));
        t.forget();
        assert_eq!(t.get(7 + ENTRIES as u64), None);
    }
}
