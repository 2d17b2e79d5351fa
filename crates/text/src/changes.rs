//! What changed from one recording to another: an answer, then a row an object.

use std::fmt::Write as _;

use homenode_model::Ps;
use homenode_report::diff::{Diff, Matched, ObjectDiff, Side, Unlike};
use homenode_report::summary::Summary;
use homenode_report::{Amount, Share, Unit};
use homenode_table::{Cell, Column, Table};

use crate::answer::named;
use crate::human::{
    bytes, count, elided, fixed, glued, grouped, modelled, percent, plain, time, width, wrapped,
};
use crate::layout::{Alignment, TextTable};
use crate::page::PageDetail;

/// Columns of the first lines, however wide the terminal is.
const WIDTH: usize = 80;
/// What changed, in words. `unchanged`: objects that are not in `diff` because they are the same.
pub fn page(diff: &Diff, unchanged: usize, how: PageDetail) -> String {
    let PageDetail { width: most, bold, top, .. } = how;
    let shown = &diff.objects[..diff.objects.len().min(top)];
    let mut out = String::new();
    for line in answer(diff).into_iter().take(3) {
        let _ = writeln!(out, "{}", plain(&elided(&line, most.min(WIDTH))));
    }
    let table = changes(diff, shown);
    if !table.is_empty() {
        let _ = write!(out, "\n{}", table.render(most, bold));
    }
    out.push('\n');
    let notes = notes(diff, diff.objects.len() - shown.len(), unchanged);
    for line in notes.iter().flat_map(|n| wrapped(n, most)) {
        let _ = writeln!(out, "{}", plain(&line));
    }
    out
}

/// What is missing of the two.
pub fn partial(diff: &Diff) -> Option<String> {
    let sides = [("BEFORE", &diff.before), ("AFTER", &diff.after)];
    let lacking: Vec<String> =
        sides.iter().filter_map(|(name, s)| Some(format!("{name}: {}", s.missing.first()?))).collect();
    (!lacking.is_empty()).then(|| format!("not whole: {}", lacking.join("; ")))
}

/// The first lines: what is missing, whether numbers compare, what became of remote accesses and
/// iterations, which object changed most. Whoever prints takes three.
pub fn answer(diff: &Diff) -> Vec<String> {
    let mut lines: Vec<String> = partial(diff).into_iter().collect();
    if diff.unlike.contains(&Unlike::CountsAndPresence) {
        let what = |s: &Summary| if s.remote.of == Unit::Accesses { "counts" } else { "presence" };
        lines.push(format!(
            "BEFORE has {}, AFTER has {}: their numbers are not subtracted",
            what(&diff.before),
            what(&diff.after)
        ));
    }
    let mut line = remote(diff);
    if let Some(rounds) = iterations(diff).filter(|r| width(&line) + width(r) < WIDTH) {
        let _ = write!(line, "; {rounds}");
    }
    lines.push(line);
    match diff.objects.first().filter(|o| o.is_changed()) {
        None => lines.push("no object changed".into()),
        Some(o) => lines.push(most_changed(o)),
    }
    lines
}

/// The remote shares of both. Shares of sightings and of accesses each say what they are.
fn remote(diff: &Diff) -> String {
    let (before, after) = (&diff.before, &diff.after);
    let basis = |s: &Summary| s.accesses.basis().map_or("no", |b| b.word().as_str());
    if before.remote.of != after.remote.of {
        let one = |s: &Summary| {
            let share = s.remote.percent().map_or_else(|| LACKING.to_owned(), percent);
            format!("{share} % of {} ({})", s.remote.of, basis(s))
        };
        return format!("remote {} → {}", one(before), one(after));
    }
    let bases = match (basis(before), basis(after)) {
        (b, a) if a == b => a.to_owned(),
        (b, a) => format!("{b}, {a}"),
    };
    format!("remote {} of {} ({bases})", shares(&before.remote, &after.remote), after.remote.of)
}

/// The median times of an iteration.
fn iterations(diff: &Diff) -> Option<String> {
    let (before, after) = diff.before.iterations.zip(diff.after.iterations)?;
    let mut text = format!("iterations {} → {}", time(before.median_ns), time(after.median_ns));
    if let Some(change) = diff.iteration_ns {
        let relative = change as f64 / before.median_ns.0.max(1) as f64 * 100.0;
        let _ = write!(text, " ({} %)", signed(relative));
    }
    Some(text)
}

fn most_changed(o: &ObjectDiff) -> String {
    let end = match (&o.before, &o.after) {
        (Some(b), Some(a)) if b.remote.percent().is_some() && a.remote.percent().is_some() => {
            format!(" changed most: remote {}", shares(&b.remote, &a.remote))
        }
        (Some(_), Some(_)) => " changed most".into(),
        (Some(_), None) => " changed most: AFTER lacks it".into(),
        (None, _) => " changed most: BEFORE lacks it".into(),
    };
    let moved = |side: &Option<Side>| side.as_ref().map_or(0, |s| s.pages_moved);
    let moved = match (moved(&o.before), moved(&o.after)) {
        (b, a) if a == b => String::new(),
        (b, a) => format!(", pages moved {} → {}", count(b), count(a)),
    };
    let end = end + &moved;
    elided(&name(o), WIDTH.saturating_sub(width(&end)).max(12)) + &end
}

/// A signed number with one digit after the point.
fn signed(value: f64) -> String {
    let text = fixed(value, 1);
    match text.strip_prefix('-') {
        Some(number) => format!("−{number}"),
        None if value > 0.0 && text.bytes().any(|b| matches!(b, b'1'..=b'9')) => format!("+{text}"),
        None => text,
    }
}

/// `75.0 → 3.8 %`; one number where they read alike.
fn shares(before: &Share, after: &Share) -> String {
    let of = |s: &Share| s.percent().map_or_else(|| LACKING.to_owned(), percent);
    format!("{} %", arrow(of(before), of(after), before == after))
}

/// Both texts with an arrow between them; one where nothing changed.
fn arrow(before: String, after: String, same: bool) -> String {
    if same { glued(&after) } else { format!("{} {}", glued(&before), glued(&format!("→ {after}"))) }
}

fn name(o: &ObjectDiff) -> String {
    let known = [&o.before, &o.after].into_iter().flatten().any(|s| s.object.is_some());
    named(&o.name, known)
}

/// What stands for a number of a recording that lacks the object.
const LACKING: &str = "–";

fn changes(diff: &Diff, objects: &[ObjectDiff]) -> TextTable {
    let mut table = TextTable::default();
    // Where one recording has counts and the other presence, equal numbers are not the same.
    let alike = diff.before.remote.of == diff.after.remote.of;
    table.column("name", "", Alignment::Text);
    table.column("size", "", Alignment::Change);
    table.column("remote", "%", Alignment::Change);
    table.column(
        match (diff.before.remote.of, diff.after.remote.of) {
            (Unit::Accesses, Unit::Accesses) => "accesses",
            (Unit::Sightings, Unit::Sightings) => "sightings",
            _ => "seen",
        },
        "",
        Alignment::Change,
    );
    table.column("time", "", Alignment::Change);
    table.column("moved", "pages", Alignment::Change);
    for o in objects {
        let of = |text: &dyn Fn(&Side) -> Option<String>, missing: &str| {
            let one = |side: &Option<Side>| match side {
                Some(side) => text(side),
                None => Some(missing.to_owned()),
            };
            match (one(&o.before), one(&o.after)) {
                (None, None) => String::new(),
                (b, a) if a == b && alike => glued(&a.unwrap_or_default()),
                (b, a) => {
                    arrow(b.unwrap_or_else(|| LACKING.into()), a.unwrap_or_else(|| LACKING.into()), false)
                }
            }
        };
        let known = [&o.before, &o.after].into_iter().flatten().any(|s| s.object.is_some());
        let any_moved = [&o.before, &o.after].into_iter().flatten().any(|s| s.pages_moved > 0);
        table.row(vec![
            name(o),
            if known { size(o) } else { String::new() },
            of(&|s| s.remote.percent().map(percent), LACKING),
            of(&|s| Some(amount(&s.accesses, diff)), LACKING),
            of(&|s| s.memory_time.filter(|t| *t > Ps::ZERO).map(modelled), LACKING),
            if any_moved { of(&|s| Some(count(s.pages_moved)), LACKING) } else { String::new() },
        ]);
    }
    table
}

fn size(o: &ObjectDiff) -> String {
    let of = |side: &Option<Side>| side.as_ref().map_or_else(|| LACKING.to_owned(), |s| bytes(s.bytes));
    let (before, after) = (of(&o.before), of(&o.after));
    let same = before == after;
    arrow(before, after, same)
}

/// An amount, with its basis where the two recordings have several.
fn amount(amount: &Amount, diff: &Diff) -> String {
    let number = count(amount.units().1);
    let several = diff.unlike.iter().any(|u| matches!(u, Unlike::Basis | Unlike::CountsAndPresence));
    match amount.basis() {
        Some(basis) if several => format!("{number} {}", basis.word()),
        _ => number,
    }
}

fn notes(diff: &Diff, hidden: usize, unchanged: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let plural = |n: usize| if n == 1 { "object" } else { "objects" };
    if hidden > 0 {
        notes.push(format!("{} more {} changed: --top lists them", grouped(hidden as i128), plural(hidden)));
    }
    if unchanged > 0 {
        notes.push(format!(
            "{} {} did not change: --all lists them",
            grouped(unchanged as i128),
            plural(unchanged)
        ));
    }
    for (name, s) in [("BEFORE", &diff.before), ("AFTER", &diff.after)] {
        if s.missing.len() > 1 {
            notes.extend(s.missing.iter().map(|m| format!("{name}: {m}")));
        }
    }
    for unlike in &diff.unlike {
        notes.push(match unlike {
            Unlike::Command => format!(
                "the programs differ: '{}' and '{}'",
                diff.before.command.join(" "),
                diff.after.command.join(" ")
            ),
            Unlike::Machine => format!(
                "the machines differ: {} with {} nodes and {} with {}",
                diff.before.machine,
                diff.before.nodes.len(),
                diff.after.machine,
                diff.after.nodes.len()
            ),
            Unlike::CountsAndPresence => "a share of sightings is no share of accesses".into(),
            Unlike::Basis => "the counts have different bases: the weaker one limits every difference".into(),
            Unlike::Clock => {
                "one clock is the wall's, the other is modelled: times are not subtracted".into()
            }
            Unlike::Scope => "one recording counts its timed part, the other counts everything".into(),
            Unlike::PageBytes => "the pages have different sizes: numbers of pages do not compare".into(),
        });
    }
    let by = |how: Matched| diff.objects.iter().filter(|o| o.matched == Some(how)).count();
    for (how, what) in [(Matched::Name, "name"), (Matched::Place, "the function that allocates them")] {
        if by(how) > 0 {
            notes.push(format!(
                "matched by {what}, as ids differ: {} {}",
                grouped(by(how) as i128),
                plural(by(how))
            ));
        }
    }
    notes
}

/// A number of one side.
type Value<'a> = &'a dyn Fn(&Side) -> Option<Cell>;

/// The objects for `--csv` and `--fail-if`.
pub fn table(diff: &Diff) -> Table {
    let mut columns = vec![
        Column::text("object", "object"),
        Column::text("matched", "matched by"),
        Column::text("id_before", "id before"),
        Column::text("id_after", "id after"),
    ];
    let both: [(&'static str, &'static str, &'static str, Option<&'static str>); 7] = [
        ("bytes_before", "bytes_after", "size", Some("bytes")),
        ("remote_before", "remote_after", "remote", Some("%")),
        ("accesses_before", "accesses_after", "accesses", None),
        ("basis_before", "basis_after", "basis", None),
        ("time_before", "time_after", "time", Some("ms")),
        ("avoidable_before", "avoidable_after", "avoidable", Some("ms")),
        ("moved_before", "moved_after", "pages moved", None),
    ];
    for (before, after, title, unit) in both {
        for (key, when) in [(before, "before"), (after, "after")] {
            columns.push(Column { unit, ..Column::number(key, format!("{title} {when}")) });
        }
    }
    columns.push(Column::number("remote_change", "change of remote accesses"));
    columns.push(Column::unit("share_change", "change of the remote share", "points"));
    let mut table = Table::new("diff", 1, columns);
    for o in &diff.objects {
        let cell = |side: &Option<Side>, of: &dyn Fn(&Side) -> Option<Cell>, why: &str| match side {
            Some(side) => of(side).unwrap_or_else(|| Cell::missing(why)),
            None => Cell::missing("this recording lacks the object"),
        };
        let milliseconds = |t: Option<Ps>| t.map(|t| Cell::float(t.secs() * 1e3, 3));
        let matched = o.matched.map_or("one recording only", |m| match m {
            Matched::Id => "id",
            Matched::Name => "name",
            Matched::Place => "place",
        });
        let id = |side: &Option<Side>| cell(side, &|s| Some(Cell::text(s.id.as_str())), "");
        let mut row = vec![Cell::text(name(o)), Cell::text(matched), id(&o.before), id(&o.after)];
        let values: [(Value<'_>, &str); 7] = [
            (&|s| Some(Cell::int(s.bytes.0)), ""),
            (&|s| s.remote.percent().map(|p| Cell::Percent(p, 1)), "nothing was accessed"),
            (&|s| s.accesses.count().map(|c| Cell::int(c.parts().0)), "presence is no count"),
            (&|s| s.accesses.basis().map(|b| Cell::text(b.word().as_str())), "nothing was accessed"),
            (&|s| milliseconds(s.memory_time), "no counts or no latencies"),
            (&|s| milliseconds(s.avoidable), "no counts or no latencies"),
            (&|s| Some(Cell::int(s.pages_moved)), ""),
        ];
        for (of, why) in values {
            row.push(cell(&o.before, of, why));
            row.push(cell(&o.after, of, why));
        }
        let why = "presence is no count";
        row.push(o.change.remote.map_or_else(|| Cell::missing(why), Cell::int));
        let points = o.change.remote_per_million.map(|n| Cell::float(n as f64 / 1e4, 1));
        row.push(points.unwrap_or_else(|| Cell::missing("the shares do not compare")));
        table.row(row);
    }
    table
}
