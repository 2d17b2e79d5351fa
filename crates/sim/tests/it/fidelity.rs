//! What the recorder's filter may change in a result: next to nothing.
//!
//! The reference is the same binary recorded without a filter, so that the same stages see every
//! access. (Stage 2 itself is checked against a naive model in `crates/cache/tests/reference.rs`.)

use homenode_sim::memory::{Counts, Outcome};
use homenode_sim::stream::Cause;

use crate::support::{job, kernels, machine, record};

/// Most that misses may differ, relative.
const MISSES: f64 = 0.005;
/// Most that the remote share may differ, absolute: half a point.
const SHARE: f64 = 0.005;

/// The recorder's own filter.
const FILTER: u32 = 4096;

const POLICIES: [&str; 2] = ["first-touch", "next-touch"];

fn figures(counts: &Counts) -> (u64, f64, u64) {
    let (local, remote) = counts.total();
    let coherence = counts.by_cause(Cause::Coherence);
    (local + remote, remote as f64 / ((local + remote).max(1)) as f64, coherence.0 + coherence.1)
}

fn compare(what: &str, filtered: &Outcome, reference: &Outcome) -> bool {
    let mut good = true;
    for (part, f, r) in [
        ("all", &filtered.counts, &reference.counts),
        ("timed", &filtered.timed_counts, &reference.timed_counts),
    ] {
        let ((misses, share, coherence), (misses_r, share_r, coherence_r)) = (figures(f), figures(r));
        let off = (misses as f64 - misses_r as f64) / misses_r.max(1) as f64;
        let fits = off.abs() <= MISSES && (share - share_r).abs() <= SHARE;
        println!(
            "{what:44} {part:5}  {misses:>9} {misses_r:>9} {:>+8.3} %  {:>7.3} {:>7.3} %  {coherence:>8} {coherence_r:>8}{}",
            off * 100.0,
            share * 100.0,
            share_r * 100.0,
            if fits { "" } else { "  <<<" }
        );
        good &= fits;
    }
    good
}

fn check(programs: &[(&str, &str, &[&str])]) {
    let kernels = match kernels() {
        Ok(dir) => dir,
        Err(why) => return println!("skipped: {why}"),
    };
    let machines = [machine(1, 4), machine(8, 2)];
    println!(
        "{:44} {:5}  {:>9} {:>9} {:>10}  {:>7} {:>9}  {:>8} {:>8}",
        "", "part", "misses", "reference", "off", "remote", "reference", "coher.", "reference"
    );
    let mut good = true;
    for (name, program, args) in programs {
        let jobs: Vec<_> = machines.iter().flat_map(|m| POLICIES.map(|p| job(m, p))).collect();
        let mut outcomes = [FILTER, 0].map(|filter| {
            let recorded = record(&format!("fidelity-{name}-{filter}"), &kernels.join(program), args, filter);
            let totals = recorded.reports().into_iter().filter_map(|r| r.totals);
            let sum = totals.fold([0; 4], |s, t| [0, 1, 2, 3].map(|i| s[i] + t[i]));
            let (trace, outcomes) = recorded.simulate(&jobs, 1);
            println!(
                "{name}, filter {filter}: {} accesses, {} simulated, {} past the filter for false sharing",
                sum[0], trace.accesses, sum[2]
            );
            assert_eq!(sum[3], 0, "dropped");
            let _ = std::fs::remove_dir_all(&recorded.dir);
            outcomes.into_iter()
        });
        for job in &jobs {
            let [filtered, reference] = outcomes.each_mut().map(|o| o.next().unwrap());
            let what = format!("{name} {} {}", job.machine.name, job.policy);
            good &= compare(&what, &filtered, &reference);
        }
    }
    assert!(
        good,
        "lines marked <<< are off by more than {MISSES} of the misses or {SHARE} of the remote share"
    );
}

const SERIAL: [&str; 5] = ["--init", "serial", "--next-touch", "--threads", "4"];

#[test]
fn the_filter_shows_in_no_result() {
    let args = |more: &[&'static str]| -> Vec<&str> { [&SERIAL, more].concat() };
    check(&[
        ("cg", "nas-cg", &args(&["--class", "W", "--iterations", "1"])),
        ("mg", "nas-mg", &args(&["--class", "W", "--iterations", "1"])),
        ("lu", "lu", &args(&["--size", "500"])),
        ("sor", "sor", &args(&["--class", "W", "--iterations", "20"])),
    ]);
}

#[test]
#[ignore = "long: make test-long"]
fn the_filter_shows_in_no_result_of_whole_programs() {
    let args = |more: &[&'static str]| -> Vec<&str> { [&SERIAL, more].concat() };
    check(&[
        ("cg-whole", "nas-cg", &args(&["--class", "W"])),
        ("mg-whole", "nas-mg", &args(&["--class", "W"])),
        ("lu-cyclic", "lu", &args(&["--size", "500", "--schedule", "cyclic"])),
        ("lu-affinity", "lu", &args(&["--size", "500", "--schedule", "affinity"])),
        ("sor-whole", "sor", &args(&["--class", "W"])),
    ]);
}
