//! Temporary folders that go with their owner, and with the next start if their owner was killed.
//!
//! The owner holds a lock on its folder. The kernel frees the lock when the owner ends, however it
//! ends. So a free lock tells a leftover from a folder in use, in whatever PID namespace its owner
//! lives. A folder also stays while a process runs that has the folder in its environment: the
//! program of a `homenode run` that was killed still writes there.

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use homenode_error::{Error, Result};

/// What folders are for. A folder's name is `homenode-PURPOSE-PID-N`.
const PURPOSES: [&str; 7] = ["compare", "compare-host", "explain", "lab", "paper", "plan", "run"];
/// Names that are tried.
const TRIES: u32 = 1000;

/// A folder of mode 0700, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Free as soon as this process ends, however it ends.
    _lock: File,
}

impl Scratch {
    /// Makes a folder among the system's temporary files, and removes those there that a killed
    /// homenode left.
    ///
    /// # Errors
    /// The folder cannot be made.
    ///
    /// # Panics
    /// `purpose` is unknown: a sweep would leave its folders.
    pub fn new(purpose: &str) -> Result<Self> {
        Self::inside(&std::env::temp_dir(), purpose)
    }

    /// The same in a folder `base`.
    ///
    /// # Errors
    /// As [`Scratch::new`].
    ///
    /// # Panics
    /// As [`Scratch::new`].
    pub fn inside(base: &Path, purpose: &str) -> Result<Self> {
        assert!(PURPOSES.contains(&purpose), "'{purpose}' is no purpose of a folder");
        sweep(base);
        for n in 0..TRIES {
            let path = base.join(format!("homenode-{purpose}-{}-{n}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => {
                    return Err(Error::failed("cannot make a temporary folder")
                        .tried(format!("make {}: {e}", path.display()))
                        .hint("set TMPDIR to a folder that can be written"));
                }
            }
            if let Some(lock) = locked(&path) {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(Error::failed(format!("{} is full of folders of homenode's", base.display()))
            .tried(format!("make homenode-{purpose}-{}-0 to {}", std::process::id(), TRIES - 1))
            .hint("remove them, or set TMPDIR to another folder"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next start removes what is left.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks a new folder. `None`: another start took the folder for a leftover before it had its lock.
fn locked(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    match folder.try_lock() {
        // Some network file systems lock no folder, so that nobody can take this one either.
        Ok(()) | Err(TryLockError::Error(_)) => {}
        Err(TryLockError::WouldBlock) => return None,
    }
    let (ours, there) = (folder.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    ((ours.dev(), ours.ino()) == (there.dev(), there.ino())).then_some(folder)
}

/// Whether a name is one of ours.
fn is_ours(name: &OsStr) -> bool {
    let parts = |name: &str| {
        let mut parts = name.strip_prefix("homenode-")?.rsplitn(3, '-').map(str::to_owned);
        let (n, pid, purpose) = (parts.next()?, parts.next()?, parts.next()?);
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        Some(number(&n) && number(&pid) && PURPOSES.contains(&purpose.as_str()))
    };
    name.to_str().and_then(parts).unwrap_or(false)
}

/// Removes folders that nobody uses. Another user's folder stays: it cannot be opened.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if !is_ours(&entry.file_name()) || !entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        let path = entry.path();
        let Ok(folder) = File::open(&path) else { continue };
        if folder.try_lock().is_ok() && !is_used(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether a process runs that has the folder in its environment.
fn is_used(folder: &Path) -> bool {
    let end = [b"=", folder.as_os_str().as_bytes()].concat();
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    processes.flatten().any(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|variable| variable.ends_with(&end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_and_what_is_in_use_stays() {
        let base = std::env::temp_dir().join(format!("homenode-scratch-test-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let leftover = |name: &str| {
            let path = base.join(format!("homenode-{name}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("x"), "x").unwrap();
            path
        };
        let (left, used) = (leftover("compare-host-1-0"), leftover("run-2-0"));
        let others = ["run-x-0", "3-0", "runs-3-0", "run-3-", "compare"].map(leftover);
        let mut program = std::process::Command::new("sleep").arg("60").env("ANY", &used).spawn().unwrap();
        // `spawn` returns before the kernel has put the program's environment in place.
        let environment = format!("/proc/{}/environ", program.id());
        while fs::read(&environment).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let first = Scratch::inside(&base, "run").unwrap();
        assert!(!left.exists() && used.exists());
        let second = Scratch::inside(&base, "lab").unwrap();
        assert!(first.path() != second.path() && first.path().exists());
        program.kill().unwrap();
        program.wait().unwrap();
        let path = first.path().to_owned();
        drop(first);
        drop(Scratch::inside(&base, "explain").unwrap());
        assert!(!path.exists() && !used.exists() && second.path().exists());
        assert!(others.iter().all(|other| other.exists()), "others' folders stay");
        drop(second);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_base_that_is_missing_is_named() {
        let error = Scratch::inside(Path::new("/nowhere/at/all"), "run").unwrap_err();
        assert!(error.tried[0].contains("/nowhere/at/all/homenode-run-"), "{error}");
        assert!(error.hint.is_some_and(|h| h.contains("TMPDIR")), "what to do");
    }
}
