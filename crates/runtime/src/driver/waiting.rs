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

use homenode_model::{Event, Ns, ObjectId, PageNo, PageRange};
use homenode_sys::Span;

use super::arming::ToArm;
use super::run::Driver;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;
use crate::watch::objects::Objects;
use homenode_wire::facts::Arming;

/// One part in this many of the budget is kept for samples, seams, and costs above the estimate.
const KEPT: u64 = 8;
/// Assumed price of locating and arming a page, and of bringing it, until enough pages are
/// measured.
const LOOK: Ns = Ns(1_000);
const BRING: Ns = Ns(4_000);
const TOLD: u64 = 4096;
/// Pages of one turn, for an object that the budget has no room for as a whole.
const CHUNK: u64 = 4096;
/// Time between two looks for room.
pub(super) const GAP: Ns = Ns(100_000_000);

/// Why pages wait, in the order of their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
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
struct Turn {
    id: ObjectId,
    /// Position in the order of the object's chunks.
    place: u64,
    /// Whether some of the pages existed.
    some: bool,
}

impl Turn {
    /// The next pages of the object, if there is room: the first page, the number of pages, and the
    /// position after them (`None` at the end).
    fn next(&self, pages: u64, room: u64) -> Option<(u64, u64, Option<u64>)> {
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
pub(super) struct Waiting {
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

    pub fn add(&mut self, why: Why, address: usize, id: ObjectId) {
        self.turns.entry((why, address)).or_insert(Turn { id, place: 0, some: false });
    }

    /// Whether the object has waiting pages that should follow.
    pub fn waits(&self, address: usize) -> bool {
        [Why::New, Why::Probed, Why::Again].into_iter().any(|why| self.waits_for(why, address))
    }

    /// Number of pages that have not been armed or watched yet.
    fn new_pages(&self, objects: &Objects) -> u64 {
        let left = |(&(why, address), turn): (&(Why, usize), &Turn)| {
            let object = objects.get(address).filter(|o| o.id == turn.id && why == Why::New)?;
            Some(turn.left(object.pages.count))
        };
        self.turns.iter().filter_map(left).sum()
    }

    fn look(&self) -> Ns {
        measured(self.took).unwrap_or(LOOK)
    }
}

/// The measured price of a page, once it is known.
pub(super) fn measured((took, pages): (Ns, u64)) -> Option<Ns> {
    (pages >= TOLD).then(|| Ns(took.0 / pages))
}

/// Joins neighbouring ranges of pages.
fn joined(mut ranges: Vec<(usize, PageRange)>) -> Vec<PageRange> {
    ranges.sort_unstable_by_key(|(_, r)| r.first);
    ranges.dedup_by(|(next_of, next), (last_of, last)| {
        let joins = last_of == next_of && last.first.0 + last.count == next.first.0;
        last.count += if joins { next.count } else { 0 };
        joins
    });
    ranges.into_iter().map(|(_, range)| range).collect()
}

impl Driver {
    /// Queues objects that have never been armed or watched: `all`, or those whose turn it is to be
    /// looked at.
    pub(super) fn wait_new(&mut self, all: bool) {
        for (address, _) in self.objects.take_unseen(all) {
            let Some(object) = self.objects.get(address) else { continue };
            self.waiting.add(Why::New, address, object.id);
        }
    }

    /// Queues armed objects for following once more.
    pub(super) fn wait_again(&mut self) {
        for object in self.objects.live().filter(|o| o.armed) {
            if !self.waiting.waits(object.address) {
                self.waiting.add(Why::Again, object.address, object.id);
            }
        }
    }

    /// Queues held-back blocks for arming. The other blocks have come to their nodes, and arming
    /// them again would copy all memory once more.
    pub(super) fn wait_held(&mut self) {
        for object in self.objects.live().filter(|o| o.armed) {
            self.waiting.add(Why::Held, object.address, object.id);
        }
    }

    /// Arms waiting memory, or has it watched, as far as there is room. Returns the number of armed
    /// pages.
    pub(super) fn take_turns(&mut self) -> u64 {
        self.waiting.looked = (self.clocks.wall)();
        self.review_licence();
        if self.waiting.is_empty() {
            return 0;
        }
        let (begin, mut room) = ((self.clocks.thread)(), self.room());
        let (mut looked, mut ranges, mut held) = (0, Vec::new(), ToArm::default());
        let mut pilots = 0;
        while let Some((&(why, address), &turn)) = self.waiting.turns.first_key_value() {
            let object = self.objects.get(address).filter(|o| o.address == address && o.id == turn.id);
            let Some(all) = object.map(|o| o.pages).filter(|p| p.count > 0) else {
                self.waiting.turns.pop_first();
                continue;
            };
            if why == Why::New && self.is_for_pilots(address) {
                let is_first = self.objects.get(address).is_some_and(|o| !o.pilot);
                let Some(armed) = self.send_pilots(address, room) else { break };
                self.waiting.turns.pop_first();
                pilots += armed;
                room = room.saturating_sub(armed);
                looked += armed;
                if is_first && self.records() {
                    self.waiting.add(Why::Home, address, turn.id);
                }
                continue;
            }
            if why == Why::Home && !self.may_locate() {
                break;
            }
            let one_in = if why == Why::Probed { self.probing.one_in(address) } else { 1 };
            let Some((first, count, next)) = turn.next(all.count, room.saturating_mul(one_in)) else { break };
            let pages = PageRange { first: PageNo(all.first.0 + first), count };
            self.missing.clear();
            let used = match why {
                Why::New => self.introduce(address, pages).min(1) * count,
                Why::Probed => self.add_probes(address, pages, &mut ranges),
                Why::Again => {
                    self.look_for(address, pages, next.is_none());
                    count
                }
                Why::Held => self.add_held(address, pages, &mut held),
                Why::Home => {
                    let begin = (self.clocks.thread)();
                    self.introduce(address, pages);
                    self.recording += (self.clocks.thread)() - begin;
                    count
                }
            };
            looked += if why == Why::Probed { used } else { count };
            if self.settings.arming == Arming::First && matches!(why, Why::Probed | Why::Again) && used > 0 {
                self.probing.follows();
            }
            let awaited =
                if why == Why::New && !self.watches() { self.await_first_touches(address) } else { 0 };
            room = room.saturating_sub(used.max(awaited));
            let turn = Turn { place: next.unwrap_or(turn.place), some: turn.some | (used > 0), ..turn };
            if matches!(why, Why::New | Why::Again) && used > 0 {
                ranges.push((address, pages));
            }
            if why == Why::New && turn.some {
                self.objects.seen(address);
            }
            if next.is_some() {
                self.waiting.turns.insert((why, address), turn);
            } else {
                self.waiting.turns.pop_first();
                if turn.some && self.watches() {
                    self.watch_whole(address);
                }
            }
        }
        let ranges = joined(ranges);
        let armed = if self.watches() { 0 } else { pilots + self.request_pages(&ranges) + self.arm(&held) };
        self.waiting.took.0 += (self.clocks.thread)() - begin;
        self.waiting.took.1 += looked;
        armed
    }

    /// Adds the object's held-back blocks among these pages. Returns the number of pages.
    fn add_held(&self, address: usize, pages: PageRange, list: &mut ToArm) -> u64 {
        let Some(object) = self.objects.get(address) else { return 0 };
        let (start, block) = (object.whole_pages().start, block_of(object.bytes));
        let from = start + (pages.first.0 - object.pages.first.0) as usize * PAGE;
        let blocks = Span::new(from, pages.count as usize * PAGE).pieces(block);
        let held = blocks.filter(|b| self.hold.was_held(b.start, block));
        let rest: Vec<Span> = held.flat_map(|b| self.placed.rest_of(b)).collect();
        let count = rest.iter().map(|s| s.pages() as u64).sum();
        list.of(self.manner(object)).extend(rest);
        count
    }

    /// Number of pages that the budget has room to arm or watch.
    fn room(&self) -> u64 {
        let look = self.waiting.look();
        // The team waits for the looking. The toucher brings an armed page while the other threads
        // go on.
        self.room_at(look + self.price_of_bringing(), look)
    }

    /// Number of further pages that the budget has room for, beside the armed ones. `each`: price
    /// of a page; `serial`: the part of it for which the team waits.
    pub(super) fn room_at(&self, each: Ns, serial: Ns) -> u64 {
        let is_undoing = self.later.is_undoing();
        let kept = |allowed: Ns| if is_undoing { Ns::ZERO } else { Ns(allowed.0 / KEPT) };
        let [spare, waits] = self.spare(kept).map(|spare| spare.map_or(0, |s| s.0));
        let (each, bring) = (each.0.max(1), self.price_of_bringing().0);
        let live: u64 = self.objects.live().map(|o| o.pages.count).sum();
        let waits = waits / serial.0.max(1);
        if live.saturating_mul(each.max(bring)) <= spare {
            // The usual case: armed pages need not be counted.
            return waits;
        }
        let armed = if bring > 0 { self.mover.armed() } else { 0 };
        (spare.saturating_sub(armed.saturating_mul(bring)) / each).min(waits)
    }

    /// Why arming pauses. `own`: homenode's own time is spent, not that which the team waits for.
    pub(super) fn why_overdrawn(&self, own: bool) -> String {
        let seconds = |time: Ns| time.0 as f64 * 1e-9;
        let (own_time, cpu) = (seconds(self.own_time()), seconds(self.cpu_time()));
        let of = format!("{own_time:.3} s of homenode's own CPU time of the process's {cpu:.3} s");
        if self.is_on_trial() {
            return format!("nothing gained so far for {of}: it pauses (--budget gives more)");
        }
        if own {
            return format!("the budget ran out: {of}");
        }
        let (serial, all) = (seconds(self.serial_time()), seconds(self.elapsed()));
        format!("the budget ran out: {serial:.3} s of homenode's own that the team waited for in {all:.3} s")
    }

    /// Price of bringing an armed page. If pages are watched, only samples are armed, and samples
    /// have a budget of their own.
    fn price_of_bringing(&self) -> Ns {
        if self.watches() {
            return Ns::ZERO;
        }
        let c = self.mover.counters();
        measured((c.own, c.copies)).unwrap_or(BRING)
    }

    /// Whether the driver arms nothing, because the policy learns from a source who touches what.
    pub(super) fn watches(&self) -> bool {
        self.settings.arming == Arming::Watch
    }

    /// Notes what the budget had no room for, if anything.
    pub(super) fn note_waiting(&mut self) {
        let waits = self.waiting.new_pages(&self.objects) + self.waiting.missed;
        let what = if self.watches() { "watched" } else { "armed" };
        for (pages, what, told) in [(waits, what, self.stopped.is_none()), self.not_moved()] {
            if pages > 0 && told {
                self.note(format!(
                    "{} MiB were not {what}: the budget of homenode's own time had no room for them yet; --budget gives more, and a longer run does",
                    (pages * PAGE as u64) >> 20
                ));
            }
        }
    }

    /// Gives the policy the request that these pages follow their next touch. Returns how many do.
    pub(super) fn request_pages(&mut self, ranges: &[PageRange]) -> u64 {
        ranges.iter().for_each(|pages| self.policy.observe(&Event::NextTouchRequest { pages: *pages }));
        if ranges.is_empty() { 0 } else { self.poll() }
    }
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
