//! Folders, child processes with a time limit, and the library to link with.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How a child ended and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn ok(&self) -> bool {
        self.code == Some(0)
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty folder for one test.
pub fn fresh_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs to the end, or kills after `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Ended {
    command.stdin(Stdio::null());
    run_with_stdin(command, limit)
}

pub fn run_with_stdin(command: &mut Command, limit: Duration) -> Ended {
    // Cargo's names folders in which a recorder may lie: programs must find the one that they were
    // linked with.
    let mut child = command
        .env_remove("LD_LIBRARY_PATH")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let out = read_aside(child.stdout.take().unwrap());
    let err = read_aside(child.stderr.take().unwrap());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{command:?} did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ended {
        code: status.code(),
        signal: status.signal(),
        stdout: out.join().unwrap(),
        stderr: err.join().unwrap(),
    }
}

/// Reads a pipe on a thread of its own, so that the child never waits for us.
fn read_aside(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether a compiler is there.
pub fn exists(compiler: &str) -> bool {
    Command::new(compiler)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// The folder of the library that the drivers link with.
pub fn lib_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        if let Some(dir) = std::env::var_os("HOMENODE_LIB_DIR") {
            return std::fs::canonicalize(dir).unwrap();
        }
        let dir = fresh_dir("standin");
        let ended = run(
            Command::new("gcc")
                .args(["-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-o"])
                .arg(dir.join("libhomenode_trace.so"))
                .arg(root().join("tests/standin/standin.c"))
                .arg("-latomic"),
            Duration::from_secs(60),
        );
        assert!(ended.ok(), "{}", ended.stderr);
        dir
    })
}

/// Whether [`lib_dir`] is the stand-in, whose counts a test can read.
pub fn is_standin() -> bool {
    std::env::var_os("HOMENODE_LIB_DIR").is_none()
}

/// A driver with `compiler` as the real compiler; `language` is c, c++ or fortran.
pub fn driver(language: &str, compiler: impl AsRef<OsStr>) -> Command {
    let (program, variable) = match language {
        "c" => (env!("CARGO_BIN_EXE_homenode-cc"), "HOMENODE_CC"),
        "c++" => (env!("CARGO_BIN_EXE_homenode-cxx"), "HOMENODE_CXX"),
        "fortran" => (env!("CARGO_BIN_EXE_homenode-fc"), "HOMENODE_FC"),
        other => panic!("no driver for {other}"),
    };
    let mut command = Command::new(program);
    command.env(variable, compiler).env("HOMENODE_LIB_DIR", lib_dir());
    command
}

/// What compiles a language in a family.
pub fn compiler(family: &str, language: &str) -> &'static str {
    match (family, language) {
        ("gcc", "c") => "gcc",
        ("gcc", "c++") => "g++",
        ("gcc", "fortran") => "gfortran",
        ("clang", "c") => "clang",
        ("clang", "c++") => "clang++",
        other => panic!("no compiler for {other:?}"),
    }
}

/// The folder of the real recorder, if this profile's build made it; the stand-in's otherwise.
pub fn recorder_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let here = std::env::current_exe().unwrap();
        let profile = here.parent().and_then(Path::parent).unwrap().to_owned();
        if std::env::var_os("HOMENODE_LIB_DIR").is_some() || !profile.join("libhomenode_trace.so").exists() {
            return lib_dir().to_owned();
        }
        profile
    })
}

/// Whether [`recorder_dir`] has the real recorder.
pub fn is_recorder() -> bool {
    recorder_dir() != lib_dir() || !is_standin()
}
