//! What a run's time consists of: where the reasons for the times of Figure 1 come from.

use homenode_model::Ps;
use homenode_sim::memory::Outcome;
use homenode_sim::stream::Cause;

use super::numbers::Program;
use super::{Seen, Version, of};

/// Sums over the timed part of a version.
struct Shares {
    /// Latency of all accesses and upgrades, in percent of the working threads' time. Neither
    /// queues nor overlap are in it.
    latency: f64,
    /// The same if each access were local.
    local: f64,
    /// Accesses to memory of a working thread and iteration.
    accesses: f64,
    /// Percent of them.
    remote: f64,
    /// Percent of them that miss because another CPU wrote the line.
    coherence: f64,
    /// Time that an access queues in the mean, initialisation included.
    queued: f64,
}

impl Shares {
    /// Of a run in which `working` threads have work.
    fn of(outcome: &Outcome, working: u32) -> Self {
        let rounds = outcome.iterations().len().max(1) as f64;
        let (local, remote) = outcome.timed_counts.total();
        let accesses = (local + remote).max(1) as f64;
        let (near, far) = outcome.timed_counts.by_cause(Cause::Coherence);
        let time = outcome.timed.secs() * f64::from(working);
        let percent = |sum: Ps| 100.0 * sum.secs() / time.max(f64::MIN_POSITIVE);
        let (all_local, all_remote) = outcome.counts.total();
        Self {
            latency: percent(outcome.latency.actual),
            local: percent(outcome.latency.floor),
            accesses: (local + remote) as f64 / rounds / f64::from(working),
            remote: 100.0 * remote as f64 / accesses,
            coherence: 100.0 * (near + far) as f64 / accesses,
            queued: 1e9 * outcome.queued.secs() / (all_local + all_remote).max(1) as f64,
        }
    }
    fn words(&self) -> String {
        format!(
            "latencies {:.1} % of the threads' time ({:.1} % if all were local), {:.0} accesses a thread and iteration, \
             {:.1} % remote, {:.1} % after another CPU's write, {:.0} ns in queues",
            self.latency, self.local, self.accesses, self.remote, self.coherence, self.queued
        )
    }
}

/// A sentence a program: automatic, manual and offline on `processors`.
pub(super) fn note(program: &Program, class: &str, processors: u32, seen: &[Seen]) -> String {
    let working = program.working(class, processors);
    let of_version = |version: Version| {
        Some(format!("{}: {}", version.name(), Shares::of(&of(seen, version)?.outcome, working).words()))
    };
    let versions = [Version::Automatic, Version::Manual, Version::Offline];
    let all: Vec<String> = versions.into_iter().filter_map(of_version).collect();
    format!("{} on {processors}, {working} threads at work; {}", program.name, all.join("; "))
}

#[cfg(test)]
mod tests {
    use crate::niko::numbers::PROGRAMS;

    #[test]
    fn threads_without_planes_have_no_work() {
        let working = |name, class, processors| {
            PROGRAMS.iter().find(|p| p.name == name).unwrap().working(class, processors)
        };
        assert_eq!((working("BT", "A", 128), working("BT", "W", 128)), (62, 22));
        assert_eq!((working("BT", "A", 16), working("MG", "A", 128)), (16, 128));
    }
}
