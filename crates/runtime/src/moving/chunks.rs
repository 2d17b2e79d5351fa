//! Moves by the kernel, in calls of limited duration, because the team waits meanwhile.
//!
//! The mover first asks where all pages are. Only pages that are elsewhere go into a call. Each
//! call has one target, because the kernel starts anew at every change of target. At the end the
//! mover asks again, which tells the outcome. The kernel moves a huge page as a whole, whichever of
//! its pages a call names. So a huge page goes to the node that most of its pages should be on, by
//! one of its pages, and no call ends within it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_sys::numa::{self, PageStatus};
use homenode_sys::{Errno, HUGE, PAGE, Result, Span, call, maps};

use super::reports::MoveReport;

/// Pages of the first call.
const FIRST: usize = 64;
/// Fewest pages of a call.
const LEAST: usize = 16;
/// Most pages of a call, not counting the rest of a huge page.
const MOST: usize = 4096;
/// Pages of a huge page.
const WHOLE: usize = HUGE / PAGE;
/// Pages asked for in one call.
const ASKED: usize = 256;

/// The kernel's calls for moving pages, and a clock. Tests replace them.
pub trait System {
    /// As [`numa::query`].
    fn query(&mut self, pages: &[usize], status: &mut [PageStatus]) -> Result<()>;
    /// As [`numa::move_to`].
    fn move_to(&mut self, pages: &[usize], to: &[i32], status: &mut [PageStatus]) -> Result<usize>;
    /// Reports the huge pages of a span of whole units, ascending.
    fn huge_pages(&mut self, units: Span, tell: impl FnMut(Span));
    /// The time.
    fn now(&mut self) -> Ns;
}

/// The kernel.
#[derive(Debug)]
pub struct KernelCalls;

impl System for KernelCalls {
    fn query(&mut self, pages: &[usize], status: &mut [PageStatus]) -> Result<()> {
        numa::query(pages, status)
    }
    fn move_to(&mut self, pages: &[usize], to: &[i32], status: &mut [PageStatus]) -> Result<usize> {
        numa::move_to(pages, to, status)
    }
    fn huge_pages(&mut self, units: Span, tell: impl FnMut(Span)) {
        // Without an answer (before Linux 6.7), each page is asked for.
        let _ = maps::huge_units(units, tell);
    }
    fn now(&mut self) -> Ns {
        call::now()
    }
}

/// A move under way.
#[derive(Clone, Copy, Debug)]
pub struct MoveUnderWay {
    pub page: usize,
    pub to: NodeId,
    /// The page's node before, once known.
    before: PageStatus,
    /// Whether the rest of its huge page goes elsewhere.
    with_others: bool,
    /// Whether the target had no memory.
    refused: bool,
    pub result: Option<MoveResult>,
}

impl MoveUnderWay {
    pub const fn new(page: usize, to: NodeId) -> Self {
        Self { page, to, before: PageStatus::UNKNOWN, with_others: false, refused: false, result: None }
    }

    /// Whether the page must be moved: it exists, is elsewhere, and no huge page keeps it.
    fn is_open(&self) -> bool {
        self.before.node().is_some_and(|node| node != self.to) && !self.with_others
    }

    /// The outcome, if the page is at `now`.
    fn ended(&self, now: PageStatus) -> MoveResult {
        match (self.before.node(), now.node()) {
            (None, _) => failure(self.before.errno()),
            (_, None) => failure(now.errno()),
            (Some(before), Some(now)) if now == self.to && before == now => MoveResult::AlreadyThere,
            (_, Some(now)) if now == self.to => MoveResult::Moved,
            _ if self.refused => MoveResult::NoMemory,
            _ => MoveResult::Busy,
        }
    }

    /// Sets the outcome.
    pub fn finish(&mut self, result: MoveResult, report: &mut MoveReport) {
        self.result = Some(result);
        report.note(result);
    }
}

/// Makes all moves, in calls of about `cap` each.
pub fn move_all(system: &mut impl System, work: &mut [MoveUnderWay], cap: Ns, report: &mut MoveReport) {
    if let Err(e) = ask(system, work, |m, status| m.before = status) {
        report.error = Some(e);
        return work.iter_mut().for_each(|m| m.finish(MoveResult::Busy, report));
    }
    let huge = Huge::among(system, work);
    huge.agree(work);
    work.sort_unstable_by_key(|m| (!m.is_open(), m.to, m.page));
    let open = work.partition_point(MoveUnderWay::is_open);
    let mut rest = &mut work[..open];
    let mut chunk = Chunk::default();
    while !rest.is_empty() {
        let (now, later) = rest.split_at_mut(chunk.fits(rest, &huge));
        chunk.run(system, now, &huge, report, cap);
        rest = later;
    }
    // A page of a huge page has taken the others along.
    if let Err(e) = ask(system, work, |m, status| m.finish(m.ended(status), report)) {
        report.error = Some(e);
    }
    let with_others = work.iter().filter(|m| m.with_others && m.result == Some(MoveResult::Busy)).count();
    report.with_others += Bytes((with_others * PAGE) as u64);
}

/// Reports where each page is now.
fn ask(
    system: &mut impl System,
    work: &mut [MoveUnderWay],
    mut tell: impl FnMut(&mut MoveUnderWay, PageStatus),
) -> Result<()> {
    let mut status = [PageStatus::UNKNOWN; ASKED];
    for part in work.chunks_mut(ASKED) {
        let pages: Vec<usize> = part.iter().map(|m| m.page).collect();
        system.query(&pages, &mut status)?;
        part.iter_mut().zip(status).for_each(|(m, status)| tell(m, status));
    }
    Ok(())
}

/// One call's pages. Their number adapts to the time that a call takes.
struct Chunk {
    pages: usize,
    at: Vec<usize>,
    to: Vec<i32>,
    status: Vec<PageStatus>,
}

impl Default for Chunk {
    fn default() -> Self {
        const ROOM: usize = MOST + WHOLE;
        let (at, to) = (Vec::with_capacity(ROOM), Vec::with_capacity(ROOM));
        Self { pages: FIRST, at, to, status: vec![PageStatus::UNKNOWN; ROOM] }
    }
}

impl Chunk {
    /// How many of the moves fit one call: of one target, and all of a huge page's.
    fn fits(&self, moves: &[MoveUnderWay], huge: &Huge) -> usize {
        let same = moves.iter().take_while(|m| m.to == moves[0].to).count();
        let n = same.min(self.pages);
        let unit = huge.unit_of(moves[n - 1].page);
        n + moves[n..same].iter().take_while(|m| unit.is_some() && huge.unit_of(m.page) == unit).count()
    }

    fn run(
        &mut self,
        system: &mut impl System,
        moves: &mut [MoveUnderWay],
        huge: &Huge,
        report: &mut MoveReport,
        cap: Ns,
    ) {
        let begin = system.now();
        self.at.clear();
        // One page moves a huge page.
        let mut last = None;
        self.at.extend(moves.iter().map(|m| m.page).filter(|page| {
            let unit = huge.unit_of(*page);
            std::mem::replace(&mut last, unit) != unit || unit.is_none()
        }));
        self.to.clear();
        self.to.resize(self.at.len(), i32::from(moves[0].to.0));
        self.status[..self.at.len()].fill(PageStatus::UNKNOWN);
        // A positive number: that many were not tried, and no status is reliable. All are asked for
        // again in any case.
        if let Err(e) = system.move_to(&self.at, &self.to, &mut self.status) {
            report.error = Some(e);
        }
        self.refused(moves);
        let took = (system.now() - begin).0.max(1);
        let fits = (moves.len() as u64).saturating_mul(cap.0) / took;
        self.pages = (fits as usize).clamp(LEAST, (self.pages * 2).min(MOST));
    }

    /// Notes what the kernel said of pages that it tried and did not move. Only "no memory" differs
    /// from "busy" in a useful way.
    fn refused(&mut self, moves: &mut [MoveUnderWay]) {
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

/// The addresses of the huge pages among some moves, ascending. The kernel moves each as a whole.
struct Huge(Vec<usize>);

impl Huge {
    fn among(system: &mut impl System, moves: &[MoveUnderWay]) -> Self {
        let mut starts: Vec<usize> = moves.iter().map(|m| m.page & !(HUGE - 1)).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut found = Vec::new();
        for run in starts.chunk_by(|a, b| a + HUGE == *b) {
            system.huge_pages(Span::new(run[0], run.len() * HUGE), |unit| found.push(unit.start));
        }
        Self(found)
    }

    fn unit_of(&self, page: usize) -> Option<usize> {
        let start = page & !(HUGE - 1);
        self.0.binary_search(&start).is_ok().then_some(start)
    }

    /// Notes pages that do not get their target because the rest of their huge page goes elsewhere.
    fn agree(&self, moves: &mut [MoveUnderWay]) {
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

/// The node that most of the pages should be on. Among equals: the one where they are, or the
/// first.
fn most_wanted(nodes: &BTreeMap<NodeId, usize>, home: Option<NodeId>) -> Option<NodeId> {
    nodes.iter().max_by_key(|(node, n)| (**n, home == Some(**node), Reverse(**node))).map(|(node, _)| *node)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOENT: PageStatus = PageStatus(-libc::ENOENT);
    const CAP: Ns = Ns(1_000_000);

    /// A kernel whose clock runs as told, and that remembers what it was asked.
    #[derive(Default)]
    struct Stub {
        homes: BTreeMap<usize, u16>,
        huge: Vec<Span>,
        /// Nanoseconds for a page that moves.
        costs: Vec<u64>,
        clock: u64,
        asked: Vec<Vec<usize>>,
        /// Pages, targets and nanoseconds of each call.
        moved: Vec<(Vec<usize>, Vec<i32>, u64)>,
        /// A node without memory.
        full: Option<i32>,
    }

    impl System for Stub {
        fn query(&mut self, pages: &[usize], status: &mut [PageStatus]) -> Result<()> {
            self.asked.push(pages.to_vec());
            let home = |page| self.homes.get(page).map_or(ENOENT, |n| PageStatus(i32::from(*n)));
            status.iter_mut().zip(pages).for_each(|(status, page)| *status = home(page));
            Ok(())
        }
        fn move_to(&mut self, pages: &[usize], to: &[i32], status: &mut [PageStatus]) -> Result<usize> {
            // The costs in turn, the last for ever.
            let call = self.moved.len().min(self.costs.len().saturating_sub(1));
            let cost = self.costs.get(call).copied().unwrap_or(1);
            let mut all = 0;
            for ((page, to), status) in pages.iter().zip(to).zip(status) {
                if self.full == Some(*to) {
                    *status = PageStatus(-libc::ENOMEM);
                    continue;
                }
                let unit = self.huge.iter().find(|unit| unit.contains(*page));
                let unit = unit.copied().unwrap_or(Span::new(*page, PAGE));
                for page in unit.pieces(PAGE) {
                    if let Some(home) = self.homes.get_mut(&page.start) {
                        *home = *to as u16;
                        all += 1;
                    }
                }
                *status = PageStatus(*to);
            }
            self.clock += cost * all;
            self.moved.push((pages.to_vec(), to.to_vec(), cost * all));
            Ok(0)
        }
        fn huge_pages(&mut self, units: Span, tell: impl FnMut(Span)) {
            self.huge.iter().copied().filter(|unit| units.contains(unit.start)).for_each(tell);
        }
        fn now(&mut self) -> Ns {
            Ns(self.clock)
        }
    }

    /// `n` pages from `first` on, at home on node 0.
    fn pages(first: usize, n: usize) -> impl Iterator<Item = usize> {
        (0..n).map(move |i| (first + i) * PAGE)
    }

    fn run(stub: &mut Stub, moves: &[(usize, u16)]) -> (MoveReport, Vec<Option<MoveResult>>) {
        let mut moves: Vec<MoveUnderWay> =
            moves.iter().map(|(page, to)| MoveUnderWay::new(*page, NodeId(*to))).collect();
        let mut report = MoveReport::default();
        move_all(stub, &mut moves, CAP, &mut report);
        moves.sort_unstable_by_key(|m| (m.to, m.page));
        (report, moves.iter().map(|m| m.result).collect())
    }

    #[test]
    fn pages_are_asked_for_first_and_a_call_is_for_one_target() {
        // Of six pages one is there already, one is nowhere, and node 3 has no memory.
        let mut stub = Stub { full: Some(3), ..Stub::default() };
        stub.homes = [(1, 0), (2, 1), (3, 0), (5, 0), (6, 0)].map(|(p, n)| (p * PAGE, n)).into();
        let moves = [(3, 2), (1, 1), (4, 1), (2, 1), (5, 1), (6, 3)].map(|(p, n)| (p * PAGE, n));
        let (report, results) = run(&mut stub, &moves);
        let moved: Vec<_> = stub.moved.iter().map(|(pages, to, _)| (pages.clone(), to.clone())).collect();
        assert_eq!(
            moved,
            [(vec![PAGE, 5 * PAGE], vec![1, 1]), (vec![3 * PAGE], vec![2]), (vec![6 * PAGE], vec![3])]
        );
        assert_eq!(stub.asked[0], [3, 1, 4, 2, 5, 6].map(|p| p * PAGE), "all, before any is moved");
        assert!(stub.asked.len() == 2 && stub.asked[1].len() == 6, "{:?}", stub.asked);
        use MoveResult::{AlreadyThere, Moved, NoMemory, NoPage};
        let want = [Moved, AlreadyThere, NoPage, Moved, Moved, NoMemory].map(Some);
        assert_eq!(results, want);
        let page = |n: u64| Bytes(n * PAGE as u64);
        let got = [report.moved, report.already, report.no_page, report.no_memory, report.busy];
        assert_eq!(got, [page(3), page(1), page(1), page(1), page(0)]);
    }

    #[test]
    fn a_call_takes_about_the_cap_whatever_a_page_costs() {
        // 1 µs a page: more and more of them, to the most that fit; then 8 times as slow, then so
        // slow that none fits.
        let mut stub = Stub { costs: vec![1000; 6], ..Stub::default() };
        stub.costs.extend([8000; 6]);
        stub.costs.push(2_000_000);
        stub.homes = pages(0, 6000).map(|p| (p, 0)).collect();
        let moves: Vec<_> = pages(0, 6000).map(|p| (p, 1)).collect();
        let (report, _) = run(&mut stub, &moves);
        assert_eq!(report.moved, Bytes(6000 * PAGE as u64));
        let lengths: Vec<_> = stub.moved.iter().map(|(pages, ..)| pages.len()).collect();
        let (first, last) = lengths.split_at(13);
        assert_eq!(first, [64, 128, 256, 512, 1000, 1000, 1000, 125, 125, 125, 125, 125, 125]);
        assert!(last[..last.len() - 1].iter().all(|n| *n == LEAST) && last.len() > 10, "{last:?}");
        // Over the cap only where the cost has just risen, or with the fewest pages.
        let over = |i: &usize| stub.moved[*i].2 > CAP.0 && lengths[*i] > LEAST;
        assert_eq!((0..lengths.len()).filter(over).collect::<Vec<_>>(), [6, 12]);
    }

    #[test]
    fn a_call_has_no_more_pages_than_the_most() {
        let mut stub = Stub { costs: vec![0], ..Stub::default() };
        stub.homes = pages(0, 20_000).map(|p| (p, 0)).collect();
        let moves: Vec<_> = pages(0, 20_000).map(|p| (p, 1)).collect();
        run(&mut stub, &moves);
        let lengths: Vec<_> = stub.moved.iter().map(|(pages, ..)| pages.len()).collect();
        assert_eq!(lengths, [64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096, 3680]);
    }

    #[test]
    fn a_huge_page_is_moved_whole_by_its_first_page() {
        // Small pages around three places for huge pages, of which the second is of small pages.
        let mut stub = Stub { costs: vec![1], ..Stub::default() };
        let unit = |i: usize| Span::new((2 + i) * HUGE, HUGE);
        stub.huge = vec![unit(0), unit(2)];
        let (first, n) = (2 * WHOLE - 30, 3 * WHOLE + 60);
        stub.homes = pages(first, n).map(|p| (p, 0)).collect();
        let moves: Vec<_> = pages(first, n).map(|p| (p, 1)).collect();
        let (report, _) = run(&mut stub, &moves);
        assert_eq!((report.moved, report.already), (Bytes((n * PAGE) as u64), Bytes(0)));
        let given: Vec<usize> = stub.moved.iter().flat_map(|(pages, ..)| pages.clone()).collect();
        let is_tail = |p: &usize| stub.huge.iter().any(|u| u.contains(*p) && u.start != *p);
        assert_eq!(given.iter().filter(|p| is_tail(p)).count(), 0);
        // Once each, and nothing else: 60 around, the second place, two first pages.
        assert_eq!(given.len(), 60 + WHOLE + 2);
    }

    #[test]
    fn a_huge_page_that_is_for_several_nodes_goes_to_one() {
        let mut stub = Stub { huge: vec![Span::new(HUGE, HUGE)], ..Stub::default() };
        stub.homes = pages(WHOLE, WHOLE).map(|p| (p, 0)).collect();
        let moves: Vec<_> = pages(WHOLE, WHOLE).map(|p| (p, 1 + u16::from(p >= HUGE + HUGE / 4))).collect();
        let (report, _) = run(&mut stub, &moves);
        let quarter = Bytes(HUGE as u64 / 4);
        let got = [report.moved, report.busy, report.with_others];
        assert_eq!(got, [Bytes(3 * quarter.0), quarter, quarter]);
        assert!(stub.moved.len() == 1 && stub.homes.values().all(|n| *n == 2), "{:?}", stub.moved);
    }

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
            MoveUnderWay { before: PageStatus(before), ..MoveUnderWay::new(0, NodeId(2)) }
                .ended(PageStatus(now))
        };
        assert_eq!([ended(0, 2), ended(2, 2)], [MoveResult::Moved, MoveResult::AlreadyThere]);
        assert_eq!([ended(0, 1), ended(2, 1)], [MoveResult::Busy; 2], "a huge page went elsewhere");
        assert_eq!([ended(-libc::ENOENT, 2), ended(0, -libc::ENOENT)], [MoveResult::NoPage; 2]);
    }

    #[test]
    fn no_call_ends_within_a_huge_page() {
        let work = |page: usize, to: u16| MoveUnderWay::new(page * PAGE, NodeId(to));
        const UNIT: usize = HUGE / PAGE;
        let moves: Vec<MoveUnderWay> =
            (10..3 * UNIT).map(|page| work(page, u16::from(page >= 2 * UNIT))).collect();
        let (chunk, huge) = (Chunk::default(), Huge(vec![UNIT * PAGE, 2 * UNIT * PAGE]));
        assert_eq!(chunk.fits(&moves, &huge), 64, "there is none");
        let from = |page: usize| chunk.fits(&moves[page - 10..], &huge);
        assert_eq!([from(UNIT - 1), from(UNIT), from(UNIT + 500)], [1 + UNIT, UNIT, 12]);
        assert_eq!(from(2 * UNIT), UNIT);
    }
}
