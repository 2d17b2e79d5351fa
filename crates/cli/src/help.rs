//! `homenode --help`: commands in groups, examples, what the exit status means.

use clap::Command;
use clap::builder::StyledStr;
use std::fmt::Write as _;

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

/// `command` with its subcommands shown in groups.
pub fn grouped(command: Command) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        list(&command)
    );
    let after = format!("{}\n\n{EXIT_STATUS}\n\n{ENVIRONMENT}", examples(&command));
    command.help_template(StyledStr::from(template)).after_help(after)
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
    use crate::cmd::command_line;

    #[test]
    fn every_command_is_in_a_group() {
        let command = command_line();
        for c in command.get_subcommands() {
            let here = super::GROUPS.iter().any(|(_, names)| names.contains(&c.get_name()));
            assert!(here, "'{}' is missing in help::GROUPS", c.get_name());
        }
    }

    #[test]
    fn help_shows_groups_examples_and_status() {
        let help = command_line().render_help().to_string();
        for part in ["Setting up:\n  completions  Print", "Examples:", "Exit status:", "Options:"] {
            assert!(help.contains(part), "{part} is missing in\n{help}");
        }
    }
}
