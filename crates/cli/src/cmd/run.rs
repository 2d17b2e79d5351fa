//! `homenode run`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_dataset::{Kind, Meta};
use homenode_error::{Context, Error, Result};
use homenode_kernels::{Kernel, Variant};
use homenode_launch::loadable::{Loadable, loadable, refuse_launcher};
use homenode_launch::preload::preload;
use homenode_launch::program::find;
use homenode_launch::rank::own_path;
use homenode_launch::record::directory::Target;
use homenode_launch::record::shown;
use homenode_launch::{child, places, schedule};
use homenode_model::{Bytes, Ns};
use homenode_plan::apply;
use homenode_plan::file::Plan;
use homenode_plan::threads::{self, Fit};
use homenode_runtime::driver::Machine;
use homenode_runtime::moving;
use homenode_runtime::nodes::Nodes;
use homenode_scratch::Scratch;
use homenode_symbols as symbols;
use homenode_task::Task as _;
use homenode_view::browser;
use homenode_view::live::{Follow, Watching};
use homenode_wire::facts::{Arming, Facts};
use homenode_wire::settings::{self, Settings};
use homenode_wire::{Message, plan};

use super::view::listen;
use crate::args::run::{Budget, LiveArgs};
use crate::args::subject::{Subject, not_a_program};
use crate::exit::Exit;
use crate::live::policies;
use crate::live::recording::Recording;
use crate::output::{on_terminal, say};
use crate::task::Terminal;
use homenode_verdict::advice::Names;
use homenode_verdict::facts;
use homenode_verdict::report::Report;

/// Smallest static variable that is an object.
const STATIC: u64 = 64 << 10;

/// The policy as the library in the program takes it.
pub(super) struct Policy {
    pub spec: String,
    pub arming: Arming,
}

impl Policy {
    fn of(text: &str) -> Result<Self> {
        let (spec, arming) = match text {
            "next-touch" | "next-touch=first" => ("next-touch", Some(Arming::First)),
            "next-touch=region" => ("next-touch", Some(Arming::Region)),
            "next-touch=asked" => ("next-touch", Some(Arming::Asked)),
            other => (other, None),
        };
        // Its name and options are right or wrong on any machine.
        let machine = settings::Machine::even(2, 1, Bytes::gib(4), 20);
        let machine = Machine::of(&machine).expect("a machine of two nodes");
        let policy = homenode_policy::build(spec, &machine.context(Bytes::kib(4)))
            .map_err(|e| policies::error(text, &e))?;
        let is_told = policy.interest().counts() || spec.split(':').next() == Some("presence");
        let arming = match arming {
            None if is_told => Arming::Watch,
            None => Arming::First,
            Some(named) => named,
        };
        Ok(Self { spec: spec.into(), arming })
    }
}

/// The policy of one of several ranks. The kernel alone moves pages for it.
const BY_KERNEL: &str = "competitive";
const RANKS: &str = "one of several ranks: pages are moved by the kernel alone (competitive), for other ranks may read this memory";

/// A plan that fits this run.
pub(super) struct Planned {
    plan: Plan,
    threads: usize,
    fit: Fit,
}

impl Planned {
    fn read(path: &Path, args: &LiveArgs) -> Result<Self> {
        let plan = Plan::read(path)?;
        threads::fit_ranks(&plan)?;
        let n = threads::of_run(args.run.threads, &plan);
        let fit = threads::fit(&plan, n)?;
        Ok(Self { plan, threads: n, fit })
    }

    /// Every node of the plan has memory here.
    fn check_nodes(&self, nodes: &Nodes) -> Result<()> {
        match self.plan.nodes.iter().find(|n| !nodes.has_memory(**n)) {
            None => Ok(()),
            Some(n) => Err(Error::usage(format!(
                "the plan is for {} with {} nodes, and node {n} has no memory here",
                self.plan.machine,
                self.plan.nodes.len()
            ))
            .hint("plan anew for this machine: homenode plan REC")),
        }
    }
}

impl From<Budget> for homenode_wire::facts::Budget {
    fn from(b: Budget) -> Self {
        Self { permille: b.permille, fixed: Ns(b.milliseconds.saturating_mul(1_000_000)) }
    }
}

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
        let by_kernel = self.plan.is_none() && self.policy.starts_with("next-touch") && moving::has_peers();
        if by_kernel {
            self.policy = BY_KERNEL.into();
        }
        let subject = self.subject()?;
        let planned = self.plan.as_deref().map(|path| Planned::read(path, &self)).transpose()?;
        let policy = match &planned {
            // Everything is decided.
            Some(_) => Policy { spec: "first-touch".into(), arming: Arming::Asked },
            None => Policy::of(&self.policy)?,
        };
        let summary = self.summary.as_deref().map(own_path);
        if let Some(path) = &summary {
            // Better known now than after an hour.
            fs::File::create(path).context(|| format!("cannot write the summary {}", path.display()))?;
        }
        let (program, args) = self.program(subject)?;
        refuse_launcher(&program, &args)?;
        let path = find(&program)?;
        let mut command = Command::new(&path);
        command.arg0(&program).args(&args);
        if let Some(threads) = self.run.threads {
            command.env("OMP_NUM_THREADS", threads.to_string());
        }
        let mut live = Live::new()?;
        // Without --record, the recording that is shown is kept while homenode runs.
        let is_shown = self.view || showing.is_some();
        let shown_alone = || is_shown.then(|| live.folder.join("shown.hnrec"));
        let recorded = self.record.clone().or_else(shown_alone);
        let recording = recorded.as_deref().map(|path| self.recording(path, &program, &args)).transpose()?;
        let page = recording.as_ref().filter(|_| self.view).map(|r| page(r, &program, &args)).transpose()?;
        if by_kernel {
            live.told.push(RANKS.into());
        }
        live.stream = recording.as_ref().map(|r| r.streams().to_owned());
        live.prepare(&self, &policy, planned.as_ref(), &path, &mut command)?;
        if let (Some(showing), Some(recording)) = (&mut showing, &recording) {
            showing.begin(recording.path(), &words(&program, &args), &live.before, &mut command)?;
        }
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
        if let Some(to) = &self.schedule.schedule_to {
            match schedule::take(&live.folder, to) {
                Ok(n) => live.told.push(format!("the schedules of {n} loops are in {}", to.display())),
                Err(e) => say(format_args!("{e}")),
            }
        }
        let mut text = live.report(&self, &words(&program, &args), ran.elapsed);
        if let Some(recording) = recording {
            let (path, _) = recording.finish(&ran, |meta| live.complete(&self, meta))?;
            showing.iter_mut().for_each(|s| s.complete(&path));
            if !self.json && self.record.is_some() {
                let _ = writeln!(text, "  recorded   {0}: homenode show {0}", shown(&path));
            }
        }
        match summary {
            _ if self.quiet && self.summary.is_none() => {}
            None => drop(std::io::stderr().write_all(text.as_bytes())),
            Some(path) => {
                if let Err(e) = fs::write(&path, &text) {
                    say(format_args!("cannot write the summary {}: {e}", path.display()));
                }
            }
        }
        if let Some(page) = page {
            let task = Terminal::watching(self.quiet)?;
            page.until_closed(&|| task.stop_asked());
        }
        Ok(Exit::of_program(ran.status))
    }

    fn recording(&self, path: &Path, program: &OsStr, args: &[OsString]) -> Result<Recording> {
        let target = Target::Path { path: own_path(path), force: false };
        let words = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
        Recording::make(&target, Kind::Run, words.map(|w| w.to_string_lossy().into_owned()).collect())
    }

    fn program(&self, subject: Subject) -> Result<(OsString, Vec<OsString>)> {
        match subject {
            Subject::Kernel { name, args } => {
                let kernel = Kernel::find(&name)?;
                let mut all = kernel.arguments(self.run.class.as_deref(), self.run.threads)?;
                all.extend(args);
                Ok((kernel.build(Variant::Native, &Terminal::default())?.into(), all))
            }
            Subject::Program { program, args } => match &self.run.class {
                None => Ok((program, args)),
                Some(class) => Err(Error::usage(format!("--class {class} is for kernels"))
                    .hint("give a program's own options after it: -- ./app …")),
            },
            Subject::Recording(path) => Err(not_a_program(&path)),
        }
    }
}

/// The page of a recording while it is made.
fn page(recording: &Recording, program: &OsStr, args: &[OsString]) -> Result<Watching> {
    let server = listen(0)?;
    let url = server.url();
    say(browser::directions(&url, server.port()).trim_end());
    browser::start(&url);
    let recording = recording.path().to_owned();
    let command = words(program, args);
    Ok(Watching::start(server, Follow { recording, command, source: Some(".".into()) }))
}

/// The folder for journals, which is made if it is not there.
fn journal(folder: &Path) -> Result<PathBuf> {
    let failed = || format!("cannot make the folder {} for the journal", folder.display());
    fs::create_dir_all(folder).context(failed)?;
    fs::canonicalize(folder).context(failed)
}

fn words(program: &OsStr, args: &[OsString]) -> String {
    let all = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
    all.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The folder that the library in the program reports to, and what is known before the program
/// runs. The folder is removed at the end.
pub(super) struct Live {
    pub folder: PathBuf,
    _kept: Scratch,
    /// What a person should know.
    told: Vec<String>,
    pub before: Vec<String>,
    /// The program is watched for a recording, and nothing moves.
    pub record: bool,
    /// The folder that the library streams its events to.
    pub stream: Option<PathBuf>,
}

impl Live {
    pub fn new() -> Result<Self> {
        let kept = Scratch::new("run")?;
        let (told, before) = (Vec::new(), Vec::new());
        Ok(Self { folder: kept.path().to_owned(), _kept: kept, told, before, record: false, stream: None })
    }

    /// Sets the environment so that the program loads homenode, and writes the settings for it.
    /// Where the program cannot load homenode, notes why, and the program runs without.
    pub fn prepare(
        &mut self,
        args: &LiveArgs,
        policy: &Policy,
        planned: Option<&Planned>,
        path: &Path,
        command: &mut Command,
    ) -> Result<()> {
        command.env_remove(settings::RUN_DIR);
        if let Loadable::No(why) = loadable(path) {
            self.before.push(format!("{why}; it ran as it is"));
            return Ok(());
        }
        let nodes = Nodes::here();
        let nodes = match args.pretend_nodes {
            Some(n) => nodes.pretend(n),
            None => nodes,
        };
        self.before.extend(nodes.hidden.iter().cloned());
        let asked = args.schedule.asked();
        if nodes.with_memory() < 2 && asked.is_none() && !args.align {
            self.before.push(
                "there is one node with memory here: nothing to move, the program ran as it is \
                 (--pretend-nodes 2 tries everything out)"
                    .into(),
            );
            return Ok(());
        }
        if nodes.with_memory() < 2 && asked.is_none() {
            self.before.push("there is one node with memory here; large allocations begin on pages".into());
        }
        if let Some(planned) = planned {
            self.write_plan(planned, &nodes, path, command)?;
        }
        let library = places::live_library()?;
        let mut others = env::var_os("LD_PRELOAD").unwrap_or_default();
        let loops = asked.map(|_| places::loops_library()).transpose()?;
        let preloaded = [Some(library), loops].into_iter().flatten().try_for_each(|library| {
            others = preload(&library, &self.folder, Some(&others))?;
            Ok::<(), String>(())
        });
        match preloaded.map(|()| others) {
            Ok(preload) => command.env("LD_PRELOAD", preload),
            Err(why) => {
                self.before.push(format!("{why}; the program ran as it is"));
                return Ok(());
            }
        };
        command.env(settings::RUN_DIR, &self.folder);
        let settings = Settings {
            policy: policy.spec.clone(),
            arming: policy.arming,
            machine: nodes.machine(),
            pretend: args.pretend_nodes.is_some(),
            budget: args.budget.unwrap_or_default().into(),
            trial: args.budget.is_none() && !args.force,
            force: args.force,
            plan: planned.is_some(),
            source: args.source,
            copy_unseen: args.copy_unseen,
            journal: args.journal.as_deref().map(journal).transpose()?,
            record: self.record,
            stream: self.stream.clone(),
            schedule: asked,
            align: args.align,
        };
        if let Some(from) = &args.schedule.schedule_from {
            schedule::lay(from, &self.folder)?;
        }
        self.leave(settings::FILE, &settings)?;
        if env::var_os("OMP_TOOL").is_some_and(|v| v == "disabled") {
            self.before.push("OMP_TOOL=disabled: libomp tells no tool of its regions".into());
        }
        if args.bind {
            self.bind(&nodes, command);
        }
        Ok(())
    }

    /// A file in the folder of the run, for the library in the program.
    fn leave<M: Message>(&self, name: &str, message: &M) -> Result<()> {
        let file = self.folder.join(name);
        let failed = || format!("cannot write {}", file.display());
        let bytes =
            homenode_wire::encode(message).map_err(|e| Error::failed(failed()).tried(e.to_string()))?;
        fs::write(&file, bytes).context(failed)
    }

    fn bind(&mut self, nodes: &Nodes, command: &mut Command) {
        let set = |name: &str| env::var_os(name).is_some_and(|v| !v.is_empty());
        if set("OMP_PROC_BIND") || set("OMP_PLACES") || set("GOMP_CPU_AFFINITY") || set("KMP_AFFINITY") {
            self.before
                .push("--bind: the environment says already where threads are bound, and that holds".into());
            return;
        }
        command.env("OMP_PLACES", nodes.places()).env("OMP_PROC_BIND", "close");
    }

    /// The plan as the library needs it; without a number of threads in the environment, the
    /// plan's.
    fn write_plan(
        &mut self,
        planned: &Planned,
        nodes: &Nodes,
        path: &Path,
        command: &mut Command,
    ) -> Result<()> {
        planned.check_nodes(nodes)?;
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let applied =
            apply::table(&planned.plan, planned.threads, &path, &symbols::statics_of(&path, STATIC));
        self.before.extend(applied.notes);
        if let Fit::Scaled(text) = &planned.fit {
            self.told.push(text.clone());
        }
        self.leave(plan::FILE, &applied.table)?;
        if env::var_os("OMP_NUM_THREADS").is_none() {
            command.env("OMP_NUM_THREADS", planned.threads.to_string());
        }
        Ok(())
    }

    /// What a recording says of itself besides.
    fn complete(&self, args: &LiveArgs, meta: &mut Meta) {
        let verdict = |f: &Facts| f.guard.to_string();
        meta.verdict = facts::all(&self.folder).whole.first().map(verdict);
        meta.policy = Some(match &args.plan {
            Some(path) => format!("plan {}", path.display()),
            None => args.policy.clone(),
        });
        meta.notes.extend(self.before.iter().cloned());
    }

    fn report(&self, args: &LiveArgs, command: &str, elapsed: std::time::Duration) -> String {
        let mut left = facts::all(&self.folder);
        if let (true, Err(e)) = (left.whole.is_empty(), fs::write(self.folder.join("room"), [0; 1 << 16])) {
            let folder = self.folder.display();
            left.damaged.push(format!(
                "there is no room for its report in {folder}: {e}; set TMPDIR to a folder that has"
            ));
        }
        let names: Vec<_> = left.whole.iter().map(Names::of).collect();
        let report = Report {
            elapsed,
            command: command.to_owned(),
            policy: match &args.plan {
                Some(path) => format!("plan {}", path.display()),
                None => args.policy.clone(),
            },
            told: self.told.clone(),
            before: self.before.iter().chain(&left.damaged).cloned().collect(),
            processes: &left.whole,
            names: &names,
        };
        match (args.json, args.verbose) {
            (true, _) => format!("{:#}\n", report.json()),
            (false, true) if args.summary.is_none() => on_terminal(&report.text()),
            (false, true) => report.text(),
            (false, false) => report.answer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_before_the_program_runs() {
        let arming = |text: &str| Policy::of(text).map(|p| p.arming);
        assert_eq!(arming("next-touch"), Ok(Arming::First));
        assert_eq!(arming("next-touch=region"), Ok(Arming::Region));
        assert_eq!(arming("round-robin"), Ok(Arming::First));
        assert_eq!(arming("presence:gap=5ms"), Ok(Arming::Watch));
        assert_eq!(
            [arming("competitive"), arming("daemon"), arming("out-w")],
            [const { Ok(Arming::Watch) }; 3]
        );
    }

    #[test]
    fn what_names_no_policy_is_told_which_there_are() {
        let error = |text: &str| Policy::of(text).err().unwrap().to_string();
        for listed in
            [" first-touch,", " next-touch,", " next-touch=region,", " next-touch=asked,", " presence,"]
        {
            assert!(error("nonsense").contains(listed), "{listed}: {}", error("nonsense"));
        }
        assert!(!error("nonsense").contains("did you mean") && !error("nonsense").contains(" plan,"));
        assert!(error("nxt-touch").contains("did you mean 'next-touch'?"), "{}", error("nxt-touch"));
        assert!(error("next-touch=regions").contains("did you mean 'next-touch=region'?"));
        assert!(error("plan").contains("--plan FILE"), "{}", error("plan"));
        assert!(error("cyclic:page=4").contains("did you mean `pages`?"), "{}", error("cyclic:page=4"));
    }
}
