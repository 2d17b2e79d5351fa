//! `homenode rec export`, `rec merge` and `rec upgrade`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{fresh, run};

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
