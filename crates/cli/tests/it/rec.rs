//! `homenode rec check`.

use std::fs;

use crate::support::{fresh, instrumented, run};

#[test]
fn what_is_no_recording_is_usage() {
    let dir = fresh("rec-foreign");
    fs::create_dir(dir.join("foreign")).unwrap();
    fs::write(dir.join("foreign/meta.json"), "{\"name\": \"something else\"}").unwrap();
    fs::create_dir(dir.join("newer")).unwrap();
    let newer = r#"{"format": 99, "homenode": "9", "kind": "exact", "command": [], "environment": {},
        "filter_lines": 0, "ended": null}"#;
    fs::write(dir.join("newer/meta.json"), newer).unwrap();
    for (path, why) in [
        (".", "it has no meta.json"),
        ("foreign", "line 1: missing field"),
        ("newer", "format 99"),
        ("nowhere", "No such file"),
    ] {
        let (status, out, err) = run(&dir, &["rec", "check", path]);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{path}: {err}");
        assert!(err.contains(why), "{path}: {err}");
    }
}

#[test]
fn damage_is_placed() {
    let dir = fresh("rec-damage");
    let source = "static volatile int a[1 << 16]; int main(void) { for (int i = 0; i < 1 << 16; i++) a[i] = i; return 0; }";
    let Some(_) = instrumented(&dir, "p", source) else { return };
    assert_eq!(run(&dir, &["record", "-o", "r", "--filter", "none", "--", "./p"]).0, Some(0));
    let log = dir.join("r/threads/00000.hnlog");
    let whole = fs::read(&log).unwrap();

    fs::write(&log, &whole[..whole.len() - 7]).unwrap();
    let (status, out, _) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3));
    assert!(out.contains("00000.hnlog: at byte ") && out.contains("7 bytes are missing"), "{out}");
    assert!(out.contains("r: damaged: 1 problem;"), "{out}");

    let mut turned = whole.clone();
    turned[60] ^= 1;
    fs::write(&log, turned).unwrap();
    let (status, out, _) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3));
    assert!(out.contains("00000.hnlog: at byte 24"), "{out}");

    fs::write(&log, "not a log").unwrap();
    let (status, out, _) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3));
    assert!(out.contains("expected a homenode log"), "{out}");

    fs::write(&log, &whole).unwrap();
    let (status, out, _) = run(&dir, &["rec", "check", "r", "r", "--csv"]);
    assert_eq!(status, Some(0));
    assert_eq!(out.lines().count(), 3, "{out}");
    let (status, out, err) = run(&dir, &["rec", "check", "r", "nowhere"]);
    assert_eq!(status, Some(2), "one of two is no recording");
    assert!(out.contains("r: whole") && err.contains("nowhere"), "{out}{err}");
    assert_eq!(run(&dir, &["rec", "check", "r", "--fail-if", "accesses>1"]).0, Some(1));
}

#[test]
fn hostile_directories_end_in_words() {
    let dir = fresh("rec-hostile");
    let r = dir.join("r");
    fs::create_dir_all(r.join("threads/00000.hnlog")).unwrap();
    let meta = r#"{"format": 1, "homenode": "\u001b[2J", "kind": "exact", "command": ["\u001b[31m"],
        "environment": {}, "filter_lines": 4096, "ended": null}"#;
    fs::write(r.join("meta.json"), meta).unwrap();
    fs::write(r.join("symbols.json"), "{").unwrap();
    fs::write(r.join("status"), "stopped: \u{1b}[31mred").unwrap();
    let (status, out, err) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3), "{err}");
    assert!(!out.contains('\u{1b}') && out.contains("00000.hnlog"), "{out}");
    assert!(out.contains("symbols.json"), "{out}");
    fs::remove_dir_all(r.join("threads")).unwrap();
    let (status, _, err) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("threads: No such file"), "{err}");
}
