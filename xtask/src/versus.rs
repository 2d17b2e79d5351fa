//! Our programs beside others' that do the same: both run in turns, the ratio of what they measure
//! with its interval.

mod memory;
mod npb;
pub mod pairs;

use crate::CommandResult;

/// What `versus` takes: what our program is compared with.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Reference {
    /// A binary of the NAS Parallel Benchmarks
    Npb(npb::NpbArgs),
    /// multichase: idle latency
    Multichase(memory::MultichaseArgs),
    /// STREAM: triad
    Stream(memory::StreamArgs),
}

/// `cargo xtask versus REFERENCE …`
pub fn run(reference: Reference) -> CommandResult {
    match reference {
        Reference::Npb(args) => npb::run(args),
        Reference::Multichase(args) => memory::multichase(args),
        Reference::Stream(args) => memory::stream(args),
    }
}
