//! A folder for the recordings that a command makes for itself.

use std::path::{Path, PathBuf};

use homenode_error::{Context, Result};

/// Where recordings go; removed at the end unless the user named it.
pub struct Folder {
    /// It.
    pub path: PathBuf,
    keep: bool,
}

impl Folder {
    /// The one that the user named, or a temporary one for command `what`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(what: &str, keep: Option<&Path>) -> Result<Self> {
        let path = match keep {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("homenode-{what}-{}", std::process::id())),
        };
        std::fs::create_dir_all(&path).context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self { path, keep: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is in the system's folder for temporary files and goes with
            // it.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
