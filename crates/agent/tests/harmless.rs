//! A program ends, changes its user and makes its threads under homenode exactly as it does alone:
//! same output, same status or signal, and in time. Each program of `tests/hostile/` here says what
//! it sees; the run without homenode says what it should see.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homenode_model::{Bytes, Ns};
use homenode_wire::facts::{Arming, Budget};
use homenode_wire::settings::{self, Machine, Settings, Wanted};

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

/// The front end's own table.
#[path = "../src/kernel_calls/table.rs"]
#[allow(dead_code)]
mod table;

/// Calls that would change this machine, wait, end somebody or make it hard to go on.
const NOT_TRIED: &[&str] = &[
    "acct",
    "chroot",
    "exit",
    "exit_group",
    "kill",
    "mount",
    "msgrcv",
    "msgsnd",
    "pause",
    "personality",
    "pivot_root",
    "prlimit64",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_send_signal",
    "rt_sigaction",
    "setdomainname",
    "sethostname",
    "setrlimit",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount2",
    "vhangup",
    "wait4",
    "waitid",
    "clock_settime",
    "setgroups",
];

/// Functions of the C library, an argument each: p a pointer, n a small number, f a descriptor, 0 a
/// zero.
const FUNCTIONS: &str = "
    read:fpn write:fpn pread:fpn0 pwrite:fpn0 recv:fpn0 send:fpn0 recvfrom:fpn0pp getrandom:pn0 getcwd:pn poll:p00
    epoll_wait:fpn0 epoll_pwait:fpn0p epoll_pwait2:fpnpp accept:fpp accept4:fpp0 getsockname:fpp getpeername:fpp connect:fpn bind:fpn
    getsockopt:f00pp setsockopt:f00pn socketpair:000p pipe:p pipe2:p0 epoll_ctl:f00p copy_file_range:fp0pn0 splice:fp0pn0
    sendfile:f0pn getdents64:fpn getentropy:pn sched_getaffinity:0np sched_setaffinity:0np sched_getparam:0p sched_setparam:0p
    getgroups:np getrusage:0p times:p uname:p sysinfo:p getrlimit:0p prlimit:000p mincore:0np nanosleep:pp clock_nanosleep:00pp
    clock_getres:0p clock_gettime:0p getitimer:0p timerfd_gettime:fp timerfd_settime:f0pp sigpending:p sigtimedwait:ppp
    mq_getattr:fp mq_setattr:fpp adjtimex:p clock_adjtime:0p signalfd:fp0 eventfd_read:fp ttyname_r:fpn ptsname_r:fpn capget:pp
    stat:pp lstat:pp fstat:fp fstatat:fpp0 statx:fp00p statfs:pp fstatfs:fp statvfs:pp fstatvfs:fp access:p0 faccessat:fp00
    readlink:ppn readlinkat:fppn unlink:p unlinkat:fp0 truncate:p0 rmdir:p chdir:p mkdir:p0 mkdirat:fp0 chmod:p0 chown:p00 lchown:p00
    rename:pp link:pp symlink:pp renameat:fpfp linkat:fpfp0 symlinkat:pfp remove:p creat:p0 mkfifo:p0 mknod:p00 open:p0 openat:fp0
    utime:pp utimes:pp lutimes:pp futimes:fp futimens:fp utimensat:fpp0 getxattr:pppn lgetxattr:pppn fgetxattr:fppn setxattr:pppn0
    fsetxattr:fppn0 listxattr:ppn flistxattr:fpn removexattr:pp inotify_add_watch:fp0 name_to_handle_at:fppp0
    open_by_handle_at:fp0 memfd_create:p0 getresuid:ppp getresgid:ppp gethostname:pn getdomainname:pn setmntent:pp opendir:p
    fopen:pp realpath:pp canonicalize_file_name:p mkstemp:p mkdtemp:p mktemp:p scandir:pp00 ftw:p0n nftw:p0n0 glob:p00p
    fanotify_mark:f00fp getdirentries:fpnp statfs64:pp statvfs64:pp fstatvfs64:fp sem_unlink:p shm_unlink:p adjtime:0p
    get_mempolicy:pp0 sched_rr_get_interval:0p thrd_sleep:pp ioctl:f0p fcntl:f0p readv:fp0 writev:fp0 preadv:fp00 pwritev:fp00
    preadv2:fp000 sched_setscheduler:00p timespec_get:p0 gettimeofday:p0 aio_suspend:p0p mq_open:p0 pthread_getname_np:0
";

/// The calls, as the program reads them.
fn calls() -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for call in table::CALLS.iter().filter(|c| !c.pointers.is_empty() && !NOT_TRIED.contains(&c.name)) {
        let mut how = ['0'; 6];
        for (at, size) in call.pointers {
            how[*at] = 'p';
            match size {
                table::Size::Each(count, _) | table::Size::Bits(count) => how[*count] = 'n',
                _ => {}
            }
        }
        // What comes first and is no pointer is a descriptor where there can be one.
        if how[0] == '0' {
            how[0] = 'f';
        }
        // poll: a number that fits, for a time that does.
        let how: String = how.iter().collect();
        writeln!(text, "{{\"{}\", {}, \"{how}\"}},", call.name, call.number).unwrap();
    }
    for function in FUNCTIONS.split_whitespace() {
        let (name, how) = function.split_once(':').unwrap();
        writeln!(text, "{{\"{name}\", -1, \"{how}\"}},").unwrap();
    }
    text
}

#[test]
fn no_call_fails_for_armed_memory() {
    if library().is_none() {
        return println!("skipped: libhomenode.so is not built");
    }
    let folder = folder("efault");
    std::fs::write(folder.join("calls.inc"), calls()).unwrap();
    let program = compile("efault", &folder);
    let different = differences(&program, &[], &folder, &[ARMED, BLOCKS]);
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{}", std::fs::read_to_string(folder.join("err")).unwrap());
}

/// How a program ended: status or signal, and its own output. `None`: it did not, in time.
type End = Option<(Option<i32>, Option<i32>, String)>;

/// Far more than any of these programs takes, on a busy machine, too.
const LIMIT: Duration = Duration::from_secs(60);

fn end(command: &mut Command, folder: &Path) -> End {
    let file = |n: &str| std::fs::File::create(folder.join(n)).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
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
        machine: Machine::even(2, 1, Bytes::gib(1), 20),
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
