//! The guest's kernel, and the modules that it needs for disk and ports.

mod apt;
mod guest_kernel;
pub mod image;
pub mod layout;
pub mod modules;
pub mod package;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{self, Error, Result};
use guest_kernel::natural;
pub use guest_kernel::{GuestKernel, MEMORY_DISK, NEEDED, RECENT, WantedKernel};

/// homenode's cache, for files that it can make again: `$XDG_CACHE_HOME/homenode`, else
/// `~/.cache/homenode`.
///
/// # Errors
/// Neither variable is set.
pub fn cache() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|v| Path::new(v).is_absolute()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|h| h.join(".cache")))
        .map(|c| c.join("homenode"))
        .ok_or_else(|| Error::failed("there is no place for the kernel").hint(error::ANOTHER_CACHE))
}

/// The kernel in `image`, with modules from `modules`, from `/lib/modules/VERSION`, or from their
/// place in a package.
///
/// # Errors
/// The file is no kernel, or a driver that it needs is missing.
pub fn named(image: &Path, modules: Option<&Path>) -> Result<GuestKernel> {
    let facts = image::look(image)?;
    let version = facts.version.clone().unwrap_or_default();
    let near = |up: &str| image.parent().map(|p| p.join(up).join("lib/modules").join(&version));
    let mut folders: Vec<PathBuf> = match modules {
        Some(folder) => vec![folder.to_owned()],
        None if version.is_empty() => Vec::new(),
        None => [Some(Path::new("/lib/modules").join(&version)), near(".."), near(".")]
            .into_iter()
            .flatten()
            .collect(),
    };
    folders.retain(|f| f.is_dir());
    let Some(folder) = folders.first() else {
        return Err(Error::failed(format!("cannot find the modules of the kernel {}", image.display()))
            .tried(match &modules {
                Some(folder) => format!("open {}: it is no folder", folder.display()),
                None => format!("look for lib/modules/{version} in / and beside the image"),
            })
            .hint("name their folder: --modules DIR"));
    };
    let modules = modules::load(folder, &NEEDED)?;
    let ready = image::unpacked(image, &facts, &cache()?)?;
    Ok(GuestKernel { image: ready, version, modules, folder: folder.clone(), origin: image.to_owned() })
}

/// The wanted kernel: named, in the cache, installed, or fetched now. `say` gets progress messages.
///
/// # Errors
/// There is none, and none can be fetched.
pub fn get(wanted: &WantedKernel, say: &mut dyn FnMut(&str)) -> Result<GuestKernel> {
    if let WantedKernel::Image(image, modules) = wanted {
        return named(image, modules.as_deref());
    }
    let cache = cache()?;
    if let Some(kernel) = package::cached(&cache, wanted)? {
        return Ok(kernel);
    }
    let mut why = Vec::new();
    for image in installed() {
        match named(&image, None) {
            Ok(kernel) if wanted.admits(&kernel.version) => return Ok(kernel),
            Ok(kernel) => why.push(format!("{}: it is Linux {}", image.display(), kernel.version)),
            Err(e) => why.push(format!("{}: {}", image.display(), e.message)),
        }
    }
    package::fetch(&cache, wanted, say).map_err(|mut e| {
        if why.is_empty() {
            why.push("look for /boot/vmlinuz-*: there is none".into());
        }
        e.tried.splice(0..0, why);
        e
    })
}

/// The image of a kernel that exists already, cached or installed. Fetches nothing.
pub fn present() -> Option<PathBuf> {
    let cached =
        cache().ok().and_then(|cache| package::cached(&cache, &WantedKernel::Distribution).ok().flatten());
    let cached = cached.map(|k| k.image);
    cached.or_else(|| installed().into_iter().find(|image| named(image, None).is_ok()))
}

/// Readable kernels in `/boot`: those for virtual machines first, then the newest.
fn installed() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/boot") else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.retain(|p| {
        let name = p.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("vmlinuz-") && fs::File::open(p).is_ok()
    });
    let made_for_this = |p: &Path| p.to_str().is_some_and(|p| p.contains("cloud") || p.contains("virtual"));
    all.sort_by_key(|p| (made_for_this(p), natural(&p.to_string_lossy())));
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_kernel_is_told() {
        let e = named(Path::new("/etc/passwd"), None).unwrap_err().to_string();
        assert!(e.contains("/etc/passwd is not a Linux kernel for x86-64"), "{e}");
        assert!(named(Path::new("/no/such"), None).is_err());
    }
}
