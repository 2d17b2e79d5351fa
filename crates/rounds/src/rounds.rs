//! Which of the loops that run is the program's iteration.
//!
//! It is the outermost loop of which at least two rounds have ended. Loops that follow one another
//! (an initialisation's, then the solver's) are told from nested ones by time: a loop that has not
//! ended a round for more than [`PATIENCE`] times its longest round is over. A loop of which two
//! rounds were seen and no third may have been none: an initialisation that does once what the
//! solver does each time. It is over when another loop has gone on for longer than its round. What
//! the program says itself (`hn_iteration`) ends the guessing.

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
    longest: Ns,
    /// A third round was seen.
    confirmed: bool,
}

/// Finds the iteration in a sequence of regions and barriers.
#[derive(Debug, Default)]
pub struct Rounds {
    nest: Nest,
    level: Option<Level>,
    told: Option<(u64, Ns)>,
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
        let round = self.nest.push(symbol, now).round?;
        let Some(level) = &mut self.level else {
            return Some(self.take(round, now));
        };
        if level.shape == round.shape {
            // At another place it is the same loop of the source, entered again: a round began that
            // was not seen to.
            let took = (level.place == round.place).then(|| now - level.last);
            if let Some(took) = took {
                level.longest = level.longest.max(took);
                level.confirmed = true;
            }
            (level.last, level.place) = (now, round.place);
            return Some(Round { number: round.rounds, took, new_level: false });
        }
        let over = now - level.last > level.longest.times(PATIENCE);
        let was_none = !level.confirmed && now - round.begin.max(level.last) > level.longest;
        (round.place < level.place || over || was_none).then(|| self.take(round, now))
    }

    fn take(&mut self, round: LoopRound, now: Ns) -> Round {
        let LoopRound { shape, place, took, rounds, .. } = round;
        self.level = Some(Level { shape, place, last: now, longest: took, confirmed: rounds > 2 });
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
    use alloc::vec;
    use alloc::vec::Vec;

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

    #[test]
    fn v_cycles_are_found_at_once() {
        // NAS MG, class W, as its regions and barriers come: clear 1, residual 2, restrict 5,
        // smooth 7, interpolate 9, residual in place 10; a region's barriers have its number and
        // 20, its ghosts' 40.
        let with = |r: u32| [(r, 10), (r + 20, 10), (r + 40, 1)];
        let cycle = |top: u32| {
            let mut v: Vec<(u32, u64)> = (0..top - 1).flat_map(|_| with(5)).collect();
            v.push((1, 1));
            v.extend(with(7));
            for _ in 2..top {
                v.extend([(1, 1), (9, 5)]);
                v.extend(with(10));
                v.extend(with(7));
            }
            v.push((9, 20));
            v.extend(with(2));
            v.extend(with(7));
            v
        };
        let (mut rounds, mut now) = (Rounds::new(), 0);
        run(&mut rounds, &mut now, &[(0, 30)].repeat(14));
        let residual = with(2);
        let mut warm = vec![(1, 5)];
        warm.extend(residual);
        warm.extend(cycle(7));
        warm.extend(residual);
        warm.push((1, 5));
        warm.extend(residual);
        run(&mut rounds, &mut now, &warm);
        let mut body = cycle(7);
        body.extend(residual);
        // The warm-up and the first cycle, each with a clear before, look like two rounds of a
        // longer loop.
        run(&mut rounds, &mut now, &body.repeat(2));
        let second = run(&mut rounds, &mut now, &body);
        assert_eq!(second, [Round { number: 2, took: None, new_level: true }]);
        let took = Some(Ns(body.iter().map(|(_, time)| time).sum()));
        for number in 3..10 {
            assert_eq!(run(&mut rounds, &mut now, &body), [Round { number, took, new_level: false }]);
        }
    }
}
