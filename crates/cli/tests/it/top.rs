//! `homenode top`, with and without a terminal.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{WAITS, fresh, homenode, plain, run};

/// As long as a busy machine takes.
const LONG: Duration = Duration::from_secs(120);

/// A process that does nothing, ended with the test.
struct Sleeps(Child);

impl Sleeps {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeps {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The rows of the last table of objects.
fn objects(text: &str) -> Vec<&str> {
    let (_, rows) = text.rsplit_once("\nname ").unwrap();
    rows.lines().skip(1).take_while(|l| !l.is_empty()).collect()
}

/// The words that a terminal was sent, without the sequences between them.
fn words(shown: &str) -> String {
    let mut words = String::new();
    let mut parts = shown.split('\x1b');
    words.extend(parts.next());
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        words += " ";
        words += &part[end..];
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_homes() -> bool {
    let there = Path::new("/proc/self/numa_maps").exists();
    if !there {
        eprintln!("skipped: this kernel has no /proc/PID/numa_maps");
    }
    there
}

#[test]
fn a_run_without_a_terminal_prints_tables_beside_the_program() {
    let dir = fresh("top-run");
    let Some(_) = plain(&dir, "waits", WAITS) else { return };
    std::fs::write(dir.join("go"), "").unwrap();
    let words = ["top", "--pretend-nodes", "2", "--every", "0.2", "--record", "r", "--", "./waits"];
    let mut top = homenode(&dir)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(dir.join("err")).unwrap())
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(dir.join("err")).unwrap();
    until("a table with intervals", || said().contains("pages moved") && said().contains("the program runs"));
    std::fs::remove_file(dir.join("go")).unwrap();
    assert_eq!(top.wait().unwrap().code(), Some(7), "the program's status");
    let mut out = String::new();
    top.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "the program's own line\n", "stdout is the program's");
    let said = said();
    let (_, last) = said.rsplit_once("the program has ended").unwrap();
    assert!(last.contains("pretended") && last.contains("recorded   r: homenode show r"), "{said}");
    // The last table is that of the recording.
    let (status, again, err) = run(&dir, &["top", "--plain", "r"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(objects(last).iter().any(|l| l.contains("2 MiB")), "{last}");
    assert_eq!(objects(last), objects(&again));
}

#[test]
fn a_process_shows_the_recording_that_it_writes() {
    let dir = fresh("top-process");
    let Some(_) = plain(&dir, "waits", WAITS) else { return };
    std::fs::write(dir.join("go"), "").unwrap();
    let mut recorded = homenode(&dir)
        .args(["run", "--pretend-nodes", "2", "--record", "r", "--", "./waits"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = recorded.id().to_string();
    let look = |what: &str| {
        let words = ["top", "--json", "--every", "0.5", "--times", "1", what];
        let (status, out, err) = run(&dir, &words);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        serde_json::from_str::<serde_json::Value>(out.trim_end()).unwrap()
    };
    until("sightings", || {
        dir.join("r/dataset.json").exists() && look(&pid)["so_far"]["intervals"].as_u64() > Some(0)
    });
    let (by_process, by_name) = (look(&pid), look("r"));
    for value in [&by_process, &by_name] {
        assert_eq!(value["schema"], "homenode/top/1");
        assert_eq!((&value["state"], &value["pretended"]), (&"runs".into(), &true.into()));
        assert_eq!(value["command"], "./waits");
        assert_eq!(value["nodes"].as_array().unwrap().len(), 2);
    }
    std::fs::remove_file(dir.join("go")).unwrap();
    assert_eq!(recorded.wait().unwrap().code(), Some(7));
}

#[test]
fn of_a_process_without_homenode_the_kernel_tells_where_its_memory_lives() {
    if !has_homes() {
        return;
    }
    let dir = fresh("top-kernel");
    let sleeps = Sleeps::new();
    let (status, out, err) = run(&dir, &["top", "--plain", "--every", "0.5", "--times", "1", &sleeps.pid()]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("sleep 600 "), "{out}");
    assert!(out.contains("it does not run under homenode") && out.contains("libc"), "{out}");
    assert!(!out.contains("remote\n") && !out.contains('\x1b'), "{out}");
}

#[test]
fn what_cannot_be_shown_is_told() {
    let dir = fresh("top-wrong");
    let (status, out, err) = run(&dir, &["top", "4294967295"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(err.contains("there is no process 4294967295") && err.contains("help: "), "{err}");
    let (status, _, err) = run(&dir, &["top", "nothing.hnrec"]);
    assert!(status == Some(2) && err.contains("nothing.hnrec"), "{err}");
    let (status, _, err) = run(&dir, &["top"]);
    assert!(status == Some(2) && err.contains("nothing to look at"), "{err}");
    let (status, _, err) = run(&dir, &["top", "--", "./no-such-program"]);
    assert!(status == Some(127) && err.contains("no-such-program"), "{err}");
}

/// Runs a line of the shell in a terminal, presses keys once homenode draws; what the terminal
/// showed. `None`: there is no `script`.
fn in_terminal(dir: &Path, line: &str, keys: &[u8]) -> Option<String> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no script(1) for a terminal");
        return None;
    }
    // A shell that ignores Ctrl-C would have its programs ignore it, too.
    let line = format!(
        "stty rows 30 cols 100; stty -g >before; trap : INT; {line}; echo $? >status; stty -g >after"
    );
    let binary = homenode(dir).get_program().to_owned();
    let folder = Path::new(&binary).parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(folder).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut script = Command::new("script")
        .args(["-qfec", &line, "typescript"])
        .current_dir(dir)
        .env("PATH", path.unwrap())
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let shown =
        || String::from_utf8_lossy(&std::fs::read(dir.join("typescript")).unwrap_or_default()).into_owned();
    until("homenode draws", || shown().contains("q quit"));
    script.stdin.as_mut().unwrap().write_all(keys).unwrap();
    script.stdin.as_mut().unwrap().flush().unwrap();
    until("it ends", || script_ended(dir));
    drop(script.stdin.take());
    script.wait().unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("before"), read("after"), "the terminal is as it was");
    let shown = shown();
    assert_eq!(shown.matches("\x1b[?1049h").count(), 1, "one other screen");
    assert!(shown.rfind("\x1b[?1049l") > shown.rfind("q quit"), "left at the end");
    assert!(shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "with a cursor");
    Some(shown)
}

fn script_ended(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("after")).is_ok_and(|t| t.ends_with('\n'))
}

fn status(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("status")).unwrap().trim().to_owned()
}

#[test]
fn q_and_ctrl_c_leave_the_terminal_as_it_was() {
    if !has_homes() {
        return;
    }
    let sleeps = Sleeps::new();
    for (name, keys) in [("top-quit", &b"?q"[..]), ("top-interrupt", b"\x03")] {
        let dir = fresh(name);
        let line = format!("homenode top --every 0.2 {}", sleeps.pid());
        let Some(shown) = in_terminal(&dir, &line, keys) else { return };
        assert_eq!(status(&dir), "0", "{name}");
        let words = words(&shown);
        assert!(words.contains("sleep 600") && words.contains("libc"), "{name}: {words}");
    }
}

#[test]
fn ctrl_c_ends_the_program_and_its_output_comes_afterwards() {
    let dir = fresh("top-program-interrupt");
    let Some(_) = plain(&dir, "waits", WAITS) else { return };
    std::fs::write(dir.join("go"), "").unwrap();
    let line = "homenode top --every 0.2 --pretend-nodes 2 -- sh -c 'echo first line; exec ./waits'";
    let Some(shown) = in_terminal(&dir, line, b"\x03") else { return };
    assert_eq!(status(&dir), "130", "the program's status: ended by an interrupt");
    let after = shown.rsplit_once("\x1b[?1049l").unwrap().1;
    assert!(after.contains("first line"), "{after}");
    assert!(words(&shown).contains("program: first line"), "the last line of the output stood on the screen");
}
