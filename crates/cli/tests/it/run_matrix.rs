//! The same results under `homenode run` as without: kernels, OpenMP libraries, policies, on two pretended nodes, with memory armed
//! or moved whatever anybody says.

use std::path::{Path, PathBuf};

use crate::support::{compilers, fresh, homenode, outcome};

/// Under each of them.
const POLICIES: [&str; 6] =
    ["next-touch", "next-touch=region", "competitive", "presence", "daemon", "round-robin"];
/// What the short test takes.
const FEW: [&str; 2] = ["heat", "nas-cg"];

/// What is left of a kernel's output without its times.
fn masked(out: &str) -> String {
    let timed = |line: &str| {
        ["an iteration:", "timed section:", "rounds:", "rate"].iter().any(|w| line.starts_with(w))
            || line.contains(" s,")
            || line.ends_with(" s")
            || line.contains("/s")
            || line.split_whitespace().count() == 2
                && line.split_whitespace().all(|w| w.parse::<f64>().is_ok())
    };
    out.lines().filter(|l| !timed(l)).collect::<Vec<_>>().join("\n")
}

/// A folder in which libomp goes by the name of libgomp: it runs what GCC has built.
fn libomp(dir: &Path) -> Option<PathBuf> {
    let known =
        ["/usr/lib/x86_64-linux-gnu/libomp.so.5", "/usr/lib/llvm-14/lib/libomp.so.5", "/usr/lib64/libomp.so"];
    let library = known.iter().map(Path::new).find(|p| p.exists())?;
    let folder = dir.join("libomp");
    std::fs::create_dir_all(&folder).ok()?;
    std::os::unix::fs::symlink(library, folder.join("libgomp.so.1")).ok()?;
    Some(folder)
}

struct Ran {
    status: Option<i32>,
    out: String,
    err: String,
}

/// Runs a kernel of class S with two threads; without a policy as it is.
fn kernel(dir: &Path, name: &str, policy: Option<&str>, libraries: Option<&Path>) -> Ran {
    let mut c = homenode(dir);
    c.args(["run", "--threads", "2", "--class", "S"]);
    match policy {
        Some(policy) => {
            c.args(["--force", "--budget", "100%+100s", "--pretend-nodes", "2", "--policy", policy])
        }
        None => c.arg("--quiet"),
    };
    c.arg(format!("kernel:{name}"));
    if policy.is_some() {
        c.env("HOMENODE_RUN_FORCE_ARM", "2");
    }
    if let Some(folder) = libraries {
        c.env("LD_LIBRARY_PATH", folder);
    }
    let (status, out, err) = outcome(&c.output().unwrap());
    Ran { status, out: masked(&out), err }
}

/// All runs of one kernel with one library; a line for each policy that does not give the same.
fn compare(dir: &Path, name: &str, libraries: Option<&Path>, policies: &[&str]) -> Vec<String> {
    let alone = kernel(dir, name, None, libraries);
    assert_eq!(alone.status, Some(0), "{name} alone: {}{}", alone.out, alone.err);
    let mut wrong = Vec::new();
    for policy in policies {
        let with = kernel(dir, name, Some(policy), libraries);
        if (with.status, &with.out) != (alone.status, &alone.out) {
            wrong.push(format!(
                "{name}, {policy}: {:?}\n{}\n{}\nalone:\n{}",
                with.status, with.out, with.err, alone.out
            ));
        }
        // Something was done to the program, or this says nothing.
        assert!(with.err.contains("moved "), "{name}, {policy}: {}", with.err);
    }
    wrong
}

#[test]
fn a_few_kernels_give_the_same_results() {
    let dir = fresh("matrix-few");
    if !compilers() {
        return;
    }
    for name in FEW {
        let wrong = compare(&dir, name, None, &["next-touch", "competitive"]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Minutes: only in the long tests.
#[test]
#[ignore = "minutes"]
fn all_kernels_give_the_same_results_with_both_libraries() {
    let dir = fresh("matrix");
    if !compilers() {
        return;
    }
    let list = outcome(&homenode(&dir).args(["kernel", "list", "--json"]).output().unwrap()).1;
    let json: serde_json::Value = serde_json::from_str(&list).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|r| r["kernel"].as_str().unwrap()).collect();
    let mut wrong = Vec::new();
    let folder = libomp(&dir);
    if folder.is_none() {
        println!("skipped: libomp is not here");
    }
    let mut runs = 0;
    for library in std::iter::once(None).chain(folder.as_deref().map(Some)) {
        for name in &names {
            wrong.extend(compare(&dir, name.trim_start_matches("kernel:"), library, &POLICIES));
            runs += POLICIES.len();
        }
    }
    println!("{runs} runs of {} kernels, {} not the same", names.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
