//! The policies by name, with their options: what `--policy` accepts and what help texts list.
//!
//! A *spec* is `name` or `name:option=value,option=value`. Adding a policy is one entry in [`POLICIES`].

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use homenode_model::NodeId;

use crate::explicit::{Distribution, Explicit};
use crate::{FirstTouch, NextTouch, OneNode, Policy, PolicyContext, RoundRobin, spelling};

/// An option of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// As typed.
    pub name: &'static str,
    /// One line for a person.
    pub about: &'static str,
    /// The value when it is not given.
    pub default: &'static str,
}

/// A policy that can be built by name.
#[derive(Clone, Copy)]
pub struct PolicySpec {
    /// As typed.
    pub name: &'static str,
    /// One line for a person.
    pub about: &'static str,
    /// What can be set.
    pub options: &'static [OptionSpec],
    make: Make,
}

type Built = Result<Box<dyn Policy>, SpecError>;
type Make = fn(&Values<'_>, &PolicyContext) -> Built;

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySpec").field("name", &self.name).field("options", &self.options).finish()
    }
}

/// All policies, in the order in which help lists them.
pub const POLICIES: &[PolicySpec] = &[
    PolicySpec {
        name: "first-touch",
        about: "a page lives where it is touched first (the operating system's default)",
        options: &[],
        make: |_, c| Ok(Box::new(FirstTouch::new(c))),
    },
    PolicySpec {
        name: "round-robin",
        about: "pages are interleaved over all nodes with memory",
        options: &[],
        make: |_, c| Ok(Box::new(RoundRobin::new(c))),
    },
    PolicySpec {
        name: "one-node",
        about: "all pages on one node, the nearest to it when it is full",
        options: &[OptionSpec { name: "node", about: "which node", default: "0" }],
        make: |v, c| Ok(Box::new(OneNode::new(c, v.node("node", c)?))),
    },
    PolicySpec {
        name: "block",
        about: "each object in one contiguous block a node (HPF BLOCK)",
        options: &[],
        make: |_, c| Ok(Box::new(Explicit::new(c, Distribution::Block))),
    },
    PolicySpec {
        name: "cyclic",
        about: "each object dealt over the nodes in turn (HPF CYCLIC)",
        options: &[OptionSpec { name: "pages", about: "pages a turn", default: "1" }],
        make: |v, c| Ok(Box::new(Explicit::new(c, Distribution::Cyclic(v.count("pages")?)))),
    },
    PolicySpec {
        name: "next-touch",
        about: "first touch; pages the program asks for follow whoever touches them next (Löf)",
        options: &[],
        make: |_, c| Ok(Box::new(NextTouch::new(c))),
    },
];

/// Makes the policy that `spec` names, for the machine of `context`.
///
/// # Errors
/// [`SpecError`] says which part is wrong and what would be right.
pub fn build(spec: &str, context: &PolicyContext) -> Result<Box<dyn Policy>, SpecError> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let policy = POLICIES.iter().find(|p| p.name == name).ok_or_else(|| SpecError::UnknownPolicy {
        name: name.to_string(),
        nearest: spelling::nearest(name, POLICIES.iter().map(|p| p.name)),
    })?;
    (policy.make)(&Values::parse(policy, rest)?, context)
}

/// Options as given, checked against those the policy has.
struct Values<'a> {
    policy: &'static PolicySpec,
    given: Vec<(&'static OptionSpec, &'a str)>,
}

impl<'a> Values<'a> {
    fn parse(policy: &'static PolicySpec, text: &'a str) -> Result<Self, SpecError> {
        let mut given: Vec<(&'static OptionSpec, &'a str)> = Vec::new();
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let option = policy.options.iter().find(|o| o.name == name);
            let option = option.ok_or_else(|| SpecError::UnknownOption {
                policy,
                option: name.to_string(),
                nearest: spelling::nearest(name, policy.options.iter().map(|o| o.name)),
            })?;
            if given.iter().any(|(o, _)| o.name == name) {
                return Err(SpecError::Twice { policy: policy.name, option: option.name });
            }
            given.push((option, value));
        }
        Ok(Self { policy, given })
    }
    fn bad(&self, option: &'static str, value: &str, wants: String) -> SpecError {
        SpecError::BadValue { policy: self.policy.name, option, value: value.to_string(), wants }
    }
    fn value(&self, name: &'static str) -> &str {
        let given = self.given.iter().find(|(o, _)| o.name == name).map(|(_, v)| *v);
        let default = || self.policy.options.iter().find(|o| o.name == name).map(|o| o.default);
        given.or_else(default).unwrap_or_default()
    }
    /// A number from 1 up.
    fn count(&self, name: &'static str) -> Result<u64, SpecError> {
        let value = self.value(name);
        let wants = || self.bad(name, value, "a number from 1 up".into());
        value.parse().ok().filter(|n| *n > 0).ok_or_else(wants)
    }
    /// A node with memory.
    fn node(&self, name: &'static str, context: &PolicyContext) -> Result<NodeId, SpecError> {
        let value = self.value(name);
        let nodes = context.memory_nodes();
        let found = value.parse().ok().map(NodeId).filter(|n| nodes.contains(n));
        found.ok_or_else(|| {
            let list: Vec<String> = nodes.iter().map(|n| n.0.to_string()).collect();
            self.bad(name, value, alloc::format!("a node with memory: {}", list.join(", ")))
        })
    }
}

/// Why a spec names no policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SpecError {
    /// No policy of that name; [`POLICIES`] are the candidates.
    UnknownPolicy {
        /// As typed.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// The policy has no such option.
    UnknownOption {
        /// The policy, with the options it has.
        policy: &'static PolicySpec,
        /// As typed.
        option: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// The option's value makes no sense.
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The option.
        option: &'static str,
        /// As typed.
        value: String,
        /// What it may be.
        wants: String,
    },
    /// An option is given twice.
    Twice {
        /// The policy.
        policy: &'static str,
        /// The option.
        option: &'static str,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPolicy { name, nearest } => {
                write!(f, "there is no policy `{name}`")?;
                candidates(f, *nearest, "policies", POLICIES.iter().map(|p| p.name))
            }
            Self::UnknownOption { policy, option, nearest } => {
                write!(f, "policy `{}` has no option `{option}`", policy.name)?;
                candidates(f, *nearest, "options", policy.options.iter().map(|o| o.name))
            }
            Self::BadValue { policy, option, value, wants } => {
                write!(f, "policy `{policy}`: `{option}={value}` should be {wants}")
            }
            Self::Twice { policy, option } => {
                write!(f, "policy `{policy}`: option `{option}` is given twice")
            }
        }
    }
}

fn candidates(
    f: &mut fmt::Formatter<'_>,
    nearest: Option<&str>,
    what: &str,
    known: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    if let Some(nearest) = nearest {
        write!(f, "; did you mean `{nearest}`?")?;
    }
    let known: Vec<&str> = known.collect();
    match known.is_empty() {
        true => write!(f, " (it has no {what})"),
        false => write!(f, " ({what}: {})", known.join(", ")),
    }
}

impl core::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, machine, roomy, touches};
    use homenode_model::{Event, ObjectId, PageNo, PageRange};
    use proptest::prelude::*;

    fn error(spec: &str) -> String {
        match build(spec, &machine(&roomy())) {
            Ok(_) => panic!("{spec} was built"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn every_policy_builds_with_its_defaults() {
        for policy in POLICIES {
            assert!(build(policy.name, &machine(&roomy())).is_ok(), "{}", policy.name);
        }
        assert!(build("one-node:node=2", &machine(&roomy())).is_ok());
        assert!(build("cyclic:pages=4,", &machine(&roomy())).is_ok());
    }

    #[test]
    fn errors_name_the_remedy() {
        let e = error("nxt-touch");
        assert!(e.starts_with(
            "there is no policy `nxt-touch`; did you mean `next-touch`? (policies: first-touch"
        ));
        let e = error("cyclic:page=4");
        assert_eq!(e, "policy `cyclic` has no option `page`; did you mean `pages`? (options: pages)");
        let e = error("block:x=1");
        assert_eq!(e, "policy `block` has no option `x` (it has no options)");
        let e = error("one-node:node=3");
        assert_eq!(e, "policy `one-node`: `node=3` should be a node with memory: 0, 1, 2");
        let e = error("cyclic:pages=0");
        assert_eq!(e, "policy `cyclic`: `pages=0` should be a number from 1 up");
        assert_eq!(error("cyclic:pages=1,pages=2"), "policy `cyclic`: option `pages` is given twice");
    }

    /// `Bench` asserts, for every decision, that the node has memory and room.
    fn drive(spec: &str, capacity: &[u64], touches: &[(PageNo, NodeId)]) -> (Vec<(PageNo, NodeId)>, u64) {
        let context = machine(capacity);
        let mut bench = Bench::new(&context, build(spec, &context).unwrap());
        let pages = PageRange { first: PageNo(0), count: 40 };
        bench.observe(&Event::Alloc { object: ObjectId(0), pages });
        for (i, (page, node)) in touches.iter().enumerate() {
            bench.fault(*page, *node);
            bench.touch(*page, *node);
            match i % 40 {
                20 => bench.request(pages),
                39 => bench.free(ObjectId(0), PageRange { first: PageNo(8), count: 16 }),
                _ => {}
            }
        }
        (bench.homes().iter().collect(), bench.moves)
    }

    proptest! {
        #[test]
        fn no_policy_uses_memory_that_is_not_there((capacity, touches) in touches()) {
            for policy in POLICIES {
                drive(policy.name, &capacity, &touches);
            }
        }

        #[test]
        fn same_events_same_decisions((capacity, touches) in touches()) {
            for policy in POLICIES {
                prop_assert_eq!(
                    drive(policy.name, &capacity, &touches),
                    drive(policy.name, &capacity, &touches)
                );
            }
        }

        #[test]
        fn no_spec_panics(spec in "[a-z-]{0,12}(:[a-z=0-9,]{0,12})?") {
            let _ = build(&spec, &machine(&roomy()));
        }
    }
}
