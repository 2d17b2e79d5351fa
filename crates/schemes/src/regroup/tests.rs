//! Recordings made by hand, dealt anew, and read back.

use super::*;
use homenode_log::file::LogHeader;
use homenode_log::recording::Meta;
use homenode_log::{Mark, Record, RecordKind};
use homenode_task::Unattended;

const LINES_A_PAGE: u64 = 64;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("homenode-regroup-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn meta() -> Meta {
    Meta {
        format: homenode_log::VERSION,
        homenode: "test".into(),
        kind: "exact".into(),
        command: vec!["test".into()],
        environment: BTreeMap::new(),
        filter_lines: 0,
        rank: None,
        ended: None,
    }
}

fn write(path: &Path, threads: &[Records]) -> Recording {
    let recording = Recording::create(path, meta()).unwrap();
    for (t, records) in threads.iter().enumerate() {
        let header = LogHeader { version: homenode_log::VERSION, filter_lines: 0, line_shift: 6 };
        let mut writer = RegroupedLog::create(&path.join(format!("threads/{t}.hnlog")), header).unwrap();
        writer.records(records).unwrap();
        writer.finish().unwrap();
    }
    recording
}

fn stack(t: u64) -> (u64, u64) {
    (0x7000_0000 + t * 0x10_0000, 0x7000_0000 + t * 0x10_0000 + 0x8000)
}

/// A thread that executes a loop: chunks by first iteration, each with a page of its own, a line of
/// the thread's stack, and an atomic access.
fn thread(t: u64, team: u64, executions: &[Vec<u64>], order: &mut u64) -> Records {
    let (stack_low, stack_high) = stack(t);
    let mut r = Records::default();
    r.mark(&Mark::ThreadStart { id: 0, stack_low, stack_high }, 0);
    for (e, chunks) in executions.iter().enumerate() {
        let instance = e as u64 + 1;
        if t == 0 {
            r.mark(&Mark::RegionFork { instance, pc: 7 }, 1);
        }
        r.mark(&Mark::TaskBegin { instance, number: t, team }, 1);
        for first in chunks {
            r.mark(&Mark::LoopPiece { first: *first, end: first + 1 }, 2);
            r.access(LineNo(first * LINES_A_PAGE), true, 0x40, 10);
            r.access(LineNo((stack_high >> 6) - 4), true, 0x44, 10);
            r.mark(&Mark::Atomic { address: 0x9000, write: 1, order: *order }, 1);
            *order += 1;
        }
        r.mark(&Mark::LoopPiece { first: 0, end: 0 }, 3);
        r.access(LineNo(1 << 20 | t), false, 0x48, 5);
        r.mark(&Mark::TaskEnd { instance }, 1);
        if t == 0 {
            r.mark(&Mark::RegionJoin { instance }, 1);
        }
    }
    r.mark(&Mark::ThreadEnd { reason: 0 }, 1);
    r
}

fn read(recording: &Recording) -> Vec<Vec<Record>> {
    let read = |path: &PathBuf| {
        let mut log = LogReader::open(path).unwrap();
        std::iter::from_fn(move || log.next_record().unwrap()).collect()
    };
    recording.logs().unwrap().iter().map(read).collect()
}

/// First iterations of the chunks, by execution.
fn chunks(records: &[Record]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for r in records {
        match r.what {
            RecordKind::Mark(Mark::LoopPiece { first, end }) if first != end => {
                all.last_mut().unwrap().push(first)
            }
            RecordKind::Mark(Mark::LoopPiece { .. }) => all.push(Vec::new()),
            _ => {}
        }
    }
    all.pop();
    all
}

#[test]
fn chunks_are_dealt_anew_and_keep_their_accesses() {
    let path = folder("cyclic");
    let mut order = 100;
    let recorded = [vec![vec![0, 1, 2, 5], vec![]], vec![vec![3, 4], vec![0, 1, 2, 3, 4, 5]]];
    let threads: Vec<Records> = (0..2).map(|t| thread(t, 2, &recorded[t as usize], &mut order)).collect();
    let from = write(&path, &threads);
    let copy = path.with_extension("cyclic");
    let _ = std::fs::remove_dir_all(&copy);
    let (to, summary) = regroup(&from, Schedule::Cyclic, &copy, &Unattended).unwrap();
    assert_eq!((summary.executions, summary.chunks, summary.left()), (2, 12, 0));
    // 1, 5 and 4 left their threads in the first execution; 0, 2 and 4 in the second.
    assert_eq!(summary.moved, 6);
    let read = read(&to);
    for (t, records) in read.iter().enumerate() {
        let t = t as u64;
        assert_eq!(chunks(records), [vec![t, t + 2, t + 4], vec![t, t + 2, t + 4]]);
        // The lines of a chunk come behind its mark; the stack is the thread's own.
        let mut now = None;
        for r in records {
            match r.what {
                RecordKind::Mark(Mark::LoopPiece { first, end }) => now = (first != end).then_some(first),
                RecordKind::Access { line, .. } if line.0 < 1 << 20 => {
                    assert_eq!(Some(line.0 / LINES_A_PAGE), now);
                }
                RecordKind::Access { line, .. } if line.0 >> 20 == 1 => assert_eq!(line.0 & 1, t),
                RecordKind::Access { line, .. } => assert_eq!(line.0, (stack(t).1 >> 6) - 4),
                RecordKind::Mark(_) => {}
            }
        }
        assert!(records.windows(2).all(|w| w[0].tick <= w[1].tick));
        assert!(matches!(records.last().unwrap().what, RecordKind::Mark(Mark::ThreadEnd { .. })));
    }
    // As many numbers as before, each once, and each thread's grow within an execution.
    let orders = |records: &[Record]| -> Vec<u64> {
        let order = |r: &Record| match r.what {
            RecordKind::Mark(Mark::Atomic { order, .. }) => Some(order),
            _ => None,
        };
        records.iter().filter_map(order).collect()
    };
    let mut all: Vec<u64> = read.iter().flat_map(|r| orders(r)).collect();
    read.iter().for_each(|r| assert!(orders(r)[..3].is_sorted() && orders(r)[3..].is_sorted()));
    all.sort_unstable();
    assert_eq!(all, (100..112).collect::<Vec<_>>());
    // The clock of both threads together is what it was.
    let clock = |all: &[Vec<Record>]| all.iter().map(|r| r.last().unwrap().tick.0).sum::<u64>();
    assert_eq!(clock(&read), clock(&self::read(&from)));
    for folder in [path, copy] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn affinity_repeats_itself_where_the_recording_does_not() {
    let path = folder("affinity");
    let mut order = 0;
    let recorded = [vec![vec![0, 1, 2, 3], vec![4, 5, 6]], vec![vec![4, 5, 6, 7], vec![0, 1, 2, 3, 7]]];
    let threads: Vec<Records> = (0..2).map(|t| thread(t, 2, &recorded[t as usize], &mut order)).collect();
    let from = write(&path, &threads);
    let copy = path.with_extension("copy");
    let _ = std::fs::remove_dir_all(&copy);
    let (to, summary) = regroup(&from, Schedule::Affinity, &copy, &Unattended).unwrap();
    for records in read(&to) {
        let by_execution = chunks(&records);
        assert_eq!(by_execution[0], by_execution[1]);
        assert_eq!(by_execution[0].len(), 4);
    }
    // The clock of one thread's last chunk goes on to the end of the loop.
    assert!(summary.imbalance() < 1.0, "{summary:?}");
    assert!(
        summary
            .describe(Schedule::Affinity)
            .starts_with("schedule affinity: 2 executions of dynamic loops dealt anew, ")
    );
    for folder in [path, copy] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_loop_that_allocates_or_has_no_end_stays_as_it_was() {
    let path = folder("left");
    let mut threads = Vec::new();
    for t in 0..2u64 {
        let mut r = Records::default();
        r.mark(&Mark::ThreadStart { id: 0, stack_low: 0, stack_high: 0 }, 0);
        for instance in 1..3 {
            r.mark(&Mark::TaskBegin { instance, number: t, team: 2 }, 1);
            r.mark(&Mark::LoopPiece { first: t, end: t + 1 }, 1);
            r.access(LineNo(t), true, 0x40, 1);
            if instance == 1 {
                r.mark(&Mark::Alloc { address: 64, bytes: 64, site: 1, caller: 0, order: t }, 1);
                r.mark(&Mark::LoopPiece { first: t + 2, end: t + 3 }, 1);
                r.access(LineNo(t), true, 0x40, 1);
                r.mark(&Mark::LoopPiece { first: 0, end: 0 }, 1);
            }
            r.mark(&Mark::Barrier { instance, generation: 0 }, 1);
            r.mark(&Mark::TaskEnd { instance }, 1);
        }
        threads.push(r);
    }
    let from = write(&path, &threads);
    let copy = path.with_extension("copy");
    let _ = std::fs::remove_dir_all(&copy);
    let error = regroup(&from, Schedule::Block, &copy, &Unattended).unwrap_err().to_string();
    assert!(error.contains("no dynamic loop that can be dealt anew"), "{error}");
    // What was written up to there is what was recorded.
    let copied = Recording::open(&copy).unwrap();
    assert_eq!(read(&copied), read(&from));
    for folder in [path, copy] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
