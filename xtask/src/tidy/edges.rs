//! Which crate may be built from which, and what must never reach a program that homenode is loaded into.

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
    ("machine", Only(&["model"])),
    ("sys", Only(&["model"])),
    ("compilers", Only(&[])),
    ("sim", Only(&["model", "policy", "cache", "log"])),
    ("recorder", Only(&["model", "log"])),
    ("tracer", Only(&["recorder", "model", "log"])),
    ("guest", Only(&["tracer"])),
    ("plugin", Only(&["model", "cache", "log", "recorder"])),
    ("monitor", Only(&["model", "sys", "log"])),
    ("runtime", Only(&["model", "policy", "monitor", "sys", "log"])),
    ("agent", Only(&["model", "runtime"])),
    ("measure", Only(&["model", "machine", "sys", "runtime"])),
    ("dataset", Only(&["model", "log"])),
    ("lab", Only(&["model", "log", "sys", "machine"])),
    ("report", Only(&["model", "dataset", "machine"])),
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
