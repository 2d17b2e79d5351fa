//! Unsafe code under Miri, which finds undefined behaviour: wherever tests neither call the system
//! nor execute assembly. Miri stops in the tests of the agent, the tracer and `sys`.

use std::process::Stdio;

use crate::process::{program, run as run_it};
use crate::{CommandResult, root};

/// A crate and the words that choose its tests.
const SUBJECTS: &[(&str, &[&str])] = &[
    ("recorder", &[]),
    // It asks the dynamic linker for the loaded files.
    ("hooks", &["--skip", "loaded"]),
    ("runtime", &["moving::events"]),
    ("runtime", &["moving::candidates"]),
];

/// Memory that lives as long as the process is no leak. Addresses come from the system as numbers.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance";

/// `cargo xtask miri`: skipped, with a line, where there is no nightly Rust with Miri.
pub fn run() -> CommandResult {
    if !present() {
        println!("skipped: no Miri ('rustup toolchain install nightly --component miri,rust-src')");
        return Ok(());
    }
    SUBJECTS.iter().try_for_each(|(name, words)| {
        let mut miri = nightly();
        miri.current_dir(root().join("crates").join(name));
        miri.args(["miri", "test", "--lib", "--locked", "--quiet", "--"]).args(*words);
        miri.env("CARGO_TARGET_DIR", root().join("target/miri")).env("MIRIFLAGS", FLAGS);
        run_it(miri.env("PROPTEST_CASES", "3"))
    })
}

/// The cargo of the nightly Rust, whatever this folder is pinned to.
fn nightly() -> std::process::Command {
    let mut rustup = program("rustup");
    rustup.args(["run", "nightly", "cargo"]).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    rustup
}

fn present() -> bool {
    let mut asked = nightly();
    asked.args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}
