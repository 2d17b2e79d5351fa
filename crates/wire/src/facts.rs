//! What the library in the program leaves for the launcher when the program ends.
//!
//! The library looks no name up: addresses are those of the running program, with the
//! [`LoadedFile`]s to find names by.

use std::fmt;
use std::sync::Arc;

use homenode_model::{Bytes, Ns};
use serde::{Deserialize, Serialize};

use crate::bounded::{NODES, list, some_text, text, texts};
use crate::frame::{Conversation, Message};
use crate::schedule::Dealt;

/// Return addresses that are kept of an allocation.
pub const FRAMES: usize = 6;
/// Objects that are listed one by one, those that moved most first.
pub const OBJECTS: usize = 64;
/// Regions that are listed one by one, those that ran longest first.
pub const REGIONS: usize = 64;
/// Notes.
pub const NOTES: usize = 128;
/// Loaded files.
pub const MODULES: usize = 4096;

/// Where an object comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Origin {
    /// Allocated: return addresses, innermost first; zeros behind the last.
    Allocated([u64; FRAMES]),
    /// A static variable or common block: its address in the program's file.
    Static(u64),
    /// The same of a library: its file, and the address in that.
    Library(#[serde(with = "shared_text")] Arc<str>, u64),
}

impl Origin {
    /// Return addresses of the allocation, innermost first; none of a static object.
    pub fn frames(&self) -> &[u64] {
        let all: &[u64] = if let Self::Allocated(frames) = self { frames } else { &[] };
        let known = all.iter().position(|f| *f == 0).unwrap_or(all.len());
        all.get(..known).unwrap_or_default()
    }

    /// Whether the object is static.
    pub const fn is_static(&self) -> bool {
        matches!(self, Self::Static(_) | Self::Library(..))
    }
}

/// A text that several objects share.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserializer, Serializer};

    use crate::bounded::text;

    pub fn serialize<S: Serializer>(shared: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        text::serialize(shared, to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        text::deserialize(from).map(Arc::from)
    }
}

/// A loaded file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedFile {
    /// What is added to the addresses in the file.
    pub base: u64,
    /// Its lowest address, relative to `base`.
    pub low: u64,
    /// One past its highest, relative to `base`.
    pub high: u64,
    /// Its path.
    #[serde(with = "text")]
    pub path: String,
}

/// When pages are armed without the program asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arming {
    /// Only when the program asks (`hn_next_touch`).
    Asked,
    /// At the first parallel region, and once more when the iteration is known.
    #[default]
    First,
    /// At every parallel region that the guard lets pass (Löf).
    Region,
    /// Never: the policy is told who touches what, and homenode moves what the policy decides.
    Watch,
}

/// How much CPU time may be homenode's, of the CPU time of the whole process. As much of the time
/// that passes may be homenode's while the team waits: with a hundred threads, a hundredth of the
/// CPU time is all of the time of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Thousandths of the process's CPU time, and of the time that passes.
    pub permille: u64,
    /// Time that is allowed in any case.
    pub fixed: Ns,
}

impl Budget {
    /// 1 % and two seconds.
    pub const DEFAULT: Self = Self { permille: 10, fixed: Ns(2_000_000_000) };

    /// What may have been spent, of so much CPU time or of so much time that has passed.
    pub fn allows(&self, time: Ns) -> Ns {
        Ns(time.0 / 1000).times(self.permille) + self.fixed
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The last part of the run, in which nothing armed was touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// homenode's own CPU time in it.
    pub own: Ns,
    /// All CPU time in it.
    pub cpu: Ns,
    /// Regions that ended in it.
    pub regions: u64,
}

/// What the mover did (exact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoverCounters {
    /// Calls that armed memory.
    pub arms: u64,
    /// Pages armed.
    pub armed_pages: u64,
    /// Faults on armed pages.
    pub faults: u64,
    /// Pages copied by their toucher.
    pub copies: u64,
    /// Pages moved by the kernel.
    pub kernel_moves: u64,
    /// Touches that came too fast to be told.
    pub lost_touches: u64,
    /// Time in calls and handlers, over all threads.
    pub own: Ns,
}

/// A parallel region of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Address of the outlined function; 0: not known.
    pub function: u64,
    /// Where the program starts the region.
    pub caller: u64,
    /// How often it ran.
    pub runs: u64,
    /// Time of all runs together.
    pub time: Ns,
    /// Armings at its start.
    pub armings: u64,
    /// Pages that moved in it.
    pub moved: u64,
    /// Of these, pages that moved back.
    pub ping_pongs: u64,
}

/// Regions (exact).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regions {
    /// Regions of the source that ran.
    pub in_source: u64,
    /// How often regions ran.
    pub runs: u64,
    /// Barriers and ends of loops and sections in them, as the team's first thread left them.
    pub barriers: u64,
    /// The regions that took longest.
    #[serde(serialize_with = "list::write::<REGIONS, _, _>")]
    #[serde(deserialize_with = "list::read::<REGIONS, _, _>")]
    pub longest: Vec<Region>,
}

/// Times of rounds of the iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTimings {
    /// Rounds that were timed.
    pub rounds: u64,
    /// First quartile.
    pub low: Ns,
    /// Median.
    pub median: Ns,
    /// Third quartile.
    pub high: Ns,
    /// The median's 95 % interval by order statistics; `None` with fewer than six rounds.
    pub interval: Option<(Ns, Ns)>,
}

/// Rounds of the iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundFacts {
    /// How many ended.
    pub count: u64,
    /// Times before anything was armed.
    pub before: RoundTimings,
    /// Times afterwards, of rounds in which nothing moved.
    pub after: RoundTimings,
}

/// Samples of touches (presence).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// Samples from another node than the page's.
    pub remote: u64,
    /// All samples.
    pub all: u64,
}

/// What the guard concludes from moved and held-back blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Not enough samples yet.
    #[default]
    Open,
    /// Pages that moved are touched remotely less often.
    Pays,
    /// Not less often, as far as few samples can tell, but more often from where they are now than
    /// from where they were.
    AtHome,
    /// As often, but pages are spread more evenly over the nodes than before.
    Evener,
    /// As often, and nothing else is better: what moved goes back.
    NoGain,
    /// More often: what moved goes back.
    Harms,
}

/// What holding blocks back showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The guard holds nothing back and does not judge.
    pub off: bool,
    /// Its verdict.
    pub verdict: Verdict,
    /// Samples of moved pages.
    pub moved: Samples,
    /// Samples of pages held back.
    pub held: Samples,
    /// Bytes of objects that another node used each time that homenode looked.
    pub contested: u64,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.verdict {
            _ if self.off => "off",
            Verdict::Open => "open",
            Verdict::Pays => "pays",
            Verdict::AtHome => "at-home",
            Verdict::Evener => "evener",
            Verdict::NoGain => "no-gain",
            Verdict::Harms => "harms",
        })
    }
}

/// An object that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFacts {
    /// Where it comes from.
    pub origin: Origin,
    /// Its size.
    pub bytes: Bytes,
    /// Pages moved.
    pub moved: u64,
    /// Pages moved back to where they had come from.
    pub ping_pongs: u64,
    /// Pages by home when it was first armed; empty: not known.
    #[serde(serialize_with = "list::write::<NODES, _, _>", deserialize_with = "list::read::<NODES, _, _>")]
    pub homes: Vec<u64>,
    /// Pages by the node that touched them after an arming (presence); empty: not known.
    #[serde(serialize_with = "list::write::<NODES, _, _>", deserialize_with = "list::read::<NODES, _, _>")]
    pub touched: Vec<u64>,
    /// The Python code that allocated it: `file:line (function)`, innermost first, with ` < `
    /// between.
    #[serde(with = "some_text")]
    pub python: Option<String>,
    /// How many allocations the counts are of: those of one origin that are gone are joined.
    pub lives: u64,
    /// Whether another node used its pages each time that homenode looked: no placement lasts.
    pub contested: bool,
}

impl ObjectFacts {
    /// An object of which no more is known.
    pub const fn bare(origin: Origin, bytes: Bytes) -> Self {
        Self {
            origin,
            bytes,
            moved: 0,
            ping_pongs: 0,
            homes: Vec::new(),
            touched: Vec::new(),
            python: None,
            lives: 1,
            contested: false,
        }
    }
}

/// On which nodes the program's threads were seen (sampled).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadNodes {
    /// Threads that were seen.
    pub threads: u64,
    /// Of these, threads that may run on CPUs of several nodes.
    pub unbound: u64,
    /// Of these, threads that one look in twenty, or more, found on another node than most looks.
    pub changed_nodes: u64,
    /// Nodes on which most looks found one of them.
    pub nodes: u64,
    /// Looks, over all threads.
    pub looks: u64,
}

/// Objects (exact).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectTotals {
    /// Objects that lived at the end.
    pub living: u64,
    /// Objects that were armed, looked at or moved.
    pub took_part: u64,
    /// Pages of these.
    pub pages: u64,
    /// Pages moved to another node.
    pub moved: u64,
    /// Of these, pages that moved back.
    pub ping_pongs: u64,
    /// The objects that moved most.
    #[serde(serialize_with = "list::write::<OBJECTS, _, _>")]
    #[serde(deserialize_with = "list::read::<OBJECTS, _, _>")]
    pub most: Vec<ObjectFacts>,
}

/// What told who touches what, and what it told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchFacts {
    /// What told, and what its answers are, in words.
    #[serde(with = "text")]
    pub source: String,
    /// Touches told.
    pub told: u64,
    /// Pages asked for.
    pub asked: u64,
    /// Touches lost.
    pub lost: u64,
    /// What one sample costs the program; zero: not known.
    pub cost: Ns,
    /// homenode's own memory for this.
    pub state: Bytes,
    /// The program's memory that it is for.
    pub program: Bytes,
    /// Blocks that the driver reported to the policy as proportions.
    pub blocks: u64,
    /// Touches told before anything moved.
    pub before: Samples,
}

/// How far a plan was carried out (exact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProgress {
    /// Objects of the plan.
    pub planned: u64,
    /// Objects of the program that were recognised.
    pub met: u64,
    /// Recognised places whose allocation has another size than the plan has.
    pub other_size: u64,
    /// Pages looked at, of those with a planned home.
    pub pages: u64,
    /// Of these, pages that are at their planned home.
    pub at_home: u64,
    /// Pages that have a planned home and were never touched.
    pub untouched: u64,
    /// Stretches of memory with a policy.
    pub policies: u64,
}

/// What became of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFacts {
    /// How far it was carried out.
    pub progress: PlanProgress,
    /// The program's first team is not the plan's, and the plan was scaled: what that means.
    #[serde(with = "some_text")]
    pub scaled: Option<String>,
}

/// Moves of pages with a known target, by what the team did meanwhile (measured).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownMoves {
    /// Pages that moved while the team slept.
    pub asleep: u64,
    /// How long the team waited for them.
    pub waited: Ns,
    /// Pages that moved while the team ran.
    pub beside: u64,
    /// CPU time of homenode's thread for them.
    pub spare: Ns,
    /// Regions with moves that were compared with the same regions without.
    pub compared: u64,
    /// Pages that moved beside the compared regions.
    pub compared_pages: u64,
    /// By how much the compared regions took longer.
    pub longer: Ns,
}

/// What one process leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The process.
    pub pid: u32,
    /// From the start of the library to the program's end.
    pub elapsed: Ns,
    /// CPU time of homenode's own, over all threads.
    pub own: Ns,
    /// Of this, the time that the program's team or a caller waited for.
    pub waited: Ns,
    /// CPU time of the process, over all threads.
    pub cpu: Ns,
    /// The last part of the run, in which nothing armed was touched.
    pub settled: Option<Settled>,
    /// The budget.
    pub budget: Budget,
    /// Nothing had shown a gain at the end: of the budget 3 % of the CPU time or 50 ms were
    /// allowed.
    pub on_trial: bool,
    /// The policy's spec.
    #[serde(with = "text")]
    pub policy: String,
    /// When memory was armed unasked.
    pub arming: Arming,
    /// Number of nodes; 0: an error of homenode's own left nothing but [`Facts::stopped`].
    pub nodes: u64,
    /// The nodes are pretended.
    pub pretended: bool,
    /// What the mover did.
    pub counters: MoverCounters,
    /// Moves of pages with a known target.
    pub known_moves: KnownMoves,
    /// Regions.
    pub regions: Regions,
    /// Rounds of the iteration.
    pub rounds: RoundFacts,
    /// What holding back showed.
    pub guard: Guard,
    /// On which nodes the program's threads were seen.
    pub threads: ThreadNodes,
    /// Objects.
    pub objects: ObjectTotals,
    /// What told who touches what; `None`: nothing was watched.
    pub watch: Option<WatchFacts>,
    /// What became of a plan.
    pub plan: Option<PlanFacts>,
    /// What became of loops whose iterations homenode hands out; `None`: the run did not ask.
    pub schedule: Option<Dealt>,
    /// Why nothing was armed any more.
    #[serde(with = "some_text")]
    pub stopped: Option<String>,
    /// What could not be done.
    #[serde(serialize_with = "texts::write::<NOTES, _>", deserialize_with = "texts::read::<NOTES, _>")]
    pub notes: Vec<String>,
    /// Loaded files, the program first.
    #[serde(serialize_with = "list::write::<MODULES, _, _>")]
    #[serde(deserialize_with = "list::read::<MODULES, _, _>")]
    pub modules: Vec<LoadedFile>,
}

impl Message for Facts {
    const KIND: Conversation = Conversation::Facts;
    const VERSION: u16 = 6;
    const MOST: usize = 16 << 20;
}

impl Facts {
    /// The name of the file that process `pid` leaves them in.
    pub fn file_name(pid: u32) -> String {
        format!("report.{pid}")
    }

    /// What is left to say after an error of homenode's own.
    pub fn of_an_error(pid: u32, why: &str) -> Self {
        Self { pid, stopped: Some(crate::bounded::line(why)), ..Self::default() }
    }

    /// Pages of which it is known who touched them after an arming (presence), and those of them
    /// that another node had. Where touches are told and move nothing: the touches before anything
    /// moved.
    pub fn touched(&self) -> Samples {
        if let Some(watch) = &self.watch {
            return watch.before;
        }
        let all =
            self.objects.most.iter().flat_map(|o| &o.touched).fold(0, |sum: u64, n| sum.saturating_add(*n));
        Samples { remote: self.objects.moved.min(all), all }
    }
}
