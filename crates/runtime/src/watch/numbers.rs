//! Dense page numbers for objects: policies keep tables by page.

use homenode_model::{PageNo, PageRange};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Gives ranges of page numbers to objects and takes them back.
#[derive(Debug, Default)]
pub struct PageNumbers {
    next: u64,
    /// Ranges given back: count and first number, so that the smallest that fits is found first.
    free: std::collections::BTreeSet<(u64, u64)>,
    /// Given ranges by first number: count and the address of the first page.
    given: std::collections::BTreeMap<u64, (u64, usize)>,
}

impl PageNumbers {
    /// Numbers for `count` pages from `address` on.
    pub fn give(&mut self, address: usize, count: u64) -> PageRange {
        let fits = self.free.range((count, 0)..).next().copied();
        let first = match fits {
            Some((size, first)) => {
                self.free.remove(&(size, first));
                if size > count {
                    self.free.insert((size - count, first + count));
                }
                first
            }
            None => {
                self.next += count;
                self.next - count
            }
        };
        self.given.insert(first, (count, address));
        PageRange { first: PageNo(first), count }
    }

    /// The range is free again.
    pub fn take_back(&mut self, pages: PageRange) {
        if let Some((count, _)) = self.given.remove(&pages.first.0) {
            self.free.insert((count, pages.first.0));
        }
    }

    /// One past the largest number.
    pub const fn end(&self) -> u64 {
        self.next
    }

    /// Where a page lies.
    pub fn address(&self, page: PageNo) -> Option<usize> {
        let (first, (count, address)) = self.given.range(..=page.0).next_back()?;
        (page.0 - first < *count).then(|| address + (page.0 - first) as usize * PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut n = PageNumbers::default();
        let a = n.give(0x10000, 10);
        let b = n.give(0x90000, 4);
        assert_eq!((a.first.0, b.first.0), (0, 10));
        assert_eq!(n.address(PageNo(11)), Some(0x91000));
        n.take_back(a);
        assert_eq!(n.address(PageNo(3)), None);
        let c = n.give(0x50000, 6);
        assert_eq!((c.first.0, n.address(PageNo(5))), (0, Some(0x55000)));
        assert_eq!(n.give(0x70000, 5).first.0, 14, "only four are free between");
        assert_eq!(n.give(0x60000, 4).first.0, 6);
    }
}
