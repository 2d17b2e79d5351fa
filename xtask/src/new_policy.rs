//! A new placement policy: its file, its tests, its registration. What it makes compiles and
//! passes, so that its author starts from something that runs.

use std::fs;
use std::path::Path;

use crate::process::{self, cargo};
use crate::{CommandResult, root};

const TEMPLATE: &str = include_str!("../templates/policy.rs");

/// What `new-policy` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct NewPolicyArgs {
    /// Its name, as in two_hands
    name: String,
}

pub fn run(args: &NewPolicyArgs) -> CommandResult {
    let names = Names::parse(&args.name)?;
    let made = generate(&root(), &names)?;
    process::run(cargo().args(["fmt", "--package", "homenode-policy"]))?;
    println!("made and registered {made}; next:");
    println!("  cargo test -p homenode-policy {}", names.module);
    println!("  homenode compare kernel:nas-cg --class S --policy {}", names.option);
    Ok(())
}

/// One name in the three ways that it is written.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// `two_hands`.
    module: String,
    /// `TwoHands`.
    type_: String,
    /// `two-hands`.
    option: String,
}

impl Names {
    fn parse(name: &str) -> Result<Self, String> {
        let module = name.replace('-', "_");
        let words: Vec<&str> = module.split('_').collect();
        let good =
            |w: &&str| w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) && !w.is_empty();
        if !words.iter().all(good) || !module.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(format!("'{name}' should be words of a-z and 0-9 with '_' between them"));
        }
        let capital = |w: &&str| w[..1].to_uppercase() + &w[1..];
        let type_ = words.iter().map(capital).collect();
        Ok(Self { type_, option: words.join("-"), module })
    }
}

/// Writes the file and registers it in the crate below `root`; returns the file's path.
fn generate(root: &Path, names: &Names) -> Result<String, String> {
    let made = format!("crates/policy/src/{}.rs", names.module);
    if root.join(&made).exists() {
        return Err(format!("{made} exists"));
    }
    let edit = |path: &str, how: fn(&str, &Names) -> Option<String>| {
        let text = fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
        how(&text, names)
            .map(|text| (path.to_owned(), text))
            .ok_or_else(|| format!("{path}: no place found for the new policy; see xtask/src/new_policy.rs"))
    };
    // All edits are worked out before the first is written.
    let edits = [
        edit("crates/policy/src/lib.rs", add_module)?,
        edit("crates/policy/src/registry.rs", add_entry)?,
        (made.clone(), file(names)),
    ];
    for (path, text) in edits {
        fs::write(root.join(&path), text).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(made)
}

fn file(names: &Names) -> String {
    let title = names.option.replace('-', " ");
    let title = title[..1].to_uppercase() + &title[1..];
    TEMPLATE.replace("@TITLE@", &title).replace("@TYPE@", &names.type_)
}

/// `pub mod` among the modules, in the order of their names; `pub use` among the re-exports.
fn add_module(lib: &str, names: &Names) -> Option<String> {
    let lib = insert(lib, &format!("pub mod {};", names.module), |l| {
        l.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')
    })?;
    insert(&lib, &format!("pub use {}::{};", names.module, names.type_), |l| {
        l.strip_prefix("pub use ")?.strip_suffix(';')
    })
}

/// An entry at the end of the list of policies.
fn add_entry(registry: &str, names: &Names) -> Option<String> {
    let list = registry.find("const POLICIES")?;
    let end = list + registry[list..].find("\n];")? + 1;
    let Names { module, type_, option } = names;
    let entry = format!(
        "    PolicySpec {{\n        name: \"{option}\",\n        about: \"what it does, in one line\",\n        \
         options: &[],\n        make: |_, c| Ok(Box::new(crate::{module}::{type_}::new(c))),\n    }},\n"
    );
    Some(format!("{}{entry}{}", &registry[..end], &registry[end..]))
}

/// Puts `line` before the first of the lines with a `key` that sorts after its own, or after the
/// last of them.
fn insert(text: &str, line: &str, key: fn(&str) -> Option<&str>) -> Option<String> {
    let own = key(line)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let keyed: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(i, l)| Some((i, key(l)?))).collect();
    let at = match keyed.iter().find(|(_, k)| *k > own) {
        // Attributes belong to the line below them.
        Some((i, _)) => (0..*i).rev().take_while(|j| lines[*j].starts_with("#[")).last().unwrap_or(*i),
        None => keyed.last()?.0 + 1,
    };
    lines.insert(at, line);
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "//! Doc.\nmod context;\npub mod next_touch;\n#[cfg(test)]\nmod testing;\n\n\
                       pub use context::PolicyContext;\npub use next_touch::NextTouch;\n";

    fn names(name: &str) -> Names {
        Names::parse(name).unwrap()
    }

    #[test]
    fn a_name_is_written_in_three_ways() {
        let two = names("two-hands");
        assert_eq!(
            (two.module.as_str(), two.type_.as_str(), two.option.as_str()),
            ("two_hands", "TwoHands", "two-hands")
        );
        assert_eq!(two, names("two_hands"));
        for bad in ["", "Two", "two__hands", "_two", "2hands", "zwei hände", "../x"] {
            assert!(Names::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn modules_stay_in_order_and_attributes_with_their_module() {
        let lib = add_module(LIB, &names("second_touch")).unwrap();
        assert_eq!(
            lib,
            "//! Doc.\nmod context;\npub mod next_touch;\npub mod second_touch;\n#[cfg(test)]\nmod testing;\n\n\
             pub use context::PolicyContext;\npub use next_touch::NextTouch;\npub use second_touch::SecondTouch;\n"
        );
        assert!(
            add_module(LIB, &names("adaptive")).unwrap().contains("Doc.\npub mod adaptive;\nmod context;")
        );
    }

    #[test]
    fn the_entry_is_the_last_of_its_list() {
        let registry =
            "const A: &[u8] = &[\n];\npub const POLICIES: &[PolicySpec] = &[\n    X,\n];\nconst B: u8;\n";
        let out = add_entry(registry, &names("two_hands")).unwrap();
        assert!(out.contains("    X,\n    PolicySpec {\n        name: \"two-hands\",\n"), "{out}");
        assert!(out.ends_with("::two_hands::TwoHands::new(c))),\n    },\n];\nconst B: u8;\n"), "{out}");
        assert_eq!(add_entry("nothing", &names("x")), None);
    }

    #[test]
    fn the_file_keeps_the_rules_of_tidy() {
        let text = file(&names("two_hands"));
        assert!(text.starts_with("//! Two hands.\n") && !text.contains('@'), "{text}");
    }

    /// Builds a copy of two crates: minutes, hence only in the long tests.
    #[test]
    #[ignore = "builds a copy of the policy crate"]
    fn what_is_made_compiles_and_passes() {
        let copy = root().join("target/new-policy-test");
        let _ = fs::remove_dir_all(copy.join("crates"));
        for part in ["crates/model", "crates/policy"] {
            fs::create_dir_all(copy.join(part)).unwrap();
            let from = root().join(part);
            process::run(process::program("cp").arg("-R").arg(from.join(".")).arg(copy.join(part))).unwrap();
        }
        let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let members = workspace.lines().find(|l| l.starts_with("members")).unwrap();
        fs::write(copy.join("Cargo.toml"), workspace.replace(members, "members = [\"crates/*\"]")).unwrap();
        fs::copy(root().join("Cargo.lock"), copy.join("Cargo.lock")).unwrap();

        generate(&copy, &names("made_for_a_test")).unwrap();
        let mut test = cargo();
        test.current_dir(&copy).env("CARGO_TARGET_DIR", copy.join("target")).env("RUSTFLAGS", "-D warnings");
        process::run(test.args([
            "test",
            "--offline",
            "--quiet",
            "--package",
            "homenode-policy",
            "made_for_a_test",
        ]))
        .unwrap();
    }
}
