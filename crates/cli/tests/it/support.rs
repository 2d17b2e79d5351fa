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

/// A program that runs for as long as the file `go` is there, at most two minutes, and ends with 7.
pub const WAITS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    double *grid = malloc(sizeof *grid << 18);
    for (int round = 0; round < 12000 && access("go", F_OK) == 0; round++) {
#pragma omp parallel for
        for (int i = 0; i < 1 << 18; i++) grid[i] += i;
        usleep(10000);
    }
    puts("the program's own line");
    return grid[3] >= 0 ? 7 : 1;
}
"#;

/// Requires files of this profile's build, which cargo does not make for a test: commands and
/// libraries that programs under test run or load.
///
/// # Panics
/// One is missing, or a source is newer than it is.
pub fn built(names: &[&str]) {
    let folder = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    for name in names {
        let file = folder.join(name);
        let build = format!("run 'cargo build --workspace --locked{release}' first");
        let Ok(made) = changed(&file) else { panic!("{} is missing: {build}", file.display()) };
        // Cargo lists the sources beside what it makes.
        let list = std::fs::read_to_string(file.with_extension("d")).unwrap_or_default();
        let sources = list.split_once(": ").map_or("", |(_, sources)| sources);
        for source in sources.split_ascii_whitespace().map(Path::new) {
            let is_older = changed(source).is_ok_and(|time| time > made);
            assert!(!is_older, "{} is older than {}: {build}", file.display(), source.display());
        }
    }
}

fn changed(file: &Path) -> std::io::Result<std::time::SystemTime> {
    std::fs::metadata(file)?.modified()
}

/// Whether programs can be compiled, and homenode's compilers and libraries are there; says why a
/// test is skipped.
pub fn compilers() -> bool {
    static BUILT: OnceLock<()> = OnceLock::new();
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !there("gcc") {
        eprintln!("skipped: there is no gcc");
        return false;
    }
    BUILT.get_or_init(|| {
        built(&[
            "libhomenode.so",
            "libhomenode_loops.so",
            "libhomenode_trace.so",
            "homenode-cc",
            "homenode-cxx",
        ]);
    });
    true
}

/// A C program of `source`, built to be recorded; `None`: skipped.
pub fn instrumented(dir: &Path, name: &str, source: &str) -> Option<PathBuf> {
    instrumented_by("gcc", dir, name, source)
}

/// The same by a compiler of this name.
pub fn instrumented_by(compiler: &str, dir: &Path, name: &str, source: &str) -> Option<PathBuf> {
    compilers().then(|| {
        let cc = Path::new(env!("CARGO_BIN_EXE_homenode")).with_file_name("homenode-cc");
        compile(Command::new(cc).env("HOMENODE_CC", compiler), dir, name, source)
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
