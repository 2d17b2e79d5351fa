//! What one rank leaves at its end.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use std::{fs, os::unix::process::ExitStatusExt as _};

use homenode_error::{Context, Error, Result};
use homenode_launch::rank::Rank;
use homenode_wire::facts::Facts;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::place::RankBinding;

/// Schema and version of a part.
pub const SCHEMA: &str = "homenode/rank/1";
/// Most bytes of a part that are read.
const LARGEST: u64 = 64 << 20;
/// Ticks of the kernel's CPU times in a second, on every architecture that homenode runs on.
const TICKS: u64 = 100;

/// A rank's part of the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankSummary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The job, as its launcher calls it.
    pub job: Option<String>,
    /// Who started the rank.
    pub launcher: String,
    /// The rank's number, from 0 on.
    pub rank: u32,
    /// Ranks of the job.
    pub of: u32,
    /// Where the rank may run.
    pub place: RankBinding,
    /// Program and arguments.
    pub command: String,
    /// From the program's start to its end.
    pub elapsed_ns: u64,
    /// CPU time of the program, homenode in it included.
    pub cpu_ns: u64,
    /// Exit status, if the program exited.
    pub status: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What the library in the program knew; `None`: it was not loaded.
    pub measured: Option<Measured>,
    /// The recording that the rank made.
    pub recording: Option<String>,
    /// The rank's own report for people.
    pub text: String,
    /// The rank's own report as JSON.
    pub report: Option<Value>,
}

/// What the library in a rank's program knew at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Time in the parallel regions that took longest; 0: there were none.
    pub regions_ns: u64,
    /// Threads that were seen.
    pub threads: u64,
    /// Sampled touches of another node's pages.
    pub remote: u64,
    /// Sampled touches.
    pub touches: u64,
    /// Pages that moved to another node.
    pub moved: u64,
    /// CPU time of homenode itself.
    pub own_ns: u64,
}

impl Measured {
    /// Of the processes of a rank; `None` of none.
    pub fn of(processes: &[Facts]) -> Option<Self> {
        let of_one = |f: &Facts| {
            let touched = f.touched();
            Self {
                regions_ns: f.regions.longest.iter().map(|r| r.time.0).sum(),
                threads: f.threads.threads,
                remote: touched.remote,
                touches: touched.all,
                moved: f.objects.moved,
                own_ns: f.own.0,
            }
        };
        processes.iter().map(of_one).reduce(|a, b| Self {
            regions_ns: a.regions_ns.max(b.regions_ns),
            threads: a.threads.max(b.threads),
            remote: a.remote + b.remote,
            touches: a.touches + b.touches,
            moved: a.moved + b.moved,
            own_ns: a.own_ns + b.own_ns,
        })
    }
}

impl RankSummary {
    /// The part of a rank whose program has ended so.
    pub fn new(
        rank: &Rank,
        place: RankBinding,
        command: String,
        status: ExitStatus,
        elapsed: Duration,
    ) -> Self {
        Self {
            schema: SCHEMA.into(),
            job: rank.job.clone(),
            launcher: rank.launcher.into(),
            rank: rank.number,
            of: rank.of.unwrap_or(0),
            place,
            command,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns: 0,
            status: status.code(),
            signal: status.signal(),
            measured: None,
            recording: None,
            text: String::new(),
            report: None,
        }
    }

    /// Whether the file at `path` looks like a part.
    pub fn is_at(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|m| m.is_file()) && path.extension().is_some_and(|e| e == "json")
    }

    /// Reads one.
    ///
    /// # Errors
    /// The file cannot be read, or is no part of a version that this homenode knows.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = || format!("cannot read a rank's part of a summary, {}", path.display());
        let mut bytes = Vec::new();
        File::open(path).and_then(|f| f.take(LARGEST).read_to_end(&mut bytes)).context(failed)?;
        let value: Value = serde_json::from_slice(&bytes).context(failed)?;
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
        if schema != SCHEMA {
            let schema: String = schema.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(
                Error::usage(failed()).tried(format!("its schema is '{schema}', a part's is '{SCHEMA}'"))
            );
        }
        serde_json::from_value(value).context(failed)
    }

    /// Share of the sampled touches that went to another node.
    pub fn remote(&self) -> Option<f64> {
        let m = self.measured.filter(|m| m.touches > 0)?;
        Some(m.remote as f64 / m.touches as f64)
    }
}

/// CPU time of the children of this process that have ended, in nanoseconds; 0 where `/proc` says
/// nothing.
pub fn cpu_of_children() -> u64 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|text| of_children(&text)).unwrap_or(0)
}

/// The fields `cutime` and `cstime` of `/proc/PID/stat`. The name of the program comes before them,
/// in parentheses, and may hold anything.
fn of_children(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut number = || fields.next()?.parse::<u64>().ok();
    Some((number()? + number()?) * (1_000_000_000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_read_behind_the_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 10 20 0 0 3 4 150 25 20 0 1 0 100 1 2";
        assert_eq!(of_children(stat), Some(1_750_000_000));
        assert_eq!(of_children("7 a"), None);
    }

    #[test]
    fn a_part_comes_back_as_it_was_and_others_are_refused() {
        let rank = Rank { launcher: "x", number: 3, of: Some(4), job: Some("7".into()) };
        let place = RankBinding {
            host: "a".into(),
            cpus: [1, 2].into(),
            nodes: [0].into(),
            host_cpus: 4,
            host_nodes: 1,
        };
        let status = ExitStatus::from_raw(9);
        let part = RankSummary::new(&rank, place, "./app".into(), status, Duration::from_millis(5));
        assert_eq!((part.signal, part.status, part.elapsed_ns), (Some(9), None, 5_000_000));
        let folder = std::env::temp_dir().join(format!("homenode-part-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("part.json");
        fs::write(&path, serde_json::to_vec(&part).unwrap()).unwrap();
        assert!(RankSummary::is_at(&path) && !RankSummary::is_at(&folder));
        assert_eq!(RankSummary::read(&path).unwrap(), part);
        fs::write(&path, r#"{"schema": "homenode/run/2"}"#).unwrap();
        let refused = RankSummary::read(&path).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(refused.contains("its schema is 'homenode/run/2'"), "{refused}");
    }

    #[test]
    fn several_processes_of_a_rank_are_one() {
        let facts = |moved, own| {
            let mut f = Facts { own: homenode_model::Ns(own), ..Facts::default() };
            f.objects.moved = moved;
            f
        };
        assert_eq!(Measured::of(&[]), None);
        let all = Measured::of(&[facts(3, 10), facts(4, 1)]).unwrap();
        assert_eq!((all.moved, all.own_ns), (7, 11));
    }
}
