//! `homenode run` on the lab's four nodes, against the best placement and beside Linux's NUMA
//! balancing: four programs, each from three initial placements. Rows go to
//! `target/live-matrix.csv`; `results/live-matrix.csv` is a copy of the last.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, BUDGET, Done, Key, Owner, percent};
use crate::lab_record::monitor;
use crate::support::{compilers, fresh, homenode, outcome};

/// Initial placements: the name, and what the program and the library are asked for.
const FROM: [(&str, &str, &str); 3] = [
    ("serial", "serial", "unset HOMES_PLACE"),
    ("round-robin", "round-robin", "unset HOMES_PLACE"),
    ("far", "serial", "export HOMES_PLACE=far"),
];
const HEADING: &str = "program,from,scheme,iterations,pages,pages with an owner,at their owner %,pages dominated,\
    at who dominates %,remote accesses %,of the best placement %,pages moved,of all pages an iteration at the end %";

struct Program {
    name: &'static str,
    options: String,
    owner: Owner,
    /// Iterations of which accesses are counted, the first left out.
    counted: u64,
    /// Iterations of all schemes.
    iterations: u64,
    /// Iterations for NUMA balancing to settle.
    settled: u64,
}

/// Iterations without a scheme: nothing moves then, however many there are.
const ALONE: u64 = 2;

/// NUMA balancing has settled where it moves less an iteration, in percent of all pages.
const SETTLED: f64 = 0.1;
/// With so much there is no sense in a row of what it gives in the end.
const UNSETTLED: f64 = 1.0;

/// What one scheme did from one initial placement.
struct Row<'a> {
    from: &'a str,
    scheme: &'a str,
    iterations: u64,
    done: Done,
    moved: u64,
    /// Pages moved an iteration, in percent of all.
    pace: Option<f64>,
}

impl Row<'_> {
    fn csv(&self, program: &str) -> String {
        let Done { owned, dominated, pages, .. } = self.done;
        let pace = self.pace.map(|p| format!("{p:.3}")).unwrap_or_default();
        format!(
            "{program},{},{},{},{pages},{},{:.2},{},{:.2},{:.2},{:.2},{},{pace}",
            self.from,
            self.scheme,
            self.iterations,
            owned[0],
            percent(owned),
            dominated[0],
            percent(dominated),
            self.done.remote(),
            self.done.least(),
            self.moved,
        )
    }
}

/// Puts a program's rows in the place of its former ones.
fn keep(program: &str, rows: &[String]) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../live-matrix.csv");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let others = before.lines().skip(1).filter(|l| !l.starts_with(&format!("{program},")));
    let mut all: Vec<&str> = others.chain(rows.iter().map(String::as_str)).collect();
    // Within a program as they were made.
    all.sort_by_key(|l| l.split(',').next());
    fs::write(path, format!("{HEADING}\n{}\n", all.join("\n"))).unwrap();
}

const BOUND: &str =
    "--env OMP_PROC_BIND=true --env OMP_PLACES=threads --numa-balancing off --thp never --mem 256M";

fn record(dir: &Path, p: &Program) {
    let mut command = homenode(dir);
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME") {
        command.env("XDG_CACHE_HOME", cache);
    }
    command.env("TMPDIR", dir.parent().unwrap()).stdin(Stdio::null());
    command.args(["record", "--on", "lab", "-o", "recording", "--machine"]);
    command.arg(lab_homes::root().join("tests/lab/l2-256k.toml")).args(BOUND.split(' '));
    command.arg("--env").arg(format!("LD_PRELOAD={}", dir.join("homes.so").display()));
    command
        .args(["--env", "HOMES=recorded", "--env", "HOMES_AT=0", "--env"])
        .arg(format!("HOMES_OF={}", p.name));
    command.args(["--", &format!("./{}", p.name), "--iterations", &p.counted.to_string()]);
    command.args(p.options.split(' ')).args(["--init", "serial"]);
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
}

/// The guest's script: every scheme from every initial placement.
fn script(p: &Program, homenode: &Path) -> String {
    let Program { name, options, iterations, settled, .. } = p;
    let mut script = format!(
        "set -e\nexport LD_PRELOAD=$PWD/homes.so HOMES_OF={name} HOMES_AT=0,{iterations}\n\
         balancing() {{ echo $1 >/proc/sys/kernel/numa_balancing; }}\n"
    );
    for (from, init, place) in FROM {
        let program = format!("./{name} {options} --init {init} --iterations");
        script += &format!(
            "{place}\n\
             HOMES={from}.alone {program} {ALONE} >{from}.alone.out\n\
             HOMES={from}.run {} run --budget {BUDGET} --json --summary {from}.json -- {program} {iterations} >{from}.run.out\n\
             grep numa_pages_migrated /proc/vmstat >{from}.before\n\
             balancing 1\n\
             HOMES={from}.balancing HOMES_PACE={from}.pace {program} {settled} >{from}.balancing.out\n\
             balancing 0\n\
             cat /sys/devices/system/node/node*/distance >distances\n",
            homenode.display()
        );
    }
    script
}

/// Pages moved by NUMA balancing: until iteration `iterations`, until the end, and in the last
/// quarter an iteration.
fn pace(dir: &Path, from: &str, iterations: u64) -> (u64, u64, f64) {
    let read = |end: &str| fs::read_to_string(dir.join(format!("{from}.{end}"))).unwrap();
    let before: u64 = read("before").split_whitespace().nth(1).unwrap().parse().unwrap();
    let pace: Vec<u64> =
        read("pace").lines().map(|l| l.split_once(' ').unwrap().1.parse::<u64>().unwrap() - before).collect();
    let (last, quarter) = (pace.len() - 1, (pace.len() - 1) * 3 / 4);
    let late = (pace[last] - pace[quarter]) as f64 / (last - quarter) as f64;
    (pace[iterations as usize], pace[last], late)
}

fn matrix(p: &Program) {
    let dir = fresh(&format!("lab-matrix-{}", p.name)).join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() || !lab_homes::kernel(&dir, p.name) {
        return;
    }
    lab_homes::library(&dir);
    monitor();
    let _alone = alone();
    record(&dir, p);
    let homenode = PathBuf::from(env!("CARGO_BIN_EXE_homenode"));
    fs::write(dir.join("script"), script(p, &homenode)).unwrap();
    let mut command = lab(&dir, &format!("{BOUND} --root"));
    command.arg("--with").arg(&homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    judge(&dir, p);
}

/// Remote accesses stand for latency only where all other nodes are equally far.
fn equally_far(dir: &Path) {
    let text = fs::read_to_string(dir.join("distances")).unwrap();
    let rows: Vec<Vec<u32>> =
        text.lines().map(|l| l.split_whitespace().map(|w| w.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), lab_homes::NODES, "{text}");
    let far = rows[0][1];
    for (i, row) in rows.iter().enumerate() {
        let as_is = row.iter().enumerate().all(|(j, d)| *d == if i == j { 10 } else { far });
        assert!(as_is && far > 10, "{text}");
    }
}

fn judge(dir: &Path, p: &Program) {
    equally_far(dir);
    // What is there when the iterations begin and when the program ends, unlike work space.
    let (first, last) =
        (lab_homes::read(&dir.join("recorded"), "0"), lab_homes::read(&dir.join("recorded"), "free"));
    let arrays = last.into_iter().filter(|(key, _)| first.contains_key(key)).collect();
    let (counts, share) = lab_homes::counts(&dir.join("recording"), &arrays, p.counted);
    println!("{}: {share:.2} % of the main-memory accesses are to whole pages of its arrays", p.name);
    assert!(share > 95.0);
    let done = |file: &str, when: &str| Done::of(&lab_homes::read(&dir.join(file), when), &counts, p.owner);
    let mut rows = Vec::new();
    for (from, ..) in FROM {
        let row = |scheme, iterations, done, moved, pace| Row { from, scheme, iterations, done, moved, pace };
        rows.push(row("alone", ALONE, done(&format!("{from}.alone"), "free"), 0, None));
        let report = fs::read_to_string(dir.join(format!("{from}.json"))).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let moved = report["processes"][0]["pages_moved"].as_u64().unwrap();
        rows.push(row("homenode", p.iterations, done(&format!("{from}.run"), "free"), moved, None));
        let (equal, end, late) = pace(dir, from, p.iterations);
        let homes = format!("{from}.balancing");
        rows.push(row("balancing", p.iterations, done(&homes, &p.iterations.to_string()), equal, None));
        let settled = done(&homes, "free");
        let late = 100.0 * late / settled.pages as f64;
        rows.push(row("balancing", p.settled, settled, end, Some(late)));
        let outputs = ["alone", "run", "balancing"].map(|s| dir.join(format!("{from}.{s}.out")));
        for out in outputs.map(|path| fs::read_to_string(path).unwrap()) {
            assert!(!out.contains("FAILED") && out.contains("verification:"), "{out}");
        }
    }
    let lines: Vec<String> = rows.iter().map(|r| r.csv(p.name)).collect();
    println!("{HEADING}\n{}", lines.join("\n"));
    keep(p.name, &lines);
    for (row, line) in rows.iter().zip(&lines) {
        let (owned, dominated) = (percent(row.done.owned), percent(row.done.dominated));
        let over = row.done.remote() - row.done.least();
        match (row.scheme, row.from) {
            ("alone", "far") => assert!(owned < 5.0, "this is not the worst case: {line}"),
            ("alone", _) => assert!((20.0..30.0).contains(&owned), "a quarter belongs where it is: {line}"),
            ("homenode", _) => {
                assert!(owned >= 97.0 && dominated >= 97.0, "pages are not with their owners: {line}");
                assert!(over <= 3.0, "{over:.2} points above the best placement: {line}");
            }
            // Within as many iterations as homenode has, it may not have begun.
            ("balancing", from) => match row.pace {
                None if row.moved == 0 => {
                    println!("from {from} NUMA balancing has moved nothing yet: {line}")
                }
                None => {}
                Some(pace) => {
                    let alone = rows.iter().find(|r| (r.scheme, r.from) == ("alone", from)).unwrap();
                    assert!(row.moved > 0, "NUMA balancing does nothing: {line}");
                    assert!(row.done.remote() < alone.done.remote(), "nothing is nearer: {line}");
                    assert!(pace < UNSETTLED, "NUMA balancing is far from settled: {line}");
                    if pace >= SETTLED {
                        println!("from {from} NUMA balancing has not settled: {line}");
                    }
                }
            },
            (scheme, from) => panic!("nobody judges {scheme} from {from}"),
        }
    }
}

/// Heat and SOR on a grid of [`lab_homes::POINTS`].
fn on_a_grid(name: &'static str) {
    let owner: Owner = |(bytes, _): Key, offset, _| lab_homes::owner_in_grid(offset, bytes);
    let options = format!("--size {} --threads 4", lab_homes::POINTS);
    matrix(&Program { name, options, owner, counted: 3, iterations: 60, settled: 240 });
}

#[test]
#[ignore = "two minutes"]
fn heat_from_everywhere() {
    on_a_grid("heat");
}

#[test]
#[ignore = "two minutes"]
fn sor_from_everywhere() {
    on_a_grid("sor");
}

#[test]
#[ignore = "five minutes"]
fn conjugate_gradients_from_everywhere() {
    let owner: Owner = lab_homes::owner_in_rows;
    let options = "--class A --threads 4".into();
    matrix(&Program { name: "nas-cg", options, owner, counted: 3, iterations: 15, settled: 40 });
}

#[test]
#[ignore = "seven minutes"]
fn multigrid_from_everywhere() {
    let owner: Owner = |(bytes, _): Key, offset, _| lab_homes::owner_in_levels(offset, bytes);
    let options = "--class W --threads 4".into();
    matrix(&Program { name: "nas-mg", options, owner, counted: 3, iterations: 10, settled: 80 });
}
