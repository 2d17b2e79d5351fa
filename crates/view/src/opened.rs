//! A recording that was read, and the page's model of it, and of another beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_dataset::{Dataset, TableRow as _, tables};
use homenode_report::RecordingReport;
use homenode_report::diff::Diff;
use homenode_report::matching::{MatchedPair, pairs};
use homenode_report::objects::ObjectReport;
use homenode_text::{answer, changes};

use crate::findings::{self, Findings};
use crate::model::PageModel;
use crate::source;
use crate::tiles::build::{Begin, PyramidBudget, build_with};
use crate::tiles::pyramid::{Pyramid, PyramidError, PyramidWriter, Recipe};

/// Columns of the first lines on the page.
const COLUMNS: usize = 80;
/// Most lines of the answer.
const LINES: usize = 3;

/// A recording whose tables were read once.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its tables.
    pub set: Dataset,
    /// What they tell.
    pub report: RecordingReport,
    /// What to change in the source; none while it is not known yet.
    pub findings: Option<Findings>,
    /// The folder in which the source lies; none: it is not looked for.
    pub source: Option<PathBuf>,
    /// Its sums at many resolutions; none: finer pictures are drawn from the tables.
    pub pyramid: Option<Arc<Pyramid>>,
}

impl Opened {
    /// Reads all tables. `more` gets the number of rows of accesses read so far.
    pub fn read(set: Dataset, more: &mut dyn FnMut(u64)) -> Self {
        let report = RecordingReport::watched(&set, more);
        Self { set, report, findings: None, source: None, pyramid: None }
    }

    /// The same with the findings that follow from the data set alone. `command`: the program as a
    /// person types it.
    #[must_use]
    pub fn explained(mut self, command: &str) -> Self {
        self.findings = Some(findings::of(&self.set, command, &mut |_| true));
        self
    }

    /// Rows of accesses, as far as the data set knows.
    pub fn rows(&self) -> u64 {
        self.set.meta().rows.get(tables::Access::NAME).copied().unwrap_or(0)
    }

    /// The page's model. `more` gets the number of rows read so far, and says whether to go on.
    pub fn model(&self, budget: PyramidBudget, more: &mut dyn FnMut(u64) -> bool) -> PageModel {
        let mut none = |_| Err(PyramidError::Damaged("nobody asks for one"));
        self.model_with(budget, &mut none, more).0
    }

    /// As [`Opened::model`], and fills a pyramid in the same pass.
    pub fn model_with(
        &self,
        budget: PyramidBudget,
        begin: Begin<'_>,
        more: &mut dyn FnMut(u64) -> bool,
    ) -> (PageModel, Result<PyramidWriter, PyramidError>) {
        let (mut model, pyramid) = build_with(&self.set, &self.report, budget, begin, more);
        model.answer = answer::lines(&self.report, COLUMNS);
        let missing = answer::partial(&self.report.summary);
        if !missing.is_empty() {
            model.answer.insert(0, missing.trim_end().to_owned());
            model.answer.truncate(LINES);
        }
        self.complete(&mut model);
        (model, pyramid)
    }

    /// Adds what became known after the pictures were drawn: the findings, and the source beside
    /// them.
    pub fn complete(&self, model: &mut PageModel) {
        model.findings.clone_from(&self.findings);
        let around = |folder| source::around(&model.places(), folder);
        model.sources = self.source.as_deref().map(around).unwrap_or_default();
    }

    /// Puts the page's model of another recording beside the model of this one.
    pub fn beside(&self, mut model: PageModel, after: &Self, mut other: PageModel) -> PageModel {
        model.stopped |= other.stopped;
        model.changes = changes::answer(&Diff::of(&self.report, &after.report));
        model.changes.truncate(LINES);
        let number = |o: &ObjectReport| o.object.map(|o| o.0);
        let of = |side: &PageModel| side.objects.iter().map(|o| o.report.clone()).collect::<Vec<_>>();
        let (mine, others) = (of(&model), of(&other));
        let pair = |(before, after, _): &MatchedPair| {
            Some([number(&mine[(*before)?])?, number(&others[(*after)?])?])
        };
        model.pairs = pairs(&mine, &others).iter().filter_map(pair).collect();
        model.pairs.sort_unstable();
        model.label = format!("BEFORE: {}", side(&model));
        other.label = format!("AFTER: {}", side(&other));
        model.against = Some(Box::new(other));
        model
    }
}

/// What is being done, and how much of it, in thousandths; says whether to go on.
pub type ProgressHook<'a> = &'a mut dyn FnMut(&str, Option<u64>) -> bool;

/// Begins the pyramid of a data set.
pub type BeginOf<'a> = &'a mut dyn FnMut(&Dataset, Recipe) -> Result<PyramidWriter, PyramidError>;

/// Recordings that were read.
pub struct OpenedRecordings {
    /// What the page is told.
    pub model: PageModel,
    /// The recordings.
    pub opened: Vec<Opened>,
    /// The pyramid of each recording, as far as it was filled.
    pub pyramids: Vec<Result<PyramidWriter, PyramidError>>,
}

/// Reads one recording, or two for the same axes, and makes the page's model of them.
/// Nothing if `watch` asks to stop.
pub fn load(
    sets: Vec<Dataset>,
    source: Option<&Path>,
    budget: PyramidBudget,
    begin: BeginOf<'_>,
    watch: ProgressHook<'_>,
) -> Option<OpenedRecordings> {
    let per_mille = |done: u64, all: u64| (all > 0).then(|| done.saturating_mul(1000) / all);
    let mut opened = Vec::new();
    for set in sets {
        let rows = set.meta().rows.get(tables::Access::NAME).copied().unwrap_or(0);
        let mut on = true;
        let mut one = Opened::read(set, &mut |read| on &= watch("reading the tables", per_mille(read, rows)));
        if !on {
            return None;
        }
        one.source = source.map(Path::to_owned);
        opened.push(one);
    }
    let rows: u64 = opened.iter().map(Opened::rows).sum();
    let budget = if opened.len() > 1 { budget.halved() } else { budget };
    let (mut models, mut pyramids, mut before) = (Vec::new(), Vec::new(), 0);
    for one in &opened {
        let mut draw = |read: u64| watch("drawing the pictures", per_mille(before + read, rows));
        let (model, pyramid) = one.model_with(budget, &mut |recipe| begin(&one.set, recipe), &mut draw);
        if model.stopped {
            return None;
        }
        models.push(model);
        pyramids.push(pyramid);
        before += one.rows();
    }
    let mut models = models.into_iter();
    let mut model = models.next()?;
    if let (Some(other), [before, after, ..]) = (models.next(), &opened[..]) {
        model = before.beside(model, after, other);
    }
    Some(OpenedRecordings { model, opened, pyramids })
}

/// What a recording is, in a few words.
fn side(model: &PageModel) -> String {
    let s = &model.summary;
    let command = homenode_text::human::elided(&s.command.join(" "), COLUMNS / 2);
    let facts = [Some(command), s.policy.clone(), Some(s.machine.clone())];
    let facts: Vec<String> = facts.into_iter().flatten().filter(|f| !f.is_empty()).collect();
    facts.join(" · ")
}
