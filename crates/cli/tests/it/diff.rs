//! `homenode diff` of recordings, folders of them, and results of `homenode compare`.

use std::fs;

use homenode_dataset::{Basis, RecordingKind};

use crate::heat::{Heat, Placement};
use crate::support::{fresh, run};

fn widest(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

/// The program was edited: its arrays are allocated in other lines, at other addresses.
fn moved() -> Heat {
    Heat { placement: Placement::NextTouch, address: 0x7f00_0000_0000, line: 99, ..Heat::default() }
}

#[test]
fn what_changed_is_said_first() {
    let dir = fresh("diff-recordings");
    Heat::default().write(&dir.join("before"));
    moved().write(&dir.join("after"));
    let (status, out, err) = run(&dir, &["diff", "before", "after"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "remote 75.0 → 3.8 % of accesses (exact); iterations 21.0 ms → 12.0 ms (−42.8 %)",
            "temperature_old changed most: remote 75.0 → 3.8 %, pages moved 0 → 386",
            "",
        ]
    );
    assert!(widest(&out) <= 80, "{out}");
    let row = out.lines().find(|l| l.starts_with("temperature_old  ")).unwrap();
    assert!(
        row.contains("75.0 → 3.8") && row.contains("619 ms → 330 ms") && row.contains("0 → 386"),
        "{out}"
    );
    assert!(out.contains("2 objects did not change: --all lists them"), "{out}");
    assert!(out.contains("matched by name, as ids differ: 2 objects"), "{out}");
    assert!(run(&dir, &["diff", "before", "after", "--all"]).1.contains("residual"));
    let (status, out, _) = run(&dir, &["diff", "before", "before"]);
    assert!(status == Some(0) && out.contains("no object changed") && !out.contains("temperature"), "{out}");
}

#[test]
fn programs_get_both_sides_and_the_change() {
    let dir = fresh("diff-json");
    Heat::default().write(&dir.join("before"));
    moved().write(&dir.join("after"));
    let (_, out, _) = run(&dir, &["diff", "before", "after", "--json"]);
    let diff: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(diff["schema"], "homenode/diff/1");
    let old = &diff["objects"][0];
    assert_eq!((&old["name"], &old["matched"]), (&"temperature_old".into(), &"name".into()));
    assert_eq!(old["change"]["remote"], -19 * 384 * 320);
    assert_eq!(
        (&old["before"]["id"], &old["after"]["id"]),
        (&"heat.c:28 < main.c:9 #0".into(), &"heat.c:99 < main.c:9 #0".into())
    );
    assert_eq!(diff["iteration_ns"], -9_000_000);
    let (_, csv, _) = run(&dir, &["diff", "before", "after", "--csv"]);
    assert!(
        csv.lines().nth(1).unwrap().contains(",2097152,2097152,75,3.75,3276800,3276800,exact,exact,"),
        "{csv}"
    );
    assert_eq!(
        run(&dir, &["diff", "before", "after", "--fail-if", "temperature_old:share_change<-50"]).0,
        Some(1)
    );
    assert_eq!(
        run(&dir, &["diff", "before", "after", "--fail-if", "temperature_old:share_change>0"]).0,
        Some(0)
    );
}

#[test]
fn a_presence_is_not_subtracted_and_the_answer_says_so() {
    let dir = fresh("diff-presence");
    Heat { basis: Basis::Presence, kind: RecordingKind::Live, ..Heat::default() }.write(&dir.join("before"));
    moved().write(&dir.join("after"));
    let (status, out, _) = run(&dir, &["diff", "before", "after"]);
    assert_eq!(status, Some(0));
    assert!(
        out.starts_with("BEFORE has presence, AFTER has counts: their numbers are not subtracted\n"),
        "{out}"
    );
    assert!(
        widest(&out) <= 80
            && out.contains("remote 73.9 % of sightings (presence) → 3.8 % of accesses (exact)")
            && out.contains("times are not subtracted"),
        "{out}"
    );
    let (_, out, _) = run(&dir, &["diff", "before", "after", "--json"]);
    let diff: serde_json::Value = serde_json::from_str(&out).unwrap();
    let change = &diff["objects"][0]["change"];
    for number in ["accesses", "remote", "remote_per_million", "memory_time_ps"] {
        assert_eq!(change[number], serde_json::Value::Null, "{number}");
    }
    assert_eq!(diff["unlike"], serde_json::json!(["counts-and-presence", "clock"]));
}

#[test]
fn what_is_not_whole_is_said_first() {
    let dir = fresh("diff-cut");
    Heat::default().write(&dir.join("before"));
    Heat { ended: false, ..moved() }.write(&dir.join("after"));
    for words in [&["diff", "before", "after"][..], &["diff", "before", "after", "--json"]] {
        let (status, out, _) = run(&dir, words);
        assert_eq!(status, Some(3));
        assert!(out.contains("the recording was cut off: it has no end"), "{out}");
        assert!(words.len() == 4 || out.starts_with("not whole: AFTER: "), "{out}");
    }
}

#[test]
fn folders_of_recordings_go_together_by_name() {
    let dir = fresh("diff-folders");
    for (folder, heat) in [("old", Heat::default()), ("new", moved())] {
        heat.write(&dir.join(folder).join("epyc-SI.hnrec"));
    }
    Heat::default().write(&dir.join("new/epyc-PI.hnrec"));
    let (status, out, err) = run(&dir, &["diff", "old", "new"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let row = out.lines().find(|l| l.starts_with("epyc-SI.hnrec")).unwrap();
    assert!(row.contains("75.0") && row.contains("3.8") && row.ends_with("temperature_old"), "{out}");
    assert!(out.contains("only in the folder after"), "{out}");
    let (_, out, _) = run(&dir, &["diff", "old", "new", "--json"]);
    let diff: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&diff["schema"], &diff["whole"]), (&"homenode/diff-folders/1".into(), &true.into()));
    assert_eq!(diff["pairs"][0]["only"], "after");
    assert_eq!(diff["pairs"][1]["diff"]["objects"][0]["name"], "temperature_old");
    // One recording of them is not whole.
    Heat { ended: false, ..Heat::default() }.write(&dir.join("old/epyc-PI.hnrec"));
    let (status, out, _) = run(&dir, &["diff", "old", "new"]);
    assert!(status == Some(3) && out.starts_with("not whole: "), "{out}");
}

const COMPARED: &str = r#"{"schema": "homenode/compare/1", "columns": [
  {"key": "scheme", "title": "scheme", "unit": null}, {"key": "time", "title": "model time", "unit": "s"},
  {"key": "remote", "title": "remote", "unit": "%"}, {"key": "moved", "title": "pages moved", "unit": null}],
  "rows": [{"scheme": "SI", "time": 2.5, "remote": 88.0, "moved": 0}, {"scheme": "PI", "time": 1.5, "remote": 3.0, "moved": 0}]}"#;

#[test]
fn two_results_of_compare_are_compared_by_scheme() {
    let dir = fresh("diff-compare");
    fs::write(dir.join("a.json"), COMPARED).unwrap();
    fs::write(dir.join("b.json"), COMPARED.replace("2.5", "2.0").replace("88.0", "44.0")).unwrap();
    let (status, out, err) = run(&dir, &["diff", "a.json", "b.json", "--csv"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "scheme,time_before,time_after,time_ratio,remote_before,remote_after,remote_ratio,moved_before,moved_after",
            "SI,2.5,2,0.8,88,44,0.5,0,0",
        ]
    );
    let (_, out, _) = run(&dir, &["diff", "a.json", "b.json"]);
    assert!(out.contains("1 schemes did not change; --all shows them"), "{out}");
}

#[test]
fn two_of_different_kinds_are_refused() {
    let dir = fresh("diff-kinds");
    Heat::default().write(&dir.join("r"));
    fs::write(dir.join("a.json"), COMPARED).unwrap();
    let (status, _, err) = run(&dir, &["diff", "r", "a.json"]);
    assert_eq!(status, Some(2));
    assert!(
        err.contains("not of one kind")
            && err.contains("r is a recording")
            && err.contains("result of 'homenode compare'"),
        "{err}"
    );
    fs::write(dir.join("old.json"), COMPARED.replace("compare/1", "compare/9")).unwrap();
    let (status, _, err) = run(&dir, &["diff", "a.json", "old.json"]);
    assert!(status == Some(2) && err.contains("compare/9"), "{err}");
    let (_, help, _) = run(&dir, &["diff", "--help"]);
    for word in ["recordings", "comparisons", "measurements"] {
        assert!(help.contains(word), "{word}\n{help}");
    }
}
