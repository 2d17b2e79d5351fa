//! The commands. One that stands here works.

mod compare;
mod completions;
mod diff;
mod doctor;
mod explain;
mod kernel;
mod lab;
mod machine;
mod man;
mod measure;
mod paper;
mod plan;
mod rec;
mod record;
mod run;
pub(crate) mod show;
mod summary;
mod top;
mod view;

use clap::{Parser, Subcommand};
use homenode_error::Result;

use crate::exit::Exit;
use crate::help;
use crate::output::terminal_width;

/// Put every page on the NUMA node that uses it, and see why
#[derive(Debug, Parser)]
#[command(name = "homenode", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do. To add one: a variant, an arm in [`Command::run`], and its group in [`crate::help`].
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What is wrong, in which line, what to do, what it would bring
    Explain(Box<crate::args::explain::ExplainArgs>),
    /// What this machine offers, and what homenode will do with it
    Doctor(crate::args::doctor::DoctorArgs),
    /// Record who touches what
    Record(crate::args::record::RecordArgs),
    /// Run a program and move its pages to the nodes that use them
    Run(crate::args::run::LiveArgs),
    /// Latency, bandwidth and migration between nodes, with proof of where the memory was
    Measure(Box<crate::args::measure::MeasureArgs>),
    /// What changed between two recordings, comparisons or measurements
    Diff(crate::args::diff::DiffArgs),
    /// All placement schemes in one table
    Compare(crate::args::compare::CompareArgs),
    /// The best placement for the next run
    Plan(crate::args::plan::PlanArgs),
    /// Check, merge, export or upgrade recordings
    Rec(crate::args::rec::RecArgs),
    /// Machines that programs can be simulated on
    Machine(crate::args::machine::MachineArgs),
    /// The papers' programs
    Kernel(crate::args::kernel::KernelArgs),
    /// The papers' tables, theirs beside ours
    Paper(crate::args::paper::PaperArgs),
    /// A virtual NUMA machine to run programs on
    Lab(crate::args::lab::LabArgs),
    /// What is remote in a recording, which arrays, where their pages live
    Show(crate::args::show::ShowArgs),
    /// Look at a recording: every page, its way and why, in the browser or as one file
    View(crate::args::view::ViewArgs),
    /// A run while it goes on, in the terminal: nodes, objects, moves, cost
    Top(crate::args::top::TopArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all pages to a directory
    Man(man::ManArgs),
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// What went wrong; its `code` says how homenode ends.
    pub fn run(self) -> Result<Exit> {
        match self {
            Self::Doctor(args) => args.run(),
            Self::Explain(args) => args.run(),
            Self::Measure(args) => args.run(),
            Self::Diff(args) => args.run(),
            Self::Compare(args) => args.run(),
            Self::Record(args) => args.run(),
            Self::Run(args) => args.run(),
            Self::Plan(args) => args.run(),
            Self::Rec(args) => args.run(),
            Self::Machine(args) => args.run(),
            Self::Kernel(args) => args.run(),
            Self::Paper(args) => args.run(),
            Self::Lab(args) => args.run(),
            Self::Show(args) => args.run(),
            Self::View(args) => args.run(),
            Self::Top(args) => args.run(),
            Self::Completions(args) => args.run(command_line()),
            Self::Man(args) => args.run(command_line()),
        }
    }
}

/// The command line that homenode understands, with grouped help for the terminal.
pub fn command_line() -> clap::Command {
    command_line_in(help::width(terminal_width()))
}

/// The same, with help in lines of at most `width` columns.
pub fn command_line_in(width: usize) -> clap::Command {
    help::grouped(<Cli as clap::CommandFactory>::command(), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest_command() {
        let error = command_line().try_get_matches_from(["homenode", "completion"]).unwrap_err();
        assert!(error.to_string().contains("'completions'"), "{error}");
    }
}
