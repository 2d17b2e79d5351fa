//! What the distribution's kernel may be too old for, on four nodes of a recent one: writers seen
//! by write protection (WP_ASYNC, Linux 6.7), untouched pages that go back without a copy
//! (`UFFDIO_MOVE`, 6.8), huge pages that the kernel tells of (6.7). One boot serves all.

use std::fs;
use std::path::Path;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, BUDGET, POINTS, number, owner_in_grid};
use crate::lab_interleaved::hostile;
use crate::lab_known::{DEALT, judge_huge};
use crate::lab_sources::{self, SECONDS, UNITS};
use crate::support::{compilers, fresh, outcome};

/// What the report calls the source by.
const WRITES: &str = "writes to write-protected pages (WP_ASYNC and perf)";
/// Policies that hear of writers.
const TOLD: [&str; 2] = ["competitive", "presence"];
/// Name, iterations of heat at first, points an edge, percent of the pages that are to be at their
/// owner, of homenode. By writers 64 KiB at a time move, of which some are two nodes', and each has
/// to be seen eight times: a smaller grid, and more iterations.
const HEAT: [(&str, u64, u64, usize, &str); 2] =
    [("touch", 60, POINTS, 97, ""), ("writes", 6000, POINTS / 2, 75, "--policy competitive --source writes")];
/// Pages that must have moved; where the host is busy, and few touches are told in a second, heat
/// runs again for three times as long.
const MOVED: u64 = 512;
const TRIES: u32 = 3;
/// Hostile programs (`tests/hostile`), with all memory armed every few milliseconds, or watched and
/// some of it moved; and what the report is to count.
const HOSTILE: [(&str, &str, &str); 3] = [
    ("remaps", "--policy next-touch=asked", "pages_copied"),
    ("threads", "--policy next-touch=asked", "pages_copied"),
    ("remaps", "--policy competitive --source writes", "pages_moved"),
];

fn script(homenode: &Path) -> String {
    let run = format!("{} run --budget {BUDGET} --json --summary", homenode.display());
    let mut script = String::from("set -e\nuname -r >version\n");
    for (i, policy) in TOLD.iter().enumerate() {
        script += &format!(
            "{run} {i}.json --source writes --policy {policy} -- ./quarters {UNITS} {SECONDS} >{i}.out\n"
        );
    }
    for (name, iterations, points, _, words) in HEAT {
        script += &format!(
            "n={iterations}\nfor try in $(seq {TRIES}); do\n\
             HOMES_OF=heat LD_PRELOAD=$PWD/homes.so HOMES={name}.homes {run} {name}.json {words} -- \
             ./heat --size {points} --iterations $n --threads 4 --init serial >{name}.out\n\
             moved=$(sed -n 's/.*\"pages_moved\": \\([0-9]*\\).*/\\1/p' {name}.json | sort -n | tail -n 1)\n\
             [ ${{moved:-0}} -lt {MOVED} ] || break\nn=$((n * 3))\ndone\n"
        );
    }
    for (i, (policy, _)) in DEALT.iter().enumerate() {
        script += &format!("{run} huge{i}.json --policy {policy} -- ./quarters 2048 8 0 >huge{i}.out\n");
    }
    script += &format!("{run} split.json -- ./quarters 2048 8 0 >split.out\n");
    script += "export HOMENODE_RUN_FORCE_ARM=5 HOSTILE_SECONDS=1\n";
    for (i, (name, words, _)) in HOSTILE.iter().enumerate() {
        script += &format!("{run} hostile{i}.json --force {words} -- ./{name} >hostile{i}.out || true\n");
    }
    script
}

#[test]
fn writers_are_seen_and_pages_go_back_on_a_recent_kernel() {
    let dir = fresh("lab-recent").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    lab_homes::library(&dir);
    lab_homes::kernel(&dir, "heat");
    lab_homes::program(&dir, "quarters");
    for name in ["remaps", "threads"] {
        hostile(&dir, name);
    }
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    fs::write(dir.join("script"), script(homenode)).unwrap();
    let _alone = alone();
    let words = "--kernel recent --mem 192M --numa-balancing off --thp madvise --env OMP_NUM_THREADS=4 \
                 --env OMP_PROC_BIND=true --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    if err.contains("there is no recent kernel") {
        return eprintln!("skipped: {err}");
    }
    assert_eq!(status, Some(0), "{out}{err}");
    println!("Linux {}", read(&dir, "version").trim());
    for (i, policy) in TOLD.iter().enumerate() {
        lab_sources::judge(&dir, i, &format!("writes, {policy}"), WRITES);
    }
    judge_heat(&dir);
    for (i, (policy, nodes)) in DEALT.iter().enumerate() {
        judge_huge(&dir, i, policy, nodes);
    }
    // It is known before anything moves that more of each is to be elsewhere.
    let told = report(&dir, "huge2")["processes"][0]["could_not"].to_string();
    assert!(told.contains("12288 KiB are not on their nodes"), "{told}");
    judge_split(&dir);
    for (i, (name, words, key)) in HOSTILE.iter().enumerate() {
        judge_hostile(&dir, i, &format!("{name} {words}"), key, &err);
    }
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn report(dir: &Path, name: &str) -> serde_json::Value {
    serde_json::from_str(&read(dir, &format!("{name}.json"))).unwrap()
}

fn judge_heat(dir: &Path) {
    for (name, _, points, percent, _) in HEAT {
        let report = report(dir, name);
        let all =
            lab_homes::owned(&dir.join(format!("{name}.homes")), (points + 2).pow(2) * 8, owner_in_grid);
        let right = number(&all, |(owner, home)| home == Some(owner));
        let process = &report["processes"][0];
        println!(
            "heat, {name}: {right} of {} pages are with their owner, {} were moved, touches told: {}; {:.1} s",
            all.len(),
            process["pages_moved"],
            process["watched"]["touches_told"],
            process["elapsed_ns"].as_f64().unwrap() * 1e-9
        );
        // From serial initialisation it is a quarter.
        assert!(all.len() > 1000 && right * 100 >= all.len() * percent, "{name}: {right}: {report:#}");
        assert!(read(dir, &format!("{name}.out")).contains("verification: successful"), "{name}");
        let source = process["watched"]["source"].as_str().unwrap_or_default();
        assert_eq!(source.contains(WRITES), name == "writes", "{report:#}");
    }
    // What next touch armed and nobody touched went back, and each object had pages sampled that
    // stay.
    for key in ["arms", "faults", "pages_copied"] {
        assert!(report(dir, "touch")["processes"][0][key].as_u64() > Some(0), "{key}");
    }
}

/// Next touch of huge pages: they go page by page.
fn judge_split(dir: &Path) {
    let (out, report) = (read(dir, "split.out"), report(dir, "split"));
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    let quarters: Vec<Vec<u64>> = out.lines().skip(1).take(4).map(numbers).collect();
    let right: u64 = (0..4).map(|q| quarters[q][q]).sum();
    let last = numbers(out.lines().last().unwrap());
    println!("huge pages by next touch: {right} of 4096 pages are with their owner");
    assert!(right * 100 >= 4096 * 97 && last[0] == 16384 && last[2] == 0, "{out}{report:#}");
}

fn judge_hostile(dir: &Path, i: usize, what: &str, key: &str, err: &str) {
    let report = report(dir, &format!("hostile{i}"));
    assert_eq!(read(dir, &format!("hostile{i}.out")), "ok\n", "{what}: {err}\n{report:#}");
    let processes = report["processes"].as_array().unwrap();
    let number: u64 = processes.iter().filter_map(|p| p[key].as_u64()).sum();
    println!("{what}: {key} {number}");
    assert!(number > 0, "{what}: {report:#}");
}
