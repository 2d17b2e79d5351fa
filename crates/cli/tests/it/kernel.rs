//! `homenode kernel`, and `record kernel:NAME`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{compilers, fresh, homenode, outcome, run};

fn cmake() -> bool {
    let there = Command::new("cmake").arg("--version").output().is_ok() && compilers();
    if !there {
        eprintln!("skipped: there is no cmake");
    }
    there
}

fn with_cache(dir: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    outcome(&homenode(dir).env("XDG_CACHE_HOME", dir.join("cache")).args(words).output().unwrap())
}

#[test]
fn kernels_are_listed_with_their_classes() {
    let (status, out, _) = run(&fresh("kernel-list"), &["kernel", "list", "--json"]);
    assert_eq!(status, Some(0));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let names: Vec<_> =
        json["rows"].as_array().unwrap().iter().map(|r| r["kernel"].as_str().unwrap()).collect();
    assert!(names.contains(&"nas-cg") && names.contains(&"nas-mg"), "{names:?}");
}

#[test]
fn a_kernel_is_built_once_run_verified_and_recorded() {
    let dir = fresh("kernel-sor");
    if !cmake() {
        return;
    }
    let (status, out, err) = with_cache(&dir, &["kernel", "run", "sor", "--class", "s", "--threads", "2"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("2 threads") && out.contains("verification: successful"), "{out}");
    assert!(err.contains("building sor (native)"), "{err}");
    let (_, _, err) = with_cache(&dir, &["kernel", "run", "sor", "--class", "S"]);
    assert_eq!(err, "", "built once");
    let (status, _, err) = with_cache(&dir, &["kernel", "run", "sor", "--", "--no-such-option"]);
    assert_eq!(status, Some(2), "the kernel's own status: {err}");

    let words =
        ["record", "-o", "r", "kernel:sor", "--class", "S", "--threads", "2", "--", "--init", "serial"];
    let (status, out, err) = with_cache(&dir, &words);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("serial initialisation") && out.contains("verification: successful"), "{out}");
    assert!(err.contains("recorded: r") && err.contains("iterations: "), "{err}");
    assert_eq!(run(&dir, &["rec", "check", "r"]).0, Some(0));
}

#[test]
fn two_at_once_build_one_after_the_other() {
    let dir = fresh("kernel-lock");
    if !cmake() {
        return;
    }
    let start = || {
        homenode(&dir)
            .env("XDG_CACHE_HOME", dir.join("cache"))
            .args(["kernel", "build", "false-sharing"])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()];
    for child in both {
        let (status, _, err) = outcome(&child.wait_with_output().unwrap());
        assert_eq!(status, Some(0), "{err}");
    }
}

#[test]
fn wrong_names_and_classes_are_usage() {
    let dir = fresh("kernel-wrong");
    let (status, _, err) = run(&dir, &["kernel", "build", "nas_cg2"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("did you mean 'nas-cg'?"), "{err}");
    let (status, _, err) = run(&dir, &["kernel", "run", "heat", "--class", "Z"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("it has S, W, A, B"), "{err}");
    let (status, _, err) = run(&dir, &["record", "kernel:heat", "--class", "Z"]);
    assert_eq!(status, Some(125), "{err}");
}

#[test]
fn what_is_missing_is_named_with_what_to_install() {
    let dir = fresh("kernel-missing");
    let none = dir.join("none");
    let list = homenode(&dir).env("HOMENODE_KERNELS_DIR", &none).args(["kernel", "list"]).output().unwrap();
    let (status, _, err) = outcome(&list);
    assert_eq!(status, Some(125));
    assert!(err.contains("cannot find the kernels") && err.contains("none/manifest.toml"), "{err}");

    let mut build = homenode(&dir);
    build.env("XDG_CACHE_HOME", dir.join("cache")).env("PATH", &none).args(["kernel", "run", "heat"]);
    let (status, _, err) = outcome(&build.output().unwrap());
    assert_eq!(status, Some(125));
    assert!(err.contains("run cmake: No such file") && err.contains("apt install cmake"), "{err}");

    let nowhere =
        homenode(&dir).env("XDG_CACHE_HOME", "/dev/null/x").args(["kernel", "run", "heat"]).output().unwrap();
    let (status, _, err) = outcome(&nowhere);
    assert_eq!(status, Some(125));
    assert!(err.contains("XDG_CACHE_HOME"), "{err}");
}

#[test]
fn a_build_that_fails_shows_its_end() {
    let dir = fresh("kernel-broken");
    if !cmake() {
        return;
    }
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
    let own = dir.join("kernels");
    fs::create_dir(&own).unwrap();
    fs::copy(kernels.join("manifest.toml"), own.join("manifest.toml")).unwrap();
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(x C)\nadd_executable(heat heat.c)\n";
    fs::write(own.join("CMakeLists.txt"), lists).unwrap();
    fs::write(own.join("heat.c"), "int main(void) { return nothing; }\n").unwrap();
    let heat = || {
        let mut heat = homenode(&dir);
        heat.env("XDG_CACHE_HOME", dir.join("cache")).env("HOMENODE_KERNELS_DIR", &own);
        outcome(&heat.args(["kernel", "run", "heat"]).output().unwrap())
    };
    let (status, _, err) = heat();
    assert_eq!(status, Some(125));
    assert!(
        err.contains("cannot build the kernel heat (native)") && err.contains("'nothing' undeclared"),
        "{err}"
    );
    // Corrected sources are built; a kernel that CMake does not know is told.
    fs::write(own.join("heat.c"), "int main(void) { return 3; }\n").unwrap();
    assert_eq!(heat().0, Some(3));
    fs::write(own.join("heat.c"), "int main(void) { return 42; }\n").unwrap();
    assert_eq!(heat().0, Some(42), "newer sources are built again");
    let mut lu = homenode(&dir);
    lu.env("XDG_CACHE_HOME", dir.join("cache")).env("HOMENODE_KERNELS_DIR", &own);
    let (status, _, err) = outcome(&lu.args(["kernel", "run", "lu"]).output().unwrap());
    assert_eq!(status, Some(125));
    assert!(err.contains("cannot build the kernel lu"), "{err}");
}
