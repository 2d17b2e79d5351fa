//! Running the program: its environment, its streams, signals, its end.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{RecordSpec, Streams};
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;

/// The file in the recording that takes a program's output when nobody is to see it.
pub const OUTPUT: &str = "output.txt";

/// How often signals are looked for that only homenode got.
const LOOK: Duration = Duration::from_millis(50);

/// Variables that a recording may hold, by their beginning.
const ALLOWED: [&str; 3] = ["OMP_", "GOMP_", "KMP_"];

/// How the program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// From start to end.
    pub elapsed: Duration,
}

/// OpenMP's variables as the program will see them: the environment's, and what a recording needs.
pub fn environment(spec: &RecordSpec) -> BTreeMap<String, String> {
    let ours = env::vars_os().filter_map(|(name, value)| {
        let name = name.to_str()?.to_owned();
        let allowed = ALLOWED.iter().any(|a| name.starts_with(a));
        allowed.then(|| (name, value.to_string_lossy().into_owned()))
    });
    let mut all: BTreeMap<_, _> = ours.collect();
    if let Some(threads) = spec.threads {
        all.insert("OMP_NUM_THREADS".into(), threads.to_string());
    }
    // Threads that spin take the CPU from those that work, for a recording has more threads than CPUs.
    all.entry("OMP_WAIT_POLICY".into()).or_insert_with(|| "passive".into());
    // A team as large as asked for, whatever this machine's load.
    all.entry("OMP_DYNAMIC".into()).or_insert_with(|| "false".into());
    all
}

/// Runs the program to its end. Ctrl-C is the program's: the terminal sends it there, and homenode waits. SIGTERM and
/// SIGHUP are passed on.
///
/// # Errors
/// It cannot be started (status 126 or 127).
pub fn run(
    spec: &RecordSpec,
    path: &Path,
    environment: &BTreeMap<String, String>,
    recording: &Path,
) -> Result<Ran> {
    let failed = || format!("cannot run {}", spec.program.display());
    let directory = recording.canonicalize().context(failed)?;
    let mut command = Command::new(path);
    command.arg0(&spec.program).args(&spec.args);
    command.envs(environment);
    command.env("HOMENODE_TRACE_DIR", &directory);
    command.env("HOMENODE_TRACE_FILTER", spec.filter_lines.to_string());
    command.env_remove("HOMENODE_TRACE_COUNT_ONLY");
    match spec.streams {
        Streams::Inherit => {}
        Streams::Stderr => drop(command.stdout(io::stderr())),
        Streams::File => {
            let file = directory.join(OUTPUT);
            let open = OpenOptions::new().append(true).create(true).mode(0o600).open(&file);
            let open = open.context(|| format!("cannot create {}", file.display()))?;
            command.stderr(Stdio::from(open.try_clone().context(failed)?)).stdout(Stdio::from(open));
        }
    }
    let signals = Signals::watch().context(|| "cannot watch for signals".into())?;
    let start = Instant::now();
    let mut child = command.spawn().map_err(|e| cannot_start(spec, path, &e))?;
    let pid = Pid::from_child(&child);
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || {
        let status = child.wait();
        let _ = tell.send((status, start.elapsed()));
    });
    loop {
        match ended.recv_timeout(LOOK) {
            Ok((status, elapsed)) => {
                return Ok(Ran {
                    status: status.context(|| format!("cannot wait for {}", spec.program.display()))?,
                    elapsed,
                });
            }
            Err(RecvTimeoutError::Timeout) => signals.pass_on(pid),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(CliError::failed(format!("lost sight of {}", spec.program.display())));
            }
        }
    }
}

fn cannot_start(spec: &RecordSpec, path: &Path, e: &io::Error) -> CliError {
    let error = CliError::failed(format!("cannot run {}", spec.program.display()))
        .tried(format!("start {}: {e}", path.display()));
    match e.kind() {
        // The file is there, so what is missing is what its first line names.
        io::ErrorKind::NotFound => {
            error.code(Exit::CannotRun).hint("does its first line (#!) name an interpreter that is there?")
        }
        _ => error.code(Exit::of_start_failure(e)),
    }
}

/// Signals that must not end homenode while the program runs.
struct Signals {
    passed: [(Signal, Arc<AtomicBool>); 2],
    ids: Vec<signal_hook::SigId>,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        let flag = || Arc::new(AtomicBool::new(false));
        let passed = [(Signal::TERM, flag()), (Signal::HUP, flag())];
        let mut ids = Vec::new();
        for (number, flag) in [(SIGTERM, Arc::clone(&passed[0].1)), (SIGHUP, Arc::clone(&passed[1].1))] {
            ids.push(signal_hook::flag::register(number, flag)?);
        }
        for number in [SIGINT, SIGQUIT] {
            ids.push(signal_hook::flag::register(number, flag())?);
        }
        Ok(Self { passed, ids })
    }

    fn pass_on(&self, pid: Pid) {
        for (signal, flag) in &self.passed {
            if flag.swap(false, Ordering::Relaxed) {
                // It may have ended in between.
                let _ = kill_process(pid, *signal);
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
