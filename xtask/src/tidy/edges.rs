//! Which crate may be built from which, and what must never reach a program that homenode is loaded into.

use std::collections::BTreeSet;

use super::File;
use crate::metadata::Package;

/// What a crate may depend on within the workspace.
enum May {
    /// These.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}
use May::{AllBut, Only};

/// The allowed edges, by folder under `crates/`. Change ARCHITECTURE.md together with this.
const EDGES: &[(&str, May)] = &[
    ("model", Only(&[])),
    ("cache", Only(&["model"])),
    ("policy", Only(&["model"])),
    ("log", Only(&["model"])),
    ("wire", Only(&["model"])),
    ("rounds", Only(&["model"])),
    ("dataset", Only(&["model"])),
    ("trace", Only(&["dataset", "log", "model", "rounds"])),
    ("machine", Only(&["model"])),
    ("sys", Only(&["model"])),
    ("error", Only(&["model"])),
    ("task", Only(&[])),
    ("table", Only(&["error"])),
    ("symbols", Only(&["log"])),
    ("compilers", Only(&[])),
    ("sim", Only(&["cache", "dataset", "log", "model", "policy", "rounds", "trace"])),
    ("simulated", Only(&["dataset", "log", "model", "sim", "trace"])),
    ("recorder", Only(&["log", "model"])),
    ("tracer", Only(&["log", "model", "recorder"])),
    ("guest", Only(&["tracer"])),
    ("plugin", Only(&["cache", "log", "model", "recorder", "wire"])),
    ("sources", Only(&["model", "sys"])),
    ("runtime", Only(&["model", "policy", "rounds", "sources", "sys", "wire"])),
    ("agent", Only(&["model", "runtime", "wire"])),
    ("measure", Only(&["machine", "model", "runtime", "sys"])),
    ("observed", Only(&["dataset", "log", "model", "symbols", "wire"])),
    ("export", Only(&["dataset", "model"])),
    ("report", Only(&["dataset", "machine", "model"])),
    ("lab", Only(&["dataset", "error", "log", "model", "sys", "wire"])),
    ("launch", Only(&["dataset", "error", "log", "symbols", "task", "wire"])),
    ("kernels", Only(&["error", "launch", "task"])),
    ("schemes", Only(&["error", "log", "machine", "model", "policy", "sim", "simulated", "task", "trace"])),
    ("plan", Only(&["error", "log", "model", "runtime", "schemes", "symbols", "trace", "wire"])),
    (
        "papers",
        Only(&[
            "error", "kernels", "launch", "log", "machine", "measure", "model", "schemes", "sim", "table",
            "task",
        ]),
    ),
    ("doctor", Only(&["error", "lab", "launch", "runtime", "sys"])),
    ("cli", AllBut(&["agent", "tracer", "guest", "plugin", "recorder"])),
];

/// Loaded into somebody else's process (or QEMU): small, and without threads of their own.
const LOADED: &[&str] = &["agent", "tracer", "guest", "plugin"];

/// What must not be in them, by the beginning of its name.
const HEAVY: &[&str] = &["arrow", "parquet", "hwloc", "tokio", "async-std", "smol", "futures"];

const PREFIX: &str = "homenode-";

/// Every edge within the workspace is in the table.
pub fn check(packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in packages {
        // xtask and whatever else is not a part of homenode depends on none of it.
        let (name, may) = match package.name.strip_prefix(PREFIX) {
            Some(name) => (name, EDGES.iter().find(|(n, _)| *n == name).map(|(_, may)| may)),
            None => (package.name.as_str(), Some(&Only(&[]))),
        };
        let Some(may) = may else {
            complaints.push(format!("crates/{name}: not in the table of xtask/src/tidy/edges.rs"));
            continue;
        };
        for to in package.dependencies.iter().filter_map(|d| d.strip_prefix(PREFIX)) {
            let allowed = match may {
                Only(list) => list.contains(&to),
                AllBut(list) => !list.contains(&to),
            };
            if !allowed {
                complaints.push(format!("crates/{name}: must not depend on '{to}' (see ARCHITECTURE.md)"));
            }
        }
    }
    complaints
}

/// Each crate that the tables here or the workspace's manifest name exists.
pub fn check_ghosts(packages: &[Package], files: &[File]) -> Vec<String> {
    let exists = |name: &str| packages.iter().any(|p| p.name.strip_prefix(PREFIX) == Some(name));
    let named = EDGES.iter().flat_map(|(name, may)| {
        let (Only(list) | AllBut(list)) = may;
        std::iter::once(name).chain(*list)
    });
    let named: BTreeSet<&str> = named.chain(LOADED).copied().collect();
    let ghosts = named.into_iter().filter(|n| !exists(n));
    let mut complaints: Vec<String> =
        ghosts.map(|n| format!("xtask/src/tidy/edges.rs: names crates/{n}, which does not exist")).collect();
    let manifest = files.iter().find(|f| f.path == "Cargo.toml").map_or("", |f| &f.text);
    let dependencies = manifest.lines().filter_map(|l| l.strip_prefix(PREFIX)?.split([' ', '.', '=']).next());
    for name in dependencies.filter(|n| !exists(n)) {
        complaints.push(format!("Cargo.toml: names {PREFIX}{name}, which does not exist"));
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

    #[test]
    fn allowed_edges_pass() {
        let packages = [
            package("homenode-model", &[], &[]),
            package("homenode-sim", &["homenode-model", "homenode-policy", "serde"], &[]),
            package("homenode-cli", &["homenode-sim", "homenode-machine", "clap"], &[]),
            package("xtask", &["serde_json"], &[]),
        ];
        assert_eq!(check(&packages), Vec::<String>::new());
    }

    #[test]
    fn any_other_edge_is_named() {
        let complaints = check(&[
            package("homenode-policy", &["homenode-model", "homenode-sys"], &[]),
            package("homenode-cli", &["homenode-agent"], &[]),
            package("xtask", &["homenode-model"], &[]),
        ]);
        assert_eq!(
            complaints,
            [
                "crates/policy: must not depend on 'sys' (see ARCHITECTURE.md)",
                "crates/cli: must not depend on 'agent' (see ARCHITECTURE.md)",
                "crates/xtask: must not depend on 'model' (see ARCHITECTURE.md)",
            ]
        );
    }

    #[test]
    fn a_new_crate_must_be_entered() {
        let complaints = check(&[package("homenode-novel", &[], &[])]);
        assert_eq!(complaints, ["crates/novel: not in the table of xtask/src/tidy/edges.rs"]);
    }

    #[test]
    fn every_crate_that_is_named_exists() {
        let names = EDGES.iter().map(|(name, _)| package(&format!("{PREFIX}{name}"), &[], &[]));
        let mut packages: Vec<Package> = names.collect();
        let line = |name: &str| format!("homenode-{name} = {{ path = \"crates/{name}\" }}\n");
        let whole = [file("Cargo.toml", &(line("model") + "serde = \"1\"\n" + &line("sim")))];
        assert_eq!(check_ghosts(&packages, &whole), Vec::<String>::new());
        packages.retain(|p| p.name != "homenode-sim");
        assert_eq!(
            check_ghosts(&packages, &whole),
            [
                "xtask/src/tidy/edges.rs: names crates/sim, which does not exist",
                "Cargo.toml: names homenode-sim, which does not exist",
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

    #[test]
    fn the_table_has_no_circles() {
        // A crate may only depend on those above it, so that the table reads from the bottom up.
        for (i, (name, may)) in EDGES.iter().enumerate() {
            if let Only(list) = may {
                for to in *list {
                    assert!(EDGES[..i].iter().any(|(n, _)| n == to), "{name} → {to}");
                }
            }
        }
    }
}
