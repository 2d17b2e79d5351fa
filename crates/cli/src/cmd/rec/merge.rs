//! `homenode rec merge`.

use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::merge::{MergeError, merge, size};
use homenode_error::{Context, Error, FailureKind, Result};
use homenode_job::part::RankSummary;
use homenode_job::summary::JobSummary;
use homenode_task::Task as _;

use super::super::summary::{self, Form};
use crate::exit::Exit;
use crate::open::{Simulation, open};
use crate::output::say;
use crate::task::Terminal;

pub(super) fn run(recordings: &[PathBuf], to: &Path, json: bool, quiet: bool) -> Result<Exit> {
    if recordings.iter().all(|path| RankSummary::is_at(path)) {
        return parts(recordings, to, json, quiet);
    }
    if json {
        return Err(Error::usage("--json is for the summary of a job: a merged recording is a folder")
            .hint("'homenode show --json' prints what a recording has"));
    }
    let task = Terminal::watching(quiet)?;
    let mut sets = Vec::new();
    let mut whole = true;
    for path in recordings {
        let set = open(path, &Simulation::default(), &task)?;
        for missing in set.missing() {
            say(format_args!("{} is partial: {missing}", path.display()));
            whole = false;
        }
        sets.push((path.clone(), set));
    }
    let mut progress = task.progress("merging recordings", Some(size(&sets)));
    let merged = merge(&sets, to, &mut |more| {
        progress.advance(more);
        !task.stop_asked()
    });
    progress.finish();
    merged.map_err(|e| cannot(to, &e))?;
    if !quiet {
        say(format_args!("{} recordings are merged in {}", sets.len(), to.display()));
    }
    Ok(if whole { Exit::Done } else { Exit::Partial })
}

/// The summary of a job from the parts that its ranks left.
fn parts(paths: &[PathBuf], to: &Path, json: bool, quiet: bool) -> Result<Exit> {
    let all: Result<Vec<RankSummary>> = paths.iter().map(|path| RankSummary::read(path)).collect();
    let job = JobSummary::of(all?)?;
    let text = summary::job(&job, Form { json, verbose: false })?;
    fs::write(to, text).context(|| format!("cannot write the summary {}", to.display()))?;
    job.table().warnings().iter().for_each(say);
    if !quiet {
        say(format_args!("the parts of {} ranks are merged in {}", paths.len(), to.display()));
    }
    Ok(if job.is_whole() { Exit::Done } else { Exit::Partial })
}

fn cannot(to: &Path, error: &MergeError) -> Error {
    let cli = Error::failed(format!("cannot merge into {}", to.display())).tried(error);
    match error {
        MergeError::Unlike { .. } => cli
            .hint("ranks of one job can be merged; 'homenode diff' compares two runs")
            .kind(FailureKind::Usage),
        MergeError::Stopped => cli.hint("nothing is left of it").kind(FailureKind::Partial),
        _ => cli.hint("name a new place where you may write: -o REC"),
    }
}
