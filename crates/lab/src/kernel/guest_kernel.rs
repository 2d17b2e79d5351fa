//! The kernel that a guest should have, and the kernel that it gets.

use std::path::PathBuf;

use super::modules::{self, KernelModule};
use crate::error::Result;

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
    pub(super) fn admits(&self, version: &str) -> bool {
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

fn recent(version: &str) -> bool {
    natural(version) >= RECENT.to_vec()
}

/// A key that sorts 6.10 after 6.9.
pub(super) fn natural(text: &str) -> Vec<u64> {
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
}
