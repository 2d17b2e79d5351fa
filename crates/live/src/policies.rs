//! The policies that `homenode run` takes: the simulator's without `plan`, and three forms of next
//! touch.

use std::fmt::Write as _;

use homenode_error::{Error, suggest};
use homenode_policy::{POLICIES, PolicySpec, SpecError};

/// The forms of next touch, and when each arms pages.
const NEXT_TOUCH: [(&str, &str); 3] = [
    (
        "next-touch",
        "pages follow their next user from the first parallel region on, and when the program's iteration is known",
    ),
    ("next-touch=region", "the same at every region, as long as it pays"),
    ("next-touch=asked", "only what the program asks for by hn_next_touch"),
];

/// The policy of a run, unless the user names another one.
pub const DEFAULT: &str = NEXT_TOUCH[0].0;
/// The policy that leaves everything where it is.
pub(crate) const NO_MOVES: &str = "first-touch";
/// The policy of one of several ranks. The kernel alone moves pages for it.
const BY_KERNEL: &str = "competitive";

/// The policy of one of several ranks that asked for `policy`, and what a person should know of it.
/// `None`: the asked policy will do, because the kernel alone moves its pages. Other ranks may read
/// this process's memory, so nobody may take pages away and copy them.
pub fn for_ranks(policy: &str) -> Option<(&'static str, String)> {
    policy.starts_with(NEXT_TOUCH[0].0).then(|| {
        let why = format!(
            "one of several ranks: pages are moved by the kernel alone ({BY_KERNEL}), for other ranks may read this memory"
        );
        (BY_KERNEL, why)
    })
}

/// Name and meaning of each policy.
fn all() -> Vec<(&'static str, &'static str)> {
    let of = |p: &'static PolicySpec| match p.name {
        "plan" => Vec::new(),
        "next-touch" => NEXT_TOUCH.to_vec(),
        name => vec![(name, p.about)],
    };
    POLICIES.iter().flat_map(of).collect()
}

/// Names of all policies.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|(name, _)| name).collect()
}

/// A section of a help text: a line a policy.
pub fn section() -> String {
    let all = all();
    let left = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = "Policies (options follow after a colon: cyclic:pages=16):".to_owned();
    for (name, about) in all {
        let _ = write!(out, "\n  {name:left$}  {about}");
    }
    out
}

/// The error for a text that names no policy of `homenode run`.
pub fn error(text: &str, why: &SpecError) -> Error {
    match why {
        SpecError::UnknownPolicy { .. } => suggest::unknown_of("policy", text, &names()),
        SpecError::NeedsPlan { .. } => Error::usage("a run needs a file to follow a plan")
            .hint("homenode run --plan FILE; 'homenode plan REC' makes one"),
        other => Error::usage(other.to_string()).hint("'homenode run --help' lists the policies"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_of_a_run_is_listed_once() {
        let names = names();
        assert_eq!(names.len(), POLICIES.len() - 1 + 2, "without plan, next touch in three ways");
        for name in ["first-touch", "next-touch=region", "next-touch=asked", "competitive", "daemon"] {
            assert_eq!(names.iter().filter(|n| **n == name).count(), 1, "{name}");
        }
        let section = section();
        assert!(names.iter().all(|n| section.contains(&format!("\n  {n} "))), "{section}");
        assert_eq!(section.lines().count(), 1 + names.len(), "{section}");
    }
}
