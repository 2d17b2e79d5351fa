//! Shows recordings: reads them, draws the page, explains, and serves the page or writes it to a
//! file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use homenode_dataset::{Dataset, TableRow as _, tables};
use homenode_error::{Context as _, Error, Result};
use homenode_model::Bytes;
use homenode_task::{Progress, Task};

use crate::cache::{self, Drawn};
use crate::findings::Findings;
use crate::glance::first_look;
use crate::model::PageModel;
use crate::opened::{Opened, OpenedRecordings, load};
use crate::page;
use crate::server::{ServedContent, ServedPage, Server};
use crate::tiles::build::PyramidBudget;
use crate::tiles::pyramid::PyramidError;

/// Bytes of accesses above which progress is shown on the terminal.
const LARGE: u64 = 64 << 20;

/// Gets the number of rows of accesses that were read, in two passes over the table. Says whether
/// to go on.
pub type More<'a> = &'a mut dyn FnMut(u64) -> bool;

/// What is done while nothing else is to be said.
const EXPLAINING: &str = "looking for what to change in the source";

/// What is done while sums are made from which finer pictures are drawn.
const FINER: &str = "preparing finer pictures";

/// What is to be shown.
pub struct JobView<'a> {
    /// The recording, and one beside it if there is one.
    pub sets: Vec<Dataset>,
    /// The folder in which the source lies; none: it is not looked for.
    pub source: Option<&'a Path>,
    /// What to change in the source of a recording.
    pub explain: &'a (dyn Fn(&Dataset, More<'_>) -> Findings + Sync),
    /// Who watches.
    pub task: &'a (dyn Task + Sync),
}

impl JobView<'_> {
    /// Serves the page until somebody asks to stop. The page is there at once, and says how far it
    /// is.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn serve(self, server: Server) -> Result<()> {
        let command = self.sets.first().map(|set| set.meta().command.clone()).unwrap_or_default();
        let site = Arc::new(ServedContent::empty(&command, "reading the tables"));
        let task = self.task;
        let failed = Mutex::new(None);
        let failure = || failed.lock().unwrap_or_else(PoisonError::into_inner);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Err(e) = self.fill(&site) {
                    *failure() = Some(e);
                }
            });
            server.run(&site, &|| task.stop_asked() || failure().is_some());
        });
        failure().take().map_or(Ok(()), Err)
    }

    /// Shows a first look, then the pictures, then what to change: that takes longer where fixes
    /// are simulated.
    fn fill(mut self, site: &ServedContent) -> Result<()> {
        let wrong = || "cannot write the page".into();
        if let [set] = &self.sets[..]
            && let Some((shown, drawn)) = cache::load(set, self.source)
        {
            let shown = Arc::new(shown);
            site.show_shared(Arc::clone(&shown));
            self.kept_pyramid(set, &shown, &drawn, site);
            site.tell(|p| (p.doing, p.done) = (String::new(), None));
            return Ok(());
        }
        if let [set] = &self.sets[..]
            && let Some((model, opened)) = first_look(set, self.source)
        {
            site.show(ServedPage::new(&model, &[opened]).context(wrong)?);
        }
        let mut watch = watch(&self.sets, self.task);
        let sets = std::mem::take(&mut self.sets);
        let mut tell = |doing: &str, done| {
            site.tell(|p| (p.doing, p.done) = (doing.to_owned(), done));
            watch(doing, done)
        };
        let loaded = load(sets, self.source, PyramidBudget::SERVER, &mut cache::begin, &mut tell);
        let Some(OpenedRecordings { mut model, mut opened, pyramids }) = loaded else { return Ok(()) };
        for (one, pyramid) in opened.iter_mut().zip(pyramids) {
            let mut more = |done| tell(FINER, Some(done));
            match pyramid.and_then(|p| cache::finish(&one.set, p, &mut more)) {
                Ok(pyramid) => one.pyramid = Some(Arc::new(pyramid)),
                Err(PyramidError::Stopped) => return Ok(()),
                Err(e) => self.without_pyramid(&e),
            }
        }
        site.tell(|p| (p.doing, p.done) = (EXPLAINING.into(), None));
        site.show(ServedPage::new(&model, &opened).context(wrong)?);
        self.explain(&mut model, &mut opened, &mut tell);
        if self.task.stop_asked() {
            // What is not complete is not kept.
            return Ok(());
        }
        site.show(ServedPage::new(&model, &opened).context(wrong)?);
        if let [opened] = &opened[..]
            && cache::is_worth(&opened.set)
            && let Err(e) = cache::save(opened, &model)
        {
            self.task.remark(&format_args!("the pictures are not kept for the next time: {e}"));
        }
        site.tell(|p| p.doing.clear());
        Ok(())
    }

    /// Opens the pyramid of pictures that were kept, or makes it anew.
    fn kept_pyramid(&self, set: &Dataset, shown: &ServedPage, drawn: &Drawn, site: &ServedContent) {
        if let Some(pyramid) = cache::pyramid(set) {
            return shown.draw_from(pyramid);
        }
        let rows = set.meta().rows.get(tables::Access::NAME).copied().unwrap_or(0);
        let mut watch = watch(std::slice::from_ref(set), self.task);
        let built = cache::build(set, drawn, &mut |read| {
            let done = (rows > 0).then(|| (u128::from(read) * 1000 / u128::from(rows)).min(1000) as u64);
            site.tell(|p| (p.doing, p.done) = (FINER.to_owned(), done));
            watch(FINER, done)
        });
        match built {
            Ok(Some(pyramid)) => shown.draw_from(pyramid),
            Ok(None) => {}
            Err(e) => self.without_pyramid(&e),
        }
    }

    fn without_pyramid(&self, why: &PyramidError) {
        let text = "each finer picture reads the tables, which takes long for a large recording";
        self.task.remark(&format_args!("{text}: {} cannot be written: {why}", cache::PYRAMID));
    }

    /// Adds what to change. Of a recording beside, that needs a data set of its own: one that was
    /// simulated is of the same program.
    fn explain(
        &self,
        model: &mut PageModel,
        opened: &mut [Opened],
        watch: &mut dyn FnMut(&str, Option<u64>) -> bool,
    ) {
        for (side, opened) in opened.iter_mut().enumerate() {
            let model = if side == 0 { Some(&mut *model) } else { model.against.as_deref_mut() };
            if let Some(model) = model.filter(|_| side == 0 || opened.set.path().is_some()) {
                let rows = opened.rows().saturating_mul(2);
                let mut more = |read: u64| {
                    let done =
                        (rows > 0).then(|| (u128::from(read) * 1000 / u128::from(rows)).min(1000) as u64);
                    watch(EXPLAINING, done)
                };
                opened.findings = Some((self.explain)(&opened.set, &mut more));
                opened.complete(model);
            }
        }
    }

    /// Writes the page to a file. Returns its size, and what the recordings lack, a sentence each.
    ///
    /// # Errors
    /// The file cannot be written; somebody asked to stop.
    pub fn write(mut self, file: &Path) -> Result<(Bytes, Vec<String>)> {
        let mut watch = watch(&self.sets, self.task);
        let sets = std::mem::take(&mut self.sets);
        let mut none = |_: &Dataset, _| Err(PyramidError::Damaged("a file draws nothing finer"));
        let loaded = load(sets, self.source, PyramidBudget::FILE, &mut none, &mut watch);
        let Some(OpenedRecordings { mut model, mut opened, .. }) = loaded else {
            return Err(Error::interrupted());
        };
        self.explain(&mut model, &mut opened, &mut watch);
        if self.task.stop_asked() {
            return Err(Error::interrupted());
        }
        let bytes = page::save(&mut model, file)
            .context(|| format!("cannot write {}", file.display()))
            .map_err(|e| e.hint("name a file in a folder where you may write: -o FILE"))?;
        let missing = opened.iter().flat_map(|o| &o.report.summary.missing);
        Ok((bytes, missing.map(ToString::to_string).collect()))
    }
}

/// Progress on the terminal, of large recordings alone.
fn watch<'a>(
    sets: &[Dataset],
    task: &'a (dyn Task + Sync),
) -> impl FnMut(&str, Option<u64>) -> bool + use<'a> {
    let large = sets.iter().any(|set| set.size_of(tables::Access::NAME) > LARGE);
    let mut bar: Option<(String, u64, Box<dyn Progress>)> = None;
    move |doing, done| {
        if large && let Some(done) = done {
            if bar.as_ref().is_none_or(|(of, ..)| of != doing) {
                bar.take().into_iter().for_each(|(_, _, old)| old.finish());
                bar = Some((doing.to_owned(), 0, task.progress(doing, Some(1000))));
            }
            if let Some((_, before, bar)) = &mut bar {
                bar.advance(done.saturating_sub(*before));
                *before = done;
            }
        }
        !task.stop_asked()
    }
}
