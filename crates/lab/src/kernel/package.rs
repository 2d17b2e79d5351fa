//! Fetching the distribution's kernel: its package, unpacked into a cache outside of any tree, with checksums.
//!
//! `apt-get download` needs no rights and installs nothing; it checks the package's signature chain itself. The checksums
//! kept beside the files say whether somebody changed them since.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Kernel, MEMORY_DISK, NEEDED, image, modules};
use crate::error::{Error, Result};
use crate::scratch::Scratch;

/// Packages that depend on the newest kernel for virtual machines: Debian's, Ubuntu's, and any.
const NAMES: [&str; 3] = ["linux-image-cloud-amd64", "linux-image-virtual", "linux-image-amd64"];
/// The file with the checksums.
const SUMS: &str = "SHA256SUMS";
/// A file that says which modules are kept: an older homenode kept fewer.
const CONTENTS: &str = "contents-2";

/// The newest kernel in the cache, its checksums verified.
///
/// # Errors
/// One is there, and it is not what was put there.
pub fn cached(cache: &Path) -> Result<Option<Kernel>> {
    let folder = cache.join("linux");
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(None) };
    let mut all: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| whole(&p.join(SUMS))).collect();
    all.sort_by_key(|p| super::natural(&p.to_string_lossy()));
    all.pop().map(|folder| open(&folder, cache)).transpose()
}

/// Whether these are the checksums of all that is wanted.
fn whole(sums: &Path) -> bool {
    fs::read_to_string(sums).is_ok_and(|text| text.lines().any(|l| l.ends_with(CONTENTS)))
}

fn open(folder: &Path, cache: &Path) -> Result<Kernel> {
    let check = Command::new("sha256sum").args(["--quiet", "-c", SUMS]).current_dir(folder).output();
    let damaged = |why: String| {
        Error::failed(format!("the kernel in {} is not the one that was fetched", folder.display()))
            .tried(format!("sha256sum -c {SUMS}: {why}"))
            .help("remove that folder; it is fetched again")
    };
    match check {
        Ok(out) if out.status.success() => {}
        Ok(out) => return Err(damaged(String::from_utf8_lossy(&out.stdout).trim().to_owned())),
        Err(e) => return Err(damaged(e.to_string())),
    }
    let path = folder.join("vmlinuz");
    let facts = image::look(&path)?;
    let shelf = folder.join("modules");
    let modules = modules::load(&shelf, &NEEDED)?;
    let ready = image::unpacked(&path, &facts, cache)?;
    let version = facts.version.unwrap_or_default();
    Ok(Kernel { image: ready, version, modules, folder: shelf, origin: path })
}

/// Fetches the package and unpacks it. One process at a time; the others wait and find it done.
///
/// # Errors
/// Not a Debian, no network, no space.
pub fn fetch(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Kernel> {
    let folder = cache.join("linux");
    fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, &e))?;
    let lock = folder.join("lock");
    let lock = File::create(&lock).map_err(|e| Error::io("create", &lock, &e))?;
    lock.lock().map_err(|e| Error::io("lock", &folder, &e))?;
    if let Some(kernel) = cached(cache)? {
        return Ok(kernel);
    }
    let work = Scratch::make(&folder)?;
    let packages = packages(work.path())?;
    say(&format!("fetching the kernel package {}", packages[0]));
    for package in &packages {
        tool(work.path(), "apt-get", &["-q", "-o", "APT::Sandbox::User=", "download", package])?;
    }
    unpack(work.path())?;
    let version = keep(work.path())?;
    let place = folder.join(&version);
    let _ = fs::remove_dir_all(&place);
    fs::rename(work.path().join("keep"), &place).map_err(|e| Error::io("write", &place, &e))?;
    open(&place, cache)
}

/// The packages with the kernel and, where they are apart, its modules.
fn packages(work: &Path) -> Result<Vec<String>> {
    let mut last = Error::failed("there is no kernel for the lab");
    for name in NAMES {
        let list = match tool(work, "apt-cache", &["depends", "--important", name]) {
            Ok(list) => list,
            Err(e) => {
                last.tried.extend(e.tried);
                continue;
            }
        };
        let Some(image) = depends(&list, "linux-image-") else { continue };
        let mut all = vec![image.to_owned()];
        if let Ok(list) = tool(work, "apt-cache", &["depends", "--important", image]) {
            all.extend(depends(&list, "linux-modules-").map(str::to_owned));
        }
        return Ok(all);
    }
    Err(last.help(no_kernel_help()))
}

const fn no_kernel_help() -> &'static str {
    "on Debian and Ubuntu 'apt-get update' as root brings the package lists up to date; elsewhere name a kernel: \
     --kernel IMAGE --modules DIR"
}

/// The first dependency whose name begins like that and goes on with a version.
fn depends<'a>(list: &'a str, prefix: &str) -> Option<&'a str> {
    let names = list.lines().filter_map(|l| l.trim().strip_prefix("Depends: "));
    names
        .map(str::trim)
        .find(|n| n.strip_prefix(prefix).is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())))
}

fn unpack(work: &Path) -> Result<()> {
    let entries = fs::read_dir(work).map_err(|e| Error::io("read", work, &e))?;
    for path in entries.flatten().map(|e| e.path()) {
        if path.extension() == Some(OsStr::new("deb")) {
            let name = path.to_string_lossy().into_owned();
            tool(work, "dpkg-deb", &["-x", &name, "tree"])?;
        }
    }
    Ok(())
}

/// Puts into `keep` what the lab needs: the image, the modules' closure, checksums. Returns the version.
fn keep(work: &Path) -> Result<String> {
    let boot = work.join("tree/boot");
    let entries = fs::read_dir(&boot).map_err(|e| Error::io("read", &boot, &e))?;
    let image = entries
        .flatten()
        .map(|e| e.path())
        .find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("vmlinuz-")))
        .ok_or_else(|| Error::failed("the kernel package has no kernel").help(no_kernel_help()))?;
    let unnamed = || Error::failed(format!("{} does not say its version", image.display()));
    let version = image::look(&image)?.version.ok_or_else(unnamed)?;
    let folder = ["tree/lib/modules", "tree/usr/lib/modules"].map(|f| work.join(f).join(&version));
    let folder = folder.iter().find(|f| f.is_dir()).unwrap_or(&folder[0]);
    let write = |to: &Path, bytes: &[u8]| fs::write(to, bytes).map_err(|e| Error::io("write", to, &e));
    let keep = work.join("keep");
    let kept = keep.join("modules");
    fs::create_dir_all(&kept).map_err(|e| Error::io("create", &kept, &e))?;
    let mut names = ["vmlinuz", "modules/modules.builtin", CONTENTS].map(str::to_owned).to_vec();
    write(&keep.join(CONTENTS), b"")?;
    let mut wanted = modules::load(folder, &NEEDED)?;
    // Not every kernel has these, and not every run needs them.
    for module in modules::load(folder, &MEMORY_DISK).unwrap_or_default() {
        if !wanted.contains(&module) {
            wanted.push(module);
        }
    }
    for module in wanted {
        write(&kept.join(format!("{}.ko", module.name)), &module.bytes)?;
        names.push(format!("modules/{}.ko", module.name));
    }
    write(&kept.join("modules.builtin"), &fs::read(folder.join("modules.builtin")).unwrap_or_default())?;
    fs::copy(&image, keep.join("vmlinuz")).map_err(|e| Error::io("write", &keep, &e))?;
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let sums = tool(&keep, "sha256sum", &words)?;
    write(&keep.join(SUMS), sums.as_bytes())?;
    Ok(version)
}

fn tool(folder: &Path, name: &str, args: &[&str]) -> Result<String> {
    let failed = |why: String| {
        let line = [&[name], args].concat().join(" ");
        Error::failed("cannot fetch a kernel for the lab")
            .tried(format!("{line}: {why}"))
            .help(no_kernel_help())
    };
    let out =
        Command::new(name).args(args).current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null()).output();
    match out {
        Ok(out) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stderr);
            let line = text.lines().rfind(|l| l.starts_with("E:")).or(text.lines().last());
            Err(failed(line.unwrap_or("it failed").trim().to_owned()))
        }
        Err(e) => Err(failed(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_behind_a_meta_package_is_found() {
        let list = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-13-cloud-amd64\n";
        assert_eq!(depends(list, "linux-image-"), Some("linux-image-6.1.0-13-cloud-amd64"));
        assert_eq!(depends(list, "linux-modules-"), None);
        assert_eq!(depends("x\n  Depends: linux-image-generic\n", "linux-image-"), None);
    }

    #[test]
    fn a_changed_kernel_is_noticed() {
        let cache = Scratch::make(&std::env::temp_dir()).unwrap();
        let folder = cache.path().join("linux/1.2.3");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vmlinuz"), "changed").unwrap();
        fs::write(folder.join(SUMS), format!("{0}  vmlinuz\n{0}  {CONTENTS}\n", "0".repeat(64))).unwrap();
        let e = cached(cache.path()).unwrap_err().to_string();
        assert!(e.contains("vmlinuz: FAILED") && e.contains("remove that folder"), "{e}");
    }
}
