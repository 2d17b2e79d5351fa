//! The protocol: private caches, shared caches and the directory, one access at a time.
//!
//! # Problem
//! Given one canonical order of accesses, say of each whether some cache of its CPU had the line
//! and which level, and if none had, why not; and say which dirty lines went back to memory.
//!
//! # Terms
//! *Agent*, *path*, *common level*: see [`crate::shape`]. An agent *knows* a line when it has read
//! or written it since the last store by another agent. A line with one knower is *owned* by it
//! (exclusive or modified; MESI), with several it is shared. Contents are never modelled, only
//! presence and dirtiness.
//!
//! # Algorithm
//! The levels are neither inclusive nor exclusive (NINE): an access fills every level of its path
//! that missed, each level evicts its own least recently used line, and an eviction in an outer
//! level leaves the inner ones alone. A dirty victim is written to the next level of the path, made
//! there if absent, and beyond the last level to memory.
//!
//! * *Read, hit in a private level:* done.
//! * *Read, otherwise:* if the agent does not know the line, what another agent may have dirty is
//!   fetched: it becomes clean in all caches of that agent's path that are not on this one, and
//!   dirty in the common level or, without one, it is written back to memory. When the owner still
//!   has the line, it supplies it at the cost of the common level.
//! * *Write, the agent owns the line:* done, silently (E → M).
//! * *Write, otherwise:* every other knower loses the line in all caches of its path that are not
//!   on this one. The request reaches as far as the outermost common level among them: memory (an
//!   [`Miss::Upgrade`] if the data was near) or a shared cache, whose hit time it costs. A modified
//!   line passes from owner to owner without a write-back.
//!
//! The cause of a miss, from what the directory says before the access: [`Miss::Cold`],
//! [`Miss::Capacity`], [`Miss::Coherence`].
//!
//! # Properties
//! * `equals_the_naive_model`: levels, causes and write-backs equal those of a model with neither
//!   directory nor hints that scans all caches and each line's whole history
//!   (`tests/reference.rs`).
//! * `at_most_one_owner`: a line that is exclusive in a cache is in no private cache of another
//!   agent.
//! * `a_filter_changes_nothing` (simulator): a direct-mapped filter in front with the same line and
//!   no more sets than the first level leaves all outcomes of a race-free program as they are. This
//!   is why the levels are not inclusive: what a filter hides is a hit on the most recently used
//!   line of a first-level set, which changes nothing there and which, without back-invalidation,
//!   nothing elsewhere can see.

use alloc::vec::Vec;

use crate::directory::{Directory, Full, Sharers};
use crate::shape::{CacheShape, MAX_LEVELS};
use crate::tags::{CacheWay, HeldLine, LookUp, Tags};
use crate::{Agent, Line};

/// Why an access needs main memory or its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Miss {
    /// First access by this agent or one that shares its last-level cache, and nobody has written
    /// the line before.
    Cold = 0,
    /// The path, or another one under the same last-level cache, had the current version and
    /// evicted it.
    Capacity = 1,
    /// An agent under another last-level cache wrote the line since this one last knew it, or ever
    /// if it never did.
    Coherence = 2,
    /// Store to a line that is in the path, but that agents under another last-level cache know,
    /// too: no data, only permission.
    Upgrade = 3,
}

/// What an access met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOutcome {
    /// The level that answered, 0 the first; the number of levels if memory or its directory did.
    pub level: u8,
    /// Why it was memory; `None` when a cache answered.
    pub miss: Option<Miss>,
    /// How many lines went back to memory: [`Hierarchy::write_backs`] names them.
    pub write_backs: u8,
}

impl AccessOutcome {
    /// A hit in the first level.
    pub const FRONT: Self = Self { level: 0, miss: None, write_backs: 0 };
}

/// Caches and directory of a machine's CPUs in use, all empty at first. `W` bounds the agents:
/// `u64` 63, `u128` 127, [`Words<N>`](crate::Words) 64 `N` − 1.
#[derive(Clone, Debug)]
pub struct Hierarchy<W> {
    tags: Vec<Tags>,
    /// Instance by agent × level.
    path: Vec<u32>,
    levels: usize,
    /// Leading levels that no two agents share.
    private: usize,
    agents: usize,
    /// Common level by agent × agent.
    common: Vec<u8>,
    /// Agents under the same last-level cache, by agent.
    domain: Vec<W>,
    directory: Directory<W>,
    write_backs: Vec<Line>,
    /// Lines from this one on fit neither the tags nor the directory.
    end: Line,
}

/// The shape has more agents than fit a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyAgents {
    /// First-level caches in use.
    pub agents: u32,
    /// How many fit.
    pub max: u32,
}

impl core::fmt::Display for TooManyAgents {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} first-level caches are in use; the directory holds {}", self.agents, self.max)
    }
}

impl core::error::Error for TooManyAgents {}

impl<W: Sharers> Hierarchy<W> {
    /// Empty caches of `shape`, and a directory that holds at most `max_chunks` ×
    /// [`crate::directory::CHUNK`] lines.
    ///
    /// # Errors
    /// [`TooManyAgents`] for the word `W`.
    pub fn new(shape: &CacheShape, max_chunks: u32) -> Result<Self, TooManyAgents> {
        if shape.agents() > W::AGENTS {
            return Err(TooManyAgents { agents: shape.agents(), max: W::AGENTS });
        }
        let levels = shape.levels();
        let all = || (0..shape.agents()).map(Agent);
        let tags = shape.level.iter().map(|level| {
            let (sets, ways) = shape.geometry[usize::from(*level)];
            Tags::new(sets, ways)
        });
        let mut common = Vec::new();
        let mut private = levels;
        let mut domain = Vec::new();
        for a in all() {
            let mut near = W::default();
            for b in all() {
                let at = shape.common(a, b);
                common.push(at as u8);
                if a != b {
                    private = private.min(at);
                }
                if at < levels {
                    near = near.or(W::of(b));
                }
            }
            domain.push(near);
        }
        let tags: Vec<Tags> = tags.collect();
        let directory = Directory::new(max_chunks);
        Ok(Self {
            end: tags.iter().map(Tags::end).fold(directory.end(), Line::min),
            tags,
            path: shape.path.clone(),
            levels,
            private,
            agents: shape.agents() as usize,
            common,
            domain,
            directory,
            write_backs: Vec::with_capacity(4 * MAX_LEVELS),
        })
    }

    /// `agent` reads or writes `line`.
    ///
    /// # Errors
    /// [`Full`] when the directory's bound is reached; the caches are of no use afterwards.
    ///
    /// # Panics
    /// When `agent` is not one of the shape's.
    #[inline]
    pub fn access(&mut self, agent: Agent, line: Line, write: bool) -> Result<AccessOutcome, Full> {
        if line >= self.end {
            return Err(self.directory.full(line));
        }
        let first = self.path[agent.index() * self.levels] as usize;
        if let Some(way) = self.tags[first].front(line)
            && way.serves(write)
        {
            return Ok(AccessOutcome::FRONT);
        }
        self.behind_the_front(agent, line, write)
    }

    /// `line` is the next of its set to fall out of the agent's first level, if it is there. For
    /// who answers the agent's hits there and so knows the order of use; it is told before each
    /// such access.
    #[inline]
    pub fn makes_room(&mut self, agent: Agent, line: Line) {
        self.tags[self.path[agent.index() * self.levels] as usize].make_last(line);
    }

    /// Leading levels that no two agents share: when one of these answers, no other agent's caches
    /// have changed.
    pub const fn private(&self) -> usize {
        self.private
    }

    /// The lines that the last access sent to memory, in order. Meaningful after an outcome that
    /// announces some.
    pub fn write_backs(&self) -> &[Line] {
        &self.write_backs
    }

    /// Everything but a hit on the most recently used way of the first level.
    #[inline(always)] // its one caller is the simulator's inner loop
    fn behind_the_front(&mut self, agent: Agent, line: Line, write: bool) -> Result<AccessOutcome, Full> {
        self.write_backs.clear();
        let mut victims = [None; MAX_LEVELS];
        let (tags, levels) = (&mut self.tags, self.levels);
        let path = &self.path[agent.index() * levels..][..levels];

        // The first level is nobody else's: what it serves changes nothing but the order in its
        // set.
        let first = &mut tags[path[0] as usize];
        let mut found = levels;
        match first.touch(line) {
            Some(way) => {
                if way.serves(write) {
                    return Ok(AccessOutcome::FRONT);
                }
                found = 0;
            }
            None => victims[0] = first.insert(line).filter(|v| v.way.dirty()),
        }
        for (level, cache) in path.iter().enumerate().skip(1) {
            if found == 0 {
                break;
            }
            match tags[*cache as usize].touch_or_insert(line) {
                LookUp::Hit => {
                    found = level;
                    break;
                }
                LookUp::Miss(victim) => victims[level] = victim.filter(|v| v.way.dirty()),
            }
        }

        let mut exclusive = false;
        if found < self.private {
            let here = tags[path[found] as usize].front(line);
            exclusive = here.is_some_and(|w| w.exclusive());
        }
        let mut level = found;
        let mut miss = None;
        if found >= self.private || (write && !exclusive) {
            let entry = self.directory.entry(line)?;
            let old = *entry;
            let others = old.others(agent);
            let common = &self.common[agent.index() * self.agents..][..self.agents];
            let owner = old.sole();
            // A line that nobody has written yet stays without the hint, so that its first store
            // reaches the directory.
            exclusive = write || (others.is_empty() && old.written());
            if write {
                let (mut supply, mut reach) = (found, 0);
                let mut left = others;
                while !left.is_empty() {
                    let other = left.first();
                    left = left.others(other);
                    let at = usize::from(common[other.index()]);
                    reach = reach.max(at);
                    let mut had = false;
                    for cache in &self.path[other.index() * levels..][..at] {
                        had |= tags[*cache as usize].remove(line).is_some();
                    }
                    if had && owner == Some(other) {
                        supply = supply.min(at);
                    }
                }
                level = supply.max(reach);
                if level == levels && supply < levels {
                    miss = Some(Miss::Upgrade);
                }
                *entry = W::of(agent).and_written();
            } else {
                if !old.has(agent) && !others.is_empty() && (old.written() || owner.is_some()) {
                    // A dirty copy is on the path of all that know the line, so any of them leads
                    // to it.
                    let other = others.first();
                    let at = usize::from(common[other.index()]);
                    let (mut had, mut dirty) = (false, false);
                    for cache in &self.path[other.index() * levels..][..at] {
                        if let Some(way) = tags[*cache as usize].peek_mut(line) {
                            had = true;
                            dirty |= way.dirty();
                            way.clear(CacheWay::DIRTY | CacheWay::EXCLUSIVE);
                        }
                    }
                    if had && owner.is_some() {
                        level = found.min(at);
                    }
                    if dirty && at < levels {
                        if let Some(way) = tags[path[at] as usize].peek_mut(line) {
                            way.set(CacheWay::DIRTY);
                        }
                    } else if dirty {
                        self.write_backs.push(line);
                    }
                }
                *entry = old.or(W::of(agent));
            }
            if level == levels && miss.is_none() {
                miss = Some(if !old.and(self.domain[agent.index()]).is_empty() {
                    Miss::Capacity
                } else if old.written() {
                    Miss::Coherence
                } else {
                    Miss::Cold
                });
            }
        }

        if exclusive {
            // All private levels up to the one that had the line have it in front now.
            for cache in &path[..self.private.min(found + 1)] {
                if let Some(way) = tags[*cache as usize].front(line) {
                    way.set(CacheWay::EXCLUSIVE);
                }
            }
        }
        if write && let Some(way) = tags[path[0] as usize].front(line) {
            way.set(CacheWay::DIRTY);
        }
        for level in (0..found.min(levels)).rev() {
            if let Some(victim) = victims[level] {
                spill(tags, path, self.private, level + 1, victim, &mut self.write_backs);
            }
        }
        let write_backs = self.write_backs.len() as u8;
        Ok(AccessOutcome { level: level as u8, miss, write_backs })
    }

    /// Checks what must hold between two accesses, in time linear in all caches; for tests.
    ///
    /// # Errors
    /// Which invariant does not hold, and for which line.
    pub fn check(&self) -> Result<(), (&'static str, Line)> {
        for agent in (0..self.agents as u32).map(Agent) {
            for (level, cache) in self.path[agent.index() * self.levels..][..self.levels].iter().enumerate() {
                for held in self.tags[*cache as usize].iter() {
                    let known = self.directory.get(held.line);
                    if level < self.private && !known.has(agent) {
                        return Err(("a private cache has a line that its agent does not know", held.line));
                    }
                    if level < self.private && held.way.exclusive() && known.sole() != Some(agent) {
                        return Err(("an exclusive line is known to several agents", held.line));
                    }
                    if level >= self.private && known.is_empty() {
                        return Err(("a shared cache has a line that nobody knows", held.line));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes a dirty victim to `level` of `path` and what that pushes out to the levels behind it.
fn spill(
    tags: &mut [Tags],
    path: &[u32],
    private: usize,
    level: usize,
    victim: HeldLine,
    out: &mut Vec<Line>,
) {
    let mut victim = victim;
    for (level, cache) in path.iter().enumerate().skip(level) {
        let cache = &mut tags[*cache as usize];
        let hint = if level < private && victim.way.exclusive() { CacheWay::EXCLUSIVE } else { 0 };
        if let Some(way) = cache.peek_mut(victim.line) {
            way.set(CacheWay::DIRTY | hint);
            return;
        }
        let LookUp::Miss(next) = cache.touch_or_insert(victim.line) else { return };
        if let Some(way) = cache.front(victim.line) {
            way.set(CacheWay::DIRTY | hint);
        }
        match next {
            Some(next) if next.way.dirty() => victim = next,
            _ => return,
        }
    }
    out.push(victim.line);
}
