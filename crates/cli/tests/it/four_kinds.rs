//! `run --record`, `record --on live`, `record --on lab` and `compare --keep` leave data sets that
//! `show`, `diff`, `rec export` and DuckDB read alike.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Access, FirstTouch, Object, ObjectKind};
use serde_json::{Value, json};

use crate::lab::{alone, there};
use crate::rec_export::{duckdb_rows, python, shown};
use crate::support::{compilers, fresh, run};

/// Prints what every statement of `docs/dataset.md` answers about the export in `sys.argv[1]`.
const ANSWERS: &str = r#"
import json, re, sys
import duckdb
out, page = sys.argv[1], open(sys.argv[2]).read()
con, answers = duckdb.connect(), []
for block in re.findall(r"```sql\n(.*?)```", page, re.S):
    for statement in filter(str.strip, block.split(";")):
        result = con.sql(statement.replace("OUT/", out + "/"))
        if result is not None:
            rows = [dict(zip(result.columns, map(str, row))) for row in result.fetchall()]
            answers.append([statement, rows])
print(json.dumps(answers))
"#;

/// What the documented statements say of an export.
fn answers(python: &Path, dir: &Path, export: &str) -> Vec<(String, Vec<Value>)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dataset.md");
    let mut command = std::process::Command::new(python);
    let output = command.args(["-c", ANSWERS, export]).arg(page).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{export}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The rows of the statement that has these words in it.
fn rows<'a>(answers: &'a [(String, Vec<Value>)], words: &str) -> &'a [Value] {
    let found = answers.iter().find(|(statement, _)| statement.contains(words));
    &found.unwrap_or_else(|| panic!("no statement has {words}")).1
}

/// The ids of the two grids: the largest allocated objects.
fn grids(set: &Dataset) -> BTreeSet<String> {
    let mut all: Vec<Object> = set.rows().collect();
    all.retain(|o| o.kind == ObjectKind::Allocated);
    all.sort_by_key(|o| std::cmp::Reverse(o.bytes));
    all.truncate(2);
    all.into_iter().map(|o| o.id).collect()
}

/// Makes a recording of each kind that is to be had here: its folder, and its kind.
fn record(dir: &Path) -> Vec<(String, &'static str)> {
    // One thread initialises the grids, so there is something to move.
    let heat = ["kernel:heat", "--class", "W", "--", "--init", "serial"];
    let mut all = Vec::new();
    let mut make = |words: &[&str], folder: &str, kind: &'static str| {
        let words: Vec<&str> = words.iter().chain(&heat).copied().collect();
        let (status, _, err) = run(dir, &words);
        assert_eq!(status, Some(0), "{words:?}: {err}");
        all.push((folder.to_owned(), kind));
    };
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        // A budget of its own: a busy machine does not end a trial before anything moves.
        let budget = [
            "run",
            "--force",
            "--bind",
            "--budget",
            "100%+60s",
            "--pretend-nodes",
            "2",
            "--record",
            "a.hnrec",
        ];
        make(&budget, "a.hnrec", "run");
        make(&["record", "--on", "live", "--pretend-nodes", "2", "-o", "b.hnrec"], "b.hnrec", "live");
    } else {
        eprintln!("skipped: there is one CPU, so nothing runs on pretended nodes");
    }
    if there() {
        let _alone = alone();
        make(&["record", "--on", "lab", "--nodes", "2", "-o", "c.hnrec"], "c.hnrec", "lab");
    }
    let words = ["compare", "-q", "-m", "sf15k", "-p", "first-touch", "-p", "competitive", "--keep", "kept"];
    make(&words, "kept/sf15k-competitive.hnrec", "simulated");
    all
}

#[test]
fn four_kinds_of_recordings_are_read_alike() {
    let dir = fresh("four-kinds");
    if !compilers() {
        return;
    }
    let python = python::python().map_err(|why| eprintln!("skipped in part, no DuckDB: {why}")).ok();
    let all = record(&dir);
    let mut ids = Vec::new();
    for (number, (recording, kind)) in all.iter().enumerate() {
        let json = |words: &[&str]| -> Value {
            let (status, out, err) = run(&dir, words);
            assert_eq!(status, Some(0), "{words:?}: {err}");
            serde_json::from_str(&out).unwrap_or_else(|e| panic!("{words:?}: {e}: {out}"))
        };
        // The data set itself.
        let set = Dataset::open(&dir.join(recording)).unwrap();
        assert_eq!((set.meta().kind.to_string().as_str(), set.missing()), (*kind, vec![]), "{recording}");
        ids.push((recording, grids(&set)));
        let accesses: Vec<Access> = set.rows().collect();
        let counted = accesses.iter().any(|a| a.tally.count().is_some());
        assert!(!accesses.is_empty() && counted == matches!(*kind, "lab" | "simulated"), "{recording}");
        let touches: Vec<FirstTouch> = set.rows().collect();
        assert!(!touches.is_empty(), "{recording}: nobody touched anything first");
        // show, in words, as a picture and as JSON.
        let (status, out, err) = run(&dir, &["show", recording]);
        assert!(status == Some(0) && !out.trim().is_empty(), "{recording}: {err}");
        let (status, out, err) = run(&dir, &["show", "--map", recording]);
        assert!(status == Some(0) && out.lines().count() > 3, "{recording}: {out}{err}");
        let shown = shown(&dir, recording);
        // diff, with itself and with the first of them.
        for (before, what) in [(recording, "itself"), (&all[0].0, "the first")] {
            let diff = json(&["diff", before, recording, "--json"]);
            let objects = diff["objects"].as_array().unwrap_or_else(|| panic!("{what}: {diff:#}"));
            let both = objects.iter().filter(|o| !o["before"].is_null() && !o["after"].is_null()).count();
            let same = usize::try_from(diff["unchanged_objects"].as_u64().unwrap()).unwrap();
            assert!(both + same >= 2, "{recording} and {what}: {diff:#}");
        }
        // rec export, and DuckDB on it.
        let out = format!("out{number}");
        json(&["rec", "export", recording, "-o", &out, "--json"]);
        let Some(python) = &python else { continue };
        assert_eq!(duckdb_rows(python, &dir, &out), shown, "{recording}");
        let answers = answers(python, &dir, &out);
        let meta = rows(&answers, "missing, coarsened");
        assert!(meta.len() == 1 && meta[0]["missing"] == "[]", "{recording}: {meta:?}");
        let named: Vec<&FirstTouch> = touches.iter().filter(|t| t.function.is_some()).collect();
        // The lab's monitor has no clock, and knows the CPU but not always the thread.
        let whole = |t: &&FirstTouch| *kind == "lab" || t.thread.is_some() && t.time_ns.is_some();
        assert!(named.iter().all(whole), "{recording}: {named:?}");
        assert!(*kind != "lab" || named.iter().any(|t| t.line.is_some()), "{recording}: {touches:?}");
        if matches!(*kind, "run" | "simulated") {
            moved_most(&answers, &set, recording);
        }
    }
    let (first, known) = &ids[0];
    for (recording, grids) in &ids {
        assert_eq!(grids, known, "the grids have one id in {first} and {recording}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

/// Which array moved most, when, from where to where, why, and did it pay: in SQL, as the data set
/// has it.
fn moved_most(answers: &[(String, Vec<Value>)], set: &Dataset, recording: &str) {
    let moves = rows(answers, "sum(m.pages * r.page_bytes)");
    let Some(most) = moves.first() else { panic!("{recording}: nothing moved") };
    let grids = grids(set);
    let name = set.rows::<Object>().find(|o| json!(o.name) == most["name"]).unwrap().id;
    assert!(grids.contains(&name), "{recording}: a grid moves most: {most}");
    assert_ne!(most["from_node"], most["to_node"], "{recording}: {most}");
    assert!(["policy", "next touch"].iter().any(|c| most["cause"] == *c), "{recording}: {most}");
    let seconds = |column: &str| most[column].as_str().unwrap().parse::<f64>().unwrap();
    assert!(seconds("first_s") <= seconds("last_s"), "{recording}: {most}");
    let rounds = rows(answers, "coalesce(moved.pages, 0)");
    // Rounds shorter than an interval are not listed.
    assert!(rounds.len() > 1, "{recording}: {rounds:?}");
}
