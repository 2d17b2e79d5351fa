//! Pages that were asked for, until their next toucher is known.

use std::collections::BTreeMap;

use homenode_sys::{PAGE, Span};

/// One bit a page, by number of a group of 64 pages.
#[derive(Clone, Debug, Default)]
pub struct PageBits(BTreeMap<usize, u64>);

impl PageBits {
    /// No pages.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds the page at this address.
    pub fn add(&mut self, page: usize) {
        *self.0.entry(page / PAGE / 64).or_default() |= 1 << (page / PAGE % 64);
    }

    /// Removes the page that contains this address: it was touched. Returns whether it was asked
    /// for.
    pub fn take(&mut self, address: usize) -> bool {
        let (place, bit) = (address / PAGE / 64, 1 << (address / PAGE % 64));
        let Some(bits) = self.0.get_mut(&place).filter(|bits| **bits & bit != 0) else { return false };
        *bits &= !bit;
        if *bits == 0 {
            self.0.remove(&place);
        }
        true
    }

    /// Removes all pages of `span`.
    pub fn cut(&mut self, span: Span) {
        let span = span.outer(PAGE);
        let places = span.start / PAGE / 64..=span.end / PAGE / 64;
        let hit: Vec<usize> = self.0.range(places).map(|(place, _)| *place).collect();
        for place in hit {
            let in_span = |bit: &usize| span.contains((place * 64 + bit) * PAGE);
            let gone = (0..64).filter(in_span).fold(0, |bits, bit| bits | 1 << bit);
            let left = self.0[&place] & !gone;
            if left == 0 {
                self.0.remove(&place);
            } else {
                self.0.insert(place, left);
            }
        }
    }

    /// Number of pages.
    pub fn count(&self) -> u64 {
        self.0.values().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Approximate bytes of memory: the map's nodes are two thirds full.
    pub fn bytes(&self) -> usize {
        self.0.len() * 2 * size_of::<usize>() * 3 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_the_set_of_what_was_added_and_not_taken(
            steps in proptest::collection::vec((0u8..3, 0usize..300, 0usize..200), 0..200)
        ) {
            let (mut asked, mut want) = (PageBits::new(), BTreeSet::new());
            for (what, page, pages) in steps {
                match what {
                    0 => {
                        asked.add(page * PAGE);
                        want.insert(page);
                    }
                    1 => prop_assert_eq!(asked.take(page * PAGE + 8), want.remove(&page)),
                    _ => {
                        asked.cut(Span::new(page * PAGE, pages * PAGE));
                        want.retain(|p| !(page..page + pages).contains(p));
                    }
                }
                prop_assert_eq!(asked.count(), want.len() as u64);
            }
            prop_assert!((0..300).all(|page| asked.take(page * PAGE) == want.contains(&page)));
            prop_assert_eq!(asked.bytes(), 0);
        }
    }
}
