//! `homenode record`.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use homenode_error::{Error, Result};
use homenode_launch::record::FILTER_LINES;
use homenode_runtime::watch::Wanted;

use super::lab::MachineArgs;
use super::subject::{CommandSubject, RunArgs};

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode record kernel:nas-cg --class W           one of the papers' programs
  homenode record -o mine.hnrec -- ./app input.dat  a program built with homenode-cc, -c++ or -fc
  homenode record -- ./app                          any other program as it is (sampled while it runs)
  homenode record --on live --pretend-nodes 2 -- ./app   the same, on a machine with one node
  homenode record --on emulator -- ./app            a program as it is, each access (emulated: slow)
  homenode record --on lab --nodes 4 -- ./app       any program, on a virtual NUMA machine

The program's output is its own; homenode reports on stderr and ends with the program's status.";

/// Record who touches what
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES, override_usage = "homenode record [OPTIONS] <kernel:NAME | -- APP [ARG]...>")]
pub struct RecordArgs {
    /// A kernel: kernel:nas-cg ('homenode kernel list' shows all)
    #[arg(value_name = "kernel:NAME")]
    pub what: Option<OsString>,
    /// The recording to make, a directory. %p becomes homenode's process id, %r its rank; one of
    /// several ranks gets its rank before the extension [default: the program's name, the first
    /// free number, .hnrec]
    #[arg(short, long, value_name = "REC")]
    pub output: Option<PathBuf>,
    /// Replace the recording when it exists
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Accesses that the recorder leaves out. repeats: those that every modelled cache holds
    /// between two synchronisations (4096 lines). none: record all, for small programs and for
    /// machines that count every reference (smile) or do not cache remote memory. N: repeats within
    /// N lines, a power of two from 64 to 1048576, at most the lines of the smallest modelled cache
    #[arg(long, value_name = "FILTER", default_value_t = Filter::Repeats)]
    pub filter: Filter,
    /// Where the program runs, and what sees its accesses [default: host for a program that
    /// homenode's compilers built, else live]
    #[arg(long, value_name = "WHERE")]
    pub on: Option<On>,
    /// How a live recording learns who touches which page. auto: the best way that this machine
    /// offers. pmu: samples of accesses, the only way that counts. hinting: the kernel's NUMA
    /// hinting faults. writes: faults of write-protected pages. blocks: faults of pages taken away
    /// at random times [default: auto]
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<Wanted>,
    /// For a live recording, deal the CPUs into N pretended nodes and record which of them touches
    /// each page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub pretend_nodes: Option<u16>,
    /// Write the report to FILE instead of stderr. The ranks of a job write one FILE
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Print problems only
    #[arg(short, long)]
    pub quiet: bool,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
    /// The virtual machine.
    #[command(flatten)]
    pub lab: MachineArgs,
}

/// Where a program runs while it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// This machine. The program's own code records every access: homenode-cc has built it.
    Host,
    /// This machine. Samples or page faults tell of accesses: any program as it is.
    Live,
    /// A virtual NUMA machine. Its monitor counts main-memory accesses from outside.
    Lab,
    /// This machine, under QEMU's user-mode emulation. The emulator records every access of any
    /// program for x86-64 Linux.
    Emulator,
}

/// What the recorder leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Accesses that every modelled cache would hold between two synchronisations.
    Repeats,
    /// Nothing: for small programs, and machines that count every reference or do not cache remote
    /// memory.
    None,
    /// Repeats within this number of lines, a power of two.
    Lines(u32),
}

impl Filter {
    /// Lines of the recorder's filter; 0: none.
    pub const fn lines(self) -> u32 {
        match self {
            Self::Repeats => FILTER_LINES,
            Self::None => 0,
            Self::Lines(lines) => lines,
        }
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "repeats" => Ok(Self::Repeats),
            "none" => Ok(Self::None),
            _ => match text.parse::<u32>() {
                Ok(lines) if lines.is_power_of_two() && (64..=1 << 20).contains(&lines) => {
                    Ok(Self::Lines(lines))
                }
                Ok(_) => Err(format!("{text} is not a power of two from 64 to 1048576")),
                Err(_) => Err("it is 'repeats', 'none' or a number of lines, such as 1024".into()),
            },
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeats => f.write_str("repeats"),
            Self::None => f.write_str("none"),
            Self::Lines(lines) => write!(f, "{lines}"),
        }
    }
}

impl RecordArgs {
    /// Options that would have no effect are refused.
    ///
    /// # Errors
    /// A usage error that names what the option is for.
    pub fn check(&self) -> Result<()> {
        match self.on {
            on if on != Some(On::Lab) && self.lab != MachineArgs::default() => Err(Error::usage(
                "an option of the virtual machine is given, but the program does not run there",
            )
            .hint("--on lab records on the virtual machine")),
            Some(On::Lab) if self.filter != Filter::Repeats => Err(Error::usage(
                "--filter is for the recorder inside the program; the lab's monitor sees every access",
            )
            .hint("leave --filter out, or --on lab")),
            Some(On::Live) if self.filter != Filter::Repeats => Err(Error::usage(
                "--filter is for the recorder inside the program; a live recording is told by samples",
            )
            .hint("leave --filter out, or --on live")),
            Some(on) if on != On::Live && self.is_live() => Err(Error::usage(
                "--source and --pretend-nodes are for a recording of a program as it runs here",
            )
            .hint("--on live records so")),
            _ if self.source == Some(Wanted::Regions) => {
                Err(Error::usage("the source regions tells nothing of who touches what")
                    .hint("name another one, or none: the best of this machine is taken"))
            }
            _ => Ok(()),
        }
    }

    /// Whether an option is given that only a live recording has.
    pub fn is_live(&self) -> bool {
        self.source.is_some() || self.pretend_nodes.is_some()
    }

    /// What to record.
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
        let a: RecordArgs = parse("record kernel:nas-cg --class W").unwrap();
        assert_eq!(a.subject().unwrap(), CommandSubject::Kernel { name: "nas-cg".into(), args: vec![] });
        assert_eq!((a.run.class.as_deref(), a.filter), (Some("W"), Filter::Repeats));
        let a: RecordArgs = parse("record -o mine.hnrec -- ./app input.dat").unwrap();
        let program = CommandSubject::Program { program: "./app".into(), args: vec!["input.dat".into()] };
        assert_eq!(a.subject().unwrap(), program);
        assert_eq!(a.output, Some("mine.hnrec".into()));
    }

    #[test]
    fn replacing_needs_a_name() {
        assert!(parse::<RecordArgs>("record --force -- ./app").is_err());
        assert!(parse::<RecordArgs>("record -o x --force --filter none -- ./app").is_ok());
    }

    #[test]
    fn a_filter_has_a_name_or_a_size() {
        let lines = |text: &str| text.parse::<Filter>().map(Filter::lines);
        assert_eq!([lines("repeats"), lines("none"), lines("1024")], [Ok(4096), Ok(0), Ok(1024)]);
        for bad in ["", "0", "32", "1000", "2097152", "-4", "some"] {
            assert!(lines(bad).is_err(), "{bad}");
        }
        for text in ["repeats", "none", "64"] {
            assert_eq!(text.parse::<Filter>().unwrap().to_string(), text);
        }
    }
}
