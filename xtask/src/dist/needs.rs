//! Which glibc and which libraries binaries need, as objdump reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::base::{binaries, program, read};
use crate::CommandResult;

/// What a binary needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The newest version of glibc that a symbol has.
    pub glibc: (u32, u32),
    /// Symbols with that version.
    pub because: BTreeSet<String>,
    /// Libraries that the loader loads.
    pub libraries: BTreeSet<String>,
    /// Symbols that have no version and must be there: a library of homenode has them, or nobody.
    pub bare: BTreeSet<String>,
    /// Symbols that it defines.
    pub own: BTreeSet<String>,
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

    /// Refuses binaries that do not run with glibc `newest`: a symbol asks for a newer one, or
    /// nobody has a symbol.
    pub fn check(&self, newest: (u32, u32)) -> CommandResult {
        for (path, need) in &self.0 {
            let path = path.display();
            if need.glibc > newest {
                let because: Vec<&str> = need.because.iter().map(String::as_str).collect();
                let ((major, minor), (most, most_minor)) = (need.glibc, newest);
                return Err(format!(
                    "{path} needs glibc {major}.{minor} for {}; {most}.{most_minor} is promised",
                    because.join(", ")
                ));
            }
            let nowhere = |name: &&String| !self.0.values().any(|n| n.own.contains(*name));
            if let Some(name) = need.bare.iter().find(nowhere) {
                return Err(format!(
                    "{path} needs {name}, which an old glibc lacks: make the system call directly"
                ));
            }
        }
        Ok(())
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
        let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        all.insert(name, of_file(&path)?);
    }
    Ok(Needs(all))
}

/// What one binary needs.
pub fn of_file(path: &Path) -> Result<Need, String> {
    let symbols = read(program("objdump").arg("-T").arg(path))?;
    let headers = read(program("objdump").arg("-p").arg(path))?;
    Ok(parse(&symbols, &headers))
}

fn parse(symbols: &str, headers: &str) -> Need {
    let mut need = Need::default();
    for line in symbols.lines() {
        let Some(name) = line.split_whitespace().last().filter(|_| line.contains('\t')) else { continue };
        if !line.contains("*UND*") {
            need.own.insert(name.to_owned());
            continue;
        }
        // A weak symbol may be absent, but its version may not.
        let Some((_, rest)) = line.split_once("GLIBC_") else {
            let weak = line.get(17..24).is_some_and(|flags| flags.contains('w'));
            if !weak && !line.contains('(') {
                need.bare.insert(name.to_owned());
            }
            continue;
        };
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
0000000000000000  w   D  *UND*\t0000000000000000              __gmon_start__
0000000000000000      D  *UND*\t0000000000000000              statx
0000000000001130 g    DF .text\t0000000000000004 (GLIBC_2.99) own
";
        let headers = "Dynamic Section:\n  NEEDED               libc.so.6\n  SONAME               libx.so\n";
        let need = parse(symbols, headers);
        assert_eq!(need.glibc, (2, 34));
        assert_eq!(need.because.iter().collect::<Vec<_>>(), ["dlsym", "pthread_create"]);
        assert_eq!(need.libraries.iter().collect::<Vec<_>>(), ["libc.so.6"]);
        assert_eq!(need.bare.iter().collect::<Vec<_>>(), ["statx"]);
        assert_eq!(need.own.iter().collect::<Vec<_>>(), ["own"]);
    }

    #[test]
    fn a_new_glibc_and_a_symbol_that_nobody_has_are_refused() {
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        let old = Need { glibc: (2, 27), bare: set(&["of_x"]), ..Need::default() };
        let library = Need { own: set(&["of_x"]), ..Need::default() };
        let both = |library: Need| Needs(BTreeMap::from([("a".into(), old.clone()), ("x".into(), library)]));
        assert_eq!(both(library.clone()).check((2, 28)), Ok(()));
        assert!(both(Need::default()).check((2, 28)).unwrap_err().contains("needs of_x"));
        let new = Need { glibc: (2, 34), because: set(&["dlsym"]), ..library };
        assert_eq!(both(new).check((2, 28)).unwrap_err(), "x needs glibc 2.34 for dlsym; 2.28 is promised");
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
