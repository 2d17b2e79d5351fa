//! A program ends, changes its user and makes its threads under homenode exactly as it does alone:
//! same output, same status or signal, and in time. Each program of `tests/hostile/` here says what
//! it sees; the run without homenode says what it should see.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homenode_model::{Bytes, Ns};
use homenode_wire::facts::{Arming, Budget};
use homenode_wire::settings::{self, MachineNodes, Settings, Wanted};

#[path = "harmless/calls.rs"]
mod calls;
#[path = "harmless/product.rs"]
mod product;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The library of this profile's build (`hostile.rs` asks whether it is an old one).
fn library() -> Option<PathBuf> {
    let library = std::env::current_exe().ok()?.parent()?.parent()?.join("libhomenode.so");
    library.exists().then_some(library)
}

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("harmless-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn source(name: &str) -> PathBuf {
    root().join("tests/hostile").join(format!("{name}.c"))
}

fn compile(name: &str, folder: &Path) -> PathBuf {
    let out = folder.join(name);
    let done = Command::new("gcc")
        .args(["-O1", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(folder)
        .arg("-o")
        .arg(&out)
        .arg(source(name))
        .arg("-ldl")
        .output()
        .expect("gcc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

#[test]
fn no_call_fails_for_armed_memory() {
    if library().is_none() {
        return println!("skipped: libhomenode.so is not built");
    }
    let folder = folder("efault");
    std::fs::write(folder.join("calls.inc"), calls::text()).unwrap();
    let program = compile("efault", &folder);
    let different = differences(&program, &[], &folder, &[ARMED, BLOCKS]);
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{}", std::fs::read_to_string(folder.join("err")).unwrap());
}

/// How a program ended: status or signal, and its own output. `None`: it did not, in time.
type End = Option<(Option<i32>, Option<i32>, String)>;

/// Far more than any of these programs takes, on a busy machine, too.
const LIMIT: Duration = Duration::from_secs(180);

fn end(command: &mut Command, folder: &Path) -> End {
    let file = |n: &str| std::fs::File::create(folder.join(n)).unwrap();
    command.current_dir(folder).stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let out = String::from_utf8_lossy(&std::fs::read(folder.join("out")).unwrap()).into_owned();
    Some((status.code(), status.signal(), out))
}

/// How homenode is set for a run.
struct How {
    name: &'static str,
    set: fn(&mut Settings),
    variables: &'static [(&'static str, &'static str)],
}

const DEFAULT: How = How { name: "default", set: |_| (), variables: &[] };
/// Threads of homenode's run, and memory is armed.
const FORCED: How = How { name: "forced", set: |_| (), variables: &[("HOMENODE_RUN_FORCE_ARM", "1")] };
/// The same, and the program waits until its memory is armed.
const ARMED: How =
    How { name: "armed", set: |_| (), variables: &[("HOMENODE_RUN_FORCE_ARM", "1"), ("HOSTILE_ARMED", "1")] };
/// A policy is told by `source`, and pages are looked at and moved every millisecond.
fn told_by(settings: &mut Settings, source: Wanted) {
    settings.arming = Arming::Watch;
    settings.policy = "competitive".into();
    settings.source = source;
    settings.budget = Budget { permille: 1000, fixed: Ns(100_000_000_000) };
}
const BLOCKS: How = How {
    name: "blocks",
    set: |settings| told_by(settings, Wanted::Blocks),
    variables: &[("HOMENODE_RUN_FORCE_ARM", "1"), ("HOSTILE_ARMED", "1")],
};
/// No page is away, so the program cannot wait for that.
const WRITES: How = How {
    name: "writes",
    set: |settings| told_by(settings, Wanted::Writes),
    variables: &[("HOMENODE_RUN_FORCE_ARM", "1")],
};
/// The thread that watches runs with the program's first thread.
const RECORDED: How = How {
    name: "recorded",
    set: |settings| {
        settings.arming = Arming::Watch;
        settings.record = true;
        settings.source = Wanted::Blocks;
    },
    variables: &[],
};

fn with_homenode(command: &mut Command, library: &Path, reports: &Path, how: &How) {
    let mut settings = Settings {
        policy: "next-touch".into(),
        arming: Arming::Asked,
        machine: MachineNodes::even(2, 1, Bytes::gib(1), 20),
        pretend: true,
        force: true,
        ..Settings::default()
    };
    (how.set)(&mut settings);
    std::fs::write(reports.join(settings::FILE), homenode_wire::encode(&settings).unwrap()).unwrap();
    command.env("LD_PRELOAD", library).env(settings::RUN_DIR, reports).envs(how.variables.iter().copied());
}

/// Runs `program` with `args` alone and under each of the settings; what differs, in words.
fn differences(program: &Path, args: &[&str], folder: &Path, all: &[How]) -> Vec<String> {
    let library = library().unwrap();
    let alone = end(Command::new(program).args(args), folder);
    assert!(alone.is_some(), "{args:?} does not end without homenode");
    let mut different = Vec::new();
    for how in all {
        let reports = folder.join("reports");
        let _ = std::fs::remove_dir_all(&reports);
        std::fs::create_dir(&reports).unwrap();
        let mut command = Command::new(program);
        with_homenode(command.args(args), &library, &reports, how);
        let with = end(&mut command, folder);
        if with != alone {
            let said = std::fs::read_to_string(folder.join("err")).unwrap_or_default();
            let name = how.name;
            different.push(format!("{args:?} ({name}): alone {alone:?}, with homenode {with:?} {said}"));
        }
    }
    different
}

/// What is in quotes behind this word in a program's source.
fn ways(name: &str, word: &str) -> Vec<String> {
    let text = std::fs::read_to_string(source(name)).unwrap();
    let quoted = |l: &str| Some(l.split_once(word)?.1.split('"').nth(1)?.to_owned());
    text.lines().filter(|l| !l.starts_with("#define")).filter_map(quoted).collect()
}

#[test]
fn a_process_ends_as_without_homenode_in_every_way() {
    if library().is_none() {
        return println!("skipped: libhomenode.so is not built");
    }
    let folder = folder("ends");
    let program = compile("ends", &folder);
    let ways = ways("ends", "WAY(");
    assert!(ways.len() >= 39, "{ways:?}");
    let all = [DEFAULT, ARMED, BLOCKS, WRITES, RECORDED];
    let different: Vec<String> =
        ways.iter().flat_map(|way| differences(&program, &[way], &folder, &all)).collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{} ways to end, {} settings", ways.len(), all.len());
}

#[test]
fn privileges_change_as_without_homenode() {
    if library().is_none() {
        return println!("skipped: libhomenode.so is not built");
    }
    let folder = folder("privileges");
    let program = compile("privileges", &folder);
    let ways = ways("privileges", "WAY(");
    assert!(ways.len() >= 15, "{ways:?}");
    let all = [DEFAULT, ARMED, BLOCKS, WRITES, RECORDED];
    let different: Vec<String> =
        ways.iter().flat_map(|way| differences(&program, &[way], &folder, &all)).collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Behind `chroot` nobody can read /proc, from one moment to the next. All pages come back.
#[test]
fn a_program_that_leaves_proc_behind_keeps_all_of_its_memory() {
    if library().is_none() {
        return println!("skipped: libhomenode.so is not built");
    }
    let folder = folder("prisoner");
    let program = compile("rights", &folder);
    // What is lost depends on the moment of the call.
    let different: Vec<String> =
        (0..8).flat_map(|_| differences(&program, &["alone/prisoner"], &folder, &[ARMED])).collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Programs that change what they may do and start another one.
#[test]
fn wrappers_and_sandboxes_work() {
    if library().is_none() {
        return println!("skipped: libhomenode.so is not built");
    }
    let folder = folder("wrappers");
    for line in [
        "setpriv --reuid 65534 --regid 65534 --clear-groups id -u",
        "setpriv --no-new-privs --bounding-set -all id -u",
        "unshare -Ur id -u",
        "unshare -m true",
        "su -s /bin/sh nobody -c true",
        "chroot / id -u",
        "env -i /bin/echo x",
        "nice -n 5 id -u",
        "bwrap --bind / / --unshare-all id -u",
        "sudo -n -u nobody id -u",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let works = Command::new(words[0]).args(&words[1..]).output().is_ok_and(|o| o.status.success());
        if !works {
            println!("skipped: `{line}` does not work here");
            continue;
        }
        let all = [DEFAULT, FORCED];
        let different = differences(Path::new(words[0]), &words[1..], &folder, &all);
        assert!(different.is_empty(), "{}", different.join("\n"));
    }
}
