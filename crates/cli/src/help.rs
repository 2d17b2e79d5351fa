//! `homenode --help`: commands in groups, examples, what the exit status means.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;
use homenode_text::human::hung;

/// The widest help.
const WIDEST: usize = 110;
/// Its width where nobody knows that of the terminal.
pub const USUAL: usize = 100;

/// Groups of commands, as on the manual's first page. What is not registered is not shown.
const GROUPS: &[(&str, &[&str])] = &[
    ("Every day", &["explain", "doctor", "measure", "record", "run", "top", "show", "view", "diff"]),
    ("What if", &["compare", "plan"]),
    ("Data", &["rec", "machine"]),
    ("Research", &["paper", "kernel", "lab"]),
    ("Setting up", &["completions", "man"]),
];

/// Examples, each shown when its command is registered.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("explain", "homenode explain -- ./app", "what to change in the source, and what it brings"),
    ("doctor", "homenode doctor -- ./app", "what this machine offers, and what to change"),
    ("compare", "homenode compare kernel:nas-cg --class W", "record once, simulate every placement"),
    ("measure", "homenode measure --quick", "latency and bandwidth between nodes"),
    ("record", "homenode record -- ./app", "who touches what"),
    ("show", "homenode show mine.hnrec", "what is remote, and which arrays"),
    ("view", "homenode view mine.hnrec", "every page, its way and why, in the browser"),
    ("diff", "homenode diff before.hnrec after.hnrec", "what changed"),
    ("run", "homenode run -- ./app", "move pages to the nodes that use them"),
    ("top", "homenode top -- ./app", "the same with its numbers in the terminal"),
    ("plan", "homenode plan mine.hnrec", "the best placement for the next run"),
    ("machine", "homenode machine list", "machines to simulate on"),
    ("paper", "homenode paper lof-table1", "a paper's table, theirs beside ours"),
    ("kernel", "homenode kernel list", "the papers' programs, each a kernel:NAME"),
    ("lab", "homenode lab run -- ./app", "on a virtual machine with four nodes"),
    ("completions", "homenode completions bash", "completions for a shell"),
    ("man", "homenode man | man -l -", "the manual page"),
];

const EXIT_STATUS: &str = "\
Exit status:
  0 done · 1 a --fail-if condition held · 2 usage · 3 partial result · 125 homenode itself failed
  Commands that run a program return its status; 126 it cannot be run, 127 there is no such program.";

const ENVIRONMENT: &str = "\
Environment:
  HOMENODE_LIB_DIR      folder of homenode's libraries [default: beside the command, or ../lib/homenode]
  HOMENODE_KERNELS_DIR  folder of the papers' programs
  HOMENODE_MEMORY       most memory of a simulation, as in 8GiB [default: half of the free memory]
  TMPDIR                folder of temporary files
  NO_COLOR              no colours, where --color says nothing else";

/// Columns of help on a terminal with `terminal` columns.
pub fn width(terminal: Option<u16>) -> usize {
    terminal.map_or(USUAL, |columns| usize::from(columns).min(WIDEST))
}

/// `command` with its subcommands shown in groups, in lines of at most `width` columns.
pub fn grouped(command: Command, width: usize) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        hung(&list(&command), width)
    );
    let after = format!("{}\n\n{EXIT_STATUS}\n\n{ENVIRONMENT}", examples(&command));
    let command = command.help_template(StyledStr::from(template)).after_help(after);
    laid_out(command.term_width(width), width)
}

/// The command and those below it with the text after their options in `width` columns. clap alone
/// would begin each further line at the left.
fn laid_out(mut command: Command, width: usize) -> Command {
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(hung(&after, width));
    }
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(command, |c, name| c.mut_subcommand(name, |below| laid_out(below, width)))
}

fn registered<'a>(command: &'a Command, name: &str) -> Option<&'a Command> {
    command.get_subcommands().find(|c| c.get_name() == name && !c.is_hide_set())
}

fn list(command: &Command) -> String {
    let width = command.get_subcommands().map(|c| c.get_name().len()).max().unwrap_or(0);
    let mut out = String::new();
    for (group, names) in GROUPS {
        let here: Vec<&Command> = names.iter().filter_map(|n| registered(command, n)).collect();
        if !here.is_empty() {
            let _ = writeln!(out, "{group}:");
            for c in here {
                let about = c.get_about().map(ToString::to_string).unwrap_or_default();
                let _ = writeln!(out, "  {:width$}  {about}", c.get_name());
            }
            out.push('\n');
        }
    }
    out
}

fn examples(command: &Command) -> String {
    let here: Vec<_> = EXAMPLES.iter().filter(|(name, ..)| registered(command, name).is_some()).collect();
    let width = here.iter().map(|(_, line, _)| line.len()).max().unwrap_or(0);
    let lines: Vec<_> = here.iter().map(|(_, line, why)| format!("  {line:width$}  {why}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use crate::cmd::{command_line, command_line_in};

    #[test]
    fn every_command_is_in_a_group() {
        let command = command_line();
        for c in command.get_subcommands() {
            let here = super::GROUPS.iter().any(|(_, names)| names.contains(&c.get_name()));
            assert!(here, "'{}' is missing in help::GROUPS", c.get_name());
        }
    }

    /// The help of a command and of those below it.
    fn all(command: &mut Command) -> Vec<String> {
        let mut texts = vec![command.render_long_help().to_string(), command.render_help().to_string()];
        command.get_subcommands_mut().for_each(|below| texts.extend(all(below)));
        texts
    }

    #[test]
    fn no_line_of_help_is_wider_than_the_terminal() {
        for width in [80, 100, 110] {
            let mut command = command_line_in(width);
            command.build();
            for text in all(&mut command) {
                let long = text.lines().find(|line| line.chars().count() > width);
                assert!(long.is_none(), "wider than {width}: {long:?}");
            }
        }
    }

    #[test]
    fn further_lines_stand_under_the_description() {
        let help = command_line_in(80).render_help().to_string();
        let line = help.lines().position(|l| l.contains("HOMENODE_LIB_DIR")).unwrap();
        let next = help.lines().nth(line + 1).unwrap();
        assert!(next.starts_with(&" ".repeat(24)), "{help}");
    }

    #[test]
    fn help_shows_groups_examples_and_status() {
        let help = command_line().render_help().to_string();
        for part in ["Setting up:\n  completions  Print", "Examples:", "Exit status:", "Options:"] {
            assert!(help.contains(part), "{part} is missing in\n{help}");
        }
    }
}
