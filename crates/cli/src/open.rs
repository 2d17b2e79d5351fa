//! A recording of any kind as a data set.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_dataset::folder::META;
use homenode_error::{Error, Result};
use homenode_log::recording::{Recording, RecordingError};
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

/// A recording of every access. `doing` is what it is opened for, a verb.
///
/// # Errors
/// A usage error that says how to come by a recording, or what to do about a damaged one.
pub fn recording(path: &Path, doing: &str) -> Result<Recording> {
    Recording::open(path).map_err(|e| {
        let error = Error::usage(format!("cannot {doing} {}", path.display())).tried(&e);
        match &e {
            RecordingError::Io { error: io, .. } => match io.kind() {
                ErrorKind::NotFound => error.hint("'homenode record -- APP' makes a recording"),
                ErrorKind::PermissionDenied => error.hint("ask its owner for permission to read it"),
                _ => error.hint("'ls -l' says what it is; 'homenode record -- APP' makes a recording"),
            },
            _ => error.hint("a recording is a directory that 'homenode record' made"),
        }
    })
}

fn cannot_read(path: &Path) -> Error {
    Error::usage(format!("cannot read the recording {}", path.display()))
        .hint("'homenode rec upgrade REC' says what a recording is")
}

fn simulate(path: &Path, how: &Simulation<'_>, task: &dyn Task) -> Result<Dataset> {
    let recording = recording(path, "read the recording")?;
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
