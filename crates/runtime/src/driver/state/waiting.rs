//! Memory that waits for its turn to be armed, or to be watched.
//!
//! # Problem
//!
//! An armed page costs homenode some microseconds of CPU time when it is touched. That happens in
//! the middle of a region, where nobody looks at the budget. Arming 100 GB at once would spend a
//! minute before the next look.
//!
//! # Approach
//!
//! The driver arms no more than the budget has room for: what it allows now, less what was spent,
//! less the price of the pages that are armed already. Other memory waits and follows at the begins
//! of later regions, as the process's CPU time grows. The team waits while the driver looks where
//! pages are, so looking must also fit the allowed share of elapsed time. The prices are measured.
//! What the program asks for itself (`hn_next_touch`) is armed at once.

use std::collections::BTreeMap;

use homenode_model::{Ns, ObjectId, PageRange};

use crate::watch::objects::WatchedObjects;

/// Assumed price of locating and arming a page, until enough pages are measured.
const LOOK: Ns = Ns(1_000);
/// Pages that are enough to measure a price.
const TOLD: u64 = 4096;
/// Pages of one turn, for an object that the budget has no room for as a whole.
const CHUNK: u64 = 4096;
/// Time between two looks for room.
pub const GAP: Ns = Ns(100_000_000);

/// Why pages wait, in the order of their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A few of the pages should show whether the object follows once more.
    Probed,
    /// The pages should follow once more.
    Again,
    /// The pages were never armed or watched.
    New,
    /// The object's held-back blocks.
    Held,
    /// The homes of the pages are for the recording alone.
    Home,
}

/// An object that waits.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The object.
    pub id: ObjectId,
    /// Position in the order of the object's chunks.
    place: u64,
    /// Whether some of the pages existed.
    pub some: bool,
}

impl Turn {
    /// The next pages of the object, if there is room: the first page, the number of pages, and the
    /// position after them (`None` at the end).
    pub fn next(&self, pages: u64, room: u64) -> Option<(u64, u64, Option<u64>)> {
        if self.place == 0 && room >= pages {
            return Some((0, pages, None));
        }
        let mut rest = self.rest(pages);
        let (_, first, count) = rest.next().filter(|(.., count)| *count <= room)?;
        Some((first, count, rest.next().map(|(place, ..)| place)))
    }

    /// Number of waiting pages.
    fn left(&self, pages: u64) -> u64 {
        self.rest(pages).map(|(.., count)| count).sum()
    }

    /// The waiting chunks in order: position, first page and length. Neighbours in this order lie
    /// far apart, so each node's part comes in equal shares: no part waits for another, and a
    /// verdict holds for all memory.
    fn rest(&self, pages: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let places = pages.div_ceil(CHUNK).next_power_of_two();
        let bits = places.trailing_zeros();
        // By halves, then quarters, and so on.
        let first = move |place: u64| place.reverse_bits().checked_shr(64 - bits).unwrap_or(0) * CHUNK;
        let chunk = move |place| (place, first(place), CHUNK.min(pages.saturating_sub(first(place))));
        (self.place..places).map(chunk).filter(|(.., count)| *count > 0)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Positions by reason and address of the object.
    turns: BTreeMap<(Why, usize), Turn>,
    looked: Ns,
    /// Time that locating and arming have taken so far, and number of pages.
    took: (Ns, u64),
    /// Pages of objects that died before their turn.
    missed: u64,
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Whether the object waits for this reason.
    pub fn waits_for(&self, why: Why, address: usize) -> bool {
        self.turns.contains_key(&(why, address))
    }

    /// Whether something that was armed before waits to follow once more.
    pub fn corrects(&self) -> bool {
        self.turns.keys().any(|(why, _)| matches!(why, Why::Probed | Why::Again))
    }

    /// Whether it is time to look for room again.
    pub fn is_due(&self, now: Ns) -> bool {
        !self.is_empty() && now - self.looked >= GAP
    }

    /// The object of this many pages at this address has died.
    pub fn forget(&mut self, address: usize, pages: u64) {
        if self.is_empty() {
            return;
        }
        let turns = [Why::New, Why::Probed, Why::Again, Why::Held, Why::Home]
            .map(|why| self.turns.remove(&(why, address)));
        self.missed += turns[0].map_or(0, |turn| turn.left(pages));
    }

    /// Queues an object, unless it waits for this reason already.
    pub fn add(&mut self, why: Why, address: usize, id: ObjectId) {
        self.turns.entry((why, address)).or_insert(Turn { id, place: 0, some: false });
    }

    /// Whether the object has waiting pages that should follow.
    pub fn waits(&self, address: usize) -> bool {
        [Why::New, Why::Probed, Why::Again].into_iter().any(|why| self.waits_for(why, address))
    }

    /// Number of pages that have not been armed or watched yet.
    fn new_pages(&self, objects: &WatchedObjects) -> u64 {
        let left = |(&(why, address), turn): (&(Why, usize), &Turn)| {
            let object = objects.get(address).filter(|o| o.id == turn.id && why == Why::New)?;
            Some(turn.left(object.pages.count))
        };
        self.turns.iter().filter_map(left).sum()
    }

    /// The price of locating and arming a page.
    pub fn price(&self) -> Ns {
        measured(self.took).unwrap_or(LOOK)
    }

    /// Locating and arming this many pages took this time.
    pub fn took(&mut self, time: Ns, pages: u64) {
        self.took.0 += time;
        self.took.1 += pages;
    }

    /// Somebody looks for room now.
    pub const fn looks(&mut self, now: Ns) {
        self.looked = now;
    }

    /// The turn that is next.
    pub fn first(&self) -> Option<(Why, usize, Turn)> {
        self.turns.first_key_value().map(|(&(why, address), &turn)| (why, address, turn))
    }

    /// Ends the wait for this reason.
    pub fn remove(&mut self, why: Why, address: usize) {
        self.turns.remove(&(why, address));
    }

    /// A turn is over; the object waits on from the position `next`, if it has more pages. `some`:
    /// some of the pages existed. Returns whether some of the object's pages existed so far.
    pub fn turn_ends(&mut self, (why, address): (Why, usize), next: Option<u64>, some: bool) -> bool {
        let Some(turn) = self.turns.get_mut(&(why, address)) else { return some };
        turn.some |= some;
        let some = turn.some;
        match next {
            Some(place) => turn.place = place,
            None => self.remove(why, address),
        }
        some
    }

    /// Pages that have not been armed or watched, of objects that live or died before their turn.
    pub fn left_out(&self, objects: &WatchedObjects) -> u64 {
        self.new_pages(objects) + self.missed
    }
}

/// The measured price of a page, once it is known.
pub fn measured((took, pages): (Ns, u64)) -> Option<Ns> {
    (pages >= TOLD).then(|| Ns(took.0 / pages))
}

/// Joins neighbouring ranges of pages of one object.
pub fn joined(mut ranges: Vec<(usize, PageRange)>) -> Vec<PageRange> {
    ranges.sort_unstable_by_key(|(_, r)| r.first);
    ranges.dedup_by(|(next_of, next), (last_of, last)| {
        let joins = last_of == next_of && last.first.0 + last.count == next.first.0;
        last.count += if joins { next.count } else { 0 };
        joins
    });
    ranges.into_iter().map(|(_, range)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_has_its_turn_once_and_eight_are_of_all_quarters() {
        for all in 1..200 {
            let pages = all * CHUNK;
            let turn = Turn { id: ObjectId(0), place: 0, some: false };
            let order: Vec<u64> = turn.rest(pages).map(|(_, first, _)| first / CHUNK).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..all).collect::<Vec<_>>());
            for eight in order.windows(8).filter(|_| all >= 32) {
                let quarters: std::collections::BTreeSet<u64> = eight.iter().map(|c| c * 4 / all).collect();
                assert!(quarters.len() >= 3, "{all}: {eight:?}");
            }
        }
    }

    #[test]
    fn objects_have_their_turns_by_reason_and_a_turn_goes_on_where_it_ended() {
        let mut waiting = Waiting::default();
        for (why, address) in [(Why::New, 1), (Why::Again, 2), (Why::New, 3)] {
            waiting.add(why, address, ObjectId(address as u32));
        }
        let next = |w: &Waiting| w.first().map(|(why, address, turn)| (why, address, turn.some));
        assert_eq!(next(&waiting), Some((Why::Again, 2, false)));
        assert!(waiting.turn_ends((Why::Again, 2), Some(1), true));
        assert!(waiting.turn_ends((Why::Again, 2), Some(2), false), "some existed in the first part");
        assert_eq!(next(&waiting), Some((Why::Again, 2, true)));
        waiting.turn_ends((Why::Again, 2), None, false);
        assert_eq!(next(&waiting), Some((Why::New, 1, false)));
        waiting.remove(Why::New, 1);
        waiting.forget(3, 700);
        assert_eq!(
            (next(&waiting), waiting.left_out(&WatchedObjects::default())),
            (None, 700),
            "never armed"
        );
    }

    #[test]
    fn a_price_is_assumed_until_it_is_measured() {
        let mut waiting = Waiting::default();
        waiting.took(Ns(TOLD), TOLD - 1);
        assert_eq!(waiting.price(), LOOK);
        waiting.took(Ns(TOLD), 1);
        assert_eq!(waiting.price(), Ns(2));
    }

    #[test]
    fn neighbours_of_one_object_are_joined() {
        let range = |first, count| PageRange { first: homenode_model::PageNo(first), count };
        let ranges = vec![(1, range(8, 4)), (1, range(0, 4)), (1, range(4, 4)), (2, range(12, 4))];
        assert_eq!(joined(ranges), [range(0, 12), range(12, 4)]);
    }

    #[test]
    fn parts_are_all_of_the_object() {
        let pages = 10 * CHUNK + 7;
        let mut turn = Turn { id: ObjectId(0), place: 0, some: false };
        assert_eq!(turn.next(pages, pages), Some((0, pages, None)), "at once if there is room");
        let mut seen = 0;
        while seen < pages {
            assert_eq!(turn.left(pages), pages - seen);
            let (_, count, next) = turn.next(pages, CHUNK).unwrap();
            seen += count;
            assert_eq!(next.is_none(), seen == pages);
            turn.place = next.unwrap_or(turn.place);
        }
        assert!(Turn { place: 3, ..turn }.next(pages, 6).is_none());
    }
}
