//! Known placement: pages that have to go to a known node are moved by the kernel, in chunks.
//!
//! Where nodes are pretended the kernel has nowhere to move to: then the pages are copied as next touch does it, and
//! their homes noted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_sys::maps::PageEntry;
use homenode_sys::numa::{self, MemoryPolicy, Status};
use homenode_sys::{Errno, HUGE, PAGE, Span, call, maps};

use super::state::{self, count};
use super::table::{self, Block};
use super::{arm, disarm, fault};

/// A page and where it is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The page's address.
    pub page: usize,
    /// Where to.
    pub to: NodeId,
    /// How it ended; before, anything.
    pub result: MoveResult,
}

impl Move {
    /// Not yet made.
    pub const fn new(page: usize, to: NodeId) -> Self {
        Self { page, to, result: MoveResult::Busy }
    }
}

/// A move in the making.
#[derive(Clone, Copy, Debug)]
struct Work {
    page: usize,
    to: NodeId,
    /// Where it was, once that was asked.
    before: Status,
    /// The rest of its huge page goes elsewhere.
    with_others: bool,
    /// The target had no memory.
    refused: bool,
    result: Option<MoveResult>,
}

impl Work {
    const fn new(page: usize, to: NodeId) -> Self {
        Self { page, to, before: Status::UNKNOWN, with_others: false, refused: false, result: None }
    }

    /// To be moved: it is there, elsewhere, and no huge page keeps it.
    fn is_open(&self) -> bool {
        self.before.node().is_some_and(|node| node != self.to) && !self.with_others
    }

    /// How it ended, from where it is `now`.
    fn ended(&self, now: Status) -> MoveResult {
        match (self.before.node(), now.node()) {
            (None, _) => failure(self.before.errno()),
            (_, None) => failure(now.errno()),
            (Some(before), Some(now)) if now == self.to && before == now => MoveResult::AlreadyThere,
            (_, Some(now)) if now == self.to => MoveResult::Moved,
            _ if self.refused => MoveResult::NoMemory,
            _ => MoveResult::Busy,
        }
    }
}

/// What became of several moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// Moved.
    pub moved: Bytes,
    /// Were there already.
    pub already: Bytes,
    /// In use or pinned, or parts of huge pages that go elsewhere.
    pub busy: Bytes,
    /// Of these, the parts of huge pages.
    pub with_others: Bytes,
    /// The target has no memory.
    pub no_memory: Bytes,
    /// Have no home: never touched, or gone.
    pub no_page: Bytes,
    /// The last system call that failed as a whole, if one did.
    pub error: Option<homenode_sys::Error>,
    /// How long it took this thread.
    pub took: Ns,
}

impl MoveReport {
    fn note(&mut self, result: MoveResult) {
        let sum = match result {
            MoveResult::Moved => &mut self.moved,
            MoveResult::AlreadyThere => &mut self.already,
            MoveResult::Busy => &mut self.busy,
            MoveResult::NoMemory => &mut self.no_memory,
            MoveResult::NoPage => &mut self.no_page,
            // What the kernel's moves never answer: it keeps no copies of pages.
            MoveResult::Replicated | MoveResult::Unsupported => return,
        };
        *sum += Bytes(PAGE as u64);
    }
}

/// New pages of `span` come to `node` while it has memory, or to whoever touches them. `false`: not here, for nodes are
/// pretended or policies cannot be set.
///
/// # Errors
/// What the system said.
pub fn prefer(span: Span, node: Option<NodeId>) -> homenode_sys::Result<bool> {
    let possible = state::pretended() == 0 && state::POLICIES.load(Ordering::Relaxed);
    if possible {
        numa::set_policy(span, &node.map_or(MemoryPolicy::DEFAULT, MemoryPolicy::prefer))?;
    }
    Ok(possible)
}

/// The home of the page at each address; `None` for pages that are not there. As many as both slices have. The system call that
/// failed, if one did: then nothing is known of some pages, which are `None`, too.
pub fn homes(pages: &[usize], out: &mut [Option<NodeId>]) -> Option<homenode_sys::Error> {
    /// Pages a call.
    const CHUNK: usize = 256;
    let mut failed = None;
    for (pages, out) in pages.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
        // Armed pages are in the shadow, or inaccessible; there the kernel still knows them.
        let mut at = [0; CHUNK];
        at.iter_mut().zip(pages).for_each(|(at, page)| *at = where_it_is(*page));
        let mut status = [Status::UNKNOWN; CHUNK];
        let mut error = numa::query(&at[..pages.len()], &mut status).err();
        if error.is_some() && !state::KERNEL_MOVES.load(Ordering::Relaxed) {
            error = ask_mappings(&at[..pages.len()], &mut status).err();
        }
        let known = error.is_none();
        failed = error.or(failed);
        for ((out, page), status) in out.iter_mut().zip(pages).zip(status) {
            *out = match (state::pretended(), status.node()) {
                (0, node) if known => node,
                (0, _) => None,
                // First touched by who knows whom: by the initial thread, as most programs do.
                (_, Some(_)) => Some(NodeId(u16::from(table::home(*page).unwrap_or(0)))),
                (_, None) if !known => table::home(*page).map(|n| NodeId(u16::from(n))),
                (_, None) => None,
            };
        }
    }
    failed
}

/// The same where the kernel answers no question about pages. Which are there it says all the same; where one is was noted when it was
/// copied, and of others it is known on which node most of their mapping is.
fn ask_mappings(pages: &[usize], status: &mut [Status]) -> homenode_sys::Result<()> {
    let mut open = Vec::with_capacity(pages.len());
    for (i, page) in pages.iter().enumerate() {
        let mut entry = [PageEntry(0)];
        maps::page_entries(*page, &mut entry)?;
        let there = entry[0].present() || entry[0].swapped();
        status[i] = match (there, table::home(*page)) {
            (true, Some(home)) => Status(i32::from(home)),
            _ => Status(-libc::ENOENT),
        };
        if status[i].node().is_none() && there {
            open.push(i);
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    // The last mapping that begins before a page is the page's.
    maps::each_node(|start, node| {
        let node = node.map_or(Status(-libc::ENOENT), |n| Status(i32::from(n.0)));
        open.iter().filter(|i| pages[**i] >= start).for_each(|i| status[*i] = node);
    })
}

/// Where nodes are pretended: pages of `span` count as `node`'s when they come into memory.
pub fn pretend_home(span: Span, node: NodeId) {
    for piece in span.inner(PAGE).pieces(table::BLOCK) {
        // Without a table their home stays unknown: the first node's.
        if Block::make(piece.start).is_ok() {
            table::set_homes(piece, node.0 as u8);
        }
    }
}

fn where_it_is(page: usize) -> usize {
    let armed =
        || Block::of(page).is_some_and(|b| b.word().armed() & b.pages_touched(Span::new(page, 1)) != 0);
    if state::chosen() == super::Mechanism::UserFault && armed() { table::shadow(page) } else { page }
}

/// Moves pages in the calling thread and sets each result: asked first, sorted by target (the slice,
/// too), huge pages whole, in calls that take about `cap` each. A huge page goes where most of those of its pages are to be that are
/// among the moves.
pub fn move_pages(moves: &mut [Move], cap: Ns) -> MoveReport {
    let begin = call::now();
    let mut report = MoveReport::default();
    moves.sort_unstable_by_key(|m| (m.to, m.page));
    let mut work: Vec<Work> = moves.iter().map(|m| Work::new(m.page, m.to)).collect();
    if state::pretended() != 0 {
        copy_as_if_moved(&mut work, &mut report);
    } else {
        by_kernel(&mut work, &mut report, cap);
    }
    work.sort_unstable_by_key(|m| (m.to, m.page));
    moves.iter_mut().zip(&work).for_each(|(m, w)| m.result = w.result.unwrap_or(MoveResult::Busy));
    if state::pretended() == 0 {
        count(&state::MOVED, report.moved.0);
    }
    report.took = call::now() - begin;
    report
}

/// Asks where all are, before and afterwards: with a page of a huge page the others come along.
fn by_kernel(work: &mut [Work], report: &mut MoveReport, cap: Ns) {
    if let Err(e) = ask(work, |m, status| m.before = status) {
        report.error = Some(e);
        return work.iter_mut().for_each(|m| finish(m, MoveResult::Busy, report));
    }
    let huge = Huge::among(work);
    huge.agree(work);
    work.sort_unstable_by_key(|m| (!m.is_open(), m.to, m.page));
    let open = work.partition_point(Work::is_open);
    let mut rest = &mut work[..open];
    let mut chunk = Chunk::default();
    while !rest.is_empty() {
        let (now, later) = rest.split_at_mut(chunk.fits(rest, &huge));
        chunk.run(now, &huge, report, cap);
        rest = later;
    }
    if let Err(e) = ask(work, |m, status| finish(m, m.ended(status), report)) {
        report.error = Some(e);
    }
    let with_others = work.iter().filter(|m| m.with_others && m.result == Some(MoveResult::Busy)).count();
    report.with_others += Bytes((with_others * PAGE) as u64);
}

/// Tells where each page is now.
fn ask(work: &mut [Work], mut tell: impl FnMut(&mut Work, Status)) -> homenode_sys::Result<()> {
    let mut status = [Status::UNKNOWN; 256];
    for part in work.chunks_mut(status.len()) {
        let pages: Vec<usize> = part.iter().map(|m| m.page).collect();
        numa::query(&pages, &mut status)?;
        part.iter_mut().zip(status).for_each(|(m, status)| tell(m, status));
    }
    Ok(())
}

/// Most pages a call, but for the rest of a huge page.
const MOST: usize = 4096;

/// One call's worth, which adapts to what a call takes.
struct Chunk {
    pages: usize,
    at: Vec<usize>,
    to: Vec<i32>,
    status: Vec<Status>,
}

impl Default for Chunk {
    fn default() -> Self {
        const ROOM: usize = MOST + HUGE / PAGE;
        let (at, to) = (Vec::with_capacity(ROOM), Vec::with_capacity(ROOM));
        Self { pages: 64, at, to, status: vec![Status::UNKNOWN; ROOM] }
    }
}

impl Chunk {
    /// How many of the moves are for one call: of one target, for the kernel starts anew at every change, and all of a huge page's.
    fn fits(&self, moves: &[Work], huge: &Huge) -> usize {
        let same = moves.iter().take_while(|m| m.to == moves[0].to).count();
        let n = same.min(self.pages);
        let unit = huge.unit_of(moves[n - 1].page);
        n + moves[n..same].iter().take_while(|m| unit.is_some() && huge.unit_of(m.page) == unit).count()
    }

    fn run(&mut self, moves: &mut [Work], huge: &Huge, report: &mut MoveReport, cap: Ns) {
        let begin = call::now();
        self.at.clear();
        // One page moves a huge page.
        let mut last = None;
        self.at.extend(moves.iter().map(|m| m.page).filter(|page| {
            let unit = huge.unit_of(*page);
            std::mem::replace(&mut last, unit) != unit || unit.is_none()
        }));
        self.to.clear();
        self.to.resize(self.at.len(), i32::from(moves[0].to.0));
        self.status[..self.at.len()].fill(Status::UNKNOWN);
        // More than 0: so many were not tried and no status is to be trusted. All are asked for again in any case.
        if let Err(e) = numa::move_to(&self.at, &self.to, &mut self.status) {
            report.error = Some(e);
        }
        self.refused(moves);
        let took = (call::now() - begin).0.max(1);
        let fits = (moves.len() as u64).saturating_mul(cap.0) / took;
        self.pages = (fits as usize).clamp(16, (self.pages * 2).min(MOST));
    }

    /// What the kernel said of the pages that it tried and did not move: only "no memory" is worth telling from "busy".
    fn refused(&mut self, moves: &mut [Work]) {
        let mut moves = moves.iter_mut();
        for (page, status) in self.at.iter().zip(&self.status) {
            if status.errno() == Some(Errno(libc::ENOMEM))
                && let Some(m) = moves.find(|m| m.page == *page)
            {
                m.refused = true;
            }
        }
    }
}

fn failure(errno: Option<Errno>) -> MoveResult {
    match errno.map(|e| e.0) {
        Some(libc::ENOENT | libc::EFAULT) => MoveResult::NoPage,
        Some(libc::ENOMEM) => MoveResult::NoMemory,
        _ => MoveResult::Busy,
    }
}

fn finish(m: &mut Work, result: MoveResult, report: &mut MoveReport) {
    m.result = Some(result);
    report.note(result);
}

/// The addresses of the huge pages among some moves, ascending. The kernel moves each as a whole, whichever of its pages it is asked for.
struct Huge(Vec<usize>);

impl Huge {
    fn among(moves: &[Work]) -> Self {
        let mut starts: Vec<usize> = moves.iter().map(|m| m.page & !(HUGE - 1)).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut found = Vec::new();
        for run in starts.chunk_by(|a, b| a + HUGE == *b) {
            // Where the kernel does not tell (before Linux 6.7), each page is asked for.
            let _ = maps::huge_units(Span::new(run[0], run.len() * HUGE), |unit| found.push(unit.start));
        }
        Self(found)
    }

    fn unit_of(&self, page: usize) -> Option<usize> {
        let start = page & !(HUGE - 1);
        self.0.binary_search(&start).is_ok().then_some(start)
    }

    /// Where pages of one huge page are to go to several nodes, notes those that do not get their way.
    fn agree(&self, moves: &mut [Work]) {
        let mut wanted: BTreeMap<usize, BTreeMap<NodeId, usize>> = BTreeMap::new();
        for m in &*moves {
            if let Some(unit) = self.unit_of(m.page) {
                *wanted.entry(unit).or_default().entry(m.to).or_default() += 1;
            }
        }
        wanted.retain(|_, nodes| nodes.len() > 1);
        for m in moves {
            let home = m.before.node();
            let nodes = wanted.get(&(m.page & !(HUGE - 1)));
            m.with_others = nodes.is_some_and(|nodes| most_wanted(nodes, home) != Some(m.to));
        }
    }
}

/// The node that most pages are to go to; of several where they are, or the first.
fn most_wanted(nodes: &BTreeMap<NodeId, usize>, home: Option<NodeId>) -> Option<NodeId> {
    nodes.iter().max_by_key(|(node, n)| (**n, home == Some(**node), Reverse(**node))).map(|(node, _)| *node)
}

/// Pages between two that are armed with them: fewer mappings are worth more than what is armed for nothing.
const GAP: usize = 16;

/// Copies pages to fresh ones and notes the homes. All are armed in one call, which looks at the mappings once.
fn copy_as_if_moved(moves: &mut [Work], report: &mut MoveReport) {
    moves.sort_unstable_by_key(|m| m.page);
    let pages: Vec<usize> = moves.iter().map(|m| m.page).collect();
    let mut at = vec![None; pages.len()];
    report.error = homes(&pages, &mut at).or(report.error);
    for (m, home) in moves.iter_mut().zip(at) {
        match home {
            None => finish(m, MoveResult::NoPage, report),
            Some(node) if node == m.to => finish(m, MoveResult::AlreadyThere, report),
            Some(_) => {}
        }
    }
    let mut spans: Vec<Span> = Vec::new();
    for m in moves.iter().filter(|m| m.result.is_none()) {
        match spans.last_mut() {
            Some(s) if m.page <= s.end + GAP * PAGE => s.end = m.page + PAGE,
            _ => spans.push(Span::new(m.page, PAGE)),
        }
    }
    if spans.is_empty() {
        return;
    }
    let before: Vec<(usize, Option<u8>)> =
        spans.iter().flat_map(|s| s.pieces(PAGE)).map(|p| (p.start, table::home(p.start))).collect();
    let armed = arm::arm(&spans);
    report.error = armed.error.or(report.error);
    let open: Vec<bool> = moves.iter().map(|m| m.result.is_none() && fault::is_armed(m.page)).collect();
    moves.iter().zip(&open).filter(|(_, open)| **open).for_each(|(m, _)| fault::bring_page(m.page, m.to));
    spans.into_iter().for_each(disarm::disarm);
    // Protected blocks come 2 MiB at a time, with whoever is first: the homes are those that were asked for.
    for (page, home) in before {
        match home {
            Some(node) => table::set_homes(Span::new(page, PAGE), node),
            None => table::forget_homes(Span::new(page, PAGE)),
        }
    }
    for (m, open) in moves.iter_mut().zip(open).filter(|(m, _)| m.result.is_none()) {
        let there = open && !fault::is_armed(m.page);
        if there {
            table::set_homes(Span::new(m.page, PAGE), m.to.0.min(254) as u8);
        }
        finish(m, if there { MoveResult::Moved } else { MoveResult::Busy }, report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_goes_where_most_of_it_is_to_go() {
        let most = |wanted: &[(u16, usize)], home| {
            let nodes = wanted.iter().map(|(node, n)| (NodeId(*node), *n)).collect();
            most_wanted(&nodes, Some(NodeId(home)))
        };
        assert_eq!(most(&[(0, 100), (1, 300), (2, 112)], 0), Some(NodeId(1)));
        assert_eq!(most(&[(0, 128), (1, 128), (2, 128), (3, 128)], 2), Some(NodeId(2)), "it is there");
        assert_eq!(most(&[(1, 256), (3, 256)], 0), Some(NodeId(1)));
    }

    #[test]
    fn what_came_along_has_moved_too() {
        let ended = |before: i32, now: i32| {
            Work { before: Status(before), ..Work::new(0, NodeId(2)) }.ended(Status(now))
        };
        assert_eq!([ended(0, 2), ended(2, 2)], [MoveResult::Moved, MoveResult::AlreadyThere]);
        assert_eq!([ended(0, 1), ended(2, 1)], [MoveResult::Busy; 2], "a huge page went elsewhere");
        assert_eq!([ended(-libc::ENOENT, 2), ended(0, -libc::ENOENT)], [MoveResult::NoPage; 2]);
    }

    #[test]
    fn no_call_ends_within_a_huge_page() {
        let work = |page: usize, to: u16| Work::new(page * PAGE, NodeId(to));
        const UNIT: usize = HUGE / PAGE;
        let moves: Vec<Work> = (10..3 * UNIT).map(|page| work(page, u16::from(page >= 2 * UNIT))).collect();
        let (chunk, huge) = (Chunk::default(), Huge(vec![UNIT * PAGE, 2 * UNIT * PAGE]));
        assert_eq!(chunk.fits(&moves, &huge), 64, "there is none");
        let from = |page: usize| chunk.fits(&moves[page - 10..], &huge);
        assert_eq!([from(UNIT - 1), from(UNIT), from(UNIT + 500)], [1 + UNIT, UNIT, 12]);
        assert_eq!(from(2 * UNIT), UNIT);
    }
}
