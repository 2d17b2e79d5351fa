//! Facts and sightings.

use homenode_model::{Bytes, Ns};
use homenode_wire::bounded::{NODES, TEXT, line};
use homenode_wire::facts::*;
use homenode_wire::schedule::{Dealt, Kept, Mode};
use homenode_wire::{FrameFault, decode, encode};
use proptest::prelude::*;

use crate::damage::{is_noticed, is_survived, splices_are_survived};

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        any::<[u64; FRAMES]>().prop_map(Origin::Allocated),
        any::<u64>().prop_map(Origin::Static),
        (".{0,20}", any::<u64>()).prop_map(|(file, at)| Origin::Library(file.into(), at)),
    ]
}

fn object() -> impl Strategy<Value = ObjectFacts> {
    let lists = || proptest::collection::vec(any::<u64>(), 0..5);
    let python = proptest::option::of(".{0,40}");
    (origin(), any::<[u64; 3]>(), lists(), lists(), python).prop_map(
        |(origin, [bytes, moved, ping_pongs], homes, touched, python)| ObjectFacts {
            origin,
            bytes: Bytes(bytes),
            moved,
            ping_pongs,
            homes,
            touched,
            python,
            lives: moved,
            contested: moved % 2 == 1,
        },
    )
}

fn module() -> impl Strategy<Value = LoadedFile> {
    (any::<[u64; 3]>(), ".{0,40}").prop_map(|([base, low, high], path)| LoadedFile { base, low, high, path })
}

fn times() -> impl Strategy<Value = RoundTimings> {
    (any::<[u64; 4]>(), any::<Option<(u64, u64)>>()).prop_map(|([rounds, low, median, high], interval)| {
        RoundTimings {
            rounds,
            low: Ns(low),
            median: Ns(median),
            high: Ns(high),
            interval: interval.map(|(a, b)| (Ns(a), Ns(b))),
        }
    })
}

fn samples() -> impl Strategy<Value = Samples> {
    any::<(u64, u64)>().prop_map(|(remote, all)| Samples { remote, all })
}

fn facts() -> impl Strategy<Value = Facts> {
    let verdicts =
        [Verdict::Open, Verdict::Pays, Verdict::AtHome, Verdict::Evener, Verdict::NoGain, Verdict::Harms];
    let armings = [Arming::Asked, Arming::First, Arming::Region, Arming::Watch];
    let head = (any::<[u64; 20]>(), any::<u32>(), ".{0,30}", any::<[bool; 5]>());
    let guard = (0..verdicts.len(), 0..armings.len(), samples(), samples(), samples());
    let lists = (
        proptest::collection::vec(object(), 0..4),
        proptest::collection::vec(module(), 0..4),
        proptest::collection::vec(".{0,30}", 0..4),
    );
    (head, guard, lists, times(), times(), proptest::option::of(".{0,30}")).prop_map(
        move |(
            (n, pid, text, yes),
            (v, a, moved, held, seen),
            (most, modules, notes),
            before,
            after,
            why,
        )| Facts {
            pid,
            elapsed: Ns(n[0]),
            own: Ns(n[1]),
            waited: Ns(n[2]),
            cpu: Ns(n[3]),
            settled: yes[0].then_some(Settled { own: Ns(n[4]), cpu: Ns(n[5]), regions: n[6] }),
            budget: Budget { permille: n[7], fixed: Ns(n[8]) },
            on_trial: yes[4],
            policy: text.clone(),
            arming: armings[a],
            nodes: n[9],
            pretended: yes[1],
            counters: MoverCounters { arms: n[10], own: Ns(n[11]), ..MoverCounters::default() },
            known_moves: KnownMoves { beside: n[1], longer: Ns(n[12]), ..KnownMoves::default() },
            regions: Regions {
                in_source: n[12],
                runs: n[13],
                barriers: n[14],
                longest: vec![Region { function: n[15], caller: n[16], runs: 1, ..Region::default() }],
            },
            rounds: RoundFacts { count: n[17], before, after },
            guard: Guard { off: yes[2], verdict: verdicts[v], moved, held, contested: n[5] },
            threads: ThreadNodes {
                threads: n[0],
                unbound: n[1],
                changed_nodes: n[2],
                nodes: n[4],
                looks: n[3],
            },
            objects: ObjectTotals { living: n[18], most, ..ObjectTotals::default() },
            watch: yes[3].then(|| WatchFacts {
                source: text.clone(),
                told: n[19],
                before: seen,
                ..WatchFacts::default()
            }),
            plan: why.clone().map(|t| PlanFacts {
                progress: PlanProgress { met: n[0], ..PlanProgress::default() },
                scaled: Some(t),
            }),
            schedule: yes[0].then(|| Dealt {
                mode: Mode::ALL[v % Mode::ALL.len()].1,
                loops: n[1],
                taken: n[2],
                own: n[3],
                chunks: n[4],
                replayed: n[5],
                recorded: n[6],
                kept: vec![Kept { name: text.clone(), loops: n[7] }],
                trying: n[8],
                tables: n[9],
                refused: notes.clone(),
            }),
            stopped: why,
            notes,
            modules,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn facts_survive(facts in facts(), at in any::<usize>(), to in any::<u8>()) {
        prop_assert_eq!(decode(&encode(&facts).unwrap()), Ok(facts.clone()));
        is_survived(&facts, at, to);
    }

    #[test]
    fn pieces_of_another_report_are_survived(facts in facts(), other in facts(), seed in any::<u64>()) {
        splices_are_survived(&facts, &encode(&other).unwrap(), seed);
    }

    #[test]
    fn damage_is_noticed(facts in facts()) {
        is_noticed(&facts);
    }
}

#[test]
fn a_list_beyond_its_bound_is_neither_written_nor_read() {
    let mut facts = Facts { notes: vec![String::new(); NOTES], ..Facts::default() };
    assert!(encode(&facts).is_ok());
    facts.notes.push(String::new());
    assert!(matches!(encode(&facts).unwrap_err().fault, FrameFault::Payload(_)));
    let mut object = ObjectFacts::bare(Origin::Static(1), Bytes(1));
    object.homes = vec![1; NODES + 1];
    facts = Facts::default();
    facts.objects.most = vec![object];
    assert!(encode(&facts).is_err());
}

#[test]
fn a_text_is_cut_at_a_characters_border() {
    let long = "ä".repeat(TEXT);
    let facts = Facts { stopped: Some(format!("x{long}")), ..Facts::default() };
    let back: Facts = decode(&encode(&facts).unwrap()).unwrap();
    assert_eq!(back.stopped.unwrap().len(), TEXT - 1);
    assert_eq!(line("a\nb\rc"), "a b c");
    assert_eq!(line(&long).len(), TEXT);
}

#[test]
fn addresses_end_at_the_first_zero() {
    assert_eq!(Origin::Allocated([3, 4, 0, 5, 0, 0]).frames(), [3, 4]);
    assert_eq!(Origin::Allocated([1; FRAMES]).frames(), [1; FRAMES]);
    assert_eq!(Origin::Static(7).frames(), [0_u64; 0]);
}

#[test]
fn what_was_told_before_anything_moved_comes_first() {
    let mut facts = Facts::default();
    facts.objects.moved = 10;
    let touched = vec![10, 10];
    facts.objects.most = vec![ObjectFacts { touched, ..ObjectFacts::bare(Origin::Static(1), Bytes(1)) }];
    assert_eq!(facts.touched(), Samples { remote: 10, all: 20 });
    facts.watch = Some(WatchFacts { before: Samples { remote: 3, all: 4 }, ..WatchFacts::default() });
    assert_eq!(facts.touched(), Samples { remote: 3, all: 4 });
}
