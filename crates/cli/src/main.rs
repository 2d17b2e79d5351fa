//! The command `homenode`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    homenode_cli::main(&std::env::args_os().collect::<Vec<_>>())
}
