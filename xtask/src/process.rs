//! Running other programs.

use std::process::{Command, ExitStatus, Stdio};

use crate::{CommandResult, root};

/// The cargo that runs this, or the one on the path.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Any other program, in the repository's root.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Whether a program can be run at all.
pub fn present(name: &str) -> bool {
    program(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs it; its output is the user's.
pub fn run(command: &mut Command) -> CommandResult {
    let status = command.status().map_err(|e| format!("cannot start {}: {e}", show(command)))?;
    ended(command, status)
}

/// What came of it.
pub fn ended(command: &Command, status: ExitStatus) -> CommandResult {
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", show(command))) }
}

/// Runs it and returns what it wrote to stdout.
pub fn read(command: &mut Command) -> Result<String, String> {
    let out = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot start {}: {e}", show(command)))?;
    if !out.status.success() {
        return Err(format!("{} failed ({})", show(command), out.status));
    }
    String::from_utf8(out.stdout).map_err(|e| format!("{}: {e}", show(command)))
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    words.join(" ")
}
