//! A folder for the recordings that a command makes for itself.

use std::path::{Path, PathBuf};

use homenode_error::{Context, Result};
use homenode_scratch::Scratch;

/// Where recordings go; removed at the end unless the user named it.
pub struct Folder {
    /// It.
    pub path: PathBuf,
    _scratch: Option<Scratch>,
}

impl Folder {
    /// The one that the user named, or a temporary one for command `what`, a purpose of
    /// [`Scratch`].
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(what: &str, keep: Option<&Path>) -> Result<Self> {
        let Some(path) = keep else {
            let scratch = Scratch::new(what)?;
            return Ok(Self { path: scratch.path().to_owned(), _scratch: Some(scratch) });
        };
        std::fs::create_dir_all(path).context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self { path: path.to_owned(), _scratch: None })
    }
}
