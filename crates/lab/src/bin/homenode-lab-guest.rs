//! The guest's side of the lab: starts the program, passes its streams on, sends its files back.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    homenode_lab::guest::main()
}
