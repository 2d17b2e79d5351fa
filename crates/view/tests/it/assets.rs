//! The page's program is what its source says, and the hashes are those of the assets in the tree.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use homenode_view::page::{self, PictureSource};
use homenode_view::tiles::plane::base64;

use crate::support::fresh;

#[test]
fn the_program_is_that_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !there("node") || !there("npm") {
        eprintln!("skipped: there is no node or no npm");
        return;
    }
    // A test fetches nothing.
    if !root.join("viewer/node_modules/esbuild").is_dir() {
        eprintln!("skipped: viewer/node_modules is not there ('scripts/viewer.sh' fetches it)");
        return;
    }
    let folder = fresh("assets");
    let made = Command::new("sh").arg(root.join("scripts/viewer.sh")).arg(&folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for name in ["viewer.js", "viewer.css", "viewer.csp"] {
        let now = std::fs::read(folder.join(name)).unwrap();
        let kept = std::fs::read(root.join("crates/view/assets").join(name)).unwrap();
        assert!(now == kept, "{name} is not what viewer/ makes: run scripts/viewer.sh");
    }
}

#[test]
fn the_hashes_are_those_of_the_program_and_its_looks() {
    if Command::new("sha256sum").arg("--version").output().is_err() {
        eprintln!("skipped: there is no sha256sum");
        return;
    }
    for text in [page::SCRIPT, page::STYLE] {
        let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        sum.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap();
        let byte = |i: usize| u8::from_str_radix(&output[2 * i..2 * i + 2], 16).unwrap();
        let hash = base64(&(0..32).map(byte).collect::<Vec<_>>());
        assert!(
            page::policy(PictureSource::File).contains(&format!("'sha256-{hash}'")),
            "run scripts/viewer.sh"
        );
    }
}

#[test]
fn the_program_names_the_licences_of_what_it_contains() {
    let head: String = page::SCRIPT.lines().take(30).collect();
    for part in ["MIT OR Apache-2.0", "d3-scale", "ISC", "Copyright", "Permission to use, copy"] {
        assert!(head.contains(part), "{part}");
    }
}
