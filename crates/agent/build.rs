//! Gives the library its name. A program that links it then uses the copy that `homenode run` has
//! loaded before, whatever the path of either.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhomenode.so");
    println!("cargo::rerun-if-changed=build.rs");
}
