//! `homenode compare`: every placement scheme in one table.

mod host;
mod lab;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use homenode_error::{Context, Error, Result};
use homenode_kernels::{self as kernels, Kernel};
use homenode_launch::folder::Folder;
use homenode_launch::record::directory::RecordingTarget;
use homenode_launch::record::{AccessRecorder, FILTER_LINES, OutputTarget, RecordSpec, record};
use homenode_log::recording::Recording;
use homenode_model::Topology;
use homenode_schemes::regroup::{self, Schedule};
use homenode_schemes::scheme::{self, Layout, RecordingChange, Variant};
use homenode_schemes::{self as schemes, LoadedRecording, Pass, SchemeGrid, padding};
use homenode_sim::caches::{FilterFit, filter_fit};
use homenode_sim::collect::Collect;
use homenode_sim::memory::{MemoryOptions, Percent};
use homenode_table::{Cell, Table};
use homenode_task::Task as _;
use homenode_text::compared;

use crate::args::compare::{CompareArgs, On};
use crate::args::subject::CommandSubject;
use crate::exit::Exit;
use crate::open::recording;
use crate::tables;
use crate::task::Terminal;

/// Moves that the statistics see; 48 bytes each.
const KEEP_MIGRATIONS: usize = 1 << 20;

impl CompareArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        match self.on {
            On::Simulator => {}
            On::Host => return host::run(&self, &task),
            On::Lab => return lab::run(&self),
        }
        let machines = match &self.machines[..] {
            [] => vec![schemes::default_machine()?],
            names => names.iter().map(|m| schemes::machine(m)).collect::<Result<_>>()?,
        };
        let machines: Vec<Arc<Topology>> = machines.into_iter().map(|m| Arc::new(m.topology)).collect();
        let pages = machines.iter().map(|m| schemes::page_size(m, self.page)).collect::<Result<Vec<_>>>()?;
        let subject = self.subject()?;
        let all = match &subject {
            CommandSubject::Kernel { .. } => scheme::of_kernel(),
            _ => scheme::of_recording(),
        };
        let schemes = scheme::under_schedules(scheme::select(&all, &self.policies)?, &self.schedules);
        let plan = SchemeGrid {
            machines,
            pages,
            schemes,
            jobs: self.jobs(),
            options: self.options(),
            extent: self.yardsticks.into(),
        };
        self.output.check(&compared::table(&plan))?;
        plan.check()?;
        if self.check {
            return Ok(Exit::Done);
        }
        let folder = Folder::new("compare", self.keep.as_deref())?;
        let mut runs = self.recordings(&subject, &plan, &folder, &task)?;
        let notes = self.changed(&plan, &mut runs, &folder, &task)?;
        self.simulate(&plan, &runs, notes, &task)
    }

    /// The recordings that the schemes need, made if need be.
    fn recordings(
        &self,
        subject: &CommandSubject,
        plan: &SchemeGrid,
        folder: &Folder,
        task: &Terminal,
    ) -> Result<BTreeMap<Variant, LoadedRecording>> {
        let variants: BTreeSet<Variant> = plan.schemes.iter().map(|s| s.variant.recorded()).collect();
        let mut runs = BTreeMap::new();
        for variant in variants {
            let recording = match subject {
                CommandSubject::Recording(path) => {
                    tables::refuse(path, "compare placements of")?;
                    recording(path, "compare placements of")?
                }
                CommandSubject::Program { program, args } => {
                    self.record(program.clone(), args.clone(), plan, &folder.path.join("program"), task)?
                }
                CommandSubject::Kernel { name, args } => {
                    let kernel = Kernel::find(name)?;
                    let program = kernel.build(kernels::BuildVariant::Instrumented, task)?;
                    let mut words = kernel.arguments(self.run.class.as_deref(), Some(self.threads(plan)))?;
                    words.extend(kernel_options(&kernel, variant));
                    words.extend(args.iter().cloned());
                    let path = folder.path.join(format!("{name}-{}", variant.name()));
                    self.record(program.into_os_string(), words, plan, &path, task)?
                }
            };
            if task.interrupt.asked() {
                return Err(Error::interrupted());
            }
            runs.insert(variant, LoadedRecording::new(recording)?);
        }
        Ok(runs)
    }

    /// The recordings that are changed copies of others, and what was changed.
    fn changed(
        &self,
        plan: &SchemeGrid,
        runs: &mut BTreeMap<Variant, LoadedRecording>,
        folder: &Folder,
        task: &Terminal,
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        let changes: BTreeSet<RecordingChange> = plan
            .schemes
            .iter()
            .map(|s| s.variant.change())
            .filter(|c| *c != RecordingChange::default())
            .collect();
        let mut dealt: BTreeMap<Schedule, LoadedRecording> = BTreeMap::new();
        for change in changes {
            let Some(recorded) = runs.get(&Variant::Serial) else { continue };
            let mut loaded = match change.schedule {
                None => recorded.clone(),
                Some(schedule) => {
                    if let Entry::Vacant(new) = dealt.entry(schedule) {
                        let path = folder.path.join(format!("schedule-{}", schedule.as_str()));
                        let (copy, summary) = regroup::regroup(&recorded.recording, schedule, &path, task)?;
                        notes.push(summary.describe(schedule));
                        new.insert(LoadedRecording::new(copy)?);
                    }
                    dealt[&schedule].clone()
                }
            };
            if change.padded {
                let advice = self.padding(plan, &loaded, task)?;
                let name = change.schedule.map(|s| format!("{}/", s.as_str())).unwrap_or_default();
                notes
                    .extend(advice.iter().map(|a| format!("{name}padded: {}; {}", a.change(), a.evidence())));
                if advice.is_empty() {
                    notes.push(format!(
                        "{name}padded: no array's pages are falsely shared; nothing is padded"
                    ));
                }
                loaded.padding = padding::padding(&advice);
            }
            runs.insert(Variant::Changed(change), loaded);
        }
        Ok(notes)
    }

    /// What is to be padded, on the first machine that has enough CPUs.
    fn padding(
        &self,
        plan: &SchemeGrid,
        loaded: &LoadedRecording,
        task: &Terminal,
    ) -> Result<Vec<padding::PaddingAdvice>> {
        let pass = Pass { loaded, workers: self.jobs(), task };
        let threads = pass.threads()?;
        for (machine, page) in plan.machines.iter().zip(&plan.pages) {
            if let Ok(binding) = schemes::binding(machine, Layout::Spread, threads) {
                return padding::find(&pass, machine, &binding, *page);
            }
        }
        Ok(Vec::new())
    }

    /// Threads of a program that is recorded here: one a node and at least four, but not more than
    /// 16 or the CPUs.
    fn threads(&self, plan: &SchemeGrid) -> u32 {
        let of = |m: &Arc<Topology>| m.nodes_with_cpus().len().clamp(4, 16).min(m.cpus.len());
        let most = plan.machines.iter().map(of).min().unwrap_or(1);
        self.run.threads.unwrap_or(most as u32)
    }

    fn record(
        &self,
        program: OsString,
        args: Vec<OsString>,
        plan: &SchemeGrid,
        path: &Path,
        task: &Terminal,
    ) -> Result<Recording> {
        let spec = RecordSpec {
            program,
            args,
            target: RecordingTarget::Path { path: path.into(), force: false },
            filter_lines: self.filter_lines(plan),
            threads: Some(self.threads(plan)),
            streams: OutputTarget::File,
            way: AccessRecorder::Instrumented,
        };
        task.remark(&format_args!("recording {}", spec.command()));
        let recorded = record(&spec, task)?;
        if !recorded.status.success() {
            return Err(Error::failed(format!("{} failed: {}", spec.command(), recorded.status))
                .tried(recorded.last_words())
                .hint("run it by hand first; a program that fails under the recorder alone is a bug of homenode"));
        }
        Ok(recorded.recording)
    }

    /// The filter that serves all machines: the recorder's own, or a smaller one where a cache is
    /// small.
    fn filter_lines(&self, plan: &SchemeGrid) -> u32 {
        let fits = |lines: u32| {
            let refused =
                |m: &Arc<Topology>| matches!(filter_fit(m, lines.into(), 64), FilterFit::Refused(_));
            !plan.machines.iter().any(refused)
        };
        if plan.machines.iter().any(|m| m.needs_hits()) {
            return 0; // every access counts
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
            coverage: self.coverage.and_then(Percent::new).unwrap_or_default(),
            keep_migrations: KEEP_MIGRATIONS,
            journal: self.journal.is_some(),
            collect: self.keep.is_some().then(Collect::default),
            ..MemoryOptions::default()
        }
    }

    /// Simulates and prints.
    fn simulate(
        &self,
        plan: &SchemeGrid,
        runs: &BTreeMap<Variant, LoadedRecording>,
        mut notes: Vec<String>,
        task: &Terminal,
    ) -> Result<Exit> {
        let mut partial = false;
        let (mut cells, mut measures) = (BTreeMap::new(), BTreeMap::new());
        let mut table = compared::table(plan);
        for (variant, loaded) in runs {
            let meta = &loaded.recording.meta;
            let mut approximate = Vec::new();
            for machine in &plan.machines {
                if let Some(why) = schemes::fit(machine, meta.filter_lines)? {
                    approximate.push(format!("{}: approximate: {why}", machine.name));
                }
            }
            notes.extend(approximate.iter().cloned());
            let simulated = plan.run(loaded, *variant, task)?;
            let trace = &simulated.trace;
            if cells.is_empty() {
                compared::facts(&mut table, plan, &loaded.recording, trace, self.outstanding);
                if let Some(Ok(outcome)) = simulated.cells.values().find(|c| c.is_ok()) {
                    table.fact("timed", Cell::text(schemes::timed_part(trace, outcome)));
                }
            }
            let warnings = schemes::warnings(&loaded.recording, trace);
            partial |= !warnings.is_empty();
            let run = match variant {
                _ if runs.len() == 1 => String::new(),
                Variant::Changed(_) => format!("{}: ", variant.name()),
                Variant::Serial | Variant::Parallel => format!("{} initialisation: ", variant.name()),
            };
            warnings.into_iter().for_each(|w| table.warn(format!("{run}{w}")));
            let shared = schemes::false_sharing(trace);
            if let Some(folder) = &self.keep {
                let about: Vec<String> = approximate.iter().chain(&shared).cloned().collect();
                schemes::write_datasets(folder, plan, loaded, &simulated, &about)?;
            }
            notes.extend(shared.map(|note| run + &note));
            cells.extend(simulated.cells);
            measures.extend(simulated.measures);
        }
        if let Some(folder) = &self.journal {
            schemes::write_journals(folder, plan, &cells)?;
        }
        notes.extend(schemes::idle_policies(plan, &cells));
        compared::answer(&mut table, plan, &cells);
        compared::add(&mut table, plan, &cells, &measures);
        notes.sort();
        notes.dedup();
        for note in notes {
            table.note(note);
        }
        compared::explain(&mut table, plan, &cells, &measures);
        let below = if self.statistics { compared::statistics::tables(plan, &cells) } else { Vec::new() };
        let value = |t: &Table| serde_json::from_str(&t.to_json()).context(|| "cannot make JSON".into());
        let more = below.iter().map(|t| Ok((t.name(), value(t)?))).collect::<Result<Vec<_>>>()?;
        let exit = self.output.print_with(&table, &below, &more)?;
        Ok(if partial && exit == Exit::Done { Exit::Partial } else { exit })
    }
}

/// Options of a kernel that make a variant.
fn kernel_options(kernel: &Kernel, variant: Variant) -> Vec<OsString> {
    let words: Vec<&String> = match variant {
        Variant::Serial | Variant::Changed(_) => {
            kernel.options_serial.iter().chain(&kernel.options_next_touch).collect()
        }
        Variant::Parallel => kernel.options_parallel.iter().collect(),
    };
    words.into_iter().map(OsString::from).collect()
}
