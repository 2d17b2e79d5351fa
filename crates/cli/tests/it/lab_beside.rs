//! Known moves on the lab's four nodes while the team writes to the pages that move.

use std::fs;
use std::path::Path;

use crate::lab::{alone, lab, there};
use crate::support::{compilers, fresh, outcome, plain};

/// One thread initialises 40 MiB. Four threads then add 1 to each number, again and again, until
/// every thread's quarter is on a node of its own, or for 4000 rounds. Prints how many pages are
/// elsewhere and how many numbers are wrong.
const ADDS: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { PAGES = 10240, WORDS = 512, MOST = 4000 };
static long elsewhere(char *pages) {
    static void *at[PAGES];
    static int node[PAGES];
    for (int i = 0; i < PAGES; i++) at[i] = pages + 4096L * i;
    if (syscall(SYS_move_pages, 0, (long)PAGES, at, NULL, node, 0)) return -1;
    long wrong = 0;
    for (int i = 0; i < PAGES; i++) wrong += node[i] != 4 * i / PAGES;
    return wrong;
}
int main(void) {
    unsigned long *a = aligned_alloc(4096, PAGES * 4096L), rounds = 0, wrong = 0;
    for (long i = 0; i < PAGES * (long)WORDS; i++) a[i] = i;
    long far = PAGES;
    while (rounds < MOST && far) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < PAGES * (long)WORDS; i++) a[i] += 1;
        if (++rounds % 8 == 0) far = elsewhere((char *)a);
    }
    for (long i = 0; i < PAGES * (long)WORDS; i++) wrong += a[i] != i + rounds;
    printf("%ld pages elsewhere, %lu numbers wrong\n", far, wrong);
    return 0;
}
"#;

#[test]
fn pages_move_while_the_team_writes_to_them() {
    let dir = fresh("lab-beside").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() || plain(&dir, "adds", ADDS).is_none() {
        return;
    }
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let script = format!(
        "set -e\n{} run --json --summary beside.json --policy block --force --budget 100% --move-while running -- ./adds >out\n",
        homenode.display()
    );
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words = "--mem 192M --numa-balancing off --thp never --env OMP_NUM_THREADS=4 --env OMP_PROC_BIND=true \
                 --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join("beside.json")).unwrap()).unwrap();
    let said = fs::read_to_string(dir.join("out")).unwrap();
    assert_eq!(said, "0 pages elsewhere, 0 numbers wrong\n", "{report:#}");
    let moves = &report["processes"][0]["known_moves"];
    println!("{moves}");
    let beside = moves["beside"].as_u64().unwrap();
    assert!(beside >= 7000 && moves["spare_ns"].as_u64().unwrap() > 0, "{report:#}");
    // The pages that the policy wanted elsewhere: three quarters.
    assert!(report["processes"][0]["pages_moved"].as_u64().unwrap() <= beside, "{report:#}");
}
