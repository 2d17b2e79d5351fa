//! What a change brought: three lines, then the findings and variables that changed.

use homenode_dataset::foreign::clean;
use homenode_explain::against::{Against, Per};
use homenode_explain::explanation::{Explanation, Finding};
use homenode_explain::warning::WarningKind;
use homenode_model::{Ns, Ps};
use homenode_report::diff::Side;
use homenode_table::{Cell, Column, Table};

use super::{GAP, WIDTH, expected, fault, finding, hanging, names, signed};
use crate::answer::not_whole;
use crate::human::{elided, fixed, glued, modelled, percent, plain, plural, time, width};
use crate::layout::{Alignment, TextTable};

/// Variables that are listed without -v.
const SHOWN: usize = 8;
/// What stands for a number of a recording that lacks the variable.
const LACKING: &str = "–";

/// The comparison for a person.
pub fn render(it: &Against, verbose: bool) -> String {
    let mut lines: Vec<String> = not_whole(&it.missing()).into_iter().collect();
    lines.extend(answer(it));
    let told = it.after.warnings.iter().filter(|w| w.kind != WarningKind::CutOff);
    let warnings = it.missing().into_iter().skip(1).chain(it.unlike.iter().cloned());
    let warnings = warnings.chain(told.map(|w| w.text.clone()));
    let warnings: Vec<String> = warnings.flat_map(|w| hanging("! ", &w)).collect();
    if !warnings.is_empty() {
        lines.push(String::new());
        lines.extend(warnings);
    }
    lines.push(String::new());
    lines.extend(it.gone.iter().flat_map(|f| hanging("gone  ", &one_line(&it.before, f))));
    lines.extend(it.new.iter().flat_map(|f| hanging("new   ", &one_line(&it.after, f))));
    lines.extend(it.left.iter().flat_map(|l| hanging("left  ", &one_line(&it.after, &l.after))));
    if it.gone.is_empty() && it.new.is_empty() && it.left.is_empty() {
        lines.push("no finding before, none after".into());
    }
    let shown = if verbose { it.variables.len() } else { SHOWN };
    let table = variables(it, shown);
    if !table.is_empty() {
        lines.push(String::new());
        lines.extend(table.render(WIDTH, false).lines().map(str::to_owned));
    }
    let hidden = it.variables.len().saturating_sub(shown);
    if hidden > 0 {
        lines.push(format!("{}: -v shows all", plural(hidden as u64, "more variable", "more variables")));
    }
    let open = it.new.iter().chain(it.left.iter().map(|l| &l.after));
    for (number, one) in open.take(if verbose { usize::MAX } else { 2 }).enumerate() {
        lines.push(String::new());
        lines.extend(finding(&it.after, one, number == 0, verbose));
    }
    let mut out = String::new();
    for line in lines {
        out += plain(&clean(&line)).trim_end();
        out.push('\n');
    }
    out
}

/// The first three lines: time and remote share, findings, evidence.
fn answer(it: &Against) -> Vec<String> {
    let remote = |share: Option<f64>| share.map_or_else(|| LACKING.to_owned(), |p| fixed(p, 0));
    let remote = format!("remote {} → {} %", remote(it.remote_before), remote(it.remote_after));
    let first = match &it.time {
        None => remote,
        Some(t) => {
            let change = match signed(t.change).as_str() {
                "0" => "as long as before".to_owned(),
                _ if t.change < 0.0 => format!("{} % less time", fixed(-t.change, 0)),
                _ => format!("{} % more time", fixed(t.change, 0)),
            };
            format!("{change} on {}: {}; {remote}", it.machine, times(it))
        }
    };
    let several = |all: Vec<&Finding>| -> Option<String> {
        let first = all.first()?;
        let more = if all.len() > 1 { format!(" and {} more", all.len() - 1) } else { String::new() };
        Some(format!("{} ({}){more}", elided(&names(&first.variables), 30), fault(first.pattern)))
    };
    let after = || it.left.iter().map(|l| &l.after);
    let parts = [
        ("gone", several(it.gone.iter().collect())),
        ("new", several(it.new.iter().collect())),
        ("left", several(after().collect())),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(word, text)| Some(format!("{word}: {}", text?))).collect();
    let mut second = match &parts[..] {
        [] => "no finding before, none after".to_owned(),
        [one] => one.clone(),
        // Numbers where names do not fit.
        several if width(&several.join("; ")) > WIDTH => {
            format!("findings: {} gone, {} new, {} left", it.gone.len(), it.new.len(), it.left.len())
        }
        several => several.join("; "),
    };
    if it.after.findings.is_empty() && !it.gone.is_empty() && width(&second) + 15 <= WIDTH {
        second += "; none is left";
    }
    let evidence = match it.before.evidence.text == it.after.evidence.text {
        true => format!("evidence of both: {}", it.after.evidence.text),
        false => format!("evidence: {}; before: {}", it.after.evidence.text, it.before.evidence.text),
    };
    let threads = plural(it.after.threads, "thread", "threads");
    let (first, second) = match &it.after.no_finding {
        // A change of the remote share is no news where placement does not matter.
        Some(reason) if parts.is_empty() && it.before.findings.is_empty() => {
            (format!("no finding: {}", reason.text), first)
        }
        _ => (first, second),
    };
    [first, second, format!("{evidence}, {threads}")].map(|l| elided(&l, WIDTH)).to_vec()
}

/// `0.84 → 0.61 ms a round`.
fn times(it: &Against) -> String {
    let Some(t) = &it.time else { return String::new() };
    let of = |ns: f64| time(Ns(ns.round().max(0.0) as u64));
    let per = if t.per == Per::Round { " a round" } else { "" };
    format!("{} → {}{per}", of(t.before_ns), of(t.after_ns))
}

fn one_line(e: &Explanation, finding: &Finding) -> String {
    let effect = finding.fixes.first().and_then(|f| f.effect.as_ref());
    let promised = effect.map(|effect| format!("{GAP}expected {}", expected(e, effect))).unwrap_or_default();
    format!("{}: {}{promised}", names(&finding.variables), fault(finding.pattern))
}

/// Rounds of each side where both are known: times are of one round then.
fn rounds(it: &Against) -> (u64, u64) {
    match it.time.filter(|t| t.per == Per::Round) {
        Some(_) => (it.before.rounds.unwrap_or(1).max(1), it.after.rounds.unwrap_or(1).max(1)),
        None => (1, 1),
    }
}

/// The variables before and after.
fn variables(it: &Against, most: usize) -> TextTable {
    let mut table = TextTable::default();
    let per = if it.time.is_some_and(|t| t.per == Per::Round) { "a round" } else { "" };
    table.column("variable", "", Alignment::Text);
    table.column("remote", "%", Alignment::Change);
    table.column("memory time", per, Alignment::Change);
    let (before, after) = rounds(it);
    for o in it.variables.iter().take(most) {
        let of = |text: &dyn Fn(&Side, u64) -> Option<String>| {
            let one = |side: &Option<Side>, rounds| side.as_ref().and_then(|s| text(s, rounds));
            let lacking = || LACKING.to_owned();
            match (one(&o.before, before), one(&o.after, after)) {
                (None, None) => String::new(),
                (b, a) if a == b => glued(&a.unwrap_or_default()),
                (b, a) => format!(
                    "{} {}",
                    glued(&b.unwrap_or_else(lacking)),
                    glued(&format!("→ {}", a.unwrap_or_else(lacking)))
                ),
            }
        };
        let known = o.before.iter().chain(&o.after).any(|s| s.object.is_some());
        table.row(vec![
            crate::answer::named(&o.name, known),
            of(&|s, _| s.remote.percent().map(percent)),
            of(&|s, rounds| s.memory_time.filter(|t| *t > Ps::ZERO).map(|t| modelled(Ps(t.0 / rounds)))),
        ]);
    }
    table
}

/// The comparison as Markdown, for a comment in a merge request.
pub fn markdown(it: &Against) -> String {
    use super::markdown::{code, escaped};
    let answer = answer(it);
    let mut lines = Vec::new();
    if let Some(line) = not_whole(&it.missing()) {
        lines.extend([format!("**{}**", escaped(&line)), String::new()]);
    }
    lines.extend([format!("**{}**", escaped(&answer[0])), String::new()]);
    let told = it.after.warnings.iter().filter(|w| w.kind != WarningKind::CutOff);
    let warnings = it.missing().into_iter().skip(1).chain(it.unlike.iter().cloned());
    let warnings = warnings.chain(told.map(|w| w.text.clone()));
    lines.extend(warnings.map(|w| format!("- ⚠ {}", escaped(&w))));
    let finding = |word: &str, e: &Explanation, f: &Finding| {
        let effect = f.fixes.first().and_then(|f| f.effect.as_ref());
        let promised = effect.map(|x| format!("; expected {}", escaped(&expected(e, x)))).unwrap_or_default();
        format!("- {word}: {}: {}{promised}", code(&names(&f.variables)), fault(f.pattern))
    };
    lines.extend(it.gone.iter().map(|f| finding("gone", &it.before, f)));
    lines.extend(it.new.iter().map(|f| finding("**new**", &it.after, f)));
    lines.extend(it.left.iter().map(|l| finding("left", &it.after, &l.after)));
    if it.gone.is_empty() && it.new.is_empty() && it.left.is_empty() {
        lines.push("- no finding before, none after".into());
    }
    lines.extend([String::new(), "| variable | remote before | after |".into(), "|---|--:|--:|".into()]);
    for o in &it.variables {
        let of = |side: &Option<Side>| {
            let percent = side.as_ref().and_then(|s| s.remote.percent());
            percent.map_or_else(|| LACKING.to_owned(), |p| format!("{} %", fixed(p, 0)))
        };
        let name = if o.name.is_empty() { "other memory" } else { &o.name };
        lines.push(format!("| {} | {} | {} |", code(&name.replace('|', "/")), of(&o.before), of(&o.after)));
    }
    lines.extend([String::new(), escaped(&answer[2])]);
    plain(&lines.join("\n")) + "\n"
}

/// What `--fail-if` judges: a row for everything, then one a variable.
pub fn table(it: &Against) -> Table {
    let mut table = columns();
    let percent =
        |value: Option<f64>, why: &str| value.map_or_else(|| Cell::missing(why), |v| Cell::float(v, 1));
    let points = |b: Option<f64>, a: Option<f64>| b.zip(a).map(|(b, a)| a - b);
    let none = || Cell::missing("one number for everything");
    table.row(vec![
        Cell::text("all"),
        Cell::int(it.after.findings.len() as u64),
        Cell::int(it.new.len() as u64),
        Cell::int(it.gone.len() as u64),
        percent(it.remote_after, "no accesses"),
        percent(points(it.remote_before, it.remote_after), "no accesses"),
        percent(it.time.map(|t| t.change), "the times do not compare"),
        percent(it.saved(), "the times do not compare"),
    ]);
    for o in &it.variables {
        let share = |side: &Option<Side>| side.as_ref().and_then(|s| s.remote.percent());
        let (before, after) = (share(&o.before), share(&o.after));
        table.row(vec![
            Cell::text(o.name.as_str()),
            none(),
            none(),
            none(),
            percent(after, "no accesses"),
            percent(points(before, after), "no accesses on a side"),
            none(),
            none(),
        ]);
    }
    table
}

/// The table without rows: what a condition may name.
pub fn columns() -> Table {
    Table::new(
        "explain-against",
        1,
        vec![
            Column::text("variable", "variable"),
            Column::number("findings", "findings after"),
            Column::number("new", "new findings"),
            Column::number("gone", "findings that are gone"),
            Column::unit("remote", "remote after", "%"),
            Column::unit("remote_change", "change of the remote share", "points"),
            Column::unit("time_change", "change of the time", "%"),
            Column::unit("saved", "time saved", "%"),
        ],
    )
}
