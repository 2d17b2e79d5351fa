//! Every program of the corpus, built plainly and through the drivers, must write the same and end the same.

use crate::manifest::{self, Program};
use crate::support::{Ended, compiler, driver, exists, fresh_dir, is_recorder, recorder_dir, root, run};
use homenode_log::file::LogReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

const BUILD: Duration = Duration::from_secs(120);
const RUN: Duration = Duration::from_secs(60);

#[test]
fn instrumented_programs_behave_as_plain_ones() {
    let programs = manifest::read();
    let mut jobs: Vec<(&Program, &str)> = Vec::new();
    for program in &programs {
        for family in &program.compilers {
            let compiler = compiler(family, &program.language);
            if exists(compiler) {
                jobs.push((program, family));
            } else {
                println!("skipped: {} with {compiler}: it is not installed", program.file);
            }
        }
    }
    assert!(!jobs.is_empty(), "no compiler at all");
    let total = jobs.len();
    let queue = Mutex::new(jobs);
    let failures = Mutex::new(Vec::new());
    let dir = fresh_dir("corpus");
    std::thread::scope(|scope| {
        // Two: builds are short, and other work shares the machine.
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((program, family)) = queue.lock().unwrap().pop() else {
                        return;
                    };
                    if let Err(why) = check(program, family, &dir) {
                        failures.lock().unwrap().push(format!("{} with {family}: {why}", program.file));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {total} fail:\n{}", failures.len(), failures.join("\n"));
}

/// One program and one family of compilers: plain against driven, with each OpenMP library.
fn check(program: &Program, family: &str, dir: &Path) -> Result<(), String> {
    let stem = program.file.replace(['/', '.'], "_");
    let base = dir.join(format!("{stem}-{family}"));
    let compiler = compiler(family, &program.language);
    let plain = Builder { program, base: base.join("plain"), command: &|| Command::new(compiler) };
    let driven = Builder {
        program,
        base: base.join("driven"),
        command: &|| {
            let mut driver = driver(&program.language, compiler);
            driver.env("HOMENODE_LIB_DIR", recorder_dir());
            driver
        },
    };
    // GCC: objects, then one link for each OpenMP library. clang: one command, which the driver splits.
    let mut variants = vec![Variant::OneCommand];
    if family == "gcc" {
        variants = vec![Variant::Objects];
        if program.has_openmp() && libomp_dir().is_some() {
            variants.push(Variant::Libomp);
        }
    }
    for variant in variants {
        let expected = plain.build_and_run(variant, None).map_err(|e| format!("plain, {variant:?}: {e}"))?;
        let ends = expected.code.ok_or(expected.signal.unwrap_or(0));
        if ends != program.ends {
            return Err(format!("plain, {variant:?}: ends with {ends:?}, not {:?}", program.ends));
        }
        let got = driven.build_and_run(variant, None).map_err(|e| format!("{variant:?}: {e}"))?;
        if (got.code, got.signal, &got.stdout) != (expected.code, expected.signal, &expected.stdout) {
            return Err(format!("{variant:?}:\n expected {expected:?}\n got      {got:?}"));
        }
        if is_recorder() {
            let recording = base.join(format!("{variant:?}.rec"));
            std::fs::create_dir_all(recording.join("threads")).unwrap();
            std::fs::write(recording.join("status"), [b'\n'; 4096]).unwrap();
            let got = driven.build_and_run(variant, Some(&recording))?;
            if (got.code, got.signal, &got.stdout) != (expected.code, expected.signal, &expected.stdout) {
                return Err(format!("{variant:?}, recorded:\n expected {expected:?}\n got      {got:?}"));
            }
            check_logs(&recording, program.ends.is_ok())
                .map_err(|e| format!("{variant:?}: recording: {e}"))?;
        }
    }
    Ok(())
}

/// Every log must be readable and free of contradictions, and whole unless a signal killed the program.
fn check_logs(recording: &Path, whole: bool) -> Result<(), String> {
    let mut records = 0;
    for entry in std::fs::read_dir(recording.join("threads")).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        let mut log = LogReader::open(&path).map_err(|e| e.to_string())?;
        let (report, damage) = homenode_log::check::check(&mut log);
        records += report.records;
        if let Some(damage) = damage {
            return Err(damage.to_string());
        }
        if !report.problems.is_empty() {
            return Err(format!("{}: {}", path.display(), report.problems.join("; ")));
        }
        if whole && !report.complete {
            return Err(format!("{}: has no end", path.display()));
        }
    }
    if whole && records == 0 { Err("nothing was recorded".into()) } else { Ok(()) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// Compile and link at once.
    OneCommand,
    /// An object, then a link with the compiler's own OpenMP library.
    Objects,
    /// The same object linked with LLVM's OpenMP library, which has GCC's entry points, too.
    Libomp,
}

struct Builder<'a> {
    program: &'a Program,
    base: PathBuf,
    command: &'a dyn Fn() -> Command,
}

impl Builder<'_> {
    /// A compiler in this build's own folder: Fortran modules are written to the current one.
    fn start(&self) -> Command {
        let mut command = (self.command)();
        command.current_dir(&self.base);
        command
    }

    fn build_and_run(&self, variant: Variant, recording: Option<&Path>) -> Result<Ended, String> {
        std::fs::create_dir_all(&self.base).unwrap();
        let program = self.program;
        let source = root().join("tests/programs").join(&program.file);
        let exe = self.base.join(format!("{variant:?}"));
        let mut argument = None;
        if let Some(library) = &program.library {
            let file = self.base.join("libplugin.so");
            if !file.exists() {
                let source = root().join("tests/programs").join(library);
                let mut c = self.start();
                built(c.args(&program.flags).args(["-fPIC", "-shared", "-o"]).arg(&file).arg(source))?;
            }
            argument = Some(file);
        }
        let mut link = self.start();
        match variant {
            Variant::OneCommand => {
                link.args(&program.flags).arg("-o").arg(&exe).arg(&source);
            }
            Variant::Objects | Variant::Libomp => {
                let object = self.base.join("main.o");
                if !object.exists() {
                    let mut c = self.start();
                    built(c.args(&program.flags).arg("-c").arg("-o").arg(&object).arg(&source))?;
                }
                let libomp = variant == Variant::Libomp;
                link.args(program.flags.iter().filter(|f| !libomp || *f != "-fopenmp"));
                link.arg("-o").arg(&exe).arg(&object);
                if let (true, Some(dir)) = (libomp, libomp_dir()) {
                    link.arg(format!("-L{dir}")).arg(format!("-Wl,-rpath,{dir}")).args(["-lomp", "-pthread"]);
                }
            }
        }
        if recording.is_none() {
            built(link.args(&program.libs))?;
        }
        let mut child = Command::new(&exe);
        // A program that aborts may leave a core file: not in the source tree.
        child.args(argument).current_dir(&self.base);
        // Spinning threads would fight for the few cores of a test machine.
        child.env("OMP_WAIT_POLICY", "passive").env("OMP_DYNAMIC", "false");
        if let Some(recording) = recording {
            child.env("HOMENODE_TRACE_DIR", recording);
        }
        if program.threads > 0 {
            child.env("OMP_NUM_THREADS", program.threads.to_string());
        }
        Ok(run(&mut child, RUN))
    }
}

fn built(command: &mut Command) -> Result<(), String> {
    let ended = run(command, BUILD);
    if ended.ok() { Ok(()) } else { Err(format!("does not build: {command:?}\n{}", ended.stderr)) }
}

/// The folder of LLVM's OpenMP library, if clang knows one.
fn libomp_dir() -> Option<&'static str> {
    static DIR: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    DIR.get_or_init(|| {
        if !exists("clang") {
            println!("skipped: libomp under GCC's objects: clang is not installed to say where it is");
            return None;
        }
        let ended = run(Command::new("clang").arg("-print-file-name=libomp.so"), BUILD);
        let dir = Path::new(ended.stdout.trim()).parent()?.to_str()?.to_owned();
        (!dir.is_empty()).then_some(dir)
    })
    .as_deref()
}
