//! Which caches the CPUs in use have, and which of them they share.
//!
//! Sharing nests (CPU ⊂ group ⊂ node), so the caches form a forest: an agent's *path* is its cache
//! of each level from the CPU outwards, and two agents have a *common level*, the innermost one
//! where their paths meet, or none.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use homenode_model::{CacheScope, CpuId, LineNo, Topology};

use crate::Agent;

/// Most cache levels of a machine.
pub const MAX_LEVELS: usize = 6;

/// The caches of the CPUs in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Sets and ways of each level.
    pub(crate) geometry: Vec<(u64, u32)>,
    /// Level of each cache instance.
    pub(crate) level: Vec<u8>,
    /// Instance by agent × level.
    pub(crate) path: Vec<u32>,
    /// The agent of each entry of the CPU list.
    pub(crate) agent_of: Vec<Agent>,
    pub(crate) agents: u32,
    pub(crate) line_shift: u32,
}

/// Why a machine's caches cannot be modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError(pub String);

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ShapeError {}

macro_rules! refuse {
    ($($arg:tt)*) => { return Err(ShapeError(alloc::format!($($arg)*))) };
}

impl CacheShape {
    /// The caches that `cpus` of `machine` use. A CPU may be named several times.
    ///
    /// # Errors
    /// The machine has no cache level or more than [`MAX_LEVELS`]; lines shorter than the
    /// recorder's or not of one size; sharing that does not nest; no CPU, or one that does not
    /// exist.
    pub fn new(machine: &Topology, cpus: &[CpuId]) -> Result<Self, ShapeError> {
        let line = check_levels(machine)?;
        let levels = machine.caches.len();
        if cpus.is_empty() {
            refuse!("no thread is bound to a CPU of machine {}", machine.name);
        }
        let mut keys: Vec<(usize, u16, u32)> = Vec::new(); // (level, node, group in node) of each instance
        let mut shape = Self {
            geometry: machine.caches.iter().map(|c| (c.sets(), c.ways)).collect(),
            level: Vec::new(),
            path: Vec::new(),
            agent_of: Vec::new(),
            agents: 0,
            line_shift: line.ilog2() - LineNo::SHIFT,
        };
        for cpu in cpus {
            if cpu.index() >= machine.cpus.len() {
                refuse!("machine {} has {} CPUs and no {cpu}", machine.name, machine.cpus.len());
            }
            let node = machine.node_of(*cpu);
            let rank = machine.cpus_of(node).take_while(|c| c != cpu).count() as u32;
            let mut path = Vec::with_capacity(levels);
            for (level, cache) in machine.caches.iter().enumerate() {
                let group = match cache.scope {
                    CacheScope::Cpu => rank,
                    CacheScope::Group(n) => rank / n,
                    CacheScope::Node => 0,
                };
                let key = (level, node.0, group);
                let at = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
                    keys.push(key);
                    shape.level.push(level as u8);
                    keys.len() - 1
                });
                path.push(at as u32);
            }
            let known = shape.path.chunks_exact(levels).position(|p| p[0] == path[0]);
            let agent = known.unwrap_or_else(|| {
                shape.path.extend(path);
                shape.agents += 1;
                shape.agents as usize - 1
            });
            shape.agent_of.push(Agent(agent as u32));
        }
        Ok(shape)
    }

    /// Cache levels.
    pub fn levels(&self) -> usize {
        self.geometry.len()
    }
    /// Agents: first-level caches in use.
    pub const fn agents(&self) -> u32 {
        self.agents
    }
    /// The agent of each entry of the CPU list given to [`CacheShape::new`].
    pub fn agent_of(&self) -> &[Agent] {
        &self.agent_of
    }
    /// log2 of how many recorder lines (64 B) a line of this machine covers.
    pub const fn line_shift(&self) -> u32 {
        self.line_shift
    }
    /// The cache of each level that `agent` uses, from the CPU outwards, as dense instance numbers.
    pub fn path(&self, agent: Agent) -> &[u32] {
        let levels = self.levels();
        &self.path[agent.index() * levels..][..levels]
    }
    /// Innermost level that both use; [`CacheShape::levels`] if none.
    pub fn common(&self, a: Agent, b: Agent) -> usize {
        let pairs = self.path(a).iter().zip(self.path(b));
        pairs.take_while(|(x, y)| x != y).count()
    }
}

/// The line size of all levels.
fn check_levels(machine: &Topology) -> Result<u64, ShapeError> {
    let caches = &machine.caches;
    let name = &machine.name;
    let Some(first) = caches.first() else {
        refuse!("machine {name} has no cache level; describe at least one");
    };
    if caches.len() > MAX_LEVELS {
        refuse!("machine {name} has {} cache levels; at most {MAX_LEVELS} are modelled", caches.len());
    }
    for c in caches {
        if !c.line.0.is_power_of_two() || c.line.0 < LineNo::BYTES || c.line.0 > 1 << 20 {
            refuse!(
                "machine {name}: L{} has lines of {}, the recorder's have {} B; leave out this level",
                c.level,
                c.line,
                LineNo::BYTES
            );
        }
        if c.line != first.line {
            refuse!(
                "machine {name}: lines of L{} have {} and those of L{} {}; one size is modelled: leave out the level \
                 whose lines are not the unit of coherence",
                first.level,
                first.line,
                c.level,
                c.line
            );
        }
        if c.ways == 0 || !c.sets().is_power_of_two() || c.sets().saturating_mul(u64::from(c.ways)) > 1 << 28
        {
            refuse!(
                "machine {name}: L{} is not a power of two of sets, or has more than 2^28 lines",
                c.level
            );
        }
        if c.scope == CacheScope::Group(0) {
            refuse!("machine {name}: L{} is shared by groups of no CPU", c.level);
        }
    }
    for pair in caches.windows(2) {
        let nests = match (pair[0].scope, pair[1].scope) {
            (CacheScope::Cpu, _) | (_, CacheScope::Node) => true,
            (CacheScope::Group(a), CacheScope::Group(b)) => b % a == 0,
            (CacheScope::Group(a), CacheScope::Cpu) => a == 1,
            (CacheScope::Node, _) => false,
        };
        if !nests {
            refuse!(
                "machine {name}: L{} is shared by {:?} and L{} behind it by {:?}: an outer level must be shared by all \
                 that share the inner one",
                pair[0].level,
                pair[0].scope,
                pair[1].level,
                pair[1].scope
            );
        }
    }
    Ok(first.line.0)
}
