//! A name of a public type says one thing in the whole workspace.
//!
//! Two crates do not both define a public struct, enum, trait, type alias or union of one name. A
//! reader who finds the name in a third crate then knows which of them is meant. Names that
//! [`SHARED`] lists may be shared, each for a reason.

use std::collections::{BTreeMap, BTreeSet};

use super::TextFile;
use crate::map;

/// Names that several crates define, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("Error", "the convention of Rust's libraries: users write the crate in front"),
    ("Result", "the convention of Rust's libraries: users write the crate in front"),
];

/// Complains of each name that several crates define and [`SHARED`] has not, and of names there
/// that one crate alone defines.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let crates = definitions(files);
    let names: Vec<(&str, Vec<&str>)> = crates
        .iter()
        .map(|(name, crates)| (name.as_str(), crates.iter().map(String::as_str).collect()))
        .collect();
    judge(&names, &SHARED.iter().map(|(name, _)| *name).collect::<Vec<_>>())
}

fn judge(names: &[(&str, Vec<&str>)], listed: &[&str]) -> Vec<String> {
    let doubles = names.iter().filter(|(name, crates)| crates.len() > 1 && !listed.contains(name));
    let doubles = doubles.map(|(name, crates)| {
        format!("the crates {} each define a public {name}; rename all but one", crates.join(", "))
    });
    let is_shared = |listed: &str| names.iter().any(|(name, crates)| *name == listed && crates.len() > 1);
    let stale = listed.iter().filter(|name| !is_shared(name));
    let stale = stale.map(|name| format!("xtask/src/tidy/names.rs: {name} is not shared; take it off"));
    doubles.chain(stale).collect()
}

/// The crates that define a public type, by the type's name.
fn definitions(files: &[TextFile]) -> BTreeMap<String, BTreeSet<String>> {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let Some((krate, _)) = map::crate_and_file(&file.path) else { continue };
        for name in map::public_types(&file.text) {
            crates.entry(name).or_default().insert(krate.to_owned());
        }
    }
    crates
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn two_crates_may_not_define_one_name_and_a_list_may_not_go_stale() {
        let names = [("Plan", vec!["plan", "wire"]), ("Step", vec!["trace"]), ("Error", vec!["log", "sys"])];
        assert!(judge(&names, &["Plan", "Error"]).is_empty());
        let complaints = judge(&names, &["Error", "Step"]);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].contains("plan, wire each define a public Plan"));
        assert!(complaints[1].contains("Step is not shared"));
    }

    #[test]
    fn public_types_of_sources_count_and_nothing_else() {
        let files = [
            file(
                "crates/a/src/lib.rs",
                "pub struct One; pub(crate) enum Two {} mod m { pub type Three = u8; }",
            ),
            file(
                "crates/b/src/c/d.rs",
                "/// pub struct No;\npub unsafe trait One { type Four; } struct Five;",
            ),
            file(
                "crates/b/src/t.rs",
                "#[cfg(test)] mod tests { pub struct Three; } fn f() { let pub_struct = 1; }",
            ),
            file("crates/b/tests/it.rs", "pub struct Three;"),
        ];
        let found = definitions(&files);
        let names: Vec<(&str, usize)> = found.iter().map(|(name, c)| (name.as_str(), c.len())).collect();
        assert_eq!(names, [("One", 2), ("Three", 1)]);
    }
}
