//! A [`Glance`] as lines for a terminal of a given width.

use std::cmp::Reverse;

use homenode_report::{Amount, Unit};
use homenode_text::answer::{homes, users};
use homenode_text::human::{bytes, count, elided, glued, percent, plain, plural, time, width, wrapped};
use homenode_text::layout::{Alignment, TextTable};

use crate::glance::{Glance, ObjectLine, State};

/// Columns from which on an object's first toucher has room.
const WIDE: usize = 100;
/// Nodes that are shown at most.
const NODES: usize = 16;
/// Objects of a table without a terminal.
const OBJECTS: usize = 10;
/// Moves of a table without a terminal, and at most on a screen.
const MOVES: usize = 6;
/// Notes of a table without a terminal, and at most on a screen.
const NOTES: usize = 2;

/// How a line stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Not at all.
    #[default]
    Plain,
    /// The first line.
    Title,
    /// Headings of a table.
    Heading,
    /// What is read last.
    Faint,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisplayLine {
    /// Its text.
    pub text: String,
    /// How it stands out.
    pub look: Look,
}

impl DisplayLine {
    fn new(text: impl Into<String>, look: Look) -> Self {
        Self { text: text.into(), look }
    }
}

/// What objects are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// Remote accesses, most first.
    #[default]
    Remote,
    /// Pages that moved, most first.
    Moved,
    /// Size, largest first.
    Size,
}

impl SortOrder {
    /// The next one.
    pub const fn next(self) -> Self {
        match self {
            Self::Remote => Self::Moved,
            Self::Moved => Self::Size,
            Self::Size => Self::Remote,
        }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Remote => "remote",
            Self::Moved => "moved",
            Self::Size => "size",
        }
    }

    fn sorted(self, objects: &[ObjectLine]) -> Vec<&ObjectLine> {
        let mut all: Vec<&ObjectLine> = objects.iter().collect();
        // They come ordered by remote accesses, and the sort is stable.
        match self {
            Self::Remote => {}
            Self::Moved => all.sort_by_key(|o| Reverse(o.moved)),
            Self::Size => all.sort_by_key(|o| Reverse(o.bytes)),
        }
        all
    }
}

/// What a person chose to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// What objects are ordered by.
    pub order: SortOrder,
    /// Objects above the first line.
    pub first: usize,
    /// The keys are shown.
    pub help: bool,
    /// The picture stands still.
    pub paused: bool,
    /// The last line that the program printed.
    pub output: String,
}

/// The keys.
const KEYS: [&str; 10] = [
    "q, Ctrl-C   end homenode top; Ctrl-C also ends the program of 'top -- APP'",
    "↑ ↓         scroll the objects by one line",
    "PgUp PgDn   scroll them by ten lines",
    "Home        back to the first object",
    "o           order of the objects: remote accesses, moved pages, size",
    "p, space    stand still, and go on",
    "? h         these keys",
    "",
    "remote: the accessing node is not the home of the page",
    "now: the last two seconds; everything else counts from the start of the program",
];

/// The sums since the start, in the words of the page.
fn sums(glance: &Glance) -> Option<String> {
    let p = glance.pulse.as_ref()?;
    let rounds = match (p.iterations, p.last_iteration_ns) {
        (0, _) => plural(p.intervals, "interval", "intervals"),
        (n, None) => plural(n, "iteration", "iterations"),
        (n, Some(last)) => {
            format!(
                "{}, the last one {}",
                plural(n, "iteration", "iterations"),
                time(homenode_model::Ns(last))
            )
        }
    };
    let refused = if p.refused > 0 { format!(", {} refused", count(p.refused)) } else { String::new() };
    let parts = [
        time(homenode_model::Ns(p.time_ns)),
        rounds,
        format!("{} moved{refused}", plural(p.moved, "page", "pages")),
        match share(p.remote, p.sightings) {
            Some(remote) => format!("{remote} % of {} remote", plural(p.sightings, "sighting", "sightings")),
            None => "nobody was seen yet".into(),
        },
        match share(p.own_ns, p.cpu_ns) {
            Some(own) => format!("homenode itself {own} % of CPU time"),
            None => String::new(),
        },
    ];
    Some(joined(&parts))
}

/// What happened lately.
fn now(glance: &Glance) -> Option<String> {
    let now = glance.now.filter(|n| n.over.0 > 0)?;
    let remote = match share(now.remote, now.sightings) {
        Some(remote) => {
            format!("{remote} % of {} remote", plural(now.sightings, "sighting", "sightings"))
        }
        None => "nobody was seen".into(),
    };
    Some(format!(
        "now, in {}: {}",
        glued(&time(now.over)),
        joined(&[format!("{} moved", plural(now.moved, "page", "pages")), remote])
    ))
}

fn share(part: u64, whole: u64) -> Option<String> {
    (whole > 0).then(|| percent(100.0 * part as f64 / whole as f64))
}

/// Facts side by side. A line breaks between them.
fn joined(parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().filter(|p| !p.is_empty()).map(|p| glued(p)).collect();
    parts.join(" · ")
}

/// The first lines: what runs, what came of it, what happens now.
pub fn head(glance: &Glance, columns: usize) -> Vec<DisplayLine> {
    let name = if glance.command.is_empty() { "homenode top" } else { &glance.command };
    let state = glance.state.words();
    let room = columns.saturating_sub(width(state) + 2);
    let name = elided(name, room);
    let gap = " ".repeat(columns.saturating_sub(width(&name) + width(state)));
    let title = if room < 8 { elided(state, columns) } else { format!("{name}{gap}{state}") };
    let mut lines = vec![DisplayLine::new(title, Look::Title)];
    for text in [sums(glance), now(glance)].into_iter().flatten() {
        // A fact that is longer than a line breaks where it can.
        let fits = text.split(' ').all(|part| width(part) <= columns);
        let text = if fits { text } else { plain(&text) };
        lines.extend(wrapped(&text, columns).iter().map(|l| DisplayLine::new(plain(l), Look::Plain)));
    }
    lines
}

fn table(layout: &TextTable, columns: usize) -> Vec<DisplayLine> {
    let text = layout.render(columns, false);
    let rule = text.lines().position(|l| l.starts_with('─')).unwrap_or(0);
    let look = |at: usize| if at < rule { Look::Heading } else { Look::Plain };
    text.lines()
        .enumerate()
        .filter(|(at, _)| *at != rule)
        .map(|(at, l)| DisplayLine::new(l, look(at)))
        .collect()
}

/// The nodes.
pub fn nodes(glance: &Glance, columns: usize) -> Vec<DisplayLine> {
    if glance.nodes.is_empty() {
        return Vec::new();
    }
    let mut layout = TextTable::default();
    let pretended = if glance.pretended { "pretended" } else { "" };
    layout.column("node", pretended, Alignment::Number);
    for title in ["CPUs", "threads", "pages"] {
        layout.column(title, "", Alignment::Number);
    }
    layout.column("sightings", "", Alignment::Number);
    layout.column("remote", "%", Alignment::Number);
    let number = |n: Option<u64>| n.map(|n| glued(&count(n))).unwrap_or_default();
    for n in glance.nodes.iter().take(NODES) {
        layout.row(vec![
            n.node.0.to_string(),
            number(n.cpus),
            number(n.threads),
            number(n.pages),
            number(n.seen),
            n.seen.and_then(|seen| share(n.remote, seen)).unwrap_or_default(),
        ]);
    }
    let mut lines = table(&layout, columns);
    if glance.nodes.len() > NODES {
        lines.push(DisplayLine::new(format!("and {} more nodes", glance.nodes.len() - NODES), Look::Faint));
    }
    lines
}

/// An amount. Its basis stands beside it where the heading names another one.
fn amount(amount: &Amount, glance: &Glance) -> String {
    let number = count(amount.units().1);
    match amount.basis() {
        Some(basis) if Some(basis) != glance.basis => format!("{number} ({})", basis.word()),
        _ => number,
    }
}

/// Objects from `choice.first` on, in `rows` lines with their headings.
pub fn objects(glance: &Glance, columns: usize, rows: usize, choice: &Choice) -> Vec<DisplayLine> {
    let all = choice.order.sorted(&glance.objects);
    if all.is_empty() {
        return vec![DisplayLine::new("no objects yet", Look::Faint)];
    }
    let unit = glance.unit.map_or("accesses", Unit::as_str);
    let mut layout = TextTable::default();
    layout.column("name", "", Alignment::Text);
    layout.column("size", "", Alignment::Number);
    layout.column(unit, glance.basis.map_or("", |b| b.word().as_str()), Alignment::Number);
    layout.column("remote", "%", Alignment::Number);
    layout.column("moved", "pages", Alignment::Number);
    layout.column(&glued("used by"), "", Alignment::Text);
    layout.column(&glued("lives on"), "", Alignment::Text);
    if columns >= WIDE {
        layout.column(&glued("first touch by"), "", Alignment::Text);
    }
    for o in all.iter().skip(choice.first.min(all.len() - 1)).take(rows) {
        let cells = [
            o.name.clone(),
            o.bytes.map(bytes).unwrap_or_default(),
            o.accesses.map(|a| amount(&a, glance)).unwrap_or_default(),
            o.remote.and_then(|r| r.percent()).map(percent).unwrap_or_default(),
            if o.moved > 0 { count(o.moved) } else { String::new() },
            users(&o.used_by),
            homes(&o.lives),
            if columns >= WIDE { o.touched.clone() } else { String::new() },
        ];
        // One line an object: a cell does not wrap.
        layout.row(cells.iter().map(|c| glued(c)).take(if columns >= WIDE { 8 } else { 7 }).collect());
    }
    let mut lines = table(&layout, columns);
    lines.truncate(rows);
    lines
}

/// The latest moves, in at most `rows` lines with their headings.
pub fn moves(glance: &Glance, columns: usize, rows: usize) -> Vec<DisplayLine> {
    if glance.moves.is_empty() || rows < 3 {
        return Vec::new();
    }
    let mut layout = TextTable::default();
    layout.column(&glued("moved at"), "", Alignment::Number);
    layout.column("object", "", Alignment::Text);
    layout.column("page", "", Alignment::Number);
    layout.column("pages", "", Alignment::Number);
    layout.column("nodes", "", Alignment::Number);
    layout.column("why", "", Alignment::Text);
    layout.column("outcome", "", Alignment::Text);
    for m in glance.moves.iter().take(rows) {
        let cells = [
            time(m.time),
            m.object.clone(),
            count(m.page),
            count(m.pages),
            format!("{} → {}", m.from.0, m.to.0),
            m.cause.to_string(),
            m.outcome.to_string(),
        ];
        layout.row(cells.iter().map(|c| glued(c)).collect());
    }
    let mut lines = table(&layout, columns);
    lines.truncate(rows);
    lines
}

fn notes(glance: &Glance, columns: usize) -> Vec<DisplayLine> {
    let all = glance.notes.iter().take(NOTES).flat_map(|n| wrapped(n, columns));
    all.map(|text| DisplayLine::new(text, Look::Faint)).collect()
}

/// Everything as one text: a table a second where there is no terminal.
pub fn text(glance: &Glance, columns: usize) -> String {
    let parts = [
        head(glance, columns),
        nodes(glance, columns),
        objects(glance, columns, OBJECTS + 2, &Choice::default()),
        moves(glance, columns, MOVES + 1),
        notes(glance, columns),
    ];
    let part = |lines: Vec<DisplayLine>| {
        lines.iter().map(|l| format!("{}\n", l.text.trim_end())).collect::<String>()
    };
    let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).map(part).collect();
    parts.join("\n") + "\n"
}

/// Everything that fits on a screen.
pub fn screen(glance: &Glance, columns: usize, rows: usize, choice: &Choice) -> Vec<DisplayLine> {
    let foot = foot(glance, columns, choice);
    let mut lines = head(glance, columns);
    let room = rows.saturating_sub(foot.len());
    lines.push(DisplayLine::default());
    if choice.help {
        lines.extend(
            KEYS.iter().flat_map(|k| wrapped_key(k, columns)).map(|k| DisplayLine::new(k, Look::Plain)),
        );
    } else {
        let left = |lines: &[DisplayLine]| room.saturating_sub(lines.len());
        let mut nodes = nodes(glance, columns);
        // Objects matter more than the last of many nodes.
        nodes.truncate((left(&lines) / 3).max(4));
        if !nodes.is_empty() {
            lines.extend(nodes);
            lines.push(DisplayLine::default());
        }
        let mut below = moves(glance, columns, (left(&lines) / 3).min(MOVES + 1));
        let notes = notes(glance, columns);
        if left(&lines) > below.len() + notes.len() + 8 {
            below.extend((!below.is_empty() && !notes.is_empty()).then(DisplayLine::default));
            below.extend(notes);
        }
        let above = left(&lines).saturating_sub(below.len() + usize::from(!below.is_empty()));
        let mut objects = objects(glance, columns, above, choice);
        objects.resize(above, DisplayLine::default());
        lines.extend(objects);
        if !below.is_empty() {
            lines.push(DisplayLine::default());
            lines.extend(below);
        }
    }
    lines.resize(room, DisplayLine::default());
    lines.extend(foot);
    lines.truncate(rows);
    lines
}

/// A line of the keys: what it says begins below itself where it wraps.
fn wrapped_key(key: &str, columns: usize) -> Vec<String> {
    if width(key) <= columns || columns < 30 {
        return vec![elided(key, columns)];
    }
    let (name, says) = key.split_at(key.char_indices().nth(12).map_or(key.len(), |(at, _)| at));
    let says = wrapped(says, columns - 12);
    let begin = |at: usize| if at == 0 { name.to_owned() } else { " ".repeat(12) };
    says.iter().enumerate().map(|(at, line)| begin(at) + line).collect()
}

/// The last lines: what the program printed last, and the keys.
fn foot(glance: &Glance, columns: usize, choice: &Choice) -> Vec<DisplayLine> {
    let mut lines = Vec::new();
    if !choice.output.is_empty() {
        lines.push(DisplayLine::new(elided(&format!("program: {}", choice.output), columns), Look::Plain));
    }
    let last = glance.objects.len().saturating_sub(1);
    let first = choice.first.min(last);
    let scrolled = if first > 0 { format!(" · from object {}", first + 1) } else { String::new() };
    let paused = if choice.paused { " · paused" } else { "" };
    let ended = if matches!(glance.state, State::Ended | State::Gone) { " · this is all of it" } else { "" };
    let text = format!("q quit · ? keys · o order: {}{scrolled}{paused}{ended}", choice.order.word());
    lines.push(DisplayLine::new(elided(&text, columns), Look::Faint));
    lines
}
