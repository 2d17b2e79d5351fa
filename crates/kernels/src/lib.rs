//! The papers' programs: what `kernels/manifest.toml` says of them, and how they are built
//! ([`Kernel::build`]).

#![forbid(unsafe_code)]

mod build;
pub mod formula;
mod work;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

pub use build::{BuildVariant, cache, remedy};
pub use work::{Figures, KernelRegion, Work};

use homenode_error::{Context, Error, Result, suggest};
use homenode_launch::places;

/// Version of the manifest that is understood.
const SCHEMA: u32 = 1;

#[derive(Deserialize)]
struct Manifest {
    schema: u32,
    kernel: Vec<Kernel>,
}

/// A kernel, as the manifest describes it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Kernel {
    /// After `kernel:`.
    pub name: String,
    /// In the build folder.
    pub binary: String,
    /// What is needed to build it: `C` or `Fortran`.
    pub language: String,
    /// One line.
    pub about: String,
    /// Paper or specification that it is written from.
    pub source: String,
    /// What its verification compares.
    pub verified_by: String,
    /// The placement effect that it is there for.
    pub shows: String,
    /// Its class when none is given.
    pub default_class: String,
    /// `--size` of that class.
    pub default_size: u64,
    /// What `--size` counts.
    pub size_meaning: String,
    /// `--size` by class.
    pub sizes: BTreeMap<String, u64>,
    /// Timed rounds by class.
    pub iterations: BTreeMap<String, u64>,
    /// Main arrays by class, for people.
    pub memory: BTreeMap<String, String>,
    /// Löf's schemes that make sense for it.
    pub schemes: Vec<String>,
    /// Arguments for serial initialisation (SI).
    pub options_serial: Vec<String>,
    /// Arguments for parallel initialisation (PI).
    pub options_parallel: Vec<String>,
    /// Arguments that make it ask for migration on next touch.
    pub options_next_touch: Vec<String>,
    /// Further options that change the access pattern, by name.
    #[serde(default)]
    pub variants: BTreeMap<String, Vec<String>>,
    /// What a round does.
    pub work: Option<Work>,
    /// The folder with all kernels' sources.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// All kernels, in the manifest's order.
///
/// # Errors
/// The manifest cannot be found or read.
pub fn all() -> Result<Vec<Kernel>> {
    let folder = places::kernels()?;
    let path = folder.join("manifest.toml");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    parse(&text, &folder).map_err(|why| {
        Error::failed(format!("cannot read {}", path.display()))
            .tried(why)
            .hint("is it of the same version as homenode?")
    })
}

fn parse(text: &str, folder: &std::path::Path) -> std::result::Result<Vec<Kernel>, String> {
    let manifest: Manifest = toml::from_str(text).map_err(|e| e.to_string().trim().replace('\n', " "))?;
    if manifest.schema != SCHEMA {
        return Err(format!("schema {}, but this homenode knows {SCHEMA}", manifest.schema));
    }
    for kernel in &manifest.kernel {
        // It becomes a path in the build folder.
        if kernel.binary.is_empty() || kernel.binary.starts_with('.') || kernel.binary.contains('/') {
            return Err(format!("'{}' is not the name of a binary", kernel.binary));
        }
        let default = kernel.work.as_ref().map(|w| w.figures(kernel.default_size, 1, 0));
        if let Some(Err(why)) = default {
            return Err(format!("the work of '{}': {why}", kernel.name));
        }
    }
    Ok(manifest.kernel.into_iter().map(|k| Kernel { folder: folder.to_owned(), ..k }).collect())
}

impl Kernel {
    /// The kernel of a name.
    ///
    /// # Errors
    /// There is none; says the nearest.
    pub fn find(name: &str) -> Result<Self> {
        let kernels = all()?;
        let name = name.strip_prefix("kernel:").unwrap_or(name);
        if let Some(kernel) = kernels.iter().find(|k| k.name == name) {
            return Ok(kernel.clone());
        }
        let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
        Err(suggest::unknown("kernel", name, &names, "homenode kernel list"))
    }

    /// Its arguments for a class and threads, before any others.
    ///
    /// # Errors
    /// It has no such class.
    pub fn arguments(&self, class: Option<&str>, threads: Option<u32>) -> Result<Vec<OsString>> {
        let mut args: Vec<OsString> = Vec::new();
        if let Some(class) = class {
            let known = self.sizes.keys().find(|k| k.eq_ignore_ascii_case(class)).ok_or_else(|| {
                let classes: Vec<&str> = self.classes().map(|(name, _)| name).collect();
                Error::usage(format!("{} has no class '{class}'", self.name))
                    .hint(format!("it has {}", classes.join(", ")))
            })?;
            args.extend(["--class".into(), known.into()]);
        }
        if let Some(threads) = threads {
            args.extend(["--threads".into(), threads.to_string().into()]);
        }
        Ok(args)
    }

    /// Its classes and their sizes, smallest first.
    pub fn classes(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut classes: Vec<_> = self.sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        // Equal sizes differ in iterations: MG has A and B.
        classes.sort_by_key(|(name, size)| (*size, self.iterations.get(*name).copied(), (*name).to_owned()));
        classes.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Vec<Kernel> {
        parse(include_str!("../../../kernels/manifest.toml"), "/k".as_ref()).unwrap()
    }

    #[test]
    fn the_manifest_is_read() {
        let kernels = manifest();
        assert!(kernels.len() >= 6);
        for k in &kernels {
            assert!(k.sizes.contains_key(&k.default_class), "{}", k.name);
            assert_eq!(k.sizes[&k.default_class], k.default_size, "{}", k.name);
            assert_eq!(k.options_serial, ["--init", "serial"], "{}", k.name);
        }
    }

    #[test]
    fn a_class_is_checked_before_anything_runs() {
        let mg = manifest().into_iter().find(|k| k.name == "nas-mg").unwrap();
        assert_eq!(mg.arguments(Some("w"), Some(4)).unwrap(), ["--class", "W", "--threads", "4"]);
        assert!(mg.arguments(None, None).unwrap().is_empty());
        let error = mg.arguments(Some("C"), None).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("it has S, W, A, B"));
    }

    #[test]
    fn strange_manifests_are_refused() {
        for text in ["", "schema = 2\nkernel = []", "schema = 1\n[[kernel]]\nname = 1"] {
            assert!(parse(text, "/k".as_ref()).is_err(), "{text}");
        }
        let evil =
            include_str!("../../../kernels/manifest.toml").replace("binary = \"heat\"", "binary = \"../x\"");
        assert!(parse(&evil, "/k".as_ref()).unwrap_err().contains("not the name of a binary"));
    }
}
