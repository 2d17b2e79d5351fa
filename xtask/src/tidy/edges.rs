//! Which crate may be built from which, and what must never reach a program that homenode is loaded
//! into. The tables are ARCHITECTURE.md's own.

use std::collections::{BTreeMap, BTreeSet};

use super::TextFile;
use crate::metadata::Package;

/// What a crate may depend on within the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum May {
    /// These.
    Only(BTreeSet<String>),
    /// All but these.
    AllBut(BTreeSet<String>),
}
use May::{AllBut, Only};

/// Where the tables are.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MAP: &str = "| folder | what it is | may depend on |";
const DEPENDENCIES: &str = "| crate | used by | for |";

/// The three cells of each row of the table under this heading.
fn rows<'a>(files: &'a [TextFile], heading: &str) -> Vec<[&'a str; 3]> {
    let text = files.iter().find(|f| f.path == ARCHITECTURE).map_or("", |f| &f.text);
    let rows = text.lines().skip_while(|l| *l != heading).skip(2).take_while(|l| l.starts_with('|'));
    let cells = |row: &'a str| {
        let (first, rest) = row.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        let (middle, last) = rest.rsplit_once(" | ")?;
        Some([first, middle, last])
    };
    rows.filter_map(cells).collect()
}

/// Names that are separated by commas.
fn list(text: &str) -> BTreeSet<String> {
    text.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

/// The crates of the map and what each may depend on, from the top down.
fn edges(files: &[TextFile]) -> Vec<(&str, May)> {
    rows(files, MAP)
        .into_iter()
        .filter_map(|[folder, _, may]| {
            let name = folder.strip_prefix("`crates/")?.strip_suffix('`')?;
            let may = match may.strip_prefix("all but ") {
                Some(others) => AllBut(list(others)),
                None if may == "nothing" => Only(BTreeSet::new()),
                None => Only(list(may)),
            };
            Some((name, may))
        })
        .collect()
}

/// Loaded into somebody else's process (or QEMU): small, and without threads of their own.
const LOADED: &[&str] = &["agent", "loops", "tracer", "guest", "plugin"];

/// What must not be in them, by the beginning of its name.
const HEAVY: &[&str] = &["arrow", "parquet", "hwloc", "tokio", "async-std", "smol", "futures"];

const PREFIX: &str = "homenode-";

/// Every crate is in the map once, below all that it may depend on, and depends on nothing else of
/// the workspace.
pub fn check(packages: &[Package], files: &[TextFile]) -> Vec<String> {
    let edges = edges(files);
    let mut complaints = Vec::new();
    for (i, (name, may)) in edges.iter().enumerate() {
        let above = |to: &String| edges[..i].iter().any(|(n, _)| n == to);
        if edges[..i].iter().any(|(n, _)| n == name) {
            complaints.push(format!("{ARCHITECTURE}: crates/{name} is in the map twice"));
        }
        if let Only(all) = may {
            let below = all.iter().filter(|to| !above(to));
            complaints.extend(below.map(|to| format!("{ARCHITECTURE}: crates/{name} stands above '{to}'")));
        }
    }
    for package in packages {
        // xtask and whatever else is not a part of homenode depends on none of it.
        let nothing = Only(BTreeSet::new());
        let (name, may) = match package.name.strip_prefix(PREFIX) {
            Some(name) => (name, edges.iter().find(|(n, _)| *n == name).map(|(_, may)| may)),
            None => (package.name.as_str(), Some(&nothing)),
        };
        let Some(may) = may else {
            complaints.push(format!("crates/{name}: not in the map of {ARCHITECTURE}"));
            continue;
        };
        for to in package.dependencies.iter().filter_map(|d| d.strip_prefix(PREFIX)) {
            let allowed = match may {
                Only(all) => all.contains(to),
                AllBut(all) => !all.contains(to),
            };
            if !allowed {
                complaints.push(format!("crates/{name}: must not depend on '{to}' (see {ARCHITECTURE})"));
            }
        }
    }
    complaints
}

/// Each crate that ARCHITECTURE.md's map, the list here or the workspace's manifest names exists.
pub fn check_ghosts(packages: &[Package], files: &[TextFile]) -> Vec<String> {
    let exists = |name: &str| packages.iter().any(|p| p.name.strip_prefix(PREFIX) == Some(name));
    let edges = edges(files);
    let mut named: BTreeSet<&str> = LOADED.iter().copied().collect();
    for (name, may) in &edges {
        let (Only(all) | AllBut(all)) = may;
        named.extend(std::iter::once(*name).chain(all.iter().map(String::as_str)));
    }
    let ghosts = named.into_iter().filter(|n| !exists(n));
    let mut complaints: Vec<String> =
        ghosts.map(|n| format!("{ARCHITECTURE}: names crates/{n}, which does not exist")).collect();
    let manifest = files.iter().find(|f| f.path == "Cargo.toml").map_or("", |f| &f.text);
    let dependencies = manifest.lines().filter_map(|l| l.strip_prefix(PREFIX)?.split([' ', '.', '=']).next());
    for name in dependencies.filter(|n| !exists(n)) {
        complaints.push(format!("Cargo.toml: names {PREFIX}{name}, which does not exist"));
    }
    complaints
}

/// ARCHITECTURE.md says of each dependency from outside why it is there, and who uses it.
pub fn check_reasons(packages: &[Package], files: &[TextFile]) -> Vec<String> {
    let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for [crates, users, _] in rows(files, DEPENDENCIES) {
        for name in list(crates) {
            said.entry(name).or_default().extend(list(users));
        }
    }
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let user = package.name.strip_prefix(PREFIX).unwrap_or(&package.name);
        for name in package.dependencies.iter().filter(|d| !d.starts_with(PREFIX)) {
            used.entry(name).or_default().insert(user);
        }
    }
    let mut complaints = Vec::new();
    for (name, users) in &used {
        let known = said.get(*name);
        for user in users.iter().filter(|u| known.is_none_or(|k| !k.contains(**u))) {
            complaints.push(format!("{ARCHITECTURE}: does not say why crates/{user} uses '{name}'"));
        }
    }
    for (name, users) in &said {
        // Users that are no crates: the tests, the fuzz targets.
        let crates = users.iter().filter(|u| packages.iter().any(|p| p.name.strip_prefix(PREFIX) == Some(u)));
        let unused = |user: &&String| used.get(name.as_str()).is_none_or(|of| !of.contains(user.as_str()));
        for user in crates.filter(unused) {
            complaints
                .push(format!("{ARCHITECTURE}: says that crates/{user} uses '{name}', which it does not"));
        }
    }
    complaints
}

/// Nothing heavy is in what gets loaded into other processes.
pub fn check_closures(packages: &[Package]) -> Vec<String> {
    let loaded = packages.iter().filter(|p| p.name.strip_prefix(PREFIX).is_some_and(|n| LOADED.contains(&n)));
    let mut complaints = Vec::new();
    for package in loaded {
        for heavy in package.closure.iter().filter(|d| HEAVY.iter().any(|h| d.starts_with(h))) {
            complaints.push(format!("{}: '{heavy}' must not be loaded into a program", package.name));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn package(name: &str, dependencies: &[&str], closure: &[&str]) -> Package {
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        Package {
            name: name.to_owned(),
            license: None,
            dependencies: set(dependencies),
            closure: set(closure),
        }
    }

    fn architecture(map: &str, dependencies: &str) -> [TextFile; 1] {
        let text = format!(
            "# A\n\n{MAP}\n|---|---|---|\n{map}\nB.\n\n{DEPENDENCIES}\n|---|---|---|\n{dependencies}\nC.\n"
        );
        [file(ARCHITECTURE, &text)]
    }

    const SMALL: &str = "\
| `crates/model` | ids | nothing |
| `crates/policy` | a | b | model |
| `crates/sim` | runs | model, policy |
| `crates/cli` | the command | all but agent, tracer |
| `docs/` | texts | – |
";

    #[test]
    fn allowed_edges_pass() {
        let packages = [
            package("homenode-model", &[], &[]),
            package("homenode-policy", &["homenode-model"], &[]),
            package("homenode-sim", &["homenode-model", "homenode-policy", "serde"], &[]),
            package("homenode-cli", &["homenode-sim", "clap"], &[]),
            package("xtask", &["serde_json"], &[]),
        ];
        assert_eq!(check(&packages, &architecture(SMALL, "")), Vec::<String>::new());
    }

    #[test]
    fn any_other_edge_is_named() {
        let packages = [
            package("homenode-policy", &["homenode-model", "homenode-sys"], &[]),
            package("homenode-cli", &["homenode-agent"], &[]),
            package("homenode-novel", &[], &[]),
            package("xtask", &["homenode-model"], &[]),
        ];
        assert_eq!(
            check(&packages, &architecture(SMALL, "")),
            [
                "crates/policy: must not depend on 'sys' (see ARCHITECTURE.md)",
                "crates/cli: must not depend on 'agent' (see ARCHITECTURE.md)",
                "crates/novel: not in the map of ARCHITECTURE.md",
                "crates/xtask: must not depend on 'model' (see ARCHITECTURE.md)",
            ]
        );
    }

    #[test]
    fn the_map_reads_from_the_bottom_up_and_names_each_crate_once() {
        let map = "| `crates/sim` | runs | model |\n| `crates/model` | ids | nothing |\n| `crates/model` | ids | nothing |\n";
        assert_eq!(
            check(&[], &architecture(map, "")),
            [
                "ARCHITECTURE.md: crates/sim stands above 'model'",
                "ARCHITECTURE.md: crates/model is in the map twice",
            ]
        );
    }

    #[test]
    fn every_crate_that_is_named_exists() {
        let names = ["model", "policy", "cli", "agent", "loops", "tracer", "guest", "plugin"];
        let packages = names.map(|name| package(&format!("{PREFIX}{name}"), &[], &[]));
        let [map] = architecture(SMALL, "");
        let manifest =
            "homenode-model = { path = \"crates/model\" }\nserde = \"1\"\nhomenode-old.workspace = true\n";
        assert_eq!(
            check_ghosts(&packages, &[map, file("Cargo.toml", manifest)]),
            [
                "ARCHITECTURE.md: names crates/sim, which does not exist",
                "Cargo.toml: names homenode-old, which does not exist",
            ]
        );
    }

    #[test]
    fn every_dependency_from_outside_has_its_reason() {
        let packages = [
            package("homenode-sim", &["homenode-model", "serde", "toml"], &[]),
            package("homenode-cli", &["clap"], &[]),
        ];
        let said = "| `serde`, `clap` | sim, cli | forms |\n| `proptest` | tests | properties |\n";
        assert_eq!(
            check_reasons(&packages, &architecture("", said)),
            [
                "ARCHITECTURE.md: does not say why crates/sim uses 'toml'",
                "ARCHITECTURE.md: says that crates/sim uses 'clap', which it does not",
                "ARCHITECTURE.md: says that crates/cli uses 'serde', which it does not",
            ]
        );
    }

    #[test]
    fn heavy_crates_stay_out_of_other_processes() {
        let complaints = check_closures(&[
            package("homenode-tracer", &[], &["lz4_flex", "arrow-array", "tokio"]),
            package("homenode-agent", &[], &["libc"]),
            package("homenode-report", &[], &["parquet"]),
        ]);
        assert_eq!(complaints.len(), 2);
        assert!(complaints[0].contains("arrow-array") && complaints[1].contains("tokio"));
    }
}
