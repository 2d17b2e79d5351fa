//! A plan and what it is expected to bring, as a table.

use std::cmp::Reverse;

use homenode_model::Bytes;
use homenode_plan::choose::{Chosen, NextMachine};
use homenode_plan::file::{PlanFile, PlanObject};
use homenode_plan::make;
use homenode_schemes as schemes;
use homenode_schemes::regroup::Schedule;
use homenode_sim::memory::Outcome;
use homenode_sim::yardsticks::Meets;
use homenode_table::{Cell, Column, Table};

/// The table of a plan: the `top` largest objects; `schedules`: others than the recorded one were
/// tried.
pub fn table(chosen: &Chosen, target: &NextMachine, top: usize, schedules: bool) -> Table {
    let Chosen { plan, schedule, first_touch, with_plan, .. } = chosen;
    let mut table = rows(plan, top);
    table.answer(answer(&target.topology.name, first_touch, with_plan));
    if schedules {
        table.answer(pair(*schedule, &plan.objects));
        table.fact("schedule", Cell::text(schedule.map_or("recorded", Schedule::as_str)));
        for tried in &chosen.tried {
            let name = tried.schedule.map_or("recorded", Schedule::as_str);
            let about = tried.about.as_deref().map(|a| format!(" ({a})")).unwrap_or_default();
            let seconds = tried.timed.secs();
            table.note(format!("{name} schedule with its own plan: {seconds:.6} s{about}"));
        }
    }
    let machine = schemes::describe(&target.topology, Bytes(plan.page), None);
    table.fact("machine", Cell::text(machine));
    table.fact("recording", Cell::text(plan.counts.as_str()));
    table.fact("timed", Cell::text(chosen.timed.as_str()));
    table.fact("remote_first_touch", remote(first_touch.timed_counts.total()));
    table.fact("remote_plan", remote(with_plan.timed_counts.total()));
    let Meets { accesses, remote: away } = chosen.bound;
    table.fact("remote_latency_bound", remote((accesses - away, away)));
    table.explain(
        "remote: share of the timed memory accesses that go to another node, as 'homenode compare' simulates them. The \
         plan keeps to what the nodes hold and balances their load; the latency bound does neither",
    );
    table
}

/// Which schedule and which distribution of the largest object go together.
fn pair(schedule: Option<Schedule>, objects: &[PlanObject]) -> String {
    let how = match schedule {
        None => "the program's own schedule".to_owned(),
        Some(s) => format!("{} schedule", s.as_str()),
    };
    let with = match schedule {
        Some(Schedule::Block | Schedule::Cyclic | Schedule::Affinity) => {
            format!("; homenode run --schedule {} --plan FILE", how.split(' ').next().unwrap_or(""))
        }
        _ => "; homenode run --plan FILE".to_owned(),
    };
    let largest = objects.iter().max_by_key(|o| (o.bytes, Reverse(o.order)));
    let pages = largest.map_or_else(String::new, |o| format!(" and {} pages of {}", make::shape(o), o.name));
    format!("best: {how}{pages}{with}")
}

/// What the plan is expected to bring.
fn answer(machine: &str, today: &Outcome, planned: &Outcome) -> String {
    let share = |(local, remote): (u64, u64)| remote as f64 / (local + remote).max(1) as f64 * 100.0;
    let (before, after) = (share(today.timed_counts.total()), share(planned.timed_counts.total()));
    let saved = match today.timed.0 {
        0 => 0.0,
        all => (all as f64 - planned.timed.0 as f64) / all as f64 * 100.0,
    };
    let time = match saved {
        s if s >= 0.5 => format!("{s:.0} % less time than first touch"),
        s if s <= -0.5 => format!("{:.0} % more time than first touch", -s),
        _ => "no less time than first touch".to_owned(),
    };
    format!("{machine}: the plan takes {time} (simulated); remote {before:.0} → {after:.0} %")
}

/// The remote share of local and remote accesses.
fn remote((local, remote): (u64, u64)) -> Cell {
    Cell::percent(remote as f64 / (local + remote).max(1) as f64, 1)
}

/// The table without rows.
pub fn columns() -> Table {
    let columns = vec![
        Column::text("object", "object"),
        Column::unit("bytes", "size", "KiB"),
        Column::number("stretches", "stretches"),
        Column::text("homes", "lives on (node:%)"),
    ];
    Table::new("planned", 1, columns)
}

fn rows(plan: &PlanFile, top: usize) -> Table {
    let mut table = columns();
    let mut largest: Vec<&PlanObject> = plan.objects.iter().collect();
    largest.sort_by_key(|o| (Reverse(o.bytes), o.order));
    for object in largest.iter().take(top) {
        let by_node = |n: &u16| -> u64 { object.homes.iter().filter(|h| h.2 == *n).map(|h| h.1).sum() };
        let all = object.homes.iter().map(|h| h.1).sum::<u64>().max(1);
        let shares =
            plan.nodes.iter().map(|n| (n, (by_node(n) * 100 + all / 2) / all)).filter(|(_, p)| *p > 0);
        let shares: Vec<String> = shares.map(|(n, p)| format!("{n}:{p}")).collect();
        table.row(vec![
            Cell::text(object.name.as_str()),
            Cell::int(object.bytes.div_ceil(1024)),
            Cell::int(object.homes.len() as u64),
            Cell::text(shares.join(" ")),
        ]);
    }
    if plan.objects.len() > top {
        table.note(format!("{} more objects: --top shows them", plan.objects.len() - top));
    }
    table
}
