//! The lab, as somebody at a terminal meets it. Where there is no QEMU it is skipped.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::support::{built, fresh, homenode, outcome, plain};

/// Boots one at a time: two would only wait for each other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a guest can be booted here; says why a test is skipped.
pub fn there() -> bool {
    for (tool, package) in [("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static")] {
        if Command::new(tool).arg("--help").output().is_err() {
            eprintln!("skipped: there is no {tool} ({package})");
            return false;
        }
    }
    built(&["homenode-lab-guest"]);
    true
}

/// `homenode lab run` with the kernel that all tests share.
pub fn lab(dir: &Path, words: &str) -> Command {
    // A trial of KVM would cost more than it saves.
    started(dir, &["--accel", "tcg"], words)
}

/// The same with time in instructions: other work on this machine counts as nobody's.
pub fn deterministic_lab(dir: &Path, words: &str) -> Command {
    started(dir, &["--deterministic"], words)
}

fn started(dir: &Path, how: &[&str], words: &str) -> Command {
    let mut command = homenode(dir);
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME") {
        command.env("XDG_CACHE_HOME", cache);
    }
    // Scratch files are looked for below.
    command.env("TMPDIR", dir.parent().unwrap()).args(["lab", "run"]).args(how);
    command.args(words.split_whitespace());
    command
}

fn with_input(mut command: Command, input: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    output
}

/// Nothing of a run is left: no scratch folder, no QEMU with such a folder in its command line.
pub fn nothing_left(dir: &Path) {
    let scratch = dir.parent().unwrap();
    let left: Vec<_> = fs::read_dir(scratch)
        .unwrap()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| n.starts_with("homenode-lab-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let needle = format!("{}/homenode-lab-", scratch.display());
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        assert!(!(line.contains("qemu-system") && line.contains(&needle)), "QEMU is still there: {line}");
    }
}

/// Prints, for each node, how many pages are there after each way of placing them; the block is 64
/// pages.
const PLACES: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { PAGES = 64, PAGE = 4096, NODES = 4 };
static char *block(void) {
    char *p = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) { perror("mmap"); exit(99); }
    return p;
}
static void say(const char *how, int node, char *p, int *to) {
    void *pages[PAGES];
    int where[PAGES], count[NODES] = {0}, missing = 0;
    for (int i = 0; i < PAGES; i++) pages[i] = p + i * PAGE;
    if (to) syscall(SYS_move_pages, 0, PAGES, pages, to, where, 2);
    if (syscall(SYS_move_pages, 0, PAGES, pages, NULL, where, 0)) { perror("move_pages"); exit(99); }
    for (int i = 0; i < PAGES; i++) if (where[i] >= 0 && where[i] < NODES) count[where[i]]++; else missing++;
    printf("%s %d:", how, node);
    for (int n = 0; n < NODES; n++) printf(" %d", count[n]);
    printf(" %d\n", missing);
}
int main(int argc, char **argv) {
    for (int node = 0; node < NODES; node++) {
        unsigned long mask = 1ul << node;
        char *bound = block(), *first = block();
        if (syscall(SYS_mbind, bound, (long)PAGES * PAGE, 2, &mask, 64ul, 0)) { perror("mbind"); exit(99); }
        memset(bound, 1, PAGES * PAGE);
        say("bind", node, bound, NULL);
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(node, &set);
        if (sched_setaffinity(0, sizeof set, &set)) { perror("sched_setaffinity"); exit(99); }
        memset(first, 1, PAGES * PAGE);
        say("touch", node, first, NULL);
        int to[PAGES];
        for (int i = 0; i < PAGES; i++) to[i] = (node + 1 + i % 2) % NODES;
        say("move", node, first, to);
    }
    char buffer[4096];
    unsigned long sum = 0, size = 0;
    for (ssize_t n; (n = read(0, buffer, sizeof buffer)) > 0; size += n)
        for (ssize_t i = 0; i < n; i++) sum = sum * 31 + (unsigned char)buffer[i];
    fprintf(stderr, "%lu bytes %lu\n", size, sum);
    int f = open("written", O_CREAT | O_WRONLY, 0640);
    if (write(f, "\0\xff\n", 3) != 3) return 99;
    unlink("removed");
    FILE *d = popen("cat /sys/devices/system/node/node0/distance; cat /proc/sys/kernel/numa_balancing", "r");
    while (fgets(buffer, sizeof buffer, d)) fputs(buffer, stdout);
    pclose(d);
    printf("%s %s %s\n", argv[1], getenv("MINE"), getenv("HOMENODE_TEST_SECRET") ? "seen" : "unseen");
    return 42;
}
"#;

#[test]
fn four_nodes_place_pages_as_asked_and_everything_comes_back() {
    let dir = fresh("lab").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || plain(&dir, "places", PLACES).is_none() {
        return;
    }
    let _alone = alone();
    fs::write(dir.join("removed"), "x").unwrap();
    // Every byte value, more than any buffer on the way.
    let input: Vec<u8> = (0..300_000_u32).map(|i| (i ^ (i >> 8)) as u8).collect();
    let mut command = lab(&dir, "--mem 128M --numa-balancing off --env MINE=1=2");
    command.args(["--", "./places", "two words"]).env("SECRET", "x").env_remove("MINE");
    let (status, out, err) = outcome(&with_input(command, &input));
    let mut want = String::new();
    for node in 0..4 {
        let row =
            |f: &dyn Fn(usize) -> u32| (0..4).map(|n| format!(" {}", f(n))).collect::<String>() + " 0\n";
        let all = |n: usize| if n == node { 64 } else { 0 };
        let half = |n: usize| if n == (node + 1) % 4 || n == (node + 2) % 4 { 32 } else { 0 };
        want += &format!("bind {node}:{}touch {node}:{}move {node}:{}", row(&all), row(&all), row(&half));
    }
    want += "10 21 21 21\n0\ntwo words 1=2 unseen\n";
    assert_eq!(out, want, "{err}");
    let sum = input.iter().fold(0_u64, |s, b| s.wrapping_mul(31).wrapping_add(u64::from(*b)));
    assert!(err.starts_with(&format!("{} bytes {sum}\n", input.len())), "{err}");
    assert_eq!(status, Some(42), "{err}");
    assert_eq!(fs::read(dir.join("written")).unwrap(), b"\0\xff\n");
    assert!(dir.join("removed").exists() && err.contains("the program removed removed"), "{err}");
    nothing_left(&dir);
}

#[test]
fn a_program_that_takes_too_long_or_too_much_is_told() {
    let dir = fresh("lab-limits").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() {
        return;
    }
    let _alone = alone();
    let mut command = lab(&dir, "--nodes 2 --mem 128M --timeout 1 --no-cwd -- sleep 1000");
    let (status, _, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(125), "{err}");
    assert!(err.contains("took longer than 1 s") && err.contains("signal 15"), "{err}");

    // Grows until the kernel ends it.
    let grow = "x=xxxxxxxx; while :; do x=$x$x; done";
    let mut command = lab(&dir, "--nodes 2 --mem 128M --no-cwd -- sh -c");
    let (status, _, err) = outcome(&command.arg(grow).output().unwrap());
    // A shell that gets no memory may also give up by itself.
    assert!(
        status == Some(137) && err.contains("ran out of memory") || status == Some(2),
        "{status:?} {err}"
    );
    nothing_left(&dir);
}

#[test]
fn ctrl_c_reaches_the_program_and_a_panic_is_shown() {
    let dir = fresh("lab-signals").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() {
        return;
    }
    let _alone = alone();
    let script = "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.1; done";
    let mut command = lab(&dir, "--nodes 1 --mem 256M --no-cwd -- sh -c");
    let mut child = command.arg(script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
    assert_eq!(&up, b"up\n");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let (status, out, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((status, out.as_str()), (Some(5), "caught\n"), "{err}");

    let mut command = lab(&dir, "--nodes 1 --mem 256M --no-cwd --root -- sh -c");
    let (status, _, err) = outcome(&command.arg("echo c >/proc/sysrq-trigger").output().unwrap());
    assert_eq!(status, Some(125), "{err}");
    assert!(err.contains("the guest's kernel panicked") && err.contains("sysrq triggered crash"), "{err}");
    nothing_left(&dir);
}

#[test]
fn a_killed_homenode_leaves_no_guest() {
    let dir = fresh("lab-killed").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() {
        return;
    }
    let _alone = alone();
    let mut child = lab(&dir, "--nodes 1 --mem 256M --no-cwd -- sh -c")
        .arg("echo up; sleep 1000")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // The scratch folder goes with the next run; QEMU goes at once.
    let needle = format!("{}/homenode-lab-{}-", dir.parent().unwrap().display(), child.id());
    let alive = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.map(|e| fs::read(e.path().join("cmdline")).unwrap_or_default());
        lines.map(|l| String::from_utf8_lossy(&l).into_owned()).any(|l| l.contains(&needle))
    };
    let start = Instant::now();
    while alive() {
        assert!(start.elapsed() < Duration::from_secs(60), "QEMU outlives homenode");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program whose library is not there any more.
fn library_gone(dir: &Path) -> bool {
    fs::write(dir.join("gone.c"), "int gone(void) { return 0; }").unwrap();
    let gcc = |words: &str| Command::new("gcc").args(words.split(' ')).current_dir(dir).status();
    if !gcc("-shared -fPIC -o libgone.so gone.c").is_ok_and(|s| s.success()) {
        eprintln!("skipped: there is no gcc");
        return false;
    }
    fs::write(dir.join("needs.c"), "int gone(void);\nint main(void) { return gone(); }").unwrap();
    assert!(gcc("-o needs needs.c -L. -lgone").unwrap().success());
    fs::remove_file(dir.join("libgone.so")).unwrap();
    true
}

#[test]
fn a_full_disk_is_told_with_the_remedy() {
    let dir = fresh("lab-full-disk").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() {
        return;
    }
    let small = dir.join("small");
    fs::create_dir(&small).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["-r", "-m", "sh", "-c", "mount -t tmpfs -o size=3m none \"$0\" && exec \"$@\""])
        .arg(&small);
    let run = lab(&dir, "--nodes 1 --mem 256M --no-cwd -- true");
    command.arg(run.get_program()).args(run.get_args()).current_dir(&dir);
    for (name, value) in run.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("TMPDIR", &small);
    let (status, _, err) = outcome(&command.output().unwrap());
    if err.contains("unshare") || err.contains("mount") {
        eprintln!("skipped: no file system can be mounted here: {err}");
        return;
    }
    assert_eq!(status, Some(125), "{err}");
    assert!(err.contains("No space left on device") && err.contains("set TMPDIR to a folder"), "{err}");
}

#[test]
fn what_cannot_work_is_told_before_anything_boots() {
    let dir = fresh("lab-refused").join("work");
    fs::create_dir(&dir).unwrap();
    let mut arm = fs::read(env!("CARGO_BIN_EXE_homenode")).unwrap()[..4096].to_vec();
    arm[18..20].copy_from_slice(&183_u16.to_le_bytes());
    fs::write(dir.join("arm"), arm).unwrap();
    fs::write(dir.join("text"), "hello\n").unwrap();
    for name in ["arm", "text"] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    if !there() || !library_gone(&dir) {
        return;
    }
    for (words, code, parts) in [
        ("--distance 9 -- true", 125, ["a distance of 9 makes no sense", "11 to 254"]),
        ("--nodes 0 -- true", 125, ["0 nodes", "1 to 64"]),
        ("--mem 8M -- true", 125, ["8 MiB is too small", "--mem"]),
        ("--nodes 64 --mem 1T -- true", 125, ["too little memory for 64 nodes", "fewer --nodes"]),
        ("--qemu /no/qemu -- true", 125, ["the lab needs QEMU", "install qemu-system-x86"]),
        ("--kernel /etc/passwd -- true", 125, ["not a Linux kernel for x86-64", "--kernel"]),
        ("--kernel recent --modules /tmp -- true", 125, ["brings its own modules", "./recent"]),
        ("--kernel /no/kernel -- true", 125, ["/no/kernel", "No such file"]),
        ("--with /no/such -- true", 125, ["cannot take along /no/such", "No such file"]),
        ("--machine no-such -- true", 125, ["no-such", "epyc-nps4"]),
        ("-- ./needs", 126, ["needs libgone.so, which is not there", "LD_LIBRARY_PATH"]),
        ("-- ./arm", 126, ["it is for arm64", "build the program for x86-64"]),
        ("-- ./text", 126, ["neither a program (ELF) nor a script", "name a program"]),
        ("-- ./none", 127, ["cannot run ./none", "has it been built"]),
    ] {
        let (status, out, err) = outcome(&lab(&dir, words).output().unwrap());
        assert_eq!(status, Some(code), "{words}: {err}");
        assert!(out.is_empty(), "{words}: {out}");
        for part in parts {
            assert!(err.contains(part), "{words}: '{part}' in\n{err}");
        }
    }
    nothing_left(&dir);
}
