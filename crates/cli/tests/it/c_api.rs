//! The C and Fortran interface as a user meets it: installed, found by pkg-config and CMake,
//! compiled by what there is, run with and without homenode.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{built, compilers, fresh, homenode, outcome};

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
    built(&["libhomenode_monitor.so", "libhomenode_guest.so", "homenode-lab-guest", "homenode-fc"]);
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

/// What an example of distributed arrays prints first: parts, pages at home, pages. The line has
/// `2 parts` at its start and `300 of 300 pages at home` in it.
fn spread(out: &str) -> (u64, u64, u64) {
    let line = out.lines().next().unwrap_or_default();
    let before = line.split(" pages at home").next().unwrap_or_default();
    let numbers = before.split(|c: char| !c.is_ascii_digit()).filter_map(|w| w.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let [parts, .., there, pages] = numbers[..] else { panic!("{out}") };
    (parts, there, pages)
}

/// A program that distributes an array: with the library by itself, and on two pretended nodes, on
/// which all pages have to be at home. `is_alone`: the program is not linked with the library.
fn distributed(dir: &Path, program: &Path, is_alone: bool) {
    for team in ["1", "3", "4"] {
        let mut plain = Command::new(program);
        let plain = succeed(plain.env_remove("LD_LIBRARY_PATH").env("OMP_NUM_THREADS", team));
        assert!(plain.ends_with("ok\n"), "{plain}");
        let (_, there, pages) = spread(&plain);
        assert_eq!((there == pages, pages == 0), (true, is_alone), "{plain}");
        let mut with = homenode(dir);
        with.args(["run", "--quiet", "--pretend-nodes", "2", "--force", "--"]).arg(program);
        let with = succeed(with.env("OMP_NUM_THREADS", team));
        assert!(with.ends_with("ok\n"), "{with}");
        let (parts, there, pages) = spread(&with);
        assert_eq!((parts, there), (2, pages), "{with}");
        assert!(pages > 0, "{with}");
    }
}

#[test]
fn distributed_arrays_are_where_their_threads_are() {
    let dir = fresh("c-api-distribute");
    let Some(prefix) = installed(&dir).filter(|_| there("pkg-config")) else { return };
    let examples = root().join("examples");
    let (flags, libs) = (pkg_config(&prefix, &["--cflags"]), pkg_config(&prefix, &["--libs"]));
    let strict = ["-O1", "-fopenmp", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    for (compiler, standard, source) in
        [("gcc", "-std=gnu11", "distribute.c"), ("g++", "-std=c++11", "distribute_cpp.cpp")]
    {
        if !there(compiler) {
            continue;
        }
        for is_alone in [false, true] {
            let program = dir.join(format!("{compiler}-{is_alone}"));
            let mut cc = Command::new(compiler);
            cc.arg(standard).args(strict).args(&flags).arg(examples.join(source)).arg("-o").arg(&program);
            if is_alone {
                cc.arg("-DHN_HEADER_ONLY")
            } else {
                cc.args(&libs)
            };
            succeed(cc.arg("-lm"));
            distributed(&dir, &program, is_alone);
        }
    }
    if there("gfortran") {
        let module = pkg_config(&prefix, &["--variable=fortran"]);
        let object = dir.join("alone.o");
        let mut cc = Command::new("gcc");
        cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-c"]).args(&flags);
        let source = Path::new(&module[0]).with_file_name("homenode_alone.c");
        succeed(cc.arg(source).arg("-o").arg(&object));
        for is_alone in [false, true] {
            let program = dir.join(format!("gfortran-{is_alone}"));
            let mut fc = Command::new("gfortran");
            fc.current_dir(&dir).args(["-std=f2018", "-O1", "-fopenmp", "-Wall", "-Werror"]).args(&module);
            fc.arg(examples.join("distribute_f.f90")).arg("-o").arg(&program);
            if is_alone {
                fc.arg(&object)
            } else {
                fc.args(&libs)
            };
            succeed(&mut fc);
            distributed(&dir, &program, is_alone);
        }
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
