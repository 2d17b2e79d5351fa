//! A data set of a grid that one thread initialised and all nodes use, as tests and the example
//! need it. The numbers are made up.

// Each of those who include this file uses a part of it.
#![allow(dead_code, missing_docs)]

use std::path::Path;

use homenode_dataset::tables::{
    Access, FirstTouch, GuardGroup, Interval, IntervalNo, Iteration, IterationSource, Link, Migration,
    MigrationCause, MigrationOutcome, Node, Object, ObjectKind, OwnCost, Region, RegionKind, RegionNo,
    RegionTime, Residency, Sample, ThreadStay,
};
use homenode_dataset::{
    Basis, Dataset, DatasetMeta, DatasetWriter, Ended, MemoryDataset, RecordingKind, RowSink, SeenCount,
};
use homenode_model::{AccessKind, Bytes, NodeId, Ns, ObjectId, Ps, ThreadId};

/// Where the grid's pages live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On node 0, which touched them first.
    Serial,
    /// On node 0 until the second iteration, in which each page follows its user.
    NextTouch,
    /// Each on the node that uses it.
    Parallel,
}

/// The data set.
#[derive(Clone, Debug)]
pub struct Heat {
    pub nodes: u16,
    /// Pages of each of the two grids; at least one a node.
    pub pages: u64,
    pub iterations: u32,
    pub placement: Placement,
    pub basis: Basis,
    pub kind: RecordingKind,
    /// Whether the links have latencies.
    pub latencies: bool,
    /// Address of the first grid, and line of its allocation.
    pub address: u64,
    pub line: u32,
    /// Whether debug information names the grids.
    pub names: bool,
    /// Whether the program reached its end.
    pub ended: bool,
}

impl Default for Heat {
    fn default() -> Self {
        Self {
            nodes: 4,
            pages: 512,
            iterations: 20,
            placement: Placement::Serial,
            basis: Basis::Exact,
            kind: RecordingKind::Simulated,
            latencies: true,
            address: 0x10000,
            line: 28,
            names: true,
            ended: true,
        }
    }
}

const MS: u64 = 1_000_000;
/// Time of the initialisation.
const INIT: u64 = 412 * MS;
/// Pages that an access row stands for.
const BLOCK: u64 = 16;
/// The grids, by number of the object.
const GRIDS: [&str; 2] = ["temperature_old", "temperature_new"];

impl Heat {
    pub fn meta(&self) -> DatasetMeta {
        let command = ["./heat", "--size", "1024"].map(String::from).to_vec();
        let policy = match self.placement {
            Placement::NextTouch => "next-touch",
            _ => "first-touch",
        };
        DatasetMeta {
            machine: "epyc-nps4".into(),
            policy: Some(policy.into()),
            source: "instrumented code".into(),
            ended: self.ended.then_some(Ended { status: Some(0), signal: None, elapsed_ns: self.end() }),
            ..DatasetMeta::new(self.kind, self.basis, command)
        }
    }

    /// The data set in memory.
    pub fn dataset(&self) -> Dataset {
        let mut memory = MemoryDataset::default();
        self.fill(&mut memory);
        Dataset::of_memory(self.meta(), memory)
    }

    /// The data set on disk.
    pub fn write(&self, path: &Path) {
        let meta = DatasetMeta { ended: None, ..self.meta() };
        let mut writer = DatasetWriter::create(path, meta).unwrap();
        self.fill(&mut writer);
        match self.meta().ended {
            Some(ended) => drop(writer.finish(ended).unwrap()),
            None => writer.flush().unwrap(),
        }
    }

    fn end(&self) -> u64 {
        (1..=self.iterations).fold(INIT, |t, i| t + self.length(i)) + 31 * MS
    }

    /// Time of an iteration, counted from 1.
    fn length(&self, iteration: u32) -> u64 {
        let jitter = u64::from(iteration * 7 % 5) * 10_000;
        jitter
            + match (self.placement, iteration) {
                (Placement::Serial, _) | (Placement::NextTouch, 1) => 21 * MS,
                (Placement::NextTouch, 2) => 34 * MS,
                _ => 12 * MS,
            }
    }

    /// Node that uses a page of a grid.
    fn user(&self, page: u64) -> u16 {
        (page * u64::from(self.nodes) / self.pages) as u16
    }

    /// Node that a page of a grid lives on at the end of an interval.
    fn home(&self, page: u64, interval: u32) -> u16 {
        match self.placement {
            Placement::Serial => 0,
            Placement::NextTouch if interval < 2 => 0,
            _ => self.user(page),
        }
    }

    /// First and last page of each node's part.
    fn parts(&self) -> impl Iterator<Item = (u16, u64, u64)> + '_ {
        let start = |n: u16| (self.pages * u64::from(n)).div_ceil(u64::from(self.nodes));
        (0..self.nodes).map(move |n| (n, start(n), start(n + 1)))
    }

    pub fn fill(&self, to: &mut impl RowSink) {
        self.machine(to);
        self.objects(to);
        self.times(to);
        for interval in 0..=self.iterations {
            self.accesses(to, interval);
        }
        self.residency(to);
        if self.placement == Placement::NextTouch {
            self.moves(to);
        }
    }

    fn machine(&self, to: &mut impl RowSink) {
        for n in 0..self.nodes {
            to.push(&Node { node: NodeId(n), memory_bytes: Some(Bytes::gib(64)), cpus: 8 }).unwrap();
            to.push(&ThreadStay {
                thread: ThreadId(n.into()),
                process: 0,
                cpu: Some(u32::from(n) * 8),
                node: Some(NodeId(n)),
                from_ns: Ns(0),
                to_ns: Ns(self.end()),
                bound: Some(true),
            })
            .unwrap();
        }
        // A thousand nodes would have a million links.
        for (from, near) in (0..self.nodes).flat_map(|n| [(n, true), (n, false)]) {
            if self.nodes > 64 {
                break;
            }
            for home in (0..self.nodes).filter(|home| (*home == from) == near) {
                to.push(&Link {
                    from_node: NodeId(from),
                    to_node: NodeId(home),
                    distance: Some(if near { 10 } else { 12 }),
                    latency_ps: self.latencies.then_some(Ps(if near { 96_000 } else { 220_000 })),
                    bandwidth_mb_per_s: None,
                })
                .unwrap();
            }
        }
    }

    fn objects(&self, to: &mut impl RowSink) {
        let bytes = Bytes(self.pages * 4096);
        let grid = |(i, name): (u32, &&str)| {
            let line = self.line + i;
            Object {
                object: ObjectId(i),
                id: format!("heat.c:{line} < main.c:9 #0"),
                process: 0,
                name: if self.names { (*name).into() } else { format!("heat.c:{line}") },
                kind: ObjectKind::Allocated,
                element_type: Some("double".into()),
                element_bytes: Some(8),
                dimensions: vec![self.pages, 512],
                fields: homenode_dataset::fields::Fields::default(),
                file: Some("heat.c".into()),
                line: Some(line),
                function: Some("grid_new".into()),
                stack: vec![format!("heat.c:{line}"), "main.c:9".into()],
                bytes,
                address: self.address + u64::from(i) * (bytes.0 + 8192),
                allocations: 1,
                birth_ns: Some(Ns(MS)),
                death_ns: None,
            }
        };
        for object in (0..).zip(&GRIDS).map(grid) {
            to.push(&object).unwrap();
        }
        to.push(&Object {
            object: ObjectId(2),
            id: "residual".into(),
            process: 0,
            name: "residual".into(),
            kind: ObjectKind::Static,
            element_type: Some("double".into()),
            element_bytes: Some(8),
            dimensions: Vec::new(),
            fields: homenode_dataset::fields::Fields::default(),
            file: Some("heat.c".into()),
            line: Some(6),
            function: None,
            stack: Vec::new(),
            bytes: Bytes(8),
            address: 0x4000,
            allocations: 1,
            birth_ns: None,
            death_ns: None,
        })
        .unwrap();
        let touch = |object: u32, page, pages, node: u16, line| FirstTouch {
            object: ObjectId(object),
            page,
            pages,
            thread: Some(ThreadId(node.into())),
            node: NodeId(node),
            time_ns: Some(Ns(2 * MS)),
            file: Some("heat.c".into()),
            line: Some(line),
            function: Some("grid_init".into()),
        };
        for grid in 0..2 {
            if self.placement == Placement::Parallel {
                for (node, from, to_) in self.parts() {
                    to.push(&touch(grid, from, to_ - from, node, 41)).unwrap();
                }
            } else {
                to.push(&touch(grid, 0, self.pages, 0, 41)).unwrap();
            }
        }
        to.push(&touch(2, 0, 1, 0, 60)).unwrap();
    }

    fn times(&self, to: &mut impl RowSink) {
        to.push(&Region {
            region: RegionNo(0),
            kind: RegionKind::Parallel,
            function: Some("sweep".into()),
            file: Some("heat.c".into()),
            line: Some(52),
            caller: Some("main.c:14".into()),
            build_id: None,
            runs: self.iterations.into(),
            time_ns: Ns(self.end() - INIT),
        })
        .unwrap();
        let mut begin = 0;
        let mut interval = |length: u64, iteration: Option<u32>, number: u32| {
            let row = Interval {
                interval: IntervalNo(number),
                begin_ns: Ns(begin),
                end_ns: Ns(begin + length),
                iteration,
                timed: iteration.is_some(),
            };
            begin += length;
            row
        };
        to.push(&interval(INIT, None, 0)).unwrap();
        for i in 1..=self.iterations {
            let row = interval(self.length(i), Some(i - 1), i);
            to.push(&row).unwrap();
            to.push(&Iteration {
                process: 0,
                iteration: i - 1,
                begin_ns: row.begin_ns,
                end_ns: row.end_ns,
                source: IterationSource::Found,
            })
            .unwrap();
            to.push(&RegionTime {
                interval: row.interval,
                region: RegionNo(0),
                runs: 1,
                time_ns: row.end_ns - row.begin_ns,
            })
            .unwrap();
        }
        to.push(&interval(31 * MS, None, self.iterations + 1)).unwrap();
        to.push(&OwnCost { time_ns: Ns(self.end()), process: 0, own_ns: Ns(MS), cpu_ns: Ns(self.end() * 4) })
            .unwrap();
    }

    fn accesses(&self, to: &mut impl RowSink, interval: u32) {
        // Page 0 of the initialisation stands for all: a row a block would be as good.
        let per_page = |n: u64| match self.basis {
            Basis::Exact | Basis::Emulated => n,
            Basis::Sampled { one_in } => (n / one_in).max(1),
            Basis::Presence => 1,
        };
        let row = |object, page, pages, node: u16, home: u16, n| Access {
            interval: IntervalNo(interval),
            region: (interval > 0).then_some(RegionNo(0)),
            object,
            page,
            pages,
            node: NodeId(node),
            home: NodeId(home),
            kind: Some(if node == home { AccessKind::Write } else { AccessKind::Read }),
            tally: SeenCount::new(n, self.basis),
        };
        for grid in 0..2_u32 {
            for (user, from, end) in self.parts() {
                let mut page = from;
                while page < end {
                    let pages = BLOCK.min(end - page);
                    let node = match (interval, self.placement) {
                        (0, Placement::Serial | Placement::NextTouch) => 0,
                        _ => user,
                    };
                    // The old grid is read five times for each time that the new one is written.
                    let n = per_page(if grid == 0 { 320 } else { 64 } * pages);
                    let home = self.home(page, interval);
                    to.push(&row(Some(ObjectId(grid)), page, pages, node, home, n)).unwrap();
                    page += pages;
                }
            }
        }
        if interval > 0 {
            for node in 0..self.nodes {
                to.push(&row(Some(ObjectId(2)), 0, 1, node, 0, per_page(8))).unwrap();
            }
            to.push(&row(None, 0, 1, 0, 0, per_page(100))).unwrap();
        }
    }

    fn residency(&self, to: &mut impl RowSink) {
        let run = |object, page, pages, interval, until, home: u16| Residency {
            object: Some(ObjectId(object)),
            page,
            pages,
            interval: IntervalNo(interval),
            until: IntervalNo(until),
            home: NodeId(home),
        };
        let last = self.iterations + 1;
        for grid in 0..2 {
            if self.placement == Placement::NextTouch {
                to.push(&run(grid, 0, self.pages, 0, 1.min(last), 0)).unwrap();
            }
            let first = if self.placement == Placement::NextTouch { 2 } else { 0 };
            if first > last {
                continue;
            }
            match self.placement {
                Placement::Serial => to.push(&run(grid, 0, self.pages, 0, last, 0)).unwrap(),
                _ => self.parts().for_each(|(node, from, end)| {
                    to.push(&run(grid, from, end - from, first, last, node)).unwrap()
                }),
            }
        }
        to.push(&run(2, 0, 1, 0, last, 0)).unwrap();
    }

    fn moves(&self, to: &mut impl RowSink) {
        let begin = INIT + self.length(1);
        let move_ = |grid: u32, page, pages, from: u16, node: u16, interval, time: u64, outcome| Migration {
            time_ns: Ns(time),
            interval: IntervalNo(interval),
            object: Some(ObjectId(grid)),
            page,
            pages,
            from_node: NodeId(from),
            to_node: NodeId(node),
            cause: MigrationCause::NextTouch,
            policy: Some("next-touch".into()),
            region: Some(RegionNo(0)),
            thread: Some(ThreadId(node.into())),
            cost_ns: Some(Ns(pages * 1400)),
            outcome,
        };
        for grid in 0..2 {
            for (node, from, end) in self.parts().filter(|(node, ..)| *node > 0) {
                let time = begin + MS * u64::from(grid) + u64::from(node) * 1000;
                to.push(&move_(grid, from, end - from, 0, node, 2, time, MigrationOutcome::Moved)).unwrap();
            }
        }
        // One page goes to its neighbour and comes back.
        if self.iterations > 4 && self.nodes > 1 {
            let (time, page) = (begin + 80 * MS, self.pages / u64::from(self.nodes));
            to.push(&move_(0, page, 1, 1, 0, 4, time, MigrationOutcome::Moved)).unwrap();
            to.push(&move_(0, page, 1, 0, 1, 4, time + MS, MigrationOutcome::PingPong)).unwrap();
        }
        for i in 0..32 {
            let (group, page) = match i % 4 {
                3 => (GuardGroup::HeldBack, i % self.pages),
                _ => (GuardGroup::Moved, (self.pages - 1).saturating_sub(i)),
            };
            to.push(&Sample {
                time_ns: Ns(begin + 100 * MS + i * 1000),
                object: Some(ObjectId(0)),
                page,
                group,
                node: NodeId(self.user(page)),
                remote: group == GuardGroup::HeldBack && i % 8 == 3,
            })
            .unwrap();
        }
    }
}
