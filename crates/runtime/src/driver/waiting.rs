//! Memory that waits for its turn to be armed, or to be watched.
//!
//! # Problem
//!
//! An armed page costs homenode some microseconds of CPU time when it is touched, and that is in the middle of a region, where nobody looks
//! at the budget. To arm 100 GB at once would spend a minute before the next look.
//!
//! # Approach
//!
//! No more is armed than there is room for in the budget: what it allows by now, less what was spent, less the price of what is armed
//! already. The rest waits and follows at the begins of later regions, as the process's CPU time grows and with it what is allowed. The
//! prices are measured. What the program asks for itself (`hn_next_touch`) is armed at once.

use std::collections::BTreeMap;

use homenode_model::{Event, Ns, ObjectId, PageNo, PageRange};
use homenode_sys::Span;

use super::arming::ToArm;
use super::run::Driver;
use super::settings::Arming;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;
use crate::watch::objects::Objects;

/// One part in so many of the budget is kept for samples, seams, and what comes to cost more than expected.
const KEPT: u64 = 8;
/// What it costs to find out where a page is and to arm it, and what to bring it, until so many pages have told.
const LOOK: Ns = Ns(1_000);
const BRING: Ns = Ns(2_000);
const TOLD: u64 = 4096;
/// Fewer pages are not worth a turn, unless they are all that is left.
const LEAST: u64 = 4096;
/// Time between two looks for room.
const GAP: Ns = Ns(100_000_000);

/// Why pages wait. In the order of their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// They were never armed or watched.
    New,
    /// They are to follow once more.
    Again,
    /// Of the object, the blocks that were held back.
    Held,
}

/// An object that waits.
#[derive(Clone, Copy, Debug)]
struct Turn {
    id: ObjectId,
    /// Its first page that waits.
    from: u64,
    /// Some of its pages were there.
    some: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By why and the object's address.
    turns: BTreeMap<(Why, usize), Turn>,
    looked: Ns,
    /// What looking and arming took so far, and pages.
    took: (Ns, u64),
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Whether it is time to look for room again.
    pub fn is_due(&self, now: Ns) -> bool {
        !self.is_empty() && now - self.looked >= GAP
    }

    /// The object at this address is no longer there.
    pub fn forget(&mut self, address: usize) {
        if !self.is_empty() {
            [Why::New, Why::Again, Why::Held].iter().for_each(|why| _ = self.turns.remove(&(*why, address)));
        }
    }

    fn add(&mut self, why: Why, address: usize, id: ObjectId) {
        self.turns.entry((why, address)).or_insert(Turn { id, from: 0, some: false });
    }

    fn waits(&self, address: usize) -> bool {
        [Why::New, Why::Again].iter().any(|why| self.turns.contains_key(&(*why, address)))
    }

    /// Pages that have not been armed or watched yet.
    fn new_pages(&self, objects: &Objects) -> u64 {
        let left = |(&(why, address), turn): (&(Why, usize), &Turn)| {
            let object = objects.get(address).filter(|o| o.id == turn.id && why == Why::New)?;
            Some(object.pages.count.saturating_sub(turn.from))
        };
        self.turns.iter().filter_map(left).sum()
    }

    fn look(&self) -> Ns {
        measured(self.took, LOOK)
    }
}

/// The price of a page.
fn measured((took, pages): (Ns, u64), until_then: Ns) -> Ns {
    if pages < TOLD { until_then } else { Ns(took.0 / pages) }
}

impl Driver {
    /// The objects that have not been armed or watched wait from now on; `all`, or those whose turn it is to be looked at.
    pub(super) fn wait_new(&mut self, all: bool) {
        for (address, _) in self.objects.take_unseen(all) {
            let Some(object) = self.objects.get(address) else { continue };
            self.waiting.add(Why::New, address, object.id);
        }
    }

    /// The objects that were armed wait to be armed once more.
    pub(super) fn wait_again(&mut self) {
        for object in self.objects.live().filter(|o| o.armed) {
            if !self.waiting.waits(object.address) {
                self.waiting.add(Why::Again, object.address, object.id);
            }
        }
    }

    /// The blocks that were held back wait to be armed. The others have come to their nodes: to arm them once more would copy all memory
    /// again.
    pub(super) fn wait_held(&mut self) {
        for object in self.objects.live().filter(|o| o.armed) {
            self.waiting.add(Why::Held, object.address, object.id);
        }
    }

    /// Arms what waits, or has it watched, as far as there is room. How many pages were armed.
    pub(super) fn take_turns(&mut self) -> u64 {
        self.waiting.looked = (self.clocks.wall)();
        if self.waiting.is_empty() {
            return 0;
        }
        let (begin, mut room) = ((self.clocks.thread)(), self.room());
        let (mut looked, mut ranges, mut held) = (0, Vec::new(), ToArm::default());
        while let Some((&(why, address), &turn)) = self.waiting.turns.first_key_value() {
            let object = self.objects.get(address).filter(|o| o.address == address && o.id == turn.id);
            let left = object.map_or(0, |o| o.pages.count.saturating_sub(turn.from));
            let Some(first) = object.filter(|_| left > 0).map(|o| o.pages.first.0) else {
                self.waiting.turns.pop_first();
                continue;
            };
            if room == 0 {
                break;
            }
            let pages = PageRange { first: PageNo(first + turn.from), count: left.min(room) };
            looked += pages.count;
            let used = match why {
                Why::New => self.introduce(address, pages).min(1) * pages.count,
                Why::Again => pages.count,
                Why::Held => self.add_held(address, pages, &mut held),
            };
            room -= used;
            let turn = Turn { from: turn.from + pages.count, some: turn.some | (used > 0), ..turn };
            if why != Why::Held && used > 0 {
                ranges.push(pages);
            }
            if why == Why::New && turn.some {
                self.objects.seen(address);
            }
            if pages.count < left {
                self.waiting.turns.insert((why, address), turn);
            } else {
                self.waiting.turns.pop_first();
                if turn.some && self.watches() {
                    self.watch_whole(address);
                }
            }
        }
        let armed = if self.watches() { 0 } else { self.request_pages(&ranges) + self.arm(&held) };
        self.waiting.took.0 += (self.clocks.thread)() - begin;
        self.waiting.took.1 += looked;
        armed
    }

    /// Adds the blocks of the object that were held back, among these pages. How many pages.
    fn add_held(&self, address: usize, pages: PageRange, list: &mut ToArm) -> u64 {
        let Some(object) = self.objects.get(address) else { return 0 };
        let (start, block) = (object.whole_pages().start, block_of(object.bytes));
        let from = start + (pages.first.0 - object.pages.first.0) as usize * PAGE;
        let blocks = Span::new(from, pages.count as usize * PAGE).pieces(block);
        let held = blocks.filter(|b| self.hold.was_held(b.start, block));
        let rest: Vec<Span> = held.flat_map(|b| self.placed.rest_of(b)).collect();
        let count = rest.iter().map(|s| s.pages() as u64).sum();
        list.of(self.manner(object.bytes)).extend(rest);
        count
    }

    /// Pages for which there is room in the budget.
    fn room(&self) -> u64 {
        let allowed = self.settings.budget.allows(self.cpu_time());
        let spare = allowed.0.saturating_sub(allowed.0 / KEPT).saturating_sub(self.own_time().0);
        let bring = if self.watches() { Ns::ZERO } else { self.price_of_bringing() };
        let each = (self.waiting.look() + bring).0.max(1);
        let live: u64 = self.objects.live().map(|o| o.pages.count).sum();
        if live.saturating_mul(each) <= spare {
            // The usual case: what is armed already need not be counted.
            return u64::MAX;
        }
        let room = spare.saturating_sub(self.mover.armed().saturating_mul(bring.0)) / each;
        if room < LEAST && room < self.waiting.new_pages(&self.objects) { 0 } else { room }
    }

    fn price_of_bringing(&self) -> Ns {
        let c = self.mover.counters();
        measured((Ns(c.own_ns), c.copies), BRING)
    }

    /// Nothing is armed: the policy is told who touches what.
    pub(super) fn watches(&self) -> bool {
        self.settings.arming == Arming::Watch
    }

    /// What the budget had no room for, if anything.
    pub(super) fn note_waiting(&mut self) {
        let pages = self.waiting.new_pages(&self.objects);
        if pages == 0 || self.stopped.is_some() {
            return;
        }
        let what = if self.watches() { "watched" } else { "armed" };
        self.note(format!(
            "{} MiB were not {what}: the budget of homenode's own time had no room for them yet; --budget gives more, and a longer run does",
            (pages * PAGE as u64) >> 20
        ));
    }

    /// Tells the policy that all of these are to follow their next touch. How many pages do.
    pub(super) fn request_pages(&mut self, ranges: &[PageRange]) -> u64 {
        ranges.iter().for_each(|pages| self.policy.observe(&Event::NextTouchRequest { pages: *pages }));
        if ranges.is_empty() { 0 } else { self.poll() }
    }
}
