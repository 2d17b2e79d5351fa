//! What changed between two recordings.

use std::cmp::Reverse;

use homenode_dataset::tables::ObjectKind;
use homenode_model::{Bytes, Ns, ObjectId, Ps};
use serde::Serialize;

use crate::amount::{Amount, Share, Unit};
pub use crate::matching::Matched;
use crate::matching::pairs;
use crate::objects::{NodePages, ObjectReport};
use crate::report::RecordingReport;
use crate::serial;
use crate::summary::Summary;

/// One object in one recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Number in the recording; none for memory that nobody knows.
    #[serde(serialize_with = "serial::number_or_null")]
    pub object: Option<ObjectId>,
    /// Its id there.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// Size.
    #[serde(serialize_with = "serial::number")]
    pub bytes: Bytes,
    /// First byte.
    pub address: u64,
    /// Accesses that count.
    pub accesses: Amount,
    /// How many of them were remote.
    pub remote: Share,
    /// Latency of all accesses together.
    #[serde(rename = "memory_time_ps", serialize_with = "serial::number_or_null")]
    pub memory_time: Option<Ps>,
    /// Part of it that the best static home of each block would save.
    #[serde(rename = "avoidable_ps", serialize_with = "serial::number_or_null")]
    pub avoidable: Option<Ps>,
    /// Pages that moved.
    pub pages_moved: u64,
    /// How many of these moved back.
    pub ping_pongs: u64,
    /// Where its pages lived last.
    pub residency: Vec<NodePages>,
}

impl Side {
    fn of(o: &ObjectReport) -> Self {
        Self {
            object: o.object,
            id: o.id.clone(),
            name: o.name.clone(),
            bytes: o.bytes,
            address: o.address,
            accesses: o.accesses,
            remote: o.remote,
            memory_time: o.memory_time,
            avoidable: o.avoidable,
            pages_moved: o.moves.as_ref().map_or(0, |m| m.pages),
            ping_pongs: o.moves.as_ref().map_or(0, |m| m.ping_pongs),
            residency: o.residency.clone(),
        }
    }

    /// What stands for an object that a recording lacks.
    fn none(basis: Option<homenode_dataset::Basis>) -> Self {
        let nothing = Amount::nothing(basis);
        Self {
            object: None,
            id: String::new(),
            name: String::new(),
            bytes: Bytes(0),
            address: 0,
            accesses: nothing,
            remote: nothing.share(&nothing),
            memory_time: Some(Ps::ZERO),
            avoidable: Some(Ps::ZERO),
            pages_moved: 0,
            ping_pongs: 0,
            residency: Vec::new(),
        }
    }
}

/// After less before. A number that cannot be subtracted is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// Accesses. None where a side is presence.
    pub accesses: Option<i64>,
    /// Remote accesses. None where a side is presence.
    pub remote: Option<i64>,
    /// Remote share in millionths. None where a side has no accesses, or one side is presence and
    /// the other is not.
    pub remote_per_million: Option<i64>,
    /// Latency of all accesses. None where a side has none, or the clocks differ.
    pub memory_time_ps: Option<i64>,
    /// Pages that moved.
    pub pages_moved: i64,
}

fn less(after: u64, before: u64) -> i64 {
    let difference = i128::from(after) - i128::from(before);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

fn both<T>(after: Option<T>, before: Option<T>, number: impl Fn(T) -> u64) -> Option<i64> {
    Some(less(number(after?), number(before?)))
}

impl Delta {
    fn of(before: &Side, after: &Side) -> Self {
        let count = |side: &Side| side.accesses.count().map(|c| c.parts().0);
        let counted = count(before).is_some() && count(after).is_some();
        let alike = before.remote.of == after.remote.of;
        let share = |side: &Side| side.remote.per_million().filter(|_| alike);
        Self {
            accesses: both(count(after), count(before), |n| n),
            remote: counted.then(|| less(after.remote.part, before.remote.part)),
            remote_per_million: both(share(after), share(before), |n| n),
            memory_time_ps: both(after.memory_time, before.memory_time, |t| t.0),
            pages_moved: less(after.pages_moved, before.pages_moved),
        }
    }
}

impl Delta {
    /// Whether no number changed.
    fn is_zero(&self) -> bool {
        let Self { accesses, remote, remote_per_million, memory_time_ps, pages_moved } = *self;
        let all = [accesses, remote, remote_per_million, memory_time_ps, Some(pages_moved)];
        all.into_iter().flatten().all(|n| n == 0)
    }
}

/// An object before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectDiff {
    /// What people call it: after, or where it exists.
    pub name: String,
    /// What it is.
    #[serde(serialize_with = "serial::word")]
    pub kind: ObjectKind,
    /// How the two were found to be one. None where one recording lacks the object.
    pub matched: Option<Matched>,
    /// Before; none where that recording lacks it.
    pub before: Option<Side>,
    /// After; none where that recording lacks it.
    pub after: Option<Side>,
    /// After less before. An object that a recording lacks has no accesses there.
    pub change: Delta,
}

impl ObjectDiff {
    /// The key of the order in which changes are listed, largest first: remote accesses, else the
    /// remote share times the size.
    fn rank(&self) -> impl Ord + use<'_> {
        let sides = [&self.before, &self.after];
        let bytes = sides.into_iter().flatten().map(|s| s.bytes.0).max().unwrap_or(0);
        let share = self.change.remote_per_million.map_or(0, i64::unsigned_abs);
        let remote = self.change.remote.map_or(0, i64::unsigned_abs);
        let moved = self.change.pages_moved.unsigned_abs();
        let weight = u128::from(share) * u128::from(bytes);
        let ids = sides.map(|s| s.as_ref().map(|s| (&s.id, s.object)));
        (Reverse((remote, weight, moved, bytes)), &self.name, ids)
    }

    /// Whether accesses, homes, moves or existence changed.
    pub fn is_changed(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return true };
        !self.change.is_zero() || before.residency != after.residency || before.remote.of != after.remote.of
    }
}

/// Why numbers of the two recordings are not of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unlike {
    /// The programs or their arguments differ.
    Command,
    /// The machines differ.
    Machine,
    /// One recording counts accesses, the other has presence. Their shares are not subtracted.
    CountsAndPresence,
    /// Both count accesses, with different bases.
    Basis,
    /// One clock is the wall's, the other is modelled. Times are not subtracted.
    Clock,
    /// One recording counts timed intervals, the other everything.
    Scope,
    /// The pages have different sizes. Pages are not comparable.
    PageBytes,
}

/// What changed between two recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Whether both recordings are whole.
    pub whole: bool,
    /// The first one.
    pub before: Summary,
    /// The second one.
    pub after: Summary,
    /// What makes numbers of the two incomparable.
    pub unlike: Vec<Unlike>,
    /// Both recordings as one object each.
    pub total: Delta,
    /// Pages that moved before.
    pub pages_moved_before: u64,
    /// Pages that moved after.
    pub pages_moved_after: u64,
    /// Median time of an iteration, after less before. None where a recording has no iterations or
    /// the clocks differ.
    pub iteration_ns: Option<i64>,
    /// Objects, those that changed most first.
    pub objects: Vec<ObjectDiff>,
}

impl Diff {
    /// Compares two reports.
    pub fn of(before: &RecordingReport, after: &RecordingReport) -> Self {
        let unlike = unlike(&before.summary, &after.summary);
        let clocks = !unlike.contains(&Unlike::Clock);
        let settle = |mut change: Delta| {
            change.memory_time_ps = change.memory_time_ps.filter(|_| clocks);
            change
        };
        let pair = |(b, a, matched): (Option<usize>, Option<usize>, _)| {
            let b = b.map(|i| &before.objects[i]);
            let a = a.map(|i| &after.objects[i]);
            let any = a.or(b)?;
            let (before_side, after_side) = (b.map(Side::of), a.map(Side::of));
            let nothing = |summary: &Summary| Side::none(summary.accesses.basis());
            let change = Delta::of(
                before_side.as_ref().unwrap_or(&nothing(&before.summary)),
                after_side.as_ref().unwrap_or(&nothing(&after.summary)),
            );
            Some(ObjectDiff {
                name: any.name.clone(),
                kind: any.kind,
                matched,
                before: before_side,
                after: after_side,
                change: settle(change),
            })
        };
        let matched = pairs(&before.objects, &after.objects);
        let mut objects: Vec<ObjectDiff> = matched.into_iter().filter_map(pair).collect();
        objects.sort_by(|x, y| x.rank().cmp(&y.rank()));
        let (all_before, all_after) = (whole(before), whole(after));
        let median = |s: &Summary| s.iterations.map(|i| i.median_ns).filter(|_| clocks);
        Self {
            whole: before.summary.whole && after.summary.whole,
            total: settle(Delta::of(&all_before, &all_after)),
            pages_moved_before: all_before.pages_moved,
            pages_moved_after: all_after.pages_moved,
            iteration_ns: both(median(&after.summary), median(&before.summary), |t: Ns| t.0),
            before: before.summary.clone(),
            after: after.summary.clone(),
            unlike,
            objects,
        }
    }
}

/// The whole recording as if it were one object.
fn whole(report: &RecordingReport) -> Side {
    let s = &report.summary;
    Side {
        accesses: s.accesses,
        remote: s.remote,
        memory_time: s.memory_time,
        avoidable: s.avoidable,
        pages_moved: report.moves.as_ref().map_or(0, |m| m.pages),
        ping_pongs: report.moves.as_ref().map_or(0, |m| m.ping_pongs),
        ..Side::none(None)
    }
}

fn unlike(before: &Summary, after: &Summary) -> Vec<Unlike> {
    let units = |s: &Summary| s.accesses.units().0;
    let presence = |s: &Summary| units(s) == Unit::Sightings;
    let basis = |s: &Summary| s.accesses.basis();
    let all = [
        (before.command != after.command, Unlike::Command),
        (before.machine != after.machine || before.nodes != after.nodes, Unlike::Machine),
        (presence(before) != presence(after), Unlike::CountsAndPresence),
        (presence(before) == presence(after) && basis(before) != basis(after), Unlike::Basis),
        (before.clock != after.clock, Unlike::Clock),
        (before.scope != after.scope, Unlike::Scope),
        (before.page_bytes != after.page_bytes, Unlike::PageBytes),
    ];
    all.into_iter().filter_map(|(differs, what)| differs.then_some(what)).collect()
}
