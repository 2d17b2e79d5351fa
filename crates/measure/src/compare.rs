//! Two measurements side by side.

use crate::cell::{MeasuredCell, Subject};
use crate::measurement::Measurement;
use crate::stats::SampleSummary;

/// How a cell changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellChange {
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
pub struct CellDifference<'a> {
    /// What it is about.
    pub subject: &'a Subject,
    /// In the first.
    pub a: Option<&'a MeasuredCell>,
    /// In the second.
    pub b: Option<&'a MeasuredCell>,
    /// Second over first.
    pub ratio: Option<f64>,
    /// What that means.
    pub change: CellChange,
}

/// All cells of both, in the order of the first, then what only the second has. A change counts
/// when it is more than 2 % and more than twice what the medians vary.
pub fn diff<'a>(a: &'a Measurement, b: &'a Measurement) -> Vec<CellDifference<'a>> {
    let only_b = b.cells.iter().filter(|c| a.find(&c.subject).is_none());
    let first = a.cells.iter().map(|c| difference(&c.subject, Some(c), b.find(&c.subject)));
    first.chain(only_b.map(|c| difference(&c.subject, None, Some(c)))).collect()
}

fn difference<'a>(
    subject: &'a Subject,
    a: Option<&'a MeasuredCell>,
    b: Option<&'a MeasuredCell>,
) -> CellDifference<'a> {
    let value = |c: Option<&MeasuredCell>| c.and_then(|c| c.value).filter(|v| *v > 0.0);
    let (x, y) = (value(a), value(b));
    let ratio = x.zip(y).map(|(x, y)| y / x);
    let change = match (x, y, ratio) {
        (_, _, Some(ratio)) => {
            let spread = [a, b].into_iter().flatten().filter_map(|c| c.summary.as_ref());
            let spread = spread.map(|s| 2.0 * s.cv_of_median).fold(SampleSummary::NOISY, f64::max);
            let less = a.is_some_and(|c| c.unit.less_is_better());
            match ratio - 1.0 {
                d if d.abs() <= spread => CellChange::Same,
                d if (d < 0.0) == less => CellChange::Better,
                _ => CellChange::Worse,
            }
        }
        (None, None, _) => CellChange::Neither,
        _ => CellChange::OneSided,
    };
    CellDifference { subject, a, b, ratio, change }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{NodePair, PageSize};
    use crate::cell::CellUnit;

    fn cell(unit: CellUnit, samples: &[f64]) -> MeasuredCell {
        let subject = Subject::Latency { pair: NodePair::new(0, 0), page: PageSize::Small };
        let summary = SampleSummary::of(samples).unwrap();
        MeasuredCell::of(subject, unit, summary.median, summary, Vec::new())
    }

    #[test]
    fn a_change_is_judged_by_unit_and_noise() {
        let change = |a: &MeasuredCell, b: &MeasuredCell| difference(&a.subject, Some(a), Some(b)).change;
        let (fast, slow) = (cell(CellUnit::Ns, &[100.0; 6]), cell(CellUnit::Ns, &[110.0; 6]));
        assert_eq!((change(&fast, &slow), change(&slow, &fast)), (CellChange::Worse, CellChange::Better));
        let (few, many) = (cell(CellUnit::MbPerS, &[100.0; 6]), cell(CellUnit::MbPerS, &[110.0; 6]));
        assert_eq!((change(&few, &many), change(&many, &few)), (CellChange::Better, CellChange::Worse));
        assert_eq!(change(&fast, &cell(CellUnit::Ns, &[101.5; 6])), CellChange::Same, "2 % are nothing");
        let noisy = cell(CellUnit::Ns, &[90.0, 120.0, 100.0]);
        assert_eq!(change(&fast, &noisy), CellChange::Same);
        assert_eq!(change(&noisy, &slow), CellChange::Same, "10 % are nothing where it varies by that much");
        let absent = MeasuredCell::absent(fast.subject.clone(), CellUnit::Ns, "no", "yes");
        assert_eq!(change(&fast, &absent), CellChange::OneSided);
        assert_eq!(change(&absent, &absent), CellChange::Neither);
    }
}
