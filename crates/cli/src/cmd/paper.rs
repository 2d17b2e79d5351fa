//! `homenode paper`: the papers' tables, theirs beside ours.

use std::sync::Arc;

use homenode_error::Result;
use homenode_launch::folder::Folder;
use homenode_papers::lof::{Lof, Settings};
use homenode_papers::robertson::{self, Robertson};
use homenode_papers::tao::{self, Tao};
use homenode_schemes as schemes;

use crate::args::paper::{PaperArgs, What};
use crate::exit::Exit;
use crate::task::Terminal;

impl PaperArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        let robertson = [What::RobertsonFig2, What::RobertsonTable1, What::RobertsonTable2];
        if robertson.contains(&self.what) {
            return self.robertson(&task);
        }
        let folder = Folder::new("paper", self.keep.as_deref())?;
        let workers = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.jobs.map_or_else(workers, usize::from);
        if [What::TaoTable1, What::TaoFig2].contains(&self.what) {
            let machine = schemes::machine(self.machine.as_deref().unwrap_or(tao::MACHINE))?;
            let settings = tao::Settings { programs: self.programs, machine: Arc::new(machine.topology) };
            let tao = Tao::new(settings, folder.path.clone(), workers, &task);
            let table = if self.what == What::TaoTable1 { tao.table1() } else { tao.figure2() }?;
            return self.output.print(&table);
        }
        let machine = if self.what == What::LofFig3 { "wildfire" } else { "sf15k" };
        let lof = Lof::new(
            Settings { class: self.class, iterations: self.iterations, programs: self.programs },
            machine,
            folder.path.clone(),
            workers,
            &task,
        )?;
        let table = match self.what {
            What::LofTable1 => lof.table1(),
            What::LofTable2 => lof.table2(),
            What::LofTable3 => lof.table3(),
            What::LofFig1 => lof.figure("lof-fig1", &["NAS-CG", "NAS-MG"]),
            What::LofFig2 => lof.figure("lof-fig2", &["I-CG", "I-MG"]),
            What::LofFig3 => lof.figure3(),
            What::LofFit => lof.fit(),
            // Answered above.
            What::RobertsonFig2 | What::RobertsonTable1 | What::RobertsonTable2 => return Ok(Exit::Done),
            What::TaoTable1 | What::TaoFig2 => return Ok(Exit::Done),
        }?;
        self.output.print(&table)
    }

    /// What is measured here, not simulated.
    fn robertson(&self, task: &Terminal) -> Result<Exit> {
        let machine = self.machine.as_deref().map(schemes::machine).transpose()?;
        let machine = machine.as_ref();
        let buffer = self.buffer.map(|b| b.0);
        let on = || Robertson::new(machine, buffer, task);
        let table = match self.what {
            What::RobertsonFig2 => on()?.figure2(),
            What::RobertsonTable1 => on()?.table1(),
            _ => robertson::table2(machine, self.runs, task),
        }?;
        let printed = self.output.print(&table)?;
        let stopped = printed == Exit::Done && task.interrupt.asked();
        Ok(if stopped { Exit::Partial } else { printed })
    }
}
