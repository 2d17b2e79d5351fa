//! What goes where: results to stdout, everything else to stderr.
//!
//! While a program runs under homenode, stdout is the program's; then homenode's own report goes to
//! stderr or to `--summary FILE` ([`OutputArgs::report`]).

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::Args;
use homenode_dataset::foreign;
use homenode_error::{Context, Error, Result};
use homenode_table::FailIf;
use homenode_table::Table;
use homenode_text::human::{hung, wrapped};
use homenode_text::table::{TableDetail, markdown, render};

use crate::exit::Exit;

/// Options of every command that prints a table.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print a JSON object that carries its schema and version
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values: column names, then rows
    #[arg(long)]
    pub csv: bool,
    /// Print Markdown, for the comment of a merge request
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub markdown: bool,
    /// Say below a table what its columns and rows mean
    #[arg(long)]
    pub legend: bool,
    /// End with status 1 when the condition holds: COLUMN or ROW:COLUMN, <, <=, =, !=, >= or >, and
    /// a number
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<FailIf>,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
    /// For merge requests.
    Markdown,
}

impl OutputArgs {
    /// The form asked for.
    pub const fn format(&self) -> Format {
        match (self.json, self.csv, self.markdown) {
            (true, ..) => Format::Json,
            (_, true, _) => Format::Csv,
            (.., true) => Format::Markdown,
            _ => Format::Table,
        }
    }

    /// Refuses conditions that name no column of a table, before anything runs.
    ///
    /// # Errors
    /// A condition names a column or row that the table lacks.
    pub fn check(&self, table: &Table) -> Result<()> {
        self.fail_if.iter().try_for_each(|condition| condition.check(table))
    }

    /// Prints `table` to stdout and judges the conditions of `--fail-if`.
    ///
    /// # Errors
    /// stdout cannot be written, or a condition names a column or row that the table lacks.
    pub fn print(&self, table: &Table) -> Result<Exit> {
        let held = self.judge(table)?;
        self.warn(table);
        to_stdout(&self.render(table, io::stdout().is_terminal()))?;
        Ok(held)
    }

    /// CSV has no room for warnings: they go to stderr.
    fn warn(&self, table: &Table) {
        if self.format() == Format::Csv {
            table.warnings().iter().for_each(say);
        }
    }

    /// As [`OutputArgs::print`], with more: for people, tables `below` it; in JSON, further keys.
    /// CSV has neither.
    ///
    /// # Errors
    /// As [`OutputArgs::print`].
    pub fn print_with(
        &self,
        table: &Table,
        below: &[Table],
        more: &[(&str, serde_json::Value)],
    ) -> Result<Exit> {
        let held = self.judge(table)?;
        self.warn(table);
        let terminal = io::stdout().is_terminal();
        let mut text = self.render(table, terminal);
        match self.format() {
            Format::Csv => {}
            Format::Table | Format::Markdown => {
                below.iter().for_each(|b| text += &format!("\n{}", self.render(b, terminal)))
            }
            Format::Json => text = with_keys(&text, more)?,
        }
        to_stdout(&text)?;
        Ok(held)
    }

    /// Writes `table` where a command that runs a program reports: to `summary`, else to stderr.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn report(&self, table: &Table, summary: Option<&Path>) -> Result<()> {
        match summary {
            Some(path) => fs::write(path, self.render(table, false))
                .context(|| format!("cannot write the summary {}", path.display())),
            None => {
                // Nobody can be told that stderr is gone.
                let _ = io::stderr().write_all(self.render(table, io::stderr().is_terminal()).as_bytes());
                Ok(())
            }
        }
    }

    fn render(&self, table: &Table, terminal: bool) -> String {
        match self.format() {
            Format::Json => table.to_json(),
            Format::Csv => foreign::without_escapes(&table.to_csv()).into_owned(),
            Format::Markdown => markdown(table),
            Format::Table => {
                let width = terminal.then(terminal_width).flatten().map(usize::from);
                render(table, TableDetail { colour: terminal && colours(), width, legend: self.legend })
            }
        }
    }

    /// Whether a condition of `--fail-if` holds, for commands that print in their own way.
    ///
    /// # Errors
    /// A condition names a column or row that the table lacks.
    pub fn judge(&self, table: &Table) -> Result<Exit> {
        let mut exit = Exit::Done;
        for condition in &self.fail_if {
            if condition.holds(table)? {
                say(format_args!("condition held: {}", condition.text()));
                exit = Exit::ConditionHeld;
            }
        }
        Ok(exit)
    }
}

/// A JSON object with further keys.
fn with_keys(json: &str, more: &[(&str, serde_json::Value)]) -> Result<String> {
    let failed = || "cannot make JSON of the result".to_owned();
    let mut value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).context(failed)?;
    value.extend(more.iter().map(|(key, v)| ((*key).to_owned(), v.clone())));
    Ok(serde_json::to_string_pretty(&value).context(failed)? + "\n")
}

/// Writes a result to stdout. A reader that has had enough (`| head`) is not an error.
///
/// # Errors
/// What the system said.
pub fn to_stdout(text: &str) -> Result<()> {
    let text = foreign::printable(text);
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::failed("cannot write the result")
                .tried(format_args!("write to stdout: {error}"))
                .hint("is the disk full? send stdout to a file on another one, or into a pipe"))
        }
        _ => Ok(()),
    }
}

/// A message to stderr, with homenode's name in front. On a terminal it breaks between words.
pub fn say(message: impl std::fmt::Display) {
    let message = format!("homenode: {}", foreign::without_escapes(&message.to_string()));
    let width = io::stderr().is_terminal().then(terminal_width).flatten();
    let message = width.map_or_else(|| message.clone(), |width| message_in(&message, usize::from(width)));
    let _ = writeln!(io::stderr(), "{message}");
}

/// A report on stderr with longer lines hung below their beginning, if stderr is a terminal.
pub fn on_terminal(report: &str) -> String {
    let width = io::stderr().is_terminal().then(terminal_width).flatten();
    width.map_or_else(|| report.to_owned(), |width| hung(report, usize::from(width)))
}

/// The message in lines of at most `width` columns. What a line has too much is indented below it.
fn message_in(message: &str, width: usize) -> String {
    let mut out = Vec::new();
    for line in message.split('\n') {
        let indent = line.len() - line.trim_start().len();
        let hang = " ".repeat(indent + 2);
        let lines = wrapped(line, width.saturating_sub(hang.len()));
        let first = format!("{}{}", &line[..indent], lines[0]);
        out.push(first);
        out.extend(lines[1..].iter().map(|more| format!("{hang}{more}")));
    }
    out.join("\n")
}

/// Whether colours are welcome on a terminal (<https://no-color.org>).
pub fn colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Columns of the terminal; none where there is no terminal.
pub fn terminal_width() -> Option<u16> {
    let of = |size: rustix::termios::Winsize| Some(size.ws_col).filter(|columns| *columns > 0);
    let ask = [rustix::termios::tcgetwinsize(io::stdout()), rustix::termios::tcgetwinsize(io::stderr())];
    ask.into_iter().flatten().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_table::example;

    fn with(conditions: &[&str]) -> OutputArgs {
        OutputArgs { fail_if: conditions.iter().map(|c| c.parse().unwrap()).collect(), ..Default::default() }
    }

    #[test]
    fn a_message_breaks_between_words_on_a_terminal() {
        let message = "homenode: a machine cannot be simulated\n  help: record with --filter 1024 or less";
        let shown = message_in(message, 30);
        assert!(shown.lines().all(|line| line.chars().count() <= 30), "{shown}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&shown), words(message));
        assert_eq!(message_in(message, 200), message);
    }

    #[test]
    fn the_form_follows_the_options() {
        assert_eq!(OutputArgs::default().format(), Format::Table);
        assert_eq!(OutputArgs { json: true, ..Default::default() }.format(), Format::Json);
        assert_eq!(OutputArgs { csv: true, ..Default::default() }.format(), Format::Csv);
    }

    #[test]
    fn what_is_no_terminal_gets_no_escape_sequences() {
        assert!(!OutputArgs::default().render(&example(), false).contains('\u{1b}'));
    }

    #[test]
    fn one_condition_that_holds_is_enough() {
        assert_eq!(with(&["moves<0"]).judge(&example()).unwrap(), Exit::Done);
        assert_eq!(with(&["moves<0", "remote>10"]).judge(&example()).unwrap(), Exit::ConditionHeld);
        assert!(with(&["remote>10", "nothing>1"]).judge(&example()).is_err());
    }

    #[test]
    fn a_summary_goes_to_its_file() {
        let path = std::env::temp_dir().join(format!("homenode-summary-{}", std::process::id()));
        let json = OutputArgs { json: true, ..Default::default() };
        json.report(&example(), Some(&path)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), example().to_json());
        fs::remove_file(&path).unwrap();
        let error = json.report(&example(), Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert_eq!(error.message, "cannot write the summary /nowhere/at/all");
    }
}
