//! Whether a process lives.

use std::fs;

/// Where the kernel lists processes.
pub(crate) const PROC: &str = "/proc";

/// Whether there is a process of that number. One that ended and that nobody has waited for does
/// not live.
pub fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("{PROC}/{pid}/stat")).unwrap_or_default();
    fields(&stat).first().is_some_and(|state| !matches!(*state, "Z" | "X"))
}

/// The fields of `/proc/PID/stat` behind the name, which may hold anything.
pub(crate) fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(") ").map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default()
}
