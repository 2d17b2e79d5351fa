//! `homenode record --on live`: programs as they are, sampled while they run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{fresh, homenode, outcome, plain, run};

/// Two threads, on the first and the last CPU, each owns a half of an array that the first one initialises. Rounds, or for ever.
const HALVES: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { BYTES = 8 << 20 };
static char *array;
static double seconds;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void pin(long me) {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    int cpus[2] = { -1, -1 };
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all)) { if (cpus[0] < 0) cpus[0] = c; cpus[1] = c; }
    CPU_ZERO(&one);
    CPU_SET(cpus[me], &one);
    if (sched_setaffinity(0, sizeof one, &one)) exit(99);
}
static void *own(void *p) {
    long me = (long)p;
    pin(me);
    for (double begin = now(); now() - begin < seconds;)
        for (char *c = array + me * BYTES / 2; c < array + (me + 1) * BYTES / 2; c += 64) (*(volatile char *)c)++;
    return 0;
}
int main(int argc, char **argv) {
    seconds = atof(argv[1]);
    array = malloc(BYTES);
    memset(array, 1, BYTES);
    if (argc > 2) {
        pthread_t t[2];
        for (long i = 0; i < 2; i++) if (pthread_create(t + i, 0, own, (void *)i)) return 98;
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    } else {
        #pragma omp parallel for num_threads(2) schedule(static, 1)
        for (long i = 0; i < 2; i++) own((void *)i);
    }
    puts("done");
    return 7;
}
"#;

const BYTES: u64 = 8 << 20;

fn command(dir: &Path, words: &str) -> Command {
    let mut command = homenode(dir);
    // Reports lie beside the test's other files.
    command.args(words.split(' ')).env("TMPDIR", dir);
    command
}

/// Where the program lies; `None`: the test is skipped.
fn ready(name: &str) -> Option<PathBuf> {
    let dir = fresh(name);
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: there is one CPU");
        return None;
    }
    plain(&dir, "halves", HALVES)?;
    Some(dir)
}

/// Draws of the array by page and node.
fn draws(recording: &Path) -> BTreeMap<u64, [u64; 2]> {
    let read = |name: &str| fs::read_to_string(recording.join(name)).unwrap();
    let objects = read("objects.csv");
    let of = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let array = objects.lines().skip(1).map(of).find(|f| f[3] == BYTES.to_string()).expect(&objects);
    let start = hex(&array[2]);
    let mut draws: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    let rows = read("sightings.csv");
    assert_eq!(rows.lines().next(), Some("process,address,home,node,kind,told,object"));
    for f in rows.lines().skip(1).map(of).filter(|f| f[6] == array[0]) {
        let node: usize = f[3].parse().unwrap();
        // The middle of the page, for the array begins somewhere in one.
        draws.entry(hex(&f[1]) + 2048 - start).or_default()[node] += f[5].parse::<u64>().unwrap();
    }
    draws
}

/// The owner of a place in the array is the thread that has its half.
fn owners_agree(recording: &Path) {
    let draws = draws(recording);
    let right = draws.iter().filter(|(at, by)| (by[1] > by[0]) == (**at >= BYTES / 2)).count();
    assert!(draws.len() >= 40, "{draws:?}");
    assert!(right * 100 >= draws.len() * 95, "{right} of {}: {draws:?}", draws.len());
    let second = draws.range(BYTES / 2..).count();
    assert!((draws.len() / 4..=draws.len() * 3 / 4).contains(&second), "both halves are seen: {draws:?}");
}

#[test]
fn pages_are_seen_with_those_who_own_them() {
    let Some(dir) = ready("record-live") else { return };
    let words = "record --on live --source blocks --pretend-nodes 2 -o r -- ./halves 2";
    let (status, out, err) = outcome(&command(&dir, words).output().unwrap());
    assert_eq!((status, out.as_str()), (Some(7), "done\n"), "the program's own: {err}");
    assert!(err.contains("recorded (presence): r,") && err.contains("homenode show r"), "{err}");
    owners_agree(&dir.join("r"));
    let about = fs::read_to_string(dir.join("r/live.json")).unwrap();
    let about: serde_json::Value = serde_json::from_str(&about).unwrap();
    assert_eq!((about["kind"].as_str(), about["one_in"].as_u64()), (Some("presence"), None), "{about}");
    let process = &about["processes"][0];
    assert!(process["watched_bytes"].as_u64() >= Some(BYTES), "{about}");
    assert!(process["state_bytes"].as_u64() < Some(1 << 20), "{about}");

    let (code, out, err) = run(&dir, &["show", "r", "--csv"]);
    assert_eq!(code, Some(0), "{err}");
    let mut lines = out.lines().filter(|l| l.contains(",8192,"));
    let array: Vec<&str> = lines.next().unwrap_or_else(|| panic!("{out}")).rsplitn(9, ',').collect();
    assert!(array[6].is_empty(), "presence has no count of accesses: {out}");
    assert!(array[1].parse::<u64>().unwrap() >= 40 && array[3].starts_with("0:"), "{out}");
    let (code, out, _) = run(&dir, &["show", "r"]);
    assert!(
        code == Some(0) && out.contains("presence (order only)") && out.contains("not how often"),
        "{out}"
    );
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(0) && out.contains("presence (order only)") && out.contains("whole"), "{out}{err}");
    for words in
        [&["compare", "r"][..], &["plan", "r", "-m", "epyc-nps4", "-o", "p"], &["show", "r", "-m", "sf15k"]]
    {
        let (code, _, err) = run(&dir, words);
        assert_eq!(code, Some(2), "{words:?}: {err}");
        assert!(err.contains("counts by page and node, not a trace"), "{words:?}: {err}");
    }
    damage_is_told(&dir);
}

/// Of each file of the recording `r`.
fn damage_is_told(dir: &Path) {
    let told = |name: &str, change: &dyn Fn(&str) -> String| {
        let path = dir.join("r").join(name);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, change(&whole)).unwrap();
        let (code, out, err) = run(dir, &["rec", "check", "r"]);
        assert!(code == Some(3) && out.contains("r is damaged"), "{name}: {out}{err}");
        let (code, _, err) = run(dir, &["show", "r"]);
        assert!(code == Some(125) && err.contains("r is damaged"), "{name}: {code:?} {err}");
        fs::write(&path, whole).unwrap();
    };
    told("sightings.csv", &|text| text.lines().take(20).map(|l| format!("{l}\n")).collect());
    told("sightings.csv", &|text| text.replacen(",0,0,-,", ",0,9,-,", 1));
    told("sightings.csv", &|text| text.replacen(",-,", ",x,", 1));
    told("objects.csv", &|text| text[..text.find('\n').unwrap() + 1].to_owned());
    told("live.json", &|text| text.replacen("presence", "exact", 1));
    let (code, ..) = run(dir, &["rec", "check", "r"]);
    assert_eq!(code, Some(0));
}

#[test]
fn threads_without_regions_are_seen_and_so_is_what_a_shell_starts() {
    let Some(dir) = ready("record-live-threads") else { return };
    let mut command = command(&dir, "record --source blocks --pretend-nodes 2 --quiet -o r -- sh -c");
    let (status, out, err) = outcome(&command.arg("./halves 2 threads; exit 3").output().unwrap());
    assert_eq!((status, out.as_str(), err.as_str()), (Some(3), "done\n", ""));
    owners_agree(&dir.join("r"));
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(code, Some(0), "{out}{err}");
}

/// A file that a live process of the run has left by now, with something seen.
fn left(dir: &Path) -> bool {
    let folders = fs::read_dir(dir).unwrap().flatten().filter(|e| e.path().is_dir());
    let mut files = folders.flat_map(|e| fs::read_dir(e.path()).into_iter().flatten().flatten());
    files.any(|f| {
        f.file_name().to_string_lossy().starts_with("touched.")
            && fs::read_to_string(f.path()).is_ok_and(|text| text.contains("\nseen "))
    })
}

#[test]
fn an_interrupted_run_leaves_what_was_seen() {
    let Some(dir) = ready("record-live-interrupted") else { return };
    let mut command =
        command(&dir, "record --on live --source blocks --pretend-nodes 2 -o r -- ./halves 1000");
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !left(&dir) && begin.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // As a terminal does it: to all of the group.
    let group = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
    assert!(killed.success());
    let (status, out, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((status, out.as_str()), (Some(130), ""), "{err}");
    assert!(err.contains("recorded in part (presence)") && err.contains("incomplete"), "{err}");
    let draws = draws(&dir.join("r"));
    assert!(draws.iter().all(|(at, by)| (by[1] > by[0]) == (*at >= BYTES / 2)), "{draws:?}");
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(3) && out.contains("whole") && out.contains("recorded in part"), "{out}{err}");
    let (code, out, err) = run(&dir, &["show", "r"]);
    assert!(code == Some(3) && out.contains("recorded in part"), "{out}{err}");
    // It can be replaced like any other.
    let words = "record --on live --source blocks --pretend-nodes 2 --force -o r -- ./halves 0";
    let (status, out, err) = outcome(&self::command(&dir, words).output().unwrap());
    assert_eq!((status, out.as_str()), (Some(7), "done\n"), "{err}");
    let (code, out, _) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(3) && out.contains("empty: nothing was seen") || code == Some(0), "{out}");
    assert!(!left(&dir), "no report stays behind");
}

#[test]
fn a_program_as_it_is_is_sampled_where_there_are_nodes() {
    let Some(dir) = ready("record-live-default") else { return };
    let (code, _, err) = run(&dir, &["record", "-o", "r", "--", "./halves", "0"]);
    // On one node there is nothing to tell apart.
    let refused =
        code == Some(125) && err.contains("built with homenode-cc") && err.contains("--pretend-nodes 2");
    let sampled =
        code == Some(7) && err.contains("it is sampled while it runs") && err.contains("--on emulator");
    assert!(refused || sampled, "{err}");
    assert_eq!(dir.join("r").exists(), sampled);
    for (words, why) in [
        ("record --on host --source blocks -- ./halves 0", "--on live"),
        ("record --on live --filter none -- ./halves 0", "--filter is for"),
        ("record --source regions -- ./halves 0", "tells nothing"),
        ("record --pretend-nodes 2 -- mpirun ./halves 0", "mpirun … homenode record"),
    ] {
        let (code, _, err) = outcome(&command(&dir, words).output().unwrap());
        assert!(code == Some(125) && err.contains(why), "{words}: {code:?} {err}");
    }
    let (code, _, err) = outcome(&command(&dir, "record --pretend-nodes 2 -- ./nothing").output().unwrap());
    assert_eq!(code, Some(127), "{err}");
    assert!(
        fs::read_dir(&dir).unwrap().flatten().all(|e| !e.file_name().to_string_lossy().ends_with(".hnrec"))
    );
}
