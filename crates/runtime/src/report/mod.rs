//! The facts that the program's process leaves for the launcher. The launcher looks up names and
//! writes the report, so neither happens in the program.

mod ranking;

use homenode_model::{Bytes, Ns};
use homenode_wire::bounded::{NODES, line};
use homenode_wire::facts::{
    Facts, Guard, Module, OBJECTS, Object as Told, Objects, Plan, REGIONS, Region, Regions, Rounds, Samples,
    Times, Watch,
};

use self::ranking::Rank;
use crate::driver::Driver;
use crate::regions::table::MOST;
use crate::watch::Object;
use crate::watch::objects::{PAST, UNSEEN};

/// The facts of this process, with its loaded files.
pub fn facts(d: &Driver, modules: Vec<Module>) -> Facts {
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
        rounds: Rounds {
            count: d.times().rounds,
            before: times(&d.times().before),
            after: times(&d.times().after),
        },
        guard: guard(d),
        threads: d.seen_on().told(),
        objects: objects(d),
        watch: d.watched().map(|w| Watch {
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
        plan: d.plan().map(|table| Plan {
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

fn objects(d: &Driver) -> Objects {
    let all = d.objects();
    let took_part = || all.live().chain(all.past()).filter(|o| o.took_part());
    let sum = |f: fn(&Object) -> u64| took_part().map(f).sum::<u64>();
    let mut most: Vec<_> = took_part().collect();
    ranking::sort(&mut most, |o| Rank { moved: o.moved, bytes: o.bytes, id: o.id });
    let by_node = |list: &[u64]| list.iter().take(NODES).copied().collect();
    let told = most.into_iter().take(OBJECTS).map(|o| Told {
        origin: o.origin.clone(),
        bytes: Bytes(o.bytes as u64),
        moved: o.moved,
        ping_pongs: o.ping_pongs,
        homes: by_node(&o.homes),
        touched: by_node(&o.touched),
        python: o.python.as_deref().map(line),
        lives: o.lives,
        contested: d.is_contested(o),
    });
    Objects {
        living: all.len() as u64,
        took_part: took_part().count() as u64,
        pages: sum(|o| o.pages.count),
        moved: sum(|o| o.moved),
        ping_pongs: sum(|o| o.ping_pongs),
        most: told.collect(),
    }
}

fn times(list: &[Ns]) -> Times {
    let [low, median, high] = quartiles(list);
    Times { rounds: list.len() as u64, low, median, high, interval: interval(list) }
}

/// A 95 % confidence interval of the median for any distribution, by order statistics of a binomial
/// with one half. None for fewer than six values.
fn interval(list: &[Ns]) -> Option<(Ns, Ns)> {
    let n = list.len();
    let below = if n <= 1000 {
        // P(fewer than k of n) by its terms; 2⁻¹⁰⁰⁰ is a number still.
        let (mut k, mut term) = (0, 0.5_f64.powi(n as i32));
        let mut sum = term;
        while sum <= 0.025 {
            k += 1;
            term *= (n + 1 - k) as f64 / k as f64;
            sum += term;
        }
        k
    } else {
        let n = n as f64;
        (n / 2.0 - 0.98 * n.sqrt()) as usize
    };
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    Some((*sorted.get(below.checked_sub(1)?)?, *sorted.get(n.checked_sub(below)?)?))
}

/// First quartile, median, third quartile; zeros of nothing.
fn quartiles(list: &[Ns]) -> [Ns; 3] {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    let at = |n: usize| sorted.get((sorted.len().saturating_sub(1)) * n / 4).copied().unwrap_or(Ns::ZERO);
    [at(1), at(2), at(3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_medians_interval_is_that_of_the_tables() {
        let of = |n: u64| interval(&(1..=n).rev().map(Ns).collect::<Vec<_>>());
        assert_eq!([of(0), of(1), of(5)], [None; 3]);
        // Ranks as tables of the sign test have them.
        for (n, from, to) in [(6, 1, 6), (8, 1, 8), (9, 2, 8), (20, 6, 15), (50, 18, 33), (70, 27, 44)] {
            assert_eq!(of(n), Some((Ns(from), Ns(to))), "{n}");
        }
        assert_eq!((of(1000), of(1001)), (Some((Ns(469), Ns(532))), Some((Ns(469), Ns(533)))));
    }

    #[test]
    fn quartiles_of_few_and_many() {
        assert_eq!(quartiles(&[]), [Ns(0); 3]);
        assert_eq!(quartiles(&[Ns(7)]), [Ns(7); 3]);
        let many: Vec<Ns> = (0..=100).rev().map(Ns).collect();
        assert_eq!(quartiles(&many), [Ns(25), Ns(50), Ns(75)]);
    }
}
