//! `homenode completions`.

use std::collections::BTreeSet;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use homenode_error::Result;
use homenode_kernels as kernels;
use homenode_live::policies;
use homenode_schemes::scheme;

use crate::exit::Exit;
use crate::output::to_stdout;

const EXAMPLES: &str = "\
Examples:
  homenode completions bash > ~/.local/share/bash-completion/completions/homenode
  homenode completions fish > ~/.config/fish/completions/homenode.fish
  homenode completions zsh > ~/.zfunc/_homenode";

/// Print completions for a shell
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints completions for `command`, the whole command line.
    pub(super) fn run(self, command: Command) -> Result<Exit> {
        let mut script = Vec::new();
        let mut command = with_names(command);
        clap_complete::generate(self.shell, &mut command, "homenode", &mut script);
        to_stdout(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

/// The command line with the names of machines, policies and kernels where they may stand. A file
/// may stand there, too: this command line is for completion alone.
fn with_names(command: Command) -> Command {
    let runs = command.get_name() == "run";
    let arg = |arg: Arg| {
        let names = names_for(&arg, runs);
        // clap keeps names that live as long as the process.
        let names = names.into_iter().map(|name| &*name.leak());
        if names.len() == 0 { arg } else { arg.value_parser(PossibleValuesParser::new(names)) }
    };
    let ids: Vec<String> = command.get_arguments().map(|a| a.get_id().to_string()).collect();
    let command = ids.into_iter().fold(command, |command, id| command.mut_arg(id, arg));
    let subcommands: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    subcommands.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_names))
}

fn names_for(arg: &Arg, runs: bool) -> Vec<String> {
    let text = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    match (arg.get_long(), arg.get_value_names().and_then(|names| names.first())) {
        (Some("machine"), _) => machines(),
        (None, Some(name)) if arg.get_id() == "machine" && name != "FILE" => machines(),
        (Some("policy"), _) if runs => text(policies::names()),
        (Some("policy"), _) => {
            let names = scheme::of_kernel().into_iter().chain(scheme::of_recording()).map(|s| s.name);
            names.collect::<BTreeSet<String>>().into_iter().collect()
        }
        (None, Some(name)) if name.contains("kernel:NAME") => {
            let kernels = kernels::all().unwrap_or_default();
            kernels.into_iter().map(|k| format!("kernel:{}", k.name)).collect()
        }
        _ => Vec::new(),
    }
}

fn machines() -> Vec<String> {
    homenode_machine::list().iter().map(|m| m.name.to_owned()).chain(["this".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_know_machines_policies_and_kernels() {
        let command = with_names(super::super::command_line());
        let values = |name: &str, arg: &str| -> Vec<String> {
            let sub = command.find_subcommand(name).unwrap();
            let arg = sub.get_arguments().find(|a| a.get_id() == arg).unwrap();
            arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect()
        };
        assert!(values("explain", "machine").iter().any(|m| m == "2s-xeon"));
        assert!(values("compare", "machines").iter().any(|m| m == "this"));
        assert!(values("compare", "policies").iter().any(|p| p == "next-touch"));
        assert!(values("run", "policy").iter().any(|p| p == "next-touch=region"));
        assert!(values("record", "what").iter().all(|k| k.starts_with("kernel:")));
    }
}
