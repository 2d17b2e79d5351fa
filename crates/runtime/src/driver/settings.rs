//! What the launcher tells the library in the program, as variables of the environment.

use std::path::PathBuf;

use homenode_model::Ns;

use super::machine::Machine;
use crate::watch::Wanted;

/// The folder for reports; without it homenode does nothing.
pub const RUN_DIR: &str = "HOMENODE_RUN_DIR";
/// A policy's spec.
pub const POLICY: &str = "HOMENODE_POLICY";
/// `asked`, `first`, `region` or `watch`.
pub const ARMING: &str = "HOMENODE_ARMING";
/// The machine, see [`Machine::parse`].
pub const MACHINE: &str = "HOMENODE_MACHINE";
/// Nodes to pretend; absent: none.
pub const PRETEND: &str = "HOMENODE_PRETEND_NODES";
/// Budget: permille of run time, comma, milliseconds.
pub const BUDGET: &str = "HOMENODE_BUDGET";
/// `1`: hold nothing back and do not judge, as tests want it.
pub const FORCE: &str = "HOMENODE_FORCE";
/// The launcher's table of a plan.
pub const PLAN: &str = "HOMENODE_PLAN";

/// What tells who touches what, see [`crate::watch::Wanted`].
pub const SOURCE: &str = "HOMENODE_SOURCE";
/// `1`: blocks are copied without userfaultfd, see [`crate::moving::Options::copy_unseen`].
pub const COPY_UNSEEN: &str = "HOMENODE_COPY_UNSEEN";
/// A folder for the policy's journal, a file for each process.
pub const JOURNAL: &str = "HOMENODE_JOURNAL";
/// `1`: who was seen where is kept for a recording, and nothing moves.
pub const RECORD: &str = "HOMENODE_RECORD";

/// All of them.
pub const ALL: [&str; 12] =
    [RUN_DIR, POLICY, ARMING, MACHINE, PRETEND, BUDGET, FORCE, PLAN, SOURCE, COPY_UNSEEN, JOURNAL, RECORD];

/// When pages are armed without the program asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arming {
    /// Only when the program asks (`hn_next_touch`).
    Asked,
    /// At the first parallel region, and once more when the iteration is known.
    First,
    /// At every parallel region that the guard lets pass (Löf).
    Region,
    /// Never: the policy is told who touches what, and what it moves is moved for it.
    Watch,
}

impl Arming {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "asked" => Ok(Self::Asked),
            "first" => Ok(Self::First),
            "region" => Ok(Self::Region),
            "watch" => Ok(Self::Watch),
            _ => Err(format!("{ARMING}={text}: it is asked, first, region or watch")),
        }
    }
}

/// How much CPU time may be homenode's, of the CPU time of the whole process: what a busy machine gives to others counts on neither
/// side. As much, of the time that passes, may be homenode's while the team waits: with a hundred threads a hundredth of the CPU time is all of
/// the time of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Thousandths of the process's CPU time, and of the time that passes.
    pub permille: u64,
    /// And so much in any case.
    pub fixed: Ns,
}

impl Budget {
    /// 1 % and two seconds.
    pub const DEFAULT: Self = Self { permille: 10, fixed: Ns(2_000_000_000) };

    fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse::<u64>().ok()?)));
        let (permille, ms) =
            numbers.ok_or_else(|| format!("{BUDGET}={text}: it is PERMILLE,MILLISECONDS"))?;
        Ok(Self { permille, fixed: Ns(ms.saturating_mul(1_000_000)) })
    }

    /// What may have been spent of so much CPU time, or of so much that has passed.
    pub fn allows(&self, time: Ns) -> Ns {
        Ns(time.0 / 1000).times(self.permille) + self.fixed
    }
}

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder for the report.
    pub folder: PathBuf,
    /// The policy.
    pub policy: String,
    /// When to arm unasked.
    pub arming: Arming,
    /// The nodes, real or pretended.
    pub machine: Machine,
    /// The nodes are pretended.
    pub pretend: bool,
    /// The budget.
    pub budget: Budget,
    /// Do not judge.
    pub force: bool,
    /// The launcher's table of a plan.
    pub plan: Option<PathBuf>,
    /// What tells who touches what.
    pub source: Wanted,
    /// Copy without userfaultfd, too.
    pub copy_unseen: bool,
    /// Folder for the policy's journal.
    pub journal: Option<PathBuf>,
    /// Keep who was seen where.
    pub record: bool,
}

impl Settings {
    /// What the environment says; `None`: homenode is not wanted.
    ///
    /// # Errors
    /// A variable makes no sense.
    pub fn from(get: impl Fn(&str) -> Option<String>) -> Option<Result<Self, String>> {
        let folder = get(RUN_DIR).filter(|f| !f.is_empty())?;
        Some(Self::rest(PathBuf::from(folder), get))
    }

    fn rest(folder: PathBuf, get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let machine = get(MACHINE).ok_or_else(|| format!("{MACHINE} is missing"))?;
        let machine = Machine::parse(&machine).ok_or_else(|| format!("{MACHINE}={machine} is no machine"))?;
        Ok(Self {
            folder,
            policy: get(POLICY).unwrap_or_else(|| "next-touch".into()),
            arming: get(ARMING).map_or(Ok(Arming::First), |t| Arming::parse(&t))?,
            machine,
            pretend: get(PRETEND).is_some(),
            budget: get(BUDGET).map_or(Ok(Budget::DEFAULT), |t| Budget::parse(&t))?,
            force: get(FORCE).is_some_and(|v| v == "1"),
            plan: get(PLAN).map(PathBuf::from),
            source: get(SOURCE).map_or(Ok(Wanted::Auto), |t| t.parse())?,
            copy_unseen: get(COPY_UNSEEN).is_some_and(|v| v == "1"),
            journal: get(JOURNAL).map(PathBuf::from),
            record: get(RECORD).is_some_and(|v| v == "1"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Option<Result<Settings, String>> {
        Settings::from(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn nothing_is_done_unasked() {
        assert!(read(&[]).is_none() && read(&[(RUN_DIR, "")]).is_none());
    }

    #[test]
    fn what_is_set_is_read() {
        let set =
            [(RUN_DIR, "/d"), (MACHINE, "0/100/10.20;1/100/20.10"), (ARMING, "region"), (BUDGET, "5,100")];
        let s = read(&set).unwrap().unwrap();
        assert_eq!((s.arming, s.machine.nodes()), (Arming::Region, 2));
        assert_eq!(s.budget.allows(Ns(1_000_000_000)), Ns(105_000_000));
    }

    #[test]
    fn nonsense_is_told() {
        for (name, value) in [(ARMING, "x"), (BUDGET, "1"), (MACHINE, "")] {
            let set = [(name, value), (RUN_DIR, "/d"), (MACHINE, "0/1/10")];
            assert!(read(&set).unwrap().unwrap_err().contains(name));
        }
    }
}
