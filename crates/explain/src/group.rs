//! Variables with one fault in one place: one change of the source mends them all.

use std::collections::BTreeMap;

use homenode_dataset::tables::Object;
use homenode_model::ObjectId;
use homenode_schemes::padding::PaddingAdvice;
use homenode_simulated::is_system;

use crate::lines::LineUse;
use crate::pattern::{Diagnosis, Pattern, diagnose};
use crate::place::{Place, allocated};
use crate::remedy::{FixSubject, Remedy, padded, remedies};
use crate::usage::{ObjectUse, Usage};
use crate::uses::uses;

/// Groups at most.
const MOST: usize = 8;
/// Lines between two first touches of one loop.
const SAME_LOOP: u32 = 3;

/// Variables with one fault in one place.
pub(crate) struct Group<'a> {
    /// Most remote accesses first.
    pub members: Vec<&'a ObjectUse>,
    /// Their lines, where pages are shared.
    pub lines: Vec<LineUse>,
    /// The fault of the first.
    pub found: Diagnosis,
    /// What to do about it.
    pub remedies: Vec<Remedy>,
}

impl<'a> Group<'a> {
    /// The members' numbers.
    pub fn objects(&self) -> Vec<ObjectId> {
        self.members.iter().map(|m| m.object.object).collect()
    }

    /// Whether an object with a fault belongs to the group.
    fn takes(&self, it: &ObjectUse, found: &Diagnosis) -> bool {
        if self.members.iter().any(|m| site(&m.object) == site(&it.object)) {
            return true;
        }
        let (a, b) = (&self.found, found);
        let near = match (a.touched.line, b.touched.line) {
            (Some(a), Some(b)) => a.abs_diff(b) <= SAME_LOOP,
            // Without line numbers, a file is all that is known.
            (a, b) => a == b,
        };
        let same = |p: &Place, q: &Place| (&p.file, &p.function) == (&q.file, &q.function);
        (a.pattern, a.in_turns) == (b.pattern, b.in_turns) && near && same(&a.touched, &b.touched)
    }
}

/// The place of the first touch as the programmer knows it: what a container does is done where it
/// is made or resized.
fn touched_by_container(found: &mut Diagnosis, object: &Object) {
    // What numpy does with an array of Python code is done where the array is made, as far as
    // anybody knows.
    let in_python = object.file.as_deref().is_some_and(|f| f.ends_with(".py"));
    let elsewhere = is_system(found.touched.file.as_deref()) || in_python;
    if elsewhere && object.line.is_some() && !is_system(object.file.as_deref()) {
        found.touched = allocated(object);
    }
}

/// The allocations of one place have ids that differ in their number alone.
fn site(object: &Object) -> &str {
    object.id.rsplit_once(" #").map_or(object.id.as_str(), |(site, _)| site)
}

/// Faults by group of variables, most remote accesses first. `lines` are known by the object's
/// number in the usage; `page` is the size of a page in bytes; `padding` has the arrays whose pages
/// are falsely shared.
pub(crate) fn groups<'a>(
    usage: &'a Usage,
    lines: &BTreeMap<usize, LineUse>,
    padding: &[PaddingAdvice],
    page: u64,
) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let advice = |it: &ObjectUse| padding.iter().find(|a| a.object == it.object.object);
    for (number, it) in usage.objects.iter().enumerate() {
        let mut found = diagnose(it, lines.get(&number));
        let shared = matches!(found.pattern, Pattern::Communication | Pattern::ContestedTable);
        if shared && advice(it).is_some() {
            found.pattern = Pattern::PageFalseSharing;
        }
        touched_by_container(&mut found, &it.object);
        match groups.iter_mut().find(|g| g.takes(it, &found)) {
            Some(group) => {
                group.members.push(it);
                group.lines.push(lines.get(&number).copied().unwrap_or_default());
            }
            None => groups.push(Group {
                members: vec![it],
                lines: vec![lines.get(&number).copied().unwrap_or_default()],
                found,
                remedies: Vec::new(),
            }),
        }
    }
    groups.truncate(MOST);
    for group in &mut groups {
        let it = group.members[0];
        let uses = uses(usage, &group.members);
        let used = uses.iter().map(|u| &u.place).find(|p| !p.is_unknown());
        let allocated = allocated(&it.object);
        let here = group.members.iter().filter(|m| site(&m.object) == site(&it.object));
        let grows = here.map(|m| m.object.allocations.max(1)).sum::<u64>() > 1;
        let (name, regions) = (it.object.name.as_str(), !usage.regions.is_empty());
        let subject = FixSubject { name, allocated: &allocated, used, grows, regions, page };
        group.remedies = remedies(&group.found, &subject);
        if let Some(advice) = advice(it).filter(|_| group.found.pattern == Pattern::PageFalseSharing) {
            // Where padding does not pay, its pages are at least dealt to all nodes.
            let shared = Diagnosis { pattern: Pattern::Communication, ..group.found.clone() };
            group.remedies = remedies(&shared, &subject);
            group.remedies.insert(0, padded(advice, &allocated));
        }
    }
    groups
}
