//! The tarball where something is missing that other machines have.
//!
//! | root | missing | what is expected |
//! |---|---|---|
//! | Debian 12, base system | compilers, CMake, hwloc | simulation and `run` work; a kernel is refused, and the package is named |
//! | BusyBox and musl | glibc | the wheel is for other machines; the kernel starts no program that glibc's loader must load |

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::base::{CommandResult, files, fresh, must, program, version};
use super::roots::{HOME, NOBODY, impossible, inside, place};
use crate::testing;

/// The suite of the base system.
const SUITE: &str = "bookworm";
/// Exit status of a command that could not do its work.
const REFUSED: i32 = 125;
/// Packages with a shell and a C library that is not glibc.
const MUSL: &[&str] = &["busybox-static", "musl"];

/// Both roots.
pub fn all(folder: &Path, tarball: &Path) -> CommandResult {
    if let Some(why) = impossible() {
        testing::skipped("dist", why);
        return Ok(());
    }
    match base(folder) {
        Ok(root) => without_compiler(&root, tarball)?,
        Err(why) => testing::skipped("dist", &format!("no base system of {SUITE}: {why}")),
    }
    match musl(folder) {
        Ok(root) => without_glibc(&root, tarball),
        Err(why) => {
            testing::skipped("dist", &format!("no root with musl alone: {why}"));
            Ok(())
        }
    }
}

/// A root with Debian's base system alone, made once: what the image debian:12-slim is made of.
pub fn base(folder: &Path) -> Result<PathBuf, String> {
    let root = place(folder).join(format!("{SUITE}-base"));
    if !root.join("usr/bin/env").exists() {
        fs::create_dir_all(place(folder)).map_err(|e| e.to_string())?;
        let mut words = program("mmdebstrap");
        words.args(["--quiet", "--variant=minbase", SUITE]).arg(&root);
        must(&mut words).inspect_err(|_| drop(fs::remove_dir_all(&root)))?;
    }
    Ok(root)
}

/// Unpacks the tarball for the ordinary user of a root; the path of the command there.
fn unpack(root: &Path, tarball: &Path) -> Result<String, String> {
    let home = root.join(HOME.trim_start_matches('/'));
    fresh(&home)?;
    must(program("tar").arg("--extract").arg("--file").arg(tarball).arg("-C").arg(&home))?;
    must(program("chown").args(["--recursive", NOBODY]).arg(&home))?;
    Ok(format!("{HOME}/homenode-{}-x86_64-linux/bin/homenode", version()?))
}

/// Status, and both outputs.
fn told(command: &mut Command) -> Result<(Option<i32>, String), String> {
    let out = command.output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((out.status.code(), text(&out.stdout) + &text(&out.stderr)))
}

/// Runs a command in a root as an ordinary user, and compares its status and a part of its output.
fn expect(root: &Path, words: &[&str], status: i32, part: &str) -> CommandResult {
    let (code, text) = told(inside(root, Some(NOBODY)).args(words))?;
    if code == Some(status) && text.contains(part) {
        return Ok(());
    }
    Err(format!("{}: status {code:?} instead of {status}, or no '{part}' in: {text}", words.join(" ")))
}

fn without_compiler(root: &Path, tarball: &Path) -> CommandResult {
    let command = unpack(root, tarball)?;
    let of = |words: &[&'static str]| [&[command.as_str()], words].concat();
    expect(root, &of(&["machine", "show", "this"]), 0, "this")?;
    expect(root, &of(&["run", "--pretend-nodes", "2", "--", "/bin/echo", "it runs"]), 0, "it runs")?;
    let explain = ["explain", "kernel:heat", "--class", "S", "--machine", "2s-xeon"];
    expect(root, &of(&explain), REFUSED, "cmake")?;
    println!(
        "bare, {SUITE} without compilers and hwloc: runs programs, and names the package that a kernel lacks"
    );
    Ok(())
}

/// A root with BusyBox and musl.
fn musl(folder: &Path) -> Result<PathBuf, String> {
    let (root, packages) = (folder.join("musl"), folder.join("packages"));
    fresh(&packages)?;
    // apt reads with rights of its own.
    must(program("chmod").arg("777").arg(&packages))?;
    must(program("apt-get").current_dir(&packages).args(["--quiet", "--quiet", "download"]).args(MUSL))?;
    for package in files(&packages)? {
        must(program("dpkg-deb").arg("--extract").arg(&package).arg(&root))?;
    }
    for folder in ["proc", "sys", "tmp", "var/tmp", "usr/bin"] {
        fs::create_dir_all(root.join(folder)).map_err(|e| e.to_string())?;
    }
    for name in ["sh", "env", "ls"] {
        let link = root.join("usr/bin").join(name);
        std::os::unix::fs::symlink("/bin/busybox", link).map_err(|e| e.to_string())?;
    }
    Ok(root)
}

fn without_glibc(root: &Path, tarball: &Path) -> CommandResult {
    let command = unpack(root, tarball)?;
    // The file is there, and what the kernel does not find is the loader that it names.
    expect(root, &["/usr/bin/sh", "-c", "ls \"$0\"", &command], 0, &command)?;
    expect(root, &["/usr/bin/sh", "-c", "\"$0\" --version", &command], 127, "not found")?;
    println!("bare, musl alone: 'not found', as docs/install.md says");
    Ok(())
}
