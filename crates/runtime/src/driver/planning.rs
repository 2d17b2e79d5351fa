//! Follows a plan from an earlier run: pages go to their homes when their object is allocated. At
//! the end it checks where they are.
//!
//! # Approach
//!
//! The launcher has worked out which addresses of the program's file belong to which line of the
//! source. Here an allocation is recognised by its return addresses ([`PlanTable::born`]). On real
//! nodes its memory gets the planned policies at once (`mbind`), so the first touch brings each
//! page home and nothing has to move. Other pages move at the start of a parallel region: memory
//! that the allocator had used before, static variables, objects with too many ranges for a mapping
//! each, and pages of pretended nodes.
//!
//! The result is checked: when a planned object dies, or the program ends, the driver asks the
//! kernel where its pages are.

use homenode_model::{NodeId, PageNo, PageRange};

use super::mover::Mover;
use super::run::Driver;
use super::state::plan::{PlanTable, PlannedObject};
use crate::watch::Object;
use crate::watch::numbers::PAGE;

impl Driver {
    /// Sets the plan that objects follow from now on.
    pub fn follow(&mut self, table: PlanTable) {
        self.plan = Some(table);
    }

    /// Whether the size of the program's first team is still unknown.
    pub fn asks_for_team(&self) -> bool {
        self.plan.as_ref().is_some_and(PlanTable::asks_for_team)
    }

    /// The program is about to start a team of this many threads. If the plan does not hold for it,
    /// the driver places nothing more by the plan. Untouched memory then gets its pages as without
    /// a plan.
    pub fn team(&mut self, threads: usize) {
        let Some(table) = &mut self.plan else { return };
        for address in table.team(threads) {
            if let Some(object) = self.memory.objects.get(address) {
                forget_policies(object, &mut *self.mover);
            }
        }
    }

    /// The plan, with its progress.
    pub fn plan(&self) -> Option<&PlanTable> {
        self.plan.as_ref()
    }

    /// An object was allocated. If it is planned, its memory gets its policies.
    pub(super) fn plan_born(&mut self, address: usize) {
        let (Some(table), Some(object)) = (&mut self.plan, self.memory.objects.get(address)) else { return };
        for (range, node) in table.born(object) {
            match self.mover.prefer(range.start, range.len(), Some(node)) {
                Ok(true) => table.has_policy(),
                Ok(false) => break,
                Err(why) => {
                    table.refuse(why);
                    break;
                }
            }
        }
    }

    /// A region begins: pages that are not at their planned homes go there.
    pub(super) fn plan_region(&mut self) {
        let due = self.plan.as_mut().map(PlanTable::look).unwrap_or_default();
        for (address, number) in due {
            let (Some(table), Some(object)) = (&mut self.plan, self.memory.objects.get(address)) else {
                continue;
            };
            let wrong = elsewhere(table.planned(number), object, &mut *self.mover);
            // All pages are where they should be. This does not change any more.
            if wrong.is_empty() && is_there(object, &mut *self.mover) {
                table.is_home(address);
            }
            self.move_ranges(wrong);
        }
    }

    /// An object is about to die, or the program ends: checks where its pages are.
    pub(super) fn plan_dies(&mut self, address: usize) {
        let Some(table) = &mut self.plan else { return };
        let Some(number) = table.dies(address) else { return };
        let Some(object) = self.memory.objects.get(address) else { return };
        let mut pages = Vec::new();
        each_planned(table.planned(number), object, &mut *self.mover, |_, at, wanted| {
            pages.push((at, wanted));
        });
        pages.into_iter().for_each(|(at, wanted)| table.read_back(at, wanted));
        // The next owner of the memory must not inherit the policies.
        if table.progress().policies > 0 {
            forget_policies(object, &mut *self.mover);
        }
    }

    /// The program ends.
    pub(super) fn plan_end(&mut self) {
        let living: Vec<usize> = self.plan.iter().flat_map(PlanTable::living).collect();
        for address in living {
            self.plan_dies(address);
        }
    }
}

/// Untouched memory of the object gets its pages as without a plan.
fn forget_policies(object: &Object, mover: &mut dyn Mover) {
    let whole = object.whole_pages();
    let _ = mover.prefer(whole.start, whole.len(), None);
}

/// Whether the object's last page exists.
fn is_there(object: &Object, mover: &mut dyn Mover) -> bool {
    let mut homes = Vec::new();
    let pages = object.whole_pages();
    let last = pages.end.saturating_sub(PAGE).max(pages.start);
    mover.homes(last, usize::from(!pages.is_empty()), None, &mut homes);
    homes.iter().all(Option::is_some)
}

/// Ranges of pages that are not at their planned homes, with these homes.
fn elsewhere(planned: &PlannedObject, object: &Object, mover: &mut dyn Mover) -> Vec<(PageRange, NodeId)> {
    let mut wrong: Vec<(PageRange, NodeId)> = Vec::new();
    each_planned(planned, object, mover, |page, at, wanted| {
        if at.is_some_and(|at| at != wanted) {
            match wrong.last_mut() {
                Some((r, node)) if *node == wanted && r.first.0 + r.count == page => r.count += 1,
                _ => wrong.push((PageRange { first: PageNo(page), count: 1 }, wanted)),
            }
        }
    });
    wrong
}

/// Calls back for each page with a planned home: its number, its node, its planned node.
fn each_planned(
    planned: &PlannedObject,
    object: &Object,
    mover: &mut dyn Mover,
    mut tell: impl FnMut(u64, Option<NodeId>, NodeId),
) {
    /// Pages asked for in one call.
    const ASK: u64 = 4096;
    let start = object.whole_pages().start;
    let mut homes = Vec::with_capacity(ASK as usize);
    let mut done = 0;
    while done < object.pages.count {
        let n = (object.pages.count - done).min(ASK);
        homes.clear();
        mover.homes(start + done as usize * PAGE, n as usize, None, &mut homes);
        for (i, at) in (done..done + n).zip(&homes) {
            if let Some(wanted) = planned.home(object.address, start + i as usize * PAGE) {
                tell(object.pages.first.0 + i, *at, wanted);
            }
        }
        done += n;
    }
}
