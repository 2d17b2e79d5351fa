//! A recording of any kind as a data set.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_dataset::layout::META;
use homenode_error::{Error, Result};
use homenode_log::recording::Recording;
use homenode_model::Bytes;
use homenode_schemes::{self as schemes, LoadedRecording};
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
    adopted(path, "read the recording")
}

/// Opens the data set at `path`, with the streams of a homenode that was killed. `what`: a verb and
/// its object, for the error.
///
/// # Errors
/// As [`data_set`].
pub fn adopted(path: &Path, what: &str) -> Result<Dataset> {
    Dataset::open(path).and_then(homenode_observed::adopt).map_err(|e| no_recording(path, what, &e))
}

/// Opens the data set at `path`. `what`: a verb and its object, for the error.
///
/// # Errors
/// Nothing is there, it is no data set, or the system refuses: a usage error, whichever command
/// asks.
pub fn data_set(path: &Path, what: &str) -> Result<Dataset> {
    Dataset::open(path).map_err(|e| no_recording(path, what, &e))
}

/// Opens the recording of accesses at `path`. `what`: a verb and its object, for the error.
///
/// # Errors
/// As [`data_set`].
pub fn recording(path: &Path, what: &str) -> Result<Recording> {
    Recording::open(path).map_err(|e| no_recording(path, what, &e))
}

/// Why the path cannot be read as a recording, and what to do about it.
fn no_recording(path: &Path, what: &str, why: &dyn std::error::Error) -> Error {
    let error = Error::usage(format!("cannot {what} {}", clean(&path.to_string_lossy()))).tried(why);
    match std::fs::read_dir(path).map_err(|e| e.kind()) {
        Err(ErrorKind::NotFound) => error.hint("'homenode record -- APP' makes a recording"),
        Err(ErrorKind::PermissionDenied) => {
            error.hint("ask the owner of the folder for the permission to read it (chmod u+rx)")
        }
        _ => error.hint("a recording is a folder that 'homenode record' made"),
    }
}

fn simulate(path: &Path, how: &Simulation<'_>, task: &dyn Task) -> Result<Dataset> {
    let recording = recording(path, "read the recording")?;
    let machine = how.machine.map_or_else(schemes::default_machine, schemes::machine)?;
    let policy = how.policy.unwrap_or(FIRST_TOUCH);
    schemes::dataset(&LoadedRecording::new(recording)?, Arc::new(machine.topology), how.page, policy, task)
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
