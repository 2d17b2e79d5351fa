//! `homenode compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use homenode_error::{Error, Result, size};
use homenode_model::Bytes;
use homenode_schemes::yardsticks;

use super::lab::{MachineArgs, Thp};
use super::subject::{RunArgs, Subject};
use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode compare kernel:nas-cg --class W --machine sf15k   record once, simulate every placement
  homenode compare mine.hnrec -m sf15k -m this               two machines from one recording
  homenode compare mine.hnrec -p first-touch -p next-touch --csv
  homenode compare mine.hnrec --statistics                   what moved when, and who accessed what
  homenode compare mine.hnrec --fail-if 'next-touch:remote>10'
  homenode compare --on lab --repeat 3 kernel:heat           Linux's and homenode's schemes on a virtual NUMA machine";

/// Which yardsticks a comparison is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Yardsticks {
    /// None.
    #[default]
    None,
    /// Floor and bound: what one pass over the recording yields.
    Bound,
    /// Each page by itself and the best placement found, too: a second pass.
    All,
}

impl From<Yardsticks> for yardsticks::Extent {
    fn from(yardsticks: Yardsticks) -> Self {
        match yardsticks {
            Yardsticks::None => Self::None,
            Yardsticks::Bound => Self::Bound,
            Yardsticks::All => Self::All,
        }
    }
}

/// All placement schemes in one table
#[derive(Args, Clone, Debug, PartialEq)]
#[command(
    after_help = EXAMPLES,
    override_usage = "homenode compare [OPTIONS] <REC | kernel:NAME | -- APP [ARG]...>"
)]
pub struct CompareArgs {
    /// A recording, or a kernel (kernel:nas-cg) that is recorded first
    #[arg(value_name = "REC | kernel:NAME")]
    pub what: Option<OsString>,
    /// Where schemes are compared: simulated, or on the lab, a virtual NUMA machine with a real
    /// Linux kernel
    #[arg(long, value_name = "WHERE", default_value = "simulator")]
    pub on: On,
    /// Machine: a name ('homenode machine list' shows all) or a file; may be repeated [default:
    /// this one if it has two nodes, else 2s-xeon; on the lab --nodes]
    #[arg(short, long = "machine", value_name = "M")]
    pub machines: Vec<String>,
    /// Placement scheme; may be repeated [default: all]. On the lab: first-touch, parallel-init (of
    /// kernels), interleave (numactl), balancing (Linux's), next-touch, next-touch=region
    #[arg(short, long = "policy", value_name = "P")]
    pub policies: Vec<String>,
    /// Page size, one that the machine offers [default: the machine's smallest]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub page: Option<Bytes>,
    /// Outstanding misses of a CPU instead of the machine's; 1: it waits for each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub outstanding: Option<u32>,
    /// Percent of the latency that prefetching hides of misses in sequential streams [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub coverage: Option<u8>,
    /// Measure the schemes against yardsticks, too: bound or, in a second pass over the recording,
    /// all [default of WHICH: all]
    #[arg(long, value_enum, default_value_t, value_name = "WHICH", num_args = 0..=1, require_equals = true,
        default_missing_value = "all", hide_default_value = true)]
    pub yardsticks: Yardsticks,
    /// Moves by kind and by iteration, accesses by node, iteration times: more tables below the
    /// first
    #[arg(long)]
    pub statistics: bool,
    /// Host threads that simulate; the result does not depend on it [default: one a CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Keep in DIR the recordings that are made for this, and a data set of each scheme:
    /// MACHINE-SCHEME.hnrec
    #[arg(long, value_name = "DIR")]
    pub keep: Option<std::path::PathBuf>,
    /// Write what each policy was told and decided to DIR, a file a scheme, for 'homenode rec
    /// replay-policy'
    #[arg(long, value_name = "DIR")]
    pub journal: Option<std::path::PathBuf>,
    /// Runs of each scheme on the lab: the table has medians and spreads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Check machines, schemes and options, and run nothing
    #[arg(long, conflicts_with = "on")]
    pub check: bool,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
    /// The lab.
    #[command(flatten)]
    pub lab: GuestArgs,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Where schemes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// Simulated, from a recording.
    Simulator,
    /// On the lab.
    Lab,
}

/// The virtual machine of a comparison on the lab.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Lab")]
pub struct GuestArgs {
    /// Nodes [default: 4]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// CPUs a node [default: 1]
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// Memory a node [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub mem: Option<Bytes>,
    /// Each run does the same in the same order
    #[arg(long)]
    pub deterministic: bool,
    /// Transparent huge pages [default: as the kernel has it]
    #[arg(long, value_name = "WHEN")]
    pub thp: Option<Thp>,
    /// Take a file or folder along; may be repeated
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// Leave the working directory's files here
    #[arg(long)]
    pub no_cwd: bool,
}

impl GuestArgs {
    /// What is said here, over what `lab` has.
    pub fn over(&self, lab: &mut MachineArgs) {
        lab.nodes = self.nodes.unwrap_or(lab.nodes);
        lab.cpus = self.cpus.unwrap_or(lab.cpus);
        lab.mem = self.mem.unwrap_or(lab.mem);
        lab.deterministic = self.deterministic;
        lab.thp = self.thp;
        lab.with.clone_from(&self.with);
        lab.no_cwd = self.no_cwd;
    }
}

impl CompareArgs {
    /// What to compare on.
    ///
    /// # Errors
    /// A usage error when there is nothing or more than one thing, for a recording that is a
    /// program, and for words of the lab without it.
    pub fn subject(&self) -> Result<Subject> {
        if self.on == On::Simulator && (self.lab != GuestArgs::default() || self.repeat > 1) {
            return Err(Error::usage("an option of the lab is given, but the schemes are simulated")
                .hint("--on lab compares on the virtual machine"));
        }
        let subject = self.run.subject_or_recording(self.what.as_deref())?;
        match &subject {
            Subject::Recording(path) if path.is_file() => {
                let path = path.display();
                Err(Error::usage(format!("{path} is a file; a recording is a directory"))
                    .hint(format!("to record that program: homenode compare -- {path}")))
            }
            _ => Ok(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: CompareArgs = parse("compare kernel:nas-cg --class W --machine sf15k").unwrap();
        assert_eq!(a.subject().unwrap(), Subject::Kernel { name: "nas-cg".into(), args: vec![] });
        let a: CompareArgs = parse("compare mine.hnrec -m sf15k -m this").unwrap();
        assert_eq!(a.machines, ["sf15k", "this"]);
        let a: CompareArgs = parse("compare mine.hnrec -p first-touch -p next-touch --csv").unwrap();
        assert_eq!((a.policies.len(), a.output.csv), (2, true));
        let a: CompareArgs = parse("compare mine.hnrec --fail-if next-touch:remote>10").unwrap();
        assert_eq!(a.output.fail_if.len(), 1);
        assert!(a.machines.is_empty());
        let a: CompareArgs = parse("compare --on lab --repeat 3 --nodes 2 --mem 256M kernel:heat").unwrap();
        assert_eq!((a.on, a.repeat, a.lab.nodes, a.lab.mem), (On::Lab, 3, Some(2), Some(Bytes::mib(256))));
        let a: CompareArgs = parse("compare --nodes 2 kernel:heat").unwrap();
        assert!(a.subject().unwrap_err().to_string().contains("--on lab"));
    }

    #[test]
    fn one_form_at_a_time() {
        assert!(parse::<CompareArgs>("compare r --csv --json").is_err());
    }

    #[test]
    fn a_page_is_a_size() {
        assert_eq!(parse::<CompareArgs>("compare r --page 8KiB").unwrap().page, Some(Bytes(8192)));
        assert!(parse::<CompareArgs>("compare r --page big").is_err());
    }

    #[test]
    fn a_program_without_dashes_is_explained() {
        let this = std::env::current_exe().unwrap();
        let mut a: CompareArgs = parse("compare x").unwrap();
        a.what = Some(this.into());
        assert!(a.subject().unwrap_err().hint.unwrap().starts_with("to record that program"));
    }
}
