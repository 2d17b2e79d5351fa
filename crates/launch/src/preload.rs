//! Having a program load a library before its others.
//!
//! The dynamic loader splits `LD_PRELOAD` at spaces and colons, and knows no way to quote them. A
//! library at such a path is named by a link in a folder whose path has none.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Whether the loader would take a path for several.
fn splits(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|b| matches!(b, b' ' | b':'))
}

/// What `LD_PRELOAD` is to be for `library`, with what it is already (`others`) behind it. Where
/// the library's path has a space or a colon it is reached by a link in `folder`, which has to stay
/// while the program runs.
///
/// # Errors
/// A sentence: the library cannot be named.
pub fn preload(library: &Path, folder: &Path, others: Option<&OsStr>) -> Result<OsString, String> {
    let mut named: PathBuf = library.into();
    if splits(library) {
        let what = format!("{} cannot be preloaded: its path has a space or a colon", library.display());
        if splits(folder) {
            return Err(format!("{what}, and so has the temporary folder's {}", folder.display()));
        }
        named = folder.join(library.file_name().unwrap_or_default());
        symlink(library, &named).map_err(|e| format!("{what}, and {}: {e}", named.display()))?;
    }
    let mut all = named.into_os_string();
    if let Some(others) = others.filter(|o| !o.is_empty()) {
        all.push(":");
        all.push(others);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_separator_is_reached_by_a_link() {
        let folder = std::env::temp_dir().join(format!("homenode-preload-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("a b:c")).unwrap();
        let odd = folder.join("a b:c/lib.so");
        std::fs::write(&odd, "x").unwrap();
        let plain = preload(Path::new("/opt/lib.so"), &folder, Some("other.so".as_ref())).unwrap();
        assert_eq!(plain, "/opt/lib.so:other.so");
        let named = preload(&odd, &folder, None).unwrap();
        assert_eq!(named, folder.join("lib.so"));
        assert_eq!(std::fs::read_to_string(&named).unwrap(), "x");
        let why = preload(&odd, &folder.join("a b:c"), None).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(why.contains("cannot be preloaded: its path has a space or a colon, and so has"), "{why}");
    }
}
