//! Where homenode's own files are: beside the command in a build folder, or as they are installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use homenode_error::{Error, Result};

/// How somebody who has no `/proc` gets it.
const MOUNT: &str = "homenode finds its files by /proc/self/exe: mount /proc (as root: mount -t proc proc /proc; \
    for a chroot, from outside: mount -t proc proc ROOT/proc)";

/// The path of the running command.
///
/// # Errors
/// The kernel does not tell it: `/proc` is not mounted, or hidden.
pub fn own_command() -> Result<PathBuf> {
    own().map_err(|why| Error::failed("cannot tell where homenode is").tried(why).hint(MOUNT))
}

/// The path of the running command, or why the kernel does not tell it.
fn own() -> std::result::Result<PathBuf, String> {
    env::current_exe().map_err(|e| format!("read the link /proc/self/exe: {e}"))
}

/// The folder of the running command, with links followed, or why it is not known.
fn own_folder() -> std::result::Result<PathBuf, String> {
    let exe = own()?;
    // A command that was removed while it runs has no real path.
    let exe = fs::canonicalize(&exe).unwrap_or(exe);
    exe.parent().map(Path::to_owned).ok_or_else(|| format!("{} is in no folder", exe.display()))
}

/// Looks for `file` in the folder that `variable` names, else in `folders` relative to the
/// command's.
fn find(what: &str, file: &str, variable: &str, folders: &[&str], hint: &str) -> Result<PathBuf> {
    let mut error = Error::failed(format!("cannot find {what}"));
    let or_set = format!(", or set {variable} to the folder with {file}");
    let candidates: Vec<PathBuf> = match env::var_os(variable).filter(|v| !v.is_empty()) {
        Some(folder) => vec![folder.into()],
        None => match own_folder() {
            Ok(own) => folders.iter().map(|f| own.join(f)).collect(),
            Err(why) => return Err(error.tried(why).hint(format!("{MOUNT}{or_set}"))),
        },
    };
    let here = |folder: &&PathBuf| folder.join(file).is_file();
    if let Some(folder) = candidates.iter().find(here) {
        return Ok(fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()));
    }
    for folder in &candidates {
        error = error.tried(format!("look for {}", folder.join(file).display()));
    }
    Err(error.hint(format!("{hint}{or_set}")))
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

/// The lab's program for the guest: beside the libraries, or beside this command.
///
/// # Errors
/// As [`beside`].
pub fn guest_program() -> Result<PathBuf> {
    const NAME: &str = "homenode-lab-guest";
    let library = own_folder().map(|own| own.join("../lib/homenode").join(NAME));
    library.ok().filter(|path| path.is_file()).map_or_else(|| beside(NAME), Ok)
}

/// A program that is installed beside this one.
///
/// # Errors
/// It is not, or `/proc` does not tell where this one is.
pub fn beside(name: &str) -> Result<PathBuf> {
    let error = Error::failed(format!("cannot find {name}"));
    let path = match own_folder() {
        Ok(own) => own.join(name),
        Err(why) => return Err(error.tried(why).hint(MOUNT)),
    };
    if path.is_file() {
        return Ok(path);
    }
    Err(error
        .tried(format!("look for {}", path.display()))
        .hint("build it (cargo build --release), or reinstall homenode"))
}
