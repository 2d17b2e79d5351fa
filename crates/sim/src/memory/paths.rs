//! Latencies, and the queues at controllers, ports and links.

use homenode_model::{Bytes, MbPerS, NodeId, Ps, Topology, Ways};

/// How much data an access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// A cache line of the last level.
    Line = 0,
    /// A word, where remote memory is not cached.
    Word = 1,
    /// A page that moves.
    Page = 2,
}

/// One server: first come, first served.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// When it is through with all it has been given.
    free: u64,
    /// Time it has been at work.
    busy: u64,
    /// How long each [`Size`] keeps it.
    takes: [u64; 3],
}

impl Server {
    /// Work of `size` comes in at `now`; how long until it is begun?
    #[inline]
    fn serve(&mut self, now: u64, size: Size) -> u64 {
        let takes = self.takes[size as usize];
        let begun = self.free.max(now);
        self.free = begun.saturating_add(takes);
        self.busy = self.busy.saturating_add(takes);
        begun - now
    }
}

/// All paths of a machine.
///
/// An access joins the queues of all that its data passes ([`Ways`]) when it is issued and is
/// delayed by the longest. For a stream of accesses, that *is* the delay of the servers one after
/// the other with the data cut through: the slowest server's queue hides the others. Passing them
/// one by one would need the accesses in order of arrival at each server; taking the arrival at the
/// first for that at all, as here, keeps a slow link from reserving a controller that is idle
/// meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    nodes: usize,
    latency: Vec<u64>,
    ways: Ways<Server>,
}

impl Paths {
    /// The paths of `topology`, which has been checked.
    pub(super) fn new(topology: &Topology, sizes: [Bytes; 3]) -> Self {
        let server = |bandwidth: MbPerS| Server {
            takes: sizes.map(|bytes| bandwidth.occupancy(bytes).0),
            ..Server::default()
        };
        let pairs = topology.node_ids().flat_map(|a| topology.node_ids().map(move |b| (a, b)));
        Self {
            nodes: topology.nodes.len(),
            latency: pairs.map(|(a, b)| topology.latency.at(a, b).ps().0).collect(),
            ways: Ways::new(topology, server),
        }
    }
    /// Unloaded latency of memory at `home` for a CPU of `node`, in picoseconds.
    #[inline]
    pub(super) fn latency(&self, node: NodeId, home: NodeId) -> u64 {
        self.latency[node.index() * self.nodes + home.index()]
    }
    /// Data comes from the memory of `home` to `node`; how long does it queue?
    #[inline]
    pub(super) fn fetch(&mut self, now: u64, node: NodeId, home: NodeId, size: Size) -> u64 {
        let mut delay = 0;
        self.ways.fetch(node, home, |server| delay = server.serve(now, size).max(delay));
        delay
    }
    /// Data goes from `node` to the memory of `home`; nobody waits.
    #[inline]
    pub(super) fn store(&mut self, now: u64, node: NodeId, home: NodeId, size: Size) {
        self.ways.store(node, home, |server| {
            server.serve(now, size);
        });
    }
    /// A page is copied; nobody but the mover, who pays otherwise, waits.
    pub(super) fn copy(&mut self, now: u64, from: NodeId, to: NodeId) {
        self.ways.fetch(from, from, |server| {
            server.serve(now, Size::Page);
        });
        self.store(now, from, to, Size::Page);
    }
    /// Time at work of each node's controller.
    pub(super) fn controllers_busy(&self) -> Vec<Ps> {
        self.ways.controllers().iter().map(|s| Ps(s.busy)).collect()
    }
    /// Time at work of each directed link, row-major.
    pub(super) fn links_busy(&self) -> Vec<Ps> {
        self.ways.links().iter().map(|s| Ps(s.busy)).collect()
    }
}
