//! Whether a plan serves a run of another number of threads, as far as is known before it starts,
//! or of ranks.

use std::env;

use homenode_error::{Error, Result};
use homenode_runtime::driver::team_size;

use super::file::PlanFile;

/// What becomes of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is for this number of threads.
    Same,
    /// It holds for this number, too: a sentence that says so.
    Scaled(String),
}

/// Whether `plan` serves a run of `threads`.
///
/// # Errors
/// It does not; says why and what to do.
pub fn fit(plan: &PlanFile, threads: usize) -> Result<Fit> {
    let planned = plan.threads.len();
    match team_size::fit(&plan.threads, threads) {
        team_size::TeamFit::Same => Ok(Fit::Same),
        team_size::TeamFit::Scaled(nodes) => Ok(Fit::Scaled(format!(
            "the plan is for {planned} threads and this run has {threads}: scaled, for each of {nodes} nodes has the same \
             share of them (that holds for static schedules)"
        ))),
        team_size::TeamFit::Refused => Err(Error::usage(format!(
            "the plan is for {planned} threads, and this run has {threads}: refused"
        ))
        .tried(
            "scale it: the nodes' shares of the threads would be others, and with them each thread's pages",
        )
        .hint(format!("run with --threads {planned}, or record with {threads} threads and plan anew"))),
    }
}

/// How many ranks there are, as launchers tell each of theirs. What a batch job has room for
/// (`SLURM_NTASKS`, `SLURM_NPROCS`) is not among them: a program that its script starts is one
/// process of one. `srun` tells those that it starts.
const RANKS: &[&str] = &[
    "JSM_NAMESPACE_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "PALS_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
];

/// Of how many ranks this process is one.
fn ranks(variable: &dyn Fn(&str) -> Option<String>) -> u32 {
    // One launcher may start another on each node: whoever tells of most has started the ranks.
    RANKS.iter().filter_map(|name| variable(name)?.trim().parse().ok()).max().unwrap_or(1)
}

/// Refuses a plan for one process where a launcher starts several.
///
/// # Errors
/// A job of another number of processes than the plan has.
pub fn fit_ranks(plan: &PlanFile) -> Result<()> {
    fit_to(plan, ranks(&|name| env::var(name).ok()))
}

fn fit_to(plan: &PlanFile, ranks: u32) -> Result<()> {
    if ranks == plan.ranks {
        return Ok(());
    }
    Err(Error::usage(format!("the plan is for {} processes, and this job has {ranks}: refused", plan.ranks))
        .hint("a plan holds for one process: run the others without --plan"))
}

/// Threads that a run will have: as asked for, by the environment, or as many as the plan is for.
pub fn of_run(asked: Option<u32>, plan: &PlanFile) -> usize {
    let list = env::var("OMP_NUM_THREADS").unwrap_or_default();
    let by_environment = list.split(',').next().and_then(|n| n.trim().parse().ok());
    asked.map(|n| n as usize).or(by_environment).unwrap_or(plan.threads.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::plan;

    #[test]
    fn equal_shares_scale_and_others_are_refused() {
        let with = |threads: &[u16]| PlanFile { threads: threads.into(), ..plan() };
        assert_eq!(fit(&with(&[0, 1]), 2).unwrap(), Fit::Same);
        assert!(matches!(fit(&with(&[0, 1]), 4).unwrap(), Fit::Scaled(text) if text.contains("scaled")));
        assert!(matches!(fit(&with(&[0, 0, 1, 1]), 2), Ok(Fit::Scaled(_))));
        for (threads, run) in [(&[0, 1][..], 3), (&[0, 0, 1], 6), (&[0, 1, 0, 1], 2), (&[0, 1], 0)] {
            let error = fit(&with(threads), run).unwrap_err();
            assert!(error.message.contains("refused"), "{error}");
        }
    }
    #[test]
    fn a_process_alone_in_a_large_job_is_one_and_ranks_are_counted() {
        let of = |set: &[(&str, &str)]| {
            ranks(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let batch =
            [("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "8"), ("SLURM_NPROCS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!([of(&[]), of(&batch)], [1, 1]);
        let within = |name, n| of(&[&batch[..], &[(name, n)]].concat());
        assert_eq!(within("SLURM_STEP_NUM_TASKS", "8"), 8, "started by srun");
        assert_eq!(within("SLURM_STEP_NUM_TASKS", "1"), 1, "srun -n 1");
        assert_eq!([within("OMPI_COMM_WORLD_SIZE", "4"), within("PMI_SIZE", "4 ")], [4, 4]);
        assert_eq!(
            of(&[("SLURM_STEP_NUM_TASKS", "2"), ("PMI_SIZE", "8")]),
            8,
            "its daemons are started by srun"
        );
        assert_eq!(within("PMI_SIZE", "x"), 1);
        assert!(fit_to(&plan(), 1).is_ok());
        let error = fit_to(&plan(), 8).unwrap_err();
        assert!(error.message.contains("1 processes, and this job has 8: refused"), "{error}");
    }
}
