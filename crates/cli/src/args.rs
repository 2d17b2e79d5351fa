//! What commands take on their command lines.
//!
//! A struct here is not a command yet: [`crate::cmd`] registers a command once it works.

pub mod compare;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod kernel;
pub mod lab;
pub mod machine;
pub mod measure;
pub mod paper;
pub mod plan;
pub mod rec;
pub mod record;
pub mod run;
pub mod schedule;
pub mod show;
pub mod subject;
pub mod top;
pub mod view;

/// Parses `line` as the arguments of a command, the way a test asks.
#[cfg(test)]
pub(crate) fn parse<A: clap::Args>(line: &str) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("test"));
    command.clone().debug_assert();
    A::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}
