//! The first lines of `homenode show`: what is remote, which array, whether the recording is whole.

use homenode_dataset::meta::Clock;
use homenode_dataset::{Basis, RecordingKind};
use homenode_report::objects::{NodeAmount, NodePages, ObjectReport};
use homenode_report::summary::{Scope, Summary};
use homenode_report::time::RoundTime;
use homenode_report::{RecordingReport, Share, Unit};

use crate::human::{bytes, count, elided, glued, grouped, modelled, percent, plain, plural, time, width};
use crate::touchers::touched_by;
use homenode_model::{Bytes, Ns};

/// Columns of the first lines, however wide the terminal is.
const WIDTH: usize = 80;
/// Shares below this many millionths are not worth a word.
const LITTLE: u64 = 5000;

/// A line that says what is missing; nothing of a whole recording.
pub fn partial(summary: &Summary) -> String {
    not_whole(&summary.missing).map_or_else(String::new, |line| line + "\n")
}

/// The first line of whatever reads a recording that lacks something. `None`: nothing is missing.
pub fn not_whole<T: std::fmt::Display>(missing: &[T]) -> Option<String> {
    let first = missing.first()?;
    let more = match missing.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let room = WIDTH.saturating_sub(width(&more) + width("not whole: "));
    Some(format!("not whole: {}{more}", elided(leading(&first.to_string(), room), room)))
}

/// The first clauses of a text, as many as have room; all of a text whose first one has none.
fn leading(text: &str, room: usize) -> &str {
    if width(text) <= room {
        return text;
    }
    let ends = text.match_indices([':', ';']).filter(|(at, _)| text[*at + 1..].starts_with(' '));
    let fitting = ends.map(|(at, _)| &text[..at]).take_while(|clauses| width(clauses) <= room);
    fitting.last().unwrap_or(text)
}

/// The answer: what is remote, the array with most of it, what moved. With [`partial`] that is one
/// line too many: whoever prints takes three.
pub fn lines(report: &RecordingReport, columns: usize) -> Vec<String> {
    let most = columns.min(WIDTH);
    let all = [Some(remote(report)), worst(report, most), Some(moves_or_time(report))];
    all.into_iter().flatten().map(|line| plain(&elided(&line, most))).collect()
}

fn remote(report: &RecordingReport) -> String {
    let s = &report.summary;
    let Some(share) = s.remote.percent() else {
        return match s.accesses_left_out.seen() {
            0 => "no accesses are recorded".into(),
            _ => "no accesses are recorded in the timed part".into(),
        };
    };
    let whole = format!("{} {}", count(s.remote.whole), s.remote.of);
    let worth = match s.remote.basis {
        Some(Basis::Presence) => "presence, not counts".into(),
        Some(Basis::Sampled { .. }) => "sampled".into(),
        Some(basis) => basis.to_string(),
        None => String::new(),
    };
    format!("remote: {} % of {whole} ({worth})", percent(share))
}

/// The array with most remote accesses, and who touched it first.
fn worst(report: &RecordingReport, most: usize) -> Option<String> {
    let s = &report.summary;
    let worst = report.objects.first().filter(|o| o.remote.part > 0)?;
    let of_it = Share { part: worst.remote.part, whole: s.remote.part, ..s.remote };
    let before = match of_it.percent() {
        Some(share) if worst.remote.of == s.remote.of => format!("{} % of these to ", percent(share)),
        // Accesses of one object are no part of sightings of all.
        _ => "most of these to ".to_owned(),
    };
    let touched = touched_by(&worst.first_touch);
    let after = if touched.is_empty() { touched } else { format!(", first touched by {touched}") };
    let room = most.saturating_sub(width(&before) + width(&after));
    let name = name(worst);
    Some(match room >= width(&name).min(16) {
        true => format!("{before}{}{after}", elided(&name, room)),
        false => format!("{before}{}", elided(&name, most.saturating_sub(width(&before)))),
    })
}

/// What moved and whether it paid; else how long an iteration takes.
fn moves_or_time(report: &RecordingReport) -> String {
    let s = &report.summary;
    let Some(moves) = report.moves.as_ref().filter(|m| m.pages > 0) else {
        let rounds = match s.iterations {
            Some(i) => format!(
                "{} ({}), {} each",
                plural(i.count, "iteration", "iterations"),
                i.source,
                time(i.median_ns)
            ),
            None => "no iterations are known".into(),
        };
        return format!("no page moved; {rounds}");
    };
    let back = match moves.ping_pongs {
        0 => String::new(),
        n => format!(" ({} back again)", count(n)),
    };
    let moved = format!("{} moved{back}", plural(moves.pages, "page", "pages"));
    match (moves.iterations_before, moves.iterations_after) {
        (Some(before), Some(after)) => {
            format!("{moved}; iterations took {} before, {} after", each(before), each(after))
        }
        (None, Some(after)) => format!("{moved}; iterations took {} after", each(after)),
        (Some(before), None) => format!("{moved}; iterations took {} before", each(before)),
        (None, None) => moved,
    }
}

fn each(times: RoundTime) -> String {
    time(times.median_ns)
}

/// What is true of the whole recording, a fact each.
pub fn facts(s: &Summary) -> Vec<String> {
    let mut facts = Vec::new();
    if !s.command.is_empty() {
        let command = elided(&s.command.join(" "), WIDTH - 2);
        facts.push(command);
    }
    if let Some(rank) = s.rank {
        facts.push(glued(&format!("rank {rank}")));
    }
    facts.extend(s.host.clone());
    let pretended = if s.pretended { ", pretended" } else { "" };
    let nodes = plural(s.nodes.len() as u64, "node", "nodes") + pretended;
    facts.push(if s.machine.is_empty() { nodes } else { format!("{}: {nodes}", s.machine) });
    if s.threads > 0 {
        facts.push(glued(&plural(s.threads, "thread", "threads")));
    }
    facts.extend(s.policy.clone());
    facts.push(kind(s.kind).into());
    if !s.source.is_empty() {
        facts.push(s.source.clone());
    }
    facts.push(glued(&format!("{} pages", bytes(Bytes(s.page_bytes)))));
    facts.push(glued(match s.clock {
        Clock::Wall => "wall clock",
        Clock::Modelled => "modelled clock",
    }));
    if s.whole {
        facts.push("whole".into());
    }
    facts
}

const fn kind(kind: RecordingKind) -> &'static str {
    match kind {
        RecordingKind::Run => "run here",
        RecordingKind::Live => "recorded here",
        RecordingKind::Lab => "recorded on the lab",
        RecordingKind::Simulated => "simulated",
        RecordingKind::Synthetic => "synthetic",
    }
}

/// Notes below the tables. `hidden`: objects that are not shown.
pub fn notes(report: &RecordingReport, hidden: usize, verbose: bool) -> Vec<String> {
    let s = &report.summary;
    let mut notes = Vec::new();
    if hidden > 0 {
        notes.push(format!("{} more objects: --top lists them", grouped(hidden as i128)));
    }
    if s.missing.len() > 1 {
        notes.extend(s.missing.iter().map(|m| format!("missing: {m}")));
    }
    notes.push(scope(s));
    match s.accesses.basis() {
        Some(Basis::Sampled { one_in }) => {
            notes.push(format!("sampled: one sample stands for {} accesses", glued(&count(one_in))));
        }
        Some(Basis::Presence) => notes.push(
            "presence: a node was seen at a page; how often it came there is not known, and a share of \
             sightings is no share of accesses"
                .into(),
        ),
        _ => {}
    }
    notes.extend(moved_most(report));
    if let Some(guard) = report.moves.as_ref().and_then(|m| m.guard) {
        let group =
            |g: homenode_report::moves::GuardSamples| format!("{} of {}", count(g.remote), count(g.samples));
        notes.push(format!(
            "guard: remote in {} samples of moved pages, in {} of held-back pages",
            group(guard.moved),
            group(guard.held_back)
        ));
    }
    notes.extend(s.verdict.iter().map(|v| format!("verdict: {v}")));
    if let Some(cost) = s.own_cost {
        notes.push(format!(
            "homenode itself took {} of {} of CPU time",
            glued(&time(cost.own_ns)),
            glued(&time(cost.cpu_ns))
        ));
    }
    if let (Some(all), Some(avoidable)) = (s.memory_time, s.avoidable) {
        notes.push(format!(
            "memory accesses take {}; the best static home of each {} would save {}",
            glued(&modelled(all)),
            if s.block_pages == 1 {
                "page".into()
            } else {
                format!("block of {} pages", grouped(s.block_pages))
            },
            glued(&modelled(avoidable)),
        ));
    }
    if verbose {
        notes.push("time: latency of all accesses to the object, from the latencies of the links".into());
    }
    notes.extend(s.coarsened.iter().map(|c| format!("coarsened: {c}")));
    notes.extend(s.notes.iter().cloned());
    notes
}

/// Which array moved most: when, from where to where, why, and what became of its remote share.
fn moved_most(report: &RecordingReport) -> Option<String> {
    let most = report.moved_most.first()?;
    let object = report.objects.iter().find(|o| o.object == most.object)?;
    let moves = object.moves.as_ref()?;
    let mut parts = vec![
        format!("moved most: {}", elided(&name(object), WIDTH / 2)),
        glued(&plural(moves.pages, "page", "pages")),
    ];
    if let Some(route) = moves.routes.first() {
        let mostly = if moves.routes.len() > 1 { "mostly " } else { "" };
        parts.push(glued(&format!("{mostly}{} → {}", route.from_node.0, route.to_node.0)));
    }
    parts.extend(moves.reasons.first().map(|r| match &r.policy {
        Some(policy) if r.cause.as_str().replace(' ', "-") != *policy => format!("by {} ({policy})", r.cause),
        _ => format!("by {}", r.cause),
    }));
    parts.push(match span(moves.first_ns, moves.last_ns) {
        text if text.contains(' ') => format!("from {}", text.replace(" – ", " to ")),
        text => format!("at {text}"),
    });
    let shares =
        moves.remote_before.and_then(|s| s.percent()).zip(moves.remote_after.and_then(|s| s.percent()));
    parts.extend(shares.map(|(b, a)| format!("remote {} % before, {} % after", percent(b), percent(a))));
    Some(parts.join(", "))
}

/// What counts and what is left out.
fn scope(s: &Summary) -> String {
    if s.scope == Scope::Everything {
        return "everything counts: the recording does not tell initialisation apart".into();
    }
    let Some(left) = s.left_out else { return "everything counts: all intervals are timed".into() };
    let mut parts = Vec::new();
    let all = [
        (left.initialisation, "initialisation"),
        (left.between, "time between timed intervals"),
        (left.end, "the program's end"),
    ];
    for (part, what) in all.into_iter().filter(|(part, _)| part.intervals > 0 && part.time_ns.0 > 0) {
        parts.push(format!("{} of {what}", glued(&time(part.time_ns))));
    }
    if parts.is_empty() {
        parts.push("nothing".into());
    }
    let rounds = s.iterations.map(|i| format!(" ({} {})", grouped(i.count), i.source));
    format!("counted: iterations{}; left out: {}", rounds.unwrap_or_default(), parts.join(", "))
}

/// What an object is called.
pub fn name(object: &ObjectReport) -> String {
    named(&object.name, object.object.is_some())
}

/// What an object of that name is called.
pub fn named(name: &str, known: bool) -> String {
    match (name, known) {
        ("", false) => "(not in any object)".into(),
        ("", true) => "(without a name)".into(),
        (name, _) => name.to_owned(),
    }
}

/// Nodes with their shares: `node 1`, `0:75 1:25`, `4 nodes`.
fn nodes(all: &[(u16, u64)]) -> String {
    let total: u64 = all.iter().map(|(_, n)| n).fold(0, |a, b| a.saturating_add(*b));
    let share = |n: u64| homenode_report::amount::per_million(n, total).unwrap_or(0);
    let some: Vec<_> = all.iter().filter(|(_, n)| share(*n) >= LITTLE).collect();
    match some[..] {
        [] => String::new(),
        [(node, _)] => glued(&format!("node {node}")),
        [_, _] | [_, _, _] => {
            let percent = |n: u64| share(n).saturating_add(5000) / 10_000;
            some.iter().map(|(node, n)| format!("{node}:{}", percent(*n))).collect::<Vec<_>>().join(" ")
        }
        _ => glued(&format!("{} nodes", some.len())),
    }
}

/// Nodes by what they did.
pub fn users(all: &[NodeAmount]) -> String {
    nodes(&all.iter().map(|n| (n.node.0, n.units())).collect::<Vec<_>>())
}

/// Nodes by the pages on them.
pub fn homes(all: &[NodePages]) -> String {
    nodes(&all.iter().map(|n| (n.node.0, n.pages)).collect::<Vec<_>>())
}

/// The heading of a column of accesses, and of what they are worth.
pub fn accesses_heading(s: &Summary) -> (&'static str, &'static str) {
    let title = match s.remote.of {
        Unit::Accesses => "accesses",
        Unit::Sightings => "sightings",
    };
    (title, s.accesses.basis().map_or("", |b| b.word().as_str()))
}

/// The time of the first and the last of something.
pub fn span(first: Option<Ns>, last: Option<Ns>) -> String {
    match (first, last) {
        (Some(a), Some(b)) if time(a) == time(b) => glued(&time(a)),
        (Some(a), Some(b)) => format!("{} – {}", glued(&time(a)), glued(&time(b))),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_ends_with_a_whole_clause() {
        let why =
            "meta.json is damaged at byte 109: expected `,` or `}` at line 8 column 3; it does not tell all";
        assert_eq!(not_whole(&[why]).unwrap(), "not whole: meta.json is damaged at byte 109");
        assert_eq!(not_whole(&["no end", why]).unwrap(), "not whole: no end (and 1 more)");
        let word = "x".repeat(200);
        assert_eq!(width(&not_whole(&[word]).unwrap()), WIDTH);
        assert_eq!(not_whole::<&str>(&[]), None);
    }
}
