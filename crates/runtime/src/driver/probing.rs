//! Probes: has a few pages of each object tell whether the object should follow once more. See
//! [`super::state::probes`].

use std::collections::BTreeSet;

use homenode_model::{PageNo, PageRange};
use homenode_sys::Span;
use homenode_wire::facts::Arming;

use super::mover::Manner;
use super::run::Driver;
use super::state::memory::AROUND;
use super::state::waiting::Why;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;

impl Driver {
    /// Queues armed objects for following once more. Large objects are probed first.
    pub(super) fn wait_once_more(&mut self) {
        self.evidence.probing.draw_anew();
        let armed = self.memory.objects.live().filter(|o| o.treatment.armed).map(|o| o.address).collect();
        self.wait_probed(armed);
    }

    fn wait_probed(&mut self, objects: BTreeSet<usize>) {
        let nodes = self.settings.machine.nodes();
        let bytes = self.memory.objects.live().filter(|o| o.treatment.armed).map(|o| o.bytes).sum();
        let lot = self.evidence.probing.lot(bytes);
        for at in objects {
            let Some(object) = self.memory.objects.get(at) else { continue };
            let (id, bytes) = (object.id, object.bytes);
            if object.treatment.pilot {
                // Pilots of it tell, as before.
                if !self.evidence.trial.waits_for(at) {
                    self.arming.waiting.add(Why::New, at, id);
                }
            } else if self.evidence.trial.takes_followed(at) {
                // The object has just come to where it is used.
            } else if self.arming.waiting.waits_for(Why::New, at) {
                self.evidence.probing.probe_later(at);
            } else if self.arming.waiting.waits(at) || self.evidence.probing.is_fresh(at) {
                // The object is about to come to where it is used.
            } else if lot.is_for(bytes, nodes) && self.manner(object) == Manner::Around {
                self.arming.waiting.add(Why::Probed, at, id);
                self.evidence.probing.begin(at, id, lot);
            } else {
                self.arming.waiting.add(Why::Again, at, id);
            }
        }
    }

    /// Adds the object's probes among these pages. Returns the number of pages.
    pub(super) fn add_probes(
        &mut self,
        address: usize,
        pages: PageRange,
        list: &mut Vec<(usize, PageRange)>,
    ) -> u64 {
        let Some(object) = self.memory.objects.get(address) else { return 0 };
        let Some(lot) = self.evidence.probing.lot_of(address, object.id) else { return 0 };
        let (first, block) = (object.pages.first.0, block_of(object.bytes));
        let whole = Span { start: object.whole_pages().start, end: object.whole_pages().end };
        let from = whole.start + (pages.first.0 - first) as usize * PAGE;
        let mut added = 0;
        for probe in lot.within(Span::new(from, pages.count as usize * PAGE), whole) {
            let pages = PageRange {
                first: PageNo(first + ((probe.start - whole.start) / PAGE) as u64),
                count: AROUND as u64,
            };
            // Leaves out held-back blocks, which have not come to anybody yet, and memory that the
            // program has placed.
            let came = !self.evidence.hold.was_held(probe.start, block)
                && self.memory.placed.rest_of(probe) == [probe];
            if came && self.has_pages(address, pages) {
                list.push((address, pages));
                added += pages.count;
                self.evidence.probing.armed(address, probe.start);
            }
        }
        added
    }

    /// Whether the pages exist. Notes the homes of pages that have come to exist.
    pub(super) fn has_pages(&mut self, object: usize, pages: PageRange) -> bool {
        let known = |page| self.memory.objects.get(object).and_then(|o| o.home(page)).is_some();
        pages.iter().all(known) || self.introduce(object, pages) > 0
    }

    /// At the start of a round: arms what should follow once more. The round is of a level of the
    /// iteration that was `found` now, or of a known one. Returns whether something follows or is
    /// probed, so that judging is too early.
    pub(super) fn correct(&mut self, found: bool) -> bool {
        if found || self.evidence.probing.is_due(&self.arming.waiting) {
            self.heavy(|d| {
                if found {
                    d.request_all();
                }
                let late = d.evidence.probing.take_late();
                let more = !late.is_empty();
                d.wait_probed(late);
                if (d.count_probes() || more || found) && d.within_budget() {
                    d.take_turns();
                }
            });
        }
        let armed = self.evidence.probing.round_begins();
        let corrects = armed || self.settings.arming == Arming::First && self.arming.waiting.corrects();
        if corrects {
            self.evidence.hold.start_again();
        }
        corrects
    }

    /// Arms the objects whose probes came from other nodes. Returns whether there are any.
    fn count_probes(&mut self) -> bool {
        let follow = self.evidence.probing.count(&self.arming.waiting);
        let any = !follow.is_empty();
        if any {
            self.arming.arms_all();
        }
        follow.into_iter().for_each(|(address, id)| self.arming.waiting.add(Why::Again, address, id));
        any
    }
}
