//! Moves by the kernel in calls that take about as long as they may: the team waits meanwhile.
//!
//! Each call is for one target, for the kernel starts anew at every change. Pages are asked for first, and only those that are elsewhere
//! go into the call; asked for again, they say what became of them. A huge page moves whole with its first page, so it is never cut in two
//! calls: the second would find its part there already.

use homenode_model::{MoveResult, Ns};
use homenode_sys::numa::{self, Status};
use homenode_sys::{Errno, HUGE, PAGE, Result, Span, call, maps};

use super::kernel::{MoveReport, Work};

/// Pages of the first call.
const FIRST: usize = 64;
/// Fewest pages a call.
const LEAST: usize = 16;
/// Most pages a call, but for the rest of a huge page.
const MOST: usize = 4096;
/// Pages of a huge page.
const WHOLE: usize = HUGE / PAGE;

/// Who moves pages, and a clock.
pub trait System {
    /// As [`numa::query`].
    fn query(&mut self, pages: &[usize], status: &mut [Status]) -> Result<()>;
    /// As [`numa::move_to`].
    fn move_to(&mut self, pages: &[usize], to: &[i32], status: &mut [Status]) -> Result<usize>;
    /// Whether there is one huge page.
    fn is_huge(&mut self, unit: Span) -> bool;
    /// The time.
    fn now(&mut self) -> Ns;
}

/// The kernel.
#[derive(Debug)]
pub struct Kernel;

impl System for Kernel {
    fn query(&mut self, pages: &[usize], status: &mut [Status]) -> Result<()> {
        numa::query(pages, status)
    }
    fn move_to(&mut self, pages: &[usize], to: &[i32], status: &mut [Status]) -> Result<usize> {
        numa::move_to(pages, to, status)
    }
    fn is_huge(&mut self, unit: Span) -> bool {
        let mut found = false;
        // Where the kernel does not tell, pages are moved one by one.
        let _ = maps::huge_units(unit, |_| found = true);
        found
    }
    fn now(&mut self) -> Ns {
        call::now()
    }
}

/// Makes all moves, which are sorted by target and page.
pub fn move_all(system: &mut impl System, moves: &mut [Work], cap: Ns, report: &mut MoveReport) {
    let mut chunk = Chunk::default();
    let mut rest = moves;
    while !rest.is_empty() {
        let n = chunk.length(system, rest);
        let (now, later) = rest.split_at_mut(n);
        chunk.run(system, now, report, cap);
        rest = later;
    }
}

/// One call's worth, which adapts to what a call takes.
struct Chunk {
    pages: usize,
    at: Vec<usize>,
    to: Vec<i32>,
    status: Vec<Status>,
}

impl Default for Chunk {
    fn default() -> Self {
        let most = MOST + WHOLE;
        let (at, to) = (Vec::with_capacity(most), Vec::with_capacity(most));
        Self { pages: FIRST, at, to, status: vec![Status::UNKNOWN; most] }
    }
}

impl Chunk {
    /// How many of the moves come next.
    fn length(&self, system: &mut impl System, moves: &[Work]) -> usize {
        let n = moves.len().min(self.pages);
        let n = moves[..n].iter().take_while(|m| m.to == moves[0].to).count();
        let last = moves[n - 1].page;
        let unit = Span::new(last & !(HUGE - 1), HUGE);
        let Some(begin) = n.checked_sub((last - unit.start) / PAGE + 1) else { return n };
        let end = begin + WHOLE;
        match moves.get(begin..end) {
            Some(cut) if end > n && is_whole(cut) && system.is_huge(unit) => end,
            _ => n,
        }
    }

    fn run(&mut self, system: &mut impl System, moves: &mut [Work], report: &mut MoveReport, cap: Ns) {
        let begin = system.now();
        self.at.clear();
        self.at.extend(moves.iter().map(|m| m.page));
        if let Err(e) = system.query(&self.at, &mut self.status) {
            report.error = Some(e);
            return moves.iter_mut().for_each(|m| m.finish(MoveResult::Busy, report));
        }
        for (m, status) in moves.iter_mut().zip(&self.status) {
            m.result = match (status.node(), status.errno()) {
                (Some(node), _) if node == m.to => Some(MoveResult::AlreadyThere),
                (Some(_), _) => None,
                (None, e) => Some(failure(e)),
            };
        }
        self.at.clear();
        let huge = Huge::among(system, moves);
        self.at
            .extend(moves.iter().filter(|m| m.result.is_none() && !huge.has_as_tail(m.page)).map(|m| m.page));
        if !self.at.is_empty() {
            self.to.clear();
            self.to.resize(self.at.len(), i32::from(moves[0].to.0));
            // More than 0: so many were not tried and no status is to be trusted. All are asked for again in any case.
            if let Err(e) = system.move_to(&self.at, &self.to, &mut self.status) {
                report.error = Some(e);
            }
            self.refused(moves);
            self.ask_again(system, moves);
        }
        moves.iter_mut().for_each(|m| m.finish(m.result.unwrap_or(MoveResult::Busy), report));
        let took = (system.now() - begin).0.max(1);
        let fits = (moves.len() as u64).saturating_mul(cap.0) / took;
        self.pages = (fits as usize).clamp(LEAST, (self.pages * 2).min(MOST));
    }

    /// What the kernel said of the pages that it tried and did not move: only "no memory" is worth telling from "busy".
    fn refused(&mut self, moves: &mut [Work]) {
        let mut moves = moves.iter_mut();
        for (page, status) in self.at.iter().zip(&self.status) {
            if status.errno() == Some(Errno(libc::ENOMEM))
                && let Some(m) = moves.find(|m| m.page == *page)
            {
                m.result = Some(MoveResult::NoMemory);
            }
        }
    }

    fn ask_again(&mut self, system: &mut impl System, moves: &mut [Work]) {
        let open = |m: &Work| matches!(m.result, None | Some(MoveResult::NoMemory));
        self.at.clear();
        self.at.extend(moves.iter().filter(|m| open(m)).map(|m| m.page));
        if system.query(&self.at, &mut self.status).is_err() {
            return;
        }
        for (m, status) in moves.iter_mut().filter(|m| open(m)).zip(&self.status) {
            match status.node() {
                Some(node) if node == m.to => m.result = Some(MoveResult::Moved),
                Some(_) => {
                    m.result.get_or_insert(MoveResult::Busy);
                }
                None => m.result = Some(failure(status.errno())),
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

/// Whether these, as many as a huge page has, are the pages of one place for a huge page, with one target.
fn is_whole(moves: &[Work]) -> bool {
    let (first, last) = (&moves[0], &moves[moves.len() - 1]);
    first.page.is_multiple_of(HUGE) && last.page == first.page + HUGE - PAGE && last.to == first.to
}

/// The huge pages among some moves: their first page moves them whole.
struct Huge(Vec<Span>);

impl Huge {
    fn among(system: &mut impl System, moves: &[Work]) -> Self {
        let units = moves.windows(WHOLE).filter(|w| is_whole(w)).map(|w| Span::new(w[0].page, HUGE));
        Self(units.filter(|unit| system.is_huge(*unit)).collect())
    }

    fn has_as_tail(&self, page: usize) -> bool {
        self.0.iter().any(|s| s.contains(page) && s.start != page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::{Bytes, NodeId};
    use std::collections::BTreeMap;

    const ENOENT: Status = Status(-libc::ENOENT);
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
        fn query(&mut self, pages: &[usize], status: &mut [Status]) -> Result<()> {
            self.asked.push(pages.to_vec());
            let home = |page| self.homes.get(page).map_or(ENOENT, |n| Status(i32::from(*n)));
            status.iter_mut().zip(pages).for_each(|(status, page)| *status = home(page));
            Ok(())
        }
        fn move_to(&mut self, pages: &[usize], to: &[i32], status: &mut [Status]) -> Result<usize> {
            // The costs in turn, the last for ever.
            let call = self.moved.len().min(self.costs.len().saturating_sub(1));
            let cost = self.costs.get(call).copied().unwrap_or(1);
            let mut all = 0;
            for ((page, to), status) in pages.iter().zip(to).zip(status) {
                if self.full == Some(*to) {
                    *status = Status(-libc::ENOMEM);
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
                *status = Status(*to);
            }
            self.clock += cost * all;
            self.moved.push((pages.to_vec(), to.to_vec(), cost * all));
            Ok(0)
        }
        fn is_huge(&mut self, unit: Span) -> bool {
            self.huge.contains(&unit)
        }
        fn now(&mut self) -> Ns {
            Ns(self.clock)
        }
    }

    /// So many pages from `first` on, at home on node 0.
    fn pages(first: usize, n: usize) -> impl Iterator<Item = usize> {
        (0..n).map(move |i| (first + i) * PAGE)
    }

    fn run(stub: &mut Stub, moves: &[(usize, u16)]) -> (MoveReport, Vec<Option<MoveResult>>) {
        let work = |(page, to): &(usize, u16)| Work { page: *page, to: NodeId(*to), result: None };
        let mut moves: Vec<Work> = moves.iter().map(work).collect();
        moves.sort_unstable_by_key(|m| (m.to, m.page));
        let mut report = MoveReport::default();
        move_all(stub, &mut moves, CAP, &mut report);
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
        assert_eq!(stub.asked[0], [1, 2, 4, 5].map(|p| p * PAGE), "all of a target, before any is moved");
        use MoveResult::{AlreadyThere, Moved, NoMemory, NoPage};
        let want = [Moved, AlreadyThere, NoPage, Moved, Moved, NoMemory].map(Some);
        assert_eq!(results, want);
        let page = |n: u64| Bytes(n * PAGE as u64);
        let got = [report.moved, report.already, report.no_page, report.no_memory, report.busy];
        assert_eq!(got, [page(3), page(1), page(1), page(1), page(0)]);
    }

    #[test]
    fn a_call_takes_about_the_cap_whatever_a_page_costs() {
        // 1 µs a page: more and more of them, to the most that fit; then 8 times as slow, then so slow that none fits.
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
    fn half_a_huge_page_is_moved_page_by_page() {
        // The other half is for another node: the kernel decides.
        let mut stub = Stub { huge: vec![Span::new(HUGE, HUGE)], ..Stub::default() };
        stub.homes = pages(WHOLE, WHOLE).map(|p| (p, 0)).collect();
        let moves: Vec<_> = pages(WHOLE, WHOLE).map(|p| (p, 1 + u16::from(p >= HUGE + HUGE / 2))).collect();
        run(&mut stub, &moves);
        assert!(stub.moved.iter().all(|(_, to, _)| to.iter().all(|n| *n == to[0])));
        assert_eq!(stub.homes.values().filter(|n| **n == 0).count(), 0);
    }
}
