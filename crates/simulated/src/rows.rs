//! The rows of each table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use homenode_dataset::fields::Fields;
use homenode_dataset::tables::{
    Access, FirstTouch, Interval, IntervalNo, Iteration, IterationSource, Link, Migration, MigrationCause,
    MigrationOutcome, Node, Object, ObjectKind, Region, RegionKind, RegionNo, RegionTime, Residency,
    ThreadStay,
};
use homenode_dataset::{
    Basis, Dataset, DatasetError, DatasetMeta, DatasetWriter, Ended, MemoryDataset, RecordingKind, RowSink,
    SeenCount, identity,
};
use homenode_log::recording::{FieldRecord, Recording, SourcePlace, Symbols};
use homenode_model::{AccessKind, Bytes, NodeId, Ns, ObjectId, Ps, ThreadId, Topology};
use homenode_order::Trace;
use homenode_order::firsts::UNIT;
use homenode_order::found;
use homenode_order::space::ObjectSource as Known;
use homenode_sim::collect::{Collected, CountCell, Move, MoveCause, NO_REGION};
use homenode_sim::memory::Outcome;

use crate::names::{Called, Names};
use crate::places::{ObjectMap, Placed};

/// The program is one process.
const PROCESS: u32 = 0;

/// A simulation of a recording, and what is known beside.
#[derive(Clone, Debug)]
pub struct Simulated<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// Its names.
    pub symbols: &'a Symbols,
    /// The machine.
    pub machine: &'a Topology,
    /// Bytes of a page.
    pub page: Bytes,
    /// The policy, as its users spell it.
    pub policy: &'a str,
    /// About the recording.
    pub trace: &'a Trace,
    /// The simulation, with what it collected.
    pub outcome: &'a Outcome,
    /// What the recording lacks ([`crate::missing()`]).
    pub incomplete: Vec<String>,
    /// What a reader should know beside that, a sentence each.
    pub notes: Vec<String>,
}

impl Simulated<'_> {
    /// What the accesses are worth.
    fn basis(&self) -> Basis {
        if self.recording.meta.kind == "emulated" { Basis::Emulated } else { Basis::Exact }
    }

    /// How the program ended, on the modelled clock.
    pub fn ended(&self) -> Ended {
        let ended = self.recording.meta.ended.as_ref();
        Ended {
            status: ended.and_then(|e| e.status),
            signal: ended.and_then(|e| e.signal),
            elapsed_ns: self.outcome.time.ns().0,
        }
    }

    /// What the data set says of itself at its start.
    pub fn meta(&self) -> DatasetMeta {
        let mut meta =
            DatasetMeta::new(RecordingKind::Simulated, self.basis(), self.recording.meta.command.clone());
        meta.environment = self.recording.meta.environment.clone();
        if let Some(member) = &self.recording.meta.rank {
            (meta.host, meta.job) = (member.host.clone(), member.job.clone());
            meta.rank = Some(member.rank);
        }
        meta.machine.clone_from(&self.machine.name);
        meta.policy = Some(self.policy.to_owned());
        meta.source = format!("recorded accesses ({}) and modelled caches", self.recording.meta.kind);
        meta.page_bytes = self.page.0;
        meta.notes.clone_from(&self.notes);
        meta.notes.extend(self.iterations());
        if self.outcome.replicated > 0 {
            meta.notes.push(format!(
                "{} copies of pages were made, {} went: an access that a copy served has the copy's node as its home",
                self.outcome.replicated, self.outcome.collapsed
            ));
        }
        if let Some(collected) = &self.outcome.collected {
            meta.coarsened = coarsened(collected);
            let lost = collected.coarsened.lost_moves;
            if lost > 0 {
                meta.incomplete.push(format!("{lost} moves of pages are not listed: there were too many"));
            }
        }
        meta.incomplete.extend(self.incomplete.iter().cloned());
        meta
    }

    /// How the iterations are known, in words.
    fn iterations(&self) -> Option<String> {
        let rounds = self.outcome.marks.len().saturating_sub(1);
        let number = if rounds == 1 { "1 iteration".to_owned() } else { format!("{rounds} iterations") };
        self.trace.iterations.map(|source| format!("{number} {}", source.as_str()))
    }

    /// The data set in memory.
    ///
    /// # Errors
    /// None that memory has; the sink's type says so.
    pub fn dataset(&self) -> Result<Dataset, DatasetError> {
        let mut tables = MemoryDataset::default();
        self.fill(&mut tables)?;
        Ok(Dataset::of_memory(DatasetMeta { ended: Some(self.ended()), ..self.meta() }, tables))
    }

    /// Writes the data set to a new folder.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&self, path: &Path) -> Result<PathBuf, DatasetError> {
        let mut writer = DatasetWriter::create(path, self.meta())?;
        self.fill(&mut writer)?;
        writer.finish(self.ended())
    }

    /// Fills all tables. Without [`Outcome::collected`] those that need it stay empty.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn fill(&self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        let names = Names::new(self.recording, self.symbols);
        self.nodes(sink)?;
        self.threads(sink)?;
        self.regions(sink, &names)?;
        self.rounds(sink)?;
        let Some(collected) = &self.outcome.collected else { return Ok(()) };
        let places = ObjectMap::new(&collected.extents, self.trace, self.page);
        self.objects(sink, &names, collected)?;
        self.first_touches(sink, &names, collected, &places)?;
        intervals(sink, collected)?;
        self.accesses(sink, collected, &places)?;
        residency(sink, collected, &places)?;
        self.migrations(sink, collected, &places)
    }

    fn nodes(&self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        let machine = self.machine;
        for (node, it) in (0u16..).map(NodeId).zip(&machine.nodes) {
            let cpus = machine.cpus_of(node).count() as u32;
            sink.push(&Node { node, memory_bytes: Some(it.memory), cpus })?;
        }
        for from_node in machine.node_ids() {
            for to_node in machine.node_ids() {
                let limit = machine.link.at(from_node, to_node).0;
                sink.push(&Link {
                    from_node,
                    to_node,
                    distance: None,
                    latency_ps: Some(machine.latency.at(from_node, to_node).ps()),
                    bandwidth_mb_per_s: (from_node != to_node && limit > 0).then_some(limit),
                })?;
            }
        }
        Ok(())
    }

    fn node_of(&self, thread: ThreadId) -> Option<NodeId> {
        self.outcome.cpus.get(thread.index()).map(|cpu| self.machine.node_of(*cpu))
    }

    fn threads(&self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        for (thread, time) in (0u32..).map(ThreadId).zip(&self.outcome.threads) {
            sink.push(&ThreadStay {
                thread,
                process: PROCESS,
                cpu: self.outcome.cpus.get(thread.index()).map(|c| c.0),
                node: self.node_of(thread),
                from_ns: Ns::ZERO,
                to_ns: time.end.ns(),
                bound: Some(true),
            })?;
        }
        Ok(())
    }

    fn regions(&self, sink: &mut impl RowSink, names: &Names<'_>) -> Result<(), DatasetError> {
        for (region, pc) in (0u32..).zip(&self.trace.region_pcs) {
            let place = names.place(*pc).cloned().unwrap_or_default();
            let ran = self.outcome.regions.iter().find(|r| r.region == region);
            sink.push(&Region {
                region: RegionNo(region),
                kind: RegionKind::Parallel,
                function: place.function,
                file: place.file,
                line: place.line,
                caller: None,
                build_id: None,
                runs: ran.map_or(0, |r| r.instances),
                time_ns: ran.map_or(Ns::ZERO, |r| r.time.ns()),
            })?;
        }
        Ok(())
    }

    fn rounds(&self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        let source = match self.trace.iterations {
            None => return Ok(()),
            Some(found::IterationOrigin::Told) => IterationSource::Told,
            Some(found::IterationOrigin::Found) => IterationSource::Found,
        };
        let marks = &self.outcome.marks;
        // One mark alone begins a round that ends with the program.
        let ends = marks.iter().skip(1).map(|m| m.at);
        let only = (marks.len() == 1).then_some(self.outcome.time);
        for (mark, end) in marks.iter().zip(ends.chain(only)) {
            sink.push(&Iteration {
                process: PROCESS,
                iteration: mark.number,
                begin_ns: mark.at.ns(),
                end_ns: end.ns(),
                source,
            })?;
        }
        Ok(())
    }

    fn objects(
        &self,
        sink: &mut impl RowSink,
        names: &Names<'_>,
        collected: &Collected,
    ) -> Result<(), DatasetError> {
        let mut first: BTreeMap<ObjectId, u64> = BTreeMap::new();
        for extent in collected.extents.all() {
            first.entry(extent.object).or_insert(extent.range.first);
        }
        for (object, it) in (0u32..).map(ObjectId).zip(&self.trace.objects) {
            let Called { id, name, place, stack, elements } = names.object(it);
            let life = collected.extents.life(object);
            let variable = matches!(it.kind, Known::Static { .. });
            sink.push(&Object {
                object,
                id,
                process: PROCESS,
                name,
                kind: if variable { ObjectKind::Static } else { ObjectKind::Allocated },
                element_type: elements.element_type,
                element_bytes: elements.element_bytes,
                dimensions: elements.extents,
                fields: Fields::of(elements.fields.into_iter().map(FieldRecord::into_parts)),
                file: place.file,
                line: place.line,
                function: place.function,
                stack,
                bytes: Bytes(it.bytes),
                address: first.get(&object).copied().unwrap_or(0),
                allocations: it.allocations,
                birth_ns: life.map(|l| l.birth.ns()),
                death_ns: life.and_then(|l| l.death).map(Ps::ns),
            })?;
        }
        let objects = self.trace.objects.len() as u32;
        for (number, (thread, range)) in (0u32..).zip(&self.trace.stacks) {
            let name = identity::of_stack(thread.0);
            sink.push(&Object {
                object: ObjectId(objects + number),
                id: name.clone(),
                process: PROCESS,
                name,
                kind: ObjectKind::Stack,
                element_type: None,
                element_bytes: None,
                dimensions: Vec::new(),
                fields: Fields::default(),
                file: None,
                line: None,
                function: None,
                stack: Vec::new(),
                bytes: Bytes(range.bytes),
                address: range.first,
                allocations: 1,
                birth_ns: None,
                death_ns: None,
            })?;
        }
        Ok(())
    }

    fn first_touches(
        &self,
        sink: &mut impl RowSink,
        names: &Names<'_>,
        collected: &Collected,
        places: &ObjectMap<'_>,
    ) -> Result<(), DatasetError> {
        let mut all: Vec<FirstTouch> = Vec::new();
        let nowhere = SourcePlace::default();
        for (page, touch) in &collected.firsts {
            let Placed { object: Some(object), page, .. } = places.page(u64::from(*page)) else { continue };
            let Some(node) = self.node_of(touch.thread) else { continue };
            // In modelled time another thread may have been first: then nobody knows its code.
            let first =
                self.trace.firsts.at(u64::from(touch.unit) * UNIT).filter(|f| f.thread == touch.thread);
            let place = first.and_then(|f| names.place(f.pc)).unwrap_or(&nowhere);
            all.push(FirstTouch {
                object,
                page,
                pages: 1,
                thread: Some(touch.thread),
                node,
                time_ns: Some(touch.at.ns()),
                file: place.file.clone(),
                line: place.line,
                function: place.function.clone(),
            });
        }
        // Of several places that an object had, the first touch of a page is the earliest.
        all.sort_by_key(|row| (row.object, row.page, row.time_ns));
        all.dedup_by(|later, first| (later.object, later.page) == (first.object, first.page));
        let goes_on = |last: &FirstTouch, next: &FirstTouch| {
            let code = |t: &FirstTouch| (t.object, t.thread, t.node, t.line);
            let same = code(last) == code(next) && last.file == next.file && last.function == next.function;
            same && last.page + last.pages == next.page
        };
        let mut run: Option<FirstTouch> = None;
        for next in all {
            match &mut run {
                Some(last) if goes_on(last, &next) => {
                    last.pages += 1;
                    last.time_ns = last.time_ns.min(next.time_ns);
                }
                _ => {
                    if let Some(whole) = run.replace(next) {
                        sink.push(&whole)?;
                    }
                }
            }
        }
        run.map_or(Ok(()), |whole| sink.push(&whole))
    }

    fn accesses(
        &self,
        sink: &mut impl RowSink,
        collected: &Collected,
        places: &ObjectMap<'_>,
    ) -> Result<(), DatasetError> {
        type Key = (Option<ObjectId>, u64, u64, u32, NodeId, NodeId, AccessKind);
        let basis = self.basis();
        let block = collected.coarsened.block;
        for (interval, it) in (0u32..).map(IntervalNo).zip(&collected.intervals) {
            let key = |c: &CountCell| -> (Key, u64) {
                let Placed { object, page, rest } = places.block(c.page, block);
                ((object, page, block.min(rest), c.region, c.node, c.home, c.kind), c.count)
            };
            let mut rows: Vec<(Key, u64)> = it.cells.all().iter().map(key).collect();
            rows.sort_unstable();
            rows.dedup_by(|next, sum| {
                let same = next.0 == sum.0;
                if same {
                    sum.1 = sum.1.saturating_add(next.1);
                }
                same
            });
            for ((object, page, pages, region, node, home, kind), count) in rows {
                sink.push(&Access {
                    interval,
                    region: (region != NO_REGION).then_some(RegionNo(region)),
                    object,
                    page,
                    pages,
                    node,
                    home,
                    kind: Some(kind),
                    tally: SeenCount::new(count, basis),
                })?;
            }
        }
        Ok(())
    }

    fn migrations(
        &self,
        sink: &mut impl RowSink,
        collected: &Collected,
        places: &ObjectMap<'_>,
    ) -> Result<(), DatasetError> {
        let planned = self.policy == "plan" || self.policy.starts_with("plan:");
        for it in collected.moves.all() {
            let cause = match it.cause {
                _ if planned => MigrationCause::Plan,
                MoveCause::NextTouch => MigrationCause::NextTouch,
                MoveCause::Policy => MigrationCause::Policy,
            };
            let interval = IntervalNo(collected.interval_of(it));
            for (placed, pages) in parts(it, places) {
                let cost = it.cost.0 / u64::from(it.pages.max(1)) * pages;
                sink.push(&Migration {
                    time_ns: it.at.ns(),
                    interval,
                    object: placed.object,
                    page: placed.page,
                    pages,
                    from_node: it.from,
                    to_node: it.to,
                    cause,
                    policy: Some(self.policy.to_owned()),
                    region: (it.region != NO_REGION).then_some(RegionNo(it.region)),
                    thread: Some(it.thread),
                    cost_ns: Some(Ps(cost).ns()),
                    outcome: if it.ping_pong { MigrationOutcome::PingPong } else { MigrationOutcome::Moved },
                })?;
            }
        }
        Ok(())
    }
}

/// A run of pages that moved, by object.
fn parts(it: &Move, places: &ObjectMap<'_>) -> Vec<(Placed, u64)> {
    let mut all: Vec<(Placed, u64)> = Vec::new();
    for page in it.page..it.page.saturating_add(it.pages) {
        let placed = places.page(u64::from(page));
        match all.last_mut() {
            Some((first, pages)) if (first.object, first.page + *pages) == (placed.object, placed.page) => {
                *pages += 1;
            }
            _ => all.push((placed, 1)),
        }
    }
    all
}

fn intervals(sink: &mut impl RowSink, collected: &Collected) -> Result<(), DatasetError> {
    for (interval, it) in (0u32..).map(IntervalNo).zip(&collected.intervals) {
        sink.push(&Interval {
            interval,
            begin_ns: it.begin.ns(),
            end_ns: it.end.ns(),
            iteration: it.iteration,
            timed: it.timed,
        })?;
        for (region, (runs, time)) in &it.regions {
            let region = RegionNo(*region);
            sink.push(&RegionTime { interval, region, runs: *runs, time_ns: time.ns() })?;
        }
    }
    Ok(())
}

fn residency(
    sink: &mut impl RowSink,
    collected: &Collected,
    places: &ObjectMap<'_>,
) -> Result<(), DatasetError> {
    // Stays come by page and time: those of one page at one home that touch each other are one.
    let mut all: Vec<(Option<ObjectId>, u32, u32, NodeId, u64)> = Vec::new();
    let mut last_page = None;
    for stay in &collected.stays {
        let Placed { object, page, .. } = places.page(u64::from(stay.page));
        match all.last_mut() {
            Some((_, _, until, home, _))
                if last_page == Some(stay.page) && *home == stay.home && *until + 1 >= stay.from =>
            {
                *until = stay.until;
            }
            _ => all.push((object, stay.from, stay.until, stay.home, page)),
        }
        last_page = Some(stay.page);
    }
    all.sort_unstable_by_key(|(object, from, until, home, page)| (*from, *object, *until, *home, *page));
    all.dedup();
    let mut run: Option<Residency> = None;
    for (object, from, until, home, page) in all {
        let (interval, until) = (IntervalNo(from), IntervalNo(until));
        match &mut run {
            Some(r)
                if (r.object, r.interval, r.until, r.home) == (object, interval, until, home)
                    && r.page + r.pages == page =>
            {
                r.pages += 1;
            }
            _ => {
                let next = Residency { object, page, pages: 1, interval, until, home };
                if let Some(whole) = run.replace(next) {
                    sink.push(&whole)?;
                }
            }
        }
    }
    run.map_or(Ok(()), |whole| sink.push(&whole))
}

/// What was coarsened, a sentence each.
fn coarsened(collected: &Collected) -> Vec<String> {
    let c = collected.coarsened;
    let mut all = Vec::new();
    if c.block > 1 {
        all.push(format!("accesses are told by blocks of {} pages", c.block));
    }
    if c.rounds > 1 {
        all.push(format!("an interval has {} iterations", c.rounds));
    }
    if c.rounds == 0 && c.intervals < homenode_sim::collect::MOST_INTERVALS {
        all.push(format!("there are at most {} intervals", c.intervals));
    }
    if c.moves {
        all.push("moves of neighbouring pages by one thread in one interval are one row".into());
    }
    all
}
