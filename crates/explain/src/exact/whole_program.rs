//! Fixes for the whole program, without a change of its source.

use std::sync::Arc;

use homenode_model::Bytes;
use homenode_sim::run::Job;

use super::run::ExactRun;
use crate::effect::{LEAST, TODAY, under};
use crate::explanation::{Fix, change};
use crate::remedy::FixKind;
use crate::sockets;

/// Huge pages are no larger.
const HUGE: Bytes = Bytes(32 << 20);
/// What makes the C library's allocations ask for huge pages, in front of a command.
const ASK_FOR_HUGE: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

/// What helps the whole program without a change of its source, and how it is simulated.
pub(super) fn whole_program(run: &ExactRun<'_>) -> Vec<(FixKind, String, Job)> {
    let (today, command) = (&run.today, &run.request.command);
    let moving = format!("homenode run -- {command}");
    let moved = under(today, "next-touch:at=first-region");
    let mut all = vec![(FixKind::HomenodeRun, moving.clone(), moved.clone())];
    // What numactl does today is no remedy, and it stands in front of the others.
    if run.request.today != TODAY {
        return all;
    }
    let interleaved = format!("numactl --interleave=all {command}");
    all.push((FixKind::NumactlInterleave, interleaved, under(today, "round-robin")));
    let larger = |size: &&Bytes| **size > run.request.page && **size <= HUGE;
    if let Some(page) = run.machine().page_sizes.iter().find(larger).copied() {
        let with = |job: &Job| Job { page, ..job.clone() };
        all.push((FixKind::HugePages, format!("{ASK_FOR_HUGE} {command}"), with(today)));
        all.push((FixKind::HugePages, format!("{ASK_FOR_HUGE} {moving}"), with(&moved)));
    }
    if let Some(machine) = sockets::merged(run.machine()) {
        let text = "one node a socket in the machine's firmware: NPS1 (AMD), or SNC off (Intel)".to_owned();
        all.push((FixKind::OneNodeASocket, text, Job { machine: Arc::new(machine), ..today.clone() }));
    }
    all
}

/// Leaves out what takes less than [`LEAST`] percent from the time under `homenode run` alone.
pub(super) fn leave_out_what_adds_nothing(whole: &mut Vec<Fix>) {
    let run = whole.iter().find(|f| f.kind == FixKind::HomenodeRun).and_then(|f| f.effect);
    let Some(run) = run.map(|e| e.after_ns) else { return };
    let combined = |f: &Fix| f.kind == FixKind::HugePages && f.text.contains("homenode run");
    let adds = |f: &Fix| f.effect.is_some_and(|e| change(run, e.after_ns) <= -LEAST);
    whole.retain(|f| !combined(f) || adds(f));
}
