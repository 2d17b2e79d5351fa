//! What a user reads when a simulation would take too much memory.

use std::fs;

use crate::hostile_recordings::{copy, exact_meta, fixtures};
use crate::support::{fresh, homenode};

#[test]
fn a_simulation_stops_at_its_bound_of_memory() {
    let dir = fresh("simulation-memory");
    copy(&fixtures().join("logs/v1/sor"), &dir.join("r/threads"));
    fs::write(dir.join("r/meta.json"), exact_meta("./sor")).unwrap();
    let compare = |bound: &str| {
        let words = ["compare", "-q", "r", "-m", "sf15k", "-p", "round-robin"];
        let out = homenode(&dir).env("HOMENODE_MEMORY", bound).args(words).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, err) = compare("1KiB");
    assert!(status.is_some_and(|s| s != 0), "{err}");
    for words in ["cannot simulate", "of memory", "HOMENODE_MEMORY=16GiB"] {
        assert!(err.contains(words), "{words}: {err}");
    }
    let (status, err) = compare("64GiB");
    assert_eq!(status, Some(0), "{err}");
    let (status, err) = compare("plenty");
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("HOMENODE_MEMORY is 'plenty'"), "{err}");
}
