//! Sums of tallies, and shares of them. Neither loses its basis.

use std::fmt;

use homenode_dataset::{Basis, Count, SeenCount};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// How often something was accessed or seen: a sum of tallies with the weakest of their bases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    seen: u64,
    count: Option<Count>,
    basis: Option<Basis>,
}

impl Amount {
    /// Nothing, of a source whose answers are worth `basis`.
    pub const fn nothing(basis: Option<Basis>) -> Self {
        let count = match basis {
            Some(basis) => SeenCount::new(0, basis).count(),
            None => None,
        };
        Self { seen: 0, count, basis }
    }

    /// Adds a row's tally.
    pub fn add(&mut self, tally: SeenCount) {
        self.seen = self.seen.saturating_add(tally.seen());
        self.count = match (self.count, tally.count()) {
            (Some(a), Some(b)) => Some(a.plus(b)),
            (a, b) => a.or(b),
        };
        self.basis = Some(self.basis.map_or(tally.basis(), |b| b.weaker(tally.basis())));
    }

    /// The same; where nothing was added, with this basis.
    #[must_use]
    pub fn or_nothing_of(self, basis: Option<Basis>) -> Self {
        if self.basis.is_none() { Self::nothing(basis) } else { self }
    }

    /// Reports of the source: accesses, samples or sightings.
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// What the sum is worth; none where nothing was added.
    pub const fn basis(&self) -> Option<Basis> {
        self.basis
    }

    /// The number of accesses; none where a part of the sum is presence.
    pub fn count(&self) -> Option<Count> {
        if self.basis == Some(Basis::Presence) { None } else { self.count }
    }

    /// What a share of it counts, and how many there are: accesses, or sightings of presence.
    pub fn units(&self) -> (Unit, u64) {
        match (self.basis, self.count()) {
            (Some(Basis::Presence), _) => (Unit::Sightings, self.seen),
            (_, count) => (Unit::Accesses, count.map_or(0, |c| c.parts().0)),
        }
    }

    /// `part` as a share of this.
    pub fn share(&self, part: &Self) -> Share {
        let (of, whole) = self.units();
        let part = match of {
            Unit::Sightings => part.seen,
            Unit::Accesses => part.count.map_or(0, |c| c.parts().0),
        };
        Share { part: part.min(whole), whole, of, basis: self.basis }
    }
}

impl Serialize for Amount {
    /// As the columns of a table: `seen`, `count`, `basis`, `one_in`.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut s = s.serialize_struct("Amount", 4)?;
        s.serialize_field("seen", &self.seen)?;
        s.serialize_field("count", &self.count().map(|c| c.parts().0))?;
        s.serialize_field("basis", &self.basis.map(|b| b.word().as_str()))?;
        s.serialize_field("one_in", &one_in(self.basis))?;
        s.end()
    }
}

const fn one_in(basis: Option<Basis>) -> Option<u64> {
    match basis {
        Some(Basis::Sampled { one_in }) => Some(one_in),
        _ => None,
    }
}

/// What a [`Share`] is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Accesses that were counted.
    Accesses,
    /// Sightings of a node at a page. A node that came once and one that came often are alike.
    Sightings,
}

impl Unit {
    /// The word for several of them.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accesses => "accesses",
            Self::Sightings => "sightings",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A part of a whole, and what both count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The part.
    pub part: u64,
    /// The whole.
    pub whole: u64,
    /// What both count.
    pub of: Unit,
    /// What the counts are worth; none where nothing was counted.
    pub basis: Option<Basis>,
}

impl Share {
    /// The share in millionths, rounded down: the form that orders results. None of an empty whole.
    pub fn per_million(&self) -> Option<u64> {
        per_million(self.part, self.whole)
    }

    /// The share in percent. None of an empty whole.
    pub fn percent(&self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64 * 100.0)
    }
}

/// `part` of `whole` in millionths, rounded down. None of an empty whole.
pub fn per_million(part: u64, whole: u64) -> Option<u64> {
    let parts = u128::from(part) * 1_000_000;
    parts.checked_div(u128::from(whole)).map(|n| u64::try_from(n).unwrap_or(u64::MAX))
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut s = s.serialize_struct("Share", 6)?;
        s.serialize_field("part", &self.part)?;
        s.serialize_field("whole", &self.whole)?;
        s.serialize_field("percent", &self.percent())?;
        s.serialize_field("of", self.of.as_str())?;
        s.serialize_field("basis", &self.basis.map(|b| b.word().as_str()))?;
        s.serialize_field("one_in", &one_in(self.basis))?;
        s.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: Basis = Basis::Sampled { one_in: 100 };

    fn of(tallies: &[(u64, Basis)]) -> Amount {
        let mut amount = Amount::default();
        tallies.iter().for_each(|(seen, basis)| amount.add(SeenCount::new(*seen, *basis)));
        amount
    }

    #[test]
    fn a_share_of_presence_is_one_of_sightings() {
        let share = of(&[(10, Basis::Presence)]).share(&of(&[(4, Basis::Presence)]));
        assert_eq!((share.part, share.whole, share.of), (4, 10, Unit::Sightings));
        assert_eq!(share.per_million(), Some(400_000));
        let mixed = of(&[(1_000_000, Basis::Exact), (10, Basis::Presence)]);
        assert_eq!((mixed.count(), mixed.units().0), (None, Unit::Sightings));
    }

    #[test]
    fn counts_of_several_bases_take_the_weakest() {
        let amount = of(&[(7, Basis::Exact), (3, SAMPLED), (1, Basis::Exact)]);
        assert_eq!(amount.count().map(Count::parts), Some((308, SAMPLED)));
        assert_eq!(amount.seen(), 11);
    }

    #[test]
    fn nothing_has_a_count_where_its_source_counts() {
        assert_eq!(Amount::default().count(), None);
        let nothing = Amount::default().or_nothing_of(Some(Basis::Exact));
        assert_eq!(nothing.count().map(Count::parts), Some((0, Basis::Exact)));
        assert_eq!(Amount::nothing(Some(Basis::Presence)).count(), None);
        assert_eq!(nothing.share(&nothing).percent(), None);
    }

    #[test]
    fn a_serialised_amount_has_the_names_of_the_columns() {
        let json = |amount: Amount| serde_json::to_value(amount).unwrap().to_string();
        assert_eq!(json(of(&[(3, SAMPLED)])), r#"{"basis":"sampled","count":300,"one_in":100,"seen":3}"#);
        assert_eq!(
            json(of(&[(3, Basis::Presence)])),
            r#"{"basis":"presence","count":null,"one_in":null,"seen":3}"#
        );
    }
}
