//! A measurement: the machine, what was asked, every cell; made by [`measure`], kept as JSON.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::ask::{MeasurePlan, MeasureRequest};
use crate::axes::{Mix, NodeNumber, NodePair, Op, PageSize, Stores};
use crate::cell::{Credibility, MeasuredCell, Subject};
use crate::host::Host;
use crate::item::Visit;
use crate::passes;
use crate::prober::Prober;

/// What the first bytes of a kept measurement say.
const SCHEMA: &str = "homenode/measurement/1";
/// Largest measurement that is read: 16 nodes have about 4 MiB.
const MOST: usize = 64 << 20;

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// `homenode/measurement/1`
    pub schema: String,
    /// Seconds since 1970 when it began.
    pub began: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether somebody stopped it before all was measured.
    pub stopped: bool,
    /// The machine, as it was before.
    pub host: Host,
    /// What was asked for.
    pub ask: MeasureRequest,
    /// The cells, in the order in which they were measured.
    pub cells: Vec<MeasuredCell>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Why a text is no measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON, or not of this form.
    #[error("it is no measurement: {0}")]
    Form(String),
    /// Another version.
    #[error("its schema is '{0}' and {SCHEMA} is read here")]
    Version(String),
    /// More than is read.
    #[error("it has {0} bytes, and at most {MOST} are read")]
    Large(usize),
}

/// Measures what is planned, as often as asked for. `stop` is asked all the time; `done` is told
/// each item with its cells, once it is over, in each pass.
pub fn measure(
    host: &Host,
    ask: &MeasureRequest,
    plan: &MeasurePlan,
    prober: &mut dyn Prober,
    stop: &dyn Fn() -> bool,
    done: &mut dyn FnMut(&Visit, &[MeasuredCell]),
) -> Measurement {
    let start = Instant::now();
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let limit = ask.limit_s.map(Duration::from_secs);
    // Of each cell, what each pass found.
    let mut found: Vec<Vec<MeasuredCell>> = Vec::new();
    for pass in 0..passes_on(host, ask) {
        // A further pass begins only if it can end in time, too.
        let takes = start.elapsed() / pass.max(1);
        if pass > 0 && (stop() || limit.is_some_and(|l| start.elapsed() + takes > l)) {
            break;
        }
        if pass > 0 {
            prober.anew();
        }
        let mut at = 0;
        for item in &plan.items {
            if stop() {
                break;
            }
            let new = if limit.is_some_and(|l| start.elapsed() >= l) {
                vec![item.too_late()]
            } else {
                let new = prober.probe(item, stop);
                done(item, &new);
                new
            };
            for cell in new {
                match found.get_mut(at).filter(|f| f[0].subject == cell.subject) {
                    Some(passes) => passes.push(cell),
                    None if pass == 0 => found.push(vec![cell]),
                    None => {}
                }
                at += 1;
            }
        }
    }
    let mut cells = plan.refused.clone();
    cells.extend(found.into_iter().filter_map(passes::merge));
    let mut notes = host.remarks();
    notes.extend(plan.notes.iter().cloned());
    let stopped = stop();
    if stopped {
        notes.push("it was stopped before everything was measured".into());
    }
    Measurement {
        schema: SCHEMA.into(),
        began,
        seconds: start.elapsed().as_secs_f64(),
        stopped,
        host: host.clone(),
        ask: ask.clone(),
        cells,
        notes,
    }
}

/// How many passes there are at most: what is computed comes out the same each time.
pub const fn passes_on(host: &Host, ask: &MeasureRequest) -> u32 {
    if host.synthetic || ask.passes == 0 { 1 } else { ask.passes }
}

impl Measurement {
    /// One that [`Measurement::to_json`] wrote; also inside of a document that has it under
    /// `measurement`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        if text.len() > MOST {
            return Err(ReadError::Large(text.len()));
        }
        let form = |e: serde_json::Error| ReadError::Form(e.to_string());
        let mut value: serde_json::Value = serde_json::from_str(text).map_err(form)?;
        if let Some(inner) = value.get_mut("measurement") {
            value = inner.take();
        }
        match value.get("schema").and_then(serde_json::Value::as_str) {
            Some(SCHEMA) => serde_json::from_value(value).map_err(form),
            Some(other) => Err(ReadError::Version(other.chars().take(80).collect())),
            None => Err(ReadError::Form("it has no schema".into())),
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Keys are strings and numbers were checked to be finite, so there is nothing that can
        // fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Whether every cell has a number.
    pub fn is_complete(&self) -> bool {
        !self.stopped && self.cells.iter().all(MeasuredCell::is_measured)
    }

    /// How many cells are ok, noisy, failed and absent.
    pub fn tally(&self) -> [usize; 4] {
        let mut tally = [0; 4];
        for cell in &self.cells {
            tally[match cell.verdict {
                Credibility::Ok => 0,
                Credibility::Noisy => 1,
                Credibility::Failed { .. } => 2,
                Credibility::Absent { .. } => 3,
            }] += 1;
        }
        tally
    }

    /// The cell about that.
    pub fn find(&self, subject: &Subject) -> Option<&MeasuredCell> {
        self.cells.iter().find(|c| c.subject == *subject)
    }

    /// Idle latency of a pair in nanoseconds, with the largest pages that were measured: what of it
    /// is the memory's, not the TLB's.
    pub fn latency(&self, pair: NodePair) -> Option<f64> {
        let of = |page| self.find(&Subject::Latency { pair, page })?.value;
        of(PageSize::Huge).or_else(|| of(PageSize::Small))
    }

    /// The most that a pair alone reads, in 10^6 bytes a second; where reading was not measured,
    /// the best loop.
    pub fn bandwidth(&self, pair: NodePair) -> Option<f64> {
        let cells = |only: Option<Op>| {
            self.cells.iter().filter_map(move |c| match &c.subject {
                Subject::Bandwidth { pairs, share: None, op, .. }
                    if pairs[..] == [pair] && only.is_none_or(|o| o == *op) =>
                {
                    c.value
                }
                _ => None,
            })
        };
        cells(Some(Op::Read)).reduce(f64::max).or_else(|| cells(None).reduce(f64::max))
    }

    /// The points of a curve: 10^6 bytes a second that were loaded, nanoseconds; in the order of
    /// the points.
    pub fn curve(&self, pair: NodePair, mix: Mix) -> Vec<(f64, f64)> {
        let points = self.cells.iter().filter_map(|c| match c.subject {
            Subject::Loaded { pair: p, mix: m, .. } if (p, m) == (pair, mix) => {
                Some((*c.more.get("injected_mb_per_s")?, c.value?))
            }
            _ => None,
        });
        points.collect()
    }

    /// The rate of moving pages, in 10^6 bytes a second.
    pub fn migration(&self, from: NodeNumber, to: NodeNumber, page: PageSize) -> Option<f64> {
        self.find(&Subject::Migration { from, to, page })?.value
    }

    /// Triad of a pair alone with regular stores, in 10^6 bytes a second.
    pub fn triad(&self, pair: NodePair, page: PageSize) -> Option<f64> {
        let same = |c: &&MeasuredCell| match &c.subject {
            Subject::Bandwidth {
                pairs,
                share: None,
                op: Op::Triad,
                stores: Stores::Regular,
                page: p,
                ..
            } => pairs[..] == [pair] && *p == page,
            _ => false,
        };
        self.cells.iter().find(same)?.value
    }
}

/// The most bandwidth of a curve at which latency is at most [`KNEE`] times that without load;
/// `None` of a curve without both an idle point and a loaded one. With the second value: whether
/// latency never rose above that.
pub fn knee(curve: &[(f64, f64)]) -> Option<(f64, bool)> {
    let idle = curve.iter().filter(|p| p.0 == 0.0).map(|p| p.1).reduce(f64::min)?;
    let loaded: Vec<_> = curve.iter().filter(|p| p.0 > 0.0).collect();
    let below = |p: &&&(f64, f64)| p.1 <= KNEE * idle;
    let most = loaded.iter().filter(below).map(|p| p.0).reduce(f64::max)?;
    Some((most, loaded.iter().all(|p| p.1 <= KNEE * idle)))
}

/// Where a curve bends: the latency is this many times that of idle memory.
pub const KNEE: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SampleSummary;

    #[test]
    fn the_knee_is_the_last_point_below_the_bound() {
        let curve = [(0.0, 100.0), (1000.0, 105.0), (9000.0, 149.0), (11_000.0, 190.0), (11_500.0, 400.0)];
        assert_eq!(knee(&curve), Some((9000.0, false)));
        assert_eq!(knee(&curve[..3]), Some((9000.0, true)), "it never bent");
        assert_eq!(knee(&curve[1..]), None, "without an idle point");
        assert_eq!(knee(&curve[..1]), None);
    }

    #[test]
    fn what_does_not_begin_in_time_says_so() {
        let machine = homenode_machine::preset("cxl").unwrap();
        let host = Host::like(&machine);
        let ask = MeasureRequest { limit_s: Some(0), ..MeasureRequest::quick() };
        let mut prober = crate::Synthetic::new(&machine);
        let plan = crate::plan(&host, &MeasureRequest::quick());
        let m = measure(&host, &ask, &plan, &mut prober, &|| false, &mut |_, _| {});
        assert!(!m.is_complete() && m.cells.len() == plan.items.len());
        let late = |c: &MeasuredCell| matches!(&c.verdict, Credibility::Absent { remedy, .. } if remedy.contains("--only"));
        assert!(m.cells.iter().all(late));
    }

    #[test]
    fn each_cell_is_of_all_passes() {
        /// Each pass finds more than the one before.
        struct Rising(f64, u32);
        impl Prober for Rising {
            fn probe(&mut self, item: &Visit, _: &dyn Fn() -> bool) -> Vec<MeasuredCell> {
                let mut cells = vec![item.too_late()];
                let summary = SampleSummary::of(&[self.0; 9]).unwrap();
                cells[0] =
                    MeasuredCell::of(cells[0].subject.clone(), cells[0].unit, self.0, summary, Vec::new());
                cells
            }
            fn anew(&mut self) {
                self.0 += 10.0;
                self.1 += 1;
            }
        }
        let host = Host { synthetic: false, ..Host::like(&homenode_machine::preset("cxl").unwrap()) };
        let plan = crate::plan(&host, &MeasureRequest::quick());
        let of = |passes, limit_s| {
            let (ask, mut done) = (MeasureRequest { passes, limit_s, ..MeasureRequest::quick() }, 0);
            let mut prober = Rising(100.0, 0);
            let m = measure(&host, &ask, &plan, &mut prober, &|| false, &mut |_, _| done += 1);
            (m, prober.1, done)
        };
        let (m, again, done) = of(3, None);
        assert_eq!((again, done, m.cells.len()), (2, 3 * plan.items.len(), plan.items.len()));
        for cell in &m.cells {
            let best = matches!(cell.subject, Subject::Bandwidth { .. });
            assert_eq!(cell.value, Some(if best { 120.0 } else { 110.0 }), "{cell:?}");
            assert_eq!((&cell.verdict, cell.summary.unwrap().samples), (&Credibility::Noisy, 27));
        }
        let (m, again, _) = of(1, None);
        assert!(again == 0 && m.cells.iter().all(|c| c.verdict == Credibility::Ok));
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        let refused = |t: &str| Measurement::from_json(t).unwrap_err().to_string();
        assert!(refused("").starts_with("it is no measurement"));
        assert!(refused("{}").contains("no schema"));
        assert!(refused(r#"{"schema": "homenode/measurement/9"}"#).contains("'homenode/measurement/9'"));
        assert!(refused(r#"{"schema": "homenode/measurement/1"}"#).contains("missing field"));
    }
}
