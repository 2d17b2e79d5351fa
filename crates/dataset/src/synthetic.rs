//! Data sets of any size that stand for no program: for tests, benchmarks and the viewer.
//!
//! A solver sweeps over two grids and a sparse matrix, then exchanges halos, once in every
//! iteration. Everything follows from the [`SyntheticSpec`]: the same one gives the same bytes.
//!
//! # What is planted
//!
//! | object | what a reader must find |
//! |---|---|
//! | `grid_old` | thread 0 touches it first; it moves most, from node 0 to its users, early on |
//! | `grid_new` | its users touch it first; nothing of it moves |
//! | `matrix` | like `grid_old`, and the guard takes back its first block |
//! | `column_index` | interleaved over the nodes; nobody moves it |
//! | `halo` | contested: every node loads and stores every block in equal parts |
//! | `queue` | its first block goes to and fro between nodes 0 and 1 in every iteration; presence |
//! | `scratch_N` | small, and never accessed |
//!
//! Moving pays: iterations become shorter while fewer accesses are remote.

use homenode_model::{Bytes, NodeId, Ns, ObjectId, Ps, ThreadId};

use crate::basis::{Basis, SeenCount};
use crate::column::{Chunk, ColumnData, Texts, Values};
use crate::error::DatasetError;
use crate::fields::Fields;
use crate::file::ROWS;
use crate::meta::{DatasetMeta, Ended, RecordingKind};
use crate::schema::RowSink;
use crate::tables::{
    Access, FirstTouch, GuardGroup, Interval, IntervalNo, Iteration, IterationSource, Link, Migration,
    MigrationCause, MigrationOutcome, Node, Object, ObjectKind, OwnCost, Region, RegionKind, RegionNo,
    RegionTime, Residency, Sample, ThreadStay,
};

/// Pages of a block.
pub const BLOCK: u64 = 16;
/// Threads of a node.
const THREADS: u32 = 4;
/// Bytes of a row of `accesses` on disk, about.
const ROW_BYTES: u64 = 7;
/// Rows of `accesses` for a block and an iteration, times 8.
const ROWS_OF_BLOCK: u64 = 22;
/// Iterations in which pages still move to their users.
const MOVING: u64 = 6;

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticSpec {
    /// Rounds of the solver's outer loop, at most; at least 8.
    pub iterations: u64,
    /// Blocks of all objects that are accessed; at least 32.
    pub blocks: u64,
    /// Nodes of the machine, 2 to 64.
    pub nodes: u16,
    /// Seed of the noise.
    pub seed: u64,
    /// The rank that it says.
    pub rank: Option<u32>,
}

impl SyntheticSpec {
    /// A data set of about that size on disk.
    pub fn of_size(size: Bytes) -> Self {
        let rows = (size.0 / ROW_BYTES).max(1000);
        let iterations = ((rows as f64).powf(0.35) as u64).max(8);
        let blocks = (rows * 8 / ROWS_OF_BLOCK / iterations).max(32);
        Self { iterations, blocks, nodes: 4, seed: 1, rank: None }
    }

    /// Objects, in the order of their numbers, with their blocks.
    fn objects(&self) -> Vec<(String, u64)> {
        let share = |percent: u64| (self.blocks * percent / 100).max(1);
        let used = [
            ("grid_old", share(30)),
            ("grid_new", share(30)),
            ("matrix", share(25)),
            ("column_index", share(10)),
            ("halo", share(3)),
            ("queue", share(2)),
        ];
        let small = (0..self.small()).map(|n| (format!("scratch_{n}"), 1));
        used.into_iter().map(|(name, blocks)| (name.to_owned(), blocks)).chain(small).collect()
    }

    fn small(&self) -> u64 {
        (self.blocks / 50).clamp(4, 20_000)
    }

    /// What it says of itself.
    pub fn meta(&self) -> DatasetMeta {
        let command = vec!["synthetic".into(), format!("seed={}", self.seed)];
        let mut meta = DatasetMeta::new(RecordingKind::Synthetic, Basis::Presence, command);
        meta.basis = "sampled, one in 101; exact; presence".into();
        meta.machine = format!("synthetic-{}", self.nodes);
        meta.policy = Some("next-touch".into());
        meta.source = "a generator".into();
        meta.environment.insert("OMP_NUM_THREADS".into(), (u32::from(self.nodes) * THREADS).to_string());
        meta.rank = self.rank;
        meta.verdict = Some("moving pays".into());
        meta.notes.push("made by a generator: it stands for no program".into());
        meta
    }

    /// Fills all tables. After each iteration, `more` gets the number of iterations so far and the
    /// sink. The generator stops when `more` returns false, or after [`SyntheticSpec::iterations`].
    ///
    /// # Errors
    /// The sink cannot take a row.
    pub fn fill<S: RowSink>(
        &self,
        sink: &mut S,
        more: &mut dyn FnMut(u64, &S) -> bool,
    ) -> Result<Ended, DatasetError> {
        let mut made = Made::new(*self);
        made.machine(sink)?;
        made.program(sink)?;
        made.first_touches(sink)?;
        let mut done = 0;
        while done < self.iterations {
            made.iteration(sink, done)?;
            done += 1;
            if !more(done, sink) {
                break;
            }
        }
        Made::regions(sink, done)?;
        made.end(sink)?;
        Ok(Ended { status: Some(0), signal: None, elapsed_ns: made.now })
    }
}

/// Who uses a block of which object how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The node whose part of the object it is.
    Owner,
    /// All nodes.
    All,
    /// Node 0 and 1 in turn.
    Turns,
}

/// An object that is accessed.
struct Used {
    object: u32,
    name: &'static str,
    blocks: u64,
    of: Use,
    /// By block: its home, and the interval since which it lives there.
    homes: Vec<(u16, u32)>,
}

impl Used {
    fn owner(&self, block: u64, nodes: u16) -> u16 {
        (block * u64::from(nodes) / self.blocks) as u16
    }
}

/// The columns of `accesses`, filled without a row in between.
#[derive(Default)]
struct Columns {
    numbers: [Vec<u64>; 10],
    counted: Vec<bool>,
    sampled: Vec<bool>,
    kinds: Texts,
    basis: Texts,
}

impl Columns {
    /// Adds a row. `at`: interval, region, object; `nodes`: the accessing node and the home.
    #[inline]
    fn push(&mut self, at: [u64; 3], page: u64, nodes: [u16; 2], kind: &'static str, tally: SeenCount) {
        let ([interval, region, object], [node, home]) = (at, nodes.map(u64::from));
        let count = tally.count().map(|c| c.parts().0);
        let one_in = match tally.basis() {
            Basis::Sampled { one_in } => Some(one_in),
            _ => None,
        };
        let (counts, rates) = (count.unwrap_or(0), one_in.unwrap_or(0));
        let row = [interval, region, object, page, BLOCK, node, home, tally.seen(), counts, rates];
        for (column, value) in self.numbers.iter_mut().zip(row) {
            column.push(value);
        }
        self.counted.push(count.is_some());
        self.sampled.push(one_in.is_some());
        self.kinds.push(kind);
        self.basis.push(tally.basis().word().as_str());
    }

    fn rows(&self) -> usize {
        self.basis.len()
    }

    fn flush<S: RowSink>(&mut self, sink: &mut S) -> Result<(), DatasetError> {
        let all = std::mem::take(self);
        self.numbers.iter_mut().for_each(|c| c.reserve(ROWS));
        let some = |present: Vec<bool>| present.contains(&false).then_some(present);
        let (counted, sampled) = (some(all.counted), some(all.sampled));
        let [interval, region, object, page, pages, node, home, seen, count, one_in] =
            all.numbers.map(Values::Ints);
        let whole = [interval, region, object, page, pages, node, home, Values::Texts(all.kinds), seen];
        let mut columns: Vec<Option<ColumnData>> =
            whole.into_iter().map(|v| ColumnData::of(v, None)).collect();
        columns.push(ColumnData::of(count, counted));
        columns.push(ColumnData::of(Values::Texts(all.basis), None));
        columns.push(ColumnData::of(one_in, sampled));
        let chunk = Chunk { columns: columns.into_iter().collect::<Option<_>>().unwrap_or_default() };
        sink.push_chunk::<Access>(&chunk)
    }
}

/// A data set while it is made.
struct Made {
    spec: SyntheticSpec,
    used: Vec<Used>,
    columns: Columns,
    /// State of the noise.
    noise: u64,
    now: u64,
    interval: u32,
    remote: u64,
    accesses: u64,
}

/// Regions, by number.
const INIT: RegionNo = RegionNo(0);
const SWEEP: RegionNo = RegionNo(1);
const EXCHANGE: RegionNo = RegionNo(2);

impl Made {
    fn new(spec: SyntheticSpec) -> Self {
        let kinds = [Use::Owner, Use::Owner, Use::Owner, Use::Owner, Use::All, Use::Turns];
        let names = ["grid_old", "grid_new", "matrix", "column_index", "halo", "queue"];
        let objects = spec.objects();
        let used = objects.iter().zip(kinds).zip(names).zip(0_u32..);
        let used = used.map(|((((_, blocks), of), name), object)| {
            let mut used = Used { object, name, blocks: *blocks, of, homes: Vec::new() };
            used.homes = (0..*blocks)
                .map(|b| match name {
                    "grid_new" => (used.owner(b, spec.nodes), 0),
                    "column_index" => ((b % u64::from(spec.nodes)) as u16, 0),
                    _ => (0, 0),
                })
                .collect();
            used
        });
        let noise = spec.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let used = used.collect();
        Self { spec, used, columns: Columns::default(), noise, now: 0, interval: 0, remote: 0, accesses: 0 }
    }

    #[inline]
    fn random(&mut self) -> u64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        self.noise >> 16
    }

    fn machine(&self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        let nodes = self.spec.nodes;
        for node in (0..nodes).map(NodeId) {
            sink.push(&Node { node, memory_bytes: Some(Bytes::gib(64)), cpus: THREADS })?;
            for to_node in (0..nodes).map(NodeId) {
                let near = node == to_node;
                sink.push(&Link {
                    from_node: node,
                    to_node,
                    distance: Some(if near { 10 } else { 21 }),
                    latency_ps: Some(Ps(if near { 90_000 } else { 150_000 })),
                    bandwidth_mb_per_s: (!near).then_some(40_000),
                })?;
            }
        }
        Ok(())
    }

    fn program(&self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        let mut address = 0x7f00_0000_0000;
        for (object, (name, blocks)) in (0..).zip(self.spec.objects()) {
            let bytes = blocks * BLOCK * 4096;
            let small = name.starts_with("scratch");
            sink.push(&Object {
                object: ObjectId(object),
                id: format!("solver.c:{} < main.c:12 #0", 40 + object),
                process: 0,
                kind: if name == "column_index" { ObjectKind::Static } else { ObjectKind::Allocated },
                name,
                element_type: Some("double".into()),
                element_bytes: Some(8),
                dimensions: if small { vec![] } else { vec![blocks, 32, 256] },
                fields: Fields::default(),
                file: Some("solver.c".into()),
                line: Some(40 + object),
                function: Some("allocate".into()),
                stack: vec![format!("allocate solver.c:{}", 40 + object), "main main.c:12".into()],
                bytes: Bytes(bytes),
                address,
                allocations: 1,
                birth_ns: (!small).then_some(Ns(1000 * u64::from(object))),
                death_ns: None,
            })?;
            address += bytes + (1 << 21);
        }
        Ok(())
    }

    /// The regions, of which two run once in each of these iterations.
    fn regions(sink: &mut impl RowSink, iterations: u64) -> Result<(), DatasetError> {
        let regions =
            [(INIT, RegionKind::Phase), (SWEEP, RegionKind::Parallel), (EXCHANGE, RegionKind::Barrier)];
        for (region, kind) in regions {
            let runs = if region == INIT { 1 } else { iterations };
            let (function, line) = [("initialise", 60), ("sweep", 90), ("exchange", 120)][region.0 as usize];
            sink.push(&Region {
                region,
                kind,
                function: Some(function.into()),
                file: Some("solver.c".into()),
                line: Some(line),
                caller: (region != INIT).then(|| "main main.c:20".into()),
                build_id: None,
                runs,
                time_ns: Ns(runs * 500_000),
            })?;
        }
        Ok(())
    }

    fn first_touches(&mut self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        let nodes = self.spec.nodes;
        for used in &self.used {
            let mut block = 0;
            while block < used.blocks {
                // A run of blocks with one home.
                let home = used.homes[block as usize].0;
                let run = used.homes[block as usize..].iter().take_while(|(h, _)| *h == home).count() as u64;
                let parallel = used.name == "grid_new";
                sink.push(&FirstTouch {
                    object: ObjectId(used.object),
                    page: block * BLOCK,
                    pages: run * BLOCK,
                    thread: Some(ThreadId(if parallel { u32::from(home) * THREADS } else { 0 })),
                    node: NodeId(if parallel { home } else { 0 }),
                    time_ns: Some(Ns(10_000 + block)),
                    file: Some("solver.c".into()),
                    line: Some(62),
                    function: Some("initialise".into()),
                })?;
                block += run;
            }
        }
        self.now = 1_000_000;
        self.end_interval(sink, 0, None, INIT)?;
        for thread in 0..u32::from(nodes) * THREADS {
            let stay = |cpu: u32, from_ns, to_ns| ThreadStay {
                thread: ThreadId(thread),
                process: 0,
                cpu: Some(cpu),
                node: Some(NodeId((cpu / THREADS) as u16)),
                from_ns,
                to_ns,
                bound: Some(thread != 1),
            };
            match thread {
                // A thread that nobody has bound changes its CPU.
                1 => {
                    sink.push(&stay(1, Ns(0), Ns(500_000)))?;
                    sink.push(&stay(2, Ns(500_000), Ns(self.now)))?;
                }
                _ => sink.push(&stay(thread, Ns(0), Ns(self.now)))?,
            }
        }
        Ok(())
    }

    fn end_interval(
        &mut self,
        sink: &mut impl RowSink,
        begin: u64,
        iteration: Option<u64>,
        region: RegionNo,
    ) -> Result<(), DatasetError> {
        let interval = IntervalNo(self.interval);
        sink.push(&Interval {
            interval,
            begin_ns: Ns(begin),
            end_ns: Ns(self.now),
            iteration: iteration.map(|i| i as u32),
            timed: iteration.is_some(),
        })?;
        sink.push(&RegionTime { interval, region, runs: 1, time_ns: Ns(self.now - begin) })?;
        self.interval += 1;
        Ok(())
    }

    fn iteration(&mut self, sink: &mut impl RowSink, iteration: u64) -> Result<(), DatasetError> {
        let begin = self.now;
        for region in [SWEEP, EXCHANGE] {
            let before = self.now;
            (self.remote, self.accesses) = (0, 0);
            let mut used = std::mem::take(&mut self.used);
            for one in &mut used {
                if region == EXCHANGE {
                    self.moves(sink, one, iteration)?;
                }
                for block in 0..one.blocks {
                    self.block(one, block, region, iteration);
                    if self.columns.rows() >= ROWS - 64 {
                        self.columns.flush(sink)?;
                    }
                }
            }
            self.used = used;
            // An access takes a nanosecond, a remote one half of one more.
            self.now +=
                1000 + (self.accesses + self.remote / 2) / u64::from(THREADS * u32::from(self.spec.nodes));
            self.end_interval(sink, before, Some(iteration), region)?;
        }
        sink.push(&Iteration {
            process: 0,
            iteration: iteration as u32,
            begin_ns: Ns(begin),
            end_ns: Ns(self.now),
            source: if iteration == 0 { IterationSource::Told } else { IterationSource::Found },
        })?;
        for n in 0..8 {
            let page = self.random() % BLOCK;
            let held = n % 2 == 1;
            sink.push(&Sample {
                time_ns: Ns(begin + n),
                object: (n != 7).then_some(ObjectId(0)),
                page,
                group: if held { GuardGroup::HeldBack } else { GuardGroup::Moved },
                node: NodeId((n as u16) % self.spec.nodes),
                remote: held,
            })?;
        }
        sink.push(&OwnCost {
            time_ns: Ns(self.now),
            process: 0,
            own_ns: Ns(self.now / 200),
            cpu_ns: Ns(self.now),
        })
    }

    /// Adds the accesses to a block in the interval.
    #[inline]
    fn block(&mut self, of: &Used, block: u64, region: RegionNo, iteration: u64) {
        let nodes = self.spec.nodes;
        let at = [u64::from(self.interval), u64::from(region.0), u64::from(of.object)];
        let (home, _) = of.homes[block as usize];
        let page = block * BLOCK;
        let add = |made: &mut Self, node: u16, kind, basis: Basis, seen: u64| {
            let tally = SeenCount::new(seen, basis);
            let count = tally.count().map_or(seen, |c| c.parts().0);
            made.accesses += count;
            made.remote += if node == home { 0 } else { count };
            made.columns.push(at, page, [node, home], kind, tally);
        };
        match of.of {
            Use::Owner => {
                let owner = of.owner(block, nodes);
                let noise = self.random();
                let basis = Basis::Sampled { one_in: 101 };
                if region == SWEEP {
                    add(self, owner, "load", basis, 200 + (noise & 0xffff));
                    add(self, owner, "store", basis, 50 + (noise >> 16 & 0x3fff));
                } else if block.is_multiple_of(2) {
                    add(self, owner, "load", Basis::Exact, 1000 + (noise & 0x3_ffff));
                }
                // Neighbours look over the edge.
                if block % 8 == 7 {
                    add(self, (owner + 1) % nodes, "load", Basis::Exact, 100 + (noise >> 32 & 0xfff));
                }
            }
            Use::All => {
                for node in 0..nodes {
                    add(self, node, "load", Basis::Exact, 4000);
                    add(self, node, "store", Basis::Exact, 4000);
                }
            }
            Use::Turns => {
                let user = ((iteration + u64::from(region == EXCHANGE)) % 2) as u16;
                add(self, user, "store", Basis::Presence, 3);
            }
        }
    }

    /// Moves a run of blocks to a node.
    fn moved(
        &mut self,
        sink: &mut impl RowSink,
        of: &mut Used,
        (blocks, to): (std::ops::Range<u64>, u16),
        (cause, outcome): (MigrationCause, MigrationOutcome),
    ) -> Result<(), DatasetError> {
        let first = blocks.start as usize;
        let (from, since) = of.homes[first];
        let runs = of.homes[first..blocks.end as usize].iter_mut();
        runs.for_each(|h| *h = (to, self.interval));
        let place = |home: u16, since: u32, until: u32| Residency {
            object: Some(ObjectId(of.object)),
            page: blocks.start * BLOCK,
            pages: (blocks.end - blocks.start) * BLOCK,
            interval: IntervalNo(since),
            until: IntervalNo(until),
            home: NodeId(home),
        };
        if self.interval > since {
            sink.push(&place(from, since, self.interval - 1))?;
        }
        sink.push(&Migration {
            time_ns: Ns(self.now),
            interval: IntervalNo(self.interval),
            object: Some(ObjectId(of.object)),
            page: blocks.start * BLOCK,
            pages: (blocks.end - blocks.start) * BLOCK,
            from_node: NodeId(from),
            to_node: NodeId(to),
            cause,
            policy: (cause != MigrationCause::Kernel).then(|| "next-touch".into()),
            region: Some(EXCHANGE),
            thread: Some(ThreadId(u32::from(to) * THREADS)),
            cost_ns: (cause != MigrationCause::Kernel)
                .then_some(Ns(900 * BLOCK * (blocks.end - blocks.start))),
            outcome,
        })
    }

    /// Moves blocks of an object at the beginning of the interval.
    fn moves(&mut self, sink: &mut impl RowSink, of: &mut Used, iteration: u64) -> Result<(), DatasetError> {
        let spec = self.spec;
        match of.name {
            "grid_old" | "matrix" if iteration < MOVING => {
                // Each iteration moves its part of the blocks; runs of one owner move together.
                let part = |i: u64| of.blocks * i / MOVING;
                let (mut block, end) = (part(iteration), part(iteration + 1));
                while block < end {
                    let owner = of.owner(block, spec.nodes);
                    let run = (block..end).take_while(|b| of.owner(*b, spec.nodes) == owner).take(64).count()
                        as u64;
                    if of.homes[block as usize].0 != owner {
                        let why = (MigrationCause::NextTouch, MigrationOutcome::Moved);
                        self.moved(sink, of, (block..block + run, owner), why)?;
                    }
                    block += run;
                }
                Ok(())
            }
            "matrix" if iteration == MOVING => {
                let (home, _) = of.homes[of.blocks as usize - 1];
                let last = of.blocks - 1..of.blocks;
                match home {
                    0 => Ok(()),
                    _ => self.moved(sink, of, (last, 0), (MigrationCause::Undo, MigrationOutcome::Moved)),
                }
            }
            "queue" => {
                let to = ((iteration + 1) % 2) as u16;
                let outcome =
                    if iteration < 2 { MigrationOutcome::Moved } else { MigrationOutcome::PingPong };
                match of.homes[0].0 == to {
                    true => Ok(()),
                    false => self.moved(sink, of, (0..1, to), (MigrationCause::NextTouch, outcome)),
                }
            }
            "halo" if iteration == 2 => {
                self.moved(sink, of, (0..1, 1), (MigrationCause::Kernel, MigrationOutcome::Moved))
            }
            _ => Ok(()),
        }
    }

    /// Where everything lived at the end.
    fn end(&mut self, sink: &mut impl RowSink) -> Result<(), DatasetError> {
        self.columns.flush(sink)?;
        let last = self.interval.saturating_sub(1);
        for used in &self.used {
            let mut block = 0;
            while block < used.blocks {
                let (home, since) = used.homes[block as usize];
                let run =
                    used.homes[block as usize..].iter().take_while(|h| **h == (home, since)).count() as u64;
                sink.push(&Residency {
                    object: Some(ObjectId(used.object)),
                    page: block * BLOCK,
                    pages: run * BLOCK,
                    interval: IntervalNo(since),
                    until: IntervalNo(last),
                    home: NodeId(home),
                })?;
                block += run;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Dataset;
    use crate::memory::MemoryDataset;
    use crate::tables::ALL;

    fn small() -> Dataset {
        let spec = SyntheticSpec { iterations: 10, blocks: 400, nodes: 4, seed: 3, rank: None };
        let mut memory = MemoryDataset::default();
        let ended = spec.fill(&mut memory, &mut |_, _| true).unwrap();
        Dataset::of_memory(DatasetMeta { ended: Some(ended), ..spec.meta() }, memory)
    }

    #[test]
    fn every_table_has_rows_and_every_row_makes_sense() {
        let set = small();
        for table in ALL {
            let rows: usize = set.checked_chunks(table).map(|c| c.rows()).sum();
            assert!(rows > 0, "{} is empty", table.name);
        }
        assert_eq!(set.missing(), []);
    }

    #[test]
    fn the_same_spec_gives_the_same_rows() {
        let (a, b) = (small(), small());
        assert!(a.rows::<Access>().eq(b.rows::<Access>()));
        assert!(a.rows::<Migration>().eq(b.rows::<Migration>()));
    }

    #[test]
    fn homes_of_accesses_are_those_of_the_residency() {
        let set = small();
        let residency: Vec<Residency> = set.rows().collect();
        let mut checked = 0;
        for access in set.rows::<Access>().step_by(37) {
            let lives = |r: &&Residency| {
                r.object == access.object
                    && (r.page..r.page + r.pages).contains(&access.page)
                    && (r.interval..=r.until).contains(&access.interval)
            };
            let homes: Vec<NodeId> = residency.iter().filter(lives).map(|r| r.home).collect();
            assert_eq!(homes, [access.home], "{access:?}");
            checked += 1;
        }
        assert!(checked > 100);
    }

    #[test]
    fn what_is_planted_is_there() {
        let set = small();
        let moved = |object: u32| -> u64 {
            set.rows::<Migration>().filter(|m| m.object == Some(ObjectId(object))).map(|m| m.pages).sum()
        };
        assert!((1..6).all(|o| moved(o) < moved(0)), "grid_old moves most");
        assert_eq!(moved(1), 0);
        let to_and_fro = set.rows::<Migration>().filter(|m| m.outcome == MigrationOutcome::PingPong);
        assert_eq!(to_and_fro.map(|m| m.object).collect::<Vec<_>>(), vec![Some(ObjectId(5)); 8]);
        assert_eq!(set.rows::<Migration>().filter(|m| m.cause == MigrationCause::Undo).count(), 1);
        let times: Vec<u64> = set.rows::<Iteration>().map(|i| i.end_ns.0 - i.begin_ns.0).collect();
        assert!(times[0] > times[8] * 11 / 10, "moving pays: {times:?}");
    }

    #[test]
    fn a_size_gives_about_that_many_rows() {
        for rows in [1000_u64, 100_000] {
            let spec = SyntheticSpec::of_size(Bytes(rows * ROW_BYTES));
            let mut memory = MemoryDataset::default();
            spec.fill(&mut memory, &mut |_, _| true).unwrap();
            let made: u64 = memory.chunks("accesses").iter().map(|c| c.rows() as u64).sum();
            assert!((rows / 2..rows * 2).contains(&made), "{made} rows for {rows}");
        }
    }
}
