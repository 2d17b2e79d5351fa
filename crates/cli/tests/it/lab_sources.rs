//! Policies that are told who touches what, on the lab's four nodes: by the kernel's hinting
//! faults, and by pages that are taken away. One boot serves all.

use std::fs;
use std::path::Path;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, BUDGET};
use crate::support::{compilers, fresh, outcome};

/// Units of 64 KiB, what a policy decides on without counts; two for each node.
pub const UNITS: &str = "64 8";
/// The program goes on until most pages that belong elsewhere have moved, for some seconds at most.
/// In the emulated guest a page that is taken away and touched takes milliseconds: some ten a
/// second are what a hundredth of the time allows, and eight tell whose a unit is.
pub const SECONDS: u32 = 90;
/// Source, policy, and what the report calls the source by.
const TOLD: [(&str, &str, &str); 4] = [
    ("hinting", "competitive", "the kernel's NUMA hinting faults"),
    ("blocks", "competitive", "pages taken away at random times"),
    ("blocks", "presence", "pages taken away at random times"),
    (RANK, "competitive", "the kernel's NUMA hinting faults"),
];
/// One of several ranks, with homenode's own choice of source and policy.
const RANK: &str = "a rank";

#[test]
fn pages_move_to_those_who_are_seen_at_them() {
    let dir = fresh("lab-sources").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    lab_homes::program(&dir, "quarters");
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    // Unless told otherwise the kernel looks for who touches what once a second and more seldom.
    let mut script = String::from(
        "set -e\nmount -t debugfs none /sys/kernel/debug\ncd /sys/kernel/debug/sched/numa_balancing\n\
         for period in scan_delay_ms scan_period_min_ms scan_period_max_ms; do echo 100 >$period; done\ncd -\n",
    );
    for (i, (source, policy, _)) in TOLD.iter().enumerate() {
        let (before, asked) = match *source {
            RANK => ("OMPI_COMM_WORLD_LOCAL_SIZE=2", String::new()),
            _ => ("", format!("--source {source} --policy {policy}")),
        };
        script += &format!(
            "echo {} >/proc/sys/kernel/numa_balancing\n\
             {before} {} run --budget {BUDGET} --json --summary {i}.json {asked} -- \
             ./quarters {UNITS} {SECONDS} >{i}.out\n",
            u8::from(matches!(*source, "hinting" | RANK)),
            homenode.display(),
        );
    }
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words = "--mem 128M --root --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    for (i, (source, policy, named)) in TOLD.iter().enumerate() {
        judge(&dir, i, &format!("{source}, {policy}"), named);
    }
}

pub fn judge(dir: &Path, i: usize, what: &str, named: &str) {
    let read = |end: &str| fs::read_to_string(dir.join(format!("{i}.{end}"))).unwrap();
    let (out, report) = (read("out"), read("json"));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let process = &report["processes"][0];
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    let quarters: Vec<Vec<u64>> = out.lines().skip(1).take(4).map(numbers).collect();
    // All were on the first node.
    let moved: u64 = quarters.iter().flat_map(|q| &q[1..]).sum();
    let right: u64 = (1..4).map(|q| quarters[q][q]).sum();
    let [told, by_report] =
        [&process["watched"]["touches_told"], &process["pages_moved"]].map(|n| n.as_u64().unwrap());
    println!(
        "{what}: {told} touches told, {moved} pages of 96 have left the first node, {right} to their owner; {:.1} s",
        process["elapsed_ns"].as_f64().unwrap() * 1e-9
    );
    assert!(process["watched"]["source"].as_str().unwrap().contains(named), "{what}: {report:#}");
    assert!(told > 0 && by_report >= moved, "{what}: {told} told, {by_report} moved: {report:#}");
    // By chance a quarter would be right.
    assert!(moved >= 96 * 3 / 5 && right * 100 >= moved * 90, "{what}: {out}{report:#}");
    let wrong = out.trim_end().rsplit(' ').next();
    assert_eq!(wrong, Some("0"), "{what}: {out}");
    // Three quarters of the touches, for all nodes are seen as often; initialisation, by the first
    // node alone, is none of them.
    let [remote, all] = ["remote", "all"].map(|key| process["remote_before"][key].as_u64().unwrap());
    assert!(
        remote * 2 >= all && remote > 0,
        "{what}: {remote} of {all} touches were remote before: {report:#}"
    );
}

/// Of a program with more memory than a source looks at in its time, by each policy that decides by
/// draws: what is seen is of all memory, and pages move.
#[test]
fn a_part_of_the_memory_stands_for_all_of_it() {
    let dir = fresh("lab-part").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() || !lab_homes::kernel(&dir, "heat") {
        return;
    }
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let mut script = String::from("set -e\n");
    let policies = ["daemon", "competitive"];
    for policy in policies {
        script += &format!(
            "{} run --budget 90%+300s --json --summary {policy}.json --source blocks --policy {policy} -- \
             ./heat --size 1024 --iterations 60 --threads 4 --init serial >{policy}.out\n",
            homenode.display(),
        );
    }
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words =
        "--mem 192M --numa-balancing off --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    for policy in policies {
        let read = |end: &str| fs::read_to_string(dir.join(format!("{policy}.{end}"))).unwrap();
        let report: serde_json::Value = serde_json::from_str(&read("json")).unwrap();
        let process = &report["processes"][0];
        let [remote, all] = ["remote", "all"].map(|key| process["remote_before"][key].as_u64().unwrap());
        let moved = process["pages_moved"].as_u64().unwrap();
        println!("{policy}: {remote} of {all} touches were remote before; {moved} pages moved");
        // Three quarters of the pages belong to other nodes than the first.
        assert!(all > 16 && remote * 2 > all, "{policy}: {remote} of {all}: {report:#}");
        assert!(moved > 0, "{policy}: {report:#}");
        assert!(read("out").contains("verification: successful"), "{}", read("out"));
    }
}
