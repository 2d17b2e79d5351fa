//! What homenode does with an object, and what it has found out about it.

/// What homenode does with an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// Whether it was armed to follow its next touch.
    pub armed: bool,
    /// Whether its touches are watched.
    pub watched: bool,
    /// Whether missing pages are armed, to learn who touches them first.
    pub awaited: bool,
    /// Whether pilots test the object, and nothing else of it has been armed so far.
    pub pilot: bool,
    /// Whether another node used its pilots each time: no placement lasts.
    pub contested: bool,
    /// Whether neighbouring pages have different users, so that each page follows alone.
    pub mixed: bool,
}

impl Treatment {
    /// Whether the object was armed or is watched.
    pub const fn takes_part(self) -> bool {
        self.armed || self.watched
    }

    /// Whether the object as a whole was armed, not pilots alone.
    pub const fn is_armed_whole(self) -> bool {
        self.armed && !self.pilot
    }

    /// Whether missing pages are armed, and nothing else of the object.
    pub const fn only_awaits(self) -> bool {
        self.awaited && !self.armed
    }

    /// Pilots of the object have been armed.
    pub const fn begin_trial(&mut self) {
        (self.armed, self.pilot) = (true, true);
    }

    /// The pilots have shown that the object may follow its touches.
    pub const fn end_trial(&mut self, mixed: bool) {
        (self.pilot, self.contested, self.mixed) = (false, false, mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_arms_pilots_alone_and_then_the_whole() {
        let mut t = Treatment { contested: true, ..Treatment::default() };
        assert!(!t.takes_part() && !t.is_armed_whole());
        t.begin_trial();
        assert!(t.takes_part() && !t.is_armed_whole());
        t.end_trial(true);
        assert_eq!(t, Treatment { armed: true, mixed: true, ..Treatment::default() });
        assert!(t.is_armed_whole());
    }

    #[test]
    fn an_object_that_only_awaits_its_first_touch_takes_no_part() {
        let mut t = Treatment { awaited: true, ..Treatment::default() };
        assert!(t.only_awaits() && !t.takes_part());
        t.armed = true;
        assert!(!t.only_awaits() && t.takes_part());
        assert!(Treatment { watched: true, ..Treatment::default() }.takes_part());
    }
}
