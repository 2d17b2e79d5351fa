//! The machine: nodes, CPUs, latencies, bandwidths, caches, and what a page move costs.
//!
//! A [`Topology`] is plain data. It comes from this machine, from a file or from a preset (crate
//! `machine`), and [`Topology::check`] holds for every one that reaches the simulator.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Bytes, CpuId, MbPerS, NodeId, Ns, Ps};

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Topology {
    /// Short name: `sf15k`, `this machine`.
    pub name: String,
    /// Nodes by [`NodeId`].
    pub nodes: Vec<Node>,
    /// The node of each CPU, by [`CpuId`].
    pub cpus: Vec<NodeId>,
    /// Load-to-use latency of a main-memory access, (CPU's node, memory's node). The rows of nodes
    /// without CPUs exist and are never used.
    pub latency: Matrix<Ns>,
    /// Bandwidth of the path between two different nodes, one direction; 0 = not limited. The
    /// diagonal is unused.
    pub link: Matrix<MbPerS>,
    /// Cache levels from the CPU outwards; the first is the smallest that is modelled.
    pub caches: Vec<Cache>,
    /// Page sizes the machine offers, ascending; powers of two.
    pub page_sizes: Vec<Bytes>,
    /// How a CPU waits.
    pub core: Core,
    /// What moving a page costs.
    pub migration: MigrationCost,
    /// Whether lines of remote memory may be cached.
    pub remote_cacheable: bool,
    /// Whether the machine's monitor counts every reference, so that a policy's counts are the same
    /// wherever a page lives. Otherwise only accesses that leave the caches count, and all accesses
    /// where remote memory is not cached.
    #[cfg_attr(feature = "serde", serde(default))]
    pub counts_references: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Node {
    /// Memory; zero for a node of CPUs only.
    pub memory: Bytes,
    /// Bandwidth of the memory controller(s); 0 = not limited.
    pub bandwidth: MbPerS,
    /// Bandwidth of the node's port to the interconnect, each direction; 0 = not limited.
    pub port: MbPerS,
}

/// Who shares a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CacheScope {
    /// One CPU each.
    Cpu,
    /// Groups of this many consecutive CPUs of a node.
    Group(u32),
    /// All CPUs of a node.
    Node,
}

/// What a cache does with stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Writes {
    /// Write-back, write-allocate.
    Back,
}

/// A cache level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u8,
    /// Size of one cache of this level.
    pub size: Bytes,
    /// Line size; a power of two.
    pub line: Bytes,
    /// Ways of a set.
    pub ways: u32,
    /// Who shares it.
    pub scope: CacheScope,
    /// Store policy.
    pub writes: Writes,
    /// Extra time of a hit here over a hit in the level before.
    pub hit: Ns,
}

impl Cache {
    /// Number of sets.
    pub const fn sets(&self) -> u64 {
        self.size.0 / (self.line.0 * self.ways as u64)
    }
}

/// How a CPU spends time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Core {
    /// Time of an access that no modelled cache level delays, with the instructions around it.
    pub access: Ps,
    /// Main-memory accesses that may be outstanding before the CPU waits; 1 = blocking.
    pub outstanding: u32,
}

/// What it costs to move a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MigrationCost {
    /// Per page: fault or system call, unmapping, page tables.
    pub fixed: Ns,
    /// Per KiB copied.
    pub per_kib: Ns,
    /// TLB shoot-down per page, charged to the mover for each *other* CPU that runs the program.
    pub shootdown: Ns,
    /// Moves exclude each other over the whole machine (a kernel lock).
    pub serialised: bool,
    /// While a page is moved the program's other CPUs stand still: nothing is computed beside a
    /// move.
    pub stops: bool,
}

impl MigrationCost {
    /// Cost of one page of `page` bytes when `others` other CPUs run the program.
    pub const fn of(&self, page: Bytes, others: u64) -> Ns {
        Ns(self
            .fixed
            .0
            .saturating_add(self.per_kib.0.saturating_mul(page.0) >> 10)
            .saturating_add(self.shootdown.0.saturating_mul(others)))
    }
}

/// A square matrix over nodes, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Cells<T>"))]
pub struct Matrix<T> {
    n: usize,
    cells: Vec<T>,
}

/// A matrix as it is read: of any number of cells.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Cells<T> {
    n: usize,
    cells: Vec<T>,
}

#[cfg(feature = "serde")]
impl<T> TryFrom<Cells<T>> for Matrix<T> {
    type Error = &'static str;

    fn try_from(Cells { n, cells }: Cells<T>) -> Result<Self, Self::Error> {
        if n.checked_mul(n) == Some(cells.len()) {
            Ok(Self { n, cells })
        } else {
            Err("the matrix is not square")
        }
    }
}

impl<T: Copy> Matrix<T> {
    /// `n` × `n` cells made by `f(row, column)`.
    pub fn from_fn(n: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let cells = (0..n * n).map(|i| f(i / n, i % n)).collect();
        Self { n, cells }
    }
    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.n
    }
    /// Whether there is no row.
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }
    /// Cell (`row`, `col`).
    ///
    /// # Panics
    /// When either is not below [`Matrix::len`]; [`Topology::check`] guarantees it for node ids of
    /// the same topology.
    #[inline]
    pub fn at(&self, row: NodeId, col: NodeId) -> T {
        self.cells[row.index() * self.n + col.index()]
    }
    /// Row `row`.
    pub fn row(&self, row: NodeId) -> &[T] {
        &self.cells[row.index() * self.n..(row.index() + 1) * self.n]
    }
}

/// Why a topology is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// No node has CPUs, or none has memory.
    Empty(&'static str),
    /// A matrix does not have one row a node.
    Shape {
        /// Which one.
        what: &'static str,
        /// Its rows.
        rows: usize,
        /// Nodes.
        nodes: usize,
    },
    /// A CPU names a node that does not exist.
    NoSuchNode {
        /// The CPU.
        cpu: CpuId,
        /// The node it names.
        node: NodeId,
    },
    /// A value that makes no sense; the text says which and why.
    Value(String),
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(what) => write!(f, "the machine has no {what}"),
            Self::Shape { what, rows, nodes } => {
                write!(f, "the {what} matrix has {rows} rows for {nodes} nodes")
            }
            Self::NoSuchNode { cpu, node } => write!(f, "{cpu} is on {node}, which does not exist"),
            Self::Value(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for TopologyError {}

impl Topology {
    /// Whether accesses that hit in a cache matter: they cost something where remote memory is not
    /// cached, or the monitor counts them.
    pub const fn needs_hits(&self) -> bool {
        !self.remote_cacheable || self.counts_references
    }
    /// Node of a CPU.
    #[inline]
    pub fn node_of(&self, cpu: CpuId) -> NodeId {
        self.cpus[cpu.index()]
    }
    /// CPUs of `node`, ascending.
    pub fn cpus_of(&self, node: NodeId) -> impl Iterator<Item = CpuId> + '_ {
        (0..self.cpus.len() as u32).map(CpuId).filter(move |c| self.node_of(*c) == node)
    }
    /// All node ids, ascending.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u16).map(NodeId)
    }
    /// Nodes that have CPUs, ascending: the only ones that can touch.
    pub fn nodes_with_cpus(&self) -> Vec<NodeId> {
        self.node_ids().filter(|n| self.cpus.contains(n)).collect()
    }
    /// Nodes that have memory, ascending: the only ones that can be a home.
    pub fn nodes_with_memory(&self) -> Vec<NodeId> {
        self.node_ids().filter(|n| self.nodes[n.index()].memory > Bytes::ZERO).collect()
    }
    /// Nodes with memory from `node`'s view, nearest first, ties by id: where an allocation falls
    /// back to.
    pub fn nearest_memory(&self, node: NodeId) -> Vec<NodeId> {
        let mut all = self.nodes_with_memory();
        all.sort_by_key(|m| (self.latency.at(node, *m), *m));
        all
    }
    /// Whether the parts fit together; everything downstream relies on it.
    ///
    /// # Errors
    /// [`TopologyError`] names the first part that does not.
    pub fn check(&self) -> Result<(), TopologyError> {
        let nodes = self.nodes.len();
        for (what, rows) in [("latency", self.latency.len()), ("link", self.link.len())] {
            if rows != nodes {
                return Err(TopologyError::Shape { what, rows, nodes });
            }
        }
        for (i, node) in self.cpus.iter().enumerate() {
            if node.index() >= nodes {
                return Err(TopologyError::NoSuchNode { cpu: CpuId(i as u32), node: *node });
            }
        }
        if self.cpus.is_empty() {
            return Err(TopologyError::Empty("CPU"));
        }
        if self.nodes_with_memory().is_empty() {
            return Err(TopologyError::Empty("memory"));
        }
        self.check_caches()?;
        let bad_page = |p: &Bytes| !p.0.is_power_of_two() || p.0 < 4096;
        if self.page_sizes.is_empty() || self.page_sizes.iter().any(bad_page) {
            return Err(TopologyError::Value("page sizes must be powers of two from 4 KiB up".into()));
        }
        if self.core.outstanding == 0 {
            return Err(TopologyError::Value("a CPU needs at least one outstanding access".into()));
        }
        Ok(())
    }

    fn check_caches(&self) -> Result<(), TopologyError> {
        for c in &self.caches {
            let fits = c.line.0.is_power_of_two()
                && c.ways > 0
                && c.sets() > 0
                && c.sets().is_power_of_two()
                && c.sets() * c.line.0 * u64::from(c.ways) == c.size.0;
            if !fits {
                return Err(TopologyError::Value(alloc::format!(
                    "L{}: size must be line × ways × a power of two of sets ({} / ({} × {}))",
                    c.level,
                    c.size,
                    c.line,
                    c.ways
                )));
            }
        }
        Ok(())
    }
}
