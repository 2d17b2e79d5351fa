//! Recordings of strangers. Whatever lies in one, every command ends within seconds, with a status
//! that `--help` tells of, names what is wrong, and writes nothing that a terminal obeys.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homenode_dataset::tables::{
    ALL as ALL_TABLES, Access, Interval, IntervalNo, Migration, MigrationCause, MigrationOutcome, Object,
    ObjectKind, Residency, TableInfo,
};
use homenode_dataset::{Basis, DatasetMeta, DatasetWriter, Ended, RecordingKind, RowSink as _, SeenCount};
use homenode_model::{Bytes, NodeId, Ns, ObjectId};
use homenode_wire::live::{BUFFER, LiveRecord, Writer as StreamWriter};

use crate::support::{fresh, homenode};

/// A command that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);
/// KiB of address space of a command: more than any of these needs, threads included.
const MEMORY: u64 = 4 << 20;
/// What a terminal would obey, and a mark to find it by.
const EVIL: &str = "EVIL\u{1b}]0;t\u{7}\u{1b}[31m\u{9b}31m\u{202e}";

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// `meta.json` of an exact recording.
pub fn exact_meta(command: &str) -> String {
    let text = |t: &str| serde_json::Value::from(t).to_string();
    format!(
        r#"{{"format":1,"homenode":"0.1.0","kind":"exact","command":[{}],"environment":{{}},
        "filter_lines":4096,"ended":{{"status":0,"signal":null,"elapsed_ns":1000000}}}}"#,
        text(command)
    )
}

/// What a killed homenode leaves of a live recording: a data set without an end, and streams.
fn cut_off(to: &Path) {
    let meta = DatasetMeta::new(RecordingKind::Live, Basis::Presence, vec!["./app".into()]);
    drop(DatasetWriter::create(to, meta).unwrap());
    let mut buffer = vec![0; BUFFER];
    let mut frame = StreamWriter::new(&mut buffer).unwrap();
    let policy = String::from("next-touch");
    let start =
        LiveRecord::Start { clock: Ns(0), pid: 7, nodes: 2, pretended: true, page: Bytes(4096), policy };
    for record in [start, LiveRecord::Note { text: format!("note {EVIL}") }] {
        frame.add(&record).unwrap();
    }
    fs::create_dir(to.join("streams")).unwrap();
    fs::write(to.join("streams/live.7"), frame.finish()).unwrap();
}

/// A sound recording of each kind: its name, and the files that hold it.
pub fn recordings(dir: &Path) -> Vec<(&'static str, Vec<String>)> {
    copy(&fixtures().join("dataset/v1"), &dir.join("set"));
    fs::remove_file(dir.join("set/rows.txt")).unwrap();
    copy(&fixtures().join("recordings/lab-v1"), &dir.join("lab"));
    copy(&fixtures().join("recordings/live-v1"), &dir.join("live"));
    copy(&fixtures().join("logs/v1/sor"), &dir.join("exact/threads"));
    fs::write(dir.join("exact/meta.json"), exact_meta("./sor")).unwrap();
    fs::write(dir.join("exact/symbols.json"), r#"{"statics":[],"places":{}}"#).unwrap();
    fs::write(dir.join("exact/modules.txt"), "0 0x400000 0x0 0x8000 /bin/none\n").unwrap();
    cut_off(&dir.join("cut"));
    let files = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut set = files(&["dataset.json", "tables"]);
    let has_file = |t: &&TableInfo| dir.join(format!("set/tables/{}.hntable", t.name)).exists();
    set.extend(ALL_TABLES.iter().filter(has_file).map(|t| format!("tables/{}.hntable", t.name)));
    assert_eq!(set.len(), 2 + ALL_TABLES.len(), "the fixture has every table");
    vec![
        ("set", set),
        ("lab", files(&["meta.json", "lab.json", "accesses.csv", "objects.csv"])),
        ("live", files(&["meta.json", "live.json", "sightings.csv", "objects.csv"])),
        ("exact", files(&["meta.json", "symbols.json", "modules.txt", "threads", "threads/00001.hnlog"])),
        ("cut", files(&["dataset.json", "streams", "streams/live.7"])),
    ]
}

/// Everything that reads a recording. `R` is the recording.
pub const COMMANDS: &[&str] = &[
    "show R",
    "show --map R --color always",
    "rec check R",
    "diff R set --color always",
    "rec export R -o out",
    "compare R",
    "rec merge R other -o out",
    "show R --json",
    "rec upgrade R -o out",
    "plan R -m sf15k -o out",
    "show R --csv",
    "rec agree R R -m sf15k",
    "rec check R --json",
    "diff set R --json",
    "explain R --color always",
    "view R -o out",
];

/// Status, and both outputs, of a command that may hang or ask for much memory.
fn attempt(dir: &Path, words: &[&str]) -> (Option<i32>, String) {
    attempt_within(dir, words, &format!("ulimit -v {MEMORY}"))
}

/// The same, within a limit in the shell's words.
pub fn attempt_within(dir: &Path, words: &[&str], limit: &str) -> (Option<i32>, String) {
    let out = dir.join("out");
    let _ = fs::remove_dir_all(&out);
    let _ = fs::remove_file(&out);
    let mut both = fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(dir.with_extension("said"))
        .unwrap();
    let template = homenode(dir);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")]).arg(template.get_program());
    shell.args(words).current_dir(dir).stdin(Stdio::null());
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdout(both.try_clone().unwrap()).stderr(both.try_clone().unwrap());
    let (mut child, begin) = (shell.spawn().unwrap(), Instant::now());
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > HANGS => {
                child.kill().unwrap();
                panic!("homenode {words:?} hangs");
            }
            None => std::thread::sleep(Duration::from_millis(3)),
        }
    };
    let mut said = Vec::new();
    both.seek(SeekFrom::Start(0)).unwrap();
    both.read_to_end(&mut said).unwrap();
    (status.code(), String::from_utf8(said).expect("what homenode says is text"))
}

/// What was not in order. A test goes on, so that all of it is seen at once.
#[derive(Default)]
struct Judge {
    wrong: Vec<String>,
}

impl Judge {
    fn expect(&mut self, right: bool, what: &str, context: &str) {
        if !right {
            self.wrong.push(format!("{what}: {context}"));
        }
    }

    /// Runs a command on the recording. The status, and what it says.
    fn check(&mut self, dir: &Path, command: &str, recording: &str, what: &str) -> (i32, String) {
        let words: Vec<&str> = command.split(' ').map(|w| if w == "R" { recording } else { w }).collect();
        let (status, said) = attempt(dir, &words);
        let shown: String = said.chars().take(400).collect();
        let context = format!("homenode {words:?}, {what}: {status:?}\n{shown:?}");
        self.expect(matches!(status, Some(0 | 2 | 3 | 125)), "an unknown status", &context);
        self.expect(!said.contains("panicked"), "a panic", &context);
        let obeyed = said.contains(['\u{7}', '\u{9b}', '\u{202e}']) || said.contains("\u{1b}]");
        self.expect(!obeyed && !said.contains("EVIL\u{1b}"), "a terminal would obey", &context);
        let coloured = command.contains("--color always");
        self.expect(coloured || !said.contains('\u{1b}'), "an escape without colours", &context);
        let named = status != Some(125) || recording == EVIL || said.contains(recording);
        self.expect(named, "the recording is not named", &context);
        (status.unwrap_or(-1), said)
    }

    fn done(self) {
        let n = self.wrong.len();
        assert!(n == 0, "{n} are wrong:\n{}", self.wrong[..n.min(40)].join("\n"));
    }
}

/// What is put in the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instead {
    Fifo,
    Folder,
    LinkToZero,
    LinkToItself,
    Nothing,
    Empty,
    Half,
    Junk,
}

const ALL: [Instead; 8] = [
    Instead::Fifo,
    Instead::Folder,
    Instead::LinkToZero,
    Instead::LinkToItself,
    Instead::Nothing,
    Instead::Empty,
    Instead::Half,
    Instead::Junk,
];

impl Instead {
    fn put(self, path: &Path) {
        let old = fs::read(path).unwrap_or_default();
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).unwrap();
        match self {
            Self::Fifo => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
            Self::Folder => fs::create_dir(path).unwrap(),
            Self::LinkToZero => symlink("/dev/zero", path).unwrap(),
            // As it was, but behind a link: a stranger could have any file read.
            Self::LinkToItself => symlink(&aside, path).unwrap(),
            Self::Nothing => {}
            Self::Empty => fs::write(path, "").unwrap(),
            Self::Half => fs::write(path, &old[..old.len() / 2]).unwrap(),
            Self::Junk => fs::write(path, EVIL.repeat(1000)).unwrap(),
        }
        if self != Self::LinkToItself {
            if aside.is_dir() {
                fs::remove_dir_all(&aside).unwrap();
            } else {
                fs::remove_file(&aside).unwrap();
            }
        }
    }
}

/// Each file of each kind of recording, replaced by each of these. The commands take turns, so that
/// each meets every kind of damage; `rec check` and `show` meet each single one.
#[test]
fn what_lies_in_the_place_of_a_file_is_named_and_not_waited_for() {
    let dir = fresh("hostile-files");
    let all = recordings(&dir);
    copy(&dir.join("live"), &dir.join("other"));
    let (mut turn, mut judge) = (0, Judge::default());
    for (kind, files) in &all {
        for command in COMMANDS {
            let (status, said) = judge.check(&dir, command, kind, "sound");
            let is_read = *kind == "cut" || status != 125 || command.contains("upgrade");
            judge.expect(is_read, "a sound recording is not read", &format!("{command}: {said}"));
        }
        for (file, instead) in files.iter().flat_map(|f| ALL.map(|i| (f, i))) {
            let name = format!("damaged-{kind}");
            let damaged = dir.join(&name);
            let _ = fs::remove_dir_all(&damaged);
            copy(&dir.join(kind), &damaged);
            instead.put(&damaged.join(file));
            let what = format!("{instead:?} in the place of {file}");
            let (status, said) = judge.check(&dir, "rec check R", &name, &what);
            let optional = matches!(file.as_str(), "symbols.json" | "modules.txt");
            // A folder without streams is what a program leaves that never ran.
            let no_stream = instead == Instead::Nothing || file == "streams" && instead == Instead::Folder;
            let harmless = optional || *kind == "cut" && no_stream;
            judge.expect(harmless || status != 0, &what, &format!("it is not noticed: {kind}: {said}"));
            let stem = Path::new(file).file_stem().unwrap().to_str().unwrap();
            let stem = if *file == "streams/live.7" { "7" } else { stem };
            // Without the file that tells what it is, it is another kind of recording.
            let named = instead == Instead::Nothing || said.contains(stem);
            judge.expect(harmless || named, &what, &format!("it is not named: {kind}: {said}"));
            judge.check(&dir, "show R", &name, &what);
            for _ in 0..2 {
                judge.check(&dir, COMMANDS[turn % COMMANDS.len()], &name, &what);
                turn += 1;
            }
        }
    }
    judge.done();
}

#[test]
fn names_of_strangers_are_text_in_every_kind_of_recording() {
    let dir = fresh("hostile-names");
    let all = recordings(&dir);
    copy(&dir.join("live"), &dir.join("other"));
    let json = serde_json::Value::from(EVIL).to_string();
    let json = json.trim_matches('"');
    let mut judge = Judge::default();
    for (kind, files) in &all {
        let (name, mut changed) = (format!("named-{kind}"), 0);
        let named = dir.join(&name);
        copy(&dir.join(kind), &named);
        for file in files.iter().filter(|f| f.ends_with(".json") || f.ends_with(".csv")) {
            let text = fs::read_to_string(named.join(file)).unwrap();
            let evil = if file.ends_with(".json") { json } else { EVIL };
            let mut out = text.clone();
            // Names that the fixtures have.
            for known in
                ["./sor", "table", "array", "arrays", "halves", "./app", "synthetic-4", "a generator"]
            {
                out = out.replace(known, evil);
            }
            changed += usize::from(out != text);
            fs::write(named.join(file), out).unwrap();
        }
        assert!(changed > 0, "{kind}: nothing has a name");
        for command in COMMANDS {
            judge.check(&dir, command, &name, "with hostile names");
        }
    }
    // Files with such names lie beside those that belong there.
    for (kind, folder) in [("set", "tables"), ("exact", "threads"), ("cut", "streams"), ("lab", ".")] {
        let name = format!("beside-{kind}");
        copy(&dir.join(kind), &dir.join(&name));
        for end in ["hntable", "hnlog", "csv"] {
            fs::write(dir.join(&name).join(folder).join(format!("{EVIL}\n.{end}")), EVIL).unwrap();
        }
        for command in COMMANDS {
            judge.check(&dir, command, &name, "with hostile files");
        }
    }
    // And so does the recording itself.
    for (kind, _) in &all {
        let _ = fs::remove_dir_all(dir.join(EVIL));
        copy(&dir.join(kind), &dir.join(EVIL));
        for command in COMMANDS {
            judge.check(&dir, command, EVIL, "with a hostile name of its own");
        }
    }
    judge.done();
}

/// Rows with numbers as large as they can be.
#[test]
fn the_largest_numbers_are_survived() {
    let dir = fresh("hostile-numbers");
    recordings(&dir);
    copy(&dir.join("live"), &dir.join("other"));
    let max = u64::MAX;
    let mut judge = Judge::default();
    let sizes = [(0, 1), (1 << 63, max), (max, 1), (4096, max), (1, 0)];
    for (number, (page_bytes, pages)) in sizes.into_iter().enumerate() {
        for basis in [Basis::Exact, Basis::Sampled { one_in: max }, Basis::Presence] {
            let name = format!("large-{number}");
            let _ = fs::remove_dir_all(dir.join(&name));
            let meta = DatasetMeta {
                page_bytes,
                ..DatasetMeta::new(RecordingKind::Run, basis, vec!["./app".into()])
            };
            let mut set = DatasetWriter::create(&dir.join(&name), meta).unwrap();
            let object = Some(ObjectId(u32::MAX));
            for (i, interval) in [(0, IntervalNo(0)), (1, IntervalNo(u32::MAX))] {
                let (begin_ns, end_ns) = (Ns(i * max), Ns(max / 2));
                set.push(&Interval { interval, begin_ns, end_ns, iteration: Some(u32::MAX), timed: true })
                    .unwrap();
                let (node, home) = (NodeId(u16::MAX), NodeId(i as u16));
                let (page, region, kind, tally) = (i * (max - 3), None, None, SeenCount::new(max, basis));
                set.push(&Access { interval, region, object, page, pages, node, home, kind, tally }).unwrap();
                let until = IntervalNo(u32::MAX);
                set.push(&Residency { object, page, pages, interval, until, home }).unwrap();
                set.push(&Migration {
                    time_ns: Ns(max),
                    interval,
                    object,
                    page,
                    pages,
                    from_node: node,
                    to_node: home,
                    cause: MigrationCause::Kernel,
                    policy: None,
                    region: None,
                    thread: None,
                    cost_ns: Some(Ns(max)),
                    outcome: MigrationOutcome::Moved,
                })
                .unwrap();
            }
            set.push(&Object {
                object: ObjectId(u32::MAX),
                id: "x".repeat(10 << 20),
                process: u32::MAX,
                name: EVIL.repeat(10_000),
                kind: ObjectKind::Static,
                element_type: Some(EVIL.into()),
                element_bytes: Some(0),
                dimensions: vec![max; 40],
                fields: homenode_dataset::fields::Fields::default(),
                file: Some("../../../../etc/passwd".into()),
                line: Some(u32::MAX),
                function: None,
                stack: vec![EVIL.into(); 100],
                bytes: Bytes(max),
                address: max,
                allocations: max,
                birth_ns: Some(Ns(max)),
                death_ns: Some(Ns(0)),
            })
            .unwrap();
            set.finish(Ended { status: Some(i32::MIN), signal: Some(i32::MAX), elapsed_ns: max }).unwrap();
            let what = format!("pages of {page_bytes} bytes, {pages} pages, {basis}");
            for command in COMMANDS {
                judge.check(&dir, command, &name, &what);
            }
        }
    }
    judge.done();
}

/// What is read beside recordings: plans, results of `compare` and measurements.
#[test]
fn files_that_are_named_are_regular_ones() {
    let dir = fresh("hostile-named");
    recordings(&dir);
    assert!(Command::new("mkfifo").arg(dir.join("fifo")).status().unwrap().success());
    symlink("/dev/zero", dir.join("zero")).unwrap();
    fs::create_dir(dir.join("folder")).unwrap();
    fs::write(dir.join("junk"), EVIL.repeat(100)).unwrap();
    fs::write(dir.join("empty"), "").unwrap();
    let mut judge = Judge::default();
    let deep = "[".repeat(1 << 20);
    fs::write(dir.join("deep"), deep).unwrap();
    for file in ["fifo", "zero", "folder", "junk", "empty", "deep", "nothing"] {
        for command in
            ["diff R R", "diff R set", "diff set R", "show R", "rec check R", "rec replay-policy R"]
        {
            judge.check(&dir, command, file, "no recording");
        }
        let (status, said) = attempt(&dir, &["run", "--plan", file, "--", "true"]);
        let right = status == Some(125) && said.contains(file) && !said.contains('\u{1b}');
        judge.expect(right, "a plan", &format!("{status:?} {said}"));
    }
    judge.done();
}

/// Small texts whose values take many times their memory: lists of nothing, objects of one entry,
/// and what is deep in either.
#[test]
fn what_json_announces_takes_no_more_memory_than_is_allowed() {
    /// KiB of private memory that a command may write to.
    const MOST: u64 = 256 << 10;
    let dir = fresh("hostile-json");
    let texts = |mib: usize| {
        let many = |piece: &str| piece.repeat((mib << 20) / piece.len());
        [
            format!("{{\"schema\":\"homenode/compare/1\",\"rows\":[{}0]}}", many("0,")),
            format!("{{\"schema\":\"homenode/plan/1\",\"rows\":[{}0]}}", many("[],")),
            format!("{{\"format\":1,\"rows\":[{}0]}}", many("{\"\":0},")),
            format!("{{\"format\":1,\"environment\":{{{}\"\":\"\"}}}}", many("\"a\":\"\",")),
            format!("{{\"format\":1,\"command\":[{}\"\"]}}", many("\"\",")),
        ]
    };
    let mut judge = Judge::default();
    for mib in [7, 15, 60] {
        for (n, text) in texts(mib).iter().enumerate() {
            let what = format!("text {n} of {mib} MiB");
            fs::write(dir.join("text"), text).unwrap();
            for (folder, file) in [("set", "dataset.json"), ("logs", "meta.json")] {
                fs::create_dir_all(dir.join(folder).join("threads")).unwrap();
                fs::write(dir.join(folder).join(file), text).unwrap();
            }
            let commands: [&[&str]; 5] = [
                &["diff", "text", "text"],
                &["run", "--plan", "text", "--", "true"],
                &["show", "set"],
                &["show", "logs"],
                &["rec", "check", "logs"],
            ];
            for words in commands {
                let (status, said) = attempt_within(&dir, words, &format!("ulimit -d {MOST}"));
                // A process that gets no memory is aborted.
                let right = matches!(status, Some(2 | 3 | 125)) && said.len() < 4096;
                judge.expect(right, &what, &format!("{words:?}: {status:?} {:.300}", said));
            }
        }
    }
    judge.done();
}

/// The tables of older forms are read into memory. The shortest lines make the most rows.
#[test]
fn tables_of_older_forms_take_no_more_memory_than_is_allowed() {
    /// KiB of private memory that a command may write to.
    const MOST: u64 = 512 << 10;
    const MIB: usize = 1 << 20;
    let dir = fresh("hostile-csv");
    recordings(&dir);
    let mut judge = Judge::default();
    for (kind, file, line) in [
        ("lab", "accesses.csv", "0,1,0x0,1,0,0,1,1,\n"),
        ("live", "sightings.csv", "12744,0x55bc89145000,0,0,-,4,0\n"),
    ] {
        let path = dir.join(kind).join(file);
        let heading = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned() + "\n";
        let lines = line.repeat((24 * MIB - heading.len()) / line.len());
        fs::write(&path, heading + &lines).unwrap();
        let words = ["show", kind];
        let (status, said) = attempt_within(&dir, &words, &format!("ulimit -d {MOST}"));
        judge.expect(matches!(status, Some(0 | 3)), kind, &format!("{status:?} {said:.300}"));
        fs::write(&path, "x".repeat(24 * MIB + 1)).unwrap();
        let (status, said) = attempt_within(&dir, &words, &format!("ulimit -d {MOST}"));
        let named = said.contains(file) && said.contains("longer than the 25165824 bytes");
        judge.expect(status == Some(2) && named, kind, &format!("{status:?} {said:.300}"));
    }
    judge.done();
}
