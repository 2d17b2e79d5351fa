//! `homenode compare --schedule` and `-p padded`: a recorded dynamic loop under other schedules,
//! and rows on pages of their own.

use std::path::Path;

use crate::support::{compilers, fresh, homenode, outcome};

/// Four nodes with a CPU and little cache each.
const MACHINE: &str = include_str!("../../../../tests/schedules/four.toml");

/// A recording of tests/schedules/lu.c; false: there are no compilers.
fn recorded(dir: &Path, args: &[&str]) -> bool {
    if !compilers() {
        return false;
    }
    std::fs::write(dir.join("four.toml"), MACHINE).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/lu.c");
    let cc = Path::new(env!("CARGO_BIN_EXE_homenode")).with_file_name("homenode-cc");
    let built = std::process::Command::new(cc)
        .args(["-O2", "-g", "-fopenmp", "-o"])
        .arg(dir.join("lu"))
        .arg(source)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut command = homenode(dir);
    command.args(["record", "--threads", "4", "-o", "lu.hnrec", "--filter", "256", "--", "./lu"]).args(args);
    let (status, out, err) = outcome(&command.env("OMP_SCHEDULE", "dynamic,1").output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    true
}

/// The remote share in percent and the time of each scheme, and all notes.
fn compared(dir: &Path, words: &[&str]) -> (Vec<(String, f64, f64)>, String) {
    let mut command = homenode(dir);
    command.args(["compare", "lu.hnrec", "-m", "four.toml", "--json"]).args(words);
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap().iter().map(|row| {
        let number = |name: &str| row[name].as_f64().unwrap();
        (row["scheme"].as_str().unwrap().to_owned(), number("remote"), number("time"))
    });
    (rows.collect(), json["notes"].to_string())
}

fn of<'a>(rows: &'a [(String, f64, f64)], name: &str) -> &'a (String, f64, f64) {
    rows.iter().find(|r| r.0 == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

#[test]
fn a_dynamic_loop_is_tried_under_other_schedules() {
    let dir = fresh("compare-schedule");
    if !recorded(&dir, &["128", "padded"]) {
        return;
    }
    let words = ["dynamic", "block", "cyclic", "affinity", "work-stealing"]
        .iter()
        .flat_map(|s| ["--schedule", s])
        .chain(["-p", "first-touch"])
        .collect::<Vec<_>>();
    let (rows, notes) = compared(&dir, &words);
    assert_eq!(rows.len(), 6, "{rows:?}");
    let remote = |name: &str| of(&rows, &format!("{name}/first-touch")).1;
    // Each column has its thread under affinity; under dynamic it has a new one each round.
    assert!(remote("affinity") * 2.0 <= remote("dynamic"), "{rows:?}");
    // A column changes hands as fewer are left.
    assert!(remote("affinity") < remote("block"), "{rows:?}");
    assert!(notes.contains("schedule affinity: 128 executions of dynamic loops dealt anew, "), "{notes}");
    let again = compared(&dir, &words);
    assert_eq!(again, (rows, notes), "the same recording gives the same numbers");
}

#[test]
fn rows_on_pages_of_their_own_are_tried_and_named() {
    let dir = fresh("compare-padded");
    // Columns of 400 doubles are 4/5 of a page.
    if !recorded(&dir, &["400", "plain", "60"]) {
        return;
    }
    let words = ["--schedule", "affinity", "-p", "first-touch", "-p", "padded"];
    let (rows, notes) = compared(&dir, &words);
    let (before, after) = (of(&rows, "affinity/first-touch").1, of(&rows, "affinity/padded").1);
    assert!(after < before * 0.8, "{rows:?}");
    assert!(
        notes.contains("affinity/padded: pad the rows of a from 400 to 512 elements (3200 to 4096 bytes); "),
        "{notes}"
    );
    assert!(notes.contains("pages hold parts of several nodes"), "{notes}");
}

#[test]
fn a_recording_without_dynamic_loops_is_refused() {
    let dir = fresh("compare-schedule-static");
    if !compilers() {
        return;
    }
    let source = "int main(void) { double a[4]; for (int i = 0; i < 4; i++) a[i] = i; return a[0] > 1; }\n";
    if crate::support::instrumented(&dir, "plain", source).is_none() {
        return;
    }
    let (status, _, err) = crate::support::run(&dir, &["record", "-o", "plain.hnrec", "--", "./plain"]);
    assert_eq!(status, Some(0), "{err}");
    let (status, _, err) = crate::support::run(&dir, &["compare", "plain.hnrec", "--schedule", "cyclic"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(
        err.contains("has no dynamic loop that can be dealt anew") && err.contains("OMP_SCHEDULE"),
        "{err}"
    );
    let (status, _, err) = crate::support::run(&dir, &["compare", "plain.hnrec", "--schedule", "guided"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("there is no schedule guided"), "{err}");
}
