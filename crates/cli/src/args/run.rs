//! `homenode run`.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use homenode_error::Result;
use homenode_runtime::watch::Wanted;

use super::schedule::ScheduleArgs;
use super::subject::{RunArgs, Subject};
use crate::live::policies;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode run -- ./app input.dat                         pages follow their first use in a parallel region
  homenode run --policy next-touch=region -- ./app        … in every region, as long as it pays
  homenode run --policy competitive -- ./app              pages move after an iteration, by who was seen at them
  homenode run --plan mine.hnplan -- ./app                each page where the plan has it, from its first touch on
  homenode run --schedule auto -- ./app                   dynamic loops: block, cyclic, replayed, whichever is fastest
  homenode run --pretend-nodes 2 kernel:heat -- --init serial   all of it on a machine with one node
  srun homenode run --summary report.%p -- ./app          under a launcher: homenode stands next to the program

The program needs not be built anew. Its output is its own; homenode reports on stderr and ends with the program's status.";

/// What stands at the end of `--help`.
fn after_help() -> String {
    format!("{}\n\n{EXAMPLES}", policies::section())
}

/// Run a program and move its pages to the nodes that use them
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = after_help(), override_usage = "homenode run [OPTIONS] <kernel:NAME | -- APP [ARG]...>")]
pub struct LiveArgs {
    /// A kernel: kernel:nas-cg ('homenode kernel list' shows all)
    #[arg(value_name = "kernel:NAME")]
    pub what: Option<OsString>,
    /// What decides: next-touch (at the first parallel region, and when the program's iteration is
    /// known), next-touch=region (at every region, as long as it pays), next-touch=asked (only what
    /// the program asks for by hn_next_touch), or another (list below)
    #[arg(long, value_name = "POLICY", default_value = "next-touch")]
    pub policy: String,
    /// What tells who touches what, for a policy that is told: auto (the best of this machine), pmu
    /// (samples of accesses, the only one that counts), hinting (the kernel's NUMA hinting faults),
    /// writes (to write-protected pages), blocks (pages taken away at random times), regions
    /// (nothing)
    #[arg(long, value_name = "SOURCE", default_value_t = Wanted::Auto)]
    pub source: Wanted,
    /// Keep a journal of the policy in DIR, a file for each process ('homenode rec replay-policy'
    /// checks it)
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Record what happens to which page in a new data set at REC: 'homenode show REC' reads it
    #[arg(long, value_name = "REC")]
    pub record: Option<PathBuf>,
    /// Show what happens in the browser while the program runs, and until the page is closed
    #[arg(long)]
    pub view: bool,
    /// Put pages where a plan wants them ('homenode plan' makes one), instead of a policy
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    pub plan: Option<PathBuf>,
    /// Deal the CPUs into N nodes and keep a table of page homes: everything happens, but for the
    /// gain
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub pretend_nodes: Option<u16>,
    /// What CPU time homenode may spend, as a share of the program's, a fixed time, or both; then
    /// it stops. Unless given: 1%+2s once moving shows a gain, and until then 3 % or 50 ms,
    /// whichever is more
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// Copy pages where a container allows neither userfaultfd nor moving them. Only for programs
    /// that call munmap, mremap and madvise through the C library: what one gives up past it may
    /// come back
    #[arg(long)]
    pub copy_unseen: bool,
    /// Bind the threads to CPUs, node by node (OMP_PLACES, OMP_PROC_BIND), where the environment
    /// does not
    #[arg(long)]
    pub bind: bool,
    /// Move whatever the policy says: hold no blocks back, and do not judge whether it pays
    #[arg(long)]
    pub force: bool,
    /// Write the report to FILE instead of stderr; %p is replaced by the process id of homenode
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Report as a JSON object that carries its schema and version
    #[arg(long)]
    pub json: bool,
    /// Behind the three lines of the answer, all that is known
    #[arg(short, long, conflicts_with_all = ["json", "quiet"])]
    pub verbose: bool,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// Who hands out the iterations of loops.
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What homenode may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Thousandths of the run time.
    pub permille: u64,
    /// And so many milliseconds in any case.
    pub milliseconds: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { permille: 10, milliseconds: 2000 }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut budget = Self { permille: 0, milliseconds: 0 };
        for part in text.split('+') {
            let part = part.trim();
            let number = |unit: &str, scale: f64| {
                let n: f64 = part.strip_suffix(unit)?.trim().parse().ok()?;
                (0.0..1e9).contains(&n).then_some((n * scale).round() as u64)
            };
            // "ms" before "s": the one ends like the other.
            match (number("%", 10.0), number("ms", 1.0).or_else(|| number("s", 1000.0))) {
                (Some(p), _) if p <= 1000 => budget.permille += p,
                (None, Some(t)) => budget.milliseconds += t,
                _ => return Err("it is a share and a time, such as 1%+2s, 0.5% or 500ms".into()),
            }
        }
        Ok(budget)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.permille as f64 / 10.0;
        match self.milliseconds {
            0 => write!(f, "{percent}%"),
            ms if ms % 1000 == 0 => write!(f, "{percent}%+{}s", ms / 1000),
            ms => write!(f, "{percent}%+{ms}ms"),
        }
    }
}

impl LiveArgs {
    /// What to run.
    ///
    /// # Errors
    /// A usage error when there is nothing, or more than one thing.
    pub fn subject(&self) -> Result<Subject> {
        self.run.subject(self.what.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: LiveArgs = parse("run -- ./app input.dat").unwrap();
        assert_eq!((a.policy.as_str(), a.budget), ("next-touch", None));
        let a: LiveArgs = parse("run --pretend-nodes 2 kernel:heat -- --init serial").unwrap();
        let want = Subject::Kernel { name: "heat".into(), args: vec!["--init".into(), "serial".into()] };
        assert_eq!((a.subject().unwrap(), a.pretend_nodes), (want, Some(2)));
    }

    #[test]
    fn one_node_is_nothing_to_pretend() {
        assert!(parse::<LiveArgs>("run --pretend-nodes 1 -- ./app").is_err());
    }

    #[test]
    fn a_budget_is_a_share_and_a_time() {
        let read = |text: &str| text.parse::<Budget>().map(|b| (b.permille, b.milliseconds));
        assert_eq!(read("1%+2s"), Ok((10, 2000)));
        assert_eq!([read("0.5%"), read("500ms"), read("0%")], [Ok((5, 0)), Ok((0, 500)), Ok((0, 0))]);
        for bad in ["", "1", "%", "200%", "-1s", "1%+", "x s", "1e30s"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for text in ["1%+2s", "0.5%+500ms", "3%"] {
            assert_eq!(text.parse::<Budget>().unwrap().to_string(), text);
        }
    }
}
