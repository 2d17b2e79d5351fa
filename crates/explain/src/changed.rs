//! Fixes that change which lines a program accesses, as changes of the recording.

use std::sync::Arc;

use homenode_model::{Bytes, ObjectId, PageNo, Placement, ThreadId};
use homenode_sim::change::{Accesses, Change, Walk};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::Job;
use homenode_simulated::places::ObjectMap;

use crate::effect::{pages, planned};
use crate::group::Group;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// A change of the accesses to pages, each with the number of its array.
fn change(pages: &[(u64, u16)], page: Bytes, arrays: Vec<Accesses>) -> Change {
    let mut array = vec![0; pages.iter().map(|(p, _)| *p as usize + 1).max().unwrap_or(0)];
    pages.iter().for_each(|(p, number)| array[*p as usize] = number + 1);
    Change { array, page_lines: (page.0 / LINE).max(1).trailing_zeros(), arrays }
}

fn with(job: Job, change: Change) -> Job {
    let options = MemoryOptions { change: Some(Arc::new(change)), ..job.options.clone() };
    Job { options, ..job }
}

/// The job for a container that has its final size from the start: it copies no elements in the
/// rounds.
pub fn without_copies(job: Job, outcome: &Outcome, places: &ObjectMap<'_>, objects: &[ObjectId]) -> Job {
    let all: Vec<(u64, u16)> = pages(outcome, places, objects).map(|(page, _)| (page.0, 0)).collect();
    let change = change(&all, job.page, vec![Accesses::WithoutCopies]);
    with(job, change)
}

/// The job for swapped loops: each thread goes through a block of its own, which lives on its node.
/// `None`: nobody knows how threads go through the arrays today.
pub(crate) fn in_order(
    today: &Job,
    outcome: &Outcome,
    places: &ObjectMap<'_>,
    group: &Group<'_>,
) -> Option<Job> {
    let mut all = Vec::new();
    let mut arrays = Vec::new();
    let mut plan = Placement::new();
    for (number, (it, lines)) in (0u16..).zip(group.members.iter().zip(&group.lines)) {
        let users: Vec<ThreadId> = (0..today.binding.len() as u32)
            .filter(|t| *t < 63 && lines.users >> t & 1 != 0)
            .map(ThreadId)
            .collect();
        if users.is_empty() || lines.walks == 0 || today.binding.len() > 63 {
            return None;
        }
        let own: Vec<u64> = pages(outcome, places, &[it.object.object]).map(|(page, _)| page.0).collect();
        all.extend(own.iter().map(|page| (*page, number)));
        let walk =
            Walk { pages: own, users, visits: lines.visits / lines.walks, writes: it.stores_inside > 0 };
        for user in &walk.users {
            let node = today.machine.node_of(*today.binding.get(user.index())?);
            walk.block(*user).for_each(|at| plan.set(PageNo(walk.pages[at]), node));
        }
        arrays.push(Accesses::InOrder(walk));
    }
    Some(with(planned(today, plan), change(&all, today.page, arrays)))
}
