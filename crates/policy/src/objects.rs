//! The objects that a policy works on: all, some by id, the largest, or those of some size.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use homenode_model::{Event, ObjectId, PageNo, PageRange};

/// A choice of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// Every page, of an object or not.
    All,
    /// These.
    Ids(Vec<ObjectId>),
    /// This number of objects with the most pages at the time; ties to the lower id.
    Largest(usize),
    /// Objects of at least this many pages.
    Pages(u64),
}

impl Objects {
    /// Parses an option: `all`, ids as in `3/7/9`, `largest:N`, `pages:N`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |n: &str| n.parse().ok().filter(|n| *n > 0);
        match text.split_once(':') {
            _ if text == "all" => Some(Self::All),
            Some(("largest", n)) => number(n).map(|n| Self::Largest(n as usize)),
            Some(("pages", n)) => number(n).map(Self::Pages),
            Some(_) => None,
            None => {
                let ids = text.split('/').map(|id| id.parse().ok().map(ObjectId));
                ids.collect::<Option<Vec<_>>>().map(Self::Ids)
            }
        }
    }
}

/// The existing objects, and the chosen ones. Objects of one site are one object of several ranges.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    which: Objects,
    /// Number of pages by (object, first page).
    live: BTreeMap<(ObjectId, u64), u64>,
}

impl Chosen {
    pub(crate) const fn new(which: Objects) -> Self {
        Self { which, live: BTreeMap::new() }
    }
    /// Notes allocations and ends of objects.
    pub(crate) fn observe(&mut self, event: &Event) {
        match *event {
            Event::Alloc { object, pages } => {
                let count = self.live.entry((object, pages.first.0)).or_default();
                *count = pages.count.max(*count);
            }
            Event::Free { object, pages } => {
                // The freed pages are those wholly inside. The object may begin on the page before.
                let first = pages.first.0;
                let mut starts = [Some(first), first.checked_sub(1)].into_iter().flatten();
                if let Some(start) = starts.find(|s| self.live.contains_key(&(object, *s))) {
                    self.live.remove(&(object, start));
                }
            }
            _ => {}
        }
    }
    /// Pages of each object.
    fn sizes(&self) -> BTreeMap<ObjectId, u64> {
        let mut sizes = BTreeMap::new();
        for ((object, _), count) in &self.live {
            let size: &mut u64 = sizes.entry(*object).or_default();
            *size = size.saturating_add(*count);
        }
        sizes
    }
    fn ids(&self) -> Vec<ObjectId> {
        match &self.which {
            Objects::All => self.sizes().into_keys().collect(),
            Objects::Ids(ids) => ids.clone(),
            Objects::Largest(n) => {
                let mut all: Vec<_> =
                    self.sizes().into_iter().map(|(id, size)| (Reverse(size), id)).collect();
                all.sort_unstable();
                all.into_iter().take(*n).map(|(_, id)| id).collect()
            }
            Objects::Pages(least) => {
                self.sizes().into_iter().filter(|(_, size)| size >= least).map(|(id, _)| id).collect()
            }
        }
    }
    /// The pages of the chosen objects within `bounds`, as disjoint ascending ranges.
    pub(crate) fn within(&self, bounds: PageRange) -> Vec<PageRange> {
        if self.which == Objects::All {
            return Vec::from([bounds]);
        }
        let end = bounds.first.0.saturating_add(bounds.count);
        let of = |id: ObjectId| self.live.range((id, 0)..=(id, u64::MAX));
        let mut ranges: Vec<(u64, u64)> = self
            .ids()
            .into_iter()
            .flat_map(of)
            .map(|((_, first), count)| (*first.max(&bounds.first.0), first.saturating_add(*count).min(end)))
            .filter(|(first, end)| first < end)
            .collect();
        ranges.sort_unstable();
        let mut out: Vec<PageRange> = Vec::new();
        for (first, end) in ranges {
            match out.last_mut() {
                Some(last) if last.first.0 + last.count >= first => {
                    last.count = last.count.max(end - last.first.0);
                }
                _ => out.push(PageRange { first: PageNo(first), count: end - first }),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, count: u64) -> PageRange {
        PageRange { first: PageNo(first), count }
    }

    #[test]
    fn choices_are_read() {
        assert_eq!(Objects::parse("all"), Some(Objects::All));
        assert_eq!(Objects::parse("3/7"), Some(Objects::Ids([ObjectId(3), ObjectId(7)].to_vec())));
        assert_eq!(Objects::parse("largest:2"), Some(Objects::Largest(2)));
        assert_eq!(Objects::parse("pages:64"), Some(Objects::Pages(64)));
        for bad in ["", "x", "3/", "largest:0", "largest", "pages:-1", "all:3"] {
            assert_eq!(Objects::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn chosen_pages_are_cut_merged_and_forgotten() {
        let mut chosen = Chosen::new(Objects::Largest(2));
        for (id, first, count) in [(0, 0, 4), (1, 3, 10), (2, 13, 6), (3, 40, 2)] {
            chosen.observe(&Event::Alloc { object: ObjectId(id), pages: range(first, count) });
        }
        assert_eq!(chosen.within(range(0, u64::MAX)), [range(3, 16)]);
        assert_eq!(chosen.within(range(5, 4)), [range(5, 4)]);
        chosen.observe(&Event::Free { object: ObjectId(1), pages: range(4, 9) });
        assert_eq!(chosen.within(range(0, u64::MAX)), [range(0, 4), range(13, 6)]);
        assert_eq!(Chosen::new(Objects::All).within(range(1, 2)), [range(1, 2)]);
    }
}
