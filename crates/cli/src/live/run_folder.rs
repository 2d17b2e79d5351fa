//! The folder of a live run, to which the library in the program reports.
//!
//! The folder has a lock that `homenode` holds while it lives. The next start removes the folders
//! whose lock is free, unless a program still runs that was started with such a folder.

use std::env;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use homenode_error::{Error, Result};
use homenode_wire::settings::RUN_DIR;

const PREFIX: &str = "homenode-run-";
/// The name of the lock in the folder.
const LOCK: &str = "lock";

/// A folder, removed at the end.
pub struct RunFolder {
    /// It.
    pub path: PathBuf,
    /// Free as soon as this process ends, however it ends.
    _lock: File,
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // The next start removes what is left.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl RunFolder {
    /// Makes a folder among the temporary files, and removes those that a killed homenode left.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new() -> Result<Self> {
        Self::inside(&env::temp_dir())
    }

    fn inside(base: &Path) -> Result<Self> {
        sweep(base);
        for n in 0..1000 {
            let path = base.join(format!("{PREFIX}{}-{n}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(e) => {
                    return Err(Error::failed("cannot make a folder for the program's report")
                        .tried(format!("make {}: {e}", path.display()))
                        .hint("set TMPDIR to a folder that can be written"));
                }
            }
            if let Some(lock) = File::create(path.join(LOCK)).ok().filter(|f| f.try_lock().is_ok())
                // Another start may have taken the folder for a leftover before it had its lock.
                && path.join(LOCK).exists()
            {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(Error::failed(format!("{} is full of folders of homenode's", base.display()))
            .tried(format!("make {PREFIX}{}-0 to 999 with a lock in it", std::process::id()))
            .hint("remove them, or set TMPDIR to another folder"))
    }
}

/// Removes folders that nobody uses. Another user's folder stays: its lock cannot be opened.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|t| t.is_dir());
        let Some(lock) = File::open(path.join(LOCK)).ok().filter(|_| is_folder) else { continue };
        if lock.try_lock().is_ok() && !is_used(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether a program runs that was started with this folder: homenode alone was killed.
fn is_used(folder: &Path) -> bool {
    let mut variable = format!("{RUN_DIR}=").into_bytes();
    variable.extend_from_slice(folder.as_os_str().as_bytes());
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    processes.flatten().any(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|v| v == variable)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_and_what_is_in_use_stays() {
        let base = env::temp_dir().join(format!("homenode-run-folder-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let leftover = |name: &str| {
            let path = base.join(format!("{PREFIX}{name}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(LOCK), "").unwrap();
            path
        };
        let (left, used) = (leftover("1-0"), leftover("2-0"));
        let mut program = std::process::Command::new("sleep").arg("60").env(RUN_DIR, &used).spawn().unwrap();
        // `spawn` returns before the kernel has put the program's environment in place.
        let environment = format!("/proc/{}/environ", program.id());
        while fs::read(&environment).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let unknown = base.join(format!("{PREFIX}3-0"));
        fs::create_dir(&unknown).unwrap();
        let first = RunFolder::inside(&base).unwrap();
        assert!(!left.exists() && used.exists() && unknown.exists());
        let second = RunFolder::inside(&base).unwrap();
        assert!(first.path != second.path && first.path.exists());
        program.kill().unwrap();
        program.wait().unwrap();
        let path = first.path.clone();
        drop(first);
        drop(RunFolder::inside(&base).unwrap());
        assert!(!path.exists() && !used.exists() && second.path.exists());
        drop(second);
        fs::remove_dir_all(&base).unwrap();
    }
}
