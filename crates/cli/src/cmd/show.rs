//! `homenode show`: what is remote in a recording, which arrays, who touched them first, where they
//! live.

mod dataset;

use homenode_error::Result;

use crate::args::show::ShowArgs;
use crate::exit::Exit;
use crate::open::{Simulation, open};
use crate::task::Terminal;
pub(super) use dataset::{columns as columns_of, json as json_of};

impl ShowArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let how =
            Simulation { machine: self.machine.as_deref(), policy: self.policy.as_deref(), page: self.page };
        let set = open(&self.recording, &how, &Terminal::watching(self.quiet)?)?;
        dataset::run(&self, &set)
    }
}
