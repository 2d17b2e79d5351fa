//! The protocol against a model that is as plain as possible: lists for sets, every line's whole
//! history instead of a directory, and scans over all caches of the machine instead of hints.

use std::collections::BTreeMap;

use homenode_cache::{Agent, CacheShape, Hierarchy, Line, Miss, Words};
use homenode_model::{
    Bytes, Cache, CacheScope, Core, CpuId, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology,
    Writes,
};
use proptest::prelude::*;

/// `nodes` × `per_node` CPUs with these caches.
fn machine(nodes: u16, per_node: u16, caches: Vec<Cache>) -> Topology {
    let n = usize::from(nodes);
    let node = Node { memory: Bytes::gib(1), bandwidth: MbPerS(0), port: MbPerS(0) };
    Topology {
        name: "test".into(),
        nodes: vec![node; n],
        cpus: (0..nodes * per_node).map(|c| NodeId(c / per_node)).collect(),
        latency: Matrix::from_fn(n, |a, b| Ns(if a == b { 100 } else { 200 })),
        link: Matrix::from_fn(n, |_, _| MbPerS(0)),
        caches,
        page_sizes: vec![Bytes(4096)],
        core: Core { access: Ps(1000), outstanding: 1 },
        migration: MigrationCost::default(),
        remote_cacheable: true,
        counts_references: false,
    }
}

fn cache(level: u8, sets: u64, ways: u32, scope: CacheScope) -> Cache {
    let size = Bytes(sets * u64::from(ways) * 64);
    Cache { level, size, line: Bytes(64), ways, scope, writes: Writes::Back, hit: Ns(10) }
}

/// A cache: sets of (line, dirty), most recently used first.
struct List {
    /// Level and who shares it, by CPU.
    level: usize,
    users: Vec<usize>,
    ways: usize,
    sets: Vec<Vec<(u64, bool)>>,
}

impl List {
    fn set(&mut self, line: u64) -> &mut Vec<(u64, bool)> {
        let at = line as usize % self.sets.len();
        &mut self.sets[at]
    }
    fn dirty(&mut self, line: u64) -> Option<&mut bool> {
        self.set(line).iter_mut().find(|e| e.0 == line).map(|e| &mut e.1)
    }
    /// Puts a line in front; what falls out is returned.
    fn put(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        let ways = self.ways;
        let set = self.set(line);
        set.insert(0, (line, dirty));
        if set.len() > ways { set.pop() } else { None }
    }
}

struct Naive {
    caches: Vec<List>,
    levels: usize,
    history: BTreeMap<u64, Vec<(usize, bool)>>,
}

#[derive(Debug, PartialEq)]
struct Seen {
    level: usize,
    miss: Option<Miss>,
    write_backs: Vec<u64>,
}

impl Naive {
    fn new(m: &Topology) -> Self {
        let mut caches = Vec::new();
        for (level, c) in m.caches.iter().enumerate() {
            for node in m.node_ids() {
                let cpus: Vec<usize> = m.cpus_of(node).map(|c| c.index()).collect();
                let share = match c.scope {
                    CacheScope::Cpu => 1,
                    CacheScope::Group(n) => n as usize,
                    CacheScope::Node => cpus.len(),
                };
                for users in cpus.chunks(share) {
                    let sets = vec![Vec::new(); c.sets() as usize];
                    caches.push(List { level, users: users.to_vec(), ways: c.ways as usize, sets });
                }
            }
        }
        Self { caches, levels: m.caches.len(), history: BTreeMap::new() }
    }

    fn of(&mut self, cpu: usize, level: usize) -> &mut List {
        self.caches.iter_mut().find(|c| c.level == level && c.users.contains(&cpu)).unwrap()
    }

    /// Innermost level that both use.
    fn common(&self, a: usize, b: usize) -> usize {
        let both = self.caches.iter().filter(|c| c.users.contains(&a) && c.users.contains(&b));
        both.map(|c| c.level).min().unwrap_or(self.levels)
    }

    fn spill(&mut self, cpu: usize, level: usize, line: u64, out: &mut Vec<u64>) {
        if level == self.levels {
            out.push(line);
        } else if let Some(dirty) = self.of(cpu, level).dirty(line) {
            *dirty = true;
        } else if let Some((line, true)) = self.of(cpu, level).put(line, true) {
            self.spill(cpu, level + 1, line, out);
        }
    }

    fn access(&mut self, cpu: usize, line: u64, write: bool) -> Seen {
        let history = self.history.get(&line).cloned().unwrap_or_default();
        let since = history.iter().rposition(|h| h.1).unwrap_or(0);
        let mut knowers: Vec<usize> = history[since..].iter().map(|h| h.0).collect();
        knowers.sort_unstable();
        knowers.dedup();
        let written = history.iter().any(|h| h.1);
        let others: Vec<usize> = knowers.iter().copied().filter(|k| *k != cpu).collect();

        let found = (0..self.levels).find(|l| self.of(cpu, *l).dirty(line).is_some()).unwrap_or(self.levels);
        // The only knower supplies the line to another CPU if it still has it where that one does
        // not look.
        let mut level = found;
        let mut write_backs = Vec::new();
        if let ([owner], false) = (&knowers[..], knowers.contains(&cpu)) {
            let at = self.common(cpu, *owner);
            if (0..at).any(|l| self.of(*owner, l).dirty(line).is_some()) {
                level = level.min(at);
            }
        }
        let supply = level;
        if write && others.is_empty() {
            // its own already
        } else if write {
            level = others.iter().map(|o| self.common(cpu, *o)).max().unwrap().max(level);
        }
        let near = |k: &usize| self.common(cpu, *k) < self.levels;
        let miss = if level < self.levels {
            None
        } else if supply < self.levels {
            Some(Miss::Upgrade)
        } else if knowers.iter().any(near) {
            Some(Miss::Capacity)
        } else if written {
            Some(Miss::Coherence)
        } else {
            Some(Miss::Cold)
        };

        // Everybody else's copies: gone after a write, clean after a first read.
        let mut pulled = None;
        for c in self.caches.iter_mut().filter(|c| !c.users.contains(&cpu)) {
            if write {
                c.set(line).retain(|e| e.0 != line);
            } else if let Some(dirty) = c.dirty(line).filter(|d| **d) {
                *dirty = false;
                pulled = Some(c.users[0]);
            }
        }
        // Fill from the outermost level that missed inwards.
        let mut victims = Vec::new();
        for l in (0..=found.min(self.levels - 1)).rev() {
            let list = self.of(cpu, l);
            let set = list.set(line);
            if let Some(at) = set.iter().position(|e| e.0 == line) {
                let entry = set.remove(at);
                set.insert(0, entry);
            } else if let Some((victim, true)) = list.put(line, false) {
                victims.push((l, victim));
            }
        }
        if let Some(from) = pulled {
            let at = self.common(cpu, from);
            if at == self.levels {
                write_backs.push(line);
            } else {
                *self.of(cpu, at).dirty(line).unwrap() = true;
            }
        }
        if write {
            *self.of(cpu, 0).dirty(line).unwrap() = true;
        }
        for (l, victim) in victims {
            self.spill(cpu, l + 1, victim, &mut write_backs);
        }
        self.history.entry(line).or_default().push((cpu, write));
        Seen { level, miss, write_backs }
    }
}

/// Caches that nest and are small enough to be full all the time.
fn geometry() -> impl Strategy<Value = Vec<Cache>> {
    use CacheScope::{Cpu, Group, Node};
    let scopes = prop_oneof![
        Just(vec![Cpu]),
        Just(vec![Cpu, Cpu]),
        Just(vec![Cpu, Node]),
        Just(vec![Cpu, Cpu, Node]),
        Just(vec![Cpu, Group(2)]),
        Just(vec![Cpu, Group(2), Node]),
        Just(vec![Cpu, Cpu, Group(2), Group(4)]),
    ];
    let sizes = prop::collection::vec((0u32..4, 1u32..5), 4);
    (scopes, sizes).prop_map(|(scopes, sizes)| {
        let levels = scopes.iter().zip(sizes).enumerate();
        levels.map(|(l, (scope, (sets, ways)))| cache(l as u8 + 1, 1 << sets, ways, *scope)).collect()
    })
}

fn compare<W: homenode_cache::Sharers>(
    m: &Topology,
    trace: &[(u32, u64, bool)],
) -> Result<(), TestCaseError> {
    let cpus: Vec<CpuId> = (0..m.cpus.len() as u32).map(CpuId).collect();
    let shape = CacheShape::new(m, &cpus).unwrap();
    prop_assert_eq!(shape.agents() as usize, cpus.len());
    let mut fast = Hierarchy::<W>::new(&shape, 4).unwrap();
    let mut naive = Naive::new(m);
    for (i, (cpu, line, write)) in trace.iter().enumerate() {
        let cpu = *cpu % cpus.len() as u32;
        let expected = naive.access(cpu as usize, *line, *write);
        let out = fast.access(Agent(cpu), Line(*line), *write).unwrap();
        let write_backs = match out.write_backs {
            0 => Vec::new(),
            _ => fast.write_backs().iter().map(|l| l.0).collect(),
        };
        let got = Seen { level: usize::from(out.level), miss: out.miss, write_backs };
        prop_assert_eq!(&got, &expected, "access {} of cpu {} to {}, write {}", i, cpu, line, write);
        prop_assert_eq!(fast.check(), Ok(()), "after access {}", i);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_naive_model(
        nodes in 1u16..=2,
        per_node in 1u16..=4,
        caches in geometry(),
        trace in prop::collection::vec((0u32..8, 0u64..40, any::<bool>()), 0..300),
    ) {
        compare::<u64>(&machine(nodes, per_node, caches.clone()), &trace)?;
        compare::<u128>(&machine(nodes, per_node, caches.clone()), &trace)?;
        compare::<Words<3>>(&machine(nodes, per_node, caches), &trace)?;
    }

    /// `Hierarchy::check` after every access of traces that mostly read, so that lines are shared
    /// for long.
    #[test]
    fn at_most_one_owner(
        caches in geometry(),
        trace in prop::collection::vec((0u32..4, 0u64..12, prop::bool::weighted(0.1)), 0..300),
    ) {
        compare::<u64>(&machine(2, 2, caches), &trace)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// More CPUs than a machine word has bits; the naive model looks at each of them, hence the few
    /// cases.
    #[test]
    fn many_cpus_equal_the_naive_model(
        nodes in prop::sample::select(vec![20u16, 47, 63]),
        caches in geometry(),
        trace in prop::collection::vec((0u32..252, 0u64..24, prop::bool::weighted(0.3)), 0..400),
    ) {
        compare::<Words<4>>(&machine(nodes, 4, caches.clone()), &trace)?;
        compare::<Words<17>>(&machine(nodes, 4, caches), &trace)?;
    }
}

#[test]
fn hardware_threads_of_a_core_are_one_agent() {
    let l1 = cache(1, 4, 1, CacheScope::Group(2));
    let m = machine(1, 4, vec![l1]);
    let shape = CacheShape::new(&m, &[CpuId(0), CpuId(1), CpuId(2), CpuId(0)]).unwrap();
    assert_eq!(shape.agent_of(), [Agent(0), Agent(0), Agent(1), Agent(0)]);
    assert_eq!(shape.common(Agent(0), Agent(1)), 1);
}

#[test]
fn shapes_that_cannot_be_modelled_are_refused_with_a_reason() {
    let refusal =
        |caches: Vec<Cache>, cpu: u32| CacheShape::new(&machine(1, 2, caches), &[CpuId(cpu)]).unwrap_err().0;
    let l1 = cache(1, 4, 1, CacheScope::Cpu);
    let wide = Cache { line: Bytes(128), size: Bytes(1024), ..cache(2, 4, 1, CacheScope::Cpu) };
    let narrow = Cache { line: Bytes(32), size: Bytes(128), ..l1.clone() };
    let shared = cache(1, 4, 1, CacheScope::Node);
    assert!(refusal(vec![], 0).contains("no cache level"));
    assert!(refusal(vec![l1.clone(), wide], 0).contains("one size is modelled"));
    assert!(refusal(vec![narrow], 0).contains("leave out this level"));
    assert!(refusal(vec![shared, l1.clone()], 0).contains("must be shared by all"));
    assert!(refusal(vec![Cache { ways: 0, ..l1.clone() }], 0).contains("power of two of sets"));
    assert!(refusal(vec![l1], 2).contains("no cpu 2"));
}
