//! `homenode run`: programs that nobody built anew, on pretended nodes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compilers, fresh, homenode, outcome, plain};

/// Initialised by one thread, used by all; prints a sum that shows lost updates. The bounds allow
/// for a slow machine, and the rounds for the recognition of the iteration.
pub const SERIAL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int n = 1 << 19;
    double *a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = i;
    double s = 0;
    for (int it = 0; it < 12; it++) {
#pragma omp parallel for
        for (int i = 0; i < n; i++) a[i] += 1;
#pragma omp parallel for reduction(+:s) schedule(dynamic, 1000)
        for (int i = 0; i < n; i++) s += a[i];
    }
    printf("%.17g\n", s);
    free(a);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

/// A plug-in that sums over a team: `omp_get_num_threads` and the barrier must be of the copy that
/// made the team. Its array is used for some milliseconds.
const PLUGIN: &str = r#"
#include <omp.h>
#include <stdlib.h>
enum { N = 1 << 17, ROUNDS = 60 };
long plugin(int threads, long *sum) {
    long s = 0;
    long *a = malloc(N * sizeof *a);
    for (long i = 0; i < N; i++) a[i] = i;
    for (int r = 0; r < ROUNDS; r++) {
        s = 0;
#pragma omp parallel num_threads(threads) reduction(+:s)
        {
#pragma omp for
            for (long i = 0; i < N; i++) a[i] += r;
#pragma omp barrier
            s += omp_get_thread_num() + 100 * omp_get_num_threads();
        }
    }
    *sum = 0;
    for (long i = 0; i < N; i++) *sum += a[i];
    free(a);
    return s;
}
"#;

/// Loads two plug-ins, each with its own libgomp, as Python loads packages.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    for (int round = 0; round < 3; round++)
        for (int which = 1; which <= 2; which++) {
            char name[32];
            sprintf(name, "./plugin%d.so", which);
            void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (!h) { puts(dlerror()); return 1; }
            long sum, team = ((long (*)(int, long *))dlsym(h, "plugin"))(1 + which, &sum);
            printf("%ld %ld\n", team, sum);
        }
    return 0;
}
"#;

/// Counts how often the loader is asked what lies at an address; regions, barriers and loops of
/// several places in turn.
const SITES: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int asked;
int dladdr(const void *address, Dl_info *info) {
    __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    return ((int (*)(const void *, Dl_info *))dlsym(RTLD_NEXT, "dladdr"))(address, info);
}
int main(void) {
    long s = 0;
    for (int it = 0; it < 1000; it++) {
#pragma omp parallel reduction(+:s)
        {
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 4; i++) s += i;
#pragma omp barrier
            s++;
        }
#pragma omp parallel for reduction(+:s)
        for (int i = 0; i < 4; i++) s += i;
    }
    printf("%ld %s\n", s, asked < 200 ? "few" : "many");
    return 0;
}
"#;

pub fn live(dir: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    outcome(&homenode(dir).arg("run").args(words).output().unwrap())
}

pub fn number(json: &serde_json::Value, key: &str) -> u64 {
    json["processes"][0][key].as_u64().unwrap_or_else(|| panic!("no {key} in {json}"))
}

/// Runs a program with two threads on two pretended nodes under a policy; what it printed, its
/// status, and the report.
fn pretend(dir: &Path, program: &str, policy: &str) -> (String, Option<i32>, serde_json::Value) {
    let words = [
        "--json",
        "--force",
        "--summary",
        "report.json",
        "--policy",
        policy,
        "--pretend-nodes",
        "2",
        "--threads",
        "2",
        "--",
        program,
        "5",
    ];
    let (status, out, err) = live(dir, &words);
    let report = std::fs::read_to_string(dir.join("report.json")).unwrap();
    let json = serde_json::from_str(&report).unwrap_or_else(|e| panic!("{e}: {report} {err}"));
    (out, status, json)
}

fn same_result_and_pages_moved(dir: &Path, program: &str) {
    let alone = Command::new(dir.join(program)).env("OMP_NUM_THREADS", "2").arg("5").output().unwrap();
    let want = String::from_utf8(alone.stdout).unwrap();
    for policy in ["next-touch", "next-touch=region", "round-robin", "block"] {
        let (out, status, json) = pretend(dir, program, policy);
        assert_eq!((out.as_str(), status), (want.as_str(), Some(5)), "{policy}");
        assert_eq!((json["schema"].as_str(), number(&json, "region_runs")), (Some("homenode/run/2"), 24));
        if policy.starts_with("next-touch") {
            for key in ["arms", "faults", "pages_copied", "rounds"] {
                assert!(number(&json, key) > 0, "{policy}: {key} in {json:#}");
            }
        } else {
            assert!(number(&json, "pages_moved") > 400, "{policy}: {json:#}");
        }
    }
}

#[test]
fn a_program_of_libgomp_gives_the_same_result() {
    let dir = fresh("run-libgomp");
    let Some(_) = plain(&dir, "serial", SERIAL) else { return };
    same_result_and_pages_moved(&dir, "./serial");
}

#[test]
fn a_program_of_libomp_gives_the_same_result() {
    let dir = fresh("run-libomp");
    let Some(_) = plain(&dir, "unused", SERIAL) else { return };
    let built = Command::new("clang")
        .args(["-O1", "-fopenmp", "-o", "serial", "unused.c"])
        .current_dir(&dir)
        .output();
    if !built.is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: there is no clang with libomp");
        return;
    }
    same_result_and_pages_moved(&dir, "./serial");
}

/// A copy of libgomp under another name, as Python's wheels have it.
fn private_libgomp(dir: &Path, name: &str) -> Option<PathBuf> {
    let asked = Command::new("gcc").arg("-print-file-name=libgomp.so.1").output().ok()?;
    let path = std::fs::canonicalize(String::from_utf8(asked.stdout).ok()?.trim()).ok()?;
    let bytes = std::fs::read(path).ok()?;
    // Its own name, of the same length, so that the loader takes the two for two libraries.
    let at = bytes.windows(12).position(|w| w == b"libgomp.so.1")?;
    let mut renamed = bytes;
    renamed[at..at + 12].copy_from_slice(name.as_bytes());
    std::fs::write(dir.join(name), renamed).ok()?;
    Some(dir.join(name))
}

#[test]
fn two_private_libgomps_each_get_their_own_teams() {
    let dir = fresh("run-private");
    let Some(_) = plain(&dir, "host", HOST) else { return };
    std::fs::write(dir.join("plugin.c"), PLUGIN).unwrap();
    for (which, name) in ["libgompA.s.1", "libgompB.s.1"].iter().enumerate() {
        let Some(copy) = private_libgomp(&dir, name) else {
            eprintln!("skipped: there is no libgomp to copy");
            return;
        };
        let out = format!("plugin{}.so", which + 1);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-fopenmp", "-shared", "-fPIC", "-c", "plugin.c", "-o", "plugin.o"]);
        assert!(gcc.current_dir(&dir).status().unwrap().success());
        let mut link = Command::new("gcc");
        link.args(["-shared", "-o", &out, "plugin.o"]).arg(copy).arg("-Wl,-rpath,$ORIGIN");
        assert!(link.current_dir(&dir).status().unwrap().success());
    }
    // The host itself must not bring a libgomp into the global scope.
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-o", "host", "host.c", "-ldl"]);
    assert!(gcc.current_dir(&dir).status().unwrap().success());
    // 2 threads: 0 + 1 + 2·200; 3 threads: 0 + 1 + 2 + 3·300. The array: 0 … N - 1, and 0 … 59 for
    // each.
    let sum = (1_u64 << 17) * ((1 << 17) - 1) / 2 + (1 << 17) * (59 * 60 / 2);
    let want = format!("401 {sum}\n903 {sum}\n").repeat(3);
    for policy in crate::run_matrix::policies() {
        let mut c = homenode(&dir);
        c.args(["run", "--json", "--summary", "private.json", "--pretend-nodes", "2", "--policy", &policy]);
        c.args(["--budget", "100%+60s", "--", "./host"]).env("HOMENODE_RUN_FORCE_ARM", "1");
        let (status, out, err) = outcome(&c.output().unwrap());
        assert_eq!((status, &out), (Some(0), &want), "{policy}: {err}");
        let json = std::fs::read_to_string(dir.join("private.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(number(&json, "region_runs"), 6 * 60, "{policy}: {json:#}");
        assert!(number(&json, "arms") > 0 && number(&json, "pages_copied") > 0, "{policy}: {json:#}");
        let modules = json["processes"][0]["modules"].to_string();
        assert!(modules.contains("/libgompA.s.1") && modules.contains("/libgompB.s.1"), "{modules}");
    }
}

/// A launcher that would be found and leaves a file.
fn launchers_are_not_started(dir: &Path) {
    let (bin, started) = (dir.join("bin"), dir.join("started"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("srun"), format!("#!/bin/sh\ntouch '{}'\n", started.display())).unwrap();
    std::fs::set_permissions(bin.join("srun"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let with_it = |mut command: Command| outcome(&command.env("PATH", &path).output().unwrap());
    let mut alone = Command::new("env");
    alone.args(["srun", "./serial"]);
    assert_eq!(with_it(alone).0, Some(0));
    std::fs::remove_file(&started).expect("it is what is found");
    for words in
        [&["srun", "-n", "2", "./serial"][..], &["env", "X=1", "nice", "-n", "1", "srun", "./serial"]]
    {
        let mut command = homenode(dir);
        command.args(["run", "--"]).args(words);
        let (status, out, err) = with_it(command);
        assert_eq!((status, out.as_str()), (Some(125), ""), "{words:?}");
        assert!(err.contains("srun … homenode run -- APP"), "{words:?}: {err}");
        assert!(!started.exists(), "{words:?}: it was started");
    }
}

#[test]
fn what_cannot_be_helped_runs_unharmed_and_is_told() {
    let dir = fresh("run-hostile");
    let Some(_) = plain(&dir, "serial", SERIAL) else { return };
    let mut gcc = Command::new("gcc");
    gcc.args(["-static", "-O1", "-fopenmp", "-o", "static", "serial.c"]).current_dir(&dir);
    if gcc.output().is_ok_and(|o| o.status.success()) {
        let mut alone = Command::new(dir.join("static"));
        let (_, want, _) = outcome(&alone.arg("7").env("OMP_NUM_THREADS", "2").output().unwrap());
        let (status, out, err) =
            live(&dir, &["-v", "--pretend-nodes", "2", "--threads", "2", "--", "./static", "7"]);
        assert!(!want.is_empty());
        assert_eq!((status, out), (Some(7), want), "{err}");
        assert!(err.contains("linked statically"), "{err}");
    } else {
        println!("skipped: gcc cannot link OpenMP statically");
    }
    std::fs::write(dir.join("quiet.c"), "int main(void) { return 4; }").unwrap();
    assert!(
        Command::new("gcc").args(["-o", "quiet", "quiet.c"]).current_dir(&dir).status().unwrap().success()
    );
    let (status, _, err) = live(&dir, &["--pretend-nodes", "2", "--", "./quiet"]);
    assert!(status == Some(4) && err.contains("no parallel region was seen"), "{status:?} {err}");
    // The shell ends by _exit.
    let (status, out, err) = live(&dir, &["--pretend-nodes", "2", "--", "sh", "-c", "echo hi; exit 4"]);
    assert_eq!((status, out.as_str()), (Some(4), "hi\n"), "{err}");
    assert!(err.contains("no process left a report"), "{err}");
    launchers_are_not_started(&dir);
    let (status, _, err) = live(&dir, &["--policy", "nxt-touch", "--", "./serial"]);
    assert!(status == Some(125) && err.contains("did you mean 'next-touch'?"), "{err}");
    assert_eq!(live(&dir, &["--", "./no-such-program"]).0, Some(127));
    assert_eq!(live(&dir, &["--pretend-nodes", "2", "--", "sh", "-c", "kill -9 $$"]).0, Some(137));
}

/// Every page of the array is written by one of two threads, again and again, for a second or two.
const STEADY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int n = 1 << 18;
    double *a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = i;
    for (int it = 0; it < 3000; it++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) a[i] += 1;
    }
    double s = 0;
    for (int i = 0; i < n; i++) s += a[i];
    printf("%.17g\n", s);
    free(a);
    return 0;
}
"#;

#[test]
fn policies_that_are_told_decide_what_their_journals_replay() {
    let dir = fresh("run-told");
    let Some(_) = plain(&dir, "steady", STEADY) else { return };
    for (policy, source) in [
        ("competitive", "auto"),
        ("competitive", "blocks"),
        ("presence", "auto"),
        ("daemon", "auto"),
        ("out-w", "auto"),
    ] {
        let journals = dir.join(format!("{policy}-{source}"));
        let mut words =
            vec!["--pretend-nodes", "2", "--threads", "2", "--bind", "--json", "--summary", "told.json"];
        words.extend(["--budget", "100%+60s", "--journal", journals.to_str().unwrap()]);
        words.extend(["--policy", policy, "--source", source, "--", "./steady"]);
        let (status, out, err) = live(&dir, &words);
        // The sum of 0 … n - 1, and 3000 for each.
        let n = f64::from(1 << 18);
        let want = n * (n - 1.0) / 2.0 + 3000.0 * n;
        assert_eq!((status, out.trim().parse::<f64>()), (Some(0), Ok(want)), "{policy}: {err}");
        let report = std::fs::read_to_string(dir.join("told.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&report).unwrap();
        let process = &json["processes"][0];
        let said = process["watched"]["source"].as_str().unwrap();
        assert!(said.contains("presence") || said.contains("sampled"), "{said}");
        if policy == "out-w" && said.contains("presence") {
            let notes = process["could_not"].to_string();
            assert!(notes.contains("needs counts of accesses"), "{notes}");
            assert_eq!(number(&json, "pages_moved"), 0);
        }
        let files: Vec<_> = std::fs::read_dir(&journals).unwrap().flatten().map(|e| e.path()).collect();
        assert_eq!(files.len(), 1, "{policy}: a journal for the one process");
        let checked = homenode(&dir).args(["rec", "replay-policy"]).arg(&files[0]).output().unwrap();
        let (status, out, err) = outcome(&checked);
        assert!(status == Some(0) && out.contains("yes"), "{policy}: {out}{err}");
    }
    let (status, _, err) = live(&dir, &["--source", "pebs", "--", "./steady"]);
    assert!(status == Some(125) && err.contains("pmu"), "{status:?} {err}");
}

/// A static array, written by one thread and used by two.
const STATIC: &str = r#"
#include <stdio.h>
enum { N = 1 << 17 };
double table[N];
int main(void) {
    for (int i = 0; i < N; i++) table[i] = i;
    for (int it = 0; it < 8; it++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) table[i] += 1;
    }
    double s = 0;
    for (int i = 0; i < N; i++) s += table[i];
    printf("%.17g\n", s);
    return 0;
}
"#;

#[test]
fn static_arrays_are_seen_behind_wrappers_and_named() {
    let dir = fresh("run-static");
    let Some(_) = plain(&dir, "static", STATIC) else { return };
    let n = f64::from(1 << 17);
    let want = format!("{}\n", n * (n - 1.0) / 2.0 + 8.0 * n);
    for command in [
        &["./static"][..],
        &["env", "X=1", "./static"],
        &["sh", "-c", "./static"],
        // The shell stays, and has a report of its own or none.
        &["sh", "-c", "./static && true"],
    ] {
        let mut words = vec!["--json", "--summary", "static.json", "--force"];
        words.extend(["--pretend-nodes", "2", "--threads", "2", "--"]);
        words.extend(command);
        let (status, out, err) = live(&dir, &words);
        assert_eq!((status, &out), (Some(0), &want), "{command:?}: {err}");
        let json = std::fs::read_to_string(dir.join("static.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let objects = json["processes"][0]["objects"].as_array().unwrap();
        let table = objects.iter().find(|o| o["name"] == "array table, static");
        let table = table.unwrap_or_else(|| panic!("{command:?}: {json:#}"));
        assert_eq!((table["bytes"].as_u64(), table["static"].as_bool()), (Some(1 << 20), Some(true)));
        let touched = table["touched_pages_by_node"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
        assert!(touched.sum::<u64>() > 0, "{command:?}: {table}");
    }
}

/// Calls that are there only if homenode is.
const ASKS: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
extern int hn_next_touch(const void *, size_t) __attribute__((weak));
extern int hn_iteration(uint32_t) __attribute__((weak));
int main(void) {
    int n = 1 << 18, accepted = 0;
    double *a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = i;
    for (int it = 0; it < 7; it++) {
        accepted += hn_iteration(it) == 0;
        if (it == 3) accepted += hn_next_touch(a, n * sizeof *a) == 0;
#pragma omp parallel for
        for (int i = 0; i < n; i++) a[i] += 1;
    }
    accepted += hn_iteration(7) == 0;
    printf("next touch: accepted %d\n7 iterations\n", accepted);
    return 0;
}
"#;

/// The same with the module, linked with the library.
const ASKS_IN_FORTRAN: &str = "
program asks
   use homenode, only: hn_iteration, hn_next_touch
   use iso_c_binding
   implicit none
   integer, parameter :: n = 2**18
   real(c_double), pointer :: a(:)
   integer :: i, it, accepted
   allocate (a(n))
   a = 1
   accepted = 0
   do it = 0, 6
      if (hn_iteration(it) == 0) accepted = accepted + 1
      if (it == 3) then
         if (hn_next_touch(c_loc(a), n*8_c_size_t) == 0) accepted = accepted + 1
      end if
!$omp parallel do
      do i = 1, n
         a(i) = a(i) + 1
      end do
   end do
   if (hn_iteration(7) == 0) accepted = accepted + 1
   print '(a, i0)', 'next touch: accepted ', accepted
   print '(a)', '7 iterations'
end program
";

/// Runs what calls `hn_iteration` and `hn_next_touch`, with nothing armed that it does not ask for,
/// and sees that both arrived.
fn says_and_is_heard(dir: &Path, subject: &[&str]) -> String {
    let mut words = vec!["--json", "--force", "--summary", "said.json", "--policy", "next-touch=asked"];
    words.extend(["--pretend-nodes", "2", "--threads", "2"]);
    words.extend(subject);
    let (status, out, err) = live(dir, &words);
    assert_eq!(status, Some(0), "{subject:?}: {out}{err}");
    assert!(out.contains("next touch: accepted"), "{subject:?}: {out}{err}");
    let json = std::fs::read_to_string(dir.join("said.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for key in ["arms", "faults", "pages_copied"] {
        assert!(number(&json, key) > 0, "{subject:?}: {key} in {json:#}");
    }
    let words: Vec<&str> = out.split([' ', '\n']).collect();
    let at = words.iter().position(|w| w.starts_with("iterations")).expect("how many iterations there were");
    let rounds: u64 = words[at - 1].parse().unwrap();
    // What is recognised is seen after two rounds: only those that are told are all.
    assert_eq!(number(&json, "rounds"), rounds, "{subject:?}: {json:#}");
    out
}

#[test]
fn kernels_tell_of_iterations_and_ask_for_next_touch() {
    let dir = fresh("run-kernels-say");
    if !compilers() {
        return;
    }
    says_and_is_heard(&dir, &["--class", "S", "kernel:nas-cg", "--", "--next-touch"]);
    if Command::new("gfortran").arg("--version").output().is_err() {
        eprintln!("skipped: there is no gfortran");
        return;
    }
    says_and_is_heard(&dir, &["--class", "S", "kernel:nas-mg", "--", "--next-touch"]);
}

#[test]
fn programs_in_c_and_fortran_tell_of_iterations_and_ask_for_next_touch() {
    let dir = fresh("run-programs-say");
    let Some(_) = plain(&dir, "asks", ASKS) else { return };
    assert!(says_and_is_heard(&dir, &["--", "./asks"]).starts_with("next touch: accepted 9\n"));
    if Command::new("gfortran").arg("--version").output().is_err() {
        eprintln!("skipped: there is no gfortran");
        return;
    }
    std::fs::write(dir.join("asks.f90"), ASKS_IN_FORTRAN).unwrap();
    let libraries = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    let mut fc = Command::new("gfortran");
    fc.current_dir(&dir).args(["-O1", "-fopenmp", "-o", "fortran"]);
    fc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fortran/homenode.f90")).arg("asks.f90");
    fc.arg("-L").arg(libraries).arg("-lhomenode").arg(format!("-Wl,-rpath,{}", libraries.display()));
    let built = fc.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(says_and_is_heard(&dir, &["--", "./fortran"]).starts_with("next touch: accepted 9\n"));
}

/// Where a call goes is looked up once for each place that it is made at: it costs more than a
/// region.
#[test]
fn a_call_site_is_looked_up_once() {
    let dir = fresh("run-sites");
    let Some(_) = plain(&dir, "sites", SITES) else { return };
    // Its own dladdr is to come before the C library's.
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fopenmp", "-rdynamic", "-o", "sites", "sites.c", "-ldl"]);
    assert!(gcc.current_dir(&dir).status().unwrap().success());
    let (out, status, report) = pretend(&dir, "./sites", "next-touch=asked");
    assert_eq!((out.as_str(), status), ("14000 few\n", Some(0)), "{report:#}");
    assert!(number(&report, "region_runs") >= 2000);
}
