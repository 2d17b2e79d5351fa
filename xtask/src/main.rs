//! Developer commands: what CI runs, a contributor runs.

#![forbid(unsafe_code)]

mod base;
mod bench;
mod book;
mod c_api;
mod ci;
mod dataset;
mod dist;
mod fuzz_programs;
mod map;
mod matrix;
mod metadata;
mod new_policy;
mod process;
mod python;
mod seeded;
mod since;
mod spread;
mod testing;
mod texts;
mod tidy;
mod verdicts;
mod versus;

use std::process::ExitCode;

use base::{Outcome, none, root};

/// A command: its name, its arguments, what it does.
struct Command {
    name: &'static str,
    args: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Outcome,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "ci",
        args: "[--long]",
        about: "every check that must pass, as 'make test' runs them",
        run: ci::run,
    },
    Command {
        name: "book",
        args: "",
        about: "the documentation as a book in target/book, by mdBook",
        run: book::run,
    },
    Command {
        name: "dist",
        args: "[--check [PART]… | --only-check [PART]… | --built FOLDER | --source | --linker]",
        about: "tarballs, Debian package and wheel in target/dist; --check installs each in a clean root",
        run: dist::run,
    },
    Command {
        name: "python",
        args: "",
        about: "the tests of the Python package, as 'ci' runs them",
        run: python::run,
    },
    Command {
        name: "tidy",
        args: "",
        about: "the rules of ARCHITECTURE.md that no compiler checks",
        run: tidy::run,
    },
    Command {
        name: "map",
        args: "[CRATE]…",
        about: "which file of a crate uses which, floor by floor, and the circles among them",
        run: map::run,
    },
    Command {
        name: "new-policy",
        args: "NAME",
        about: "a new placement policy: file, tests and registration",
        run: new_policy::run,
    },
    Command {
        name: "c-api",
        args: "",
        about: "the C header and the Fortran module, from the source of the C API",
        run: c_api::run,
    },
    Command {
        name: "bench",
        args: "[NAME]... | since REV [--rounds N] [--built]",
        about: "the benchmarks, each beside its last result; recording and replay beside those of a revision",
        run: bench::run,
    },
    Command {
        name: "dataset",
        args: "[--gib N] [--seed N] [--nodes N] -o DIR",
        about: "a synthetic data set of any size, for benchmarks and the viewer",
        run: dataset::run,
    },
    Command {
        name: "matrix",
        args: "[--keep DIR]",
        about: "four programs, three initial placements, three machines: how near policies come to the bound",
        run: matrix::run,
    },
    Command {
        name: "fuzz-programs",
        args: "[--seed N] [--count K] [--shrink]",
        about: "programs from a grammar, alone and under homenode: what differs, made smaller on request",
        run: fuzz_programs::run,
    },
    Command {
        name: "fuzz-inputs",
        args: "[--seed S] [--count N] [--release]",
        about: "damaged files of every format through every command that reads them",
        run: seeded::inputs,
    },
    Command {
        name: "kill-points",
        args: "[--seed S] [--rounds N] [--release]",
        about: "SIGKILL at N random points of each kind of recording: what is left is readable",
        run: seeded::kills,
    },
    Command {
        name: "verdicts",
        args: "[--explain | --lab] [--rounds N] [--only PROGRAM]… [--debug]",
        about: "whether 'homenode run' says what is right of each program of tests/verdicts, the same every time",
        run: verdicts::run,
    },
    Command {
        name: "versus",
        args: "npb|multichase|stream --binary PATH …",
        about: "our programs beside others' that do the same, in turns",
        run: versus::run,
    },
    Command {
        name: "spread",
        args: "RUN.json RUN.json…",
        about: "how far repeated measurements of 'homenode measure --json' are apart, as CSV",
        run: spread::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) =
        args.split_first().and_then(|(name, rest)| Some((COMMANDS.iter().find(|c| c.name == *name)?, rest)))
    else {
        eprintln!("Usage: cargo xtask COMMAND\n");
        for c in COMMANDS {
            eprintln!("  {:<18} {}", format!("{} {}", c.name, c.args), c.about);
        }
        return ExitCode::from(2);
    };
    match (command.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask {}: {why}", command.name);
            ExitCode::FAILURE
        }
    }
}
