//! Several ranks of a job write one summary, by faked launchers and by a real `mpirun`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{compilers, fresh, homenode, instrumented, outcome, plain, run};

/// A program whose rank 2 works for 0.6 s in parallel regions, and the others for 0.06 s, however
/// fast the machine is: a rank is slow only from 0.1 s more on.
const UNEVEN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    double left = rank && atoi(rank) == 2 ? 0.6 : 0.06;
    enum { N = 1 << 18 };
    double *grid = malloc(N * sizeof *grid);
    for (int i = 0; i < N; i++) grid[i] = i;
    while (left > 0) {
        double began = now();
#pragma omp parallel for schedule(static) num_threads(2)
        for (int i = 0; i < N; i++) grid[i] = grid[i] * 0.5 + i;
        left -= now() - began;
    }
    printf("%d\n", grid[N - 1] > 0);
    free(grid);
    return 0;
}
"#;

/// homenode as rank `rank` of `of` of the job `job`, as Open MPI starts it.
fn rank(dir: &Path, job: &str, rank: u32, of: u32) -> Command {
    let mut command = homenode(dir);
    command.env("OMPI_COMM_WORLD_RANK", rank.to_string()).env("OMPI_COMM_WORLD_SIZE", of.to_string());
    command.env("PMIX_NAMESPACE", job);
    command
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_last_rank_writes_one_summary_that_names_the_slow_one() {
    let dir = fresh("job-uneven");
    let Some(_) = plain(&dir, "app", UNEVEN) else { return };
    for n in [2, 0, 1] {
        assert!(!dir.join("job.json").exists(), "a rank is missing");
        let mut one = rank(&dir, "1@7", n, 3);
        let words =
            ["run", "--pretend-nodes", "2", "--json", "--summary", "job.json", "--record", "app.hnrec"];
        let (status, out, err) = outcome(&one.args(words).args(["--", "./app"]).output().unwrap());
        assert_eq!((status, out.lines().count()), (Some(0), 1), "{err}");
    }
    let summary = json(&dir.join("job.json"));
    assert_eq!(summary["schema"], "homenode/job/1");
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|r| r["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows.iter().all(|r| r["in_regions"].as_f64().unwrap() > 0.0 && r["end"] == "good"), "{rows:?}");
    let answers = summary["answer"].to_string();
    assert!(
        answers.contains("rank 2 is slow") && answers.contains("of time in parallel regions"),
        "{answers}"
    );
    assert_eq!(summary["reports"][1]["report"]["schema"], "homenode/run/2");
    assert!(!dir.join("job.json.parts").exists(), "the parts are in the summary");
    // Each rank's recording says which rank it was, and they can be merged.
    let parts = ["app.0.hnrec", "app.1.hnrec", "app.2.hnrec"];
    let (status, _, err) = run(&dir, &[&["rec", "merge"], &parts[..], &["-o", "job.hnrec"]].concat());
    assert_eq!(status, Some(0), "{err}");
    let (_, out, err) = run(&dir, &["rec", "export", "job.hnrec", "-o", "out", "--json"]);
    let folder = std::fs::read_dir(dir.join("out/meta")).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let host = folder.flatten().next().unwrap().path();
    assert!(!host.ends_with("host=local"), "{}", host.display());
    for n in 0..3 {
        assert!(host.join(format!("job=1%407/rank={n}")).is_dir(), "{}", host.display());
    }
}

#[test]
fn a_job_whose_rank_never_ended_is_merged_by_hand() {
    let dir = fresh("job-broken");
    for n in [0, 2] {
        let mut one = rank(&dir, "8", n, 3);
        let words =
            ["run", "--quiet", "--summary", "job.txt", "--", "/bin/sh", "-c", "exit $OMPI_COMM_WORLD_RANK"];
        assert_eq!(one.args(words).output().unwrap().status.code(), Some(i32::try_from(n).unwrap()));
    }
    assert!(!dir.join("job.txt").exists());
    let parts = ["job.txt.parts/8.2.json", "job.txt.parts/8.0.json"];
    let (status, _, err) = run(&dir, &["rec", "merge", parts[0], parts[1], "-o", "job.txt"]);
    assert_eq!(status, Some(3), "{err}");
    for said in ["rank 1 left no part: the summary is of 2 ranks", "rank 2: ended with status 2"] {
        assert!(err.contains(said), "{err}");
        assert!(std::fs::read_to_string(dir.join("job.txt")).unwrap().contains(said));
    }
    // Parts of another job do not fit, and no part is no recording.
    let words = ["run", "--quiet", "--summary", "job.txt", "--", "/bin/true"];
    assert!(rank(&dir, "9", 1, 3).args(words).status().unwrap().success());
    let (status, _, err) = run(&dir, &["rec", "merge", parts[0], "job.txt.parts/9.1.json", "-o", "other"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("of the job 9"), "{err}");
    std::fs::write(dir.join("x.json"), "{").unwrap();
    let (status, _, err) = run(&dir, &["rec", "merge", "x.json", "-o", "other"]);
    assert!(status != Some(0) && err.contains("cannot read a rank's part"), "{err}");
}

#[test]
fn every_launcher_meets_and_own_files_stay_own() {
    let dir = fresh("job-launchers");
    let launchers: [&[(&str, &str)]; 4] = [
        &[
            ("SLURM_PROCID", "N"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_JOB_ID", "5"),
            ("SLURM_STEP_ID", "0"),
        ],
        &[("PMI_RANK", "N"), ("PMI_SIZE", "2")],
        &[("PALS_RANKID", "N"), ("PALS_SIZE", "2"), ("PALS_APID", "a-b")],
        &[("FLUX_TASK_RANK", "N"), ("FLUX_JOB_SIZE", "2"), ("FLUX_JOB_ID", "f1")],
    ];
    for (i, variables) in launchers.iter().enumerate() {
        for n in ["1", "0"] {
            let mut one = homenode(&dir);
            one.envs(variables.iter().map(|(name, value)| (*name, value.replace('N', n))));
            let summary = format!("{i}.json");
            let words = ["run", "--json", "--summary", &summary, "--", "/bin/true"];
            assert!(one.args(words).status().unwrap().success());
        }
        let summary = json(&dir.join(format!("{i}.json")));
        assert_eq!(summary["rows"].as_array().unwrap().len(), 2, "{summary}");
    }
    // A path with the rank in it is a file of each rank's own.
    let words = ["run", "--json", "--summary", "own.%r", "--", "/bin/true"];
    assert!(rank(&dir, "1", 1, 2).args(words).status().unwrap().success());
    assert_eq!(json(&dir.join("own.1"))["schema"], "homenode/run/2");
    // Where nobody can write, the program does not start.
    let words = ["run", "--summary", "own.1/job", "--", "/bin/sh", "-c", "echo ran"];
    let (status, out, err) = outcome(&rank(&dir, "1", 1, 2).args(words).output().unwrap());
    assert_eq!((status, out.as_str()), (Some(125), ""), "{err}");
    assert!(err.contains("cannot write the summary own.1/job"), "{err}");
}

#[test]
fn ranks_that_record_write_one_summary_with_their_recordings() {
    let dir = fresh("job-record");
    let Some(_) = instrumented(&dir, "app", UNEVEN) else { return };
    for n in 0..2 {
        let words = ["record", "--summary", "job.txt", "-o", "app.hnrec", "--", "./app"];
        let (status, _, err) = outcome(&rank(&dir, "3", n, 2).args(words).output().unwrap());
        assert_eq!(status, Some(0), "{err}");
    }
    let text = std::fs::read_to_string(dir.join("job.txt")).unwrap();
    assert!(text.contains("app.0.hnrec") && text.contains("app.1.hnrec") && text.contains("Rank"), "{text}");
    let meta = json(&dir.join("app.1.hnrec/meta.json"));
    assert_eq!((meta["rank"]["rank"].as_u64(), meta["rank"]["job"].as_str()), (Some(1), Some("3")));
}

/// An MPI program with parallel regions whose result is checked.
const HYBRID: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    enum { N = 1 << 16 };
    double *grid = malloc(N * sizeof *grid);
    for (int i = 0; i < N; i++) grid[i] = rank;
    for (int round = 0; round < 20; round++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) grid[i] += 1;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    double sum = 0, all = 0;
    for (int i = 0; i < N; i++) sum += grid[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", all == N * (20.0 * size + size * (size - 1) / 2) ? "right" : "wrong");
    MPI_Finalize();
    return 0;
}
"#;

#[test]
fn a_real_mpirun_gives_one_summary() {
    let dir = fresh("job-mpirun");
    let has = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    if !has("mpirun") || !has("mpicc") || !compilers() {
        eprintln!("skipped: there is no mpirun with mpicc (Debian: openmpi-bin, libopenmpi-dev)");
        return;
    }
    std::fs::write(dir.join("app.c"), HYBRID).unwrap();
    let built =
        Command::new("mpicc").current_dir(&dir).args(["-O1", "-fopenmp", "app.c", "-o", "app"]).status();
    assert!(built.unwrap().success());
    let app = env!("CARGO_BIN_EXE_homenode");
    let mpirun = |bind: &[&str], summary: &str| {
        let mut mpirun = Command::new("mpirun");
        // The variables that a test's homenode never gets.
        for (name, _) in homenode(&dir).get_envs().filter(|(_, value)| value.is_none()) {
            mpirun.env_remove(name);
        }
        mpirun.current_dir(&dir).env("OMP_NUM_THREADS", "2").env("OMP_WAIT_POLICY", "passive");
        mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        mpirun.args(["--oversubscribe", "-n", "3"]).args(bind);
        mpirun.args([app, "run", "--pretend-nodes", "2", "--json", "--summary", summary, "--", "./app"]);
        let (status, out, err) = outcome(&mpirun.output().unwrap());
        assert_eq!((status, out.as_str()), (Some(0), "right\n"), "{err}");
        json(&dir.join(summary))
    };
    let unbound = mpirun(&["--bind-to", "none"], "unbound.json");
    let rows = unbound["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|r| r["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows.iter().all(|r| r["in_regions"].as_f64().unwrap() > 0.0), "{rows:?}");
    assert_eq!(unbound["facts"]["launcher"], "Open MPI");
    let answers = unbound["answer"].to_string();
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus > 1 {
        assert!(answers.contains("ranks 0-2 are not bound") || answers.contains("overlap"), "{answers}");
    }
    // All ranks on one CPU.
    let cpu = unbound["rows"][0]["cpus"].as_str().unwrap().split([',', '-']).next().unwrap().to_owned();
    let bound = mpirun(&["--bind-to", "none", "taskset", "-c", &cpu], "bound.json");
    let answers = bound["answer"].to_string();
    let on = format!("the bindings of ranks 0-2 overlap: more than one of them may run on CPU {cpu}");
    assert!(answers.contains(&on) || cpus == 1, "{answers}");
    assert!(answers.contains("share the memory of node"), "{answers}");
}
