//! `homenode compare`: every placement scheme in one table.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use homenode_log::recording::Recording;
use homenode_model::{Ps, Topology};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::Trace;

use crate::args::compare::CompareArgs;
use crate::args::subject::Subject;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::simulate::scheme::{self, Scheme, Variant};
use crate::simulate::{self, Cells, Loaded, Plan};
use crate::table::{Cell, Column, Emphasis, Table};

impl CompareArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let interrupt = Interrupt::install(Second::Ends).context(|| "cannot watch for Ctrl-C".into())?;
        let machines: Vec<_> = self.machines.iter().map(|m| simulate::machine(m)).collect::<Result<_>>()?;
        let machines: Vec<Arc<Topology>> = machines.into_iter().map(|m| Arc::new(m.topology)).collect();
        let pages = machines.iter().map(|m| simulate::page_size(m, self.page)).collect::<Result<Vec<_>>>()?;
        let Subject::Recording(path) = self.subject()? else {
            return Err(CliError::failed("only recordings so far"));
        };
        let recording = Recording::open(&path).context(|| "cannot compare".into())?;
        let schemes = scheme::select(&scheme::of_recording(true), &self.policies)?;
        let plan = Plan { machines, pages, schemes, jobs: self.jobs(), options: self.options() };
        let mut runs = BTreeMap::new();
        runs.insert(Variant::Serial, Loaded::new(recording)?);
        self.simulate(&plan, &runs, &interrupt)
    }

    fn jobs(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cpus, usize::from)
    }

    fn options(&self) -> MemoryOptions {
        MemoryOptions { outstanding: self.outstanding.and_then(NonZeroU32::new), ..MemoryOptions::default() }
    }

    /// Simulates and prints.
    fn simulate(&self, plan: &Plan, runs: &BTreeMap<Variant, Loaded>, interrupt: &Interrupt) -> Result<Exit> {
        let mut notes = Vec::new();
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
            notes.extend(simulate::warnings(&loaded.recording, &trace));
            cells.extend(of_variant);
        }
        rows(&mut table, plan, &cells);
        notes.sort();
        notes.dedup();
        for note in notes {
            table.note(note);
        }
        explain(&mut table, plan, &cells);
        self.output.print(&table)
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
