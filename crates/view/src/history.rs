//! The way of one page: who touched it first, where it lived, when and why it moved.

use homenode_dataset::Dataset;
use homenode_dataset::tables::{FirstTouch, Migration, Residency};
use homenode_model::ObjectId;
use homenode_report::time::Timeline;
use serde::Serialize;

use crate::model::FirstTouchRun;
use crate::tiles::moves::{CAUSES, OUTCOMES};
use crate::tiles::nodes::RecordedNodes;

/// Most stays and most moves that are told.
const MOST: usize = 10_000;

/// The way of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// Its first touch.
    pub touch: Option<FirstTouchRun>,
    /// Positions of the first and the last interval, and the home (index plus one).
    pub stays: Vec<[u64; 3]>,
    /// Time, index of the former and of the new home, cause, outcome, cost plus one (0: not
    /// measured).
    pub moves: Vec<[u64; 6]>,
    /// Moves beyond those that are told.
    pub more_moves: u64,
}

/// Reads the way of a page.
pub fn of(set: &Dataset, timeline: &Timeline, nodes: &RecordedNodes, object: ObjectId, page: u64) -> History {
    let holds = |first: u64, pages: u64| first <= page && page - first < pages;
    let touched = |t: &FirstTouch| t.object == object && holds(t.page, t.pages);
    let mut history = History {
        touch: set.rows::<FirstTouch>().find(touched).map(|t| FirstTouchRun::of(&t, nodes)),
        ..History::default()
    };
    for r in set.rows::<Residency>().filter(|r| r.object == Some(object) && holds(r.page, r.pages)) {
        let at = [r.interval, r.until].map(|i| timeline.position(i) as u64);
        history.stays.push([at[0], at[1], nodes.index(r.home) as u64 + 1]);
        if history.stays.len() >= MOST {
            break;
        }
    }
    history.stays.sort_unstable();
    for m in set.rows::<Migration>().filter(|m| m.object == Some(object) && holds(m.page, m.pages)) {
        if history.moves.len() >= MOST {
            history.more_moves += 1;
            continue;
        }
        let cause = CAUSES.iter().position(|c| *c == m.cause).unwrap_or(0) as u64;
        let outcome = OUTCOMES.iter().position(|o| *o == m.outcome).unwrap_or(0) as u64;
        let [from, to] = [m.from_node, m.to_node].map(|n| nodes.index(n) as u64);
        let cost = m.cost_ns.map_or(0, |c| c.0.saturating_add(1));
        history.moves.push([m.time_ns.0, from, to, cause, outcome, cost]);
    }
    history.moves.sort_unstable();
    history
}
