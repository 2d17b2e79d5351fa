//! What a fix brings: the recording simulated again with the placement that the fix means.

use std::num::NonZeroU32;
use std::sync::Arc;

use homenode_model::{Matrix, MbPerS, NodeId, ObjectId, PageNo, Placement, Ps, Topology};
use homenode_sim::memory::{MemoryOptions, Outcome, Percent};
use homenode_sim::run::Job;
use homenode_simulated::places::ObjectMap;

use crate::explanation::{Effect, EffectBasis, change};

/// A finding is left out if its first fix saves less than this percentage of the time.
pub const LEAST: f64 = 3.0;
/// The job of today: first touch.
pub const TODAY: &str = "first-touch";

/// The job on a processor that waits for each access, and on one that hides three quarters of the
/// latency of sequential ones: no single number fits all programs, so that an effect has a range.
pub fn variants(job: &Job) -> [Job; 2] {
    let options = &job.options;
    let blocking = MemoryOptions { outstanding: NonZeroU32::new(1), ..options.clone() };
    let prefetching = MemoryOptions { coverage: Percent::new(75).unwrap_or_default(), ..options.clone() };
    [Job { options: blocking, ..job.clone() }, Job { options: prefetching, ..job.clone() }]
}

/// The job with pages put where `plan` says, and all others where they are touched first.
pub fn planned(today: &Job, plan: Placement) -> Job {
    let options = MemoryOptions { plan: Some(Arc::new(plan)), ..today.options.clone() };
    Job { policy: "plan".into(), options, ..today.clone() }
}

/// The job under another policy.
pub fn under(today: &Job, policy: impl Into<String>) -> Job {
    Job { policy: policy.into(), ..today.clone() }
}

/// The job on a machine whose accesses are all as fast as local ones, with pages dealt to all
/// memories.
pub fn all_local(today: &Job) -> Job {
    let machine = today.machine.as_ref();
    let nodes = machine.nodes.len();
    let nearest = |node: usize| {
        let all = machine.nodes_with_memory().into_iter().map(|m| machine.latency.at(NodeId(node as u16), m));
        all.min().unwrap_or_default()
    };
    let mut local = Topology {
        latency: Matrix::from_fn(nodes, |node, _| nearest(node)),
        link: Matrix::from_fn(nodes, |_, _| MbPerS(0)),
        ..machine.clone()
    };
    local.nodes.iter_mut().for_each(|n| n.port = MbPerS(0));
    Job { machine: Arc::new(local), ..under(today, "round-robin") }
}

/// Pages of the objects in the timed part, each with its home.
pub(crate) fn pages<'a>(
    outcome: &'a Outcome,
    places: &'a ObjectMap<'_>,
    objects: &'a [ObjectId],
) -> impl Iterator<Item = (PageNo, &'a [[u32; 2]])> {
    let of = |page: PageNo| places.page(page.0).object;
    outcome.histogram.rows().filter(move |(page, _)| of(*page).is_some_and(|o| objects.contains(&o)))
}

/// The latency of a page's accesses at a home.
pub(crate) fn waits(machine: &Topology, row: &[[u32; 2]], home: NodeId) -> Ps {
    let nodes = (0u16..).map(NodeId).zip(row);
    nodes.map(|(node, [r, w])| machine.latency.at(node, home).ps().times(u64::from(*r) + u64::from(*w))).sum()
}

/// Each page of the objects where its users wait least for it.
pub fn best(
    machine: &Topology,
    outcome: &Outcome,
    places: &ObjectMap<'_>,
    objects: &[ObjectId],
) -> Placement {
    let homes = machine.nodes_with_memory();
    let mut plan = Placement::new();
    for (page, row) in pages(outcome, places, objects) {
        if let Some(home) = homes.iter().min_by_key(|h| (waits(machine, row, **h), **h)) {
            plan.set(page, *home);
        }
    }
    plan
}

/// The pages of the objects in turns.
pub fn dealt(
    machine: &Topology,
    outcome: &Outcome,
    places: &ObjectMap<'_>,
    objects: &[ObjectId],
) -> Placement {
    let homes = machine.nodes_with_memory();
    let mut plan = Placement::new();
    for ((page, _), home) in pages(outcome, places, objects).zip(homes.iter().cycle()) {
        plan.set(page, *home);
    }
    plan
}

/// Time of the rounds that count. `more`: rounds that were not simulated; each takes as long as the
/// last two did on average.
pub fn time(outcome: &Outcome, more: u64) -> u64 {
    let rounds = outcome.iterations();
    let last = &rounds[rounds.len().saturating_sub(2)..];
    let each = last.iter().map(|t| t.0).sum::<u64>() / last.len().max(1) as u64;
    Ps(outcome.timed.0.saturating_add(each.saturating_mul(more))).ns().0
}

/// Remote accesses of the timed part in percent.
pub fn remote(outcome: &Outcome) -> f64 {
    let (local, remote) = outcome.timed_counts.total();
    let all = local + remote;
    if all == 0 { 0.0 } else { remote as f64 / all as f64 * 100.0 }
}

/// What came of a fix and of today's program, each simulated as it is and, where there is time, in
/// the ways of [`variants`]. A way that failed is left out; `None`: the first one failed. `more` as
/// in [`time`].
pub fn effect(
    basis: EffectBasis,
    today: &[Option<&Outcome>],
    fixed: &[Option<&Outcome>],
    more: u64,
) -> Option<Effect> {
    let (before, after) = ((*today.first()?)?, (*fixed.first()?)?);
    let time = |outcome: &Outcome| time(outcome, more);
    let changes: Vec<f64> = today
        .iter()
        .zip(fixed)
        .filter_map(|(before, after)| Some(change(time((*before)?), time((*after)?))))
        .collect();
    let range = (changes.len() > 1).then(|| {
        changes.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), c| (low.min(*c), high.max(*c)))
    });
    Some(Effect {
        basis,
        before_ns: time(before),
        after_ns: time(after),
        change_range: range,
        remote_before: remote(before),
        remote_after: if basis == EffectBasis::Bound { 0.0 } else { remote(after) },
    })
}
