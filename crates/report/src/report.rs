//! One pass over the tables of a data set.

use std::collections::BTreeMap;

use homenode_dataset::tables::{
    Access, FirstTouch, IntervalNo, Iteration, Migration, Object, OwnCost as OwnCostRow, Region, RegionTime,
    Residency, Sample, ThreadStay,
};
use homenode_dataset::{Dataset, TableRow};
use homenode_model::ObjectId;
use serde::Serialize;

use crate::amount::Amount;
use crate::blocks::Grain;
use crate::machine::MachineSummary;
use crate::moves::{GuardResult, MoveSummary, Moving};
use crate::objects::{Counted, Gathered, ObjectReport};
use crate::serial;
use crate::summary::{OwnCost, Scope, Summary};
use crate::time::{Iterations, Timeline};

/// What a recording tells: as a whole, by object, and of its moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingReport {
    /// The whole recording.
    pub summary: Summary,
    /// What moved; none where nothing did.
    pub moves: Option<MoveSummary>,
    /// The objects whose pages moved, most pages first; at most [`MOST_MOVED`].
    pub moved_most: Vec<Moved>,
    /// Its objects in the order of [`ObjectReport::rank`]. Memory that nobody knows is one of them
    /// where something is known of it.
    pub objects: Vec<ObjectReport>,
}

/// Most objects that a list of moved ones has.
pub const MOST_MOVED: usize = 100;

/// An object of which pages moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Number in the recording; none for memory that nobody knows.
    #[serde(serialize_with = "serial::number_or_null")]
    pub object: Option<ObjectId>,
    /// Name that is the same in every recording.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Pages that moved.
    pub pages: u64,
}

/// Objects while the tables are read. The last one is memory that nobody knows.
struct Objects {
    all: Vec<Gathered>,
    index: BTreeMap<ObjectId, usize>,
    /// The object that was asked for last: rows of one object follow each other.
    last: (Option<ObjectId>, usize),
}

impl Objects {
    fn new(rows: Vec<Object>, grain: Grain, page_bytes: u64) -> Self {
        let mut index = BTreeMap::new();
        let mut all = Vec::new();
        for object in rows {
            // Of two objects with one number the first counts.
            index.entry(object.object).or_insert_with(|| {
                all.push(Gathered::new(Some(object), grain, page_bytes));
                all.len() - 1
            });
        }
        all.push(Gathered::new(None, grain, page_bytes));
        let last = (None, all.len() - 1);
        Self { all, index, last }
    }

    /// The object; memory that nobody knows for one that is not listed.
    fn get(&mut self, object: Option<ObjectId>) -> &mut Gathered {
        if object != self.last.0 {
            let nobody = self.all.len() - 1;
            let at = object.and_then(|o| self.index.get(&o).copied()).unwrap_or(nobody);
            self.last = (object, at);
        }
        &mut self.all[self.last.1]
    }
}

/// Sums over all accesses.
#[derive(Default)]
struct Totals {
    all: Amount,
    remote: Amount,
    left_out: Amount,
}

impl RecordingReport {
    /// Reads all tables of a data set once.
    pub fn of(set: &Dataset) -> Self {
        Self::watched(set, &mut |_| {})
    }

    /// The same; now and then it calls `read` with the number of rows of accesses read so far.
    pub fn watched(set: &Dataset, read: &mut dyn FnMut(u64)) -> Self {
        let meta = set.meta();
        let machine = MachineSummary::of(set);
        let timeline = Timeline::of(set);
        let rounds: Vec<Iteration> = set.rows::<Iteration>().collect();
        let rows: Vec<Object> = set.rows::<Object>().collect();
        let grain = Grain::of(rows.iter(), meta.page_bytes, machine.nodes.len());
        let mut objects = Objects::new(rows, grain, meta.page_bytes);
        let moving = migrations(set, &timeline, &mut objects);
        let scope = if timeline.has_timed() { Scope::Timed } else { Scope::Everything };
        let totals = accesses(set, &timeline, scope, &machine, grain, &mut objects, read);
        set.rows::<Residency>().for_each(|run| objects.get(run.object).lives(&run));
        set.rows::<FirstTouch>().for_each(|touch| objects.get(Some(touch.object)).touchers.add(touch));
        let guard = samples(set, &mut objects);
        let own_cost = own_cost(set);
        let threads = threads(set);
        // What else there is may be damaged, too, and a reader has to know it.
        skim::<Region>(set);
        skim::<RegionTime>(set);

        let basis = totals.all.basis().or(totals.left_out.basis());
        let finish = |o: Gathered| o.finish(&machine, &timeline, &rounds, basis);
        let mut objects: Vec<ObjectReport> = objects.all.into_iter().map(finish).collect();
        objects.retain(|o| o.object.is_some() || o.is_used());
        objects.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let accesses = totals.all.or_nothing_of(basis);
        let sum = |of: fn(&ObjectReport) -> Option<homenode_model::Ps>| {
            let used = objects.iter().filter(|o| o.accesses.seen() > 0);
            let known: Vec<_> = used.filter_map(of).collect();
            (!known.is_empty()).then(|| known.into_iter().sum())
        };
        let moves = moving.finish(&timeline, &rounds).map(|mut moves| {
            moves.guard = guard;
            moves
        });
        let missing = set.missing();
        Self {
            summary: Summary {
                whole: missing.is_empty(),
                missing,
                kind: meta.kind,
                command: meta.command.clone(),
                machine: meta.machine.clone(),
                pretended: meta.pretended,
                nodes: machine.nodes,
                policy: meta.policy.clone(),
                source: meta.source.clone(),
                clock: meta.clock,
                page_bytes: meta.page_bytes,
                block_pages: grain.pages(),
                host: meta.host.clone(),
                job: meta.job.clone(),
                rank: meta.rank,
                ended: meta.ended.clone(),
                threads,
                scope,
                remote: accesses.share(&totals.remote),
                accesses,
                accesses_left_out: totals.left_out.or_nothing_of(basis),
                left_out: timeline.left_out(),
                iterations: Iterations::of(&rounds),
                memory_time: sum(|o| o.memory_time),
                avoidable: sum(|o| o.avoidable),
                own_cost,
                verdict: meta.verdict.clone(),
                coarsened: meta.coarsened.clone(),
                notes: meta.notes.clone(),
            },
            moves,
            moved_most: moved_most(&objects),
            objects,
        }
    }
}

fn moved_most(objects: &[ObjectReport]) -> Vec<Moved> {
    let moved = |o: &ObjectReport| {
        let pages = o.moves.as_ref().map(|m| m.pages).filter(|pages| *pages > 0)?;
        Some(Moved { object: o.object, id: o.id.clone(), name: o.name.clone(), pages })
    };
    let mut all: Vec<Moved> = objects.iter().filter_map(moved).collect();
    // The sort is stable: of equal ones the first in the order of the objects.
    all.sort_by_key(|m| std::cmp::Reverse(m.pages));
    all.truncate(MOST_MOVED);
    all
}

fn migrations(set: &Dataset, timeline: &Timeline, objects: &mut Objects) -> Moving {
    let mut all = Moving::default();
    for migration in set.rows::<Migration>() {
        all.add(&migration, timeline);
        objects.get(migration.object).moving.add(&migration, timeline);
    }
    objects.all.iter_mut().for_each(Gathered::close_moves);
    all
}

fn accesses(
    set: &Dataset,
    timeline: &Timeline,
    scope: Scope,
    machine: &MachineSummary,
    grain: Grain,
    objects: &mut Objects,
    read: &mut dyn FnMut(u64),
) -> Totals {
    let mut totals = Totals::default();
    // Rows of one interval follow each other.
    let mut interval: Option<(IntervalNo, usize, bool)> = None;
    for (row, a) in (0_u64..).zip(set.rows::<Access>()) {
        if row.is_multiple_of(1 << 16) {
            read(row);
        }
        let (_, at, counts) = match interval {
            Some(known) if known.0 == a.interval => known,
            _ => {
                let counts = scope == Scope::Everything || timeline.is_timed(a.interval);
                *interval.insert((a.interval, timeline.position(a.interval), counts))
            }
        };
        if !counts {
            totals.left_out.add(a.tally);
            continue;
        }
        totals.all.add(a.tally);
        if a.node != a.home {
            totals.remote.add(a.tally);
        }
        let counted = Counted { at, page: a.page, node: a.node, home: a.home, tally: a.tally };
        objects.get(a.object).add(&counted, grain, machine);
    }
    totals
}

fn samples(set: &Dataset, objects: &mut Objects) -> Option<GuardResult> {
    let mut all: Option<GuardResult> = None;
    for sample in set.rows::<Sample>() {
        all.get_or_insert_default().add(&sample);
        objects.get(sample.object).guard.get_or_insert_default().add(&sample);
    }
    all
}

/// The last row of each process, together.
fn own_cost(set: &Dataset) -> Option<OwnCost> {
    let mut last: BTreeMap<u32, OwnCostRow> = BTreeMap::new();
    for row in set.rows::<OwnCostRow>() {
        let known = last.entry(row.process).or_insert_with(|| row.clone());
        if row.time_ns >= known.time_ns {
            *known = row;
        }
    }
    let sum = |sum: OwnCost, row: &OwnCostRow| OwnCost {
        own_ns: sum.own_ns + row.own_ns,
        cpu_ns: sum.cpu_ns + row.cpu_ns,
    };
    (!last.is_empty()).then(|| last.values().fold(OwnCost::default(), sum))
}

fn threads(set: &Dataset) -> u64 {
    let mut all = std::collections::BTreeSet::new();
    all.extend(set.rows::<ThreadStay>().map(|stay| (stay.process, stay.thread)));
    all.len() as u64
}

/// Reads a table that no answer needs, so that the data set notes its damage.
fn skim<T: TableRow>(set: &Dataset) {
    set.rows::<T>().for_each(drop);
}
