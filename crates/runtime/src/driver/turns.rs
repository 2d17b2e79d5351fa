//! Arms waiting memory in turns, or has it watched, as far as the budget has room. See
//! [`super::state::waiting`].

use homenode_model::{Event, Ns, PageNo, PageRange};
use homenode_sys::Span;
use homenode_wire::facts::Arming;

use super::run::Driver;
use super::state::arming::ToArm;
use super::state::waiting::{Why, joined, measured};
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;

/// One part in this many of the budget is kept for samples, seams, and costs above the estimate.
const KEPT: u64 = 8;
/// Assumed price of bringing a page, until enough pages are measured.
const BRING: Ns = Ns(4_000);

impl Driver {
    /// Queues objects that have never been armed or watched: `all`, or those whose turn it is to be
    /// looked at.
    pub(super) fn wait_new(&mut self, all: bool) {
        for (address, _) in self.memory.objects.take_unseen(all) {
            let Some(object) = self.memory.objects.get(address) else { continue };
            self.arming.waiting.add(Why::New, address, object.id);
        }
    }

    /// Queues armed objects for following once more.
    pub(super) fn wait_again(&mut self) {
        for object in self.memory.objects.live().filter(|o| o.treatment.armed) {
            if !self.arming.waiting.waits(object.address) {
                self.arming.waiting.add(Why::Again, object.address, object.id);
            }
        }
    }

    /// Queues held-back blocks for arming. The other blocks have come to their nodes, and arming
    /// them again would copy all memory once more.
    pub(super) fn wait_held(&mut self) {
        for object in self.memory.objects.live().filter(|o| o.treatment.armed) {
            self.arming.waiting.add(Why::Held, object.address, object.id);
        }
    }

    /// Arms waiting memory, or has it watched, as far as there is room. Returns the number of armed
    /// pages.
    pub(super) fn take_turns(&mut self) -> u64 {
        self.arming.waiting.looks(self.account.now());
        self.review_licence();
        if self.arming.waiting.is_empty() {
            return 0;
        }
        let (begin, mut room) = (self.account.thread_time(), self.room());
        let (mut looked, mut ranges, mut held) = (0, Vec::new(), ToArm::default());
        let mut pilots = 0;
        while let Some((why, address, turn)) = self.arming.waiting.first() {
            let object = self.memory.objects.get(address).filter(|o| o.address == address && o.id == turn.id);
            let Some(all) = object.map(|o| o.pages).filter(|p| p.count > 0) else {
                self.arming.waiting.remove(why, address);
                continue;
            };
            if why == Why::New && self.is_for_pilots(address) {
                let is_first = self.memory.objects.get(address).is_some_and(|o| !o.treatment.pilot);
                let Some(armed) = self.send_pilots(address, room) else { break };
                self.arming.waiting.remove(why, address);
                pilots += armed;
                room = room.saturating_sub(armed);
                looked += armed;
                if is_first && self.records() {
                    self.arming.waiting.add(Why::Home, address, turn.id);
                }
                continue;
            }
            if why == Why::Home && !self.may_locate() {
                break;
            }
            let one_in = if why == Why::Probed { self.evidence.probing.one_in(address) } else { 1 };
            let Some((first, count, next)) = turn.next(all.count, room.saturating_mul(one_in)) else { break };
            let pages = PageRange { first: PageNo(all.first.0 + first), count };
            self.arming.take_missing();
            let used = match why {
                Why::New => self.introduce(address, pages).min(1) * count,
                Why::Probed => self.add_probes(address, pages, &mut ranges),
                Why::Again => {
                    self.look_for(address, pages, next.is_none());
                    count
                }
                Why::Held => self.add_held(address, pages, &mut held),
                Why::Home => {
                    let begin = self.account.thread_time();
                    self.introduce(address, pages);
                    self.account.was_for_recording(self.account.thread_time() - begin);
                    count
                }
            };
            looked += if why == Why::Probed { used } else { count };
            if self.settings.arming == Arming::First && matches!(why, Why::Probed | Why::Again) && used > 0 {
                self.evidence.probing.follows();
            }
            let awaited =
                if why == Why::New && !self.watches() { self.await_first_touches(address) } else { 0 };
            room = room.saturating_sub(used.max(awaited));
            if matches!(why, Why::New | Why::Again) && used > 0 {
                ranges.push((address, pages));
            }
            let some = self.arming.waiting.turn_ends((why, address), next, used > 0);
            if why == Why::New && some {
                self.memory.objects.seen(address);
            }
            if next.is_none() && some && self.watches() {
                self.watch_whole(address);
            }
        }
        let ranges = joined(ranges);
        let armed = if self.watches() { 0 } else { pilots + self.request_pages(&ranges) + self.arm(&held) };
        self.arming.waiting.took(self.account.thread_time() - begin, looked);
        armed
    }

    /// Adds the object's held-back blocks among these pages. Returns the number of pages.
    fn add_held(&self, address: usize, pages: PageRange, list: &mut ToArm) -> u64 {
        let Some(object) = self.memory.objects.get(address) else { return 0 };
        let (start, block) = (object.whole_pages().start, block_of(object.bytes));
        let from = start + (pages.first.0 - object.pages.first.0) as usize * PAGE;
        let blocks = Span::new(from, pages.count as usize * PAGE).pieces(block);
        let held = blocks.filter(|b| self.evidence.hold.was_held(b.start, block));
        let rest: Vec<Span> = held.flat_map(|b| self.memory.placed.rest_of(b)).collect();
        let count = rest.iter().map(|s| s.pages() as u64).sum();
        list.of(self.manner(object)).extend(rest);
        count
    }

    /// Number of pages that the budget has room to arm or watch.
    fn room(&self) -> u64 {
        let look = self.arming.waiting.price();
        // The team waits for the looking. The toucher brings an armed page while the other threads
        // go on.
        self.room_at(look + self.price_of_bringing(), look)
    }

    /// Number of further pages that the budget has room for, beside the armed ones. `each`: price
    /// of a page; `serial`: the part of it for which the team waits.
    pub(super) fn room_at(&self, each: Ns, serial: Ns) -> u64 {
        let is_undoing = self.moves.later.is_undoing();
        let kept = |allowed: Ns| if is_undoing { Ns::ZERO } else { Ns(allowed.0 / KEPT) };
        let [spare, waits] = self.spare(kept).map(|spare| spare.map_or(0, |s| s.0));
        let (each, bring) = (each.0.max(1), self.price_of_bringing().0);
        let live: u64 = self.memory.objects.live().map(|o| o.pages.count).sum();
        let waits = waits / serial.0.max(1);
        if live.saturating_mul(each.max(bring)) <= spare {
            // The usual case: armed pages need not be counted.
            return waits;
        }
        let armed = if bring > 0 { self.mover.armed() } else { 0 };
        (spare.saturating_sub(armed.saturating_mul(bring)) / each).min(waits)
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
        let waits = self.arming.waiting.left_out(&self.memory.objects);
        let what = if self.watches() { "watched" } else { "armed" };
        for (pages, what, told) in [(waits, what, !self.account.is_stopped()), self.not_moved()] {
            let mib = (pages * PAGE as u64) >> 20;
            if pages > 0 && told && self.is_cut_short() && what == "moved" {
                self.note(format!(
                    "{mib} MiB were not moved: the program ended before their turn; '--move-while asleep' moves them at once"
                ));
            } else if pages > 0 && told {
                self.note(format!(
                    "{mib} MiB were not {what}: the budget of homenode's own time had no room for them yet; --budget gives more, and a longer run does"
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
