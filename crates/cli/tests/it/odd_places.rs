//! Limits and places that a user may have: a small stack, paths with spaces and colons, temporary
//! folders without room, things that are no recordings.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::run::number;
use crate::support::{fresh, homenode, outcome, plain};

/// A program with parallel regions that prints 20.
pub const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int n = 1 << 18;
    double *a = calloc(n, sizeof *a);
    for (int r = 0; r < 20; r++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) a[i] += 1;
    }
    printf("%g\n", a[5]);
    return 0;
}
"#;

/// It on two pretended nodes.
pub const RUN: [&str; 7] = ["run", "--pretend-nodes", "2", "--threads", "2", "--", "./program"];

#[test]
fn a_small_stack_is_enough_for_homenode() {
    let dir = fresh("odd-stack");
    let command = homenode(&dir);
    let script = "ulimit -s 64; exec \"$0\" \"$@\"";
    let mut limited = Command::new("sh");
    limited.args(["-c", script]).arg(command.get_program()).args(["machine", "list"]).current_dir(&dir);
    let (status, out, err) = outcome(&limited.output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    assert!(!out.is_empty());
}

#[test]
fn a_library_at_a_path_with_a_space_and_a_colon_is_loaded() {
    let dir = fresh("odd-path");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let own = homenode(&dir);
    let built = Path::new(own.get_program()).parent().unwrap().to_owned();
    let odd = dir.join("a b:c");
    fs::create_dir(&odd).unwrap();
    for file in ["libhomenode.so", "libhomenode_trace.so"] {
        fs::copy(built.join(file), odd.join(file)).unwrap();
    }
    let mut run = homenode(&dir);
    run.args(["run", "--json", "--summary", "report.json"]).args(&RUN[1..]).env("HOMENODE_LIB_DIR", &odd);
    let (status, out, err) = outcome(&run.output().unwrap());
    assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join("report.json")).unwrap()).unwrap();
    assert_eq!(number(&report, "region_runs"), 20, "{report:#}");
    // Where there is no place without one it is said, and the program runs.
    let mut run = homenode(&dir);
    run.args(RUN).env("HOMENODE_LIB_DIR", &odd).env("TMPDIR", &odd);
    let (status, out, err) = outcome(&run.output().unwrap());
    assert_eq!((status, out.as_str()), (Some(0), "20\n"));
    let words = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("cannot be preloaded: its path has a space or a colon"), "{err}");
}

#[test]
fn a_temporary_folder_that_is_missing_or_full_is_named() {
    let dir = fresh("odd-room");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let mut run = homenode(&dir);
    run.args(RUN).env("TMPDIR", dir.join("nowhere"));
    let (status, _, err) = outcome(&run.output().unwrap());
    assert_eq!(status, Some(125));
    assert!(err.contains("set TMPDIR to a folder that can be written"), "{err}");

    // The program fills it while it runs.
    let full = dir.join("full");
    fs::create_dir(&full).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&full).output();
    if !mounted.is_ok_and(|m| m.status.success()) {
        return println!("skipped: a full file system takes the right to mount one");
    }
    let fills = "cat /dev/zero 2>/dev/null >full/x; exec ./program";
    let mut run = homenode(&dir);
    run.args(&RUN[..6]).args(["sh", "-c", fills]).env("TMPDIR", &full);
    let (status, out, err) = outcome(&run.output().unwrap());
    let unmounted = Command::new("umount").arg(&full).status().unwrap();
    assert_eq!((status, out.as_str(), unmounted.success()), (Some(0), "20\n", true), "{err}");
    let words = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("there is no room for its report in") && !words.contains("killed"), "{err}");
}

/// Commands that read the recording behind them.
const READERS: [&[&str]; 12] = [
    &["show"],
    &["show", "--map"],
    &["rec", "check"],
    &["rec", "upgrade"],
    &["rec", "replay-policy"],
    &["rec", "export", "-o", "out"],
    &["rec", "merge", "-o", "out"],
    &["explain"],
    &["compare"],
    &["plan", "-m", "2s-xeon", "-o", "out"],
    &["view", "-o", "out.html"],
    &["top"],
];

#[test]
fn a_folder_that_may_not_be_read_is_named_with_the_permission_that_lacks() {
    let dir = fresh("odd-secret");
    let secret = dir.join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("meta.json"), "{}").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let own = homenode(&dir);
    let own = own.get_program().to_owned();
    // Root reads every folder.
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let is_root = fs::read_dir(&secret).is_ok();
    let ordinary = || {
        let mut command = match is_root {
            true => Command::new("setpriv"),
            false => Command::new(&own),
        };
        if is_root {
            command.args(nobody).arg(&own);
        }
        command.current_dir(&dir);
        command
    };
    if !ordinary().arg("--version").output().is_ok_and(|o| o.status.success()) {
        return println!("skipped: no other user can run homenode here");
    }
    for command in READERS.iter().filter(|c| c[..] != ["rec", "replay-policy"]) {
        let (status, out, err) = outcome(&ordinary().args(*command).arg(&secret).output().unwrap());
        assert_eq!((status, out.as_str()), (Some(2), ""), "{command:?}: {err}");
        let folder = format!("look into the folder {}: Permission denied", secret.display());
        let words = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&folder) && words.contains("chmod u+rx"), "{command:?}: {err}");
        assert!(!words.contains("meta.json"), "{command:?}: {err}");
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_is_no_recording_is_a_wrong_word_on_every_command_line() {
    let dir = fresh("odd-recordings");
    fs::write(dir.join("file"), "").unwrap();
    fs::create_dir(dir.join("folder")).unwrap();
    // Descriptions that say nothing.
    for (folder, description) in [("accesses", "meta.json"), ("set", "dataset.json")] {
        fs::create_dir(dir.join(folder)).unwrap();
        fs::write(dir.join(folder).join(description), "{").unwrap();
    }
    for command in READERS {
        for what in ["file", "folder", "accesses", "set", "nothing", "/dev/null"] {
            let mut asked = homenode(&dir);
            // A path, for a bare word may be a program's name.
            let path = if what.starts_with('/') { what.into() } else { dir.join(what).into_os_string() };
            asked.args(command).arg::<&OsStr>(path.as_ref());
            let (status, out, err) = outcome(&asked.output().unwrap());
            assert_eq!((status, out.as_str()), (Some(2), ""), "{command:?} {what}: {err}");
            assert!(err.starts_with("homenode: "), "{command:?} {what}: {err}");
        }
    }
}

#[test]
fn a_rank_is_served_by_what_the_kernel_moves_alone() {
    let dir = fresh("odd-ranks");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let report = |ranks: &str| {
        let mut run = homenode(&dir);
        run.args(["run", "-v"]).args(&RUN[1..]).env("OMPI_COMM_WORLD_LOCAL_SIZE", ranks);
        let (status, out, err) = outcome(&run.output().unwrap());
        assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
        err
    };
    let (alone, several) = (report("1"), report("4"));
    let line = "one of several ranks: pages are moved by the kernel alone (competitive)";
    assert!(several.lines().any(|l| l.contains(line)) && !alone.contains(line), "{several}");
    // Nothing of a rank is away from where the program has it: nothing is armed.
    assert!(several.contains("policy competitive") && several.contains("; 0 arms, 0 faults"), "{several}");
}

#[test]
fn gdb_passes_homenodes_signals_on_if_told_to() {
    let dir = fresh("odd-gdb");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/homenode.gdb");
    let mut run = homenode(&dir);
    run.args(&RUN[..6]).args(["gdb", "-nx", "-batch", "-x"]).arg(script);
    run.args(["-ex", "run", "--args", "./program"]);
    let (status, out, err) = outcome(&run.output().unwrap());
    if status == Some(127) {
        return println!("skipped: there is no gdb");
    }
    if err.contains("ptrace: Operation not permitted") {
        return println!("skipped: no program can be traced here");
    }
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("\n20\n") && out.contains("exited normally"), "{out}{err}");
}
