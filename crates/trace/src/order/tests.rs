//! The merger against small programs written by hand.

use homenode_log::Mark as LogMark;

use super::*;

struct List(std::vec::IntoIter<Record>);

impl RecordSource for List {
    fn next(&mut self) -> Result<Option<Record>, LogError> {
        Ok(self.0.next())
    }
}

#[derive(Default, Debug, PartialEq)]
struct Steps(Vec<(u32, u64, String)>);

impl StepSink for Steps {
    fn access(&mut self, thread: ThreadId, tick: Ticks, line: LineNo, write: bool) -> bool {
        self.0.push((thread.0, tick.0, format!("{} {}", if write { "w" } else { "r" }, line.0 % 64)));
        false
    }
    fn sync(&mut self, thread: ThreadId, tick: Ticks, sync: Sync) {
        self.0.push((thread.0, tick.0, format!("{sync:?}")));
    }
    fn mark(&mut self, thread: ThreadId, tick: Ticks, mark: Mark) {
        self.0.push((thread.0, tick.0, format!("{mark:?}")));
    }
}

fn at(tick: u64, mark: LogMark) -> Record {
    Record { tick: Ticks(tick), what: RecordKind::Mark(mark) }
}

fn access(tick: u64, line: u64, write: bool) -> Record {
    Record { tick: Ticks(tick), what: RecordKind::Access { line: LineNo(0x1000_0000 + line), write, pc: 0 } }
}

fn merged(logs: Vec<Vec<Record>>) -> (Vec<(u32, u64, String)>, u64) {
    let mut turns = LockTurns::default();
    for r in logs.iter().flatten() {
        if let RecordKind::Mark(LogMark::Acquire { lock, order }) = r.what {
            turns.push(lock, order);
        }
    }
    turns.sort();
    let sources = logs.into_iter().map(|l| List(l.into_iter())).collect();
    let mut order = Order::new(sources, turns, AddressSpace::new(vec![])).unwrap();
    let mut steps = Steps::default();
    while order.advance(&mut steps, 3).unwrap() {}
    (steps.0, order.cut_off())
}

fn start(id: u64) -> Record {
    at(0, LogMark::ThreadStart { id, stack_low: 0, stack_high: 0 })
}

/// Two threads, one region with a barrier; the worker's log comes first and its number decides.
fn team() -> Vec<Vec<Record>> {
    let barrier = |t| at(t, LogMark::Barrier { instance: 1, generation: 0 });
    let worker = vec![
        start(1),
        at(0, LogMark::TaskBegin { instance: 1, number: 1, team: 2 }),
        access(5, 1, true),
        barrier(5),
        access(6, 2, false),
        at(6, LogMark::TaskEnd { instance: 1 }),
        at(6, LogMark::ThreadEnd { reason: 1 }),
    ];
    let initial = vec![
        start(0),
        access(100, 0, true),
        at(100, LogMark::RegionFork { instance: 1, pc: 77 }),
        at(100, LogMark::ThreadCreate { id: 1 }),
        at(100, LogMark::TaskBegin { instance: 1, number: 0, team: 2 }),
        access(120, 2, true),
        barrier(120),
        access(121, 1, false),
        at(121, LogMark::TaskEnd { instance: 1 }),
        at(121, LogMark::RegionJoin { instance: 1 }),
        at(121, LogMark::ThreadEnd { reason: 1 }),
    ];
    vec![worker, initial]
}

#[test]
fn regions_are_numbered_in_the_order_of_their_first_use() {
    let mut regions = Regions::default();
    assert_eq!([40, 7, 40, 9, 7].map(|pc| regions.number(pc)), [0, 1, 0, 2, 1]);
    assert_eq!(regions.pcs, [40, 7, 9]);
}

#[test]
fn counters_follow_those_of_the_threads_creations() {
    let threads = [(7, SyncId(0)), (7, SyncId(1)), (9, SyncId(2))];
    let mut sync = Synchronisation::new(LockTurns::default(), threads.into_iter().collect(), 3);
    assert_eq!([sync.fresh(), sync.fresh()], [SyncId(3), SyncId(4)], "two threads may claim one number");
}

#[test]
fn a_team_starts_at_its_fork_and_meets_at_its_barrier() {
    let (steps, cut_off) = merged(team());
    assert_eq!(cut_off, 0);
    let accesses: Vec<_> =
        steps.iter().filter(|s| s.2.len() < 6 && s.2 != "End").map(|s| (s.0, s.2.as_str())).collect();
    // The worker writes line 1 at 100 + 5, before the initial thread writes line 2 at 120; the
    // reads come after both.
    assert_eq!(accesses, [(0, "w 0"), (1, "w 1"), (0, "w 2"), (0, "r 1"), (1, "r 2")]);
    let waits: Vec<_> = steps.iter().filter(|s| s.2.starts_with("Wait")).collect();
    assert_eq!(waits.len(), 2 + 2 + 1, "creation and fork, two at the barrier, the join: {waits:?}");
    // Every wait comes after all its signals.
    for (i, (_, _, text)) in steps.iter().enumerate() {
        if let Some(rest) = text.strip_prefix("Wait { id: ") {
            let (id, n) = rest.split_once(", n: ").unwrap();
            let n: usize = n.trim_end_matches(" }").parse().unwrap();
            let signals = steps[..i].iter().filter(|s| s.2 == format!("Signal({id})")).count();
            assert_eq!(signals, n, "{text}");
        }
    }
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let mut logs = team();
    logs.reverse();
    assert_eq!(merged(logs), merged(team()));
}

#[test]
fn locks_change_hands_as_recorded() {
    let log = |id: u64, orders: [u64; 2], work: u64| {
        vec![
            start(id),
            at(1, LogMark::Acquire { lock: 9, order: orders[0] }),
            access(1 + work, id, true),
            at(1 + work, LogMark::Release { lock: 9, order: orders[1] }),
            at(1 + work, LogMark::ThreadEnd { reason: 0 }),
        ]
    };
    let mut initial = log(0, [5, 6], 1);
    initial.insert(1, at(0, LogMark::ThreadCreate { id: 1 }));
    let (steps, cut_off) = merged(vec![initial, log(1, [3, 4], 50)]);
    assert_eq!(cut_off, 0);
    let accesses: Vec<_> = steps.iter().filter(|s| s.2.len() < 6 && s.2 != "End").map(|s| s.0).collect();
    assert_eq!(accesses, [1, 0], "thread 1 held it first although it takes longer");
}

#[test]
fn a_thread_that_ends_has_left_its_team() {
    // The last region of libomp's thread 1.
    let mut logs = team();
    let last = |r: &Record| matches!(r.what, RecordKind::Mark(LogMark::TaskEnd { .. }));
    let at = logs[0].iter().rposition(last).unwrap();
    logs[0].remove(at);
    let (steps, cut_off) = merged(logs);
    assert_eq!(cut_off, 0);
    let (all, _) = merged(team());
    assert!(steps.contains(&(0, 121, "Wait { id: SyncId(6), n: 2 }".into())), "the join: {steps:?}");
    assert_eq!(steps.len(), all.len());
}

#[test]
fn a_recording_that_was_cut_off_ends() {
    let is_end =
        |r: &Record| matches!(r.what, RecordKind::Mark(LogMark::TaskEnd { .. } | LogMark::ThreadEnd { .. }));
    let logs: Vec<Vec<Record>> =
        team().into_iter().map(|l| l.into_iter().filter(|r| !is_end(r)).collect()).collect();
    let (_, cut_off) = merged(logs);
    assert!(cut_off > 0);
    for n in 1..10 {
        let logs = team().into_iter().map(|l| l.into_iter().take(n).collect()).collect();
        merged(logs); // ends
    }
}
