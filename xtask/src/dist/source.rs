//! The source tarball: every file that git knows, all crates, and a configuration by which cargo
//! asks nobody for them.

use std::fs;
use std::path::{Path, PathBuf};

use super::base::{cargo, fresh, must, out, program, read, root, tar, text_of, write};
use crate::CommandResult;

/// What cargo reads beside what the repository says.
const OFFLINE: &str = "\n# The crates of Cargo.lock lie in vendor/.\n\
    [source.crates-io]\nreplace-with = \"vendored\"\n\n\
    [source.vendored]\ndirectory = \"vendor\"\n\n[net]\noffline = true\n";

/// The tarball.
pub fn path(version: &str) -> PathBuf {
    out().join(format!("{}.tar.xz", name(version)))
}

fn name(version: &str) -> String {
    format!("homenode-{version}-source")
}

/// Makes it.
pub fn make(version: &str) -> CommandResult {
    let tree = root().join("target/stage-source");
    fresh(&tree)?;
    let listed = read(program("git").args(["ls-files", "-z", "--cached"]))?;
    // The tarball builds off line, with the Rust that is there: rustup would fetch a pinned one.
    let pin = "rust-toolchain.toml";
    for file in listed.split('\0').filter(|f| !f.is_empty() && *f != pin) {
        let (from, to) = (root().join(file), tree.join(file));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        copy(&from, &to)?;
    }
    let commit = read(program("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    write(&tree.join("COMMIT"), commit)?;
    let mut vendor = cargo();
    vendor.args(["vendor", "--locked", "--quiet", "--versioned-dirs"]).arg(tree.join("vendor"));
    // It prints the configuration that is written below.
    read(&mut vendor)?;
    let config = tree.join(".cargo/config.toml");
    let own = fs::read_to_string(&config).unwrap_or_default();
    write(&config, own + OFFLINE)?;
    let mut tar = tar(&tree, &name(version), &path(version));
    must(tar.env("XZ_OPT", "-3 -T0").arg("--xz").arg("."))?;
    recipes(version)
}

/// Recipes of other package managers, by their paths below `packaging`.
const RECIPES: &[&str] =
    &["spack/package.py", "easybuild/homenode.eb", "conda/recipe.yaml", "Containerfile", "homenode.def"];

/// Writes the recipes with version and checksum of the tarball.
fn recipes(version: &str) -> CommandResult {
    let said = read(program("sha256sum").arg(path(version)))?;
    let sum = said.split_whitespace().next().ok_or("sha256sum said nothing")?;
    for recipe in RECIPES {
        let text = text_of(&root().join("packaging").join(recipe))?;
        // EasyBuild wants the version in the name.
        let name = recipe.replace("homenode.eb", &format!("homenode-{version}.eb"));
        let filled = text.replace("@VERSION@", version).replace("@SHA256@", sum);
        write(&out().join("recipes").join(name), filled)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> CommandResult {
    // Links stay links.
    must(program("cp").args(["--no-dereference", "--preserve=mode"]).arg(from).arg(to))
}
