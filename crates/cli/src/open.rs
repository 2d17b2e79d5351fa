//! A recording of any kind as a data set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_dataset::folder::META;
use homenode_error::{Context as _, Error, Failure, Result};
use homenode_log::recording::Recording;
use homenode_model::Bytes;
use homenode_schemes::{self as schemes, Loaded};
use homenode_task::Task;

/// How to simulate a recording that has a program's accesses but not its pages' homes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Simulation<'a> {
    /// The machine; `None`: [`schemes::default_machine`].
    pub machine: Option<&'a str>,
    /// The policy; `None`: first touch, as Linux does.
    pub policy: Option<&'a str>,
    /// The page size; `None`: the machine's smallest.
    pub page: Option<Bytes>,
}

/// What Linux does.
const FIRST_TOUCH: &str = "first-touch";

/// Opens the recording at `path` as a data set. A recording of accesses alone is simulated.
///
/// # Errors
/// Nothing is there; it is damaged beyond reading; `how` says something and there is nothing to
/// simulate; the simulation fails or `task` stops it.
pub fn open(path: &Path, how: &Simulation<'_>, task: &dyn Task) -> Result<Dataset> {
    if !Dataset::is_at(path) {
        let inside = data_sets_in(path);
        if let Some((name, _)) = inside.first() {
            let shown = path.display();
            return Err(Error::usage(format!("{shown} holds {} recordings, and is none", inside.len()))
                .hint(format!("name one of them: {shown}/{name}")));
        }
        return simulate(path, how, task);
    }
    if *how != Simulation::default() {
        return Err(Error::usage("this recording tells where pages lived: it is not simulated")
            .tried("simulate it on a machine, with a policy or a page size")
            .hint("leave --machine, --policy and --page out"));
    }
    Dataset::open(path).and_then(homenode_observed::adopt).map_err(|e| cannot_read(path).tried(&e))
}

fn cannot_read(path: &Path) -> Error {
    Error::usage(format!("cannot read the recording {}", path.display()))
        .hint("'homenode rec upgrade REC' says what a recording is")
}

fn simulate(path: &Path, how: &Simulation<'_>, task: &dyn Task) -> Result<Dataset> {
    let cannot = || format!("cannot read the recording {}", path.display());
    let recording = Recording::open(path).context(cannot).map_err(|e| e.kind(Failure::Usage))?;
    let machine = how.machine.map_or_else(schemes::default_machine, schemes::machine)?;
    let policy = how.policy.unwrap_or(FIRST_TOUCH);
    schemes::dataset(&Loaded::new(recording)?, Arc::new(machine.topology), how.page, policy, task)
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
