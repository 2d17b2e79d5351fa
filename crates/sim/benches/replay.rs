//! How fast a recording is simulated: decoding, ordering, caches and placement together, and a
//! further policy alone.
//!
//! CPU time, so that the number of cores and what else they do matter little. Events are accesses
//! of the recording. For people, events a second and core stand beside it: the goals are 20 M with
//! first touch and 10 M with any other policy.

use std::path::Path;
use std::time::{Duration, Instant};

use homenode_model::{LineNo, ThreadId, Ticks};
use homenode_order::StepSink;
use homenode_order::step::{Mark, Sync};
use homenode_order::{ProgramFacts, open};
use homenode_sim::run::Job;

// The tests' way to build, record and simulate; not all of it is used here.
#[allow(dead_code)]
#[path = "../tests/it/support.rs"]
mod support;

use support::{Recorded, job, kernels, machine, record};

/// CPU time of the process so far, all threads together.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    // Linux tells user programs of 100 ticks a second on every architecture.
    Some(Duration::from_millis((ticks()? + ticks()?) * 10))
}

/// The least CPU time of three runs; time on the wall where the kernel does not tell.
fn best(mut f: impl FnMut()) -> f64 {
    let mut one = || {
        let (wall, cpu) = (Instant::now(), cpu_time());
        f();
        let cpu = cpu_time().zip(cpu).map(|(end, begin)| end - begin);
        cpu.filter(|c| !c.is_zero()).unwrap_or_else(|| wall.elapsed()).as_secs_f64()
    };
    (0..3).map(|_| one()).fold(f64::INFINITY, f64::min)
}

/// Takes steps and does nothing with them.
struct Nothing;

impl StepSink for Nothing {
    fn access(&mut self, _: ThreadId, _: Ticks, line: LineNo, _: bool) -> bool {
        std::hint::black_box(line);
        false
    }
    fn sync(&mut self, _: ThreadId, _: Ticks, _: Sync) {}
    fn mark(&mut self, _: ThreadId, _: Ticks, _: Mark) {}
}

fn measure(name: &str, recorded: &Recorded) {
    let machine = machine(8, 2);
    let (mut events, mut misses) = (0, 0);
    let mut simulate = |policies: &[&str]| {
        let jobs: Vec<Job> = policies.iter().map(|p| job(&machine, p)).collect();
        best(|| {
            let (trace, outcomes) = recorded.simulate(&jobs, 1);
            let (local, remote) = outcomes[0].counts.total();
            (events, misses) = (trace.accesses, local + remote);
        })
    };
    let first = simulate(&["first-touch"]);
    let others = ["next-touch", "round-robin", "one-node"].map(|p| (p, simulate(&[p])));
    let several = simulate(&["first-touch", "next-touch", "round-robin", "one-node", "next-touch"]);
    let order = best(|| {
        let mut order = open(&recorded.logs(), ProgramFacts::default()).expect("a readable recording");
        while order.advance(&mut Nothing, 1 << 17).expect("a sound recording") {}
    });
    println!("{name}: {:.1} M events, {:.1} M misses", events as f64 / 1e6, misses as f64 / 1e6);
    println!("{:<28} {:>12} {:>12} {:>10}", "", "M events/s", "M misses/s", "CPU s");
    let row = |what: &str, seconds: f64| {
        let rate = |n: u64| n as f64 / seconds / 1e6;
        println!("{what:<28} {:>12.1} {:>12.1} {seconds:>10.2}", rate(events), rate(misses));
        println!("bench: replay/{name}/{what} {:.3} ns/event", seconds * 1e9 / events as f64);
    };
    row("decode-and-order", order);
    row("first-touch", first);
    for (policy, seconds) in others {
        row(policy, seconds);
    }
    row("a-further-policy", ((several - first) / 4.0).max(1e-9));
}

fn main() {
    let kernels = match kernels() {
        Ok(dir) => dir,
        Err(why) => return println!("skipped: {why}"),
    };
    let serial = ["--threads", "4", "--init", "serial", "--next-touch", "--class", "W"];
    for (name, program) in [("cg-W", "nas-cg"), ("mg-W", "nas-mg")] {
        let recorded = record(&format!("bench-{name}"), &Path::new(kernels).join(program), &serial, 4096);
        measure(name, &recorded);
        let _ = std::fs::remove_dir_all(&recorded.dir);
    }
}
