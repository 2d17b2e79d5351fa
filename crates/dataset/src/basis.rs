//! What a number is worth.
//!
//! A [`Count`] cannot be printed without its [`Basis`]. A [`SeenCount`] whose basis is
//! [`Basis::Presence`] has no count: a node was seen at a page, and nobody knows how often it
//! came.

use std::fmt;

use crate::column::{ColumnData, ColumnKind};
use crate::schema::{ColumnPart, Field, RowContradiction, words};

/// How a number came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Every access was counted, by instrumented code.
    Exact,
    /// Every access was counted, under emulation: the timing is not that of hardware.
    Emulated,
    /// Each sample stands for `one_in` accesses.
    Sampled {
        /// Accesses that one sample stands for.
        one_in: u64,
    },
    /// A node was seen at a page. How often it came there is not known.
    Presence,
}

words! {
    /// The word for a [`Basis`] in a table.
    pub enum BasisWord {
        /// [`Basis::Exact`].
        Exact = "exact",
        /// [`Basis::Emulated`].
        Emulated = "emulated",
        /// [`Basis::Sampled`].
        Sampled = "sampled",
        /// [`Basis::Presence`].
        Presence = "presence",
    }
}

impl Basis {
    /// The basis of a sum of numbers with these two: the weaker one. Of two sampling rates the
    /// coarser one.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        match (self, other) {
            (Self::Sampled { one_in: a }, Self::Sampled { one_in: b }) => Self::Sampled { one_in: a.max(b) },
            (a, b) => a.max(b),
        }
    }

    /// The word for it.
    pub const fn word(self) -> BasisWord {
        match self {
            Self::Exact => BasisWord::Exact,
            Self::Emulated => BasisWord::Emulated,
            Self::Sampled { .. } => BasisWord::Sampled,
            Self::Presence => BasisWord::Presence,
        }
    }

    const fn one_in(self) -> Option<u64> {
        match self {
            Self::Sampled { one_in } => Some(one_in),
            _ => None,
        }
    }

    fn of(word: BasisWord, one_in: Option<u64>) -> Result<Self, RowContradiction> {
        Ok(match (word, one_in) {
            (BasisWord::Exact, None) => Self::Exact,
            (BasisWord::Emulated, None) => Self::Emulated,
            (BasisWord::Presence, None) => Self::Presence,
            (BasisWord::Sampled, Some(one_in)) if one_in > 0 => Self::Sampled { one_in },
            _ => return Err(RowContradiction("the sampling rate does not fit the basis")),
        })
    }
}

impl fmt::Display for Basis {
    /// As people read it: `exact`, `sampled, one in 4000`, `presence`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sampled { one_in } => write!(f, "sampled, one in {one_in}"),
            other => f.write_str(other.word().as_str()),
        }
    }
}

/// A number of accesses and its basis. It has no way to be printed without the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    accesses: u64,
    basis: Basis,
}

impl Count {
    /// The number and what it is worth.
    pub const fn parts(self) -> (u64, Basis) {
        (self.accesses, self.basis)
    }

    /// The sum of both, with the weaker basis.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { accesses: self.accesses.saturating_add(other.accesses), basis: self.basis.weaker(other.basis) }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.accesses, self.basis)
    }
}

/// How often something was seen, and what that number is worth.
///
/// In a table it takes four columns: `seen`, `count`, `basis`, `one_in`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenCount {
    seen: u64,
    basis: Basis,
}

impl SeenCount {
    /// `seen` reports of a source whose answers are worth `basis`.
    pub const fn new(seen: u64, basis: Basis) -> Self {
        Self { seen, basis }
    }

    /// Reports of the source: accesses, samples, or sightings.
    pub const fn seen(self) -> u64 {
        self.seen
    }

    /// What the reports are worth.
    pub const fn basis(self) -> Basis {
        self.basis
    }

    /// The number of accesses; none for presence.
    pub const fn count(self) -> Option<Count> {
        let accesses = match self.basis {
            Basis::Exact | Basis::Emulated => self.seen,
            Basis::Sampled { one_in } => self.seen.saturating_mul(one_in),
            Basis::Presence => return None,
        };
        Some(Count { accesses, basis: self.basis })
    }

    /// Both together, with the weaker basis: presence if one of them is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self.count(), other.count()) {
            (Some(a), Some(b)) => {
                let (accesses, basis) = a.plus(b).parts();
                let seen = match basis {
                    Basis::Sampled { one_in } if self.basis != other.basis => accesses / one_in,
                    _ => self.seen.saturating_add(other.seen),
                };
                Self { seen, basis }
            }
            _ => Self { seen: self.seen.saturating_add(other.seen), basis: Basis::Presence },
        }
    }
}

impl Field for SeenCount {
    const PARTS: &'static [ColumnPart] = &[
        ColumnPart::named(
            "seen",
            ColumnKind::Int,
            false,
            "Reports of the source: accesses, samples or sightings.",
            "",
        ),
        ColumnPart::named(
            "count",
            ColumnKind::Int,
            true,
            "Number of accesses. Null for presence: a sighting is not a count.",
            "accesses",
        ),
        ColumnPart::named("basis", ColumnKind::Word(BasisWord::WORDS), false, "What `count` is worth.", ""),
        ColumnPart::named(
            "one_in",
            ColumnKind::Int,
            true,
            "Accesses that one sample stands for.",
            "accesses",
        ),
    ];

    fn put(&self, to: &mut [ColumnData]) {
        self.seen.put(&mut to[0..1]);
        self.count().map(|c| c.accesses).put(&mut to[1..2]);
        self.basis.word().put(&mut to[2..3]);
        self.basis.one_in().put(&mut to[3..4]);
    }

    fn take(from: &[ColumnData], row: usize) -> Result<Self, RowContradiction> {
        let word = <BasisWord as Field>::take(&from[2..3], row)?;
        let tally = Self {
            seen: <u64 as Field>::take(&from[0..1], row)?,
            basis: Basis::of(word, <Option<u64> as Field>::take(&from[3..4], row)?)?,
        };
        if <Option<u64> as Field>::take(&from[1..2], row)? != tally.count().map(|c| c.accesses) {
            return Err(RowContradiction("the count contradicts its basis"));
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: Basis = Basis::Sampled { one_in: 4000 };

    #[test]
    fn presence_has_no_count_whatever_it_is_added_to() {
        let presence = SeenCount::new(7, Basis::Presence);
        assert_eq!(presence.count(), None);
        assert_eq!(presence.plus(SeenCount::new(1, Basis::Exact)).count(), None);
    }

    #[test]
    fn a_count_is_printed_with_its_basis() {
        assert_eq!(SeenCount::new(3, SAMPLED).count().unwrap().to_string(), "12000 (sampled, one in 4000)");
        assert_eq!(SeenCount::new(3, Basis::Exact).count().unwrap().to_string(), "3 (exact)");
    }

    #[test]
    fn sums_take_the_weaker_basis_and_keep_the_accesses() {
        let sum = SeenCount::new(8000, Basis::Exact).plus(SeenCount::new(1, SAMPLED));
        assert_eq!(sum.count().unwrap().parts(), (12_000, SAMPLED));
        let rates = SeenCount::new(10, Basis::Sampled { one_in: 100 }).plus(SeenCount::new(2, SAMPLED));
        assert_eq!(rates.basis(), SAMPLED);
    }
}
