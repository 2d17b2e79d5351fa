//! Kernel modules: the requested drivers and their dependencies, in the order of loading.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSection};

use crate::error::{self, Error, Result};

/// A module to load into the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// With underscores, without `.ko`.
    pub name: String,
    /// Its contents, uncompressed.
    pub bytes: Vec<u8>,
}

/// Compressions of modules: the end of the name, and the tool that unpacks it.
const PACKED: [(&str, &str); 3] = [("xz", "xz"), ("zst", "zstd"), ("gz", "gzip")];

/// Loads `wanted` and their dependencies from `folder` (`/lib/modules/VERSION`). Leaves out modules
/// that are built into the kernel.
///
/// # Errors
/// A module is neither built in nor present, or cannot be read.
pub fn load(folder: &Path, wanted: &[&str]) -> Result<Vec<KernelModule>> {
    let mut shelf = Shelf {
        built_in: built_in(folder),
        files: BTreeMap::new(),
        loaded: Vec::new(),
        folder: folder.to_owned(),
    };
    find(folder, 0, &mut shelf.files);
    for name in wanted {
        shelf.load(name, 0)?;
    }
    Ok(shelf.loaded)
}

struct Shelf {
    folder: PathBuf,
    built_in: Vec<String>,
    files: BTreeMap<String, PathBuf>,
    loaded: Vec<KernelModule>,
}

impl Shelf {
    fn load(&mut self, name: &str, depth: u32) -> Result<()> {
        let here = self.built_in.iter().any(|b| b == name) || self.loaded.iter().any(|m| m.name == name);
        // Dependencies have no cycles, but files may be damaged.
        if here || depth > 16 {
            return Ok(());
        }
        let Some(path) = self.files.get(name).cloned() else {
            return Err(Error::failed(format!("the kernel has no driver '{name}'"))
                .tried(format!("look for {name}.ko in {}", self.folder.display()))
                .hint("take another kernel: --kernel IMAGE --modules DIR"));
        };
        let bytes = read(&path)?;
        for other in dependencies(&bytes) {
            self.load(&other, depth + 1)?;
        }
        self.loaded.push(KernelModule { name: name.to_owned(), bytes });
        Ok(())
    }
}

/// The name of the module in a file, if it is one.
fn module_name(file: &OsStr) -> Option<String> {
    let (stem, end) = file.to_str()?.split_once(".ko")?;
    let known = end.is_empty() || PACKED.iter().any(|(p, _)| end.strip_prefix('.') == Some(p));
    known.then(|| stem.replace('-', "_"))
}

fn find(folder: &Path, depth: u32, into: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        // 'build' and 'source' are links to other folders.
        if kind.is_dir() && depth < 16 {
            find(&entry.path(), depth + 1, into);
        } else if kind.is_file()
            && let Some(name) = module_name(&entry.file_name())
        {
            into.insert(name, entry.path());
        }
    }
}

fn built_in(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
    text.lines().filter_map(|l| module_name(Path::new(l).file_name()?)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let Some((_, tool)) = PACKED.iter().find(|(p, _)| *p == end) else {
        return fs::read(path).map_err(|e| error::of_file("read", path, &e));
    };
    let failed = || Error::failed(format!("cannot unpack the module {}", path.display()));
    let out = Command::new(tool).arg("-dc").arg(path).stdin(Stdio::null()).output();
    match out {
        Ok(out) if out.status.success() => Ok(out.stdout),
        Ok(out) => {
            Err(failed().tried(format!("{tool} -dc: {}", String::from_utf8_lossy(&out.stderr).trim())))
        }
        Err(e) => Err(failed().tried(format!("{tool} -dc: {e}")).hint(format!("install {tool}"))),
    }
}

/// The modules in the `depends=` of its `.modinfo`.
fn dependencies(module: &[u8]) -> Vec<String> {
    let info = object::File::parse(module).ok().and_then(|f| {
        let section = f.section_by_name(".modinfo")?;
        Some(section.data().ok()?.to_vec())
    });
    let info = info.unwrap_or_default();
    let list = info.split(|b| *b == 0).find_map(|l| std::str::from_utf8(l).ok()?.strip_prefix("depends="));
    list.unwrap_or_default().split(',').filter(|n| !n.is_empty()).map(|n| n.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_scratch::Scratch;

    #[test]
    fn names_lose_their_ends() {
        let name = |f: &str| module_name(f.as_ref());
        assert_eq!(name("virtio-ring.ko"), Some("virtio_ring".into()));
        assert_eq!(name("a.ko.zst"), Some("a".into()));
        assert_eq!((name("a.ko.sig"), name("modules.order")), (None, None));
    }

    #[test]
    fn built_in_drivers_are_left_out_and_missing_ones_told() {
        let folder = Scratch::new("lab").unwrap();
        fs::write(folder.path().join("modules.builtin"), "kernel/drivers/virtio/virtio_pci.ko\n").unwrap();
        fs::create_dir(folder.path().join("kernel")).unwrap();
        fs::write(folder.path().join("kernel/virtio-blk.ko"), "x").unwrap();
        let loaded = load(folder.path(), &["virtio_pci", "virtio_blk"]).unwrap();
        assert_eq!(loaded, [KernelModule { name: "virtio_blk".into(), bytes: b"x".to_vec() }]);
        let e = load(folder.path(), &["virtio_console"]).unwrap_err().to_string();
        assert!(e.contains("no driver 'virtio_console'") && e.contains("--modules"), "{e}");
    }
}
