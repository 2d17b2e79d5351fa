//! A Python with packages from PyPI, in an environment that is made once. `xtask/src/python.rs`
//! uses this file, too.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The readers. Another version is another folder in the cache: raise its number.
const PACKAGES: [&str; 2] = ["duckdb==2.0.0", "polars==2.1.0"];
const FOLDER: &str = "python-1";

/// Runs a program; what it says when it fails.
pub fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    Err(format!("{name}: {}", said.lines().last().unwrap_or("it failed")))
}

/// A Python with the real DuckDB and the real Polars, or why there is none.
pub fn python() -> Result<PathBuf, String> {
    environment(FOLDER, &PACKAGES)
}

/// A Python with `packages`, kept as `name` in the user's cache, or why there is none.
pub fn environment(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache"));
    let cache = cache.or_else(home).ok_or("there is no home folder")?.join("homenode");
    let (folder, new) = (cache.join(name), cache.join(format!("{name}.{}", std::process::id())));
    let python = folder.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(&new)).and_then(|_| {
        let mut pip = Command::new(new.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        run(pip.args(["--retries", "1", "--timeout", "20"]))
    });
    let made = made.and_then(|_| fs::rename(&new, &folder).map_err(|e| e.to_string()));
    if made.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    // Another test may have been faster.
    if python.exists() { Ok(python) } else { made.map(|()| python) }
}
