//! Programs with a run-time that makes system calls past the C library.
//!
//! The library in the program takes no page away there, for such a call fails on one: only the
//! kernel moves pages. It finds these run-times by the same notes when they are loaded
//! (`agent/src/raw_calls.rs`).

use std::fs::File;
use std::path::Path;

use object::{Object, ObjectSection, ReadCache};

/// Sections that such run-times leave, and what these are.
const SECTIONS: [(&str, &str); 1] = [(".note.go.buildid", "Go")];

/// The run-time of this kind in a program's file.
pub fn runtime(path: &Path) -> Option<&'static str> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let of = |name: &str| SECTIONS.iter().find(|(section, _)| *section == name).map(|(_, what)| *what);
    file.sections().find_map(|s| of(s.name().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_note_of_go_is_found_and_a_program_without_it_has_none() {
        let folder = std::env::temp_dir().join(format!("homenode-raw-calls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/raw_calls.c");
        let program = folder.join("a");
        let built = Command::new("gcc").arg("-pthread").arg("-o").arg(&program).arg(source).output();
        let of_it = runtime(&program);
        let _ = std::fs::remove_dir_all(&folder);
        if built.is_ok_and(|o| o.status.success()) {
            assert_eq!(of_it, Some("Go"));
        } else {
            println!("skipped: no gcc");
        }
        assert_eq!(runtime(&std::env::current_exe().unwrap()), None);
        assert_eq!(runtime(Path::new("/etc/passwd")), None);
    }
}
