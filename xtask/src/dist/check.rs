//! Installs each result in a clean root and explains a kernel there, as an ordinary user.
//!
//! | result | clean root |
//! |---|---|
//! | tarball | a folder with a space in its name, and an environment with a path of the system alone |
//! | wheel | a virtual environment, without network |
//! | Debian package | unpacked |
//! | the three of them | Debian 12 and 13, Ubuntu 18.04 to 24.04 ([`super::roots`]), without network |
//! | source | unpacked, with an empty `CARGO_HOME` and no network allowed to cargo |

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cargo, deb, files, fresh, must, out, program, read, roots, source, version};
use crate::process::present;
use crate::{Outcome, testing};

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

/// All of them.
pub fn all() -> Outcome {
    let version = version()?;
    let folder = PathBuf::from(TRIED);
    // What a chroot holds belongs to root.
    fresh(&folder)?;
    must(program("chmod").arg("755").arg(&folder))?;
    tarball(&folder, &version)?;
    wheel(&folder)?;
    debian(&folder, &version)?;
    let results = roots::Results {
        tarball: one("x86_64-linux.tar.xz")?,
        deb: deb::path(&version),
        wheel: one(".whl")?,
        words: EXPLAIN,
        answer: ANSWER,
    };
    roots::all(&folder, &results)?;
    from_source(&folder, &version)?;
    fresh(&folder)
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

fn expect(what: &str, text: &str) -> Outcome {
    if !text.contains(ANSWER) {
        return Err(format!("{what}: the answer lacks '{ANSWER}': {text}"));
    }
    println!("{what}: {}", text.lines().take(2).collect::<Vec<_>>().join("; "));
    Ok(())
}

fn tarball(folder: &Path, version: &str) -> Outcome {
    let place = folder.join("a place with spaces");
    fresh(&place)?;
    must(
        program("tar").arg("--extract").arg("--file").arg(one("x86_64-linux.tar.xz")?).arg("-C").arg(&place),
    )?;
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

fn wheel(folder: &Path) -> Outcome {
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
    expect("wheel, in Python", &read(python.args(["-c", script]))?)
}

fn debian(folder: &Path, version: &str) -> Outcome {
    let package = deb::path(version);
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

fn from_source(folder: &Path, version: &str) -> Outcome {
    let place = folder.join("source");
    fresh(&place)?;
    must(program("tar").arg("--extract").arg("--file").arg(source::path(version)).arg("-C").arg(&place))?;
    let tree = place.join(format!("homenode-{version}-source"));
    let mut build = cargo();
    build.current_dir(&tree).args(["build", "--offline", "--locked", "--quiet"]);
    // Crates with dependencies of their own.
    build.args(["-p", "homenode-wire", "-p", "homenode-log"]);
    build
        .env("CARGO_HOME", folder.join("cargo-home"))
        .env("CARGO_TARGET_DIR", folder.join("target-of-source"));
    must(&mut build)?;
    must(
        cargo()
            .current_dir(&tree)
            .args(["metadata", "--offline", "--locked", "--format-version", "1"])
            .env("CARGO_HOME", folder.join("cargo-home"))
            .stdout(std::process::Stdio::null()),
    )?;
    println!("source: builds off line");
    Ok(())
}
