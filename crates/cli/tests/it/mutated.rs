//! Files of every format, damaged at random, through the commands that read them. Each command ends
//! in time and within its memory, with a status that `--help` tells of, without a panic, and writes
//! nothing that a terminal obeys.
//!
//! The commands run in a child, many of them in one process: a process for each would take most of
//! the time. `cargo xtask fuzz-inputs` runs any number of inputs.

mod batch;
mod inputs;
#[allow(dead_code)] // the readers' own tests damage texts
#[path = "../../../../fuzz/mutate.rs"]
mod mutate;
#[allow(dead_code)] // the readers' own tests read logs
#[path = "../../../../fuzz/fuzz_targets/read.rs"]
mod read;
#[allow(dead_code)] // the readers' own tests read tables
#[path = "../../../../fuzz/fuzz_targets/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use batch::{AT, Outcome, RESULTS, SAID, WRONG};

use crate::support::{fresh, homenode};

/// Address space of a process, of which a debug build with its threads' stacks takes much. Memory
/// in use has a bound of its own.
pub const LIMIT: &str = "ulimit -v 4194304";
/// Inputs of one process.
const BATCH: u64 = 200;
/// Tells a child its inputs: first and last, seed, folder.
const CHILD: &str = "HN_TEST_BATCH";

/// A child that damages the inputs `from` to `to`; how it ended if not in order.
fn child(dir: &Path, seed: u64, from: u64, to: u64) -> Result<(), String> {
    let said = fs::File::create(dir.join(SAID)).unwrap();
    drop(said);
    let said = || fs::File::options().append(true).open(dir.join(SAID)).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{LIMIT}; exec \"$0\" \"$@\"")]).arg(env::current_exe().unwrap());
    shell.args(["--exact", "mutated::a_batch", "--ignored", "--nocapture", "--test-threads=1"]);
    for (name, value) in homenode(dir).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(dir).env(CHILD, format!("{from} {to} {seed} {}", dir.display()));
    let status = shell.stdin(Stdio::null()).stdout(said()).stderr(said()).status().unwrap();
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

/// The child of [`child`]; alone it does nothing.
#[test]
#[ignore = "a part of the other tests, which start it"]
fn a_batch() {
    let Ok(asked) = env::var(CHILD) else { return };
    let mut words = asked.splitn(4, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (from, to, seed) = (number(), number(), number());
    let dir = PathBuf::from(words.next().unwrap());
    batch::run(&dir, &batch::load(&dir), seed, from, to);
}

/// Damages `count` files, taken in turn. What is wrong, in words.
fn damage(test: &str, seed: u64, count: u64) {
    let dir = fresh(test);
    let inputs = inputs::make(&dir);
    batch::save(&dir, &inputs);
    let mut wrong = Vec::new();
    let mut from = 0;
    while from < count {
        let to = (from + BATCH).min(count);
        let Err(ended) = child(&dir, seed, from, to) else {
            from = to;
            continue;
        };
        let at = fs::read_to_string(dir.join(AT)).expect("the child began");
        let said = String::from_utf8_lossy(&fs::read(dir.join(SAID)).unwrap()).into_owned();
        let number: u64 = at.split(' ').next().unwrap().parse().unwrap();
        assert!((from..to).contains(&number), "the child ended beside its inputs: {ended}: {said:.2000}");
        let path = Path::new(at.split(' ').nth(1).unwrap());
        let kept = dir.with_extension(format!("wrong-{number}"));
        fs::copy(dir.join(path), &kept).unwrap();
        wrong.push(format!("input {at}: the process ends with {ended} ({}): {said:.800}", kept.display()));
        let sound = inputs.iter().find(|i| i.path == path).expect("it is one of them");
        fs::write(dir.join(path), &sound.sound).unwrap();
        from = number + 1;
    }
    let results = fs::read_to_string(dir.join(RESULTS)).unwrap_or_default();
    let outcomes: Vec<Outcome> = results.lines().filter_map(Outcome::of_line).collect();
    let mut statuses = BTreeMap::<Option<i32>, u32>::new();
    outcomes.iter().for_each(|o| *statuses.entry(o.status).or_default() += 1);
    let slowest = outcomes.iter().map(|o| o.cpu).max().unwrap_or_default();
    let memory = outcomes.iter().map(|o| o.memory).max().unwrap_or_default();
    let total: Duration = outcomes.iter().map(|o| o.cpu).sum();
    println!(
        "{count} damaged inputs of {} files, seed {seed}: {} ran, statuses {statuses:?}, at most {slowest:?} \
         of CPU time ({total:?} in all) and {} MiB",
        inputs.len(),
        outcomes.len(),
        memory >> 20
    );
    let told = fs::read_to_string(dir.join(WRONG)).unwrap_or_default();
    let n = wrong.len() + told.lines().filter(|l| l.starts_with("input ")).count();
    assert!(n == 0, "{n} are wrong\n{}\n{told:.20000}", wrong.join("\n"));
    assert!(statuses.len() > 1, "damage is found: {statuses:?}");
    assert_eq!(outcomes.len() as u64, count, "each input has an outcome");
}

#[test]
fn some_damaged_files_of_every_format() {
    damage("mutated-some", 1, 2000);
}

/// `HOMENODE_MUTATIONS=SEED:COUNT` sets another seed and number.
#[test]
#[ignore = "takes an hour"]
fn a_hundred_thousand_damaged_files_of_every_format() {
    let asked = env::var("HOMENODE_MUTATIONS").ok();
    let asked = asked.as_deref().map(|text| text.split_once(':').expect("SEED:COUNT"));
    let (seed, count) = asked.map_or((2, 100_000), |(seed, count)| {
        (seed.parse().expect("a seed"), count.parse().expect("a number"))
    });
    damage("mutated-many", seed, count);
}
