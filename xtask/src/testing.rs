//! Running tests, and saying in the end which of them could not run here: they pass, and nobody would know.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::{Outcome, process};

/// What was skipped so far, with the test that says so.
static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Such a line of a test's output says why it, or a part of it, was skipped.
const MARK: &str = "skipped: ";

/// Runs `cargo test` with `--show-output` and shows of it what is shown without.
pub fn run(command: &mut Command) -> Outcome {
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
    process::ended(command, child.wait().map_err(failed)?)
}

/// Says what was skipped.
pub fn tell() {
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
}

impl Reader {
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
        !self.hidden
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
        assert_eq!(reader.skipped.into_iter().collect::<Vec<_>>(), ["m::a: there is no gcc"]);
        assert!(shown.contains(&"test a ... ok") && shown.contains(&"---- c stdout ----"), "{shown:?}");
        assert!(shown.contains(&"test result: FAILED. 2 passed") && !shown.contains(&"hello"), "{shown:?}");
    }
}
