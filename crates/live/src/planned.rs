//! A plan that a run follows.

use std::path::Path;

use homenode_error::{Error, Result};
use homenode_plan::file::PlanFile;
use homenode_plan::threads::{self, Fit};
use homenode_runtime::nodes::Nodes;

/// A plan that fits this run.
#[derive(Clone, Debug)]
pub struct FittingPlan {
    pub(crate) plan: PlanFile,
    pub(crate) threads: usize,
    pub(crate) fit: Fit,
}

impl FittingPlan {
    /// Reads a plan for a run of this many threads; `None`: as the environment or the plan says.
    ///
    /// # Errors
    /// The file is no plan, or does not serve this run.
    pub fn read(path: &Path, threads: Option<u32>) -> Result<Self> {
        let plan = PlanFile::read(path)?;
        threads::fit_ranks(&plan)?;
        let n = threads::of_run(threads, &plan);
        let fit = threads::fit(&plan, n)?;
        Ok(Self { plan, threads: n, fit })
    }

    /// Every node of the plan has memory here.
    pub(crate) fn check_nodes(&self, nodes: &Nodes) -> Result<()> {
        match self.plan.nodes.iter().find(|n| !nodes.has_memory(**n)) {
            None => Ok(()),
            Some(n) => Err(Error::usage(format!(
                "the plan is for {} with {} nodes, and node {n} has no memory here",
                self.plan.machine,
                self.plan.nodes.len()
            ))
            .hint("plan anew for this machine: homenode plan REC")),
        }
    }
}
