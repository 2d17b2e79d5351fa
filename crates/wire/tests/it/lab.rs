//! Host and guest of the lab, and QEMU's plug-in.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use homenode_model::{
    Bytes, Cache, CacheScope, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology, Way,
    Writes,
};
use homenode_wire::bounded::BYTES;
use homenode_wire::lab::{
    Back, EntryKind, GuestCommand, GuestJob, GuestMessage, ProgramEnd, ReturnedFile, Time, User, WrittenBytes,
};
use homenode_wire::monitor::{
    self, AccessCounts, Config, Cpu, CpuShare, EmulatorSettings, ExecutedCode, FirstStore, KernelLayout,
    Misses, ModelledInterval, MonitorAnswer, MonitorReport, PageAccesses, PhysicalAddresses, Process,
};
use homenode_wire::{FrameFault, decode, decode_word, encode, encode_word};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::damage::{framed, is_noticed, is_survived, splices_are_survived};

fn os() -> impl Strategy<Value = OsString> {
    vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
}

fn job() -> impl Strategy<Value = GuestJob> {
    let lists = (vec(os(), 0..4), btree_map(os(), os(), 0..4));
    let options = (proptest::option::of(os()), proptest::option::of(os()), any::<(u32, u32, bool)>());
    (os(), os(), os(), lists, options).prop_map(
        |(program, name, cwd, (args, env), (sync, marks, (user, group, apart)))| GuestJob {
            program: program.into(),
            name,
            args,
            env,
            cwd: cwd.into(),
            sync: sync.map(Into::into),
            user: User { user, group },
            apart,
            marks: marks.map(Into::into),
        },
    )
}

fn back() -> impl Strategy<Value = Back> {
    let kind = prop_oneof![
        Just(EntryKind::Folder),
        any::<u64>().prop_map(EntryKind::File),
        os().prop_map(|to| EntryKind::Link(to.into())),
        Just(EntryKind::Gone),
    ];
    let entry =
        (os(), kind, any::<(u32, i64, u32)>()).prop_map(|(path, kind, (mode, seconds, nanoseconds))| {
            Back::Entry(ReturnedFile {
                path: path.into(),
                kind,
                mode,
                modified: Time { seconds, nanoseconds },
            })
        });
    prop_oneof![entry, Just(Back::End)]
}

fn said() -> impl Strategy<Value = GuestMessage> {
    let status = any::<(bool, u8)>()
        .prop_map(|(exit, n)| if exit { ProgramEnd::Exit(n) } else { ProgramEnd::Signal(n) });
    prop_oneof![
        Just(GuestMessage::Ready),
        Just(GuestMessage::Started),
        any::<i32>().prop_map(GuestMessage::CannotRun),
        Just(GuestMessage::Bye),
        (status, any::<[u64; 4]>()).prop_map(|(status, [out, err, out_of_memory, took])| {
            GuestMessage::Ended { status, written: WrittenBytes { out, err }, out_of_memory, took: Ns(took) }
        }),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    (any::<[u64; 8]>(), any::<[bool; 2]>(), os(), any::<i32>(), 1..4_usize).prop_map(
        |(n, yes, output, control, nodes)| {
            let cache = Cache {
                level: 2,
                size: Bytes(n[0]),
                line: Bytes(n[1]),
                ways: 8,
                scope: CacheScope::Group(3),
                writes: Writes::Back,
                hit: Ns(n[2]),
            };
            let node = Node { memory: Bytes(n[3]), bandwidth: MbPerS(n[4]), port: MbPerS(n[5]) };
            Config {
                machine: Topology {
                    name: "lab".into(),
                    nodes: vec![node; nodes],
                    cpus: vec![NodeId(1), NodeId(0)],
                    latency: Matrix::from_fn(nodes, |i, j| Ns((i * j) as u64)),
                    link: Matrix::from_fn(nodes, |i, j| MbPerS((i + j) as u64)),
                    caches: vec![cache],
                    page_sizes: vec![Bytes::kib(4)],
                    core: Core { access: Ps(n[6]), outstanding: 1 },
                    migration: MigrationCost::default(),
                    remote_cacheable: true,
                    counts_references: false,
                },
                addresses: match yes[0] {
                    true => PhysicalAddresses::Physical { low: Bytes(n[7]) },
                    false => PhysicalAddresses::Blocks { low: Bytes(n[7]) },
                },
                disk: Bytes(n[0]),
                kernel: yes[1].then_some(KernelLayout {
                    areas: n[1],
                    current: n[2],
                    direct: n[3],
                    process: 4,
                    name: 5,
                }),
                output: output.into(),
                control,
            }
        },
    )
}

fn found() -> impl Strategy<Value = MonitorReport> {
    let process = (any::<u32>(), ".{0,20}").prop_map(|(id, name)| Process { id, name });
    let share = any::<[u64; 3]>().prop_map(|[accesses, local, remote]| CpuShare { accesses, local, remote });
    let cpu = (any::<[u64; 6]>(), btree_map(any::<u16>(), share, 0..4)).prop_map(|(n, shares)| Cpu {
        misses: Misses { cold: n[0], capacity: n[1], coherence: n[2], upgrade: n[3] },
        shares,
        alone: Ps(n[4]),
        time: Ps(n[5]),
    });
    let interval =
        (any::<[u64; 2]>(), any::<[u16; 2]>(), 0..4_u8).prop_map(|([alone, busy], [a, b], way)| {
            ModelledInterval {
                alone: Ps(alone),
                busiest: match way {
                    0 => Way::Controller(NodeId(a)),
                    1 => Way::Outgoing(NodeId(a)),
                    2 => Way::Incoming(NodeId(a)),
                    _ => Way::Link(NodeId(a), NodeId(b)),
                },
                busy: Ps(busy),
            }
        });
    let counts = vec(any::<(u64, u64)>().prop_map(|(loads, stores)| AccessCounts { loads, stores }), 0..4);
    let page = (any::<(u32, u16, u64, u64, u16)>(), counts).prop_map(
        |((interval, process, page, physical, home), counts)| PageAccesses {
            visit: interval,
            interval,
            process,
            page,
            physical,
            home: NodeId(home),
            counts,
        },
    );
    let code = any::<(u64, [u64; 8])>().prop_map(|(at, calls)| ExecutedCode { at, calls });
    let first = any::<(u32, u16, u64, u32, u32)>()
        .prop_map(|(interval, process, page, cpu, code)| FirstStore { interval, process, page, cpu, code });
    let lists = (vec(cpu, 0..4), vec(interval, 0..4), vec(page, 0..4), vec(code, 0..4), vec(first, 0..4));
    (btree_map(any::<u16>(), process, 0..4), lists, any::<u64>()).prop_map(
        |(processes, (cpus, intervals, pages, codes, firsts), lost)| MonitorReport {
            processes,
            cpus,
            intervals,
            pages,
            codes,
            firsts,
            lost,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_labs_messages_survive(
        job in job(), back in back(), said in said(), signal in any::<i32>(), at in any::<usize>(), to in any::<u8>(),
    ) {
        prop_assert_eq!(decode(&encode(&job).unwrap()), Ok(job.clone()));
        prop_assert_eq!(decode(&encode(&back).unwrap()), Ok(back.clone()));
        prop_assert_eq!(decode(&encode(&said).unwrap()), Ok(said.clone()));
        prop_assert_eq!(decode(&encode(&GuestCommand::Signal(signal)).unwrap()), Ok(GuestCommand::Signal(signal)));
        is_survived(&job, at, to);
        is_survived(&back, at, to);
        is_survived(&said, at, to);
    }

    #[test]
    fn the_monitors_messages_survive(config in config(), found in found(), at in any::<usize>(), to in any::<u8>()) {
        prop_assert_eq!(decode(&encode(&config).unwrap()), Ok(config.clone()));
        prop_assert_eq!(decode(&encode(&found).unwrap()), Ok(found.clone()));
        is_survived(&config, at, to);
        is_survived(&found, at, to);
    }

    #[test]
    fn pieces_of_other_messages_are_survived(
        job in job(), back in back(), said in said(), config in config(), found in found(), seed in any::<u64>(),
    ) {
        let all = [
            encode(&job).unwrap(), encode(&back).unwrap(), encode(&said).unwrap(), encode(&config).unwrap(), encode(&found).unwrap(),
        ];
        for other in &all {
            splices_are_survived(&job, other, seed);
            splices_are_survived(&back, other, seed);
            splices_are_survived(&said, other, seed);
            splices_are_survived(&config, other, seed);
            splices_are_survived(&found, other, seed);
            splices_are_survived(&monitor::MonitorCommand::End, other, seed);
            splices_are_survived(&MonitorAnswer { failed: Some("why".into()) }, other, seed);
            splices_are_survived(&GuestCommand::Signal(2), other, seed);
        }
    }

    #[test]
    fn damage_is_noticed(job in job(), back in back(), said in said(), config in config(), found in found()) {
        is_noticed(&job);
        is_noticed(&back);
        is_noticed(&said);
        is_noticed(&config);
        is_noticed(&found);
        is_noticed(&monitor::MonitorCommand::End);
        is_noticed(&MonitorAnswer { failed: Some("why".into()) });
        is_noticed(&GuestCommand::Signal(2));
    }

    #[test]
    fn words_survive_and_damage_does_not(recording in os(), filter_lines in any::<u32>(), alone in any::<bool>()) {
        let emulator = EmulatorSettings { recording: recording.into(), filter_lines, alone };
        is_noticed(&emulator);
        let word = encode_word(&emulator).unwrap();
        prop_assert!(word.bytes().all(|b| b.is_ascii_hexdigit()));
        prop_assert_eq!(decode_word(&word), Ok(emulator));
        for at in 0..word.len() {
            prop_assert!(decode_word::<EmulatorSettings>(&word[..at]).is_err());
            let mut other = word.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'x' };
            prop_assert!(decode_word::<EmulatorSettings>(&String::from_utf8(other).unwrap()).is_err());
        }
    }
}

#[test]
fn what_is_too_long_for_the_system_is_too_long_here() {
    let argument = |n| GuestJob { args: vec![OsString::from_vec(vec![b'x'; n])], ..GuestJob::default() };
    assert!(encode(&argument(BYTES)).is_ok());
    assert!(matches!(encode(&argument(BYTES + 1)).unwrap_err().fault, FrameFault::Payload(_)));
    let word = "0".repeat(1 << 20);
    assert!(matches!(decode_word::<EmulatorSettings>(&word).unwrap_err().fault, FrameFault::TooLong { .. }));
    assert!(decode_word::<EmulatorSettings>("äöü").is_err());
}

#[test]
fn a_matrix_that_is_not_square_is_refused() {
    let empty = Matrix::from_fn(0, |_, _| Ns(0));
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut config = proptest::strategy::ValueTree::current(&config().new_tree(&mut runner).unwrap());
    config.machine.latency = empty;
    config.machine.nodes.clear();
    config.machine.cpus.clear();
    let good = encode(&config).unwrap();
    // Name, no node, no CPU, then the matrix: rows and cells.
    let mut payload = good[16..].to_vec();
    assert_eq!(payload[..8], *b"\x03lab\0\0\0\0");
    payload[6] = 2;
    assert!(matches!(
        decode::<Config>(&framed::<Config>(&payload)).unwrap_err().fault,
        FrameFault::Payload(_)
    ));
}
