//! What every command uses.

use std::path::PathBuf;

/// What a command returns: nothing, or why it failed.
pub type CommandResult = Result<(), String>;

/// The repository's root.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// The arguments in a text, for tests.
#[cfg(test)]
pub fn parsed<T: clap::Args>(text: &str) -> Result<T, String> {
    #[derive(clap::Parser)]
    struct Words<T: clap::Args> {
        #[command(flatten)]
        args: T,
    }
    let words = std::iter::once("xtask").chain(text.split_whitespace());
    <Words<T> as clap::Parser>::try_parse_from(words).map(|w| w.args).map_err(|e| e.to_string())
}
