//! One recording, one result; and for programs with static schedules, one program, one result.

use std::fmt::Write;

use homenode_sim::memory::Outcome;
use homenode_sim::run::Job;

use crate::support::{job, kernels, machine, record};

fn jobs() -> Vec<Job> {
    // Some share a memory stream with one that wants first touches by region, some do not care for
    // them.
    let policies = [
        "first-touch",
        "next-touch",
        "next-touch:at=region",
        "round-robin",
        "one-node",
        "daemon:period=100us,least=1",
        "competitive:horizon=0",
    ];
    let machines = [machine(1, 4), machine(8, 2)];
    machines.iter().flat_map(|m| policies.map(|p| job(m, p))).collect()
}

fn text(outcomes: &[Outcome]) -> Vec<String> {
    let one = |o: &Outcome| {
        let mut text = String::new();
        write!(text, "{o:?}").unwrap();
        text
    };
    outcomes.iter().map(one).collect()
}

#[test]
fn workers_runs_and_other_jobs_show_in_no_result() {
    let program = match kernels() {
        Ok(dir) => dir.join("nas-cg"),
        Err(why) => return println!("skipped: {why}"),
    };
    let args = ["--class", "S", "--iterations", "2", "--threads", "4", "--init", "serial", "--next-touch"];
    let recorded = record("determinism", &program, &args, 4096);
    let jobs = jobs();
    let first = text(&recorded.simulate(&jobs, 1).1);
    for workers in [1, 2, 4, 16] {
        assert_eq!(text(&recorded.simulate(&jobs, workers).1), first, "{workers} workers");
    }
    for (i, job) in jobs.iter().enumerate() {
        assert_eq!(text(&recorded.simulate(std::slice::from_ref(job), 1).1), first[i..=i], "job {i} alone");
    }
    let backwards: Vec<Job> = jobs.iter().rev().cloned().collect();
    let mut again = text(&recorded.simulate(&backwards, 3).1);
    again.reverse();
    assert_eq!(again, first, "in another order");
}

/// Programs with static schedules and no false sharing, with the recorder's filter; any with static
/// schedules without.
#[test]
fn two_recordings_of_a_program_give_the_same_bytes() {
    let kernels = match kernels() {
        Ok(dir) => dir,
        Err(why) => return println!("skipped: {why}"),
    };
    let programs: [(&str, &[&str], u32); 6] = [
        ("heat", &["--size", "126", "--iterations", "4"], 4096),
        ("lu", &["--size", "128", "--padded"], 4096),
        ("lu", &["--size", "100", "--schedule", "cyclic"], 0),
        ("sor", &["--class", "S"], 0),
        ("nas-mg", &["--class", "S"], 0),
        ("nas-cg", &["--class", "S", "--iterations", "1"], 0),
    ];
    let jobs = jobs();
    for (i, (program, args, filter)) in programs.iter().enumerate() {
        for init in ["serial", "parallel"] {
            let args = [args, &["--threads", "4", "--init", init, "--next-touch"][..]].concat();
            let mut results = ["one", "another-one"].map(|run| {
                let recorded =
                    record(&format!("twice-{i}-{init}-{run}"), &kernels.join(program), &args, *filter);
                let result = text(&recorded.simulate(&jobs, 2).1);
                let _ = std::fs::remove_dir_all(&recorded.dir);
                result.into_iter()
            });
            for job in &jobs {
                let [a, b] = results.each_mut().map(|r| r.next().unwrap());
                assert!(a == b, "{program} {args:?}, {} on {}:\n{a}\n{b}", job.policy, job.machine.name);
            }
        }
    }
}
