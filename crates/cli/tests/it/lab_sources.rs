//! Policies that are told who touches what, on the lab's four nodes: by the kernel's hinting faults, and by pages taken away. One boot
//! serves all.

use std::fs;
use std::path::Path;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, BUDGET, number, owner_among};
use crate::support::{compilers, fresh, outcome};

/// Points an edge of heat's grids.
const POINTS: u64 = 256;

struct Told {
    source: &'static str,
    policy: &'static str,
    /// What the report calls the source by.
    named: &'static str,
    iterations: u32,
}

const TOLD: [Told; 3] = [
    Told { source: "hinting", policy: "competitive", named: "NUMA hinting faults", iterations: 4000 },
    Told { source: "blocks", policy: "competitive", named: "taken away at random times", iterations: 4000 },
    Told { source: "blocks", policy: "presence", named: "taken away at random times", iterations: 4000 },
];

#[test]
fn pages_move_to_those_who_are_seen_at_them() {
    let dir = fresh("lab-sources").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    lab_homes::library(&dir);
    lab_homes::kernel(&dir, "heat");
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    // The kernel looks for who touches what once a second and more seldom, unless told otherwise.
    let mut script = String::from(
        "set -e\nmount -t debugfs none /sys/kernel/debug\ncd /sys/kernel/debug/sched/numa_balancing\n\
         echo 100 >scan_delay_ms\necho 100 >scan_period_min_ms\necho 100 >scan_period_max_ms\ncd -\n\
         export LD_PRELOAD=$PWD/homes.so HOMES_OF=heat\n",
    );
    for (i, told) in TOLD.iter().enumerate() {
        let Told { source, policy, iterations, .. } = told;
        script += &format!(
            "echo {} >/proc/sys/kernel/numa_balancing\n\
             HOMES={i}.homes {} run --budget {BUDGET} --json --summary {i}.json --source {source} --policy {policy} -- \
             ./heat --size {POINTS} --iterations {iterations} --threads 4 --init serial >{i}.out\n",
            u8::from(*source == "hinting"),
            homenode.display(),
        );
    }
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words = "--mem 192M --root --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    for (i, told) in TOLD.iter().enumerate() {
        judge(&dir, i, told);
    }
}

fn judge(dir: &Path, i: usize, told: &Told) {
    let Told { source, policy, named, .. } = told;
    let read = |end: &str| fs::read_to_string(dir.join(format!("{i}.{end}"))).unwrap();
    assert!(read("out").contains("verification: successful"), "{source} {policy}: {}", read("out"));
    let report: serde_json::Value = serde_json::from_str(&read("json")).unwrap();
    let process = &report["processes"][0];
    let watched = &process["watched"];
    let least = (POINTS + 2) * (POINTS + 2) * 8;
    let all = lab_homes::owned(&dir.join(format!("{i}.homes")), least, |o, b| owner_among(POINTS, o, b));
    // All were on the first node.
    let moved: Vec<_> = all.iter().copied().filter(|(_, home)| *home != Some(0)).collect();
    let right = number(&moved, |(owner, home)| home == Some(owner));
    println!(
        "{source} {policy}: {} touches told; {} of {} pages elsewhere, {right} of them with their owners; own {} of {}",
        watched["touches_told"],
        moved.len(),
        all.len(),
        process["own_ns"],
        process["cpu_ns"]
    );
    assert!(watched["source"].as_str().unwrap().contains(named), "{report:#}");
    assert!(watched["touches_told"].as_u64() > Some(0), "{report:#}");
    assert!(process["pages_moved"].as_u64() > Some(0), "{report:#}");
    // By chance it would be a quarter.
    assert!(
        moved.len() >= all.len() / 10 && right * 100 >= moved.len() * 90,
        "{source} {policy}: {report:#}"
    );
}
