//! What a policy decided in a simulation, a fresh policy decides again from its journal.

use homenode_policy::{POLICIES, journal};
use homenode_sim::run::Job;

use crate::support::{job, kernels, machine, record};

#[test]
fn every_policy_decides_the_same_outside_of_the_simulator() {
    let program = match kernels() {
        Ok(dir) => dir.join("nas-cg"),
        Err(why) => return println!("skipped: {why}"),
    };
    let args = ["--class", "S", "--iterations", "4", "--threads", "4", "--init", "serial", "--next-touch"];
    let recorded = record("journals", &program, &args, 4096);
    // Small caches, so that there is something to count; a plan of nothing for the policy that
    // needs one.
    let machine = machine(1, 4);
    let eager = [
        "competitive:horizon=0",
        "competitive-balanced:horizon=0",
        "daemon:period=100us",
        "next-touch:at=region",
    ];
    let specs: Vec<&str> = POLICIES.iter().map(|p| p.name).chain(eager).collect();
    let with_journal = |spec: &&str| {
        let mut job = job(&machine, spec);
        job.options.journal = true;
        job.options.plan = Some(Default::default());
        job
    };
    let jobs: Vec<Job> = specs.iter().map(with_journal).collect();
    let (_, outcomes) = recorded.simulate(&jobs, 2);
    let mut moved = 0;
    for (spec, outcome) in specs.iter().zip(&outcomes) {
        let bytes = outcome.journal.as_ref().unwrap();
        let checked = journal::check(bytes).unwrap();
        assert_eq!((checked.difference, checked.complete), (None, true), "{spec}");
        assert!(checked.decisions >= outcome.faults, "{spec}: {checked:?}");
        moved += outcome.moved;
    }
    assert!(moved > 0, "nobody moved anything");
    // And the journal itself is a function of the recording.
    let again = recorded.simulate(&jobs, 1).1;
    assert!(outcomes.iter().zip(&again).all(|(a, b)| a.journal == b.journal));
}
