//! `homenode explain`: what to change in the source, and what it brings.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_error::{Context, Error, Result};
use homenode_explain::against::{self, Explained};
use homenode_explain::effect::TODAY;
use homenode_explain::{exact, numactl, observed, source};
use homenode_kernels::{self as kernels, Kernel};
use homenode_launch::folder::Folder;
use homenode_launch::program::{find, refuse_unrecordable};
use homenode_launch::record::directory::RecordingTarget;
use homenode_launch::record::{
    AccessRecorder, FILTER_LINES, OutputTarget, RecordSpec, Recorded, record, shown,
};
use homenode_log::recording::Recording;
use homenode_model::Topology;
use homenode_schemes::{self as schemes, LoadedRecording};
use homenode_table::Table;
use homenode_task::Task as _;
use homenode_text::explained::{self, against as changed, markdown, table};

use crate::args::explain::ExplainArgs;
use crate::args::subject::CommandSubject;
use crate::exit::Exit;
use crate::open::{adopted, clean, recording};
use crate::output::{say, to_stdout};
use crate::task::Terminal;

/// The machine where this one has a single node.
const MACHINE: &str = "2s-xeon";
/// Longest command that is spelled out, in characters.
const LONG_COMMAND: usize = 40;
/// Findings at most.
const MOST: usize = 5;
/// How a recording came about.
const INSTRUMENTED: &str = "every access, recorded by the program's own code";
const EMULATED: &str = "every access, recorded by the emulator";

impl ExplainArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        let subject = self.subject()?;
        let columns = if self.against.is_some() { changed::columns() } else { table::columns() };
        self.fail_if.iter().try_for_each(|condition| condition.check(&columns))?;
        if let CommandSubject::Recording(path) = &subject
            && Dataset::is_at(path)
        {
            return self.data_set(path);
        }
        let (subject, today) = without_numactl(subject)?;
        let machine = self.machine()?;
        let page = schemes::page_size(&machine, self.page)?;
        let before = self.against.as_deref().map(earlier).transpose()?;
        let folder = Folder::new("explain", self.keep.as_deref())?;
        let (recording, evidence) = self.evidence(&subject, before.as_ref(), &machine, &folder, &task)?;
        if task.interrupt.asked() {
            return Err(Error::interrupted());
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.jobs.map_or(cpus, usize::from);
        let explain = |recording: Recording, evidence: String| -> Result<Explained> {
            let (machine, command) = (machine.clone(), command(&recording.meta.command));
            let all_rounds = self.all_rounds;
            let request = exact::ExplainRequest {
                machine,
                page,
                most: MOST,
                workers,
                evidence,
                command,
                today,
                all_rounds,
            };
            exact::explained(&LoadedRecording::new(recording)?, &request, &task)
        };
        let mut after = explain(recording, evidence)?;
        if let CommandSubject::Program { program, .. } = &subject {
            let moved = find(program).ok().and_then(|program| source::moved(&after.explanation, &program));
            after.explanation.warnings.extend(moved);
        }
        let before = before.map(|(recording, evidence)| explain(recording, evidence)).transpose()?;
        self.print(before, after)
    }

    /// The machine asked for; else this one where it has several nodes with memory.
    fn machine(&self) -> Result<Arc<Topology>> {
        let name = match &self.machine {
            Some(name) => name,
            None => match schemes::machine("this") {
                Ok(this) if this.topology.nodes_with_memory().len() > 1 => {
                    return Ok(Arc::new(this.topology));
                }
                _ => MACHINE,
            },
        };
        let machine = schemes::machine(name)?.topology;
        if machine.nodes_with_memory().len() < 2 {
            return Err(Error::usage(format!(
                "{} has one node with memory: no access can be remote",
                machine.name
            ))
            .hint(format!(
                "name a machine with several nodes: -m {MACHINE} ('homenode machine list' shows all)"
            )));
        }
        Ok(Arc::new(machine))
    }

    /// A recording of every access, made if need be, and how it came about.
    fn evidence(
        &self,
        subject: &CommandSubject,
        before: Option<&(Recording, String)>,
        machine: &Topology,
        folder: &Folder,
        task: &Terminal,
    ) -> Result<(Recording, String)> {
        let (program, args, way) = match subject {
            CommandSubject::Recording(path) => return opened(path),
            CommandSubject::Program { program, args } => {
                if self.run.class.is_some() {
                    return Err(Error::usage("--class is for kernels")
                        .hint("give a program's own options after it: -- ./app …"));
                }
                let way = match refuse_unrecordable(&find(program)?) {
                    Ok(()) => AccessRecorder::Instrumented,
                    Err(_) => AccessRecorder::Emulated,
                };
                (program.clone(), args.clone(), way)
            }
            CommandSubject::Kernel { name, args } => {
                let kernel = Kernel::find(name)?;
                let program = kernel.build(kernels::BuildVariant::Instrumented, task)?;
                let mut words = kernel.arguments(self.run.class.as_deref(), self.threads(machine))?;
                words.extend(kernel.options_serial.iter().map(OsString::from));
                words.extend(args.iter().cloned());
                (program.into_os_string(), words, AccessRecorder::Instrumented)
            }
        };
        let spec = RecordSpec {
            program,
            args,
            target: RecordingTarget::Path {
                path: folder.path.join("explained.hnrec"),
                force: self.keep.is_some(),
            },
            // What is compared is recorded alike.
            filter_lines: before
                .map_or_else(|| schemes::filter_lines(machine, FILTER_LINES), |(b, _)| b.meta.filter_lines),
            threads: before
                .filter(|_| self.run.threads.is_none())
                .and_then(threads_of)
                .or_else(|| self.threads(machine)),
            streams: OutputTarget::Stderr,
            way,
        };
        let text = if way == AccessRecorder::Emulated { EMULATED } else { INSTRUMENTED };
        task.remark(&format_args!("recording {} ({text})", clean(&spec.command())));
        let recorded = record(&spec, task).map_err(|e| match way {
            AccessRecorder::Instrumented => e,
            AccessRecorder::Emulated => {
                e.tried("the emulator, because the program was not built with homenode-cc")
            }
        })?;
        self.tell(&recorded, &spec);
        Ok((recorded.recording, text.into()))
    }

    /// What went wrong with the program.
    fn tell(&self, recorded: &Recorded, spec: &RecordSpec) {
        if !recorded.status.success() {
            say(format_args!(
                "{} failed ({}): what it did until then is explained",
                clean(&spec.command()),
                recorded.status
            ));
        }
        recorded.trouble.iter().for_each(|t| say(clean(t)));
        if let Some(folder) = &self.keep
            && !self.quiet
        {
            say(format_args!("recording: {}", shown(&folder.join("explained.hnrec"))));
        }
    }

    /// Threads of a program that is recorded here, as `compare` has them, unless the environment
    /// decides.
    fn threads(&self, machine: &Topology) -> Option<u32> {
        let set = std::env::var_os("OMP_NUM_THREADS").is_some_and(|v| !v.is_empty());
        let most = machine.nodes_with_cpus().len().clamp(4, 16).min(machine.cpus.len());
        self.run.threads.or((!set).then_some(most as u32))
    }

    /// A recording that is a data set.
    fn data_set(&self, path: &Path) -> Result<Exit> {
        if self.machine.is_some() || self.page.is_some() {
            return Err(Error::usage("this recording tells where pages lived: it is not simulated")
                .tried("simulate it on a machine or with a page size")
                .hint("leave --machine and --page out; 'homenode record --on emulator' writes a recording that can be simulated"));
        }
        let explain = |path: &Path| -> Result<Explained> {
            let set = adopted(path, "read the recording")?;
            Ok(observed::explained(&set, MOST, &command(&set.meta().command)))
        };
        let before = match self.against.as_deref() {
            Some(before) if !Dataset::is_at(before) => return Err(unlike(before, path)),
            before => before.map(explain).transpose()?,
        };
        self.print(before, explain(path)?)
    }

    fn print(&self, before: Option<Explained>, after: Explained) -> Result<Exit> {
        let Some(before) = before else {
            let it = &after.explanation;
            let text = || match self.markdown {
                true => markdown::render(it),
                false => explained::render(it, self.verbose),
            };
            return self.answer(&table::table(it), it, text, !it.missing.is_empty());
        };
        let it = against::compare(before, after);
        let text = || match self.markdown {
            true => changed::markdown(&it),
            false => changed::render(&it, self.verbose),
        };
        self.answer(&changed::table(&it), &it, text, !it.missing().is_empty())
    }

    fn answer(
        &self,
        table: &Table,
        json: &impl serde::Serialize,
        text: impl Fn() -> String,
        partial: bool,
    ) -> Result<Exit> {
        let mut exit = Exit::Done;
        for condition in &self.fail_if {
            if condition.holds(table)? {
                say(format_args!("condition held: {}", condition.text()));
                exit = Exit::ConditionHeld;
            }
        }
        let text = match self.json {
            true => {
                serde_json::to_string_pretty(json).context(|| "cannot make JSON of the result".into())? + "\n"
            }
            false => text(),
        };
        to_stdout(&text)?;
        Ok(if partial && exit == Exit::Done { Exit::Partial } else { exit })
    }
}

/// What to run, and the policy that numactl in front of it stands for.
fn without_numactl(subject: CommandSubject) -> Result<(CommandSubject, &'static str)> {
    let CommandSubject::Program { program, args } = &subject else { return Ok((subject, TODAY)) };
    if !numactl::is(program) {
        return Ok((subject, TODAY));
    }
    let behind = numactl::parse(args).map_err(|what| {
        Error::usage(format!("cannot explain a program under '{what}'"))
            .tried("simulate first touch, or numactl --interleave=all")
            .hint("leave numactl out: homenode explain -- ./app")
    })?;
    let (program, args) = (behind.words[0].clone(), behind.words[1..].to_vec());
    let today = if behind.interleaved { numactl::INTERLEAVED } else { TODAY };
    Ok((CommandSubject::Program { program, args }, today))
}

/// A recording of every access, and how it came about.
fn opened(path: &Path) -> Result<(Recording, String)> {
    let recording = recording(path, "explain")?;
    let text = if recording.meta.kind == "emulated" { EMULATED } else { INSTRUMENTED };
    Ok((recording, text.into()))
}

/// The recording of `--against`, beside one that is simulated.
fn earlier(path: &Path) -> Result<(Recording, String)> {
    if Dataset::is_at(path) { Err(unlike(path, Path::new("the program"))) } else { opened(path) }
}

/// Why two recordings do not compare: one has every access, the other what happened to pages.
fn unlike(before: &Path, after: &Path) -> Error {
    Error::usage(format!("cannot compare {} with {}", shown(before), shown(after)))
        .tried("one has every access and is simulated, the other tells where pages lived")
        .hint("record both in one way: 'homenode record -- ./app', or 'homenode record --on live -- ./app'")
}

/// Threads of a recorded program.
fn threads_of((recording, _): &(Recording, String)) -> Option<u32> {
    recording.logs().ok().and_then(|logs| u32::try_from(logs.len()).ok())
}

/// A command as a person types it again. Of a long one, the program's name and an ellipsis: the
/// JSON has all of it.
pub(super) fn command(words: &[String]) -> String {
    let (program, args) = match words {
        [program, args @ ..] => (program.as_str(), args),
        [] => ("./app", &[][..]),
    };
    let line = args.iter().fold(shown(Path::new(program)), |line, word| line + " " + &shown(Path::new(word)));
    if line.chars().count() <= LONG_COMMAND {
        return line;
    }
    let name = Path::new(program).file_name().unwrap_or(program.as_ref()).to_string_lossy();
    format!("{}{}", shown(Path::new(name.as_ref())), if args.is_empty() { "" } else { " …" })
}
