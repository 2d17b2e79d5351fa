//! Fetches a distribution's kernel package and unpacks it into a cache outside of any source tree,
//! with checksums.
//!
//! apt checks the package's signatures when it fetches the package ([`super::apt`]). The checksums
//! beside the files show whether somebody has changed them since.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::{Apt, help, tool};
use super::guest_kernel::{GuestKernel, MEMORY_DISK, NEEDED, RECENT, WantedKernel, natural};
use super::{image, modules};
use crate::error::{self, Error, Result};
use homenode_scratch::Scratch;

/// Packages that depend on the newest kernel for virtual machines: Debian's, Ubuntu's, and any.
const NAMES: [&str; 3] = ["linux-image-cloud-amd64", "linux-image-virtual", "linux-image-amd64"];
/// Prefix of the name of a kernel's package.
const IMAGE: &str = "linux-image-";
/// The file with the checksums.
const SUMS: &str = "SHA256SUMS";
/// A file that marks the set of kept modules: an older homenode kept fewer.
const CONTENTS: &str = "contents-2";

/// The cache's folder for this kind of kernel; the recent kernel is kept apart.
fn folder(cache: &Path, wanted: &WantedKernel) -> PathBuf {
    cache.join(if *wanted == WantedKernel::Recent { "linux-recent" } else { "linux" })
}

/// The newest acceptable kernel in the cache, with verified checksums.
///
/// # Errors
/// There is one, and it has changed.
pub fn cached(cache: &Path, wanted: &WantedKernel) -> Result<Option<GuestKernel>> {
    for kept in [WantedKernel::Distribution, wanted.clone()].map(|kind| folder(cache, &kind)) {
        let Ok(entries) = fs::read_dir(&kept) else { continue };
        let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        let version = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.retain(|p| wanted.admits(&version(p)) && whole(&p.join(SUMS)));
        all.sort_by_key(|p| natural(&version(p)));
        if let Some(newest) = all.pop() {
            return open(&newest, cache).map(Some);
        }
    }
    Ok(None)
}

/// Whether these checksums cover everything that is needed.
fn whole(sums: &Path) -> bool {
    fs::read_to_string(sums).is_ok_and(|text| text.lines().any(|l| l.ends_with(CONTENTS)))
}

fn open(folder: &Path, cache: &Path) -> Result<GuestKernel> {
    let check = Command::new("sha256sum").args(["--quiet", "-c", SUMS]).current_dir(folder).output();
    let damaged = |why: String| {
        Error::failed(format!("the kernel in {} is not the one that was fetched", folder.display()))
            .tried(format!("sha256sum -c {SUMS}: {why}"))
            .hint("remove that folder; it is fetched again")
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
    Ok(GuestKernel { image: ready, version, modules, folder: shelf, origin: path })
}

/// Fetches the package and unpacks it. One process at a time does so; the others wait and use the
/// result.
///
/// # Errors
/// The system is not Debian's, or there is no network or no space.
pub fn fetch(cache: &Path, wanted: &WantedKernel, say: &mut dyn FnMut(&str)) -> Result<GuestKernel> {
    let folder = folder(cache, wanted);
    fs::create_dir_all(&folder)
        .map_err(|e| error::of_file("create", &folder, &e).hint(error::ANOTHER_CACHE))?;
    let lock = folder.join("lock");
    let lock = File::create(&lock).map_err(|e| error::of_file("create", &lock, &e))?;
    lock.lock().map_err(|e| error::of_file("lock", &folder, &e))?;
    if let Some(kernel) = cached(cache, wanted)? {
        return Ok(kernel);
    }
    let work = Scratch::inside(&folder, "lab")?;
    let (apt, packages) = find(work.path(), wanted, say)?;
    say(&format!("fetching the kernel package {}", packages[0]));
    for package in &packages {
        apt.download(package)?;
    }
    unpack(work.path())?;
    let version = keep(work.path())?;
    let place = folder.join(&version);
    let _ = fs::remove_dir_all(&place);
    fs::rename(work.path().join("keep"), &place).map_err(|e| error::of_file("write", &place, &e))?;
    open(&place, cache)
}

/// The packages of an acceptable kernel, and the apt that has them.
fn find(work: &Path, wanted: &WantedKernel, say: &mut dyn FnMut(&str)) -> Result<(Apt, Vec<String>)> {
    let system = Apt::system(work);
    match packages(&system, wanted) {
        Ok(found) => Ok((system, found)),
        Err(e) if *wanted == WantedKernel::Distribution => Err(e),
        Err(before) => {
            let next = Apt::next(work, say).and_then(|apt| Ok((packages(&apt, wanted)?, apt)));
            next.map(|(found, apt)| (apt, found)).map_err(|mut e| {
                e.tried.splice(0..0, before.tried);
                e
            })
        }
    }
}

/// The packages with the kernel and, if they are separate, its modules.
fn packages(apt: &Apt, wanted: &WantedKernel) -> Result<Vec<String>> {
    let mut last = Error::failed(match wanted {
        WantedKernel::Recent => {
            format!("there is no kernel of Linux {}.{} or later for the lab", RECENT[0], RECENT[1])
        }
        _ => "there is no kernel for the lab".into(),
    });
    for name in NAMES {
        let list = match apt.depends(name) {
            Ok(list) => list,
            Err(e) => {
                last.tried.extend(e.tried);
                continue;
            }
        };
        let Some(image) = depends(&list, IMAGE) else { continue };
        if !wanted.admits(&image[IMAGE.len()..]) {
            last.tried.push(format!("apt-cache depends {name}: it is {image}"));
            continue;
        }
        let mut all = vec![image.to_owned()];
        if let Ok(list) = apt.depends(image) {
            all.extend(depends(&list, "linux-modules-").map(str::to_owned));
        }
        return Ok(all);
    }
    Err(last.hint(help()))
}

/// The first dependency whose name begins with `prefix` and continues with a version.
fn depends<'a>(list: &'a str, prefix: &str) -> Option<&'a str> {
    let names = list.lines().filter_map(|l| l.trim().strip_prefix("Depends: "));
    names
        .map(str::trim)
        .find(|n| n.strip_prefix(prefix).is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())))
}

fn unpack(work: &Path) -> Result<()> {
    let entries = fs::read_dir(work).map_err(|e| error::of_file("read", work, &e))?;
    for path in entries.flatten().map(|e| e.path()) {
        if path.extension() == Some(OsStr::new("deb")) {
            let name = path.to_string_lossy().into_owned();
            tool(work, "dpkg-deb", &["-x", &name, "tree"])?;
        }
    }
    Ok(())
}

/// Copies into `keep` what the lab needs: the image, the modules with their dependencies,
/// checksums. Returns the version.
fn keep(work: &Path) -> Result<String> {
    let boot = work.join("tree/boot");
    let entries = fs::read_dir(&boot).map_err(|e| error::of_file("read", &boot, &e))?;
    let image = entries
        .flatten()
        .map(|e| e.path())
        .find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("vmlinuz-")))
        .ok_or_else(|| Error::failed("the kernel package has no kernel").hint(help()))?;
    let unnamed = || Error::failed(format!("{} does not say its version", image.display()));
    let version = image::look(&image)?.version.ok_or_else(unnamed)?;
    let folder = ["tree/lib/modules", "tree/usr/lib/modules"].map(|f| work.join(f).join(&version));
    let folder = folder.iter().find(|f| f.is_dir()).unwrap_or(&folder[0]);
    let write = |to: &Path, bytes: &[u8]| fs::write(to, bytes).map_err(|e| error::of_file("write", to, &e));
    let keep = work.join("keep");
    let kept = keep.join("modules");
    fs::create_dir_all(&kept).map_err(|e| error::of_file("create", &kept, &e))?;
    let mut names = ["vmlinuz", "modules/modules.builtin", CONTENTS].map(str::to_owned).to_vec();
    write(&keep.join(CONTENTS), b"")?;
    let mut wanted = modules::load(folder, &NEEDED)?;
    // Not every kernel has these modules, and not every run needs them.
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
    fs::copy(&image, keep.join("vmlinuz")).map_err(|e| error::of_file("write", &keep, &e))?;
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let sums = tool(&keep, "sha256sum", &words)?;
    write(&keep.join(SUMS), sums.as_bytes())?;
    Ok(version)
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
        let cache = Scratch::new("lab").unwrap();
        let folder = cache.path().join("linux/1.2.3");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vmlinuz"), "changed").unwrap();
        fs::write(folder.join(SUMS), format!("{0}  vmlinuz\n{0}  {CONTENTS}\n", "0".repeat(64))).unwrap();
        let e = cached(cache.path(), &WantedKernel::Distribution).unwrap_err().to_string();
        assert!(e.contains("vmlinuz: FAILED") && e.contains("remove that folder"), "{e}");
        // Another one is wanted, and there is none.
        assert!(cached(cache.path(), &WantedKernel::Recent).is_ok_and(|k| k.is_none()));
    }

    #[test]
    fn a_recent_kernel_is_found_where_either_is_kept() {
        let cache = Scratch::new("lab").unwrap();
        let found = |wanted| cached(cache.path(), &wanted).err().map(|e| e.message);
        for (kind, version) in [("linux-recent", "6.12.1"), ("linux", "6.1.3"), ("linux", "6.9.2")] {
            assert!(found(WantedKernel::Distribution).is_none_or(|e| !e.contains("recent")));
            let folder = cache.path().join(kind).join(version);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(SUMS), format!("{}  {CONTENTS}\n", "0".repeat(64))).unwrap();
            // Damaged, so that it is named.
            let e = found(WantedKernel::Recent).unwrap();
            assert!(
                e.contains(if version == "6.9.2" { "linux/6.9.2" } else { "linux-recent/6.12.1" }),
                "{e}"
            );
        }
    }
}
