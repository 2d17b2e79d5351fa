//! Lines that several threads write at the same time bypass the recorder's filter.

use homenode_sim::stream::Cause;

use crate::support::{Recorded, job, kernels, machine, record};

/// Accesses that bypassed the filter, and coherence misses on 1 MiB caches.
fn figures(recorded: &Recorded) -> (u64, u64) {
    let bypassed =
        recorded.reports().iter().filter_map(|r| r.totals).map(|[_, _, bypassed, _]| bypassed).sum();
    let (_, outcomes) = recorded.simulate(&[job(&machine(1, 4), "first-touch")], 1);
    let (local, remote) = outcomes[0].counts.by_cause(Cause::Coherence);
    (bypassed, local + remote)
}

#[test]
fn false_sharing_is_flagged_and_counted() {
    let program = match kernels() {
        Ok(dir) => dir.join("false-sharing"),
        Err(why) => return println!("skipped: {why}"),
    };
    // With serial initialisation the line is met by several threads only in the first round, and
    // what a thread did there before another one came is filtered: at most one round of ten.
    for (init, most_off) in [("parallel", 0.001), ("serial", 0.101)] {
        let args = ["--class", "S", "--threads", "4", "--init", init];
        let [(bypassed, coherence), (_, reference)] = [4096, 0].map(|filter| {
            figures(&record(&format!("false-sharing-{init}-{filter}"), &program, &args, filter))
        });
        println!("{init}: {bypassed} bypassed, {coherence} coherence misses, {reference} without a filter");
        assert!(bypassed > 500_000, "{bypassed}");
        assert!(coherence.abs_diff(reference) as f64 <= most_off * reference as f64, "{init}");

        let args = [&args[..], &["--padded"]].concat();
        let [(bypassed, coherence), (_, reference)] = [4096, 0].map(|filter| {
            figures(&record(&format!("false-sharing-{init}-padded-{filter}"), &program, &args, filter))
        });
        println!(
            "{init}, padded: {bypassed} bypassed, {coherence} coherence misses, {reference} without a filter"
        );
        assert_eq!(bypassed, 0, "{init}, padded");
        assert_eq!(coherence, reference, "{init}, padded");
    }
}
