//! Streams of several processes are one recording.

use std::collections::BTreeSet;

use homenode_dataset::tables::{
    Access, Interval, Iteration, Migration, Object, Region, Residency, ThreadStay,
};
use homenode_model::Ns;
use homenode_wire::live::LiveRecord;

use crate::support::{Folder, MS, frames, observe, program, start};

#[test]
fn two_processes_share_no_number_and_one_clock() {
    let folder = Folder::new("two");
    folder.stream(7, &frames(&program(7, 1000 * MS), 5));
    folder.stream(300, &frames(&program(300, 1500 * MS), 5));
    let (set, summary) = observe(folder.path());
    assert_eq!(set.missing(), []);
    assert_eq!((summary.objects, summary.migrations), (2, 4));
    let objects: Vec<Object> = set.rows().collect();
    assert_eq!(objects.iter().map(|o| o.process).collect::<Vec<_>>(), [7, 300]);
    assert_eq!(objects[0].id, objects[1].id, "the same array of the same program");
    assert_ne!(objects[0].object, objects[1].object);
    let distinct = |all: Vec<u32>| all.iter().copied().collect::<BTreeSet<_>>().len() == all.len();
    assert!(distinct(set.rows::<Region>().map(|r| r.region.0).collect()));
    assert!(distinct(set.rows::<Interval>().map(|i| i.interval.0).collect()));
    assert!(distinct(set.rows::<ThreadStay>().map(|t| t.thread.0).collect()));
    // Each process's rows speak of its own objects, in its own intervals.
    for (process, first_interval) in [(0, 0), (1, 4)] {
        let own = objects[process].object;
        let in_range = |i: u32| (first_interval..first_interval + 4).contains(&i);
        let moves: Vec<Migration> = set.rows::<Migration>().filter(|m| m.object == Some(own)).collect();
        assert_eq!(moves.len(), 2);
        assert!(moves.iter().all(|m| in_range(m.interval.0)));
        assert!(set.rows::<Access>().filter(|a| a.object == Some(own)).all(|a| in_range(a.interval.0)));
        assert!(set.rows::<Residency>().filter(|r| r.object == Some(own)).all(|r| in_range(r.until.0)));
    }
    // The second began half a second later.
    let begins: Vec<(u32, Ns)> =
        set.rows::<Iteration>().filter(|i| i.iteration == 1).map(|i| (i.process, i.begin_ns)).collect();
    assert_eq!(begins, [(7, Ns(10 * MS)), (300, Ns(510 * MS))]);
}

#[test]
fn one_that_was_killed_is_named_and_the_other_is_whole() {
    let folder = Folder::new("one-killed");
    folder.stream(7, &frames(&program(7, 0), 5));
    let mut killed = program(8, 0);
    killed.pop();
    folder.stream(8, &frames(&killed, 5));
    let (set, summary) = observe(folder.path());
    assert_eq!(summary.early, [8]);
    let missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("process 8 did not come to its end"), "{missing:?}");
}

#[test]
fn one_that_says_nothing_is_named_too() {
    let folder = Folder::new("one-empty");
    folder.stream(7, &frames(&program(7, 0), 5));
    folder.stream(9, b"");
    folder.stream(10, &frames(&program(10, 0)[1..], 5));
    let (set, _) = observe(folder.path());
    let missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
    assert!(set.meta().notes.iter().any(|n| n == "process 9 recorded nothing"), "{:?}", set.meta().notes);
    let alone = Folder::new("empty-alone");
    alone.stream(9, b"");
    let (nothing, _) = observe(alone.path());
    assert_eq!(nothing.missing()[0].to_string(), "process 9 recorded nothing");
    assert!(missing.iter().any(|m| m.contains("process 10") && m.contains("begin")), "{missing:?}");
    assert_eq!(set.rows::<Object>().count(), 1);
}

#[test]
fn a_process_that_gave_up_did_not_come_to_its_end() {
    let folder = Folder::new("gave-up");
    folder.stream(7, &frames(&[start(7, 0), LiveRecord::End { whole: false }], 5));
    assert_eq!(observe(folder.path()).1.early, [7]);
}
