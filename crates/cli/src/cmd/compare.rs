//! `homenode compare`: every placement scheme in one table.

mod lab;
mod rows;
mod statistics;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use homenode_log::recording::Recording;
use homenode_model::Topology;
use homenode_sim::caches::{FilterFit, filter_fit};
use homenode_sim::memory::{MemoryOptions, Percent};

use crate::args::compare::{CompareArgs, On};
use crate::args::subject::Subject;
use crate::counted;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::kernels::{self, Kernel};
use crate::output::say;
use crate::recorder::directory::Target;
use crate::recorder::{FILTER_LINES, RecordSpec, Streams, Way, record};
use crate::simulate::folder::Folder;
use crate::simulate::scheme::{self, Variant};
use crate::simulate::{self, Loaded, Plan};
use crate::table::Table;

/// What is simulated unless something else is asked for.
const MACHINE: &str = "sf15k";
/// Moves that the statistics see; 48 bytes each.
const KEEP_MIGRATIONS: usize = 1 << 20;

impl CompareArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let interrupt = Interrupt::install(Second::Ends).context(|| "cannot watch for Ctrl-C".into())?;
        if self.on == On::Lab {
            return lab::run(&self);
        }
        let names = if self.machines.is_empty() { vec![MACHINE.to_owned()] } else { self.machines.clone() };
        let machines: Vec<_> = names.iter().map(|m| simulate::machine(m)).collect::<Result<_>>()?;
        let machines: Vec<Arc<Topology>> = machines.into_iter().map(|m| Arc::new(m.topology)).collect();
        let pages = machines.iter().map(|m| simulate::page_size(m, self.page)).collect::<Result<Vec<_>>>()?;
        let subject = self.subject()?;
        let all = match &subject {
            Subject::Kernel { .. } => scheme::of_kernel(),
            _ => scheme::of_recording(),
        };
        let schemes = scheme::select(&all, &self.policies)?;
        let plan = Plan {
            machines,
            pages,
            schemes,
            jobs: self.jobs(),
            options: self.options(),
            extent: self.yardsticks,
        };
        let folder = Folder::new("compare", self.keep.as_deref())?;
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
                Subject::Recording(path) => {
                    let recording = Recording::open(path).context(|| "cannot compare".into())?;
                    counted::refuse(&recording, "compare placements of")?;
                    recording
                }
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
            way: Way::Instrumented,
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
            coverage: self.coverage.and_then(Percent::new).unwrap_or_default(),
            keep_migrations: KEEP_MIGRATIONS,
            journal: self.journal.is_some(),
            ..MemoryOptions::default()
        }
    }

    /// Simulates and prints.
    fn simulate(&self, plan: &Plan, runs: &BTreeMap<Variant, Loaded>, interrupt: &Interrupt) -> Result<Exit> {
        let (mut notes, mut partial) = (Vec::new(), false);
        let (mut cells, mut measures) = (BTreeMap::new(), BTreeMap::new());
        let mut table = rows::table(plan);
        for (variant, loaded) in runs {
            let meta = &loaded.recording.meta;
            for machine in &plan.machines {
                if let Some(why) = simulate::fit(machine, meta.filter_lines)? {
                    notes.push(format!("{}: approximate: {why}", machine.name));
                }
            }
            let simulated = plan.run(loaded, *variant, self.quiet, interrupt)?;
            let trace = simulated.trace;
            if cells.is_empty() {
                rows::facts(&mut table, plan, &loaded.recording, &trace, self.outstanding);
            }
            let warnings = simulate::warnings(&loaded.recording, &trace);
            partial |= !warnings.is_empty();
            let run =
                if runs.len() > 1 { format!("{} initialisation: ", variant.name()) } else { String::new() };
            notes.extend(simulate::false_sharing(&trace).map(|note| run + &note));
            notes.extend(warnings);
            cells.extend(simulated.cells);
            measures.extend(simulated.measures);
        }
        if let Some(folder) = &self.journal {
            simulate::write_journals(folder, plan, &cells)?;
        }
        notes.extend(simulate::idle_policies(plan, &cells));
        rows::add(&mut table, plan, &cells, &measures);
        notes.sort();
        notes.dedup();
        for note in notes {
            table.note(note);
        }
        rows::explain(&mut table, plan, &cells, &measures);
        let below = if self.statistics { statistics::tables(plan, &cells) } else { Vec::new() };
        let value = |t: &Table| serde_json::from_str(&t.to_json()).context(|| "cannot make JSON".into());
        let more = below.iter().map(|t| Ok((t.name(), value(t)?))).collect::<Result<Vec<_>>>()?;
        let exit = self.output.print_with(&table, &below, &more)?;
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
