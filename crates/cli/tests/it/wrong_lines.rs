//! Wrong command lines: each error names what is wrong, says why and what to do, and has the exit
//! status of `--help`.

use std::fs;
use std::path::Path;

use crate::hostile_recordings::{copy, exact_meta, fixtures};
use crate::support::{fresh, outcome, run};

/// What a command line is answered with: status, and words of the answer.
type Answer = (&'static str, i32, &'static [&'static str]);

/// Without anything in the folder but what [`files`] puts there.
const LINES: &[Answer] = &[
    // Words.
    ("exlpain", 2, &["exlpain", "explain"]),
    ("explain --fial-if x", 2, &["--fial-if", "--fail-if"]),
    ("explain", 2, &["nothing to work on", "kernel:nas-cg"]),
    ("explain text", 2, &["text is a file", "explain -- text"]),
    ("explain kernel:nas-gc", 2, &["nas-gc", "nas-cg"]),
    ("explain kernel:nas-cg --class Q", 2, &["Q", "class"]),
    ("explain rec -- ./app", 2, &["both", "leave 'rec' out"]),
    ("explain --threads 0 -- ./app", 2, &["--threads", "0"]),
    ("explain --page 3KiB rec", 2, &["3", "KiB"]),
    ("explain --page lots rec", 2, &["lots", "--page"]),
    ("explain --json --markdown rec", 2, &["--json", "--markdown"]),
    // Programs.
    ("explain -- ./nowhere", 127, &["./nowhere", "has it been built"]),
    ("explain -- nowhere-in-path", 127, &["nowhere-in-path", "PATH"]),
    ("explain -- ./text", 126, &["./text", "chmod +x"]),
    ("run -- ./nowhere", 127, &["./nowhere", "has it been built"]),
    ("run -- ./text", 126, &["./text", "chmod +x"]),
    ("run --policy next-tuch -- true", 125, &["next-tuch", "next-touch"]),
    ("run --policy next-touch:at=noon -- true", 125, &["at=noon", "region"]),
    ("run --plan nowhere -- true", 125, &["nowhere", "plan"]),
    ("run --schedule often -- true", 125, &["often", "replay"]),
    ("run --budget 200 -- true", 125, &["200", "budget"]),
    ("record -o new -- ./nowhere", 127, &["./nowhere", "has it been built"]),
    ("record -o new -- true", 125, &["true", "CC=homenode-cc"]),
    ("record --on moon -- true", 125, &["moon", "lab"]),
    ("record --on lab --filter none -- true", 125, &["--filter", "leave --filter out"]),
    ("record -o rec -- ./script", 125, &["rec", "--force"]),
    ("lab run --nodes 0 -- true", 125, &["0 nodes", "1 to"]),
    ("lab run -m sf51k -- true", 125, &["sf51k", "sf15k"]),
    // Recordings.
    ("explain nowhere.hnrec", 2, &["nowhere.hnrec", "record"]),
    ("explain folder", 2, &["folder", "record"]),
    ("explain --against nowhere rec", 2, &["nowhere", "record"]),
    ("show nowhere.hnrec", 2, &["nowhere.hnrec", "record"]),
    ("show folder", 2, &["folder", "record"]),
    ("show rec --top many", 2, &["many", "--top"]),
    ("view nowhere.hnrec -o x.html", 2, &["nowhere.hnrec", "record"]),
    ("view rec -o nowhere/x.html", 125, &["nowhere/x.html", "folder"]),
    ("diff nowhere rec", 2, &["nowhere", "No such file"]),
    ("plan -m 2s-xeon nowhere.hnrec -o p", 2, &["nowhere.hnrec", "record"]),
    ("plan -m 2s-xeon live -o p", 2, &["live", "record"]),
    ("compare live", 2, &["live", "record"]),
    ("compare --on host rec", 2, &["rec is a recording", "-- ./app"]),
    ("rec check nowhere", 2, &["nowhere", "record"]),
    ("rec merge nowhere -o new", 2, &["nowhere"]),
    ("rec export nowhere -o new", 2, &["nowhere"]),
    ("rec upgrade nowhere", 2, &["nowhere", "record"]),
    // Machines, schemes and conditions.
    ("explain -m sf51k rec", 2, &["sf51k", "sf15k"]),
    ("explain -m ./text rec", 2, &["text", "machine"]),
    ("explain -m ./one.toml rec", 2, &["one node with memory", "2s-xeon"]),
    ("machine show sf51k", 2, &["sf51k", "sf15k"]),
    ("compare -p next-tuch rec", 2, &["next-tuch", "next-touch"]),
    ("compare -p cyclic:pages=0 rec", 2, &["pages=0", "cyclic"]),
    ("compare -m sf51k rec", 2, &["sf51k", "sf15k"]),
    ("compare --yardsticks=rm rec", 2, &["rm", "yardsticks"]),
    ("compare --fail-if remot>5 rec", 2, &["remot", "remote"]),
    ("explain --fail-if saved=>5 rec", 2, &["saved=>5", "not a number"]),
    ("explain --fail-if savd>5 rec", 2, &["savd", "saved"]),
    ("kernel run nas-gc", 125, &["nas-gc", "nas-cg"]),
    ("paper nowhere", 2, &["nowhere"]),
    ("completions ksh", 2, &["ksh", "bash"]),
];

/// A recording of every access, one of a live run, a text, a script, an empty folder and a machine
/// with one node.
fn files(dir: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    copy(&fixtures().join("logs/v1/sor"), &dir.join("rec/threads"));
    fs::write(dir.join("rec/meta.json"), exact_meta("./sor")).unwrap();
    copy(&fixtures().join("recordings/live-v1"), &dir.join("live"));
    fs::write(dir.join("text"), "no program\n").unwrap();
    fs::write(dir.join("script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(dir.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(dir.join("folder")).unwrap();
    let two = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/explain/two-nodes.toml");
    let one = fs::read_to_string(two).unwrap();
    let one = one
        .replace("count = { value = 2,", "count = { value = 1,")
        .replace("[\"90 ns\", \"180 ns\"]", "[\"90 ns\"]");
    fs::write(dir.join("one.toml"), one).unwrap();
}

/// What is wrong with the form of an error.
fn faults(err: &str) -> Vec<&'static str> {
    let lines: Vec<&str> = err.lines().filter(|l| !l.is_empty()).collect();
    let mut faults = Vec::new();
    let first = lines.first().copied().unwrap_or_default();
    let by_clap = first.starts_with("error: ");
    if !by_clap && !lines.iter().any(|l| l.starts_with("homenode: ")) {
        faults.push("nobody says what is wrong");
    }
    let todo = lines.iter().any(|l| l.trim_start().starts_with("help: "))
        || by_clap && lines.iter().any(|l| l.contains("--help"));
    if !todo {
        faults.push("it does not say what to do");
    }
    if lines.iter().any(|l| l.ends_with('.') && l.starts_with("homenode: ")) {
        faults.push("the first line ends with a full stop");
    }
    if err.contains("panicked") || err.contains("os error 0") {
        faults.push("homenode failed");
    }
    faults
}

#[test]
fn each_says_what_is_wrong_why_and_what_to_do() {
    let dir = fresh("wrong-lines");
    files(&dir);
    let mut wrong = Vec::new();
    for (line, status, parts) in LINES {
        let words: Vec<&str> = line.split(' ').filter(|w| !w.is_empty()).collect();
        let (got, out, err) = run(&dir, &words);
        let mut faults: Vec<String> = faults(&err).into_iter().map(str::to_owned).collect();
        if got != Some(*status) {
            faults.push(format!("status {got:?}, not {status}"));
        }
        if !out.is_empty() {
            faults.push(format!("stdout: {out}"));
        }
        faults.extend(parts.iter().filter(|p| !err.contains(**p)).map(|p| format!("no '{p}'")));
        if !faults.is_empty() {
            wrong.push(format!("homenode {line}: {}\n{err}", faults.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), LINES.len(), wrong.join("\n"));
}

#[test]
fn a_full_disk_and_a_folder_without_permission_are_said() {
    let dir = fresh("wrong-places");
    files(&dir);
    let mut command = crate::support::homenode(&dir);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let (status, _, err) = outcome(&command.args(["show", "live"]).stdout(full).output().unwrap());
    assert_eq!(status, Some(125), "{err}");
    assert!(err.contains("cannot write the result") && err.contains("No space left"), "{err}");
    assert_eq!(faults(&err), Vec::<&str>::new(), "{err}");
    let (status, _, err) = run(&dir, &["view", "live", "-o", "/proc/page.html"]);
    assert_eq!(status, Some(125), "{err}");
    assert_eq!(faults(&err), Vec::<&str>::new(), "{err}");
}
