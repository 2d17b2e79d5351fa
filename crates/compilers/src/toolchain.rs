//! The real compiler behind a driver: which one, and of which family.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The language of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLanguage {
    /// `homenode-cc`
    C,
    /// `homenode-c++`
    Cxx,
    /// `homenode-fc`
    Fortran,
}

impl SourceLanguage {
    /// The name that messages begin with.
    pub fn name(self) -> &'static str {
        match self {
            SourceLanguage::C => "homenode-cc",
            SourceLanguage::Cxx => "homenode-c++",
            SourceLanguage::Fortran => "homenode-fc",
        }
    }

    /// The environment variable that names the real compiler.
    pub fn variable(self) -> &'static str {
        match self {
            SourceLanguage::C => "HOMENODE_CC",
            SourceLanguage::Cxx => "HOMENODE_CXX",
            SourceLanguage::Fortran => "HOMENODE_FC",
        }
    }

    /// The real compiler unless somebody names another.
    pub fn default_compiler(self) -> &'static str {
        match self {
            SourceLanguage::C => "gcc",
            SourceLanguage::Cxx => "g++",
            SourceLanguage::Fortran => "gfortran",
        }
    }
}

/// What kind of command line and of instrumentation a compiler has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// gcc, g++, gfortran
    Gcc,
    /// clang, clang++ and what is built on them
    Clang,
}

/// A real compiler.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The compiler, with what must stand before it (`ccache gcc`).
    pub command: Vec<OsString>,
    /// Its family.
    pub family: Family,
    /// Whether it makes code for x86, whose flags then hold.
    pub x86: bool,
    /// Whether that is 64-bit x86 by default.
    pub x86_64: bool,
}

impl Toolchain {
    /// Finds the compiler: `--homenode-compiler=`, else the driver's variable, else the default.
    pub fn find(driver: SourceLanguage, option: Option<&OsStr>) -> Result<Self, Error> {
        let wanted = option
            .map(OsStr::to_os_string)
            .or_else(|| std::env::var_os(driver.variable()).filter(|v| !v.is_empty()))
            .unwrap_or_else(|| driver.default_compiler().into());
        let command = split_command(&wanted);
        let compiler = command.last().cloned().unwrap_or_default();
        refuse_ourselves(driver, &compiler)?;
        let family = match family_by_name(&compiler) {
            Some(family) => family,
            None => family_by_version(driver, &command)?,
        };
        let x86 = makes_x86(&compiler);
        let x86_64 = x86 && !base_name(&compiler).starts_with("i686");
        Ok(Toolchain { x86, x86_64, command, family })
    }
}

/// A name with spaces is a command with words (`ccache gcc`), unless a file has that very name.
fn split_command(wanted: &OsStr) -> Vec<OsString> {
    match wanted.to_str() {
        Some(text) if text.contains(' ') && !Path::new(text).exists() => {
            text.split_whitespace().map(OsString::from).collect()
        }
        _ => vec![wanted.to_os_string()],
    }
}

fn base_name(compiler: &OsStr) -> String {
    Path::new(compiler).file_name().unwrap_or(compiler).to_string_lossy().into_owned()
}

fn family_by_name(compiler: &OsStr) -> Option<Family> {
    let name = base_name(compiler);
    if name.contains("clang") {
        Some(Family::Clang)
    } else if name.contains("gcc") || name.contains("g++") || name.contains("gfortran") {
        Some(Family::Gcc)
    } else {
        None
    }
}

fn family_by_version(driver: SourceLanguage, command: &[OsString]) -> Result<Family, Error> {
    let shown = command.join(OsStr::new(" ")).to_string_lossy().into_owned();
    let output = Command::new(&command[0]).args(&command[1..]).arg("--version").output().map_err(|e| {
        Error(format!("cannot run the compiler '{shown}': {e}; set {} to a compiler", driver.variable()))
    })?;
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    if text.contains("flang") {
        Err(Error(format!(
            "'{shown}' is flang, which has no instrumentation of memory accesses; set {} to gfortran",
            driver.variable()
        )))
    } else if text.contains("clang") || text.contains("llvm") || text.contains("oneapi") {
        Ok(Family::Clang)
    } else if text.contains("gcc") || text.contains("free software foundation") {
        Ok(Family::Gcc)
    } else {
        Err(Error(format!(
            "'{shown}' is neither GCC nor clang by what it prints for --version; set {} to one of them",
            driver.variable()
        )))
    }
}

/// A cross compiler carries its target before its name; another one makes code for this machine.
fn makes_x86(compiler: &OsStr) -> bool {
    let name = base_name(compiler);
    if name.contains("-linux") {
        name.starts_with("x86_64") || name.starts_with("i686")
    } else {
        cfg!(target_arch = "x86_64")
    }
}

/// `HOMENODE_CC=homenode-cc` would call itself for ever.
fn refuse_ourselves(driver: SourceLanguage, compiler: &OsStr) -> Result<(), Error> {
    let same = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .ok()
        .zip(find_in_path(compiler).and_then(|p| std::fs::canonicalize(p).ok()))
        .is_some_and(|(own, other)| own == other);
    if same || base_name(compiler).starts_with("homenode-") {
        return Err(Error(format!(
            "{} names a homenode driver ('{}'); it must name the real compiler",
            driver.variable(),
            compiler.to_string_lossy()
        )));
    }
    Ok(())
}

fn find_in_path(compiler: &OsStr) -> Option<PathBuf> {
    let path = Path::new(compiler);
    if path.components().count() > 1 {
        return Some(path.to_path_buf());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(path)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_family() {
        for (name, family) in [
            ("gcc", Some(Family::Gcc)),
            ("/usr/bin/g++-12", Some(Family::Gcc)),
            ("x86_64-linux-gnu-gfortran", Some(Family::Gcc)),
            ("clang++-14", Some(Family::Clang)),
            ("cc", None),
        ] {
            assert_eq!(family_by_name(OsStr::new(name)), family, "{name}");
        }
    }

    #[test]
    fn a_launcher_may_stand_before_the_compiler() {
        assert_eq!(split_command(OsStr::new("ccache gcc")), ["ccache", "gcc"].map(OsString::from));
    }

    #[test]
    fn cross_compilers_are_not_given_x86_flags() {
        assert!(!makes_x86(OsStr::new("aarch64-linux-gnu-gcc")));
        assert!(makes_x86(OsStr::new("x86_64-linux-gnu-gcc")));
    }
}
