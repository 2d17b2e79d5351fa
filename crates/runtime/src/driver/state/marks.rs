//! Marks of the program: regions, barriers and rounds of the iteration, with their times.
//!
//! A mark says what begins or has ended. The driver decides what follows from a mark.

use homenode_model::Ns;
use homenode_wire::facts::Settled;

use crate::guard::RegionGuard;
use crate::regions::{RegionId, RegionKey, RegionTable, Round, Rounds};

/// Rounds whose times are kept, before and after pages moved.
const TIMES: usize = 4096;
/// Shortest round that is an event of its own for the policy. Shorter rounds are joined.
const SHORTEST_ROUND: Ns = Ns(1_000_000);
/// Bits of an address of the program's code, at most.
const DEPTH_BITS: u32 = 47;

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionStats {
    /// Outlined function and caller.
    pub key: Option<RegionKey>,
    /// How often it ran.
    pub runs: u64,
    /// Time from fork to join, summed.
    pub time: Ns,
    /// Whether arming at its start pays.
    pub guard: RegionGuard,
}

/// Times of rounds.
#[derive(Clone, Debug, Default)]
pub struct RoundTimes {
    /// Rounds that ended before anything was armed.
    pub before: Vec<Ns>,
    /// Rounds after the last arming in which nothing moved.
    pub after: Vec<Ns>,
    /// Rounds of this level so far.
    pub rounds: u64,
}

/// The state of memory in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// Nothing had been armed, and nothing had moved.
    Before,
    /// Pages were moved or sampled in the round.
    Moving,
    /// Something had been armed or moved. In this round nothing moved.
    After,
}

/// A region that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRegion {
    /// Its number.
    pub id: RegionId,
    /// Time from fork to join.
    pub took: Ns,
    /// Whether something was armed at its start.
    pub armed: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ProgramMarks {
    table: RegionTable,
    regions: Vec<RegionStats>,
    rounds: Rounds,
    /// The region that runs, when it began, and whether something was armed at its start.
    current: Option<(RegionId, Ns, bool)>,
    times: RoundTimes,
    last_event: Ns,
    region_ends: u64,
    barriers: u64,
    /// When there was last something to do: own time, the process's CPU time, number of regions.
    busy: (Ns, Ns, u64),
    settled: Option<Settled>,
}

impl ProgramMarks {
    /// A team starts. Returns the region's number, and the round that begins, if one does.
    pub fn region(&mut self, key: RegionKey, now: Ns) -> (RegionId, Option<Round>) {
        let id = self.table.id(key);
        if self.regions.len() <= id.0 as usize {
            self.regions.resize(id.0 as usize + 1, RegionStats::default());
        }
        self.regions[id.0 as usize].key = Some(key);
        (id, self.rounds.push(id.0, now))
    }

    /// The region runs from `now` on. `armed`: something was armed at its start.
    pub const fn runs(&mut self, id: RegionId, now: Ns, armed: bool) {
        self.current = Some((id, now, armed));
    }

    /// The team has joined. `None` if no region runs.
    pub fn joined(&mut self, now: Ns) -> Option<EndedRegion> {
        let (id, since, armed) = self.current.take()?;
        let took = now - since;
        let stats = &mut self.regions[id.0 as usize];
        stats.runs += 1;
        stats.time += took;
        self.region_ends += 1;
        Some(EndedRegion { id, took, armed })
    }

    /// The main thread leaves a barrier of its team. `depth`: bytes of its stack since the team
    /// began. They differ if the waiting routine was called from several places. Returns the round
    /// that begins, if one does.
    pub fn barrier(&mut self, caller: usize, depth: usize, now: Ns) -> Option<Round> {
        self.barriers += 1;
        // Several regions may call one routine with a barrier in it. Each region gets a barrier of
        // its own there, so that none looks like a part of another one. No code lies at addresses
        // as low as these numbers.
        let region = self.current.map_or(0, |(id, ..)| id.0 as usize + 1);
        // Some programs have one routine that waits, and call it after every operation. Only its
        // caller tells what has ended. No return address has these bits.
        let caller = caller ^ (depth << DEPTH_BITS);
        let id = self.table.id(RegionKey { function: 1 + region, caller });
        self.rounds.push(id.0, now)
    }

    /// The program says that round `number` begins.
    pub fn iteration(&mut self, number: u32, now: Ns) -> Round {
        self.rounds.tell(number.into(), now)
    }

    /// Counts the round that has ended. Returns whether the policy gets an event of it.
    pub fn round(&mut self, round: Round, during: During, now: Ns) -> bool {
        if round.new_level {
            // These times belong to another loop.
            self.times = RoundTimes::default();
        }
        // Before the first round that the program marks, no round has ended.
        self.times.rounds += u64::from(!(round.new_level && self.rounds.told()));
        if let Some(took) = round.took {
            let list = match during {
                During::Before => Some(&mut self.times.before),
                During::After => Some(&mut self.times.after),
                During::Moving => None,
            };
            if let Some(list) = list.filter(|l| l.len() < TIMES) {
                list.push(took);
            }
        }
        let is_event = now - self.last_event >= SHORTEST_ROUND;
        if is_event {
            self.last_event = now;
        }
        is_event
    }

    /// Whether the program marks its rounds itself.
    pub fn program_marks_rounds(&self) -> bool {
        self.rounds.told()
    }

    /// Whether the policy has got the event of a round.
    pub fn knows_iteration(&self) -> bool {
        self.last_event > Ns::ZERO
    }

    /// Whether arming at the start of this region pays.
    pub fn guard(&mut self, id: RegionId) -> &mut RegionGuard {
        &mut self.regions[id.0 as usize].guard
    }

    /// homenode has just had something to do: its own time and the process's CPU time so far.
    pub const fn was_busy(&mut self, own: Ns, cpu: Ns) {
        self.busy = (own, cpu, self.region_ends);
    }

    /// The program ends: own time and the process's CPU time so far.
    pub fn end(&mut self, own: Ns, cpu: Ns) {
        let (own_before, cpu_before, regions) = self.busy;
        self.settled = (self.region_ends > regions).then(|| Settled {
            own: own - own_before,
            cpu: cpu - cpu_before,
            regions: self.region_ends - regions,
        });
    }

    /// The last part of the run, in which homenode had nothing to do. `None` before the end, or if
    /// no region ended in it.
    pub const fn settled(&self) -> Option<Settled> {
        self.settled
    }

    /// Regions by number.
    pub fn regions(&self) -> &[RegionStats] {
        &self.regions
    }

    /// Barriers in regions.
    pub const fn barriers(&self) -> u64 {
        self.barriers
    }

    /// Times of rounds.
    pub const fn times(&self) -> &RoundTimes {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn key(function: usize) -> RegionKey {
        RegionKey { function, caller: 9 }
    }

    #[test]
    fn a_region_counts_its_runs_and_their_time() {
        let mut marks = ProgramMarks::default();
        let (first, _) = marks.region(key(1), Ns(0));
        let (second, _) = marks.region(key(2), Ns(0));
        assert_ne!(first, second);
        assert_eq!(marks.joined(Ns(5)), None, "none runs");
        for now in [10, 100] {
            marks.runs(second, Ns(now), now == 10);
            let ended = marks.joined(Ns(now + 7)).unwrap();
            assert_eq!(ended, EndedRegion { id: second, took: Ns(7), armed: now == 10 });
        }
        let [a, b] = marks.regions() else { panic!("two regions") };
        assert_eq!((a.runs, b.runs, b.time, b.key), (0, 2, Ns(14), Some(key(2))));
    }

    #[test]
    fn times_are_kept_by_what_moved_and_a_new_level_drops_them() {
        let mut marks = ProgramMarks::default();
        let round = |new_level, took| Round { number: 1, took: Some(Ns(took)), new_level };
        for (during, took) in [(During::Before, 1), (During::Moving, 2), (During::After, 3)] {
            marks.round(round(false, took), during, Ns(MS));
        }
        let times = marks.times();
        assert_eq!((&times.before[..], &times.after[..], times.rounds), (&[Ns(1)][..], &[Ns(3)][..], 3));
        marks.round(round(true, 9), During::After, Ns(MS));
        let times = marks.times();
        assert_eq!((times.before.len(), &times.after[..], times.rounds), (0, &[Ns(9)][..], 1));
    }

    #[test]
    fn short_rounds_are_one_event() {
        let mut marks = ProgramMarks::default();
        let events: Vec<bool> = (1..=8)
            .map(|i| {
                let now = Ns(i * MS / 2);
                let round = marks.iteration(i as u32, now);
                marks.round(round, During::Before, now)
            })
            .collect();
        assert_eq!(events, [false, true, false, true, false, true, false, true]);
        assert!(marks.knows_iteration() && marks.program_marks_rounds());
    }

    #[test]
    fn a_barrier_belongs_to_its_region_and_to_its_callers_stack() {
        // The region runs a loop over the barriers. If two barriers differ, a round has two of
        // them, and so half as many rounds end.
        let rounds = |barriers: [(usize, usize); 2]| {
            let mut marks = ProgramMarks::default();
            let (id, _) = marks.region(key(1), Ns(0));
            marks.runs(id, Ns(0), false);
            let barrier = |i: u64| {
                let (caller, depth) = barriers[i as usize % 2];
                marks.barrier(caller, depth, Ns(i * MS)).is_some()
            };
            (1..=40).map(barrier).filter(|is_round| *is_round).count()
        };
        let (same, caller, depth) =
            (rounds([(5, 64); 2]), rounds([(5, 64), (6, 64)]), rounds([(5, 64), (5, 80)]));
        assert!(same > 30, "{same}");
        assert!(caller > 10 && caller <= 20 && caller == depth, "{same} {caller} {depth}");
    }

    #[test]
    fn the_settled_part_begins_when_there_was_last_something_to_do() {
        let mut marks = ProgramMarks::default();
        let (id, _) = marks.region(key(1), Ns(0));
        let mut run = |times: u64, busy: Option<(u64, u64)>| {
            for i in 0..times {
                marks.runs(id, Ns(i), false);
                marks.joined(Ns(i));
            }
            busy.into_iter().for_each(|(own, cpu)| marks.was_busy(Ns(own), Ns(cpu)));
            marks.end(Ns(100), Ns(1000));
            marks.settled().map(|s| (s.own.0, s.cpu.0, s.regions))
        };
        assert_eq!(run(0, None), None);
        assert_eq!(run(3, Some((60, 700))), None);
        assert_eq!(run(2, None), Some((40, 300, 2)));
    }
}
