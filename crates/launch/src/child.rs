//! A program that homenode starts and whose status it returns: signals, and its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use homenode_error::{Context, Error, FailureKind, Result};
use homenode_task::{self as task, Task};

use crate::io_wait::IoWait;

/// How often signals are looked for that only homenode got.
const LOOK: Duration = Duration::from_millis(50);

/// How the program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// From start to end.
    pub elapsed: Duration,
    /// How long it waited for input and output, as samples tell; `None`: nobody looked, or too
    /// briefly.
    pub io_wait: Option<Duration>,
}

/// Runs a program to its end. Ctrl-C is the program's: the terminal sends it there, and homenode
/// waits. SIGTERM and SIGHUP are passed on. `program` is what the user called it.
///
/// # Errors
/// It cannot be started (status 126 or 127).
pub fn run(command: Command, program: &OsStr, path: &Path, task: &dyn Task) -> Result<Ran> {
    run_watched(command, program, path, task, &mut |_| {})
}

/// The same; `started` hears the number of the process when it runs.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    command: Command,
    program: &OsStr,
    path: &Path,
    task: &dyn Task,
    started: &mut dyn FnMut(u32),
) -> Result<Ran> {
    wait(command, program, path, task, None, started)
}

/// As [`run`]; also samples what the program waits for. `own`: the folder of its recording, whose
/// writes do not count.
///
/// # Errors
/// As [`run`].
pub fn run_sampled(
    command: Command,
    program: &OsStr,
    path: &Path,
    task: &dyn Task,
    own: &Path,
) -> Result<Ran> {
    wait(command, program, path, task, Some(own), &mut |_| {})
}

fn wait(
    mut command: Command,
    program: &OsStr,
    path: &Path,
    task: &dyn Task,
    own: Option<&Path>,
    started: &mut dyn FnMut(u32),
) -> Result<Ran> {
    let mut signals = task.signals().context(|| "cannot watch for signals".into())?;
    let start = Instant::now();
    let mut child = command.spawn().map_err(|e| cannot_start(program, path, &e))?;
    let pid = Pid::from_child(&child);
    started(child.id());
    let mut io = own.map(|own| IoWait::new(child.id(), own));
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
                    io_wait: io.as_ref().and_then(IoWait::share).map(|share| elapsed.mul_f64(share)),
                });
            }
            Err(RecvTimeoutError::Timeout) => {
                io.iter_mut().for_each(IoWait::look);
                while let Some(signal) = signals.next() {
                    // It may have ended in between.
                    let _ = kill_process(pid, number(signal));
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::failed(format!("lost sight of {}", program.display())));
            }
        }
    }
}

fn number(signal: task::Signal) -> Signal {
    match signal {
        task::Signal::Terminate => Signal::TERM,
        task::Signal::HangUp => Signal::HUP,
    }
}

fn cannot_start(program: &OsStr, path: &Path, e: &io::Error) -> Error {
    let error = Error::failed(format!("cannot run {}", program.display()))
        .tried(format!("start {}: {e}", path.display()));
    match e.kind() {
        // The file is there, so what is missing is what its first line names.
        io::ErrorKind::NotFound => {
            error.kind(FailureKind::CannotRun).hint("does its first line (#!) name an interpreter that is there?")
        }
        _ if e.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => error.kind(FailureKind::CannotRun).hint(
            "is it for another architecture than this machine's, or a script without a first line (#!) that names its interpreter?",
        ),
        _ => error.kind(FailureKind::of_start(e)),
    }
}
