//! Running the plan: environment, scratch folder, child processes.

use crate::args::{CompileRequest, CompilerAction};
use crate::plan::{CommandPlan, CompileStep, OwnFiles, length, plan};
use crate::rewrite::{EXE_TLS, rewrite};
use crate::toolchain::{SourceLanguage, Toolchain};
use crate::{Error, flags::TRACE_LIBRARY, help, response};
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

/// The whole of a driver: reads the process's arguments, runs the compiler, returns its status.
pub fn main(driver: SourceLanguage) -> ExitCode {
    match drive(driver, std::env::args_os().skip(1).collect()) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("{}: {e}", driver.name());
            ExitCode::from(1)
        }
    }
}

fn drive(driver: SourceLanguage, words: Vec<OsString>) -> Result<u8, Error> {
    if words.iter().any(|word| word == help::WORD) {
        print!("{}", help::text(driver));
        return Ok(0);
    }
    let request = CompileRequest::parse(response::expand(words));
    let tool = Toolchain::find(driver, request.compiler.as_deref())?;
    if let (Some(reason), true) = (&request.refused, request.step != CompilerAction::Ask) {
        return Err(Error(reason.clone()));
    }
    let places = find_places(request.step == CompilerAction::Link && !request.relocatable)?;
    let sources = request.sources().count();
    let scratch = match request.step {
        CompilerAction::Ask => None,
        CompilerAction::Compile | CompilerAction::Link => Some(Scratch::new(sources)?),
    };
    let folder = scratch.as_ref().map_or(Path::new(""), |s| s.0.as_path());
    let inline = std::env::var_os("HOMENODE_CC_INLINE").is_none_or(|v| v != "0");
    let CommandPlan { jobs, last } = plan(&request, driver, &tool, &places, folder, inline);

    let mut failed = None;
    for job in &jobs {
        let code = run_job(driver, &tool, job)?;
        if code != 0 {
            failed.get_or_insert(code);
        }
    }
    match (failed, last) {
        (Some(code), _) => Ok(code),
        (None, None) => Ok(0),
        (None, Some(last)) if jobs.is_empty() && !request.shared && length(&last) < response::LONG => {
            drop(scratch); // nothing of ours runs after the compiler has taken our place
            exec(driver, &tool, &last)
        }
        (None, Some(last)) => {
            let code = spawn(driver, &tool, &last)?;
            if code != 0 && request.shared && tool.x86_64 {
                eprintln!(
                    "{}: if the linker speaks of homenode_exe_tls or TPOFF: objects for a shared library must be \
                     compiled with -fPIC here, or with HOMENODE_CC_INLINE=0",
                    driver.name()
                );
            }
            Ok(code)
        }
    }
}

fn run_job(driver: SourceLanguage, tool: &Toolchain, job: &CompileStep) -> Result<u8, Error> {
    match job {
        CompileStep::Run(words) => spawn(driver, tool, words),
        CompileStep::Block(file, words) => {
            write_file(file, EXE_TLS.as_bytes())?;
            spawn(driver, tool, words)
        }
        CompileStep::Rewrite { compile, assembly, rewritten, assemble } => {
            let code = spawn(driver, tool, compile)?;
            if code != 0 {
                return Ok(code);
            }
            let text = std::fs::read(assembly).map_err(|e| {
                Error(format!("cannot read the compiler's output '{}': {e}", assembly.display()))
            })?;
            // What is not understood keeps its calls.
            write_file(rewritten, &rewrite(&text).unwrap_or(text))?;
            spawn(driver, tool, assemble)
        }
    }
}

fn write_file(file: &Path, text: &[u8]) -> Result<(), Error> {
    std::fs::write(file, text)
        .map_err(|e| Error(format!("cannot write '{}': {e}; set TMPDIR", file.display())))
}

fn command(driver: SourceLanguage, tool: &Toolchain, words: &[OsString]) -> Command {
    let mut command = Command::new(&tool.command[0]);
    command.args(&tool.command[1..]).args(words);
    if std::env::var_os("HOMENODE_CC_VERBOSE").is_some_and(|v| !v.is_empty() && v != "0") {
        let shown: Vec<_> = tool.command.iter().chain(words).map(|w| shell_word(w)).collect();
        eprintln!("{}: {}", driver.name(), shown.join(" "));
    }
    command
}

fn cannot_run(driver: SourceLanguage, tool: &Toolchain, e: &std::io::Error) -> Error {
    Error(format!(
        "cannot run the compiler '{}': {e}; set {} to a compiler",
        tool.command[0].to_string_lossy(),
        driver.variable()
    ))
}

/// Becomes the compiler, so that signals and its status need no forwarding. Returns on failure
/// only.
fn exec(driver: SourceLanguage, tool: &Toolchain, words: &[OsString]) -> Result<u8, Error> {
    let e = command(driver, tool, words).exec();
    Err(cannot_run(driver, tool, &e))
}

fn spawn(driver: SourceLanguage, tool: &Toolchain, words: &[OsString]) -> Result<u8, Error> {
    let long = if length(words) < response::LONG { None } else { Some(Scratch::new(0)?) };
    let status = match &long {
        None => command(driver, tool, words).status(),
        Some(scratch) => {
            let file = scratch.0.join("args");
            response::write(&file, words)
                .map_err(|e| Error(format!("cannot write the response file '{}': {e}", file.display())))?;
            let mut at = OsString::from("@");
            at.push(file);
            command(driver, tool, &[at]).status()
        }
    };
    Ok(code_of(status.map_err(|e| cannot_run(driver, tool, &e))?))
}

/// A status as a shell gives it.
fn code_of(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        (None, None) => 1,
    }
}

fn shell_word(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Finds homenode's own files; the library must be there for a link.
fn find_places(needs_library: bool) -> Result<OwnFiles, Error> {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let own_dir = own.as_ref().ok().and_then(|exe| exe.parent());
    let include_dir =
        candidates("HOMENODE_INCLUDE_DIR", own_dir, &["../include/homenode", "../include", "../../include"])
            .into_iter()
            .find(|dir| dir.join("homenode.h").is_file())
            .and_then(|dir| std::fs::canonicalize(dir).ok());
    if !needs_library {
        return Ok(OwnFiles { lib_dir: None, include_dir });
    }
    let file = format!("lib{TRACE_LIBRARY}.so");
    let looked = candidates("HOMENODE_LIB_DIR", own_dir, &[".", "../lib/homenode", "../lib"]);
    let lib_dir = looked
        .iter()
        .find(|dir| dir.join(&file).is_file())
        .and_then(|dir| std::fs::canonicalize(dir).ok())
        .ok_or_else(|| {
            if let (Err(e), true) = (&own, looked.is_empty()) {
                return Error(format!(
                    "cannot find {file}, which the program is linked with: reading the link /proc/self/exe: {e}; mount \
                     /proc (as root: mount -t proc proc /proc), or set HOMENODE_LIB_DIR to its folder"
                ));
            }
            let tried: Vec<_> = looked.iter().map(|d| d.display().to_string()).collect();
            Error(format!(
                "cannot find {file}, which the program is linked with; looked in {}; set HOMENODE_LIB_DIR to its folder \
                 (in homenode's source tree it is made by 'cargo build --release' and lies in target/release)",
                tried.join(", ")
            ))
        })?;
    Ok(OwnFiles { lib_dir: Some(lib_dir), include_dir })
}

/// The folder that a variable names, or else those beside this program; none where its place is
/// not known.
fn candidates(variable: &str, own_dir: Option<&Path>, relative: &[&str]) -> Vec<PathBuf> {
    match (std::env::var_os(variable).filter(|v| !v.is_empty()), own_dir) {
        (Some(dir), _) => vec![dir.into()],
        (None, Some(own)) => relative.iter().map(|r| own.join(r)).collect(),
        (None, None) => Vec::new(),
    }
}

/// A folder of our own for objects, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(subfolders: usize) -> Result<Self, Error> {
        let base = std::env::temp_dir();
        for attempt in 0..100_u32 {
            let dir = base.join(format!("homenode-cc-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {
                    let scratch = Scratch(dir);
                    for index in 0..subfolders {
                        let sub = scratch.0.join(index.to_string());
                        std::fs::create_dir(&sub)
                            .map_err(|e| Error(format!("cannot make the folder '{}': {e}", sub.display())))?;
                    }
                    return Ok(scratch);
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(Error(format!(
                        "cannot make the folder '{}': {e}; set TMPDIR",
                        dir.display()
                    )));
                }
            }
        }
        Err(Error(format!("cannot find a free name for a folder in '{}'; set TMPDIR", base.display())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning of its folder for temporary
        // files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
