//! A table of results for people.

use homenode_dataset::foreign::clean;
use homenode_table::{Align, Cell, Emphasis, Table};

use crate::explained::markdown::escaped;
use crate::human::{GLUE, fixed, glued, grouped, wrapped};
use crate::layout::{Alignment, Style, TextTable};

/// What stands for a value that is not there.
const MISSING: &str = "–";
/// Columns of sentences where nobody knows the width of a line.
const PROSE: usize = 100;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDetail {
    /// Headings are bold and rows have colours, by escape sequences.
    pub colour: bool,
    /// Columns of the output; none where rows may have any length.
    pub width: Option<usize>,
    /// What columns and rows mean stands below the table.
    pub legend: bool,
}

/// The table in words: warnings, answer, facts, rows, notes. A column without a value is left out.
pub fn render(table: &Table, how: TableDetail) -> String {
    let prose = how.width.unwrap_or(PROSE);
    let most = if table.has_sentences() { prose } else { how.width.unwrap_or(usize::MAX) };
    let mut out = String::new();
    let line = |out: &mut String, text: &str| {
        for line in wrapped(text, prose) {
            *out += &line.replace(GLUE, " ");
            out.push('\n');
        }
    };
    for warning in table.warnings() {
        line(&mut out, &format!("! {}", clean(warning)));
    }
    for answer in table.answers() {
        line(&mut out, &clean(answer));
    }
    if !table.answers().is_empty() {
        out.push('\n');
    }
    // The answer has said some of them.
    let facts = table.facts().iter().filter(|(_, value)| !table.answers().contains(&show(value)));
    let facts: Vec<String> = facts.map(|f| glued(&fact(f))).collect();
    if !facts.is_empty() {
        let whole = facts.join(" · ");
        // A fact that is longer than a line breaks where it can.
        let fits = facts.iter().all(|f| f.chars().count() <= prose);
        line(&mut out, &if fits { whole } else { whole.replace(GLUE, " ") });
        out.push('\n');
    }
    out += &layout(table).render(most, how.colour);
    let legend = table.legend().iter().filter(|_| how.legend);
    let notes: Vec<String> =
        missing(table).into_iter().chain(table.notes().iter().cloned()).chain(legend.cloned()).collect();
    for (i, note) in notes.iter().enumerate() {
        if i == 0 {
            out.push('\n');
        }
        line(&mut out, &clean(note));
    }
    out
}

/// The table in Markdown, with the same words. The best row is bold.
pub fn markdown(table: &Table) -> String {
    let mut out = String::new();
    for warning in table.warnings() {
        out += &format!("- ⚠ {}\n", escaped(warning));
    }
    if !table.warnings().is_empty() {
        out.push('\n');
    }
    for answer in table.answers() {
        out += &format!("**{}**\n\n", escaped(answer));
    }
    let facts: Vec<String> = table.facts().iter().map(|f| escaped(&fact(f))).collect();
    if !facts.is_empty() {
        out += &format!("{}\n\n", facts.join(" · "));
    }
    let kept: Vec<usize> = (0..table.width()).filter(|i| has_values(table, *i)).collect();
    let mut line = |cells: Vec<String>| out += &format!("| {} |\n", cells.join(" | "));
    let columns = || kept.iter().map(|i| &table.columns()[*i]);
    line(
        columns()
            .map(|c| match c.unit {
                Some(unit) => escaped(&format!("{} ({unit})", c.title)),
                None => escaped(&c.title),
            })
            .collect(),
    );
    line(columns().map(|c| if c.align == Align::Left { "---" } else { "---:" }.to_owned()).collect());
    for row in table.rows() {
        let bold = if row.emphasis == Emphasis::Best { "**" } else { "" };
        line(kept.iter().map(|i| format!("{bold}{}{bold}", escaped(&show(&row.cells[*i])))).collect());
    }
    for note in missing(table).iter().chain(table.notes()) {
        out += &format!("\n{}\n", escaped(note));
    }
    out
}

fn layout(table: &Table) -> TextTable {
    let mut layout = TextTable::default();
    let kept: Vec<usize> = (0..table.width()).filter(|i| has_values(table, *i)).collect();
    let below = |i: &usize| table.columns()[*i].below;
    for column in kept.iter().filter(|i| !below(i)).map(|i| &table.columns()[*i]) {
        let form = if column.align == Align::Left { Alignment::Whole } else { Alignment::Number };
        // A sign does not stand alone.
        let title = clean(&column.title).replace("× ", &format!("×{GLUE}"));
        layout.column(&title, column.unit.unwrap_or(""), form);
    }
    for row in table.rows() {
        let style = match row.emphasis {
            Emphasis::None => Style::Plain,
            Emphasis::Best => Style::Best,
            Emphasis::Yardstick => Style::Dim,
        };
        let mut cells: Vec<String> = Vec::new();
        for i in &kept {
            let cell = show(&row.cells[*i]);
            match cells.last_mut().filter(|_| below(i)) {
                Some(_) if cell.is_empty() => {}
                Some(above) => *above += &format!("\n{}: {cell}", table.columns()[*i].title),
                None => cells.push(cell),
            }
        }
        layout.styled(style, cells);
    }
    layout
}

/// Whether a column says anything. The first one names the rows.
fn has_values(table: &Table, column: usize) -> bool {
    let says = |cell: &Cell| match cell {
        Cell::Missing(_) => false,
        Cell::Text(text) => !text.is_empty(),
        _ => true,
    };
    column == 0 || table.rows().iter().any(|row| says(&row.cells[column]))
}

/// A fact in words, with the unit of a share.
fn fact((key, value): &(&'static str, Cell)) -> String {
    let unit = if matches!(value, Cell::Percent(..)) { " %" } else { "" };
    format!("{} {}{unit}", key.replace('_', " "), show(value))
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

/// Why cells have no value: one line for each reason, with the columns it stands for. A yardstick
/// has no value where it is no run.
fn missing(table: &Table) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (i, column) in table.columns().iter().enumerate().filter(|(i, _)| has_values(table, *i)) {
        for row in table.rows().iter().filter(|row| row.emphasis != Emphasis::Yardstick) {
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
    use homenode_table::{Column, example};

    use super::*;

    const PIPE: TableDetail = TableDetail { colour: false, width: None, legend: false };

    const PLAIN: &str = "\
program nas-cg W · threads 16

scheme           time   moves  remote
                    s               %
─────────────────────────────────────
first-touch     12.35       0    26.2
next-touch       7.00  18 743     1.7
replay, \"last\"      –       5     0.0

– under time: the program was stopped
times are modelled
";

    #[test]
    fn sentences_break_in_a_pipe_and_rows_of_numbers_do_not() {
        let long = "a sentence of many words ".repeat(12);
        let columns = || vec![Column::text("what", "what"), Column::text("why", "why")];
        let mut table = Table::new("long", 1, columns());
        table.row(vec![Cell::text("it"), Cell::text(long.trim())]);
        table.note(long.trim());
        let lengths = |table: &Table| -> Vec<usize> {
            render(table, PIPE).lines().map(|l| l.chars().count()).collect()
        };
        let rows = lengths(&table);
        assert!(rows.iter().filter(|n| **n > 100).count() >= 1 && rows.last().is_some_and(|n| *n <= 100));
        assert!(lengths(&table.of_sentences()).iter().all(|n| *n <= 100));
    }

    #[test]
    fn markdown_has_the_same_cells_and_ends_no_cell_early() {
        let mut table = example();
        table.answer("next-touch | wins");
        let shown = markdown(&table);
        let expected = "\
**next-touch \\| wins**

program nas-cg W · threads 16

| scheme | time (s) | moves | remote (%) |
| --- | ---: | ---: | ---: |
| first-touch | 12.35 | 0 | 26.2 |
| **next-touch** | **7.00** | **18 743** | **1.7** |
| replay, \"last\" | – | 5 | 0.0 |

– under time: the program was stopped

times are modelled
";
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn facts_then_rows_then_notes() {
        let shown = render(&example(), PIPE);
        assert_eq!(shown, PLAIN, "\n{shown}");
    }

    #[test]
    fn only_colour_adds_escape_sequences() {
        let shown = render(&example(), TableDetail { colour: true, ..PIPE });
        let best = shown.lines().find(|l| l.contains("next-touch")).unwrap();
        assert!(best.contains("\u{1b}["), "{best:?}");
        assert!(!PLAIN.contains('\u{1b}'));
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_and_no_word_is_broken() {
        for width in [24, 34, 40] {
            let shown = render(&example(), TableDetail { width: Some(width), ..PIPE });
            assert!(shown.lines().all(|l| l.chars().count() <= width), "\n{shown}");
            for word in ["next-touch", "18 743", "12.35", "26.2"] {
                assert!(shown.contains(word), "{word}\n{shown}");
            }
        }
    }

    #[test]
    fn columns_without_values_go_and_a_legend_waits_to_be_asked() {
        let mut table = Table::new(
            "t",
            1,
            vec![
                Column::text("scheme", "scheme"),
                Column::number("never", "never"),
                Column::number("n", "n"),
            ],
        );
        table.row(vec![Cell::text("a"), Cell::missing("nobody measured it"), Cell::int(1)]);
        table.explain("n: how many");
        let shown = render(&table, PIPE);
        assert!(
            !shown.contains("never") && !shown.contains("nobody") && !shown.contains("how many"),
            "{shown}"
        );
        assert!(render(&table, TableDetail { legend: true, ..PIPE }).ends_with("\nn: how many\n"));
        assert!(table.to_json().contains("how many") && table.to_json().contains("nobody measured it"));
    }

    #[test]
    fn a_column_below_another_takes_no_room_beside_it() {
        let columns =
            vec![Column::text("what", "what"), Column::text("found", "found"), Column::text("fix", "change")];
        let mut table = Table::new(
            "t",
            1,
            columns.into_iter().map(|c| if c.key == "fix" { c.below() } else { c }).collect(),
        );
        table.row(vec![Cell::text("nodes"), Cell::text("one node"), Cell::text("take two")]);
        table.row(vec![Cell::text("kernel"), Cell::text("new"), Cell::text("")]);
        let expected = "\
what    found
────────────────────────
nodes   one node
        change: take two
kernel  new
";
        let shown = render(&table, PIPE);
        assert_eq!(shown, expected, "\n{shown}");
        assert!(markdown(&table).contains("| nodes | one node | take two |"));
    }

    #[test]
    fn a_fact_that_the_answer_states_is_not_said_twice() {
        let mut table = Table::new("t", 1, vec![Column::text("a", "a")]);
        table.fact("run", Cell::text("it would move pages"));
        table.answer("it would move pages");
        assert_eq!(render(&table, PIPE).matches("move pages").count(), 1);
        assert_eq!(table.to_json().matches("move pages").count(), 2);
    }

    #[test]
    fn facts_are_words_with_units() {
        let mut table = Table::new("t", 1, vec![Column::text("a", "a")]);
        table.fact("remote_first_touch", Cell::percent(0.5, 1));
        assert!(render(&table, PIPE).starts_with("remote first touch 50.0 %\n"));
        assert!(markdown(&table).starts_with("remote first touch 50.0 %\n"));
        assert!(table.to_json().contains("remote_first_touch"));
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
