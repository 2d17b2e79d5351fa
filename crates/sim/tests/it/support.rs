//! Builds programs with homenode's compilers, records them, simulates the recordings.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use homenode_log::check::{ThreadReport, check};
use homenode_log::file::LogReader;
use homenode_model::{Bytes, Topology};
use homenode_order::{ProgramFacts, Trace, open};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::{Job, Results, run};

/// Threads of every recording that does not say otherwise.
pub const THREADS: usize = 4;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty folder of this test binary.
pub fn fresh_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sim-it").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Whether a program is there.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// The folder with this profile's compiler drivers and libraries.
pub fn tools() -> Result<&'static Path, String> {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let here = std::env::current_exe().unwrap();
        here.parent().and_then(Path::parent).unwrap().to_owned()
    });
    for file in ["homenode-cc", "homenode-fc", "libhomenode_trace.so", "libhomenode.so"] {
        if !dir.join(file).exists() {
            return Err(format!(
                "{} has no {file}: run 'cargo build' of the same profile first",
                dir.display()
            ));
        }
    }
    Ok(dir)
}

/// Runs a command that must succeed.
pub fn must(command: &mut Command) {
    let out = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    assert!(
        out.status.success(),
        "{command:?}: {}\n{}{}",
        out.status,
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Builds the kernels with one compiler and more flags into a folder of their own.
pub fn build_kernels(name: &str, compiler: &str, flags: &str) -> Result<PathBuf, String> {
    let tools = tools()?;
    for program in ["cmake", compiler, "gfortran"] {
        if !exists(program) {
            return Err(format!("{program} is not installed"));
        }
    }
    let dir = fresh_dir(&format!("kernels-{name}"));
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root().join("kernels")).arg("-B").arg(&dir);
    configure.arg(format!("-DHOMENODE_LIB_DIR={}", tools.display()));
    if !flags.is_empty() {
        for language in ["C", "Fortran"] {
            configure.arg(format!("-DCMAKE_{language}_FLAGS_RELEASE={flags}"));
        }
    }
    for command in [&mut configure, Command::new("cmake").arg("--build").arg(&dir).args(["-j", "2"])] {
        must(
            command
                .env("CC", tools.join("homenode-cc"))
                .env("FC", tools.join("homenode-fc"))
                .env("HOMENODE_CC", compiler)
                .env("HOMENODE_FC", "gfortran")
                .env("HOMENODE_LIB_DIR", tools),
        );
    }
    Ok(dir)
}

/// The kernels as they are built for users, built once.
pub fn kernels() -> Result<&'static Path, String> {
    static DIR: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    DIR.get_or_init(|| build_kernels("gcc", "gcc", "")).as_deref().map_err(Clone::clone)
}

/// A recording.
pub struct Recorded {
    /// Its folder.
    pub dir: PathBuf,
}

/// Runs `program` with a filter of `filter` lines (0: none) and records it.
pub fn record(name: &str, program: &Path, args: &[&str], filter: u32) -> Recorded {
    let dir = fresh_dir(&format!("{name}.rec"));
    std::fs::create_dir_all(dir.join("threads")).unwrap();
    std::fs::write(dir.join("status"), "").unwrap();
    must(
        Command::new(program)
            .args(args)
            .env("HOMENODE_TRACE_DIR", &dir)
            .env("HOMENODE_TRACE_FILTER", filter.to_string())
            // Threads that spin fight for the few cores of a test machine.
            .env("OMP_WAIT_POLICY", "passive")
            .env("OMP_DYNAMIC", "false")
            .env("OMP_NUM_THREADS", THREADS.to_string()),
    );
    let status = std::fs::read_to_string(dir.join("status")).unwrap();
    assert_eq!(status, "", "{name}");
    Recorded { dir }
}

impl Recorded {
    /// The threads' logs, in order.
    pub fn logs(&self) -> Vec<PathBuf> {
        let mut logs: Vec<PathBuf> =
            std::fs::read_dir(self.dir.join("threads")).unwrap().map(|e| e.unwrap().path()).collect();
        logs.sort();
        logs
    }

    /// What the checker says of each log, which must be whole and without contradictions.
    pub fn reports(&self) -> Vec<ThreadReport> {
        let one = |path: &PathBuf| {
            let (report, damage) = check(&mut LogReader::open(path).unwrap());
            assert!(damage.is_none(), "{damage:?}");
            assert!(report.problems.is_empty() && report.complete, "{}: {report:?}", path.display());
            report
        };
        self.logs().iter().map(one).collect()
    }

    /// Runs the jobs on `workers` host threads.
    pub fn simulate(&self, jobs: &[Job], workers: usize) -> (Trace, Vec<Outcome>) {
        let order = open(&self.logs(), ProgramFacts::default()).unwrap();
        let Results { trace, outcomes, .. } = run(order, jobs, &[], workers, |_| true).unwrap();
        assert_eq!((trace.cut_off, &trace.damage), (0, &None), "{}", self.dir.display());
        (trace, outcomes.into_iter().map(Result::unwrap).collect())
    }
}

/// sf15k with private caches of `mib` MiB in `ways` ways.
pub fn machine(mib: u64, ways: u32) -> Arc<Topology> {
    let mut machine = homenode_machine::preset("sf15k").unwrap().topology;
    machine.name = format!("sf15k with {mib} MiB");
    (machine.caches[0].size, machine.caches[0].ways) = (Bytes::mib(mib), ways);
    Arc::new(machine)
}

/// A job with one thread a node.
pub fn job(machine: &Arc<Topology>, policy: &str) -> Job {
    Job {
        machine: machine.clone(),
        binding: homenode_machine::spread(machine, THREADS).unwrap(),
        page: Bytes::kib(8),
        policy: policy.into(),
        way: None,
        options: MemoryOptions::default(),
    }
}
