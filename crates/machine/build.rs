//! Lets the crate link where hwloc is installed and libudev's development files are not.
//!
//! `hwlocality-sys` asks pkg-config for hwloc's *static* dependencies even when it links the shared
//! library, so the linker looks for `-ludev`. The shared hwloc brings its own libudev, nothing here
//! calls it, and Debian's `libhwloc-dev` does not install `libudev-dev`. So where pkg-config knows
//! no libudev, an empty archive of that name satisfies the linker. Where it knows one, nothing is
//! done, and a static hwloc links as it should.

use std::path::PathBuf;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let known = Command::new("pkg-config").args(["--exists", "libudev"]).stderr(Stdio::null()).status();
    if known.is_ok_and(|s| s.success()) {
        return;
    }
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else {
        return;
    };
    // The magic number of an archive without members.
    if let Err(e) = std::fs::write(out.join("libudev.a"), "!<arch>\n") {
        println!("cargo:warning=cannot write {}: {e}; install libudev's development files", out.display());
        return;
    }
    println!("cargo:rustc-link-search=native={}", out.display());
}
