//! `homenode lab`.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use homenode_error::{Context, Error, Result};
use homenode_kernels::{BuildVariant, Kernel};
use homenode_lab::initramfs;
use homenode_lab::kernel::WantedKernel;
use homenode_lab::machine::VirtualMachine;
use homenode_lab::run::{self as lab, AccelChoice, Lab, Program, RunOutcome, StreamTargets, Supervision};
use homenode_lab::wire::ProgramEnd;
use homenode_launch::places;
use homenode_launch::program;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::lab::{
    AccelArg, LabArgs, LabCommand, LabRunArgs, LabShellArgs, MachineArgs, OnOff, RECENT, ThpArg,
};
use crate::args::subject::{CommandSubject, RunArgs, not_a_program};
use crate::exit::Exit;
use crate::output::say;
use crate::task::Terminal;

/// Variables that travel, by their beginning.
const TRAVEL: [&str; 11] = [
    "OMP_",
    "GOMP_",
    "KMP_",
    "LC_",
    "PYTHON",
    "MALLOC_",
    "HOMENODE_",
    "NUMBA_",
    "OPENBLAS_",
    "MKL_",
    "GLIBC_",
];
/// Variables that travel, by name.
const NAMED: [&str; 9] =
    ["LANG", "TZ", "HOME", "USER", "LOGNAME", "TERM", "PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"];

impl LabArgs {
    pub(super) fn run(self) -> Result<Exit> {
        match self.command {
            LabCommand::Run(args) => args.run(),
            LabCommand::Shell(args) => args.run(),
        }
    }
}

impl LabRunArgs {
    fn run(&self) -> Result<Exit> {
        let program = program(own(self.subject()?), &self.run, BuildVariant::Native)?;
        let mut lab = self.lab.lab(self.run.threads)?;
        if is_own(&program.path) {
            lab.with.extend(needs(&program.args)?);
        }
        lab.sync = !self.no_sync;
        let mut signals = Signals::watch().context(|| "cannot watch for signals".into())?;
        let quiet = self.quiet;
        let mut watch = Supervision {
            timeout: self.timeout.map(Duration::from_secs),
            signal: &mut || signals.next(),
            say: &mut |what| {
                // What takes long says so; booting and running are seen by their ends.
                if !quiet && what.starts_with("fetching") {
                    say(what);
                }
            },
        };
        let outcome = lab::run(&lab, &program, streams(&lab), &mut watch)?;
        report(&outcome, &lab, quiet);
        if !outcome.brought.failed.is_empty() {
            let mut error = Error::failed("not all files that the program wrote could be written here");
            error.tried.extend(outcome.brought.failed.iter().take(10).map(|f| format!("write {f}")));
            return Err(error.hint("is the disk full, or the folder read-only?"));
        }
        Ok(exit_of(&outcome))
    }
}

/// The command `homenode` is this one where the search path has none.
fn own(subject: CommandSubject) -> CommandSubject {
    match subject {
        CommandSubject::Program { program, args }
            if program == "homenode" && program::find(&program).is_err() =>
        {
            let program = env::current_exe().map_or(program, PathBuf::into_os_string);
            CommandSubject::Program { program, args }
        }
        other => other,
    }
}

/// Whether a program is this command.
fn is_own(path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    env::current_exe().is_ok_and(|own| real(&own).is_some() && real(&own) == real(path))
}

/// What this command needs in the guest: its libraries, and the program that it runs there.
fn needs(args: &[OsString]) -> Result<Vec<PathBuf>> {
    let mut all = vec![places::live_library()?];
    all.extend(places::loops_library());
    if let Some(program) = args.iter().skip_while(|word| *word != "--").nth(1) {
        all.push(program::find(program)?);
    }
    Ok(all)
}

/// This process's own streams. A terminal never ends, so that nothing is read from it where all
/// must be read first.
pub(super) fn streams(lab: &Lab) -> StreamTargets {
    let stdin = io::stdin();
    let waits = lab.deterministic && stdin.is_terminal();
    StreamTargets {
        stdin: if waits { None } else { Some(Box::new(stdin)) },
        stdout: Box::new(io::stdout()),
        stderr: Box::new(io::stderr()),
    }
}

/// The program's status as homenode returns it.
pub(super) fn exit_of(outcome: &RunOutcome) -> Exit {
    Exit::Program(match outcome.status {
        ProgramEnd::Exit(n) => n,
        ProgramEnd::Signal(n) => 128 | n,
    })
}

impl LabShellArgs {
    fn run(&self) -> Result<Exit> {
        let mut lab = self.lab.lab(None)?;
        lab.root = true;
        lab::shell(&lab, None, &mut |what| {
            if what.starts_with("fetching") {
                say(what);
            }
        })?;
        Ok(Exit::Done)
    }
}

/// What a person wants to know after a run.
pub(super) fn report(outcome: &RunOutcome, lab: &Lab, quiet: bool) {
    if outcome.out_of_memory > 0 {
        let n = outcome.out_of_memory;
        say(format_args!(
            "the guest ran out of memory: its kernel killed {n} {}\n  help: give the nodes more memory: --mem",
            if n == 1 { "process" } else { "processes" }
        ));
    }
    for path in outcome.brought.gone.iter().take(5) {
        say(format_args!("the program removed {}, which is still here", path.display()));
    }
    if quiet {
        return;
    }
    for left in outcome.left.iter().take(5) {
        say(format_args!("did not travel: {left}"));
    }
    let files = match outcome.brought.written.len() {
        0 => String::new(),
        1 => ", 1 file came back".into(),
        n => format!(", {n} files came back"),
    };
    say(format_args!(
        "lab: {} nodes, {} CPUs, Linux {}, {}; booted in {:.1} s, ran {:.1} s{files}",
        lab.machine.nodes.len(),
        lab.machine.cpus(),
        outcome.kernel,
        outcome.accel.word(),
        outcome.boot.as_secs_f64(),
        outcome.elapsed.as_secs_f64(),
    ));
}

/// The program to run, and where it is; kernels are built as `variant`.
pub(super) fn program(subject: CommandSubject, run: &RunArgs, variant: BuildVariant) -> Result<Program> {
    match subject {
        CommandSubject::Kernel { name, args } => {
            let kernel = Kernel::find(&name)?;
            let mut all = kernel.arguments(run.class.as_deref(), run.threads)?;
            all.extend(args);
            let path = kernel.build(variant, &Terminal::default())?;
            Ok(Program { name: path.clone().into(), path, args: all })
        }
        CommandSubject::Program { program, args } => match &run.class {
            None => Ok(Program { path: program::find(&program)?, name: program, args }),
            Some(class) => Err(Error::usage(format!("--class {class} is for kernels"))
                .hint("give a program's own options after it: -- ./app …")),
        },
        CommandSubject::Recording(path) => Err(not_a_program(&path)),
    }
}

impl MachineArgs {
    /// The lab that these words ask for.
    ///
    /// # Errors
    /// What makes no sense.
    pub(super) fn lab(&self, threads: Option<u32>) -> Result<Lab> {
        let machine = match &self.machine {
            None => VirtualMachine::even(self.nodes, self.cpus, self.mem, self.distance)?,
            Some(name) => {
                let found = homenode_schemes::machine(name)?;
                VirtualMachine::like(&found.topology, self.cpus, self.mem)?
            }
        };
        Ok(Lab {
            machine,
            kernel: self.kernel()?,
            qemu: self.qemu.clone(),
            accel: match self.accel {
                AccelArg::Auto => AccelChoice::Auto,
                AccelArg::Tcg => AccelChoice::Tcg,
                AccelArg::Kvm => AccelChoice::Kvm,
            },
            deterministic: self.deterministic,
            numa_balancing: self.numa_balancing.map(|b| b == OnOff::On),
            thp: self.thp.map(|t| match t {
                ThpArg::Always => initramfs::Thp::Always,
                ThpArg::Madvise => initramfs::Thp::Madvise,
                ThpArg::Never => initramfs::Thp::Never,
            }),
            with: self.with.clone(),
            spare: self.disk,
            env: self.environment(threads),
            cwd: env::current_dir().context(|| "cannot tell the working directory".into())?,
            carry_cwd: !self.no_cwd,
            sync: true,
            root: self.root,
            guest: places::guest_program()?,
            scratch: env::temp_dir(),
            monitor: None,
            marks: None,
        })
    }

    fn kernel(&self) -> Result<WantedKernel> {
        match (&self.kernel, &self.modules) {
            (None, _) => Ok(WantedKernel::Distribution),
            (Some(word), None) if word == RECENT => Ok(WantedKernel::Recent),
            (Some(word), Some(_)) if word == RECENT => Err(Error::usage(format!(
                "--kernel {RECENT} brings its own modules: leave --modules out, or name a file ./{RECENT}"
            ))),
            (Some(image), modules) => Ok(WantedKernel::Image(image.clone(), modules.clone())),
        }
    }

    fn environment(&self, threads: Option<u32>) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<OsString, OsString> =
            env::vars_os().filter(|(name, _)| name.to_str().is_some_and(travels)).collect();
        if let Some(threads) = threads {
            all.insert("OMP_NUM_THREADS".into(), threads.to_string().into());
        }
        // Threads that spin take the emulator's CPUs from threads that work.
        all.entry("OMP_WAIT_POLICY".into()).or_insert_with(|| "passive".into());
        for variable in &self.env {
            match variable.value.clone().map(OsString::from).or_else(|| env::var_os(&variable.name)) {
                Some(value) => drop(all.insert(variable.name.clone().into(), value)),
                None => drop(all.remove(OsStr::new(&variable.name))),
            }
        }
        all
    }
}

fn travels(name: &str) -> bool {
    NAMED.contains(&name) || TRAVEL.iter().any(|t| name.starts_with(t))
}

/// Signals that are the program's.
pub(super) struct Signals(Vec<(i32, Arc<AtomicBool>)>);

impl Signals {
    pub(super) fn watch() -> io::Result<Self> {
        let one = |number| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(number, Arc::clone(&flag)).map(|_| (number, flag))
        };
        [SIGINT, SIGTERM, SIGHUP].into_iter().map(one).collect::<io::Result<Vec<_>>>().map(Self)
    }

    pub(super) fn next(&mut self) -> Option<i32> {
        self.0.iter().find(|(_, f)| f.swap(false, Ordering::Relaxed)).map(|(n, _)| *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homenode_in_front_of_a_program_is_this_one_and_needs_that_program() {
        let own = env::current_exe().unwrap();
        assert!(is_own(&own) && !is_own(Path::new("/bin/sh")) && !is_own(Path::new("nowhere")));
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        // The libraries are there in a build folder alone.
        if let Ok(all) = needs(&words("run -q -- sh -c true")) {
            assert!(all.iter().any(|p| p.ends_with("sh")) && all[0].ends_with("libhomenode.so"), "{all:?}");
            assert!(needs(&words("run -- ./nowhere")).is_err());
        }
    }

    #[test]
    fn secrets_stay_here() {
        assert!(travels("OMP_NUM_THREADS") && travels("PATH") && travels("PYTHONPATH"));
        assert!(!travels("AWS_SECRET_ACCESS_KEY") && !travels("LD_PRELOAD") && !travels("SSH_AUTH_SOCK"));
    }
}
