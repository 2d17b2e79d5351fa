//! `record --on lab` and `compare --on lab`: what the monitor says, against what must be so.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use homenode_dataset::tables::{Access, Interval, Migration, Object, ObjectKind, Residency};
use homenode_dataset::{Basis, Dataset};
use homenode_model::AccessKind;

use crate::lab::{alone, nothing_left, there};
use crate::lab_homes::with_addresses;
use crate::support::{built, fresh, homenode, outcome, plain, run};

/// A cache of eight pages with a way each page: what a page's lines meet does not depend on where
/// the page lies.
const SMALL: &str = r#"
format = 1
name = "small"
about = "four nodes with a cache of one page a way"
link = { value = "50 GB/s", source = "test" }
page_sizes = { value = ["4 KiB"], source = "test" }
remote_cacheable = { value = true, source = "test" }
[[nodes]]
count = { value = 4, source = "test" }
cpus = { value = 1, source = "test" }
memory = { value = "128 MiB", source = "test" }
bandwidth = { value = "40 GB/s", source = "test" }
port = { value = "50 GB/s", source = "test" }
[latency]
shape = "groups"
groups = [4]
levels = ["100 ns", "200 ns"]
source = "test"
[[caches]]
level = 2
size = { value = "32 KiB", source = "test" }
line = { value = "64 B", source = "test" }
ways = { value = 8, source = "test" }
shared_by = { value = "cpu", source = "test" }
hit = { value = "3 ns", source = "test" }
[core]
access = { value = "0.5 ns", source = "test" }
outstanding = { value = 1, source = "test" }
[migration]
fixed = { value = "800 ns", source = "test" }
per_kib = { value = "93 ns", source = "test" }
shootdown = { value = "100 ns", source = "test" }
serialised = { value = false, source = "test" }
"#;

/// Thread i, on node i, reads block j, on node j, 1 + i + 2j times, each time every line of it.
const BLOCKS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { NODES = 4, PAGES = 16, PAGE = 4096, LINE = 64 };
#define MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000+" #code ::: "memory")
static char *block[NODES];
static pthread_barrier_t all;
static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) { perror("sched_setaffinity"); exit(99); }
}
static void *reader(void *arg) {
    long i = (long)arg;
    pin((int)i);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    for (int j = 0; j < NODES; j++)
        for (int k = 0; k < 1 + i + 2 * j; k++)
            for (volatile char *p = block[j], *end = p + PAGES * PAGE; p < end; p += LINE) (void)*p;
    pthread_barrier_wait(&all);
    return NULL;
}
int main(void) {
    for (int j = 0; j < NODES; j++) {
        unsigned long mask = 1ul << j;
        block[j] = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block[j] == MAP_FAILED || syscall(SYS_mbind, block[j], (long)PAGES * PAGE, 2, &mask, 64ul, 0)) {
            perror("mbind");
            return 99;
        }
        memset(block[j], 1, PAGES * PAGE);
    }
    pthread_t threads[NODES];
    pthread_barrier_init(&all, NULL, NODES + 1);
    for (long i = 0; i < NODES; i++) pthread_create(&threads[i], NULL, reader, (void *)i);
    pthread_barrier_wait(&all);
    MARK(1);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    MARK(2);
    for (int j = 0; j < NODES; j++) {
        void *pages[PAGES];
        int homes[PAGES];
        for (int p = 0; p < PAGES; p++) pages[p] = block[j] + p * PAGE;
        if (syscall(SYS_move_pages, 0, (long)PAGES, pages, NULL, homes, 0)) { perror("move_pages"); return 99; }
        printf("%p", (void *)block[j]);
        for (int p = 0; p < PAGES; p++) printf(" %d", homes[p]);
        printf("\n");
    }
    for (int i = 0; i < NODES; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

/// Requires what QEMU and the program load.
pub fn monitor() {
    built(&["libhomenode_monitor.so", "libhomenode_guest.so", "libhomenode.so"]);
}

/// Builds the program, and requires what QEMU and the program load; `None`: skipped.
fn ready(dir: &Path, name: &str, source: &str) -> Option<()> {
    fs::create_dir(dir).unwrap();
    if !there() {
        return None;
    }
    plain(dir, name, source)?;
    monitor();
    fs::write(dir.join("small.toml"), SMALL).unwrap();
    Some(())
}

/// `homenode` with the kernel that all tests share, and scratch files where they are looked for.
pub fn command(dir: &Path, words: &str) -> Command {
    let mut command = homenode(dir);
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME") {
        command.env("XDG_CACHE_HOME", cache);
    }
    command.env("TMPDIR", dir.parent().unwrap()).stdin(Stdio::null()).args(words.split(' '));
    command
}

/// What the program says of its blocks: address, and the homes of its pages by `move_pages`.
fn blocks(out: &str) -> Vec<(u64, Vec<u64>)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let address = hex(words.next().unwrap());
        (address, words.map(|w| w.parse().unwrap()).collect())
    };
    out.lines().map(line).collect()
}

/// Interval, home, loads, stores, by block, page, node.
type Counted = BTreeMap<(u64, u64, u64), (u64, u64, u64, u64)>;

fn counted(set: &Dataset, blocks: &[(u64, Vec<u64>)]) -> Counted {
    let mut counted = Counted::new();
    for (address, a) in with_addresses(set) {
        let Some(j) = blocks.iter().position(|(b, _)| (*b..b + 16 * 4096).contains(&address)) else {
            continue;
        };
        let (count, basis) = a.tally.count().unwrap().parts();
        assert_eq!(basis, Basis::Emulated);
        let page = (address - blocks[j].0) / 4096;
        let (interval, home) = (a.interval.0.into(), a.home.0.into());
        let row = counted.entry((j as u64, page, a.node.0.into())).or_insert((interval, home, 0, 0));
        assert_eq!((row.0, row.1), (interval, home), "a page is counted twice: {a:?}");
        *(if a.kind == Some(AccessKind::Read) { &mut row.2 } else { &mut row.3 }) += count;
    }
    counted
}

/// A block is twice the cache, so each line of it misses in each round: 64 lines a page. Each page
/// is where the kernel says.
fn expected(blocks: &[(u64, Vec<u64>)]) -> Counted {
    let mut want = Counted::new();
    for (j, page, i) in (0..4).flat_map(|j| (0..16).flat_map(move |p| (0..4).map(move |i| (j, p, i)))) {
        want.insert((j, page, i), (0, blocks[j as usize].1[page as usize], 64 * (1 + i + 2 * j), 0));
    }
    want
}

/// How long the controller of node 3 is busy with its block, in picoseconds: 16 pages of 64 lines,
/// read by thread i 7 + i times; a line at 40 GB/s takes 1.6 ns.
const CONTROLLER_3: u64 = 16 * 64 * (7 + 8 + 9 + 10) * 1600;

/// The only interval.
fn busiest(about: &str) -> serde_json::Value {
    let about: serde_json::Value = serde_json::from_str(about).unwrap();
    let intervals = about["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 1, "{about}");
    for cpu in about["cpus"].as_array().unwrap() {
        let [alone, time] = ["modelled_alone_ps", "modelled_ps"].map(|name| cpu[name].as_u64().unwrap());
        assert_eq!(
            time,
            alone.max(intervals[0]["busy_ps"].as_u64().unwrap()),
            "all CPUs read all blocks: {about}"
        );
    }
    intervals[0].clone()
}

const MACHINE: &str = "--machine ./small.toml --mem 128M --numa-balancing off --thp never -- ./blocks";

#[test]
fn the_monitor_counts_exactly_what_a_known_pattern_must_give() {
    let dir = fresh("lab-monitor").join("work");
    if ready(&dir, "blocks", BLOCKS).is_none() {
        return;
    }
    let _alone = alone();
    let words = format!("record --on lab -o r {MACHINE}");
    let (status, out, err) = outcome(&command(&dir, &words).output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    let blocks = blocks(&out);
    assert_eq!(blocks.len(), 4, "{out}");
    for (j, (_, homes)) in blocks.iter().enumerate() {
        assert_eq!(*homes, [j as u64; 16], "the kernel puts block {j} where it was asked to");
    }
    let set = Dataset::open(&dir.join("r")).unwrap();
    assert_eq!(counted(&set, &blocks), expected(&blocks), "{err}");
    assert_eq!(set.rows::<Migration>().count(), 0, "NUMA balancing was off, and nobody moves a page");
    as_the_command_said(&set, &err);
    let about = fs::read_to_string(dir.join("r/lab.json")).unwrap();
    assert!(about.contains("\"lost\": 0,"), "{about}");
    let busy = busiest(&about)["busy_ps"].as_u64().unwrap();
    assert!(busy >= CONTROLLER_3, "{about}");
    assert!(err.contains("(emulated)"), "{err}");
    nothing_left(&dir);

    // The recording is like any other, where it can be.
    let (code, out, err) = run(&dir, &["show", "r", "--csv"]);
    assert_eq!(code, Some(0), "{err}");
    let accesses = out.lines().next().and_then(|l| l.split(',').position(|c| c == "accesses")).unwrap();
    let blocks: Vec<Vec<&str>> =
        out.lines().filter(|l| l.starts_with("mmap,")).map(|l| l.split(',').collect()).collect();
    assert_eq!(blocks.len(), 4, "{out}");
    let all: u64 = blocks.iter().map(|b| b[accesses].parse::<u64>().unwrap()).sum();
    assert!(all >= 16 * 64 * 88, "Σ 1 + i + 2j over all i, j is 88: {out}");
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(0) && out.contains("whole"), "{out}{err}");
    for (words, why) in [
        (&["compare", "r"][..], "counts by page and node, not a trace"),
        (&["plan", "r", "-m", "epyc-nps4", "-o", "p"], "counts by page and node, not a trace"),
        (&["show", "r", "-m", "sf15k"], "this recording tells where pages lived: it is not simulated"),
    ] {
        let (code, _, err) = run(&dir, words);
        assert_eq!(code, Some(2), "{words:?}: {err}");
        assert!(err.contains(why), "{words:?}: {err}");
    }
    let table = dir.join("r/tables/accesses.hntable");
    let mut damaged = fs::read(&table).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&table, damaged).unwrap();
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(3) && out.contains("tables/accesses.hntable is damaged at byte"), "{out}{err}");
}

/// The rows add up to what the command printed of all CPUs: local and remote.
fn as_the_command_said(set: &Dataset, err: &str) {
    let (mut local, mut remote) = (0, 0);
    for a in set.rows::<Access>() {
        let (count, _) = a.tally.count().unwrap().parts();
        *(if a.node == a.home { &mut local } else { &mut remote }) += count;
    }
    let lines = err.lines().skip_while(|l| !l.starts_with("  cpu")).skip(1);
    let numbers = lines.map(|l| l.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let printed = numbers.filter(|n| n.len() > 5).fold((0, 0), |sum: (u64, u64), n| {
        (sum.0 + n[4].parse::<u64>().unwrap(), sum.1 + n[5].parse::<u64>().unwrap())
    });
    assert!(printed.0 > 0 && (local, remote) == printed, "{local} {remote}: {err}");
}

/// Runs so often, and compares every byte with the first.
fn the_same_each_time(name: &str, times: u32) {
    let dir = fresh(name).join("work");
    if ready(&dir, "blocks", BLOCKS).is_none() {
        return;
    }
    let _alone = alone();
    let mut first = None;
    for i in 0..times {
        let words = format!("record --on lab --deterministic --summary ../table -o ../r{i} {MACHINE}");
        let (status, out, err) = outcome(&command(&dir, &words).output().unwrap());
        if err.contains("this QEMU cannot count CPU by CPU") {
            eprintln!("skipped: QEMU 10 and later name the wrong CPUs: {err}");
            return;
        }
        assert_eq!(status, Some(0), "{err}");
        let recording = dir.join(format!("../r{i}"));
        let all = [recording.clone(), recording.join("tables")].map(|f| fs::read_dir(f).unwrap());
        let mut files: BTreeMap<_, _> = all
            .into_iter()
            .flatten()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_file())
            .map(|p| (p.file_name().unwrap().to_owned(), fs::read(p).unwrap()))
            .collect();
        files.insert("table".into(), fs::read(dir.join("../table")).unwrap());
        files.insert("stdout".into(), out.clone().into_bytes());
        if i == 0 {
            let blocks = blocks(&out);
            let set = Dataset::open(&recording).unwrap();
            assert_eq!(counted(&set, &blocks), expected(&blocks), "{err}");
            // The kernel adds to it: 0.5 to 38 % with 30 lengths of the folder's name, because they
            // decide where the kernel puts its own pages.
            let busiest = busiest(&String::from_utf8_lossy(&files[OsStr::new("lab.json")]));
            assert_eq!(
                (busiest["busiest"].as_str(), busiest["from"].as_u64()),
                (Some("controller"), Some(3))
            );
            let busy = busiest["busy_ps"].as_u64().unwrap();
            assert!((CONTROLLER_3..CONTROLLER_3 * 2).contains(&busy), "{busiest}");
            first = Some(files);
        } else {
            let first = first.as_ref().unwrap();
            assert_eq!(first.keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
            for (name, bytes) in &files {
                let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
                assert!(
                    first[name] == *bytes,
                    "{} of run {i} is another one:\n{}\n{}",
                    name.display(),
                    text(bytes),
                    text(&first[name])
                );
            }
        }
    }
    nothing_left(&dir);
}

#[test]
fn two_deterministic_runs_are_the_same_to_the_byte() {
    the_same_each_time("lab-twice", 2);
}

#[test]
#[ignore = "five boots take minutes"]
fn five_deterministic_runs_are_the_same_to_the_byte() {
    the_same_each_time("lab-five", 5);
}

/// The first CPU writes an array, the second one reads it.
const HANDED_OVER: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000+" #code ::: "memory")
enum { BYTES = 8 << 20 };
static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) { perror("sched_setaffinity"); exit(99); }
}
int main(void) {
    pin(0);
    char *volatile array = malloc(BYTES);
    memset(array, 1, BYTES);
    pin(1);
    MARK(1);
    long sum = 0;
    for (volatile char *p = array; p < array + BYTES; p += 64) sum += *p;
    MARK(2);
    return sum != BYTES / 64;
}
"#;

#[test]
fn schemes_are_compared_on_a_real_kernel() {
    let dir = fresh("lab-compare").join("work");
    if ready(&dir, "handed", HANDED_OVER).is_none() {
        return;
    }
    let _alone = alone();
    let words =
        "compare --on lab --nodes 2 --mem 192M --thp never --csv -p first-touch -p interleave -- ./handed";
    let (status, out, err) = outcome(&command(&dir, words).output().unwrap());
    let mut lines = out.lines();
    let titles: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |title: &str| {
        titles.iter().position(|t| *t == title).unwrap_or_else(|| panic!("{title}: {out}{err}"))
    };
    let (remote, accesses) = (place("remote"), place("accesses"));
    let rows: BTreeMap<&str, Vec<&str>> =
        lines.map(|l| l.split(',').collect::<Vec<_>>()).map(|f| (f[0], f)).collect();
    let number =
        |scheme: &str, at: usize| rows[scheme][at].parse::<f64>().unwrap_or_else(|_| panic!("{out}"));
    assert!((number("first-touch", accesses) - 131_072.0).abs() < 3000.0, "a line each: {out}{err}");
    assert!(number("first-touch", remote) > 97.0, "{out}{err}");
    if Command::new("numactl").arg("--hardware").output().is_err() {
        eprintln!("skipped: there is no numactl");
        assert_eq!(status, Some(3), "{err}");
        return;
    }
    assert_eq!(status, Some(0), "{err}");
    let half = number("interleave", remote);
    assert!((47.0..53.0).contains(&half), "every other page is at home: {out}{err}");
    nothing_left(&dir);
}

/// CPU 0 writes pages, and CPU 1 reads them until all lie in its node's memory; then once more, in
/// an interval of its own.
const FOLLOWED: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000+" #code ::: "memory")
enum { PAGES = 256, PAGE = 4096, LINE = 64 };
static char *block;
static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) { perror("sched_setaffinity"); exit(99); }
}
static void read_all(void) {
    for (volatile char *p = block, *end = p + PAGES * PAGE; p < end; p += LINE) (void)*p;
}
static int on_node(int node) {
    void *pages[PAGES];
    int homes[PAGES], n = 0;
    for (int p = 0; p < PAGES; p++) pages[p] = block + p * PAGE;
    if (syscall(SYS_move_pages, 0, (long)PAGES, pages, NULL, homes, 0)) { perror("move_pages"); exit(99); }
    for (int p = 0; p < PAGES; p++) n += homes[p] == node;
    return n;
}
int main(void) {
    pin(0);
    block = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) { perror("mmap"); return 99; }
    memset(block, 1, PAGES * PAGE);
    int before = on_node(0);
    pin(1);
    MARK(1);
    time_t begin = time(NULL);
    do {
        for (int i = 0; i < 20; i++) read_all();
    } while (on_node(1) < PAGES / 2 && time(NULL) - begin < 200);
    int after = on_node(1);
    read_all();
    MARK(3);
    read_all();
    MARK(2);
    printf("%p %d %d\n", (void *)block, before, after);
    return 0;
}
"#;

#[test]
fn pages_that_numa_balancing_moves_are_seen_to_move() {
    let dir = fresh("lab-balancing").join("work");
    if ready(&dir, "followed", FOLLOWED).is_none() {
        return;
    }
    let _alone = alone();
    let words = "record --on lab -o r --machine ./small.toml --mem 128M --numa-balancing on --thp never -- ./followed";
    let (status, out, err) = outcome(&command(&dir, words).output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    let words: Vec<&str> = out.split_whitespace().collect();
    let after: usize = words[2].parse().unwrap();
    assert!(words[1] == "256" && after >= 128, "on node 0 before, on node 1 after: {out}");
    let block = u64::from_str_radix(words[0].trim_start_matches("0x"), 16).unwrap();
    let set = Dataset::open(&dir.join("r")).unwrap();
    // Loads of CPU 1 by page, interval, home.
    let mut loads: BTreeMap<(u64, u64, u64), u64> = BTreeMap::new();
    for (address, a) in with_addresses(&set) {
        let is_load = a.kind == Some(AccessKind::Read) && a.node.0 == 1;
        if (block..block + 256 * 4096).contains(&address) && is_load {
            let key = ((address - block) / 4096, a.interval.0.into(), a.home.0.into());
            *loads.entry(key).or_default() += a.tally.count().unwrap().parts().0;
        }
    }
    for page in 0..256 {
        assert!(
            loads.get(&(page, 0, 0)).is_some_and(|n| *n >= 64),
            "page {page} was read where it was: {loads:?}"
        );
    }
    // In the interval afterwards every line once, where its page is then. The kernel goes on moving
    // pages.
    let at = |page: u64, home: u64| loads.get(&(page, 1, home)).copied().unwrap_or(0);
    assert!((0..256).all(|page| at(page, 0) + at(page, 1) == 64), "{loads:?}");
    let moved = (0..256).filter(|page| at(*page, 1) > 0).count();
    assert!(moved >= after, "{after} pages had moved, and {moved} were read there");
    followed(&set, block, after);
    nothing_left(&dir);
}

/// The moves that the data set tells of: from node 0 to node 1, by the kernel; the pages live there
/// afterwards.
fn followed(set: &Dataset, block: u64, after: usize) {
    let array = set.rows::<Object>().find(|o| o.address == block).expect("the array has a name");
    assert_eq!((array.kind, array.bytes.0), (ObjectKind::Allocated, 256 * 4096));
    let moves: Vec<_> = set.rows::<Migration>().filter(|m| m.object == Some(array.object)).collect();
    let mut at = [0_u16; 256];
    for m in &moves {
        assert_eq!((m.cause.as_str(), m.policy.as_deref()), ("kernel", Some("NUMA balancing")));
        for page in m.page..m.page + m.pages {
            assert_eq!(at[page as usize], m.from_node.0, "{moves:?}");
            at[page as usize] = m.to_node.0;
        }
    }
    let there = at.iter().filter(|n| **n == 1).count();
    assert!(there >= after, "{there} of {after} pages that moved: {moves:?}");
    let last = set.rows::<Interval>().map(|i| i.interval).max().unwrap();
    let stays = set.rows::<Residency>().filter(|r| r.object == Some(array.object) && r.until == last);
    let homes: BTreeMap<u64, u16> =
        stays.flat_map(|r| (r.page..r.page + r.pages).map(move |p| (p, r.home.0))).collect();
    assert!((0..256).all(|p| homes.get(&p) == Some(&at[p as usize])), "{homes:?} {at:?}");
}

#[test]
fn a_static_program_is_recorded_and_what_is_lost_is_told() {
    let dir = fresh("lab-static").join("work");
    if ready(&dir, "handed", HANDED_OVER).is_none() {
        return;
    }
    let built =
        Command::new("gcc").args(["-static", "-O1", "-o", "handed", "handed.c"]).current_dir(&dir).status();
    if !built.is_ok_and(|s| s.success()) {
        eprintln!("skipped: there is no static C library");
        return;
    }
    let _alone = alone();
    let words = "record --on lab --nodes 2 --mem 192M --thp never -o r -- ./handed";
    let (status, _, err) = outcome(&command(&dir, words).output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("linked statically") && err.contains("have no names"), "{err}");
    let set = Dataset::open(&dir.join("r")).unwrap();
    let kinds: Vec<_> = set.rows::<Object>().map(|o| o.kind).collect();
    assert_eq!(kinds, [ObjectKind::Other]);
    assert!(set.rows::<Access>().count() > 2048);
    nothing_left(&dir);
}
