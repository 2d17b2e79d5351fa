//! Iteration times, and what a run of more iterations takes.

use std::collections::BTreeMap;

use homenode_model::Ps;

/// The last two simulated iterations may differ by this much, as a share, for the rest to be taken
/// as equal to the last.
pub const SETTLED: f64 = 0.01;

/// A program's runs with one model of the CPU: times by scheme.
pub(crate) type Times = BTreeMap<&'static str, Series>;

/// Times of the first iterations of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series(pub Vec<Ps>);

impl Series {
    /// The last iteration: the steady state.
    pub fn last(&self) -> Option<Ps> {
        self.0.last().copied()
    }
    /// Whether the last two are equal enough to go on with.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn settled(&self) -> Result<Ps, String> {
        match self.0[..] {
            [.., before, last] => {
                let differ = (last.0 as f64 - before.0 as f64).abs() / before.0.max(1) as f64;
                if differ <= SETTLED {
                    return Ok(last);
                }
                Err(format!("the last two of {} iterations differ by {:.1} %", self.0.len(), differ * 100.0))
            }
            _ => Err(format!("{} iterations are too few to go on from", self.0.len())),
        }
    }
    /// Time of `n` iterations, those beyond the simulated ones like the last.
    ///
    /// # Errors
    /// [`Series::settled`], when there are more than were simulated.
    pub fn total(&self, n: usize) -> Result<Ps, String> {
        let known: Ps = self.0.iter().take(n).copied().sum();
        match n.checked_sub(self.0.len()) {
            None | Some(0) => Ok(known),
            Some(more) => Ok(known + self.settled()?.times(more as u64)),
        }
    }
    /// The same, whether the last two agree or not; none without an iteration.
    pub fn carried_on(&self, n: usize) -> Option<Ps> {
        let more = n.saturating_sub(self.0.len()) as u64;
        Some(self.0.iter().take(n).copied().sum::<Ps>() + self.last()?.times(more))
    }
    /// After how many iterations this run has overtaken `other`, if it does within `most`.
    ///
    /// # Errors
    /// [`Series::settled`] of either.
    pub fn overtakes(&self, other: &Self, most: usize) -> Result<Option<usize>, String> {
        for n in 1..=most {
            if self.total(n)? < other.total(n)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }
    /// The first iteration less the second: what migration costs (Löf et al., Table 3).
    pub fn overhead(&self) -> Option<f64> {
        match self.0[..] {
            [first, second, ..] => Some(first.secs() - second.secs()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(times: &[u64]) -> Series {
        Series(times.iter().map(|t| Ps(*t)).collect())
    }

    #[test]
    fn the_rest_is_like_the_last() {
        let s = series(&[3000, 1000, 1001]);
        assert_eq!(s.total(2), Ok(Ps(4000)));
        assert_eq!(s.total(5), Ok(Ps(5001 + 2 * 1001)));
        assert!((s.overhead().unwrap() - 2000e-12).abs() < 1e-15);
        assert_eq!(series(&[3000, 1000]).carried_on(4), Some(Ps(6000)));
        assert_eq!((series(&[3000, 1000]).carried_on(1), series(&[]).carried_on(3)), (Some(Ps(3000)), None));
    }

    #[test]
    fn what_has_not_settled_is_not_carried_on() {
        assert!(series(&[3000, 1000, 1100]).total(4).unwrap_err().contains("differ by 10.0 %"));
        assert_eq!(series(&[3000, 1000, 1100]).total(3), Ok(Ps(5100)));
        assert!(series(&[10]).total(2).is_err());
    }

    #[test]
    fn a_slow_start_is_overtaken() {
        let (moving, staying) = (series(&[5000, 1000, 1000]), series(&[2000, 2000, 2000]));
        assert_eq!(moving.overtakes(&staying, 20), Ok(Some(5)));
        assert_eq!(staying.overtakes(&moving, 20), Ok(Some(1)));
        assert_eq!(series(&[9, 9, 9]).overtakes(&series(&[9, 9, 9]), 5), Ok(None));
    }
}
