//! `homenode lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, FromArgMatches as _, Subcommand, ValueEnum};
use homenode_error::{Result, size};
use homenode_model::Bytes;

use super::subject::{CommandSubject, RunArgs};

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode lab run -- ./app input.dat                4 nodes of 1 CPU and 1 GiB, all at distance 21
  homenode lab run --machine epyc-nps4 --mem 256M kernel:nas-cg --class S
  homenode lab run --with venv -- venv/bin/python script.py
  homenode lab shell --nodes 2 --with ./app          a prompt on such a machine

The program's output stays as it is. Files that it writes under the working
directory come back. homenode returns the program's status.";

/// What --kernel takes instead of an image.
pub const RECENT: &str = "recent";

/// A virtual NUMA machine: a stock Linux kernel on as many nodes as you like
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What `lab` does.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum LabCommand {
    /// Run a program there
    #[command(override_usage = "homenode lab run [OPTIONS] <kernel:NAME | -- APP [ARG]...>", after_help = EXAMPLES)]
    Run(Box<LabRunArgs>),
    /// Open a prompt there; 'exit' ends it
    Shell(Box<LabShellArgs>),
}

/// What `lab run` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LabRunArgs {
    /// A kernel: kernel:nas-cg ('homenode kernel list' shows all)
    #[arg(value_name = "kernel:NAME")]
    pub what: Option<OsString>,
    /// The machine.
    #[command(flatten)]
    pub lab: MachineArgs,
    /// End the program after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Leave files that the program writes in the guest
    #[arg(long)]
    pub no_sync: bool,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What `lab shell` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LabShellArgs {
    /// The machine.
    #[command(flatten)]
    pub lab: MachineArgs,
}

/// The virtual machine, and the files and variables that go into it.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// Nodes and distances of this machine: a name ('homenode machine list' shows all) or a file
    #[arg(short, long, value_name = "M", conflicts_with_all = ["nodes", "distance"])]
    pub machine: Option<String>,
    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub nodes: u32,
    /// CPUs a node; with --machine, the most that a node gets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cpus: u32,
    /// Memory a node; with --machine, the most that a node gets
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size::parse)]
    pub mem: Bytes,
    /// Distance between nodes, as in the firmware's table (SLIT): 10 is the distance of a node to
    /// itself
    #[arg(long, value_name = "D", default_value_t = 21)]
    pub distance: u32,
    /// Boot this kernel image, or 'recent': Linux 6.8 or later, fetched if missing [default: the
    /// distribution's]
    #[arg(long, value_name = "IMAGE|recent")]
    pub kernel: Option<PathBuf>,
    /// The folder with the modules of --kernel [default: /lib/modules/VERSION]
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub modules: Option<PathBuf>,
    /// The QEMU to use [default: the one in PATH]
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
    /// How the guest executes instructions. auto: by KVM if a trial shows that KVM works
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub accel: AccelArg,
    /// Linux's NUMA balancing [default: as the kernel has it]
    #[arg(long, value_name = "WHEN")]
    pub numa_balancing: Option<OnOff>,
    /// Transparent huge pages [default: as the kernel has it]
    #[arg(long, value_name = "WHEN")]
    pub thp: Option<ThpArg>,
    /// Make every run the same, to the byte: one host thread, time counted in instructions.
    /// homenode reads standard input to its end first and prints the program's output when it has
    /// ended
    #[arg(long, conflicts_with = "accel")]
    pub deterministic: bool,
    /// Take a file or folder along, with the libraries that its programs need; may be repeated
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// Take only those files of the working directory along that the command line names
    #[arg(long)]
    pub no_cwd: bool,
    /// Set a variable for the program, or take one of this environment along; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<EnvVariable>,
    /// Room on the guest's disk
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size::parse)]
    pub disk: Bytes,
    /// Run as root in the guest
    #[arg(long)]
    pub root: bool,
}

impl Default for MachineArgs {
    /// As when nothing is said.
    fn default() -> Self {
        let command = Self::augment_args(clap::Command::new("lab"));
        let parsed = command.try_get_matches_from(["lab"]).and_then(|m| Self::from_arg_matches(&m));
        parsed.unwrap_or_else(|e| e.exit())
    }
}

/// How instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccelArg {
    /// KVM where it works.
    Auto,
    /// Emulated.
    Tcg,
    /// KVM.
    Kvm,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

/// When the guest's kernel uses huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ThpArg {
    /// Wherever it can.
    Always,
    /// Where a program asks for them.
    Madvise,
    /// Not at all.
    Never,
}

/// A variable of `--env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVariable {
    /// Its name.
    pub name: String,
    /// Its value; `None`: the value in this process's environment.
    pub value: Option<String>,
}

impl FromStr for EnvVariable {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() || name.contains('\0') {
            return Err("a variable has a name: NAME=VALUE".into());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

impl LabRunArgs {
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

    fn run(line: &str) -> LabRunArgs {
        match parse::<LabArgs>(&format!("lab run {line}")).unwrap().command {
            LabCommand::Run(args) => *args,
            LabCommand::Shell(_) => panic!("not run"),
        }
    }

    #[test]
    fn the_examples_parse() {
        let a = run("-- ./app input.dat");
        assert_eq!((a.lab.nodes, a.lab.cpus, a.lab.mem, a.lab.distance), (4, 1, Bytes::gib(1), 21));
        let a = run("--machine epyc-nps4 --mem 256M kernel:nas-cg --class S");
        assert_eq!(a.subject().unwrap(), CommandSubject::Kernel { name: "nas-cg".into(), args: vec![] });
        assert_eq!(run("--with venv -- venv/bin/python script.py").lab.with, [PathBuf::from("venv")]);
        assert!(parse::<LabArgs>("lab shell --nodes 2 --with ./app").is_ok());
    }

    #[test]
    fn a_machine_has_its_own_nodes() {
        assert!(parse::<LabArgs>("lab run --machine cxl --nodes 2 -- x").is_err());
        assert!(parse::<LabArgs>("lab run --modules d -- x").is_err());
        assert_eq!(run("--kernel recent -- x").lab.kernel.as_deref(), Some(RECENT.as_ref()));
    }

    #[test]
    fn variables_are_set_or_taken() {
        let a = run("--env A=b=c --env B -- x");
        assert_eq!(a.lab.env[0], EnvVariable { name: "A".into(), value: Some("b=c".into()) });
        assert_eq!(a.lab.env[1].value, None);
        assert!(parse::<LabArgs>("lab run --env =x -- y").is_err());
    }
}
