//! What a command works on: a recording, a program, or one of the papers' programs (`kernel:NAME`).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;

use homenode_error::{Error, Result};

/// What a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandSubject {
    /// A recording made earlier.
    Recording(PathBuf),
    /// A program of the `kernels/` folder.
    Kernel {
        /// Its name without `kernel:`.
        name: String,
        /// Further arguments for it.
        args: Vec<OsString>,
    },
    /// Any program.
    Program {
        /// As `execvp` takes it.
        program: OsString,
        /// Its arguments.
        args: Vec<OsString>,
    },
}

/// Options for running a program.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Program")]
pub struct RunArgs {
    /// Problem class of a kernel: S, W, A, B
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// OpenMP threads (OMP_NUM_THREADS) [default of compare and explain: one a node, 4 to 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// The program and its arguments
    #[arg(last = true, value_name = "APP")]
    pub app: Vec<OsString>,
}

const KERNEL: &str = "kernel:";

impl RunArgs {
    /// The subject of a command that also takes a recording.
    ///
    /// # Errors
    /// A usage error when there is none, or more than one.
    pub fn subject_or_recording(&self, what: Option<&OsStr>) -> Result<CommandSubject> {
        self.named(what, |path| Ok(CommandSubject::Recording(path.into())))
    }

    /// The subject of a command that runs a program.
    ///
    /// # Errors
    /// A usage error when there is none, or more than one.
    pub fn subject(&self, what: Option<&OsStr>) -> Result<CommandSubject> {
        self.named(what, |word| {
            let word = word.display();
            Err(Error::usage(format!("'{word}' is not the name of a kernel"))
                .hint(format!("a program stands after two dashes: -- {word}")))
        })
    }

    fn named(
        &self,
        what: Option<&OsStr>,
        other: impl FnOnce(&OsStr) -> Result<CommandSubject>,
    ) -> Result<CommandSubject> {
        match (what, self.app.split_first()) {
            (None, None) => Err(Error::usage("nothing to work on")
                .hint("name a kernel (kernel:nas-cg), or a program after two dashes (-- ./app)")),
            (None, Some((program, args))) => Ok(match kernel(program) {
                Some(name) => CommandSubject::Kernel { name, args: args.to_vec() },
                None => CommandSubject::Program { program: program.clone(), args: args.to_vec() },
            }),
            (Some(what), app) => match (kernel(what), app) {
                (Some(name), _) => Ok(CommandSubject::Kernel { name, args: self.app.clone() }),
                (None, None) => other(what),
                (None, Some((program, _))) => {
                    let (what, program) = (what.display(), program.display());
                    Err(Error::usage(format!("both '{what}' and '{program}' are named: one is enough")).hint(
                        format!("leave '{what}' out; a program's own words go behind it: -- {program} …"),
                    ))
                }
            },
        }
    }
}

fn kernel(word: &OsStr) -> Option<String> {
    word.to_str()?.strip_prefix(KERNEL).map(str::to_owned)
}

/// The error for a recording where a program is run.
pub fn not_a_program(path: &Path) -> Error {
    Error::usage(format!("{} is a recording, not a program", path.display()))
        .hint("name the program behind '--': -- ./app …")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    fn args(line: &str) -> RunArgs {
        parse(&format!("test {line}")).unwrap()
    }

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_kernel_is_named_on_either_side_of_the_dashes() {
        let cg = |args: &[&str]| CommandSubject::Kernel { name: "nas-cg".into(), args: os(args) };
        assert_eq!(args("--class W").subject(Some("kernel:nas-cg".as_ref())), Ok(cg(&[])));
        assert_eq!(args("-- -v").subject(Some("kernel:nas-cg".as_ref())), Ok(cg(&["-v"])));
        assert_eq!(args("-- kernel:nas-cg -v").subject(None), Ok(cg(&["-v"])));
    }

    #[test]
    fn a_program_keeps_its_own_dashes() {
        let subject = args("--threads 4 -- ./app --threads 8 -- x").subject(None);
        let want = os(&["--threads", "8", "--", "x"]);
        assert_eq!(subject, Ok(CommandSubject::Program { program: "./app".into(), args: want }));
    }

    #[test]
    fn a_word_is_a_recording_where_one_is_taken() {
        let none = args("");
        assert_eq!(
            none.subject_or_recording(Some("a.hnrec".as_ref())),
            Ok(CommandSubject::Recording("a.hnrec".into()))
        );
        let error = none.subject(Some("./app".as_ref())).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("a program stands after two dashes: -- ./app"));
    }

    #[test]
    fn none_and_two_are_usage_errors() {
        assert!(args("").subject(None).is_err());
        assert!(args("-- ./app").subject_or_recording(Some("a.hnrec".as_ref())).is_err());
    }

    #[test]
    fn no_threads_is_refused() {
        assert!(parse::<RunArgs>("test --threads 0").is_err());
    }
}
