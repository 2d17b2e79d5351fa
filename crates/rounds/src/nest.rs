//! Folding a sequence of symbols into nested loops, as they come.
//!
//! # Problem
//!
//! The smallest period of a program's region sequence is not its outer loop: in NAS CG one step of
//! the solver repeats 25 times in each of 15 iterations, in NAS MG a smoother repeats on every
//! level of a V-cycle.
//!
//! # Approach
//!
//! Nested-loop recognition (Ketterlin and Clauss, *Prediction and trace compression of data access
//! addresses through nested loop recognition*, CGO 2008), reduced to symbols: a stack of elements,
//! each a symbol or a loop over elements. Whenever the top of the stack repeats what lies directly
//! below, both become one loop; whenever it repeats the body of the loop directly below, that loop
//! has one round more.
//!
//! # Terms
//!
//! *Element*: a symbol or a loop. *Shape*: a hash of an element; that of a loop is made of the
//! shapes of its body and not of its number of rounds, for a solver's inner loop ends when it has
//! converged.
//!
//! # Properties
//!
//! - `a_repeated_sequence_becomes_a_loop`: of whatever a program does again and again, rounds are
//!   reported.
//! - `memory_is_bounded`: never more than [`MAX_ELEMENTS`] elements on the stack, whatever is
//!   pushed.
//! - `an_inner_loop_may_vary`: rounds that differ in the length of an inner loop are rounds of one
//!   loop.

use alloc::vec::Vec;

use homenode_model::Ns;

/// Elements that are kept; when there are more, the older half is forgotten.
pub const MAX_ELEMENTS: usize = 1024;
/// Elements of a round, inner loops counted as one: a longer round is not recognised.
pub const MAX_BODY: usize = 256;
/// Earlier places at which the top element may have ended a round that are tried.
const MAX_TRIES: usize = 64;

/// One element of the stack.
#[derive(Clone, Copy, Debug)]
struct Element {
    shape: u64,
    /// Index of the last element below of the same shape, plus one; 0: none.
    before: u32,
    /// `NONE` for a symbol, else an index into the loops.
    body: u32,
    /// Sum of shapes up to and with this one, each weighted by its place: equal sequences have
    /// equal differences.
    prefix: u64,
    /// When it came; of a loop: when its last round ended.
    at: Ns,
}

const NONE: u32 = u32::MAX;
/// Base of the polynomial hash of sequences; odd.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A loop: its body's length and hash, and its rounds. What the body was made of is not kept: its
/// shapes' hash is enough to recognise another round.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// Elements of the body.
    length: u32,
    /// Hash of the body's shapes.
    hash: u64,
    rounds: u64,
    /// When the first of them began.
    begin: Ns,
}

/// What changed when a symbol was pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// A round ended with this symbol, of the loop that is now the top element. Of several loops
    /// that ended a round at once, this is the outermost.
    pub round: Option<LoopRound>,
}

/// One more round of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopRound {
    /// The loop's shape: equal for equal loops.
    pub shape: u64,
    /// Rounds that have ended.
    pub rounds: u64,
    /// Its place on the stack: of two loops that run, the one with the smaller place is the outer
    /// one.
    pub place: usize,
    /// Time of the round that ended.
    pub took: Ns,
    /// When the first round began: when the last symbol before it came, or the first of all.
    pub begin: Ns,
}

/// The stack.
#[derive(Debug, Default)]
pub struct Nest {
    stack: Vec<Element>,
    loops: Vec<Loop>,
    free: Vec<u32>,
    /// When the last element below the stack ended: the first symbol, or what was forgotten last.
    bottom: Option<Ns>,
}

fn mix(mut x: u64) -> u64 {
    // The finaliser of SplitMix64.
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hash of the elements `from..to`.
fn hash(stack: &[Element], from: usize, to: usize) -> u64 {
    let at = |i: usize| if i == 0 { 0 } else { stack[i - 1].prefix };
    at(to).wrapping_sub(at(from).wrapping_mul(BASE.wrapping_pow((to - from) as u32)))
}

impl Nest {
    /// Nothing pushed yet. Holds all memory that it will need.
    pub fn new() -> Self {
        Self {
            stack: Vec::with_capacity(MAX_ELEMENTS),
            loops: Vec::with_capacity(MAX_ELEMENTS),
            free: Vec::with_capacity(MAX_ELEMENTS),
            bottom: None,
        }
    }

    /// Elements on the stack.
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    /// Whether nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// The next symbol, at `now`.
    pub fn push(&mut self, symbol: u32, now: Ns) -> Folded {
        self.bottom.get_or_insert(now);
        self.push_element(mix(u64::from(symbol).wrapping_add(0x5851_f42d)), NONE, now);
        let mut folded = Folded::default();
        // A fold may complete a round of a loop further out.
        while let Some(round) = self.fold(now) {
            folded.round = Some(round);
        }
        if self.stack.len() >= MAX_ELEMENTS {
            self.forget();
        }
        folded
    }

    fn push_element(&mut self, shape: u64, body: u32, at: Ns) {
        let before = self.find_before(shape);
        let prefix = self.stack.last().map_or(0, |e| e.prefix).wrapping_mul(BASE).wrapping_add(shape);
        self.stack.push(Element { shape, before, body, prefix, at });
    }

    /// Place of the last element of this shape, plus one; 0 if there is none near enough to be of a
    /// round.
    fn find_before(&self, shape: u64) -> u32 {
        let from = self.stack.len().saturating_sub(MAX_BODY);
        let found = self.stack[from..].iter().rposition(|e| e.shape == shape);
        found.map_or(0, |i| (from + i) as u32 + 1)
    }

    /// Makes one fold at the top, if there is one.
    fn fold(&mut self, now: Ns) -> Option<LoopRound> {
        self.another_round(now).or_else(|| self.new_loop(now))
    }

    /// The top repeats the body of the loop directly below it.
    fn another_round(&mut self, now: Ns) -> Option<LoopRound> {
        let n = self.stack.len();
        // From the nearest loop down: a loop's body never holds the loop itself.
        for length in 1..=MAX_BODY.min(n - 1) {
            let place = n - 1 - length;
            let body = self.stack[place].body;
            if body == NONE {
                continue;
            }
            let l = &mut self.loops[body as usize];
            if l.length as usize == length && l.hash == hash(&self.stack, place + 1, n) {
                l.rounds += 1;
                let Element { shape, at, .. } = self.stack[place];
                let round = LoopRound { shape, rounds: l.rounds, place, took: now - at, begin: l.begin };
                self.stack[place].at = now;
                self.drop_to(place + 1);
                return Some(round);
            }
        }
        None
    }

    /// The top repeats what lies directly below it: both are two rounds of a new loop.
    fn new_loop(&mut self, now: Ns) -> Option<LoopRound> {
        let n = self.stack.len();
        let mut candidate = self.stack[n - 1].before as usize;
        for _ in 0..MAX_TRIES {
            let end = candidate; // one past the earlier element of the same shape
            let length = n - end;
            if end == 0 || length > end.min(MAX_BODY) {
                return None;
            }
            if hash(&self.stack, end - length, end) == hash(&self.stack, end, n) {
                return Some(self.make_loop(end - length, length, now));
            }
            candidate = self.stack[end - 1].before as usize;
        }
        None
    }

    fn make_loop(&mut self, place: usize, length: usize, now: Ns) -> LoopRound {
        let hash = hash(&self.stack, place, place + length);
        let took = now - self.stack[place + length - 1].at;
        let begin = match place.checked_sub(1) {
            Some(below) => self.stack[below].at,
            None => self.bottom.unwrap_or(now),
        };
        let made = Loop { length: length as u32, hash, rounds: 2, begin };
        self.drop_to(place);
        let body = match self.free.pop() {
            Some(i) => {
                self.loops[i as usize] = made;
                i
            }
            None => {
                self.loops.push(made);
                self.loops.len() as u32 - 1
            }
        };
        let shape = mix(hash ^ (length as u64).rotate_left(32) ^ 0x1009);
        self.push_element(shape, body, now);
        LoopRound { shape, rounds: 2, place, took, begin }
    }

    fn drop_to(&mut self, length: usize) {
        for e in &self.stack[length..] {
            if e.body != NONE {
                self.free.push(e.body);
            }
        }
        self.stack.truncate(length);
    }

    /// Forgets the older half.
    fn forget(&mut self) {
        let gone = self.stack.len() - MAX_ELEMENTS / 2;
        self.bottom = self.stack[..gone].last().map(|e| e.at).or(self.bottom);
        let mut kept = [(0, NONE, Ns::ZERO); MAX_ELEMENTS / 2];
        for (k, e) in kept.iter_mut().zip(&self.stack[gone..]) {
            *k = (e.shape, e.body, e.at);
        }
        self.free.extend(self.stack[..gone].iter().map(|e| e.body).filter(|b| *b != NONE));
        self.stack.clear();
        for (shape, body, at) in kept {
            self.push_element(shape, body, at);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn push_all(nest: &mut Nest, symbols: &[u32]) -> Vec<LoopRound> {
        symbols.iter().filter_map(|s| nest.push(*s, Ns::ZERO).round).collect()
    }

    #[test]
    fn the_outer_loop_is_found_around_an_inner_one() {
        // (1 (2 3)^25 4)^15, as NAS CG does.
        let mut round = vec![1];
        round.extend([2, 3].repeat(25));
        round.push(4);
        let mut nest = Nest::new();
        let rounds = push_all(&mut nest, &round.repeat(15));
        let last = rounds.last().unwrap();
        assert_eq!((nest.len(), last.rounds, last.place), (1, 15, 0));
        let inner = rounds.iter().filter(|r| r.shape != last.shape).count();
        assert_eq!(
            inner,
            15 * 24,
            "each run of the inner loop ends 25 rounds, of which the first is not seen"
        );
    }

    #[test]
    fn a_loop_of_one_symbol_counts_it() {
        let mut nest = Nest::new();
        let rounds = push_all(&mut nest, &[7; 1000]);
        assert_eq!((nest.len(), rounds.len(), rounds.last().unwrap().rounds), (1, 999, 1000));
    }

    #[test]
    fn an_inner_loop_may_vary() {
        let mut nest = Nest::new();
        let mut last = None;
        for inner in [25, 30, 7, 2, 19] {
            nest.push(1, Ns::ZERO);
            for _ in 0..inner {
                nest.push(2, Ns::ZERO);
                nest.push(3, Ns::ZERO);
            }
            last = nest.push(4, Ns::ZERO).round.or(last);
        }
        assert_eq!((nest.len(), last.unwrap().rounds), (1, 5));
    }

    proptest! {
        #[test]
        fn memory_is_bounded(symbols in proptest::collection::vec(0u32..50, 0..5000)) {
            let mut nest = Nest::new();
            for s in symbols {
                nest.push(s, Ns::ZERO);
                prop_assert!(nest.len() <= MAX_ELEMENTS);
                prop_assert!(nest.loops.len() <= MAX_ELEMENTS);
            }
        }

        #[test]
        fn a_repeated_sequence_becomes_a_loop(body in proptest::collection::vec(0u32..4, 1..24)) {
            let mut nest = Nest::new();
            let rounds = push_all(&mut nest, &body.repeat(40));
            let most = rounds.iter().map(|r| r.rounds).max().unwrap();
            // Where a round of the program begins in the middle of an inner repeat, two of its
            // rounds may make one of ours.
            prop_assert!(most >= 8, "at most {most} rounds");
            prop_assert!(nest.len() <= 4 * body.len() + 4, "{} elements", nest.len());
        }
    }
}
