//! A small driver for the property tests. It asserts what holds for *every* policy: no page goes to
//! a node without memory or without room, and a step of `Act` has decisions.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use homenode_model::{
    AccessKind, Bytes, Decision, DecisionBuf, Event, Matrix, MbPerS, MoveOutcome, MoveResult, NodeId, Ns,
    ObjectId, PageNo, PageRange, Placement,
};
use proptest::prelude::*;

use crate::{Policy, PolicyContext, Step};

/// Nodes of the test machine: 0, 1, 2 with CPUs and memory, 3 with CPUs alone.
pub(crate) const NODES: usize = 4;

/// Room for all pages that the tests use, on the nodes with memory.
pub(crate) fn roomy() -> Vec<u64> {
    vec![10_000, 10_000, 10_000, 0]
}

/// Nodes in a row; the nearer is the one with the smaller distance.
pub(crate) fn machine(capacity: &[u64]) -> PolicyContext {
    let nearest = (0..NODES as u16)
        .map(|from| {
            let mut all: Vec<NodeId> = (0..3).map(NodeId).collect();
            all.sort_by_key(|to| (from.abs_diff(to.0), *to));
            all
        })
        .collect();
    PolicyContext {
        capacity: capacity.to_vec(),
        nearest,
        page: Bytes::kib(4),
        latency: Matrix::from_fn(NODES, |a, b| Ns(100 + 100 * a.abs_diff(b) as u64)),
        bandwidth: vec![MbPerS(6400); NODES],
        line: Bytes(64),
        migration: Ns(1000),
        running: Vec::new(),
        plan: None,
    }
}

/// Capacities that may run out, and touches of pages below 64.
pub(crate) fn touches() -> impl Strategy<Value = (Vec<u64>, Vec<(PageNo, NodeId)>)> {
    let capacity = [1u64..30, 1u64..30, 1u64..30].prop_map(|[a, b, c]| vec![a, b, c, 0]);
    let touch = (0u64..64, 0..NODES as u16).prop_map(|(p, n)| (PageNo(p), NodeId(n)));
    (capacity, proptest::collection::vec(touch, 0..150))
}

/// What is done to a page in an interval.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) page: PageNo,
    /// Accesses by node.
    pub(crate) counts: [u32; NODES],
    /// They are writes.
    pub(crate) write: bool,
}

/// Intervals: in each, some pages below 64, ascending, with some access to each.
pub(crate) fn counts() -> impl Strategy<Value = Vec<Vec<Row>>> {
    let count = prop_oneof![2 => Just(0u32), 2 => 1u32..100, 1 => 1u32..100_000];
    let row = (proptest::array::uniform4(count), any::<bool>());
    let round = proptest::collection::btree_map(0u64..64, row, 0..40);
    let round = round.prop_map(|rows| {
        let rows = rows.into_iter().map(|(p, (counts, write))| Row { page: PageNo(p), counts, write });
        rows.filter(|r| r.counts.iter().any(|c| *c > 0)).collect()
    });
    proptest::collection::vec(round, 0..12)
}

/// See the module.
pub(crate) struct Bench<P> {
    policy: P,
    capacity: Vec<u64>,
    home: Placement,
    copies: Vec<(PageNo, NodeId)>,
    frames: Vec<(PageNo, NodeId)>,
    armed: Vec<bool>,
    /// Accesses that the policy does not know of yet.
    untold: BTreeMap<(PageNo, NodeId, AccessKind), u32>,
    now: Ns,
    rounds: u32,
    /// Moves carried out.
    pub(crate) moves: u64,
}

impl<P: Policy> Bench<P> {
    pub(crate) fn new(context: &PolicyContext, policy: P) -> Self {
        Self {
            policy,
            capacity: context.capacity.clone(),
            home: Placement::new(),
            copies: Vec::new(),
            frames: Vec::new(),
            untold: BTreeMap::new(),
            now: Ns(0),
            rounds: 0,
            armed: vec![false; 20_000],
            moves: 0,
        }
    }
    pub(crate) fn used(&self, node: NodeId) -> u64 {
        let replicas = self.copies.iter().chain(&self.frames);
        let copies = replicas.filter(|(_, n)| *n == node).count();
        (self.home.iter().filter(|(_, n)| *n == node).count() + copies) as u64
    }
    pub(crate) fn room(&self) -> Vec<u64> {
        (0u16..).zip(&self.capacity).map(|(n, c)| c - self.used(NodeId(n))).collect()
    }
    pub(crate) fn home(&self, page: PageNo) -> Option<NodeId> {
        self.home.home(page)
    }
    pub(crate) fn homes(&self) -> &Placement {
        &self.home
    }
    /// First touch of `page`; its home if this was one and the machine is not full.
    pub(crate) fn fault(&mut self, page: PageNo, node: NodeId) -> Option<NodeId> {
        if self.home(page).is_some() {
            return None;
        }
        self.observe(&Event::Fault { page, node });
        assert!(self.home(page).is_some() || self.room().iter().all(|r| *r == 0), "{page} left homeless");
        self.home(page)
    }
    /// A touch of a page, armed or not.
    pub(crate) fn touch(&mut self, page: PageNo, node: NodeId) {
        if let (Some(home), true) = (self.home(page), self.armed[page.index()]) {
            self.armed[page.index()] = false;
            self.observe(&Event::Touched { page, home, node });
        }
    }
    pub(crate) fn request(&mut self, pages: PageRange) {
        self.observe(&Event::NextTouchRequest { pages });
    }
    pub(crate) fn free(&mut self, object: ObjectId, pages: PageRange) {
        self.home.clear_range(pages, |_, _| {});
        self.copies.retain(|(p, _)| !pages.contains(*p));
        self.frames.retain(|(p, _)| !pages.contains(*p));
        pages.iter().for_each(|p| self.armed[p.index()] = false);
        self.observe(&Event::Free { object, pages });
    }
    /// Accesses of a page that has a home; a write makes copies go. The policy is told when it
    /// wants to be.
    pub(crate) fn accesses(&mut self, page: PageNo, node: NodeId, kind: AccessKind, count: u32) {
        let Some(home) = self.home(page) else { return };
        if kind == AccessKind::Write && self.copies.iter().any(|(p, _)| *p == page) {
            self.copies.retain(|(p, _)| *p != page);
            self.observe(&Event::Collapsed { page, home });
        }
        let told = self.untold.entry((page, node, kind)).or_default();
        *told = told.saturating_add(count);
    }
    fn tell_accesses(&mut self) {
        for ((page, node, kind), count) in core::mem::take(&mut self.untold) {
            if let (Some(home), true) = (self.home(page), count > 0) {
                self.policy.observe(&Event::Accesses { page, home, node, kind, count });
            }
        }
    }
    /// Tells of an interval's accesses; pages without a home are touched first by who accesses them
    /// first.
    pub(crate) fn tell(&mut self, rows: &[Row]) {
        for row in rows {
            let first = row.counts.iter().position(|c| *c > 0).unwrap_or(0);
            self.fault(row.page, NodeId(first as u16));
        }
        for row in rows {
            let kind = if row.write { AccessKind::Write } else { AccessKind::Read };
            for (node, count) in (0u16..).map(NodeId).zip(row.counts).filter(|(_, c)| *c > 0) {
                self.accesses(row.page, node, kind, count);
            }
        }
    }
    /// Tells of an interval's accesses and that a round of the outer loop is over.
    pub(crate) fn iteration(&mut self, rows: &[Row]) {
        self.tell(rows);
        self.rounds += 1;
        self.observe(&Event::Iteration { number: self.rounds - 1 });
    }
    /// The same at the end of a region.
    pub(crate) fn region(&mut self, rows: &[Row]) {
        self.observe(&Event::RegionBegin { region: 0 });
        self.tell(rows);
        self.observe(&Event::RegionEnd { region: 0 });
    }
    /// The same when the policy's time has come.
    pub(crate) fn wake(&mut self, rows: &[Row], after: Ns) {
        self.tell(rows);
        self.later(after);
    }
    /// Nodes with a copy of the page.
    pub(crate) fn copies(&self, page: PageNo) -> Vec<NodeId> {
        self.copies.iter().filter(|(p, _)| *p == page).map(|(_, n)| *n).collect()
    }
    /// Nodes with a frame of the page.
    pub(crate) fn frames(&self, page: PageNo) -> Vec<NodeId> {
        self.frames.iter().filter(|(p, _)| *p == page).map(|(_, n)| *n).collect()
    }
    /// Time goes by; the policy is polled at its end, without an event.
    pub(crate) fn later(&mut self, by: Ns) {
        self.now += by;
        if self.policy.interest().counts_at_wakes {
            self.tell_accesses();
        }
        self.decide();
    }
    pub(crate) fn observe(&mut self, event: &Event) {
        let interest = self.policy.interest();
        match event {
            Event::RegionEnd { .. } if interest.counts_by_region => self.tell_accesses(),
            Event::Iteration { .. } if interest.counts_by_iteration => self.tell_accesses(),
            _ => {}
        }
        self.policy.observe(event);
        self.decide();
    }
    /// Allots a frame; a full node gives up its oldest.
    fn allot(&mut self, page: PageNo, on: NodeId) {
        assert!(self.home(page).is_some(), "{page} has no home");
        let there = self.home(page) == Some(on) || self.frames.contains(&(page, on));
        let mut gone = None;
        if !there && self.room()[on.index()] == 0 {
            gone = self.frames.iter().position(|(_, n)| *n == on).map(|at| self.frames.remove(at).0);
        }
        let result = match there {
            true => MoveResult::AlreadyThere,
            false if self.room()[on.index()] == 0 => MoveResult::NoMemory,
            false => MoveResult::Replicated,
        };
        if result == MoveResult::Replicated {
            self.frames.push((page, on));
        }
        self.policy.outcome(&MoveOutcome { page, to: on, result, cost: Ns(1) });
        if let Some(page) = gone {
            self.policy.observe(&Event::FrameGone { page, node: on });
        }
    }
    /// Polls until the policy has no more to say.
    fn decide(&mut self) {
        for _ in 0..1000 {
            if !self.poll() {
                return;
            }
        }
        panic!("the policy does not stop deciding");
    }
    fn poll(&mut self) -> bool {
        let mut out = DecisionBuf::new();
        let step = self.policy.poll(self.now, &mut out);
        assert_eq!(step == Step::Act, !out.as_slice().is_empty());
        for decision in out.as_slice() {
            match *decision {
                Decision::Place { page, node } => {
                    assert!(self.room()[node.index()] > 0, "{node} has no room");
                    assert_eq!(self.home(page), None);
                    self.home.set(page, node);
                }
                Decision::Move { page, to } => {
                    let there = self.home(page) == Some(to);
                    assert!(self.home(page).is_some(), "{page} has no home to move from");
                    assert!(there || self.room()[to.index()] > 0, "{to} has no room");
                    let result = if there { MoveResult::AlreadyThere } else { MoveResult::Moved };
                    self.home.set(page, to);
                    self.copies.retain(|(p, _)| *p != page);
                    self.frames.retain(|(p, _)| *p != page);
                    self.moves += u64::from(!there);
                    self.policy.outcome(&MoveOutcome { page, to, result, cost: Ns(1) });
                }
                Decision::Replicate { page, on } => {
                    let there = self.home(page) == Some(on) || self.copies.contains(&(page, on));
                    assert!(self.home(page).is_some(), "{page} has no home to copy from");
                    assert!(there || self.room()[on.index()] > 0, "{on} has no room");
                    let result = if there { MoveResult::AlreadyThere } else { MoveResult::Replicated };
                    if !there {
                        self.copies.push((page, on));
                    }
                    self.policy.outcome(&MoveOutcome { page, to: on, result, cost: Ns(1) });
                }
                Decision::ReplicateLines { page, on } => self.allot(page, on),
                Decision::Arm { pages } => pages.iter().for_each(|p| self.armed[p.index()] = true),
                _ => {}
            }
        }
        step == Step::Act
    }
}
