//! The facts that the program's process leaves for the launcher. The launcher looks up names and
//! writes the report, so neither happens in the program.

mod ranking;

use homenode_model::{Bytes, Ns};
use homenode_statistics::Sorted;
use homenode_wire::bounded::{NODES, line};
use homenode_wire::facts::{
    Facts, Guard, LoadedFile, OBJECTS, ObjectFacts as Told, ObjectTotals, PlanFacts, REGIONS, Region,
    Regions, RoundFacts, RoundTimings, Samples, WatchFacts,
};

use self::ranking::Rank;
use crate::driver::Driver;
use crate::regions::table::MOST;
use crate::watch::Object;
use crate::watch::objects::{PAST, UNSEEN};

/// The facts of this process, with its loaded files.
pub fn facts(d: &Driver, modules: Vec<LoadedFile>) -> Facts {
    let settings = d.settings();
    Facts {
        pid: std::process::id(),
        elapsed: d.elapsed(),
        own: d.own_time(),
        waited: d.serial_time(),
        cpu: d.cpu_time(),
        settled: d.settled(),
        budget: settings.budget,
        on_trial: d.is_on_trial(),
        policy: settings.policy.clone(),
        arming: settings.arming,
        nodes: settings.machine.nodes() as u64,
        pretended: settings.pretend,
        counters: d.counters(),
        known_moves: d.known_moves(),
        regions: regions(d),
        rounds: RoundFacts {
            count: d.times().rounds,
            before: times(&d.times().before),
            after: times(&d.times().after),
        },
        guard: guard(d),
        threads: d.seen_on().told(),
        objects: objects(d),
        watch: d.watched().map(|w| WatchFacts {
            source: format!("{}; {}", w.name, w.says),
            told: w.told,
            asked: w.asked,
            lost: w.lost,
            cost: w.cost,
            state: Bytes(w.state.0),
            program: Bytes(w.state.1),
            blocks: w.blocks,
            before: Samples { remote: w.before.0, all: w.before.1 },
        }),
        plan: d.plan().map(|table| PlanFacts {
            progress: table.progress(),
            scaled: table.other_team().filter(|(_, over)| !over).map(|(text, _)| line(text)),
        }),
        schedule: None,
        stopped: d.stopped().map(line),
        notes: notes(d),
        modules,
    }
}

fn guard(d: &Driver) -> Guard {
    let (hold, verdict) = d.hold_back();
    let samples =
        |share: crate::guard::holdback::RemoteShare| Samples { remote: share.remote, all: share.all };
    let (moved, held) = hold.samples();
    Guard { off: hold.off, verdict, moved: samples(moved), held: samples(held), contested: d.contested() }
}

/// What could not be done, one sentence each.
fn notes(d: &Driver) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(plan) = d.plan() {
        notes.extend(plan.other_team().filter(|(_, over)| *over).map(|(text, _)| line(text)));
        let why = plan.refused().map(line);
        notes.extend(why.map(|why| format!("pages were moved home later, for memory got no policy: {why}")));
    }
    let beyond = d.objects().beyond();
    if beyond.unarmed > 0 {
        notes.push(format!(
            "{} objects were not armed unless the program asked: {UNSEEN} others waited for their first arming when they came",
            beyond.unarmed
        ));
    }
    if beyond.forgotten > 0 {
        notes.push(format!(
            "{} objects that took part are left out of this report: they were gone, and {PAST} of other origins were kept",
            beyond.forgotten
        ));
    }
    if d.regions().len() > MOST {
        notes.push(format!(
            "regions were taken for one where there were more than {MOST} in the source, barriers included"
        ));
    }
    notes.extend(d.notes().iter().map(|note| line(note)));
    notes
}

fn regions(d: &Driver) -> Regions {
    let all = d.regions();
    let mut longest: Vec<_> = all.iter().filter(|r| r.runs > 0).collect();
    longest.sort_by_key(|r| (std::cmp::Reverse(r.time), r.key));
    let told = longest.into_iter().take(REGIONS).map(|r| Region {
        function: r.key.map_or(0, |k| k.function as u64),
        caller: r.key.map_or(0, |k| k.caller as u64),
        runs: r.runs,
        time: r.time,
        armings: r.guard.armings,
        moved: r.guard.moved,
        ping_pongs: r.guard.ping_pongs,
    });
    Regions {
        in_source: all.len() as u64,
        runs: all.iter().map(|r| r.runs).sum(),
        barriers: d.barriers(),
        longest: told.collect(),
    }
}

fn objects(d: &Driver) -> ObjectTotals {
    let all = d.objects();
    let took_part = || all.live().chain(all.past()).filter(|o| o.took_part());
    let sum = |f: fn(&Object) -> u64| took_part().map(f).sum::<u64>();
    let mut most: Vec<_> = took_part().collect();
    ranking::sort(&mut most, |o| Rank { moved: o.history.moved, bytes: o.bytes, id: o.id });
    let by_node = |list: &[u64]| list.iter().take(NODES).copied().collect();
    let told = most.into_iter().take(OBJECTS).map(|o| Told {
        origin: o.origin.clone(),
        bytes: Bytes(o.bytes as u64),
        moved: o.history.moved,
        ping_pongs: o.history.ping_pongs,
        homes: by_node(&o.history.homes),
        touched: by_node(&o.history.touched),
        python: o.python.as_deref().map(line),
        lives: o.lives,
        contested: d.is_contested(o),
    });
    ObjectTotals {
        living: all.len() as u64,
        took_part: took_part().count() as u64,
        pages: sum(|o| o.pages.count),
        moved: sum(|o| o.history.moved),
        ping_pongs: sum(|o| o.history.ping_pongs),
        most: told.collect(),
    }
}

fn times(list: &[Ns]) -> RoundTimings {
    let sorted = Sorted::of(list);
    let [low, median, high] = [1, 2, 3].map(|part| sorted.quantile(part, 4).unwrap_or(Ns::ZERO));
    RoundTimings { rounds: list.len() as u64, low, median, high, interval: sorted.interval() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_no_round_and_of_many() {
        let none = times(&[]);
        assert_eq!(([none.low, none.median, none.high], none.interval), ([Ns::ZERO; 3], None));
        let many = times(&(0..=100).rev().map(Ns).collect::<Vec<_>>());
        assert_eq!([many.low, many.median, many.high], [Ns(25), Ns(50), Ns(75)]);
        assert_eq!((many.rounds, many.interval), (101, Some((Ns(40), Ns(60)))));
    }
}
