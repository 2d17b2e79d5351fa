//! The closing report, for people and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use homenode_dataset::foreign;
use homenode_model::Ns;
use homenode_wire::facts::{Arming, Facts, KnownMoves, ObjectFacts, Region, RoundTimings, Samples};
use serde_json::{Value, json};

use crate::advice::{self, SourceNames};
use crate::answer::{Answer, PREFIX};
use crate::schedule;
use crate::text::{COLUMNS, mib, percent, seconds, wrapped};
use crate::worked::{self, Worked};

/// Schema and version of the JSON form.
pub const SCHEMA: &str = "homenode/run/2";

/// Everything that a report is made of.
#[derive(Debug)]
pub struct RunReport<'a> {
    /// From the program's start to its end.
    pub elapsed: Duration,
    /// What was run.
    pub command: String,
    /// The policy as asked for.
    pub policy: String,
    /// What a person should know of how it ran.
    pub told: Vec<String>,
    /// What stood in the way before the program started.
    pub before: Vec<String>,
    /// What processes left behind.
    pub processes: &'a [Facts],
    /// Names by process.
    pub names: &'a [SourceNames],
}

/// Why there may be nothing to tell of.
const NO_REPORT: &str =
    "no process left a report: it was killed, or ended by _exit or exec, before homenode could write one";

/// Processes that the report describes one by one.
const PROCESSES: usize = 4;

impl RunReport<'_> {
    /// The answer: at most three lines of [`COLUMNS`] columns, and one of the loops where homenode
    /// was to hand them out.
    pub fn answer(&self) -> String {
        let mut lines = match Answer::of(self.processes, self.names, &self.command) {
            Some(answer) => answer.lines().to_vec(),
            None => self.nothing_done(),
        };
        let room = COLUMNS - PREFIX.len();
        // Where only loops were looked at, they are the answer's first line.
        if !self.processes.first().is_some_and(worked::looked_at_loops_alone) {
            lines
                .extend(schedule::of(self.processes).map(|d| format!("{PREFIX}{}", schedule::line(d, room))));
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// Why there is nothing to tell of any process.
    fn nothing_done(&self) -> Vec<String> {
        let why = match self.before.as_slice() {
            [] => NO_REPORT.into(),
            [one] => one.clone(),
            [one, rest @ ..] => format!("{one}; {} more with -v", rest.len()),
        };
        let text = format!("{PREFIX}nothing was moved: {}", foreign::clean(&why));
        wrapped(&text, COLUMNS, 3)
    }

    /// The answer, and behind it everything that is known.
    pub fn text(&self) -> String {
        let mut out = self.answer();
        let _ = writeln!(
            out,
            "  ran        {} ({}), policy {}",
            foreign::clean(&self.command),
            seconds(Ns(nanos(self.elapsed))),
            foreign::clean(&self.policy)
        );
        for note in &self.told {
            let _ = writeln!(out, "  note       {}", foreign::clean(note));
        }
        for note in &self.before {
            let _ = writeln!(out, "  could not: {}", foreign::clean(note));
        }
        if self.processes.is_empty() && self.before.is_empty() {
            let _ = writeln!(out, "  could not: {NO_REPORT}");
        }
        let with_regions =
            self.processes.iter().filter(|f| f.regions.runs > 0 || f.counters.arms > 0).count();
        let shown = with_regions.clamp(1, PROCESSES).min(self.processes.len());
        for (facts, names) in self.processes.iter().zip(self.names).take(shown) {
            let _ = process(&mut out, facts, names, with_regions > 1);
        }
        if with_regions > shown {
            let _ = writeln!(out, "  and {} more processes: --json tells of all", with_regions - shown);
        }
        out
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let processes: Vec<Value> =
            self.processes.iter().zip(self.names).map(|(f, n)| process_json(f, n)).collect();
        json!({
            "schema": SCHEMA,
            "answer": Answer::of(self.processes, self.names, &self.command)
                .map(|a| json!({ "worked": a.worked, "cost": a.cost, "next": a.next })),
            "command": self.command,
            "policy": self.policy,
            "elapsed_ns": nanos(self.elapsed),
            "notes": self.told,
            "could_not": self.before,
            "processes": processes,
        })
    }
}

fn process(out: &mut String, f: &Facts, names: &SourceNames, several: bool) -> std::fmt::Result {
    if several {
        writeln!(out, " process {}", f.pid)?;
    }
    if let (0, Some(why)) = (f.nodes, &f.stopped) {
        return writeln!(out, "  stopped    {}; what it did before is not known", foreign::clean(why));
    }
    if worked::looked_at_loops_alone(f) {
        return f.schedule.iter().flat_map(schedule::details).try_for_each(|line| writeln!(out, "  {line}"));
    }
    // What it came to stands first, and next to it why it came to no more.
    result(out, f)?;
    if let Some(why) = &f.stopped {
        writeln!(out, "  stopped    {}", foreign::clean(why))?;
    }
    obstacles(out, f)?;
    if f.regions.runs > 0 || f.counters.arms > 0 {
        what_moved(out, f)?;
        plan(out, f)?;
        watch(out, f)?;
        remote(out, f)?;
        iteration(out, f)?;
        if f.arming == Arming::Region {
            per_region(out, f, names)?;
        }
    }
    for line in f.schedule.iter().flat_map(schedule::details) {
        writeln!(out, "  {line}")?;
    }
    threads(out, f)?;
    costs(out, f)?;
    for line in advice::sentences(f, names) {
        writeln!(out, "  advice     {line}")?;
    }
    Ok(())
}

fn what_moved(out: &mut String, f: &Facts) -> std::fmt::Result {
    let (o, c) = (&f.objects, &f.counters);
    writeln!(
        out,
        "  moved      {} pages to another node (exact), {} of these back again (ping-pongs); {} copied at a touch, {} moved by \
         the kernel; {} arms, {} faults",
        o.moved, o.ping_pongs, c.copies, c.kernel_moves, c.arms, c.faults
    )?;
    writeln!(
        out,
        "  watched    {} objects armed, looked at or moved: {} pages, {} (exact); {} lived at the end; {} {}",
        o.took_part,
        o.pages,
        mib(o.pages),
        o.living,
        f.nodes,
        if f.pretended { "pretended nodes" } else { "nodes" }
    )?;
    writeln!(
        out,
        "  regions    {} in the source, run {} times, {} barriers in them (exact)",
        f.regions.in_source, f.regions.runs, f.regions.barriers
    )
}

/// What could not be done.
fn obstacles(out: &mut String, f: &Facts) -> std::fmt::Result {
    for note in &f.notes {
        writeln!(out, "  could not: {}", foreign::clean(note))?;
    }
    if f.counters.lost_touches > 0 {
        writeln!(
            out,
            "  could not: {} touches came too fast to be told (exact); their pages moved all the same",
            f.counters.lost_touches
        )?;
    }
    Ok(())
}

/// Where the program's threads were seen.
fn threads(out: &mut String, f: &Facts) -> std::fmt::Result {
    let t = f.threads;
    if t.looks == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "  threads    {} seen, {} of them not bound to a CPU, {} changed nodes (sampled, {} looks){}",
        t.threads,
        t.unbound,
        t.changed_nodes,
        t.looks,
        if t.changed_nodes > 0 { "; --bind binds them" } else { "" }
    )
}

/// What homenode has cost.
fn costs(out: &mut String, f: &Facts) -> std::fmt::Result {
    writeln!(
        out,
        "  own time   {} of {} of CPU time ({}; allowed: {})",
        seconds(f.own),
        seconds(f.cpu),
        percent(f.own.0, f.cpu.0),
        if f.on_trial {
            "3 % or 50 ms, until a gain shows".to_owned()
        } else {
            format!("{} % + {}", f.budget.permille as f64 / 10.0, seconds(f.budget.fixed))
        },
    )?;
    if f.waited > Ns::ZERO {
        writeln!(
            out,
            "  waited     {} of {} for it, with the team or the caller at rest ({}; allowed: as much of this time)",
            seconds(f.waited),
            seconds(f.elapsed),
            percent(f.waited.0, f.elapsed.0),
        )?;
    }
    known_moves(out, f)?;
    match f.settled.filter(|_| f.counters.arms > 0) {
        Some(s) => writeln!(
            out,
            "  settled    {} of {} of CPU time ({}) in the last {} regions, in which nothing armed was touched any more",
            seconds(s.own),
            seconds(s.cpu),
            percent(s.own.0, s.cpu.0),
            s.regions
        ),
        None => Ok(()),
    }
}

/// What moves of pages with a known target cost, if some were made while the team ran.
fn known_moves(out: &mut String, f: &Facts) -> std::fmt::Result {
    let m = f.known_moves;
    if m.beside == 0 {
        return Ok(());
    }
    let each = |time: Ns, pages: u64| seconds(Ns(time.0 / pages.max(1)));
    writeln!(
        out,
        "  moves      {} pages while the team ran ({} of a thread's CPU time), {} while the team slept (and waited {})",
        m.beside,
        seconds(m.spare),
        m.asleep,
        seconds(m.waited),
    )?;
    match m.compared {
        0 => writeln!(out, "             no region ran with and without moves, so nothing was compared"),
        n => writeln!(
            out,
            "             {n} regions took {} longer for {} pages ({} a page; {} while the team slept)",
            seconds(m.longer),
            m.compared_pages,
            each(m.longer, m.compared_pages),
            each(m.waited, m.asleep),
        ),
    }
}

fn process_json(f: &Facts, names: &SourceNames) -> Value {
    let (o, c) = (&f.objects, &f.counters);
    let object = |o: &ObjectFacts| {
        json!({
            "name": advice::name(o, &f.objects.most, names),
            "static": o.origin.is_static(),
            "bytes": o.bytes.0,
            "pages_moved": o.moved,
            "ping_pongs": o.ping_pongs,
            "first_homes": o.homes,
            "touched_pages_by_node": o.touched,
            "python": o.python,
            "lives": o.lives,
        })
    };
    let region = |r: &Region| {
        json!({
            "name": region_name(r, names),
            "runs": r.runs,
            "time_ns": r.time.0,
            "armings": r.armings,
            "pages_moved": r.moved,
            "ping_pongs": r.ping_pongs,
        })
    };
    // Two values more than the macro can nest.
    let mut all = json!({
        "pid": f.pid,
        "complete": true,
        "nodes": f.nodes,
        "pretended": f.pretended,
        "elapsed_ns": f.elapsed.0,
        "own_ns": f.own.0,
        "waited_ns": f.waited.0,
        "cpu_ns": f.cpu.0,
        "settled": f.settled.map(|s| json!({ "own_ns": s.own.0, "cpu_ns": s.cpu.0, "regions": s.regions })),
        "watched": watch_json(f),
        "budget": { "permille": f.budget.permille, "fixed_ns": f.budget.fixed.0, "on_trial": f.on_trial },
        "counts": "exact",
        "regions": f.regions.in_source,
        "region_runs": f.regions.runs,
        "barriers": f.regions.barriers,
        "objects_watched": o.living,
        "objects_armed": o.took_part,
        "pages_armed": o.pages,
        "pages_moved": o.moved,
        "ping_pongs": o.ping_pongs,
        "arms": c.arms,
        "faults": c.faults,
        "pages_copied": c.copies,
        "pages_moved_by_kernel": c.kernel_moves,
        "touches_lost": c.lost_touches,
        "remote_before": share_json(f.touched()),
        "remote_after": share_json(f.guard.moved),
        "remote_held_back": share_json(f.guard.held),
        "plan": plan_json(f),
        "verdict": f.guard.to_string(),
        "worked": worked::worked(f).name(),
        "threads": {
            "seen": f.threads.threads,
            "unbound": f.threads.unbound,
            "changed_nodes": f.threads.changed_nodes,
            "nodes": f.threads.nodes,
            "looks": f.threads.looks,
        },
        "rounds": f.rounds.count,
        "round_before": times_json(&f.rounds.before),
        "round_after": times_json(&f.rounds.after),
        "stopped": f.stopped,
        "could_not": f.notes,
        "objects": f.objects.most.iter().map(object).collect::<Vec<_>>(),
        "longest_regions": f.regions.longest.iter().map(region).collect::<Vec<_>>(),
        "modules": f.modules.iter().map(|m| m.path.as_str()).collect::<Vec<_>>(),
        "advice": advice::sentences(f, names),
    });
    all["schedule"] = f.schedule.as_ref().map(schedule::json).into();
    all["known_moves"] = known_moves_json(&f.known_moves);
    all
}

fn known_moves_json(m: &KnownMoves) -> Value {
    json!({
        "asleep": m.asleep,
        "waited_ns": m.waited.0,
        "beside": m.beside,
        "spare_ns": m.spare.0,
        "compared_regions": m.compared,
        "compared_pages": m.compared_pages,
        "longer_ns": m.longer.0,
    })
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

fn times_json(t: &RoundTimings) -> Value {
    match t.rounds {
        0 => Value::Null,
        n => json!({
            "rounds": n,
            "quartile_1_ns": t.low.0,
            "median_ns": t.median.0,
            "quartile_3_ns": t.high.0,
            "median_interval_95_ns": t.interval.map(|(from, to)| [from.0, to.0]),
        }),
    }
}

/// Wilson's 95 % interval of a share, from 0 to 1; `None` of nothing.
fn wilson(part: u64, all: u64) -> Option<(f64, f64)> {
    if all == 0 {
        return None;
    }
    let (z, n) = (1.959_964_f64, all as f64);
    let p = part as f64 / n;
    let scale = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / scale;
    let half = z / scale * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

/// A share with its interval.
fn share(Samples { remote, all }: Samples) -> String {
    match wilson(remote, all) {
        None => "–".into(),
        Some((from, to)) => format!("{} [{:.1}, {:.1}]", percent(remote, all), from * 100.0, to * 100.0),
    }
}

fn share_json(Samples { remote, all }: Samples) -> Value {
    json!({ "kind": "presence", "remote": remote, "all": all, "interval_95": wilson(remote, all) })
}

fn plan(out: &mut String, f: &Facts) -> std::fmt::Result {
    let Some(plan) = &f.plan else { return Ok(()) };
    let p = plan.progress;
    writeln!(
        out,
        "  plan       {} of {} planned pages are at home, read back (exact); {} were never touched; {} objects met, \
         {} planned",
        percent(p.at_home, p.pages),
        p.pages,
        p.untouched,
        p.met,
        p.planned
    )?;
    if let Some(text) = &plan.scaled {
        writeln!(out, "             {text}")?;
    }
    if p.met == 0 {
        writeln!(out, "  could not: no object of the plan was met: was it made for another program?")?;
    }
    if p.other_size > 0 {
        writeln!(
            out,
            "  could not: {} planned places allocated another size: was it another input?",
            p.other_size
        )?;
    }
    Ok(())
}

fn watch_json(f: &Facts) -> Value {
    let Some(w) = &f.watch else { return Value::Null };
    json!({
        "source": w.source,
        "touches_told": w.told,
        "pages_asked": w.asked,
        "touches_lost": w.lost,
        "cost_ns": w.cost.0,
        "state_bytes": w.state.0,
        "program_bytes": w.program.0,
        "blocks_by_proportion": w.blocks,
    })
}

fn plan_json(f: &Facts) -> Value {
    let Some(plan) = &f.plan else { return Value::Null };
    let p = plan.progress;
    json!({
        "objects_planned": p.planned,
        "objects_met": p.met,
        "objects_of_another_size": p.other_size,
        "pages": p.pages,
        "pages_at_home": p.at_home,
        "pages_untouched": p.untouched,
        "stretches_with_policy": p.policies,
        "scaled": plan.scaled,
    })
}

fn watch(out: &mut String, f: &Facts) -> std::fmt::Result {
    let Some(w) = &f.watch else { return Ok(()) };
    let asked = if w.asked > 0 { format!(" of {} pages asked for", w.asked) } else { String::new() };
    let each = if w.cost > Ns::ZERO { format!(", {} each", seconds(w.cost)) } else { String::new() };
    writeln!(
        out,
        "  source     {}: {} touches told{asked}, {} lost{each}; {:.1} MiB of state a GiB watched",
        w.source,
        w.told,
        w.lost,
        w.state.0 as f64 / 1024.0 / (w.program.0.max(1) as f64 / f64::from(1 << 20) / 1024.0) / 1024.0
    )?;
    if w.blocks > 0 {
        writeln!(
            out,
            "  told       the policy was told of {} blocks by the proportions of their draws (presence), not by counts",
            w.blocks
        )?;
    }
    Ok(())
}

fn remote(out: &mut String, f: &Facts) -> std::fmt::Result {
    let before = f.touched();
    if before.all == 0 {
        return Ok(());
    }
    let after = match f.guard.moved {
        Samples { all: 0, .. } => "not sampled afterwards".to_owned(),
        moved => format!("{} of {} samples afterwards", share(moved), moved.all),
    };
    writeln!(
        out,
        "  remote     {} of {} touched pages had another home before, {after} (presence; 95 % intervals)",
        share(before),
        before.all
    )
}

fn iteration(out: &mut String, f: &Facts) -> std::fmt::Result {
    let show = |t: &RoundTimings| match (t.rounds, t.interval) {
        (0, _) => "none timed".to_owned(),
        (n, None) => format!("{} over {n}, too few for an interval", seconds(t.median)),
        (n, Some((from, to))) => {
            format!("{} [{}, {}] over {n}", seconds(t.median), seconds(from), seconds(to))
        }
    };
    match f.rounds.count {
        0 => writeln!(out, "  iteration  none was recognised: the regions did not repeat"),
        n => writeln!(
            out,
            "  iteration  {n} rounds (exact); median [95 % interval]: {} before anything moved, {} afterwards",
            show(&f.rounds.before),
            show(&f.rounds.after)
        ),
    }
}

/// What it came to, in one line.
fn result(out: &mut String, f: &Facts) -> std::fmt::Result {
    let moved = f.objects.moved;
    let (a, (b, whose)) = (f.guard.moved, worked::compared(f));
    let groups = format!(
        "remote in {} of {} samples of moved pages, in {} of {} of those {whose} (presence)",
        share(a),
        a.all,
        share(b),
        b.all
    );
    let says = match worked::worked(f) {
        Worked::NothingSeen => {
            "nothing to do: no parallel region was seen; the program has no OpenMP, or one that homenode does not know".into()
        }
        Worked::Pays if f.pretended => format!("moving pays, if nodes were not pretended: {groups}"),
        Worked::Pays => format!("moving pays: {groups}"),
        Worked::Kept => format!(
            "no gain shows over pages that were held back; what moved stays, for the nodes that have it now use it more than \
             those that had it: {groups}"
        ),
        Worked::Evener => format!(
            "moving makes no difference but that pages are spread more evenly over the nodes, for which it is kept: {groups}"
        ),
        Worked::NoDifference => format!("moving makes no difference, and what moved goes back: {groups}"),
        Worked::Harms => format!("moving harms, and what moved goes back: {groups}"),
        Worked::NothingToGain => {
            let before = f.touched();
            format!(
                "nothing to gain: {} of {} touched pages had another home before (presence); {moved} pages were moved (exact)",
                before.remote, before.all
            )
        }
        Worked::Contested => format!(
            "no placement lasts: {} were used by another node each time that homenode looked (presence); {moved} pages were moved (exact)",
            mib(f.guard.contested / worked::SMALL_PAGE)
        ),
        Worked::ThreadsChange => format!(
            "not judged: {} of {} threads changed nodes (sampled), and where they run decides what is remote; {moved} pages \
             were moved, {} (exact)",
            f.threads.changed_nodes,
            f.threads.threads,
            mib(moved)
        ),
        Worked::ThreadsNotBound => format!(
            "not judged: {} of {} threads are not bound, and {} (sampled, {} looks); {moved} pages were moved (exact)",
            f.threads.unbound,
            f.threads.threads,
            worked::why_not_bound(f),
            f.threads.looks
        ),
        Worked::NothingAsked => "no page was moved (exact): the program asked for none by hn_next_touch".into(),
        Worked::NothingMoved => "no page was moved (exact)".into(),
        Worked::TooFew => format!(
            "{moved} pages were moved, {} (exact); too few samples to tell whether that pays ({} of moved pages, {} of those held back, \
             presence)",
            mib(moved),
            a.all,
            b.all
        ),
        Worked::Planned if moved == 0 => "no page was moved (exact)".into(),
        Worked::Planned | Worked::NotJudged | Worked::Stopped => {
            format!("{moved} pages were moved, {} (exact); whether that pays was not judged", mib(moved))
        }
    };
    writeln!(out, "  result     {says}")
}

fn region_name(r: &Region, names: &SourceNames) -> String {
    let at = if r.function > 1 { r.function } else { r.caller };
    names.places.get(&at).map_or_else(|| format!("{at:#x}"), |p| foreign::clean(&p.to_string()))
}

fn per_region(out: &mut String, f: &Facts, names: &SourceNames) -> std::fmt::Result {
    for r in f.regions.longest.iter().filter(|r| r.armings > 0).take(8) {
        writeln!(
            out,
            "  region     {}: armed at {} of {} runs, {} pages moved, {} of them back (exact)",
            region_name(r, names),
            r.armings,
            r.runs,
            r.moved,
            r.ping_pongs
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_wire::facts::{Guard, ObjectTotals, Origin, Regions, RoundFacts, Verdict};

    fn report(facts: &[Facts]) -> (String, Value) {
        let names = vec![SourceNames::default(); facts.len()];
        let report = RunReport {
            elapsed: Duration::from_millis(1500),
            command: "app".into(),
            policy: "next-touch".into(),
            told: vec![],
            before: vec![],
            processes: facts,
            names: &names,
        };
        (report.text(), report.json())
    }

    fn with_runs(runs: u64) -> Facts {
        let regions = Regions { in_source: 2, runs, ..Regions::default() };
        Facts { regions, ..Facts::default() }
    }

    fn objects(pages: u64, moved: u64, most: Vec<ObjectFacts>) -> ObjectTotals {
        ObjectTotals { living: 1, took_part: 1, pages, moved, ping_pongs: 0, most }
    }

    #[test]
    fn no_count_stands_without_its_kind() {
        let most = ObjectFacts {
            moved: 50,
            homes: vec![100],
            touched: vec![50, 50],
            ..ObjectFacts::bare(Origin::Static(0), homenode_model::Bytes::mib(1))
        };
        let mut facts = Facts { nodes: 2, objects: objects(100, 50, vec![most]), ..with_runs(40) };
        facts.rounds.count = 20;
        let (text, json) = report(&[facts]);
        let counts = ["regions ", "watched ", "moved ", "remote ", "iteration ", "result "];
        for line in text.lines().filter(|l| counts.iter().any(|c| l.trim_start().starts_with(c))) {
            assert!(line.contains("exact") || line.contains("presence"), "{line}");
        }
        assert_eq!((&json["schema"], &json["processes"][0]["pages_moved"]), (&json!(SCHEMA), &json!(50)));
        assert!(text.contains("50.0 % [40.4, 59.6] of 100 touched pages"), "{text}");
        assert_eq!(
            json["processes"][0]["remote_before"]["interval_95"][0],
            json!(wilson(50, 100).unwrap().0)
        );
    }

    #[test]
    fn a_share_has_wilsons_interval() {
        // Newcombe 1998, Statistics in Medicine 17, table I.
        for (part, all, from, to) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let (low, high) = wilson(part, all).unwrap();
            assert!((low - from).abs() < 5e-5 && (high - to).abs() < 5e-5, "{part} of {all}: {low} {high}");
        }
        assert_eq!((wilson(0, 0), share(Samples::default()).as_str()), (None, "–"));
    }

    #[test]
    fn a_median_of_few_has_no_interval() {
        let times =
            |rounds, interval| RoundTimings { rounds, low: Ns(1), median: Ns(2), high: Ns(3), interval };
        let rounds = RoundFacts { count: 9, before: times(5, None), after: times(6, Some((Ns(1), Ns(4)))) };
        let facts = Facts { rounds, ..with_runs(9) };
        let (text, json) = report(&[facts]);
        assert!(
            text.contains("over 5, too few for an interval before anything moved, 0.0 µs [0.0 µs, 0.0 µs] over 6 afterwards"),
            "{text}"
        );
        let of = |key: &str| json["processes"][0][key]["median_interval_95_ns"].clone();
        assert_eq!((of("round_before"), of("round_after")), (Value::Null, json!([1, 4])));
    }

    #[test]
    fn what_it_came_to_and_what_stood_in_the_way_come_first() {
        let notes = vec!["no next touch in this process: a limit".into()];
        let facts = Facts { nodes: 2, notes, ..with_runs(4) };
        let (text, _) = report(std::slice::from_ref(&facts));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0] == "homenode: no page was moved", "{text}");
        assert!(lines[1].starts_with("homenode: cost "), "{text}");
        assert!(lines[2] == "homenode: next: -v says what stood in the way", "{text}");
        assert!(lines[3].starts_with("  ran        app"), "{text}");
        assert!(lines[4].starts_with("  result     no page was moved (exact)"), "{text}");
        assert!(lines[5].starts_with("  could not: no next touch in this process: a limit"), "{text}");
        assert!(lines[6].starts_with("  moved      0 pages"), "{text}");
        let result = |facts: Facts| report(&[facts]).0.lines().nth(4).unwrap().to_owned();
        let asked = Facts { arming: Arming::Asked, ..facts.clone() };
        assert!(result(asked).contains("asked for none by hn_next_touch"));
        let moved = Facts { objects: objects(512, 256, vec![]), ..facts };
        assert!(result(moved.clone()).contains("256 pages were moved, 1.0 MiB (exact); too few samples"));
        let (few, many) = (Samples { remote: 1, all: 24 }, Samples { remote: 12, all: 24 });
        let pays = Facts {
            guard: Guard { verdict: Verdict::Pays, moved: few, held: many, off: false, contested: 0 },
            pretended: true,
            ..moved
        };
        assert!(result(pays.clone()).contains("moving pays, if nodes were not pretended: remote in"));
        assert!(result(Facts { pretended: false, ..pays }).contains("moving pays: remote in"));
        let (text, _) =
            report(&[Facts { waited: Ns(20_000_000), elapsed: Ns(2_000_000_000), ..Facts::default() }]);
        assert!(
            text.contains("  waited     20.00 ms of 2.00 s for it") && text.contains("(1.0 %;"),
            "{text}"
        );
        // Nothing is said of nothing.
        let (text, _) = report(&[Facts::default()]);
        assert!(text.lines().count() == 6 && !text.contains("  moved "), "{text}");
    }

    #[test]
    fn what_is_missing_is_told() {
        let none: &[Facts] = &[];
        let answer = RunReport {
            elapsed: Duration::ZERO,
            command: "app".into(),
            policy: String::new(),
            told: vec![],
            before: vec!["there is one node with memory here: nothing to move, the program ran as it is (--pretend-nodes 2)".into()],
            processes: none,
            names: &[],
        }
        .answer();
        assert_eq!(
            answer,
            "homenode: nothing was moved: there is one node with memory here: nothing to\n\
             move, the program ran as it is (--pretend-nodes 2)\n"
        );
        let (text, _) = report(&[]);
        assert!(text.contains("no process left a report"), "{text}");
        let (text, _) = report(&[Facts::default()]);
        assert!(text.contains("no parallel region was seen"), "{text}");
        let stopped = Some("an error of homenode's own (x.rs:1:2: y)".to_owned());
        let (text, _) = report(&[Facts { stopped, ..Facts::default() }]);
        assert!(text.contains("x.rs:1:2") && !text.contains("no parallel region"), "{text}");
    }
}
