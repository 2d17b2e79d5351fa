//! Developer commands: what CI runs, a contributor runs.

#![forbid(unsafe_code)]

mod base;
mod bench;
mod book;
mod c_api;
mod ci;
mod dataset;
mod dealt;
mod dist;
mod fuzz_programs;
mod map;
mod matrix;
mod metadata;
mod miri;
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

use base::{CommandResult, root};
use clap::Parser;

/// Developer commands
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Every check that must pass, as 'make test' runs them
    Ci(ci::CiArgs),
    /// The documentation as a book in target/book, by mdBook
    Book,
    /// Tarballs, Debian package and wheel in target/dist
    Dist(dist::DistArgs),
    /// The tests of the Python package, as 'ci' runs them
    Python,
    /// The rules of ARCHITECTURE.md that no compiler checks
    Tidy,
    /// Which file of a crate uses which, floor by floor, and the circles among them
    Map(map::MapArgs),
    /// Unsafe code under Miri, where tests neither call the system nor execute assembly
    Miri,
    /// A new placement policy: file, tests and registration
    NewPolicy(new_policy::NewPolicyArgs),
    /// The C header and the Fortran module, from the source of the C API
    CApi,
    /// The benchmarks, each beside its last result
    Bench(bench::BenchArgs),
    /// A synthetic data set of any size, for benchmarks and the viewer
    Dataset(dataset::DatasetArgs),
    /// Four programs, three initial placements, three machines: how near policies come to the bound
    Matrix(matrix::MatrixArgs),
    /// Programs from a grammar, alone and under homenode: what differs, made smaller on request
    FuzzPrograms(fuzz_programs::ProgramsArgs),
    /// Damaged files of every format through every command that reads them
    FuzzInputs(seeded::InputsArgs),
    /// SIGKILL at N random points of each kind of recording: what is left is readable
    KillPoints(seeded::KillsArgs),
    /// Whether 'homenode run' says what is right of each program of tests/verdicts, every time
    Verdicts(verdicts::VerdictsArgs),
    /// Recorded dynamic loops under other schedules, in the simulator
    Dealt(dealt::DealtArgs),
    /// Our programs beside others' that do the same, in turns
    #[command(subcommand)]
    Versus(versus::Reference),
    /// How far repeated measurements of 'homenode measure --json' are apart, as CSV
    Spread(spread::SpreadArgs),
}

impl Command {
    fn run(self) -> CommandResult {
        match self {
            Self::Ci(args) => ci::run(args),
            Self::Book => book::run(),
            Self::Dist(args) => dist::run(&args),
            Self::Python => python::run(),
            Self::Tidy => tidy::run(),
            Self::Map(args) => map::run(&args),
            Self::Miri => miri::run(),
            Self::NewPolicy(args) => new_policy::run(&args),
            Self::CApi => c_api::run(),
            Self::Bench(args) => bench::run(&args),
            Self::Dataset(args) => dataset::run(&args),
            Self::Matrix(args) => matrix::run(&args),
            Self::FuzzPrograms(args) => fuzz_programs::run(args),
            Self::FuzzInputs(args) => seeded::inputs(args),
            Self::KillPoints(args) => seeded::kills(args),
            Self::Verdicts(args) => verdicts::run(&args),
            Self::Dealt(args) => dealt::run(&args),
            Self::Versus(reference) => versus::run(reference),
            Self::Spread(args) => spread::run(&args),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
