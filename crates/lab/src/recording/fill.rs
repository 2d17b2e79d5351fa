//! The tables of a run.

use std::collections::BTreeMap;

use homenode_dataset::basis::{Basis, SeenCount};
use homenode_dataset::homes::{Homes, PageInterval};
use homenode_dataset::tables::{
    Access, Interval, IntervalNo, Iteration, IterationSource, Link, Migration, MigrationCause, Node, Object,
    ObjectKind, RegionNo, RegionTime, ThreadStay,
};
use homenode_dataset::{DatasetError, RowSink, identity, times};
use homenode_model::{AccessKind, MbPerS, NodeId, Ns, ObjectId, ThreadId};

use super::LabRun;
use super::firsts::{self, PageStore, PageTouch};
use super::owner::{self, PAGE, Presence};
use super::told::ObjectStay;
use crate::monitor::{AccessOwner, PageAccesses};
use homenode_wire::monitor::FirstStore;

/// Most rows of accesses that are written.
pub const MOST_ROWS: usize = 4 << 20;
/// Most pages of a block that are counted together.
const LARGEST_BLOCK: u64 = 512;

/// Sentences for readers of the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReaderNotes {
    /// What the numbers mean.
    pub notes: Vec<String>,
    /// What was coarsened.
    pub coarsened: Vec<String>,
    /// What is incomplete.
    pub incomplete: Vec<String>,
}

/// The program's intervals on the guest's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Timeline {
    /// Begin and end of each.
    times: Vec<(Ns, Ns)>,
    /// Whether the program told when they began.
    told: bool,
}

impl Timeline {
    fn of(run: &LabRun<'_>) -> Self {
        let begins: Vec<Ns> = run.told.iterations.iter().map(|(_, time)| *time).collect();
        let count = run.found.intervals.len().max(1);
        if count == begins.len() + 1 {
            let all = std::iter::once(Ns(0)).chain(begins.iter().copied());
            let end = run.elapsed.max(begins.last().copied().unwrap_or_default());
            let ends = begins.iter().copied().chain([end]);
            return Self { times: all.zip(ends).collect(), told: true };
        }
        let mut weights: Vec<u64> = run.found.intervals.iter().map(|i| i.alone.max(i.busy).0).collect();
        weights.resize(count, 0);
        Self { times: times::dealt(run.elapsed, &weights), told: false }
    }

    fn last(&self) -> IntervalNo {
        IntervalNo(self.times.len().saturating_sub(1) as u32)
    }

    fn begin(&self, interval: IntervalNo) -> Ns {
        self.times.get(interval.0 as usize).map_or(Ns(0), |(begin, _)| *begin)
    }

    /// The interval at a moment; `None` if the program did not mark intervals.
    fn at(&self, time: Ns) -> Option<IntervalNo> {
        let after = self.times.partition_point(|(begin, _)| *begin <= time);
        self.told.then(|| IntervalNo(after.saturating_sub(1) as u32))
    }

    /// Whether a piece lives in an interval.
    fn presence(&self, piece: &ObjectStay, interval: IntervalNo) -> Presence {
        if !self.told {
            // Nobody knows when, so any piece may.
            return if piece.from.is_some() { Presence::Part } else { Presence::Whole };
        }
        let from = piece.from.and_then(|t| self.at(t));
        let until = piece.until.and_then(|t| self.at(t));
        if from.is_some_and(|f| f > interval) || until.is_some_and(|u| u < interval) {
            return Presence::None;
        }
        if from == Some(interval) || until == Some(interval) { Presence::Part } else { Presence::Whole }
    }
}

/// Accesses of one kind by one node to a block at one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    interval: u32,
    object: u32,
    page: u64,
    node: u16,
    home: u16,
    /// Whether they are stores.
    store: bool,
    count: u64,
}

impl Row {
    fn key(&self) -> impl PartialEq + use<> {
        (self.interval, self.object, self.page, self.node, self.home, self.store)
    }
}

/// Adds up rows of equal blocks of `block` pages.
fn in_blocks(rows: &mut Vec<Row>, block: u64) {
    rows.iter_mut().for_each(|r| r.page = r.page / block * block);
    rows.sort_unstable();
    rows.dedup_by(|later, first| {
        let alike = later.key() == first.key();
        if alike {
            first.count = first.count.saturating_add(later.count);
        }
        alike
    });
}

/// Makes blocks larger until at most `most` rows are left. Returns the pages of a block.
fn coarsened(rows: &mut Vec<Row>, most: usize) -> u64 {
    let mut block = 1;
    in_blocks(rows, block);
    while rows.len() > most && block < LARGEST_BLOCK {
        block *= 2;
        in_blocks(rows, block);
    }
    block
}

impl LabRun<'_> {
    /// Writes all tables.
    ///
    /// # Errors
    /// `to` takes no more.
    pub fn fill(&self, to: &mut impl RowSink) -> Result<ReaderNotes, DatasetError> {
        let timeline = Timeline::of(self);
        let mut said = ReaderNotes::default();
        self.machine(to)?;
        self.threads(to)?;
        self.intervals(&timeline, to)?;
        self.told.regions.iter().try_for_each(|r| to.push(r))?;
        self.region_times(&timeline, to)?;
        let mut objects = self.told.objects.clone();
        let (mut rows, seen) = self.used(&timeline, &mut objects);
        objects.iter().try_for_each(|o| to.push(o))?;
        self.first_touches(&timeline, &seen, &rows, &objects, to)?;
        let block = coarsened(&mut rows, MOST_ROWS);
        if block > 1 {
            said.coarsened.push(format!("{block} pages are counted together"));
        }
        rows.iter().try_for_each(|r| to.push(&access(r, block, &objects)))?;
        drop(rows);
        self.homes(&timeline, seen, &objects, to)?;
        self.say(&timeline, &mut said);
        Ok(said)
    }

    fn machine(&self, to: &mut impl RowSink) -> Result<(), DatasetError> {
        for node in self.modelled.node_ids() {
            let own = self.machine.nodes.get(node.index());
            to.push(&Node { node, memory_bytes: own.map(|n| n.memory), cpus: own.map_or(0, |n| n.cpus) })?;
        }
        for from in self.modelled.node_ids() {
            for other in self.modelled.node_ids() {
                let distances = self.machine.distances.get(from.index());
                let distance = distances.and_then(|row| row.get(other.index()));
                let bandwidth = self.modelled.link.at(from, other);
                to.push(&Link {
                    from_node: from,
                    to_node: other,
                    distance: distance.map(|d| u32::from(*d)),
                    latency_ps: Some(self.modelled.latency.at(from, other).ps()),
                    bandwidth_mb_per_s: (bandwidth != MbPerS(0)).then_some(bandwidth.0),
                })?;
            }
        }
        Ok(())
    }

    fn threads(&self, to: &mut impl RowSink) -> Result<(), DatasetError> {
        self.told.stays.iter().try_for_each(|stay| {
            to.push(&ThreadStay {
                thread: ThreadId(stay.thread),
                process: stay.process,
                cpu: Some(stay.cpu),
                node: self.modelled.cpus.get(stay.cpu as usize).copied(),
                from_ns: stay.from,
                to_ns: stay.until,
                bound: None,
            })
        })
    }

    /// Writes intervals, and the rounds that the program marked. Rounds between the first and the
    /// last call of `hn_iteration` count.
    fn intervals(&self, timeline: &Timeline, to: &mut impl RowSink) -> Result<(), DatasetError> {
        let told = self.told.iterations.len();
        let bounded = told > 1;
        let mut calls: BTreeMap<u32, Vec<Ns>> = BTreeMap::new();
        for (process, time) in &self.told.iterations {
            calls.entry(*process).or_default().push(*time);
        }
        // The process with most rounds numbers them; among equals the one with the smallest number.
        let main = calls.values().rev().max_by_key(|c| c.len());
        let round = |begin: Ns| {
            let before = main?.partition_point(|call| *call <= begin);
            let ended = before < main?.len();
            before.checked_sub(1).filter(|_| ended).map(|n| n as u32)
        };
        for (number, (begin_ns, end_ns)) in timeline.times.iter().copied().enumerate() {
            let timed = !bounded || (1..told).contains(&number);
            to.push(&Interval {
                interval: IntervalNo(number as u32),
                begin_ns,
                end_ns,
                iteration: if timed && timeline.told { round(begin_ns) } else { None },
                timed,
            })?;
        }
        for (process, calls) in &calls {
            for (iteration, call) in (0..).zip(calls.windows(2)) {
                to.push(&Iteration {
                    process: *process,
                    iteration,
                    begin_ns: call[0],
                    end_ns: call[1],
                    source: IterationSource::Told,
                })?;
            }
        }
        Ok(())
    }

    fn region_times(&self, timeline: &Timeline, to: &mut impl RowSink) -> Result<(), DatasetError> {
        let mut all: BTreeMap<(IntervalNo, RegionNo), (u64, u64)> = BTreeMap::new();
        for (region, begin, end) in &self.told.runs {
            if let Some(interval) = timeline.at(*end) {
                let (runs, time) = all.entry((interval, *region)).or_default();
                *runs += 1;
                *time = time.saturating_add(end.0.saturating_sub(begin.0));
            }
        }
        all.into_iter().try_for_each(|((interval, region), (runs, time))| {
            to.push(&RegionTime { interval, region, runs, time_ns: Ns(time) })
        })
    }

    /// The accesses by page, and the pages' homes. Memory without an object becomes part of an
    /// object of its process.
    fn used(&self, timeline: &Timeline, objects: &mut Vec<Object>) -> (Vec<Row>, Vec<PageInterval>) {
        let found = self.found;
        let process = |page: &PageAccesses| found.processes.get(&page.process).map_or(0, |p| p.id);
        let mut own: Vec<&PageAccesses> =
            found.pages.iter().filter(|p| found.whose(p.process) == AccessOwner::Program).collect();
        own.sort_by_key(|p| p.interval);
        let mut others: BTreeMap<u32, ObjectId> = BTreeMap::new();
        let (mut rows, mut seen) = (Vec::new(), Vec::new());
        for pages in own.chunk_by(|a, b| a.interval == b.interval) {
            let interval = IntervalNo(pages[0].interval);
            let owners = owner::of(
                &self.told.pieces,
                |piece| timeline.presence(piece, interval),
                pages.iter().map(|p| (process(p), p.page.saturating_mul(PAGE))),
            );
            for page in pages {
                let place = (process(page), page.page);
                let (object, first, memory, sole) = match owners.get(&place) {
                    Some(owner) => {
                        let piece = &self.told.pieces[owner.piece];
                        (piece.object, piece.address / PAGE, owner.piece as u64, owner.sole)
                    }
                    None => (other(&mut others, objects, place.0), 0, u64::MAX, true),
                };
                let number = page.page - first;
                let mut uses = 0_u64;
                for (node, counts) in (0..).zip(&page.counts) {
                    for (store, count) in [(false, counts.loads), (true, counts.stores)] {
                        uses = uses.saturating_add(count);
                        let (object, home) = (object.0, page.home.0);
                        let row =
                            Row { interval: interval.0, object, page: number, node, home, store, count };
                        rows.extend((count > 0).then_some(row));
                    }
                }
                seen.push(PageInterval {
                    object,
                    page: number,
                    interval,
                    order: Some(u64::from(page.visit)),
                    home: page.home,
                    uses,
                    memory,
                    sole,
                });
            }
        }
        (rows, seen)
    }

    /// First stores to pages that have one object alone, by object and page.
    fn stores(&self, timeline: &Timeline) -> BTreeMap<(u32, u64), PageStore> {
        let found = self.found;
        let process = |first: &FirstStore| found.processes.get(&first.process).map_or(0, |p| p.id);
        let mut own: Vec<&FirstStore> =
            found.firsts.iter().filter(|f| found.whose(f.process) == AccessOwner::Program).collect();
        own.sort_by_key(|f| f.interval);
        let mut stores = BTreeMap::new();
        for firsts in own.chunk_by(|a, b| a.interval == b.interval) {
            let interval = firsts[0].interval;
            let owners = owner::of(
                &self.told.pieces,
                |piece| timeline.presence(piece, IntervalNo(interval)),
                firsts.iter().map(|f| (process(f), f.page.saturating_mul(PAGE))),
            );
            for first in firsts {
                let process = process(first);
                let owner = owners.get(&(process, first.page)).filter(|o| o.sole);
                let node = self.modelled.cpus.get(first.cpu as usize);
                let (Some(owner), Some(node)) = (owner, node) else { continue };
                let piece = &self.told.pieces[owner.piece];
                stores.entry((piece.object.0, first.page - piece.address / PAGE)).or_insert_with(|| {
                    PageStore {
                        interval,
                        cpu: first.cpu,
                        node: node.0,
                        place: self.told.stores.get(&(process, first.code)).cloned().unwrap_or_default(),
                    }
                });
            }
        }
        stores
    }

    fn first_touches(
        &self,
        timeline: &Timeline,
        seen: &[PageInterval],
        rows: &[Row],
        objects: &[Object],
        to: &mut impl RowSink,
    ) -> Result<(), DatasetError> {
        // A page is met at one home and then at another one. Rows tell who came.
        let visits: BTreeMap<(u32, u64, u32, u16), u64> = seen
            .iter()
            .map(|s| ((s.object.0, s.page, s.interval.0, s.home.0), s.order.unwrap_or_default()))
            .collect();
        let touch = |r: &Row| {
            let visit = visits.get(&(r.object, r.page, r.interval, r.home)).copied().unwrap_or_default();
            let Row { object, page, interval, home, node, .. } = *r;
            PageTouch { object, page, interval, visit: visit as u32, home, node }
        };
        let stays = self.told.stays.iter().filter_map(|s| {
            let node = self.modelled.cpus.get(s.cpu as usize)?.0;
            let (process, thread, cpu) = (s.process, s.thread, s.cpu);
            Some(firsts::ThreadStay { process, thread, cpu, node, from: s.from, until: s.until })
        });
        let process = |object: u32| {
            let own = objects.get(object as usize).filter(|o| o.kind != ObjectKind::Other)?;
            (own.allocations <= 1).then_some(own.process)
        };
        let times = |interval: u32| {
            let whole = (Ns(0), self.elapsed);
            if timeline.told {
                timeline.times.get(interval as usize).copied().unwrap_or(whole)
            } else {
                whole
            }
        };
        let (touches, stores) = (rows.iter().map(touch).collect(), self.stores(timeline));
        firsts::fill(touches, &stores, &stays.collect::<Vec<_>>(), process, times, to)
    }

    /// Who moves pages, as far as it can be known from outside.
    fn mover(&self) -> (MigrationCause, Option<String>) {
        let inside = |p: &crate::monitor::Process| p.name == "homenode";
        let homenode = self
            .found
            .processes
            .iter()
            .any(|(number, p)| inside(p) && self.found.whose(*number) == AccessOwner::Program);
        match (homenode, self.balancing) {
            (true, _) => (MigrationCause::Policy, None),
            (false, Some(false)) => (MigrationCause::Program, None),
            (false, _) => (MigrationCause::Kernel, Some("NUMA balancing".into())),
        }
    }

    fn homes(
        &self,
        timeline: &Timeline,
        seen: Vec<PageInterval>,
        objects: &[Object],
        to: &mut impl RowSink,
    ) -> Result<(), DatasetError> {
        let last = |memory: u64| {
            let piece = usize::try_from(memory).ok().and_then(|m| self.told.pieces.get(m));
            piece.and_then(|p| timeline.at(p.until?)).unwrap_or(timeline.last())
        };
        let homes = Homes::of(seen, last);
        homes.residency.iter().try_for_each(|r| to.push(r))?;
        let (cause, policy) = self.mover();
        let known = |o: ObjectId| objects.get(o.index()).is_some_and(|o| o.kind != ObjectKind::Other);
        for m in homes.moves.iter().filter(|m| known(m.object)) {
            to.push(&Migration {
                time_ns: timeline.begin(m.interval),
                interval: m.interval,
                object: Some(m.object),
                page: m.page,
                pages: m.pages,
                from_node: m.from,
                to_node: m.to,
                cause,
                policy: policy.clone(),
                region: None,
                thread: None,
                cost_ns: None,
                outcome: m.outcome,
            })?;
        }
        Ok(())
    }

    fn say(&self, timeline: &Timeline, said: &mut ReaderNotes) {
        let mut note = |text: &str| said.notes.push(text.into());
        note(
            "accesses are those that reached memory, by the modelled caches; the guest's clock is an emulator's",
        );
        if !timeline.told {
            note(
                "the program did not tell when intervals began: each has a share of the program's time like its share of modelled time",
            );
        }
        note(
            "a move has the time at which the interval began in which it was first seen; a page that nobody uses any more stays where it was",
        );
        note(match self.mover().0 {
            MigrationCause::Kernel => {
                "the monitor sees that pages move, not who moves them: it is taken to be the kernel"
            }
            MigrationCause::Program => {
                "the monitor sees that pages move, not who moves them: it is taken to be the program, for NUMA balancing was off"
            }
            _ => {
                "the monitor sees that pages move, not who moves them: it is taken to be homenode, which ran there"
            }
        });
        note("moves of memory that nobody told of are left out: its addresses may have been given anew");
        note(
            "a page's first toucher is the CPU of its first store; of a page without a store it is who came in the first interval, of several nodes the page's home",
        );
        let pieces = self.found.lost;
        if pieces > 0 {
            said.incomplete.push(format!("{pieces} accesses did not fit the model"));
        }
        said.coarsened.extend(self.told.bounded.iter().cloned());
    }
}

/// The object for all memory of a process that has no other object.
fn other(others: &mut BTreeMap<u32, ObjectId>, objects: &mut Vec<Object>, process: u32) -> ObjectId {
    *others.entry(process).or_insert_with(|| {
        let number = ObjectId(objects.len() as u32);
        objects.push(identity::other_memory(number, process));
        number
    })
}

fn access(row: &Row, block: u64, objects: &[Object]) -> Access {
    // The last block of an object may be shorter. Memory without an object has no end.
    let end = objects.get(row.object as usize).filter(|o| o.bytes.0 > 0).map(|o| {
        let first = o.address % PAGE;
        first.saturating_add(o.bytes.0).div_ceil(PAGE).max(1)
    });
    let left = end.map_or(block, |end| end.saturating_sub(row.page).max(1));
    Access {
        interval: IntervalNo(row.interval),
        region: None,
        object: Some(ObjectId(row.object)),
        page: row.page,
        pages: block.min(left),
        node: NodeId(row.node),
        home: NodeId(row.home),
        kind: Some(if row.store { AccessKind::Write } else { AccessKind::Read }),
        tally: SeenCount::new(row.count, Basis::Emulated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::VirtualMachine;
    use crate::monitor::{self, Cpu, CpuShare, MonitorReport, Process};
    use crate::recording::told::{CpuStay, ProcessReports};
    use homenode_dataset::tables::{FirstTouch, MigrationOutcome, Residency};
    use homenode_dataset::{Dataset, DatasetMeta, Ended, MemoryDataset, RecordingKind};
    use homenode_log::recording::SourcePlace;
    use homenode_model::{Bytes, Ps, Topology, Way};
    use homenode_wire::monitor::AccessCounts;

    fn machine() -> (VirtualMachine, Topology) {
        let like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        let machine = VirtualMachine::even(2, 1, Bytes::gib(1), 21).unwrap();
        let modelled = monitor::modelled(&machine, &like, false);
        (machine, modelled)
    }

    fn interval(modelled: u64) -> monitor::ModelledInterval {
        monitor::ModelledInterval { alone: Ps(modelled), busiest: Way::Controller(NodeId(0)), busy: Ps(0) }
    }

    fn page(interval: u32, page: u64, home: u16, visit: u32, counts: [[u64; 2]; 2]) -> PageAccesses {
        let counts = counts.map(|[loads, stores]| AccessCounts { loads, stores }).to_vec();
        let home = NodeId(home);
        PageAccesses { interval, process: 1, page, physical: 0, home, visit, counts }
    }

    /// A program of process 70, and what the kernel and an older process did.
    fn found(pages: Vec<PageAccesses>, intervals: usize) -> MonitorReport {
        let mut found = MonitorReport {
            processes: BTreeMap::from([(1, Process { id: 70, name: "app".into() })]),
            intervals: (0..intervals).map(|i| interval(1 + 2 * i as u64)).collect(),
            pages,
            ..MonitorReport::default()
        };
        let mut cpus = vec![Cpu::default(); 2];
        for p in &found.pages {
            for (node, AccessCounts { loads, stores }) in p.counts.iter().enumerate() {
                let share = cpus[node].shares.entry(p.process).or_insert(CpuShare::default());
                *(if node == p.home.index() { &mut share.local } else { &mut share.remote }) +=
                    loads + stores;
            }
        }
        found.cpus = cpus;
        found
    }

    fn object(number: u32, kind: ObjectKind, address: u64, bytes: u64) -> Object {
        Object { bytes: Bytes(bytes), address, kind, ..identity::other_memory(ObjectId(number), 70) }
    }

    fn piece(object: u32, address: u64, bytes: u64, from: Option<u64>, until: Option<u64>) -> ObjectStay {
        let (from, until) = (from.map(Ns), until.map(Ns));
        ObjectStay { process: 70, address, bytes, object: ObjectId(object), from, until }
    }

    fn filled(
        found: &MonitorReport,
        told: &ProcessReports,
        balancing: Option<bool>,
    ) -> (Dataset, ReaderNotes) {
        let (machine, modelled) = machine();
        let run = LabRun { found, told, machine: &machine, modelled: &modelled, elapsed: Ns(100), balancing };
        let mut tables = MemoryDataset::default();
        let said = run.fill(&mut tables).unwrap();
        let ended = Some(Ended { status: Some(0), signal: None, elapsed_ns: 100 });
        let meta = DatasetMeta { ended, ..DatasetMeta::new(RecordingKind::Lab, Basis::Emulated, Vec::new()) };
        (Dataset::of_memory(meta, tables), said)
    }

    /// An array of two pages at 0x10000, which page 1 leaves for node 1 in interval 1.
    fn moved() -> MonitorReport {
        found(
            vec![
                page(0, 16, 0, 0, [[5, 1], [2, 0]]),
                page(0, 17, 0, 1, [[3, 0], [4, 0]]),
                page(1, 17, 1, 3, [[0, 0], [7, 7]]),
                page(1, 17, 0, 2, [[1, 0], [0, 0]]),
                page(1, 99, 1, 4, [[1, 0], [0, 0]]),
            ],
            2,
        )
    }

    fn told() -> ProcessReports {
        ProcessReports {
            objects: vec![object(0, ObjectKind::Allocated, 0x10010, 8000)],
            pieces: vec![piece(0, 0x10010, 8000, Some(3), None)],
            iterations: vec![(70, Ns(40))],
            runs: vec![(RegionNo(0), Ns(10), Ns(20)), (RegionNo(0), Ns(30), Ns(45))],
            stays: vec![CpuStay { process: 70, thread: 0, cpu: 1, from: Ns(1), until: Ns(99) }],
            ..ProcessReports::default()
        }
    }

    #[test]
    fn all_that_the_cpus_did_is_in_the_rows() {
        let found = moved();
        let (set, _) = filled(&found, &told(), None);
        let (mut local, mut remote) = (0, 0);
        for a in set.rows::<Access>() {
            let (count, basis) = a.tally.count().unwrap().parts();
            assert_eq!(basis, Basis::Emulated);
            *(if a.node == a.home { &mut local } else { &mut remote }) += count;
        }
        let all = found.cpus.iter().fold((0, 0), |sum, cpu| {
            let share = found.of(cpu, AccessOwner::Program);
            (sum.0 + share.local, sum.1 + share.remote)
        });
        assert_eq!((local, remote), all);
        assert_eq!(all, (6 + 3 + 14 + 1, 2 + 4 + 1));
        let first = set.rows::<Access>().next().unwrap();
        assert_eq!((first.object, first.page, first.kind), (Some(ObjectId(0)), 0, Some(AccessKind::Read)));
        // Memory without a known object is one object of its process; its pages count from 0.
        let other = set.rows::<Object>().last().unwrap();
        assert_eq!((other.object, other.kind, other.process), (ObjectId(1), ObjectKind::Other, 70));
        let last = set.rows::<Access>().last().unwrap();
        assert_eq!((last.object, last.page), (Some(ObjectId(1)), 99));
    }

    #[test]
    fn who_came_in_a_pages_first_interval_touched_it_first() {
        let (set, said) = filled(&moved(), &told(), None);
        let touches: Vec<_> =
            set.rows::<FirstTouch>().map(|t| (t.object.0, t.page, t.pages, t.node.0, t.thread)).collect();
        // Both nodes came to both pages, which were on node 0; nobody knows who used memory that
        // has no known object.
        assert_eq!(touches, [(0, 0, 2, 0, None)]);
        assert!(said.notes.iter().any(|n| n.contains("first toucher")), "{said:?}");
    }

    #[test]
    fn the_first_store_of_a_page_has_a_cpu_and_a_line() {
        let mut found = moved();
        let first = |interval, page, cpu, code| FirstStore { interval, process: 1, page, cpu, code };
        // Page 99 has no known object. The kernel's own stores do not count.
        found.firsts = vec![first(0, 16, 1, 0), first(0, 17, 1, 0), first(1, 17, 0, 1), first(0, 99, 0, 0)];
        found.firsts.push(FirstStore { process: 0, ..first(0, 16, 0, 1) });
        let line = |line| SourcePlace { line: Some(line), ..SourcePlace::default() };
        let told = ProcessReports { stores: [((70, 0), line(5)), ((70, 1), line(6))].into(), ..told() };
        let (set, _) = filled(&found, &told, None);
        let touches: Vec<_> = set
            .rows::<FirstTouch>()
            .map(|t| (t.object.0, t.page, t.pages, t.node.0, t.thread.map(|t| t.0), t.line))
            .collect();
        assert_eq!(touches, [(0, 0, 2, 1, Some(0), Some(5))]);
    }

    #[test]
    fn a_page_that_moves_has_two_homes_and_a_cause() {
        let (set, said) = filled(&moved(), &told(), Some(true));
        let moves: Vec<_> = set.rows::<Migration>().collect();
        assert_eq!(moves.len(), 1);
        let m = &moves[0];
        assert_eq!((m.interval.0, m.time_ns, m.page, m.pages), (1, Ns(40), 1, 1));
        assert_eq!((m.from_node, m.to_node, m.outcome), (NodeId(0), NodeId(1), MigrationOutcome::Moved));
        assert_eq!((m.cause, m.policy.as_deref()), (MigrationCause::Kernel, Some("NUMA balancing")));
        let stays: Vec<_> = set
            .rows::<Residency>()
            .map(|r| (r.object.unwrap().0, r.page, r.interval.0, r.until.0, r.home.0))
            .collect();
        assert_eq!(stays, [(0, 0, 0, 1, 0), (0, 1, 0, 0, 0), (0, 1, 1, 1, 1), (1, 99, 1, 1, 1)]);
        assert!(said.notes.iter().any(|n| n.contains("taken to be the kernel")));
        assert_eq!(
            filled(&moved(), &told(), Some(false)).0.rows::<Migration>().next().unwrap().cause,
            MigrationCause::Program
        );
        let mut inside = moved();
        inside.processes.insert(2, Process { id: 71, name: "homenode".into() });
        assert_eq!(
            filled(&inside, &told(), None).0.rows::<Migration>().next().unwrap().cause,
            MigrationCause::Policy
        );
    }

    #[test]
    fn what_is_freed_and_allocated_anew_has_not_moved() {
        let mut told = told();
        // Freed in interval 0; another array takes its addresses in interval 1.
        told.pieces[0].until = Some(Ns(20));
        told.objects.push(object(1, ObjectKind::Allocated, 0x10010, 8000));
        told.pieces.push(piece(1, 0x10010, 8000, Some(50), None));
        let mut both = moved();
        both.pages.retain(|p| p.visit != 2);
        let (set, _) = filled(&both, &told, None);
        assert_eq!(set.rows::<Migration>().count(), 0);
        let of = |object| {
            let rows = set.rows::<Access>().filter(move |a| a.object == Some(ObjectId(object)));
            rows.map(|a| a.interval.0).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!((of(0), of(1)), ([0].into(), [1].into()));
        let until: Vec<_> = set.rows::<Residency>().map(|r| (r.object.unwrap().0, r.until.0)).collect();
        assert_eq!(until[..2], [(0, 0), (1, 1)], "it lives on to the end of its object alone");
        // Both in interval 1: which home is whose cannot be known.
        told.pieces[0].until = Some(Ns(45));
        assert_eq!(filled(&moved(), &told, None).0.rows::<Migration>().count(), 0);
    }

    #[test]
    fn times_are_those_that_the_program_told() {
        let (set, said) = filled(&moved(), &told(), None);
        let intervals: Vec<_> = set.rows::<Interval>().collect();
        let times: Vec<_> =
            intervals.iter().map(|i| (i.begin_ns.0, i.end_ns.0, i.timed, i.iteration)).collect();
        assert_eq!(times, [(0, 40, true, None), (40, 100, true, None)], "one call bounds nothing");
        let regions: Vec<_> = set.rows::<RegionTime>().map(|r| (r.interval.0, r.runs, r.time_ns.0)).collect();
        assert_eq!(regions, [(0, 1, 10), (1, 1, 15)]);
        let thread = set.rows::<ThreadStay>().next().unwrap();
        assert_eq!((thread.cpu, thread.node, thread.to_ns), (Some(1), Some(NodeId(1)), Ns(99)));
        assert!(!said.notes.iter().any(|n| n.contains("did not tell")));
        let three = ProcessReports { iterations: vec![(70, Ns(10)), (70, Ns(30)), (70, Ns(60))], ..told() };
        let (set, _) = filled(&found(Vec::new(), 4), &three, None);
        let timed: Vec<_> = set.rows::<Interval>().map(|i| (i.timed, i.iteration)).collect();
        assert_eq!(timed, [(false, None), (true, Some(0)), (true, Some(1)), (false, None)]);
        let rounds: Vec<_> =
            set.rows::<Iteration>().map(|i| (i.iteration, i.begin_ns.0, i.end_ns.0)).collect();
        assert_eq!(rounds, [(0, 10, 30), (1, 30, 60)]);
    }

    #[test]
    fn without_a_word_of_the_program_modelled_time_is_dealt_out() {
        let silent = ProcessReports { iterations: Vec::new(), ..told() };
        let (set, said) = filled(&moved(), &silent, None);
        // Modelled are 1 and 3.
        let times: Vec<_> = set.rows::<Interval>().map(|i| (i.begin_ns.0, i.end_ns.0)).collect();
        assert_eq!(times, [(0, 25), (25, 100)]);
        assert!(said.notes.iter().any(|n| n.contains("did not tell when intervals began")));
        assert_eq!(set.rows::<RegionTime>().count(), 0);
        assert_eq!(set.rows::<Migration>().count(), 1, "one allocation alone has been there");
        assert_eq!(filled(&found(Vec::new(), 0), &silent, None).0.rows::<Interval>().count(), 1);
    }

    #[test]
    fn too_many_rows_are_counted_together_and_no_access_is_lost() {
        let row =
            |page, home, count| Row { interval: 0, object: 0, page, node: 0, home, store: false, count };
        let fresh = || (0..100).map(|page| row(page, (page >= 50).into(), page)).collect::<Vec<_>>();
        let mut rows = fresh();
        assert_eq!((coarsened(&mut rows, 100), rows.len()), (1, 100));
        // Blocks of eight pages; that with pages 48 to 55 has two homes.
        let mut rows = fresh();
        assert_eq!((coarsened(&mut rows, 20), rows.len()), (8, 14));
        assert_eq!(rows.iter().map(|r| r.count).sum::<u64>(), (0..100).sum::<u64>());
        let access = access(&rows[13], 8, &[object(0, ObjectKind::Static, 8, 100 * PAGE - 100)]);
        assert_eq!((access.page, access.pages), (96, 4));
    }
}
