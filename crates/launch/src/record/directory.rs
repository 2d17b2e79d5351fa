//! The directory of a new recording: its name, and what may be replaced.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use homenode_dataset::{Dataset, folder};
use homenode_error::{Error, Result};
use homenode_log::recording::{Meta, Recording, RecordingError};

use super::names::shown;

/// Where a recording goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingTarget {
    /// There; replaces the recording that is there if `force`.
    Path {
        /// The directory.
        path: PathBuf,
        /// Replace a recording.
        force: bool,
    },
    /// In the current folder: this and the first free number, `.hnrec`.
    Free(PathBuf),
}

/// The file in the recording that takes a program's output when nobody is to see it.
pub const OUTPUT: &str = "output.txt";

/// What lay where in the program's processes.
pub const OBJECTS: &str = "objects.csv";
/// Who was seen at which page while the program ran here.
pub const SIGHTINGS: &str = "sightings.csv";
/// What reported the accesses, and the basis of the counts.
pub const LIVE: &str = "live.json";

/// Most numbers that are tried for a free name.
const MOST: u32 = 10_000;

/// Files that a recording consists of, beside the logs in `threads`.
const FILES: [&str; 12] = [
    // Of the lab's recordings before data sets.
    "accesses.csv",
    "lab.json",
    "meta.json",
    "meta.new",
    "symbols.json",
    "symbols.new",
    "modules.txt",
    "status",
    OUTPUT,
    OBJECTS,
    SIGHTINGS,
    LIVE,
];

/// Makes the directory.
///
/// # Errors
/// Something is there already, or the system refuses.
pub fn make(target: &RecordingTarget, meta: Meta) -> Result<Recording> {
    match target {
        RecordingTarget::Path { path, force } => {
            if *force && fs::symlink_metadata(path).is_ok() {
                remove(path)?;
            }
            Recording::create(path, meta).map_err(|e| cannot(path, &e, *force))
        }
        RecordingTarget::Free(stem) => {
            for n in 1..=MOST {
                let path = PathBuf::from(format!("{}-{n}.hnrec", stem.display()));
                match Recording::create(&path, meta.clone()) {
                    Err(RecordingError::Io { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {}
                    other => return other.map_err(|e| cannot(&path, &e, false)),
                }
            }
            Err(Error::failed(format!("{}-1.hnrec to -{MOST}.hnrec all exist", stem.display()))
                .hint("name the recording: -o REC"))
        }
    }
}

/// Makes the empty folder of a new data set.
///
/// # Errors
/// Something is there already, or the system refuses.
pub fn make_folder(target: &RecordingTarget) -> Result<PathBuf> {
    let new = |path: &Path| {
        let made = fs::DirBuilder::new().mode(0o700).create(path);
        made.map_err(|error| RecordingError::Io { tried: "create the directory", path: path.into(), error })
    };
    match target {
        RecordingTarget::Path { path, force } => {
            if *force && fs::symlink_metadata(path).is_ok() {
                remove(path)?;
            }
            new(path).map_err(|e| cannot(path, &e, *force))?;
            Ok(path.clone())
        }
        RecordingTarget::Free(stem) => {
            for n in 1..=MOST {
                let path = PathBuf::from(format!("{}-{n}.hnrec", stem.display()));
                match new(&path) {
                    Ok(()) => return Ok(path),
                    Err(RecordingError::Io { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(e) => return Err(cannot(&path, &e, false)),
                }
            }
            Err(Error::failed(format!("{}-1.hnrec to -{MOST}.hnrec all exist", stem.display()))
                .hint("name the recording: -o REC"))
        }
    }
}

fn cannot(path: &Path, error: &RecordingError, force: bool) -> Error {
    let cli = Error::failed(format!("cannot make the recording {}", path.display())).tried(error);
    match error {
        RecordingError::Io { error, .. } if error.kind() == ErrorKind::AlreadyExists && !force => {
            cli.hint("--force replaces a recording; -o names another one")
        }
        RecordingError::Io { error, .. } if error.kind() == ErrorKind::StorageFull => {
            cli.hint("make room there, or name another place: -o REC")
        }
        _ => cli.hint("name a place where you may write: -o REC"),
    }
}

/// Removes a recording, and nothing that is not part of one.
///
/// # Errors
/// It is not a recording, has other things in it, or the system refuses.
pub fn remove(path: &Path) -> Result<()> {
    let cannot = |why: String| {
        Error::failed(format!("cannot replace {}", path.display()))
            .tried(why)
            .hint("look at it, and remove it yourself or name another place: -o REC")
    };
    if Dataset::is_at(path) {
        return folder::remove(path).map_err(|e| cannot(e.to_string()));
    }
    Recording::open(path).map_err(|e| cannot(e.to_string()))?;
    let threads = path.join("threads");
    let mut files: Vec<PathBuf> = FILES.iter().map(|f| path.join(f)).collect();
    for entry in fs::read_dir(&threads).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|e| e == "hnlog") {
            files.push(entry.path());
        }
    }
    for file in files {
        match fs::remove_file(&file) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(cannot(format!("remove {}: {e}", file.display())));
            }
            _ => {}
        }
    }
    for folder in [&threads, path] {
        match fs::remove_dir(folder) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(cannot(format!("remove the folder {}: {e}", shown(folder))));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn meta() -> Meta {
        Meta {
            format: homenode_log::VERSION,
            homenode: "0".into(),
            kind: "exact".into(),
            command: vec![],
            environment: BTreeMap::new(),
            filter_lines: 0,
            rank: None,
            ended: None,
        }
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("homenode-directory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn numbers_count_up() {
        let dir = folder("free");
        let target = RecordingTarget::Free(dir.join("app"));
        for n in 1..=3 {
            assert_eq!(make(&target, meta()).unwrap().path, dir.join(format!("app-{n}.hnrec")));
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn only_a_recording_is_replaced_and_only_when_asked() {
        let dir = folder("force");
        let path = dir.join("r");
        let target = |force| RecordingTarget::Path { path: path.clone(), force };
        make(&target(false), meta()).unwrap();
        let error = make(&target(false), meta()).unwrap_err();
        assert!(error.hint.unwrap().contains("--force"));
        make(&target(true), meta()).unwrap();

        fs::write(path.join("thesis.txt"), "precious").unwrap();
        let error = make(&target(true), meta()).unwrap_err();
        assert!(error.message.contains("cannot replace"), "{error}");
        assert!(path.join("thesis.txt").exists());

        fs::create_dir(dir.join("other")).unwrap();
        let other = RecordingTarget::Path { path: dir.join("other"), force: true };
        assert!(make(&other, meta()).unwrap_err().to_string().contains("no meta.json"));
        assert!(dir.join("other").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_data_set_is_replaced_only_when_asked_and_only_if_it_is_one() {
        use homenode_dataset::{Basis, DatasetMeta, DatasetWriter, Ended, RecordingKind};
        let dir = folder("data-set");
        let path = dir.join("r");
        let target = |force| RecordingTarget::Path { path: path.clone(), force };
        let fill = |path: &Path| {
            let meta = DatasetMeta::new(RecordingKind::Lab, Basis::Emulated, Vec::new());
            let ended = Ended { status: Some(0), signal: None, elapsed_ns: 1 };
            DatasetWriter::create(path, meta).unwrap().finish(ended).unwrap();
        };
        fill(&make_folder(&target(false)).unwrap());
        fs::create_dir(path.join("streams")).unwrap();
        fs::write(path.join("streams/live.7"), "").unwrap();
        assert!(make_folder(&target(false)).unwrap_err().hint.unwrap().contains("--force"));
        fill(&make_folder(&target(true)).unwrap());
        fs::write(path.join("thesis.txt"), "precious").unwrap();
        let error = make_folder(&target(true)).unwrap_err();
        assert!(error.message.contains("cannot replace"), "{error}");
        assert!(path.join("thesis.txt").exists());
        for n in 1..=2 {
            let made = make_folder(&RecordingTarget::Free(dir.join("app"))).unwrap();
            assert_eq!(made, dir.join(format!("app-{n}.hnrec")));
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
