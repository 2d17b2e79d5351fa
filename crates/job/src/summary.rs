//! The summary of a job: one table with a row for each rank, what follows from it, and the ranks'
//! own reports.

use std::collections::BTreeMap;

use homenode_error::{Error, Result};
use homenode_table::{Cell, Column, Table};
use serde_json::{Map, Value, json};

use crate::part::RankSummary;
use crate::place::{named, ranges};
use crate::sharing;
use crate::slow::{self, Yardstick};

/// The table's name and version in its schema.
const NAME: (&str, u32) = ("job", 1);
/// Why there is no value of a rank that the library in the program would have measured.
const NOT_LOADED: &str = "homenode's library was not loaded there";

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSummary {
    /// In the order of the ranks.
    parts: Vec<RankSummary>,
    /// Ranks that left no part.
    missing: Vec<u32>,
}

impl JobSummary {
    /// The job of these parts.
    ///
    /// # Errors
    /// There is none, they are of several jobs, or one rank has two.
    pub fn of(mut parts: Vec<RankSummary>) -> Result<Self> {
        parts.sort_by_key(|p| p.rank);
        let Some(first) = parts.first() else {
            return Err(Error::usage("there is no rank's part to make a summary of"));
        };
        let failed = || Error::usage("these parts do not make one summary");
        if let Some(other) = parts.iter().find(|p| p.job != first.job || p.of != first.of) {
            let job = |p: &RankSummary| {
                let name = p.job.as_deref().unwrap_or("without a name");
                format!("rank {} of {} of the job {name}", p.rank, p.of)
            };
            return Err(failed().tried(format!("one is {}, another is {}", job(first), job(other))));
        }
        if let Some(two) = parts.windows(2).find(|two| two[0].rank == two[1].rank) {
            return Err(failed().tried(format!("two of them are rank {}", two[0].rank)));
        }
        let mut next = parts.iter().map(|p| p.rank).peekable();
        let missing = (0..first.of).filter(|rank| next.next_if_eq(rank).is_none()).collect();
        Ok(Self { parts, missing })
    }

    /// Whether each rank left its part.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    /// The rows, and what follows from them.
    pub fn table(&self) -> Table {
        let mut table = Table::new(NAME.0, NAME.1, columns());
        self.head(&mut table);
        slow::sentences(&self.parts).into_iter().for_each(|s| table.answer(s));
        sharing::sentences(&self.parts).into_iter().for_each(|s| table.answer(s));
        if table.answers().is_empty() {
            table.answer("no rank is slow, and no two ranks share CPUs or the memory of a node");
        }
        self.parts.iter().for_each(|part| table.row(row(part)));
        if Yardstick::of(&self.parts) == Yardstick::Cpu {
            table.note(
                "slow ranks are found by CPU time: not every rank has parallel regions that homenode saw. \
                 An MPI library that waits by spinning makes CPU times equal.",
            );
        }
        table.explain(
            "elapsed: from the program's start to its end; ranks that wait for each other end together",
        );
        table.explain("cpu: CPU time of the program, waiting by spinning included");
        table.explain("in regions: time in the parallel regions that took longest");
        table.explain("remote: share of the sampled touches that went to another node's memory");
        table
    }

    /// Facts and warnings.
    fn head(&self, table: &mut Table) {
        let first = &self.parts[0];
        table.fact("command", Cell::text(&first.command));
        table.fact("ranks", Cell::int(first.of));
        let hosts: BTreeMap<&str, ()> = self.parts.iter().map(|p| (p.place.host.as_str(), ())).collect();
        table.fact("hosts", Cell::int(u32::try_from(hosts.len()).unwrap_or(u32::MAX)));
        table.fact("launcher", Cell::text(&first.launcher));
        if let Some(job) = &first.job {
            table.fact("job", Cell::text(job));
        }
        if !self.missing.is_empty() {
            let who = named("rank", self.missing.iter().copied());
            table.warn(format!("{who} left no part: the summary is of {} ranks", self.parts.len()));
        }
        let mut ends: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for part in self.parts.iter().filter(|p| p.status != Some(0)) {
            ends.entry(end(part)).or_default().push(part.rank);
        }
        for (end, ranks) in ends {
            table.warn(format!("{}: {end}", named("rank", ranks)));
        }
        if self.parts.iter().any(|p| p.command != first.command) {
            table.note("ranks ran different commands: the first rank's is shown, --json has all");
        }
    }

    /// The ranks' own reports, those with the same text together: who, and the text.
    pub fn texts(&self) -> Vec<(String, String)> {
        let mut texts: Vec<(Vec<u32>, &str)> = Vec::new();
        for part in self.parts.iter().filter(|p| !p.text.is_empty()) {
            match texts.iter_mut().find(|(_, text)| *text == part.text) {
                Some((ranks, _)) => ranks.push(part.rank),
                None => texts.push((vec![part.rank], &part.text)),
            }
        }
        texts.into_iter().map(|(ranks, text)| (named("rank", ranks), text.to_owned())).collect()
    }

    /// The table as JSON, with the ranks' own reports.
    ///
    /// # Errors
    /// None that a table has.
    pub fn json(&self) -> Result<String> {
        let failed = |e: serde_json::Error| Error::failed("cannot make JSON of the summary").tried(e);
        let mut all: Map<String, Value> = serde_json::from_str(&self.table().to_json()).map_err(failed)?;
        all.insert("missing_ranks".into(), json!(self.missing));
        let of_one =
            |p: &RankSummary| json!({ "rank": p.rank, "recording": p.recording, "report": p.report });
        all.insert("reports".into(), self.parts.iter().map(of_one).collect());
        Ok(serde_json::to_string_pretty(&all).map_err(failed)? + "\n")
    }
}

/// How a program ended that did not end well.
fn end(part: &RankSummary) -> String {
    match (part.signal, part.status) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(status)) => format!("ended with status {status}"),
        (None, None) => "its end is not known".into(),
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::number("rank", "Rank"),
        Column::text("host", "Host"),
        Column::unit("elapsed", "Elapsed", "s"),
        Column::unit("cpu", "CPU", "s"),
        Column::unit("in_regions", "In regions", "s"),
        Column::number("threads", "Threads"),
        Column::text("cpus", "CPUs"),
        Column::text("nodes", "Nodes"),
        Column::unit("remote", "Remote", "%"),
        Column::number("moved", "Moved pages"),
        Column::text("end", "End"),
    ]
}

fn row(part: &RankSummary) -> Vec<Cell> {
    let seconds = |ns: u64| Cell::float(ns as f64 * 1e-9, 2);
    let measured = |of: &dyn Fn(&crate::part::Measured) -> Option<Cell>, why: &str| match &part.measured {
        None => Cell::missing(NOT_LOADED),
        Some(m) => of(m).unwrap_or_else(|| Cell::missing(why)),
    };
    vec![
        Cell::int(part.rank),
        Cell::text(&part.place.host),
        seconds(part.elapsed_ns),
        seconds(part.cpu_ns),
        measured(&|m| (m.regions_ns > 0).then(|| seconds(m.regions_ns)), "there were no parallel regions"),
        measured(&|m| (m.threads > 0).then(|| Cell::int(m.threads)), "nobody looked at threads"),
        Cell::text(ranges(part.place.cpus.iter().copied())),
        Cell::text(ranges(part.place.nodes.iter().copied())),
        part.remote().map_or_else(
            || Cell::missing(if part.measured.is_some() { "no touch was sampled" } else { NOT_LOADED }),
            |share| Cell::percent(share, 1),
        ),
        measured(&|m| Some(Cell::int(m.moved)), ""),
        Cell::text(if part.status == Some(0) { "good".into() } else { end(part) }),
    ]
}

/// Parts of a job of `ranks` ranks, each on a CPU and node of its own.
#[cfg(test)]
pub(crate) fn example(ranks: usize) -> Vec<RankSummary> {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;
    use std::time::Duration;

    use homenode_launch::rank::Rank;

    use crate::place::RankBinding;

    let of = u32::try_from(ranks).unwrap();
    let one = |number: u32| {
        let rank = Rank { launcher: "Open MPI", number, of: Some(of), job: Some("7".into()) };
        let place = RankBinding {
            host: "a".into(),
            cpus: [number].into(),
            nodes: [u16::try_from(number).unwrap()].into(),
            host_cpus: ranks,
            host_nodes: ranks,
        };
        RankSummary::new(&rank, place, "./app".into(), ExitStatus::from_raw(0), Duration::from_secs(2))
    };
    (0..of).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_a_column_and_reports_are_kept() {
        let mut parts = example(3);
        parts[1].text = "moved".into();
        parts[2].text = "moved".into();
        parts[2].report = Some(json!({ "schema": "homenode/run/2" }));
        let job = JobSummary::of(parts.into_iter().rev().collect()).unwrap();
        assert!(job.is_whole());
        let json: Value = serde_json::from_str(&job.json().unwrap()).unwrap();
        assert_eq!(json["schema"], "homenode/job/1");
        let ranks: Vec<_> =
            json["rows"].as_array().unwrap().iter().map(|r| r["rank"].as_u64().unwrap()).collect();
        assert_eq!(ranks, [0, 1, 2]);
        assert_eq!(json["reports"][2]["report"]["schema"], "homenode/run/2");
        assert_eq!(job.texts(), [("ranks 1, 2".to_owned(), "moved".to_owned())]);
        let answers = job.table().answers().to_vec();
        assert_eq!(answers, ["no rank is slow, and no two ranks share CPUs or the memory of a node"]);
    }

    #[test]
    fn ranks_that_are_missing_or_ended_badly_are_warned_of() {
        let mut parts = example(5);
        parts[1].status = None;
        parts[1].signal = Some(9);
        parts[2].status = Some(3);
        parts.retain(|p| p.rank != 3 && p.rank != 0);
        let job = JobSummary::of(parts).unwrap();
        assert!(!job.is_whole());
        assert_eq!(
            job.table().warnings(),
            [
                "ranks 0, 3 left no part: the summary is of 3 ranks",
                "rank 2: ended with status 3",
                "rank 1: killed by signal 9"
            ]
        );
    }

    #[test]
    fn parts_of_two_jobs_and_a_rank_twice_are_refused() {
        let mut two = example(2);
        two[1].job = Some("8".into());
        assert!(JobSummary::of(two).unwrap_err().to_string().contains("rank 1 of 2 of the job 8"));
        let mut twice = example(2);
        twice[1].rank = 0;
        assert!(JobSummary::of(twice).unwrap_err().to_string().contains("two of them are rank 0"));
        assert!(JobSummary::of(Vec::new()).is_err());
    }
}
