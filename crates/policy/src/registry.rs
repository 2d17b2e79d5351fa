//! The policies by name, with their options: what `--policy` accepts and what help texts list.
//!
//! A *spec* is `name` or `name:option=value,option=value`. Adding a policy is one entry in
//! [`POLICIES`].

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use homenode_model::{NodeId, Ns};

use crate::ars::{Distance, Form, Threshold, Weights};
use crate::competitive_balanced::Balance;
use crate::daemon::Replicas;
use crate::explicit::{Distribution, Explicit};
use crate::initial::Initial;
use crate::interval::Counters;
use crate::next_touch::At;
use crate::objects::Objects;
use crate::options::OptionSpec;
use crate::spelling::{candidates, time};
use crate::when::When;
use crate::{FirstTouch, NextTouch, OneNode, Paced, Plan, Policy, PolicyContext, RoundRobin, Weighted};
use crate::{competitive, competitive_balanced, daemon, in_w, out_u, out_w, presence, spelling, weighted};

/// A policy that can be built by name.
#[derive(Clone, Copy)]
pub struct PolicySpec {
    /// The name, as the user types it.
    pub name: &'static str,
    /// One line for a person.
    pub about: &'static str,
    /// The options.
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

const fn option(name: &'static str, about: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec { name, about, default, live: None }
}

const NODES: OptionSpec = option(
    "nodes",
    "which get pages: threads (those with memory that run threads, where that is known), or all with memory",
    "threads",
);
const FROM: OptionSpec = option(
    "from",
    "where pages live before: first-touch, round-robin, one-node, or farthest from their first toucher",
    "first-touch",
);
const FACTOR: OptionSpec =
    option("factor", "percent of the others' references that the most must exceed, 1 to 10000", "200");
const FORM: OptionSpec = option(
    "form",
    "of the threshold: share (most > factor · others), literal (most - average > factor · average), literal-all \
     (the same over all nodes), others (most > factor · average of the others), constant (most - average > factor · \
     average over all pages, the largest so far)",
    "share",
);
const LEAST: OptionSpec = option("least", "references below which a page is left", "16");
const ADAPTIVE: OptionSpec = option("adaptive", "the factor follows what comes of moves: yes or no", "no");
const REACH: OptionSpec = option("reach", "neighbours up to this distance count, 0 to 16", "8");
const DISTANCE: OptionSpec = option(
    "distance",
    "of neighbours: page (by page number) or rank (among the pages that are looked at)",
    "rank",
);
const COUNTERS: OptionSpec =
    option("counters", "how long references count: interval, or move (until the page moves)", "interval");
const AT_REGION: OptionSpec = option(
    "at",
    "when counts are looked at: region (its end), iteration, either, or a time as in 10ms",
    "region",
);
const COMPETITIVE: [OptionSpec; 7] = [
    option(
        "at",
        "when counts are looked at: iteration, region (its end), either (regions until the first iteration), or a time as in 10ms",
        "iteration",
    )
    // Some programs have few iterations, or none.
    .live("either", false),
    FROM,
    option("gain", "percent of the largest latency that a move must save, 0 to 100", "10"),
    option("horizon", "intervals within which a move must pay for itself; 0: it need not", "16"),
    option("bounces", "how often a page may go back to where it came from, 0 to 255", "1"),
    // That none of a few blocks moves says nothing of others. Blocks that stay rest ever longer.
    option("quiet", "intervals without a move after which it stops; 0: never", "2").live("0", true),
    option(
        "pace",
        "what one move takes an engine of its own, as in 1ms: one page after the other; 0: all at once",
        "0",
    ),
];

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
        options: &[option("node", "which node", "0")],
        make: |v, c| Ok(Box::new(OneNode::new(c, v.node("node", c)?))),
    },
    PolicySpec {
        name: "block",
        about: "each object in one contiguous block a node (HPF BLOCK)",
        options: &[NODES],
        make: |v, c| Ok(Box::new(Explicit::new(c, Distribution::Block, v.nodes(c)?))),
    },
    PolicySpec {
        name: "cyclic",
        about: "each object dealt over the nodes in turn (HPF CYCLIC)",
        options: &[option("pages", "pages a turn", "1"), NODES],
        make: |v, c| Ok(Box::new(Explicit::new(c, Distribution::Cyclic(v.count("pages")?), v.nodes(c)?))),
    },
    PolicySpec {
        name: "block-2d",
        about: "each object as a matrix in rectangular tiles, one a node (HPF BLOCK, BLOCK)",
        options: &[
            option("rows", "rows that each object has, stored one after the other", "1"),
            option("across", "nodes across; a divisor of the number of nodes", "1"),
            NODES,
        ],
        make: |v, c| {
            let nodes = v.nodes(c)?;
            let (rows, across) = (v.count("rows")?, v.count("across")?);
            if !(nodes.len() as u64).is_multiple_of(across) {
                let wants = alloc::format!("a divisor of {}, the nodes that pages are dealt to", nodes.len());
                return Err(v.wants("across", &wants));
            }
            Ok(Box::new(Explicit::new(c, Distribution::Tiles { rows, across }, nodes)))
        },
    },
    PolicySpec {
        name: "weighted",
        about: "pages are interleaved in proportion to weights, those of the memories' bandwidth by default",
        options: &[option(
            "weights",
            "one for each node with memory, 0 to 255, as in 3/1/1; or bandwidth",
            "bandwidth",
        )],
        make: |v, c| match v.value("weights") {
            "bandwidth" => Ok(Box::new(Weighted::by_bandwidth(c))),
            _ => Ok(Box::new(Weighted::new(c, &v.weights("weights", c)?))),
        },
    },
    PolicySpec {
        name: "plan",
        about: "homes worked out beforehand from a whole recording, given at first touch",
        options: &[option(
            "by",
            "how they are worked out: search (as 'homenode plan' does) or competitive (Nikolopoulos, off-line)",
            "search",
        )],
        make: |v, c| match (&c.plan, v.value("by")) {
            (Some(plan), "search" | "competitive") => Ok(Box::new(Plan::new(c, plan.clone()))),
            (Some(_), _) => Err(v.wants("by", "search or competitive")),
            (None, _) => Err(SpecError::NeedsPlan { policy: v.policy.name }),
        },
    },
    PolicySpec {
        name: "next-touch",
        about: "first touch; pages the program asks for follow whoever touches them next (Löf)",
        options: &[
            option(
                "at",
                "when pages are armed, beside requests: request (never), first-region, or region (every region's start)",
                "request",
            ),
            option(
                "objects",
                "which: all, ids as in 3/7, largest:N, or pages:N (of at least N pages)",
                "all",
            ),
            FROM,
        ],
        make: |v, c| {
            let at = [("request", At::Request), ("first-region", At::FirstRegion), ("region", At::Region)];
            let at = v.choice("at", &at)?;
            let objects = Objects::parse(v.value("objects"));
            let wants = || v.wants("objects", "all, ids of objects as in 3/7, largest:N or pages:N");
            Ok(Box::new(NextTouch::with(c, v.initial()?, at, objects.ok_or_else(wants)?)))
        },
    },
    PolicySpec {
        name: "competitive",
        about: "each page where the node that suffers most from it suffers least (Nikolopoulos)",
        options: &COMPETITIVE,
        make: |v, c| v.paced(competitive::policy(c, &v.competitive()?)),
    },
    PolicySpec {
        name: "competitive-balanced",
        about: "the same; pages that no node owns are dealt out evenly",
        options: &[
            COMPETITIVE[0],
            COMPETITIVE[1],
            COMPETITIVE[2],
            COMPETITIVE[3],
            COMPETITIVE[4],
            COMPETITIVE[5],
            COMPETITIVE[6],
            option("slack", "percent above the least cost up to which homes are as good, 0 to 1000", "25"),
            option("even", "percent of the mean load that loads may differ by, 0 to 1000", "10"),
        ],
        make: |v, c| {
            let balance = Balance { slack: v.within("slack", 0, 1000)?, even: v.within("even", 0, 1000)? };
            v.paced(competitive_balanced::policy(c, &v.competitive()?, balance))
        },
    },
    PolicySpec {
        name: "presence",
        about: "pages are armed at random times; a sequential test says which node they belong to, without counts",
        options: &[
            option("gap", "average time between two armings", "10ms"),
            option("batch", "pages armed at a time, 1 to 100000", "64"),
            option("low", "percent of the draws that is not enough to move, 50 to 98", "60"),
            option("high", "percent of the draws that is, 51 to 99", "90"),
            option("error", "percent of wrong decisions, 1 to 40", "5"),
            option("rest", "armings after which a decided block is looked at again", "1000"),
            option("bounces", "how often a page may go back to where it came from, 0 to 255", "1"),
        ],
        make: |v, c| {
            let (low, high) = (v.within("low", 50, 98)?, v.within("high", 51, 99)?);
            if low >= high {
                return Err(v.wants("high", "more than `low`"));
            }
            let options = presence::Options {
                gap: v.time("gap")?,
                batch: v.within("batch", 1, 100_000)?,
                low,
                high,
                error: v.within("error", 1, 40)?,
                rest: v.within("rest", 1, u32::MAX)?,
                bounces: v.within("bounces", 0, 255)? as u8,
            };
            Ok(presence::policy(c, &options))
        },
    },
    PolicySpec {
        name: "out-u",
        about: "a node sends a page to the remote node that dominates its references (Tao)",
        options: &[AT_REGION, FROM, FORM, FACTOR, LEAST, COUNTERS, ADAPTIVE],
        make: |v, c| Ok(out_u::policy(c, &v.out(false)?)),
    },
    PolicySpec {
        name: "out-u-local",
        about: "the same; compared with local references, which are known",
        options: &[AT_REGION, FROM, FORM, FACTOR, LEAST, COUNTERS, ADAPTIVE],
        make: |v, c| Ok(out_u::policy(c, &v.out(true)?)),
    },
    PolicySpec {
        name: "out-w",
        about: "as out-u; references to neighbouring pages on the node count, too (Tao)",
        options: &[AT_REGION, FROM, FORM, FACTOR, LEAST, COUNTERS, ADAPTIVE, REACH, DISTANCE],
        make: |v, c| Ok(out_w::policy(c, &v.out(false)?, v.weights_of_neighbours()?)),
    },
    PolicySpec {
        name: "out-w-local",
        about: "the same; compared with local references, which are known",
        options: &[AT_REGION, FROM, FORM, FACTOR, LEAST, COUNTERS, ADAPTIVE, REACH, DISTANCE],
        make: |v, c| Ok(out_w::policy(c, &v.out(true)?, v.weights_of_neighbours()?)),
    },
    PolicySpec {
        name: "in-w",
        about: "a node fetches remote pages that it and their neighbours use more than others (Tao)",
        options: &[
            AT_REGION,
            FROM,
            FORM,
            option("factor", "percent of the average that a page's references must exceed, 1 to 10000", "50"),
            LEAST,
            COUNTERS,
            ADAPTIVE,
            REACH,
            DISTANCE,
            option("rest", "intervals that a fetched page stays, 0 to 254", "4"),
        ],
        make: |v, c| {
            let options = in_w::Options {
                initial: v.initial()?,
                when: v.when("at")?,
                threshold: v.threshold()?,
                counters: v.counters()?,
                weights: v.weights_of_neighbours()?,
                rest: v.within("rest", 0, 254)? as u8,
            };
            Ok(in_w::policy(c, &options))
        },
    },
    PolicySpec {
        name: "daemon",
        about: "from time to time a few pages move, and pages that several nodes read are copied (WildFire)",
        options: &[
            option("period", "time between two looks at the counts", "10ms"),
            option("rate", "moves and copies a period at most, 1 to 1000000", "64"),
            option(
                "factor",
                "percent of the home's accesses that another node must exceed, 100 to 10000",
                "200",
            ),
            option("share", "percent of a page's accesses that make a node a sharer, 1 to 50", "20"),
            option("least", "accesses in a period below which a page is left", "16"),
            option(
                "replicate",
                "copy pages that several nodes read: yes or no; lines: replicate all that several nodes use, coherent by \
                 cache line in hardware (S-COMA)",
                "yes",
            ),
            option(
                "rest",
                "periods in which a page that was written after it was copied is not copied, 0 to 254",
                "4",
            ),
            FROM,
        ],
        make: |v, c| {
            let options = daemon::Options {
                initial: v.initial()?,
                period: v.time("period")?,
                rate: v.within("rate", 1, 1_000_000)?,
                factor: v.within("factor", 100, 10_000)?,
                share: v.within("share", 1, 50)? as u8,
                least: v.within("least", 0, u32::MAX)?,
                replicate: v.choice(
                    "replicate",
                    &[("yes", Replicas::Pages), ("no", Replicas::No), ("lines", Replicas::Lines)],
                )?,
                rest: v.within("rest", 0, 254)? as u8,
            };
            Ok(daemon::policy(c, &options))
        },
    },
];

/// Makes the policy of `spec`, for the machine of `context`.
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

/// What a policy needs of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Counts of accesses by node and page; presence is not enough.
    pub counts: bool,
    /// Marks of the outer loop's iterations. Without them the policy never decides.
    pub iterations: bool,
    /// Parallel regions. Without them the policy never decides.
    pub regions: bool,
}

/// The requirements of the policy of `spec`, with its options, on the machine of `context`.
///
/// # Errors
/// As [`build`].
pub fn requirements(spec: &str, context: &PolicyContext) -> Result<Requirements, SpecError> {
    let interest = build(spec, context)?.interest();
    Ok(Requirements {
        counts: interest.counts(),
        iterations: interest.counts_by_iteration && !interest.counts_by_region && !interest.counts_at_wakes,
        regions: interest.counts_by_region && !interest.counts_by_iteration && !interest.counts_at_wakes
            || interest.touches_by_region,
    })
}

/// What a driver can offer a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Whether it counts accesses; otherwise it has presence only.
    pub counts: bool,
    /// Number of iteration marks.
    pub iterations: u64,
    /// Number of parallel regions.
    pub regions: u64,
}

impl Requirements {
    /// What the policy of `spec` lacks in `offer`: a sentence with the remedy.
    pub fn lacking(self, spec: &str, offer: Offer) -> Option<String> {
        if self.counts && !offer.counts {
            return Some(alloc::format!(
                "`{spec}` needs access counts, and there is only presence here (who touched a page, not how often): use \
                 next-touch, or a recording of all accesses"
            ));
        }
        // The counts before the first mark belong to the initialisation. Two marks make one
        // interval.
        if self.iterations && offer.iterations < 2 {
            let has = if offer.iterations == 0 { "no iteration mark" } else { "only one iteration mark" };
            return Some(alloc::format!(
                "`{spec}` decides at the end of iterations, and the recording has {has}, so it moved nothing: call \
                 hn_iteration() in the program's outer loop, or use at=region or a time as in at=10ms"
            ));
        }
        if self.regions && offer.regions == 0 {
            return Some(alloc::format!(
                "`{spec}` acts at parallel regions, and the recording has none, so it moved nothing: use at=iteration, a \
                 time as in at=10ms, or a program with OpenMP regions"
            ));
        }
        None
    }
}

/// Options as given, checked against the policy's.
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
    /// The error that `name` has an invalid value.
    fn wants(&self, name: &'static str, wants: &str) -> SpecError {
        self.bad(name, self.value(name), wants.into())
    }
    /// A number from `least` to `most`.
    fn within(&self, name: &'static str, least: u32, most: u32) -> Result<u32, SpecError> {
        let found = self.value(name).parse().ok().filter(|n| (least..=most).contains(n));
        found.ok_or_else(|| match most {
            u32::MAX => self.wants(name, &alloc::format!("a number from {least} up")),
            _ => self.wants(name, &alloc::format!("a number from {least} to {most}")),
        })
    }
    /// One of a few words.
    fn choice<T: Copy>(&self, name: &'static str, all: &[(&'static str, T)]) -> Result<T, SpecError> {
        let found = all.iter().find(|(word, _)| *word == self.value(name)).map(|(_, t)| *t);
        found.ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
            self.wants(name, &alloc::format!("one of {}", words.join(", ")))
        })
    }
    /// The nodes to which a distribution deals pages.
    fn nodes(&self, context: &PolicyContext) -> Result<Vec<NodeId>, SpecError> {
        let all = self.choice("nodes", &[("threads", false), ("all", true)])?;
        Ok(if all { context.memory_nodes() } else { context.distribution_nodes() })
    }
    fn yes(&self, name: &'static str) -> Result<bool, SpecError> {
        self.choice(name, &[("yes", true), ("no", false)])
    }
    /// A time: a number with ns, us, ms or s.
    fn time(&self, name: &'static str) -> Result<Ns, SpecError> {
        let found = time(self.value(name));
        found.ok_or_else(|| self.wants(name, "a time from 1us to 1000s, as in 10ms"))
    }
    fn when(&self, name: &'static str) -> Result<When, SpecError> {
        match self.value(name) {
            "iteration" => Ok(When::Iteration),
            "region" => Ok(When::Region),
            "either" => Ok(When::Either),
            other => time(other).map(When::Every).ok_or_else(|| {
                self.wants(name, "iteration, region, either, or a time from 1us to 1000s, as in 10ms")
            }),
        }
    }
    fn initial(&self) -> Result<Initial, SpecError> {
        let all = [
            ("first-touch", Initial::FirstTouch),
            ("round-robin", Initial::RoundRobin),
            ("one-node", Initial::OneNode),
            ("farthest", Initial::Farthest),
        ];
        self.choice("from", &all)
    }
    fn threshold(&self) -> Result<Threshold, SpecError> {
        let forms = [
            ("share", Form::Share),
            ("literal", Form::Literal),
            ("literal-all", Form::LiteralAll),
            ("others", Form::Others),
            ("constant", Form::Constant),
        ];
        Ok(Threshold {
            form: self.choice("form", &forms)?,
            factor: self.within("factor", 1, 10_000)?,
            adaptive: self.yes("adaptive")?,
            least: self.within("least", 0, u32::MAX)?,
        })
    }
    fn out(&self, local: bool) -> Result<out_u::Options, SpecError> {
        let (initial, when) = (self.initial()?, self.when("at")?);
        Ok(out_u::Options { initial, when, threshold: self.threshold()?, counters: self.counters()?, local })
    }
    fn counters(&self) -> Result<Counters, SpecError> {
        self.choice("counters", &[("interval", Counters::Interval), ("move", Counters::Move)])
    }
    fn weights_of_neighbours(&self) -> Result<Weights, SpecError> {
        let distance = self.choice("distance", &[("rank", Distance::Rank), ("page", Distance::Page)])?;
        Ok(Weights { reach: self.within("reach", 0, 16)?, distance })
    }
    fn competitive(&self) -> Result<competitive::Options, SpecError> {
        Ok(competitive::Options {
            initial: self.initial()?,
            when: self.when("at")?,
            gain: self.within("gain", 0, 100)? as u8,
            horizon: self.within("horizon", 0, u32::MAX)?,
            bounces: self.within("bounces", 0, 255)? as u8,
            quiet: self.within("quiet", 0, u32::MAX)?,
        })
    }
    /// With its moves one at a time where `pace` says so.
    fn paced(&self, policy: Box<dyn Policy>) -> Built {
        match (self.value("pace"), time(self.value("pace"))) {
            ("0", _) => Ok(policy),
            (_, Some(pace)) => Ok(Box::new(Paced::new(policy, pace))),
            (_, None) => Err(self.wants("pace", "0, or a time from 1us to 1000s, as in 1ms")),
        }
    }
    fn weights(&self, name: &'static str, context: &PolicyContext) -> Result<Vec<u64>, SpecError> {
        let nodes = context.memory_nodes().len();
        let weight = |w: &str| w.parse().ok().filter(|w| *w < weighted::MAX_WEIGHT);
        let weights: Option<Vec<u64>> = self.value(name).split('/').map(weight).collect();
        let good = weights.filter(|w| w.len() == nodes && w.iter().any(|w| *w > 0));
        good.ok_or_else(|| {
            let wants = "numbers from 0 to 255 with / between, not all 0, one for each node with memory";
            self.wants(name, &alloc::format!("{nodes} {wants}"))
        })
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

/// Why a spec is invalid.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no policy of this name; [`POLICIES`] has the candidates.
    #[error(
        "there is no policy `{name}`{}",
        candidates(*nearest, "policies", POLICIES.iter().map(|p| p.name))
    )]
    UnknownPolicy {
        /// As typed.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// The policy has no such option.
    #[error(
        "policy `{}` has no option `{option}`{}",
        policy.name,
        candidates(*nearest, "options", policy.options.iter().map(|o| o.name))
    )]
    UnknownOption {
        /// The policy, with the options it has.
        policy: &'static PolicySpec,
        /// As typed.
        option: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// The option's value makes no sense.
    #[error("policy `{policy}`: `{option}={value}` should be {wants}")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The option.
        option: &'static str,
        /// As typed.
        value: String,
        /// Valid values.
        wants: String,
    },
    /// The policy puts pages on the homes of a plan, and there is no plan.
    #[error(
        "policy `{policy}` needs homes worked out beforehand, and there are none here: 'homenode compare' works \
         them out from the recording itself"
    )]
    NeedsPlan {
        /// The policy.
        policy: &'static str,
    },
    /// An option is given twice.
    #[error("policy `{policy}`: option `{option}` is given twice")]
    Twice {
        /// The policy.
        policy: &'static str,
        /// The option.
        option: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, machine, roomy, touches};
    use homenode_model::{AccessKind, Event, ObjectId, PageNo, PageRange};
    use proptest::prelude::*;

    /// With a plan, for the policy that needs one.
    fn planned(capacity: &[u64]) -> PolicyContext {
        machine(capacity).with_plan(Default::default())
    }

    fn error(spec: &str) -> String {
        match build(spec, &machine(&roomy())) {
            Ok(_) => panic!("{spec} was built"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn every_policy_builds_with_its_defaults() {
        for policy in POLICIES {
            assert!(build(policy.name, &planned(&roomy())).is_ok(), "{}", policy.name);
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
        assert_eq!(e, "policy `cyclic` has no option `page`; did you mean `pages`? (options: pages, nodes)");
        let e = error("first-touch:x=1");
        assert_eq!(e, "policy `first-touch` has no option `x` (it has no options)");
        let e = error("one-node:node=3");
        assert_eq!(e, "policy `one-node`: `node=3` should be a node with memory: 0, 1, 2");
        let e = error("cyclic:pages=0");
        assert_eq!(e, "policy `cyclic`: `pages=0` should be a number from 1 up");
        let e = error("plan");
        assert!(e.starts_with("policy `plan` needs homes worked out beforehand"), "{e}");
        let e = error("competitive:gain=101");
        assert_eq!(e, "policy `competitive`: `gain=101` should be a number from 0 to 100");
        let e = error("competitive:at=10");
        assert!(
            e.ends_with("should be iteration, region, either, or a time from 1us to 1000s, as in 10ms"),
            "{e}"
        );
        let e = error("next-touch:at=start");
        assert_eq!(e, "policy `next-touch`: `at=start` should be one of request, first-region, region");
        let e = error("weighted:weights=1/2");
        assert!(e.contains("should be 3 numbers from 0 to 255"), "{e}");
        let e = error("block-2d:across=2");
        assert!(e.ends_with("`across=2` should be a divisor of 3, the nodes that pages are dealt to"), "{e}");
        assert_eq!(error("cyclic:pages=1,pages=2"), "policy `cyclic`: option `pages` is given twice");
    }

    #[test]
    fn what_a_recording_lacks_is_said() {
        let context = machine(&roomy());
        let needs = |spec: &str| requirements(spec, &context).unwrap();
        let all = Offer { counts: true, iterations: 9, regions: 9 };
        for spec in ["competitive", "out-u", "daemon", "next-touch:at=region", "first-touch"] {
            assert_eq!(needs(spec).lacking(spec, all), None);
        }
        let says = |spec: &str, offer, what: &str| {
            let said = needs(spec).lacking(spec, offer).unwrap_or_default();
            assert!(said.contains(what), "{spec}: {said}");
        };
        says("daemon", Offer { counts: false, ..all }, "needs access counts");
        says("competitive", Offer { iterations: 0, ..all }, "no iteration mark");
        says("competitive", Offer { iterations: 1, ..all }, "only one iteration mark");
        says("out-w", Offer { regions: 0, ..all }, "acts at parallel regions");
        assert_eq!(needs("competitive:at=5ms").lacking("", Offer { iterations: 0, ..all }), None);
    }

    /// `Bench` asserts, for every decision, that the node has memory and room.
    fn drive(spec: &str, capacity: &[u64], touches: &[(PageNo, NodeId)]) -> (Vec<(PageNo, NodeId)>, u64) {
        let context = planned(capacity);
        let mut bench = Bench::new(&context, build(spec, &context).unwrap());
        let pages = PageRange { first: PageNo(0), count: 40 };
        bench.observe(&Event::Alloc { object: ObjectId(0), pages });
        for (i, (page, node)) in touches.iter().enumerate() {
            bench.fault(*page, *node);
            bench.touch(*page, *node);
            let count = (i as u32 * 7919) % 500;
            bench.accesses(*page, *node, AccessKind::Read, count);
            match i % 40 {
                5 => bench.observe(&Event::RegionBegin { region: 1 }),
                9 | 34 => bench.observe(&Event::Iteration { number: i as u32 }),
                17 => bench.observe(&Event::RegionEnd { region: 1 }),
                13 | 29 => bench.later(Ns(20_000_000)),
                20 => bench.request(pages),
                39 => bench.free(ObjectId(0), PageRange { first: PageNo(8), count: 16 }),
                _ => {}
            }
        }
        (bench.homes().iter().collect(), bench.moves)
    }

    proptest! {
        // Every policy, each in all of them.
        #![proptest_config(ProptestConfig::with_cases(48))]

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
