//! Matrices with a light shade from good to bad, curves, and what was found on the way.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use homenode_measure::{Credibility, MeasuredCell, Measurement, Mix, NodeNumber, NodePair, Subject, knee};

use crate::human::{grouped, hung, plural};

/// Backgrounds from good to bad, of the 256-colour palette; all light enough for black letters.
const SHADES: [u8; 5] = [157, 193, 229, 223, 217];

/// Columns of a row's name, and of a value with its gap.
const NAME: usize = 8;
const VALUE: usize = 11;

/// Cells by row and column.
type Cells<'a> = BTreeMap<(NodeNumber, NodeNumber), &'a MeasuredCell>;

/// The whole report, in lines of at most `width` columns.
pub fn matrices(m: &Measurement, colour: bool, width: usize) -> String {
    let mut out = head(m);
    let mut groups: Vec<(String, Cells<'_>)> = Vec::new();
    for cell in &m.cells {
        let Some((title, at)) = place(&cell.subject) else { continue };
        let title = format!("{title}, {}", cell.unit.name());
        match groups.iter_mut().find(|(t, _)| *t == title) {
            Some((_, cells)) => {
                cells.insert(at, cell);
            }
            None => groups.push((title, BTreeMap::from([(at, cell)]))),
        }
    }
    for (title, cells) in &groups {
        matrix(&mut out, title, cells, colour, width);
        if title.starts_with("Idle latency") && m.host.nodes.len() > 1 {
            firmware(&mut out, m, cells, width);
        }
    }
    several(&mut out, m);
    curves(&mut out, m);
    out += &hung(&foot(m), width);
    out
}

fn head(m: &Measurement) -> String {
    let nodes = plural(m.host.nodes.len() as u64, "node", "nodes");
    let mut out = format!("{} · {} · {nodes}\n", m.host.cpu_model, m.host.kernel);
    let s = &m.host.state;
    let state = [
        ("governor", &s.governor),
        ("SMT", &s.smt.as_deref().map(smt)),
        ("THP", &s.thp),
        ("NUMA balancing", &s.numa_balancing.as_deref().map(balancing)),
        ("isolated CPUs", &s.isolated),
        ("load", &s.load),
    ];
    let said: Vec<_> = state.iter().filter_map(|(k, v)| v.as_ref().map(|v| format!("{k} {v}"))).collect();
    if !said.is_empty() {
        let _ = writeln!(out, "{}", said.join(" · "));
    }
    out
}

/// What the kernel says of simultaneous multithreading, in words.
fn smt(control: &str) -> String {
    match control {
        "notsupported" | "notimplemented" => "not there",
        "forceoff" => "off until the next boot",
        other => other,
    }
    .into()
}

/// The kernel's number for NUMA balancing, in words.
fn balancing(mode: &str) -> String {
    match mode {
        "0" => "off",
        "1" => "on",
        other => other,
    }
    .into()
}

/// The matrix and the place in it; what has no place in one is shown in other ways.
fn place(subject: &Subject) -> Option<(String, (NodeNumber, NodeNumber))> {
    Some(match subject {
        Subject::Latency { pair, page } => {
            (format!("Idle latency, {} pages", page.name()), (pair.cpu, pair.memory))
        }
        Subject::Bandwidth { pairs, share: None, threads, op, stores, page } if pairs.len() == 1 => {
            let (op, stores, page) = (op.name(), stores.name(), page.name());
            let title = format!("Bandwidth, {op}, {stores} stores, threads {threads}, {page} pages");
            (title, (pairs[0].cpu, pairs[0].memory))
        }
        Subject::Core { nodes, home, .. } => {
            let side = if *home == nodes.0 { "row" } else { "column" };
            (format!("A line between two CPUs, one way, at home on the {side}'s node"), *nodes)
        }
        Subject::Migration { from, to, page } => {
            (format!("Moving {} pages from row to column", page.name()), (*from, *to))
        }
        Subject::NextTouch { from, to, page } => {
            (format!("Next touch of the row's {} pages from the column, a page", page.name()), (*from, *to))
        }
        _ => return None,
    })
}

/// A matrix; one that is wider than the terminal in parts, one below the other.
fn matrix(out: &mut String, title: &str, cells: &Cells<'_>, colour: bool, width: usize) {
    let (mut rows, mut columns): (Vec<NodeNumber>, Vec<NodeNumber>) = cells.keys().copied().unzip();
    for list in [&mut rows, &mut columns] {
        list.sort();
        list.dedup();
    }
    let values: Vec<f64> = cells.values().filter_map(|c| c.value).collect();
    let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let shade = |cell: &MeasuredCell| {
        let value = cell.value.filter(|_| colour && most > least)?;
        let share = (value - least) / (most - least);
        let bad = if cell.unit.less_is_better() { share } else { 1.0 - share };
        Some(SHADES[((bad * SHADES.len() as f64) as usize).min(SHADES.len() - 1)])
    };
    let _ = writeln!(out, "\n{}", hung(title, width));
    let abreast = (width.saturating_sub(NAME) / VALUE).max(1);
    for (i, columns) in columns.chunks(abreast).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        part(out, cells, &rows, columns, &shade);
    }
}

/// Some columns of a matrix. `shade` gives the background of a cell.
fn part(
    out: &mut String,
    cells: &Cells<'_>,
    rows: &[NodeNumber],
    columns: &[NodeNumber],
    shade: &dyn Fn(&MeasuredCell) -> Option<u8>,
) {
    let _ = write!(out, "{:>NAME$}", "node");
    for column in columns {
        let _ = write!(out, "{:>VALUE$}", column.0);
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{:>NAME$}", row.0);
        for column in columns {
            let cell = cells.get(&(*row, *column));
            let text = cell.map_or_else(|| "·".to_owned(), |c| shown(c));
            let _ = match cell.and_then(|c| shade(c)) {
                Some(shade) => write!(out, " \u{1b}[30;48;5;{shade}m{text:>10}\u{1b}[0m"),
                None => write!(out, "{text:>VALUE$}"),
            };
        }
        out.push('\n');
    }
}

/// What firmware says of the same pairs, in a line each.
fn firmware(out: &mut String, m: &Measurement, cells: &Cells<'_>, width: usize) {
    let text = |what: &str, of: &dyn Fn(NodeNumber, NodeNumber) -> Option<String>| {
        let all: Option<Vec<String>> = cells.keys().map(|(a, b)| of(*a, *b)).collect();
        all.map(|values| hung(&format!("  {what}, row by row: {}\n", values.join(" ")), width))
    };
    let slit = text("SLIT", &|a, b| m.host.distance(a, b).map(|d| d.to_string()));
    let hmat = text("HMAT, ns", &|a, b| m.host.firmware(a, b)?.read_ns.map(|n| n.to_string()));
    slit.into_iter().chain(hmat).for_each(|t| *out += &t);
}

fn shown(cell: &MeasuredCell) -> String {
    match (&cell.verdict, cell.value) {
        (Credibility::Failed { .. }, _) => "failed".into(),
        (Credibility::Absent { .. }, _) | (_, None) => "–".into(),
        (verdict, Some(v)) => {
            let mark = if *verdict == Credibility::Noisy { "~" } else { "" };
            if v < 1000.0 { format!("{mark}{v:.1}") } else { format!("{mark}{}", whole(v)) }
        }
    }
}

/// A number without its fraction, in groups of three digits.
fn whole(value: f64) -> String {
    grouped(value.round() as i128)
}

/// Pairs that ran at once.
fn several(out: &mut String, m: &Measurement) {
    for cell in &m.cells {
        if let Subject::Bandwidth { pairs, .. } = &cell.subject
            && pairs.len() > 1
        {
            let _ = writeln!(out, "{:>VALUE$} {}  {}", shown(cell), cell.unit.name(), cell.subject);
        }
    }
}

fn curves(out: &mut String, m: &Measurement) {
    let mut seen: Vec<(NodePair, Mix)> = Vec::new();
    for cell in &m.cells {
        let Subject::Loaded { pair, mix, .. } = &cell.subject else { continue };
        if seen.contains(&(*pair, *mix)) {
            continue;
        }
        seen.push((*pair, *mix));
        let curve = m.curve(*pair, *mix);
        if curve.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\nLatency under load, {pair}, reads to writes {mix}");
        let _ = writeln!(out, "{:>VALUE$}{:>VALUE$}", "MB/s", "ns");
        for (rate, ns) in &curve {
            let _ = writeln!(out, "{:>VALUE$}{ns:>VALUE$.1}", whole(*rate));
        }
        let _ = match knee(&curve) {
            Some((rate, false)) => {
                writeln!(out, "  the knee (1.5 times the idle latency) is after {} MB/s", whole(rate))
            }
            Some((rate, true)) => {
                writeln!(out, "  no knee up to {} MB/s: this load does not saturate the memory", whole(rate))
            }
            None => writeln!(out, "  no loaded point is below 1.5 times the idle latency"),
        };
    }
}

/// What was proved, what failed and why, and what was found on the way.
fn foot(m: &Measurement) -> String {
    let mut out = String::new();
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for cell in &m.cells {
        let said = match &cell.verdict {
            Credibility::Failed { why } => format!("failed: {why}"),
            Credibility::Absent { why, remedy } => format!("–: {why}\n   help: {remedy}"),
            _ => continue,
        };
        match reasons.iter_mut().find(|(r, _)| *r == said) {
            Some((_, n)) => *n += 1,
            None => reasons.push((said, 1)),
        }
    }
    let [ok, noisy, failed, absent] = m.tally();
    let _ = writeln!(
        out,
        "\n{} proved, {noisy} proved but noisy (~: the median varies by more than 2 %), {failed} failed, \
         {absent} not measured",
        plural(ok as u64, "cell", "cells")
    );
    for (said, n) in reasons {
        let _ = writeln!(out, "{said}{}", if n > 1 { format!(" ({n} cells)") } else { String::new() });
    }
    for note in &m.notes {
        let _ = writeln!(out, "{note}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_measure::{Host, MeasureRequest, Synthetic, measure, plan};

    #[test]
    fn a_matrix_has_a_row_a_node_and_shades_only_in_colour() {
        let machine = homenode_machine::preset("cxl").unwrap();
        let (host, ask) = (Host::like(&machine), MeasureRequest::quick());
        let plan = plan(&host, &ask);
        let mut m = measure(&host, &ask, &plan, &mut Synthetic::new(&machine), &|| false, &mut |_, _| {});
        let plain = matrices(&m, false, usize::MAX);
        assert!(plain.contains("Idle latency, 2 MiB pages, ns") && !plain.contains('\u{1b}'), "{plain}");
        assert!(matrices(&m, true, usize::MAX).contains("\u{1b}[30;48;5;"));
        let subject = m.cells[0].subject.clone();
        m.cells[0] =
            MeasuredCell::failed(subject, homenode_measure::CellUnit::Ns, "pages were astray", Vec::new());
        let plain = matrices(&m, false, usize::MAX);
        assert!(plain.contains("     failed") && plain.contains("failed: pages were astray"), "{plain}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let machine = homenode_machine::preset("epyc-nps4").unwrap();
        let (host, ask) = (Host::like(&machine), MeasureRequest::quick());
        let plan = plan(&host, &ask);
        let m = measure(&host, &ask, &plan, &mut Synthetic::new(&machine), &|| false, &mut |_, _| {});
        let all =
            |width| matrices(&m, false, width).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let narrow = matrices(&m, false, 80);
        let long = narrow.lines().find(|line| line.chars().count() > 80);
        assert!(long.is_none(), "{long:?}");
        assert!(matrices(&m, false, usize::MAX).lines().any(|line| line.chars().count() > 80));
        // The parts have the same numbers; the names of the rows stand in front of each.
        let numbers = |words: Vec<String>| words.into_iter().filter(|w| w.contains('.')).count();
        assert_eq!(numbers(all(80)), numbers(all(usize::MAX)));
    }
}
