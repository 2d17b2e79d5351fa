//! `homenode rec export`, `rec merge` and `rec upgrade`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{fresh, run};

#[path = "../../../export/tests/support/python.rs"]
pub mod python;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dataset/v1")
}

/// A copy of the fixture; `rank` becomes its rank.
fn copy(to: &Path, rank: Option<u32>) {
    let from = fixture();
    fs::create_dir_all(to.join("tables")).unwrap();
    for entry in fs::read_dir(from.join("tables")).unwrap().flatten() {
        fs::copy(entry.path(), to.join("tables").join(entry.file_name())).unwrap();
    }
    let text = fs::read_to_string(from.join("dataset.json")).unwrap();
    let rank = rank.map_or("null".to_owned(), |r| r.to_string());
    fs::write(to.join("dataset.json"), text.replace("\"rank\": 0", &format!("\"rank\": {rank}"))).unwrap();
}

fn rows(json: &str, table: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    let row = value["rows"].as_array().unwrap().iter().find(|r| r["table"] == table).unwrap();
    row["rows"].as_u64().unwrap()
}

#[test]
fn a_data_set_becomes_parquet() {
    let dir = fresh("rec-export");
    copy(&dir.join("r"), Some(0));
    let (status, out, err) = run(&dir, &["rec", "export", "r", "-o", "out", "--json"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert_eq!((rows(&out, "meta"), rows(&out, "nodes")), (1, 4));
    let part = dir.join("out/accesses/host=local/job=0/rank=0/part-0.parquet");
    assert!(fs::read(&part).unwrap().starts_with(b"PAR1"));
    let (status, _, err) = run(&dir, &["rec", "export", "r", "-o", "out"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("out is there already") && err.contains("--force"), "{err}");
    assert_eq!(run(&dir, &["rec", "export", "r", "-o", "out", "--force"]).0, Some(0));
    let (status, _, err) = run(&dir, &["rec", "export", "r", "-o", "r", "--force"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("it is no export") && dir.join("r/dataset.json").exists(), "{err}");
    let (status, _, err) = run(&dir, &["rec", "export", "nowhere", "-o", "x"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("cannot read the recording nowhere"), "{err}");
}

#[test]
fn a_partial_data_set_says_so_first() {
    let dir = fresh("rec-export-partial");
    copy(&dir.join("r"), Some(0));
    let file = dir.join("r/tables/migrations.hntable");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    let json = dir.join("r/dataset.json");
    let text = fs::read_to_string(&json).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["ended"] = serde_json::Value::Null;
    fs::write(&json, value.to_string()).unwrap();
    let (status, out, err) = run(&dir, &["rec", "export", "r", "-o", "out", "--json"]);
    assert_eq!(status, Some(3), "{err}");
    let first = err.lines().next().unwrap();
    assert!(first.contains("r is partial: the recording was cut off"), "{err}");
    assert!(err.contains("tables/migrations.hntable is damaged at byte"), "{err}");
    assert_eq!((rows(&out, "migrations"), rows(&out, "nodes")), (0, 4));
}

#[test]
fn ranks_are_merged_and_exported_apart() {
    let dir = fresh("rec-merge");
    copy(&dir.join("a"), None);
    copy(&dir.join("b"), Some(3));
    let (status, out, err) = run(&dir, &["rec", "merge", "a", "b", "-o", "all"]);
    assert_eq!((status, out.as_str()), (Some(0), ""), "{err}");
    let (_, out, _) = run(&dir, &["rec", "export", "all", "-o", "out", "--json"]);
    assert_eq!((rows(&out, "meta"), rows(&out, "nodes")), (2, 4));
    for rank in [0, 3] {
        assert!(dir.join(format!("out/nodes/host=local/job=0/rank={rank}/part-0.parquet")).exists());
    }
    let (status, _, err) = run(&dir, &["rec", "merge", "b", "b", "-o", "twice"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("both are rank 3") && !dir.join("twice").exists(), "{err}");
    assert_eq!(run(&dir, &["rec", "merge", "a", "b", "-o", "all"]).0, Some(125), "it is there");
}

#[test]
fn forms_and_versions_are_named() {
    let dir = fresh("rec-upgrade");
    copy(&dir.join("r"), Some(0));
    let (status, out, _) = run(&dir, &["rec", "upgrade", "r", "--csv"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("r,data set,1,is the newest"), "{out}");
    let logs = dir.join("logs");
    fs::create_dir_all(logs.join("threads")).unwrap();
    let meta = r#"{"format": 1, "homenode": "0", "kind": "exact", "command": [], "environment": {},
        "filter_lines": 0, "ended": null}"#;
    fs::write(logs.join("meta.json"), meta).unwrap();
    let (status, out, err) = run(&dir, &["rec", "upgrade", "logs", "r", "nowhere", "--csv"]);
    assert_eq!(status, Some(2));
    assert!(
        out.contains("logs,logs of every access,1,") && err.contains("cannot read nowhere"),
        "{out}{err}"
    );
}

/// What DuckDB makes of an export in the words of `show --json`: `homenode show` counts what is
/// timed.
const AS_SHOW: &str = r#"
import json, sys
import duckdb
out = sys.argv[1]
def table(name):
    return f"read_parquet('{out}/{name}/**/*.parquet', hive_partitioning = true)"
# Where no interval is timed, all count.
any_timed = f"(SELECT coalesce(bool_or(timed), false) FROM {table('intervals')})"
timed = f"(SELECT interval FROM {table('intervals')} WHERE timed OR NOT {any_timed})"
rows = duckdb.sql(f"""
    SELECT o.id, o.name, o.bytes,
           (SELECT coalesce(sum(seen), 0) FROM {table('accesses')} a
            WHERE a.object = o.object AND a.interval IN {timed}),
           (SELECT sum("count") FROM {table('accesses')} a
            WHERE a.object = o.object AND a.interval IN {timed}),
           (SELECT CASE WHEN count("count") > 0 THEN sum("count") FILTER (a.node <> a.home)
                        ELSE sum(seen) FILTER (a.node <> a.home) END FROM {table('accesses')} a
            WHERE a.object = o.object AND a.interval IN {timed}),
           (SELECT coalesce(sum(pages), 0) FROM {table('migrations')} m
            WHERE m.object = o.object AND m.outcome <> 'refused')
    FROM {table('objects')} o ORDER BY o.object""").fetchall()
print(json.dumps([[v if v is None or isinstance(v, str) else int(v) for v in row] for row in rows]))
"#;

/// The same numbers from the text that `show --json` prints.
pub fn shown(dir: &Path, recording: &str) -> Vec<serde_json::Value> {
    let (status, out, err) = run(dir, &["show", recording, "--json", "--top", "1000"]);
    assert_eq!(status, Some(0), "{err}");
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    let mut objects = all["objects"].as_array().unwrap().clone();
    assert_eq!(all["objects_in_all"], objects.len());
    // Accesses of no object have a row in `show`, and none in the table of objects.
    objects.retain(|o| !o["object"].is_null());
    objects.sort_by_key(|o| o["object"].as_u64());
    let row = |o: &serde_json::Value| {
        let part = &o["remote"]["part"];
        let moved = o["moves"]["pages"].as_u64().unwrap_or(0);
        let seen = o["accesses"]["seen"].as_u64().unwrap_or(0);
        serde_json::json!([o["id"], o["name"], o["bytes"], seen, o["accesses"]["count"], part, moved])
    };
    objects.iter().map(row).map(without_null).collect()
}

#[test]
fn duckdb_finds_in_an_export_what_show_prints() {
    let dir = fresh("rec-export-show");
    let python = match python::python() {
        Ok(python) => python,
        Err(why) => return println!("skipped: {why}"),
    };
    copy(&dir.join("r"), Some(0));
    assert_eq!(run(&dir, &["rec", "export", "r", "-o", "out"]).0, Some(0));
    let shown = shown(&dir, "r");
    assert!(shown.len() > 2, "{shown:#?}");
    assert_eq!(shown, duckdb_rows(&python, &dir, "out"));
}

/// What DuckDB finds in the export `out`, a row for each object.
pub fn duckdb_rows(python: &Path, dir: &Path, out: &str) -> Vec<serde_json::Value> {
    let mut command = std::process::Command::new(python);
    let found = command.args(["-c", AS_SHOW, out]).current_dir(dir).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    found.as_array().unwrap().iter().cloned().map(without_null).collect()
}

/// Without an access there is nothing to count, and without a remote access nothing to add up.
fn without_null(mut row: serde_json::Value) -> serde_json::Value {
    if row[3] == 0 {
        row[4] = 0.into();
    }
    if row[5].is_null() {
        row[5] = 0.into();
    }
    row
}
