//! Running tests, and saying at the end what their exit status does not say: which of them were
//! skipped, and which failed beside all others and passed alone.
//!
//! Tests of live programs measure time on a machine that other tests keep busy. A few that fail run
//! once more, one at a time. Those that pass then do not fail the run. They are named in the
//! summary as unstable, with their output above, for each of them is a defect of the test or of the
//! program.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::process::cargo;
use crate::{CommandResult, process};

/// What was skipped so far, with the test that says so.
static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tests that failed beside all others and passed alone.
static UNSTABLE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// How many failed tests run once more. More of them are no accident.
const SECOND_TRIES: usize = 3;

/// Such a line of a test's output says why it, or a part of it, was skipped.
const MARK: &str = "skipped: ";

/// Runs `cargo test` with `options` and `--show-output`, and shows of its output what is shown
/// without. All tests run before the verdict. At most [`SECOND_TRIES`] that failed run once more,
/// alone.
///
/// # Errors
/// A test failed twice, too many failed, or a test program crashed.
pub fn run(options: &[&str], after: &[&str], variables: &[(&str, &str)]) -> CommandResult {
    let command = |filter: &[String]| {
        let mut command = cargo();
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(options).arg("--");
        command.args(after).arg("--show-output").args(filter).envs(variables.iter().copied());
        command
    };
    let mut first = command(&[]);
    let (status, reader) = read(&mut first)?;
    if status.success() {
        return Ok(());
    }
    if reader.crashed() || reader.failed.is_empty() || reader.failed.len() > SECOND_TRIES {
        return process::ended(&first, status);
    }
    let failed: Vec<String> = reader.failed.into_iter().collect();
    eprintln!("── {} failed and run once more, alone: {}", failed.len(), failed.join(", "));
    let words = ["--exact".to_owned(), "--test-threads=1".to_owned()];
    let mut second = command(&[&words, &failed[..]].concat());
    let (status, reader) = read(&mut second)?;
    process::ended(&second, status)?;
    match failed.iter().find(|test| !reader.passed.contains(*test)) {
        Some(test) => Err(format!("{test} failed, and did not run when it was to run alone")),
        None => {
            UNSTABLE.lock().unwrap_or_else(PoisonError::into_inner).extend(failed);
            Ok(())
        }
    }
}

/// Runs a `cargo test`, passes on what is to be shown, and keeps what was skipped.
fn read(command: &mut Command) -> Result<(ExitStatus, Reader), String> {
    let failed = |e| format!("cannot run the tests: {e}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut reader = Reader::default();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).split(b'\n') {
        let line = line.map_err(failed)?;
        let line = String::from_utf8_lossy(&line);
        if reader.shows(&line) {
            println!("{line}");
        }
    }
    SKIPPED.lock().unwrap_or_else(PoisonError::into_inner).append(&mut reader.skipped);
    Ok((child.wait().map_err(failed)?, reader))
}

/// Notes that a step, or a part of it, was skipped.
pub fn skipped(step: &str, why: &str) {
    println!("{step} {MARK}{why}");
    SKIPPED.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("{step}: {why}"));
}

/// Says what was skipped, and what is unstable.
pub fn tell() {
    for test in UNSTABLE.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        eprintln!("── unstable: {test} failed beside other tests and passed alone; its output is above");
    }
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if !skipped.is_empty() {
        eprintln!("── skipped by {} tests or parts of tests, which passed", skipped.len());
    }
    skipped.iter().for_each(|s| eprintln!("   {s}"));
}

/// Reads what the test harness writes.
#[derive(Default)]
struct Reader {
    /// Within the output of tests that passed.
    hidden: bool,
    test: String,
    skipped: BTreeSet<String>,
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Test programs that began, and those that came to their end.
    begun: usize,
    ended: usize,
}

impl Reader {
    /// Whether a test program ended without its result, as one that a signal ends.
    const fn crashed(&self) -> bool {
        self.begun != self.ended
    }

    /// Takes a line; whether it is shown.
    fn shows(&mut self, line: &str) -> bool {
        if line == "successes:" {
            self.hidden = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.hidden = false;
        } else if let Some(test) = line.strip_prefix("---- ").and_then(|l| l.strip_suffix(" stdout ----")) {
            test.clone_into(&mut self.test);
        } else if let (true, Some((_, why))) = (self.hidden, line.split_once(MARK)) {
            self.skipped.insert(format!("{}: {why}", self.test));
        }
        if !self.hidden {
            self.count(line);
        }
        !self.hidden
    }

    fn count(&mut self, line: &str) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.begun += 1;
        } else if line.starts_with("test result: ") {
            self.ended += 1;
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some(test) = test.strip_suffix(" ... FAILED") {
                self.failed.insert(test.to_owned());
            } else if let Some(test) = test.strip_suffix(" ... ok") {
                self.passed.insert(test.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_that_pass_have_skipped_is_kept_and_their_output_is_not_shown() {
        let text = "running 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... FAILED\n\nsuccesses:\n\n\
                    ---- m::a stdout ----\nhello\nskipped: there is no gcc\n\n\nsuccesses:\n    m::a\n    b\n\nfailures:\n\n\
                    ---- c stdout ----\nwhy\n\n\nfailures:\n    c\n\ntest result: FAILED. 2 passed";
        let mut reader = Reader::default();
        let shown: Vec<_> = text.lines().filter(|l| reader.shows(l)).collect();
        assert_eq!(reader.skipped.iter().collect::<Vec<_>>(), ["m::a: there is no gcc"]);
        assert_eq!(reader.failed.iter().collect::<Vec<_>>(), ["c"]);
        assert_eq!(reader.passed.iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!reader.crashed());
        let printed =
            "running 1 test\ntest d ... ok\nsuccesses:\nrunning 9 tests\nsuccesses:\ntest result: ok.";
        for line in printed.lines() {
            reader.shows(line);
        }
        assert!(!reader.crashed(), "what a test prints does not count");
        reader.shows("running 2 tests");
        assert!(reader.crashed(), "a program without a result");
        assert!(shown.contains(&"test a ... ok") && shown.contains(&"---- c stdout ----"), "{shown:?}");
        assert!(shown.contains(&"test result: FAILED. 2 passed") && !shown.contains(&"hello"), "{shown:?}");
    }
}
