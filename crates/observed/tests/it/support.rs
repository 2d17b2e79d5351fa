//! Streams as the library in a program writes them, and folders for them.

use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::{Basis, Dataset, DatasetMeta, Ended, MemoryDataset, RecordingKind};
use homenode_model::{AccessKind, Bytes, CpuId, MoveResult, NodeId, Ns};
use homenode_observed::StreamsSummary;
use homenode_wire::facts::{LoadedFile, Origin};
use homenode_wire::live::{
    BUFFER, IntervalNo, IterationNo, LiveRecord, MoveOrigin, ObjectNo, Pages, RegionIdentity, RegionNo,
    SourceAnswers, ThreadNo, Writer,
};

/// A folder that is gone after the test.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one for the test of this name.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("homenode-observed-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A process's stream with these bytes.
    pub fn stream(&self, pid: u32, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(LiveRecord::file_name(pid));
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One frame with these records.
pub fn frame(records: &[LiveRecord]) -> Vec<u8> {
    let mut buffer = vec![0; BUFFER];
    let mut writer = Writer::new(&mut buffer).unwrap();
    records.iter().for_each(|r| writer.add(r).unwrap());
    writer.finish().to_vec()
}

/// Frames of at most this number of records.
pub fn frames(records: &[LiveRecord], most: usize) -> Vec<u8> {
    records.chunks(most).flat_map(frame).collect()
}

/// The data set of the streams in a folder, and what they say together.
pub fn observe(folder: &Path) -> (Dataset, StreamsSummary) {
    let mut meta = DatasetMeta::new(RecordingKind::Run, Basis::Presence, vec!["./app".into()]);
    meta.ended = Some(Ended { status: Some(0), signal: None, elapsed_ns: 1_000_000_000 });
    let mut tables = MemoryDataset::default();
    let summary = homenode_observed::write(folder, &mut tables, &mut meta).unwrap();
    (Dataset::of_memory(meta, tables), summary)
}

pub const MS: u64 = 1_000_000;

pub const fn pages(first: u32, count: u32) -> Pages {
    Pages { first, count }
}

pub fn start(pid: u32, clock: u64) -> LiveRecord {
    let (clock, policy) = (Ns(clock), "next-touch".into());
    LiveRecord::Start { clock, pid, nodes: 2, pretended: false, page: Bytes(4096), policy }
}

pub fn object(number: u32, bytes: u64, name: u64) -> LiveRecord {
    LiveRecord::Object {
        number: ObjectNo(number),
        origin: Origin::Static(name),
        address: 0x10_0000,
        bytes: Bytes(bytes),
        birth: Ns(MS),
        python: None,
    }
}

pub fn migration(ms: u64, pages: Pages, from: u16, to: u16, cause: MoveOrigin) -> LiveRecord {
    LiveRecord::Migration {
        time: Ns(ms * MS),
        object: ObjectNo(0),
        pages,
        from: NodeId(from),
        to: NodeId(to),
        cause,
        region: Some(RegionNo(0)),
        cost: Some(Ns(1000 * u64::from(pages.count))),
        outcome: MoveResult::Moved,
    }
}

pub fn home(interval: u32, pages: Pages, node: u16) -> LiveRecord {
    LiveRecord::Home { interval: IntervalNo(interval), object: ObjectNo(0), pages, node: Some(NodeId(node)) }
}

pub fn interval(index: u32, iteration: Option<u32>) -> LiveRecord {
    let index64 = u64::from(index);
    LiveRecord::Interval {
        index: IntervalNo(index),
        begin: Ns(index64 * 10 * MS),
        end: Ns((index64 + 1) * 10 * MS),
        iteration: iteration.map(IterationNo),
    }
}

/// Two nodes, one object of 16 pages, one region, four intervals of 10 ms; the last three are
/// rounds.
pub fn program(pid: u32, clock: u64) -> Vec<LiveRecord> {
    let node = |n: u16| LiveRecord::Node {
        node: NodeId(n),
        memory: Bytes(1 << 30),
        cpus: vec![u32::from(n)],
        distances: if n == 0 { vec![10, 21] } else { vec![21, 10] },
    };
    let seen = |interval: u32, first: u32, told: u32| LiveRecord::Seen {
        interval: IntervalNo(interval),
        region: Some(RegionNo(0)),
        object: ObjectNo(0),
        pages: pages(first, 1),
        node: NodeId(1),
        home: NodeId(0),
        kind: Some(AccessKind::Write),
        told,
    };
    let mut all = vec![
        start(pid, clock),
        node(0),
        node(1),
        LiveRecord::Source { name: "samples".into(), says: SourceAnswers::Sampled { one_in: 100 } },
        LiveRecord::Module(LoadedFile { base: 0x1000, low: 0, high: 0x10, path: "no such file".into() }),
        object(0, 16 * 4096, 0x4000),
        LiveRecord::Region {
            number: RegionNo(0),
            key: RegionIdentity { function: 0x40_0000, caller: 0x40_1000 },
        },
        home(0, pages(0, 16), 0),
        seen(0, 3, 5),
        LiveRecord::RegionTime { interval: IntervalNo(0), region: RegionNo(0), runs: 2, time: Ns(3 * MS) },
        interval(0, None),
        migration(12, pages(0, 8), 0, 1, MoveOrigin::NextTouch),
        LiveRecord::Iteration { number: IterationNo(1), begin: Ns(10 * MS), end: Ns(20 * MS), told: true },
        interval(1, Some(1)),
        migration(25, pages(2, 4), 1, 0, MoveOrigin::Undo),
        seen(2, 9, 7),
        LiveRecord::Iteration { number: IterationNo(2), begin: Ns(20 * MS), end: Ns(30 * MS), told: true },
        interval(2, Some(2)),
        LiveRecord::Thread {
            thread: ThreadNo(0),
            cpu: CpuId(1),
            node: NodeId(1),
            from: Ns(0),
            to: Ns(30 * MS),
            bound: true,
        },
        LiveRecord::Own { time: Ns(30 * MS), own: Ns(MS), cpu: Ns(40 * MS) },
        LiveRecord::Iteration { number: IterationNo(3), begin: Ns(30 * MS), end: Ns(40 * MS), told: true },
        interval(3, Some(3)),
    ];
    all.push(LiveRecord::End { whole: true });
    all
}
