//! Machines that lack what others have: `/proc`, newer system calls, a home folder to write in, a
//! single installation.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::container;
use crate::odd_places::{PROGRAM, RUN};
use crate::support::{fresh, homenode, instrumented, outcome, plain};

/// homenode behind a shell's command in name spaces of its own, or `None`: skipped.
fn within(dir: &Path, mount: &str, words: &[&str]) -> Option<Output> {
    let own = homenode(dir);
    let mut shell = Command::new("unshare");
    shell
        .args(["--mount", "sh", "-c"])
        .arg(format!("{mount} || {{ echo skipped; exit 99; }}; exec \"$0\" \"$@\""));
    shell.arg(own.get_program()).args(words).current_dir(dir).env_remove("LD_LIBRARY_PATH");
    for name in ["HOMENODE_LIB_DIR", "HOMENODE_KERNELS_DIR"] {
        shell.env_remove(name);
    }
    let output = shell.output().ok()?;
    let ran = output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare:");
    if !ran {
        println!("skipped: no file system can be mounted here");
    }
    ran.then_some(output)
}

/// Hides `/proc`.
const NO_PROC: &str = "mount -t tmpfs none /proc";

/// All words of an output on one line, as a terminal of any width shows them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn without_proc_it_says_what_is_missing_and_how_to_mount_it() {
    let dir = fresh("missing-proc");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let explain = ["explain", "kernel:heat", "--class", "S", "--machine", "2s-xeon"];
    for command in [&RUN[..], &["doctor"], &explain] {
        let Some(output) = within(&dir, NO_PROC, command) else { return };
        let (status, out, err) = outcome(&output);
        assert_eq!((status, out.as_str()), (Some(125), ""), "{command:?}: {err}");
        let said = words(&err);
        assert!(said.contains("/proc/self/exe"), "{command:?}: {err}");
        assert!(
            said.contains("mount -t proc proc /proc") && !said.contains("reinstall"),
            "{command:?}: {err}"
        );
    }
    // What needs no file of homenode's goes on.
    let Some(output) = within(&dir, NO_PROC, &["machine", "show", "2s-xeon"]) else { return };
    let (status, _, err) = outcome(&output);
    assert_eq!(status, Some(0), "{err}");
}

#[test]
fn without_proc_a_program_runs_if_the_folder_of_the_libraries_is_named() {
    let dir = fresh("missing-proc-named");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let built = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    let named = format!("export HOMENODE_LIB_DIR='{}' && {NO_PROC}", built.display());
    let Some(output) = within(&dir, &named, &RUN) else { return };
    let (status, out, err) = outcome(&output);
    assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
}

#[test]
fn the_compiler_driver_links_nothing_from_the_folder_where_it_stands() {
    let dir = fresh("missing-proc-cc");
    if plain(&dir, "program", PROGRAM).is_none() {
        return;
    }
    // Without its own place, ".": this folder's library must not be taken.
    fs::write(dir.join("libhomenode_trace.so"), "").unwrap();
    let driver = Path::new(env!("CARGO_BIN_EXE_homenode")).with_file_name("homenode-cc");
    let script = format!("{NO_PROC} || exit 99; exec '{}' -o linked program.c", driver.display());
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env_remove("HOMENODE_LIB_DIR")
        .current_dir(&dir)
        .output()
        .unwrap();
    if output.status.code() == Some(99) || output.stderr.starts_with(b"unshare:") {
        return println!("skipped: no file system can be mounted here");
    }
    let (status, _, err) = outcome(&output);
    assert!(status != Some(0) && !dir.join("linked").exists(), "{status:?} {err}");
    assert!(words(&err).contains("mount /proc"), "{err}");
}

#[test]
fn a_kernel_without_newer_calls_runs_records_and_is_described() {
    let dir = fresh("missing-calls");
    let Some(filter) = container::old_kernel(&dir) else { return };
    let (Some(_), Some(_)) = (plain(&dir, "program", PROGRAM), instrumented(&dir, "traced", PROGRAM)) else {
        return;
    };
    let behind = |words: &[&str]| {
        let own = homenode(&dir);
        let mut command = Command::new(&filter);
        command.arg(own.get_program()).args(words).current_dir(&dir).env_remove("LD_LIBRARY_PATH");
        let (status, out, err) = outcome(&command.output().unwrap());
        (!out.starts_with("skipped")).then_some((status, out, err))
    };
    let Some((status, out, err)) = behind(&RUN) else {
        return println!("skipped: no filter of system calls can be installed here");
    };
    assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
    let (_, out, err) = behind(&["doctor"]).unwrap();
    for call in ["move_pages", "mbind", "userfaultfd", "perf_event_open"] {
        assert!(words(&out).contains(call), "{call}: {out}{err}");
    }
    assert!(words(&out).contains("has no such call (ENOSYS)"), "{out}");
    let (status, out, err) = behind(&["record", "-o", "r.hnrec", "--", "./traced"]).unwrap();
    assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
    let (status, out, err) = behind(&["explain", "r.hnrec", "--machine", "2s-xeon"]).unwrap();
    assert!(status == Some(0) && out.contains("every access"), "{out}{err}");
    // Nodes cannot be asked for: what took their place is said, or the sources that are missing.
    let live =
        ["record", "--on", "live", "--force", "--pretend-nodes", "2", "-o", "live.hnrec", "--", "./program"];
    let (status, out, err) = behind(&live).unwrap();
    assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
    assert!(words(&err).contains("ENOSYS"), "{err}");
}

#[test]
fn a_home_folder_that_cannot_be_written_is_left_alone_or_named() {
    let dir = fresh("missing-home");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    fs::create_dir(dir.join("home")).unwrap();
    let home = "mount -t tmpfs -o ro none home && export HOME=\"$PWD/home\" && unset XDG_CACHE_HOME";
    let Some(output) = within(&dir, home, &RUN) else { return };
    let (status, out, err) = outcome(&output);
    assert_eq!((status, out.as_str()), (Some(0), "20\n"), "{err}");
    for command in [&["--version"][..], &["machine", "list"]] {
        let (status, _, err) = outcome(&within(&dir, home, command).unwrap());
        assert_eq!((status, err.as_str()), (Some(0), ""), "{command:?}");
    }
    // These keep what they build or unpack.
    let explain = ["explain", "kernel:heat", "--class", "S", "--machine", "2s-xeon"];
    let (status, out, err) = outcome(&within(&dir, home, &explain).unwrap());
    assert_eq!((status, out.as_str()), (Some(125), ""), "{err}");
    let said = words(&err);
    assert!(said.contains("Read-only file system") && said.contains("set XDG_CACHE_HOME"), "{err}");
    let elsewhere = format!("{home} && export XDG_CACHE_HOME=\"$PWD/cache\"");
    let (status, out, err) = outcome(&within(&dir, &elsewhere, &explain).unwrap());
    assert!(status == Some(0) && out.contains("every access"), "{out}{err}");
}

#[test]
fn each_of_two_installations_uses_its_own_files_and_says_which() {
    let dir = fresh("missing-two");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let built = Path::new(env!("CARGO_BIN_EXE_homenode")).parent().unwrap();
    // A build folder may lie on several file systems.
    let place = |from: &Path, to: &Path| {
        fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop)).unwrap();
    };
    // The layout of an installation.
    let prefix = |name: &str| {
        let prefix = dir.join(name);
        fs::create_dir_all(prefix.join("bin")).unwrap();
        fs::create_dir_all(prefix.join("lib/homenode")).unwrap();
        fs::create_dir_all(prefix.join("share/homenode/kernels")).unwrap();
        fs::write(prefix.join("share/homenode/kernels/manifest.toml"), "").unwrap();
        place(&built.join("homenode"), &prefix.join("bin/homenode"));
        for library in ["libhomenode.so", "libhomenode_trace.so"] {
            place(&built.join(library), &prefix.join("lib/homenode").join(library));
        }
        prefix.canonicalize().unwrap()
    };
    let (one, two) = (prefix("one"), prefix("two"));
    // The path names the other one.
    let path = format!("{}:/usr/bin:/bin", one.join("bin").display());
    for own in [&one, &two] {
        let ask = |words: &[&str]| {
            let mut command = Command::new(own.join("bin/homenode"));
            command.args(words).current_dir(&dir).env("PATH", &path).env_remove("LD_LIBRARY_PATH");
            for name in ["HOMENODE_LIB_DIR", "HOMENODE_KERNELS_DIR"] {
                command.env_remove(name);
            }
            outcome(&command.output().unwrap())
        };
        let (status, out, err) = ask(&["--version"]);
        assert_eq!(status, Some(0), "{err}");
        for line in ["recorder", "live runtime", "kernels"] {
            let place = out.lines().find_map(|l| l.strip_prefix(&format!("{line}: "))).unwrap();
            assert!(Path::new(place).starts_with(own), "{line}: {place}");
        }
        let (_, out, err) = ask(&["doctor"]);
        let library = own.join("lib/homenode/libhomenode.so").display().to_string();
        // A long path is broken at any place.
        let joined: String = out.split_whitespace().collect();
        assert!(joined.contains(&library), "{library}: {out}{err}");
        let shows = "echo $LD_PRELOAD; ./program";
        let (status, out, err) = ask(&["run", "--pretend-nodes", "2", "--", "sh", "-c", shows]);
        assert_eq!(status, Some(0), "{err}");
        assert!(out.contains(&library) && out.ends_with("20\n"), "{out}");
    }
    let _ = fs::remove_dir_all(&dir);
}
