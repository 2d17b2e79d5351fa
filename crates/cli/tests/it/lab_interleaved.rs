//! Programs that somebody has interleaved (`numactl -i all`), on the lab's four nodes: what
//! homenode brings to a node is there, and the programs come to the same results.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, BUDGET, POINTS, number, owner_in_grid};
use crate::support::{compilers, fresh, outcome};

/// Hostile programs (`tests/hostile`), with all memory armed every few milliseconds.
const HOSTILE: [&str; 4] = ["threads", "remaps", "fresh", "forks"];

pub fn hostile(dir: &Path, name: &str) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-std=gnu17", "-pthread", "-o", name]);
    gcc.arg(lab_homes::root().join("tests/hostile").join(name).with_extension("c")).arg("-ldl");
    assert!(gcc.current_dir(dir).status().unwrap().success());
}

#[test]
fn pages_leave_an_interleaved_placement() {
    let dir = fresh("lab-interleaved").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() {
        return;
    }
    let Some(numactl) = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|p| p.join("numactl"))
        .find(|p| p.exists())
    else {
        return eprintln!("skipped: there is no numactl");
    };
    lab_homes::library(&dir);
    lab_homes::kernel(&dir, "heat");
    HOSTILE.iter().for_each(|name| hostile(&dir, name));
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let interleaved = format!("{} -i all", numactl.display());
    let heat = format!("{interleaved} ./heat --size {POINTS} --iterations 60 --threads 4 --init serial");
    let run = format!("{} run --budget {BUDGET} --json --summary", homenode.display());
    let mut script = format!(
        "set -e\nexport HOMES_OF=heat\n\
         LD_PRELOAD=$PWD/homes.so HOMES=heat.alone {heat} >alone.out\n\
         LD_PRELOAD=$PWD/homes.so HOMES=heat.run {run} heat.json -- {heat} >run.out\n\
         export HOMENODE_RUN_FORCE_ARM=5 HOSTILE_SECONDS=1\n"
    );
    for name in HOSTILE {
        script += &format!(
            "{run} {name}.json --force --policy next-touch=asked -- {interleaved} ./{name} >{name}.out || true\n"
        );
    }
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words =
        "--mem 192M --numa-balancing off --thp never --env OMP_PROC_BIND=true --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    for with in [homenode, &homenode.with_file_name("libhomenode.so"), &numactl] {
        command.arg("--with").arg(with);
    }
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    let read =
        |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}\n{err}"));
    let report =
        |name: &str| -> serde_json::Value { serde_json::from_str(&read(&format!("{name}.json"))).unwrap() };
    let homes = |name: &str| {
        let least = (POINTS + 2) * (POINTS + 2) * 8;
        let all = lab_homes::owned(&dir.join(name), least, owner_in_grid);
        let right = number(&all, |(owner, home)| home == Some(owner));
        (all.len(), right, number(&all, |(_, home)| home == Some(0)))
    };
    let (all, right, first) = homes("heat.alone");
    assert!(
        all > 1000 && (first * 4).abs_diff(all) <= all / 10 && (right * 4).abs_diff(all) <= all / 10,
        "not interleaved: {first} of {all} on the first node, {right} at their owners"
    );
    let (all, right, _) = homes("heat.run");
    println!("{right} of {all} pages that have an owner are on its node");
    assert!(
        right * 100 >= all * 97,
        "{right} of {all} pages are on their owners' nodes\n{:#}",
        report("heat")
    );
    let verdict = |text: String| text.lines().find(|l| l.starts_with("verification:")).unwrap().to_owned();
    let verdicts = [verdict(read("run.out")), verdict(read("alone.out"))];
    assert!(verdicts[0] == verdicts[1] && !verdicts[0].contains("FAILED"), "{verdicts:?}");
    for name in HOSTILE {
        let report = report(name);
        assert_eq!(read(&format!("{name}.out")), "ok\n", "{name}: {err}\n{report:#}");
        let processes = report["processes"].as_array().unwrap();
        assert!(processes.iter().any(|p| p["pages_copied"].as_u64() > Some(0)), "{name}: {report:#}");
    }
}
