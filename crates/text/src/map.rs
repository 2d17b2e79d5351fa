//! The residency picture in the terminal: time from left to right, an object's pages from top to
//! bottom, colour or letter = home node.

use std::fmt::Write as _;

use homenode_model::NodeId;
use homenode_report::Map;
use homenode_report::map::{Band, MapCell, MapColumn, MapObject, MapSource};

use crate::answer::named;
use crate::human::{bytes, count, elided, grouped, plain, plural, time, width, wrapped};
use homenode_model::{Bytes, Ns};

/// Columns of the labels on the left, with the gap behind them.
const LABEL: usize = 11;
/// Most columns that one interval takes.
const STRETCH: usize = 8;

/// Okabe's and Ito's colours, which colour-blind readers tell apart, as numbers of the terminal's
/// 256; and whether black stands out on it. Grey stands for their black.
const PALETTE: [(u8, bool); 8] =
    [(250, true), (214, true), (74, true), (36, true), (227, true), (25, false), (166, false), (175, true)];

/// Letters for more nodes than digits tell apart.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz";
/// What stands for all nodes behind the last letter.
const OTHER: char = '*';
/// No node is home to three quarters of the pages.
const MIXED: char = '~';
/// No page lives.
const NOBODY: char = '·';
/// Pages moved.
const MOVED: char = '+';
/// Some of the pages that moved went back.
const BACK: char = 'x';

/// Columns of a map in an output of `columns` columns.
pub fn room(columns: usize) -> usize {
    columns.saturating_sub(LABEL).max(1)
}

/// How nodes are told apart.
struct Signs<'a> {
    homes: &'a [NodeId],
    /// With colours: up to eight nodes.
    colours: bool,
}

impl Signs<'_> {
    fn index(&self, home: NodeId) -> usize {
        self.homes.binary_search(&home).unwrap_or(usize::MAX)
    }

    /// The node's number where all are digits, else a letter.
    fn letter(&self, home: NodeId) -> char {
        let digits = self.homes.last().is_none_or(|last| last.0 < 10);
        match digits {
            true => char::from_digit(home.0.into(), 10).unwrap_or(OTHER),
            false => LETTERS.chars().nth(self.index(home)).unwrap_or(OTHER),
        }
    }

    /// Numbers of nodes below eight have the same colour in every picture.
    fn colour(&self, home: NodeId) -> (u8, bool) {
        let by_number = self.homes.last().is_none_or(|last| last.index() < PALETTE.len());
        PALETTE[if by_number { home.index() } else { self.index(home) } % PALETTE.len()]
    }

    /// A run of equal cells.
    fn cells(&self, cell: &MapCell, columns: usize) -> String {
        let Some(home) = cell.home else { return NOBODY.to_string().repeat(columns) };
        let sign = match (cell.is_mixed(), self.colours) {
            (true, _) => MIXED,
            (false, true) => ' ',
            (false, false) => self.letter(home),
        };
        self.painted(&sign.to_string().repeat(columns), home)
    }

    fn painted(&self, text: &str, home: NodeId) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let (colour, dark) = self.colour(home);
        format!("\x1b[{};48;5;{colour}m{text}\x1b[0m", if dark { "30" } else { "97" })
    }
}

/// The picture in `columns` columns.
pub fn draw(map: &Map, columns: usize, colours: bool) -> String {
    let signs = Signs { homes: &map.homes, colours: colours && map.homes.len() <= PALETTE.len() };
    let each = (room(columns) / map.columns.len().max(1)).clamp(1, STRETCH);
    let mut out = String::new();
    if map.objects.is_empty() {
        out += "the recording does not tell where pages lived\n";
        return out;
    }
    axis(&mut out, map, each);
    for object in &map.objects {
        draw_object(&mut out, map, object, &signs, each, columns);
    }
    out.push('\n');
    for line in legend(map, &signs, each, columns) {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn line(out: &mut String, label: &str, rest: &str) {
    let text = format!("{label:>w$} {rest}", w = LABEL - 1);
    let _ = writeln!(out, "{}", text.trim_end());
}

/// Marks where something begins, as far as there is room: `|0 ns    |12.0 ms`.
fn marks(columns: &[MapColumn], each: usize, mark: impl Fn(usize, &MapColumn) -> Option<String>) -> String {
    let most = columns.len() * each;
    let mut text = String::new();
    for (i, column) in columns.iter().enumerate() {
        let Some(mark) = mark(i, column).map(|m| format!("|{m}")) else { continue };
        let (at, end) = (i * each, width(&text));
        let apart = end == 0 || at >= end + 2;
        if apart && at + width(&mark) <= most.max(width(&mark)) {
            text += &" ".repeat(at - end);
            text += &mark;
        }
    }
    text
}

fn axis(out: &mut String, map: &Map, each: usize) {
    let begin = |c: &MapColumn| time(Ns(round(c.begin_ns.0)));
    // Times that read alike are not repeated.
    let new = |i: usize, text: &String| i.checked_sub(1).is_none_or(|b| begin(&map.columns[b]) != *text);
    line(out, "time", &marks(&map.columns, each, |i, c| Some(begin(c)).filter(|text| new(i, text))));
    let iteration = |i: usize, c: &MapColumn| {
        let before = i.checked_sub(1).and_then(|b| map.columns[b].iteration);
        c.iteration.filter(|n| before != Some(*n)).map(|n| n.to_string())
    };
    let text = marks(&map.columns, each, iteration);
    if !text.is_empty() {
        line(out, "iteration", &text);
    }
    if map.columns.iter().any(|c| !c.timed) {
        let part = |c: &MapColumn| if c.timed { "=" } else { "-" }.repeat(each);
        line(out, "counted", &map.columns.iter().map(part).collect::<String>());
    }
}

/// Three digits are enough for an axis.
fn round(ns: u64) -> u64 {
    let step = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(2));
    ns / step * step
}

fn draw_object(
    out: &mut String,
    map: &Map,
    object: &MapObject,
    signs: &Signs<'_>,
    each: usize,
    columns: usize,
) {
    let size = bytes(Bytes(object.pages.saturating_mul(map.page_bytes)));
    let about = format!("  {size} in {}", plural(object.pages, "page", "pages"));
    let name = named(&object.name, object.object.is_some());
    let _ = writeln!(out, "\n{}{about}", elided(&name, columns.saturating_sub(width(&about))));
    for band in &object.bands {
        let label = if object.bands.len() > 1 { page(band.page) } else { String::new() };
        line(out, &label, &draw_band(band, signs, each));
    }
    let moved = |i: usize| {
        let cells = object.bands.iter().filter_map(|b| b.cells.get(i));
        cells.fold((0_u64, 0_u64), |(m, b), c| (m.saturating_add(c.moved), b.saturating_add(c.ping_pongs)))
    };
    let signs: Vec<char> = (0..map.columns.len())
        .map(|i| match moved(i) {
            (0, _) => ' ',
            (_, 0) => MOVED,
            _ => BACK,
        })
        .collect();
    if signs.iter().any(|s| *s != ' ') {
        // The sign stands where its column begins.
        let text: String = signs.iter().map(|s| format!("{s:<each$}")).collect();
        line(out, "moves", &text);
    }
}

/// A page's number, as exact as there is room.
fn page(page: u64) -> String {
    let all = [format!("page {page}"), page.to_string()];
    all.into_iter().find(|text| text.len() < LABEL).unwrap_or_else(|| count(page))
}

fn draw_band(band: &Band, signs: &Signs<'_>, each: usize) -> String {
    let same = |a: &MapCell, b: &MapCell| (a.home, a.is_mixed()) == (b.home, b.is_mixed());
    band.cells.chunk_by(same).map(|run| signs.cells(&run[0], run.len() * each)).collect()
}

/// A sign and what it means. Columns are counted apart: escape sequences take none.
struct Key {
    columns: usize,
    text: String,
}

impl Key {
    fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { columns: width(&text), text }
    }
}

fn keys(map: &Map, signs: &Signs<'_>) -> Vec<Key> {
    let of_node = |home: &NodeId| match (signs.colours, signs.letter(*home)) {
        (true, _) => {
            let text = format!(" node {}", home.0);
            Key { columns: 2 + width(&text), text: signs.painted("  ", *home) + &text }
        }
        (false, letter) => Key::plain(format!("{letter} node {}", home.0)),
    };
    let told = |home: &&NodeId| signs.colours || signs.letter(**home) != OTHER;
    let mut keys: Vec<Key> = map.homes.iter().filter(told).map(of_node).collect();
    let cells = || map.objects.iter().flat_map(|o| &o.bands).flat_map(|b| &b.cells);
    let others = [
        (keys.len() < map.homes.len(), OTHER, "another node"),
        (cells().any(MapCell::is_mixed), MIXED, "no node has 3/4 of the pages"),
        (cells().any(|c| c.home.is_none()), NOBODY, "no page lives"),
        (cells().any(|c| c.moved > 0), MOVED, "pages moved"),
        (cells().any(|c| c.ping_pongs > 0), BACK, "some of them back again"),
        (map.columns.iter().any(|c| !c.timed), '=', "counted"),
        (map.columns.iter().any(|c| !c.timed), '-', "left out of results"),
    ];
    let used = others.into_iter().filter(|(used, ..)| *used);
    keys.extend(used.map(|(_, sign, what)| Key::plain(format!("{sign} {what}"))));
    keys
}

fn legend(map: &Map, signs: &Signs<'_>, each: usize, columns: usize) -> Vec<String> {
    const GAP: usize = 3;
    let mut lines: Vec<(usize, String)> = Vec::new();
    for key in keys(map, signs) {
        match lines.last_mut() {
            Some((used, line)) if *used + GAP + key.columns <= columns => {
                *used += GAP + key.columns;
                *line += &" ".repeat(GAP);
                *line += &key.text;
            }
            _ => lines.push((key.columns, key.text)),
        }
    }
    let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    let intervals = map.columns.iter().map(|c| u64::from(c.until.0 - c.interval.0) + 1).max();
    let mut about = vec![match (each, intervals.unwrap_or(1)) {
        (1, 1) => "a column is an interval".to_owned(),
        (1, n) => format!("a column is up to {} intervals", grouped(n)),
        (each, _) => format!("{each} columns are an interval"),
    }];
    if map.source == MapSource::Accesses {
        about.push("drawn from accesses: pages that nobody accessed are not known".into());
    }
    if map.objects_left_out > 0 {
        let left = plural(map.objects_left_out, "smaller object is", "smaller objects are");
        about.push(format!("{left} left out: --height shows more"));
    }
    lines.extend(wrapped(&about.join("; "), columns).iter().map(|line| plain(line)));
    lines
}
