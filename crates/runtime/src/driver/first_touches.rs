//! First touches of a recorded run: which thread touched a page first, on which node, when, and
//! with which instruction.
//!
//! A page fault tells a first touch if the recording has not told the page before, and if homenode
//! does not know the page's home. Later faults come from arming or watching, and homenode knows the
//! home of pages that it arms or watches. So the driver reads the faults before it looks where
//! pages are.

use homenode_model::{Ns, PageNo};
use homenode_sources::first_touches::{FirstTouches, PageFault};

use super::run::Driver;
use crate::stream::Stream;
use crate::watch::numbers::PAGE;

/// Least time between two looks at the rings, unless a look at pages follows.
const GAP: Ns = Ns(1_000_000);

impl Driver {
    /// Begins to look at who touches pages first, for a recording.
    pub(super) fn begin_first_touches(&mut self) {
        if self.recording.stream.is_none() {
            return;
        }
        match FirstTouches::open(self.settings.machine.cpu_nodes()) {
            Ok(firsts) => self.recording.firsts = Some(firsts),
            Err(e) => self.note(format!(
                "the recording does not tell which thread touched a page first: {e} \
                 (kernel.perf_event_paranoid must be at most 2)"
            )),
        }
    }

    /// Writes the first touches since the last look, if that is some time ago.
    pub(super) fn first_touches_in_time(&mut self, now: Ns) {
        if self.recording.firsts.as_ref().is_some_and(|f| now.0.saturating_sub(f.last().0) >= GAP.0) {
            self.heavy(|d| d.first_touches());
        }
    }

    /// Writes the first touches since the last look.
    pub(super) fn first_touches(&mut self) {
        let Some(firsts) = &mut self.recording.firsts else { return };
        let begin = self.account.thread_time();
        let mut faults = std::mem::take(&mut self.recording.faults);
        faults.clear();
        // The program's threads paid for the reports while they ran.
        let paid = firsts.drain(self.account.now(), &mut |fault| faults.push(fault));
        self.account.spent_by_program(paid);
        self.first_faults(&faults);
        self.recording.faults = faults;
        self.account.was_for_recording(paid + (self.account.thread_time() - begin));
    }

    /// Writes the first touches since the last look, and then tells the policy of all touches.
    pub(super) fn take_all_touches(&mut self) {
        self.first_touches();
        self.take_touches();
    }

    /// Writes those of these page faults that are first touches.
    pub fn first_faults(&mut self, faults: &[PageFault]) {
        for fault in faults {
            let Some(object) = self.memory.objects.at(fault.address) else { continue };
            let start = object.whole_pages().start;
            let home = fault
                .address
                .checked_sub(start)
                .and_then(|at| object.home(PageNo(object.pages.first.0 + (at / PAGE) as u64)));
            // An older fault was of the memory's former owner.
            if home.is_some() || fault.time < object.born {
                continue;
            }
            let page = fault.address / PAGE - object.address / PAGE;
            if let Some(stream) = &mut self.recording.stream {
                stream.touched_first(object, u32::try_from(page).unwrap_or(u32::MAX), fault);
            }
        }
        self.recording.stream.iter_mut().for_each(Stream::end_first_touches);
    }

    /// The program ends.
    pub(super) fn end_first_touches(&mut self) {
        self.first_touches();
        let Some(mut firsts) = self.recording.firsts.take() else { return };
        firsts.stop();
        firsts.missed().into_iter().for_each(|text| self.note(text));
    }
}
