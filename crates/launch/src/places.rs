//! Where homenode's own files are: beside the command in a build folder, or as they are installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use homenode_error::{Error, Result};

/// The folder of the running command, with links followed.
pub fn own_folder() -> PathBuf {
    let exe = env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    exe.parent().map(Path::to_owned).unwrap_or_default()
}

/// Looks for `file` in the folder that `variable` names, else in `folders` relative to the
/// command's.
fn find(what: &str, file: &str, variable: &str, folders: &[&str], hint: &str) -> Result<PathBuf> {
    let own = own_folder();
    let candidates: Vec<PathBuf> = match env::var_os(variable).filter(|v| !v.is_empty()) {
        Some(folder) => vec![folder.into()],
        None => folders.iter().map(|f| own.join(f)).collect(),
    };
    let here = |folder: &&PathBuf| folder.join(file).is_file();
    if let Some(folder) = candidates.iter().find(here) {
        return Ok(fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()));
    }
    let mut error = Error::failed(format!("cannot find {what}"));
    for folder in &candidates {
        error = error.tried(format!("look for {}", folder.join(file).display()));
    }
    Err(error.hint(format!("{hint}, or set {variable} to the folder with {file}")))
}

/// The folder with the kernels' sources.
///
/// # Errors
/// It is nowhere; says where it was looked for.
pub fn kernels() -> Result<PathBuf> {
    let folders = ["../../kernels", "../../../kernels", "../share/homenode/kernels"];
    find("the kernels", "manifest.toml", "HOMENODE_KERNELS_DIR", &folders, "reinstall homenode")
}

/// The folder with homenode's libraries.
///
/// # Errors
/// As [`kernels`].
pub fn libraries() -> Result<PathBuf> {
    let hint = "build it (cargo build --release)";
    find("the recorder", "libhomenode_trace.so", "HOMENODE_LIB_DIR", &[".", "../lib/homenode"], hint)
}

/// The lab's monitor, which QEMU loads.
///
/// # Errors
/// As [`kernels`].
pub fn monitor() -> Result<PathBuf> {
    const FILE: &str = "libhomenode_monitor.so";
    let hint = "build it (cargo build --release)";
    Ok(find("the lab's monitor", FILE, "HOMENODE_LIB_DIR", &[".", "../lib/homenode"], hint)?.join(FILE))
}

/// What is loaded into an emulated program.
///
/// # Errors
/// As [`kernels`].
pub fn guest_library() -> Result<PathBuf> {
    const NAME: &str = "libhomenode_guest.so";
    let hint = "build it (cargo build --release)";
    find("the emulator's guest library", NAME, "HOMENODE_LIB_DIR", &[".", "../lib/homenode"], hint)
        .map(|f| f.join(NAME))
}

/// The library of the live runtime.
///
/// # Errors
/// As [`kernels`].
pub fn live_library() -> Result<PathBuf> {
    const NAME: &str = "libhomenode.so";
    let hint = "build it (cargo build --release)";
    find("the live runtime", NAME, "HOMENODE_LIB_DIR", &[".", "../lib/homenode"], hint).map(|f| f.join(NAME))
}

/// The library that leads a program's loops to the live runtime.
///
/// # Errors
/// As [`kernels`].
pub fn loops_library() -> Result<PathBuf> {
    const NAME: &str = "libhomenode_loops.so";
    let hint = "build it (cargo build --release)";
    find("the library for loops", NAME, "HOMENODE_LIB_DIR", &[".", "../lib/homenode"], hint)
        .map(|f| f.join(NAME))
}

/// A program that is installed beside this one.
///
/// # Errors
/// It is not.
pub fn beside(name: &str) -> Result<PathBuf> {
    let path = own_folder().join(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::failed(format!("cannot find {name}"))
        .tried(format!("look for {}", path.display()))
        .hint("build it (cargo build --release), or reinstall homenode"))
}
