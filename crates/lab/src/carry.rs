//! Collects the program and all it needs for the guest: its libraries, its interpreter, the working
//! directory, named paths.
//!
//! Everything keeps its absolute path, with the symbolic links on the way. So run paths, the
//! loader's cache and Python's `pyvenv.cfg` mean the same in the guest as on the host.

pub mod elf;
pub mod loader;
pub mod python;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use crate::error::{self, Error, FailureKind, Result};
use loader::Loader;

/// Something on the guest's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskItem {
    /// A folder with these permissions.
    Folder(u32),
    /// A symbolic link.
    Link(PathBuf),
    /// A file of the host: its path there, its size.
    File(PathBuf, u64),
    /// A file made here, with its permissions.
    Made(Vec<u8>, u32),
}

/// Everything that travels to the guest.
#[derive(Debug)]
pub struct Carry {
    items: BTreeMap<PathBuf, DiskItem>,
    loader: Loader,
    /// Files whose libraries have been searched for.
    seen: BTreeSet<PathBuf>,
    /// Files that could not be taken along and that the program may need, for a person.
    pub left: Vec<String>,
}

/// Longest chain of links.
const DEPTH: u32 = 40;
/// Libraries that are loaded by name when a thread ends or throws: no list names them.
const UNLISTED: [&str; 1] = ["libgcc_s.so.1"];

impl Carry {
    /// Nothing so far. `library_path` is the program's `LD_LIBRARY_PATH`.
    pub fn new(library_path: Option<&OsStr>) -> Self {
        let mut this = Self {
            items: BTreeMap::new(),
            loader: Loader::new(library_path),
            seen: BTreeSet::new(),
            left: Vec::new(),
        };
        // The links for /usr/lib and the like, and the loader's list of libraries.
        for path in ["/lib", "/lib64", "/bin", "/sbin", "/usr/lib", "/etc/ld.so.cache", "/etc/localtime"] {
            let _ = this.add(Path::new(path));
        }
        this
    }

    /// All items, parents first.
    pub fn items(&self) -> impl Iterator<Item = (&Path, &DiskItem)> {
        self.items.iter().map(|(path, item)| (path.as_path(), item))
    }

    /// Adds a file that does not exist on the host.
    pub fn make(&mut self, path: &str, bytes: impl Into<Vec<u8>>, mode: u32) {
        self.parents(Path::new(path));
        self.items.insert(path.into(), DiskItem::Made(bytes.into(), mode));
    }

    /// Adds an empty folder, unless the path is a folder already.
    pub fn folder(&mut self, path: &Path, mode: u32) {
        self.parents(path);
        self.items.entry(path.to_owned()).or_insert(DiskItem::Folder(mode));
    }

    fn parents(&mut self, path: &Path) {
        for parent in path.ancestors().skip(1) {
            if parent != Path::new("/") {
                self.items.entry(parent.to_owned()).or_insert(DiskItem::Folder(0o755));
            }
        }
    }

    /// Adds one path with the links on the way; of a folder, only the folder itself. Returns the
    /// real path.
    ///
    /// # Errors
    /// The path does not exist or cannot be read.
    pub fn add(&mut self, path: &Path) -> Result<PathBuf> {
        self.follow(path, 0).map_err(|e| error::of_file("take along", path, &e).kind(FailureKind::Usage))
    }

    fn follow(&mut self, path: &Path, depth: u32) -> io::Result<PathBuf> {
        if depth > DEPTH {
            return Err(io::Error::other("too many links lead to links"));
        }
        let path = std::path::absolute(path)?;
        let mut real = PathBuf::from("/");
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            match part {
                Component::ParentDir => {
                    real.pop();
                    continue;
                }
                Component::Normal(name) => real.push(name),
                _ => continue,
            }
            let about = fs::symlink_metadata(&real)?;
            if about.is_symlink() {
                let target = fs::read_link(&real)?;
                let next = real.parent().unwrap_or(Path::new("/")).join(&target).join(parts.as_path());
                self.items.insert(real, DiskItem::Link(target));
                return self.follow(&next, depth + 1);
            }
            self.put(&real, &about);
        }
        Ok(real)
    }

    /// Adds what is at `path`, which is not a link.
    fn put(&mut self, path: &Path, about: &fs::Metadata) {
        let item = if about.is_dir() {
            DiskItem::Folder(about.mode() & 0o7777)
        } else if about.is_file() {
            DiskItem::File(path.to_owned(), about.len())
        } else {
            return;
        };
        match self.items.get(path) {
            Some(DiskItem::Made(..)) => {}
            _ => drop(self.items.insert(path.to_owned(), item)),
        }
    }

    /// Adds a file or a whole folder, and the libraries of every program and library in it.
    ///
    /// # Errors
    /// `path` does not exist. Contents that cannot be read are in [`Carry::left`].
    pub fn add_all(&mut self, path: &Path) -> Result<()> {
        let real = self.add(path)?;
        let mut found = Vec::new();
        if real.is_dir() {
            self.walk(&real, &mut found);
            for folder in found.iter().filter(|f| f.ends_with("pyvenv.cfg")).filter_map(|f| f.parent()) {
                python::interpreters(folder).any(|interpreter| self.program(&interpreter).is_ok());
            }
        } else {
            found.push(real);
        }
        for file in found {
            // A plug-in may need a library that the system does not have. That matters only when
            // the plug-in is loaded.
            let _ = self.libraries(&file, &[]);
        }
        Ok(())
    }

    fn walk(&mut self, folder: &Path, found: &mut Vec<PathBuf>) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) => return self.left.push(format!("{}: {e}", folder.display())),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(about) = entry.metadata() else { continue };
            let kind = about.file_type();
            if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap_or_default();
                self.items.insert(path.clone(), DiskItem::Link(target));
                // The link's target, if it is outside of the folder.
                if let Ok(real) = self.follow(&path, 0)
                    && !real.starts_with(folder)
                    && real.is_file()
                {
                    found.push(real);
                }
            } else if kind.is_dir() {
                self.put(&path, &about);
                self.walk(&path, found);
            } else if kind.is_file() {
                if rustix::fs::access(&path, rustix::fs::Access::READ_OK).is_err() {
                    self.left.push(format!("{}: no permission to read it", path.display()));
                    continue;
                }
                self.put(&path, &about);
                found.push(path);
            } else if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
                self.left.push(format!("{}: not a file", path.display()));
            }
        }
    }

    /// Adds a program, its interpreter and its libraries.
    ///
    /// # Errors
    /// The program is for another kind of machine, or a library or an interpreter is missing.
    pub fn program(&mut self, path: &Path) -> Result<()> {
        let real = self.add(path)?;
        if let Some(words) = script(&real)? {
            return self.interpreter(path, &words);
        }
        let found = elf::read(&real)?;
        if let Some(loader) = &found.interpreter {
            self.add(loader).map_err(|e| {
                Error::failed(format!("{} names a loader that is not there", path.display()))
                    .tried(e.tried.concat())
                    .hint("is it for another C library (musl)? install that")
                    .kind(FailureKind::CannotRun)
            })?;
        }
        self.libraries(&real, &[])?;
        if found.interpreter.is_some() {
            for name in UNLISTED {
                if let Some(path) = self.loader.find(name, &[], &[]) {
                    let _ = self.add(&path).and_then(|real| self.libraries(&real, &[]));
                }
            }
        }
        for python in python::files(path, &real) {
            if !self.items.contains_key(&python.known_by) {
                python.folders.iter().for_each(|folder| _ = self.add_all(folder));
            }
        }
        Ok(())
    }

    /// Adds the interpreter of a script.
    fn interpreter(&mut self, script: &Path, words: &[OsString]) -> Result<()> {
        let missing = |what: &Path, why: String| {
            Error::failed(format!("{} is a script for {}", script.display(), what.display()))
                .tried(why)
                .hint("is that interpreter installed?")
                .kind(FailureKind::CannotRun)
        };
        let first = PathBuf::from(&words[0]);
        let through_env = first.file_name() == Some(OsStr::new("env"));
        if fs::metadata(&first).is_err() {
            return Err(missing(&first, format!("look for {}", first.display())));
        }
        self.program(&first)?;
        if through_env && let Some(name) = words.iter().skip(1).find(|w| !w.as_bytes().starts_with(b"-")) {
            let found = on_path(name).ok_or_else(|| {
                missing(Path::new(name), format!("look for {} in the folders of PATH", name.display()))
            })?;
            self.program(&found)?;
        }
        Ok(())
    }

    /// Adds the libraries of `file`, if it has any. `run_paths` are those of the file that loads
    /// it.
    ///
    /// # Errors
    /// A library is missing.
    fn libraries(&mut self, file: &Path, run_paths: &[PathBuf]) -> Result<()> {
        if !self.seen.insert(file.to_owned()) || !elf::is(file) {
            return Ok(());
        }
        let found = elf::read(file)?;
        let origin = file.parent().unwrap_or(Path::new("/"));
        let own = found.run_paths(origin);
        // DT_RPATH also holds for libraries that are loaded in turn, DT_RUNPATH does not.
        let mut inherited = run_paths.to_vec();
        if found.run_path.is_none() {
            inherited.extend(own.clone());
        }
        let before: &[PathBuf] = if found.run_path.is_none() { &inherited } else { &[] };
        let after: &[PathBuf] = if found.run_path.is_some() { &own } else { &[] };
        let mut missing = Vec::new();
        for name in &found.needed {
            let path = if name.contains('/') {
                Some(PathBuf::from(name)).filter(|p| p.exists())
            } else {
                self.loader.find(name, before, after)
            };
            match path {
                None => missing.push(name.clone()),
                Some(path) => {
                    let real = self.add(&path)?;
                    self.libraries(&real, &inherited)?;
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let list = missing.join(", ");
        Err(Error::failed(format!("{} needs {list}, which is not there", file.display()))
            .tried(format!("look in {}", self.loader.places(before, after)))
            .hint("install it, or name its folder in LD_LIBRARY_PATH")
            .kind(FailureKind::CannotRun))
    }
}

/// The words behind `#!`, if the file begins with it.
fn script(path: &Path) -> Result<Option<Vec<OsString>>> {
    use std::io::Read as _;
    let file =
        fs::File::open(path).map_err(|e| error::of_file("read", path, &e).kind(FailureKind::CannotRun))?;
    let mut line = Vec::new();
    file.take(256).read_to_end(&mut line).map_err(|e| error::of_file("read", path, &e))?;
    let Some(rest) = line.strip_prefix(b"#!") else { return Ok(None) };
    let rest = rest.split(|b| *b == b'\n').next().unwrap_or_default();
    let words = rest.split(|b| *b == b' ' || *b == b'\t').filter(|w| !w.is_empty());
    let words: Vec<OsString> = words.map(|w| OsStr::from_bytes(w).to_owned()).collect();
    Ok(if words.is_empty() { None } else { Some(words) })
}

/// Finds a program in the folders of PATH.
pub fn on_path(name: &OsStr) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&folders)
        .map(|f| f.join(name))
        .find(|p| p.is_file() && rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_scratch::Scratch;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_brings_its_libraries_and_links() {
        let mut carry = Carry::new(None);
        carry.program(Path::new("/bin/sh")).unwrap();
        let names: Vec<String> = carry.items().map(|(p, _)| p.display().to_string()).collect();
        assert!(names.iter().any(|n| n.ends_with("/libc.so.6")), "{names:?}");
        assert!(names.iter().any(|n| n.contains("/ld-linux-x86-64.so.2")), "{names:?}");
        for (path, _) in carry.items() {
            let parent = path.parent().unwrap();
            assert!(parent == Path::new("/") || names.contains(&parent.display().to_string()), "{path:?}");
        }
    }

    #[test]
    fn folders_bring_what_their_links_mean() {
        let dir = Scratch::new("lab").unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::write(&outside, "x").unwrap();
        symlink("../out", inside.join("link")).unwrap();
        symlink("nowhere", inside.join("broken")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        let mut carry = Carry::new(None);
        carry.add_all(&inside).unwrap();
        let get = |p: &Path| carry.items.get(&fs::canonicalize(dir.path()).unwrap().join(p)).cloned();
        assert_eq!(get("in/link".as_ref()), Some(DiskItem::Link("../out".into())));
        assert!(matches!(get("out".as_ref()), Some(DiskItem::File(_, 1))));
        assert_eq!(get("in/broken".as_ref()), Some(DiskItem::Link("nowhere".into())));
    }

    #[test]
    fn scripts_bring_their_interpreter() {
        let dir = Scratch::new("lab").unwrap();
        let path = dir.path().join("s");
        fs::write(&path, "#!/usr/bin/env sh\n").unwrap();
        let mut carry = Carry::new(None);
        carry.program(&path).unwrap();
        assert!(
            carry.items().any(|(p, _)| p.ends_with("env")) && carry.items().any(|(p, _)| p.ends_with("sh"))
        );
        fs::write(&path, "#!/no/such\n").unwrap();
        let e = carry.program(&path).unwrap_err();
        assert_eq!(e.kind, FailureKind::CannotRun);
        assert!(e.to_string().contains("is a script for /no/such"), "{e}");
    }
}
