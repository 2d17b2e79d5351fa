//! Who uses which cache line of an object, and in which order.
//!
//! Pages that several nodes use are of three kinds. Either each line has one user: then another
//! layout or another loop order separates them. Or lines are read by several nodes: a table. Or
//! they are written by one and read by others: communication. A data set tells of pages alone, so
//! that the recording is read once more.

use homenode_log::file::LogReader;
use homenode_model::{CpuId, LineNo, NodeId, Rows, ThreadId, Ticks, Topology};
use homenode_order::step::{Mark, Sync};
use homenode_order::{Order, StepSink};

/// Steps between two looks at whoever wants to stop.
const BUDGET: u64 = 1 << 18;
/// Threads that are told apart; the last bit stands for all others.
const THREADS: u32 = 62;
/// A line that was written.
const WRITTEN: u64 = 1 << 63;
/// Latest lines of a thread that the next one is compared with: a loop walks through several arrays
/// or rows at once.
const STREAMS: usize = 4;

/// Which pages are looked at, and when.
#[derive(Clone, Debug)]
pub struct PageScope {
    /// By canonical page: the number of the object, plus one; 0: not looked at.
    pub object: Vec<u16>,
    /// Objects.
    pub objects: usize,
    /// log2 of the lines of a page.
    pub page_lines: u32,
    /// Rounds are known: what comes before the first and after the last mark does not count.
    pub marks: Option<usize>,
    /// The program has regions: only they count.
    pub regions: bool,
}

/// What is known of the lines of an object's pages that are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineUse {
    /// Lines that the threads of one node use.
    pub private: u64,
    /// Lines that several nodes read and nobody writes.
    pub read: u64,
    /// Lines that several nodes use and somebody writes.
    pub written: u64,
    /// Accesses beside a line that the same thread used just before.
    pub near: u64,
    /// Accesses elsewhere, those to the same line left out.
    pub far: u64,
    /// All accesses.
    pub visits: u64,
    /// Threads that access the object, a bit each.
    pub users: u64,
    /// How often a thread accesses the object in a region: once a thread and region.
    pub walks: u64,
}

impl LineUse {
    /// Lines that were used.
    pub const fn lines(&self) -> u64 {
        self.private + self.read + self.written
    }
}

struct Profile<'a> {
    scope: &'a PageScope,
    /// Threads that used the line, a bit each, and [`WRITTEN`].
    lines: Rows<u64>,
    /// Latest lines by thread and object.
    last: Vec<[u64; STREAMS]>,
    uses: Vec<LineUse>,
    /// By thread and object: whether the thread has accessed it in the region under way.
    visited: Vec<bool>,
    open: u64,
    marks: usize,
}

impl StepSink for Profile<'_> {
    #[inline]
    fn access(&mut self, thread: ThreadId, _: Ticks, line: LineNo, write: bool) -> bool {
        let scope = self.scope;
        let object = scope.object.get((line.0 >> scope.page_lines) as usize).copied().unwrap_or(0);
        let timed = scope.marks.is_none_or(|all| self.marks > 0 && (self.marks < all || all == 1));
        if object == 0 || !timed || scope.regions && self.open == 0 {
            return false;
        }
        let object = usize::from(object) - 1;
        let mask = 1 << thread.0.min(THREADS) | if write { WRITTEN } else { 0 };
        self.lines.row_mut(line.0 as usize)[0] |= mask;
        let at = thread.index() * scope.objects + object;
        self.uses[object].visits += 1;
        self.uses[object].users |= 1 << thread.0.min(THREADS);
        if let Some(visited) = self.visited.get_mut(at) {
            self.uses[object].walks += u64::from(!std::mem::replace(visited, true));
        }
        if let Some(last) = self.last.get_mut(at) {
            match last.iter_mut().find(|l| l.abs_diff(line.0) <= 1) {
                Some(at) => {
                    self.uses[object].near += u64::from(*at != line.0);
                    *at = line.0;
                }
                None => {
                    self.uses[object].far += 1;
                    last.rotate_right(1);
                    last[0] = line.0;
                }
            }
        }
        false
    }

    fn sync(&mut self, _: ThreadId, _: Ticks, _: Sync) {}

    fn mark(&mut self, _: ThreadId, _: Ticks, mark: Mark) {
        match mark {
            Mark::Iteration { .. } => self.marks += 1,
            Mark::RegionBegin { .. } => {
                self.open += 1;
                self.visited.fill(false);
            }
            Mark::RegionEnd { .. } => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }
}

/// Reads a recording. `go_on` is asked now and then; `None`: it said no. Damage ends the reading
/// early.
pub fn read(
    mut order: Order<LogReader>,
    machine: &Topology,
    binding: &[CpuId],
    scope: &PageScope,
    mut go_on: impl FnMut() -> bool,
) -> Option<Vec<LineUse>> {
    let mut profile = Profile {
        scope,
        lines: Rows::new(1, 0),
        last: vec![[u64::MAX / 2; STREAMS]; binding.len() * scope.objects],
        uses: vec![LineUse::default(); scope.objects],
        visited: vec![false; binding.len() * scope.objects],
        open: 0,
        marks: 0,
    };
    while let Ok(true) = order.advance(&mut profile, BUDGET) {
        if !go_on() {
            return None;
        }
        if scope.marks.is_some_and(|all| all > 1 && profile.marks >= all) {
            break; // nothing counts any more
        }
    }
    let node_of = |thread: u32| binding.get(thread as usize).map_or(NodeId(0), |cpu| machine.node_of(*cpu));
    let nodes: Vec<NodeId> = (0..=THREADS).map(node_of).collect();
    let Profile { lines, mut uses, .. } = profile;
    for (line, mask) in lines.iter().map(|(line, row)| (line, row[0])).filter(|(_, mask)| *mask != 0) {
        let object = scope.object.get(line >> scope.page_lines).copied().unwrap_or(0);
        let Some(it) = usize::from(object).checked_sub(1).and_then(|o| uses.get_mut(o)) else { continue };
        let mut users = (0..=THREADS).filter(|t| mask >> t & 1 != 0).map(|t| nodes[t as usize]);
        let first = users.next();
        match users.all(|node| Some(node) == first) {
            true => it.private += 1,
            false if mask & WRITTEN == 0 => it.read += 1,
            false => it.written += 1,
        }
    }
    Some(uses)
}
