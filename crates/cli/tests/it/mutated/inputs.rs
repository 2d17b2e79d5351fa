//! Sound files of every format that homenode reads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::hostile_recordings::{COMMANDS, fixtures, recordings};
use crate::support::{plain, run};

const PLAN: &str = r#"{"schema":"homenode/plan/1","command":["true"],"counts":"exact","machine":"two nodes",
"nodes":[0,1],"pretended":true,"page":4096,"ranks":1,"threads":[0,1],"objects":[
{"name":"a","site":{"function":"main","file":"/src/a.c","line":3},"instance":0,"count":1,"order":0,"bytes":1048576,
"homes":[[0,524288,0],[524288,524288,1]]},{"name":"field","static":"field","bytes":65536,"homes":[[0,4096,1]]}]}"#;

/// A file to damage, and the commands that read it.
pub struct Input {
    pub format: String,
    /// Relative to the folder of all inputs.
    pub path: PathBuf,
    pub sound: Vec<u8>,
    /// Command lines without `homenode`, or calls of a library ([`super::batch`]).
    pub commands: Vec<String>,
}

fn input(dir: &Path, format: &str, path: impl Into<PathBuf>, commands: &[&str]) -> Input {
    let path = path.into();
    let sound = fs::read(dir.join(&path)).unwrap();
    let commands = commands.iter().map(ToString::to_string).collect();
    Input { format: format.to_owned(), path, sound, commands }
}

/// Makes sound files of every format in a folder.
pub fn make(dir: &Path) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (recording, files) in recordings(dir) {
        let all = COMMANDS.iter().chain(&MORE).filter(|c| !c.contains("--color"));
        let commands: Vec<String> = all.map(|c| c.replace('R', recording)).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        for file in files {
            let path = Path::new(recording).join(&file);
            if dir.join(&path).is_file() {
                inputs.push(input(dir, &format!("{recording}/{file}"), path, &commands));
            }
        }
    }
    for entry in fs::read_dir(fixtures().join("hwloc")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".xml") {
            fs::copy(entry.path(), dir.join(&name)).unwrap();
            inputs.push(input(dir, "hwloc XML", &name, &[&format!("machine show ./{name}")]));
        }
    }
    for entry in fs::read_dir(fixtures().join("sysfs")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".tree") {
            fs::copy(entry.path(), dir.join(&name)).unwrap();
            inputs.push(input(dir, "sysfs tree", &name, &[&format!("measure --tree ./{name}")]));
        }
    }
    let presets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/presets");
    fs::copy(presets.join("epyc-nps4.toml"), dir.join("machine.toml")).unwrap();
    inputs.push(input(dir, "machine file", "machine.toml", &["machine show ./machine.toml"]));
    fs::write(dir.join("plan.hnplan"), PLAN).unwrap();
    let line = "run -q --pretend-nodes 2 --plan plan.hnplan -- /bin/true";
    inputs.push(input(dir, "plan", "plan.hnplan", &["@plan plan.hnplan", line]));
    for (format, name, command) in [
        ("measurement", "measured", "measure --synthetic cxl --json"),
        ("comparison", "compared", "compare exact -m 2s-xeon --json"),
    ] {
        let (_, result, err) = run(dir, &command.split(' ').collect::<Vec<_>>());
        assert!(!result.is_empty(), "{err}");
        for file in [format!("{name}.json"), format!("{name}-before.json")] {
            fs::write(dir.join(file), &result).unwrap();
        }
        let line = format!("diff {name}-before.json {name}.json");
        inputs.push(input(dir, format, format!("{name}.json"), &[&line, &(line.clone() + " --json")]));
    }
    inputs.extend(of_a_run(dir));
    inputs
}

/// Further commands that read a recording.
const MORE: [&str; 3] = ["explain R", "explain R --json", "view R -q -o out.html"];

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
    let journal = fs::read_dir(dir.join("journals")).unwrap().flatten().next().expect("a journal");
    fs::rename(journal.path(), dir.join("journal")).unwrap();
    let mut inputs = vec![input(dir, "journal", "journal", &["rec replay-policy ./journal"])];
    let line = "run -q --pretend-nodes 2 --schedule record --schedule-to schedules -- ./app";
    let (status, _, err) = run(dir, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(status, Some(0), "{err}");
    let line = "run -q --pretend-nodes 2 --schedule replay --schedule-from schedules -- ./app";
    inputs.push(input(dir, "schedules", "schedules", &["@schedules schedules", line]));
    inputs
}
