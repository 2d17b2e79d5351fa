//! The guest's side of the lab: starts the program, relays its streams, sends its files back.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    homenode_lab::guest::main()
}
