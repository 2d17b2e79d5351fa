//! The same results under `homenode run` as without: kernels, OpenMP libraries, policies, on two
//! pretended nodes, with memory armed or moved every few milliseconds whatever anybody says. Rows
//! of the long test go to `target/run-matrix.csv`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_live::policies::section;
use serde_json::Value;

use crate::support::{compilers, fresh, homenode, outcome};

/// All that `homenode run` takes: those that its help lists, from the registry. (`plan` needs a
/// file and is not among them.)
pub fn policies() -> Vec<String> {
    let section = section();
    // What goes on below a name is further in.
    let lines = section.lines().filter_map(|l| l.strip_prefix("  ")).filter(|l| !l.starts_with(' '));
    let names: Vec<String> = lines.filter_map(|l| l.split(' ').next().map(str::to_owned)).collect();
    // Without `plan`, next touch in three ways.
    assert_eq!(names.len(), homenode_policy::POLICIES.len() + 1, "{names:?}");
    names
}

/// What the short test takes: one that arms, one that is told.
const FEW_POLICIES: [&str; 2] = ["next-touch", "competitive"];
const FEW: [&str; 2] = ["heat", "nas-cg"];
/// Only these kernels, by name with commas between, in the long test.
const ONLY: &str = "RUN_MATRIX_ONLY";
const HEADING: &str = "kernel,library,policy,arms,pages_copied,pages_moved,result";

/// What is left of a kernel's output without its times.
fn masked(out: &str) -> String {
    let timed = |line: &str| {
        ["an iteration:", "timed section:", "rounds:", "rate", "next touch:"]
            .iter()
            .any(|w| line.starts_with(w))
            || line.contains(" s,")
            || line.ends_with(" s")
            || line.contains("/s")
            || line.split_whitespace().count() == 2
                && line.split_whitespace().all(|w| w.parse::<f64>().is_ok())
    };
    out.lines().filter(|l| !timed(l)).collect::<Vec<_>>().join("\n")
}

/// A folder in which libomp goes by the name of libgomp: it runs what GCC has built.
pub fn libomp(dir: &Path) -> Option<PathBuf> {
    let known =
        ["/usr/lib/x86_64-linux-gnu/libomp.so.5", "/usr/lib/llvm-14/lib/libomp.so.5", "/usr/lib64/libomp.so"];
    let library = known.iter().map(Path::new).find(|p| p.exists())?;
    let folder = dir.join("libomp");
    std::fs::create_dir_all(&folder).ok()?;
    std::os::unix::fs::symlink(library, folder.join("libgomp.so.1")).ok()?;
    Some(folder)
}

/// An OpenMP library that kernels run on.
#[derive(Clone, Copy)]
struct Library<'a> {
    name: &'static str,
    /// Where it is, if not where the system has it.
    folder: Option<&'a Path>,
}

const LIBGOMP: Library<'static> = Library { name: "libgomp", folder: None };

/// What a run under homenode left.
struct Ran {
    status: Option<i32>,
    out: String,
    err: String,
    report: Value,
}

impl Ran {
    /// Over all processes.
    fn sum(&self, key: &str) -> u64 {
        let processes = self.report["processes"].as_array().unwrap();
        processes.iter().map(|p| p[key].as_u64().unwrap_or_else(|| panic!("no {key} in {p:#}"))).sum()
    }

    fn modules(&self) -> Vec<&str> {
        let processes = self.report["processes"].as_array().unwrap();
        processes.iter().flat_map(|p| p["modules"].as_array().unwrap()).map(|m| m.as_str().unwrap()).collect()
    }
}

/// The smallest class with an array that is large enough to be watched, and with some milliseconds
/// to do it in.
fn class(name: &str) -> &'static str {
    if ["heat", "lu", "sor"].contains(&name) { "W" } else { "S" }
}

/// Whether a kernel has anything that can be moved: all counters of `false-sharing` are on one
/// page.
fn can_be_moved(name: &str) -> bool {
    name != "false-sharing"
}

/// Runs a kernel with two threads.
fn start(command: &mut Command, library: Library<'_>) -> (Option<i32>, String, String) {
    if let Some(folder) = library.folder {
        command.env("LD_LIBRARY_PATH", folder);
    }
    let (status, out, err) = outcome(&command.output().unwrap());
    (status, masked(&out), err)
}

/// The kernel as it is: what it gives without anything of homenode's in it.
fn alone(dir: &Path, name: &str, library: Library<'_>) -> String {
    let mut c = homenode(dir);
    c.args(["kernel", "run", name, "--threads", "2", "--class", class(name)]);
    let (status, out, err) = start(&mut c, library);
    assert_eq!(status, Some(0), "{name} alone: {out}{err}");
    out
}

/// The kernel under a policy, armed at intervals given in milliseconds.
fn with_homenode(dir: &Path, name: &str, policy: &str, library: Library<'_>, every: &str) -> Ran {
    let mut c = homenode(dir);
    c.args(["run", "--threads", "2", "--class", class(name), "--json", "--summary", "matrix.json"]);
    c.args(["--force", "--budget", "100%+100s", "--pretend-nodes", "2", "--policy", policy]);
    c.env("HOMENODE_RUN_FORCE_ARM", every).arg(format!("kernel:{name}"));
    if policy == "next-touch=asked" {
        c.args(["--", "--next-touch"]);
    }
    // Not that of the run before.
    let _ = fs::remove_file(dir.join("matrix.json"));
    let (status, out, err) = start(&mut c, library);
    let text =
        fs::read_to_string(dir.join("matrix.json")).unwrap_or_else(|e| panic!("no report: {e}: {err}"));
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text} {err}"));
    Ran { status, out, err, report }
}

/// How often a kernel is run whose end came before anything was forced: on a busy machine
/// milliseconds pass quickly.
const TRIES: usize = 10;

/// Something was done to the program, or that its results are the same says nothing. Forced: what
/// policies decide themselves is for their own tests, and those that need counts (out-*, in-w)
/// decide nothing where nothing counts.
fn was_disturbed(with: &Ran) -> bool {
    with.sum("arms") > 0 && with.sum("pages_copied") + with.sum("pages_moved_by_kernel") > 0
}

/// The program ended as alone, with the same output.
fn is_right(with: &Ran, alone: &str) -> bool {
    with.status == Some(0) && with.out == alone
}

/// The kernel ran on this library, and on no other.
fn ran_on(library: Library<'_>, with: &Ran) {
    let file =
        |m: &str| Path::new(m).file_name().is_some_and(|f| f.to_string_lossy().starts_with("libgomp.so"));
    let loaded: Vec<&str> = with.modules().into_iter().filter(|m| file(m)).collect();
    assert!(!loaded.is_empty(), "{:?}", with.modules());
    for module in loaded {
        assert_eq!(
            library.folder,
            Path::new(module).parent().filter(|_| library.folder.is_some()),
            "{module}"
        );
        let real = fs::canonicalize(module).unwrap().display().to_string();
        assert_eq!(real.contains("libomp"), library.name == "libomp", "{real}");
    }
}

/// All runs of one kernel with one library: a row for each, and what was wrong.
fn compare(
    dir: &Path,
    name: &str,
    library: Library<'_>,
    policies: &[impl AsRef<str>],
) -> (Vec<String>, Vec<String>) {
    let alone = alone(dir, name, library);
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for policy in policies.iter().map(AsRef::as_ref) {
        let mut with = with_homenode(dir, name, policy, library, "1");
        for _ in 1..TRIES {
            // Once more only where nothing was armed in time, and all else was as it has to be.
            if !(is_right(&with, &alone) && with.sum("region_runs") > 0)
                || was_disturbed(&with)
                || !can_be_moved(name)
            {
                break;
            }
            // Some kernels are over in a millisecond.
            with = with_homenode(dir, name, policy, library, "0.1");
        }
        let same = is_right(&with, &alone);
        if !same {
            wrong.push(format!(
                "{name}, {policy}: {:?}\n{}\n{}\nalone:\n{}",
                with.status, with.out, with.err, alone
            ));
        }
        let report = || format!("{name}, {policy}: {}{:#}", with.err, with.report);
        assert!(with.sum("region_runs") > 0, "{}", report());
        assert_eq!(was_disturbed(&with), can_be_moved(name), "{}", report());
        ran_on(library, &with);
        rows.push(format!(
            "{name},{},{policy},{},{},{},{}",
            library.name,
            with.sum("arms"),
            with.sum("pages_copied"),
            with.sum("pages_moved"),
            if same { "same" } else { "different" }
        ));
    }
    (rows, wrong)
}

fn all_the_same(dir: &Path, name: &str, library: Library<'_>) {
    let (_, wrong) = compare(dir, name, library, &FEW_POLICIES);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_few_kernels_give_the_same_results() {
    let dir = fresh("matrix-few");
    if !compilers() {
        return;
    }
    for name in FEW {
        all_the_same(&dir, name, LIBGOMP);
    }
}

#[test]
fn a_kernel_on_libomp_gives_the_same_results() {
    let dir = fresh("matrix-libomp");
    if !compilers() {
        return;
    }
    let Some(folder) = libomp(&dir) else {
        return println!("skipped: there is no libomp (it comes with clang)");
    };
    all_the_same(&dir, "heat", Library { name: "libomp", folder: Some(&folder) });
}

#[test]
fn a_kernel_in_fortran_gives_the_same_results() {
    let dir = fresh("matrix-fortran");
    if !compilers() {
        return;
    }
    if Command::new("gfortran").arg("--version").output().is_err() {
        return println!("skipped: there is no gfortran");
    }
    all_the_same(&dir, "nas-mg", LIBGOMP);
}

/// Puts rows in the place of former ones of the same kernel and library.
fn keep(name: &str, library: &str, rows: &[String]) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../run-matrix.csv");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let others = before.lines().skip(1).filter(|l| !l.starts_with(&format!("{name},{library},")));
    let mut all: Vec<&str> = others.chain(rows.iter().map(String::as_str)).collect();
    // Within a kernel and library as they were made.
    all.sort_by_key(|l| l.split(',').take(2).collect::<Vec<_>>());
    fs::write(path, format!("{HEADING}\n{}\n", all.join("\n"))).unwrap();
}

/// Minutes: only in the long tests.
#[test]
#[ignore = "minutes"]
fn all_kernels_give_the_same_results_with_both_libraries() {
    let dir = fresh("matrix");
    if !compilers() {
        return;
    }
    let list = outcome(&homenode(&dir).args(["kernel", "list", "--json"]).output().unwrap()).1;
    let json: Value = serde_json::from_str(&list).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let only = std::env::var(ONLY).unwrap_or_default();
    let names = rows.iter().map(|r| r["kernel"].as_str().unwrap().trim_start_matches("kernel:"));
    let names: Vec<&str> = names.filter(|n| only.is_empty() || only.split(',').any(|o| o == *n)).collect();
    let folder = libomp(&dir);
    if folder.is_none() {
        println!("skipped: libomp is not here");
    }
    let other = folder.as_deref().map(|f| Library { name: "libomp", folder: Some(f) });
    let (mut runs, mut wrong) = (0, Vec::new());
    for library in std::iter::once(LIBGOMP).chain(other) {
        for name in &names {
            let (rows, different) = compare(&dir, name, library, &policies());
            keep(name, library.name, &rows);
            runs += rows.len();
            wrong.extend(different);
        }
    }
    println!("{runs} runs of {} kernels, {} not the same", names.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
