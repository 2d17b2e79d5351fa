//! `homenode measure` and `homenode diff`: on a described machine, and on a virtual one with four nodes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::lab::{alone, lab, there};
use crate::support::{compilers, fresh, outcome, run};

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
    assert!(err.contains("homenode measure --json"), "{err}");
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
    if !place_example(&dir) {
        return;
    }
    let _alone = alone();
    fs::copy(env!("CARGO_BIN_EXE_homenode"), dir.join("homenode")).unwrap();
    // Small buffers: what is proved here is placement, not speed.
    let base = "./homenode measure --quick --buffer 2M --move-buffer 2M --time 20";
    let script = format!(
        "{base} --csv --hwloc-xml x.xml > all.csv; echo all $?; \
         {base} --csv --only latency,bandwidth,core,migration --sabotage misplace > misplaced.csv; echo misplaced $?; \
         {base} --csv --only latency,bandwidth,core,migration --sabotage migrate > migrated.csv; echo migrated $?; \
         ./homenode measure --csv --only latency --nodes 0 --buffer 4G > large.csv; echo large $?; \
         {base} --json --only latency > a.json; echo a $?; {base} --json --only latency > b.json; echo b $?; \
         ./place > place.out; echo place $?"
    );
    let mut command = lab(
        &dir,
        "--mem 256M --numa-balancing off --root --with ./homenode --with ./place --timeout 300 -- sh -c",
    );
    let (status, out, err) = outcome(&command.arg(script).output().unwrap());
    let said = "all 0\nmisplaced 3\nmigrated 3\nlarge 3\na 0\nb 0\nplace 0\n";
    assert_eq!((status, out.as_str()), (Some(0), said), "{err}");
    let csv = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let kinds = [("latency", 32), ("bandwidth", 64), ("loaded", 64), ("core", 12), ("migration", 24)];
    for (kind, cells) in kinds.into_iter().chain([("next-touch", 32)]) {
        let all = verdicts(&csv("all.csv"), kind);
        assert_eq!(all.len(), cells, "{kind}");
        assert!(all.iter().all(|(v, _)| v == "ok" || v == "noisy"), "{all:?}");
    }
    for kind in ["latency", "bandwidth", "core", "migration", "next-touch"] {
        for (file, when) in [("misplaced.csv", "before measuring"), ("migrated.csv", "after measuring")] {
            let all = verdicts(&csv(file), kind);
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
    reads_in_lstopo(&dir.join("x.xml"));
    let (status, out, err) = run(&dir, &["diff", "a.json", "b.json", "--all", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() == 32 && rows.iter().all(|r| r["ratio"].as_f64().unwrap() > 0.0), "{out}");
    // The C interface on real nodes: threads bound, memory placed, moved, found and verified, between any two.
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
