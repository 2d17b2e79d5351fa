//! Topologies that hwloc recorded are tried out in a child.
//!
//! hwloc's parser ends its process by an assertion or SIGSEGV for some damaged files. So a child
//! reads each file of the command line first. If a signal ends the child, `homenode` says so and
//! does not read the file.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use homenode_error::{Context as _, Error, Result};

/// Makes a process the child that reads this file.
const READS: &str = "HOMENODE_READS_XML";

/// In the child, reads the file. How the child then ends says nothing about the file's content.
pub fn read_in_child() -> Option<ExitCode> {
    let path = env::var_os(READS)?;
    let _ = homenode_machine::resolve(&path.to_string_lossy());
    Some(ExitCode::SUCCESS)
}

/// Files of hwloc's on the command line, before the program's own arguments.
fn files(args: &[OsString]) -> impl Iterator<Item = &Path> {
    let own = args.iter().skip(1).take_while(|a| a.as_os_str() != "--");
    let values = own.map(|a| {
        let value = a.as_bytes().splitn(2, |b| *b == b'=').last().unwrap_or_default();
        if a.as_bytes().starts_with(b"-") { OsStr::from_bytes(value) } else { a.as_os_str() }
    });
    values.map(Path::new).filter(|path| path.extension().is_some_and(|e| e == "xml") && path.is_file())
}

/// Has a child read each topology on the command line.
///
/// # Errors
/// hwloc cannot read one without ending the process.
pub fn check(args: &[OsString]) -> Result<()> {
    for path in files(args) {
        let shown = || format!("cannot read {}", path.display());
        let exe = env::current_exe().context(shown)?;
        let mut child = Command::new(exe);
        child.env(READS, path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(signal) = child.status().context(shown)?.signal() {
            return Err(Error::usage(shown())
                .tried(format!("read it as an hwloc topology in a child, which signal {signal} ended"))
                .hint("the file is damaged: write it anew with lstopo"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_command_line_are_found_and_the_programs_are_not() {
        let file = env::temp_dir().join(format!("homenode-xml-{}.xml", std::process::id()));
        std::fs::write(&file, "<").unwrap();
        let shown = file.to_str().unwrap();
        let found = |line: &str| {
            let words: Vec<OsString> = line.replace('F', shown).split(' ').map(OsString::from).collect();
            files(&words).count()
        };
        assert_eq!(found("homenode machine show F"), 1);
        assert_eq!(found("homenode compare -m F --machine=F r"), 2);
        assert_eq!(found("homenode run -- app F"), 0);
        assert_eq!(found("homenode show nothing.xml"), 0);
        std::fs::remove_file(&file).unwrap();
    }
}
