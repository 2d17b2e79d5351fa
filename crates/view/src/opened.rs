//! A recording that was read, and what the page is told of it, and of another beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_dataset::{Dataset, Table as _, tables};
use homenode_report::Report;
use homenode_report::diff::Diff;
use homenode_report::matching::{Pair, pairs};
use homenode_report::objects::ObjectReport;
use homenode_text::{answer, changes};

use crate::findings::{self, Findings};
use crate::model::Model;
use crate::source;
use crate::tiles::build::{Begin, Budget, build_with};
use crate::tiles::pyramid::{Pyramid, PyramidError, Recipe, Writer};

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
    pub report: Report,
    /// What to change in the source; none while it is not known yet.
    pub findings: Option<Findings>,
    /// The folder in which the source lies; none: it is not looked for.
    pub source: Option<PathBuf>,
    /// Its sums at many resolutions; none: finer pictures are drawn from the tables.
    pub pyramid: Option<Arc<Pyramid>>,
}

impl Opened {
    /// Reads all tables. `more` is told of the rows of accesses that were read.
    pub fn read(set: Dataset, more: &mut dyn FnMut(u64)) -> Self {
        let report = Report::watched(&set, more);
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

    /// What a page is told. `more` is told of the rows that were read, and says whether to go on.
    pub fn model(&self, budget: Budget, more: &mut dyn FnMut(u64) -> bool) -> Model {
        let mut none = |_| Err(PyramidError::Damaged("nobody asks for one"));
        self.model_with(budget, &mut none, more).0
    }

    /// As [`Opened::model`], and fills a pyramid in the same pass.
    pub fn model_with(
        &self,
        budget: Budget,
        begin: Begin<'_>,
        more: &mut dyn FnMut(u64) -> bool,
    ) -> (Model, Result<Writer, PyramidError>) {
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
    pub fn complete(&self, model: &mut Model) {
        model.findings.clone_from(&self.findings);
        model.sources = self.source.as_deref().map(|folder| source::of(model, folder)).unwrap_or_default();
    }

    /// Puts what a page is told of another recording beside what it is told of this one.
    pub fn beside(&self, mut model: Model, after: &Self, mut other: Model) -> Model {
        model.stopped |= other.stopped;
        model.changes = changes::answer(&Diff::of(&self.report, &after.report));
        model.changes.truncate(LINES);
        let number = |o: &ObjectReport| o.object.map(|o| o.0);
        let of = |side: &Model| side.objects.iter().map(|o| o.report.clone()).collect::<Vec<_>>();
        let (mine, others) = (of(&model), of(&other));
        let pair =
            |(before, after, _): &Pair| Some([number(&mine[(*before)?])?, number(&others[(*after)?])?]);
        model.pairs = pairs(&mine, &others).iter().filter_map(pair).collect();
        model.pairs.sort_unstable();
        model.label = format!("BEFORE: {}", side(&model));
        other.label = format!("AFTER: {}", side(&other));
        model.against = Some(Box::new(other));
        model
    }
}

/// What is being done, and how much of it, in thousandths; says whether to go on.
pub type Watch<'a> = &'a mut dyn FnMut(&str, Option<u64>) -> bool;

/// Begins the pyramid of a data set.
pub type BeginOf<'a> = &'a mut dyn FnMut(&Dataset, Recipe) -> Result<Writer, PyramidError>;

/// Recordings that were read.
pub struct Loaded {
    /// What the page is told.
    pub model: Model,
    /// The recordings.
    pub opened: Vec<Opened>,
    /// The pyramid of each recording, as far as it was filled.
    pub pyramids: Vec<Result<Writer, PyramidError>>,
}

/// Reads recordings, and draws what the page is told of them: of one, or of two on the same axes.
/// Nothing if `watch` asks to stop.
pub fn load(
    sets: Vec<Dataset>,
    source: Option<&Path>,
    budget: Budget,
    begin: BeginOf<'_>,
    watch: Watch<'_>,
) -> Option<Loaded> {
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
    Some(Loaded { model, opened, pyramids })
}

/// What a recording is, in a few words.
fn side(model: &Model) -> String {
    let s = &model.summary;
    let command = homenode_text::human::elided(&s.command.join(" "), COLUMNS / 2);
    let facts = [Some(command), s.policy.clone(), Some(s.machine.clone())];
    let facts: Vec<String> = facts.into_iter().flatten().filter(|f| !f.is_empty()).collect();
    facts.join(" · ")
}
