//! An explanation in lines of at most 80 columns.

pub mod against;
pub mod markdown;
pub mod table;

use homenode_explain::Explanation;
use homenode_explain::explanation::{Effect, EffectBasis, Finding, FindingObject, Fix, Place};
use homenode_explain::pattern::Pattern;
use homenode_explain::remedy::FixKind;
use homenode_explain::warning::WarningKind;
use homenode_model::{Bytes, Ns};
use homenode_report::{Share, Unit};

use homenode_dataset::foreign::clean;

use crate::answer::not_whole;
use crate::human::{bytes, elided, fixed, glued, plain, plural, time, width, wrapped};

/// Columns of a line.
const WIDTH: usize = 80;
/// Findings that are shown without -v.
const SHOWN: usize = 3;
/// Fixes of a finding that are shown without -v.
const FIXES: usize = 3;
/// Between the parts of a line: a line breaks behind it.
const GAP: &str = "\u{a0}\u{a0} ";
/// Columns of what stands in front of a fix.
const INDENT: usize = 12;

/// The explanation for a person.
pub fn render(it: &Explanation, verbose: bool) -> String {
    let mut lines: Vec<String> = not_whole(&it.missing).into_iter().collect();
    lines.extend(answer(it));
    let mut warnings = it.warnings.iter().filter(|w| w.kind != WarningKind::CutOff).peekable();
    if warnings.peek().is_some() {
        lines.push(String::new());
        lines.extend(warnings.flat_map(|w| hanging("! ", &w.text)));
    }
    let shown = if verbose { it.findings.len() } else { SHOWN };
    for (number, finding) in it.findings.iter().take(shown).enumerate() {
        lines.push(String::new());
        lines.extend(self::finding(it, finding, number == 0, verbose));
    }
    let hidden = it.findings.len().saturating_sub(shown);
    if hidden > 0 {
        lines.extend([
            String::new(),
            format!("{}: -v shows all", plural(hidden as u64, "more finding", "more findings")),
        ]);
    }
    if verbose {
        lines.extend(basis(it));
    }
    let mut out = String::new();
    for line in lines {
        out += plain(&clean(&line)).trim_end();
        out.push('\n');
    }
    out
}

/// The first three lines.
pub fn answer(it: &Explanation) -> Vec<String> {
    let machine = &it.machine;
    let mut lines = Vec::new();
    match (it.findings.first(), &it.no_finding) {
        (Some(first), _) => {
            let more = match it.findings.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            let tail = format!(": {}{more}", fault(first.pattern));
            lines.push(format!(
                "{}{tail}",
                elided(&names(&first.variables), WIDTH.saturating_sub(width(&tail)))
            ));
            let fix = first.fixes.first();
            let all = it.together.filter(|_| it.findings.len() > 1);
            lines.push(match (all, fix.and_then(|f| f.effect)) {
                (Some(e), _) => format!(
                    "fixing all saves {} % of the time on {machine}; remote: {} %",
                    fixed(-e.change(), 0),
                    share(&it.remote)
                ),
                (None, Some(e)) => {
                    let at_most = if e.basis == EffectBasis::Bound { "at most " } else { "" };
                    format!(
                        "fixing it saves {at_most}{} % of the time on {machine}; remote: {} %",
                        fixed(-e.change(), 0),
                        share(&it.remote)
                    )
                }
                (None, None) => format!("remote: {} % of {} on {machine}", share(&it.remote), it.remote.of),
            });
        }
        (None, Some(reason)) => lines.push(format!("no finding: {}", reason.text)),
        (None, None) => lines.push("no finding".into()),
    }
    let threads = plural(it.threads, "thread", "threads");
    let head = match (it.rounds, it.rounds_simulated) {
        // The line has no room for both.
        (Some(all), Some(first)) if first < all => {
            format!("evidence: {}, rounds 1–{first} of {all}", it.evidence.text)
        }
        (Some(n), _) => {
            let rounds = plural(n, "round", "rounds");
            let all = format!("evidence: {}, {threads}, {rounds}", it.evidence.text);
            match width(&all) <= WIDTH {
                true => all,
                false => format!("evidence: {}, {rounds}", it.evidence.text),
            }
        }
        (None, _) => format!("evidence: {}, {threads}", it.evidence.text),
    };
    if lines.len() == 1 {
        // The reason may take two lines.
        let reason = lines.remove(0);
        lines.extend(wrapped(&reason, WIDTH).into_iter().take(2));
    }
    lines.push(elided(&head, WIDTH));
    lines.into_iter().map(|l| elided(&l, WIDTH)).collect()
}

/// The fault in a few words.
pub const fn fault(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::SerialFirstTouch => "one thread touches all pages first",
        Pattern::FilledByOneThread => "one thread fills what all threads read",
        Pattern::WrongSchedule => "other threads touch the pages first than use them",
        Pattern::Misplaced => "pages do not live where they are touched first",
        Pattern::PhaseChange => "other nodes use the pages after some rounds",
        Pattern::RegionsDisagree => "loops deal the pages to threads differently",
        Pattern::Transposed => "threads jump from row to row",
        Pattern::PageFalseSharing => "parts of several threads share a page",
        Pattern::ContestedTable => "all nodes read all of it",
        Pattern::Communication => "nodes write what others read",
        Pattern::SharedPages => "several nodes use each page",
    }
}

/// How it was touched first.
pub fn touched(finding: &Finding) -> String {
    let by = match (finding.touched_by, finding.pattern) {
        (_, Pattern::SerialFirstTouch | Pattern::FilledByOneThread) | (1, _) => {
            "first touched serially".to_owned()
        }
        (0, _) => return String::new(),
        (n, _) => format!("first touched by {}", plural(n, "thread", "threads")),
    };
    match (&finding.touched.function, finding.touched.short()) {
        (Some(function), Some(place)) if finding.touched.file.is_some() => {
            format!("{by} in {} ({place})", function_name(function))
        }
        (_, Some(place)) => format!("{by} at {place}"),
        _ => by,
    }
}

/// A function without what a compiler added. Older clangs give a region's function no name.
fn function_name(function: &str) -> &str {
    match homenode_explain::place::function(function).trim_end_matches('_') {
        "" => "a parallel region",
        name => name,
    }
}

/// Variables in a few words.
pub fn names(variables: &[FindingObject]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for variable in variables {
        if !names.contains(&variable.name.as_str()) {
            names.push(&variable.name);
        }
    }
    match names[..] {
        [] => "memory".into(),
        [one] => one.into(),
        [one, two] => format!("{one}, {two}"),
        [one, two, ..] => format!("{one}, {two} and {} more", names.len() - 2),
    }
}

fn place(place: &Place) -> String {
    match (&place.function, place.short()) {
        (Some(function), Some(short)) if place.file.is_some() => {
            format!("{} ({short})", function_name(function))
        }
        (_, Some(short)) => short,
        _ => "code outside of regions".into(),
    }
}

/// A share in percent, rounded.
pub fn share(share: &Share) -> String {
    share.percent().map_or_else(|| "?".into(), |p| fixed(p, 0))
}

/// Who uses the variables, in at most `regions` regions, and how much of it is remote.
pub fn used(finding: &Finding, regions: usize) -> String {
    let used: Vec<String> = finding.used.iter().take(regions).map(|u| place(&u.place)).collect();
    let what = match finding.remote.of {
        Unit::Accesses => "memory traffic is",
        Unit::Sightings => "sightings are",
    };
    format!(
        "used by {} in {}: {} % of {} {what} remote",
        plural(finding.users, "node", "nodes"),
        used.join(", "),
        share(&finding.remote),
        if finding.variables.len() == 1 { "its" } else { "their" }
    )
}

/// `first`: the finding also tells what helps the whole program; the others need not repeat it.
fn finding(it: &Explanation, finding: &Finding, first: bool, verbose: bool) -> Vec<String> {
    let allocated = finding.variables.first().and_then(|v| v.allocated.short());
    let allocated = allocated.unwrap_or_else(|| "static".to_owned());
    let names = names(&finding.variables);
    // Without debug information a variable is called by the place of its allocation.
    let parts: Vec<String> = [names.clone(), allocated, touched(finding)]
        .into_iter()
        .enumerate()
        .filter(|(i, part)| !part.is_empty() && (*i != 1 || !names.starts_with(part.as_str())))
        .map(|(_, part)| part)
        .collect();
    let mut lines = hanging("", &parts.join(GAP));
    lines.extend(hanging("  ", &used(finding, if verbose { 5 } else { 1 })));
    if verbose {
        for v in &finding.variables {
            let times = if v.allocations > 1 {
                format!(", allocated {} times", v.allocations)
            } else {
                String::new()
            };
            let at = v.allocated.short().map(|a| format!(" at {a}")).unwrap_or_default();
            lines.extend(hanging("  ", &format!("{}: {}{at}{times}", v.name, bytes(Bytes(v.bytes)))));
        }
    }
    let whole = |fix: &&Fix| {
        use FixKind::{HomenodeRun, HugePages, NumactlInterleave, OneNodeASocket};
        matches!(fix.kind, HomenodeRun | NumactlInterleave | HugePages | OneNodeASocket)
    };
    let fixes = finding.fixes.iter().filter(|f| first || !whole(f));
    for (number, fix) in fixes.take(if verbose { usize::MAX } else { FIXES }).enumerate() {
        lines.extend(self::fix(it, fix, number == 0));
    }
    lines
}

fn fix(it: &Explanation, fix: &Fix, first: bool) -> Vec<String> {
    let head = format!("  {:<width$}", if first { "fix" } else { "or" }, width = INDENT - 2);
    let Some(effect) = &fix.effect else { return hanging(&head, &fix.text) };
    if !first {
        return hanging(&head, &format!("{}{GAP}{}", fix.text, glued(&expected_briefly(effect))));
    }
    let mut lines = hanging(&head, &fix.text);
    lines.extend(hanging(&format!("  {:<width$}", "expected", width = INDENT - 2), &expected(it, effect)));
    lines
}

/// What another fix brings, in a word: its time.
pub fn expected_briefly(effect: &Effect) -> String {
    let at_most = if effect.basis == EffectBasis::Bound { "at most " } else { "" };
    format!("expected {at_most}{} %", signed(effect.change()))
}

/// What a fix brings: time, its range, remote share, and how that is known.
pub fn expected(it: &Explanation, effect: &Effect) -> String {
    let range =
        effect.change_range.map(|(low, high)| glued(&format!(" [{}, {}]", signed(low), signed(high))));
    let (at_most, how) = match effect.basis {
        EffectBasis::Bound => ("at most ", "if every access were local"),
        EffectBasis::Simulated => ("", "simulated"),
    };
    let basis = it.evidence.basis.map(|b| format!(", {b}")).unwrap_or_default();
    format!(
        "{} {at_most}{}{}, {}{GAP}({how}{basis})",
        it.machine,
        glued(&format!("{} % time", signed(effect.change()))),
        range.unwrap_or_default(),
        glued(&format!("remote {} → {} %", fixed(effect.remote_before, 0), fixed(effect.remote_after, 0)))
    )
}

/// A change with its sign.
pub fn signed(change: f64) -> String {
    let text = fixed(change, 0);
    match text.strip_prefix('-') {
        Some(number) => format!("−{number}"),
        None if text == "0" => "0".into(),
        None => format!("+{text}"),
    }
}

/// What the answer rests on.
fn basis(it: &Explanation) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(hanging("", &format!("command: {}", it.command.join(" "))));
    lines.extend(hanging(
        "",
        &format!(
            "counted: {} of {}; {}; pages of {}",
            time(Ns(it.timed_ns)),
            time(Ns(it.time_ns)),
            plural(it.threads, "thread", "threads"),
            bytes(Bytes(it.page_bytes))
        ),
    ));
    if it.findings.iter().flat_map(|f| &f.fixes).any(|f| f.effect.is_some_and(|e| e.change_range.is_some())) {
        let range = "[from, to]: a processor that waits for each access, and one that hides 75 % of the latency of \
                     sequential accesses, beside the machine as described";
        lines.extend(hanging("", range));
    }
    for fix in &it.whole {
        if let Some(effect) = &fix.effect {
            lines.extend(hanging("", &format!("{}: {}", fix.text, expected(it, effect))));
        }
    }
    for text in it.notes.iter().chain(&it.missing) {
        lines.extend(hanging("", text));
    }
    lines
}

/// A text with something in front of its first line and as much space in front of the others.
fn hanging(head: &str, text: &str) -> Vec<String> {
    let indent = if head.is_empty() { 4 } else { width(head) };
    let room = WIDTH - indent;
    let mut lines = Vec::new();
    // Without a head the first line has more room.
    if head.is_empty() {
        let first = wrapped(text, WIDTH).into_iter().next().unwrap_or_default();
        let rest = text.get(first.len()..).unwrap_or("").trim_start().to_owned();
        lines.push(elided(&first, WIDTH));
        if !rest.is_empty() {
            lines.extend(wrapped(&rest, room).iter().map(|l| " ".repeat(indent) + &elided(l, room)));
        }
        return lines;
    }
    for (number, line) in wrapped(text, room).iter().enumerate() {
        let front = if number == 0 { head.to_owned() } else { " ".repeat(indent) };
        lines.push(front + &elided(line, room));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hang_and_keep_to_the_width() {
        let text = "word ".repeat(40);
        let lines = hanging("  fix       ", &text);
        assert!(lines.iter().all(|l| width(l) <= WIDTH), "{lines:?}");
        assert!(lines[0].starts_with("  fix       word") && lines[1].starts_with("            word"));
        let lines = hanging("", &text);
        assert!(lines.iter().all(|l| width(l) <= WIDTH) && lines[1].starts_with("    word"), "{lines:?}");
        let words: usize = lines.iter().map(|l| l.split_whitespace().count()).sum();
        assert_eq!(words, 40);
    }

    #[test]
    fn a_change_has_a_sign() {
        assert_eq!([-12.4, 0.2, -0.2, 7.6].map(signed), ["−12", "0", "0", "+8"]);
    }
}
