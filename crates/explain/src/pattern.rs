//! From how an object is used to the fault that the source has.
//!
//! # Algorithm
//! Pages fall into classes ([`Class`]); the class with most remote accesses decides.
//!
//! | class | first touch | fault |
//! |---|---|---|
//! | one owner | by one thread, which also writes in each round | [`Pattern::FilledByOneThread`] |
//! | one owner | by one thread | [`Pattern::SerialFirstTouch`] |
//! | one owner | by other nodes than the owners | [`Pattern::WrongSchedule`] |
//! | one owner | by the owners: something else put the pages elsewhere | [`Pattern::Misplaced`] |
//! | an owner for some rounds, then another | | [`Pattern::PhaseChange`] |
//! | an owner in each region, not the same | | [`Pattern::RegionsDisagree`] |
//! | shared, lines have one user, accesses jump | | [`Pattern::Transposed`] |
//! | shared, lines have one user, accesses are in order | | [`Pattern::PageFalseSharing`] |
//! | shared, lines are read by several nodes | | [`Pattern::ContestedTable`] |
//! | shared, lines are written and used by several nodes | | [`Pattern::Communication`] |
//!
//! Without lines (a live run) a shared page is [`Pattern::SharedPages`].

use std::collections::BTreeMap;

use homenode_dataset::tables::FirstTouch;
use serde::Serialize;

use crate::lines::LineUse;
use crate::place::Place;
use crate::usage::{Class, ObjectUse, Who};

/// Percent of the pages that one thread touches first where first touch is called serial.
const SERIAL: u64 = 80;
/// Percent of an object's stores in the rounds that come from outside of regions where one thread
/// is said to fill it.
const FILLED: u64 = 50;
/// Pages are dealt in turns if more than one in this many neighbouring pages have different owners.
const IN_TURNS: u64 = 16;

/// What the source does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One thread touches all pages first; each page then has one user.
    SerialFirstTouch,
    /// One thread fills the object again and again; each page is then read by one node.
    FilledByOneThread,
    /// Several threads touch the pages first, but not those that use them.
    WrongSchedule,
    /// The users touched the pages first, but the pages live elsewhere.
    Misplaced,
    /// After some rounds other nodes use the pages.
    PhaseChange,
    /// Each region has its own users for a page.
    RegionsDisagree,
    /// Threads jump from row to row, so that each page is used by all of them.
    Transposed,
    /// Parts of several threads lie in one page.
    PageFalseSharing,
    /// All nodes read all of it.
    ContestedTable,
    /// Nodes write what others read.
    Communication,
    /// Several nodes use each page; nobody knows whether they use the same lines.
    SharedPages,
}

/// What was found out about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The fault.
    pub pattern: Pattern,
    /// The code that touches most of the pages first.
    pub touched: Place,
    /// Threads that touch pages first.
    pub touched_by: u64,
    /// Pages go to their users in turns, not in one block a node.
    pub in_turns: bool,
}

const fn most(part: u64, whole: u64, percent: u64) -> bool {
    whole > 0 && part as u128 * 100 >= whole as u128 * percent as u128
}

/// The fault of an object. `lines` is known where the recording has every access.
pub fn diagnose(it: &ObjectUse, lines: Option<&LineUse>) -> Diagnosis {
    let (touched, touched_by) = first_touch(&it.touches);
    let (turns, pages) = it.turns();
    let in_turns = turns.saturating_mul(IN_TURNS) > pages && turns > 2 * it.by_node.users();
    Diagnosis { pattern: pattern(it, lines), touched, touched_by, in_turns }
}

/// Remote accesses by class of page: owned, phases, regions, shared.
pub fn remote_by_class(it: &ObjectUse) -> [u64; 4] {
    let mut remote = [0u64; 4];
    for page in it.pages.values() {
        let class = match page.class() {
            Class::Owned(_) => 0,
            Class::Phases => 1,
            Class::Regions => 2,
            Class::Shared => 3,
        };
        remote[class] = remote[class].saturating_add(page.remote);
    }
    remote
}

fn pattern(it: &ObjectUse, lines: Option<&LineUse>) -> Pattern {
    let remote = remote_by_class(it);
    let largest = (0..4).max_by_key(|class| (remote[*class], 4 - class)).unwrap_or(3);
    match largest {
        0 => owned(it),
        1 => Pattern::PhaseChange,
        2 => Pattern::RegionsDisagree,
        _ => match lines {
            Some(lines) if lines.lines() > 0 => shared(lines),
            _ => Pattern::SharedPages,
        },
    }
}

fn owned(it: &ObjectUse) -> Pattern {
    let touchers = it.touchers();
    let all = touchers.iter().fold(0u64, |sum, (_, pages)| sum.saturating_add(*pages));
    let first = touchers.first().map_or(0, |(_, pages)| *pages);
    // A node has several threads: that its pages were touched there says nothing unless threads are
    // known.
    let known = touchers.first().is_some_and(|(who, _)| matches!(who, Who::Thread(_)));
    if most(first, all, SERIAL) && (known || it.by_node.users() > 1) {
        let stores = it.stores_inside.saturating_add(it.stores_outside);
        return match most(it.stores_outside, stores, FILLED) {
            true => Pattern::FilledByOneThread,
            false => Pattern::SerialFirstTouch,
        };
    }
    if all > 0 && most(touched_by_owners(it), all, SERIAL) {
        Pattern::Misplaced
    } else {
        Pattern::WrongSchedule
    }
}

/// Pages whose first toucher's node is their owner.
fn touched_by_owners(it: &ObjectUse) -> u64 {
    let mut same = 0u64;
    for touch in &it.touches {
        let end = touch.page.saturating_add(touch.pages);
        for (_, page) in it.pages.range(touch.page..end) {
            same = same.saturating_add(if page.inside.owner() == Some(touch.node) { page.pages } else { 0 });
        }
    }
    same
}

fn shared(lines: &LineUse) -> Pattern {
    if most(lines.private, lines.lines(), 60) {
        let jumps = lines.far > lines.near;
        return if jumps { Pattern::Transposed } else { Pattern::PageFalseSharing };
    }
    if lines.read >= lines.written { Pattern::ContestedTable } else { Pattern::Communication }
}

/// The code that touches most pages first, and how many threads touch pages first.
fn first_touch(touches: &[FirstTouch]) -> (Place, u64) {
    let mut places: BTreeMap<Place, u64> = BTreeMap::new();
    let mut who = Vec::new();
    for touch in touches {
        let place = Place { file: touch.file.clone(), line: touch.line, function: touch.function.clone() };
        let sum = places.entry(place).or_default();
        *sum = sum.saturating_add(touch.pages);
        let toucher = touch.thread.map_or(Who::Node(touch.node), Who::Thread);
        if !who.contains(&toucher) {
            who.push(toucher);
        }
    }
    let known = |place: &Place| !place.is_unknown();
    let (place, _) =
        places.into_iter().max_by_key(|(place, pages)| (known(place), *pages)).unwrap_or_default();
    (place, who.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_shares_a_page() {
        let of = |private, read, written, near, far| {
            shared(&LineUse { private, read, written, near, far, ..LineUse::default() })
        };
        assert_eq!(of(90, 5, 5, 10, 90), Pattern::Transposed);
        assert_eq!(of(90, 5, 5, 90, 10), Pattern::PageFalseSharing);
        assert_eq!(of(10, 80, 10, 10, 90), Pattern::ContestedTable);
        assert_eq!(of(10, 10, 80, 90, 10), Pattern::Communication);
    }
}
