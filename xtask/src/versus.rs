//! Our programs beside others' that do the same: both run in turns, the ratio of what they measure
//! with its interval.

mod memory;
mod npb;
pub mod pairs;

use crate::Outcome;

/// What a program can be compared with: its name, its arguments, what compares.
type Reference = (&'static str, &'static str, fn(&[String]) -> Outcome);

const REFERENCES: &[Reference] = &[
    ("npb", npb::USAGE, npb::run),
    ("multichase", memory::MULTICHASE, memory::multichase),
    ("stream", memory::STREAM, memory::stream),
];

/// `cargo xtask versus REFERENCE …`
pub fn run(args: &[String]) -> Outcome {
    let found = args.split_first().and_then(|(name, rest)| {
        let reference = REFERENCES.iter().find(|(known, ..)| known == name)?;
        Some((reference.2)(rest))
    });
    found.unwrap_or_else(|| {
        let usages: Vec<_> =
            REFERENCES.iter().map(|(name, usage, _)| format!("versus {name} {usage}")).collect();
        Err(format!("usage: {}", usages.join("\n       ")))
    })
}
