//! Tables for a terminal of a given width. No word is broken: cells wrap at spaces, and a word that
//! is too long for the terminal loses its middle.

use crate::human::{elided, plain, width, wrapped};

/// Columns between two columns of the table.
const GAP: usize = 2;
/// Words are never elided to fewer columns.
const LEAST: usize = 9;

/// Where cells stand, and whether they wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text: to the left, wraps.
    Text,
    /// A number: to the right, stays on its line.
    Number,
    /// Two numbers with an arrow between them: to the right, wraps.
    Change,
}

/// A column.
#[derive(Clone, Debug)]
struct Column {
    title: String,
    /// Below the title: a unit or a basis.
    unit: String,
    form: Form,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Layout {
    /// Adds a column; `unit` stands below its title.
    pub fn column(&mut self, title: &str, unit: &str, form: Form) {
        self.columns.push(Column { title: title.into(), unit: unit.into(), form });
    }

    /// Adds a row. Cells that lack are empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table without its empty columns.
    fn without_empty(&self) -> Self {
        let used = |i: &usize| self.rows.iter().any(|r| !r[*i].is_empty());
        let kept: Vec<usize> = (0..self.columns.len()).filter(used).collect();
        Self {
            columns: kept.iter().map(|i| self.columns[*i].clone()).collect(),
            rows: self.rows.iter().map(|r| kept.iter().map(|i| r[*i].clone()).collect()).collect(),
        }
    }

    /// The table in at most `most` columns, as far as its numbers allow. `bold`: headings are, by
    /// escape sequences.
    pub fn render(&self, most: usize, bold: bool) -> String {
        let table = self.without_empty();
        let widths = table.widths(most);
        let mut out = String::new();
        let mut add = |cells: Vec<Vec<String>>, bold: bool| {
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let mut text = String::new();
                for (i, (cell, column)) in cells.iter().zip(&table.columns).enumerate() {
                    let cell = cell.get(line).map_or("", String::as_str);
                    let room = " ".repeat(widths[i].saturating_sub(width(cell)));
                    let gap = if i > 0 { GAP } else { 0 };
                    text += &" ".repeat(gap);
                    text += &match column.form {
                        Form::Text => format!("{cell}{room}"),
                        Form::Number | Form::Change => format!("{room}{cell}"),
                    };
                }
                let text = plain(text.trim_end());
                out += &if bold && !text.is_empty() { format!("\x1b[1m{text}\x1b[0m") } else { text };
                out.push('\n');
            }
        };
        let headings = table.columns.iter().zip(&widths);
        let heading = |(c, width): (&Column, &usize)| {
            let mut lines = wrapped(&c.title, *width);
            lines.extend((!c.unit.is_empty()).then(|| wrapped(&c.unit, *width)).into_iter().flatten());
            lines
        };
        add(headings.map(heading).collect(), bold);
        let whole = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        add(vec![vec!["─".repeat(whole)]], false);
        for row in &table.rows {
            let cells = row.iter().zip(&table.columns).zip(&widths);
            add(cells.map(|((cell, c), width)| lines(cell, c.form, *width)).collect(), false);
        }
        out
    }

    /// The width of each column.
    fn widths(&self, most: usize) -> Vec<usize> {
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let words = |text: &str| text.split(' ').map(width).max().unwrap_or(0);
        let all =
            |i: usize, of: &dyn Fn(&str) -> usize| self.rows.iter().map(|r| of(&r[i])).max().unwrap_or(0);
        let mut widths = Vec::new();
        let mut least = Vec::new();
        for (i, c) in self.columns.iter().enumerate() {
            let heading = words(&c.title).max(words(&c.unit));
            let natural = all(i, &width).max(heading);
            widths.push(natural);
            let wrap = if c.form == Form::Number { natural } else { all(i, &words).max(heading) };
            least.push(wrap);
        }
        shrink(&mut widths, &least, most.saturating_sub(gaps));
        // Words that do not fit even so lose their middle, those of the widest column first.
        let shorter =
            |i: usize| if self.columns[i].form == Form::Text { least[i].min(LEAST) } else { least[i] };
        let elided: Vec<usize> = (0..widths.len()).map(shorter).collect();
        shrink(&mut widths, &elided, most.saturating_sub(gaps));
        widths
    }
}

/// Takes columns from the widest that may lose some, until all fit or none may.
fn shrink(widths: &mut [usize], least: &[usize], most: usize) {
    while widths.iter().sum::<usize>() > most {
        let may = (0..widths.len()).filter(|i| widths[*i] > least[*i]);
        // Of equally wide ones the last.
        let Some(widest) = may.max_by_key(|i| (widths[*i], *i)) else { return };
        widths[widest] -= 1;
    }
}

fn lines(cell: &str, form: Form, width: usize) -> Vec<String> {
    if form == Form::Number {
        return vec![cell.to_owned()];
    }
    wrapped(cell, width).iter().map(|line| elided(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Layout {
        let mut t = Layout::default();
        t.column("name", "", Form::Text);
        t.column("accesses", "exact", Form::Number);
        t.column("never", "", Form::Number);
        t.column("first touch by", "", Form::Text);
        t.row(vec!["temperature_old".into(), "3 276 800".into(), String::new(), "node 0 heat.c:41".into()]);
        t.row(vec!["u".into(), "12".into()]);
        t
    }

    #[test]
    fn a_wide_terminal_needs_no_second_line() {
        let shown = table().render(80, false);
        let expected = "\
name              accesses  first touch by
                     exact
────────────────────────────────────────────
temperature_old  3 276 800  node 0 heat.c:41
u                       12
";
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn a_narrow_one_breaks_between_words_then_elides() {
        let shown = table().render(38, false);
        let expected = "\
name              accesses  first
                     exact  touch by
──────────────────────────────────────
temperature_old  3 276 800  node 0
                            heat.c:41
u                       12
";
        assert_eq!(shown, expected, "\n{shown}");
        let shown = table().render(32, false);
        let expected = "\
name         accesses  first
                exact  touch by
────────────────────────────────
tempe…_old  3 276 800  node 0
                       heat.c:41
u                  12
";
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn bold_is_the_heading_alone() {
        let shown = table().render(80, true);
        assert_eq!(shown.matches("\x1b[1m").count(), 2);
        assert_eq!(shown.replace("\x1b[1m", "").replace("\x1b[0m", ""), table().render(80, false));
    }
}
