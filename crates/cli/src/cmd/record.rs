//! `homenode record`.

mod lab;
mod live;
mod names;
mod program;

pub(super) use lab::modelled;

use std::fs;

use homenode_error::{Context, Result};
use homenode_job::part::RankSummary;
use homenode_launch::program::{find, refuse_unrecordable};
use homenode_launch::rank::own_path;
use homenode_launch::record::directory::RecordingTarget;
use homenode_launch::record::{self, AccessRecorder, OutputTarget, RecordSpec};

use super::summary::{Form, Summary};
use crate::args::record::{Filter, On, RecordArgs};
use crate::args::subject::CommandSubject;
use crate::exit::Exit;
use crate::output::say;
use crate::task::Terminal;
use program::program;

impl RecordArgs {
    pub(super) fn run(mut self) -> Result<Exit> {
        self.check()?;
        if self.on == Some(On::Lab) {
            self.summary = self.summary.as_deref().map(own_path);
            if let Some(summary) = &self.summary {
                // Better known now than after an hour.
                fs::File::create(summary)
                    .context(|| format!("cannot write the summary {}", summary.display()))?;
            }
            return self.on_lab();
        }
        let mut summary = Summary::open(self.summary.as_deref())?;
        let subject = self.subject()?;
        let on = self.on.map_or_else(|| self.best(&subject), Ok)?;
        if on == On::Live {
            return self.live(subject, summary);
        }
        let way = if on == On::Emulator { AccessRecorder::Emulated } else { AccessRecorder::Instrumented };
        let (program, args, stem) = program(subject, &self.run, way)?;
        let target = match self.output {
            Some(path) => RecordingTarget::Path { path: own_path(&path), force: self.force },
            None => RecordingTarget::Free(record::stem(&stem)),
        };
        let spec = RecordSpec {
            program,
            args,
            target,
            filter_lines: self.filter.lines(),
            threads: self.run.threads,
            way,
            streams: OutputTarget::Inherit,
        };
        summary.starts();
        let recorded = record::record(&spec, &Terminal::default())?;
        let report = record::report(&recorded, self.quiet);
        summary.write(&report, Form::TEXT, |rank, place| RankSummary {
            recording: Some(recorded.recording.path.display().to_string()),
            ..RankSummary::new(rank, place, spec.command(), recorded.status, recorded.elapsed)
        });
        Ok(Exit::of_program(recorded.status))
    }
}

impl RecordArgs {
    /// Where it runs unless that is said: each access is recorded of a program that tells of them,
    /// any other is sampled.
    fn best(&self, subject: &CommandSubject) -> Result<On> {
        let CommandSubject::Program { program, .. } = subject else {
            return Ok(if self.is_live() { On::Live } else { On::Host });
        };
        if self.is_live() {
            return Ok(On::Live);
        }
        let path = find(program)?;
        let Err(error) = refuse_unrecordable(&path) else { return Ok(On::Host) };
        if self.filter != Filter::Repeats {
            return Err(error);
        }
        match live::possible(&path, None) {
            Ok(()) => {
                if !self.quiet {
                    say(format_args!(
                        "{} was not built with homenode-cc: it is sampled while it runs; CC=homenode-cc or --on emulator records each access",
                        program.display()
                    ));
                }
                Ok(On::Live)
            }
            Err(why) => {
                let mut error = error.tried(format!("sample it while it runs: {why}"));
                error.hint = error.hint.map(|hint| {
                    format!("{hint}; or sample it on nodes that its CPUs are dealt into: --pretend-nodes 2; or --on emulator")
                });
                Err(error)
            }
        }
    }
}
