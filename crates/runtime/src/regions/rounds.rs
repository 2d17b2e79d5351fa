//! Which of the loops that run is the program's iteration.
//!
//! It is the outermost loop of which at least two rounds have ended. Loops that follow one another (an initialisation's,
//! then the solver's) are told from nested ones by time: a loop that has not ended a round for more than
//! [`PATIENCE`] times its longest round is over. What the program says itself (`hn_iteration`) ends the guessing.

use homenode_model::Ns;

use super::nest::{LoopRound, Nest};

/// Rounds' lengths that a loop may stay away before another takes its place.
const PATIENCE: u64 = 3;

/// A round of the iteration has ended, and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// How many have ended of this loop; 2 when it has just been recognised.
    pub number: u64,
    /// Time of the round that ended; not known of a loop that has just been recognised.
    pub took: Option<Ns>,
    /// Another loop than before, or the first.
    pub new_level: bool,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    shape: u64,
    place: usize,
    last: Ns,
    /// The longest round; until one was timed, what none can have exceeded.
    longest: Ns,
    timed: bool,
}

/// Finds the iteration in a sequence of regions and barriers.
#[derive(Debug, Default)]
pub struct Rounds {
    nest: Nest,
    level: Option<Level>,
    told: Option<(u64, Ns)>,
    started: Option<Ns>,
}

impl Rounds {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self { nest: Nest::new(), ..Self::default() }
    }

    /// The next symbol of the sequence, at `now`.
    pub fn push(&mut self, symbol: u32, now: Ns) -> Option<Round> {
        if self.told.is_some() {
            return None;
        }
        let started = *self.started.get_or_insert(now);
        let round = self.nest.push(symbol).round?;
        let bound = Ns((now - started).0 / round.rounds.max(1));
        let Some(level) = &mut self.level else {
            return Some(self.take(round, now, bound));
        };
        if level.shape == round.shape {
            // At another place it is the same loop of the source, entered again: a round began that was not seen to.
            let took = (level.place == round.place).then(|| now - level.last);
            if let Some(took) = took {
                level.longest = if level.timed { level.longest.max(took) } else { took };
                level.timed = true;
            }
            (level.last, level.place) = (now, round.place);
            return Some(Round { number: round.rounds, took, new_level: false });
        }
        let over = now - level.last > level.longest.times(PATIENCE);
        (round.place < level.place || over).then(|| self.take(round, now, bound))
    }

    fn take(&mut self, round: LoopRound, now: Ns, bound: Ns) -> Round {
        self.level =
            Some(Level { shape: round.shape, place: round.place, last: now, longest: bound, timed: false });
        Round { number: round.rounds, took: None, new_level: true }
    }

    /// The program says that round `number` begins.
    pub fn tell(&mut self, number: u64, now: Ns) -> Round {
        let before = self.told.replace((number, now));
        Round { number, took: before.map(|(_, at)| now - at), new_level: before.is_none() }
    }

    /// Whether the program says itself when a round begins.
    pub fn told(&self) -> bool {
        self.told.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols with the time that passes before each.
    fn run(rounds: &mut Rounds, now: &mut u64, symbols: &[(u32, u64)]) -> Vec<Round> {
        let step = |(symbol, time): &(u32, u64)| {
            *now += time;
            rounds.push(*symbol, Ns(*now))
        };
        symbols.iter().filter_map(step).collect()
    }

    #[test]
    fn the_outer_loop_takes_over_from_the_inner() {
        let mut body = vec![(1, 10)];
        body.extend([(2, 5), (3, 5)].repeat(25));
        body.push((4, 40));
        let (mut rounds, mut now) = (Rounds::new(), 0);
        let seen = run(&mut rounds, &mut now, &body.repeat(15));
        let levels = seen.iter().filter(|r| r.new_level).count();
        assert_eq!(levels, 2);
        let last = seen.last().unwrap();
        assert_eq!((last.number, last.took), (15, Some(Ns(300))));
    }

    #[test]
    fn a_loop_that_is_over_makes_room() {
        let (mut rounds, mut now) = (Rounds::new(), 0);
        let init = run(&mut rounds, &mut now, &[(1, 10)].repeat(8));
        assert_eq!(init.last().unwrap().number, 8);
        let solver = run(&mut rounds, &mut now, &[(5, 30), (6, 30)].repeat(10));
        let last = solver.last().unwrap();
        assert_eq!((last.number, last.took), (10, Some(Ns(60))));
    }

    #[test]
    fn the_programs_own_word_ends_the_guessing() {
        let mut rounds = Rounds::new();
        assert!(rounds.tell(0, Ns(5)).new_level);
        assert_eq!(rounds.tell(1, Ns(25)), Round { number: 1, took: Some(Ns(20)), new_level: false });
        assert_eq!(rounds.push(1, Ns(30)), None);
        assert_eq!(rounds.push(1, Ns(40)), None);
        assert!(rounds.told());
    }
}
