//! Two measurements side by side.

use crate::cell::{Cell, Subject};
use crate::measurement::Measurement;
use crate::stats::Summary;

/// How a cell changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Within what both vary.
    Same,
    /// Faster.
    Better,
    /// Slower.
    Worse,
    /// Only one of the two has a number.
    OneSided,
    /// Neither has.
    Neither,
}

/// A cell of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference<'a> {
    /// What it is about.
    pub subject: &'a Subject,
    /// In the first.
    pub a: Option<&'a Cell>,
    /// In the second.
    pub b: Option<&'a Cell>,
    /// Second over first.
    pub ratio: Option<f64>,
    /// What that means.
    pub change: Change,
}

/// All cells of both, in the order of the first, then what only the second has. A change counts
/// when it is more than 2 % and more than twice what the medians vary.
pub fn diff<'a>(a: &'a Measurement, b: &'a Measurement) -> Vec<Difference<'a>> {
    let only_b = b.cells.iter().filter(|c| a.find(&c.subject).is_none());
    let first = a.cells.iter().map(|c| difference(&c.subject, Some(c), b.find(&c.subject)));
    first.chain(only_b.map(|c| difference(&c.subject, None, Some(c)))).collect()
}

fn difference<'a>(subject: &'a Subject, a: Option<&'a Cell>, b: Option<&'a Cell>) -> Difference<'a> {
    let value = |c: Option<&Cell>| c.and_then(|c| c.value).filter(|v| *v > 0.0);
    let (x, y) = (value(a), value(b));
    let ratio = x.zip(y).map(|(x, y)| y / x);
    let change = match (x, y, ratio) {
        (_, _, Some(ratio)) => {
            let spread = [a, b].into_iter().flatten().filter_map(|c| c.summary.as_ref());
            let spread = spread.map(|s| 2.0 * s.cv_of_median).fold(Summary::NOISY, f64::max);
            let less = a.is_some_and(|c| c.unit.less_is_better());
            match ratio - 1.0 {
                d if d.abs() <= spread => Change::Same,
                d if (d < 0.0) == less => Change::Better,
                _ => Change::Worse,
            }
        }
        (None, None, _) => Change::Neither,
        _ => Change::OneSided,
    };
    Difference { subject, a, b, ratio, change }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Unit;
    use crate::item::{PageSize, Pair};

    fn cell(unit: Unit, samples: &[f64]) -> Cell {
        let subject = Subject::Latency { pair: Pair::new(0, 0), page: PageSize::Small };
        let summary = Summary::of(samples).unwrap();
        Cell::of(subject, unit, summary.median, summary, Vec::new())
    }

    #[test]
    fn a_change_is_judged_by_unit_and_noise() {
        let change = |a: &Cell, b: &Cell| difference(&a.subject, Some(a), Some(b)).change;
        let (fast, slow) = (cell(Unit::Ns, &[100.0; 6]), cell(Unit::Ns, &[110.0; 6]));
        assert_eq!((change(&fast, &slow), change(&slow, &fast)), (Change::Worse, Change::Better));
        let (few, many) = (cell(Unit::MbPerS, &[100.0; 6]), cell(Unit::MbPerS, &[110.0; 6]));
        assert_eq!((change(&few, &many), change(&many, &few)), (Change::Better, Change::Worse));
        assert_eq!(change(&fast, &cell(Unit::Ns, &[101.5; 6])), Change::Same, "2 % are nothing");
        let noisy = cell(Unit::Ns, &[90.0, 120.0, 100.0]);
        assert_eq!(change(&fast, &noisy), Change::Same);
        assert_eq!(change(&noisy, &slow), Change::Same, "10 % are nothing where it varies by that much");
        let absent = Cell::absent(fast.subject.clone(), Unit::Ns, "no", "yes");
        assert_eq!(change(&fast, &absent), Change::OneSided);
        assert_eq!(change(&absent, &absent), Change::Neither);
    }
}
