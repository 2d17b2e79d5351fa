//! Several chunks that a thread takes at once.
//!
//! A hand-out costs a thread some nanoseconds, and more where other threads take from the same
//! list. A loop of short chunks feels that. So a thread takes several chunks of its node's list at
//! once while a batch takes less than [`SHORT`]. It takes them one by one where chunks are long, so
//! that an idle thread finds something to steal.

use crate::space::Run;

/// Nanoseconds of a batch below which the next one is twice as large. The others wait about twice
/// as long for the last batch, and longer only if its chunks take longer than those before.
const SHORT: u64 = 1_000;
/// Chunks behind the first one of a batch, at most.
const MOST: u64 = 255;
/// 1, 2, 3, …
const NUMBERS: [u32; MOST as usize] = {
    let mut numbers = [0; MOST as usize];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = at as u32 + 1;
        at += 1;
    }
    numbers
};

/// Chunks for one thread, of one length. None but the first one has the loop's last iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The first chunk.
    pub run: Run,
    /// Numbers of those behind it: chunk `n` begins at index `base + n * apart`.
    pub behind: &'a [u32],
    /// The index that the numbers behind count from.
    pub base: u64,
    /// Iterations from one number to the next.
    pub apart: u64,
}

impl<'a> Batch<'a> {
    /// A run alone.
    pub const fn one(run: Run) -> Self {
        Self { run, behind: &[], base: 0, apart: 0 }
    }

    /// A chunk, and others behind it, each `apart` iterations after the one before: `more`, or as
    /// many as a batch may have.
    pub fn even(run: Run, more: u64, apart: u64) -> Batch<'static> {
        static BEHIND: [u32; MOST as usize] = NUMBERS;
        let behind = &BEHIND[..more.min(MOST) as usize];
        Batch { run, behind, base: run.begin, apart }
    }

    /// The chunk of a number.
    #[inline]
    pub fn chunk(&self, number: u32) -> Run {
        let begin = self.base.wrapping_add(u64::from(number).wrapping_mul(self.apart));
        Run { begin, end: begin.wrapping_add(self.run.len()) }
    }

    /// How many chunks there are.
    pub const fn number(&self) -> u64 {
        1 + self.behind.len() as u64
    }

    /// The chunks in their order.
    pub fn runs(self) -> impl Iterator<Item = Run> + 'a {
        [self.run].into_iter().chain(self.behind.iter().map(move |number| self.chunk(*number)))
    }
}

/// How many chunks a thread takes at once. Each thread has its own, for one execution of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSize {
    /// When the last batch was taken, in nanoseconds.
    since: Option<u64>,
    /// Chunks that it had behind its first one.
    more: u64,
}

impl BatchSize {
    /// One chunk.
    pub const fn new() -> Self {
        Self { since: None, more: 0 }
    }

    /// Chunks to take behind the first one, by the time that the last batch took. The thread is
    /// through with that batch.
    pub fn more(&self, now: u64) -> u64 {
        match self.since.map(|since| now.saturating_sub(since)) {
            None => 0,
            Some(took) if took < SHORT => (2 * self.more + 1).min(MOST),
            Some(took) if took > 2 * SHORT => self.more.saturating_sub(1) / 2,
            Some(_) => self.more,
        }
    }

    /// The thread has taken a batch with `more` chunks behind its first one.
    pub const fn took(&mut self, now: u64, more: u64) {
        (self.since, self.more) = (Some(now), more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of successive batches, where a chunk takes `chunk` nanoseconds.
    fn sizes(chunk: impl Fn(usize) -> u64, batches: usize) -> Vec<u64> {
        let (mut size, mut now) = (BatchSize::new(), 0);
        let one = |at| {
            let more = size.more(now);
            size.took(now, more);
            now += chunk(at) * (more + 1);
            more + 1
        };
        (0..batches).map(one).collect()
    }

    #[test]
    fn batches_of_short_chunks_grow() {
        assert_eq!(sizes(|_| 2, 10), [1, 2, 4, 8, 16, 32, 64, 128, 256, 256]);
        assert_eq!(sizes(|_| 300, 6), [1, 2, 4, 4, 4, 4], "1.2 us are neither short nor long");
    }

    #[test]
    fn long_chunks_go_one_by_one() {
        assert_eq!(sizes(|_| 1_500, 4), [1; 4]);
        let sudden = |at| if at < 6 { 9 } else { 50_000 };
        assert_eq!(sizes(sudden, 14), [1, 2, 4, 8, 16, 32, 64, 32, 16, 8, 4, 2, 1, 1]);
    }

    #[test]
    fn a_batch_has_runs_of_one_length() {
        let runs = |batch: Batch| batch.runs().map(|r| (r.begin, r.end)).collect::<Vec<_>>();
        let run = Run { begin: 6, end: 8 };
        assert_eq!(runs(Batch::even(run, 2, 10)), [(6, 8), (16, 18), (26, 28)]);
        assert_eq!(runs(Batch { run, behind: &[9, 5], base: 0, apart: 2 }), [(6, 8), (18, 20), (10, 12)]);
        assert_eq!((Batch::one(run).number(), Batch::even(run, 1_000, 2).number()), (1, 256));
    }
}
