//! `homenode run`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use homenode_dataset::RecordingKind;
use homenode_error::{Error, Result};
use homenode_job::part::{Measured, RankSummary};
use homenode_kernels::{BuildVariant, Kernel};
use homenode_launch::loadable::refuse_launcher;
use homenode_launch::program::find;
use homenode_launch::rank::own_path;
use homenode_launch::record::directory::RecordingTarget;
use homenode_launch::record::shown;
use homenode_launch::{child, schedule};
use homenode_live::planned::FittingPlan;
use homenode_live::policies;
use homenode_live::policy::RunPolicy;
use homenode_live::prepare::{RunFolder, RunOptions};
use homenode_live::recording::LiveRecording;
use homenode_runtime::moving;
use homenode_task::Task as _;
use homenode_verdict::report::RunReport;
use homenode_view::browser;
use homenode_view::live::{Follow, Watching};

use super::summary::{Form, Summary};
use super::view::listen;
use crate::args::run::LiveArgs;
use crate::args::subject::{CommandSubject, not_a_program};
use crate::exit::Exit;
use crate::output::{on_terminal, say};
use crate::task::Terminal;

/// What shows a recording while its program runs.
pub(super) trait Showing {
    /// The program starts next. `notes`: what a person should know of the run.
    fn begin(&mut self, recording: &Path, shown: &str, notes: &[String], command: &mut Command)
    -> Result<()>;
    /// The program has ended, or could not be started.
    fn ended(&mut self);
    /// The recording is complete.
    fn complete(&mut self, recording: &Path);
}

impl LiveArgs {
    pub(super) fn run(self) -> Result<Exit> {
        self.run_shown(None)
    }

    /// The same; `showing` shows the recording, which is made for it if nobody else asked for one.
    pub(super) fn run_shown(mut self, mut showing: Option<&mut dyn Showing>) -> Result<Exit> {
        let is_rank = self.plan.is_none() && moving::has_peers();
        let by_kernel = policies::for_ranks(&self.policy).filter(|_| is_rank);
        if let Some((policy, _)) = by_kernel {
            self.policy = policy.into();
        }
        let subject = self.subject()?;
        let planned =
            self.plan.as_deref().map(|path| FittingPlan::read(path, self.run.threads)).transpose()?;
        let policy = match &planned {
            Some(_) => RunPolicy::planned(),
            None => RunPolicy::of(&self.policy)?,
        };
        let mut summary = Summary::open(self.summary.as_deref())?;
        let (program, args) = self.program(subject)?;
        refuse_launcher(&program, &args)?;
        let path = find(&program)?;
        let mut command = Command::new(&path);
        command.arg0(&program).args(&args);
        if let Some(threads) = self.run.threads {
            command.env("OMP_NUM_THREADS", threads.to_string());
        }
        let mut live = RunFolder::new()?;
        // Without --record, the recording that is shown is kept while homenode runs.
        let is_shown = self.view || showing.is_some();
        let shown_alone = || is_shown.then(|| live.folder().join("shown.hnrec"));
        let recorded = self.record.clone().or_else(shown_alone);
        let recording = recorded.as_deref().map(|path| self.recording(path, &program, &args)).transpose()?;
        let page = recording.as_ref().filter(|_| self.view).map(|r| page(r, &program, &args)).transpose()?;
        live.told.extend(by_kernel.map(|(_, why)| why));
        let stream = recording.as_ref().map(|r| r.streams().to_owned());
        live.prepare(&RunOptions { stream, ..self.asked(policy, planned) }, &path, &mut command)?;
        if let (Some(showing), Some(recording)) = (&mut showing, &recording) {
            showing.begin(recording.path(), &words(&program, &args), &live.before, &mut command)?;
        }
        summary.starts();
        let ran = child::run(command, &program, &path, &Terminal::default());
        showing.iter_mut().for_each(|s| s.ended());
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                if let Some(recording) = recording {
                    recording.discard();
                }
                return Err(error);
            }
        };
        self.keep_schedules(&mut live);
        let policy = self.policy_name();
        let command = words(&program, &args);
        let (mut text, measured, report) = live.report(&policy, &command, ran.elapsed, |r| {
            (self.shown(r), Measured::of(r.processes), summary.is_of_job().then(|| r.json()))
        });
        let mut kept = None;
        if let Some(recording) = recording {
            let (path, _) = recording.finish(&ran, |meta| live.complete(&policy, meta))?;
            showing.iter_mut().for_each(|s| s.complete(&path));
            kept = self.record.is_some().then(|| path.display().to_string());
            if !self.json && self.record.is_some() {
                let _ = writeln!(text, "  recorded   {0}: homenode show {0}", shown(&path));
            }
        }
        if !self.quiet || self.summary.is_some() {
            let form = Form { json: self.json, verbose: self.verbose };
            summary.write(&text, form, |rank, place| RankSummary {
                measured,
                recording: kept,
                report,
                ..RankSummary::new(rank, place, command, ran.status, ran.elapsed)
            });
        }
        if let Some(page) = page {
            let task = Terminal::watching(self.quiet)?;
            page.until_closed(&|| task.stop_asked());
        }
        Ok(Exit::of_program(ran.status))
    }

    /// Keeps the schedules that the program's loops had, if the user asks for them.
    fn keep_schedules(&self, live: &mut RunFolder) {
        let Some(to) = &self.schedule.schedule_to else { return };
        match schedule::take(live.folder(), to) {
            Ok(n) => live.told.push(format!("the schedules of {n} loops are in {}", to.display())),
            Err(e) => say(format_args!("{e}")),
        }
    }

    /// What the library in the program is told.
    pub(super) fn asked(&self, policy: RunPolicy, planned: Option<FittingPlan>) -> RunOptions<'_> {
        RunOptions {
            policy,
            planned,
            source: self.source,
            pretend_nodes: self.pretend_nodes,
            budget: self.budget,
            force: self.force,
            copy_unseen: self.copy_unseen,
            move_while: self.move_while,
            bind: self.bind,
            align: self.align,
            journal: self.journal.as_deref(),
            schedule: self.schedule.asked(),
            schedule_from: self.schedule.schedule_from.as_deref(),
            record: false,
            stream: None,
        }
    }

    /// What the report calls the policy.
    fn policy_name(&self) -> String {
        self.plan.as_ref().map_or_else(|| self.policy.clone(), |path| format!("plan {}", path.display()))
    }

    /// The report as asked for; a terminal's width matters on a terminal alone.
    fn shown(&self, report: &RunReport<'_>) -> String {
        match (self.json, self.verbose) {
            (true, _) => format!("{:#}\n", report.json()),
            (false, true) if self.summary.is_none() => on_terminal(&report.text()),
            (false, true) => report.text(),
            (false, false) => report.answer(),
        }
    }

    fn recording(&self, path: &Path, program: &OsStr, args: &[OsString]) -> Result<LiveRecording> {
        // Its --force is about moves: it replaces no recording.
        if path.symlink_metadata().is_ok() {
            return Err(Error::failed(format!("cannot make the recording {}", path.display()))
                .tried("something of this name is there already")
                .hint("remove it, or name another place: --record REC"));
        }
        let target = RecordingTarget::Path { path: own_path(path), force: false };
        let words = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
        LiveRecording::make(
            &target,
            RecordingKind::Run,
            words.map(|w| w.to_string_lossy().into_owned()).collect(),
        )
    }

    fn program(&self, subject: CommandSubject) -> Result<(OsString, Vec<OsString>)> {
        match subject {
            CommandSubject::Kernel { name, args } => {
                let kernel = Kernel::find(&name)?;
                let mut all = kernel.arguments(self.run.class.as_deref(), self.run.threads)?;
                all.extend(args);
                Ok((kernel.build(BuildVariant::Native, &Terminal::default())?.into(), all))
            }
            CommandSubject::Program { program, args } => match &self.run.class {
                None => Ok((program, args)),
                Some(class) => Err(Error::usage(format!("--class {class} is for kernels"))
                    .hint("give a program's own options after it: -- ./app …")),
            },
            CommandSubject::Recording(path) => Err(not_a_program(&path)),
        }
    }
}

/// The page of a recording while it is made.
fn page(recording: &LiveRecording, program: &OsStr, args: &[OsString]) -> Result<Watching> {
    let server = listen(0)?;
    let url = server.url();
    say(browser::directions(&url, server.port()).trim_end());
    browser::start(&url);
    let recording = recording.path().to_owned();
    let command = words(program, args);
    Ok(Watching::start(server, Follow { recording, command, source: Some(".".into()) }))
}

fn words(program: &OsStr, args: &[OsString]) -> String {
    let all = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
    all.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
