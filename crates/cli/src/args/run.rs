//! `homenode run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use homenode_error::Result;
use homenode_live::budget::RunBudget;
use homenode_live::policies;
use homenode_runtime::watch::Wanted;
use homenode_wire::settings::MoveWhile;

use super::schedule::ScheduleArgs;
use super::subject::{CommandSubject, RunArgs};

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode run -- ./app input.dat
      pages follow the thread that uses them in the first parallel regions
  homenode run --policy next-touch=region -- ./app
      pages follow in every region, as long as that pays
  homenode run --policy competitive -- ./app
      after each iteration, pages move to the node that was seen there most
  homenode run --plan mine.hnplan -- ./app
      each page lives where the plan says, from its first touch on
  homenode run --schedule auto -- ./app
      dynamic loops: block, cyclic or replayed, whichever is fastest
  homenode run --pretend-nodes 2 kernel:heat -- --init serial
      try all of it on a machine with one node
  srun homenode run --summary report.txt -- ./app
      ranks of a job: one report of all, with a row for each rank

The program need not be built anew. Its output stays as it is. homenode reports \
on stderr and ends with the program's status.

Environment: HOMENODE_LIB_DIR names the folder with libhomenode.so; TMPDIR the \
folder for temporary files; NO_COLOR turns colours off.";

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
    /// How to decide which page moves where. next-touch: at the first parallel region, and once
    /// more when homenode knows the program's iteration. next-touch=region: at every region, as
    /// long as it pays. next-touch=asked: only where the program calls hn_next_touch. Others: see
    /// below
    #[arg(long, value_name = "POLICY", default_value = policies::DEFAULT)]
    pub policy: String,
    /// How a policy learns who touches which page. auto: the best way that this machine offers.
    /// pmu: samples of accesses, the only way that counts. hinting: the kernel's NUMA hinting
    /// faults. writes: faults of write-protected pages. blocks: faults of pages taken away at
    /// random times. regions: nothing is watched
    #[arg(long, value_name = "SOURCE", default_value_t = Wanted::Auto)]
    pub source: Wanted,
    /// Write what the policy saw and decided to DIR, one file a process ('homenode rec
    /// replay-policy' checks it)
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Record what happens to which page in REC ('homenode show REC' reads it)
    #[arg(long, value_name = "REC")]
    pub record: Option<PathBuf>,
    /// Show the run in the browser while the program runs, until you close the page
    #[arg(long)]
    pub view: bool,
    /// Put pages where this plan says, without a policy ('homenode plan' makes one)
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    pub plan: Option<PathBuf>,
    /// Pretend that the CPUs belong to N nodes. homenode does everything as on real nodes, and
    /// nothing becomes faster
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub pretend_nodes: Option<u16>,
    /// CPU time that homenode may spend: a share of the program's, a fixed time, or both (1%+2s).
    /// Then homenode stops [default: the larger of 3 % and 50 ms until moving shows a gain, 1%+2s
    /// from then on]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<RunBudget>,
    /// Copy pages where a container allows neither userfaultfd nor moving them. Safe only for
    /// programs that call munmap, mremap and madvise through the C library: memory that a program
    /// gives up by other ways may come back
    #[arg(long)]
    pub copy_unseen: bool,
    /// When pages with a known target move (a plan's, block's): asleep (while the team sleeps, at
    /// the start of a region), running (by a thread of homenode's, while the team runs), or auto:
    /// up to 32 MiB asleep, and the rest by the manner that costs the program less
    #[arg(long, value_name = "WHEN", default_value_t = MoveWhile::Auto)]
    pub move_while: MoveWhile,
    /// Bind OpenMP's threads to CPUs, node by node, unless OMP_PLACES or OMP_PROC_BIND is set
    #[arg(long)]
    pub bind: bool,
    /// Let each allocation of at least 64 KiB begin on a page, so that arrays of whole pages share
    /// none with other nodes; free, realloc and malloc_usable_size work as before
    #[arg(long)]
    pub align: bool,
    /// Move every page that the policy names; hold no blocks back, and do not judge whether moving
    /// pays
    #[arg(long)]
    pub force: bool,
    /// Write the report to FILE instead of stderr. The ranks of a job write one FILE, on a file
    /// system that all of them see. %p becomes homenode's process id, %r its rank: then each rank
    /// writes its own
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Print the report as a JSON object with schema and version
    #[arg(long)]
    pub json: bool,
    /// Print all that is known below the three lines of the answer
    #[arg(short, long, conflicts_with_all = ["json", "quiet"])]
    pub verbose: bool,
    /// Print problems only
    #[arg(short, long)]
    pub quiet: bool,
    /// Who hands out the iterations of loops.
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
}

impl LiveArgs {
    /// What to run.
    ///
    /// # Errors
    /// A usage error when there is nothing, or more than one thing.
    pub fn subject(&self) -> Result<CommandSubject> {
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
        let want =
            CommandSubject::Kernel { name: "heat".into(), args: vec!["--init".into(), "serial".into()] };
        assert_eq!((a.subject().unwrap(), a.pretend_nodes), (want, Some(2)));
    }

    #[test]
    fn one_node_is_nothing_to_pretend() {
        assert!(parse::<LiveArgs>("run --pretend-nodes 1 -- ./app").is_err());
    }
}
