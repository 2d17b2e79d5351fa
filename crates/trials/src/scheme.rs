//! Ways to place the pages of a program that runs.
//!
//! | scheme | how |
//! |---|---|
//! | `first-touch` | as the program initialises its data (kernels: one thread), NUMA balancing off |
//! | `parallel-init` | kernels only: all threads initialise |
//! | `interleave` | under `numactl --interleave=all` |
//! | `balancing` | Linux's NUMA balancing on |
//! | `next-touch`, `next-touch=region` | under `homenode run`, with these policies |

use homenode_error::{Result, suggest};

/// A way to place pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialScheme {
    /// As the program touches them.
    FirstTouch,
    /// As all threads of a kernel touch them.
    ParallelInit,
    /// Dealt to all nodes.
    Interleave,
    /// As Linux's NUMA balancing moves them.
    Balancing,
    /// As `homenode run` moves them with this policy.
    Live(&'static str),
}

impl TrialScheme {
    /// The policy that simulates the scheme; `None`: nothing simulates Linux's own balancing, and
    /// one recording has one way to initialise.
    pub fn simulated(self) -> Option<&'static str> {
        match self {
            Self::FirstTouch => Some("first-touch"),
            Self::Interleave => Some("round-robin"),
            Self::Live("next-touch") => Some("next-touch:at=first-region"),
            Self::Live("next-touch=region") => Some("next-touch:at=region"),
            Self::ParallelInit | Self::Balancing | Self::Live(_) => None,
        }
    }
}

const SCHEMES: [(&str, TrialScheme); 6] = [
    ("first-touch", TrialScheme::FirstTouch),
    ("parallel-init", TrialScheme::ParallelInit),
    ("interleave", TrialScheme::Interleave),
    ("balancing", TrialScheme::Balancing),
    ("next-touch", TrialScheme::Live("next-touch")),
    ("next-touch=region", TrialScheme::Live("next-touch=region")),
];

/// The schemes asked for, or all that make sense for a kernel or for any program. `place` names
/// where they run, for the message.
///
/// # Errors
/// A name is unknown.
pub fn select(asked: &[String], kernel: bool, place: &str) -> Result<Vec<(&'static str, TrialScheme)>> {
    let all: Vec<_> =
        SCHEMES.into_iter().filter(|(_, s)| kernel || *s != TrialScheme::ParallelInit).collect();
    if asked.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let names: Vec<&str> = all.iter().map(|(n, _)| *n).collect();
        let found = all.iter().find(|(n, _)| n == name).copied();
        found.ok_or_else(|| suggest::unknown_of(&format!("scheme of {place}"), name, &names))
    };
    asked.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_schemes_are_policies() {
        let machine = homenode_schemes::machine("2s-xeon").unwrap().topology;
        let context = homenode_policy::PolicyContext::of(&machine, homenode_model::Bytes::kib(4));
        let simulated: Vec<&str> = SCHEMES.iter().filter_map(|(_, s)| s.simulated()).collect();
        assert_eq!(simulated.len(), 4);
        assert!(simulated.iter().all(|policy| homenode_policy::build(policy, &context).is_ok()));
    }

    #[test]
    fn schemes_are_found_or_explained() {
        let of = |asked: &[String], kernel| select(asked, kernel, "the lab");
        assert_eq!(of(&[], true).unwrap().len(), 6);
        assert_eq!(of(&[], false).unwrap().len(), 5);
        assert_eq!(of(&["balancing".into()], false).unwrap(), [("balancing", TrialScheme::Balancing)]);
        assert!(of(&["parallel-init".into()], false).is_err());
        assert!(of(&["balancin".into()], true).unwrap_err().to_string().contains("balancing"));
    }
}
