use homenode_model::{
    Bytes, Cache, CacheScope, Core, CpuId, LineNo, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps,
    ThreadId, Ticks, Topology, Writes,
};
use proptest::prelude::*;

use super::*;
use homenode_order::step::{Mark, Sync, SyncId};

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
    Cache { level, size, line: Bytes(64), ways, scope, writes: Writes::Back, hit: Ns(10 * u64::from(level)) }
}

fn cpus(n: u32) -> Vec<CpuId> {
    (0..n).map(CpuId).collect()
}

/// A program under test: counts ticks, keeps what comes out.
struct Run {
    caches: Caches,
    out: MemChunk,
    tick: u64,
}

impl Run {
    fn new(m: &Topology, threads: u32) -> Self {
        Self { caches: Caches::new(m, &cpus(threads)).unwrap(), out: MemChunk::default(), tick: 0 }
    }
    fn access(&mut self, thread: u32, line: u64, write: bool) {
        self.tick += 1;
        self.caches.access(ThreadId(thread), Ticks(self.tick), LineNo(line), write, &mut self.out).unwrap();
    }
    /// (line, write, cause) of the accesses of `thread` since the last call.
    fn take(&mut self, thread: usize) -> Vec<(u64, bool, Cause)> {
        let Some(items) = self.out.threads.get_mut(thread) else { return Vec::new() };
        let access = |i: MemItem| match i.what {
            MemWhat::Access { line, write, cause } => Some((line.0, write, cause)),
            _ => None,
        };
        std::mem::take(items).into_iter().filter_map(access).collect()
    }
}

#[test]
fn streaming_over_twice_the_cache_misses_every_line_every_lap() {
    let lines = 2 * 64 * 4;
    let mut run =
        Run::new(&machine(1, 1, vec![cache(1, 16, 2, CacheScope::Cpu), cache(2, 64, 4, CacheScope::Cpu)]), 1);
    for lap in 0..4 {
        (0..lines).for_each(|l| run.access(0, l, false));
        let cause = if lap == 0 { Cause::Cold } else { Cause::Capacity };
        let all: Vec<_> = (0..lines).map(|l| (l, false, cause)).collect();
        assert_eq!(run.take(0), all, "lap {lap}");
    }
}

#[test]
fn streaming_stores_write_every_line_back_once_a_lap() {
    let lines = 2 * 64 * 4;
    let mut run =
        Run::new(&machine(1, 1, vec![cache(1, 16, 2, CacheScope::Cpu), cache(2, 64, 4, CacheScope::Cpu)]), 1);
    for _ in 0..4 {
        (0..lines).for_each(|l| run.access(0, l, true));
    }
    let items = run.take(0);
    let backs = items.iter().filter(|i| i.2 == Cause::WriteBack).count() as u64;
    // The second level's worth of lines, and no more than the first level's on top, is still there.
    let left = 4 * lines - backs;
    assert!((256..=256 + 32).contains(&left), "{left} lines not written back");
}

#[test]
fn a_working_set_that_fits_has_only_cold_misses() {
    let mut run =
        Run::new(&machine(1, 1, vec![cache(1, 16, 2, CacheScope::Cpu), cache(2, 64, 4, CacheScope::Cpu)]), 1);
    for _ in 0..4 {
        (0..256).for_each(|l| run.access(0, l, l % 3 == 0));
    }
    let items = run.take(0);
    assert_eq!(items.len(), 256);
    assert!(items.iter().all(|i| i.2 == Cause::Cold));
    let counts = run.caches.counts().next().unwrap();
    assert_eq!(counts.causes[Cause::Cold as usize] + counts.hits.iter().sum::<u64>(), 4 * 256);
}

#[test]
fn one_coherence_miss_a_line_and_hand_over() {
    let mut run = Run::new(&machine(2, 1, vec![cache(1, 64, 4, CacheScope::Cpu)]), 2);
    for hand_over in 0..5 {
        (0..100).for_each(|l| run.access(0, l, true));
        let produced = run.take(0);
        let cause = if hand_over == 0 { Cause::Cold } else { Cause::Upgrade };
        assert_eq!(produced, (0..100).map(|l| (l, true, cause)).collect::<Vec<_>>());
        (0..100).for_each(|l| run.access(1, l, false));
        let read = (0..100).flat_map(|l| [(l, false, Cause::Coherence), (l, true, Cause::WriteBack)]);
        assert_eq!(run.take(1), read.collect::<Vec<_>>());
    }
    // Both write: the line changes hands with its data, nothing goes to memory.
    for _ in 0..5 {
        for thread in 0..2 {
            run.take(thread);
            (0..100).for_each(|l| run.access(thread as u32, l, true));
        }
        assert_eq!(run.take(1), (0..100).map(|l| (l, true, Cause::Coherence)).collect::<Vec<_>>());
    }
}

#[test]
fn a_thread_is_named_when_it_is_created() {
    // Stage 3 keeps all items until each named thread has some.
    let mut run = Run::new(&machine(1, 4, vec![cache(1, 4, 2, CacheScope::Cpu)]), 4);
    let signal = |id| What::Sync(Sync::Signal(id));
    run.access(0, 1, false);
    assert_eq!(run.out.threads.len(), 1);
    for (id, named) in [(SyncId(4), 1), (SyncId::of_creation(ThreadId(2)), 3), (SyncId(9), 3)] {
        let step = TraceStep { thread: ThreadId(0), tick: Ticks(9), what: signal(id) };
        run.caches.step(&step, &mut run.out).unwrap();
        assert_eq!(run.out.threads.len(), named, "{id:?}");
    }
}

#[test]
fn a_hand_over_under_a_shared_cache_costs_its_hit_time() {
    let levels = vec![
        cache(1, 4, 2, CacheScope::Cpu),
        cache(2, 8, 2, CacheScope::Cpu),
        cache(3, 64, 4, CacheScope::Node),
    ];
    let mut run = Run::new(&machine(1, 2, levels), 2);
    run.access(0, 7, true);
    run.access(1, 7, false); // from the other CPU's first level
    run.access(0, 7, true); // permission from the shared level
    let sync = Sync::Signal(SyncId(3));
    for thread in 0..2 {
        let step = TraceStep { thread: ThreadId(thread), tick: Ticks(9), what: What::Sync(sync) };
        run.caches.step(&step, &mut run.out).unwrap();
    }
    let tail = |time| {
        let at = |what| MemItem { tick: Ticks(9), what };
        vec![at(MemWhat::CacheTime(Ns(time).ps())), at(MemWhat::Sync(sync))]
    };
    assert_eq!(run.out.threads[1], tail(20 + 30));
    assert_eq!(run.out.threads[0][1..], tail(20 + 30));
    assert_eq!(run.out.items, 5);
}

#[test]
fn longer_lines_group_recorder_lines() {
    let l1 = Cache { line: Bytes(256), size: Bytes(256 * 8), ..cache(1, 1, 2, CacheScope::Cpu) };
    let mut run = Run::new(&machine(1, 1, vec![l1]), 1);
    (0..16).for_each(|l| run.access(0, l, false));
    assert_eq!(run.take(0), [0, 4, 8, 12].map(|l| (l, false, Cause::Cold)));
}

#[test]
fn hits_are_emitted_where_they_matter() {
    let plain = || machine(2, 1, vec![cache(1, 4, 2, CacheScope::Cpu)]);
    for m in
        [Topology { remote_cacheable: false, ..plain() }, Topology { counts_references: true, ..plain() }]
    {
        let mut run = Run::new(&m, 1);
        (0..3).for_each(|_| run.access(0, 1, true));
        assert_eq!(run.take(0), [Cause::Cold, Cause::Uncached, Cause::Uncached].map(|c| (1, true, c)));
    }
}

#[test]
fn a_touch_after_a_request_is_told_even_where_the_caches_hit() {
    let mut run = Run::new(&machine(1, 2, vec![cache(1, 64, 2, CacheScope::Cpu)]), 2);
    run.access(0, 1, false);
    run.access(1, 1, false);
    let mark = Mark::NextTouch { range: homenode_order::step::ByteRange { first: 0, bytes: 4096 } };
    run.caches
        .step(&TraceStep { thread: ThreadId(0), tick: Ticks(9), what: What::Mark(mark) }, &mut run.out)
        .unwrap();
    let before: Vec<usize> = run.out.threads.iter().map(Vec::len).collect();
    run.access(1, 1, false); // hits, and is the next touch
    run.access(0, 1, false); // hits, and is not
    run.access(0, 64, false); // another unit
    let after: Vec<_> = run.out.threads.iter().zip(before).map(|(t, n)| t[n..].to_vec()).collect();
    assert_eq!(after[1].iter().map(|i| i.what).collect::<Vec<_>>(), [MemWhat::Touch { line: LineNo(1) }]);
    assert!(after[0].iter().all(|i| !matches!(i.what, MemWhat::Touch { .. })), "{after:?}");
}

#[test]
fn marks_and_threads_pass_through() {
    let mut run = Run::new(&machine(1, 3, vec![cache(1, 4, 2, CacheScope::Cpu)]), 3);
    let mark = Mark::Iteration { number: 4 };
    let step = |thread| TraceStep { thread: ThreadId(thread), tick: Ticks(5), what: What::Mark(mark) };
    run.caches.step(&step(2), &mut run.out).unwrap();
    assert_eq!(
        run.out.threads,
        [vec![], vec![], vec![MemItem { tick: Ticks(5), what: MemWhat::Mark(mark) }]]
    );
    let unbound = CachesError::Unbound { thread: ThreadId(3), bound: 3 };
    assert_eq!(run.caches.step(&step(3), &mut run.out), Err(unbound.clone()));
    assert_eq!(run.caches.access(ThreadId(3), Ticks(6), LineNo(0), false, &mut run.out), Err(unbound));
    let far = run.caches.access(ThreadId(0), Ticks(6), LineNo(u64::MAX), false, &mut run.out);
    assert!(matches!(far, Err(CachesError::Full(_))));
}

#[test]
fn more_cpus_than_a_word_has_bits() {
    let m = machine(256, 5, vec![cache(1, 4, 2, CacheScope::Cpu)]);
    assert!(matches!(Caches::new(&m, &cpus(1088)), Err(CachesError::TooManyCpus(_))));
    for threads in [63, 64, 127, 128, 255, 256, 511, 512, 1024, 1087] {
        let mut run = Run::new(&m, threads);
        (0..threads).for_each(|t| run.access(t, 1, false));
        run.access(threads - 1, 1, true);
        assert_eq!(run.take(threads as usize - 1), [(1, false, Cause::Cold), (1, true, Cause::Upgrade)]);
        run.access(0, 1, false);
        assert_eq!(run.take(0)[1..], [(1, false, Cause::Coherence), (1, true, Cause::WriteBack)]);
    }
}

#[test]
fn filters_fit_exactly_roughly_or_not() {
    let fit =
        |first: Cache| filter_fit(&machine(2, 2, vec![first, cache(9, 1, 1, CacheScope::Node)]), 4096, 64);
    assert_eq!(fit(cache(2, 4096, 4, CacheScope::Cpu)), FilterFit::Exact);
    assert_eq!(fit(cache(2, 8192, 1, CacheScope::Group(1))), FilterFit::Exact);
    let rough = |c, why: &str| match fit(c) {
        FilterFit::Approximate(text) => assert!(text.contains(why), "{text}"),
        other => panic!("{other:?}"),
    };
    rough(cache(2, 1024, 16, CacheScope::Cpu), "fewer sets");
    rough(cache(2, 4096, 4, CacheScope::Node), "shared");
    rough(Cache { line: Bytes(128), size: Bytes::mib(4), ..cache(2, 1, 2, CacheScope::Cpu) }, "longer");
    let refused = |m: &Topology, remedy: &str| match filter_fit(m, 4096, 64) {
        FilterFit::Refused(text) => assert!(text.ends_with(remedy), "{text}"),
        other => panic!("{other:?}"),
    };
    let small = machine(1, 1, vec![cache(1, 64, 8, CacheScope::Cpu)]);
    refused(&small, "record with --filter 64 or less");
    assert_eq!(filter_fit(&small, 0, 64), FilterFit::Exact);
    assert_eq!(filter_fit(&small, 64, 64), FilterFit::Exact);
    refused(&machine(1, 1, vec![]), "record with --filter none");
    refused(&Topology { counts_references: true, ..small.clone() }, "record with --filter none");
    refused(&Topology { remote_cacheable: false, ..small }, "record with --filter none");
    let odd = Cache { line: Bytes(32), ..cache(2, 4096, 4, CacheScope::Cpu) };
    refused(&machine(1, 1, vec![odd]), "record with --filter none");
}

/// The recorder's filter.
struct Filter {
    /// (line, a store has passed) by set.
    sets: Vec<Option<(u64, bool)>>,
}

impl Filter {
    fn passes(&mut self, line: u64, write: bool) -> bool {
        let at = line as usize % self.sets.len();
        let known = self.sets[at].filter(|(l, _)| *l == line);
        self.sets[at] = Some((line, write || known.is_some_and(|k| k.1)));
        known.is_none_or(|(_, written)| write && !written)
    }
}

/// Epochs of (thread, ticks since its last access, line, write).
type Epochs = Vec<Vec<(u32, u64, u64, bool)>>;

/// The steps of a program that the filter lets through; every epoch ends with a mark of each
/// thread. In an epoch a line is one thread's own, or read by all: `owner` says which.
fn steps(epochs: &Epochs, owner: &[u32], threads: u32, filter: Option<usize>) -> Vec<TraceStep> {
    let mut steps = Vec::new();
    let mut tick = vec![0; threads as usize];
    for (epoch, accesses) in epochs.iter().enumerate() {
        let mut filters: Vec<_> =
            tick.iter().map(|_| filter.map(|sets| Filter { sets: vec![None; sets] })).collect();
        let mut passed = Vec::new();
        for (thread, gap, line, write) in accesses {
            let (thread, line) = (*thread % threads, *line);
            let owner = owner[(line as usize * 7 + epoch * 13) % owner.len()] % (threads + 1);
            if owner != thread && owner != threads {
                continue;
            }
            let write = *write && owner == thread;
            let at = &mut tick[thread as usize];
            *at += gap;
            if filters[thread as usize].as_mut().is_none_or(|f| f.passes(line, write)) {
                let what = What::Access { line: LineNo(line), write };
                passed.push(TraceStep { thread: ThreadId(thread), tick: Ticks(*at), what });
            }
        }
        passed.sort_by_key(|s| (s.tick, s.thread)); // stable: sequence comes last
        steps.extend(passed);
        for (thread, tick) in (0..threads).zip(&tick) {
            let what = What::Sync(Sync::Signal(SyncId(epoch as u32)));
            steps.push(TraceStep { thread: ThreadId(thread), tick: Ticks(*tick), what });
        }
    }
    steps
}

fn memory_stream(m: &Topology, threads: u32, steps: &[TraceStep]) -> MemChunk {
    let mut caches = Caches::new(m, &cpus(threads)).unwrap();
    let mut out = MemChunk::default();
    for step in steps {
        caches.step(step, &mut out).unwrap();
    }
    out
}

fn levels() -> impl Strategy<Value = Vec<Cache>> {
    use CacheScope::{Cpu, Group, Node};
    let scopes = prop_oneof![
        Just(vec![Cpu]),
        Just(vec![Cpu, Cpu]),
        Just(vec![Cpu, Node]),
        Just(vec![Cpu, Group(2), Node]),
        Just(vec![Cpu, Cpu, Node]),
    ];
    // At least four sets in the first level; those behind may be as small as they like.
    (scopes, 2u32..5, prop::collection::vec((0u32..4, 1u32..5), 3)).prop_map(|(scopes, first, rest)| {
        let levels = scopes.iter().zip(rest).enumerate();
        let sets = |l, s: u32| 1u64 << if l == 0 { first } else { s };
        levels.map(|(l, (scope, (s, ways)))| cache(l as u8 + 1, sets(l, s), ways, *scope)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_changes_nothing(
        threads in 1u32..=4,
        nodes in 1u16..=2,
        caches in levels(),
        owner in prop::collection::vec(0u32..5, 1..30),
        epochs in prop::collection::vec(
            prop::collection::vec((0u32..4, 1u64..4, 0u64..24, any::<bool>()), 0..120), 1..8),
    ) {
        let m = machine(nodes, 4, caches);
        let all = steps(&epochs, &owner, threads, None);
        for filter in [1, 4] {
            prop_assert_eq!(filter_fit(&m, filter, 64), FilterFit::Exact);
            let passed = steps(&epochs, &owner, threads, Some(filter as usize));
            prop_assert!(passed.len() <= all.len());
            let (a, b) = (memory_stream(&m, threads, &all), memory_stream(&m, threads, &passed));
            prop_assert_eq!(a, b);
        }
    }
}
