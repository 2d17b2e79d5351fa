//! What the program's process leaves for the launcher: facts, a line each. The launcher finds names for addresses and writes
//! the closing report, so that nothing of that happens in the program.
//!
//! A line is a word and fields, separated by single blanks; text comes last. The first line is [`FIRST`]; a report whose last
//! line is not `end` was cut off.

pub mod touched;

use std::fmt::Write;

use homenode_model::Ns;

use crate::driver::{Arming, Driver};
use crate::guard::Verdict;
use crate::regions::table::MOST;
use crate::watch::objects::{PAST, UNSEEN};
use crate::watch::{Object, Origin};

/// The first line: name and version of the format.
pub const FIRST: &str = "homenode-run 1";

/// Objects that are told of one by one, those that moved most first.
const OBJECTS: usize = 64;
/// Regions that are told of one by one, those that ran longest first.
const REGIONS: usize = 64;

/// A loaded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// What is added to the addresses in the file.
    pub base: u64,
    /// Its lowest address, relative to `base`.
    pub low: u64,
    /// One past its highest.
    pub high: u64,
    /// Where it is.
    pub path: String,
}

/// The facts.
pub fn text(driver: &Driver) -> String {
    let mut out = String::with_capacity(16 << 10);
    // Writing to a string does not fail.
    let _ = facts(&mut out, driver);
    out
}

/// What is left to say after an error of homenode's own.
pub fn of_an_error(why: &str) -> String {
    format!("{FIRST}\nstopped {}\nend\n", one_line(why))
}

fn facts(out: &mut String, d: &Driver) -> std::fmt::Result {
    let settings = d.settings();
    writeln!(out, "{FIRST}")?;
    writeln!(out, "elapsed {}", d.elapsed().0)?;
    writeln!(out, "own {}", d.own_time().0)?;
    writeln!(out, "waited {}", d.serial_time().0)?;
    writeln!(out, "cpu {}", d.cpu_time().0)?;
    if let Some(s) = d.settled() {
        writeln!(out, "settled {} {} {}", s.own.0, s.cpu.0, s.regions)?;
    }
    writeln!(out, "budget {} {}", settings.budget.permille, settings.budget.fixed.0)?;
    writeln!(out, "policy {}", settings.policy)?;
    let arming = match settings.arming {
        Arming::Asked => "asked",
        Arming::First => "first",
        Arming::Region => "region",
        Arming::Watch => "watch",
    };
    writeln!(out, "arming {arming}")?;
    writeln!(
        out,
        "nodes {} {}",
        settings.machine.nodes(),
        if settings.pretend { "pretended" } else { "real" }
    )?;
    let c = d.counters();
    writeln!(
        out,
        "counters {} {} {} {} {} {} {}",
        c.arms, c.armed_pages, c.faults, c.copies, c.kernel_moves, c.lost_touches, c.own_ns
    )?;
    regions(out, d)?;
    let times = d.times();
    writeln!(out, "rounds {}", times.rounds)?;
    for (name, list) in [("before", &times.before), ("after", &times.after)] {
        let [low, median, high] = quartiles(list);
        write!(out, "{name} {} {} {} {}", list.len(), low.0, median.0, high.0)?;
        let (from, to) = interval(list).unwrap_or_default();
        writeln!(out, " {} {}", from.0, to.0)?;
    }
    let (hold, verdict) = d.hold_back();
    let (moved, held) = hold.samples();
    let verdict = match verdict {
        _ if hold.off => "off",
        Verdict::Open => "open",
        Verdict::Pays => "pays",
        Verdict::AtHome => "at-home",
        Verdict::Evener => "evener",
        Verdict::NoGain => "no-gain",
        Verdict::Harms => "harms",
    };
    writeln!(out, "hold {verdict} {} {} {} {}", moved.remote, moved.all, held.remote, held.all)?;
    objects(out, d)?;
    if let Some(w) = d.watched() {
        let (told, asked, lost, cost, (state, program)) = (w.told, w.asked, w.lost, w.cost.0, w.state);
        let (blocks, (remote, all)) = (w.blocks, w.before);
        writeln!(out, "watch {told} {asked} {lost} {cost} {state} {program} {blocks} {remote} {all}")?;
        writeln!(out, "source {}; {}", w.name, w.says)?;
    }
    if let Some(plan) = d.plan() {
        let p = plan.progress();
        writeln!(
            out,
            "plan {} {} {} {} {} {} {}",
            p.planned, p.met, p.other_size, p.pages, p.there, p.untouched, p.policies
        )?;
        if let Some((text, over)) = plan.other_team() {
            writeln!(out, "{} {}", if over { "note" } else { "scaled" }, one_line(text))?;
        }
        if let Some(why) = plan.refused() {
            writeln!(out, "note pages were moved home later, for memory got no policy: {}", one_line(why))?;
        }
    }
    limits(out, d)?;
    if let Some(why) = d.stopped() {
        writeln!(out, "stopped {}", one_line(why))?;
    }
    for note in d.notes() {
        writeln!(out, "note {}", one_line(note))?;
    }
    Ok(())
}

/// What there was more of than homenode has room for.
fn limits(out: &mut String, d: &Driver) -> std::fmt::Result {
    let beyond = d.objects().beyond();
    if beyond.unarmed > 0 {
        writeln!(
            out,
            "note {} objects were not armed unless the program asked: {UNSEEN} others waited for their first arming when they came",
            beyond.unarmed
        )?;
    }
    if beyond.forgotten > 0 {
        writeln!(
            out,
            "note {} objects that took part are left out of this report: they were gone, and {PAST} of other origins were kept",
            beyond.forgotten
        )?;
    }
    if d.regions().len() > MOST {
        writeln!(
            out,
            "note regions were taken for one where there were more than {MOST} in the source, barriers included"
        )?;
    }
    Ok(())
}

fn regions(out: &mut String, d: &Driver) -> std::fmt::Result {
    let all = d.regions();
    let runs: u64 = all.iter().map(|r| r.runs).sum();
    writeln!(out, "regions {} {runs} {}", all.len(), d.barriers())?;
    let mut longest: Vec<_> = all.iter().filter(|r| r.runs > 0).collect();
    longest.sort_by_key(|r| (std::cmp::Reverse(r.time), r.key));
    for r in longest.into_iter().take(REGIONS) {
        let (function, caller) = r.key.map_or((0, 0), |k| (k.function, k.caller));
        let g = r.guard;
        let (runs, time) = (r.runs, r.time.0);
        writeln!(
            out,
            "region {function:#x} {caller:#x} {runs} {time} {} {} {}",
            g.armings, g.moved, g.ping_pongs
        )?;
    }
    Ok(())
}

fn objects(out: &mut String, d: &Driver) -> std::fmt::Result {
    let all = d.objects();
    let took_part = || all.live().chain(all.past()).filter(|o| o.took_part());
    let sum = |f: fn(&Object) -> u64| took_part().map(f).sum::<u64>();
    writeln!(
        out,
        "objects {} {} {} {} {}",
        all.len(),
        took_part().count(),
        sum(|o| o.pages.count),
        sum(|o| o.moved),
        sum(|o| o.ping_pongs)
    )?;
    let mut most: Vec<_> = took_part().collect();
    most.sort_by_key(|o| (std::cmp::Reverse((o.moved, o.bytes)), o.id));
    for o in most.into_iter().take(OBJECTS) {
        let list = |l: &[u64]| match l {
            [] => "-".to_owned(),
            _ => l.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
        };
        let origin = origin(&o.origin);
        let (homes, touched) = (list(&o.homes), list(&o.touched));
        writeln!(out, "object {origin} {} {} {} {homes} {touched}", o.bytes, o.moved, o.ping_pongs)?;
        file(out, &o.origin)?;
        if let Some(frames) = &o.python {
            writeln!(out, "python {}", one_line(frames))?;
        }
    }
    Ok(())
}

fn origin(origin: &Origin) -> String {
    match origin {
        Origin::Static(address) => format!("static:{address:#x}"),
        Origin::Library(_, address) => format!("library:{address:#x}"),
        Origin::Allocated(frames) => {
            let frames: Vec<_> = frames.iter().take_while(|f| **f != 0).map(|f| format!("{f:#x}")).collect();
            format!("alloc:{}", frames.join(","))
        }
    }
}

/// The line that a library's static object has besides.
fn file(out: &mut String, origin: &Origin) -> std::fmt::Result {
    match origin {
        Origin::Library(path, _) => writeln!(out, "file {}", one_line(path)),
        _ => Ok(()),
    }
}

/// Adds the loaded files.
pub fn modules(out: &mut String, modules: &[Module]) {
    for m in modules {
        let _ = writeln!(out, "module {:#x} {:#x} {:#x} {}", m.base, m.low, m.high, one_line(&m.path));
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// An interval that holds the median in 95 % of the cases, whatever the distribution: order statistics of a binomial with one
/// half. None of fewer than six.
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
