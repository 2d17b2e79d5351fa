//! Folders and files of the results, which all modules here use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::process::{cargo, present, program, read, run as must};
pub(crate) use crate::{CommandResult, root};

/// The folder of the results.
pub fn out() -> PathBuf {
    root().join("target/dist")
}

/// The workspace's version.
pub fn version() -> Result<String, String> {
    let text = text_of(&root().join("Cargo.toml"))?;
    let package = text.split("[workspace.package]").nth(1).unwrap_or_default();
    let line = package.lines().find_map(|l| l.strip_prefix("version = \""));
    Ok(line.and_then(|l| l.strip_suffix('"')).ok_or("Cargo.toml names no version")?.to_owned())
}

/// A folder as the tarball `file`, below the folder `top`. Its bytes depend on the files' content
/// alone.
pub fn pack(folder: &Path, top: &str, file: &str) -> Result<PathBuf, String> {
    let path = out().join(format!("{file}.tar.xz"));
    let mut tar = tar(folder, top, &path);
    must(tar.env("XZ_OPT", "-6 -T0").arg("--xz").arg("."))?;
    Ok(path)
}

/// A `tar` that writes a folder, below the name `name`, to `path`: the same bytes each time.
pub fn tar(folder: &Path, name: &str, path: &Path) -> Command {
    let mut tar = program("tar");
    tar.arg("--create").arg("--file").arg(path).arg("--directory").arg(folder);
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    // Links keep their targets.
    tar.arg(format!("--transform=flags=r;s,^[.],{name},"));
    tar
}

/// A file's text.
pub fn text_of(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes a file, and makes its folder.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> CommandResult {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Makes an empty folder, whatever was there.
pub fn fresh(folder: &Path) -> CommandResult {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {e}", folder.display()));
        }
        _ => {}
    }
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// A file's length in bytes.
pub fn size(path: &Path) -> Result<u64, String> {
    Ok(fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.len())
}

/// What is in a folder, in order of the names.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.sort();
    Ok(all)
}

/// All files below a folder that the loader loads or starts; links are left out.
pub fn binaries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in files(folder)? {
        let kind = fs::symlink_metadata(&path).map_err(|e| format!("{}: {e}", path.display()))?.file_type();
        if kind.is_dir() {
            found.extend(binaries(&path)?);
        } else if kind.is_file() && fs::read(&path).is_ok_and(|b| b.starts_with(b"\x7fELF")) {
            found.push(path);
        }
    }
    Ok(found)
}
