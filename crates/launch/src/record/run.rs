//! Running the program: its environment and its streams.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, io};

use homenode_error::{Context, Result};
use homenode_task::Task;

use super::directory::OUTPUT;
use super::emulator::Emulator;
use super::spec::{OutputTarget, RecordSpec};
use crate::child::{self, Ran};

/// Variables that a recording may hold, by their beginning.
const ALLOWED: [&str; 3] = ["OMP_", "GOMP_", "KMP_"];

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
    // Threads that spin take the CPU from those that work, for a recording has more threads than
    // CPUs.
    all.entry("OMP_WAIT_POLICY".into()).or_insert_with(|| "passive".into());
    // A team as large as asked for, whatever this machine's load.
    all.entry("OMP_DYNAMIC".into()).or_insert_with(|| "false".into());
    all
}

/// Runs the program to its end. Ctrl-C is the program's: the terminal sends it there, and homenode
/// waits. SIGTERM and SIGHUP are passed on.
///
/// # Errors
/// It cannot be started (status 126 or 127).
pub fn run(
    spec: &RecordSpec,
    path: &Path,
    emulator: Option<&Emulator>,
    environment: &BTreeMap<String, String>,
    recording: &Path,
    task: &dyn Task,
) -> Result<Ran> {
    let failed = || format!("cannot run {}", spec.program.display());
    let directory = recording.canonicalize().context(failed)?;
    let mut command = match emulator {
        Some(emulator) => emulator.command(spec, path, &directory),
        None => {
            let mut command = Command::new(path);
            command.arg0(&spec.program);
            command.env("HOMENODE_TRACE_DIR", &directory);
            command.env("HOMENODE_TRACE_FILTER", spec.filter_lines.to_string());
            command
        }
    };
    command.args(&spec.args).envs(environment);
    command.env_remove("HOMENODE_TRACE_COUNT_ONLY");
    match spec.streams {
        OutputTarget::Inherit => {}
        OutputTarget::Stderr => drop(command.stdout(io::stderr())),
        OutputTarget::File => {
            let file = directory.join(OUTPUT);
            let open = OpenOptions::new().append(true).create(true).mode(0o600).open(&file);
            let open = open.context(|| format!("cannot create {}", file.display()))?;
            command.stderr(Stdio::from(open.try_clone().context(failed)?)).stdout(Stdio::from(open));
        }
    }
    child::run_sampled(command, &spec.program, path, task, &directory)
}
