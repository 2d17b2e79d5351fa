//! Tells the crate which commit it is built from: what git says, or the file `COMMIT` that a source
//! archive has.

use std::process::Command;

fn git(words: &[&str]) -> Option<String> {
    let out = Command::new("git").args(words).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}

fn main() {
    const FILE: &str = "../../COMMIT";
    println!("cargo::rerun-if-changed=build.rs");
    let said = std::fs::read_to_string(FILE).ok();
    // An archive may lie inside of somebody else's repository: only this one has this file in it.
    let ours = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = match said {
        Some(text) => {
            println!("cargo::rerun-if-changed={FILE}");
            text.trim().to_owned()
        }
        None if ours => {
            if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
                println!("cargo::rerun-if-changed={log}");
            }
            git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default()
        }
        None => String::new(),
    };
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=HOMENODE_COMMIT={}", if commit.is_empty() { "not known" } else { &commit });
    println!("cargo::rustc-env=HOMENODE_BUILD={profile}, {}", std::env::var("TARGET").unwrap_or_default());
}
