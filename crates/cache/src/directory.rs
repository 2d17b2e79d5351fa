//! Who knows the current version of each line.
//!
//! # Problem
//! Programs touch up to gigabytes; every miss and every store to a shared line asks the directory.
//! It must be one host cache line away and small.
//!
//! # Approach
//! Canonical addresses are compact from a fixed base, so the directory is a two-level table indexed
//! by line: chunks of [`CHUNK`] entries, allocated when first touched, up to a bound (recordings
//! are hostile input). An entry is one word (8 B for up to 63 agents, 16 B for up to 127, [`Words`]
//! beyond: 8 B for each 64): a bit for each agent that read or wrote the line since the last store
//! by *another* agent, and one bit for "was ever written".
//!
//! An agent that has silently dropped a clean line keeps its bit, as in the full-map directories of
//! real machines that get no replacement hints (Laudon and Lenoski, *The SGI Origin*, ISCA 1997,
//! section 3.2). So no eviction ever touches the directory, and the word answers all questions:
//! nobody → never touched; one agent → it may own the line (exclusive or modified); several →
//! shared; one's own bit set on a miss → the line was there and fell out.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::{Agent, Line};

/// A set of agents and one flag in a machine word.
pub trait Sharers: Copy + Default + PartialEq + fmt::Debug {
    /// Agents that fit.
    const AGENTS: u32;
    /// The set of one agent.
    fn of(agent: Agent) -> Self;
    /// Members of both, without the flag.
    fn and(self, o: Self) -> Self;
    /// Members of either, with the flag if either has it.
    fn or(self, o: Self) -> Self;
    /// Without the agent and the flag.
    fn others(self, agent: Agent) -> Self;
    /// Whether the agent is a member.
    fn has(self, agent: Agent) -> bool;
    /// Whether there is no member.
    fn is_empty(self) -> bool;
    /// The only member, if there is exactly one.
    fn sole(self) -> Option<Agent>;
    /// The member with the smallest number; call it on a non-empty set only.
    fn first(self) -> Agent;
    /// The flag: somebody has written the line, ever.
    fn written(self) -> bool;
    /// With the flag.
    fn and_written(self) -> Self;
}

macro_rules! sharers {
    ($word:ty) => {
        impl Sharers for $word {
            const AGENTS: u32 = <$word>::BITS - 1;
            #[inline]
            fn of(agent: Agent) -> Self {
                1 << agent.0
            }
            #[inline]
            fn and(self, o: Self) -> Self {
                self & o & <$word>::MAX >> 1
            }
            #[inline]
            fn or(self, o: Self) -> Self {
                self | o
            }
            #[inline]
            fn others(self, agent: Agent) -> Self {
                self & <$word>::MAX >> 1 & !Self::of(agent)
            }
            #[inline]
            fn has(self, agent: Agent) -> bool {
                self & Self::of(agent) != 0
            }
            #[inline]
            fn is_empty(self) -> bool {
                self << 1 == 0
            }
            #[inline]
            fn sole(self) -> Option<Agent> {
                (self << 1).is_power_of_two().then(|| self.first())
            }
            #[inline]
            fn first(self) -> Agent {
                Agent(self.trailing_zeros())
            }
            #[inline]
            fn written(self) -> bool {
                self >> (<$word>::BITS - 1) != 0
            }
            #[inline]
            fn and_written(self) -> Self {
                self | 1 << (<$word>::BITS - 1)
            }
        }
    };
}
sharers!(u64);
sharers!(u128);

/// `N` words of 64 bits, the lowest agents in the first one: for machines with more agents than a
/// machine word has bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<const N: usize>([u64; N]);

/// The flag, in the last word.
const FLAG: u64 = 1 << 63;

impl<const N: usize> Words<N> {
    fn members(self) -> impl Iterator<Item = u64> {
        self.0.into_iter().enumerate().map(|(i, word)| if i == N - 1 { word & !FLAG } else { word })
    }

    fn pairs(self, o: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self(core::array::from_fn(|i| join(self.0[i], o.0[i])))
    }

    const fn cleared(mut self, word: usize, bits: u64) -> Self {
        self.0[word] &= !bits;
        self
    }
}

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Sharers for Words<N> {
    const AGENTS: u32 = 64 * N as u32 - 1;
    fn of(agent: Agent) -> Self {
        let mut words = Self::default();
        words.0[agent.index() / 64] = 1 << (agent.0 % 64);
        words
    }
    fn and(self, o: Self) -> Self {
        self.pairs(o, |a, b| a & b).cleared(N - 1, FLAG)
    }
    fn or(self, o: Self) -> Self {
        self.pairs(o, |a, b| a | b)
    }
    fn others(self, agent: Agent) -> Self {
        self.cleared(N - 1, FLAG).cleared(agent.index() / 64, 1 << (agent.0 % 64))
    }
    fn has(self, agent: Agent) -> bool {
        self.0[agent.index() / 64] & 1 << (agent.0 % 64) != 0
    }
    fn is_empty(self) -> bool {
        self.members().all(|word| word == 0)
    }
    fn sole(self) -> Option<Agent> {
        (self.members().map(u64::count_ones).sum::<u32>() == 1).then(|| self.first())
    }
    fn first(self) -> Agent {
        let at = self.members().position(|word| word != 0).unwrap_or(N - 1);
        Agent(64 * at as u32 + self.0[at].trailing_zeros())
    }
    fn written(self) -> bool {
        self.0[N - 1] & FLAG != 0
    }
    fn and_written(mut self) -> Self {
        self.0[N - 1] |= FLAG;
        self
    }
}

/// log2 of [`CHUNK`].
const CHUNK_SHIFT: u32 = 14;
/// Entries of a chunk: 1 MiB of a program's memory with 64-byte lines.
pub const CHUNK: usize = 1 << CHUNK_SHIFT;

/// The directory would exceed its bound: the line's number is too large or too much has been
/// touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The line that was to be entered.
    pub line: Line,
    /// The bound in chunks of [`CHUNK`] lines.
    pub max_chunks: u32,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the directory has no room for line {}: its bound is {} chunks of {CHUNK} lines, and lines below {}; record \
             with compact addresses or raise the bound",
            self.line.0,
            self.max_chunks,
            (u64::from(self.max_chunks) * SPREAD) << CHUNK_SHIFT
        )
    }
}

impl core::error::Error for Full {}

/// Line numbers may be this many times as large as the number of lines that may be touched: address
/// space is sparse.
const SPREAD: u64 = 64;

/// A dense table of entries by line.
#[derive(Clone, Debug)]
pub struct Directory<W> {
    chunks: Vec<Option<Box<[W]>>>,
    used: u32,
    max_chunks: u32,
}

impl<W: Sharers> Directory<W> {
    /// An empty directory that holds at most `max_chunks` × [`CHUNK`] touched lines.
    pub const fn new(max_chunks: u32) -> Self {
        Self { chunks: Vec::new(), used: 0, max_chunks }
    }

    /// What is known about `line`; nothing about one never touched.
    pub fn get(&self, line: Line) -> W {
        let chunk = usize::try_from(line.0 >> CHUNK_SHIFT).ok().and_then(|c| self.chunks.get(c));
        chunk.and_then(Option::as_ref).map_or(W::default(), |c| c[line.0 as usize % CHUNK])
    }

    /// The entry of `line`, made if need be.
    ///
    /// # Errors
    /// [`Full`] when that would exceed the bound.
    #[inline]
    pub fn entry(&mut self, line: Line) -> Result<&mut W, Full> {
        let at = line.0 >> CHUNK_SHIFT;
        if !self.chunks.get(at as usize).is_some_and(Option::is_some) {
            self.grow(line)?;
        }
        let max_chunks = self.max_chunks;
        match &mut self.chunks[at as usize] {
            Some(chunk) => Ok(&mut chunk[line.0 as usize % CHUNK]),
            None => Err(Full { line, max_chunks }),
        }
    }

    #[cold]
    fn grow(&mut self, line: Line) -> Result<(), Full> {
        let at = line.0 >> CHUNK_SHIFT;
        if self.used >= self.max_chunks || line >= self.end() {
            return Err(self.full(line));
        }
        let at = at as usize;
        if self.chunks.len() <= at {
            self.chunks.resize(at + 1, None);
        }
        self.chunks[at] = Some(vec![W::default(); CHUNK].into_boxed_slice());
        self.used += 1;
        Ok(())
    }

    /// Lines from this one on are refused.
    pub const fn end(&self) -> Line {
        Line((self.max_chunks as u64 * SPREAD) << CHUNK_SHIFT)
    }

    /// The refusal of `line`.
    #[cold]
    pub const fn full(&self, line: Line) -> Full {
        Full { line, max_chunks: self.max_chunks }
    }

    /// Chunks in use.
    pub const fn chunks(&self) -> u32 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<W: Sharers>() {
        let last = Agent(W::AGENTS - 1);
        let two = W::of(Agent(0)).or(W::of(last));
        assert!(two.has(Agent(0)) && two.has(last) && !two.has(Agent(1)));
        assert_eq!((two.sole(), two.first()), (None, Agent(0)));
        let one = two.and_written().others(Agent(0));
        assert_eq!(one.sole(), Some(last));
        assert!(!one.written() && one.and_written().written());
        assert_eq!(one.and_written().sole(), Some(last), "the flag is no member");
        assert!(W::default().and_written().is_empty());
        assert_eq!(two.and_written().and(W::of(last)), W::of(last));
    }

    #[test]
    fn a_word_is_a_set_and_a_flag() {
        words::<u64>();
        words::<u128>();
        words::<Words<1>>();
        words::<Words<4>>();
        words::<Words<17>>();
    }

    #[test]
    fn growth_is_bounded() {
        let mut d = Directory::<u64>::new(2);
        assert!(d.entry(Line(u64::MAX >> 3)).is_err(), "a hostile line number allocates nothing");
        *d.entry(Line(5)).unwrap() = 9;
        *d.entry(Line(100 * CHUNK as u64)).unwrap() = 7;
        let third = Line(50 * CHUNK as u64);
        assert_eq!(d.entry(third), Err(Full { line: third, max_chunks: 2 }));
        assert_eq!((d.get(Line(5)), d.get(Line(6)), d.get(third), d.chunks()), (9, 0, 0, 2));
        assert_eq!(d.get(Line(u64::MAX)), 0);
    }
}
