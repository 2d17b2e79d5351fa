//! Rules for files: how long, what must not be left in them, which licence.

use super::File;
use crate::metadata::Package;

/// One file, one idea: a longer one has two.
const MAX_LINES: usize = 800;

/// What is checked for length and leftovers, by the end of its name.
const SOURCES: &[&str] =
    &[".rs", ".c", ".h", ".cc", ".cpp", ".f90", ".F90", ".f", ".sh", ".ts", ".py", ".cmake"];

/// Crates without the standard library: they end up in programs, or have no business with an operating system.
const NO_STD: &[&str] = &["model", "policy", "rounds"];

/// What a package's manifest says.
const LICENCE: &str = "MIT OR Apache-2.0";

fn sources(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|f| SOURCES.iter().any(|s| f.path.ends_with(s)))
}

/// No source file is too long.
pub fn check_lengths(files: &[File]) -> Vec<String> {
    sources(files)
        .map(|f| (f, f.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(f, lines)| format!("{}: {lines} lines, at most {MAX_LINES}", f.path))
        .collect()
}

/// Nothing is left for later.
pub fn check_markers(files: &[File]) -> Vec<String> {
    // Put together here, so that this file passes.
    let markers = [["TO", "DO"], ["FIX", "ME"], ["to", "do!("], ["unimple", "mented!("]].map(|m| m.concat());
    let mut complaints = Vec::new();
    for file in sources(files) {
        for (i, line) in file.text.lines().enumerate() {
            if let Some(marker) = markers.iter().find(|m| line.contains(m.as_str())) {
                complaints.push(format!("{}:{}: '{marker}': finish it, or leave it out", file.path, i + 1));
            }
        }
    }
    complaints
}

/// The crates that promise it are `no_std`.
pub fn check_no_std(files: &[File]) -> Vec<String> {
    let root = |name: &str| files.iter().find(|f| f.path == format!("crates/{name}/src/lib.rs"));
    let broken = NO_STD.iter().filter(|n| root(n).is_some_and(|f| !f.text.contains("#![no_std]")));
    broken.map(|n| format!("crates/{n}/src/lib.rs: lacks #![no_std]")).collect()
}

/// The licences' texts are there and every package names them.
pub fn check_licences(files: &[File], packages: &[Package]) -> Vec<String> {
    let texts = ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"];
    let missing = texts.iter().filter(|t| !files.iter().any(|f| f.path == **t && !f.text.is_empty()));
    let unnamed = packages.iter().filter(|p| p.license.as_deref() != Some(LICENCE));
    missing
        .map(|t| format!("{t} is missing"))
        .chain(unnamed.map(|p| format!("{}: its manifest lacks 'license.workspace = true'", p.name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn only_sources_have_a_length() {
        let long = "x\n".repeat(MAX_LINES + 1);
        let files = [file("a.rs", &long), file("LICENSE-APACHE", &long), file("b.rs", &long[2..])];
        assert_eq!(check_lengths(&files), ["a.rs: 801 lines, at most 800"]);
    }

    #[test]
    fn what_is_left_for_later_is_found() {
        let marker = ["TO", "DO"].concat();
        let complaints =
            check_markers(&[file("a.c", &format!("x\n/* {marker} */")), file("b.rs", "// todo list")]);
        assert_eq!(complaints, [format!("a.c:2: '{marker}': finish it, or leave it out")]);
    }

    #[test]
    fn crates_keep_their_promise() {
        assert_eq!(check_no_std(&[file("crates/model/src/lib.rs", "#![no_std]")]), Vec::<String>::new());
        assert_eq!(check_no_std(&[file("crates/policy/src/lib.rs", "")]).len(), 1);
    }

    #[test]
    fn licences_are_there_and_named() {
        let named = |license: Option<&str>| Package {
            name: "x".to_owned(),
            license: license.map(str::to_owned),
            dependencies: Default::default(),
            closure: Default::default(),
        };
        let files = ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"].map(|p| file(p, "text"));
        assert_eq!(check_licences(&files, &[named(Some(LICENCE))]), Vec::<String>::new());
        assert_eq!(check_licences(&files[1..], &[named(None)]).len(), 2);
    }
}
