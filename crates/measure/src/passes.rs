//! One cell of several passes over a measurement.
//!
//! Samples that follow each other say how steady a number is while it is measured, and nothing of
//! what differs when memory lies elsewhere, or a second later. So everything is measured several
//! times, from the beginning, with memory placed anew, and the passes' medians are compared, too.

use crate::cell::{Credibility, MeasuredCell, Subject};
use crate::stats::SampleSummary;

/// One cell of a cell's passes, of which there is at least one: of bandwidths the best pass, of
/// times the one in the middle (the lower of two), with all proofs. A pass that fails its check
/// fails the cell; one that was not finished does not count.
pub(crate) fn merge(mut passes: Vec<MeasuredCell>) -> Option<MeasuredCell> {
    if let Some(failed) = passes.iter().position(|c| matches!(c.verdict, Credibility::Failed { .. })) {
        return Some(passes.swap_remove(failed));
    }
    if passes.iter().filter(|c| c.is_measured()).count() < 2 {
        let measured = passes.iter().position(MeasuredCell::is_measured);
        return (!passes.is_empty()).then(|| passes.swap_remove(measured.unwrap_or(0)));
    }
    passes.retain(MeasuredCell::is_measured);
    let summary = SampleSummary::of_passes(&passes.iter().filter_map(|c| c.summary).collect::<Vec<_>>());
    let proof = passes.iter_mut().flat_map(|c| std::mem::take(&mut c.proof)).collect();
    passes.sort_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
    let best = matches!(passes[0].subject, Subject::Bandwidth { .. });
    let chosen = passes.swap_remove(if best { passes.len() - 1 } else { (passes.len() - 1) / 2 });
    let verdict = match summary {
        Some(s) if s.is_noisy() => Credibility::Noisy,
        _ => chosen.verdict.clone(),
    };
    Some(MeasuredCell { summary: summary.or(chosen.summary), proof, verdict, ..chosen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{NodeNumber, NodePair, PageSize};
    use crate::cell::CellUnit;

    fn latency(samples: &[f64]) -> MeasuredCell {
        let pair = NodePair { cpu: NodeNumber(0), memory: NodeNumber(0) };
        let subject = Subject::Latency { pair, page: PageSize::Small };
        let summary = SampleSummary::of(samples).unwrap();
        MeasuredCell::of(subject, CellUnit::Ns, summary.median, summary, Vec::new())
    }

    #[test]
    fn passes_that_differ_make_a_cell_noisy() {
        let (low, high, middle) = (latency(&[100.0; 9]), latency(&[110.0; 9]), latency(&[101.0; 9]));
        assert!([&low, &high].iter().all(|c| c.verdict == Credibility::Ok));
        let cell = merge(vec![low.clone(), high.clone(), middle.clone()]).unwrap();
        assert_eq!((cell.value, cell.verdict), (Some(101.0), Credibility::Noisy));
        let summary = cell.summary.unwrap();
        assert_eq!((summary.samples, summary.min, summary.median, summary.max), (27, 100.0, 101.0, 110.0));
        let cell = merge(vec![low.clone(), middle]).unwrap();
        assert_eq!((cell.value, cell.verdict), (Some(100.0), Credibility::Ok));
        assert_eq!(merge(vec![low.clone()]), Some(low));
    }

    #[test]
    fn a_pass_that_fails_fails_the_cell_and_one_that_is_missing_does_not() {
        let good = latency(&[100.0; 9]);
        let failed =
            MeasuredCell::failed(good.subject.clone(), CellUnit::Ns, "a page is elsewhere", Vec::new());
        let absent = MeasuredCell::absent(good.subject.clone(), CellUnit::Ns, "stopped", "let it run");
        assert_eq!(merge(vec![good.clone(), failed.clone()]), Some(failed));
        assert_eq!(merge(vec![good.clone(), absent.clone()]), Some(good.clone()));
        assert_eq!(merge(vec![absent, good.clone()]), Some(good));
        assert_eq!(merge(Vec::new()), None);
    }
}
