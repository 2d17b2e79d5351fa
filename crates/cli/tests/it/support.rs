//! Folders, homenode, and programs that can be recorded.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// An empty folder for one test, which no other test of this run may have.
pub fn fresh(name: &str) -> PathBuf {
    static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let first = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    assert!(first, "two tests have the folder {name}: each deletes the other's files");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// homenode, in a folder, without a terminal.
pub fn homenode(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homenode"));
    // Cargo's library path is not what a user has.
    command.current_dir(dir).stdin(Stdio::null()).env_remove("LD_LIBRARY_PATH");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["OMP_", "GOMP_", "KMP_", "HOMENODE_", "XDG_"].iter().any(|p| name.starts_with(p)) {
            command.env_remove(name);
        }
    }
    command
}

/// Status, standard output, standard error.
pub fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs homenode with words.
pub fn run(dir: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    outcome(&homenode(dir).args(words).output().unwrap())
}

/// Whether homenode's compilers and libraries are there, built now if need be; says why a test is
/// skipped.
pub fn compilers() -> bool {
    static BUILT: OnceLock<bool> = OnceLock::new();
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !there("gcc") {
        eprintln!("skipped: there is no gcc");
        return false;
    }
    *BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--quiet",
            "-p",
            "homenode-tracer",
            "-p",
            "homenode-agent",
            "-p",
            "homenode-compilers",
        ]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().is_ok_and(|s| s.success());
        assert!(built, "the recorder does not build");
        true
    })
}

/// A C program of `source`, built to be recorded; `None`: skipped.
pub fn instrumented(dir: &Path, name: &str, source: &str) -> Option<PathBuf> {
    compilers().then(|| {
        let cc = Path::new(env!("CARGO_BIN_EXE_homenode")).with_file_name("homenode-cc");
        compile(Command::new(cc).env_remove("HOMENODE_CC"), dir, name, source)
    })
}

/// A C program as it is; `None`: skipped.
pub fn plain(dir: &Path, name: &str, source: &str) -> Option<PathBuf> {
    compilers().then(|| compile(&mut Command::new("gcc"), dir, name, source))
}

fn compile(compiler: &mut Command, dir: &Path, name: &str, source: &str) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source).unwrap();
    let output = compiler.args(["-O1", "-fopenmp", "-o"]).args([&program, &file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}
