//! `homenode record --on live`: the program as it is, here, with the library of `homenode run`
//! loaded, which watches and moves nothing.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_dataset::RecordingKind;
use homenode_error::{Error as CliError, Result};
use homenode_job::part::RankSummary;
use homenode_kernels::{BuildVariant, Kernel};
use homenode_launch::child::{self, Ran};
use homenode_launch::loadable::{Loadable, loadable, refuse_launcher};
use homenode_launch::program::find;
use homenode_launch::rank::own_path;
use homenode_launch::record::directory::RecordingTarget;
use homenode_launch::record::{self as recorder, shown};
use homenode_live::budget::RunBudget;
use homenode_live::policy::RunPolicy;
use homenode_live::prepare::{RunFolder, RunOptions};
use homenode_live::recording::LiveRecording;
use homenode_observed::StreamsSummary;
use homenode_runtime::nodes::Nodes;
use homenode_runtime::watch::Wanted;
use homenode_wire::live::SourceAnswers;

use super::super::summary::{Form, Summary as Report};
use super::program::program;
use crate::args::record::RecordArgs;
use crate::args::subject::CommandSubject;
use crate::exit::Exit;
use crate::task::Terminal;

/// What homenode may spend on a recording: nothing is moved that would have to pay.
const BUDGET: RunBudget = RunBudget { permille: 50, milliseconds: 2000 };

/// Why there is nothing to tell apart here, or nothing that could tell.
fn cannot(path: &Path, pretend: Option<u16>) -> Option<String> {
    if let Loadable::No(why) = loadable(path) {
        return Some(why);
    }
    let one = pretend.is_none() && Nodes::here().with_memory() < 2;
    one.then(|| "this machine has one node with memory: it is all that touches anything".into())
}

/// Whether a program can be recorded so; its reason if not.
pub(super) fn possible(path: &Path, pretend: Option<u16>) -> std::result::Result<(), String> {
    cannot(path, pretend).map_or(Ok(()), Err)
}

impl RecordArgs {
    pub(super) fn live(self, subject: CommandSubject, mut reported: Report) -> Result<Exit> {
        let (program, args, stem) = self.of_live(subject)?;
        refuse_launcher(&program, &args).map_err(|mut e| {
            e.hint = e.hint.map(|h| h.replace("homenode run", "homenode record"));
            e
        })?;
        let path = find(&program)?;
        if let Some(why) = cannot(&path, self.pretend_nodes) {
            return Err(CliError::failed(format!("{} cannot be recorded as it runs", program.display()))
                .tried(why)
                .hint("--pretend-nodes 2 deals the CPUs into nodes; --on emulator and --on lab take any program"));
        }
        let mut command = Command::new(&path);
        command.arg0(&program).args(&args);
        if let Some(threads) = self.run.threads {
            command.env("OMP_NUM_THREADS", threads.to_string());
        }
        let target = match &self.output {
            Some(path) => RecordingTarget::Path { path: own_path(path), force: self.force },
            None => RecordingTarget::Free(recorder::stem(&stem)),
        };
        let mut live = RunFolder::new()?;
        let recording = LiveRecording::make(&target, RecordingKind::Live, words(&program, &args))?;
        live.prepare(&self.asked(recording.streams().to_owned()), &path, &mut command)?;
        reported.starts();
        let ran = child::run(command, &program, &path, &Terminal::default());
        let Ok(ran) = ran else {
            recording.discard();
            return ran.map(|ran| Exit::of_program(ran.status));
        };
        let notes = std::mem::take(&mut live.before);
        let (path, summary) = recording.finish(&ran, |meta| meta.notes.extend(notes))?;
        let text = report(&path, &summary, &ran, self.quiet);
        reported.write(&text, Form::TEXT, |rank, place| RankSummary {
            recording: Some(path.display().to_string()),
            ..RankSummary::new(rank, place, words(&program, &args).join(" "), ran.status, ran.elapsed)
        });
        Ok(Exit::of_program(ran.status))
    }

    /// Program, arguments, and the name from which the recording's name is made.
    fn of_live(&self, subject: CommandSubject) -> Result<(OsString, Vec<OsString>, OsString)> {
        match subject {
            CommandSubject::Kernel { name, args } => {
                let kernel = Kernel::find(&name)?;
                let mut all = kernel.arguments(self.run.class.as_deref(), self.run.threads)?;
                all.extend(args);
                Ok((
                    kernel.build(BuildVariant::Native, &Terminal::default())?.into(),
                    all,
                    kernel.name.into(),
                ))
            }
            other => program(other, &self.run, recorder::AccessRecorder::Instrumented),
        }
    }

    /// A run that decides nothing.
    fn asked(&self, streams: PathBuf) -> RunOptions<'_> {
        RunOptions {
            policy: RunPolicy::watching(),
            planned: None,
            source: self.source.unwrap_or(Wanted::Auto),
            pretend_nodes: self.pretend_nodes,
            budget: Some(BUDGET),
            force: true,
            copy_unseen: false,
            move_while: Default::default(),
            bind: false,
            align: false,
            journal: None,
            schedule: None,
            schedule_from: None,
            record: true,
            stream: Some(streams),
        }
    }
}

fn words(program: &OsStr, args: &[OsString]) -> Vec<String> {
    let words = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
    words.map(|w| w.to_string_lossy().into_owned()).collect()
}

/// The report for a person. `quiet`: only problems.
fn report(path: &Path, summary: &StreamsSummary, ran: &Ran, quiet: bool) -> String {
    let mut out = String::new();
    let path = shown(path);
    let seconds = ran.elapsed.as_secs_f64();
    if summary.seen_rows == 0 {
        let _ = writeln!(out, "homenode: {path}: nothing was seen in {seconds:.1} s");
        let why = match summary.says {
            _ if summary.source.is_empty() => {
                "the library left nothing: the program ended at once, or took it out of its environment"
            }
            SourceAnswers::Nothing => "there is no source here that tells of touches",
            _ => "it ran too short, has one thread, or no object of 64 KiB",
        };
        let _ = writeln!(out, "  ! {why}");
    } else if !quiet {
        let kind = homenode_observed::basis(summary.says).word();
        let part = if summary.early.is_empty() { "" } else { " in part" };
        let _ = writeln!(out, "homenode: recorded{part} ({kind}): {path}, {seconds:.1} s");
        let (objects, seen, source) = (summary.objects, summary.sightings, &summary.source);
        let _ = writeln!(out, "  {objects} objects, seen {seen} times, told by {source}");
        let [state, watched] = summary.state;
        let _ = writeln!(
            out,
            "  homenode took {:.3} s of CPU time, and {} KiB of memory for {} MiB that were watched",
            summary.own_ns as f64 * 1e-9,
            state >> 10,
            watched >> 20
        );
    }
    if summary.lost > 0 && !quiet {
        let _ = writeln!(out, "  ! {} touches are missing: there were too many at a time", summary.lost);
    }
    for pid in &summary.early {
        let _ = writeln!(out, "  ! incomplete: process {pid} ended early: what it had seen by then is kept");
    }
    if !quiet {
        for note in &summary.notes {
            let _ = writeln!(out, "  - {note}");
        }
        if summary.seen_rows > 0 {
            let _ = writeln!(out, "  next: homenode show {path}");
        }
    }
    out
}
