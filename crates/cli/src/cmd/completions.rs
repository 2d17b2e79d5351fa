//! `homenode completions`.

use clap::Args;
use clap_complete::Shell;
use homenode_error::Result;

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
    pub(super) fn run(self) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command_line(), "homenode", &mut script);
        to_stdout(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
