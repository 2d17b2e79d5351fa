//! `homenode doctor`.

use homenode_doctor::judge::{self, Judgement};
use homenode_doctor::{app, probe};
use homenode_error::{Context, Result};
use homenode_launch::{places, program::find};
use homenode_table::{Cell, Column, Table};

use crate::args::doctor::DoctorArgs;
use crate::exit::Exit;
use crate::output::to_stdout;

impl DoctorArgs {
    pub(super) fn run(self) -> Result<Exit> {
        if self.probe {
            let found = serde_json::to_string(&probe::here()).context(|| "cannot write JSON".into())?;
            to_stdout(&found)?;
            return Ok(Exit::Done);
        }
        let program = self.app.first().map(|name| find(name)).transpose()?;
        let found = probe::in_child(&places::own_command()?)?;
        let of_app = program.as_deref().map(app::look).map_or_else(Vec::new, |a| app::judge(&a));
        let (verdict, moves) = judge::run(&found, &of_app);
        let mut table = Table::new(
            "doctor",
            1,
            vec![
                Column::text("what", "what"),
                Column::text("state", "state"),
                Column::text("found", "found"),
                Column::text("change", "what to change").below(),
            ],
        )
        .of_sentences();
        table.fact("run", Cell::text(verdict.clone()));
        table.answer(verdict);
        for f in judge::findings(&found).iter().chain(&of_app) {
            table.row(row(f));
        }
        let printed = self.output.print(&table)?;
        Ok(if printed == Exit::Done && !moves { Exit::Partial } else { printed })
    }
}

fn row(f: &Judgement) -> Vec<Cell> {
    [f.topic, f.state.word(), &f.text, &f.remedy].map(Cell::text).into()
}
