//! What can be measured: each [`Visit`] is one visit of a [`Prober`](crate::Prober), and yields one
//! cell or several.

use std::time::Duration;

use crate::axes::{CpuNumber, Mix, NodeNumber, NodePair, Op, PageSize, Stores};
use crate::cell::{CellUnit, Credibility, MeasuredCell, Subject};

/// How idle latency is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chase {
    /// Bytes of the buffer; at least 4 times all last-level cache, or caches are measured.
    pub buffer: u64,
    /// Bytes between slots. 128 at least keeps the adjacent-line prefetcher from bringing in what
    /// comes later.
    pub stride: u64,
    /// The pages.
    pub page: PageSize,
    /// Most laps that are timed, each over another random cycle, after one that is not. 0: as many
    /// as there is time for.
    pub laps: u32,
    /// About how long; at least a few samples are taken.
    pub time: Duration,
}

/// How bandwidth is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Streams {
    /// All at once. Each has `threads` threads with arrays of their own.
    pub pairs: Vec<NodePair>,
    /// Threads a pair.
    pub threads: u32,
    /// What they do.
    pub ops: Vec<Op>,
    /// How they store.
    pub stores: Stores,
    /// The pages.
    pub page: PageSize,
    /// Numbers (8 bytes) in each array of a pair, over all its threads; STREAM wants 4 times all
    /// last-level cache.
    pub elements: u64,
    /// Rounds that count, after one that does not.
    pub rounds: u32,
    /// Fewer rounds, but at least three, when they would take longer than that.
    pub time: Duration,
}

impl Streams {
    /// STREAM's own: ten rounds of its four loops, one thread a pair, base pages, regular stores.
    pub fn triad(pairs: &[NodePair], elements: u64) -> Self {
        Self {
            pairs: pairs.to_vec(),
            threads: 1,
            ops: vec![Op::Copy, Op::Scale, Op::Add, Op::Triad],
            stores: Stores::Regular,
            page: PageSize::Small,
            elements,
            rounds: 9,
            time: Duration::from_secs(60),
        }
    }
}

/// How loaded latency is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Who waits, and for which memory; the others load the same memory.
    pub pair: NodePair,
    /// What the others do.
    pub mix: Mix,
    /// Pauses of the others between pieces of 4 KiB, one point of the curve each; in turns of an
    /// empty loop.
    pub pauses: Vec<u32>,
    /// The chase of the one that waits.
    pub chase: Chase,
    /// Most threads that load.
    pub threads: u32,
}

/// How the time that a cache line takes between two CPUs is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreToCore {
    /// They pass a line to and fro.
    pub cpus: (CpuNumber, CpuNumber),
    /// The line's home.
    pub home: NodeNumber,
    /// About how long.
    pub time: Duration,
}

/// How migration is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MigrationTest {
    /// Where pages are.
    pub from: NodeNumber,
    /// Where they go.
    pub to: NodeNumber,
    /// Their size.
    pub page: PageSize,
    /// How much, at a time.
    pub buffer: u64,
    /// Rounds that count, after one that does not.
    pub rounds: u32,
    /// Fewer rounds, but at least two, when they would take longer.
    pub time: Duration,
}

/// One visit.
#[derive(Clone, Debug, PartialEq)]
pub enum Visit {
    /// Idle latency.
    Latency {
        /// Who waits for what.
        pair: NodePair,
        /// How.
        chase: Chase,
    },
    /// Bandwidth: a cell a loop, and with several pairs a cell a loop and pair.
    Bandwidth(Streams),
    /// Latency against bandwidth: a cell a point.
    Loaded(Load),
    /// A cache line between two CPUs.
    Core(CoreToCore),
    /// Pages from node to node by `move_pages`.
    Migration(MigrationTest),
    /// Pages from node to node by the touch of a thread.
    NextTouch(MigrationTest),
}

impl Visit {
    /// A cell that says that a node has not so much memory.
    pub(crate) fn no_room(&self, node: NodeNumber, bytes: u64, room: u64) -> MeasuredCell {
        let (why, remedy) = no_room(node, bytes, room);
        MeasuredCell { verdict: Credibility::Absent { why, remedy }, ..self.absent("") }
    }

    /// A cell that says that there was no time for it.
    pub(crate) fn too_late(&self) -> MeasuredCell {
        let remedy = "leave out --quick, or ask for less: --only, --nodes, --pages";
        let verdict =
            Credibility::Absent { why: "the time for all of it was over".into(), remedy: remedy.into() };
        MeasuredCell { verdict, ..self.absent("") }
    }

    /// A cell that says why there is none; of an item with several, the first stands for all.
    pub(crate) fn absent(&self, why: &str) -> MeasuredCell {
        let (subject, unit) = match self {
            Self::Latency { pair, chase } => {
                (Subject::Latency { pair: *pair, page: chase.page }, CellUnit::Ns)
            }
            Self::Bandwidth(s) => {
                let op = s.ops.first().copied().unwrap_or(Op::Triad);
                let (pairs, threads, stores, page) = (s.pairs.clone(), s.threads, s.stores, s.page);
                (Subject::Bandwidth { pairs, share: None, threads, op, stores, page }, CellUnit::MbPerS)
            }
            Self::Loaded(l) => {
                let pause = l.pauses.first().copied().unwrap_or(0);
                (Subject::Loaded { pair: l.pair, mix: l.mix, pause }, CellUnit::Ns)
            }
            Self::Core(c) => {
                let subject = Subject::Core { cpus: c.cpus, nodes: (c.home, c.home), home: c.home };
                (subject, CellUnit::Ns)
            }
            Self::Migration(m) => {
                (Subject::Migration { from: m.from, to: m.to, page: m.page }, CellUnit::MbPerS)
            }
            Self::NextTouch(m) => (Subject::NextTouch { from: m.from, to: m.to, page: m.page }, CellUnit::Ns),
        };
        MeasuredCell::absent(subject, unit, why, "'homenode measure --json' lists nodes and CPUs")
    }
}

/// What a node lacks, and what to do.
pub(crate) fn no_room(node: NodeNumber, bytes: u64, room: u64) -> (String, String) {
    let mib = |b: u64| b >> 20;
    let asked = mib(bytes.next_multiple_of(1 << 20));
    (
        format!("{asked} MiB on {node} are asked for and {} MiB can be had", mib(room)),
        format!(
            "end what uses its memory, or ask for less: --buffer {0}M, --move-buffer {0}M",
            (mib(room) / 4).max(2)
        ),
    )
}
