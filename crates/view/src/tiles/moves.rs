//! Moves: their number by interval, and the most telling ones one by one.

use std::collections::{BTreeMap, BinaryHeap};

use homenode_dataset::tables::{Migration, MigrationCause, MigrationOutcome};
use serde::Serialize;

use super::axis::Columns;
use super::nodes::RecordedNodes;

/// Most sums that are kept.
const MOST_SUMS: usize = 1 << 14;

/// The word for each number of a cause.
pub const CAUSES: [MigrationCause; 6] = [
    MigrationCause::NextTouch,
    MigrationCause::Policy,
    MigrationCause::Plan,
    MigrationCause::Undo,
    MigrationCause::Kernel,
    MigrationCause::Program,
];
/// The word for each number of an outcome.
pub const OUTCOMES: [MigrationOutcome; 3] =
    [MigrationOutcome::Moved, MigrationOutcome::PingPong, MigrationOutcome::Refused];

/// What a sum of moves is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    column: u32,
    object: Option<u32>,
    from: u32,
    to: u32,
    cause: u8,
    outcome: u8,
}

/// A move told on its own. Ordered by how telling it is: ping-pongs, then large ones, then early
/// ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    rank: u8,
    pages: u64,
    early: std::cmp::Reverse<u64>,
    row: std::cmp::Reverse<u64>,
    fields: [u64; 12],
}

/// Moves while the table is read.
#[derive(Debug)]
pub struct Gathering {
    columns: Columns,
    sums: BTreeMap<Key, (u64, u64)>,
    not_by_object: u64,
    most: usize,
    told: BinaryHeap<std::cmp::Reverse<Told>>,
    policies: Vec<String>,
    rows: u64,
}

impl Gathering {
    /// None yet; at most `most` of them are told one by one.
    pub const fn new(columns: Columns, most: usize) -> Self {
        Self {
            columns,
            sums: BTreeMap::new(),
            not_by_object: 0,
            most,
            told: BinaryHeap::new(),
            policies: Vec::new(),
            rows: 0,
        }
    }

    /// Adds a row; `at` is the position of its interval.
    pub fn add(&mut self, m: &Migration, at: usize, nodes: &RecordedNodes) {
        let row = self.rows;
        self.rows += 1;
        let cause = CAUSES.iter().position(|c| *c == m.cause).unwrap_or(0) as u8;
        let outcome = OUTCOMES.iter().position(|o| *o == m.outcome).unwrap_or(0) as u8;
        let object = m.object.map(|o| o.0);
        let (from, to) = (nodes.index(m.from_node) as u32, nodes.index(m.to_node) as u32);
        if let Some(column) = self.columns.column(at) {
            let mut key = Key { column: column as u32, object, from, to, cause, outcome };
            if self.sums.len() >= MOST_SUMS && !self.sums.contains_key(&key) {
                // No room to tell objects apart any more.
                self.not_by_object = self.not_by_object.saturating_add(m.pages);
                key.object = None;
            }
            if self.sums.len() < 2 * MOST_SUMS || self.sums.contains_key(&key) {
                let (moves, pages) = self.sums.entry(key).or_default();
                *moves += 1;
                *pages = pages.saturating_add(m.pages);
            }
        }
        let early = std::cmp::Reverse(m.time_ns.0);
        let rank = u8::from(m.outcome == MigrationOutcome::PingPong);
        let told = Told { rank, pages: m.pages, early, row: std::cmp::Reverse(row), fields: [0; 12] };
        if self.told.len() >= self.most && self.told.peek().is_none_or(|least| least.0 >= told) {
            return;
        }
        let some = |n: Option<u64>| n.map_or(0, |n| n.saturating_add(1));
        let fields = [
            m.time_ns.0,
            at as u64,
            some(object.map(u64::from)),
            m.page,
            m.pages,
            u64::from(from),
            u64::from(to),
            u64::from(cause),
            u64::from(outcome),
            some(m.region.map(|r| r.0.into())),
            some(m.cost_ns.map(|c| c.0)),
            self.policy(m.policy.as_deref()),
        ];
        self.told.push(std::cmp::Reverse(Told { fields, ..told }));
        if self.told.len() > self.most {
            self.told.pop();
        }
    }

    /// The number of a policy's name plus one; 0 for none, and for one more than fits.
    fn policy(&mut self, name: Option<&str>) -> u64 {
        let Some(name) = name else { return 0 };
        let at = self.policies.iter().position(|p| p == name);
        at.or_else(|| {
            (self.policies.len() < 64).then(|| {
                self.policies.push(name.to_owned());
                self.policies.len() - 1
            })
        })
        .map_or(0, |at| at as u64 + 1)
    }

    /// All rows were added.
    pub fn finish(self) -> RecordedMoves {
        let mut told: Vec<[u64; 12]> = self.told.into_iter().map(|t| t.0.fields).collect();
        told.sort_unstable();
        let sums = self.sums.into_iter().map(|(k, (moves, pages))| {
            let object = k.object.map_or(0, |o| u64::from(o) + 1);
            let [column, from, to] = [k.column, k.from, k.to].map(u64::from);
            [column, object, from, to, k.cause.into(), k.outcome.into(), moves, pages]
        });
        RecordedMoves {
            rows: self.rows,
            sums: sums.collect(),
            pages_not_by_object: self.not_by_object,
            told,
            policies: self.policies,
        }
    }
}

/// The moves of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordedMoves {
    /// Runs of pages that moved or were refused.
    pub rows: u64,
    /// Column, object plus one (0: nobody knows), index of the former and of the new home, cause,
    /// outcome, runs, pages.
    pub sums: Vec<[u64; 8]>,
    /// Pages whose sums do not tell the object, because there are too many.
    pub pages_not_by_object: u64,
    /// Time, position of the interval, object plus one, page, pages, index of the former and of the
    /// new home, cause, outcome, region plus one, cost plus one (0: not measured), policy plus one.
    pub told: Vec<[u64; 12]>,
    /// Names of policies.
    pub policies: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_dataset::tables::IntervalNo;
    use homenode_model::{NodeId, Ns, ObjectId};

    fn row(time: u64, pages: u64, outcome: MigrationOutcome) -> Migration {
        Migration {
            time_ns: Ns(time),
            interval: IntervalNo(0),
            object: Some(ObjectId(3)),
            page: 7,
            pages,
            from_node: NodeId(0),
            to_node: NodeId(1),
            cause: MigrationCause::NextTouch,
            policy: Some("next-touch".into()),
            region: None,
            thread: None,
            cost_ns: Some(Ns(9)),
            outcome,
        }
    }

    #[test]
    fn ping_pongs_are_told_before_larger_moves() {
        let mut all = Gathering::new(Columns::of(0, 4, 4), 2);
        let rows = [
            row(1, 100, MigrationOutcome::Moved),
            row(2, 1, MigrationOutcome::PingPong),
            row(3, 50, MigrationOutcome::Moved),
        ];
        rows.iter().for_each(|r| all.add(r, 1, &RecordedNodes::default()));
        let moves = all.finish();
        assert_eq!(moves.told.iter().map(|t| t[0]).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(moves.told[0][10..], [10, 1]);
        let pages: Vec<_> = moves.sums.iter().map(|s| (s[0], s[1], s[5], s[6], s[7])).collect();
        assert_eq!(pages, [(1, 4, 0, 2, 150), (1, 4, 1, 1, 1)]);
        assert_eq!(moves.rows, 3);
    }

    #[test]
    fn sums_stay_bounded() {
        let mut all = Gathering::new(Columns::of(0, 4, 4), 10);
        for object in 0..2 * MOST_SUMS as u32 {
            let m = Migration { object: Some(ObjectId(object)), ..row(1, 1, MigrationOutcome::Moved) };
            all.add(&m, 0, &RecordedNodes::default());
        }
        let moves = all.finish();
        assert_eq!(moves.sums.iter().map(|s| s[7]).sum::<u64>(), 2 * MOST_SUMS as u64, "no page is lost");
        assert_eq!((moves.sums.len(), moves.pages_not_by_object), (MOST_SUMS + 1, MOST_SUMS as u64));
        assert_eq!(moves.told.len(), 10);
    }
}
