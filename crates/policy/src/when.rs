//! When a counting policy evaluates its counts.

use homenode_model::{Event, Interest, Ns};

/// The end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Each iteration mark but the first, before which there was initialisation.
    Iteration,
    /// The end of each parallel region.
    Region,
    /// The same until the first iteration mark, and iteration marks from then on.
    Either,
    /// Each time that so much time has gone by.
    Every(Ns),
}

impl When {
    /// What the driver must tell.
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

/// What a moment means to the counts gathered so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nothing.
    Within,
    /// They are of the initialisation, or of a part of an iteration: forget them.
    Begin,
    /// The interval is over: decide.
    End,
    /// The same, before it is known what an iteration is: that nothing moves says little.
    Early,
}

/// Keeps the time of intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    when: When,
    begun: bool,
    next: Option<Ns>,
    /// An event came since the last poll: the next poll is its, and counts come with the one after.
    busy: bool,
}

impl Clock {
    pub(crate) const fn new(when: When) -> Self {
        Self { when, begun: false, next: None, busy: false }
    }
    pub(crate) fn interest(&self) -> Interest {
        self.when.interest()
    }
    /// An event that will be followed by a poll of its own.
    #[inline]
    pub(crate) const fn happened(&mut self) {
        self.busy = true;
    }
    /// What an event means.
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
    /// What the time means.
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
    /// When to be polled next.
    pub(crate) const fn wake(&self) -> Option<Ns> {
        self.next
    }
}
