//! The most memory that a simulation may take.
//!
//! # Problem
//!
//! What a simulation needs follows from the memory that the recorded program touched and from the
//! number of schemes. It is known afterwards. A simulation that takes all memory makes the kernel
//! kill programs of others. The length of the recording does not count: logs are read piece by
//! piece, and accesses of threads that others hold up wait in a file beyond [`HELD`].
//!
//! # Approach
//!
//! The simulation compares its process's resident memory with a bound from time to time, and stops
//! beyond it. The bound is half of the memory that is free when the simulation starts, what control
//! groups leave included, or what [`VARIABLE`] says. Before a long simulation begins, a line tells
//! the bound.

use std::fs::read_to_string;

use homenode_error::{Error, Result, size};
use homenode_model::Bytes;
use homenode_sim::memory::HELD;

/// The environment variable with the bound, a size as in `8GiB`.
pub const VARIABLE: &str = "HOMENODE_MEMORY";

/// Reports between two looks at the resident memory. Each is about 32 Ki accesses.
const EVERY: u32 = 16;

/// A bound for the resident memory of this process.
#[derive(Debug)]
pub(crate) struct Bound {
    most: Bytes,
    /// What may come on top of the memory that the process had before.
    more: Bytes,
    /// Where the bound comes from, for the error.
    why: &'static str,
    reports: u32,
}

/// Accesses from which on a simulation is long: about a minute.
const LONG: u64 = 100_000_000;

/// The reason of a bound that nobody set.
const HALF: &str = "the bound is half of the memory that was free at the start";

impl Bound {
    /// The bound that the variable sets, else half of the free memory. The process's present memory
    /// comes on top.
    ///
    /// # Errors
    /// The variable has no size.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let (more, why) = match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => {
                let more = size::parse(&text).map_err(|e| {
                    Error::usage(format!("{VARIABLE} is '{text}': {e}")).hint("give a size as in 8GiB")
                })?;
                (more, "HOMENODE_MEMORY sets the bound")
            }
            _ => (Bytes(free().map_or(u64::MAX, |free| free.0 / 2)), HALF),
        };
        let now = resident().unwrap_or_default();
        Ok(Self { most: Bytes(now.0.saturating_add(more.0)), more, why, reports: 0 })
    }
    /// The bound, for a person, if a simulation of `accesses` is long.
    pub(crate) fn told(&self, accesses: Option<u64>) -> Option<String> {
        let long = accesses.is_some_and(|n| n >= LONG) && self.more < Bytes(u64::MAX);
        long.then(|| {
            format!(
                "accesses of slow threads beyond {} a scheme wait in a file in {}; the simulation stops if it takes more than \
                 {} of memory: {}",
                size::show(HELD),
                std::env::temp_dir().display(),
                size::show(Bytes(self.more.0 & !((1 << 20) - 1))),
                self.why
            )
        })
    }
    /// Whether the process has more than the bound, looked at now and then.
    pub(crate) fn exceeded(&mut self) -> bool {
        let look = self.reports.is_multiple_of(EVERY);
        self.reports = self.reports.wrapping_add(1);
        look && resident().is_some_and(|now| now > self.most)
    }
    /// The error of a simulation of `what` that is over the bound.
    pub(crate) fn error(&self, what: &dyn std::fmt::Display, jobs: usize) -> Error {
        let most = size::show(self.most);
        let fewer = if jobs > 1 { "simulate fewer schemes or machines at a time, or " } else { "" };
        Error::failed(format!("cannot simulate {what}: it takes more than {most} of memory"))
            .tried(self.why)
            .hint(format!("{fewer}set {VARIABLE} to a larger size, as in {VARIABLE}=16GiB"))
    }
}

/// Resident memory of this process.
fn resident() -> Option<Bytes> {
    kib(&read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Memory that is free on this machine and in this control group.
fn free() -> Option<Bytes> {
    let machine = kib(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let number = |file: &str| read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let most = number("/sys/fs/cgroup/memory.max");
    let left = most.zip(number("/sys/fs/cgroup/memory.current")).map(|(most, now)| most.saturating_sub(now));
    Some(Bytes(left.map_or(machine.0, |left| left.min(machine.0))))
}

/// The value of a line `NAME  123 kB`.
fn kib(text: &str, name: &str) -> Option<Bytes> {
    let value = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(Bytes::kib(value.split_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_kernels_files() {
        let text = "MemTotal:       24689764 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(kib(text, "MemAvailable:"), Some(Bytes::mib(1)));
        assert_eq!(kib(text, "VmRSS:"), None);
        assert_eq!(kib("VmRSS:\n", "VmRSS:"), None);
        assert!(resident().is_some_and(|r| r > Bytes::mib(1)));
        assert!(free().is_some_and(|f| f > Bytes::mib(1)));
    }

    #[test]
    fn a_long_simulation_tells_its_bound_before_it_begins() {
        let bound = Bound { most: Bytes::gib(3), more: Bytes::gib(2), why: HALF, reports: 0 };
        assert_eq!([None, Some(LONG - 1)].map(|n| bound.told(n)), [None, None]);
        let told = bound.told(Some(LONG)).unwrap();
        assert!(told.contains("2 GiB") && told.contains("64 MiB") && told.ends_with(HALF), "{told}");
    }

    #[test]
    fn the_bound_is_looked_at_now_and_then() {
        let mut bound = Bound { most: Bytes(0), more: Bytes(0), why: HALF, reports: 0 };
        let seen: Vec<bool> = (0..2 * EVERY).map(|_| bound.exceeded()).collect();
        assert_eq!(seen.iter().filter(|s| **s).count(), 2);
        assert!(!Bound { most: Bytes(u64::MAX), more: Bytes(0), why: HALF, reports: 0 }.exceeded());
    }
}
