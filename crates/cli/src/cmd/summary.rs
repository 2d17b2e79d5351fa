//! Where the report of a command that runs a program goes: to stderr, to a file, or, of one of
//! several ranks, into the one summary of the job.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use homenode_error::{Context, Result};
use homenode_job::meeting::Meeting;
use homenode_job::part::{RankSummary, cpu_of_children};
use homenode_job::place::RankBinding;
use homenode_job::summary::JobSummary;
use homenode_launch::rank::{here, own_path};
use homenode_launch::record::shown;
use homenode_text::table::{TableDetail, render};

use crate::output::say;

/// Reports of single ranks below the table, unless all are asked for.
const REPORTS: usize = 8;

/// See the module.
pub(super) enum Summary {
    /// To stderr.
    Stderr,
    /// To a file of this process alone.
    File(PathBuf),
    /// Into the summary of a job.
    Job(Box<OfJob>),
}

/// A rank's way into the summary of its job.
pub(super) struct OfJob {
    /// Where the parts meet.
    meeting: Meeting,
    /// Where this rank may run.
    place: RankBinding,
    /// CPU time of children that ended before the program started.
    cpu: u64,
}

/// The form of a summary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// JSON.
    pub json: bool,
    /// With each rank's own report.
    pub verbose: bool,
}

impl Form {
    /// For people.
    pub(super) const TEXT: Self = Self { json: false, verbose: false };
}

impl Summary {
    /// The summary that `--summary` asks for; what cannot be written to is refused.
    pub(super) fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Stderr) };
        if let Some(meeting) = Meeting::of(path, here()) {
            meeting.open()?;
            return Ok(Self::Job(Box::new(OfJob { meeting, place: RankBinding::here(), cpu: 0 })));
        }
        let path = own_path(path);
        // Better known now than after an hour.
        fs::File::create(&path).context(|| format!("cannot write the summary {}", path.display()))?;
        Ok(Self::File(path))
    }

    /// The program starts next.
    pub(super) fn starts(&mut self) {
        if let Self::Job(of_job) = self {
            of_job.cpu = cpu_of_children();
        }
    }

    /// Whether it is one of a job.
    pub(super) const fn is_of_job(&self) -> bool {
        matches!(self, Self::Job(_))
    }

    /// Writes the report `text`. `part` makes a rank's part; the text and the CPU time are added.
    pub(super) fn write(
        &self,
        text: &str,
        form: Form,
        part: impl FnOnce(&homenode_launch::rank::Rank, RankBinding) -> RankSummary,
    ) {
        match self {
            Self::Stderr => drop(std::io::stderr().write_all(text.as_bytes())),
            Self::File(path) => {
                if let Err(e) = fs::write(path, text) {
                    say(format_args!("cannot write the summary {}: {e}", path.display()));
                }
            }
            Self::Job(of_job) => {
                let OfJob { meeting, place, cpu } = &**of_job;
                let part = RankSummary {
                    cpu_ns: cpu_of_children().saturating_sub(*cpu),
                    text: if form.json { String::new() } else { text.to_owned() },
                    ..part(meeting.rank(), place.clone())
                };
                if let Err(e) = meet(meeting, &part, form) {
                    say(&e);
                    let parts = meeting.folder().join("*.json");
                    say(format_args!(
                        "'homenode rec merge {} -o {}' makes the summary of the parts that are there",
                        parts.display(),
                        shown(meeting.summary())
                    ));
                }
            }
        }
    }
}

/// Leaves a part, and makes the summary if it was the last one.
fn meet(meeting: &Meeting, part: &RankSummary, form: Form) -> Result<()> {
    let Some(parts) = meeting.leave(part)? else { return Ok(()) };
    meeting.finish(job(&JobSummary::of(parts)?, form)?.as_bytes())
}

/// The summary of a job.
pub(super) fn job(job: &JobSummary, form: Form) -> Result<String> {
    if form.json {
        return job.json();
    }
    let mut text = render(&job.table(), TableDetail { colour: false, width: None, legend: form.verbose });
    let texts = job.texts();
    let most = if form.verbose { usize::MAX } else { REPORTS };
    for (who, report) in texts.iter().take(most) {
        text += &format!("\n{who}\n{}\n", report.trim_end());
    }
    if texts.len() > most {
        text += &format!("\nand {} more reports: --json and -v have all\n", texts.len() - most);
    }
    Ok(text)
}
