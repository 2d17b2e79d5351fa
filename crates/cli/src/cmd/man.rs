//! `homenode man`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use homenode_error::{Context, Result};

use crate::exit::Exit;
use crate::output::{say, to_stdout};

const EXAMPLES: &str = "\
Examples:
  homenode man | man -l -
  homenode man ~/.local/share/man/man1";

/// Print the manual page, or write all pages to a directory
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Where to write homenode.1 and a page for each command; made when missing
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl ManArgs {
    /// Writes the pages of `command`, the whole command line.
    pub(super) fn run(self, command: Command) -> Result<Exit> {
        let command = command.disable_help_subcommand(true);
        match self.directory {
            None => {
                let mut page = Vec::new();
                Man::new(command).render(&mut page).context(|| "cannot make the manual page".to_owned())?;
                to_stdout(&String::from_utf8_lossy(&page))?;
            }
            Some(directory) => {
                let failed = || format!("cannot write the manual pages to {}", directory.display());
                fs::create_dir_all(&directory).context(failed)?;
                clap_mangen::generate_to(command, &directory).context(failed)?;
                say(format_args!("manual pages written to {}", directory.display()));
            }
        }
        Ok(Exit::Done)
    }
}
