//! `homenode plan`: the best static placement for the next run.

use std::path::{Path, PathBuf};

use homenode_error::Result;
use homenode_launch::folder::Folder;
use homenode_plan::choose::{NextMachine, choose};
use homenode_schemes as schemes;
use homenode_text::planned;

use crate::args::plan::PlanArgs;
use crate::exit::Exit;
use crate::open::recording;
use crate::output::say;
use crate::tables;
use crate::task::Terminal;

impl PlanArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        self.output.check(&planned::columns())?;
        let target = NextMachine::of(&self.machine, self.pretend_nodes)?;
        let page = schemes::page_size(&target.topology, None)?;
        tables::refuse(&self.recording, "plan from")?;
        let recording = recording(&self.recording, "plan from")?;
        let approximate = schemes::fit(&target.topology, recording.meta.filter_lines)?;
        let folder = Folder::new("plan", None)?;
        let chosen = choose(recording, &self.schedules, &target, page, &folder.path, &task)?;
        let path = self.path();
        chosen.plan.write(&path)?;
        if !self.quiet {
            say(format_args!("plan: {} ({} objects)", path.display(), chosen.plan.objects.len()));
        }
        let mut table = planned::table(&chosen, &target, self.top, !self.schedules.is_empty());
        if let Some(why) = approximate {
            table.note(format!("approximate: {why}"));
        }
        let whole = chosen.lacking.is_empty();
        chosen.lacking.into_iter().for_each(|w| table.warn(w));
        let exit = self.output.print(&table)?;
        Ok(if !whole && exit == Exit::Done { Exit::Partial } else { exit })
    }

    fn path(&self) -> PathBuf {
        self.file.clone().unwrap_or_else(|| {
            let name = self.recording.file_name().map_or(Path::new("plan"), Path::new);
            name.with_extension("hnplan")
        })
    }
}
