//! The guest's kernel, and the modules that it needs for disk and ports.

mod apt;
pub mod image;
pub mod layout;
pub mod modules;
pub mod package;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{self, Error, Result};
use modules::KernelModule;

/// Drivers that the guest needs, unless they are built into its kernel.
pub const NEEDED: [&str; 3] = ["virtio_pci", "virtio_blk", "virtio_console"];
/// Drivers for a disk in memory ([`crate::qemu::Disk::Memory`]).
pub const MEMORY_DISK: [&str; 2] = ["nfit", "nd_pmem"];

/// First Linux version that counts as recent: it has asynchronous write protection (6.7) and
/// `UFFDIO_MOVE` (6.8).
pub const RECENT: [u64; 2] = [6, 8];

/// The kernel that a guest should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WantedKernel {
    /// The distribution's.
    #[default]
    Distribution,
    /// The distribution's if it is recent enough ([`RECENT`]), else that of Debian's next release.
    Recent,
    /// This one, with modules from a folder, from `/lib/modules/VERSION`, or from their place in a
    /// package.
    Image(PathBuf, Option<PathBuf>),
}

impl WantedKernel {
    /// Whether a kernel of this version, found by searching, is acceptable.
    fn admits(&self, version: &str) -> bool {
        *self != Self::Recent || recent(version)
    }
}

/// A kernel, ready to boot.
#[derive(Clone, Debug, Default)]
pub struct GuestKernel {
    /// The file that QEMU loads: the uncompressed kernel if the host could unpack it.
    pub image: PathBuf,
    /// Its own version text, such as `6.1.0-13-cloud-amd64`.
    pub version: String,
    /// Modules in the order of loading.
    pub modules: Vec<KernelModule>,
    /// The folder of the modules.
    pub folder: PathBuf,
    /// The image's origin, for reports.
    pub origin: PathBuf,
}

impl GuestKernel {
    /// Whether it is at least [`RECENT`]. A kernel without a version is not.
    pub fn is_recent(&self) -> bool {
        recent(&self.version)
    }

    /// Adds these drivers.
    ///
    /// # Errors
    /// A driver is neither built in nor present.
    pub fn also(&mut self, wanted: &[&str]) -> Result<()> {
        for module in modules::load(&self.folder, wanted)? {
            if !self.modules.contains(&module) {
                self.modules.push(module);
            }
        }
        Ok(())
    }
}

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

fn recent(version: &str) -> bool {
    natural(version) >= RECENT.to_vec()
}

/// A key that sorts 6.10 after 6.9.
fn natural(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_numbers() {
        assert!(natural("vmlinuz-6.10.2-1") > natural("vmlinuz-6.9.12-3"));
    }

    #[test]
    fn a_recent_kernel_is_one_by_its_number() {
        let recent = |version| WantedKernel::Recent.admits(version);
        assert!(recent("6.12.107+deb13-cloud-amd64") && recent("6.8.0-31-generic") && recent("7.0"));
        assert!(!recent("6.1.0-56-cloud-amd64") && !recent("5.15.0-119-generic") && !recent(""));
        assert!(WantedKernel::Distribution.admits("5.15.0-119-generic"));
    }

    #[test]
    fn what_is_no_kernel_is_told() {
        let e = named(Path::new("/etc/passwd"), None).unwrap_err().to_string();
        assert!(e.contains("/etc/passwd is not a Linux kernel for x86-64"), "{e}");
        assert!(named(Path::new("/no/such"), None).is_err());
    }
}
