//! The command `homenode`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::thread::Builder;

/// What the command needs of a stack, with room. `ulimit -s`, which the programs that it runs
/// inherit, may leave the first thread less.
const STACK: usize = 8 << 20;

fn main() -> ExitCode {
    let args = || std::env::args_os().collect::<Vec<_>>();
    match Builder::new().name("main".into()).stack_size(STACK).spawn(move || homenode_cli::main(&args())) {
        // A panic has said what it is.
        Ok(main) => main.join().unwrap_or(ExitCode::from(101)),
        Err(_) => homenode_cli::main(&args()),
    }
}
