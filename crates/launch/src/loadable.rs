//! Whether a library can be loaded into a program, and what stands in the way.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::elf;

use homenode_error::{Error, Result};

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

/// A command that becomes another, which its arguments name after its options.
struct Wrapper {
    name: &'static str,
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Words between its options and the other command.
    operands: usize,
}

const fn wrapper(name: &'static str, valued: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { name, valued, operands }
}

const NUMACTL: &[&str] = &[
    "-i",
    "--interleave",
    "-w",
    "--weighted-interleave",
    "-p",
    "--preferred",
    "-P",
    "--preferred-many",
    "-N",
    "--cpunodebind",
    "-C",
    "--physcpubind",
    "-m",
    "--membind",
];

const WRAPPERS: [Wrapper; 9] = [
    // With -S the rest is a text of its own: not looked into.
    wrapper("env", &["-u", "--unset", "-C", "--chdir", "-S", "--split-string"], 0),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("nohup", &[], 0),
    wrapper("numactl", NUMACTL, 0),
    wrapper("setsid", &[], 0),
    wrapper("stdbuf", &["-i", "--input", "-o", "--output", "-e", "--error"], 0),
    wrapper("taskset", &[], 1),
    wrapper("time", &["-f", "--format", "-o", "--output"], 0),
    wrapper("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
];

impl Wrapper {
    /// The other command and its arguments.
    fn wrapped<'a>(&self, mut args: &'a [OsString]) -> Option<(&'a OsStr, &'a [OsString])> {
        let mut operands = self.operands;
        while let [word, rest @ ..] = args {
            let text = word.to_string_lossy();
            if text == "--" {
                args = rest;
                break;
            }
            let assigns = self.name == "env" && text.contains('=');
            if !text.starts_with('-') && !assigns {
                break;
            }
            let value = usize::from(self.valued.contains(&&*text));
            args = rest.get(value..)?;
        }
        while let [word, rest @ ..] = args {
            // After `env --`, too.
            let assigns = self.name == "env" && word.to_string_lossy().contains('=');
            if !assigns {
                let Some(left) = operands.checked_sub(1) else { return Some((word, rest)) };
                operands = left;
            }
            args = rest;
        }
        None
    }
}

fn file_name(program: &OsStr) -> std::borrow::Cow<'_, str> {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy()
}

/// Whether homenode can be loaded into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loadable {
    /// It can.
    Yes,
    /// It cannot, and why: a sentence. The program can run without.
    No(String),
}

/// Refuses launchers of jobs, behind the usual wrappers too.
///
/// # Errors
/// A usage error with the right order of words.
pub fn refuse_launcher(program: &OsStr, args: &[OsString]) -> Result<()> {
    let mut command = (program, args);
    while let Some(wrapper) = WRAPPERS.iter().find(|w| file_name(command.0) == w.name) {
        let Some(wrapped) = wrapper.wrapped(command.1) else { return Ok(()) };
        command = wrapped;
    }
    let name = file_name(command.0);
    if !JOB_LAUNCHERS.contains(&&*name) {
        return Ok(());
    }
    Err(Error::usage(format!(
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
    // What homenode-cc builds asks for ThreadSanitizer's functions, which the recorder has.
    if crate::program::needed(path).iter().any(|library| library == crate::program::RECORDER) {
        return Loadable::No(format!(
            "{name} is built to be recorded; build it with cc, not homenode-cc, to have its pages moved"
        ));
    }
    if let Some(why) = crate::sanitized::sanitizer(path) {
        return Loadable::No(format!("{name} is built with {why}, which no library may come before"));
    }
    if crate::program::is_static(path) {
        return Loadable::No(format!("{name} is linked statically: no library can be loaded into it"));
    }
    Loadable::Yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_of_jobs_are_refused_with_the_right_order() {
        let refuse = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            refuse_launcher(&words[0], &words[1..])
        };
        let error = refuse("/usr/bin/srun").unwrap_err();
        assert!(
            error.hint.unwrap().starts_with("put srun and its options in front: srun … homenode run -- APP")
        );
        for refused in [
            "mpirun -n 4 ./app",
            "env srun ./app",
            "env -i -u HOME X=1 srun ./app",
            "env -- X=1 /usr/bin/srun",
            "nice -n 5 srun",
            "nice -5 srun",
            "numactl -i all srun",
            "numactl --interleave=all --cpunodebind 0 srun",
            "time -f %e srun",
            "timeout -k 5 10 srun",
            "stdbuf -oL nohup setsid -w srun",
            "taskset -c 0-3 srun",
            "env A=b taskset 0xff nice env C=d mpiexec ./app",
        ] {
            let error = refuse(refused).expect_err(refused);
            assert!(error.message.contains("starts the program elsewhere"), "{refused}: {error}");
        }
        for taken in [
            "numactl",
            "./srunner",
            "./app srun",
            "env",
            "env -u srun ./app",
            "env ./app srun",
            "env srun=1 ./app",
            "nice -n",
            "timeout srun",
            "timeout 10 ./app srun",
            "taskset srun ./app",
            "time -o srun ./app",
            "sh -c srun",
        ] {
            assert!(refuse(taken).is_ok(), "{taken}");
        }
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
