//! Which launcher of jobs started this process: by the variables that each sets for its ranks.

use homenode_launch::rank::rank;

/// Batch systems: the job's number.
const BATCH: &[(&str, &str)] =
    &[("Slurm", "SLURM_JOB_ID"), ("PBS", "PBS_JOBID"), ("LSF", "LSB_JOBID"), ("Grid Engine", "JOB_ID")];

/// In words; nothing where nobody did.
pub fn under(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let launched = rank(variable).map(|rank| {
        let of = rank.of.map_or_else(String::new, |n| format!(" of {n}"));
        format!("rank {}{of} of {}", rank.number, rank.launcher)
    });
    let batch = BATCH.iter().find_map(|(name, job)| {
        let job = variable(job)?;
        Some(format!(
            "job {} of {name}",
            job.chars().filter(|c| !c.is_control()).take(40).collect::<String>()
        ))
    });
    match (launched, batch) {
        (Some(a), Some(b)) => Some(format!("{a}, in {b}")),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<String> {
        under(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(of(&[]), None);
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "2")];
        assert_eq!(of(&open_mpi).unwrap(), "rank 2 of 4 of Open MPI");
        let slurm = [("SLURM_JOB_ID", "77"), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(of(&slurm).unwrap(), "rank 0 of 8 of Slurm's srun, in job 77 of Slurm");
        assert_eq!(of(&slurm[..1]).unwrap(), "job 77 of Slurm");
        assert!(of(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap().contains("MPICH"));
        assert_eq!(of(&[("PMI_RANK", "x")]), None);
    }
}
