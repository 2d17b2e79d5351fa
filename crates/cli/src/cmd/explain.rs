//! `homenode explain`: what to change in the source, and what it brings.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_error::{Context, Error, Failure, Result};
use homenode_explain::{Explanation, exact, observed};
use homenode_kernels::{self as kernels, Kernel};
use homenode_launch::folder::Folder;
use homenode_launch::program::{find, refuse_unrecordable};
use homenode_launch::record::directory::Target;
use homenode_launch::record::{FILTER_LINES, RecordSpec, Recorded, Streams, Way, record, shown};
use homenode_log::recording::Recording;
use homenode_model::Topology;
use homenode_schemes::{self as schemes, Loaded};
use homenode_sim::caches::{FilterFit, filter_fit};
use homenode_table::{Cell, Column, Table};
use homenode_task::Task as _;
use homenode_text::explained::{self, markdown};

use crate::args::explain::ExplainArgs;
use crate::args::subject::Subject;
use crate::exit::Exit;
use crate::open::clean;
use crate::output::{say, to_stdout};
use crate::task::Terminal;

/// The machine where this one has a single node.
const MACHINE: &str = "2s-xeon";
/// Longest command that is spelled out, in characters.
const LONG_COMMAND: usize = 40;
/// Findings at most.
const MOST: usize = 5;

impl ExplainArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        let subject = self.subject()?;
        if let Subject::Recording(path) = &subject
            && Dataset::is_at(path)
        {
            return self.data_set(path);
        }
        let machine = self.machine()?;
        let page = schemes::page_size(&machine, self.page)?;
        let folder = Folder::new("explain", self.keep.as_deref())?;
        let (recording, evidence) = self.evidence(&subject, &machine, &folder, &task)?;
        if task.interrupt.asked() {
            return Err(Error::interrupted());
        }
        let command = command(&recording.meta.command);
        let loaded = Loaded::new(recording)?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let request = exact::Request {
            machine,
            page,
            most: MOST,
            workers: self.jobs.map_or(cpus, usize::from),
            evidence,
            command,
        };
        self.print(&exact::explain(&loaded, &request, &task)?)
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
        subject: &Subject,
        machine: &Topology,
        folder: &Folder,
        task: &Terminal,
    ) -> Result<(Recording, String)> {
        let (program, args, way) = match subject {
            Subject::Recording(path) => {
                let recording = Recording::open(path)
                    .context(|| "cannot explain".into())
                    .map_err(|e| e.kind(Failure::Usage))?;
                let text = match recording.meta.kind.as_str() {
                    "emulated" => "every access, recorded by the emulator",
                    _ => "every access, recorded by the program's own code",
                };
                return Ok((recording, text.into()));
            }
            Subject::Program { program, args } => {
                if self.run.class.is_some() {
                    return Err(Error::usage("--class is for kernels")
                        .hint("give a program's own options after it: -- ./app …"));
                }
                let way = match refuse_unrecordable(&find(program)?) {
                    Ok(()) => Way::Instrumented,
                    Err(_) => Way::Emulated,
                };
                (program.clone(), args.clone(), way)
            }
            Subject::Kernel { name, args } => {
                let kernel = Kernel::find(name)?;
                let program = kernel.build(kernels::Variant::Instrumented, task)?;
                let mut words = kernel.arguments(self.run.class.as_deref(), self.threads(machine))?;
                words.extend(kernel.options_serial.iter().map(OsString::from));
                words.extend(args.iter().cloned());
                (program.into_os_string(), words, Way::Instrumented)
            }
        };
        let spec = RecordSpec {
            program,
            args,
            target: Target::Path { path: folder.path.join("explained.hnrec"), force: self.keep.is_some() },
            filter_lines: filter_lines(machine),
            threads: self.threads(machine),
            streams: Streams::Stderr,
            way,
        };
        let text = match way {
            Way::Instrumented => "every access, recorded by the program's own code",
            Way::Emulated => "every access, recorded by the emulator",
        };
        task.remark(&format_args!("recording {} ({text})", clean(&spec.command())));
        let recorded = record(&spec, task).map_err(|e| match way {
            Way::Instrumented => e,
            Way::Emulated => e.tried("the emulator, because the program was not built with homenode-cc"),
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

    /// Threads of a program that is recorded here, as `compare` has them, unless the environment decides.
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
        let set = Dataset::open(path)
            .and_then(homenode_observed::adopt)
            .context(|| format!("cannot read the recording {}", shown(path)))?;
        let command = command(&set.meta().command);
        self.print(&observed::explain(&set, MOST, &command))
    }

    fn print(&self, explanation: &Explanation) -> Result<Exit> {
        let table = table(explanation);
        let mut exit = Exit::Done;
        for condition in &self.fail_if {
            if condition.holds(&table)? {
                say(format_args!("condition held: {}", condition.text()));
                exit = Exit::ConditionHeld;
            }
        }
        let text = match () {
            () if self.json => {
                serde_json::to_string_pretty(explanation)
                    .context(|| "cannot make JSON of the result".into())?
                    + "\n"
            }
            () if self.markdown => markdown::render(explanation),
            () => explained::render(explanation, self.verbose),
        };
        to_stdout(&text)?;
        let partial = !explanation.missing.is_empty() && exit == Exit::Done;
        Ok(if partial { Exit::Partial } else { exit })
    }
}

/// The filter that the recorder has for a machine: the largest whose counts are exact, else the largest that fits.
fn filter_lines(machine: &Topology) -> u32 {
    if !machine.remote_cacheable {
        return 0; // every access to uncached memory counts
    }
    let fit = |lines: u32| filter_fit(machine, lines.into(), 64);
    let filters = [FILTER_LINES, 1024, 256];
    let exact = filters.into_iter().find(|lines| matches!(fit(*lines), FilterFit::Exact));
    let nearly = || filters.into_iter().find(|lines| !matches!(fit(*lines), FilterFit::Refused(_)));
    exact.or_else(nearly).unwrap_or(0)
}

/// A command as a person types it again. Of a long one, the program's name and an ellipsis: the JSON has all of it.
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

/// What `--fail-if` judges: a row for everything, then one a finding.
fn table(explanation: &Explanation) -> Table {
    let mut table = Table::new(
        "explain",
        1,
        vec![
            Column::text("finding", "finding"),
            Column::number("findings", "findings"),
            Column::unit("remote", "remote", "%"),
            Column::unit("saved", "saved", "%"),
        ],
    );
    let saved = |f: &homenode_explain::explanation::Finding| {
        f.fixes.first().and_then(|fix| fix.effect).map(|e| -e.change())
    };
    let cell =
        |value: Option<f64>, why: &str| value.map_or_else(|| Cell::missing(why), |v| Cell::float(v, 1));
    let most = explanation.findings.iter().filter_map(saved).fold(0.0, f64::max);
    table.row(vec![
        Cell::text("all"),
        Cell::int(explanation.findings.len() as u64),
        cell(explanation.remote.percent(), "no accesses"),
        Cell::float(most, 1),
    ]);
    for finding in &explanation.findings {
        table.row(vec![
            Cell::text(finding.variables.first().map_or("", |v| v.name.as_str())),
            Cell::missing("not one finding's"),
            cell(finding.remote.percent(), "no accesses"),
            cell(saved(finding), "nothing was simulated"),
        ]);
    }
    table
}
