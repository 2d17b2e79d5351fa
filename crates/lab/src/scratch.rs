//! A folder that is removed with its owner.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{self, Result};

const PREFIX: &str = "homenode-lab-";

/// A folder for one run, mode 0700, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder in `parent`, and removes folders there whose process is gone (by `kill -9`).
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn make(parent: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(parent);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{n}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| error::of_file("create", &path, &e))?;
        Ok(Self(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        let Some(pid) = pid.filter(|p| p.bytes().all(|b| b.is_ascii_digit()) && !p.is_empty()) else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() && Path::new("/proc/self").exists() {
            // Another user's folder stays, because removing it fails.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_owner_and_what_others_left_goes_too() {
        let parent = Scratch::make(&std::env::temp_dir()).unwrap();
        let left = parent.path().join(format!("{PREFIX}{}-0", u32::MAX));
        fs::create_dir(&left).unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        fs::write(scratch.path().join("x"), "x").unwrap();
        assert!(!left.exists());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists() && parent.path().exists());
    }
}
