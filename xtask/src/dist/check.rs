//! Installs each result in a clean root and explains a kernel there, as an ordinary user.
//!
//! | result | clean root |
//! |---|---|
//! | tarball | a folder with a space in its name, and an environment with a path of the system alone |
//! | wheel | a virtual environment, without network |
//! | Debian package | unpacked |
//! | the three of them | Debian 12 and 13, Ubuntu 18.04 to 24.04 ([`super::roots`]), without network |
//! | tarball | where a compiler, hwloc, or glibc is missing ([`super::bare`]) |
//! | Debian package | container images ([`super::containers`]) |
//! | source | unpacked, built as docs/install.md says, with an empty `CARGO_HOME` and without network |
//! | recipes | the built source, by conda's and EasyBuild's tools ([`super::recipes`]) |
//!
//! Each row is a part, or several, with a name: `cargo xtask dist --only-check jammy source` checks
//! two parts of what was made last. All parts run before the verdict.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::base::{CommandResult, cargo, files, fresh, must, out, present, program, read, text_of, version};
use super::{bare, containers, deb, recipes, roots, source};
use crate::testing;

/// What is run. heat is a kernel in C, so the recorder, its compiler and the simulator all work.
const EXPLAIN: &[&str] = &["explain", "kernel:heat", "--class", "S", "--machine", "2s-xeon"];
/// Words that its answer has.
const ANSWER: &str = "evidence: every access, recorded by the program's own code";
/// An ordinary user's numbers: Debian's nobody and nogroup.
const NOBODY: &str = "65534";
/// Who is root is told by its number.
const ROOT: &str = "0";
/// Where everything is tried: an ordinary user can come here.
const TRIED: &str = "/var/tmp/homenode-dist-check";

/// A part of the check: its name, and what it does in a folder of its own.
type Part = (&'static str, fn(&Path) -> CommandResult);

const PARTS: &[Part] = &[
    ("tarball", tarball),
    ("wheel", wheel),
    ("deb", debian),
    ("trixie", |folder| roots::part("trixie", folder, &results()?)),
    ("bookworm", |folder| roots::part("bookworm", folder, &results()?)),
    ("noble", |folder| roots::part("noble", folder, &results()?)),
    ("jammy", |folder| roots::part("jammy", folder, &results()?)),
    ("bionic", |folder| roots::part("bionic", folder, &results()?)),
    ("bare", |folder| bare::all(folder, &one(TARBALL)?)),
    ("containers", |folder| containers::all(folder, EXPLAIN, ANSWER)),
    ("source", from_source),
    ("recipes", |folder| recipes::all(folder, &built_source(&folder.with_file_name("source"))?)),
];

/// The end of the binary tarball's name.
const TARBALL: &str = "x86_64-linux.tar.xz";

/// The parts' names.
fn names() -> String {
    PARTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Refuses the name of a part that there is not.
pub fn known(parts: &[String]) -> CommandResult {
    match parts.iter().find(|part| !PARTS.iter().any(|(name, _)| name == part)) {
        Some(part) => Err(format!("there is no part {part}; parts: {}", names())),
        None => Ok(()),
    }
}

/// Checks these parts; all of them if none is named.
pub fn some(parts: &[String]) -> CommandResult {
    known(parts)?;
    let place = PathBuf::from(TRIED);
    // What a chroot holds belongs to root.
    fresh(&place)?;
    must(program("chmod").arg("755").arg(&place))?;
    let mut failed = Vec::new();
    for (name, check) in
        PARTS.iter().filter(|(name, _)| parts.is_empty() || parts.iter().any(|part| part == name))
    {
        let folder = place.join(name);
        let start = Instant::now();
        let outcome = std::fs::create_dir_all(&folder)
            .map_err(|e| format!("{}: {e}", folder.display()))
            .and_then(|()| check(&folder));
        let took = start.elapsed().as_secs();
        match outcome {
            Ok(()) => println!("── dist, {name}: ok, {took} s"),
            Err(why) => {
                println!("── dist, {name}: FAILED, {took} s: {why}");
                failed.push(format!("{name}: {why}"));
            }
        }
    }
    if !failed.is_empty() {
        return Err(failed.join("; "));
    }
    fresh(&place)
}

/// What the parts in clean roots try.
fn results() -> Result<roots::ReleaseFiles, String> {
    Ok(roots::ReleaseFiles {
        tarball: one(TARBALL)?,
        deb: deb::path(&version()?),
        wheel: one(".whl")?,
        words: EXPLAIN,
        answer: ANSWER,
    })
}

fn one(end: &str) -> Result<PathBuf, String> {
    let found: Vec<PathBuf> =
        files(&out())?.into_iter().filter(|p| p.to_string_lossy().ends_with(end)).collect();
    match &found[..] {
        [one] => Ok(one.clone()),
        _ => Err(format!("{} results end with {end}: run cargo xtask dist", found.len())),
    }
}

/// A command of an ordinary user with an empty environment.
fn ordinary(home: &Path, command: &Path) -> Result<Command, String> {
    must(program("mkdir").arg("-p").arg(home))?;
    let is_root = read(program("id").arg("-u"))?.trim() == ROOT;
    let mut words = if is_root {
        must(program("chown").arg(format!("{NOBODY}:{NOBODY}")).arg(home))?;
        let mut words = program("setpriv");
        words.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(command);
        words
    } else {
        Command::new(command)
    };
    words.current_dir(home).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
    Ok(words)
}

fn expect(what: &str, text: &str) -> CommandResult {
    if !text.contains(ANSWER) {
        return Err(format!("{what}: the answer lacks '{ANSWER}': {text}"));
    }
    println!("{what}: {}", text.lines().take(2).collect::<Vec<_>>().join("; "));
    Ok(())
}

fn tarball(folder: &Path) -> CommandResult {
    let version = version()?;
    let place = folder.join("a place with spaces");
    fresh(&place)?;
    must(program("tar").arg("--extract").arg("--file").arg(one(TARBALL)?).arg("-C").arg(&place))?;
    let prefix = place.join(format!("homenode-{version}-x86_64-linux"));
    let home = folder.join("home-of-tarball");
    let homenode = prefix.join("bin/homenode");
    expect("tarball", &read(ordinary(&home, &homenode)?.args(EXPLAIN))?)?;
    // It holds its libraries or brings them, and says who it is.
    let loaded = read(program("ldd").arg(&homenode))?;
    let foreign = |l: &&str| l.contains("libhwloc") && !l.contains("lib/homenode/libhwloc");
    if let Some(line) = loaded.lines().find(foreign) {
        return Err(format!("the tarball's command loads the system's hwloc: {line}"));
    }
    print!("{}", read(ordinary(&home, &homenode)?.arg("--version"))?);
    for file in [
        "share/man/man1/homenode.1",
        "share/bash-completion/completions/homenode",
        "share/homenode/homenode.gdb",
    ] {
        if !prefix.join(file).is_file() {
            return Err(format!("the tarball lacks {file}"));
        }
    }
    Ok(())
}

fn wheel(folder: &Path) -> CommandResult {
    let wheel = one(".whl")?;
    let place = folder.join("venv");
    must(program("python3").args(["-m", "venv"]).arg(&place))?;
    let python = place.join("bin/python");
    let mut pip = Command::new(&python);
    must(pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(&wheel))?;
    let home = folder.join("home-of-wheel");
    expect("wheel", &read(ordinary(&home, &place.join("bin/homenode"))?.args(EXPLAIN))?)?;
    let script =
        "import homenode; a = homenode.explain('kernel:heat', class_='S', machine='2s-xeon'); print(a)";
    // The interpreter may lie where only root can look.
    let mut python = match ordinary(&home, &python)?.arg("--version").output() {
        Ok(out) if out.status.success() => ordinary(&home, &python)?,
        _ => {
            println!("wheel: an ordinary user cannot start {}: Python runs as this user", python.display());
            let mut own = Command::new(&python);
            own.current_dir(&home).env_remove("HOMENODE").env_remove("PYTHONPATH");
            own
        }
    };
    expect("wheel, in Python", &read(python.args(["-c", script]))?)?;
    refused(&place.join("bin/python"), &wheel, folder)
}

fn debian(folder: &Path) -> CommandResult {
    let package = deb::path(&version()?);
    must(program("dpkg-deb").arg("--info").arg(&package))?;
    if present("lintian") {
        let mut lintian = program("lintian");
        lintian.args(["--tag-display-limit", "0", "--fail-on", "error"]);
        // The maintainer has no public address.
        must(
            lintian
                .args(["--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog"])
                .arg(&package),
        )?;
    } else {
        testing::skipped("dist", "lintian is not installed: the Debian package is not linted");
    }
    let tree = folder.join("debian");
    must(program("dpkg-deb").arg("--extract").arg(&package).arg(&tree))?;
    let home = folder.join("home-of-deb");
    expect("deb, unpacked", &read(ordinary(&home, &tree.join("usr/bin/homenode"))?.args(EXPLAIN))?)
}

/// Wheels for other machines, as pip names them.
const OTHER_MACHINES: &[(&str, &str)] =
    &[("arm64", "manylinux_2_28_aarch64"), ("musl alone", "musllinux_1_2_x86_64")];
/// What pip says of a wheel that is not for a machine.
const NOT_FOR_IT: &str = "No matching distribution found for homenode";

/// pip refuses the wheel on other machines.
fn refused(python: &Path, wheel: &Path, folder: &Path) -> CommandResult {
    for (machine, platform) in OTHER_MACHINES {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--no-index", "--no-deps", "--only-binary=:all:", "--find-links"]);
        pip.arg(wheel.parent().unwrap_or(wheel)).arg("--target").arg(folder.join(machine));
        let out = pip.args(["--platform", platform, "homenode"]).output().map_err(|e| e.to_string())?;
        let told = String::from_utf8_lossy(&out.stderr);
        if out.status.success() || !told.contains(NOT_FOR_IT) {
            return Err(format!("pip does not refuse the wheel on {machine}: {told}"));
        }
        println!("wheel, {machine}: pip says '{NOT_FOR_IT}'");
    }
    Ok(())
}

/// The documented build of the source, and an ordinary user's question to what it installs.
fn from_source(folder: &Path) -> CommandResult {
    let tree = built_source(folder)?;
    let prefix = folder.join("prefix");
    let words = ["--silent", "install", "BUILD=target/release"];
    must(program("make").current_dir(&tree).args(words).arg(format!("PREFIX={}", prefix.display())))?;
    let home = folder.join("home");
    expect("source", &read(ordinary(&home, &prefix.join("bin/homenode"))?.args(EXPLAIN))?)?;
    let told = read(ordinary(&home, &prefix.join("bin/homenode"))?.arg("--version"))?;
    let commit = text_of(&tree.join("COMMIT"))?;
    if !told.contains(commit.trim()) {
        return Err(format!("the source's command does not name the commit {}: {told}", commit.trim()));
    }
    println!("source: builds without network, and names its commit");
    Ok(())
}

/// The source tarball, unpacked and built without network; its folder.
fn built_source(folder: &Path) -> Result<PathBuf, String> {
    let version = version()?;
    let tree = folder.join(format!("homenode-{version}-source"));
    if tree.join("target/release/homenode").is_file() {
        return Ok(tree);
    }
    fresh(folder)?;
    must(program("tar").arg("--extract").arg("--file").arg(source::path(&version)).arg("-C").arg(folder))?;
    let cargo = cargo();
    let mut build = if read(program("id").arg("-u"))?.trim() == ROOT {
        // An interface for nothing but this process.
        let mut build = program("unshare");
        build.arg("--net").arg(cargo.get_program());
        build
    } else {
        cargo
    };
    build.current_dir(&tree).args(recipes::BUILD).arg("--quiet").envs(recipes::CHEAP);
    build.env("CARGO_HOME", folder.join("cargo-home")).env_remove("CARGO_TARGET_DIR");
    must(&mut build)?;
    Ok(tree)
}
