//! Every program of the corpus, built plainly and through the drivers, must write the same and end
//! the same.

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
    // GCC: objects, then one link for each OpenMP library. clang: one command, which the driver
    // splits.
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

/// Every log must be readable and free of contradictions, and whole unless a signal killed the
/// program.
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

/// Lines touched in a recording's only log, by read and by write.
fn touched(recording: &Path) -> std::collections::BTreeSet<(u64, bool)> {
    let mut log = LogReader::open(&recording.join("threads/00000.hnlog")).unwrap();
    let mut lines = std::collections::BTreeSet::new();
    while let Some(record) = log.next_record().unwrap() {
        if let homenode_log::RecordKind::Access { line, write, .. } = record.what {
            lines.insert((line.0, write));
        }
    }
    lines
}

/// Rewritten code must record what the compiler's calls record: the same lines, and as many
/// accesses.
#[test]
fn rewritten_code_touches_what_calls_touch() {
    const SOURCE: &str = "
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int weight; short kind; char name[3]; };
static double grid[64][64], sums[64];
static int walk(const struct node *n, int depth) {
    int sum = 0;
    for (; n; n = n->next) sum += n->weight + n->kind + n->name[depth % 3];
    return depth ? sum + walk(n, depth - 1) : sum;
}
int main(void) {
    static struct node nodes[500];
    for (int i = 0; i < 499; i++) { nodes[i * 7 % 499].next = &nodes[(i + 1) * 7 % 499]; nodes[i].weight = i; nodes[i].name[i % 3] = 1; }
    nodes[498 * 7 % 499].next = 0;
    for (int r = 1; r < 63; r++) {
        for (int c = 1; c < 63; c++) { grid[r][c] += 0.25 * (grid[r - 1][c] + grid[r][c - 1]) + r; sums[c] += grid[r][c]; }
        if (sums[r] < 0) abort();
        switch (r % 5) { case 0: sums[r] *= 2; break; case 1: sums[r] -= 1; break; case 2: sums[63 - r] = 0; break; case 3: continue; default: grid[r][r] = 1; }
    }
    printf(\"%d %g\\n\", walk(&nodes[0], 3), sums[5]);
    return 0;
}";
    if !is_recorder() {
        println!("skipped: the recorder is not built: cargo build --release");
        return;
    }
    for compiler in ["gcc", "clang"].into_iter().filter(|c| exists(c)) {
        for level in
            ["-O0", "-O1", "-O2", "-O3", "-O2 -fno-asynchronous-unwind-tables", "-O3 -fno-plt -fno-pie"]
        {
            let dir = fresh_dir("touched");
            std::fs::write(dir.join("main.c"), SOURCE).unwrap();
            let mut results = Vec::new();
            for inline in ["0", "1"] {
                let mut command = driver("c", compiler);
                command
                    .current_dir(&dir)
                    .env("HOMENODE_LIB_DIR", recorder_dir())
                    .env("HOMENODE_CC_INLINE", inline);
                // At a fixed place, so that addresses can be compared; data only, as the code's
                // size differs.
                command.args(level.split(' ')).args([
                    "main.c",
                    "-no-pie",
                    "-Wl,-Tdata=0x10000000",
                    "-o",
                    "prog",
                ]);
                built(&mut command).unwrap();
                let recording = dir.join(format!("rec{inline}"));
                std::fs::create_dir_all(recording.join("threads")).unwrap();
                std::fs::write(recording.join("status"), [b'\n'; 4096]).unwrap();
                let mut child = Command::new(dir.join("prog"));
                let ended = run(child.env("HOMENODE_TRACE_DIR", &recording), RUN);
                assert!(ended.ok(), "{compiler} {level}: {ended:?}");
                check_logs(&recording, true).unwrap();
                let data = |(line, _): &(u64, bool)| (0x10000000 >> 6..0x20000000 >> 6).contains(line);
                let mut log = LogReader::open(&recording.join("threads/00000.hnlog")).unwrap();
                let accesses = homenode_log::check::check(&mut log).0.ticks;
                let lines: std::collections::BTreeSet<_> =
                    touched(&recording).into_iter().filter(data).collect();
                results.push((ended.stdout, accesses, lines));
            }
            assert!(results[0].2.len() > 500, "{compiler} {level}: only {} lines", results[0].2.len());
            assert_eq!(results[0].0, results[1].0, "{compiler} {level}");
            assert_eq!(results[0].1, results[1].1, "{compiler} {level}: accesses");
            let differ: Vec<_> = results[0].2.symmetric_difference(&results[1].2).collect();
            assert!(differ.is_empty(), "{compiler} {level}: {differ:x?}");
        }
    }
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
