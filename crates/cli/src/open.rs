//! What a recording on disk is, and its data set.

use std::path::{Path, PathBuf};

use homenode_dataset::Dataset;
use homenode_dataset::folder::META;
use homenode_model::Bytes;

use homenode_error::{Context as _, Error, Result};

/// How to simulate a recording that tells what a program did, but not where its pages lived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Simulation<'a> {
    /// The machine.
    pub machine: Option<&'a str>,
    /// The policy.
    pub policy: Option<&'a str>,
    /// The page size.
    pub page: Option<Bytes>,
}

/// What [`open`] found.
#[derive(Debug)]
pub enum Opened {
    /// A data set.
    Dataset(Box<Dataset>),
    /// A recording that has no homes before it is simulated.
    NeedsSimulation,
}

/// Opens the recording at `path` as a data set.
///
/// # Errors
/// Nothing is there; it is damaged beyond reading; `how` says something and there is nothing to
/// simulate.
pub fn open(path: &Path, how: &Simulation<'_>) -> Result<Opened> {
    if !Dataset::is_at(path) {
        let inside = data_sets_in(path);
        if let Some((name, _)) = inside.first() {
            let shown = path.display();
            return Err(Error::usage(format!("{shown} holds {} recordings, and is none", inside.len()))
                .hint(format!("name one of them: {shown}/{name}")));
        }
        return Ok(Opened::NeedsSimulation);
    }
    if *how != Simulation::default() {
        return Err(Error::usage("this recording tells where pages lived: it is not simulated")
            .tried("simulate it on a machine, with a policy or a page size")
            .hint("leave --machine, --policy and --page out"));
    }
    let set = Dataset::open(path)
        .and_then(homenode_observed::adopt)
        .context(|| format!("cannot read the recording {}", path.display()))?;
    Ok(Opened::Dataset(Box::new(set)))
}

/// The data sets in a folder, as 'homenode compare --keep' leaves them: names and paths, by name.
pub fn data_sets_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(META).is_file())
        .filter_map(|path| Some((clean(&path.file_name()?.to_string_lossy()), path)))
        .collect();
    found.sort();
    found
}

/// A foreign text for the terminal.
pub fn clean(text: &str) -> String {
    homenode_dataset::foreign::clean(text)
}
