//! `homenode measure` and `homenode diff`: on a described machine, and on a virtual one with four
//! nodes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::doctor::FILTER;
use crate::lab::{alone, lab, there};
use crate::support::{compilers, fresh, homenode, outcome, plain, run};

#[test]
fn a_described_machine_has_every_output() {
    let dir = fresh("measure-described");
    let numa = "pack:2 [numa(memory=8GB)] l3:1(size=32MB) core:2 pu:1";
    let words = [
        "measure",
        "--quick",
        "--synthetic",
        numa,
        "--hwloc-xml",
        "x.xml",
        "--machine-file",
        "m.toml",
        "--json",
    ];
    let (status, out, err) = run(&dir, &words);
    assert_eq!(status, Some(0), "{err}");
    fs::write(dir.join("a.json"), &out).unwrap();
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "homenode/measurement/1");
    let (status, _, err) = run(&dir, &["machine", "show", "m.toml"]);
    assert_eq!(status, Some(0), "{err}");
    reads_in_lstopo(&dir.join("x.xml"));
    // The machine file is a machine everywhere: what is measured of it is what was measured.
    let again = run(&dir, &["measure", "--quick", "--synthetic", "m.toml", "--json"]).1;
    fs::write(dir.join("again.json"), again).unwrap();
    let (status, out, err) = run(&dir, &["diff", "a.json", "again.json", "--all", "--csv"]);
    let latencies: Vec<&str> = out.lines().filter(|l| l.contains("latency 0:1, 2 MiB")).collect();
    assert!(status == Some(0) && latencies.len() == 1 && latencies[0].contains(",same"), "{out}{err}");
    let (status, out, err) = run(&dir, &["paper", "robertson-fig2", "--machine", "m.toml", "--csv"]);
    assert!(status == Some(0) && out.lines().count() == 4, "{out}{err}");
    let (status, out, _) = run(&dir, &["diff", "a.json", "a.json", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, json["rows"].as_array().unwrap().len()), (Some(0), 0), "nothing differs from itself");
}

#[test]
fn what_cannot_be_is_said_and_the_rest_is_done() {
    let dir = fresh("measure-wrong");
    let (status, out, _) = run(&dir, &["measure", "--quick", "--synthetic", "cxl", "--pairs", "0:0,2:0,0:9"]);
    assert_eq!(status, Some(3));
    assert!(out.contains("node 2 has no CPUs") && out.contains("node 9 does not exist"), "{out}");
    assert!(out.contains("Bandwidth, triad"), "{out}");
    let (status, _, err) = run(&dir, &["diff", "nothing.json", "nothing.json"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("cannot read nothing.json") && err.contains("homenode diff --help"), "{err}");
    let (status, out, _) =
        run(&dir, &["measure", "--only", "latency", "--synthetic", "cxl", "--nodes", "0,5"]);
    assert!(status == Some(3) && out.contains("node 5 does not exist"), "{out}");
    assert!(out.contains("help: this machine has nodes 0, 1, 2") && out.contains("Idle latency"), "{out}");
    let large = ["measure", "--only", "latency,core", "--synthetic", "cxl", "--buffer", "4000G"];
    let (status, out, _) = run(&dir, &large);
    assert!(status == Some(3) && out.contains("4096000 MiB on node 0 are asked for and"), "{out}");
    assert!(out.contains("ask for less: --buffer") && out.contains("A line between two CPUs"), "{out}");
}

fn recorded(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sysfs");
    root.join(name).display().to_string()
}

#[test]
fn a_recorded_machine_is_reported() {
    let dir = fresh("measure-recorded");
    let tree = recorded("memory-only-hmat.tree");
    let (status, out, err) = run(&dir, &["measure", "--quick", "--tree", &tree, "--csv"]);
    assert_eq!(status, Some(0), "{err}");
    let hmat = out
        .lines()
        .find(|l| l.starts_with("latency,latency 0:2, 2 MiB") || l.contains("\"latency 0:2, 2 MiB"));
    assert!(hmat.is_some_and(|l| l.contains(",14,250,")), "SLIT and HMAT beside it: {out}");
    let (status, out, _) = run(&dir, &["measure", "--quick", "--tree", &tree, "--pairs", "0:0,0:1"]);
    assert!(status == Some(3) && out.contains("node 1 has no memory") && out.contains("Bandwidth"), "{out}");
    let (status, out, _) = run(&dir, &["measure", "--quick", "--tree", &recorded("container.tree")]);
    assert!(status == Some(0) && out.contains("outside of this process's cpuset"), "{out}");
    let (status, out, _) =
        run(&dir, &["measure", "--quick", "--tree", &recorded("lab-4-nodes.tree"), "--buffer", "4M"]);
    assert!(status == Some(0) && out.contains("SLIT, row by row: 10 21 21 21 21 10"), "{out}");
    let (status, _, err) = run(&dir, &["measure", "--tree", "/nowhere"]);
    assert!(
        status.is_some_and(|s| s != 0) && err.contains("/nowhere/sys/devices/system/cpu/online"),
        "{err}"
    );
}

/// Ticks of CPU time of all threads but the first.
fn ticks(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let others = threads.filter(|t| t.file_name().to_string_lossy() != pid.to_string());
    let of = |t: fs::DirEntry| {
        let stat = fs::read_to_string(t.path().join("stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse::<u64>().ok()
    };
    others.filter_map(of).sum()
}

#[test]
fn ctrl_c_prints_what_is_done() {
    let dir = fresh("measure-ctrl-c");
    let mut command = homenode(&dir);
    command.args(["measure", "--only", "latency", "--buffer", "2M", "--time", "500000", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    // Once its thread has measured for a while.
    while ticks(pid) < 30 && Path::new(&format!("/proc/{pid}/task")).exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    let (status, out, err) = outcome(&child.wait_with_output().unwrap());
    assert!(sent.success() && status == Some(3), "{status:?} {err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let cells = json["cells"].as_array().unwrap();
    assert!(cells.len() == 1 && cells[0]["value"].as_f64().unwrap() > 0.0, "{out}");
    assert_eq!(json["stopped"], true);
    assert!(out.contains("it was stopped before everything was measured"), "{out}");
}

/// Without huge pages, as a system or an administrator can have it.
const WITHOUT_HUGE_PAGES: &str = r#"
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    (void)argc;
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) { puts("skipped"); return 0; }
    execv(argv[1], argv + 1);
    return 127;
}
"#;

#[test]
fn what_is_forbidden_is_said_with_a_remedy_and_the_rest_is_done() {
    let dir = fresh("measure-forbidden");
    let Some(without) = plain(&dir, "without", WITHOUT_HUGE_PAGES) else { return };
    let own = homenode(&dir).get_program().to_owned();
    let words =
        ["measure", "--only", "latency,migration", "--buffer", "2M", "--move-buffer", "2M", "--time", "20"];
    let after = |program: &Path| {
        let mut command = Command::new(program);
        outcome(
            &command
                .arg(&own)
                .args(words)
                .args(["--nodes", "0", "--csv"])
                .current_dir(&dir)
                .output()
                .unwrap(),
        )
    };
    let (status, out, err) = after(&without);
    if out.starts_with("skipped") {
        println!("skipped: huge pages cannot be forbidden here");
    } else {
        assert_eq!(status, Some(3), "{out}{err}");
        for (kind, small) in verdicts(&out, "latency").into_iter().chain(verdicts(&out, "next-touch")) {
            let fine = kind == "ok" || kind == "noisy";
            let is_small = small.contains("4 KiB pages");
            assert!(is_small == fine && (fine || small.contains("transparent_hugepage/enabled")), "{small}");
        }
    }
    // Nothing that names nodes: the pages' places come from numa_maps, and next touch copies.
    let filter = plain(&dir, "filter", FILTER).unwrap();
    let (status, out, err) = after(&filter);
    if out.starts_with("skipped") {
        return println!("skipped: filters of system calls cannot be installed here");
    }
    assert_eq!(status, Some(0), "{out}{err}");
    assert_eq!((verdicts(&out, "latency").len(), verdicts(&out, "next-touch").len()), (2, 2), "{out}");
}

/// Verdicts of a CSV's rows of a kind, with why.
fn verdicts(csv: &str, kind: &str) -> Vec<(String, String)> {
    let rows = csv.lines().skip(1).filter(|l| l.starts_with(&format!("{kind},")));
    let verdict =
        |l: &str| ["ok", "noisy", "failed", "absent"].into_iter().find(|v| l.contains(&format!(",{v},")));
    rows.map(|l| (verdict(l).unwrap_or("none").to_owned(), l.to_owned())).collect()
}

#[test]
fn on_four_nodes_every_cell_is_proved_and_faults_are_found() {
    let dir = fresh("measure-lab").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() {
        return;
    }
    if !place_example(&dir) || plain(&dir, "filter", FILTER).is_none() {
        return;
    }
    let _alone = alone();
    fs::copy(env!("CARGO_BIN_EXE_homenode"), dir.join("homenode")).unwrap();
    // Small buffers: what is proved here is placement, not speed.
    let base = "./homenode measure --quick --buffer 2M --move-buffer 2M --time 20 --passes";
    let script = format!(
        "{base} 1 --csv --hwloc-xml x.xml > all.csv; echo all $?; \
         {base} 1 --csv --only latency,bandwidth,core,migration --sabotage misplace > misplaced.csv; echo misplaced $?; \
         {base} 1 --csv --only latency,bandwidth,core,migration --sabotage migrate > migrated.csv; echo migrated $?; \
         {base} 1 --csv --nodes 0,1 --only loaded --sabotage misplace > misplaced-loaded.csv; echo misplaced $?; \
         {base} 1 --csv --nodes 0,1 --only loaded --sabotage migrate > migrated-loaded.csv; echo migrated $?; \
         ./homenode measure --csv --only latency --nodes 0 --buffer 4G > large.csv; echo large $?; \
         {base} 2 --json --only latency > a.json; echo a $?; {base} 1 --json --only latency > b.json; echo b $?; \
         ./place > place.out; echo place $?; \
         ./filter {base} 1 --csv --nodes 0,1 --only latency,migration > forbidden.csv; echo forbidden $?"
    );
    let mut command = lab(
        &dir,
        "--mem 256M --numa-balancing off --root --with ./homenode --with ./place --with ./filter --timeout 1500 -- sh -c",
    );
    let (status, out, err) = outcome(&command.arg(script).output().unwrap());
    let said =
        "all 0\nmisplaced 3\nmigrated 3\nmisplaced 3\nmigrated 3\nlarge 3\na 0\nb 0\nplace 0\nforbidden 3\n";
    assert_eq!((status, out.as_str()), (Some(0), said), "{err}");
    let csv = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let kinds = [("latency", 32), ("bandwidth", 64), ("loaded", 64), ("core", 12), ("migration", 24)];
    for (kind, cells) in kinds.into_iter().chain([("next-touch", 32)]) {
        let all = verdicts(&csv("all.csv"), kind);
        assert_eq!(all.len(), cells, "{kind}");
        assert!(all.iter().all(|(v, _)| v == "ok" || v == "noisy"), "{all:?}");
    }
    for kind in ["latency", "bandwidth", "loaded", "core", "migration", "next-touch"] {
        let file = |fault: &str| fault.to_owned() + if kind == "loaded" { "-loaded.csv" } else { ".csv" };
        for (fault, when) in [("misplaced", "before measuring"), ("migrated", "after measuring")] {
            let all = verdicts(&csv(&file(fault)), kind);
            assert!(
                !all.is_empty() && all.iter().all(|(v, l)| v == "failed" && l.contains("instead of")),
                "{all:?}"
            );
            // A line's page that is moved away beforehand is not looked at until afterwards.
            assert!(kind == "core" || all.iter().all(|(_, l)| l.contains(when)), "{all:?}");
        }
    }
    let large = verdicts(&csv("large.csv"), "latency");
    assert!(large.iter().all(|(v, l)| v == "absent" && l.contains("MiB can be had")), "{large:?}");
    // Where a container forbids the calls that name nodes, memory is touched from its node and
    // found in numa_maps; pages do not move, which is said.
    let forbidden = csv("forbidden.csv");
    let latency = verdicts(&forbidden, "latency");
    assert!(latency.len() == 8 && latency.iter().all(|(v, _)| v == "ok" || v == "noisy"), "{forbidden}");
    let moves = verdicts(&forbidden, "migration");
    assert!(
        moves.len() == 4 && moves.iter().all(|(v, l)| v == "absent" && l.contains("SYS_NICE")),
        "{forbidden}"
    );
    reads_in_lstopo(&dir.join("x.xml"));
    let (status, out, err) = run(&dir, &["diff", "a.json", "b.json", "--all", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() == 32 && rows.iter().all(|r| r["ratio"].as_f64().unwrap() > 0.0), "{out}");
    // The C interface on real nodes: threads bound, memory placed, moved, found and verified,
    // between any two.
    let placed = fs::read_to_string(dir.join("place.out")).unwrap();
    for (thread, memory) in (0..4).flat_map(|t| (0..4).map(move |m| (t, m))) {
        let line = format!("thread on node {thread}, memory on node {memory}: 1024 pages, distance ");
        assert!(placed.contains(&line), "{placed}");
    }
    assert!(placed.matches("\nmoved from node ").count() == 15 && placed.ends_with("\nok\n"), "{placed}");
}

/// The example of the C interface, linked with the library of this build. `false`: skipped.
fn place_example(dir: &Path) -> bool {
    if !compilers() {
        return false;
    }
    let build = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(dir.join("place"));
    gcc.arg(root.join("examples/place.c")).arg("-I").arg(root.join("include"));
    gcc.arg("-L").arg(build).arg("-lhomenode").arg(format!("-Wl,-rpath,{}", build.display()));
    let built = gcc.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    true
}

/// hwloc's own program reads it, and knows the latencies.
fn reads_in_lstopo(xml: &Path) {
    let Ok(shown) = Command::new("lstopo-no-graphics").arg("--memattrs").arg("-i").arg(xml).output() else {
        return eprintln!("skipped: there is no lstopo-no-graphics (hwloc-nox)");
    };
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let latency = text.split("Memory attribute").find(|p| p.contains("`Latency'"));
    assert!(shown.status.success() && latency.is_some_and(|l| l.contains("NUMANode L#1")), "{text}");
}
