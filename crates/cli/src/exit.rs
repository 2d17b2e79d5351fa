//! What homenode's exit status means.
//!
//! | status | `run`, `record`, `lab`, `kernel run`, `top -- APP` | all other commands |
//! |---|---|---|
//! | 0 | the program's | done |
//! | 1 | the program's | a `--fail-if` condition held |
//! | 2 | the program's | usage: a word of the command line is wrong |
//! | 3 | the program's | partial result: stopped by Ctrl-C, or some rows are missing |
//! | 125 | homenode itself failed, its command line included | homenode itself failed |
//! | 126 | the program exists and cannot be run | – |
//! | 127 | there is no such program | – |
//!
//! Whoever runs a program returns the program's status, so homenode's own must stay out of its way,
//! as with `env(1)`.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use homenode_error::FailureKind;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A condition of `--fail-if` held.
    ConditionHeld,
    /// The command line makes no sense.
    Usage,
    /// What was printed is right and not all there is.
    Partial,
    /// The program's own status.
    Program(u8),
    /// homenode itself failed.
    Failed,
    /// The program exists and cannot be run.
    CannotRun,
    /// There is no such program.
    NotFound,
}

/// Whose status a command returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusOwner {
    /// Runs a program and returns its status.
    Runs,
    /// Everything else.
    Plain,
}

/// Commands that run a program and return its status, as the words that select them.
const RUNNING: &[&[&str]] = &[&["run"], &["record"], &["lab"], &["kernel", "run"]];

impl StatusOwner {
    /// The family that a command line asks for, by its first words. Needed when the rest of it
    /// cannot be parsed.
    pub fn of_command_line<S: AsRef<OsStr>>(args: &[S]) -> Self {
        let words =
            args.iter().skip(1).map(AsRef::as_ref).filter(|a| !a.as_encoded_bytes().starts_with(b"-"));
        let words: Vec<_> = words.take(2).collect();
        let runs =
            |r: &&[&str]| r.len() <= words.len() && r.iter().zip(&words).all(|(a, b)| *b == OsStr::new(a));
        // What stands before the program says whether there is one.
        let program =
            |a: &S| a.as_ref() == OsStr::new("--") || a.as_ref().as_encoded_bytes().starts_with(b"kernel:");
        let top = words.first().is_some_and(|w| *w == OsStr::new("top")) && args.iter().any(program);
        if top || RUNNING.iter().any(runs) { Self::Runs } else { Self::Plain }
    }
}

impl Exit {
    /// The status for the shell.
    pub const fn code(self, family: StatusOwner) -> u8 {
        match (self, family) {
            (Self::Done, _) => 0,
            (Self::Program(status), _) => status,
            (Self::ConditionHeld, StatusOwner::Plain) => 1,
            (Self::Usage, StatusOwner::Plain) => 2,
            (Self::Partial, StatusOwner::Plain) => 3,
            // 1 to 3 belong to the program.
            (Self::ConditionHeld | Self::Usage | Self::Partial | Self::Failed, _) => 125,
            (Self::CannotRun, _) => 126,
            (Self::NotFound, _) => 127,
        }
    }

    /// The program's status as a shell shows it: 128 + signal when a signal ended it.
    pub fn of_program(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Program(code as u8),
            (None, Some(signal)) => Self::Program(128 + (signal as u8 & 0x7f)),
            (None, None) => Self::Failed,
        }
    }
}

impl From<FailureKind> for Exit {
    fn from(failure: FailureKind) -> Self {
        match failure {
            FailureKind::Failed => Self::Failed,
            FailureKind::Usage => Self::Usage,
            FailureKind::Partial => Self::Partial,
            FailureKind::CannotRun => Self::CannotRun,
            FailureKind::NotFound => Self::NotFound,
            FailureKind::Signalled(signal) => Self::Program(128 | signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_status(raw: i32) -> ExitStatus {
        ExitStatus::from_raw(raw)
    }

    #[test]
    fn plain_commands_use_0_to_3_and_125() {
        let of = |e: Exit| e.code(StatusOwner::Plain);
        assert_eq!(
            [Exit::Done, Exit::ConditionHeld, Exit::Usage, Exit::Partial, Exit::Failed].map(of),
            [0, 1, 2, 3, 125]
        );
    }

    #[test]
    fn commands_that_run_a_program_leave_1_to_124_to_it() {
        for own in [Exit::ConditionHeld, Exit::Usage, Exit::Partial, Exit::Failed] {
            assert_eq!(own.code(StatusOwner::Runs), 125);
        }
        assert_eq!(Exit::CannotRun.code(StatusOwner::Runs), 126);
        assert_eq!(Exit::NotFound.code(StatusOwner::Runs), 127);
        assert_eq!(Exit::Program(2).code(StatusOwner::Runs), 2);
    }

    #[test]
    fn a_programs_status_is_passed_on() {
        assert_eq!(Exit::of_program(wait_status(0)), Exit::Program(0));
        assert_eq!(Exit::of_program(wait_status(3 << 8)), Exit::Program(3));
        assert_eq!(Exit::of_program(wait_status(9)), Exit::Program(137), "killed by signal 9");
        assert_eq!(Exit::of_program(wait_status(11 | 0x80)), Exit::Program(139), "signal 11, core dumped");
    }

    #[test]
    fn a_failure_has_the_status_of_its_kind() {
        let of = |failure: FailureKind| Exit::from(failure).code(StatusOwner::Runs);
        assert_eq!(
            [FailureKind::CannotRun, FailureKind::NotFound, FailureKind::Partial].map(of),
            [126, 127, 125]
        );
        assert_eq!(of(FailureKind::Signalled(15)), 143);
        assert_eq!(Exit::from(FailureKind::Partial).code(StatusOwner::Plain), 3);
    }

    #[test]
    fn the_family_is_seen_in_the_first_words() {
        let of = |line: &str| StatusOwner::of_command_line(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(of("homenode record --no-such -- ./a.out"), StatusOwner::Runs);
        assert_eq!(of("homenode kernel run nas-cg"), StatusOwner::Runs);
        assert_eq!(of("homenode kernel list"), StatusOwner::Plain);
        assert_eq!(of("homenode compare -- record"), StatusOwner::Plain);
        assert_eq!([of("homenode top -- ./app"), of("homenode top kernel:heat")], [StatusOwner::Runs; 2]);
        assert_eq!(of("homenode top 4711"), StatusOwner::Plain);
        assert_eq!(of("homenode"), StatusOwner::Plain);
    }
}
