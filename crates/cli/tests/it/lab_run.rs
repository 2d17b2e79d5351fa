//! `homenode run` on four nodes: the lab's. One boot serves all programs. `lab_matrix.rs` is the
//! long form.

use std::fs;
use std::path::Path;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, BUDGET, POINTS, owner_in_grid, owner_in_levels};
use crate::support::{compilers, fresh, outcome};

/// The owner of a page, from its offset in the array and the array's bytes.
type Owner = fn(u64, u64) -> Option<usize>;

/// Of the pages of large arrays that have an owner: all, those on the owner's node, those on node
/// 0.
fn count(homes: &Path, owner: Owner) -> (usize, usize, usize) {
    let all = lab_homes::owned(homes, (POINTS + 2) * (POINTS + 2) * 8, owner);
    let right = lab_homes::number(&all, |(owner, home)| home == Some(owner));
    (all.len(), right, lab_homes::number(&all, |(_, home)| home == Some(0)))
}

/// `homenode lab run -- homenode run -- ./app`, as a person types it.
#[test]
fn homenode_in_front_of_a_program_works_as_typed() {
    let dir = fresh("lab-as-typed").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() || !lab_homes::kernel(&dir, "heat") {
        return;
    }
    let _alone = alone();
    let mut command = lab(&dir, "--mem 192M");
    command.args("-- homenode run -- ./heat --size 256 --iterations 5 --threads 4".split(' '));
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    assert!(err.contains("homenode: cost ") && err.contains("homenode: next: "), "{err}");
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
    lab_homes::library(&dir);
    let mut script = String::from("set -e\nexport LD_PRELOAD=$PWD/homes.so\n");
    let grid = format!("--size {POINTS} --iterations 60");
    let mut programs: Vec<(&str, &str, Owner)> =
        vec![("heat", &grid, owner_in_grid), ("sor", &grid, owner_in_grid)];
    // Its arrays get their pages long after they were allocated, its warm-up looks like the first
    // of its iterations.
    programs.push(("nas-mg", "--class W --iterations 9", owner_in_levels));
    programs.retain(|(name, ..)| lab_homes::kernel(&dir, name));
    for (name, options, _) in &programs {
        let program = format!("./{name} {options} --threads 4 --init serial");
        script += &format!("export HOMES_OF={name}\n");
        script += &format!("HOMES={name}.alone {program} >{name}.alone.out\n");
        script += &format!(
            "HOMES={name}.run {} run --budget {BUDGET} --json --summary {name}.json -- {program} >{name}.out\n",
            homenode.display()
        );
    }
    // A fault alone takes milliseconds.
    script += &format!(
        "HOMES=spent {} run --budget 100ms --json --summary spent.json -- ./heat {grid} --threads 4 --init serial >spent.out\n",
        homenode.display()
    );
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let mut command = lab(
        &dir,
        "--mem 192M --numa-balancing off --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads",
    );
    command.arg("--with").arg(homenode).arg("--with").arg(library).args(["--", "sh", "script"]);
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    for (name, _, owner) in programs {
        let read = |end: &str| {
            fs::read_to_string(dir.join(format!("{name}{end}")))
                .unwrap_or_else(|e| panic!("{name}{end}: {e}\n{err}"))
        };
        let (all, right, first) = count(&dir.join(format!("{name}.alone")), owner);
        assert!(
            all > 1000 && first == all,
            "without homenode {first} of {all} pages are on the first node ({right} right)"
        );
        let report = read(".json");
        let (all, right, _) = count(&dir.join(format!("{name}.run")), owner);
        println!("{name}: {right} of {all} pages that have an owner are on its node");
        // What is missing are seams. By chance it would be a quarter.
        assert!(
            right * 100 >= all * 97,
            "{name}: {right} of {all} pages are on their owners' nodes\n{report}\n{err}"
        );
        let verdict =
            |text: String| text.lines().find(|l| l.starts_with("verification:")).unwrap().to_owned();
        let verdicts = [verdict(read(".out")), verdict(read(".alone.out"))];
        assert!(verdicts[0] == verdicts[1] && !verdicts[0].contains("FAILED"), "{verdicts:?}");
        let json: serde_json::Value = serde_json::from_str(&report).unwrap();
        for key in ["arms", "faults", "pages_copied"] {
            assert!(json["processes"][0][key].as_u64().unwrap() > 0, "{name}: {key} in {report}");
        }
    }
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let spent: serde_json::Value = serde_json::from_str(&read("spent.json")).unwrap();
    // On a slow machine nothing is armed in the first place.
    let process = &spent["processes"][0];
    let stopped = process["stopped"].as_str().unwrap_or_default().starts_with("the budget ran out: ");
    let no_room = process["could_not"].to_string().contains("had no room for them");
    assert!(stopped || no_room, "{spent:#}");
    assert!(read("spent.out").contains("verification: successful"), "{}", read("spent.out"));
}

#[test]
fn a_node_without_memory_is_told_and_the_program_goes_on() {
    let dir = fresh("lab-full-node").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    lab_homes::kernel(&dir, "heat");
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(dir.join("fill"));
    assert!(gcc.arg(lab_homes::root().join("tests/lab/fill.c")).status().unwrap().success());
    let run = format!("{} run --budget 1%+60s --json --summary heat.json --", homenode.display());
    let program = "./heat --size 512 --iterations 40 --threads 4 --init serial";
    fs::write(dir.join("script"), format!("./fill 2 {run} {program} >heat.out\n")).unwrap();
    let _alone = alone();
    let mut command = lab(
        &dir,
        "--mem 96M --numa-balancing off --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads",
    );
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    let read =
        |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}\n{err}"));
    assert!(read("heat.out").contains("verification: successful"));
    let report: serde_json::Value = serde_json::from_str(&read("heat.json")).unwrap();
    let told = report["processes"][0]["could_not"].to_string();
    assert!(told.contains("node 2 has no memory left") && !told.contains("node 1 has"), "{report:#}\n{err}");
}

#[test]
fn within_a_cpuset_pages_move_among_the_nodes_that_it_leaves() {
    let dir = fresh("lab-cpuset").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    lab_homes::library(&dir);
    lab_homes::kernel(&dir, "heat");
    // Memory of three nodes of four, and all CPUs.
    let script = format!(
        "set -e\nmkdir /tmp/groups && mount -t cgroup2 none /tmp/groups\n\
         echo +cpuset >/tmp/groups/cgroup.subtree_control\n\
         mkdir /tmp/groups/three && echo 0-2 >/tmp/groups/three/cpuset.mems && echo $$ >/tmp/groups/three/cgroup.procs\n\
         export LD_PRELOAD=$PWD/homes.so HOMES_OF=heat\n\
         HOMES=heat.run {} run --budget {BUDGET} --json --summary heat.json -- ./heat --size {POINTS} --iterations 60 \
         --threads 4 --init serial >heat.out\n",
        homenode.display()
    );
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let mut command = lab(
        &dir,
        "--root --mem 192M --numa-balancing off --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads",
    );
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert!(read("heat.out").contains("verification: successful"), "{}", read("heat.out"));
    let report: serde_json::Value = serde_json::from_str(&read("heat.json")).unwrap();
    // Said once, and not that the node is full.
    let told = report["could_not"].to_string() + &report["processes"][0]["could_not"].to_string();
    assert!(told.contains("node 3 is hidden by the process's cpuset"), "{report:#}");
    assert!(!told.contains("has no memory left"), "{report:#}");
    let all = lab_homes::owned(&dir.join("heat.run"), (POINTS + 2) * (POINTS + 2) * 8, owner_in_grid);
    assert!(all.len() > 1000 && lab_homes::number(&all, |(_, home)| home == Some(3)) == 0, "{report:#}");
    for node in 0..3 {
        let pages = lab_homes::number(&all, |(owner, _)| owner == node);
        let right = lab_homes::number(&all, |(owner, home)| owner == node && home == Some(node));
        println!("{right} of {pages} pages that belong to node {node} are there");
        assert!(right * 100 >= pages * 95, "node {node}: {right} of {pages}: {report:#}");
    }
}
