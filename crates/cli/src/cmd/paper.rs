//! `homenode paper`: the papers' tables, theirs beside ours.

use homenode_error::{Error, Result};
use homenode_launch::folder::Folder;
use homenode_papers::ask::Ask;
use homenode_papers::catalogue::{self, Entry};
use homenode_papers::report;

use crate::args::paper::PaperArgs;
use crate::exit::Exit;
use crate::task::Terminal;

impl PaperArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let is = |word: &str| self.what.eq_ignore_ascii_case(word);
        if is("list") {
            return self.output.print(&catalogue::list());
        }
        let entry = if is("all") { None } else { Some(Entry::find(&self.what)?) };
        if entry.is_some() && !self.pages.is_empty() {
            return Err(
                Error::usage("-o is for 'paper all'").hint("--json or --csv prints one table for programs")
            );
        }
        let task = Terminal::watching(self.quiet)?;
        let folder = Folder::new("paper", self.keep.as_deref())?;
        let workers = || std::thread::available_parallelism().map_or(1, usize::from);
        let ask = Ask {
            programs: self.programs,
            class: self.class,
            iterations: self.iterations,
            processors: self.processors,
            machine: self.machine,
            buffer: self.buffer.map(|b| b.0),
            runs: self.runs,
            small: self.small,
            ..Ask::usual(folder.path.clone(), self.jobs.map_or_else(workers, usize::from))
        };
        let Some(entry) = entry else {
            self.pages.iter().try_for_each(|page| report::Page::of(page).map(drop))?;
            let results = self.keep.map_or_else(report::folder, Ok)?;
            let report = report::all(&ask, &results, &task)?;
            self.pages.iter().try_for_each(|page| report.write(page))?;
            let printed = self.output.print(&report.summary())?;
            return Ok(if report.partial && printed == Exit::Done { Exit::Partial } else { printed });
        };
        let printed = self.output.print(&entry.run(&ask, &task)?.into_table())?;
        let stopped = printed == Exit::Done && task.interrupt.asked();
        Ok(if stopped { Exit::Partial } else { printed })
    }
}
