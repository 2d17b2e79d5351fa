//! What a program or library needs, by its ELF headers.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_X86_64, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{LittleEndian, ReadCache, elf};

use crate::error::{self, Error, FailureKind, Result};

/// The interesting part of an ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// The loader; none for a library or a static program.
    pub interpreter: Option<PathBuf>,
    /// Names of libraries.
    pub needed: Vec<String>,
    /// `DT_RPATH`.
    pub rpath: Option<String>,
    /// `DT_RUNPATH`.
    pub run_path: Option<String>,
}

impl Elf {
    /// The folders of its run path, with `origin` for `$ORIGIN`.
    pub fn run_paths(&self, origin: &Path) -> Vec<PathBuf> {
        let list = self.run_path.as_ref().or(self.rpath.as_ref());
        let origin = origin.display().to_string();
        let text =
            list.cloned().unwrap_or_default().replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
        let text = text.replace("${LIB}", "lib").replace("$LIB", "lib");
        text.split(':').filter(|p| p.starts_with('/')).map(PathBuf::from).collect()
    }
}

/// Whether the file is an ELF file.
pub fn is(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok() && magic == elf::ELFMAG
}

/// Whether the file is a library that an x86-64 program can load.
pub fn is_ours(path: &Path) -> bool {
    is(path) && machine(path).is_some_and(|(class, machine)| class == elf::ELFCLASS64 && machine == EM_X86_64)
}

fn machine(path: &Path) -> Option<(u8, u16)> {
    let mut head = [0; 20];
    File::open(path).and_then(|mut f| f.read_exact(&mut head)).ok()?;
    let two = [head[18], head[19]];
    let machine = if head[5] == elf::ELFDATA2MSB { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) };
    Some((head[4], machine))
}

/// Reads an ELF file.
///
/// # Errors
/// The file is not an x86-64 program or library.
pub fn read(path: &Path) -> Result<Elf> {
    let cannot =
        || Error::failed(format!("cannot run {} in the lab", path.display())).kind(FailureKind::CannotRun);
    if !is(path) {
        return Err(cannot()
            .tried("read its first bytes: neither a program (ELF) nor a script (#!)")
            .hint("name a program"));
    }
    match machine(path) {
        Some((elf::ELFCLASS64, EM_X86_64)) => {}
        Some((class, machine)) => {
            let bits = if class == elf::ELFCLASS32 { 32 } else { 64 };
            return Err(cannot()
                .tried(format!("read its header: it is for {} ({bits} bits)", machine_name(machine)))
                .hint("the lab is a 64-bit x86 machine: build the program for x86-64"));
        }
        None => return Err(cannot().tried("read its header: it ends too early")),
    }
    let file = File::open(path).map_err(|e| error::of_file("read", path, &e))?;
    parse(&ReadCache::new(file)).map_err(|e| cannot().tried(format!("read its headers: {e}")))
}

fn machine_name(machine: u16) -> String {
    match machine {
        elf::EM_386 => "i386".into(),
        elf::EM_AARCH64 => "arm64".into(),
        elf::EM_ARM => "arm".into(),
        elf::EM_RISCV => "riscv".into(),
        elf::EM_PPC64 => "ppc64".into(),
        elf::EM_S390 => "s390x".into(),
        EM_X86_64 => "x86-64".into(),
        other => format!("machine {other}"),
    }
}

fn parse(data: &ReadCache<File>) -> object::Result<Elf> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(data)?;
    let mut found = Elf::default();
    let mut dynamic = None;
    for segment in header.program_headers(endian, data)? {
        if let Some(text) = segment.interpreter(endian, data)? {
            found.interpreter = Some(PathBuf::from(String::from_utf8_lossy(text).into_owned()));
        }
        if let Some(list) = segment.dynamic(endian, data)? {
            dynamic = Some(list);
        }
    }
    let Some(dynamic) = dynamic else { return Ok(found) };
    let sections = header.sections(endian, data)?;
    let Some((_, index)) = sections.dynamic(endian, data)? else { return Ok(found) };
    let strings = sections.strings(endian, data, index)?;
    for entry in dynamic {
        let text = || {
            let at = entry.val32(endian)?;
            strings.get(at).ok().map(|s| String::from_utf8_lossy(s).into_owned())
        };
        match entry.tag32(endian) {
            Some(DT_NEEDED) => found.needed.extend(text()),
            Some(DT_RPATH) => found.rpath = text(),
            Some(DT_RUNPATH) => found.run_path = text(),
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_scratch::Scratch;

    #[test]
    fn this_test_needs_the_c_library() {
        let found = read(&std::env::current_exe().unwrap()).unwrap();
        assert!(found.needed.iter().any(|n| n.starts_with("libc.so")), "{found:?}");
        assert!(found.interpreter.is_some());
    }

    #[test]
    fn run_paths_are_expanded() {
        let found = Elf { run_path: Some("$ORIGIN/../lib:/opt/x:relative".into()), ..Elf::default() };
        assert_eq!(found.run_paths(Path::new("/a/b")), [Path::new("/a/b/../lib"), Path::new("/opt/x")]);
    }

    #[test]
    fn programs_for_other_machines_and_damage_are_told() {
        let dir = Scratch::new("lab").unwrap();
        let path = dir.path().join("x");
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut arm = whole[..4096].to_vec();
        arm[18..20].copy_from_slice(&elf::EM_AARCH64.to_le_bytes());
        std::fs::write(&path, &arm).unwrap();
        let e = read(&path).unwrap_err();
        assert_eq!(e.kind, FailureKind::CannotRun);
        assert!(e.to_string().contains("it is for arm64 (64 bits)"), "{e}");
        for n in [0, 4, 19, 63, 100, 3000] {
            std::fs::write(&path, &whole[..n]).unwrap();
            assert!(read(&path).is_err(), "{n} bytes");
        }
    }
}
