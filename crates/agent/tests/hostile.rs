//! Programs that are hard on whoever takes pages away from under them (`tests/hostile/`), with
//! everything armed again every millisecond: none may see a wrong byte. Each also runs without
//! homenode, so that a failure is homenode's.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use homenode_model::{Bytes, Ns};
use homenode_wire::facts::{Arming, Budget, Facts};
use homenode_wire::settings::{self, MachineNodes, Settings, Wanted};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The library of this profile's build, which must not be an old one: cargo does not build it for
/// this test.
fn library() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let library = here.parent()?.parent()?.join("libhomenode.so");
    let built = std::fs::metadata(&library).ok()?.modified().ok()?;
    for of in ["agent", "sources", "policy", "runtime", "sys", "wire"] {
        let changed = newest(&root().join("crates").join(of).join("src"));
        assert!(changed <= built, "crates/{of} is newer than libhomenode.so: cargo build -p homenode-agent");
    }
    Some(library)
}

/// When a file of the folder last changed.
fn newest(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let times = entries.map(|e| match e.path() {
        path if path.is_dir() => newest(&path),
        path => std::fs::metadata(path).unwrap().modified().unwrap(),
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn compile(name: &str, folder: &Path, extra: &[&str], to: &str) -> PathBuf {
    let out = folder.join(to);
    let done = Command::new("gcc")
        .args(["-O1", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(extra)
        .arg("-o")
        .arg(&out)
        .arg(root().join("tests/hostile").join(format!("{name}.c")))
        .arg("-ldl")
        .output()
        .expect("gcc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

/// Runs to the end, or ends it after a minute, with its own output in files: pipes would fill.
fn run(command: &mut Command, folder: &Path) -> Output {
    let file = |n: &str| std::fs::File::create(folder.join(n)).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(120) {
            let _ = child.kill();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |n: &str| std::fs::read(folder.join(n)).unwrap();
    Output { status, stdout: read("out"), stderr: read("err") }
}

/// What a run with homenode left: the facts of each process. Nothing if it was skipped.
struct Ran {
    reports: Vec<Facts>,
}

impl Ran {
    const SKIPPED: Self = Self { reports: Vec::new() };

    fn of(folder: &Path) -> Self {
        let reports = std::fs::read_dir(folder).unwrap().flatten();
        let reports = reports.filter(|e| e.file_name().to_string_lossy().starts_with("report."));
        let read = |path: PathBuf| homenode_wire::decode(&std::fs::read(path).unwrap()).unwrap();
        Self { reports: reports.map(|e| read(e.path())).collect() }
    }

    /// Arms, pages armed, faults, pages copied, of each process.
    fn counters(&self) -> Vec<[u64; 4]> {
        let of = |f: &Facts| [f.counters.arms, f.counters.armed_pages, f.counters.faults, f.counters.copies];
        self.reports.iter().filter(|f| f.nodes > 0).map(of).collect()
    }

    /// What told, of each process that was watched.
    fn sources(&self) -> Vec<&str> {
        self.reports.iter().filter_map(|f| Some(f.watch.as_ref()?.source.as_str())).collect()
    }

    /// Something was armed, whether or not it was touched before it went.
    fn was_armed(&self) {
        let counted = self.counters();
        let skipped = self.reports.is_empty();
        assert!(skipped || counted.iter().any(|c| c[0] > 0 && c[1] > 0), "nothing was armed: {counted:?}");
    }

    /// A report has these words.
    fn says(&self, words: &str) {
        let told = self.reports.is_empty() || self.reports.iter().any(|r| format!("{r:?}").contains(words));
        assert!(told, "`{words}` is not in {:?}", self.reports);
    }

    /// It was told by this source, and pages moved by it; or this machine refuses it, which is
    /// said.
    fn was_told_by(&self, source: &str) {
        let name = match source {
            "blocks" => "pages taken away at random times",
            "writes" => "writes to write-protected pages",
            other => panic!("what is {other}?"),
        };
        if self.sources().iter().any(|s| s.starts_with(name)) {
            return self.was_armed();
        }
        if self.reports.is_empty() {
            return;
        }
        let refused = format!("source {source} not used: ");
        match self.reports.iter().flat_map(|f| &f.notes).find(|n| n.starts_with(&refused)) {
            Some(why) => println!("skipped: {why}"),
            None => panic!("not told by {source}: {:?}", self.sources()),
        }
    }
}

fn hostile_with(
    name: &str,
    test: &str,
    before: &[&str],
    args: impl Fn(&Path) -> Vec<String>,
    moves: bool,
) -> Ran {
    hostile_as(name, test, before, args, moves, &[], ASKED, None)
}

/// How homenode is set: pages are armed only when the program asks.
const ASKED: fn(&mut Settings) = |settings| settings.arming = Arming::Asked;

/// How homenode is set: it is told by `source`, and the policy decides.
fn told_by(source: Wanted) -> impl Fn(&mut Settings) {
    move |settings| {
        settings.arming = Arming::Watch;
        settings.policy = "competitive".into();
        settings.source = source;
        settings.budget = Budget { permille: 1000, fixed: Ns(100_000_000_000) };
    }
}

/// The same with these variables, and homenode set so; `preloaded`: another library, in front of
/// the program's C library.
#[allow(clippy::too_many_arguments)]
fn hostile_as(
    name: &str,
    test: &str,
    before: &[&str],
    args: impl Fn(&Path) -> Vec<String>,
    moves: bool,
    variables: &[(&str, &str)],
    set: impl Fn(&mut Settings),
    preloaded: Option<&Path>,
) -> Ran {
    let Some(library) = library() else {
        println!("skipped: libhomenode.so is not built");
        return Ran::SKIPPED;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let program = compile(name, &folder, &[], name);
    let args = args(&folder);
    let command = || {
        let mut words = before.iter().map(|w| (*w).to_owned());
        let mut c = match words.next() {
            Some(first) => {
                let mut c = Command::new(first);
                c.args(words).arg(&program);
                c
            }
            None => Command::new(&program),
        };
        c.args(&args);
        if let Some(other) = preloaded {
            c.env("LD_PRELOAD", other);
        }
        c
    };
    let plain = run(&mut command(), &folder);
    assert!(plain.status.success(), "without homenode: {plain:?}");
    let reports = folder.join("reports");
    std::fs::create_dir(&reports).unwrap();
    let mut settings = Settings {
        policy: "next-touch".into(),
        machine: MachineNodes::even(2, 1, Bytes::gib(1), 20),
        pretend: true,
        force: true,
        ..Settings::default()
    };
    set(&mut settings);
    std::fs::write(reports.join(settings::FILE), homenode_wire::encode(&settings).unwrap()).unwrap();
    let mut preload = library.into_os_string();
    if let Some(other) = preloaded {
        preload.push(":");
        preload.push(other);
    }
    let with = run(
        command()
            .env("LD_PRELOAD", &preload)
            .env(settings::RUN_DIR, &reports)
            .envs(variables.iter().copied())
            .env("HOMENODE_RUN_FORCE_ARM", "1")
            .env("HOSTILE_SECONDS", "2"),
        &folder,
    );
    let (out, err) = (String::from_utf8_lossy(&with.stdout), String::from_utf8_lossy(&with.stderr));
    assert!(with.status.success(), "{:?}\n{out}{err}", with.status);
    if out.starts_with("skipped") {
        println!("{name}: {out}");
        return Ran::SKIPPED;
    }
    assert_eq!(out, "ok\n");
    let ran = Ran::of(&reports);
    let counted = ran.counters();
    println!("{name}: arms, pages armed, faults, pages copied: {counted:?}");
    let watched = settings.arming == Arming::Watch;
    if moves {
        // Watched pages move in the thread that decides: nobody faults.
        let enough = |c: &[u64; 4]| [c[0], c[1], if watched { 1 } else { c[2] }, c[3]].iter().all(|n| *n > 0);
        assert!(counted.iter().any(enough), "nothing was moved: {counted:?}");
    }
    ran
}

/// Watched by the source `source`, and moved by who decides, instead of by next touch.
fn hostile_watched(name: &str, source: &str, moves: bool) {
    // Enough for a second: on a busy machine what decides may not come to run in a shorter time.
    let variables = [("HOSTILE_ADDS", "100000000")];
    let set = told_by(source.parse().unwrap());
    let ran =
        hostile_as(name, &format!("{name}-{source}"), &[], |_| Vec::new(), moves, &variables, set, None);
    ran.was_told_by(source);
}

/// With another allocator in front, from Debian's package.
fn hostile_with_allocator(package: &str, library: &str) {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    match folders.map(|f| Path::new(f).join(library)).into_iter().find(|p| p.exists()) {
        None => println!("skipped: no {library} (package {package})"),
        Some(path) => {
            for name in ["writers", "threads", "remaps", "files", "paths", "stdio"] {
                let test = format!("{name}-{package}");
                // Memory changes so often in this one that under load nothing may be touched while
                // it is armed.
                let moves = name != "remaps";
                hostile_as(name, &test, &[], |_| Vec::new(), moves, &[], ASKED, Some(&path)).was_armed();
            }
        }
    }
}

fn hostile(name: &str) {
    hostile_with(name, name, &[], |_| Vec::new(), true);
}

macro_rules! programs {
    ($($test:ident $name:literal;)*) => { $(
        #[test]
        fn $test() {
            hostile($name);
        }
    )* };
}

programs! {
    concurrent_writers_lose_nothing "writers";
    forks_while_armed "forks";
    advice_by_system_calls_of_the_programs_own "dontneed_raw";
    memory_that_is_armed_before_its_first_touch "fresh";
    locked_memory "locked";
    own_handlers_and_blocked_signals "signals";
    signals_that_are_waited_for "waits";
    contended_locks_in_an_array "mutex";
    files_pipes_and_reads_begun_before "files";
    paths_and_folders "paths";
    checked_functions "checked";
    small_things_of_the_kernel "small";
    streams_and_their_buffers "stdio";
    streams_of_a_program_with_an_allocator "own_stdio";
    an_allocator_with_the_inner_names_of_glibc "own_heap";
    datagrams "udp";
    a_peer_that_reads_this_memory "peer";
    threads_that_end_or_are_cancelled "threads";
    coroutines_on_stacks_that_nobody_announces "coroutines";
    locks_by_clocks_and_things_done_once "clocks";
    descriptors_that_are_all_closed "descriptors";
    faults_of_the_programs_own "faults";
    calls_that_do_not_come_back "left";
}

macro_rules! watched {
    ($($test:ident $name:literal $moves:literal;)*) => { $(
        #[test]
        fn $test() {
            for source in ["writes", "blocks"] {
                hostile_watched($name, source, $moves);
            }
        }
    )* };
}

watched! {
    watched_writers_lose_nothing "writers" true;
    watched_forks "forks" false;
    watched_memory_that_is_remapped "remaps" false;
    watched_memory_that_is_given_up "dontneed_raw" false;
    watched_memory_that_is_remapped_by_system_calls "remaps_raw" false;
    watched_files_and_pipes "files" false;
    watched_paths "paths" false;
    watched_streams "stdio" false;
    watched_checked_functions "checked" false;
    watched_small_things "small" false;
    watched_own_handlers "signals" false;
    watched_waits_for_signals "waits" false;
    watched_locks "mutex" false;
    watched_threads "threads" false;
    watched_coroutines "coroutines" false;
    watched_clocks "clocks" false;
    watched_descriptors "descriptors" false;
    watched_faults "faults" false;
}

#[test]
fn jemalloc() {
    hostile_with_allocator("libjemalloc2", "libjemalloc.so.2");
}

#[test]
fn mimalloc() {
    hostile_with_allocator("libmimalloc2.0", "libmimalloc.so.2");
}

#[test]
fn an_allocator_that_maps_memory_with_its_lock_held() {
    // Memory lives so shortly that nothing may be touched while it is armed.
    hostile_with("allocator", "allocator", &[], |_| Vec::new(), false).was_armed();
    hostile_watched("allocator", "writes", false);
}

// It may be refused (docs/live.md); calls through the C library are seen, and are a test of their
// own.
#[test]
fn memory_that_is_remapped_by_system_calls_of_the_programs_own() {
    hostile_with("remaps_raw", "remaps_raw", &[], |_| Vec::new(), false).was_armed();
}

#[test]
fn fixed_buffers_of_io_uring() {
    // Copying stops as soon as there is a ring; the program waits until its buffer is armed before.
    let ran = hostile_with("iouring", "iouring", &[], |_| Vec::new(), false);
    ran.was_armed();
    ran.says("no page follows its next touch any more, for there is io_uring, which can register buffers");
}

#[test]
fn packets_in_memory_that_a_socket_has_pinned() {
    // As above.
    for (test, args) in [("xdp", vec![]), ("xdp-by-call", vec!["by-call".to_owned()])] {
        let ran = hostile_with("xdp", test, &[], move |_| args.clone(), false);
        ran.was_armed();
        ran.says("no page follows its next touch any more, for there is a socket that puts packets into the program's own pages");
    }
}

#[test]
fn realloc_mremap_madvise_and_protection() {
    // Memory changes so often here that under load nothing may be touched while it is armed.
    hostile_with("remaps", "remaps", &[], |_| Vec::new(), false).was_armed();
}

#[test]
fn threads_that_the_c_library_makes_to_call_back() {
    for way in ["timers", "queue", "orders", "names", "bare"] {
        hostile_with("notified", &format!("notified-{way}"), &[], |_| vec![way.to_owned()], true);
    }
    hostile_watched("notified", "writes", false);
    hostile_watched("notified", "blocks", false);
}

#[test]
fn a_run_time_that_makes_system_calls_of_its_own() {
    let ran = hostile_with("raw_calls", "raw_calls", &[], |_| Vec::new(), false);
    ran.says("there is the run-time of Go, which makes system calls past the C library");
}

#[test]
fn threads_that_block_all_signals_unseen() {
    hostile_with("deaf", "deaf", &[], |_| Vec::new(), true);
}

#[test]
fn exec_from_armed_memory() {
    // Their reports are lost with them; each waits until its memory is armed, and does not come
    // further if it never is.
    hostile_with("execs", "execs", &[], |_| Vec::new(), false);
}

#[test]
fn libraries_that_come_and_go() {
    let plugin = |folder: &Path| {
        let library = compile("plugin", folder, &["-shared", "-fPIC", "-DPLUGIN"], "plugin.so");
        vec![library.to_str().unwrap().to_owned()]
    };
    hostile_with("plugin", "plugin", &[], plugin, true);
}

#[test]
fn stacks_where_memory_was_given_back() {
    let variables = [("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0")];
    hostile_as("stacks", "stacks", &[], |_| Vec::new(), true, &variables, ASKED, None);
}

#[test]
fn all_of_a_limited_address_space() {
    let ran = hostile_with("limited", "limited", &["prlimit", "--as=4000000000"], |_| Vec::new(), false);
    ran.says("no next touch in this process: its address space is limited");
}

#[test]
fn system_calls_that_the_program_has_forbidden_itself() {
    for (test, args) in [("forbidden", vec![]), ("forbidden-by-call", vec!["by-call".to_owned()])] {
        hostile_with("forbidden", test, &[], move |_| args.clone(), true);
    }
}

#[test]
fn under_an_interleaved_policy() {
    if Command::new("numactl").args(["-i", "all", "true"]).status().is_ok_and(|s| s.success()) {
        hostile_with("writers", "interleaved", &["numactl", "-i", "all"], |_| Vec::new(), true);
    } else {
        println!("skipped: no numactl");
    }
}

/// Memory that the kernel comes to when it likes: by all mechanisms, on pretended nodes and as if
/// this machine's were two, by next touch and watched by blocks. Whatever the program does past the
/// C library is seen when memory is next armed, which the report tells.
fn hostile_to_who_waits_for_memory(name: &str, args: &'static [&'static str], says: &str) {
    for (way, real, blocks) in [
        ("pretended", false, false),
        ("pretended-blocks", false, true),
        ("real", true, false),
        ("real-blocks", true, true),
    ] {
        let test = [&[name], args, &[way]].concat().join("-");
        let set = |settings: &mut Settings| {
            if blocks {
                told_by(Wanted::Blocks)(settings)
            } else {
                ASKED(settings)
            }
            settings.pretend = !real;
        };
        let args = |_: &Path| args.iter().map(|a| (*a).to_owned()).collect();
        hostile_as(name, &test, &[], args, false, &[], set, None);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{test}"));
        let Ok(out) = std::fs::read_to_string(folder.join("out")) else { return };
        if out == "ok\n" {
            let all = format!("{:?}", Ran::of(&folder.join("reports")).reports);
            assert!(all.contains("no page follows its next touch any more") && all.contains(says), "{all}");
        }
    }
}

#[test]
fn asynchronous_reads_of_linux() {
    hostile_to_who_waits_for_memory("aio", &[], "io_setup");
    hostile_with("aio", "aio-by-call", &[], |_| vec!["by-call".to_owned()], false);
}

#[test]
fn reads_by_a_worker_of_io_uring() {
    hostile_to_who_waits_for_memory("iouring", &["ordinary"], "io_uring");
}

/// Its launcher tells of it by a variable, which is looked for when memory is first armed.
#[test]
fn a_peer_that_is_known_reads_all_of_this_memory() {
    let variables = [("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
    let set = |settings: &mut Settings| {
        ASKED(settings);
        settings.pretend = false;
    };
    hostile_as("peer", "peer-whole", &[], |_| vec!["whole".to_owned()], false, &variables, set, None);
}
