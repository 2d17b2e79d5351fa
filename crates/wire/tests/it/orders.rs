//! What the launcher tells the library: settings and plans.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use homenode_model::{Bytes, NodeId, Ns};
use homenode_wire::facts::{Arming, Budget};
use homenode_wire::plan::{self, Home, HomePlan, Recognition, Site};
use homenode_wire::schedule::{
    CodeFile, IterationRange, Loop, Mode, RequestedSchedule, Schedules, ThreadIterations,
};
use homenode_wire::settings::{MachineNodes, MoveWhile, Settings, UsableNode, Wanted};
use homenode_wire::{decode, encode};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::damage::{is_noticed, is_survived, splices_are_survived};

fn settings() -> impl Strategy<Value = Settings> {
    let node = (vec(any::<u32>(), 0..4), any::<u64>(), vec(any::<u64>(), 0..4))
        .prop_map(|(cpus, memory, distances)| UsableNode { cpus, memory: Bytes(memory), distances });
    let journal = proptest::option::of(vec(1..=u8::MAX, 0..30));
    (".{0,30}", vec(node, 0..4), any::<[u64; 2]>(), any::<[bool; 7]>(), 0..Wanted::ALL.len(), journal)
        .prop_map(|(policy, nodes, [permille, fixed], yes, source, journal)| Settings {
            stream: journal.clone().map(|bytes| OsString::from_vec(bytes).into()),
            policy,
            arming: if yes[0] { Arming::Watch } else { Arming::Region },
            machine: MachineNodes { nodes },
            pretend: yes[1],
            budget: Budget { permille, fixed: Ns(fixed) },
            trial: yes[6],
            force: yes[2],
            plan: yes[3],
            source: Wanted::ALL[source].1,
            copy_unseen: yes[4],
            move_while: MoveWhile::ALL[source % MoveWhile::ALL.len()].1,
            journal: journal.map(|bytes| OsString::from_vec(bytes).into()),
            record: yes[5],
            schedule: yes[0].then(|| RequestedSchedule {
                mode: Mode::ALL[source % Mode::ALL.len()].1,
                from: yes[1],
                to: yes[2],
            }),
            align: yes[5],
        })
}

fn plans() -> impl Strategy<Value = HomePlan> {
    let ranges = || vec(any::<(u64, u64)>().prop_map(|(a, b)| a..b), 0..4);
    let site = (ranges(), ranges()).prop_map(|(own, callers)| Site { own, callers });
    let how = prop_oneof![
        any::<u64>().prop_map(|address| Recognition::Static { address }),
        any::<[u32; 3]>().prop_map(|[site, first, count]| Recognition::Site { site, first, count }),
        any::<[u32; 2]>().prop_map(|[first, count]| Recognition::Size { first, count }),
    ];
    let home = any::<(u64, u64, u16)>().prop_map(|(offset, bytes, node)| Home {
        offset: Bytes(offset),
        bytes: Bytes(bytes),
        node: NodeId(node),
    });
    let object = (how, any::<u64>(), vec(home, 0..4)).prop_map(|(how, bytes, homes)| plan::ObjectPlan {
        how,
        bytes: Bytes(bytes),
        homes,
    });
    (any::<u32>(), vec(any::<u16>(), 0..9), ".{0,30}", vec(site, 0..4), vec(object, 0..4)).prop_map(
        |(threads, nodes, path, sites, objects)| HomePlan {
            threads,
            nodes: nodes.into_iter().map(NodeId).collect(),
            path,
            sites,
            objects,
        },
    )
}

fn schedules() -> impl Strategy<Value = Schedules> {
    let code =
        (".{0,30}", any::<[u64; 2]>()).prop_map(|(name, [bytes, hash])| CodeFile { name, bytes, hash });
    let run = any::<[u64; 2]>().prop_map(|[begin, end]| IterationRange { begin, end });
    let thread =
        (any::<Option<u16>>(), vec(run, 0..4)).prop_map(|(node, runs)| ThreadIterations { node, runs });
    let one = (any::<u32>(), any::<[u64; 2]>(), any::<[i128; 3]>(), vec(thread, 0..4)).prop_map(
        |(code, [offset, chunk], [first, step, bound], threads)| Loop {
            code,
            offset,
            first,
            step,
            bound,
            chunk,
            threads,
        },
    );
    (vec(code, 0..4), vec(one, 0..4)).prop_map(|(codes, loops)| Schedules { codes, loops })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn schedules_survive(schedules in schedules(), at in any::<usize>(), to in any::<u8>()) {
        prop_assert_eq!(decode(&encode(&schedules).unwrap()), Ok(schedules.clone()));
        is_survived(&schedules, at, to);
        is_noticed(&schedules);
    }

    #[test]
    fn settings_survive(settings in settings(), at in any::<usize>(), to in any::<u8>()) {
        prop_assert_eq!(decode(&encode(&settings).unwrap()), Ok(settings.clone()));
        is_survived(&settings, at, to);
    }

    #[test]
    fn plans_survive(plan in plans(), at in any::<usize>(), to in any::<u8>()) {
        prop_assert_eq!(decode(&encode(&plan).unwrap()), Ok(plan.clone()));
        is_survived(&plan, at, to);
    }

    #[test]
    fn pieces_of_each_other_are_survived(settings in settings(), plan in plans(), seed in any::<u64>()) {
        let both = [encode(&settings).unwrap(), encode(&plan).unwrap()];
        for other in &both {
            splices_are_survived(&settings, other, seed);
            splices_are_survived(&plan, other, seed);
        }
    }

    #[test]
    fn damage_is_noticed(settings in settings(), plan in plans()) {
        is_noticed(&settings);
        is_noticed(&plan);
    }
}

#[test]
fn an_even_machine_has_its_cpus_in_order() {
    let machine = MachineNodes::even(2, 2, Bytes(7), 21);
    let node = |cpus: [u32; 2], distances: [u64; 2]| UsableNode {
        cpus: cpus.to_vec(),
        memory: Bytes(7),
        distances: distances.to_vec(),
    };
    assert_eq!(machine.nodes, [node([0, 1], [10, 21]), node([2, 3], [21, 10])]);
}
