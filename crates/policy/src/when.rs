//! When a policy that counts looks at its counts.

use homenode_model::{Event, Interest, Ns};

/// The end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Each iteration mark but the first, before which there was initialisation.
    Iteration,
    /// The end of each parallel region.
    Region,
    /// Each time that so much time has gone by.
    Every(Ns),
}

impl When {
    /// What the driver must tell.
    pub(crate) fn interest(self) -> Interest {
        Interest {
            faults: true,
            counts_by_iteration: self == Self::Iteration,
            counts_by_region: self == Self::Region,
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
    /// They are of the initialisation: forget them.
    Begin,
    /// The interval is over: decide.
    End,
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
            (Event::Iteration { .. }, When::Iteration) if core::mem::replace(&mut self.begun, true) => {
                Moment::End
            }
            (Event::Iteration { .. }, When::Iteration) => Moment::Begin,
            (Event::RegionEnd { .. }, When::Region) => Moment::End,
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
