//! Where the pages of objects live, and where they have lived.
//!
//! State: a run of pages with one fate takes some 50 bytes, however many pages it has. A record of
//! the stream adds at most two runs. A hostile stream could have the same many runs looked at again
//! and again, so the looks are counted: at most four million, and 16 more for each call.
//! Beyond that nothing is followed any more, and [`ObservedHomes::gave_up`] says so.

use std::collections::BTreeMap;
use std::ops::Range;

use homenode_dataset::tables::{IntervalNo, Residency};
use homenode_model::{NodeId, ObjectId};

/// Looks at runs in any case.
const LOOKS: u64 = if cfg!(test) { 1 << 16 } else { 1 << 22 };
/// Looks at runs for each call. Two are needed, and one for each node where pages have lived.
const LOOKS_A_CALL: u64 = 16;

/// The fate that the pages of a run share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    home: NodeId,
    since: IntervalNo,
    /// Nodes where they have lived, a bit each; nodes from 63 on share one.
    been: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    end: u64,
    fate: Fate,
}

/// Runs by their first page. They do not overlap, and there are gaps where nothing is known.
type Runs = BTreeMap<u64, Run>;

const fn bit(node: NodeId) -> u64 {
    1 << if node.0 < 63 { node.0 } else { 63 }
}

/// What became of the pages of one run, when they got a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledPages {
    /// The pages.
    pub pages: Range<u64>,
    /// They had lived on this node before, and left.
    pub came_back: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ObservedHomes {
    objects: BTreeMap<ObjectId, Runs>,
    over: Vec<Residency>,
    calls: u64,
    looks: u64,
}

/// Cuts the run that `page` lies inside of, so that one begins there.
fn cut(runs: &mut Runs, page: u64) {
    let Some((_, run)) = runs.range_mut(..page).next_back() else { return };
    if page < run.end {
        let behind = *run;
        run.end = page;
        runs.insert(page, behind);
    }
}

/// Adds a run; it makes its neighbours longer where they share its fate.
fn add(runs: &mut Runs, mut pages: Range<u64>, fate: Fate) {
    if let Some((first, before)) = runs.range(..pages.start).next_back()
        && (before.end, before.fate) == (pages.start, fate)
    {
        pages.start = *first;
    }
    if let Some(behind) = runs.get(&pages.end).copied().filter(|r| r.fate == fate) {
        runs.remove(&pages.end);
        pages.end = behind.end;
    }
    runs.insert(pages.start, Run { end: pages.end, fate });
}

impl ObservedHomes {
    /// Whether there were too many runs to look at. What came later is not followed.
    pub const fn gave_up(&self) -> bool {
        self.looks > LOOKS + self.calls.saturating_mul(LOOKS_A_CALL)
    }

    /// The known runs within `pages`, taken out, and the gaps between them, in order.
    fn take(&mut self, object: ObjectId, pages: &Range<u64>) -> Vec<(Range<u64>, Option<Fate>)> {
        self.calls += 1;
        if self.gave_up() || pages.is_empty() {
            return Vec::new();
        }
        let runs = self.objects.entry(object).or_default();
        cut(runs, pages.start);
        cut(runs, pages.end);
        let (mut all, mut at) = (Vec::new(), pages.start);
        while let Some((first, run)) = runs.range(at..pages.end).next().map(|(first, run)| (*first, *run)) {
            if at < first {
                all.push((at..first, None));
            }
            runs.remove(&first);
            all.push((first..run.end, Some(run.fate)));
            at = run.end;
        }
        if at < pages.end {
            all.push((at..pages.end, None));
        }
        self.looks = self.looks.saturating_add(all.len() as u64);
        all
    }

    fn put(&mut self, object: ObjectId, pages: Range<u64>, fate: Fate) {
        add(self.objects.entry(object).or_default(), pages, fate);
    }

    /// The pages live on `node` at the end of `interval`. What that is to them, in runs.
    pub fn set(
        &mut self,
        object: ObjectId,
        pages: Range<u64>,
        node: NodeId,
        interval: IntervalNo,
    ) -> Vec<SettledPages> {
        let mut settled: Vec<SettledPages> = Vec::new();
        for (part, before) in self.take(object, &pages) {
            let stays = before.filter(|fate| fate.home == node);
            let been = before.map_or(0, |fate| fate.been);
            if let Some(before) = before.filter(|fate| stays.is_none() && fate.since < interval) {
                self.lived(object, &part, before, IntervalNo(interval.0 - 1));
            }
            let fate = stays.unwrap_or(Fate { home: node, since: interval, been: been | bit(node) });
            self.put(object, part.clone(), fate);
            let came_back = stays.is_none() && been & bit(node) != 0;
            match settled.last_mut() {
                Some(last) if last.came_back == came_back => last.pages.end = part.end,
                _ => settled.push(SettledPages { pages: part, came_back }),
            }
        }
        settled
    }

    /// Adds a row; it makes the last one longer where that is the same.
    fn lived(&mut self, object: ObjectId, pages: &Range<u64>, fate: Fate, until: IntervalNo) {
        let Fate { home, since: interval, .. } = fate;
        let (object, page, pages) = (Some(object), pages.start, pages.end - pages.start);
        match self.over.last_mut() {
            Some(last)
                if (last.object, last.interval, last.until, last.home) == (object, interval, until, home)
                    && last.page + last.pages == page =>
            {
                last.pages += pages;
            }
            _ => self.over.push(Residency { object, page, pages, interval, until, home }),
        }
    }

    /// The object is gone; its pages lived where they did until the end of `interval`.
    pub fn gone(&mut self, object: ObjectId, interval: IntervalNo) {
        for (first, Run { end, fate }) in self.objects.remove(&object).unwrap_or_default() {
            self.lived(object, &(first..end), fate, interval.max(fate.since));
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

    const A: ObjectId = ObjectId(1);

    fn rows(homes: ObservedHomes, last: u32) -> Vec<(u64, u64, u32, u32, u16)> {
        let row = |r: &Residency| (r.page, r.pages, r.interval.0, r.until.0, r.home.0);
        homes.finish(IntervalNo(last)).iter().map(row).collect()
    }

    #[test]
    fn runs_of_pages_and_intervals_are_rows() {
        let mut homes = ObservedHomes::default();
        let settled = |pages, came_back| vec![SettledPages { pages, came_back }];
        assert_eq!(homes.set(A, 0..8, NodeId(0), IntervalNo(0)), settled(0..8, false));
        assert_eq!(homes.set(A, 4..8, NodeId(1), IntervalNo(3)), settled(4..8, false));
        assert_eq!(homes.set(A, 5..6, NodeId(0), IntervalNo(5)), settled(5..6, true), "it comes back");
        assert_eq!(
            rows(homes, 9),
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

    /// A page at a time and a run at a time come to the same.
    #[test]
    fn runs_are_worth_as_much_as_their_pages() {
        let (mut by_run, mut by_page) = (ObservedHomes::default(), ObservedHomes::default());
        let mut x = 7_u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        for i in 0..300 {
            let (first, node) = (below(40), NodeId(below(3) as u16));
            let (pages, interval) = (first..first + 1 + below(12), IntervalNo(i / 4));
            let runs = by_run.set(A, pages.clone(), node, interval);
            let single: Vec<bool> =
                pages.map(|p| by_page.set(A, p..p + 1, node, interval)[0].came_back).collect();
            let joined: Vec<bool> = runs.iter().flat_map(|s| s.pages.clone().map(|_| s.came_back)).collect();
            assert_eq!(joined, single);
        }
        let by_each_page = |homes: ObservedHomes| {
            let all = homes.finish(IntervalNo(80));
            let each = |r: &Residency| {
                let (interval, until, home) = (r.interval, r.until, r.home);
                (r.page..r.page + r.pages).map(move |p| (p, interval, until, home)).collect::<Vec<_>>()
            };
            let mut pages: Vec<_> = all.iter().flat_map(each).collect();
            pages.sort();
            pages
        };
        assert_eq!(by_each_page(by_run), by_each_page(by_page));
    }

    #[test]
    fn impossibly_many_pages_cost_a_run() {
        let mut homes = ObservedHomes::default();
        assert_eq!(homes.set(A, 1..u64::MAX, NodeId(0), IntervalNo(0)).len(), 1);
        homes.set(A, 1 << 60..1 << 61, NodeId(1), IntervalNo(u32::MAX));
        assert_eq!(rows(homes, 0).len(), 4);
    }

    #[test]
    fn runs_that_are_looked_at_too_often_are_given_up() {
        let mut homes = ObservedHomes::default();
        // Every page has been elsewhere, so that no two can be joined.
        for page in 0..512_u64 {
            let bits = (0..9).filter(|b| page >> b & 1 == 1);
            bits.for_each(|b| drop(homes.set(A, page..page + 1, NodeId(2 + b), IntervalNo(0))));
        }
        let mut sweeps = 0_u16;
        while !homes.gave_up() {
            homes.set(A, 0..512, NodeId(sweeps % 2), IntervalNo(0));
            sweeps += 1;
            assert!(sweeps < 2000);
        }
        assert!(sweeps > 100, "{sweeps}");
        assert!(homes.set(A, 0..512, NodeId(7), IntervalNo(0)).is_empty());
    }
}
