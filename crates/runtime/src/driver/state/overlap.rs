//! Whether pages with a known target move while the team sleeps, or beside the running team.
//!
//! # Problem
//!
//! The team waits for pages that move at the start of a region: seconds for some gigabytes. A
//! thread of homenode's own can move them while the team runs. It then competes with the team for
//! CPUs, for the bandwidth of memory, and for the lock of the address space. Which is cheaper
//! depends on the machine and the program.
//!
//! # Approach
//!
//! Up to [`BULK`] pages move while the team sleeps. For more ([`MoveWhile::Auto`]) the driver
//! measures both costs of a page and takes the lower one:
//!
//! - *Asleep*: how long the team waited for it.
//! - *Beside*: how much longer the region took. Each region with moves beside it is compared with
//!   the mean of the same region before and after it, without moves. The region becomes faster as
//!   pages come home, so one neighbour alone would be too slow or too fast.
//!
//! Until [`ENOUGH`] regions were compared, every second run of a region has moves beside it.

use std::collections::BTreeMap;

use homenode_model::Ns;
use homenode_wire::facts;
use homenode_wire::settings::MoveWhile;

use crate::regions::RegionId;

/// Pages that move while the team sleeps, at the start of one region: 32 MiB.
pub const BULK: u64 = 8192;
/// Compared regions that decide.
const ENOUGH: u64 = 3;
/// Regions that are remembered while it is open which cost is lower.
const REMEMBERED: usize = 1024;

/// Pages that moved, and the time that this took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    pages: u64,
    time: Ns,
}

impl Spent {
    fn add(&mut self, pages: u64, time: Ns) {
        self.pages += pages;
        self.time += time;
    }
}

/// The last runs of one region.
#[derive(Clone, Copy, Debug, Default)]
struct LastRuns {
    /// How long the last run without moves took.
    quiet: Option<Ns>,
    /// The run with moves that waits for the next one without: how long it took, how many pages
    /// moved, and how long the run before it took.
    open: Option<(Ns, u64, Ns)>,
    /// Whether pages moved beside the last run.
    beside: bool,
}

/// The run of a region that is under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    id: RegionId,
    since: Ns,
    moved: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Overlap {
    wanted: MoveWhile,
    /// Whether pages can move while the program runs, by a thread of homenode's own.
    is_able: bool,
    /// Pages that have moved since the current region's start, while the team slept.
    at_start: u64,
    /// Whether pages may move beside the region that runs, or begins.
    beside: bool,
    running: Option<Running>,
    runs: BTreeMap<RegionId, LastRuns>,
    asleep: Spent,
    spare: Spent,
    /// Compared regions, the pages that moved beside them, and by how much they took longer: less
    /// than zero if they were faster.
    compared: u64,
    compared_pages: u64,
    longer: i128,
}

impl Overlap {
    /// Moves as `wanted`. `is_able`: pages can move while the program runs.
    pub fn new(wanted: MoveWhile, is_able: bool) -> Self {
        Self { wanted, is_able, ..Self::default() }
    }

    /// No thread can move pages beside the team.
    pub const fn is_unable(&mut self) {
        self.is_able = false;
    }

    /// Whether moving beside the team is cheaper; `None`: not measured yet.
    fn is_cheaper(&self) -> Option<bool> {
        let longer = u128::try_from(self.longer).unwrap_or(0);
        let each = |time: u128, pages: u64| time.checked_div(u128::from(pages));
        match (each(longer, self.compared_pages), each(u128::from(self.asleep.time.0), self.asleep.pages)) {
            (Some(beside), Some(asleep)) if self.compared >= ENOUGH => Some(beside < asleep),
            _ => None,
        }
    }

    /// A region begins. `waits`: pages with a known target wait.
    pub fn begins(&mut self, id: RegionId, waits: bool) {
        (self.at_start, self.running) = (0, None);
        self.decide(id, waits);
    }

    fn decide(&mut self, id: RegionId, waits: bool) {
        self.beside = waits
            && self.is_able
            && match (self.wanted, self.is_cheaper()) {
                (MoveWhile::Asleep, _) | (MoveWhile::Auto, Some(false)) => false,
                (MoveWhile::Running, _) | (MoveWhile::Auto, Some(true)) => true,
                (MoveWhile::Auto, None) => self.runs.get(&id).is_none_or(|runs| !runs.beside),
            };
    }

    /// Whether it matters how long the region takes that begins: pages wait, or have waited.
    /// `waits`: pages with a known target wait.
    pub fn is_watching(&self, waits: bool) -> bool {
        self.is_able && (waits || (!self.runs.is_empty() && self.is_cheaper().is_none()))
    }

    /// The team starts at `now`. `waits`: pages with a known target wait.
    pub fn runs(&mut self, id: RegionId, waits: bool, now: Ns) {
        self.decide(id, waits);
        self.running = Some(Running { id, since: now, moved: 0 });
    }

    /// The team has joined at `now`.
    pub fn ends(&mut self, now: Ns) {
        self.beside = false;
        let Some(Running { id, since, moved }) = self.running.take() else { return };
        if self.wanted == MoveWhile::Asleep || (moved == 0 && !self.runs.contains_key(&id)) {
            return;
        }
        if self.runs.len() >= REMEMBERED && !self.runs.contains_key(&id) {
            return;
        }
        let runs = self.runs.entry(id).or_default();
        let took = now - since;
        runs.beside = moved > 0;
        if moved > 0 {
            runs.open = runs.quiet.take().map(|before| (took, moved, before));
            return;
        }
        runs.quiet = Some(took);
        if let Some((slow, pages, before)) = runs.open.take() {
            self.compared += 1;
            self.compared_pages += pages;
            self.longer += i128::from(slow.0) - (i128::from(before.0) + i128::from(took.0)) / 2;
        }
    }

    /// Whether pages may move beside the region that runs now.
    pub const fn is_on(&self) -> bool {
        self.beside && self.running.is_some()
    }

    /// Whether pages wait for the team to run, in the region that begins.
    pub const fn is_chosen(&self) -> bool {
        self.beside
    }

    /// Whether no more pages move while the team sleeps, at the start of this region.
    pub fn takes_the_rest(&self) -> bool {
        self.is_able
            && match self.wanted {
                MoveWhile::Asleep => false,
                MoveWhile::Running => true,
                MoveWhile::Auto => self.at_start >= BULK && self.is_cheaper() != Some(false),
            }
    }

    /// This many pages moved while the team slept. It waited for so long.
    pub fn moved_asleep(&mut self, pages: u64, waited: Ns) {
        self.at_start += pages;
        self.asleep.add(pages, waited);
    }

    /// This many pages moved beside the running team, in so much CPU time of homenode's thread.
    pub fn moved_beside(&mut self, pages: u64, spent: Ns) {
        self.spare.add(pages, spent);
        if let Some(run) = &mut self.running {
            run.moved += pages;
        }
    }

    /// What was measured.
    pub fn told(&self) -> facts::KnownMoves {
        facts::KnownMoves {
            asleep: self.asleep.pages,
            waited: self.asleep.time,
            beside: self.spare.pages,
            spare: self.spare.time,
            compared: self.compared,
            compared_pages: self.compared_pages,
            longer: Ns(u64::try_from(self.longer.max(0)).unwrap_or(u64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RegionId = RegionId(1);

    /// A run of region A that takes `took`, while pages wait. Returns whether `pages` moved beside
    /// it.
    fn run(o: &mut Overlap, now: &mut u64, took: u64, pages: u64) -> bool {
        o.begins(A, true);
        o.runs(A, true, Ns(*now));
        let is_on = o.is_on();
        if is_on {
            o.moved_beside(pages, Ns(pages));
        }
        *now += took;
        o.ends(Ns(*now));
        is_on
    }

    fn measured(asleep: u64, interference: u64) -> Overlap {
        let (mut o, mut now) = (Overlap::new(MoveWhile::Auto, true), 0);
        o.moved_asleep(100, Ns(100 * asleep));
        // The region becomes faster by 50 a run, and slower by the moves beside it.
        let mut took = 100_000;
        let mut order = Vec::new();
        for _ in 0..9 {
            let beside = o.runs.get(&A).is_none_or(|runs| !runs.beside);
            let extra = if beside { 100 * interference } else { 0 };
            order.push(run(&mut o, &mut now, took + extra, 100));
            took -= 50;
            if o.compared == ENOUGH {
                break;
            }
        }
        // The first run has none before it that it could be compared with.
        assert_eq!(order, [true, false, true, false, true, false, true, false]);
        assert_eq!((o.told().longer, o.told().compared_pages), (Ns(300 * interference), 300));
        o
    }

    #[test]
    fn the_cheaper_manner_is_chosen_by_what_was_measured() {
        let mut now = 1_000_000;
        let mut cheap = measured(5, 4);
        assert_eq!(cheap.is_cheaper(), Some(true));
        assert!((0..3).all(|_| run(&mut cheap, &mut now, 9, 100)), "every run from now on");
        let mut dear = measured(5, 6);
        assert_eq!(dear.is_cheaper(), Some(false));
        assert!((0..3).all(|_| !run(&mut dear, &mut now, 9, 100)));
        dear.moved_asleep(2 * BULK, Ns(1));
        assert!(!dear.takes_the_rest(), "all of it moves while the team sleeps");
    }

    #[test]
    fn a_region_that_is_faster_with_moves_costs_nothing() {
        let mut o = Overlap::new(MoveWhile::Auto, true);
        o.moved_asleep(1, Ns(1));
        let mut now = 0;
        for took in [10, 50, 10, 50, 10, 50, 10, 50] {
            run(&mut o, &mut now, took, 8);
        }
        assert_eq!((o.is_cheaper(), o.told().longer), (Some(true), Ns(0)));
    }

    #[test]
    fn little_moves_while_the_team_sleeps_and_the_rest_beside_it() {
        let mut o = Overlap::new(MoveWhile::Auto, true);
        o.begins(A, false);
        o.moved_asleep(BULK - 1, Ns(9));
        assert!(!o.takes_the_rest());
        o.moved_asleep(1, Ns(9));
        assert!(o.takes_the_rest() && !o.is_chosen());
        o.runs(A, true, Ns(0));
        assert!(o.is_on());
        o.ends(Ns(1));
        assert!(!o.is_on(), "between two regions nothing moves");
        o.begins(A, true);
        assert!(!o.takes_the_rest(), "each region has its part");
    }

    #[test]
    fn who_cannot_or_must_not_moves_nothing_beside() {
        for (wanted, able) in [(MoveWhile::Asleep, true), (MoveWhile::Running, false)] {
            let mut o = Overlap::new(wanted, able);
            o.begins(A, true);
            o.moved_asleep(9 * BULK, Ns(1));
            o.runs(A, true, Ns(0));
            assert!(!o.is_on() && !o.takes_the_rest(), "{wanted:?}");
        }
        let mut always = Overlap::new(MoveWhile::Running, true);
        always.begins(A, true);
        assert!(always.is_chosen() && always.takes_the_rest());
        always.is_unable();
        assert!(!always.takes_the_rest());
    }
}
