//! QEMU's user-mode emulator: where it is, which programs it runs, and its command line.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_error::{Error, FailureKind, Result};
use homenode_task::Task;
use homenode_wire::monitor as wire;
use object::elf;

use super::spec::RecordSpec;
use crate::{places, program};

/// The emulator of this architecture's programs.
const QEMU: &str = "qemu-x86_64";
/// What to do about a program that needs AVX-512.
pub(super) const WITHOUT_AVX512: &str =
    "if it dies of SIGILL, build it with -march=x86-64-v3 in place of -march=native";
/// How the guest library learns where the recording is; `homenode_trace::emulator` reads it.
const DIRECTORY: &str = "HOMENODE_EMULATOR_DIR";

/// The emulator and what is loaded into it and the program.
#[derive(Clone, Debug)]
pub struct Emulator {
    qemu: PathBuf,
    plugin: PathBuf,
    /// `None` for a program that is linked statically.
    guest: Option<PathBuf>,
}

impl Emulator {
    /// Finds the emulator, for this program.
    ///
    /// # Errors
    /// There is none, or it cannot run the program.
    pub fn find(path: &Path, task: &dyn Task) -> Result<Self> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        refuse(path, &name)?;
        let qemu = program::find(OsStr::new(QEMU)).map_err(|_| {
            Error::failed("cannot record under emulation: QEMU's user-mode emulator is not there")
                .tried(format!("look for {QEMU} in the folders of PATH"))
                .hint("install it: apt install qemu-user (Debian, Ubuntu), dnf install qemu-user (Fedora, RHEL)")
                .kind(FailureKind::Failed)
        })?;
        if homenode_symbols::has_avx512(path) {
            task.say(&format_args!(
                "{name} has instructions of AVX-512, which QEMU does not know: {WITHOUT_AVX512}"
            ));
        }
        let guest = if program::is_static(path) {
            task.say(&format_args!(
                "{name} is linked statically: nothing can tell of its regions, barriers, locks and allocations; only its \
                 accesses are recorded"
            ));
            None
        } else {
            let library = places::guest_library()?;
            // Separators of lists in QEMU's options and in LD_PRELOAD.
            if library.as_os_str().as_bytes().iter().any(|b| b", :".contains(b)) {
                return Err(Error::failed(format!("cannot load {} into the program", library.display()))
                    .tried("its path has a comma, a colon or a space")
                    .hint("install homenode in a folder without, or set HOMENODE_LIB_DIR to one"));
            }
            Some(library)
        };
        Ok(Self { qemu, plugin: places::monitor()?, guest })
    }

    /// The command up to the program's own arguments.
    pub fn command(&self, spec: &RecordSpec, path: &Path, recording: &Path) -> Command {
        let mut command = Command::new(&self.qemu);
        let config = wire::EmulatorSettings {
            recording: recording.to_owned(),
            filter_lines: spec.filter_lines,
            alone: self.guest.is_none(),
        };
        let mut plugin = quoted(self.plugin.as_os_str());
        plugin.push(",emulator=");
        // A path of the system fits; what does not, the plug-in refuses with a reason.
        plugin.push(homenode_wire::encode_word(&config).unwrap_or_default());
        if let Some(guest) = &self.guest {
            let mut preload = OsString::from("LD_PRELOAD=");
            preload.push(guest);
            if let Some(others) = env::var_os("LD_PRELOAD").filter(|o| !o.is_empty()) {
                preload.push(":");
                preload.push(others);
            }
            command.arg("-E").arg(preload);
            command.env(DIRECTORY, recording);
        }
        command.env_remove("HOMENODE_TRACE_DIR");
        command.arg("-plugin").arg(plugin).arg("-0").arg(&spec.program).arg(path);
        command
    }
}

/// Refuses what the emulator cannot run, and what is recorded better without it.
fn refuse(path: &Path, name: &str) -> Result<()> {
    let error = |why: String| {
        Error::failed(format!("cannot record {name} under emulation")).tried(why).kind(FailureKind::CannotRun)
    };
    let mut head = [0; 20];
    let look = File::open(path).and_then(|mut f| f.read(&mut head));
    let read = look.map_err(|e| error(format!("read {}: {e}", path.display())))?;
    if head[..2] == *b"#!" {
        return Err(error("it is a script: the emulator runs programs".into()).hint(format!(
            "name its interpreter: homenode record --on emulator -- INTERPRETER {}",
            path.display()
        )));
    }
    let machine = u16::from_le_bytes([head[18], head[19]]);
    if read < 20 || head[..4] != elf::ELFMAG || head[4] != elf::ELFCLASS64 || machine != elf::EM_X86_64 {
        return Err(error(format!("look at the ELF header of {}: it is of another kind", path.display()))
            .hint("homenode records programs for 64-bit x86 Linux"));
    }
    if program::brings_recorder(path) {
        return Err(error("it was built with homenode-cc and brings the recorder along".into())
            .hint("record it without --on emulator"));
    }
    Ok(())
}

/// A path in QEMU's lists of options, where a comma is written twice.
fn quoted(path: &OsStr) -> OsString {
    let mut out = Vec::new();
    for byte in path.as_bytes() {
        out.push(*byte);
        if *byte == b',' {
            out.push(b',');
        }
    }
    std::os::unix::ffi::OsStringExt::from_vec(out)
}

#[cfg(test)]
mod tests {
    use homenode_task::Unattended;

    use super::*;

    #[test]
    fn commas_are_doubled() {
        assert_eq!(quoted("/a,b/c".as_ref()), "/a,,b/c");
    }

    #[test]
    fn scripts_and_other_files_are_refused_with_the_remedy() {
        let folder = env::temp_dir().join(format!("homenode-emulator-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = folder.join("run.sh");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let error = Emulator::find(&script, &Unattended).unwrap_err().to_string();
        assert!(error.contains("script") && error.contains("INTERPRETER"), "{error}");
        let other = folder.join("other");
        let mut head = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        head.resize(18, 0);
        head.extend([183, 0]); // aarch64
        std::fs::write(&other, head).unwrap();
        let error = Emulator::find(&other, &Unattended).unwrap_err().to_string();
        assert!(error.contains("64-bit x86"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
