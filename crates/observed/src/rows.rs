//! The rows of all tables, from the streams.

use std::collections::BTreeMap;
use std::ops::Range;

use homenode_dataset::fields::Fields;
use homenode_dataset::identity::{self, Slots};
use homenode_dataset::tables::{
    Access, FirstTouch, GuardGroup, Interval, IntervalNo, Iteration, IterationSource, Link, Migration,
    MigrationCause, MigrationOutcome, Node, Object, ObjectKind, OwnCost, Region, RegionKind, RegionNo,
    RegionTime, Sample, ThreadStay,
};
use homenode_dataset::{DatasetError, RowSink, SeenCount};
use homenode_log::recording::FieldRecord;
use homenode_model::{Bytes, MoveResult, NodeId, Ns, ObjectId, ThreadId};
use homenode_symbols::Variable;
use homenode_wire::facts::Origin;
use homenode_wire::live::{self, LiveRecord, ObjectNo, Pages};

use crate::firsts::{ObjectFirstTouches, ObjectToucher};
use crate::homes::ObservedHomes;
use crate::names::ObservedNames;
use crate::stream::{StreamState, records};
use crate::summary::{StreamsSummary, basis};

/// How many objects, regions, intervals and threads the processes before have.
#[derive(Clone, Debug, Default)]
pub struct RowOffsets {
    objects: u32,
    regions: u32,
    intervals: u32,
    threads: u32,
}

/// The nodes of the machine, and what lies between them.
///
/// # Errors
/// A row cannot be written.
pub fn of_machine(streams: &[StreamState], to: &mut impl RowSink) -> Result<(), DatasetError> {
    let Some(stream) = streams.first() else { return Ok(()) };
    for record in &stream.nodes {
        let LiveRecord::Node { node, memory, cpus, .. } = record else { continue };
        let cpus = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        to.push(&Node { node: *node, memory_bytes: Some(*memory), cpus })?;
    }
    for record in &stream.nodes {
        let LiveRecord::Node { node, distances, .. } = record else { continue };
        for (other, distance) in (0u16..).map(NodeId).zip(distances) {
            to.push(&Link {
                from_node: *node,
                to_node: other,
                distance: u32::try_from(*distance).ok(),
                latency_ps: None,
                bandwidth_mb_per_s: None,
            })?;
        }
    }
    Ok(())
}

/// What is known while a stream is read for its rows.
struct Process<'a, S: RowSink> {
    stream: &'a StreamState,
    to: &'a mut S,
    summary: &'a mut StreamsSummary,
    base: RowOffsets,
    /// Time of the process's start on the recording's clock.
    offset: Ns,
    names: ObservedNames,
    objects: KnownObjects,
    regions: BTreeMap<u32, Region>,
    homes: ObservedHomes,
    timeline: KnownIntervals,
    threads: u32,
    firsts: BTreeMap<ObjectId, ObjectFirstTouches>,
    policy: Option<String>,
}

/// The objects of a process.
#[derive(Default)]
struct KnownObjects {
    /// Number of objects of the processes before.
    before: u32,
    /// The slot of each object, by its number in the stream.
    slots: BTreeMap<ObjectNo, u32>,
    /// Object of the data set by number in the stream.
    numbers: BTreeMap<ObjectNo, ObjectId>,
    by_id: BTreeMap<String, ObjectId>,
    rows: Vec<Object>,
}

impl KnownObjects {
    /// The number that the next new object gets.
    fn fresh(&self) -> ObjectId {
        ObjectId(self.before.saturating_add(self.rows.len() as u32))
    }

    /// The row of an object.
    fn row(&self, object: ObjectId) -> Option<&Object> {
        self.rows.get(object.0.checked_sub(self.before)? as usize)
    }

    /// The same to change it.
    fn row_mut(&mut self, object: ObjectId) -> Option<&mut Object> {
        self.rows.get_mut(object.0.checked_sub(self.before)? as usize)
    }

    /// Whether several allocations have one row.
    fn is_shared(&self, object: ObjectId) -> bool {
        self.row(object).is_some_and(|row| row.allocations > 1)
    }
}

/// The intervals of a process.
#[derive(Default)]
struct KnownIntervals {
    /// Number of the interval that goes on.
    now: u32,
    rows: Vec<Interval>,
    /// Whether the program has iterations of an outer loop.
    has_iterations: bool,
}

impl KnownIntervals {
    /// An interval has ended.
    fn end(&mut self, number: u32, row: Interval) {
        self.rows.push(row);
        self.now = number.saturating_add(1);
    }

    /// All rows. Without iterations nothing can be left out.
    fn rows(&self) -> impl Iterator<Item = Interval> {
        self.rows.iter().map(|row| Interval { timed: row.timed || !self.has_iterations, ..row.clone() })
    }
}

/// Adds the rows of a process.
///
/// # Errors
/// A row cannot be written.
pub fn of_process(
    stream: &StreamState,
    first: Ns,
    numbers: &mut RowOffsets,
    to: &mut impl RowSink,
    summary: &mut StreamsSummary,
) -> Result<(), DatasetError> {
    let mut process = Process {
        stream,
        to,
        summary,
        base: numbers.clone(),
        offset: Ns(stream.clock.0.saturating_sub(first.0)),
        names: ObservedNames::new(&stream.modules),
        objects: KnownObjects { before: numbers.objects, ..KnownObjects::default() },
        regions: BTreeMap::new(),
        homes: ObservedHomes::default(),
        timeline: KnownIntervals::default(),
        threads: 0,
        firsts: BTreeMap::new(),
        policy: Some(stream.policy.clone()).filter(|p| !p.is_empty()),
    };
    process.number_slots();
    for record in records(&stream.path).into_iter().flatten() {
        // What is damaged was told when the stream was first read.
        let Ok(record) = record else { break };
        process.record(record)?;
    }
    process.end(numbers)
}

impl<S: RowSink> Process<'_, S> {
    fn time(&self, time: Ns) -> Ns {
        self.offset + time
    }

    fn interval(&self, n: u32) -> IntervalNo {
        IntervalNo(self.base.intervals.saturating_add(n))
    }

    /// The interval that goes on.
    fn now(&self) -> IntervalNo {
        self.interval(self.timeline.now)
    }

    fn region(&self, region: Option<live::RegionNo>) -> Option<RegionNo> {
        let region = region.filter(|r| self.regions.contains_key(&r.0))?;
        Some(RegionNo(self.base.regions.saturating_add(region.0)))
    }

    fn object(&self, number: ObjectNo) -> Option<ObjectId> {
        self.objects.numbers.get(&number).copied()
    }

    fn record(&mut self, record: LiveRecord) -> Result<(), DatasetError> {
        match record {
            LiveRecord::Interval { index, begin, end, iteration } => {
                let row = Interval {
                    interval: self.interval(index.0),
                    begin_ns: self.time(begin),
                    end_ns: self.time(end),
                    iteration: iteration.map(|i| i.0),
                    timed: iteration.is_some(),
                };
                self.timeline.end(index.0, row);
            }
            LiveRecord::Region { number, key } => self.new_region(number.0, key),
            LiveRecord::RegionTime { .. } => self.region_time(&record)?,
            LiveRecord::Iteration { .. } => self.iteration(&record)?,
            LiveRecord::Object { number, origin, address, bytes, birth, python } => {
                self.born(number, &origin, address, bytes, birth, python.as_deref());
            }
            LiveRecord::ObjectGone { number, death } => self.gone(number, death),
            LiveRecord::FirstTouch { .. } => self.first_touch(&record)?,
            LiveRecord::Migration { .. } => self.migration(&record)?,
            LiveRecord::Home { object, pages, node: Some(node), .. } => self.home(object, pages, node)?,
            LiveRecord::Sample { .. } => self.sample(&record)?,
            LiveRecord::Seen { .. } => self.seen(&record)?,
            LiveRecord::Thread { .. } => self.thread(&record)?,
            LiveRecord::Own { time, own, cpu } => {
                let (time_ns, process) = (self.time(time), self.stream.pid);
                self.to.push(&OwnCost { time_ns, process, own_ns: own, cpu_ns: cpu })?;
            }
            LiveRecord::Watched(w) => {
                self.summary.lost = self.summary.lost.max(w.lost);
                let [state, watched] = &mut self.summary.state;
                (*state, *watched) = ((*state).max(w.state.0), (*watched).max(w.watched.0));
            }
            LiveRecord::Note { text } => self.summary.notes.push(homenode_dataset::foreign::clean(&text)),
            _ => {}
        }
        Ok(())
    }

    fn region_time(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::RegionTime { interval, region, runs, time } = *record else { return Ok(()) };
        if let Some(r) = self.regions.get_mut(&region.0) {
            r.runs += u64::from(runs);
            r.time_ns += time;
        }
        let interval = self.interval(interval.0);
        let Some(region) = self.region(Some(region)) else { return Ok(()) };
        self.to.push(&RegionTime { interval, region, runs: runs.into(), time_ns: time })
    }

    fn iteration(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::Iteration { number, begin, end, told } = *record else { return Ok(()) };
        self.timeline.has_iterations = true;
        self.to.push(&Iteration {
            process: self.stream.pid,
            iteration: number.0,
            begin_ns: self.time(begin),
            end_ns: self.time(end),
            source: if told { IterationSource::Told } else { IterationSource::Found },
        })
    }

    /// The guard looked at a page.
    fn sample(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::Sample { time, object, page, held_back, node, home } = *record else { return Ok(()) };
        self.to.push(&Sample {
            time_ns: self.time(time),
            object: self.object(object),
            page: page.into(),
            group: if held_back { GuardGroup::HeldBack } else { GuardGroup::Moved },
            node,
            remote: node != home,
        })
    }

    /// Pages were seen in use.
    fn seen(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::Seen { interval, region, object, pages, node, home, kind, told } = *record else {
            return Ok(());
        };
        self.summary.seen_rows += 1;
        self.summary.sightings = self.summary.sightings.saturating_add(told.into());
        self.to.push(&Access {
            interval: self.interval(interval.0),
            region: self.region(region),
            object: self.object(object),
            page: pages.first.into(),
            pages: pages.count.into(),
            node,
            home,
            kind,
            tally: SeenCount::new(told.into(), basis(self.stream.says)),
        })
    }

    /// A thread was on a CPU for some time.
    fn thread(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::Thread { thread, cpu, node, from, to, bound } = *record else { return Ok(()) };
        self.threads = self.threads.max(thread.0.saturating_add(1));
        self.to.push(&ThreadStay {
            thread: ThreadId(self.base.threads.saturating_add(thread.0)),
            process: self.stream.pid,
            cpu: Some(cpu.0),
            node: Some(node),
            from_ns: self.time(from),
            to_ns: self.time(to),
            bound: Some(bound),
        })
    }

    fn new_region(&mut self, number: u32, key: live::RegionIdentity) {
        let place = self.names.region(key.function, key.caller).unwrap_or_default();
        let is_barrier = key.function <= 1 << 16 && key.function > 0;
        let row = Region {
            region: RegionNo(self.base.regions.saturating_add(number)),
            kind: if is_barrier { RegionKind::Barrier } else { RegionKind::Parallel },
            function: place.function.clone(),
            file: place.file.clone(),
            line: place.line,
            caller: self.names.caller(key.caller),
            build_id: self.names.build_id(if is_barrier { key.caller } else { key.function }),
            runs: 0,
            time_ns: Ns::ZERO,
        };
        self.regions.entry(number).or_insert(row);
    }

    /// Gives allocations their slots in the order of birth. The stream has objects in the order in
    /// which something happened to them.
    fn number_slots(&mut self) {
        let (mut births, mut deaths) = (BTreeMap::new(), BTreeMap::new());
        let mut sites: BTreeMap<(String, Option<String>), u32> = BTreeMap::new();
        for record in records(&self.stream.path).into_iter().flatten() {
            match record {
                Ok(LiveRecord::Object { number, origin, bytes, birth, python, .. })
                    if !origin.is_static() =>
                {
                    let named = self.names.object(&origin, bytes.0, python.as_deref());
                    let next = sites.len() as u32;
                    let site = *sites.entry((named.site, named.caller)).or_insert(next);
                    births.entry(number).or_insert((birth, site));
                }
                Ok(LiveRecord::ObjectGone { number, death }) => drop(deaths.entry(number).or_insert(death)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        // At one moment, what goes makes room for what comes.
        let gone = deaths.iter().filter(|(n, _)| births.contains_key(n)).map(|(n, time)| (*time, false, *n));
        let mut all: Vec<(Ns, bool, ObjectNo)> =
            births.iter().map(|(n, (time, _))| (*time, true, *n)).chain(gone).collect();
        all.sort_unstable();
        let mut free = Slots::default();
        for (_, is_birth, number) in all {
            let Some((_, site)) = births.get(&number) else { continue };
            if is_birth {
                self.objects.slots.insert(number, free.take(*site));
            } else if let Some(slot) = self.objects.slots.get(&number) {
                free.give_back(site, *slot);
            }
        }
    }

    fn born(
        &mut self,
        number: ObjectNo,
        origin: &Origin,
        address: u64,
        bytes: Bytes,
        birth: Ns,
        python: Option<&str>,
    ) {
        let named = self.names.object(origin, bytes.0, python);
        let is_static = origin.is_static();
        let slot = self.objects.slots.get(&number).copied().unwrap_or_default();
        let id = match is_static {
            true => named.site.clone(),
            false => identity::of_allocation(&named.site, named.caller.as_deref(), slot),
        };
        let fresh = self.objects.fresh();
        let object = *self.objects.by_id.entry(id.clone()).or_insert(fresh);
        self.objects.numbers.insert(number, object);
        let birth = (!is_static).then(|| self.time(birth));
        if object != fresh {
            if let Some(row) = self.objects.row_mut(object) {
                row.allocations += 1;
                row.bytes = row.bytes.max(bytes);
                (row.address, row.death_ns) = (address, None);
            }
            return;
        }
        let variable = named.variable.as_ref();
        let dimensions = variable.map(|v| v.extents(bytes.0)).unwrap_or_default();
        let row = Object {
            object,
            id,
            process: self.stream.pid,
            name: named.name.clone(),
            kind: if is_static { ObjectKind::Static } else { ObjectKind::Allocated },
            element_type: variable.and_then(|v| v.type_name.clone()),
            element_bytes: variable.and_then(|v| v.element_bytes),
            dimensions,
            fields: variable.map(fields).unwrap_or_default(),
            file: named.place.file.clone(),
            line: named.place.line,
            function: named.place.function.clone(),
            stack: named.stack.clone(),
            bytes,
            address,
            allocations: 1,
            birth_ns: birth,
            death_ns: None,
        };
        self.objects.rows.push(row);
    }

    fn gone(&mut self, number: ObjectNo, death: Ns) {
        let Some(object) = self.objects.numbers.remove(&number) else { return };
        let (death, now) = (self.time(death), self.now());
        self.homes.gone(object, now);
        if let Some(row) = self.objects.row_mut(object) {
            row.death_ns = Some(death);
        }
    }

    /// Pages were at `node` when they were first looked at. Where nodes are real, that is the node
    /// of who touched them first.
    fn home(&mut self, object: ObjectNo, pages: Pages, node: NodeId) -> Result<(), DatasetError> {
        let Some(object) = self.object(object) else { return Ok(()) };
        let now = self.now();
        self.homes.set(object, range(pages), node, now);
        if self.stream.pretended || self.objects.is_shared(object) {
            return Ok(());
        }
        let address = self.objects.row(object).map_or(0, |row| row.address);
        for (run, toucher) in self.firsts.entry(object).or_default().rest(range(pages), node, address) {
            self.put_first_touch(object, run, node, toucher)?;
        }
        Ok(())
    }

    /// A page fault told who touched pages first.
    fn first_touch(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::FirstTouch { object, pages, thread, node, time, pc } = *record else { return Ok(()) };
        let Some(object) = self.object(object) else { return Ok(()) };
        if let Some(thread) = thread {
            self.threads = self.threads.max(thread.0.saturating_add(1));
        }
        // A later allocation of the same place has the same number, and its pages were told.
        if self.objects.is_shared(object) {
            return Ok(());
        }
        let toucher = ObjectToucher { thread, time, pc };
        for run in self.firsts.entry(object).or_default().add(range(pages), node, toucher) {
            self.put_first_touch(object, run, node, Some(toucher))?;
        }
        Ok(())
    }

    fn put_first_touch(
        &mut self,
        object: ObjectId,
        run: Range<u64>,
        node: NodeId,
        toucher: Option<ObjectToucher>,
    ) -> Result<(), DatasetError> {
        let pc = toucher.map(|t| t.pc).filter(|pc| *pc != 0);
        let place = pc.map(|pc| self.names.place(pc)).unwrap_or_default();
        let thread = toucher.and_then(|t| t.thread);
        self.to.push(&FirstTouch {
            object,
            page: run.start,
            pages: run.end - run.start,
            thread: thread.map(|t| ThreadId(self.base.threads.saturating_add(t.0))),
            node,
            time_ns: toucher.map(|t| self.time(t.time)),
            file: place.file,
            line: place.line,
            function: place.function,
        })
    }

    fn migration(&mut self, record: &LiveRecord) -> Result<(), DatasetError> {
        let LiveRecord::Migration { time, object, pages, from, to, cause, region, cost, outcome } = *record
        else {
            return Ok(());
        };
        let refused = match outcome {
            MoveResult::Moved => false,
            MoveResult::AlreadyThere => return Ok(()),
            _ => true,
        };
        let Some(object) = self.object(object) else { return Ok(()) };
        let now = self.now();
        // A run is told as one; of its pages, some may have been there before.
        let runs = if refused {
            vec![(range(pages), MigrationOutcome::Refused)]
        } else {
            // Something else may have moved some of it meanwhile: the kernel, or the rest of a huge
            // page.
            self.homes.set(object, range(pages), from, now);
            let outcome =
                |came_back| if came_back { MigrationOutcome::PingPong } else { MigrationOutcome::Moved };
            let settled = self.homes.set(object, range(pages), to, now);
            settled.into_iter().map(|s| (s.pages, outcome(s.came_back))).collect()
        };
        for (run, outcome) in runs {
            let (page, count) = (run.start, run.end - run.start);
            self.summary.migrations += 1;
            let each = cost.map(|c| Ns(c.0 / u64::from(pages.count.max(1))).times(count));
            let row = Migration {
                time_ns: self.time(time),
                interval: now,
                object: Some(object),
                page,
                pages: count,
                from_node: from,
                to_node: to,
                cause: because(cause),
                policy: self.policy.clone(),
                region: self.region(region),
                thread: None,
                cost_ns: each,
                outcome,
            };
            self.to.push(&row)?;
        }
        Ok(())
    }

    fn end(mut self, numbers: &mut RowOffsets) -> Result<(), DatasetError> {
        let last = self.interval(self.timeline.now.saturating_sub(1));
        if self.homes.gave_up() {
            let pid = self.stream.pid;
            self.summary.unread.push(format!("the pages of process {pid} moved too often to be followed"));
        }
        for row in std::mem::take(&mut self.homes).finish(last) {
            self.to.push(&row)?;
        }
        for row in &self.objects.rows {
            self.to.push(row)?;
        }
        for region in self.regions.values().filter(|r| r.runs > 0 || r.kind == RegionKind::Parallel) {
            self.to.push(region)?;
        }
        for row in self.timeline.rows() {
            self.to.push(&row)?;
        }
        self.summary.objects += self.objects.rows.len() as u64;
        numbers.objects += self.objects.rows.len() as u32;
        numbers.regions = numbers
            .regions
            .saturating_add(self.regions.keys().next_back().map_or(0, |r| r.saturating_add(1)));
        numbers.intervals = numbers.intervals.saturating_add(self.timeline.now);
        numbers.threads = numbers.threads.saturating_add(self.threads);
        Ok(())
    }
}

/// The pages of a record.
fn range(pages: Pages) -> Range<u64> {
    pages.first.into()..u64::from(pages.first) + u64::from(pages.count)
}

const fn because(cause: live::MoveOrigin) -> MigrationCause {
    match cause {
        live::MoveOrigin::NextTouch => MigrationCause::NextTouch,
        live::MoveOrigin::Policy => MigrationCause::Policy,
        live::MoveOrigin::Plan => MigrationCause::Plan,
        live::MoveOrigin::Undo => MigrationCause::Undo,
        live::MoveOrigin::Kernel => MigrationCause::Kernel,
        live::MoveOrigin::Program => MigrationCause::Program,
    }
}

/// The fields of a variable's elements.
fn fields(variable: &Variable) -> Fields {
    Fields::of(variable.element_fields().into_iter().map(FieldRecord::into_parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: u32, allocations: u64) -> Object {
        Object {
            object: ObjectId(number),
            id: String::new(),
            process: 1,
            name: String::new(),
            kind: ObjectKind::Allocated,
            element_type: None,
            element_bytes: None,
            dimensions: Vec::new(),
            fields: Fields::default(),
            file: None,
            line: None,
            function: None,
            stack: Vec::new(),
            bytes: Bytes(4096),
            address: 0x1000,
            allocations,
            birth_ns: None,
            death_ns: None,
        }
    }

    #[test]
    fn objects_are_numbered_behind_those_of_the_processes_before() {
        let mut objects = KnownObjects { before: 7, ..KnownObjects::default() };
        for allocations in [1, 3] {
            let number = objects.fresh();
            objects.rows.push(object(number.0, allocations));
        }
        assert_eq!(objects.fresh(), ObjectId(9));
        assert_eq!(objects.row(ObjectId(8)).map(|row| row.object), Some(ObjectId(8)));
        assert!(!objects.is_shared(ObjectId(7)) && objects.is_shared(ObjectId(8)));
        if let Some(row) = objects.row_mut(ObjectId(7)) {
            row.allocations += 1;
        }
        assert!(objects.is_shared(ObjectId(7)));
        for other in [0, 6, 9] {
            assert!(objects.row(ObjectId(other)).is_none(), "{other} is of another process, or of none");
        }
    }

    #[test]
    fn without_iterations_all_intervals_are_timed() {
        let row = |number: u32, timed| Interval {
            interval: IntervalNo(number),
            begin_ns: Ns(0),
            end_ns: Ns(1),
            iteration: None,
            timed,
        };
        let mut intervals = KnownIntervals::default();
        intervals.end(0, row(0, false));
        intervals.end(4, row(4, true));
        assert_eq!(intervals.now, 5);
        let timed = |known: &KnownIntervals| known.rows().map(|row| row.timed).collect::<Vec<_>>();
        assert_eq!(timed(&intervals), [true, true]);
        intervals.has_iterations = true;
        assert_eq!(timed(&intervals), [false, true]);
    }
}
