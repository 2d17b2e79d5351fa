//! Ranks of a job: which one this process is, and paths that no two ranks share.
//!
//! Launchers tell each rank its number in the environment. Several ranks of one command line get
//! the same words, `-o mine.hnrec` among them, and may not write to one place.

use std::fs;
use std::path::{Path, PathBuf};

use homenode_log::recording::RankOf;

/// A launcher of jobs: its name, the variable with the rank, the one with the number of ranks, and
/// those that name the job. `srun` alone sets the variable of the step: in a batch script a program
/// is one of one.
const LAUNCHERS: &[(&str, &str, &str, &[&str])] = &[
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &["PMIX_NAMESPACE"]),
    ("Slurm's srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &["SLURM_JOB_ID", "SLURM_STEP_ID"]),
    ("IBM's jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", &["LSB_JOBID", "JSM_NAMESPACE_ID"]),
    ("PALS", "PALS_RANKID", "PALS_SIZE", &["PALS_APID"]),
    ("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", &["FLUX_JOB_ID"]),
    ("a launcher that speaks PMI (MPICH, Intel MPI)", "PMI_RANK", "PMI_SIZE", &["PMI_JOBID"]),
];
/// Batch systems name the job where the launcher does not.
const BATCH: &[&str] = &["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"];
/// PMIx tells the rank alone.
const PMIX: (&str, &str, &[&str]) = ("a launcher that speaks PMIx", "PMIX_RANK", &["PMIX_NAMESPACE"]);
/// Letters of a job's name.
const NAME: usize = 100;

/// A rank of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Who started it.
    pub launcher: &'static str,
    /// Its number, from 0 on.
    pub number: u32,
    /// How many there are, where the launcher tells.
    pub of: Option<u32>,
    /// The job, as the launcher or the batch system names it.
    pub job: Option<String>,
}

/// The rank that this process is, as variables of the environment tell.
pub fn rank(variable: &dyn Fn(&str) -> Option<String>) -> Option<Rank> {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    let told = LAUNCHERS.iter().find_map(|(launcher, rank, size, job)| {
        Some(Rank { launcher, number: number(rank)?, of: Some(number(size)?), job: named_job(job, variable) })
    });
    told.or_else(|| {
        Some(Rank { launcher: PMIX.0, number: number(PMIX.1)?, of: None, job: named_job(PMIX.2, variable) })
    })
}

/// The name of the job in these variables, or else the batch system's.
fn named_job(names: &[&str], variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let value = |name: &&str| {
        let text: String = variable(name)?.chars().filter(|c| !c.is_control()).take(NAME).collect();
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    };
    let all: Option<Vec<String>> = names.iter().map(value).collect();
    all.map(|parts| parts.join(".")).or_else(|| BATCH.iter().find_map(value))
}

/// The rank that this process is; `None` without a launcher.
pub fn here() -> Option<Rank> {
    rank(&|name| std::env::var(name).ok())
}

/// What a recording says of the rank that this process is; `None` unless it is one of several.
pub fn member() -> Option<RankOf> {
    let rank = here().filter(|r| r.of != Some(1))?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|h| h.trim().to_owned());
    Some(RankOf { rank: rank.number, job: rank.job, host: host.filter(|h| !h.is_empty()) })
}

/// A path that this process alone writes to. `%p` becomes the number of the process and `%r` the
/// rank, 0 without a launcher. In one of several ranks a path without either gets the rank before
/// its extension: `mine.hnrec` becomes `mine.2.hnrec`.
pub fn own_path(path: &Path) -> PathBuf {
    named(path, here(), std::process::id())
}

fn named(path: &Path, rank: Option<Rank>, process: u32) -> PathBuf {
    let Some(text) = path.to_str() else { return path.to_owned() };
    let number = rank.as_ref().map_or(0, |r| r.number);
    if text.contains("%p") || text.contains("%r") {
        return text.replace("%p", &process.to_string()).replace("%r", &number.to_string()).into();
    }
    match rank {
        Some(Rank { of, .. }) if of != Some(1) => {
            let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy()));
            path.with_extension(format!("{number}{}", extension.unwrap_or_default()))
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<Rank> {
        rank(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(of(&[]), None);
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "2")];
        assert_eq!(of(&open_mpi), Some(Rank { launcher: "Open MPI", number: 2, of: Some(4), job: None }));
        assert_eq!(of(&[("PMIX_RANK", "1")]).map(|r| (r.number, r.of)), Some((1, None)));
        assert_eq!(of(&[("PMI_RANK", "x"), ("PMI_SIZE", "2")]), None);
        let batch = [("SLURM_JOB_ID", "77"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")];
        assert_eq!(of(&batch), None, "a batch script starts one process");
        let step = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(of(&step).map(|r| (r.number, r.of)), Some((3, Some(8))));
    }

    #[test]
    fn a_job_has_the_name_that_its_launcher_or_batch_system_gives() {
        let job = |set: &[(&str, &str)]| of(set).and_then(|r| r.job);
        let srun = [
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_NUM_TASKS", "8"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_STEP_ID", "2"),
        ];
        assert_eq!(job(&srun).as_deref(), Some("77.2"));
        assert_eq!(job(&srun[..3]).as_deref(), Some("77"));
        let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PBS_JOBID", "9.head\n")];
        assert_eq!(job(&pmi).as_deref(), Some("9.head"));
        assert_eq!(job(&pmi[..2]), None);
    }

    #[test]
    fn no_two_ranks_share_a_path() {
        let path = |text: &str, rank: Option<Rank>| named(Path::new(text), rank, 77).display().to_string();
        let two = |of| Some(Rank { launcher: "", number: 2, of, job: None });
        assert_eq!(path("a/mine.hnrec", None), "a/mine.hnrec");
        assert_eq!(path("a/mine.hnrec", two(Some(4))), "a/mine.2.hnrec");
        assert_eq!(path("a.b/mine", two(None)), "a.b/mine.2");
        assert_eq!(path("mine.hnrec", two(Some(1))), "mine.hnrec");
        assert_eq!(path("mine.%p-%r", two(Some(4))), "mine.77-2");
        assert_eq!(path("mine.%r", None), "mine.0");
    }
}
