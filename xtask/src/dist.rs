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
//! | [`base`] | folders and files of the results |
//! | [`glibc`] | a linker for binaries that run with an old glibc |
//! | [`stage`] | the folder that binaries are packed from |
//! | [`needs`] | which glibc and which libraries binaries need |
//! | [`source`] | the source tarball |
//! | [`deb`] | the Debian package |
//! | [`check`] | installs each on this machine and runs it |
//! | [`roots`] | installs each in clean roots of other distributions and runs it there |
//! | [`bare`] | the tarball where a compiler, hwloc, or glibc is missing |
//! | [`containers`] | the steps of the container images, in clean roots |
//! | [`recipes`] | the recipes of conda and EasyBuild, by rattler-build and EasyBuild |

mod bare;
mod base;
mod check;
mod containers;
mod deb;
mod glibc;
mod needs;
mod recipes;
mod roots;
mod source;
mod stage;

use std::fs;
use std::path::PathBuf;

use base::{CommandResult, cargo, files, fresh, must, out, pack, program, size, version};

/// Largest binary tarball, in bytes.
const LARGEST: u64 = 30 << 20;

/// What `dist` takes.
#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false)]
pub struct DistArgs {
    /// Make everything, and check these parts of it in clean roots; all parts if none is named
    #[arg(long, value_name = "PART", num_args = 0..)]
    check: Option<Vec<String>>,
    /// Check these parts of what was made before
    #[arg(long, value_name = "PART", num_args = 0..)]
    only_check: Option<Vec<String>>,
    /// Take the programs from this folder instead of building them
    #[arg(long, value_name = "FOLDER")]
    built: Option<String>,
    /// Make the source tarball and the recipes alone
    #[arg(long)]
    source: bool,
    /// Print the linker for programs that run with an old glibc
    #[arg(long)]
    linker: bool,
}

/// Makes and checks.
pub fn run(args: &DistArgs) -> CommandResult {
    if let Some(parts) = &args.check {
        check::known(parts).and_then(|()| make(None)).and_then(|()| check::some(parts))
    } else if let Some(parts) = &args.only_check {
        check::some(parts)
    } else if args.source {
        fs::create_dir_all(out()).map_err(|e| e.to_string()).and_then(|()| source::make(&version()?))
    } else if args.linker {
        glibc::linker().map(|path| println!("{}", path.display()))
    } else {
        make(args.built.as_deref())
    }
}

/// What `ci --long` does: makes everything and tries it.
pub fn test() -> CommandResult {
    make(None).and_then(|()| check::some(&[]))
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
fn make(built: Option<&str>) -> CommandResult {
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
