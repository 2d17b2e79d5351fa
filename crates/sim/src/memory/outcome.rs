//! What a simulation yields.

use std::borrow::Cow;
use std::sync::Arc;

use homenode_model::{CpuId, Histogram, NodeId, PageNo, Placement, Ps, ThreadId};

use super::paths::Paths;
use crate::collect::Collected;
use crate::stream::Cause;

/// The number of [`Cause`]s.
const CAUSES: usize = 6;

/// Main-memory transactions by (toucher's node, home, cause).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    nodes: usize,
    cells: Vec<u64>,
}

impl Counts {
    /// Causes of transactions that a CPU waits for data for: what "accesses" means in every table.
    /// Upgrades carry no data and nobody waits for a write-back; [`Counts::at`] has them.
    pub const ACCESSES: [Cause; 4] = [Cause::Cold, Cause::Capacity, Cause::Coherence, Cause::Uncached];

    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes, cells: vec![0; nodes * nodes * CAUSES] }
    }
    #[inline]
    pub(super) fn add(&mut self, node: NodeId, home: NodeId, cause: Cause) {
        self.cells[(node.index() * self.nodes + home.index()) * CAUSES + cause as usize] += 1;
    }
    /// These without `earlier`, a former state of the same counts.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let cells = self.cells.iter().zip(&earlier.cells).map(|(a, b)| a - b).collect();
        Self { nodes: self.nodes, cells }
    }
    /// Number of nodes.
    pub const fn nodes(&self) -> usize {
        self.nodes
    }
    /// Transactions of CPUs of `node` at the memory of `home` with this cause.
    pub fn at(&self, node: NodeId, home: NodeId, cause: Cause) -> u64 {
        self.cells[(node.index() * self.nodes + home.index()) * CAUSES + cause as usize]
    }
    /// Accesses of `node` to memory of `home`.
    pub fn accesses(&self, node: NodeId, home: NodeId) -> u64 {
        Self::ACCESSES.iter().map(|c| self.at(node, home, *c)).sum()
    }
    fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes as u16).map(NodeId)
    }
    /// Accesses of `node` to its own memory.
    pub fn local(&self, node: NodeId) -> u64 {
        self.accesses(node, node)
    }
    /// Accesses of `node` to memory of others.
    pub fn remote(&self, node: NodeId) -> u64 {
        self.ids().filter(|home| *home != node).map(|home| self.accesses(node, home)).sum()
    }
    /// `(local, remote)` transactions with this cause, all nodes together.
    pub fn by_cause(&self, cause: Cause) -> (u64, u64) {
        let pairs = self.ids().flat_map(|a| self.ids().map(move |b| (a, b)));
        pairs.fold((0, 0), |(local, remote), (node, home)| {
            let n = self.at(node, home, cause);
            if node == home { (local + n, remote) } else { (local, remote + n) }
        })
    }
    /// `(local, remote)` accesses, all nodes together.
    pub fn total(&self) -> (u64, u64) {
        Self::ACCESSES.iter().map(|c| self.by_cause(*c)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }
    /// Σ latency of all accesses and upgrades.
    pub(super) fn latency(&self, paths: &Paths) -> Ps {
        let pairs = self.ids().flat_map(|a| self.ids().map(move |b| (a, b)));
        let cost = |(node, home)| {
            let n = self.accesses(node, home) + self.at(node, home, Cause::Upgrade);
            Ps(paths.latency(node, home)).times(n)
        };
        pairs.map(cost).sum()
    }
}

/// Where a thread's time went: `busy + memory + wait + moving = end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Computing, cache hits included.
    pub busy: Ps,
    /// Waiting for main memory.
    pub memory: Ps,
    /// Waiting for other threads, its start included.
    pub wait: Ps,
    /// Moving pages, waiting for others who do, and standing still while others do.
    pub moving: Ps,
    /// Its clock at its end.
    pub end: Ps,
    /// Accesses to memory of its own node.
    pub local: u64,
    /// Accesses to memory of others.
    pub remote: u64,
}

/// An iteration mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationMark {
    /// The round that begins.
    pub number: u32,
    /// When: the latest of the threads that say so.
    pub at: Ps,
    /// Local accesses of all threads until then, since the program began.
    pub local: u64,
    /// Remote ones.
    pub remote: u64,
}

/// A region's instances together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionTime {
    /// Which.
    pub region: u32,
    /// How often it ran.
    pub instances: u64,
    /// From begin to end, on the clock of the thread that forks.
    pub time: Ps,
    /// Local accesses of all threads in that time.
    pub local: u64,
    /// Remote ones.
    pub remote: u64,
}

/// A page that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// When the move began.
    pub at: Ps,
    /// Who did it.
    pub thread: ThreadId,
    /// The page.
    pub page: PageNo,
    /// Former home.
    pub from: NodeId,
    /// New home.
    pub to: NodeId,
    /// What it cost the thread, waiting for other moves included.
    pub cost: Ps,
}

/// What happened to the lines of frames ([`Decision::ReplicateLines`](homenode_model::Decision)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that a frame got from elsewhere.
    pub fetched: u64,
    /// Lines that a frame lost because another node wrote.
    pub invalidated: u64,
    /// Frames that were given up because their memory was needed.
    pub frames_given_up: u64,
}

/// Sums of latency × accesses over the timed part: what placement alone can change, without queues
/// and overlap.
///
/// `floor ≤ bound ≤ placement`; `actual` may lie below `bound` when pages moved while the program
/// ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencySums {
    /// Every access to the toucher's nearest memory: what no placement without replication need
    /// reach.
    pub floor: Ps,
    /// The least that pages which never move can cost; capacities are not regarded.
    pub bound: Ps,
    /// The pages' last homes, had they been there all the time.
    pub placement: Ps,
    /// As it was.
    pub actual: Ps,
}

/// What a simulation yields. The *timed part* is from the first iteration mark to the last; with
/// one mark, from there to the end; without, everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The latest end of a thread.
    pub time: Ps,
    /// The timed part's length.
    pub timed: Ps,
    /// Iteration marks in order.
    pub marks: Vec<IterationMark>,
    /// By region, ascending.
    pub regions: Vec<RegionTime>,
    /// By thread.
    pub threads: Vec<ThreadTime>,
    /// The CPU of each thread.
    pub cpus: Vec<CpuId>,
    /// All transactions.
    pub counts: Counts,
    /// Those of the timed part.
    pub timed_counts: Counts,
    /// Accesses and upgrades (these as writes) of the timed part by page and node.
    pub histogram: Histogram,
    /// Accesses of the timed part that hit a cache, on machines whose remote memory is not cached.
    pub hits: Option<Histogram>,
    /// Home of each page at the end; of a freed page when it was freed.
    pub placement: Placement,
    /// Pages and copies on each node at the end.
    pub used: Vec<u64>,
    /// First touches.
    pub faults: u64,
    /// Touches of armed pages.
    pub touches: u64,
    /// Pages moved.
    pub moved: u64,
    /// Time threads spent moving and copying them.
    pub migration: Ps,
    /// The first moves, as many as the options allow.
    pub migrations: Vec<Migration>,
    /// Copies made of pages, and frames allotted for them.
    pub replicated: u64,
    /// Lines of frames.
    pub lines: LineCounts,
    /// Pages that lost their copies because somebody wrote, or their memory was needed.
    pub collapsed: u64,
    /// Moves and copies asked for that were not carried out: there already, no room, no page.
    pub moves_refused: u64,
    /// Homes asked for that could not be given: no room, or a home already.
    pub places_refused: u64,
    /// Write-backs to pages that were free by then; they cost nothing.
    pub lost_write_backs: u64,
    /// Time that accesses queued, summed over accesses.
    pub queued: Ps,
    /// Time at work of each node's memory controller.
    pub controllers: Vec<Ps>,
    /// Time at work of each directed link, row-major by (from, to).
    pub links: Vec<Ps>,
    /// Distance to the static latency bound.
    pub latency: LatencySums,
    /// What the policy was told and what it decided, in the format of [`homenode_policy::journal`],
    /// if that was asked for.
    pub journal: Option<Vec<u8>>,
    /// What was done to which page and when, if that was asked for.
    pub collected: Option<Arc<Collected>>,
}

impl Outcome {
    /// References of the timed part by page and node: the histogram, and what hit a cache where
    /// hits matter. They are the same under every placement.
    pub fn references(&self) -> Cow<'_, Histogram> {
        let Some(hits) = &self.hits else { return Cow::Borrowed(&self.histogram) };
        let mut all = self.histogram.clone();
        all.absorb(hits);
        Cow::Owned(all)
    }
    /// Times between consecutive iteration marks.
    pub fn iterations(&self) -> Vec<Ps> {
        self.marks.windows(2).map(|w| w[1].at - w[0].at).collect()
    }
}

/// Σ over pages of what `home(page)`, one of several candidates, costs.
pub(super) struct PageCosts<'a> {
    pub(super) paths: &'a Paths,
    pub(super) histogram: &'a Histogram,
    pub(super) hits: Option<&'a Histogram>,
    /// Nodes with memory.
    pub(super) homes: &'a [NodeId],
}

impl PageCosts<'_> {
    /// What `page` costs on `home`: all its accesses, and those of other nodes that would hit if it
    /// were local.
    fn of(&self, page: PageNo, home: NodeId) -> Ps {
        let cost = |histogram: &Histogram, hits: bool| -> Ps {
            let row = histogram.row(page).unwrap_or_default();
            let nodes = (0u16..).map(NodeId).zip(row).filter(|(node, _)| !hits || *node != home);
            let each = nodes.map(|(node, [r, w])| {
                Ps(self.paths.latency(node, home)).times(u64::from(*r) + u64::from(*w))
            });
            each.sum()
        };
        cost(self.histogram, false) + self.hits.map_or(Ps::ZERO, |hits| cost(hits, true))
    }
    fn pages(&self) -> usize {
        self.histogram.pages().max(self.hits.map_or(0, Histogram::pages))
    }
    /// The sums, with `last` the homes at the end.
    pub(super) fn sums(&self, last: &Placement, actual: Ps) -> LatencySums {
        let mut sums = LatencySums { actual, ..LatencySums::default() };
        for page in (0..self.pages() as u64).map(PageNo) {
            let Some(home) = last.home(page) else { continue };
            let best = self.homes.iter().map(|h| self.of(page, *h)).min();
            sums.bound += best.unwrap_or_default();
            sums.placement += self.of(page, home);
            let row = self.histogram.row(page).unwrap_or_default();
            for (node, [r, w]) in (0u16..).map(NodeId).zip(row) {
                let nearest = self.homes.iter().map(|h| self.paths.latency(node, *h)).min();
                sums.floor += Ps(nearest.unwrap_or(0)).times(u64::from(*r) + u64::from(*w));
            }
        }
        sums
    }
}
