//! What `cargo metadata` says, as far as the checks need it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::process::{cargo, read};

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// `homenode-sim`.
    pub name: String,
    /// As in its manifest.
    pub license: Option<String>,
    /// What it is built from; dev-dependencies are left out, for tests may look at anything.
    pub dependencies: BTreeSet<String>,
    /// Everything that ends up in it, other packages of the workspace included.
    pub closure: BTreeSet<String>,
}

/// All packages of the workspace, by name.
pub fn workspace() -> Result<Vec<Package>, String> {
    let json = read(cargo().args(["metadata", "--format-version", "1", "--locked", "--offline"]))
        .or_else(|_| read(cargo().args(["metadata", "--format-version", "1", "--locked"])))?;
    parse(&serde_json::from_str(&json).map_err(|e| format!("cargo metadata: {e}"))?)
        .ok_or_else(|| "cargo metadata: not in the form that this was written for".to_owned())
}

/// The packages in the output of `cargo metadata`; `None` when it has another form.
pub fn parse(metadata: &Value) -> Option<Vec<Package>> {
    let mut names = BTreeMap::new();
    for package in metadata["packages"].as_array()? {
        names.insert(package["id"].as_str()?, package["name"].as_str()?);
    }
    let mut built_from: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array()? {
        let mut ids = BTreeSet::new();
        for dep in node["deps"].as_array()? {
            // kind: null = normal, "build", "dev".
            if dep["dep_kinds"].as_array()?.iter().any(|k| k["kind"] != "dev") {
                ids.insert(dep["pkg"].as_str()?);
            }
        }
        built_from.insert(node["id"].as_str()?, ids);
    }
    let mut members = Vec::new();
    for id in metadata["workspace_members"].as_array()? {
        let id = id.as_str()?;
        let package = metadata["packages"].as_array()?.iter().find(|p| p["id"] == id)?;
        let name = |id: &&str| names.get(id).map(|n| (*n).to_owned());
        members.push(Package {
            name: names.get(id)?.to_string(),
            license: package["license"].as_str().map(str::to_owned),
            dependencies: built_from.get(id)?.iter().filter_map(name).collect(),
            closure: closure(id, &built_from).iter().filter_map(name).collect(),
        });
    }
    members.sort_by(|a, b| a.name.cmp(&b.name));
    Some(members)
}

fn closure<'a>(start: &'a str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        for next in edges.get(id).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn dev_dependencies_do_not_count_and_closures_are_transitive() {
        let dep = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                {"id": "a#1", "name": "a", "license": "MIT"},
                {"id": "b#1", "name": "b", "license": null},
                {"id": "c#1", "name": "c", "license": null},
                {"id": "d#1", "name": "d", "license": null},
            ],
            "workspace_members": ["b#1", "a#1"],
            "resolve": {"nodes": [
                {"id": "a#1", "deps": [dep("b#1", Value::Null), dep("d#1", json!("dev"))]},
                {"id": "b#1", "deps": [dep("c#1", json!("build"))]},
                {"id": "c#1", "deps": []},
                {"id": "d#1", "deps": []},
            ]},
        });
        let packages = parse(&metadata).unwrap();
        assert_eq!(packages.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(packages[0].license.as_deref(), Some("MIT"));
        assert_eq!(packages[0].dependencies, set(&["b"]));
        assert_eq!(packages[0].closure, set(&["b", "c"]));
        assert_eq!(packages[1].dependencies, set(&["c"]));
    }

    #[test]
    fn another_form_is_noticed() {
        assert_eq!(parse(&json!({})), None);
    }
}
