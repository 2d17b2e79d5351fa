//! Findings from a recording of every access, simulated on a machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use homenode_dataset::tables::Object;
use homenode_dataset::{Basis, Dataset, identity};
use homenode_error::{Error, Result};
use homenode_model::{Bytes, CacheScope, NodeId, ObjectId, Placement, Topology};
use homenode_order::Trace;
use homenode_report::Report;
use homenode_schemes::padding::{self, Advice};
use homenode_schemes::scheme::Layout;
use homenode_schemes::{self as schemes, Loaded, Pass};
use homenode_sim::collect::Collect;
use homenode_sim::memory::{MemoryError, MemoryOptions, Outcome};
use homenode_sim::run::{Enough, Job};
use homenode_simulated::Simulated;
use homenode_simulated::places::Places;
use homenode_task::Task;

use crate::against::Explained;
use crate::effect::{self, TODAY, all_local, best, dealt, planned, under};
use crate::explanation::{
    Effect, EffectBasis, Evidence, EvidenceKind, Explanation, Finding, Fix, Reason, ReasonKind, SCHEMA,
    Variable, change,
};
use crate::group::{self, Group};
use crate::jobs::Jobs;
use crate::lines::{self, LineUse};
use crate::pattern::Pattern;
use crate::remedy::{self, FixKind, How, Remedy};
use crate::usage::{Class, ObjectUse, Usage};
use crate::warning::{Warning, WarningKind};
use crate::{changed, distribution, observed, pattern, rounds, sockets};

/// A finding is left out if its first fix saves less than this percentage of the time.
pub const LEAST: f64 = 3.0;
/// So much of a long recording is simulated: its rounds are alike.
const ENOUGH: Enough = Enough { rounds: 3, accesses: 8_000_000 };
/// Accesses of a recording beyond which effects have no range: it would take three times as long.
const LONG: u64 = 20_000_000;
/// Bytes of a cache line.
const LINE: u64 = 64;
/// Fewer rounds are too few for a judgement.
const FEW_ROUNDS: usize = 3;
/// Huge pages are no larger.
const HUGE: Bytes = Bytes(32 << 20);
/// What makes the C library's allocations ask for huge pages, in front of a command.
const ASK_FOR_HUGE: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
/// Percent of the recorded time in input and output from which on a warning comes. A recorded
/// program computes several times as slowly and waits as long, so that its share is larger without
/// recording.
const WAITS: u64 = 20;

/// What to explain a recording for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The machine.
    pub machine: Arc<Topology>,
    /// Bytes of a page.
    pub page: Bytes,
    /// Findings at most.
    pub most: usize,
    /// Host threads that simulate.
    pub workers: usize,
    /// How the evidence came about, a sentence.
    pub evidence: String,
    /// Program and arguments as a person types them.
    pub command: String,
    /// The policy under which the program runs today: `first-touch`, or
    /// [`crate::numactl::INTERLEAVED`].
    pub today: &'static str,
    /// Simulate all rounds of a long recording, not only the first ones.
    pub all_rounds: bool,
}

/// Findings from a recording of every access.
///
/// # Errors
/// The recording cannot be read, or its threads do not fit the machine.
pub fn explain(loaded: &Loaded, request: &Request, task: &dyn Task) -> Result<Explanation> {
    Ok(explain_and(loaded, request, task, |_| ())?.0)
}

/// The same with the numbers of all variables.
///
/// # Errors
/// As [`explain`].
pub fn explained(loaded: &Loaded, request: &Request, task: &dyn Task) -> Result<Explained> {
    let (explanation, report) = explain_and(loaded, request, task, Report::of)?;
    Ok(Explained { explanation, report })
}

/// The findings, and what `read` makes of the data set that they rest on.
fn explain_and<T>(
    loaded: &Loaded,
    request: &Request,
    task: &dyn Task,
    read: impl FnOnce(&Dataset) -> T,
) -> Result<(Explanation, T)> {
    let machine = &request.machine;
    let pass = Pass { loaded, workers: request.workers, task };
    let approximate = schemes::fit(machine, loaded.recording.meta.filter_lines)?;
    let binding = schemes::binding(machine, Layout::Spread, pass.threads()?).map_err(|e| {
        Error::usage(format!("the recording does not fit {}", machine.name))
            .tried(e)
            .hint("record with fewer threads (--threads), or name a larger machine with -m")
    })?;
    let today = Job {
        machine: machine.clone(),
        binding,
        page: request.page,
        policy: request.today.into(),
        way: None,
        options: MemoryOptions::default(),
    };
    let mut first = today.clone();
    first.options.collect = Some(Collect::default());
    // What is missing at the end must be met.
    let mut enough = (!request.all_rounds && pass.has_ends()?).then_some(ENOUGH);
    let mut results = pass.simulate_until(std::slice::from_ref(&first), enough)?;
    let mut all = None;
    if results.stopped_early {
        all = pass.rounds()?;
        if rounds::later_differ(&pass, &today, &results, all)? {
            task.remark(&format_args!("later rounds use memory differently: all rounds are simulated"));
            enough = None;
            results = pass.simulate_until(std::slice::from_ref(&first), None)?;
        }
    }
    let differ = enough.is_none() && all.is_some();
    let outcome = results
        .outcomes
        .into_iter()
        .next()
        .ok_or_else(|| Error::failed("nothing was simulated"))?
        .map_err(|e| Error::failed("cannot simulate this recording").tried(e))?;
    let simulated = Simulated {
        recording: &loaded.recording,
        symbols: &loaded.symbols,
        machine,
        page: request.page,
        policy: request.today,
        trace: &results.trace,
        outcome: &outcome,
        incomplete: homenode_simulated::missing(&loaded.recording, &results.trace),
        notes: Vec::new(),
    };
    let missing = simulated.incomplete.clone();
    let set =
        simulated.dataset().map_err(|e| Error::failed("cannot make tables of the simulation").tried(e))?;
    let read = read(&set);
    let mut usage = Usage::of(&set);
    for it in &mut usage.objects {
        it.object.name = identity::without_slot(&it.object.name).to_owned();
    }
    let simulated = outcome.marks.len().saturating_sub(1) as u64;
    let all = if results.stopped_early { all.unwrap_or(simulated) } else { simulated };
    let run = Run {
        loaded,
        request,
        task,
        pass,
        today,
        trace: &results.trace,
        outcome: &outcome,
        usage: &usage,
        enough,
        more: all.saturating_sub(simulated),
    };
    let mut notes = set.meta().coarsened.clone();
    if run.more > 0 {
        notes.push(format!(
            "the first {simulated} of {all} rounds were simulated, and the others are taken to be like the last two of these: \
             --all-rounds simulates all"
        ));
    }
    if differ {
        notes.push("all rounds were simulated: later rounds use memory in another way than the first".into());
    }
    let emulated = loaded.recording.meta.kind == "emulated";
    let mut explanation = Explanation {
        schema: SCHEMA,
        command: loaded.recording.meta.command.clone(),
        evidence: Evidence {
            kind: if emulated { EvidenceKind::Emulator } else { EvidenceKind::Recording },
            basis: Some(if emulated { Basis::Emulated } else { Basis::Exact }),
            text: request.evidence.clone(),
        },
        machine: machine.name.clone(),
        nodes: machine.nodes.len() as u64,
        page_bytes: request.page.0,
        threads: results.trace.threads as u64,
        rounds: (simulated > 0).then_some(all),
        rounds_simulated: (simulated > 0).then_some(simulated),
        timed_ns: effect::time(&outcome, run.more),
        time_ns: (outcome.time.ns().0)
            .saturating_add(effect::time(&outcome, run.more))
            .saturating_sub(outcome.timed.ns().0),
        remote: usage.accesses.share(&usage.remote),
        warnings: run.warnings(approximate, &missing),
        findings: Vec::new(),
        no_finding: None,
        together: None,
        whole: Vec::new(),
        notes,
        missing,
    };
    // Of data that stays in the caches, only its first fetch is remote: no finding, however large
    // its share of little time.
    let (groups, padding) = if run.fits() { Default::default() } else { run.groups()? };
    let tried = groups.len();
    if tried > 0 {
        run.findings(groups, &padding, &mut explanation)?;
    }
    if explanation.findings.is_empty() {
        explanation.no_finding = Some(run.reason(&explanation, tried));
    }
    Ok((explanation, read))
}

/// A recording under way to its explanation.
struct Run<'a> {
    loaded: &'a Loaded,
    request: &'a Request,
    task: &'a dyn Task,
    pass: Pass<'a>,
    today: Job,
    trace: &'a Trace,
    outcome: &'a Outcome,
    usage: &'a Usage,
    enough: Option<Enough>,
    /// Rounds that are not simulated.
    more: u64,
}

impl<'a> Run<'a> {
    fn machine(&self) -> &Topology {
        &self.request.machine
    }

    /// Percent of the threads' working time that they wait for memory.
    fn waiting(&self) -> f64 {
        let (mut memory, mut all) = (0u128, 0u128);
        for t in &self.outcome.threads {
            memory += u128::from(t.memory.0);
            all += u128::from(t.memory.0) + u128::from(t.busy.0) + u128::from(t.moving.0);
        }
        if all == 0 { 0.0 } else { memory as f64 / all as f64 * 100.0 }
    }

    /// Bytes of all pages that were touched, and of the largest caches of the CPUs that the threads
    /// use.
    fn sizes(&self) -> (u64, u64) {
        let touched = self.outcome.collected.as_ref().map_or(0, |c| c.firsts.len() as u64);
        let machine = self.machine();
        let mut shared = Vec::new();
        let caches = machine.caches.last().map_or(0, |cache| {
            for cpu in &self.outcome.cpus {
                let node = machine.node_of(*cpu);
                let within = machine.cpus_of(node).position(|c| c == *cpu).unwrap_or(0);
                let group = match cache.scope {
                    CacheScope::Cpu => (node, within),
                    CacheScope::Group(n) => (node, within / n.max(1) as usize),
                    CacheScope::Node => (node, 0),
                };
                if !shared.contains(&group) {
                    shared.push(group);
                }
            }
            cache.size.0 * shared.len() as u64
        });
        (touched.saturating_mul(self.request.page.0), caches)
    }

    /// Whether the data stays in the caches: it is no larger, and a round fetches little of it from
    /// memory.
    fn fits(&self) -> bool {
        let (data, caches) = self.sizes();
        let lines = data / LINE;
        let rounds = self.outcome.marks.len().saturating_sub(1) as u64;
        data <= caches && self.usage.accesses.seen() <= lines.saturating_mul((rounds / 4).max(2))
    }

    /// Whether the environment asks OpenMP to bind its threads.
    fn bound(&self) -> bool {
        let environment = &self.loaded.recording.meta.environment;
        let asks = |(name, value): (&str, &str)| match name {
            "OMP_PROC_BIND" => !value.eq_ignore_ascii_case("false"),
            "OMP_PLACES" | "GOMP_CPU_AFFINITY" => !value.is_empty(),
            "KMP_AFFINITY" => !value.is_empty() && !value.contains("none") && !value.contains("disabled"),
            _ => false,
        };
        environment.iter().any(|(name, value)| asks((name, value)))
    }

    fn warnings(&self, approximate: Option<String>, missing: &[String]) -> Vec<Warning> {
        let mut all = Vec::new();
        let mut warn = |kind, text: String| all.push(Warning::new(kind, text));
        if let Some(first) = missing.first() {
            warn(WarningKind::CutOff, first.clone());
        }
        let (data, caches) = self.sizes();
        if self.fits() && data > 0 {
            warn(
                WarningKind::FitsCaches,
                format!(
                    "the data ({}) fits the caches of {} ({}): placement shows from about {} on",
                    mib(data),
                    self.machine().name,
                    mib(caches),
                    mib(caches.saturating_mul(4))
                ),
            );
        }
        if self.trace.threads == 1 {
            warn(
                WarningKind::OneThread,
                "one thread ran: all of its memory is on its node; --threads N records with more".into(),
            );
        }
        let marks = self.outcome.marks.len();
        if marks < 2 {
            warn(
                WarningKind::FewRounds,
                "no rounds of an outer loop were found: initialisation counts; hn_iteration() tells of rounds"
                    .into(),
            );
        } else if marks - 1 < FEW_ROUNDS {
            let rounds =
                if marks == 2 { "1 round counts".to_owned() } else { format!("{} rounds count", marks - 1) };
            warn(WarningKind::FewRounds, format!("only {rounds}: record a run with more of them"));
        }
        let (timed, time) = (self.outcome.timed.0, self.outcome.time.0);
        if marks > 1 && timed < time / 2 {
            let percent = 100.0 - timed as f64 / time.max(1) as f64 * 100.0;
            warn(
                WarningKind::Initialisation,
                format!(
                    "{percent:.0} % of the time lies outside of the rounds: no finding speaks of that part"
                ),
            );
        }
        if self.trace.threads > 1 {
            let work = |t: &homenode_sim::memory::ThreadTime| t.busy.0 + t.memory.0;
            let all: u64 = self.outcome.threads.iter().map(work).sum();
            let most = self.outcome.threads.iter().map(work).max().unwrap_or(0);
            if all > 0 && u128::from(most) * 100 > u128::from(all) * 80 {
                let percent = most as f64 / all as f64 * 100.0;
                warn(
                    WarningKind::Serial,
                    format!("one thread does {percent:.0} % of the work, the others wait"),
                );
            }
        }
        let ended = self.loaded.recording.meta.ended.as_ref();
        if let Some((waits, all)) = ended.and_then(|e| Some((e.io_wait_ns?, e.elapsed_ns)))
            && u128::from(waits) * 100 >= u128::from(all) * u128::from(WAITS)
            && all > 0
        {
            let percent = waits as f64 / all as f64 * 100.0;
            warn(
                WarningKind::InputOutput,
                format!(
                    "the program waits for input and output {percent:.0} % of the time while it is recorded, and \
                     relatively longer without: no finding speaks of that part"
                ),
            );
        }
        if self.waiting() < 5.0 && self.usage.accesses.seen() > 0 {
            warn(
                WarningKind::DoesNotWait,
                format!(
                    "threads wait for memory {:.1} % of their time: placement can hardly help",
                    self.waiting()
                ),
            );
        }
        if !self.trace.region_pcs.is_empty() && self.trace.threads > 1 && !self.bound() {
            warn(
                WarningKind::Unbound,
                "threads are not bound, and may leave their pages behind: OMP_PROC_BIND=spread OMP_PLACES=cores".into(),
            );
        }
        if let Some(why) = approximate {
            warn(WarningKind::Approximate, format!("counts are approximate: {why}"));
        }
        let unnamed = |o: &&ObjectUse| o.object.line.is_none() && o.object.name.contains("+0x");
        if let Some(it) = self.usage.objects.iter().find(unnamed) {
            warn(
                WarningKind::NoNames,
                format!("{} has no name: build with -g, unstripped, for variables and lines", it.object.name),
            );
        }
        all
    }

    /// Faults by group of variables, most remote accesses first, and what is to be padded.
    fn groups(&self) -> Result<(Vec<Group<'a>>, Vec<Advice>)> {
        let lines = self.lines()?;
        let padding = match lines.is_empty() {
            true => Vec::new(),
            false => padding::find(&self.pass, self.machine(), &self.today.binding, self.request.page)?,
        };
        Ok((group::groups(self.usage, &lines, &padding, self.request.page.0), padding))
    }

    /// Lines of the objects with shared pages, by the object's number.
    fn lines(&self) -> Result<BTreeMap<usize, LineUse>> {
        let wanted: Vec<usize> = (0..self.usage.objects.len())
            .filter(|i| {
                let remote = pattern::remote_by_class(&self.usage.objects[*i]);
                remote[3] > 0 && remote.iter().all(|r| *r <= remote[3])
            })
            .collect();
        let Some(collected) = self.outcome.collected.as_ref().filter(|_| !wanted.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let places = Places::new(&collected.extents, self.trace, self.request.page);
        let number: BTreeMap<ObjectId, (u16, &ObjectUse)> = (1u16..)
            .zip(&wanted)
            .map(|(n, i)| (self.usage.objects[*i].object.object, (n, &self.usage.objects[*i])))
            .collect();
        let mut object = vec![0u16; self.outcome.histogram.pages()];
        for (page, _) in self.outcome.histogram.rows() {
            let placed = places.page(page.0);
            let Some((n, it)) = placed.object.and_then(|o| number.get(&o)) else { continue };
            let block = it.pages.range(..=placed.page).next_back();
            let within = block.filter(|(first, b)| **first + b.pages > placed.page);
            if within.is_some_and(|(_, b)| b.class() == Class::Shared) {
                object[page.index()] = *n;
            }
        }
        let scope = lines::Scope {
            object,
            objects: wanted.len(),
            page_lines: (self.request.page.0 / 64).max(1).trailing_zeros(),
            marks: self.trace.iterations.map(|_| self.outcome.marks.len()),
            regions: !self.trace.region_pcs.is_empty(),
        };
        let recording = &self.loaded.recording;
        let cannot = |e: &dyn std::fmt::Display| {
            Error::failed(format!("cannot read {} once more", recording.path.display())).tried(e)
        };
        let logs = recording.logs().map_err(|e| cannot(&e))?;
        let order = homenode_order::open(&logs, self.loaded.known()).map_err(|e| cannot(&e))?;
        let go_on = || !self.task.stop_asked();
        let uses = lines::read(order, self.machine(), &self.today.binding, &scope, go_on)
            .ok_or_else(Error::interrupted)?;
        Ok(wanted.into_iter().zip(uses).collect())
    }

    /// Simulates all fixes: findings whose first fix pays, all placements together, and what helps
    /// the whole program.
    fn findings(
        &self,
        mut groups: Vec<Group<'a>>,
        padding: &[Advice],
        explanation: &mut Explanation,
    ) -> Result<()> {
        let Some(collected) = &self.outcome.collected else { return Ok(()) };
        let places = Places::new(&collected.extents, self.trace, self.request.page);
        let command = &self.request.command;
        let whole = self.whole(command);
        let mut jobs = Jobs { all: Vec::new(), ranges: Vec::new(), vary: self.trace.accesses <= LONG };
        let variants = jobs.variants(&self.today);
        let globals: Vec<usize> = whole.iter().map(|(.., job)| jobs.plain(job.clone())).collect();
        let mut local = None;
        // Simulated apart, because the arrays lie at other addresses.
        let mut apart: Vec<(usize, Vec<ObjectId>)> = Vec::new();
        let mut at: Vec<Vec<usize>> = Vec::new();
        for group in &mut groups {
            let objects = group.objects();
            let distributed = self.distribution(group, &places);
            group.remedies.extend(distributed.as_ref().map(|(remedy, _)| remedy.clone()));
            let mut own = Vec::new();
            for remedy in &group.remedies {
                // The call places pages as the first fix does.
                if let Some(first) = own.first().filter(|_| remedy.kind == FixKind::HnPlace) {
                    own.push(*first);
                    continue;
                }
                let job = match remedy.how {
                    How::Best => planned(&self.today, best(self.machine(), self.outcome, &places, &objects)),
                    How::WithoutCopies => {
                        let plan = best(self.machine(), self.outcome, &places, &objects);
                        changed::without_copies(planned(&self.today, plan), self.outcome, &places, &objects)
                    }
                    How::Deal => planned(&self.today, dealt(self.machine(), self.outcome, &places, &objects)),
                    How::Follow => {
                        let ids: Vec<String> = objects.iter().map(|o| o.0.to_string()).collect();
                        under(&self.today, format!("next-touch:at=region,objects={}", ids.join("/")))
                    }
                    How::FirstTouch => under(&self.today, TODAY),
                    How::Padded => {
                        let number = jobs.elsewhere();
                        apart.push((number, objects.clone()));
                        own.push(number);
                        continue;
                    }
                    How::Distribute => {
                        let plan = distributed.as_ref().map(|(_, plan)| plan.clone());
                        own.push(jobs.plain(planned(&self.today, plan.unwrap_or_default())));
                        continue;
                    }
                    How::InOrder | How::Bound => {
                        let in_order = || changed::in_order(&self.today, self.outcome, &places, group);
                        if let Some(job) = (remedy.how == How::InOrder).then(in_order).flatten() {
                            own.push(jobs.varied(&job));
                            continue;
                        }
                        own.push(*local.get_or_insert_with(|| jobs.varied(&all_local(&self.today))));
                        continue;
                    }
                };
                own.push(jobs.varied(&job));
            }
            at.push(own);
        }
        let placed: Vec<&Group<'_>> =
            groups.iter().filter(|g| g.remedies.first().is_some_and(places_pages)).collect();
        let together = (placed.len() > 1).then(|| {
            let objects: Vec<ObjectId> = placed.iter().flat_map(|g| g.objects()).collect();
            jobs.plain(planned(&self.today, best(self.machine(), self.outcome, &places, &objects)))
        });
        // All threads on one node, if they fit there. Where a placement makes accesses local, that
        // is no better.
        let packed = schemes::binding(self.machine(), Layout::Packed, self.today.binding.len()).ok();
        let mends = |r: &Remedy| places_pages(r) || matches!(r.how, How::FirstTouch | How::InOrder);
        let packed = packed.filter(|_| !groups.iter().filter_map(|g| g.remedies.first()).any(mends));
        let packed =
            packed.map(|binding| jobs.plain(Job { binding, policy: TODAY.into(), ..self.today.clone() }));
        let outcomes = self.pass.simulate_until(&jobs.all, self.enough)?.outcomes;
        let mut apart_outcomes = BTreeMap::new();
        for (number, objects) in apart {
            apart_outcomes.insert(number, self.padded(padding, &objects, jobs.vary)?);
        }
        let of = |number: usize| -> Vec<Option<&Outcome>> {
            if let Some(outcomes) = apart_outcomes.get(&number) {
                return outcomes.iter().map(|o| o.as_ref().ok()).collect();
            }
            let range = jobs.ranges.get(number).cloned().unwrap_or_default();
            outcomes.get(range).unwrap_or(&[]).iter().map(|o| o.as_ref().ok()).collect()
        };
        let mut today = vec![Some(self.outcome)];
        today.extend(of(variants));
        let effect = |number: usize| {
            let basis = if Some(number) == local { EffectBasis::Bound } else { EffectBasis::Simulated };
            effect::effect(basis, &today, &of(number), self.more)
        };
        let mut globals: Vec<Fix> = whole
            .into_iter()
            .zip(globals)
            .map(|((kind, text, _), number)| Fix { kind, text, at: None, effect: effect(number) })
            .collect();
        leave_out_what_adds_nothing(&mut globals);
        let mut findings: Vec<Finding> = groups
            .into_iter()
            .zip(at)
            .map(|(group, at)| self.finding(group, &at, effect, &globals))
            .filter(|f| f.fixes.first().and_then(|fix| fix.effect).is_some_and(|e| e.change() <= -LEAST))
            .collect();
        // The sort is stable: of equal ones the one with more remote accesses first.
        findings.sort_by_key(|f| std::cmp::Reverse(saved(&f.fixes)));
        findings.truncate(self.request.most);
        explanation.findings = findings;
        explanation.whole = globals;
        explanation.together = together.and_then(&effect);
        let least = |fixes: &[Fix]| fixes.iter().filter_map(|f| f.effect).map(|e| e.after_ns).min();
        let others = explanation.findings.iter().filter_map(|f| least(&f.fixes)).min();
        if let Some(one) = packed.and_then(&effect)
            && one.change() <= -LEAST
            && others.is_none_or(|after| change(after, one.after_ns) <= -LEAST)
        {
            let text = format!(
                "one node alone is expected to win, {:.0} % less time: numactl --cpunodebind=0 --membind=0 {command}",
                -one.change()
            );
            explanation.warnings.insert(0, Warning::new(WarningKind::OneNodeWins, text));
        }
        Ok(())
    }

    /// Today's program with some objects padded, each of their pages with its user, and variants.
    fn padded(
        &self,
        padding: &[Advice],
        objects: &[ObjectId],
        vary: bool,
    ) -> Result<Vec<std::result::Result<Outcome, MemoryError>>> {
        let wanted: Vec<Advice> = padding.iter().filter(|a| objects.contains(&a.object)).cloned().collect();
        let loaded = Loaded { padding: padding::padding(&wanted), ..self.loaded.clone() };
        let pass = Pass { loaded: &loaded, workers: self.request.workers, task: self.task };
        let ids: Vec<String> = objects.iter().map(|o| o.0.to_string()).collect();
        let job = under(&self.today, format!("next-touch:at=first-region,objects={}", ids.join("/")));
        let mut all = vec![job.clone()];
        if vary {
            all.extend(effect::variants(&job));
        }
        Ok(pass.simulate_until(&all, self.enough)?.outcomes)
    }

    /// The distribution that serves a group's users best, where the first fix places each page by
    /// itself.
    fn distribution(&self, group: &Group<'_>, places: &Places<'_>) -> Option<(Remedy, Placement)> {
        let machine = self.machine();
        let mut nodes: Vec<NodeId> = self.today.binding.iter().map(|cpu| machine.node_of(*cpu)).collect();
        nodes.retain(|n| machine.nodes_with_memory().contains(n));
        nodes.sort();
        nodes.dedup();
        if group.found.pattern == Pattern::RegionsDisagree || group.remedies.first()?.how != How::Best {
            return None;
        }
        let (distribution, plan) =
            distribution::best(machine, self.outcome, places, &group.objects(), &nodes)?;
        let name = &group.members.first()?.object.name;
        Some((remedy::distribute(&group.found, name, &distribution.words(self.request.page.0))?, plan))
    }

    /// What helps the whole program without a change of its source, and how it is simulated.
    fn whole(&self, command: &str) -> Vec<(FixKind, String, Job)> {
        let today = &self.today;
        let run = format!("homenode run -- {command}");
        let moved = under(today, "next-touch:at=first-region");
        let mut all = vec![(FixKind::HomenodeRun, run.clone(), moved.clone())];
        // What numactl does today is no remedy, and it stands in front of the others.
        if self.request.today != TODAY {
            return all;
        }
        let interleaved = format!("numactl --interleave=all {command}");
        all.push((FixKind::NumactlInterleave, interleaved, under(today, "round-robin")));
        let larger = |size: &&Bytes| **size > self.request.page && **size <= HUGE;
        if let Some(page) = self.machine().page_sizes.iter().find(larger).copied() {
            let with = |job: &Job| Job { page, ..job.clone() };
            all.push((FixKind::HugePages, format!("{ASK_FOR_HUGE} {command}"), with(today)));
            all.push((FixKind::HugePages, format!("{ASK_FOR_HUGE} {run}"), with(&moved)));
        }
        if let Some(machine) = sockets::merged(self.machine()) {
            let text =
                "one node a socket in the machine's firmware: NPS1 (AMD), or SNC off (Intel)".to_owned();
            all.push((FixKind::OneNodeASocket, text, Job { machine: Arc::new(machine), ..today.clone() }));
        }
        all
    }

    fn finding(
        &self,
        group: Group<'a>,
        at: &[usize],
        effect: impl Fn(usize) -> Option<Effect>,
        globals: &[Fix],
    ) -> Finding {
        let Group { members, found, remedies, .. } = group;
        let fix = |(remedy, at): (Remedy, &usize)| Fix {
            kind: remedy.kind,
            text: remedy.text,
            at: remedy.at,
            effect: effect(*at),
        };
        let mut fixes: Vec<Fix> = remedies.into_iter().zip(at).map(fix).collect();
        if self.request.today != TODAY {
            let touches =
                |f: &&mut Fix| matches!(f.kind, FixKind::ParallelFirstTouch | FixKind::MatchSchedule);
            fixes.iter_mut().filter(touches).for_each(|f| f.text += ", and leave out numactl --interleave");
        }
        // Of a table the cheap fix comes first where it pays; else the copies. Of padding likewise.
        if matches!(found.pattern, Pattern::ContestedTable | Pattern::PageFalseSharing)
            && !fixes.first().is_some_and(pays)
            && fixes.get(1).is_some_and(pays)
        {
            fixes.swap(0, 1);
        }
        let mut others: Vec<Fix> = fixes.drain(1.min(fixes.len())..).collect();
        // One of the two calls: a distribution is the shorter one.
        let after = |kind| {
            others.iter().find(|f| f.kind == kind && pays(f)).and_then(|f| f.effect).map(|e| e.after_ns)
        };
        let call = match (after(FixKind::HnPlace), after(FixKind::HnDistribute)) {
            (Some(place), Some(distribute)) if change(place, distribute) >= LEAST => FixKind::HnPlace,
            (_, Some(_)) => FixKind::HnDistribute,
            (_, None) => FixKind::HnPlace,
        };
        others.retain(|f| {
            !matches!(f.kind, FixKind::HnPlace | FixKind::HnDistribute) || f.kind == call && pays(f)
        });
        others.extend(globals.iter().filter(|f| pays(f)).cloned());
        // The sort is stable: of fixes that take as much effort the one that saves more.
        others.sort_by_key(|f| (f.kind.effort(), std::cmp::Reverse(f.effect.map_or(0, |e| e.saved_ns()))));
        fixes.extend(others);
        observed::finding(self.usage, &members, &found, fixes)
    }

    /// Why there is no finding. `tried`: groups of variables whose fixes were simulated.
    fn reason(&self, so_far: &Explanation, tried: usize) -> Reason {
        let reason = |kind, text: String| Reason { kind, text };
        let name = &self.machine().name;
        let remote = so_far.remote.percent();
        if self.usage.accesses.seen() == 0 && self.outcome.faults == 0 {
            return reason(ReasonKind::NothingRecorded, "no access to memory was recorded".into());
        }
        if self.usage.nodes < 2 {
            let text = format!("all threads run on one node of {name}: no access is remote");
            return reason(ReasonKind::OneNode, text);
        }
        if self.fits() {
            let (data, caches) = self.sizes();
            let text = format!(
                "the data ({}) fits the caches of {name} ({}): its accesses hardly reach memory",
                mib(data),
                mib(caches)
            );
            return reason(ReasonKind::FitsCaches, text);
        }
        if remote.is_none_or(|r| r < 5.0) {
            let text = format!("{:.1} % of the accesses are remote on {name}", remote.unwrap_or(0.0));
            return reason(ReasonKind::Local, text);
        }
        if self.waiting() < 5.0 {
            let text = format!("threads wait for memory {:.1} % of their time", self.waiting());
            return reason(ReasonKind::DoesNotWait, text);
        }
        let communicates = self.usage.objects.first().is_some_and(|it| {
            let remote = pattern::remote_by_class(it);
            it.stores_inside > 0 && remote.iter().all(|r| *r <= remote[3])
        });
        if communicates {
            let text = format!(
                "nodes share the pages of {} and write them: no placement helps",
                self.usage.objects[0].object.name
            );
            return reason(ReasonKind::Communication, text);
        }
        let text = match tried {
            0 => "no variable has many remote accesses".to_owned(),
            _ => format!("no fix saves {LEAST:.0} % of the time on {name} ({tried} tried)"),
        };
        reason(ReasonKind::NothingHelps, text)
    }
}

/// Whether a fix puts each page where its users wait least.
const fn places_pages(fix: &Remedy) -> bool {
    matches!(fix.how, How::Best | How::WithoutCopies)
}

/// Leaves out what takes less than [`LEAST`] percent from the time under `homenode run` alone.
fn leave_out_what_adds_nothing(whole: &mut Vec<Fix>) {
    let run = whole.iter().find(|f| f.kind == FixKind::HomenodeRun).and_then(|f| f.effect);
    let Some(run) = run.map(|e| e.after_ns) else { return };
    let combined = |f: &Fix| f.kind == FixKind::HugePages && f.text.contains("homenode run");
    let adds = |f: &Fix| f.effect.is_some_and(|e| change(run, e.after_ns) <= -LEAST);
    whole.retain(|f| !combined(f) || adds(f));
}

/// Whether a fix saves enough.
fn pays(fix: &Fix) -> bool {
    fix.effect.is_some_and(|e| e.change() <= -LEAST)
}

/// Time that the first fix saves.
fn saved(fixes: &[Fix]) -> u64 {
    fixes.first().and_then(|f| f.effect).map_or(0, |e| e.saved_ns())
}

/// A size for a person.
fn mib(bytes: u64) -> String {
    match bytes {
        b if b >= 10 << 30 => format!("{} GiB", b >> 30),
        b if b >= 10 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 20 => format!("{:.1} MiB", b as f64 / f64::from(1 << 20)),
        b => format!("{} KiB", b.div_ceil(1024)),
    }
}

impl From<&Object> for Variable {
    fn from(object: &Object) -> Self {
        Self {
            id: object.id.clone(),
            name: object.name.clone(),
            allocated: observed::allocated(object),
            bytes: object.bytes.0,
            allocations: object.allocations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [mib(1), mib(3 << 20), mib(96 << 20), mib(20 << 30)],
            ["1 KiB", "3.0 MiB", "96 MiB", "20 GiB"]
        );
    }
}
