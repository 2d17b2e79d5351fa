//! Lets an installation that may be moved bring the libraries that the command needs: those in
//! `../lib/homenode` come first. Of a build folder there is no such folder, and nothing changes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The older tag also holds for the libraries of libraries.
    println!("cargo::rustc-link-arg-bins=-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib/homenode");
}
