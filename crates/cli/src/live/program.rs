//! Whether a library can be loaded into a program, and what stands in the way.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::elf;

use crate::error::{CliError, Result};

/// What starts processes elsewhere, where homenode's library and report would not go along.
const JOB_LAUNCHERS: [&str; 12] = [
    "aprun",
    "flux",
    "jsrun",
    "mpiexec",
    "mpiexec.hydra",
    "mpirun",
    "orterun",
    "prun",
    "salloc",
    "sbatch",
    "srun",
    "ssh",
];

/// Whether homenode can be loaded into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loadable {
    /// It can.
    Yes,
    /// It cannot, and why: a sentence. The program can run without.
    No(String),
}

/// Refuses launchers of jobs.
///
/// # Errors
/// A usage error with the right order of words.
pub fn refuse_launcher(program: &OsStr) -> Result<()> {
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    if !JOB_LAUNCHERS.contains(&&*name) {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "{name} starts the program elsewhere: homenode would watch {name}, and not the program"
    ))
    .hint(format!("put {name} and its options in front: {name} … homenode run -- APP")))
}

/// Looks into a program's file.
pub fn loadable(path: &Path) -> Loadable {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    if fs::metadata(path).is_ok_and(|m| m.mode() & 0o6000 != 0) {
        return Loadable::No(format!(
            "{name} is setuid or setgid: the system loads no foreign library into it"
        ));
    }
    let Ok(mut file) = File::open(path) else { return Loadable::Yes };
    let mut head = [0u8; 20];
    if file.read_exact(&mut head).is_err() || head[..4] != elf::ELFMAG {
        // A script: its interpreter decides.
        return Loadable::Yes;
    }
    let machine = u16::from_le_bytes([head[18], head[19]]);
    if head[4] != elf::ELFCLASS64 || machine != elf::EM_X86_64 {
        return Loadable::No(format!("{name} is not a program for 64-bit x86"));
    }
    if crate::recorder::program::is_static(path) {
        return Loadable::No(format!("{name} is linked statically: no library can be loaded into it"));
    }
    Loadable::Yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_of_jobs_are_refused_with_the_right_order() {
        let error = refuse_launcher("/usr/bin/srun".as_ref()).unwrap_err();
        assert!(
            error.hint.unwrap().starts_with("put srun and its options in front: srun … homenode run -- APP")
        );
        assert!(refuse_launcher("numactl".as_ref()).is_ok() && refuse_launcher("./srunner".as_ref()).is_ok());
    }

    #[test]
    fn foreign_and_privileged_programs_are_told() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("homenode-loadable-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let why = |name: &str, bytes: &[u8], mode: u32| {
            let path = dir.join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            loadable(&path)
        };
        assert_eq!(why("script", b"#!/bin/sh\n", 0o755), Loadable::Yes);
        let no = |l: Loadable| matches!(l, Loadable::No(text) if !text.is_empty());
        assert!(no(why("setuid", b"#!/bin/sh\n", 0o4755)));
        let mut arm = [0u8; 64];
        arm[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        arm[18] = 183;
        assert!(no(why("arm", &arm, 0o755)));
        assert_eq!(loadable(&std::env::current_exe().unwrap()), Loadable::Yes);
        fs::remove_dir_all(dir).unwrap();
    }
}
