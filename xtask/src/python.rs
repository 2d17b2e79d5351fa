//! The tests of the Python package: types, doctests, and pytest with the commands of
//! `target/debug`.

use std::fs;
use std::process::Command;

use crate::{CommandResult, process, root, testing};

#[allow(dead_code)] // the tests of exports use another part of it
#[path = "../../crates/export/tests/support/python.rs"]
pub mod environment;

/// Packages with their versions, a line each.
const REQUIREMENTS: &str = "python/tests/requirements.txt";

/// Runs the tests alone.
pub fn run() -> CommandResult {
    process::run(process::cargo().args(["build", "--workspace", "--locked", "--quiet"]))?;
    test()
}

/// Runs the tests; without PyPI they are skipped, and the reason is told.
pub fn test() -> CommandResult {
    let text = fs::read_to_string(root().join(REQUIREMENTS)).map_err(|e| format!("{REQUIREMENTS}: {e}"))?;
    let packages: Vec<&str> = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let python = match environment::environment(&folder(&text), &packages) {
        Ok(python) => python,
        Err(why) => {
            testing::skipped("python", &format!("no environment with the packages of {REQUIREMENTS}: {why}"));
            return Ok(());
        }
    };
    let command = |words: &[&str]| {
        let mut command = Command::new(&python);
        command.current_dir(root().join("python")).args(words);
        command.env("HOMENODE", root().join("target/debug")).env("PYTHONPATH", root().join("python"));
        // Nothing is left in the source folder, and no configuration of the user's is read.
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("MPLBACKEND", "Agg")
            .env("IPYTHONDIR", "/nonexistent");
        command
    };
    process::run(&mut command(&["-m", "mypy", "--cache-dir", "../target/mypy"]))?;
    // Two workers: most of a test is waiting for a command.
    process::run(&mut command(&["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--durations", "5"]))
}

/// The environment's folder: other requirements are another folder.
fn folder(requirements: &str) -> String {
    let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("python-package-{:016x}", requirements.bytes().fold(0xcbf2_9ce4_8422_2325, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_requirements_are_another_folder() {
        assert_ne!(folder("pytest==9.2.0\n"), folder("pytest==9.2.1\n"));
        assert_eq!(folder(""), "python-package-cbf29ce484222325");
    }
}
