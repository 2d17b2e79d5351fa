//! Where the pages of objects live, and where they have lived: 16 bytes a page.

use std::collections::BTreeMap;

use homenode_dataset::tables::{IntervalNo, Residency};
use homenode_model::{NodeId, ObjectId};

/// A page of an object beyond this number is damage: 16 TiB.
const MOST: u64 = 1 << 32;
/// Pages that are followed altogether: 4 TiB.
const MOST_PAGES: usize = 1 << 30;

#[derive(Clone, Copy, Debug)]
struct Page {
    home: Option<NodeId>,
    since: IntervalNo,
    /// Nodes where it has lived, a bit each; nodes from 63 on share one.
    been: u64,
}

const UNKNOWN: Page = Page { home: None, since: IntervalNo(0), been: 0 };

const fn bit(node: NodeId) -> u64 {
    1 << if node.0 < 63 { node.0 } else { 63 }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Homes {
    objects: BTreeMap<ObjectId, Vec<Page>>,
    pages: usize,
    over: Vec<Residency>,
}

impl Homes {
    fn page(&mut self, object: ObjectId, page: u64) -> Option<&mut Page> {
        let list = self.objects.entry(object).or_default();
        let at = usize::try_from(page).ok().filter(|_| page < MOST)?;
        if at >= list.len() {
            let more = at + 1 - list.len();
            if self.pages + more > MOST_PAGES {
                return None;
            }
            self.pages += more;
            list.resize(at + 1, UNKNOWN);
        }
        list.get_mut(at)
    }

    /// The page lives on `node` at the end of `interval`. Whether it had lived there and left.
    pub fn set(&mut self, object: ObjectId, page: u64, node: NodeId, interval: IntervalNo) -> bool {
        let Some(state) = self.page(object, page) else { return false };
        if state.home == Some(node) {
            return false;
        }
        let was_there = state.been & bit(node) != 0;
        let before = std::mem::replace(
            state,
            Page { home: Some(node), since: interval, been: state.been | bit(node) },
        );
        if let Some(home) = before.home
            && before.since < interval
        {
            let until = IntervalNo(interval.0 - 1);
            let row = Residency { object: Some(object), page, pages: 1, interval: before.since, until, home };
            self.add(row);
        }
        was_there
    }

    /// Adds a row; it makes the last one longer where that is the same.
    fn add(&mut self, row: Residency) {
        match self.over.last_mut() {
            Some(last)
                if (last.object, last.interval, last.until, last.home)
                    == (row.object, row.interval, row.until, row.home)
                    && last.page + last.pages == row.page =>
            {
                last.pages += row.pages;
            }
            _ => self.over.push(row),
        }
    }

    /// The object is gone; its pages lived where they did until the end of `interval`.
    pub fn gone(&mut self, object: ObjectId, interval: IntervalNo) {
        let Some(pages) = self.objects.remove(&object) else { return };
        self.pages -= pages.len();
        for (page, state) in (0..).zip(pages) {
            if let Some(home) = state.home {
                let (from, until) = (state.since, interval.max(state.since));
                self.add(Residency { object: Some(object), page, pages: 1, interval: from, until, home });
            }
        }
    }

    /// All rows, when the last interval is `last`.
    pub fn finish(mut self, last: IntervalNo) -> Vec<Residency> {
        let objects: Vec<ObjectId> = self.objects.keys().copied().collect();
        objects.into_iter().for_each(|object| self.gone(object, last));
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_pages_and_intervals_are_rows() {
        let (mut homes, a) = (Homes::default(), ObjectId(1));
        let interval = IntervalNo;
        (0..8).for_each(|p| assert!(!homes.set(a, p, NodeId(0), interval(0))));
        (4..8).for_each(|p| assert!(!homes.set(a, p, NodeId(1), interval(3))));
        assert!(homes.set(a, 5, NodeId(0), interval(5)), "it comes back");
        let rows: Vec<_> = homes
            .finish(interval(9))
            .iter()
            .map(|r| (r.page, r.pages, r.interval.0, r.until.0, r.home.0))
            .collect();
        assert_eq!(
            rows,
            [
                (4, 4, 0, 2, 0),
                (5, 1, 3, 4, 1),
                (0, 4, 0, 9, 0),
                (4, 1, 3, 9, 1),
                (5, 1, 5, 9, 0),
                (6, 2, 3, 9, 1)
            ]
        );
    }

    #[test]
    fn impossible_pages_cost_nothing() {
        let mut homes = Homes::default();
        assert!(!homes.set(ObjectId(0), u64::MAX, NodeId(0), IntervalNo(0)));
        assert!(homes.finish(IntervalNo(0)).is_empty());
    }
}
