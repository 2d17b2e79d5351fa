//! `homenode doctor`.

use crate::args::doctor::DoctorArgs;
use crate::doctor::judge::{self, Finding};
use crate::doctor::{app, probe};
use crate::error::{Context, Result};
use crate::exit::Exit;
use crate::output::to_stdout;
use crate::recorder::program::find;
use crate::table::{Cell, Column, Table};

impl DoctorArgs {
    pub(super) fn run(self) -> Result<Exit> {
        if self.probe {
            let found = serde_json::to_string(&probe::here()).context(|| "cannot write JSON".into())?;
            to_stdout(&found)?;
            return Ok(Exit::Done);
        }
        let program = self.app.first().map(|name| find(name)).transpose()?;
        let found = probe::in_child()?;
        let of_app = program.as_deref().map(app::look).map_or_else(Vec::new, |a| app::judge(&a));
        let (verdict, exit) = judge::run(&found, &of_app);
        let mut table = Table::new(
            "doctor",
            1,
            vec![
                Column::text("what", "what"),
                Column::text("state", "state"),
                Column::text("found", "found"),
                Column::text("change", "what to change"),
            ],
        );
        table.fact("run", Cell::text(verdict.clone()));
        for f in judge::findings(&found).iter().chain(&of_app) {
            table.row(row(f));
        }
        table.note(verdict);
        let printed = self.output.print(&table)?;
        Ok(if printed == Exit::Done { exit } else { printed })
    }
}

fn row(f: &Finding) -> Vec<Cell> {
    [f.topic, f.state.word(), &f.text, &f.remedy].map(Cell::text).into()
}
