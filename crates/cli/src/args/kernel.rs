//! `homenode kernel`: the papers' programs.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::output::OutputArgs;

/// The papers' programs
#[derive(Args, Clone, Debug, PartialEq)]
pub struct KernelArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: KernelCommand,
}

/// What `kernel` does.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum KernelCommand {
    /// List all kernels, their classes and where they come from
    List {
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Build kernels
    Build {
        /// Their names, without 'kernel:' [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Run a kernel as it is, and verify its result
    Run {
        /// Its name, without 'kernel:'
        #[arg(value_name = "NAME")]
        name: String,
        /// Problem class: S, W, A, B
        #[arg(long, value_name = "CLASS")]
        class: Option<String>,
        /// OpenMP threads (OMP_NUM_THREADS)
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
        threads: Option<u32>,
        /// Further arguments for it
        #[arg(last = true, value_name = "ARG")]
        args: Vec<OsString>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn run_takes_class_threads_and_arguments() {
        let line = "kernel run nas-cg --class S --threads 2 -- -v";
        let KernelCommand::Run { name, class, threads, args } = parse::<KernelArgs>(line).unwrap().command
        else {
            panic!("not run")
        };
        assert_eq!((name.as_str(), class.as_deref(), threads), ("nas-cg", Some("S"), Some(2)));
        assert_eq!(args, ["-v"]);
    }

    #[test]
    fn build_takes_any_number() {
        assert!(parse::<KernelArgs>("kernel build").is_ok());
        assert!(parse::<KernelArgs>("kernel build a b").is_ok());
    }
}
