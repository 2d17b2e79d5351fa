//! What `homenode run` costs a program that allocates its arrays anew in each round
//! (`anew/anew.c`), by default, on two pretended nodes.
//!
//! The baseline is the same program by itself. Both run in turn. The figure is the ratio of the
//! seconds of all rounds: the median of the pairs, and the least and the largest. The goal is 1.05.
//! `PAIRS` in the environment sets how many pairs there are, 9 unless told.

use std::path::Path;
use std::process::Command;

use homenode_statistics::Sorted;

/// Size of each of the two arrays, in MiB.
const MIB: &str = "4";
const ROUNDS: [&str; 2] = ["200", "1000"];
/// How the program allocates. After `free` glibc may keep memory; after `munmap` it is gone.
const BY: [&str; 2] = ["malloc", "mmap"];
const BOUND: [(&str, &[&str]); 2] = [("unbound", &[]), ("bound", &["--bind"])];

/// Seconds of all rounds, and the sum that must not change.
fn run(command: &mut Command, args: [&str; 3]) -> (f64, String) {
    let output = command.args(args).env("OMP_NUM_THREADS", "2").output().expect("a program that starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8(output.stdout).expect("text");
    let (seconds, sum) = out.split_once(' ').expect("seconds and a sum");
    (seconds.parse().expect("seconds"), sum.to_owned())
}

fn main() {
    let pairs = std::env::var("PAIRS").map_or(9, |n| n.parse().expect("PAIRS is a number"));
    // target/release/deps/anew-…: the command is built for the same profile.
    let here = std::env::current_exe().expect("a path of its own");
    let homenode = here.parent().and_then(Path::parent).expect("target/release").join("homenode");
    let folder = std::env::temp_dir().join(format!("homenode-bench-anew-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/anew/anew.c");
    let program = folder.join("anew");
    let built = Command::new("gcc").args(["-O2", "-g", "-fopenmp", "-o"]).arg(&program).arg(source).status();
    assert!(built.is_ok_and(|s| s.success()), "gcc with OpenMP is needed");
    for by in BY {
        for rounds in ROUNDS {
            for (how, options) in BOUND {
                let args = [by, rounds, MIB];
                let (mut ratios, mut alone) = (Vec::new(), Vec::new());
                for _ in 0..pairs {
                    let (without, sum) = run(&mut Command::new(&program), args);
                    let mut command = Command::new(&homenode);
                    command.args(["run", "--quiet", "--pretend-nodes", "2"]).args(options).arg("--");
                    let (with, same) = run(command.arg(&program), args);
                    assert_eq!(sum, same, "{args:?} computes something else under homenode");
                    ratios.push(with / without);
                    alone.push(without);
                }
                let (ratios, alone) = (Sorted::of(ratios), Sorted::of(alone));
                let expected = "there are pairs";
                let median = ratios.upper_median().expect(expected);
                println!(
                    "{by}, {rounds} rounds, {how}: {median:.3} × the {:.2} s alone ({:.3} to {:.3}, {pairs} pairs)",
                    alone.upper_median().expect(expected),
                    ratios.smallest().expect(expected),
                    ratios.largest().expect(expected),
                );
                println!("bench: anew-{by}-{rounds}-{how} {median:.4} ratio");
            }
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}
