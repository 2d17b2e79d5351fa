//! Compiles the test programs, runs them, and reads what their allocations were called from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use homenode_log::recording::Module;

/// A call stack of a large allocation.
#[derive(Clone, Debug)]
pub struct Allocation {
    pub bytes: u64,
    pub frames: Vec<u64>,
}

/// What a run left.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub allocations: Vec<Allocation>,
    pub modules: Vec<Module>,
}

/// Where the sources lie.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// A folder of this test's own.
pub fn folder(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("symbols-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether a compiler is there.
pub fn present(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// Compiles a source file; what the compiler says goes into the panic.
pub fn compile(compiler: &str, options: &[&str], source: &Path, to: &Path) {
    let mut command = Command::new(compiler);
    command.args(options).arg(source).arg("-o").arg(to).current_dir(to.parent().unwrap());
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// The library that writes down allocations.
fn preload() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = folder("preload").join("preload.so");
        compile("cc", &["-shared", "-fPIC", "-O1"], &sources().join("preload.c"), &path);
        path
    })
}

/// Runs a program.
pub fn run(program: &Path) -> Run {
    let to = program.with_extension("allocations");
    let out = Command::new(program).env("LD_PRELOAD", preload()).env("ALLOCATIONS", &to).output().unwrap();
    assert!(out.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&out.stderr));
    let text = fs::read_to_string(&to).unwrap();
    let mut run = Run::default();
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["alloc", bytes, frames @ ..] => run
                .allocations
                .push(Allocation { bytes: hex(bytes), frames: frames.iter().map(|f| hex(f)).collect() }),
            ["module", base, low, high, path @ ..] => run.modules.push(Module {
                index: run.modules.len() as u64,
                base: hex(base),
                low: hex(low),
                high: hex(high),
                path: path.join(" "),
            }),
            _ => panic!("{line}"),
        }
    }
    run
}
