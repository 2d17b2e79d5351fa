//! The program to record: where it is, and whether it can be recorded.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::LittleEndian;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{ReadCache, elf};

use homenode_error::{Error, FailureKind, Result};

/// The recorder, as a program's list of libraries names it.
pub(crate) const RECORDER: &str = "libhomenode_trace.so";

/// What stands in front of programs and starts them.
const LAUNCHERS: [&str; 18] = [
    "env",
    "gdb",
    "hwloc-bind",
    "likwid-pin",
    "mpiexec",
    "mpirun",
    "nice",
    "numactl",
    "perf",
    "setarch",
    "srun",
    "stdbuf",
    "strace",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "valgrind",
];

/// Finds a program as `execvp` would.
///
/// # Errors
/// There is none (status 127), or it cannot be run (126).
pub fn find(program: &OsStr) -> Result<PathBuf> {
    let shown = program.display();
    if program.as_bytes().contains(&b'/') {
        let path = Path::new(program);
        return match runnable(path) {
            Ok(()) => Ok(path.to_owned()),
            Err((kind, why)) => {
                Err(Error::failed(format!("cannot run {shown}")).tried(why).kind(kind).hint(match kind {
                    FailureKind::NotFound => "is the name right, and has it been built?",
                    _ => "a program must be a file with permission to execute (chmod +x)",
                }))
            }
        };
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut refused = None;
    for folder in env::split_paths(&folders).filter(|_| !program.is_empty()) {
        let path = folder.join(program);
        match runnable(&path) {
            Ok(()) => return Ok(path),
            Err((FailureKind::CannotRun, why)) if path.is_file() => drop(refused.get_or_insert(why)),
            Err(_) => {}
        }
    }
    if let Some(why) = refused {
        return Err(Error::failed(format!("cannot run {shown}"))
            .tried(why)
            .kind(FailureKind::CannotRun)
            .hint("a program must be a file with permission to execute (chmod +x)"));
    }
    let error = Error::failed(format!("there is no program '{shown}'"))
        .tried(format!("look in the folders of PATH: {}", folders.display()))
        .kind(FailureKind::NotFound);
    Err(if !program.is_empty() && Path::new(program).is_file() {
        error.hint(format!("the one in this folder is ./{shown}"))
    } else {
        error.hint("is the name right? a program outside of PATH needs its folder: ./app")
    })
}

fn runnable(path: &Path) -> std::result::Result<(), (FailureKind, String)> {
    match fs::metadata(path) {
        Err(e) => {
            let there = !matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory);
            let kind = if there { FailureKind::CannotRun } else { FailureKind::NotFound };
            Err((kind, format!("look at {}: {e}", path.display())))
        }
        Ok(m) if m.is_dir() => Err((FailureKind::CannotRun, format!("{} is a folder", path.display()))),
        Ok(m) if m.permissions().mode() & 0o111 == 0 => {
            Err((FailureKind::CannotRun, format!("{} may not be executed", path.display())))
        }
        Ok(_) => Ok(()),
    }
}

/// How a program is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Linked {
    /// A script, or something else that the kernel may know how to start.
    NotElf,
    /// With these libraries, by this loader.
    To { libraries: Vec<String>, loader: Option<String> },
    /// Not at all.
    Statically,
}

/// Refuses a program that would run and leave an empty recording. Of scripts, nothing can be said
/// before they run.
///
/// # Errors
/// With how to build it.
pub fn refuse_unrecordable(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let error = || Error::failed(format!("{name} cannot be recorded: it was not built with homenode-cc"));
    let how = "put homenode's compilers in place of the program's and build it anew, for example: \
               CC=homenode-cc CXX=homenode-c++ FC=homenode-fc cmake -B build, or make CC=homenode-cc";
    let linked = linked(path).map_err(|why| {
        Error::failed(format!("cannot look into {}", path.display()))
            .tried(why)
            .hint("homenode records programs for 64-bit x86 Linux")
    })?;
    let Linked::To { libraries, loader } = linked else {
        return match linked {
            Linked::Statically => Err(error()
                .tried(format!("look for {RECORDER} in {}: it is linked statically", path.display()))
                .hint(format!("{how}; and without -static"))),
            _ => Ok(()),
        };
    };
    if libraries.iter().any(|l| l.contains(RECORDER)) || loader.is_some_and(|l| loads_recorder(&l, path)) {
        return Ok(());
    }
    let error = error().tried(format!(
        "look for {RECORDER} among the libraries of {}: it has {}",
        path.display(),
        if libraries.is_empty() { "none".into() } else { libraries.join(", ") }
    ));
    Err(if LAUNCHERS.contains(&&*name) {
        error.hint(format!("{name} starts another program: put it in front, {name} … homenode record -- APP"))
    } else {
        error.hint(how)
    })
}

/// Whether a program is linked statically: nothing can be loaded into it.
pub fn is_static(path: &Path) -> bool {
    matches!(linked(path), Ok(Linked::Statically))
}

/// Whether a program was built with homenode's compilers, or uses a library that was.
pub fn brings_recorder(path: &Path) -> bool {
    matches!(linked(path), Ok(Linked::To { libraries, loader })
        if libraries.iter().any(|l| l.contains(RECORDER)) || loader.as_ref().is_some_and(|l| loads_recorder(l, path)))
}

/// Names of the libraries that a program loads at its start: all that its loader finds where the
/// loader can be asked, else those that its own headers name. None of a script.
pub fn libraries(path: &Path) -> Vec<String> {
    let Ok(Linked::To { libraries, loader }) = linked(path) else { return Vec::new() };
    let asked =
        loader.filter(|l| l.rsplit('/').next().is_some_and(|n| n.starts_with("ld-linux"))).and_then(|l| {
            Command::new(l).arg("--list").arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()
        });
    match asked.filter(|o| o.status.success()) {
        Some(list) => String::from_utf8_lossy(&list.stdout)
            .lines()
            .filter_map(|l| l.split_whitespace().next())
            .map(|n| n.rsplit('/').next().unwrap_or(n).to_owned())
            .collect(),
        None => libraries,
    }
}

/// Names of the libraries that a program's own headers ask for.
pub fn needed(path: &Path) -> Vec<String> {
    match linked(path) {
        Ok(Linked::To { libraries, .. }) => libraries,
        _ => Vec::new(),
    }
}

/// Whether a library of the program brings the recorder along: the loader knows.
fn loads_recorder(loader: &str, path: &Path) -> bool {
    // Any other loader might start the program instead.
    if !loader.rsplit('/').next().is_some_and(|l| l.starts_with("ld-linux")) {
        return false;
    }
    let list =
        Command::new(loader).arg("--list").arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output();
    list.is_ok_and(|l| String::from_utf8_lossy(&l.stdout).contains(RECORDER))
}

fn linked(path: &Path) -> std::result::Result<Linked, String> {
    let tell = |what: &str, e: &dyn std::fmt::Display| format!("{what} {}: {e}", path.display());
    let mut file = match File::open(path) {
        Ok(file) => file,
        // What may be executed and not read cannot be looked into; it may still be run.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Ok(Linked::NotElf),
        Err(e) => return Err(tell("open", &e)),
    };
    let mut magic = [0; 4];
    match file.read(&mut magic) {
        Ok(4) if magic == elf::ELFMAG => {}
        Ok(_) => return Ok(Linked::NotElf),
        Err(e) => return Err(tell("read", &e)),
    }
    let cache = ReadCache::new(file);
    read_linked(&cache).map_err(|e| tell("read the ELF headers of", &e))
}

fn read_linked(data: &ReadCache<File>) -> object::Result<Linked> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(data)?;
    let mut dynamic = None;
    let mut loader = None;
    for segment in header.program_headers(endian, data)? {
        if let Some(text) = segment.interpreter(endian, data)? {
            loader = Some(String::from_utf8_lossy(text).into_owned());
        }
        if let Some(list) = segment.dynamic(endian, data)? {
            dynamic = Some(list);
        }
    }
    let Some(dynamic) = dynamic else { return Ok(Linked::Statically) };
    let sections = header.sections(endian, data)?;
    let mut libraries = Vec::new();
    if let Some((_, index)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, index)?;
        for entry in dynamic {
            if entry.tag32(endian) == Some(DT_NEEDED)
                && let Some(at) = entry.val32(endian)
                && let Ok(name) = strings.get(at)
            {
                libraries.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    // Position-independent and static: a dynamic section, but nobody who reads it.
    Ok(if loader.is_none() && libraries.is_empty() {
        Linked::Statically
    } else {
        Linked::To { libraries, loader }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_by_a_shell() {
        assert!(find("sh".as_ref()).unwrap().ends_with("sh"));
        assert_eq!(find("no-such-program-at-all".as_ref()).unwrap_err().kind, FailureKind::NotFound);
        assert_eq!(find("./no-such".as_ref()).unwrap_err().kind, FailureKind::NotFound);
        assert_eq!(find("".as_ref()).unwrap_err().kind, FailureKind::NotFound);
        assert_eq!(find("/".as_ref()).unwrap_err().kind, FailureKind::CannotRun);
        assert_eq!(find("/etc/passwd".as_ref()).unwrap_err().kind, FailureKind::CannotRun);
    }

    #[test]
    fn a_plain_program_is_refused_with_the_remedy() {
        let error = refuse_unrecordable(&find("env".as_ref()).unwrap()).unwrap_err().to_string();
        assert!(error.contains("put it in front") && error.contains("libc.so"), "{error}");
        let this = std::env::current_exe().unwrap();
        let error = refuse_unrecordable(&this).unwrap_err().to_string();
        assert!(error.contains("CC=homenode-cc"), "{error}");
    }

    #[test]
    fn scripts_are_let_through_and_damage_is_told() {
        let dir = std::env::temp_dir().join(format!("homenode-program-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let script = dir.join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(refuse_unrecordable(&script).is_ok());
        let whole = fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [4, 20, 63, 64, 100, 300, 5000] {
            fs::write(&script, &whole[..length]).unwrap();
            assert!(refuse_unrecordable(&script).is_err(), "{length} bytes");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
