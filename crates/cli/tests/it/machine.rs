//! `homenode machine`.

use crate::support::{fresh, run};

#[test]
fn all_machines_are_listed_and_each_can_be_shown() {
    let dir = fresh("machine");
    let (status, out, _) = run(&dir, &["machine", "list", "--json"]);
    assert_eq!(status, Some(0));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "homenode/machine-list/1");
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() >= 9, "{out}");
    for row in rows {
        let name = row["machine"].as_str().unwrap();
        let (status, out, err) = run(&dir, &["machine", "show", name, "--json"]);
        if name == "this" && status != Some(0) {
            eprintln!("skipped: hwloc does not know this machine: {err}");
            continue;
        }
        assert_eq!(status, Some(0), "{name}: {err}");
        let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
        let matrix = shown["latency_ns"].as_array().unwrap();
        assert_eq!(matrix.len() as u64, row["nodes"].as_u64().unwrap(), "{name}");
        assert!(matrix.iter().all(|r| r.as_array().unwrap().len() == matrix.len()), "{name}");
        for value in shown["rows"].as_array().unwrap() {
            assert!(!value["source"].as_str().unwrap().is_empty(), "{name}: {value}");
        }
    }
}

#[test]
fn a_large_matrix_is_cut_on_the_terminal_only() {
    let dir = fresh("machine-large");
    let (_, out, _) = run(&dir, &["machine", "show", "origin2000"]);
    assert!(out.contains("\nnode 15 ") && out.contains("16 of 64 nodes; --json has all"), "{out}");
    let (_, out, _) = run(&dir, &["machine", "show", "sf15k"]);
    assert!(!out.contains("\nnode 0 ") && out.contains("216 ns local, 432 ns remote"), "{out}");
    let (_, out, _) = run(&dir, &["machine", "show", "epyc-nps4", "--csv"]);
    assert!(out.starts_with("number,value,source\r\n") && !out.contains("node 0"), "{out}");
}

#[test]
fn a_wrong_name_is_usage_with_the_nearest() {
    let (status, out, err) = run(&fresh("machine-wrong"), &["machine", "show", "sf51k"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(err.contains("did you mean 'sf15k'?"), "{err}");
}
