//! The properties of the module, for every policy there is.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use homenode_model::{AccessKind, Decision, Event, NodeId, Ns, ObjectId, PageNo, PageRange, Placement};
use proptest::prelude::*;

use super::read::{feed, open};
use super::*;
use crate::testing::{Bench, NODES, machine, roomy};
use crate::{POLICIES, PolicyContext, build};

std::thread_local! {
    /// What the journal at hand holds: policies must be `Send`, so the sink cannot borrow.
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Here;

impl Sink for Here {
    fn write(&mut self, bytes: &[u8]) {
        BYTES.with_borrow_mut(|all| all.extend_from_slice(bytes));
    }
}

fn taken() -> Vec<u8> {
    BYTES.take()
}

/// A step of a program.
#[derive(Clone, Debug)]
enum Doing {
    Touch(u64, u16),
    Accesses(Vec<(u64, u16, bool, u32)>),
    Region(u32),
    Iteration,
    Request,
    Free,
    Wake,
}

fn doings() -> impl Strategy<Value = Vec<Doing>> {
    let node = 0..NODES as u16;
    let access = (0u64..64, node.clone(), any::<bool>(), 1u32..5000);
    let one = prop_oneof![
        6 => (0u64..64, node).prop_map(|(p, n)| Doing::Touch(p, n)),
        3 => proptest::collection::vec(access, 0..40).prop_map(Doing::Accesses),
        2 => (0u32..4).prop_map(Doing::Region),
        2 => Just(Doing::Iteration),
        1 => Just(Doing::Request),
        1 => Just(Doing::Free),
        2 => Just(Doing::Wake),
    ];
    proptest::collection::vec(one, 0..80)
}

fn context() -> PolicyContext {
    let mut plan = Placement::new();
    (0..64).for_each(|p| plan.set(PageNo(p), NodeId((p % 3) as u16)));
    machine(&roomy()).with_plan(Arc::new(plan))
}

/// The journal of `spec` while a program does all this.
fn journal(spec: &str, doings: &[Doing]) -> Vec<u8> {
    taken();
    let context = context();
    let policy = Journalled::new(build(spec, &context).unwrap(), spec, &context, Here);
    let mut bench = Bench::new(&context, policy);
    let pages = PageRange { first: PageNo(0), count: 40 };
    bench.observe(&Event::Alloc { object: ObjectId(0), pages });
    let mut number = 0;
    for doing in doings {
        match doing {
            Doing::Touch(page, node) => {
                bench.fault(PageNo(*page), NodeId(*node));
                bench.touch(PageNo(*page), NodeId(*node));
            }
            Doing::Accesses(list) => {
                let mut list = list.clone();
                list.sort_unstable();
                for (page, node, write, count) in list {
                    let kind = if write { AccessKind::Write } else { AccessKind::Read };
                    bench.accesses(PageNo(page), NodeId(node), kind, count);
                }
            }
            Doing::Region(region) => {
                bench.observe(&Event::RegionBegin { region: *region });
                bench.observe(&Event::RegionEnd { region: *region });
            }
            Doing::Iteration => {
                bench.observe(&Event::Iteration { number });
                number += 1;
            }
            Doing::Request => bench.request(pages),
            Doing::Free => bench.free(ObjectId(0), PageRange { first: PageNo(8), count: 16 }),
            Doing::Wake => bench.later(Ns(20_000_000)),
        }
    }
    drop(bench);
    taken()
}

proptest! {
    // Every policy, each in all of them.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_fresh_policy_decides_the_same(doings in doings()) {
        for policy in POLICIES {
            let bytes = journal(policy.name, &doings);
            let checked = check(&bytes).unwrap();
            prop_assert!(checked.difference.is_none() && checked.complete, "{}: {:?}", policy.name, checked);
            // And the replay's own journal is the same bytes.
            let (header, mut decoder) = open(&bytes).unwrap();
            let fresh = build(&header.spec, &header.context).unwrap();
            let mut again = Journalled::new(fresh, &header.spec, &header.context, Here);
            feed(&mut decoder, &mut again).unwrap();
            drop(again);
            prop_assert!(taken() == bytes, "{}", policy.name);
        }
    }

    #[test]
    fn another_decision_is_found(doings in doings()) {
        // Two policies that never agree about a page.
        let bytes = journal("one-node:node=1", &doings);
        let touched = doings.iter().any(|d| matches!(d, Doing::Touch(..)));
        let at = bytes.windows(15).position(|w| w == b"one-node:node=1").unwrap();
        let mut other = bytes.clone();
        other[at + 14] = b'2';
        let checked = check(&other).unwrap();
        prop_assert_eq!(checked.difference.is_some(), touched);
        if let Some(d) = checked.difference {
            let nodes = [d.recorded.0, d.fresh.0].map(|d| match d {
                Some(Decision::Place { node, .. }) => node.0,
                _ => 99,
            });
            prop_assert_eq!(nodes, [1, 2]);
            prop_assert!(d.event >= 2, "not before the allocation and the touch");
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_journal_panics(
        doings in doings(),
        policy in 0..POLICIES.len(),
        harm in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
    ) {
        let mut bytes = journal(POLICIES[policy].name, &doings);
        for (at, byte, how) in harm {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if at > 60 => bytes.truncate(at),
                _ => {}
            }
        }
        let _ = check(&bytes);
        let _ = ask(&bytes, "next-touch", |_, _| {});
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = check(&bytes);
        let mut with_magic = b"HNPJ\x01".to_vec();
        with_magic.extend_from_slice(&bytes);
        let _ = check(&with_magic);
    }
}

#[test]
fn another_policy_is_asked_about_the_same_events() {
    let doings =
        [Doing::Touch(3, 1), Doing::Touch(4, 0), Doing::Request, Doing::Touch(3, 2), Doing::Touch(4, 0)];
    let bytes = journal("next-touch", &doings);
    let mut decisions = vec![];
    let asked = ask(&bytes, "one-node:node=2", |_, d| decisions.push(d)).unwrap();
    assert_eq!((asked.places, asked.moves), (2, 0));
    assert_eq!(decisions[0], Decision::Place { page: PageNo(3), node: NodeId(2) });
    // next-touch itself says what it said.
    assert_eq!(ask(&bytes, "next-touch", |_, _| {}).unwrap().moves, 1);
}

#[test]
fn errors_say_what_is_wrong() {
    let text = |e: JournalError| e.to_string();
    assert!(text(check(b"PK\x03\x04").unwrap_err()).contains("no policy journal"));
    assert!(text(check(b"HNPJ\x03").unwrap_err()).contains("version 3"));
    assert!(text(check(b"HNPJ\x01\x7f").unwrap_err()).contains("cut off"));
    let bytes = journal("first-touch", &[Doing::Touch(1, 1)]);
    assert!(!check(&bytes[..bytes.len() - 1]).unwrap().complete);
    let e = text(ask(&bytes, "nobody", |_, _| {}).unwrap_err());
    assert!(e.starts_with("there is no policy `nobody`"), "{e}");
}

#[test]
fn a_killed_process_leaves_all_but_the_last_tenth_of_a_second() {
    taken();
    let context = context();
    let policy = build("competitive", &context).unwrap();
    let mut bench = Bench::new(&context, Journalled::new(policy, "competitive", &context, Here));
    assert!(check(&BYTES.with_borrow(Vec::clone)).is_ok_and(|c| !c.complete && c.polls == 0), "its head");
    for page in 0..50 {
        bench.touch(PageNo(page), NodeId(1));
        bench.later(Ns(20_000_000));
    }
    // SIGKILL runs no destructor.
    core::mem::forget(bench);
    let checked = check(&taken()).unwrap();
    assert!(checked.difference.is_none() && !checked.complete, "{checked:?}");
    assert!((40..=50).contains(&checked.polls), "{checked:?}");
}
