//! When a counting policy evaluates its counts.

use homenode_model::{Event, Interest, Ns};

/// The end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Each iteration mark but the first, before which the program initialises.
    Iteration,
    /// The end of each parallel region.
    Region,
    /// The end of each region until the first iteration mark, then iteration marks.
    Either,
    /// Each time that this much time has passed.
    Every(Ns),
}

impl When {
    /// The events that the driver must report.
    pub(crate) fn interest(self) -> Interest {
        Interest {
            faults: true,
            counts_by_iteration: matches!(self, Self::Iteration | Self::Either),
            counts_by_region: matches!(self, Self::Region | Self::Either),
            counts_at_wakes: matches!(self, Self::Every(_)),
            ..Interest::default()
        }
    }
}

/// What a moment means for the counts so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nothing.
    Within,
    /// The counts are of the initialisation, or of a part of an iteration: drop them.
    Begin,
    /// The interval is over: decide.
    End,
    /// The interval is over, and iterations are not known yet. It says little if nothing moves.
    Early,
}

/// Keeps the time of intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    when: When,
    begun: bool,
    next: Option<Ns>,
    /// Whether an event came since the last poll. The next poll belongs to the event, and counts
    /// come with the one after.
    busy: bool,
}

impl Clock {
    pub(crate) const fn new(when: When) -> Self {
        Self { when, begun: false, next: None, busy: false }
    }
    pub(crate) fn interest(&self) -> Interest {
        self.when.interest()
    }
    /// Notes an event that has a poll of its own.
    #[inline]
    pub(crate) const fn happened(&mut self) {
        self.busy = true;
    }
    /// The meaning of an event.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event) -> Moment {
        match (event, self.when) {
            (Event::Iteration { .. }, When::Iteration | When::Either) => {
                if core::mem::replace(&mut self.begun, true) { Moment::End } else { Moment::Begin }
            }
            (Event::RegionEnd { .. }, When::Region) => Moment::End,
            (Event::RegionEnd { .. }, When::Either) if !self.begun => Moment::Early,
            _ => Moment::Within,
        }
    }
    /// The meaning of the time.
    pub(crate) fn poll(&mut self, now: Ns) -> Moment {
        let When::Every(period) = self.when else { return Moment::Within };
        let of_an_event = core::mem::take(&mut self.busy);
        match self.next {
            Some(_) if of_an_event => Moment::Within,
            Some(next) if now < next => Moment::Within,
            before => {
                self.next = Some(now + period);
                if before.is_some() { Moment::End } else { Moment::Begin }
            }
        }
    }
    /// When to poll next.
    pub(crate) const fn wake(&self) -> Option<Ns> {
        self.next
    }
}
