//! What people install: a binary tarball, a source tarball, a Debian package and a wheel.
//!
//! | file below `target/dist` | what |
//! |---|---|
//! | `homenode-VERSION-x86_64-linux.tar.xz` | everything below one folder that may lie anywhere |
//! | `homenode-VERSION-x86_64-linux-debug.tar.xz` | debug information of its binaries |
//! | `homenode-VERSION-source.tar.xz` | the source with all crates, which builds off line |
//! | `homenode_VERSION-1_amd64.deb` | for Debian and Ubuntu |
//! | `homenode-VERSION-py3-none-manylinux_2_XX_x86_64.whl` | the Python package with the binaries |
//!
//! | module | what |
//! |---|---|
//! | [`stage`] | the folder that binaries are packed from |
//! | [`needs`] | which glibc and which libraries binaries need |
//! | [`source`] | the source tarball |
//! | [`deb`] | the Debian package |
//! | [`check`] | installs each in a clean root and runs it there |

mod check;
mod deb;
mod needs;
mod source;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, program, read, run as must};
use crate::{Outcome, root};

/// Largest binary tarball, in bytes.
const LARGEST: u64 = 30 << 20;

/// The folder of the results.
fn out() -> PathBuf {
    root().join("target/dist")
}

/// The workspace's version.
fn version() -> Result<String, String> {
    let text = text_of(&root().join("Cargo.toml"))?;
    let package = text.split("[workspace.package]").nth(1).unwrap_or_default();
    let line = package.lines().find_map(|l| l.strip_prefix("version = \""));
    Ok(line.and_then(|l| l.strip_suffix('"')).ok_or("Cargo.toml names no version")?.to_owned())
}

/// Makes and checks.
pub fn run(args: &[String]) -> Outcome {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => make(None),
        ["--check"] => test(),
        ["--built", folder] => make(Some(folder)),
        ["--only-check"] => check::all(),
        _ => Err("takes --check, --built FOLDER or --only-check".to_owned()),
    }
}

/// What `ci --long` does: makes everything and tries it.
pub fn test() -> Outcome {
    make(None).and_then(|()| check::all())
}

/// Makes everything of the binaries in `built`; of a release build unless one is named.
fn make(built: Option<&str>) -> Outcome {
    if built.is_none() {
        let words = ["build", "--release", "--locked", "--workspace", "--exclude", "xtask"];
        must(cargo().args(words))?;
    }
    let version = version()?;
    fresh(&out())?;
    let stage = stage::make(&version, built.unwrap_or("target/release"))?;
    let needs = needs::of_folder(&stage.folder)?;
    print!("{needs}");
    let name = format!("homenode-{version}-x86_64-linux");
    let tarball = pack(&stage.folder, &name, &name)?;
    // It unpacks over the other one, where gdb looks for it.
    pack(&stage.debug, &name, &format!("{name}-debug"))?;
    let (major, minor) = needs.glibc();
    let tag = format!("manylinux_{major}_{minor}_x86_64");
    must(program("python3").args(["packaging/wheel.py", "--tag", &tag]).arg(&stage.folder).arg(out()))?;
    deb::make(&stage.folder, &version, &needs)?;
    source::make(&version)?;
    let mut all: Vec<PathBuf> = files(&out())?;
    all.retain(|p| p.is_file());
    for path in &all {
        println!("{:>6.1} MiB  {}", size(path)? as f64 / f64::from(1 << 20), path.display());
    }
    if size(&tarball)? > LARGEST {
        return Err(format!("{} is larger than {} MiB", tarball.display(), LARGEST >> 20));
    }
    Ok(())
}

/// A folder as the tarball `file`, below the folder `top`. Its bytes depend on the files' content
/// alone.
fn pack(folder: &Path, top: &str, file: &str) -> Result<PathBuf, String> {
    let path = out().join(format!("{file}.tar.xz"));
    let mut tar = tar(folder, top, &path);
    must(tar.env("XZ_OPT", "-6 -T0").arg("--xz").arg("."))?;
    Ok(path)
}

fn tar(folder: &Path, name: &str, path: &Path) -> Command {
    let mut tar = program("tar");
    tar.arg("--create").arg("--file").arg(path).arg("--directory").arg(folder);
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    // Links keep their targets.
    tar.arg(format!("--transform=flags=r;s,^[.],{name},"));
    tar
}

fn text_of(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Outcome {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn fresh(folder: &Path) -> Outcome {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {e}", folder.display()));
        }
        _ => {}
    }
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

fn size(path: &Path) -> Result<u64, String> {
    Ok(fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.len())
}

/// What is in a folder, in order of the names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.sort();
    Ok(all)
}

/// All files below a folder that the loader loads or starts; links are left out.
fn binaries(folder: &Path) -> Result<Vec<PathBuf>, String> {
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
