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
//! | [`glibc`] | a linker for binaries that run with an old glibc |
//! | [`stage`] | the folder that binaries are packed from |
//! | [`needs`] | which glibc and which libraries binaries need |
//! | [`source`] | the source tarball |
//! | [`deb`] | the Debian package |
//! | [`check`] | installs each on this machine and runs it |
//! | [`roots`] | installs each in clean roots of other distributions and runs it there |

mod check;
mod deb;
mod glibc;
mod needs;
mod roots;
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

/// What `dist` takes.
#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false)]
pub struct DistArgs {
    /// Make everything, and install each in a clean root
    #[arg(long)]
    check: bool,
    /// Take the programs from this folder instead of building them
    #[arg(long, value_name = "FOLDER")]
    built: Option<String>,
    /// Install what was made before in a clean root
    #[arg(long)]
    only_check: bool,
    /// Print the linker for programs that run with an old glibc
    #[arg(long)]
    linker: bool,
}

/// Makes and checks.
pub fn run(args: &DistArgs) -> Outcome {
    if args.check {
        test()
    } else if args.only_check {
        check::all()
    } else if args.linker {
        glibc::linker().map(|path| println!("{}", path.display()))
    } else {
        make(args.built.as_deref())
    }
}

/// What `ci --long` does: makes everything and tries it.
pub fn test() -> Outcome {
    make(None).and_then(|()| check::all())
}

/// The target triple of the build.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A release build that runs with an old glibc; its folder. Crates that run while it is built are
/// linked as always.
fn build() -> Result<String, String> {
    let linker = glibc::linker()?;
    let words = ["build", "--release", "--locked", "--workspace", "--exclude", "xtask", "--target", TARGET];
    let flags = format!("-Clinker={}", linker.display());
    must(cargo().args(words).env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", flags))?;
    Ok(format!("target/{TARGET}/release"))
}

/// Makes everything of the binaries in `built`; of a release build unless one is named. That build
/// alone is held to the promised glibc.
fn make(built: Option<&str>) -> Outcome {
    let folder = built.map_or_else(build, |built| Ok(built.to_owned()))?;
    let version = version()?;
    fresh(&out())?;
    let stage = stage::make(&version, &folder)?;
    let needs = needs::of_folder(&stage.folder)?;
    print!("{needs}");
    if built.is_none() {
        needs.check(glibc::PROMISED)?;
    }
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
