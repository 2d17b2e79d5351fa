//! The job for merge requests (`packaging/ci`), on a program of homenode's own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{compilers, fresh};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ci/placement.sh");

/// Status and comment of the job in a folder.
fn job(dir: &Path, fail_if: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let bin = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(SCRIPT);
    command.current_dir(dir).args(words).stdin(Stdio::null()).env("PATH", path);
    command.env("PLACEMENT_FAIL_IF", fail_if).env("XDG_CACHE_HOME", dir.join("cache"));
    let out = command.env_remove("LD_LIBRARY_PATH").output().unwrap();
    let comment = fs::read_to_string(dir.join("placement.md")).unwrap_or_default();
    (out.status.code(), comment, String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn a_merge_request_is_told_what_it_does_to_placement() {
    let dir = fresh("ci-job");
    if !compilers() || Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("skipped: a kernel takes gcc and cmake");
        return;
    }
    let words = ["kernel:sor", "--class", "S", "--threads", "4", "--", "--init", "serial"];
    let (status, comment, err) = job(&dir, "first-touch:remote>10", &words);
    assert_eq!(status, Some(1), "{comment}{err}");
    assert!(comment.starts_with("### Memory placement: `first-touch:remote>10` holds\n\n"), "{comment}");
    assert!(comment.contains("| --- | ---: |") && comment.contains("next-touch"), "{comment}");

    let (status, comment, err) = job(&dir, "first-touch:remote>100", &words);
    assert_eq!(status, Some(0), "{comment}{err}");
    assert!(comment.starts_with("### Memory placement: good\n\n"), "{comment}");

    let (status, comment, err) = job(&dir, "remote>10", &["./no-such-program"]);
    assert!(status.is_some_and(|s| s > 1), "{comment}{err}");
    assert!(comment.starts_with("### Memory placement: not measured"), "{comment}");
}
