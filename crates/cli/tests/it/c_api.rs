//! The C and Fortran interface as a user meets it: installed, found by pkg-config and CMake,
//! compiled by what there is, run with and without homenode.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compilers, fresh, homenode, outcome};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn there(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: there is no {name}");
    }
    found
}

fn succeed(command: &mut Command) -> String {
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{command:?}\n{out}{err}");
    out
}

/// `make install` of this profile's build into a folder; `None`: skipped.
fn installed(dir: &Path) -> Option<PathBuf> {
    if !compilers() || !there("make") {
        return None;
    }
    let build = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    if !build.join("libhomenode_monitor.so").exists() || !build.join("homenode-lab-guest").exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "homenode-plugin", "-p", "homenode-lab"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        succeed(&mut cargo);
    }
    let prefix = dir.join("installed");
    let mut make = Command::new("make");
    make.current_dir(root()).arg("install").env_remove("MAKEFLAGS").env_remove("LD_LIBRARY_PATH");
    succeed(make.arg(format!("PREFIX={}", prefix.display())).arg(format!("BUILD={}", build.display())));
    Some(prefix)
}

fn pkg_config(prefix: &Path, what: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(what).arg("homenode");
    succeed(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// An example by itself, then under `homenode run` on two pretended nodes, where it must see those.
fn run(dir: &Path, program: &Path) {
    let plain = succeed(Command::new(program).env_remove("LD_LIBRARY_PATH"));
    assert!(plain.ends_with("ok\n"), "{plain}");
    let mut with = homenode(dir);
    with.args(["run", "--quiet", "--pretend-nodes", "2", "--force", "--"]).arg(program);
    let with = succeed(&mut with);
    assert!(with.ends_with("ok\n"), "{with}");
    assert!(with.contains("node 1: "), "{with}");
}

#[test]
fn examples_build_with_pkg_config_and_run() {
    let dir = fresh("c-api-pkg-config");
    let Some(prefix) = installed(&dir).filter(|_| there("pkg-config")) else { return };
    let examples = root().join("examples");
    let (flags, libs) = (pkg_config(&prefix, &["--cflags"]), pkg_config(&prefix, &["--libs"]));
    for compiler in ["gcc", "clang"].into_iter().filter(|c| there(c)) {
        let program = dir.join(format!("place-{compiler}"));
        let mut cc = Command::new(compiler);
        cc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]).args(&flags);
        succeed(cc.arg(examples.join("place.c")).args(&libs).arg("-o").arg(&program));
        run(&dir, &program);
    }
    if there("g++") {
        let mut cxx = Command::new("g++");
        cxx.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c++"]).args(&flags);
        succeed(cxx.arg(prefix.join("include/homenode.h")));
    }
    if there("gfortran") {
        let module = pkg_config(&prefix, &["--variable=fortran"]);
        let program = dir.join("place_f");
        let mut fc = Command::new("gfortran");
        fc.current_dir(&dir).args(["-std=f2018", "-O1", "-fopenmp", "-Wall", "-Werror"]).args(module);
        succeed(fc.arg(examples.join("place_f.f90")).args(&libs).arg("-o").arg(&program));
        run(&dir, &program);
    }
}

#[test]
fn examples_build_with_cmake_and_run() {
    let dir = fresh("c-api-cmake");
    let tools = ["cmake", "gfortran"].into_iter().all(there);
    let Some(prefix) = installed(&dir).filter(|_| tools) else { return };
    let build = dir.join("build");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(root().join("examples")).arg("-B").arg(&build);
    succeed(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    succeed(Command::new("cmake").arg("--build").arg(&build));
    for name in ["place", "place_f"] {
        run(&dir, &build.join(name));
    }
}
