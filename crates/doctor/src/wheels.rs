//! OpenMP libraries that Python packages bring along: each wheel its own copy, under a mangled
//! name, so that one process may hold several (`numpy.libs/libgomp-a34b3233.so.1.0.0`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Packages of one folder that are looked into.
const MOST: usize = 8192;

/// Folders of packages: the system's, the user's, those of a virtual environment, and of the
/// interpreter that is looked at.
pub fn folders(program: Option<&Path>) -> Vec<PathBuf> {
    let mut bases: Vec<PathBuf> = ["/usr", "/usr/local", "/opt/conda"].map(PathBuf::from).into();
    bases.extend(
        ["VIRTUAL_ENV", "CONDA_PREFIX"]
            .iter()
            .filter_map(std::env::var_os)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from),
    );
    bases.extend(std::env::var_os("HOME").map(|h| Path::new(&h).join(".local")));
    // venv/bin/python is a link: what it belongs to is beside it.
    bases.extend(program.and_then(|p| Some(p.parent()?.parent()?.to_owned())));
    let mut found = BTreeSet::new();
    for lib in bases.iter().flat_map(|b| [b.join("lib"), b.join("lib64")]) {
        for python in names(&lib).into_iter().filter(|n| n.starts_with("python3")) {
            found.extend(["site-packages", "dist-packages"].map(|p| lib.join(&python).join(p)));
        }
    }
    found.into_iter().filter(|f| f.is_dir()).collect()
}

/// OpenMP libraries under folders of packages: `scikit_learn.libs/libgomp-….so.1` and where else
/// they are put.
pub fn copies(folders: &[PathBuf]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for folder in folders {
        for package in names(folder).into_iter().take(MOST) {
            for inside in ["", ".libs", "lib", "lib64", "_libs"] {
                let at = folder.join(&package).join(inside);
                for name in names(&at).into_iter().filter(|n| is_openmp(n)) {
                    found.insert(at.join(name).display().to_string());
                }
            }
        }
    }
    found.into_iter().collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn is_openmp(name: &str) -> bool {
    ["libgomp", "libomp", "libiomp5"].iter().any(|b| {
        name.strip_prefix(b).is_some_and(|rest| rest.starts_with(['-', '.']) && rest.contains(".so"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_found_under_mangled_names() {
        let dir = std::env::temp_dir().join(format!("homenode-wheels-{}", std::process::id()));
        let site = dir.join("venv/lib/python3.11/site-packages");
        for (folder, file) in [
            ("scikit_learn.libs", "libgomp-a34b3233.so.1.0.0"),
            ("torch/lib", "libgomp-a34b3233.so.1"),
            ("torch/lib", "libtorch.so"),
            ("mkl", "libiomp5.so"),
            ("numpy.libs", "libscipy_openblas64_-ff651d7f.so"),
            ("x", "libomptarget.so"),
        ] {
            fs::create_dir_all(site.join(folder)).unwrap();
            fs::write(site.join(folder).join(file), "").unwrap();
        }
        let program = dir.join("venv/bin/python");
        let folders: Vec<_> = folders(Some(&program)).into_iter().filter(|f| f.starts_with(&dir)).collect();
        assert_eq!(folders, std::slice::from_ref(&site));
        let found = copies(&folders);
        fs::remove_dir_all(&dir).unwrap();
        let ends: Vec<&str> =
            found.iter().map(|f| f.strip_prefix(&format!("{}/", site.display())).unwrap()).collect();
        assert_eq!(
            ends,
            [
                "mkl/libiomp5.so",
                "scikit_learn.libs/libgomp-a34b3233.so.1.0.0",
                "torch/lib/libgomp-a34b3233.so.1"
            ]
        );
        assert_eq!(copies(&["/nowhere".into()]), Vec::<String>::new());
    }
}
