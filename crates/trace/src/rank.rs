//! The canonical order of a recording's threads.

use homenode_log::{Mark, Record, RecordKind};

/// What numbers threads: the initial thread, then by first team and number in it, then by creation.
pub(crate) fn rank(first: &[Record]) -> (bool, u64, u64, u64) {
    let (mut id, mut team) = (0, (u64::MAX, 0));
    for r in first {
        match r.what {
            RecordKind::Mark(Mark::ThreadStart { id: i, .. }) => id = i,
            RecordKind::Mark(Mark::TaskBegin { instance, number, .. }) if team.0 == u64::MAX => {
                team = (instance, number);
            }
            _ => {}
        }
    }
    (id != 0, team.0, team.1, id)
}
