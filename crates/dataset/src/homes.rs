//! Where pages lived and when they moved, from what a source saw of their homes.
//!
//! A source that counts accesses by page and home tells where a page was whenever it was used. In
//! between, a page is where it was last. A page that was used at one home and later at another
//! one has moved.
//!
//! # Properties
//!
//! - Memory that is freed and allocated again is other memory: no page moves from one to the other.
//! - Of several homes in one interval, [`PageInterval::order`] says which came first. Without it
//!   the homes before and after decide. Where they do not, no move within the interval is reported.
//! - A page that nobody uses any more stays where it was used last.

use homenode_model::{NodeId, ObjectId};

use crate::tables::{IntervalNo, MigrationOutcome, Residency};

/// A page as it was used in an interval, at one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageInterval {
    /// The object.
    pub object: ObjectId,
    /// The page, counted from the object's first byte.
    pub page: u64,
    /// The interval.
    pub interval: IntervalNo,
    /// When, among the homes of this page in this interval: smaller is earlier. None: not known.
    pub order: Option<u64>,
    /// The home.
    pub home: NodeId,
    /// How often it was used there.
    pub uses: u64,
    /// Number of the allocation whose memory it is.
    pub memory: u64,
    /// Whether all of this page's homes in this interval are those of one allocation.
    pub sole: bool,
}

/// A run of pages that moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedRun {
    /// The interval in which the pages were first seen at their new home.
    pub interval: IntervalNo,
    /// The object.
    pub object: ObjectId,
    /// First page.
    pub page: u64,
    /// Pages.
    pub pages: u64,
    /// Former home.
    pub from: NodeId,
    /// New home.
    pub to: NodeId,
    /// Moved, or moved back to where it had been.
    pub outcome: MigrationOutcome,
}

/// Homes of all pages, and their moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    /// Where they lived, by object and page.
    pub residency: Vec<Residency>,
    /// How they moved, by interval, object and page.
    pub moves: Vec<MovedRun>,
}

/// A page that lived somewhere for some intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stay {
    object: ObjectId,
    from: IntervalNo,
    until: IntervalNo,
    home: NodeId,
    page: u64,
}

/// A page that moved; `step` counts its moves within the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    interval: IntervalNo,
    object: ObjectId,
    step: u32,
    from: NodeId,
    to: NodeId,
    again: bool,
    page: u64,
}

impl Homes {
    /// Of what was seen, in any order. `last` is the last interval in which an allocation lives.
    pub fn of(mut seen: Vec<PageInterval>, last: impl Fn(u64) -> IntervalNo) -> Self {
        seen.sort_unstable();
        let (mut stays, mut steps) = (Vec::new(), Vec::new());
        for page in seen.chunk_by(|a, b| (a.object, a.page) == (b.object, b.page)) {
            follow(page, &last, &mut stays, &mut steps);
        }
        stays.sort_unstable();
        steps.sort_unstable();
        Self { residency: residency(&stays), moves: moves(&steps) }
    }
}

/// Where a page is.
struct At {
    home: NodeId,
    since: IntervalNo,
    memory: u64,
    before: Vec<NodeId>,
}

/// Follows one page through the intervals in which it was used.
fn follow(
    seen: &[PageInterval],
    last: &impl Fn(u64) -> IntervalNo,
    stays: &mut Vec<Stay>,
    steps: &mut Vec<Step>,
) {
    let mut now: Option<At> = None;
    let mut intervals = seen.chunk_by(|a, b| a.interval == b.interval).peekable();
    let stay = |at: &At, until: IntervalNo, of: &PageInterval| Stay {
        object: of.object,
        from: at.since,
        until,
        home: at.home,
        page: of.page,
    };
    while let Some(here) = intervals.next() {
        // The last row is that of the memory that is there at the interval's end.
        let [.., end] = here else { continue };
        let (interval, memory) = (end.interval, end.memory);
        let next = intervals.peek().and_then(|rows| alone(rows)).filter(|n| n.memory == memory);
        let former = now.as_ref().filter(|at| at.memory == memory).map(|at| at.home);
        let homes = in_order(here, former, next.map(|n| n.home));
        if let Some(at) = now.as_mut().filter(|at| at.memory != memory) {
            let until = last(at.memory).min(before(interval));
            if until == before(interval) && homes == [at.home] {
                // Other memory at the same home, without a gap: one stay.
                at.memory = memory;
                at.before.clear();
            } else {
                if at.since <= until && at.since < interval {
                    stays.push(stay(at, until, end));
                }
                now = None;
            }
        }
        let since = now.as_ref().map(|at| (at.home, at.since));
        let at =
            now.get_or_insert_with(|| At { home: homes[0], since: interval, memory, before: Vec::new() });
        for (step, home) in (0..).zip(homes) {
            if home == at.home {
                continue;
            }
            let again = at.before.contains(&home);
            let (object, page) = (end.object, end.page);
            steps.push(Step { interval, object, step, from: at.home, to: home, again, page });
            if !at.before.contains(&at.home) {
                at.before.push(at.home);
            }
            at.home = home;
        }
        if let Some((home, from)) = since
            && home != at.home
        {
            at.since = interval;
            if from < interval {
                let former = At { home, since: from, memory, before: Vec::new() };
                stays.push(stay(&former, before(interval), end));
            }
        }
    }
    if let (Some(at), Some(end)) = (now, seen.last()) {
        stays.push(stay(&at, last(at.memory).max(at.since), end));
    }
}

const fn before(interval: IntervalNo) -> IntervalNo {
    IntervalNo(interval.0.saturating_sub(1))
}

/// The only home of an interval.
fn alone(rows: &[PageInterval]) -> Option<&PageInterval> {
    rows.first().filter(|first| rows.iter().all(|r| r.home == first.home))
}

/// The homes of a page in an interval, one after the other, as far as they are known.
fn in_order(rows: &[PageInterval], before: Option<NodeId>, after: Option<NodeId>) -> Vec<NodeId> {
    if rows.iter().all(|r| r.order.is_some() && r.sole) {
        let mut homes: Vec<NodeId> = rows.iter().map(|r| r.home).collect();
        homes.dedup();
        return homes;
    }
    if let Some(last) = rows.iter().rfind(|r| r.order.is_some()) {
        // Of several allocations the last one's home is what remains.
        return vec![last.home];
    }
    let mut uses: Vec<(NodeId, u64)> = Vec::new();
    for r in rows {
        match uses.iter_mut().find(|(home, _)| *home == r.home) {
            Some((_, n)) => *n = n.saturating_add(r.uses),
            None => uses.push((r.home, r.uses)),
        }
    }
    match (&uses[..], before, after) {
        ([(a, _), (b, _)], Some(first), _) if [*a, *b].contains(&first) => {
            vec![first, if *a == first { *b } else { *a }]
        }
        ([(a, _), (b, _)], _, Some(last)) if [*a, *b].contains(&last) => {
            vec![if *a == last { *b } else { *a }, last]
        }
        // The most used one; of equals that with the smaller number.
        _ => {
            let most = uses.iter().max_by_key(|(home, n)| (*n, std::cmp::Reverse(*home)));
            most.map(|(home, _)| *home).into_iter().collect()
        }
    }
}

/// Joins neighbouring pages that stayed alike.
fn residency(stays: &[Stay]) -> Vec<Residency> {
    let alike = |a: &Stay, b: &Stay| {
        (a.object, a.from, a.until, a.home) == (b.object, b.from, b.until, b.home)
            && a.page.checked_add(1) == Some(b.page)
    };
    let run = |run: &[Stay]| Residency {
        object: Some(run[0].object),
        page: run[0].page,
        pages: run.len() as u64,
        interval: run[0].from,
        until: run[0].until,
        home: run[0].home,
    };
    let mut all: Vec<Residency> = stays.chunk_by(alike).map(run).collect();
    all.sort_by_key(|r| (r.object, r.page, r.interval));
    all
}

/// Joins neighbouring pages that moved alike.
fn moves(steps: &[Step]) -> Vec<MovedRun> {
    let alike = |a: &Step, b: &Step| {
        let what = |s: &Step| (s.interval, s.object, s.step, s.from, s.to, s.again);
        what(a) == what(b) && a.page.checked_add(1) == Some(b.page)
    };
    let run = |run: &[Step]| MovedRun {
        interval: run[0].interval,
        object: run[0].object,
        page: run[0].page,
        pages: run.len() as u64,
        from: run[0].from,
        to: run[0].to,
        outcome: if run[0].again { MigrationOutcome::PingPong } else { MigrationOutcome::Moved },
    };
    steps.chunk_by(alike).map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: IntervalNo = IntervalNo(9);

    fn seen(page: u64, interval: u32, order: u64, home: u16) -> PageInterval {
        PageInterval {
            object: ObjectId(3),
            page,
            interval: IntervalNo(interval),
            order: Some(order),
            home: NodeId(home),
            uses: 1,
            memory: 0,
            sole: true,
        }
    }

    fn stays(homes: &Homes) -> Vec<(u64, u64, u32, u32, u16)> {
        let of = |r: &Residency| (r.page, r.pages, r.interval.0, r.until.0, r.home.0);
        homes.residency.iter().map(of).collect()
    }

    fn moved(homes: &Homes) -> Vec<(u32, u64, u64, u16, u16, MigrationOutcome)> {
        let of = |m: &MovedRun| (m.interval.0, m.page, m.pages, m.from.0, m.to.0, m.outcome);
        homes.moves.iter().map(of).collect()
    }

    use MigrationOutcome::{Moved, PingPong};

    #[test]
    fn neighbours_that_move_together_are_one_run() {
        // Pages 0 to 3 are at node 0; 1 and 2 are seen at node 1 in interval 4 and stay there.
        let mut all: Vec<PageInterval> = (0..4).map(|page| seen(page, 0, 0, 0)).collect();
        all.extend([seen(2, 4, 0, 1), seen(1, 4, 0, 1), seen(1, 6, 0, 1)]);
        let homes = Homes::of(all, |_| LAST);
        assert_eq!(moved(&homes), [(4, 1, 2, 0, 1, Moved)]);
        assert_eq!(stays(&homes), [(0, 1, 0, 9, 0), (1, 2, 0, 3, 0), (1, 2, 4, 9, 1), (3, 1, 0, 9, 0)]);
    }

    #[test]
    fn homes_of_one_interval_follow_their_order() {
        let all = vec![seen(0, 2, 30, 0), seen(0, 2, 10, 0), seen(0, 2, 20, 1)];
        let homes = Homes::of(all, |_| LAST);
        assert_eq!(moved(&homes), [(2, 0, 1, 0, 1, Moved), (2, 0, 1, 1, 0, PingPong)]);
        assert_eq!(stays(&homes), [(0, 1, 2, 9, 0)]);
    }

    #[test]
    fn without_an_order_the_neighbouring_intervals_decide_or_nobody() {
        let unknown = |interval, home, uses| PageInterval { order: None, uses, ..seen(0, interval, 0, home) };
        let homes = Homes::of(vec![unknown(0, 0, 1), unknown(0, 1, 9), unknown(1, 0, 1)], |_| LAST);
        assert_eq!(moved(&homes), [(0, 0, 1, 1, 0, Moved)], "it is at node 0 afterwards");
        let homes = Homes::of(vec![unknown(0, 1, 1), unknown(3, 0, 1), unknown(3, 1, 9)], |_| LAST);
        assert_eq!(moved(&homes), [(3, 0, 1, 1, 0, Moved)], "it was at node 1 before");
        let homes = Homes::of(vec![unknown(0, 0, 1), unknown(0, 1, 9)], |_| LAST);
        assert_eq!((moved(&homes), stays(&homes)), (vec![], vec![(0, 1, 0, 9, 1)]));
    }

    #[test]
    fn memory_that_is_allocated_anew_has_not_moved() {
        let of = |memory, s: PageInterval| PageInterval { memory, ..s };
        // The first allocation dies in interval 2, the second one is elsewhere.
        let all = vec![of(0, seen(0, 0, 0, 0)), of(1, seen(0, 5, 0, 1))];
        let last = |memory| if memory == 0 { IntervalNo(2) } else { LAST };
        let homes = Homes::of(all, last);
        assert_eq!((moved(&homes), stays(&homes)), (vec![], vec![(0, 1, 0, 2, 0), (0, 1, 5, 9, 1)]));
        // At the same home without a gap they are one stay.
        let all = vec![of(0, seen(0, 0, 0, 1)), of(1, seen(0, 3, 0, 1)), of(1, seen(0, 6, 0, 0))];
        let homes = Homes::of(all, last);
        assert_eq!(stays(&homes), [(0, 1, 0, 5, 1), (0, 1, 6, 9, 0)]);
        assert_eq!(moved(&homes), [(6, 0, 1, 1, 0, Moved)]);
        // Both in one interval: the rows cannot be told apart, and the last home remains.
        let both = |order, home| PageInterval { sole: false, memory: 1, ..seen(0, 0, order, home) };
        let homes = Homes::of(vec![both(0, 0), both(1, 2)], |_| LAST);
        assert_eq!((moved(&homes), stays(&homes)), (vec![], vec![(0, 1, 0, 9, 2)]));
    }

    #[test]
    fn a_page_at_the_end_of_all_numbers_is_no_trouble() {
        let homes = Homes::of(vec![seen(u64::MAX, u32::MAX, u64::MAX, 1), seen(0, 0, 0, 0)], |_| LAST);
        assert_eq!(homes.residency.len(), 2);
    }
}
