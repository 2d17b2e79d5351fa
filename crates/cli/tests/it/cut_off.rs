//! Recordings that were cut off: whoever reads one says so in the first line, and ends with status
//! 3.

use std::fs;
use std::path::Path;

use crate::hostile_recordings::{copy, exact_meta, fixtures};
use crate::support::{fresh, instrumented, run};

/// Runs the command, whose first line must say that the recording is not all of it.
fn says_so(dir: &Path, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let (status, out, err) = run(dir, &words);
    // A plan goes to a file, and what is said of it to standard error.
    let all = out.clone() + &err;
    let first = all.lines().find(|l| !l.is_empty()).unwrap_or_default();
    assert_eq!(status, Some(3), "{line}\n{out}{err}");
    assert!(first.contains("not whole") || first.starts_with("! "), "{line}: {first:?}\n{out}{err}");
    assert!(all.contains("cut off") || all.contains("missing"), "{line}\n{out}{err}");
    // A page is a file: it has no JSON beside it.
    if !out.is_empty() && !line.starts_with("view") {
        let json = run(dir, &[&words[..], &["--json"]].concat());
        assert_eq!(json.0, Some(3), "{line} --json\n{}", json.1);
        let text = json.1;
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{line}: {e}\n{text}"));
        assert!(text.contains("cut off") || text.contains("missing\": [\n"), "{line} --json\n{text}");
    }
}

/// Whole ones are not said to be cut off.
fn is_whole(dir: &Path, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let (status, out, err) = run(dir, &words);
    assert_eq!(status, Some(0), "{line}\n{out}{err}");
    assert!(!(out + &err).contains("cut off"), "{line}");
}

/// What an exact recording is read by.
const EXACT: [&str; 5] = [
    "show R",
    "compare R",
    "plan R -m 2s-xeon -o R.hnplan",
    "explain R -m 2s-xeon",
    "view R -m 2s-xeon -o R.html",
];

/// Writes at random, then is killed.
const VICTIM: &str = r#"
#include <signal.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    static char a[1 << 22];
    unsigned x = 1;
    for (int i = 0; i < 1 << 20; i++) { x = x * 1664525 + 1013904223; a[x >> 10]++; }
    if (argc > 1) raise(atoi(argv[1]));
    return 0;
}
"#;

#[test]
fn a_program_that_was_killed() {
    let dir = fresh("cut-killed");
    let Some(_) = instrumented(&dir, "victim", VICTIM) else { return };
    let record = |to: &str, signal: &[&str]| {
        run(&dir, &[&["record", "-o", to, "--filter", "256", "--", "./victim"], signal].concat()).0
    };
    assert_eq!((record("whole", &[]), record("killed", &["9"])), (Some(0), Some(137)));
    let agree = "rec agree R R -m 2s-xeon --smallest 64KiB";
    for line in EXACT.iter().chain([&agree]) {
        is_whole(&dir, &line.replace('R', "whole"));
        says_so(&dir, &line.replace('R', "killed"));
    }
}

#[test]
fn exact_recordings() {
    let dir = fresh("cut-exact");
    let whole = dir.join("whole");
    copy(&fixtures().join("logs/v1/sor"), &whole.join("threads"));
    fs::write(whole.join("meta.json"), exact_meta("./sor")).unwrap();
    EXACT.iter().for_each(|line| is_whole(&dir, &line.replace('R', "whole")));
    // Killed: the program's end is not known.
    copy(&whole, &dir.join("killed"));
    let mut meta: serde_json::Value = serde_json::from_str(&exact_meta("./sor")).unwrap();
    meta["ended"] = serde_json::Value::Null;
    fs::write(dir.join("killed/meta.json"), meta.to_string()).unwrap();
    // Killed by a signal, with a log that ends inside of a chunk.
    copy(&whole, &dir.join("torn"));
    let log = dir.join("torn/threads/00001.hnlog");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() * 2 / 3]).unwrap();
    // A thread's log is gone.
    copy(&whole, &dir.join("gone"));
    fs::remove_file(dir.join("gone/threads/00001.hnlog")).unwrap();
    for name in ["killed", "torn", "gone"] {
        EXACT.iter().for_each(|line| says_so(&dir, &line.replace('R', name)));
        assert_eq!(run(&dir, &["rec", "check", name]).0, Some(3), "{name}");
    }
}

/// A damaged description is said first, the rest is shown, and the status is 3.
fn says_what_is_damaged(dir: &Path, line: &str, file: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let (status, out, err) = run(dir, &words);
    assert_eq!(status, Some(3), "{line}\n{out}{err}");
    let all = out + &err;
    let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = flat.contains(&format!("{file} is damaged"));
    assert!(named, "{line}\n{all}");
    assert!(!all.contains('\u{1b}') && !all.contains("panicked"), "{line}\n{all}");
    let first = |text: &str| text.lines().find(|l| !l.is_empty()).unwrap_or_default().to_owned();
    let is_first = match &words[..2] {
        // What is wrong stands below the threads.
        ["rec", "check"] => true,
        // The table of files follows on standard output.
        ["rec", "export"] => first(&err).contains("is partial"),
        _ => first(&all).contains("not whole") || first(&all).starts_with("! "),
    };
    assert!(is_first, "{line}\n{all}");
}

/// Cut off, a flipped bit, and empty.
fn damages(text: &str) -> [Vec<u8>; 3] {
    let bytes = text.as_bytes();
    let mut flipped = bytes.to_vec();
    let at = text.find("\"command\"").expect("it has a command");
    flipped[at] ^= 1 << 3;
    [bytes[..at + 9].to_vec(), flipped, Vec::new()]
}

#[test]
fn a_damaged_description_of_logs() {
    let dir = fresh("cut-described");
    let whole = dir.join("whole");
    copy(&fixtures().join("logs/v1/sor"), &whole.join("threads"));
    fs::write(whole.join("meta.json"), exact_meta("./sor")).unwrap();
    let counts = |name: &str| {
        let text = run(&dir, &["show", name, "-m", "2s-xeon", "--json"]).1;
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let objects = json["objects"].as_array().expect("a list").iter();
        objects.map(|o| o["accesses"]["count"].as_u64().expect("a count")).collect::<Vec<_>>()
    };
    let sound = counts("whole");
    assert!(sound.iter().sum::<u64>() > 0, "{sound:?}");
    for (n, bytes) in damages(&exact_meta("./sor")).iter().enumerate() {
        let name = format!("damaged-{n}");
        copy(&whole, &dir.join(&name));
        fs::write(dir.join(&name).join("meta.json"), bytes).unwrap();
        let lines = [&EXACT[..], &["rec check R", "diff R whole", "rec export R -o out-R"]].concat();
        for line in lines {
            says_what_is_damaged(&dir, &line.replace('R', &name), "meta.json");
        }
        let (_, out, _) = run(&dir, &["rec", "check", &name]);
        assert!(out.contains("damaged: its description; its logs are whole"), "{out}");
        assert_eq!(counts(&name), sound, "{name}");
    }
}

#[test]
fn a_damaged_description_of_an_older_form() {
    let dir = fresh("cut-described-older");
    for (kind, about) in [("lab", "lab.json"), ("live", "live.json")] {
        let whole = dir.join(kind);
        copy(&fixtures().join(format!("recordings/{kind}-v1")), &whole);
        let meta = fs::read_to_string(whole.join("meta.json")).unwrap();
        let text = fs::read_to_string(whole.join(about)).unwrap();
        let half = text.as_bytes()[..text.len() / 2].to_vec();
        let all = damages(&meta).map(|bytes| ("meta.json", bytes));
        for (n, (file, bytes)) in all.into_iter().chain([(about, half), (about, Vec::new())]).enumerate() {
            let name = format!("{kind}-damaged-{n}");
            copy(&whole, &dir.join(&name));
            fs::write(dir.join(&name).join(file), bytes).unwrap();
            for line in
                ["show R", "show --map R", "rec check R", "diff R W", "explain R", "rec export R -o out-R"]
            {
                says_what_is_damaged(&dir, &line.replace('R', &name).replace('W', kind), file);
            }
        }
    }
}

#[test]
fn recordings_of_the_lab_and_live_ones() {
    let dir = fresh("cut-older");
    for kind in ["lab", "live"] {
        let whole = dir.join(kind);
        copy(&fixtures().join(format!("recordings/{kind}-v1")), &whole);
        let (cut, upgraded) = (format!("{kind}-cut"), format!("{kind}-new"));
        copy(&whole, &dir.join(&cut));
        let meta = dir.join(&cut).join("meta.json");
        let mut json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&meta).unwrap()).unwrap();
        assert!(!json["ended"].is_null());
        json["ended"] = serde_json::Value::Null;
        fs::write(&meta, json.to_string()).unwrap();
        let lines = [
            "show R",
            "show R -v",
            "show --map R",
            "diff R W",
            "diff W R",
            "explain R",
            "explain R --against W",
            "view R -o R.html",
        ];
        for line in lines {
            is_whole(&dir, &line.replace(['R', 'W'], kind));
            says_so(&dir, &line.replace('R', &cut).replace('W', kind));
        }
        // In today's form it is cut off just the same.
        assert_eq!(run(&dir, &["rec", "upgrade", &cut, "-o", &upgraded]).0, Some(0));
        for line in lines {
            says_so(&dir, &line.replace('R', &upgraded).replace('W', kind));
        }
        for (words, name) in [(["rec", "check"], &cut), (["rec", "check"], &upgraded)] {
            let (status, out, _) = run(&dir, &[&words[..], &[name.as_str()]].concat());
            assert!(status == Some(3) && out.contains("cut off"), "{out}");
        }
    }
    says_so(&dir, "rec agree lab-cut lab");
    says_so(&dir, "rec agree lab lab-new");
    is_whole(&dir, "rec agree lab lab");
}
