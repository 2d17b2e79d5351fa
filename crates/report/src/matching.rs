//! Which object of one recording is which object of another.
//!
//! | step | two objects are one where |
//! |---|---|
//! | 1 | id and name are equal |
//! | 2 | name and kind are equal, and the name is a variable's: lines of the source moved |
//! | 3 | their ids are equal: the variable has another name |
//! | 4 | kind, file and function are equal: the line or the number of the allocation changed |
//!
//! Ids of allocations have lines of the source. Where lines moved, the id of one variable may be
//! what another one had before: names come first.
//!
//! A step looks at what the steps before it left. Where it finds several objects on a side, those
//! of equal type and size go together first, then those of equal type, then they go in the order
//! of line, id and address. An address alone never matters.

use std::collections::BTreeMap;

use homenode_dataset::identity::without_slot;
use homenode_dataset::tables::ObjectKind;
use serde::Serialize;

use crate::objects::ObjectReport;

/// How two objects were found to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Matched {
    /// By id.
    Id,
    /// By name and kind: the id changed.
    Name,
    /// By kind, file and function: id and name changed.
    Place,
}

/// A pair by index, or an object that the other recording lacks.
pub type MatchedPair = (Option<usize>, Option<usize>, Option<Matched>);

/// The pairs of two lists, in no particular order.
pub fn pairs(before: &[ObjectReport], after: &[ObjectReport]) -> Vec<MatchedPair> {
    let mut pairs = Vec::new();
    let mut left: Vec<usize> = (0..before.len()).collect();
    let mut right: Vec<usize> = (0..after.len()).collect();
    for step in [Step::Same, Step::Name, Step::Id, Step::Place] {
        let found = match_by(step, before, after, &left, &right);
        let gone = |side: fn(&(usize, usize)) -> usize| -> std::collections::BTreeSet<usize> {
            found.iter().map(side).collect()
        };
        let (gone_left, gone_right) = (gone(|p| p.0), gone(|p| p.1));
        left.retain(|i| !gone_left.contains(i));
        right.retain(|i| !gone_right.contains(i));
        pairs.extend(found.into_iter().map(|(b, a)| (Some(b), Some(a), Some(step.matched()))));
    }
    pairs.extend(left.into_iter().map(|i| (Some(i), None, None)));
    pairs.extend(right.into_iter().map(|i| (None, Some(i), None)));
    pairs
}

/// A step of the table above.
#[derive(Clone, Copy)]
enum Step {
    Same,
    Name,
    Id,
    Place,
}

impl Step {
    const fn matched(self) -> Matched {
        match self {
            Self::Same | Self::Id => Matched::Id,
            Self::Name => Matched::Name,
            Self::Place => Matched::Place,
        }
    }
}

/// What two objects must have in common. None: this step does not match the object.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Same(&'a str, &'a str),
    Id(&'a str),
    Name(&'a str, ObjectKind),
    Place(ObjectKind, &'a str, Option<&'a str>),
}

/// Whether the name is only the place of the allocation: nobody knows the variable.
fn is_named_by_place(object: &ObjectReport) -> bool {
    object.kind == ObjectKind::Allocated && object.id.starts_with(without_slot(&object.name))
}

fn key(step: Step, object: &ObjectReport) -> Option<Key<'_>> {
    match step {
        Step::Same => Some(Key::Same(&object.id, &object.name)),
        Step::Name => {
            let known = object.object.is_some() && !is_named_by_place(object);
            known.then_some(Key::Name(&object.name, object.kind))
        }
        // The empty id is that of memory that nobody knows: it is one in both.
        Step::Id => Some(Key::Id(&object.id)),
        Step::Place => {
            let file = object.file.as_deref()?;
            let file = file.rsplit('/').next().unwrap_or(file);
            let allocated = object.kind == ObjectKind::Allocated;
            allocated.then_some(Key::Place(object.kind, file, object.function.as_deref()))
        }
    }
}

type Groups<'a> = BTreeMap<Key<'a>, Vec<usize>>;

fn groups<'a>(step: Step, all: &'a [ObjectReport], which: &[usize]) -> Groups<'a> {
    let mut groups = Groups::new();
    for i in which {
        if let Some(key) = key(step, &all[*i]) {
            groups.entry(key).or_default().push(*i);
        }
    }
    groups
}

fn match_by(
    step: Step,
    before: &[ObjectReport],
    after: &[ObjectReport],
    left: &[usize],
    right: &[usize],
) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut others = groups(step, after, right);
    for (key, mine) in groups(step, before, left) {
        let Some(theirs) = others.remove(&key) else { continue };
        pair_up(before, after, mine, theirs, &mut found);
    }
    found
}

/// Pairs the objects of one key.
fn pair_up(
    before: &[ObjectReport],
    after: &[ObjectReport],
    mut mine: Vec<usize>,
    mut theirs: Vec<usize>,
    found: &mut Vec<(usize, usize)>,
) {
    let order = |all: &[ObjectReport], i: &usize| {
        let o = &all[*i];
        (o.process, o.line, o.id.clone(), o.address, o.object)
    };
    mine.sort_by_cached_key(|i| order(before, i));
    theirs.sort_by_cached_key(|i| order(after, i));
    let with_size = |o: &ObjectReport| (o.element_type.clone(), Some(o.bytes));
    let with_type = |o: &ObjectReport| (o.element_type.clone(), None);
    let anyhow = |_: &ObjectReport| (None, None);
    let tries: [&dyn Fn(&ObjectReport) -> _; 3] = [&with_size, &with_type, &anyhow];
    for like in tries {
        let mut waiting: BTreeMap<_, std::collections::VecDeque<usize>> = BTreeMap::new();
        for i in theirs.drain(..) {
            waiting.entry(like(&after[i])).or_default().push_back(i);
        }
        mine.retain(|b| match waiting.get_mut(&like(&before[*b])).and_then(|w| w.pop_front()) {
            Some(a) => {
                found.push((*b, a));
                false
            }
            None => true,
        });
        theirs = waiting.into_values().flatten().collect();
        theirs.sort_by_cached_key(|i| order(after, i));
    }
}
