//! `homenode compare`: every placement scheme in one table.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_log::recording::Recording;
use homenode_model::{Ps, Topology};
use homenode_sim::caches::{FilterFit, filter_fit};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::Trace;

use crate::args::compare::CompareArgs;
use crate::args::subject::Subject;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::kernels::{self, Kernel};
use crate::output::say;
use crate::recorder::directory::Target;
use crate::recorder::{FILTER_LINES, RecordSpec, Streams, record};
use crate::simulate::scheme::{self, Scheme, Variant};
use crate::simulate::{self, Cells, Loaded, Plan};
use crate::table::{Cell, Column, Emphasis, Table};

impl CompareArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let interrupt = Interrupt::install(Second::Ends).context(|| "cannot watch for Ctrl-C".into())?;
        let machines: Vec<_> = self.machines.iter().map(|m| simulate::machine(m)).collect::<Result<_>>()?;
        let machines: Vec<Arc<Topology>> = machines.into_iter().map(|m| Arc::new(m.topology)).collect();
        let pages = machines.iter().map(|m| simulate::page_size(m, self.page)).collect::<Result<Vec<_>>>()?;
        let subject = self.subject()?;
        let all = match &subject {
            Subject::Kernel { .. } => scheme::of_kernel(),
            _ => scheme::of_recording(),
        };
        let schemes = scheme::select(&all, &self.policies)?;
        let plan = Plan { machines, pages, schemes, jobs: self.jobs(), options: self.options() };
        let folder = Folder::new(self.keep.as_deref())?;
        let runs = self.recordings(&subject, &plan, &folder, &interrupt)?;
        self.simulate(&plan, &runs, &interrupt)
    }

    /// The recordings that the schemes need, made if need be.
    fn recordings(
        &self,
        subject: &Subject,
        plan: &Plan,
        folder: &Folder,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<Variant, Loaded>> {
        let variants: BTreeSet<Variant> = plan.schemes.iter().map(|s| s.variant).collect();
        let mut runs = BTreeMap::new();
        for variant in variants {
            let recording = match subject {
                Subject::Recording(path) => Recording::open(path).context(|| "cannot compare".into())?,
                Subject::Program { program, args } => {
                    self.record(program.clone(), args.clone(), plan, &folder.path.join("program"))?
                }
                Subject::Kernel { name, args } => {
                    let kernel = Kernel::find(name)?;
                    let program = kernel.build(kernels::Variant::Instrumented)?;
                    let mut words = kernel.arguments(self.run.class.as_deref(), Some(self.threads(plan)))?;
                    words.extend(kernel_options(&kernel, variant));
                    words.extend(args.iter().cloned());
                    let path = folder.path.join(format!("{name}-{}", variant.name()));
                    self.record(program.into_os_string(), words, plan, &path)?
                }
            };
            if interrupt.asked() {
                return Err(CliError::failed("interrupted").code(Exit::Partial));
            }
            runs.insert(variant, Loaded::new(recording)?);
        }
        Ok(runs)
    }

    /// Threads of a program that is recorded here: one a node and at least four, but not more than 16 or the CPUs.
    fn threads(&self, plan: &Plan) -> u32 {
        let of = |m: &Arc<Topology>| m.nodes_with_cpus().len().clamp(4, 16).min(m.cpus.len());
        let most = plan.machines.iter().map(of).min().unwrap_or(1);
        self.run.threads.unwrap_or(most as u32)
    }

    fn record(&self, program: OsString, args: Vec<OsString>, plan: &Plan, path: &Path) -> Result<Recording> {
        let spec = RecordSpec {
            program,
            args,
            target: Target::Path { path: path.into(), force: false },
            filter_lines: self.filter_lines(plan),
            threads: Some(self.threads(plan)),
            streams: Streams::File,
        };
        if !self.quiet {
            say(format_args!("recording {}", spec.command()));
        }
        let recorded = record(&spec)?;
        if !recorded.status.success() {
            return Err(CliError::failed(format!("{} failed: {}", spec.command(), recorded.status))
                .tried(recorded.last_words())
                .hint("run it by hand first; a program that fails under the recorder alone is a bug of homenode"));
        }
        Ok(recorded.recording)
    }

    /// The filter that serves all machines: the recorder's own, or a smaller one where a cache is small.
    fn filter_lines(&self, plan: &Plan) -> u32 {
        let fits = |lines: u32| {
            let refused =
                |m: &Arc<Topology>| matches!(filter_fit(m, lines.into(), 64), FilterFit::Refused(_));
            !plan.machines.iter().any(refused)
        };
        if plan.machines.iter().any(|m| !m.remote_cacheable) {
            return 0; // every access to uncached memory counts
        }
        [FILTER_LINES, 1024, 256].into_iter().find(|lines| fits(*lines)).unwrap_or(0)
    }

    fn jobs(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cpus, usize::from)
    }

    fn options(&self) -> MemoryOptions {
        MemoryOptions {
            outstanding: self.outstanding.and_then(NonZeroU32::new),
            journal: self.journal.is_some(),
            ..MemoryOptions::default()
        }
    }

    /// Simulates and prints.
    fn simulate(&self, plan: &Plan, runs: &BTreeMap<Variant, Loaded>, interrupt: &Interrupt) -> Result<Exit> {
        let (mut notes, mut partial) = (Vec::new(), false);
        let mut cells = BTreeMap::new();
        let mut table = table(plan.machines.len() > 1);
        for (variant, loaded) in runs {
            let meta = &loaded.recording.meta;
            for machine in &plan.machines {
                if let Some(why) = simulate::fit(machine, meta.filter_lines)? {
                    notes.push(format!("{}: approximate: {why}", machine.name));
                }
            }
            let (trace, of_variant) = plan.run(loaded, *variant, self.quiet, interrupt)?;
            if cells.is_empty() {
                facts(&mut table, plan, &loaded.recording, &trace, self.outstanding);
            }
            let warnings = simulate::warnings(&loaded.recording, &trace);
            partial |= !warnings.is_empty();
            let run =
                if runs.len() > 1 { format!("{} initialisation: ", variant.name()) } else { String::new() };
            notes.extend(simulate::false_sharing(&trace).map(|note| run + &note));
            notes.extend(warnings);
            cells.extend(of_variant);
        }
        if let Some(folder) = &self.journal {
            simulate::write_journals(folder, plan, &cells)?;
        }
        notes.extend(simulate::idle_policies(plan, &cells));
        rows(&mut table, plan, &cells);
        notes.sort();
        notes.dedup();
        for note in notes {
            table.note(note);
        }
        explain(&mut table, plan, &cells);
        let exit = self.output.print(&table)?;
        Ok(if partial && exit == Exit::Done { Exit::Partial } else { exit })
    }
}

/// Options of a kernel that make a variant.
fn kernel_options(kernel: &Kernel, variant: Variant) -> Vec<OsString> {
    let words: Vec<&String> = match variant {
        Variant::Serial => kernel.options_serial.iter().chain(&kernel.options_next_touch).collect(),
        Variant::Parallel => kernel.options_parallel.iter().collect(),
    };
    words.into_iter().map(OsString::from).collect()
}

/// Where recordings go that are made for a comparison; removed at the end unless the user named it.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn new(keep: Option<&Path>) -> Result<Self> {
        let path = match keep {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("homenode-compare-{}", std::process::id())),
        };
        std::fs::create_dir_all(&path).context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self { path, keep: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is in the system's folder for temporary files and goes with it.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn table(several: bool) -> Table {
    let mut columns = Vec::new();
    if several {
        columns.push(Column::text("machine", "machine"));
    }
    columns.extend([
        Column::text("scheme", "scheme"),
        Column::unit("time", "model time", "s"),
        Column::number("to_uma", "× UMA"),
        Column::unit("remote", "remote", "%"),
        Column::number("moved", "pages moved"),
        Column::unit("overhead", "overhead", "s"),
        Column::unit("above_bound", "above bound", "%"),
    ]);
    Table::new("compare", 1, columns)
}

fn facts(table: &mut Table, plan: &Plan, recording: &Recording, trace: &Trace, outstanding: Option<u32>) {
    let names: Vec<String> =
        plan.machines.iter().zip(&plan.pages).map(|(m, p)| simulate::describe(m, *p, outstanding)).collect();
    table.fact("program", Cell::text(command(recording)));
    table.fact(
        "recording",
        Cell::text(format!("{}, filter of {} lines", recording.meta.kind, recording.meta.filter_lines)),
    );
    table.fact("threads", Cell::int(trace.threads as i128));
    table.fact("accesses", Cell::int(trace.accesses));
    table.fact("machine", Cell::text(names.join("; ")));
}

/// The recorded command, with the program's name alone.
fn command(recording: &Recording) -> String {
    let mut words = recording.meta.command.clone();
    if let Some(first) = words.first_mut() {
        *first = Path::new(first.as_str()).file_name().map_or(first.clone(), |n| n.to_string_lossy().into());
    }
    words.join(" ")
}

/// What a scheme's time is: that of the timed iterations where the program tells of them, else of everything.
fn time(outcome: &Outcome) -> Ps {
    if outcome.marks.len() > 1 { outcome.timed } else { outcome.time }
}

fn rows(table: &mut Table, plan: &Plan, cells: &Cells) {
    let several = plan.machines.len() > 1;
    for (m, machine) in plan.machines.iter().enumerate() {
        let uma = plan.schemes.iter().position(|s| s.name == "UMA");
        let uma = uma.and_then(|s| cells.get(&(m, s))).and_then(|c| c.as_ref().ok()).map(|o| time(o));
        let best = (0..plan.schemes.len())
            .filter(|s| Some(*s) != plan.schemes.iter().position(|s| s.name == "UMA"))
            .filter_map(|s| Some((time(cells.get(&(m, s))?.as_ref().ok()?), s)))
            .min();
        for (s, scheme) in plan.schemes.iter().enumerate() {
            let Some(cell) = cells.get(&(m, s)) else { continue };
            let mut row = Vec::new();
            if several {
                row.push(Cell::text(machine.name.as_str()));
            }
            row.push(Cell::text(scheme.name.as_str()));
            row.extend(match cell {
                Ok(outcome) => measured(outcome, uma),
                Err(why) => vec![Cell::missing(why.as_str()); 6],
            });
            let emphasis = if best.is_some_and(|(_, b)| b == s) { Emphasis::Best } else { Emphasis::None };
            table.row_with(emphasis, row);
        }
    }
}

fn measured(outcome: &Outcome, uma: Option<Ps>) -> Vec<Cell> {
    let time = time(outcome);
    let counts = if outcome.marks.len() > 1 { &outcome.timed_counts } else { &outcome.counts };
    let (local, remote) = counts.total();
    let iterations = outcome.iterations();
    vec![
        Cell::float(time.secs(), 3),
        uma.map_or_else(
            || Cell::missing("no UMA to compare with"),
            |u| Cell::float(time.0 as f64 / u.0.max(1) as f64, 2),
        ),
        Cell::percent(remote as f64 / (local + remote).max(1) as f64, 2),
        Cell::int(outcome.moved),
        match iterations[..] {
            [first, second, ..] => Cell::float(first.secs() - second.secs(), 3),
            _ => Cell::missing("the program tells of fewer than two iterations"),
        },
        match outcome.latency.bound {
            Ps::ZERO => Cell::missing("no access to main memory"),
            bound => Cell::percent(outcome.latency.actual.0 as f64 / bound.0 as f64 - 1.0, 1),
        },
    ]
}

fn explain(table: &mut Table, plan: &Plan, cells: &Cells) {
    let named: Vec<String> = plan
        .schemes
        .iter()
        .filter(|s: &&Scheme| !s.about.is_empty())
        .map(|s| format!("{}: {}", s.name, s.about))
        .collect();
    for line in named {
        table.note(line);
    }
    if plan.schemes.iter().any(|s| s.variant == Variant::Parallel) {
        table.note("PI is another run of the program: its data has other addresses, so its cache conflicts differ from the rest");
    }
    let timed = cells.values().flatten().any(|o| o.marks.len() > 1);
    table.note(if timed {
        "times are modelled, over the timed iterations; overhead: first minus second iteration"
    } else {
        "times are modelled, over the whole run: the program does not tell of its iterations (hn_iteration)"
    });
    table.note(
        "remote: share of main-memory accesses; above bound: latency spent over that of the best static placement",
    );
}
