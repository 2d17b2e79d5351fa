//! Which glibc and which libraries binaries need, as objdump reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::{binaries, program, read};

/// What a binary needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The newest version of glibc that a symbol has.
    pub glibc: (u32, u32),
    /// Symbols with that version.
    pub because: BTreeSet<String>,
    /// Libraries that the loader loads.
    pub libraries: BTreeSet<String>,
}

/// What the binaries of a folder need.
pub struct Needs(BTreeMap<PathBuf, Need>);

impl Needs {
    /// The oldest glibc that all of them run with.
    pub fn glibc(&self) -> (u32, u32) {
        self.0.values().map(|n| n.glibc).max().unwrap_or_default()
    }

    /// Libraries that all of them need and the folder does not have.
    pub fn libraries(&self) -> BTreeSet<&str> {
        let here = |name: &str| self.0.keys().any(|p| p.file_name().is_some_and(|f| f == name));
        let all = self.0.values().flat_map(|n| &n.libraries);
        all.map(String::as_str).filter(|name| !here(name)).collect()
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.glibc();
        writeln!(f, "the binaries need glibc {major}.{minor}:")?;
        for (path, need) in &self.0 {
            let because: Vec<&str> = need.because.iter().take(4).map(String::as_str).collect();
            let (major, minor) = need.glibc;
            writeln!(f, "  {:<32} {major}.{minor} ({}…)", path.display().to_string(), because.join(", "))?;
        }
        let libraries: Vec<&str> = self.libraries().into_iter().collect();
        writeln!(f, "and of the system: {}", libraries.join(", "))
    }
}

/// What the binaries below a folder need; paths are relative to it.
pub fn of_folder(folder: &Path) -> Result<Needs, String> {
    let mut all = BTreeMap::new();
    for path in binaries(folder)? {
        let symbols = read(program("objdump").arg("-T").arg(&path))?;
        let headers = read(program("objdump").arg("-p").arg(&path))?;
        let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        all.insert(name, parse(&symbols, &headers));
    }
    Ok(Needs(all))
}

fn parse(symbols: &str, headers: &str) -> Need {
    let mut need = Need::default();
    for line in symbols.lines().filter(|l| l.contains("*UND*")) {
        // A weak symbol may be absent, but its version may not.
        let Some((_, rest)) = line.split_once("GLIBC_") else { continue };
        let (version, name) = rest.split_once([')', ' ']).unwrap_or((rest, ""));
        let Some(version) = number(version) else { continue };
        if version > need.glibc {
            need.glibc = version;
            need.because.clear();
        }
        if version == need.glibc {
            need.because.insert(name.trim().to_owned());
        }
    }
    let needed = headers.lines().filter_map(|l| l.trim().strip_prefix("NEEDED"));
    need.libraries = needed.map(|l| l.trim().to_owned()).collect();
    need
}

/// `2.2.5` as its first two numbers.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_and_is_explained() {
        let symbols = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) free
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34) dlsym
0000000000000000  w   DF *UND*\t0000000000000000 (GLIBC_2.30) gettid
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34) pthread_create
0000000000000000      DF *UND*\t0000000000000000 (GCC_3.0) _Unwind_Resume
0000000000001130 g    DF .text\t0000000000000004 (GLIBC_2.99) own
";
        let headers = "Dynamic Section:\n  NEEDED               libc.so.6\n  SONAME               libx.so\n";
        let need = parse(symbols, headers);
        assert_eq!(need.glibc, (2, 34));
        assert_eq!(need.because.iter().collect::<Vec<_>>(), ["dlsym", "pthread_create"]);
        assert_eq!(need.libraries.iter().collect::<Vec<_>>(), ["libc.so.6"]);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(number("2.9") < number("2.28") && number("2.2.5") == Some((2, 2)));
        assert_eq!(number("PRIVATE"), None);
    }

    #[test]
    fn a_library_of_the_folder_is_not_the_systems() {
        let need = |libraries: &[&str]| Need {
            libraries: libraries.iter().map(|l| (*l).to_owned()).collect(),
            ..Need::default()
        };
        let needs = Needs(BTreeMap::from([
            ("bin/a".into(), need(&["libc.so.6", "libx.so.1"])),
            ("lib/libx.so.1".into(), need(&["libc.so.6"])),
        ]));
        assert_eq!(needs.libraries().into_iter().collect::<Vec<_>>(), ["libc.so.6"]);
    }
}
