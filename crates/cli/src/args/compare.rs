//! `homenode compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use homenode_error::{Error, Result, size};
use homenode_model::Bytes;
use homenode_schemes::regroup::Schedule;
use homenode_schemes::yardsticks;

use super::lab::{MachineArgs, ThpArg};
use super::subject::{CommandSubject, RunArgs};
use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode compare mine.hnrec                       simulate every placement
  homenode compare kernel:nas-cg --class W -m sf15k     record first, then simulate
  homenode compare mine.hnrec -m sf15k -m this      two machines, one recording
  homenode compare mine.hnrec -p first-touch -p next-touch --csv
  homenode compare mine.hnrec --schedule cyclic --schedule affinity -p first-touch -p plan
  homenode compare mine.hnrec --statistics          what moved when, who accessed what
  homenode compare mine.hnrec --fail-if 'next-touch:remote>10'
  homenode compare --on host -- ./app               real runs here, in pairs, with proof
  homenode compare --on lab --repeat 3 kernel:heat  real runs on a virtual machine";

/// Which yardsticks a comparison is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum YardsticksArg {
    /// None.
    #[default]
    None,
    /// Floor and bound, from one pass over the recording.
    Bound,
    /// Also each page by itself and the best placement found, from a second pass.
    All,
}

/// Writes `--yardsticks WHICH` as `--yardsticks=WHICH`. An option with an optional value takes the
/// next word only with a `=`, and `--yardsticks REC` is a recording without a value.
pub fn joined(args: &[OsString]) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::with_capacity(args.len());
    let mut options = true;
    for word in args {
        options &= word != "--";
        let named = word.to_str().filter(|w| <YardsticksArg as clap::ValueEnum>::from_str(w, false).is_ok());
        match (named, out.last_mut()) {
            (Some(which), Some(last)) if options && last == "--yardsticks" => {
                last.push("=");
                last.push(which);
            }
            _ => out.push(word.clone()),
        }
    }
    out
}

impl From<YardsticksArg> for yardsticks::YardstickSet {
    fn from(yardsticks: YardsticksArg) -> Self {
        match yardsticks {
            YardsticksArg::None => Self::None,
            YardsticksArg::Bound => Self::Bound,
            YardsticksArg::All => Self::All,
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
    /// Where to try the schemes: simulated, on this machine, or on the lab, a virtual NUMA machine
    /// with a real Linux kernel
    #[arg(long, value_name = "WHERE", default_value = "simulator")]
    pub on: On,
    /// Simulate this machine: a name ('homenode machine list' shows all) or a file; may be repeated
    /// [default: this machine if it has several nodes, else 2s-xeon; on the lab --nodes]
    #[arg(short, long = "machine", value_name = "M")]
    pub machines: Vec<String>,
    /// Try this placement scheme; may be repeated [default: all]. On the host and on the lab:
    /// first-touch, parallel-init (kernels), interleave (numactl), balancing (Linux's),
    /// next-touch, next-touch=region
    #[arg(short, long = "policy", value_name = "P")]
    pub policies: Vec<String>,
    /// Also deal the recorded chunks of schedule(dynamic|guided|runtime) loops anew, and try each
    /// scheme with that: dynamic, block, cyclic, affinity, work-stealing; may be repeated
    #[arg(long = "schedule", value_name = "S")]
    pub schedules: Vec<Schedule>,
    /// Simulate pages of this size, one that the machine offers [default: the machine's smallest]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub page: Option<Bytes>,
    /// Misses that a CPU has under way at once; 1: it waits for each [default: the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub outstanding: Option<u32>,
    /// Percent of the latency that prefetching hides for misses in sequential streams [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub coverage: Option<u8>,
    /// Compare the schemes with yardsticks, too. bound takes one pass over the recording, all takes
    /// two [default of WHICH: all]
    #[arg(long, value_enum, default_value_t, value_name = "WHICH", num_args = 0..=1, require_equals = true,
        default_missing_value = "all", hide_default_value = true)]
    pub yardsticks: YardsticksArg,
    /// Print more tables: moves by kind and iteration, accesses by node, iteration times
    #[arg(long)]
    pub statistics: bool,
    /// Simulate with N threads of this machine; the result is the same for any N [default: one a
    /// CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Keep the recordings in DIR, with a data set of each scheme: MACHINE-SCHEME.hnrec
    #[arg(long, value_name = "DIR")]
    pub keep: Option<std::path::PathBuf>,
    /// Write what each policy saw and decided to DIR, one file a scheme ('homenode rec
    /// replay-policy' checks it)
    #[arg(long, value_name = "DIR")]
    pub journal: Option<std::path::PathBuf>,
    /// Runs of each scheme on the lab [default: 1] or on this machine [default: 9]: the table has
    /// medians, and how far they can be trusted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: Option<u32>,
    /// With --on host: deal the CPUs into N nodes for 'homenode run', to try it on one node
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub pretend_nodes: Option<u16>,
    /// With --on host: also simulate the schemes from a recording of the same program, and print
    /// the predicted times beside the measured ones; -m names the machine [default: this]
    #[arg(long, value_name = "REC")]
    pub predict: Option<PathBuf>,
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
    /// On this machine: real runs in pairs, with intervals, and proof of where pages were.
    Host,
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
    pub thp: Option<ThpArg>,
    /// Take a file or folder along; may be repeated
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// Leave the working directory's files here
    #[arg(long)]
    pub no_cwd: bool,
}

impl GuestArgs {
    /// Overrides `lab` with the options that were given here.
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
    /// Refuses words that mean nothing where programs run.
    ///
    /// # Errors
    /// A usage error that names the word.
    pub fn only_real(&self) -> Result<()> {
        let words = [
            ("--page", self.page.is_some()),
            ("--outstanding", self.outstanding.is_some()),
            ("--coverage", self.coverage.is_some()),
            ("--statistics", self.statistics),
            ("--journal", self.journal.is_some()),
            ("--keep", self.keep.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("--schedule", !self.schedules.is_empty()),
        ];
        match words.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((word, _)) => {
                Err(Error::usage(format!("{word} is for simulated schemes; here Linux places the pages"))
                    .hint(format!("leave out {word}, or --on")))
            }
        }
    }

    /// The program to run.
    ///
    /// # Errors
    /// As [`Self::subject`]; it is a recording.
    pub fn program(&self) -> Result<CommandSubject> {
        match self.subject()? {
            CommandSubject::Recording(path) => {
                Err(Error::usage(format!("{} is a recording, and only programs run", path.display()))
                    .hint("name the program: homenode compare --on … -- ./app"))
            }
            program => Ok(program),
        }
    }

    /// What to compare on.
    ///
    /// # Errors
    /// A usage error when there is nothing or more than one thing, for a recording that is a
    /// program, and for words of the lab without it.
    pub fn subject(&self) -> Result<CommandSubject> {
        if self.on != On::Lab && self.lab != GuestArgs::default() {
            return Err(Error::usage("an option of the lab is given, and the schemes do not run there")
                .hint("--on lab compares on the virtual machine"));
        }
        if self.on == On::Simulator && (self.repeat.is_some() || self.pretend_nodes.is_some()) {
            return Err(Error::usage("an option of real runs is given, but the schemes are simulated")
                .hint("--on host compares on this machine, --on lab on a virtual one"));
        }
        if self.on != On::Host && self.predict.is_some() {
            return Err(Error::usage("--predict is for --on host, whose times it stands beside")
                .hint("to simulate a recording alone: homenode compare REC"));
        }
        let subject = self.run.subject_or_recording(self.what.as_deref())?;
        match &subject {
            CommandSubject::Recording(path) if path.is_file() => {
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
        assert_eq!(a.subject().unwrap(), CommandSubject::Kernel { name: "nas-cg".into(), args: vec![] });
        let a: CompareArgs = parse("compare mine.hnrec -m sf15k -m this").unwrap();
        assert_eq!(a.machines, ["sf15k", "this"]);
        let a: CompareArgs = parse("compare mine.hnrec -p first-touch -p next-touch --csv").unwrap();
        assert_eq!((a.policies.len(), a.output.csv), (2, true));
        let a: CompareArgs = parse("compare mine.hnrec --fail-if next-touch:remote>10").unwrap();
        assert_eq!(a.output.fail_if.len(), 1);
        assert!(a.machines.is_empty());
        let a: CompareArgs = parse("compare --on lab --repeat 3 --nodes 2 --mem 256M kernel:heat").unwrap();
        assert_eq!(
            (a.on, a.repeat, a.lab.nodes, a.lab.mem),
            (On::Lab, Some(3), Some(2), Some(Bytes::mib(256)))
        );
        let a: CompareArgs = parse("compare --nodes 2 kernel:heat").unwrap();
        assert!(a.subject().unwrap_err().to_string().contains("--on lab"));
    }

    #[test]
    fn one_form_at_a_time() {
        assert!(parse::<CompareArgs>("compare r --csv --json").is_err());
    }

    #[test]
    fn yardsticks_take_their_value_with_or_without_an_equals_sign() {
        let joined = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            joined(&words).join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(joined("compare --yardsticks none r"), "compare --yardsticks=none r");
        assert_eq!(joined("compare --yardsticks r"), "compare --yardsticks r");
        assert_eq!(joined("compare -- app --yardsticks all"), "compare -- app --yardsticks all");
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
