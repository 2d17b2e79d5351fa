//! What is run, how and where, and what comes of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use homenode_model::{Bytes, Topology};

use crate::bring::Brought;
use crate::initramfs::Thp;
use crate::kernel::WantedKernel;
use crate::machine::VirtualMachine;
use crate::monitor::MonitorReport;
use crate::qemu::Accel;
use crate::wire::ProgramEnd;

/// How to execute the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccelChoice {
    /// KVM if a trial shows that it works, else emulated.
    #[default]
    Auto,
    /// Emulated.
    Tcg,
    /// KVM.
    Kvm,
}

/// A virtual machine and its run.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The machine.
    pub machine: VirtualMachine,
    /// Its kernel.
    pub kernel: WantedKernel,
    /// A QEMU instead of the one in PATH.
    pub qemu: Option<PathBuf>,
    /// How its instructions are executed.
    pub accel: AccelChoice,
    /// Whether each run does the same in the same order; see [`Accel::Deterministic`]. Standard
    /// input is read to its end first, and the program's output comes when it has ended.
    pub deterministic: bool,
    /// Linux's NUMA balancing; `None`: the kernel's default.
    pub numa_balancing: Option<bool>,
    /// Transparent huge pages; `None`: the kernel's default.
    pub thp: Option<Thp>,
    /// Files and folders that travel along.
    pub with: Vec<PathBuf>,
    /// Space for the program's files.
    pub spare: Bytes,
    /// Its environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Whether the working directory's files travel along.
    pub carry_cwd: bool,
    /// Whether files that the program writes there come back.
    pub sync: bool,
    /// Whether the program runs as root in the guest, and not as the caller.
    pub root: bool,
    /// The guest's side: `homenode-lab-guest`.
    pub guest: PathBuf,
    /// Where scratch files go.
    pub scratch: PathBuf,
    /// The monitor, which counts the program's main-memory accesses.
    pub monitor: Option<Monitoring>,
    /// The library in each of the program's processes that reports objects.
    pub marks: Option<Marks>,
}

/// How the program's processes report their objects.
#[derive(Clone, Debug)]
pub struct Marks {
    /// The library that is loaded into them.
    pub library: PathBuf,
    /// The variable with the folder to write to.
    pub variable: &'static str,
    /// The folder on the host for the marks.
    pub folder: PathBuf,
}

/// The monitor's settings.
#[derive(Clone, Debug)]
pub struct Monitoring {
    /// The plug-in.
    pub library: PathBuf,
    /// The modelled machine, its CPUs those of the guest.
    pub machine: Topology,
}

/// The program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Its name (`argv[0]`).
    pub name: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// The targets of the program's streams.
pub struct StreamTargets {
    /// Its standard input; `None`: empty.
    pub stdin: Option<Box<dyn Read + Send>>,
    /// Its standard output.
    pub stdout: Box<dyn Write + Send>,
    /// Its standard error.
    pub stderr: Box<dyn Write + Send>,
}

/// Supervision of a run.
pub struct Supervision<'a> {
    /// Longest time for the program; `None`: no limit.
    pub timeout: Option<Duration>,
    /// A signal that somebody has sent to this process since the last call. The first is passed on
    /// to the program. The second of the same kind ends the guest.
    pub signal: &'a mut dyn FnMut() -> Option<i32>,
    /// Gets progress messages.
    pub say: &'a mut dyn FnMut(&str),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// How the program ended.
    pub status: ProgramEnd,
    /// From the start of QEMU to the program's first instruction.
    pub boot: Duration,
    /// From there to the program's end, by the guest's clock.
    pub elapsed: Duration,
    /// Number of processes that the guest's kernel killed for lack of memory.
    pub out_of_memory: u64,
    /// Files that came back.
    pub brought: Brought,
    /// Files that did not travel and that the program may need.
    pub left: Vec<String>,
    /// The monitor's results.
    pub found: Option<MonitorReport>,
    /// The guest's kernel.
    pub kernel: String,
    /// How its instructions were executed.
    pub accel: Accel,
}
