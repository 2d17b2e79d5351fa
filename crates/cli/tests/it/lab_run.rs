//! `homenode run` on four nodes: the lab's. One boot serves all programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{alone, lab, there};
use crate::support::{compilers, fresh, outcome};

/// Points an edge of the grids; a multiple of the threads. At a seam the 64 KiB that come with a touch may go to the neighbour who
/// reads the last row first: in a smaller grid these are more than 3 % of the pages.
const POINTS: u64 = 1024;
const THREADS: u64 = 4;
const PAGE: u64 = 4096;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A kernel as anybody builds it, without homenode.
fn kernel(dir: &Path, name: &str) {
    let kernels = root().join("kernels");
    let common =
        ["dense", "fourier", "memory", "options", "report", "nas_random", "pairs", "places", "no_homenode"];
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fopenmp", "-std=c11", "-o", name])
        .arg(format!("-I{}", kernels.join("common").display()))
        .arg(format!("-I{}", root().join("include").display()))
        .arg(kernels.join(name).join("main.c"))
        .args(common.map(|c| kernels.join("common").join(c).with_extension("c")))
        .arg("-lm");
    let built = gcc.current_dir(dir).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// The thread whose rows, of the static schedule, the page at `offset` of a grid lies in alone; the border goes with its
/// neighbours.
fn owner(offset: u64) -> Option<u64> {
    let width = (POINTS + 2) * 8;
    let of = |byte: u64| {
        let row = (byte / width).clamp(1, POINTS);
        (row - 1) / (POINTS / THREADS)
    };
    let (first, last) = (of(offset), of(offset + PAGE - 1));
    (first == last).then_some(first)
}

/// Of the pages of grids that have an owner: all, those on the owner's node, those on node 0.
fn count(homes: &str) -> (u64, u64, u64) {
    let (mut all, mut right, mut first) = (0, 0, 0);
    for line in homes.lines() {
        let numbers: Vec<i64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        if (numbers[0] as u64) < (POINTS + 2) * (POINTS + 2) * 8 {
            continue;
        }
        let mut offset = numbers[1] as u64;
        for stretch in numbers[2..].chunks(2) {
            for _ in 0..stretch[1] {
                if let Some(owner) = owner(offset) {
                    all += 1;
                    right += u64::from(stretch[0] == owner as i64);
                    first += u64::from(stretch[0] == 0);
                }
                offset += PAGE;
            }
        }
    }
    (all, right, first)
}

#[test]
fn pages_move_to_the_nodes_that_use_them() {
    let dir = fresh("lab-run").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let library = homenode.with_file_name("libhomenode.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(dir.join("homes.so"));
    assert!(gcc.arg(root().join("tests/lab/homes.c")).status().unwrap().success());
    let mut script = String::from("set -e\nexport LD_PRELOAD=$PWD/homes.so\n");
    for name in ["heat", "sor"] {
        kernel(&dir, name);
        let program = format!("./{name} --size {POINTS} --iterations 60 --threads {THREADS} --init serial");
        script += &format!("export HOMES_OF={name}\n");
        script += &format!("HOMES={name}.alone {program} >{name}.alone.out\n");
        script += &format!(
            "HOMES={name}.run {} run --budget 1%+60s --json --summary {name}.json -- {program} >{name}.out\n",
            homenode.display()
        );
    }
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let mut command = lab(
        &dir,
        "--mem 192M --numa-balancing off --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads",
    );
    command.arg("--with").arg(homenode).arg("--with").arg(library).args(["--", "sh", "script"]);
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    for name in ["heat", "sor"] {
        let read = |end: &str| {
            fs::read_to_string(dir.join(format!("{name}{end}")))
                .unwrap_or_else(|e| panic!("{name}{end}: {e}\n{err}"))
        };
        let (all, right, first) = count(&read(".alone"));
        assert!(
            all > 1000 && first == all,
            "without homenode {first} of {all} pages are on the first node ({right} right)"
        );
        let report = read(".json");
        let (all, right, _) = count(&read(".run"));
        println!("{name}: {right} of {all} pages that have an owner are on its node");
        // 98.6 % (sor) and 98.8 % (heat) were seen on a busy host; what is missing are seams. By chance it would be a quarter.
        assert!(
            right * 100 >= all * 97,
            "{name}: {right} of {all} pages are on their owners' nodes\n{report}\n{err}"
        );
        let verified = |text: &str| text.contains("verification: successful");
        assert!(verified(&read(".out")) && verified(&read(".alone.out")), "{}", read(".out"));
        let json: serde_json::Value = serde_json::from_str(&report).unwrap();
        for key in ["arms", "faults", "pages_copied"] {
            assert!(json["processes"][0][key].as_u64().unwrap() > 0, "{name}: {key} in {report}");
        }
    }
}
