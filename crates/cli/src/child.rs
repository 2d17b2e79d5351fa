//! A program that homenode starts and whose status it returns: signals, and its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::error::{CliError, Context, Result};
use crate::exit::Exit;

/// How often signals are looked for that only homenode got.
const LOOK: Duration = Duration::from_millis(50);

/// How the program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// From start to end.
    pub elapsed: Duration,
}

/// Runs a program to its end. Ctrl-C is the program's: the terminal sends it there, and homenode waits. SIGTERM and SIGHUP
/// are passed on. `program` is what the user called it.
///
/// # Errors
/// It cannot be started (status 126 or 127).
pub fn run(mut command: Command, program: &OsStr, path: &Path) -> Result<Ran> {
    let signals = Signals::watch().context(|| "cannot watch for signals".into())?;
    let start = Instant::now();
    let mut child = command.spawn().map_err(|e| cannot_start(program, path, &e))?;
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
                    status: status.context(|| format!("cannot wait for {}", program.display()))?,
                    elapsed,
                });
            }
            Err(RecvTimeoutError::Timeout) => signals.pass_on(pid),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(CliError::failed(format!("lost sight of {}", program.display())));
            }
        }
    }
}

fn cannot_start(program: &OsStr, path: &Path, e: &io::Error) -> CliError {
    let error = CliError::failed(format!("cannot run {}", program.display()))
        .tried(format!("start {}: {e}", path.display()));
    match e.kind() {
        // The file is there, so what is missing is what its first line names.
        io::ErrorKind::NotFound => {
            error.code(Exit::CannotRun).hint("does its first line (#!) name an interpreter that is there?")
        }
        _ if e.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => error.code(Exit::CannotRun).hint(
            "is it for another architecture than this machine's, or a script without a first line (#!) that names its interpreter?",
        ),
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
