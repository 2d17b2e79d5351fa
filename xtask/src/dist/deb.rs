//! The Debian package, by dpkg-deb alone.
//!
//! Libraries that lie beside the binaries are left out, and taken from the system. Which packages
//! have them, dpkg of the machine that builds it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::base::{files, fresh, must, out, program, read, root, text_of, write};
use super::needs::Needs;
use super::stage::{BROUGHT, LICENCES};
use crate::CommandResult;

const ABOUT: &str = "\
Description: find the source line that puts memory on the wrong NUMA node
 homenode records which NUMA node touches which page of a program, says which
 line of the source to change and what that brings, moves pages while an
 unmodified program runs, and simulates placements on machines that are not
 there.
";

/// How often this release was packed.
const REVISION: u32 = 1;

/// The project has no public address.
const MAINTAINER: &str = "the authors of homenode <homenode@localhost>";

/// Makes the package.
pub fn make(stage: &Path, version: &str, needs: &Needs) -> CommandResult {
    let tree = root().join("target/stage-deb");
    fresh(&tree)?;
    must(program("cp").arg("--archive").arg(stage).arg(tree.join("usr")))?;
    for name in loaded(stage) {
        remove(&tree.join("usr/lib/homenode").join(name))?;
    }
    let doc = tree.join("usr/share/doc/homenode");
    if loaded(stage).next().is_some() {
        // Debian's packages have them.
        must(program("rm").arg("-r").arg(doc.join(LICENCES)))?;
    }
    for name in ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        remove(&doc.join(name))?;
    }
    write(&doc.join("copyright"), copyright()?)?;
    write(&doc.join("changelog"), text_of(&root().join("CHANGELOG.md"))?)?;
    must(program("gzip").args(["--best", "--no-name"]).arg(doc.join("changelog")))?;
    let date = read(program("git").args(["log", "-1", "--format=%cD"]))?;
    let entry = format!(
        "homenode ({version}-{REVISION}) unstable; urgency=medium\n\n  * Release {version}.\n\n -- {MAINTAINER}  {date}"
    );
    write(&doc.join("changelog.Debian"), entry)?;
    must(program("gzip").args(["--best", "--no-name"]).arg(doc.join("changelog.Debian")))?;
    for page in files(&tree.join("usr/share/man/man1"))? {
        must(program("gzip").args(["--best", "--no-name"]).arg(page))?;
    }
    // Debian's folder for zsh is another one.
    let zsh = tree.join("usr/share/zsh");
    fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions")).map_err(|e| e.to_string())?;
    must(program("chmod").args(["--recursive", "u=rwX,go=rX"]).arg(&tree))?;
    for library in files(&tree.join("usr/lib/homenode"))?.iter().filter(|p| p.extension().is_some()) {
        must(program("chmod").arg("644").arg(library))?;
    }
    let kib = read(program("du").args(["--apparent-size", "-sk"]).arg(tree.join("usr")))?;
    let kib = kib.split_whitespace().next().unwrap_or("0").to_owned();
    let control = format!(
        "Package: homenode\nVersion: {version}-{REVISION}\nArchitecture: amd64\nSection: devel\nPriority: optional\n\
         Maintainer: {MAINTAINER}\nInstalled-Size: {kib}\nDepends: {}\n\
         Recommends: gcc, libgomp1\n\
         Suggests: cmake, gfortran, numactl, qemu-system-x86, qemu-user, busybox-static, e2fsprogs, xz-utils\n{ABOUT}",
        depends(stage, needs)?
    );
    write(&tree.join("DEBIAN/control"), control)?;
    must(program("dpkg-deb").args(["--build", "--root-owner-group", "-Zxz"]).arg(&tree).arg(path(version)))
}

fn remove(path: &Path) -> CommandResult {
    fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The libraries beside the binaries that Debian's packages have, too.
fn loaded(stage: &Path) -> impl Iterator<Item = &'static str> + use<> {
    let folder = stage.join("lib/homenode");
    BROUGHT.iter().map(|&(name, _)| name).filter(move |name| folder.join(name).is_file())
}

/// The packages of the libraries, with the versions that are surely new enough.
fn depends(stage: &Path, needs: &Needs) -> Result<String, String> {
    let (major, minor) = needs.glibc();
    let mut all = BTreeSet::from([format!("libc6 (>= {major}.{minor})")]);
    let others = needs.libraries().into_iter().filter(|l| *l == "libgcc_s.so.1");
    let others: Vec<&str> = others.collect();
    let loaded: Vec<&str> = loaded(stage).filter(|n| *n != "libudev.so.1").collect();
    for name in others.iter().chain(&loaded) {
        all.insert(package_of(name)?);
    }
    Ok(all.into_iter().collect::<Vec<_>>().join(", "))
}

/// The package of a library, as dpkg knows it.
fn package_of(library: &str) -> Result<String, String> {
    let said = read(program("dpkg-query").args(["--search", &format!("*/{library}")]))?;
    let line = said.lines().find(|l| l.ends_with(library)).unwrap_or_default();
    let name = line.split([':', ',']).next().filter(|n| !n.is_empty());
    Ok(name.ok_or_else(|| format!("no package has {library}"))?.to_owned())
}

/// The licences in Debian's form.
fn copyright() -> Result<String, String> {
    let mit = text_of(&root().join("LICENSE-MIT"))?;
    let paragraph = |text: &str| -> String {
        text.lines().map(|l| if l.trim().is_empty() { " .\n".into() } else { format!(" {l}\n") }).collect()
    };
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: homenode\n\n\
         Files: *\nCopyright: the authors of homenode\nLicense: MIT or Apache-2.0\n\n\
         License: MIT\n{}\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n",
        paragraph(&mit)
    ))
}

/// The package that was made.
pub fn path(version: &str) -> PathBuf {
    out().join(format!("homenode_{version}-{REVISION}_amd64.deb"))
}
