//! What a process that was killed has left.

use homenode_dataset::tables::{ALL, Interval, Migration, Residency};
use homenode_dataset::{Basis, Dataset, DatasetMeta, DatasetWriter, RecordingKind};

use crate::support::{Folder, frames, observe, program};

/// Rows of all tables.
fn rows(set: &Dataset) -> u64 {
    ALL.iter().flat_map(|t| set.checked_chunks(t)).map(|c| c.rows() as u64).sum()
}

#[test]
fn cut_off_at_every_byte_it_is_a_data_set_that_says_so() {
    let bytes = frames(&program(7, 0), 1);
    let all = rows(&{
        let folder = Folder::new("every-byte-whole");
        folder.stream(7, &bytes);
        observe(folder.path()).0
    });
    let folder = Folder::new("every-byte");
    let (mut most, mut last) = (0, 0);
    for cut in 0..bytes.len() {
        folder.stream(7, &bytes[..cut]);
        let (set, _) = observe(folder.path());
        let missing = set.missing();
        assert!(!missing.is_empty(), "cut off at {cut}");
        last = rows(&set);
        most = most.max(last);
        let missing = set.missing();
        assert!(missing.iter().all(|m| m.to_string().contains("process 7")), "{cut}: {missing:?}");
        // Records of an interval that did not end are there, too.
        let intervals = set.rows::<Interval>().count();
        let moves = set.rows::<Migration>().count();
        assert!(moves <= intervals, "{cut}: {moves} moves, {intervals} intervals");
        assert!(set.rows::<Residency>().all(|r| r.until.0 as usize <= intervals.max(1)), "{cut}");
    }
    assert_eq!(last, most);
    assert_eq!(most, all, "only the end's record is missing at last");
}

#[test]
fn an_unfinished_recording_is_adopted_and_still_called_cut_off() {
    let folder = Folder::new("adopt");
    let path = folder.path().join("r.hnrec");
    let writer = DatasetWriter::create(
        &path,
        DatasetMeta::new(RecordingKind::Run, Basis::Presence, vec!["./app".into()]),
    )
    .unwrap();
    let streams = path.join(homenode_observed::STREAMS);
    std::fs::create_dir(&streams).unwrap();
    let bytes = frames(&program(7, 0), 3);
    std::fs::write(streams.join("live.7"), &bytes[..bytes.len() - 30]).unwrap();
    drop(writer);
    let set = homenode_observed::adopt(Dataset::open(&path).unwrap()).unwrap();
    assert!(rows(&set) > 10);
    let missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
    assert!(missing.iter().any(|m| m.contains("cut off")), "{missing:?}");
    assert!(missing.iter().any(|m| m.contains("process 7 did not come to its end")), "{missing:?}");
}
