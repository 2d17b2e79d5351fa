//! The book in `target/book`, by mdBook.
//!
//! mdBook is no dependency of the workspace: it takes 97 s of CPU time to build, more than `make
//! test` has for it. So `ci --long` makes the book, and `tidy` checks chapters, links and headings
//! on each run.

use std::path::PathBuf;

use crate::process::{cargo, program, run as must};
use crate::{CommandResult, root};

/// The release of mdBook. Its server and its search are left out.
const VERSION: &str = "0.4.52";

/// Makes the book.
pub fn run() -> CommandResult {
    make()
}

/// As `ci --long` does it.
pub fn make() -> CommandResult {
    let mdbook = installed()?;
    must(program(&mdbook.to_string_lossy()).arg("build"))
}

/// mdBook below `target`, built once.
fn installed() -> Result<PathBuf, String> {
    let folder = root().join("target/mdbook").join(VERSION);
    let mdbook = folder.join("bin/mdbook");
    if !mdbook.is_file() {
        let words =
            ["install", "mdbook", "--version", VERSION, "--locked", "--no-default-features", "--quiet"];
        must(cargo().args(words).arg("--root").arg(&folder))?;
    }
    Ok(mdbook)
}
