//! Tables for a terminal of a given width. No word is broken: cells wrap at spaces, and a word that
//! is too long for the terminal loses its middle. A table whose numbers do not fit side by side is
//! printed in parts, one below the other, each with the first column and the rows that say
//! something in that part.

use crate::human::{elided, plain, width, wrapped};

/// Columns between two columns of the table.
const GAP: usize = 2;
/// Words are never elided to fewer columns.
const LEAST: usize = 9;
/// Words of [`Alignment::Whole`] are never elided to fewer columns.
const LEAST_WHOLE: usize = 40;

/// Where cells stand, and whether they wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Text: to the left, wraps.
    Text,
    /// The same, of words that keep their length. A word of over 40 columns, as the path of a file,
    /// loses its middle where the terminal has no room for it.
    Whole,
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
    form: Alignment,
}

/// How a row stands out where escape sequences are welcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Not at all.
    #[default]
    Plain,
    /// Green and bold.
    Best,
    /// Faint.
    Dim,
}

impl Style {
    fn paint(self, text: String) -> String {
        match self {
            _ if text.is_empty() => text,
            Self::Plain => text,
            Self::Best => format!("\x1b[1;32m{text}\x1b[0m"),
            Self::Dim => format!("\x1b[2m{text}\x1b[0m"),
        }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    columns: Vec<Column>,
    rows: Vec<(Style, Vec<String>)>,
}

impl TextTable {
    /// Adds a column; `unit` stands below its title.
    pub fn column(&mut self, title: &str, unit: &str, form: Alignment) {
        self.columns.push(Column { title: title.into(), unit: unit.into(), form });
    }

    /// Adds a row. Cells that lack are empty. A cell may have several lines.
    pub fn row(&mut self, cells: Vec<String>) {
        self.styled(Style::Plain, cells);
    }

    /// Adds a row that stands out.
    pub fn styled(&mut self, style: Style, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push((style, cells));
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table without its empty columns.
    fn without_empty(&self) -> Self {
        let used = |i: &usize| self.rows.iter().any(|(_, r)| !r[*i].is_empty());
        let kept: Vec<usize> = (0..self.columns.len()).filter(used).collect();
        self.only(&kept)
    }

    /// The table with these columns alone.
    fn only(&self, kept: &[usize]) -> Self {
        let cells = |r: &Vec<String>| kept.iter().map(|i| r[*i].clone()).collect();
        Self {
            columns: kept.iter().map(|i| self.columns[*i].clone()).collect(),
            rows: self.rows.iter().map(|(style, r)| (*style, cells(r))).collect(),
        }
    }

    /// Columns that the table takes at least.
    fn least(&self) -> usize {
        self.widths(0).iter().sum::<usize>() + GAP * self.columns.len().saturating_sub(1)
    }

    /// The table without rows that have a first cell alone.
    fn without_idle_rows(mut self) -> Self {
        self.rows.retain(|(_, row)| row[1..].iter().any(|cell| !cell.is_empty()));
        self
    }

    /// Its parts, each at most `most` columns wide as far as single numbers allow, with the first
    /// column in each.
    fn parts(self, most: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut part: Vec<usize> = Vec::new();
        for i in 0..self.columns.len() {
            part.push(i);
            if part.len() > 2 && self.only(&part).least() > most {
                part.pop();
                parts.push(self.only(&part));
                part = vec![0, i];
            }
        }
        parts.push(self.only(&part));
        if parts.len() > 1 {
            parts = parts.into_iter().map(Self::without_idle_rows).collect();
        }
        parts
    }

    /// The table in at most `most` columns, as far as single numbers allow. `bold`: headings are,
    /// by escape sequences.
    pub fn render(&self, most: usize, bold: bool) -> String {
        let parts = self.without_empty().parts(most);
        let all: Vec<String> = parts.iter().map(|part| part.part(most, bold)).collect();
        all.join("\n")
    }

    fn part(&self, most: usize, bold: bool) -> String {
        let table = self;
        let widths = table.widths(most);
        let mut out = String::new();
        let mut add = |cells: Vec<Vec<String>>, paint: &dyn Fn(String) -> String| {
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let mut text = String::new();
                for (i, (cell, column)) in cells.iter().zip(&table.columns).enumerate() {
                    let cell = cell.get(line).map_or("", String::as_str);
                    let room = " ".repeat(widths[i].saturating_sub(width(cell)));
                    let gap = if i > 0 { GAP } else { 0 };
                    text += &" ".repeat(gap);
                    text += &match column.form {
                        Alignment::Text | Alignment::Whole => format!("{cell}{room}"),
                        Alignment::Number | Alignment::Change => format!("{room}{cell}"),
                    };
                }
                let text = plain(text.trim_end());
                out += &paint(text);
                out.push('\n');
            }
        };
        let headings = table.columns.iter().zip(&widths);
        let heading = |(c, width): (&Column, &usize)| {
            let mut lines = wrapped(&c.title, *width);
            lines.extend((!c.unit.is_empty()).then(|| wrapped(&c.unit, *width)).into_iter().flatten());
            lines
        };
        let headline = |text: String| match bold && !text.is_empty() {
            true => format!("\x1b[1m{text}\x1b[0m"),
            false => text,
        };
        add(headings.map(heading).collect(), &headline);
        let whole = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        add(vec![vec!["─".repeat(whole)]], &|text| text);
        for (style, row) in &table.rows {
            let cells = row.iter().zip(&table.columns).zip(&widths);
            let style = if bold { *style } else { Style::Plain };
            let cells = cells.map(|((cell, c), width)| lines(cell, c.form, *width)).collect();
            add(cells, &|text| style.paint(text));
        }
        out
    }

    /// The width of each column.
    fn widths(&self, most: usize) -> Vec<usize> {
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let words = |text: &str| text.split([' ', '\n']).map(width).max().unwrap_or(0);
        let whole = |text: &str| text.split('\n').map(width).max().unwrap_or(0);
        let all = |i: usize, of: &dyn Fn(&str) -> usize| {
            self.rows.iter().map(|(_, r)| of(&r[i])).max().unwrap_or(0)
        };
        let mut widths = Vec::new();
        let mut least = Vec::new();
        for (i, c) in self.columns.iter().enumerate() {
            let heading = words(&c.title).max(words(&c.unit));
            let natural = all(i, &whole).max(heading);
            widths.push(natural);
            let wrap = if c.form == Alignment::Number { natural } else { all(i, &words).max(heading) };
            least.push(wrap);
        }
        shrink(&mut widths, &least, most.saturating_sub(gaps));
        // Words that do not fit even so lose their middle, those of the widest column first.
        let shorter = |i: usize| match self.columns[i].form {
            Alignment::Text => least[i].min(LEAST),
            Alignment::Whole => least[i].min(LEAST_WHOLE),
            Alignment::Number | Alignment::Change => least[i],
        };
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

fn lines(cell: &str, form: Alignment, width: usize) -> Vec<String> {
    if form == Alignment::Number {
        return vec![cell.to_owned()];
    }
    cell.split('\n').flat_map(|line| wrapped(line, width)).map(|line| elided(&line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut t = TextTable::default();
        t.column("name", "", Alignment::Text);
        t.column("accesses", "exact", Alignment::Number);
        t.column("never", "", Alignment::Number);
        t.column("first touch by", "", Alignment::Text);
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
    fn numbers_that_do_not_fit_side_by_side_stand_below() {
        let mut t = TextTable::default();
        t.column("scheme", "", Alignment::Text);
        for title in ["first", "second", "third"] {
            t.column(title, "s", Alignment::Number);
        }
        t.styled(Style::Best, vec!["next-touch".into(), "123.45".into(), "234.56".into(), "345.67".into()]);
        let shown = t.render(27, false);
        let expected = "\
scheme       first  second
                 s       s
──────────────────────────
next-touch  123.45  234.56

scheme       third
                 s
──────────────────
next-touch  345.67
";
        assert_eq!(shown, expected, "\n{shown}");
        assert!(t.render(27, true).contains("\x1b[1;32mnext-touch"));
    }

    #[test]
    fn a_part_has_the_rows_that_say_something_in_it() {
        let mut t = TextTable::default();
        t.column("what", "", Alignment::Text);
        for title in ["first", "second"] {
            t.column(title, "", Alignment::Number);
        }
        t.row(vec!["both".into(), "1234567".into(), "2345678".into()]);
        t.row(vec!["first alone".into(), "3456789".into()]);
        let shown = t.render(21, false);
        assert_eq!(shown.matches("first alone").count(), 1, "\n{shown}");
        assert_eq!(shown.matches("both").count(), 2, "\n{shown}");
        assert_eq!(t.render(80, false).matches("first alone").count(), 1);
    }

    #[test]
    fn a_path_loses_its_middle_before_a_line_outgrows_the_terminal() {
        let name = "kernel-6.1.0-56-cloud-amd64-0123456789";
        let path = format!("/root/.cache/homenode/vmlinux/{name}/{name}");
        let mut t = TextTable::default();
        t.column("what", "", Alignment::Whole);
        t.column("found", "", Alignment::Whole);
        t.row(vec!["lab: kernel".into(), path.clone()]);
        for most in [60, 80] {
            let shown = t.render(most, false);
            assert!(shown.lines().all(|line| width(line) <= most) && shown.contains('…'), "\n{shown}");
        }
        assert!(t.render(120, false).contains(&path));
        // A name of usual length is never cut.
        let mut t = TextTable::default();
        t.column("name", "", Alignment::Whole);
        t.row(vec![name.into()]);
        assert!(t.render(20, false).contains(name));
    }

    #[test]
    fn a_cell_may_have_several_lines() {
        let mut t = TextTable::default();
        t.column("what", "", Alignment::Whole);
        t.column("found", "", Alignment::Whole);
        t.row(vec!["nodes".into(), "one node\nchange: take two".into()]);
        let expected = "\
what   found
───────────────────────
nodes  one node
       change: take two
";
        let shown = t.render(80, false);
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn bold_is_the_heading_alone() {
        let shown = table().render(80, true);
        assert_eq!(shown.matches("\x1b[1m").count(), 2);
        assert_eq!(shown.replace("\x1b[1m", "").replace("\x1b[0m", ""), table().render(80, false));
    }
}
