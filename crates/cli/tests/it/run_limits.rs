//! `homenode run` where something is in its way: a tool of another, privileges, another
//! architecture, a container, a cpuset. The program runs as it would without, and a sentence says
//! what could not be done.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use homenode_model::Bytes;
use homenode_wire::facts::Facts;
use homenode_wire::settings::{self, MachineNodes, Settings};

use crate::container;
use crate::run::{SERIAL, live, number};
use crate::support::{fresh, homenode, instrumented, outcome, plain};

fn json(file: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// What homenode said that it could not do, in one text.
fn could_not(json: &serde_json::Value) -> String {
    json["processes"][0]["could_not"].to_string()
}

/// Two threads on two pretended nodes, without judging whether it pays.
const PRETEND: [&str; 8] =
    ["--json", "--summary", "report.json", "--force", "--pretend-nodes", "2", "--threads", "2"];

/// What a program of two threads prints, and its status, by itself.
fn alone(dir: &Path, program: &str) -> (Option<i32>, String) {
    let ran = Command::new(dir.join(program)).env("OMP_NUM_THREADS", "2").arg("5").output().unwrap();
    (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
}

/// A tool as profilers are: it counts the regions, and writes both numbers down when libomp ends.
const TOOL: &str = r#"
#include <stdio.h>
typedef void (*any)(void);
typedef any (*lookup)(const char *);
struct result { int (*initialize)(lookup, int, void *); void (*finalize)(void *); unsigned long data; };
static long begun, ended;
static void begin(void) { __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED); }
static void end(void) { __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED); }
static int initialize(lookup find, int device, void *data) {
    int (*set)(int, any) = (int (*)(int, any))find("ompt_set_callback");
    int (*get)(int, any *) = (int (*)(int, any *))find("ompt_get_callback");
    any mine = 0;
    (void)device, (void)data;
    set(3, begin);
    set(4, end);
    /* libomp 14 knows of none before the tool has started. */
    return get(3, &mine) == 0 || mine == begin;
}
static void finalize(void *data) {
    FILE *f = fopen("tool.out", "w");
    (void)data;
    fprintf(f, "%ld %ld", begun, ended);
    fclose(f);
}
struct result *ompt_start_tool(unsigned version, const char *runtime) {
    static struct result r = {initialize, finalize, 0};
    (void)version, (void)runtime;
    return &r;
}
"#;

#[test]
fn a_tool_that_is_named_already_gets_its_events() {
    let dir = fresh("run-tool");
    let Some(_) = plain(&dir, "gnu", SERIAL) else { return };
    std::fs::write(dir.join("tool.c"), TOOL).unwrap();
    let build = |compiler: &str, words: &[&str]| {
        Command::new(compiler).args(words).current_dir(&dir).output().is_ok_and(|o| o.status.success())
    };
    assert!(build("gcc", &["-shared", "-fPIC", "-O1", "-o", "tool.so", "tool.c"]));
    if !build("clang", &["-O1", "-fopenmp", "-o", "serial", "gnu.c"]) {
        return println!("skipped: there is no clang with libomp");
    }
    let counted = |mut command: Command| {
        let _ = std::fs::remove_file(dir.join("tool.out"));
        command.current_dir(&dir).env("OMP_TOOL_LIBRARIES", dir.join("tool.so")).env("OMP_NUM_THREADS", "2");
        let (status, out, err) = outcome(&command.output().unwrap());
        (status, out, std::fs::read_to_string(dir.join("tool.out")).unwrap_or_default(), err)
    };
    let mut without = Command::new(dir.join("serial"));
    without.arg("5");
    let (status, want, tool, _) = counted(without);
    if tool.is_empty() {
        return println!("skipped: this libomp takes no tool");
    }
    assert_eq!((status, tool.as_str()), (Some(5), "24 24"));
    let mut with = homenode(&dir);
    with.arg("run").args(PRETEND).args(["--", "./serial", "5"]);
    let (status, out, tool, err) = counted(with);
    assert_eq!((status, out, tool.as_str()), (Some(5), want, "24 24"), "{err}");
    let report = json(&dir.join("report.json"));
    assert_eq!(number(&report, "region_runs"), 24, "each region once: {report:#}");
    assert!(number(&report, "pages_copied") > 0, "{report:#}");
}

#[test]
fn a_setuid_program_runs_as_it_is() {
    let dir = fresh("run-setuid");
    let Some(program) = plain(&dir, "serial", SERIAL) else { return };
    let want = alone(&dir, "serial");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let (status, out, err) =
        live(&dir, &["-v", "--pretend-nodes", "2", "--threads", "2", "--", "./serial", "5"]);
    assert_eq!((status, out), want, "{err}");
    assert!(err.contains("serial is setuid or setgid") && err.contains("it ran as it is"), "{err}");
}

#[test]
fn a_program_that_is_built_to_be_recorded_is_told_how_to_build_it() {
    let dir = fresh("run-recordable");
    let Some(_) = instrumented(&dir, "app", "int main(void) { return 3; }") else { return };
    let (status, _, err) = live(&dir, &["--pretend-nodes", "2", "--", "./app"]);
    assert_eq!(status, Some(3), "{err}");
    let said = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("app is built to be recorded") && said.contains("not homenode-cc"), "{err}");
}

#[test]
fn a_limit_of_the_address_space_is_the_first_that_is_told() {
    let dir = fresh("run-limited");
    let Some(_) = plain(&dir, "serial", SERIAL) else { return };
    let want = alone(&dir, "serial");
    for (option, why) in
        [("-v", "limited to 3906 MiB (ulimit -v)"), ("-d", "limited to 3906 MiB (ulimit -d)")]
    {
        let mut command = homenode(&dir);
        let limited = format!("ulimit {option} 4000000; exec ./serial 5");
        command.arg("run").args(PRETEND).args(["--", "sh", "-c", &limited]);
        let (status, out, err) = outcome(&command.output().unwrap());
        assert_eq!((status, out), want, "{err}");
        let report = json(&dir.join("report.json"));
        let first = report["processes"][0]["could_not"][0].as_str().unwrap_or_default();
        let says = "no next touch in this process: its address space is ";
        assert!(first.starts_with(says) && first.contains(why), "{report:#}");
        assert!(!could_not(&report).contains("this machine"), "{report:#}");
    }
}

/// A program for another architecture, of nothing but its head and a few bytes of code.
fn foreign(dir: &Path, name: &str, wide: bool, machine: u16, code: &[u8]) -> PathBuf {
    const BASE: u64 = 0x0804_8000;
    let (head, entry) = if wide { (64_u16, 56_u16) } else { (52, 32) };
    let start = u64::from(head + entry);
    let size = start + code.len() as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 1 + u8::from(wide), 1, 1];
    file.resize(16, 0);
    file.extend([2, 0]);
    file.extend(machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    let word = |file: &mut Vec<u8>, n: u64| {
        let bytes = n.to_le_bytes();
        file.extend(&bytes[..if wide { 8 } else { 4 }]);
    };
    word(&mut file, BASE + start);
    word(&mut file, head.into());
    word(&mut file, 0);
    file.extend(0_u32.to_le_bytes());
    [head, entry, 1, 0, 0, 0].iter().for_each(|n| file.extend(n.to_le_bytes()));
    // One segment: all of the file, to be read and executed.
    file.extend(1_u32.to_le_bytes());
    if wide {
        file.extend(5_u32.to_le_bytes());
    }
    [0, BASE, BASE, size, size].iter().for_each(|n| word(&mut file, *n));
    if !wide {
        file.extend(5_u32.to_le_bytes());
    }
    word(&mut file, 0x1000);
    file.extend(code);
    let path = dir.join(name);
    std::fs::write(&path, file).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_program_for_another_architecture_runs_if_the_system_can_run_it() {
    let dir = fresh("run-foreign");
    // _exit(3), by system call: on 32-bit x86, and on 64-bit Arm.
    let x86 = [0xb8, 1, 0, 0, 0, 0xbb, 3, 0, 0, 0, 0xcd, 0x80];
    let arm = [0x60, 0, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4];
    let programs = [foreign(&dir, "x86", false, 3, &x86), foreign(&dir, "arm", true, 183, &arm)];
    for path in programs {
        let name = path.file_name().unwrap().to_str().unwrap();
        let here = Command::new(&path).status();
        let (status, _, err) = live(&dir, &["--pretend-nodes", "2", "--", &format!("./{name}")]);
        match here {
            Ok(ran) => {
                assert_eq!((ran.code(), status), (Some(3), Some(3)), "{err}");
                assert!(err.contains(&format!("{name} is not a program for 64-bit x86")), "{err}");
            }
            Err(e) => {
                println!("{name} cannot be run here: {e}");
                assert_eq!(status, Some(126), "{err}");
                assert!(err.contains("cannot run") && err.contains("architecture"), "{err}");
            }
        }
    }
}

/// Runs homenode behind Docker's filter; `None`: skipped.
fn contained(dir: &Path, filter: &Path, words: &[&str]) -> Option<(Option<i32>, String, String)> {
    let mut command = Command::new(filter);
    command.arg(homenode(dir).get_program()).arg("run").args(words).current_dir(dir);
    let (status, out, err) = outcome(&command.output().unwrap());
    if out.starts_with("skipped") {
        println!("{out}");
        return None;
    }
    Some((status, out, err))
}

#[test]
fn behind_dockers_filter_nothing_is_copied_unasked() {
    let dir = fresh("run-container");
    let (Some(filter), Some(_)) = (container::filter(&dir), plain(&dir, "serial", SERIAL)) else { return };
    let want = alone(&dir, "serial");
    let run = |more: &[&str]| {
        let words = [&PRETEND[..], more, &["--", "./serial", "5"]].concat();
        let (status, out, err) = contained(&dir, &filter, &words)?;
        assert_eq!((status, out), want, "{more:?}: {err}");
        Some(json(&dir.join("report.json")))
    };
    let Some(report) = run(&[]) else { return };
    let said = could_not(&report);
    for sentence in [
        "no user-space page faults: userfaultfd",
        "pages cannot be moved by the kernel",
        "nothing was copied",
    ] {
        assert!(said.contains(sentence), "no `{sentence}` in {said}");
    }
    assert!(said.contains("EPERM") && number(&report, "arms") > 0, "{report:#}");
    assert_eq!(number(&report, "pages_copied"), 0);
    let Some(report) = run(&["--copy-unseen"]) else { return };
    assert!(number(&report, "pages_copied") > 0, "{report:#}");
    assert!(!could_not(&report).contains("nothing was copied"), "{report:#}");
    let Some(report) = run(&["--policy", "competitive"]) else { return };
    let said = could_not(&report);
    assert!(said.contains("source writes not used") && said.contains("source hinting not used"), "{said}");
}

/// The library in a program behind the filter, as the launcher of a machine with two nodes starts
/// it.
fn preloaded(dir: &Path, filter: &Path, copy_unseen: bool) -> (Output, Option<Facts>) {
    let reports = dir.join("reports");
    let _ = std::fs::remove_dir_all(&reports);
    std::fs::create_dir(&reports).unwrap();
    let settings = Settings {
        policy: "next-touch".into(),
        machine: MachineNodes::even(2, 1, Bytes::gib(1), 20),
        force: true,
        copy_unseen,
        ..Settings::default()
    };
    std::fs::write(reports.join(settings::FILE), homenode_wire::encode(&settings).unwrap()).unwrap();
    let library = Path::new(env!("CARGO_BIN_EXE_homenode")).with_file_name("libhomenode.so");
    let mut command = Command::new(filter);
    command.arg("/usr/bin/env").arg(format!("LD_PRELOAD={}", library.display()));
    command.args(["./serial", "5"]).current_dir(dir).env("OMP_NUM_THREADS", "2");
    command.env(settings::RUN_DIR, &reports);
    let output = command.output().unwrap();
    let left = std::fs::read_dir(&reports).unwrap().flatten();
    let left = left.filter(|e| e.file_name().to_string_lossy().starts_with("report."));
    let mut reports = left
        .map(|e| std::fs::read(e.path()).unwrap())
        .map(|bytes| homenode_wire::decode::<Facts>(&bytes).unwrap());
    (output, reports.find(|facts| facts.regions.runs > 0))
}

#[test]
fn behind_dockers_filter_real_nodes_are_left_alone_or_copied_to_if_asked() {
    let dir = fresh("run-container-nodes");
    let (Some(filter), Some(_)) = (container::filter(&dir), plain(&dir, "serial", SERIAL)) else { return };
    let want = alone(&dir, "serial");
    for copies in [false, true] {
        let (output, report) = preloaded(&dir, &filter, copies);
        let (status, out, err) = outcome(&output);
        if out.starts_with("skipped") {
            return println!("{out}");
        }
        assert_eq!((status, out), want.clone(), "{err}{report:?}");
        let report = report.expect("the program's report");
        let says = |words: &str| report.notes.iter().any(|n| n.starts_with(words));
        assert_eq!(report.counters.copies > 0, copies, "{report:?}");
        assert_eq!(says("blocks were not copied"), !copies, "{report:?}");
        assert!(says("no user-space page faults: userfaultfd"), "{report:?}");
    }
}

#[test]
fn nodes_that_a_cpuset_hides_are_told() {
    let dir = fresh("run-cpuset");
    let Some(_) = plain(&dir, "serial", SERIAL) else { return };
    let want = alone(&dir, "serial");
    // A machine with one node more than this process may use, in a name space of its own.
    let nodes = dir.join("nodes");
    let mine = homenode_runtime::nodes::Nodes::here();
    let (first, hidden) = (0, mine.usable().len());
    for (n, cpus) in [(first, "0-1"), (hidden, "500-501")] {
        let at = nodes.join(format!("node{n}"));
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("cpulist"), cpus).unwrap();
        std::fs::write(at.join("meminfo"), format!("Node {n} MemTotal: 1048576 kB\n")).unwrap();
        std::fs::write(at.join("distance"), "10 20\n").unwrap();
    }
    std::fs::write(nodes.join("online"), format!("{first},{hidden}\n")).unwrap();
    let script = "mount --bind nodes /sys/devices/system/node && exec \"$@\"";
    let within = |words: &[&str]| {
        let mut c = Command::new("unshare");
        c.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).args(words).current_dir(&dir);
        c.env("OMP_NUM_THREADS", "2").output()
    };
    if !within(&["true"]).is_ok_and(|o| o.status.success()) {
        return println!("skipped: no name space of its own to be had");
    }
    let own = homenode(&dir).get_program().to_str().unwrap().to_owned();
    let (status, out, err) = outcome(&within(&[&own, "run", "-v", "--", "./serial", "5"]).unwrap());
    assert_eq!((status, out), want, "{err}");
    assert!(err.contains(&format!("node {hidden} is hidden by the process's cpuset")), "{err}");
    assert!(err.contains("nothing to move, the program ran as it is"), "{err}");
}

#[test]
fn an_error_of_homenodes_own_is_told_with_its_place_and_the_program_goes_on() {
    let dir = fresh("run-error");
    let slow =
        "#include <stdio.h>\n#include <unistd.h>\nint main(void) { sleep(1); puts(\"here\"); return 5; }\n";
    let Some(_) = plain(&dir, "slow", slow) else { return };
    let mut command = homenode(&dir);
    command.arg("run").args(PRETEND).args(["--", "./slow"]).env("HOMENODE_RUN_FORCE_ERROR", "1");
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!((status, out.as_str()), (Some(5), "here\n"), "{err}");
    let told = "an error of homenode's own (crates/agent/src/force.rs:";
    assert!(err.contains(told) && err.contains("the program goes on"), "{err}");
    let stopped = json(&dir.join("report.json"))["processes"][0]["stopped"].to_string();
    assert!(stopped.contains(told), "{stopped}");
}

/// Allocates in a function, in a thread that is not the first, and goes on for a moment.
const FRAMES: &str = r#"
import threading
import time
def make():
    return bytearray(1 << 20)
kept = [make() for _ in range(4)]
other = threading.Thread(target=lambda: kept.append(bytearray(1 << 21)))
other.start()
other.join()
end = time.monotonic() + 1
while time.monotonic() < end:
    for k in kept:
        for at in range(0, len(k), 4096):
            k[at] = (k[at] + 1) % 251
print(len(kept), all(set(k[::4096]) == {k[0]} for k in kept))
"#;

#[test]
fn python_code_is_told_where_it_allocates() {
    let dir = fresh("run-frames");
    if !crate::support::compilers() {
        return;
    }
    std::fs::write(dir.join("frames.py"), FRAMES).unwrap();
    let mut command = homenode(&dir);
    command.arg("run").args(&PRETEND[..6]).args(["--policy", "presence", "--", "python3", "frames.py"]);
    let (status, out, err) = outcome(&command.env("HOMENODE_RUN_FORCE_ARM", "2").output().unwrap());
    if status == Some(127) {
        return println!("skipped: there is no python3");
    }
    assert_eq!((status, out.as_str()), (Some(0), "5 True\n"), "{err}");
    let report = json(&dir.join("report.json"));
    let processes = report["processes"].as_array().unwrap();
    let objects = || processes.iter().flat_map(|p| p["objects"].as_array().unwrap());
    let frames: Vec<String> = objects().filter_map(|o| Some(o["python"].as_str()?.to_owned())).collect();
    if frames.is_empty() && objects().count() > 0 && !exports_frames() {
        return println!("skipped: this interpreter does not show its functions");
    }
    assert!(
        frames.iter().any(|f| f.contains("frames.py:5 (make) < ") && f.contains("frames.py:6 (")),
        "{frames:?}"
    );
    // What another thread allocates has none: the first thread's would be wrong.
    let threads = objects().find(|o| o["bytes"].as_u64().unwrap() > 1 << 21).expect("the thread's array");
    assert!(threads["python"].is_null(), "{threads}");
}

/// Whether the interpreter is one of 3.9 or later.
fn exports_frames() -> bool {
    let words = ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"];
    Command::new("python3").args(words).status().is_ok_and(|s| s.success())
}

/// Of scikit-learn's OpenMP parts, with numbers that the order of sums does not touch.
const CLUSTERS: &str = r#"
import zlib
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
x = np.random.default_rng(7).normal(size=(40000, 24))
x[::3] += 4
k = KMeans(n_clusters=5, n_init=2, max_iter=25, random_state=3).fit(x)
print(k.n_iter_, "%.9g" % k.inertia_, zlib.crc32(k.labels_.tobytes()))
p = PCA(n_components=4, svd_solver="full").fit(x)
print(" ".join("%.9g" % v for v in p.explained_variance_))
h = HistGradientBoostingRegressor(max_iter=8, random_state=1).fit(x, x[:, 0] * 2 + x[:, 1])
print("%.9g" % h.predict(x[:1000]).sum())
"#;

/// Its packages, in a folder that is kept. `None`: skipped, with the reason printed.
fn scikit_learn() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scikit-learn");
    let python = venv.join("bin/python");
    let there =
        || Command::new(&python).args(["-c", "import sklearn"]).output().is_ok_and(|o| o.status.success());
    if there() {
        return Some(python);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output();
    if !made.as_ref().is_ok_and(|o| o.status.success()) {
        println!("skipped: no folder for Python packages can be made (python3 -m venv): {made:?}");
        return None;
    }
    let words = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "scikit-learn"];
    let got = Command::new(&python).args(words).output().unwrap();
    if !got.status.success() || !there() {
        println!("skipped: scikit-learn cannot be had: {}", outcome(&got).2);
        return None;
    }
    Some(python)
}

/// Downloads packages, and takes a minute.
#[test]
#[ignore = "downloads Python packages"]
fn scikit_learn_gives_the_same_results() {
    let dir = fresh("run-python");
    let Some(python) = scikit_learn() else { return };
    std::fs::write(dir.join("clusters.py"), CLUSTERS).unwrap();
    let python = python.to_str().unwrap();
    let run = |more: &[&str], every: Option<&str>| {
        let mut c = homenode(&dir);
        c.arg("run").args(["--json", "--summary", "report.json", "--threads", "2"]).args(more);
        c.envs(every.map(|ms| ("HOMENODE_RUN_FORCE_ARM", ms)));
        c.args(["--", python, "clusters.py"]).env("OPENBLAS_NUM_THREADS", "2");
        let (status, out, err) = outcome(&c.output().unwrap());
        assert_eq!(status, Some(0), "{more:?}: {err}");
        (out, json(&dir.join("report.json")))
    };
    // Python as it is.
    let mut plain = Command::new(python);
    plain.arg("clusters.py").current_dir(&dir).env("OMP_NUM_THREADS", "2").env("OPENBLAS_NUM_THREADS", "2");
    let (status, want, err) = outcome(&plain.output().unwrap());
    assert_eq!(status, Some(0), "alone: {err}");
    assert_eq!(want.lines().count(), 3, "{want}");
    let policies = crate::run_matrix::policies();
    for (policy, every) in policies.iter().flat_map(|p| [(p.as_str(), None), (p, Some("20"))]) {
        let words = ["--force", "--budget", "100%+100s", "--pretend-nodes", "2", "--policy", policy];
        let (out, report) = run(&words, every);
        assert_eq!(out, want, "{policy}, armed every {every:?} ms");
        println!(
            "{policy}, armed every {} ms: {} regions, {} arms, {} pages copied",
            every.unwrap_or("-"),
            number(&report, "region_runs"),
            number(&report, "arms"),
            number(&report, "pages_copied")
        );
        assert!(number(&report, "region_runs") > 0, "the wheels' own libgomp was not seen: {report:#}");
        if every.is_some() || ["next-touch", "next-touch=region"].contains(&policy) {
            assert!(number(&report, "pages_copied") > 0, "nothing was done to it: {report:#}");
        }
    }
}

/// Two arrays a round, each filled and read by both threads; the benchmark's program.
const ANEW: &str = include_str!("../../benches/anew/anew.c");

/// Runs `ANEW` for `rounds` rounds. Returns its sum and homenode's report.
fn anew(dir: &Path, by: &str, rounds: &str) -> (String, serde_json::Value) {
    let words = PRETEND.into_iter().filter(|w| *w != "--force");
    let words: Vec<&str> = words.chain(["--", "./anew", by, rounds, "1"]).collect();
    let (status, out, err) = live(dir, &words);
    assert_eq!(status, Some(0), "{err}");
    let (_, sum) = out.split_once(' ').unwrap_or_else(|| panic!("{out}"));
    (sum.to_owned(), json(&dir.join("report.json")))
}

#[test]
fn arrays_that_are_allocated_anew_are_armed_a_few_times_only() {
    let dir = fresh("run-anew");
    if plain(&dir, "anew", ANEW).is_none() {
        return;
    }
    for by in ["malloc", "mmap"] {
        for rounds in ["200", "1000"] {
            let by_itself = Command::new(dir.join("anew"))
                .args([by, rounds, "1"])
                .env("OMP_NUM_THREADS", "2")
                .output()
                .unwrap();
            let expected = String::from_utf8(by_itself.stdout).unwrap();
            let (sum, report) = anew(&dir, by, rounds);
            assert_eq!(Some(sum.as_str()), expected.split_once(' ').map(|(_, sum)| sum));
            // Three regions a round: to arm at each would be 600 and 3 000 times.
            let arms = number(&report, "arms");
            assert!(arms < 50, "{by}, {rounds} rounds: {arms} arms\n{report:#}");
        }
    }
}

#[test]
fn a_recording_replaces_nothing_that_is_there() {
    let dir = fresh("run-record-there");
    std::fs::create_dir(dir.join("old.hnrec")).unwrap();
    // Of a run, --force is about moves.
    let asked = ["run", "--force", "--record", "old.hnrec", "--", "/bin/true"];
    let (status, out, err) = outcome(&homenode(&dir).args(asked).output().unwrap());
    assert_eq!((status, out.as_str()), (Some(125), ""), "{err}");
    assert!(err.contains("cannot make the recording old.hnrec"), "{err}");
    assert!(err.contains("remove it, or name another place: --record REC"), "{err}");
    assert_eq!(std::fs::read_dir(dir.join("old.hnrec")).unwrap().count(), 0);
}
