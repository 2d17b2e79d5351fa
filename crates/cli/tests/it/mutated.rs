//! Files of every format, damaged at random, through the commands that read them. Each command ends
//! in time and within its memory, with a status that `--help` tells of, without a panic, and writes
//! nothing that a terminal obeys.

#[allow(dead_code)] // the readers' own tests damage texts
#[path = "../../../../fuzz/mutate.rs"]
mod mutate;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mutate::{Rng, mutated_bytes};

use crate::hostile_recordings::{COMMANDS, attempt_within, fixtures, recordings};
use crate::support::{fresh, plain, run};

/// The goal is 256 MiB of memory in use. The limit is of address space, of which a debug build with
/// its threads' stacks takes more.
const LIMIT: &str = "ulimit -v 4194304";
/// A command that takes longer hangs. An idle machine needs a fraction of it.
const HANGS: Duration = Duration::from_secs(30);

const PLAN: &str = r#"{"schema":"homenode/plan/1","command":["true"],"counts":"exact","machine":"two nodes",
"nodes":[0,1],"pretended":true,"page":4096,"ranks":1,"threads":[0,1],"objects":[
{"name":"a","site":{"function":"main","file":"/src/a.c","line":3},"instance":0,"count":1,"order":0,"bytes":1048576,
"homes":[[0,524288,0],[524288,524288,1]]},{"name":"field","static":"field","bytes":65536,"homes":[[0,4096,1]]}]}"#;

/// A file to damage, and the commands that read it.
struct Input {
    format: String,
    path: PathBuf,
    sound: Vec<u8>,
    commands: Vec<String>,
}

fn input(format: &str, path: PathBuf, commands: &[&str]) -> Input {
    let sound = fs::read(&path).unwrap();
    let commands = commands.iter().map(ToString::to_string).collect();
    Input { format: format.to_owned(), path, sound, commands }
}

/// Sound files of every format.
fn inputs(dir: &Path) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (recording, files) in recordings(dir) {
        let commands: Vec<String> = COMMANDS.iter().map(|c| c.replace('R', recording)).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        for file in files {
            let path = dir.join(recording).join(&file);
            if path.is_file() {
                inputs.push(input(&format!("{recording}/{file}"), path, &commands));
            }
        }
    }
    for entry in fs::read_dir(fixtures().join("hwloc")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".xml") {
            fs::copy(entry.path(), dir.join(&name)).unwrap();
            inputs.push(input("hwloc XML", dir.join(&name), &[&format!("machine show ./{name}")]));
        }
    }
    for entry in fs::read_dir(fixtures().join("sysfs")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".tree") {
            fs::copy(entry.path(), dir.join(&name)).unwrap();
            inputs.push(input("sysfs tree", dir.join(&name), &[&format!("measure --tree ./{name}")]));
        }
    }
    let presets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/presets");
    fs::copy(presets.join("epyc-nps4.toml"), dir.join("machine.toml")).unwrap();
    inputs.push(input("machine file", dir.join("machine.toml"), &["machine show ./machine.toml"]));
    fs::write(dir.join("plan.hnplan"), PLAN).unwrap();
    let line = "run -q --pretend-nodes 2 --plan plan.hnplan -- /bin/true";
    inputs.push(input("plan", dir.join("plan.hnplan"), &[line]));
    let (_, measured, err) = run(dir, &["measure", "--synthetic", "cxl", "--json"]);
    assert!(!measured.is_empty(), "{err}");
    for name in ["measured.json", "other.json"] {
        fs::write(dir.join(name), &measured).unwrap();
    }
    let line = "diff measured.json other.json";
    inputs.push(input("measurement", dir.join("measured.json"), &[line]));
    inputs.extend(of_a_run(dir));
    inputs
}

/// Two threads add to an array, the second time by a loop that is dealt out.
const APP: &str = r#"
#include <stdlib.h>
enum { N = 1 << 19 };
int main(void) {
    double *a = calloc(N, sizeof *a);
    for (int r = 0; r < 50; r++) {
        #pragma omp parallel for num_threads(2)
        for (int i = 0; i < N; i++) a[i] += r;
        #pragma omp parallel for num_threads(2) schedule(dynamic, 4096)
        for (int i = 0; i < N; i++) a[i] += r;
    }
    return a[7] == 0;
}
"#;

/// What `homenode run` writes: a journal, and schedules.
fn of_a_run(dir: &Path) -> Vec<Input> {
    if plain(dir, "app", APP).is_none() {
        return Vec::new();
    }
    let line = "run -q --pretend-nodes 2 --policy competitive --source blocks --journal journals -- ./app";
    let (status, _, err) = run(dir, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(status, Some(0), "{err}");
    let journal = fs::read_dir(dir.join("journals")).unwrap().flatten().next().expect("a journal").path();
    let line = format!("rec replay-policy {}", journal.display());
    let mut inputs = vec![input("journal", journal, &[&line])];
    let line = "run -q --pretend-nodes 2 --schedule record --schedule-to schedules -- ./app";
    let (status, _, err) = run(dir, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(status, Some(0), "{err}");
    let line = "run -q --pretend-nodes 2 --schedule replay --schedule-from schedules -- ./app";
    inputs.push(input("schedules", dir.join("schedules"), &[line]));
    inputs
}

/// Damages `count` files, taken in turn. What is wrong, in words.
fn damage(test: &str, seed: u64, count: usize) {
    let dir = fresh(test);
    let mut inputs = inputs(&dir);
    let mut rng = Rng(seed);
    let (mut wrong, mut statuses) = (Vec::new(), BTreeMap::<Option<i32>, u32>::new());
    let mut slowest = Duration::ZERO;
    let all = inputs.len();
    for at in 0..count {
        let other = inputs[rng.below(all)].sound.clone();
        let Input { format, path, sound, commands } = &mut inputs[at % all];
        fs::write(&*path, mutated_bytes(sound, &other, &mut rng)).unwrap();
        let line = &commands[rng.below(commands.len())];
        let words: Vec<&str> = line.split(' ').collect();
        let begin = Instant::now();
        let (status, said) = attempt_within(&dir, &words, LIMIT);
        slowest = slowest.max(begin.elapsed());
        *statuses.entry(status).or_default() += 1;
        // A plan is for a program, whose launcher ends with 125 or the program's own status.
        let known = matches!(status, Some(0..=3 | 125..=127));
        let obeyed = said.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
        let obeyed = obeyed && !line.contains("--color always");
        if !known || said.contains("panicked") || obeyed || begin.elapsed() > HANGS {
            let kept = dir.join(format!("wrong-{at}"));
            fs::copy(&*path, &kept).unwrap();
            wrong.push(format!("{format}, `{line}`: {status:?} ({}): {said:.600}", kept.display()));
        }
        fs::write(&*path, &*sound).unwrap();
    }
    println!("{count} inputs of {all} files: statuses {statuses:?}, slowest {slowest:?}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(statuses.len() > 1, "damage is found: {statuses:?}");
}

#[test]
fn some_damaged_files_of_every_format() {
    damage("mutated-some", 1, 100);
}

/// `HOMENODE_MUTATIONS=SEED:COUNT` sets another seed and number.
#[test]
#[ignore = "takes hours"]
fn a_hundred_thousand_damaged_files_of_every_format() {
    let asked = std::env::var("HOMENODE_MUTATIONS").ok();
    let asked = asked.as_deref().map(|text| text.split_once(':').expect("SEED:COUNT"));
    let (seed, count) = asked.map_or((2, 100_000), |(seed, count)| {
        (seed.parse().expect("a seed"), count.parse().expect("a number"))
    });
    damage("mutated-many", seed, count);
}
