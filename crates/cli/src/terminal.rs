//! A table for people.

use comfy_table::{
    Attribute, Cell as Boxed, CellAlignment, Color, ContentArrangement, TableComponent, presets,
};

use homenode_table::{Align, Cell, Column, Emphasis, Table};

use homenode_text::human::{fixed, grouped};

const MISSING: &str = "–";

/// The table. `colour`: with escape sequences; `width`: wrapped to that many columns, `None` for no wrapping.
pub fn render(table: &Table, colour: bool, width: Option<u16>) -> String {
    let mut out = String::new();
    for warning in table.warnings() {
        out += &format!("! {}\n", clean(warning));
    }
    if !table.facts().is_empty() {
        let facts: Vec<_> =
            table.facts().iter().map(|(key, value)| format!("{key} {}", show(value))).collect();
        out += &facts.join(" · ");
        out += "\n\n";
    }
    out += &grid(table, colour, width);
    out.push('\n');
    let notes = missing(table).into_iter().chain(table.notes().iter().cloned());
    for (i, note) in notes.enumerate() {
        if i == 0 {
            out.push('\n');
        }
        out += &clean(&note);
        out.push('\n');
    }
    out
}

fn grid(table: &Table, colour: bool, width: Option<u16>) -> String {
    let mut grid = comfy_table::Table::new();
    grid.load_preset(presets::NOTHING);
    for part in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        grid.set_style(part, '─');
    }
    // Nothing here asks the terminal: whoever calls says what it can do.
    match (colour, width) {
        (true, _) => grid.enforce_styling(),
        (false, _) => grid.force_no_tty(),
    };
    match width {
        Some(width) => grid.set_width(width).set_content_arrangement(ContentArrangement::Dynamic),
        None => grid.set_content_arrangement(ContentArrangement::Disabled),
    };
    let bold = |cell: Boxed| if colour { cell.add_attribute(Attribute::Bold) } else { cell };
    grid.set_header(
        table.columns().iter().map(|c| bold(Boxed::new(heading(c)).set_alignment(align(c.align)))),
    );
    for row in table.rows() {
        let cells = row.cells.iter().zip(table.columns()).map(|(cell, column)| {
            let cell = Boxed::new(show(cell)).set_alignment(align(column.align));
            match row.emphasis {
                Emphasis::Best if colour => cell.fg(Color::Green).add_attribute(Attribute::Bold),
                Emphasis::Yardstick if colour => cell.add_attribute(Attribute::Dim),
                _ => cell,
            }
        });
        grid.add_row(cells);
    }
    for (i, column) in grid.column_iter_mut().enumerate() {
        column.set_padding((if i > 0 { 2 } else { 0 }, 0));
    }
    grid.trim_fmt()
}

fn align(align: Align) -> CellAlignment {
    match align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    }
}

fn heading(column: &Column) -> String {
    let title = clean(&column.title);
    match column.unit {
        Some(unit) => format!("{title}\n{unit}"),
        None => title,
    }
}

/// A name from a recording is text: nothing in it reaches the terminal as a control sequence.
fn clean(text: &str) -> String {
    homenode_dataset::foreign::clean(text)
}

fn show(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => clean(text),
        Cell::Int(value) => grouped(*value),
        Cell::Float(value, digits) | Cell::Percent(value, digits) if value.is_finite() => {
            fixed(*value, *digits)
        }
        Cell::Float(..) | Cell::Percent(..) | Cell::Missing(_) => MISSING.to_owned(),
    }
}

/// Why cells have no value: one line for each reason, with the columns it stands for.
fn missing(table: &Table) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (i, column) in table.columns().iter().enumerate() {
        for row in table.rows() {
            let Cell::Missing(why) = &row.cells[i] else { continue };
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, columns)) if columns.contains(&column.title.as_str()) => {}
                Some((_, columns)) => columns.push(&column.title),
                None => reasons.push((why, vec![&column.title])),
            }
        }
    }
    reasons.iter().map(|(why, columns)| format!("{MISSING} under {}: {why}", columns.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use homenode_table::example;

    use super::*;

    const PLAIN: &str = "\
program nas-cg W · threads 16

scheme            time    moves   remote
                     s                 %
────────────────────────────────────────
first-touch      12.35        0     26.2
next-touch        7.00   18 743      1.7
replay, \"last\"       –        5      0.0

– under time: the program was stopped
times are modelled
";

    #[test]
    fn facts_then_grid_then_notes() {
        let shown = render(&example(), false, None);
        assert_eq!(shown, PLAIN, "\n{shown}");
    }

    #[test]
    fn only_colour_adds_escape_sequences() {
        let shown = render(&example(), true, None);
        assert!(shown.contains("\u{1b}["));
        let best = shown.lines().find(|l| l.contains("next-touch")).unwrap();
        assert!(best.contains("\u{1b}["), "{best:?}");
        assert!(!PLAIN.contains('\u{1b}'));
    }

    #[test]
    fn a_narrow_terminal_wraps() {
        let shown = render(&example(), false, Some(34));
        assert!(shown.lines().skip(2).take(8).all(|l| l.chars().count() <= 34), "\n{shown}");
    }

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(show(&Cell::text("a\u{1b}[2J\nb")), "a\u{fffd}[2J\u{fffd}b");
    }

    #[test]
    fn not_a_number_is_not_shown_as_one() {
        assert_eq!(show(&Cell::float(f64::NAN, 1)), MISSING);
    }
}
