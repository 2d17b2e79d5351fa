//! A simulated recording on its way to an explanation, and what is asked of it more than once.

use homenode_model::{CacheScope, Topology};
use homenode_order::Trace;
use homenode_schemes::{LoadedRecording, Pass};
use homenode_sim::memory::Outcome;
use homenode_sim::run::{Enough, Job};
use homenode_task::Task;

use super::request::ExplainRequest;
use crate::usage::Usage;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// A recording under way to its explanation.
pub(super) struct ExactRun<'a> {
    pub(super) loaded: &'a LoadedRecording,
    pub(super) request: &'a ExplainRequest,
    pub(super) task: &'a dyn Task,
    pub(super) pass: Pass<'a>,
    pub(super) today: Job,
    pub(super) trace: &'a Trace,
    pub(super) outcome: &'a Outcome,
    pub(super) usage: &'a Usage,
    pub(super) enough: Option<Enough>,
    /// Rounds that are not simulated.
    pub(super) more: u64,
}

impl ExactRun<'_> {
    pub(super) fn machine(&self) -> &Topology {
        &self.request.machine
    }

    /// Percent of the threads' working time that they wait for memory.
    pub(super) fn waiting(&self) -> f64 {
        let (mut memory, mut all) = (0u128, 0u128);
        for t in &self.outcome.threads {
            memory += u128::from(t.memory.0);
            all += u128::from(t.memory.0) + u128::from(t.busy.0) + u128::from(t.moving.0);
        }
        if all == 0 { 0.0 } else { memory as f64 / all as f64 * 100.0 }
    }

    /// Bytes of all pages that were touched, and of the largest caches of the CPUs that the threads
    /// use.
    pub(super) fn sizes(&self) -> (u64, u64) {
        let touched = self.outcome.collected.as_ref().map_or(0, |c| c.firsts.len() as u64);
        let machine = self.machine();
        let mut shared = Vec::new();
        let caches = machine.caches.last().map_or(0, |cache| {
            for cpu in &self.outcome.cpus {
                let node = machine.node_of(*cpu);
                let within = machine.cpus_of(node).position(|c| c == *cpu).unwrap_or(0);
                let group = match cache.scope {
                    CacheScope::Cpu => (node, within),
                    CacheScope::Group(n) => (node, within / n.max(1) as usize),
                    CacheScope::Node => (node, 0),
                };
                if !shared.contains(&group) {
                    shared.push(group);
                }
            }
            cache.size.0 * shared.len() as u64
        });
        (touched.saturating_mul(self.request.page.0), caches)
    }

    /// Whether the data stays in the caches: it is no larger, and a round fetches little of it from
    /// memory.
    pub(super) fn fits(&self) -> bool {
        let (data, caches) = self.sizes();
        let lines = data / LINE;
        let rounds = self.outcome.marks.len().saturating_sub(1) as u64;
        data <= caches && self.usage.accesses.seen() <= lines.saturating_mul((rounds / 4).max(2))
    }

    /// Whether the environment asks OpenMP to bind its threads.
    pub(super) fn bound(&self) -> bool {
        let environment = &self.loaded.recording.meta.environment;
        let asks = |(name, value): (&str, &str)| match name {
            "OMP_PROC_BIND" => !value.eq_ignore_ascii_case("false"),
            "OMP_PLACES" | "GOMP_CPU_AFFINITY" => !value.is_empty(),
            "KMP_AFFINITY" => !value.is_empty() && !value.contains("none") && !value.contains("disabled"),
            _ => false,
        };
        environment.iter().any(|(name, value)| asks((name, value)))
    }
}

/// A size for a person.
pub(super) fn mib(bytes: u64) -> String {
    match bytes {
        b if b >= 10 << 30 => format!("{} GiB", b >> 30),
        b if b >= 10 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 20 => format!("{:.1} MiB", b as f64 / f64::from(1 << 20)),
        b => format!("{} KiB", b.div_ceil(1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [mib(1), mib(3 << 20), mib(96 << 20), mib(20 << 30)],
            ["1 KiB", "3.0 MiB", "96 MiB", "20 GiB"]
        );
    }
}
