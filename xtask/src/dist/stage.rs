//! The folder that binaries are packed from: what `make install` installs, stripped, with
//! completions and licences.

use std::fs;
use std::path::{Path, PathBuf};

use super::base::{binaries, files, fresh, must, program, read, root, text_of, write};
use crate::CommandResult;

/// Libraries that not every system has, each with the Debian package whose licence comes along. A
/// binary of the release holds hwloc and zstd; another build loads them, and they are copied.
pub const BROUGHT: &[(&str, &str)] =
    &[("libhwloc.so.15", "libhwloc15"), ("libudev.so.1", "libudev1"), ("libzstd.so.1", "libzstd1")];

/// The licences of libraries, below the folder of the documentation.
pub const LICENCES: &str = "licences";

/// Where each shell looks for completions, below `share`.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "bash-completion/completions/homenode"),
    ("zsh", "zsh/site-functions/_homenode"),
    ("fish", "fish/vendor_completions.d/homenode.fish"),
];

/// Where the libraries lie.
const LIBRARIES: &str = "lib/homenode";

/// The folders.
pub struct Stage {
    /// What is packed.
    pub folder: PathBuf,
    /// Debug information of the binaries in it.
    pub debug: PathBuf,
}

/// Makes both of the binaries in `built`.
pub fn make(version: &str, built: &str) -> Result<Stage, String> {
    let stage = Stage { folder: root().join("target/stage"), debug: root().join("target/stage-debug") };
    fresh(&stage.folder)?;
    fresh(&stage.debug)?;
    let prefix = format!("PREFIX={}", stage.folder.display());
    // Only installs: nothing is built, no package of the system is asked for.
    must(program("make").args(["--silent", "install", &format!("BUILD={built}")]).arg(prefix))?;
    for path in binaries(&stage.folder)? {
        split(&path, &stage)?;
    }
    for (shell, path) in COMPLETIONS {
        let text = read(program_of(&stage.folder).args(["completions", shell]))?;
        write(&stage.folder.join("share").join(path), text)?;
    }
    let doc = stage.folder.join("share/doc/homenode");
    for name in ["README.md", "CHANGELOG.md", "LICENSE", "LICENSE-MIT", "LICENSE-APACHE"] {
        write(&doc.join(name), text_of(&root().join(name))?)?;
    }
    // Pages of the one folder link those of the other.
    for folder in ["docs", "results"] {
        let pages = files(&root().join(folder))?;
        for page in pages.iter().filter(|p| p.extension().is_some_and(|x| x == "md" || x == "csv")) {
            let name = page.file_name().unwrap_or_default();
            write(&doc.join(folder).join(name), text_of(page)?)?;
        }
    }
    bring(&stage.folder)?;
    eprintln!("homenode {version} staged in {}", stage.folder.display());
    Ok(stage)
}

fn program_of(folder: &Path) -> std::process::Command {
    program(&folder.join("bin/homenode").to_string_lossy())
}

/// Takes debug information out of a binary, and leaves a link to it in there.
fn split(path: &Path, stage: &Stage) -> CommandResult {
    let name = path.strip_prefix(&stage.folder).unwrap_or(path);
    let debug = stage.debug.join(format!("{}.debug", name.display()));
    fs::create_dir_all(debug.parent().unwrap_or(&stage.debug)).map_err(|e| e.to_string())?;
    must(program("objcopy").args(["--only-keep-debug", "--compress-debug-sections"]).arg(path).arg(&debug))?;
    must(program("strip").arg("--strip-unneeded").arg(path))?;
    must(program("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(path))
}

/// Copies the libraries that the command loads and not every system has; the command looks for them
/// beside itself first. The licences come along in either case.
fn bring(folder: &Path) -> CommandResult {
    let loaded = read(program("ldd").arg(folder.join("bin/homenode")))?;
    for (name, package) in BROUGHT {
        let line = loaded.lines().find(|l| l.trim().starts_with(name));
        let path = line.and_then(|l| l.split_whitespace().nth(2));
        if let Some(path) = path {
            let target = folder.join(LIBRARIES).join(name);
            fs::copy(path, &target).map_err(|e| format!("{path}: {e}"))?;
        }
        let licence = PathBuf::from(format!("/usr/share/doc/{package}/copyright"));
        let text = text_of(&licence)?;
        write(&folder.join("share/doc/homenode").join(LICENCES).join(package), text)?;
    }
    Ok(())
}
