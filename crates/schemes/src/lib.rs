//! From a recording and machines to simulated schemes, for `compare` and `show`.

#![forbid(unsafe_code)]

pub mod memory;
pub mod padding;
pub mod regroup;
pub mod scheme;
pub mod yardsticks;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_error::{Context, Error, FailureKind, Result, suggest};
use homenode_log::Mark;
use homenode_log::file::LogReader;
use homenode_log::recording::{Recording, Static, Symbols};
use homenode_machine::Machine;
use homenode_model::{Bytes, CpuId, NodeId, Placement, Topology};
use homenode_order::found::Copies;
use homenode_order::padding::Padding;
use homenode_order::space::StaticObject;
use homenode_order::{OpenError, Order, ProgramFacts, Trace};
use homenode_policy::{Offer, PolicyContext, SpecError, plan, requirements};
use homenode_sim::caches::{FilterFit, filter_fit};
use homenode_sim::collect::Collect;
use homenode_sim::memory::{MemoryError, MemoryOptions, Outcome};
use homenode_sim::run::{self, Enough, Job, RunError};
use homenode_sim::yardsticks::Meets;
use homenode_simulated::Names;
use homenode_task::Task;
use scheme::{Layout, Scheme, Variant};
use yardsticks::{Measures, YardstickSet};

/// A recording, opened, with its names.
#[derive(Clone)]
pub struct LoadedRecording {
    /// The recording.
    pub recording: Recording,
    /// Names for its addresses.
    pub symbols: Symbols,
    /// Objects whose rows are to lie on pages of their own.
    pub padding: Padding,
}

impl LoadedRecording {
    /// Reads what is needed beside the logs.
    ///
    /// # Errors
    /// The recording's files are damaged.
    pub fn new(recording: Recording) -> Result<Self> {
        let symbols = recording.symbols().context(|| "cannot read the recording's names".into())?;
        Ok(Self { recording, symbols, padding: Padding::new() })
    }

    /// What is known of it beside its logs.
    pub fn known(&self) -> ProgramFacts {
        ProgramFacts { statics: self.statics(), padding: self.padding.clone(), copies: self.copies() }
    }

    /// Places that several addresses have, by address.
    fn copies(&self) -> Copies {
        let mut first = HashMap::new();
        let places = self.symbols.places.iter().filter(|(_, place)| place.line.is_some());
        let copies = places.filter_map(|(pc, place)| {
            let one = *first.entry(place).or_insert(*pc);
            (one != *pc).then_some((*pc, one))
        });
        copies.collect()
    }

    /// Its static objects, as the canonical address space wants them.
    fn statics(&self) -> Vec<StaticObject> {
        let object = |s: &Static| StaticObject {
            module: s.module,
            address: s.address,
            bytes: s.bytes,
            name: s.name.clone(),
        };
        self.symbols.statics.iter().map(object).collect()
    }

    /// What its objects are called.
    pub fn names(&self) -> Names<'_> {
        Names::new(&self.recording, &self.symbols)
    }
}

/// Simulates schemes of one recording on machines; results by (machine, scheme) in the order asked
/// for. Where a scheme cannot run on a machine, the reason stands in its place.
pub struct SchemeGrid {
    /// Machines.
    pub machines: Vec<Arc<Topology>>,
    /// Page size of each machine.
    pub pages: Vec<Bytes>,
    /// Schemes.
    pub schemes: Vec<Scheme>,
    /// Host threads.
    pub jobs: usize,
    /// Outstanding misses instead of the machine's.
    pub options: MemoryOptions,
    /// What to measure them against.
    pub extent: YardstickSet,
}

impl SchemeGrid {
    /// Reads the policies' options, so that a wrong one is known before anything is recorded.
    ///
    /// # Errors
    /// A usage error for an unknown policy, option or value.
    pub fn check(&self) -> Result<()> {
        for (machine, page) in self.machines.iter().zip(&self.pages) {
            let context = PolicyContext::of(machine, *page);
            for scheme in &self.schemes {
                match homenode_policy::build(&scheme.policy, &context) {
                    // The recording yields what it needs.
                    Ok(_) | Err(SpecError::NeedsPlan { .. }) => {}
                    Err(e) => {
                        return Err(Error::usage(format!("cannot simulate the policy '{}'", scheme.policy))
                            .tried(e)
                            .hint("'homenode run --help' lists the policies and their options"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// A scheme's result, or why there is none.
pub type SchemeCell = std::result::Result<Box<Outcome>, String>;

/// Results by index of the machine and of the scheme.
pub type SchemeCells = BTreeMap<(usize, usize), SchemeCell>;

/// What schemes are measured against, by index of the machine, recording and layout.
pub type AllMeasures = BTreeMap<(usize, Variant, Layout), Measures>;

/// What the schemes of one recording yield.
pub struct SchemeResults {
    /// About the recording.
    pub trace: Trace,
    /// By scheme.
    pub cells: SchemeCells,
    /// Yardsticks of the groups that have some.
    pub measures: AllMeasures,
    /// Homes that were worked out beforehand, by index of the machine and of the scheme.
    pub planned: BTreeMap<(usize, usize), PlannedHomes>,
}

/// Homes that were worked out beforehand, for a scheme with the policy `plan`.
#[derive(Clone, Debug, Default)]
pub struct PlannedHomes {
    /// Page by page.
    pub homes: Arc<Placement>,
    /// What the accesses of the timed part meet with each page at its cheapest home, whether there
    /// is room or not.
    pub bound: Meets,
}

/// The page size to simulate with.
///
/// # Errors
/// The machine does not offer the one asked for.
pub fn page_size(machine: &Topology, asked: Option<Bytes>) -> Result<Bytes> {
    let smallest = machine.page_sizes.first().copied().unwrap_or(Bytes::kib(4));
    match asked {
        None => Ok(smallest),
        Some(p) if machine.page_sizes.contains(&p) => Ok(p),
        Some(p) => {
            let sizes: Vec<String> =
                machine.page_sizes.iter().map(|s| homenode_error::size::show(*s)).collect();
            Err(Error::usage(format!("{} has no pages of {}", machine.name, homenode_error::size::show(p)))
                .hint(format!("it has {}", sizes.join(", "))))
        }
    }
}

/// The machine of a name or file.
///
/// # Errors
/// There is none, or it makes no sense.
pub fn machine(spec: &str) -> Result<Machine> {
    homenode_machine::resolve(spec).map_err(|e| match &e {
        homenode_machine::Error::Unknown { spec, known, .. } => {
            suggest::unknown("machine", spec, known, "homenode machine list")
                .tried("it is neither 'this', nor a preset, nor a file that exists")
        }
        _ => Error::usage(e.to_string())
            .hint("'homenode machine show 2s-xeon' prints a machine file that is right"),
    })
}

/// Whether what a filter let through is exact for a machine, and else why not.
///
/// # Errors
/// The machine cannot be simulated from this recording.
pub fn fit(machine: &Topology, filter_lines: u32) -> Result<Option<String>> {
    match filter_fit(machine, filter_lines.into(), 64) {
        FilterFit::Exact => Ok(None),
        FilterFit::Approximate(why) => Ok(Some(why)),
        FilterFit::Refused(why) => Err(Error::usage(format!(
            "{} cannot be simulated from a recording with a filter of {filter_lines} lines",
            machine.name
        ))
        .hint(why)),
    }
}

/// The filter that a recorder has for a machine: the largest whose counts are exact, else the
/// largest that fits. `usual` is the recorder's own.
pub fn filter_lines(machine: &Topology, usual: u32) -> u32 {
    if machine.needs_hits() {
        return 0; // every access counts
    }
    let fit = |lines: u32| filter_fit(machine, lines.into(), 64);
    let filters = [usual, 1024, 256];
    let exact = filters.into_iter().find(|lines| matches!(fit(*lines), FilterFit::Exact));
    let nearly = || filters.into_iter().find(|lines| !matches!(fit(*lines), FilterFit::Refused(_)));
    exact.or_else(nearly).unwrap_or(0)
}

/// A machine and how it is simulated, in a few words.
pub fn describe(machine: &Topology, page: Bytes, outstanding: Option<u32>) -> String {
    let n = outstanding.unwrap_or(machine.core.outstanding);
    let waits = if n == 1 { "blocking".to_owned() } else { format!("{n} outstanding misses") };
    format!(
        "{} ({} nodes, {} pages, {waits})",
        machine.name,
        machine.nodes.len(),
        homenode_error::size::show(page)
    )
}

/// What the reader of a result should know of lines that several threads use at once.
pub fn false_sharing(trace: &Trace) -> Option<String> {
    let b = trace.bypass;
    let barriers = !trace.region_pcs.is_empty() && b.fences == 0;
    (b.lines > 0).then(|| {
        let capped = match b.capped {
            0 => String::new(),
            n => format!("; {n} threads reached the cap of {}", homenode_log::mark::BYPASS_CAP),
        };
        format!(
            "{}: {} accesses to them bypassed the filter{capped}",
            homenode_log::sharing::describe(b.lines, barriers),
            homenode_error::digits::grouped(b.accesses)
        )
    })
}

/// What the reader of a result must know about the recording.
pub fn warnings(recording: &Recording, trace: &Trace) -> Vec<String> {
    homenode_simulated::missing(recording, trace)
}

/// What of the recording is timed, in words.
pub fn timed_part(trace: &Trace, outcome: &Outcome) -> String {
    match (trace.iterations, outcome.marks.len()) {
        (None, _) | (_, 0) => {
            "everything: the program tells of no iterations (hn_iteration), and none were found".to_owned()
        }
        (Some(_), 1) => "from the iteration that the program tells of to its end".to_owned(),
        (Some(source), marks) => format!("{} iterations {}", marks - 1, source.as_str()),
    }
}

/// A name as a part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-=.".contains(c) { c } else { '_' }).collect()
}

/// What stands in for this machine where it has a single node: a current one with two sockets.
const TWO_SOCKETS: &str = "2s-xeon";

/// The machine that is simulated unless another is asked for: this one where it has two nodes with
/// memory, else one with two sockets.
///
/// # Errors
/// This machine cannot be looked at.
pub fn default_machine() -> Result<Machine> {
    let this = machine("this")?;
    if this.topology.nodes_with_memory().len() < 2 { machine(TWO_SOCKETS) } else { Ok(this) }
}

/// The data set of a recording under one policy on one machine. What stands in its notes: what the
/// reader should know of the model.
///
/// # Errors
/// The recording does not fit the machine; the policy is not known or cannot run; `task` asks to
/// stop.
pub fn dataset(
    loaded: &LoadedRecording,
    machine: Arc<Topology>,
    page: Option<Bytes>,
    policy: &str,
    task: &dyn Task,
) -> Result<Dataset> {
    let page = page_size(&machine, page)?;
    let mut notes: Vec<String> = Vec::new();
    if let Some(why) = fit(&machine, loaded.recording.meta.filter_lines)? {
        notes.push(format!("approximate: {why}"));
    }
    let plan = SchemeGrid {
        machines: vec![machine],
        pages: vec![page],
        schemes: scheme::select(&scheme::of_recording(), &[policy.to_owned()])?,
        jobs: 1,
        options: MemoryOptions { collect: Some(Collect::default()), ..MemoryOptions::default() },
        extent: YardstickSet::None,
    };
    let simulated = plan.run(loaded, Variant::Serial, task)?;
    notes.extend(false_sharing(&simulated.trace));
    let outcome = match simulated.cells.get(&(0, 0)) {
        Some(Ok(outcome)) => outcome,
        Some(Err(why)) => return Err(Error::failed("cannot simulate this recording").tried(why)),
        None => return Err(Error::failed("nothing was simulated")),
    };
    plan.what_happened(loaded, &simulated, (0, 0), outcome, notes)
        .dataset()
        .context(|| "cannot make a data set of this simulation".into())
}

/// Writes the data set of each scheme of `variant` to a folder of its own, `MACHINE-SCHEME.hnrec`.
///
/// # Errors
/// A data set cannot be written.
pub fn write_datasets(
    folder: &Path,
    plan: &SchemeGrid,
    loaded: &LoadedRecording,
    simulated: &SchemeResults,
    notes: &[String],
) -> Result<()> {
    for (place, cell) in &simulated.cells {
        let Ok(outcome) = cell else { continue };
        let (machine, scheme) = (&plan.machines[place.0], &plan.schemes[place.1]);
        let mut notes = notes.to_vec();
        if !scheme.about.is_empty() {
            notes.insert(0, format!("{}: {}", scheme.name, scheme.about));
        }
        let path = folder.join(format!("{}-{}.hnrec", plain(&machine.name), plain(&scheme.name)));
        plan.what_happened(loaded, simulated, *place, outcome, notes)
            .write(&path)
            .context(|| format!("cannot keep the data set of {}", scheme.name))
            .map_err(|e| e.hint("name a folder with --keep that has no data sets yet"))?;
    }
    Ok(())
}

/// Writes the journal of each scheme that has one to a file of its own, `MACHINE-SCHEME.hnjournal`.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write_journals(folder: &Path, plan: &SchemeGrid, cells: &SchemeCells) -> Result<()> {
    std::fs::create_dir_all(folder).context(|| format!("cannot make the folder {}", folder.display()))?;
    for ((m, s), cell) in cells {
        if let Some(journal) = cell.as_ref().ok().and_then(|outcome| outcome.journal.as_ref()) {
            let (machine, scheme) = (plain(&plan.machines[*m].name), plain(&plan.schemes[*s].name));
            let path = folder.join(format!("{machine}-{scheme}.hnjournal"));
            std::fs::write(&path, journal).context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Policies that could not act because the recording lacks what they act on, and what would help.
pub fn idle_policies(plan: &SchemeGrid, cells: &SchemeCells) -> Vec<String> {
    let of = |(place, cell): (&(usize, usize), &SchemeCell)| {
        let (outcome, spec) = (cell.as_ref().ok()?, &plan.schemes[place.1].policy);
        let offer = Offer {
            counts: true,
            iterations: outcome.marks.len() as u64,
            regions: outcome.regions.iter().map(|r| r.instances).sum(),
        };
        // Whether the plan is there does not change what a policy needs.
        let context =
            PolicyContext::of(&plan.machines[place.0], plan.pages[place.0]).with_plan(Arc::default());
        requirements(spec, &context).ok()?.lacking(spec, offer)
    };
    cells.iter().filter_map(of).collect()
}

/// The CPUs of a program's threads.
///
/// # Errors
/// The machine has too few.
pub fn binding(
    machine: &Topology,
    layout: Layout,
    threads: usize,
) -> std::result::Result<Vec<CpuId>, homenode_machine::Error> {
    match layout {
        Layout::Spread => homenode_machine::spread(machine, threads),
        Layout::Packed => {
            let node = machine.nodes_with_cpus().into_iter().next().unwrap_or(NodeId(0));
            homenode_machine::packed(machine, node, threads)
        }
    }
}

/// The policy whose homes are worked out before.
pub const PLAN: &str = "plan";
/// The same with homes by the criterion of the policy `competitive`.
const PLAN_COMPETITIVE: &str = "plan:by=competitive";
/// Percent of the least cost within which a planned page's homes are as good as each other.
const PLAN_SLACK: u32 = 0;

impl SchemeGrid {
    /// What the simulator did in one cell, to be made a data set of.
    fn what_happened<'a>(
        &'a self,
        loaded: &'a LoadedRecording,
        simulated: &'a SchemeResults,
        (machine, scheme): (usize, usize),
        outcome: &'a Outcome,
        notes: Vec<String>,
    ) -> homenode_simulated::Simulated<'a> {
        homenode_simulated::Simulated {
            recording: &loaded.recording,
            symbols: &loaded.symbols,
            machine: &self.machines[machine],
            page: self.pages[machine],
            policy: &self.schemes[scheme].policy,
            trace: &simulated.trace,
            outcome,
            incomplete: warnings(&loaded.recording, &simulated.trace),
            notes,
        }
    }

    /// Runs the schemes of `variant` over one recording, and what they are measured against.
    ///
    /// # Errors
    /// Nothing can be simulated; a scheme of its own that cannot run has its reason in its cell.
    pub fn run(&self, loaded: &LoadedRecording, variant: Variant, task: &dyn Task) -> Result<SchemeResults> {
        let pass = Pass { loaded, workers: self.jobs, task };
        let order = pass.open()?;
        let (mut jobs, mut places, mut cells) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (m, machine) in self.machines.iter().enumerate() {
            for (s, scheme) in self.schemes.iter().enumerate().filter(|(_, s)| s.variant == variant) {
                match binding(machine, scheme.layout, order.threads()) {
                    Err(e) => drop(cells.insert((m, s), Err(e.to_string()))),
                    Ok(binding) => {
                        places.push((m, s));
                        jobs.push(Job {
                            machine: machine.clone(),
                            binding,
                            page: self.pages[m],
                            policy: scheme.policy.clone(),
                            way: None,
                            options: self.options.clone(),
                        });
                    }
                }
            }
        }
        let ahead = pass.plan_ahead(&mut jobs)?;
        let planned = ahead.into_iter().map(|(job, planned)| (places[job], planned)).collect();
        let groups = self.groups(&places);
        let tallied: Vec<usize> = groups.values().copied().collect();
        let first = pass.run(order, &jobs, &tallied, "simulating").map_err(|e| pass.failed(e))?;
        for (place, outcome) in places.iter().zip(first.outcomes) {
            cells.insert(*place, outcome.map(Box::new).map_err(|e: MemoryError| e.to_string()));
        }
        let mut measures = BTreeMap::new();
        let mut second = Vec::new();
        for ((m, layout, job), yardsticks) in
            groups.iter().map(|((m, layout), job)| (*m, *layout, *job)).zip(&first.yardsticks)
        {
            let Ok(yardsticks) = yardsticks else { continue };
            measures.insert((m, variant, layout), Measures::of(yardsticks));
            if self.extent == YardstickSet::All && layout == Layout::Spread {
                let of_group = places.iter().filter(|(pm, s)| *pm == m && self.schemes[*s].layout == layout);
                let named = of_group.filter_map(|p| {
                    let outcome = cells.get(p)?.as_ref().ok()?;
                    Some((self.schemes[p.1].name.as_str(), outcome.as_ref()))
                });
                let group = yardsticks::SchemeGroup { job: &jobs[job], yardsticks, schemes: named.collect() };
                second.push(((m, variant, layout), group));
            }
        }
        if !second.is_empty() {
            let (keys, groups): (Vec<_>, Vec<_>) = second.into_iter().unzip();
            let order = pass.open()?;
            let simulate = |jobs: &[Job]| pass.run(order, jobs, &[], "simulating yardsticks for");
            let all = yardsticks::second_pass(&groups, simulate).map_err(|e| pass.failed(e))?;
            measures.extend(keys.into_iter().zip(all));
        }
        Ok(SchemeResults { trace: first.trace, cells, measures, planned })
    }

    /// A job of each machine and layout that yardsticks are wanted for.
    fn groups(&self, places: &[(usize, usize)]) -> BTreeMap<(usize, Layout), usize> {
        let mut groups = BTreeMap::new();
        if self.extent != YardstickSet::None {
            for (job, (m, s)) in places.iter().enumerate() {
                groups.entry((*m, self.schemes[*s].layout)).or_insert(job);
            }
        }
        groups
    }
}

/// Why a pass ended early.
enum Stop {
    /// The simulation says why.
    Run(RunError),
    /// As the user is told.
    Told(Error),
}

/// A pass over a recording.
pub struct Pass<'a> {
    /// The recording.
    pub loaded: &'a LoadedRecording,
    /// Host threads.
    pub workers: usize,
    /// Who waits for it.
    pub task: &'a dyn Task,
}

impl Pass<'_> {
    /// What is planned beforehand is planned from the same recording: its counts of the timed part
    /// behind the caches, which do not depend on where pages live. The plans, by job.
    ///
    /// # Errors
    /// The recording cannot be simulated.
    pub fn plan_ahead(&self, jobs: &mut [Job]) -> Result<Vec<(usize, PlannedHomes)>> {
        let wanted = |job: &Job| job.policy.split(':').next() == Some(PLAN);
        let ahead: Vec<usize> = (0..jobs.len()).filter(|i| wanted(&jobs[*i])).collect();
        if ahead.is_empty() {
            return Ok(Vec::new());
        }
        let first = |i: &usize| Job {
            policy: "first-touch".into(),
            options: MemoryOptions { journal: false, collect: None, ..jobs[*i].options.clone() },
            ..jobs[*i].clone()
        };
        let probes: Vec<Job> = ahead.iter().map(first).collect();
        let probed = self.tally(&probes)?;
        let mut all = Vec::new();
        for (i, (outcome, yardsticks)) in
            ahead.into_iter().zip(probed.outcomes.into_iter().zip(probed.yardsticks))
        {
            let search = yardsticks.map_err(|e| self.cannot(&e))?.search;
            let homes = if jobs[i].policy == PLAN_COMPETITIVE {
                let context = PolicyContext::of(&jobs[i].machine, jobs[i].page);
                // A probe that fails leaves a plan of nothing, and the job itself says why.
                outcome.map(|o| plan::best(&context, &o.references(), PLAN_SLACK)).unwrap_or_default()
            } else {
                search.plan()
            };
            let planned = PlannedHomes { homes: Arc::new(homes), bound: search.meets(&search.cheapest()) };
            jobs[i].options.plan = Some(planned.homes.clone());
            all.push((i, planned));
        }
        Ok(all)
    }

    /// Simulates jobs.
    ///
    /// # Errors
    /// Nothing can be simulated.
    pub fn simulate(&self, jobs: &[Job]) -> Result<run::Results> {
        self.run(self.open()?, jobs, &[], "simulating").map_err(|e| self.failed(e))
    }
    /// Simulates jobs up to the end of the round in which there is `enough`; none: to the end of
    /// the recording.
    ///
    /// # Errors
    /// As [`Pass::simulate`].
    pub fn simulate_until(&self, jobs: &[Job], enough: Option<Enough>) -> Result<run::Results> {
        self.run_until(self.open()?, jobs, &[], enough, "simulating").map_err(|e| self.failed(e))
    }
    /// Whether each log has an end and no damage, which a simulation that stops early does not
    /// meet.
    ///
    /// # Errors
    /// The recording's folder cannot be read.
    pub fn has_ends(&self) -> Result<bool> {
        let recording = &self.loaded.recording;
        let logs = recording.logs().context(|| format!("cannot read {}", recording.path.display()))?;
        let ends = |path: &std::path::PathBuf| {
            let mut ended = false;
            let mark = |mark| ended |= matches!(mark, Mark::ThreadEnd { .. });
            let read = LogReader::open(path).and_then(|mut log| log.scan(mark, |_| ()));
            read.is_ok() && ended
        };
        Ok(logs.iter().all(ends))
    }
    /// Rounds of the recording, told or found; none where there are none.
    ///
    /// # Errors
    /// Its logs cannot be read.
    pub fn rounds(&self) -> Result<Option<u64>> {
        let recording = &self.loaded.recording;
        let cannot = || format!("cannot read {}", recording.path.display());
        let mut marks = 0u64;
        let mut count = |mark| marks += u64::from(matches!(mark, Mark::Iteration { .. }));
        recording.for_marks(&mut count).context(cannot)?;
        if marks > 0 {
            return Ok(Some(marks - 1));
        }
        let logs = recording.logs().context(cannot)?;
        let begun: Vec<_> =
            logs.into_iter().filter(|log| !matches!(LogReader::open_begun(log), Ok(None))).collect();
        let found =
            homenode_order::found::find(&begun, &self.loaded.copies()).map_err(|e| self.cannot(&e))?;
        Ok(found.map(|begins| begins.rounds() as u64))
    }
    /// Simulates jobs and tallies what the yardsticks of each need.
    ///
    /// # Errors
    /// As [`Pass::simulate`].
    pub fn tally(&self, jobs: &[Job]) -> Result<run::Results> {
        let all: Vec<usize> = (0..jobs.len()).collect();
        self.run(self.open()?, jobs, &all, "planning from").map_err(|e| self.failed(e))
    }
    /// Accesses of the recording, as its threads' ends tell; `None` where an end is missing.
    fn accesses(&self) -> Option<u64> {
        let recording = &self.loaded.recording;
        let (mut passed, mut ends) = (0u64, 0);
        let add = |mark| {
            if let Mark::Totals { passed: more, .. } = mark {
                passed = passed.saturating_add(more);
                ends += 1;
            }
        };
        recording.for_last_marks(add).ok()?;
        (passed > 0 && recording.logs().ok()?.len() == ends).then_some(passed)
    }
    /// Threads of the recording.
    ///
    /// # Errors
    /// Its logs cannot be read.
    pub fn threads(&self) -> Result<usize> {
        Ok(self.open()?.threads())
    }
    /// The recording in its canonical order.
    ///
    /// # Errors
    /// Its logs cannot be read.
    pub fn open(&self) -> Result<Order<LogReader>> {
        let recording = &self.loaded.recording;
        let logs = recording.logs().context(|| format!("cannot read {}", recording.path.display()))?;
        let order = homenode_order::open(&logs, self.loaded.known());
        order.map_err(|e| match e {
            OpenError::Empty if self.is_cut_off(logs.len()) => Error::failed(format!(
                "{} was cut off before its first access was written",
                recording.path.display()
            ))
            .tried(e)
            .hint("record again, and let the program run for longer")
            .kind(FailureKind::Partial),
            e => self.cannot(&e),
        })
    }
    /// Whether a recording whose `logs` logs hold no record was cut off.
    fn is_cut_off(&self, logs: usize) -> bool {
        let ended = self.loaded.recording.meta.ended.as_ref();
        logs > 0 || ended.is_none_or(|ended| ended.signal.is_some())
    }
    fn failed(&self, stop: Stop) -> Error {
        match stop {
            Stop::Run(RunError::Stopped) => Error::interrupted(),
            Stop::Run(e) => self.cannot(&e),
            Stop::Told(error) => error,
        }
    }
    fn cannot(&self, why: &dyn std::error::Error) -> Error {
        let path = self.loaded.recording.path.display();
        Error::failed(format!("cannot simulate {path}"))
            .tried(why)
            .hint(format!("'homenode rec check {path}' says what is damaged"))
    }
    fn run(
        &self,
        order: Order<LogReader>,
        jobs: &[Job],
        tallied: &[usize],
        doing: &str,
    ) -> std::result::Result<run::Results, Stop> {
        self.run_until(order, jobs, tallied, None, doing)
    }
    fn run_until(
        &self,
        order: Order<LogReader>,
        jobs: &[Job],
        tallied: &[usize],
        enough: Option<Enough>,
        doing: &str,
    ) -> std::result::Result<run::Results, Stop> {
        let path = &self.loaded.recording.path;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let mut bound = memory::Bound::of_this_machine().map_err(Stop::Told)?;
        let mut is_over = false;
        // Of the first rounds it is known only afterwards where they end.
        let total = if enough.is_none() { self.accesses() } else { None };
        if let Some(line) = bound.told(total) {
            self.task.remark(&line);
        }
        let counted = if total.is_some() { "" } else { ", accesses" };
        let what = format!("{doing} {}{counted}", name.display());
        let mut progress = self.task.progress(&what, total);
        let mut told = 0;
        let results = run::run_until(order, jobs, tallied, self.workers, enough, |accesses| {
            progress.advance(accesses - told);
            told = accesses;
            is_over = bound.exceeded();
            !is_over && !self.task.stop_asked()
        });
        if is_over {
            return Err(Stop::Told(bound.error(&path.display(), jobs.len())));
        }
        let results = results.map_err(Stop::Run)?;
        progress.finish();
        Ok(results)
    }
}
