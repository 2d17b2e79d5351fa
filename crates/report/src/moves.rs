//! What moved: how much, when, from where to where, why, and whether it paid.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_dataset::tables::{GuardGroup, Iteration, Migration, MigrationCause, MigrationOutcome, Sample};
use homenode_model::{NodeId, Ns};
use serde::Serialize;

use crate::amount::{Share, per_million};
use crate::serial;
use crate::time::{RoundTime, Timeline};

/// Most routes, and most reasons, that are told apart of one object.
const MOST_KINDS: usize = 256;
/// The share of the moved pages, in millionths, after which moving counts as done.
const DONE: u64 = 950_000;

/// Pages that moved from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Route {
    /// Former home.
    #[serde(serialize_with = "serial::number")]
    pub from_node: NodeId,
    /// New home.
    #[serde(serialize_with = "serial::number")]
    pub to_node: NodeId,
    /// How many pages.
    pub pages: u64,
}

/// Pages that moved for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovesByReason {
    /// Why.
    #[serde(serialize_with = "serial::word")]
    pub cause: MigrationCause,
    /// The policy, plan or mechanism.
    pub policy: Option<String>,
    /// How many pages.
    pub pages: u64,
}

/// What moved, of one object or of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoveSummary {
    /// Pages that arrived on another node. A page that moved twice counts twice.
    pub pages: u64,
    /// How many of these moved back to a node where they had been.
    pub ping_pongs: u64,
    /// Pages whose move was refused. They are not among `pages`.
    pub refused: u64,
    /// When the first move began.
    #[serde(serialize_with = "serial::number_or_null")]
    pub first_ns: Option<Ns>,
    /// When the last move began.
    #[serde(serialize_with = "serial::number_or_null")]
    pub last_ns: Option<Ns>,
    /// What the moves cost the threads that made them. None where nobody measured it.
    #[serde(serialize_with = "serial::number_or_null")]
    pub cost_ns: Option<Ns>,
    /// From where to where, most pages first.
    pub routes: Vec<Route>,
    /// Why, most pages first.
    pub reasons: Vec<MovesByReason>,
    /// Iterations that ended before the first move.
    pub iterations_before: Option<RoundTime>,
    /// Iterations between the first move and the interval with which 95 % of the pages had moved.
    pub iterations_during: Option<RoundTime>,
    /// Iterations behind that interval.
    pub iterations_after: Option<RoundTime>,
    /// Remote share of the accesses in timed intervals before the first move.
    pub remote_before: Option<Share>,
    /// Remote share of the accesses in timed intervals behind those with 95 % of the moves.
    pub remote_after: Option<Share>,
    /// What the guard sampled.
    pub guard: Option<GuardResult>,
}

/// What the guard saw of pages that had moved, and of pages that it held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardResult {
    /// Samples of pages that had moved.
    pub moved: GuardSamples,
    /// Samples of pages that were held back for comparison.
    pub held_back: GuardSamples,
}

/// Samples of one group of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardSamples {
    /// How many.
    pub samples: u64,
    /// How many of them saw another node than the page's home.
    pub remote: u64,
}

impl GuardResult {
    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        let group = match sample.group {
            GuardGroup::Moved => &mut self.moved,
            GuardGroup::HeldBack => &mut self.held_back,
        };
        group.samples += 1;
        group.remote += u64::from(sample.remote);
    }
}

/// The stretch of intervals in which an object's pages moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveSpan {
    /// Index of the interval with the first move.
    pub first: usize,
    /// Index of the interval with which 95 % of the pages had moved.
    pub done: usize,
}

/// Moves, while the table is read.
#[derive(Clone, Debug, Default)]
pub struct Moving {
    pages: u64,
    ping_pongs: u64,
    refused: u64,
    when: Option<(Ns, Ns)>,
    cost: Option<Ns>,
    routes: BTreeMap<(NodeId, NodeId), u64>,
    reasons: BTreeMap<(MigrationCause, Option<String>), u64>,
    /// Pages by the index of the interval.
    intervals: BTreeMap<usize, u64>,
}

fn count<K: Ord>(map: &mut BTreeMap<K, u64>, key: K, pages: u64) {
    // One route or reason more than fits is not told apart; the sum of all pages still has it.
    if map.len() < MOST_KINDS || map.contains_key(&key) {
        let n = map.entry(key).or_default();
        *n = n.saturating_add(pages);
    }
}

impl Moving {
    /// Adds a run of pages.
    pub fn add(&mut self, move_: &Migration, timeline: &Timeline) {
        if let Some(cost) = move_.cost_ns {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
        if move_.outcome == MigrationOutcome::Refused {
            self.refused = self.refused.saturating_add(move_.pages);
            return;
        }
        self.pages = self.pages.saturating_add(move_.pages);
        if move_.outcome == MigrationOutcome::PingPong {
            self.ping_pongs = self.ping_pongs.saturating_add(move_.pages);
        }
        let at = move_.time_ns;
        self.when = Some(self.when.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        count(&mut self.routes, (move_.from_node, move_.to_node), move_.pages);
        count(&mut self.reasons, (move_.cause, move_.policy.clone()), move_.pages);
        let n = self.intervals.entry(timeline.position(move_.interval)).or_default();
        *n = n.saturating_add(move_.pages);
    }

    /// When the pages moved; none where none did.
    pub fn stretch(&self) -> Option<MoveSpan> {
        let (first, _) = self.intervals.first_key_value()?;
        let mut sum = 0_u64;
        let done = self.intervals.iter().find(|(_, pages)| {
            sum = sum.saturating_add(**pages);
            per_million(sum, self.pages).is_none_or(|share| share >= DONE)
        });
        Some(MoveSpan { first: *first, done: done.map_or(*first, |(at, _)| *at) })
    }

    /// What moved; none where nothing did and nothing was refused.
    pub fn finish(self, timeline: &Timeline, rounds: &[Iteration]) -> Option<MoveSummary> {
        if self.pages == 0 && self.refused == 0 {
            return None;
        }
        let mut routes: Vec<Route> = self
            .routes
            .iter()
            .map(|((from_node, to_node), pages)| Route {
                from_node: *from_node,
                to_node: *to_node,
                pages: *pages,
            })
            .collect();
        routes.sort_by_key(|r| (Reverse(r.pages), r.from_node, r.to_node));
        let mut reasons: Vec<MovesByReason> = self
            .reasons
            .iter()
            .map(|((cause, policy), pages)| MovesByReason {
                cause: *cause,
                policy: policy.clone(),
                pages: *pages,
            })
            .collect();
        // The sort is stable: reasons with as many pages stay in the order of their names.
        reasons.sort_by_key(|r| Reverse(r.pages));
        let begin = self.when.map(|(first, _)| first);
        let end = self.stretch().and_then(|s| timeline.intervals().get(s.done)).map(|i| i.end_ns);
        let times = |which: &dyn Fn(&Iteration) -> bool| RoundTime::of(rounds.iter().filter(|r| which(r)));
        let before = |r: &Iteration| begin.is_some_and(|b| r.end_ns <= b);
        let after = |r: &Iteration| end.is_some_and(|e| r.begin_ns >= e);
        let moved = begin.is_some() && end.is_some();
        Some(MoveSummary {
            pages: self.pages,
            ping_pongs: self.ping_pongs,
            refused: self.refused,
            first_ns: begin,
            last_ns: self.when.map(|(_, last)| last),
            cost_ns: self.cost,
            iterations_before: times(&before),
            iterations_during: times(&|r| moved && !before(r) && !after(r)),
            iterations_after: times(&after),
            remote_before: None,
            remote_after: None,
            guard: None,
            routes,
            reasons,
        })
    }
}
