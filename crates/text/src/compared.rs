//! The table of a comparison: a row a scheme, yardsticks below.

pub mod statistics;

use std::path::Path;

use homenode_log::recording::Recording;
use homenode_model::Ps;
use homenode_order::Trace;
use homenode_schemes::scheme::{Layout, Scheme, Variant};
use homenode_schemes::yardsticks::{Measures, time};
use homenode_schemes::{self as schemes, AllMeasures, SchemeCells, SchemeGrid};
use homenode_sim::memory::Outcome;
use homenode_table::{Cell, Column, Emphasis, Table};

/// The table without rows: its columns.
pub fn table(plan: &SchemeGrid) -> Table {
    let mut columns = Vec::new();
    if plan.machines.len() > 1 {
        columns.push(Column::text("machine", "machine"));
    }
    columns.extend([
        Column::text("scheme", "scheme"),
        Column::unit("time", "model time", "s"),
        Column::number("to_uma", "× UMA"),
        Column::unit("remote", "remote", "%"),
        Column::number("moved", "pages moved"),
        Column::unit("overhead", "overhead", "s"),
        Column::unit("above_bound", "static", "%"),
        Column::unit("over_floor", "floor", "%"),
        Column::unit("over_bound", "bound", "%"),
        Column::unit("over_oracle", "page by page", "%"),
        Column::unit("over_best", "best", "%"),
    ]);
    Table::new("compare", 1, columns)
}

/// A smaller percentage of the time is no difference worth a sentence.
const WORTH: f64 = 1.0;
/// What schemes are measured against: the program as it is.
const TODAY: [&str; 2] = ["first-touch", "SI"];

/// Says for each machine which scheme is the fastest, and by how much it beats the program as it
/// is.
pub fn answer(table: &mut Table, plan: &SchemeGrid, cells: &SchemeCells) {
    for (m, machine) in plan.machines.iter().enumerate() {
        let ran = |s: usize| cells.get(&(m, s))?.as_ref().ok();
        let today = (0..plan.schemes.len()).find(|s| TODAY.contains(&plan.schemes[*s].name.as_str()));
        let Some((today, before)) = today.and_then(|s| Some((s, ran(s)?))) else { continue };
        let fastest = (0..plan.schemes.len())
            .filter_map(|s| Some((time(ran(s)?), s, ran(s)?)))
            .min_by_key(|f| (f.0, f.1));
        let Some((least, best, after)) = fastest else { continue };
        let name = match plan.schemes[best].name.as_str() {
            "UMA" => "UMA (all on one node)",
            name => name,
        };
        let today = &plan.schemes[today].name;
        let saved = (1.0 - least.0 as f64 / time(before).0.max(1) as f64) * 100.0;
        let (from, to) = (remote(before) * 100.0, remote(after) * 100.0);
        table.answer(if saved < WORTH {
            format!("{}: no scheme is faster than {today}; remote {from:.0} %", machine.name)
        } else {
            format!(
                "{}: {name} is fastest, {saved:.0} % less time than {today}; remote {from:.0} → {to:.0} %",
                machine.name
            )
        });
    }
}

/// The share of main-memory accesses that are remote, 0 to 1.
fn remote(outcome: &Outcome) -> f64 {
    let (local, remote) = outcome.timed_counts.total();
    remote as f64 / (local + remote).max(1) as f64
}

/// Adds what is true of all rows.
pub fn facts(
    table: &mut Table,
    plan: &SchemeGrid,
    recording: &Recording,
    trace: &Trace,
    outstanding: Option<u32>,
) {
    let names: Vec<String> =
        plan.machines.iter().zip(&plan.pages).map(|(m, p)| schemes::describe(m, *p, outstanding)).collect();
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

/// Adds a row a scheme, and a row a yardstick.
pub fn add(table: &mut Table, plan: &SchemeGrid, cells: &SchemeCells, measures: &AllMeasures) {
    for m in 0..plan.machines.len() {
        let uma = plan.schemes.iter().position(|s| s.name == "UMA");
        let uma_time = uma.and_then(|s| cells.get(&(m, s))).and_then(|c| c.as_ref().ok()).map(|o| time(o));
        let best = (0..plan.schemes.len())
            .filter(|s| Some(*s) != uma)
            .filter_map(|s| Some((time(cells.get(&(m, s))?.as_ref().ok()?), s)))
            .min();
        for (s, scheme) in plan.schemes.iter().enumerate() {
            let Some(cell) = cells.get(&(m, s)) else { continue };
            let emphasis = if best.is_some_and(|(_, b)| b == s) { Emphasis::Best } else { Emphasis::None };
            let values = match cell {
                Ok(outcome) => {
                    let group = measures.get(&(m, scheme.variant, scheme.layout));
                    row(&scheme.name, outcome, uma_time, group)
                }
                Err(why) => named(&scheme.name, vec![Cell::missing(why.as_str()); 10]),
            };
            table.row_with(emphasis, with_machine(plan, m, values));
        }
        // The yardsticks that most schemes share: this recording, threads spread.
        if let Some(group) = measures.get(&(m, Variant::Serial, Layout::Spread)) {
            for values in yardsticks(group, uma_time) {
                table.row_with(Emphasis::Yardstick, with_machine(plan, m, values));
            }
        }
    }
}

fn with_machine(plan: &SchemeGrid, m: usize, mut values: Vec<Cell>) -> Vec<Cell> {
    if plan.machines.len() > 1 {
        values.insert(0, Cell::text(plan.machines[m].name.as_str()));
    }
    values
}

fn named(name: &str, mut values: Vec<Cell>) -> Vec<Cell> {
    values.insert(0, Cell::text(name));
    values
}

fn yardsticks(group: &Measures, uma: Option<Ps>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for (name, value) in [("floor", group.floor), ("bound", group.bound)] {
        let mut values = vec![secs(value), to_uma(value, uma)];
        values.extend((0..4).map(|_| Cell::missing("a number, not a run")));
        values.extend(distances(value, Some(group)));
        rows.push(named(name, values));
    }
    if let Ok(oracle) = &group.oracle {
        rows.push(row("page by page", oracle, uma, Some(group)));
    }
    if let Ok(best) = &group.best {
        rows.push(row("best found", &best.outcome, uma, Some(group)));
    }
    rows
}

/// Seconds, with four digits that say something.
fn secs(time: Ps) -> Cell {
    let digits = match time.0 {
        1_000_000_000_000.. => 3,
        100_000_000_000.. => 4,
        10_000_000_000.. => 5,
        _ => 6,
    };
    Cell::float(time.secs(), digits)
}

fn to_uma(time: Ps, uma: Option<Ps>) -> Cell {
    match uma {
        Some(uma) => Cell::float(time.0 as f64 / uma.0.max(1) as f64, 2),
        None => Cell::missing("no UMA to compare with"),
    }
}

/// How much longer than each yardstick.
fn distances(time: Ps, group: Option<&Measures>) -> Vec<Cell> {
    let Some(group) = group else { return vec![Cell::missing("no yardsticks were asked for"); 4] };
    let over = |yardstick: Result<Ps, &str>| match yardstick {
        Ok(Ps::ZERO) => Cell::missing("the yardstick takes no time"),
        Ok(y) => Cell::percent(time.0 as f64 / y.0 as f64 - 1.0, 1),
        Err(why) => Cell::missing(why),
    };
    let oracle = group.oracle.as_ref().map(|o| self::time(o)).map_err(String::as_str);
    let best = group.best.as_ref().map(|b| self::time(&b.outcome)).map_err(String::as_str);
    [Ok(group.floor), Ok(group.bound), oracle, best].map(over).into()
}

fn row(name: &str, outcome: &Outcome, uma: Option<Ps>, group: Option<&Measures>) -> Vec<Cell> {
    let time = time(outcome);
    let iterations = outcome.iterations();
    let mut values = vec![
        secs(time),
        to_uma(time, uma),
        Cell::percent(remote(outcome), 2),
        Cell::int(outcome.moved),
        match iterations[..] {
            [first, second, ..] => Cell::float(first.secs() - second.secs(), 3),
            _ => Cell::missing("there are fewer than two iterations"),
        },
        match outcome.latency.bound {
            _ if group.is_none() => Cell::missing("no yardsticks were asked for"),
            Ps::ZERO => Cell::missing("no access to main memory"),
            bound => Cell::percent(outcome.latency.actual.0 as f64 / bound.0 as f64 - 1.0, 1),
        },
    ];
    values.extend(distances(time, group));
    named(name, values)
}

/// Adds notes on schemes and yardsticks.
pub fn explain(table: &mut Table, plan: &SchemeGrid, cells: &SchemeCells, measures: &AllMeasures) {
    let named: Vec<String> = plan
        .schemes
        .iter()
        .filter(|s: &&Scheme| !s.about.is_empty())
        .map(|s| format!("{}: {}", s.name, s.about))
        .collect();
    for line in named {
        table.explain(line);
    }
    if plan.schemes.iter().any(|s| s.variant == Variant::Parallel) {
        table.explain("PI is another run of the program: its data has other addresses, so its cache conflicts differ from the rest");
    }
    let timed = cells.values().flatten().any(|o| o.marks.len() > 1);
    table.note(if timed {
        "times are modelled, over the timed iterations"
    } else {
        "times are modelled, over the whole run"
    });
    table.explain("× UMA: time over that of a machine whose memory is equally far from all CPUs");
    table.explain("remote: share of main-memory accesses");
    table.explain("overhead: first minus second iteration");
    if !measures.is_empty() {
        for line in [
            "static: latency spent over that of the best static placement, without queues",
            "floor, bound, page by page, best: how much longer than that yardstick of the same recording and threads",
            "floor: all accesses local, no queues",
            "bound: no policy without replication is faster",
            "page by page: each page goes its own cheapest way, which others may crowd; simulated",
            "best: the fastest of all placements that were simulated",
        ] {
            table.explain(line);
        }
    }
    for ((m, _, _), group) in
        measures.iter().filter(|((_, v, l), _)| (*v, *l) == (Variant::Serial, Layout::Spread))
    {
        let machine = &plan.machines[*m].name;
        if let Ok(best) = &group.best {
            table.note(format!("best found on {machine}: {}", best.from));
        }
        if group.approximate > 0 {
            table.note(format!(
                "floor and bound on {machine} may be a little off: {} accesses were under way in other threads when an \
                 iteration was marked",
                group.approximate
            ));
        }
    }
}
