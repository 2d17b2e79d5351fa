//! `record --on lab`: whose store each page had first, and on which line.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{FirstTouch, Object};

use crate::lab::{alone, nothing_left, there};
use crate::lab_record::{command, monitor};
use crate::support::{compilers, fresh, outcome};

/// The lines with a name behind them store to that array first. `MARK(1)` begins the counting after
/// all first stores but those of `added`.
const STORES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000+" #code ::: "memory")
enum { BYTES = 1 << 19, N = BYTES / sizeof(double) };
static double *filled, *stored, *received, *added;
static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) { perror("sched_setaffinity"); exit(99); }
}
static __attribute__((noinline)) void store_all(void) {
    for (int i = 0; i < N; i++) stored[i] = i; // stored
}
static void *worker(void *arg) {
    pin(1);
    for (int i = 0; i < N; i++) added[i] += 1; // added
    double sum = 0;
    for (int i = 0; i < N; i++) sum += filled[i] + stored[i] + received[i] + added[i];
    printf("%g\n", sum);
    return arg;
}
int main(void) {
    pin(0);
    filled = malloc(BYTES);
    stored = malloc(BYTES);
    received = malloc(BYTES);
    added = malloc(BYTES);
    memset(filled, 0, BYTES); // filled
    store_all();
    int zero = open("/dev/zero", O_RDONLY);
    if (zero < 0 || read(zero, received, BYTES) != BYTES) return 98; // received
    close(zero);
    MARK(1);
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    MARK(2);
    return 0;
}
"#;

#[test]
fn each_page_knows_its_first_store() {
    let dir = fresh("lab-firsts").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    fs::write(dir.join("stores.c"), STORES).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-pthread", "-o", "stores", "stores.c"]).current_dir(&dir);
    assert!(gcc.status().unwrap().success());
    monitor();
    let _alone = alone();
    let words = "record --on lab --nodes 2 --mem 192M --thp never -o r -- ./stores";
    let (status, _, err) = outcome(&command(&dir, words).output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    let set = Dataset::open(&dir.join("r")).unwrap();
    let names: BTreeMap<u32, String> = set.rows::<Object>().map(|o| (o.object.0, o.name)).collect();
    let mut pages: BTreeMap<(String, Option<u32>, u16), u64> = BTreeMap::new();
    for t in set.rows::<FirstTouch>() {
        if let Some(name) = names.get(&t.object.0) {
            let functions = ["main", "store_all", "worker"];
            let own = t.function.as_deref().is_some_and(|f| functions.iter().any(|own| f.starts_with(own)));
            let line = t.line.filter(|_| own);
            *pages.entry((name.clone(), line, t.node.0)).or_default() += t.pages;
        }
    }
    for (name, node) in [("filled", 0), ("stored", 0), ("received", 0), ("added", 1)] {
        let line = STORES.lines().position(|l| l.ends_with(&format!("// {name}"))).unwrap() as u32 + 1;
        let found = pages.get(&(name.to_owned(), Some(line), node)).copied().unwrap_or_default();
        // The C library's own store to the first page comes before the program's.
        assert!((127..=129).contains(&found), "{name}: line {line}, node {node}: {pages:?}\n{err}");
    }
    nothing_left(&dir);
}
