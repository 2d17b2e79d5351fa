//! Loops that homenode hands out give the same results, in every mode: each iteration once, the
//! last value right, whatever the loop's form. `tests/schedules/loops.c` counts its own iterations.
//!
//! libomp 14 by itself gets the last value wrong where threads steal from each other
//! (`nonmonotonic:dynamic` with `lastprivate` prints 0 in some runs). So the last value is looked
//! at where homenode hands out every execution, and libgomp's output is what all are compared with.

use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_model::Bytes;
use homenode_wire::facts::{Arming, Facts};
use homenode_wire::schedule::{Dealt, FROM, Mode, RequestedSchedule, Schedules};
use homenode_wire::settings::{self, MachineNodes, Settings};

/// The libraries of this profile's build, in the order in which they are loaded.
fn libraries() -> Option<String> {
    let folder = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let files = ["libhomenode_loops.so", "libhomenode.so"].map(|name| folder.join(name));
    files.iter().all(|f| f.exists()).then(|| files.map(|f| f.display().to_string()).join(":"))
}

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("schedules-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program by each compiler that is here, at two levels of optimisation: the calls differ.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/loops.c");
    let mut programs = Vec::new();
    for (compiler, level) in [("gcc", "-O1"), ("gcc", "-O2"), ("clang", "-O1")] {
        let out = folder.join(format!("{compiler}{level}"));
        let mut command = Command::new(compiler);
        command.args([level, "-std=gnu17", "-fopenmp", "-o"]).arg(&out).arg(&source);
        match command.output() {
            Ok(done) if done.status.success() => programs.push(out),
            Ok(done) if compiler == "gcc" => panic!("{}", String::from_utf8_lossy(&done.stderr)),
            _ => println!("skipped: there is no {compiler} with OpenMP"),
        }
    }
    programs
}

fn is_libomp(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("clang"))
}

/// What a run printed, and what became of its loops.
struct Ran {
    out: String,
    dealt: Option<Dealt>,
    folder: PathBuf,
}

/// Teams of four that sleep while they wait. libomp 14 fails an assertion of its own
/// (`kmp_dispatch`,
/// `THIEF`) after a cancelled dynamic loop, without homenode: there nothing is cancelled.
fn environment(command: &mut Command) -> &mut Command {
    let libomp = is_libomp(Path::new(command.get_program()));
    let team = [("OMP_NUM_THREADS", "4"), ("OMP_DYNAMIC", "false"), ("OMP_MAX_ACTIVE_LEVELS", "3")];
    let cancel = if libomp { "false" } else { "true" };
    command.envs(team).env("OMP_WAIT_POLICY", "passive").env("OMP_CANCELLATION", cancel)
}

fn alone(program: &Path, args: &[&str]) -> String {
    let done = environment(Command::new(program).args(args)).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn with(program: &Path, args: &[&str], asked: RequestedSchedule, nodes: u32, from: Option<&Path>) -> Ran {
    on(MachineNodes::even(nodes, 2, Bytes::gib(1), 20), program, args, asked, from)
}

fn on(
    machine: MachineNodes,
    program: &Path,
    args: &[&str],
    asked: RequestedSchedule,
    from: Option<&Path>,
) -> Ran {
    let folder = program.with_extension("run");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let settings = Settings {
        policy: "first-touch".into(),
        arming: Arming::Asked,
        machine,
        pretend: true,
        schedule: Some(asked),
        ..Settings::default()
    };
    std::fs::write(folder.join(settings::FILE), homenode_wire::encode(&settings).unwrap()).unwrap();
    if let Some(from) = from {
        std::fs::copy(from, folder.join(FROM)).unwrap();
    }
    let mut command = Command::new(program);
    if matches!(args, ["follow" | "pages"]) {
        command.env("OMP_PLACES", "{0},{1}").env("OMP_PROC_BIND", "close");
    }
    environment(command.args(args)).env("LD_PRELOAD", libraries().unwrap()).env(settings::RUN_DIR, &folder);
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{program:?} {asked:?}: {} {said}", done.status);
    let report = std::fs::read_dir(&folder).unwrap().flatten().map(|e| e.path());
    let mut report = report.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("report."));
    let read =
        |path: PathBuf| -> Facts { homenode_wire::read(&mut std::fs::File::open(path).unwrap()).unwrap() };
    let dealt = report.next().and_then(|path| read(path).schedule);
    Ran { out: String::from_utf8(done.stdout).unwrap(), dealt, folder }
}

/// Whether threads may be bound to CPUs 0 and 1.
fn has_two_cpus() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|l| l.starts_with("Cpus_allowed_list:\t0-"))
}

const fn asked(mode: Mode) -> RequestedSchedule {
    RequestedSchedule { mode, from: false, to: false }
}

#[test]
fn every_loop_gives_the_same_in_every_mode() {
    if libraries().is_none() {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    }
    let folder = folder("all");
    let programs = programs(&folder);
    // What libgomp gives; libomp's own hand-out may give a wrong last value.
    let native = alone(&programs[0], &["all"]);
    assert!(native.lines().count() > 500);
    for program in programs {
        for (name, mode) in Mode::ALL {
            for nodes in [1, 2] {
                let ran = with(&program, &["all"], asked(mode), nodes, None);
                let is_libomps = is_libomp(&program) && !matches!(mode, Mode::Block | Mode::Cyclic);
                let shown = |out: &str| match is_libomps {
                    true => out.lines().map(|l| l.split(", last").next().unwrap_or(l).to_owned()).collect(),
                    false => out.lines().map(str::to_owned).collect::<Vec<_>>(),
                };
                let (want, got) = (shown(&native), shown(&ran.out));
                let differs = got.iter().zip(&want).find(|(a, b)| a != b);
                assert_eq!((differs, got.len()), (None, want.len()), "{program:?} {name} {nodes}");
                let dealt = ran.dealt.unwrap();
                // All that is to be handed out by homenode is: dozens of loops, hundreds of times.
                let few = mode == Mode::Record || (mode == Mode::Affinity && nodes == 1);
                assert!(dealt.loops > 20, "{program:?} {dealt:?}");
                assert!(if few { dealt.taken == 0 } else { dealt.taken > 300 }, "{program:?} {dealt:?}");
                assert!(mode == Mode::Auto || dealt.refused.is_empty(), "{dealt:?}");
            }
        }
    }
}

#[test]
fn a_replay_gives_each_thread_what_it_got() {
    if libraries().is_none() {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    }
    let folder = folder("replay");
    for program in programs(&folder) {
        let ran = with(&program, &["map", "20"], asked(Mode::Replay), 2, None);
        assert_eq!(ran.out, "19 of 19\n", "{program:?}");
        let dealt = ran.dealt.unwrap();
        assert_eq!((dealt.taken, dealt.own, dealt.replayed), (19, 1, dealt.chunks), "{dealt:?}");
        for mode in [Mode::Block, Mode::Cyclic] {
            let ran = with(&program, &["map", "20"], asked(mode), 2, None);
            assert_eq!(ran.out, "19 of 19\n", "{program:?} {mode}");
        }
    }
}

#[test]
fn static_loops_of_clang_follow_their_values() {
    if libraries().is_none() {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    }
    let folder = folder("static");
    for program in programs(&folder) {
        let own = "0 1 2 3, last 409, wrong 0\n";
        assert_eq!(alone(&program, &["follow"]), own, "{program:?}");
        let follows = |mode, want: &str| {
            // A CPU each, and two threads on each CPU.
            let machine = MachineNodes::even(2, 1, Bytes::gib(1), 20);
            let ran = on(machine, &program, &["follow"], asked(mode), None);
            // GCC's static loops are seen by nobody.
            let want = if is_libomp(&program) { want } else { own };
            assert_eq!(ran.out, want, "{program:?} {mode}");
            let dealt = ran.dealt.unwrap();
            assert_eq!(
                (dealt.taken, dealt.loops),
                if want == own { (0, dealt.loops) } else { (1, 2) },
                "{dealt:?}"
            );
        };
        follows(Mode::Record, own);
        follows(Mode::Replay, "3 2 1 0, last 409, wrong 0\n");
        match has_two_cpus() {
            true => follows(Mode::Affinity, "2 3 0 1, last 409, wrong 0\n"),
            false => println!("skipped: affinity takes CPUs 0 and 1"),
        }
    }
}

#[test]
fn chunks_follow_the_pages_that_they_use() {
    if libraries().is_none() {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    }
    let folder = folder("pages");
    if !has_two_cpus() {
        return println!("skipped: threads are bound to CPUs 0 and 1");
    }
    // libomp gives each thread a range first, whoever comes first.
    for program in programs(&folder).iter().filter(|p| !is_libomp(p)) {
        let run = |mode| {
            let machine = MachineNodes::even(2, 1, Bytes::gib(1), 20);
            let ran = on(machine, program, &["pages"], asked(mode), None);
            let lines: Vec<String> = ran.out.lines().map(str::to_owned).collect();
            (lines, ran.dealt.unwrap().taken)
        };
        let (lines, taken) = run(Mode::Record);
        if lines[0] != "next touch 0" {
            return println!("skipped: this machine has no next touch ({})", lines[0]);
        }
        assert_eq!((&lines[1..], taken), (&["0 0 1 1", "moved 0", "0 0 1 1"].map(String::from)[..], 0));
        let (lines, taken) = run(Mode::Affinity);
        assert_eq!((&lines[1..], taken), (&["0 0 1 1", "moved 0", "1 1 0 0"].map(String::from)[..], 1));
    }
}

#[test]
fn loops_with_one_name_are_dealt_alike() {
    if libraries().is_none() {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    }
    let folder = folder("named");
    for program in programs(&folder) {
        let to = RequestedSchedule { to: true, ..asked(Mode::Replay) };
        let ran = with(&program, &["named"], to, 2, None);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines, [lines[0]; 3], "{program:?}");
        let dealt = ran.dealt.unwrap();
        assert_eq!((dealt.loops, dealt.taken, dealt.own), (1, 2, 1), "{dealt:?}");
        // The name goes into the file, so that it holds for another place in the source.
        let all = std::fs::read_dir(&ran.folder).unwrap().flatten().map(|e| e.path());
        let mut all = all.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("schedules."));
        let file = program.with_extension("schedules");
        std::fs::rename(all.next().unwrap(), &file).unwrap();
        let from = RequestedSchedule { from: true, ..asked(Mode::Replay) };
        let again = with(&program, &["named"], from, 2, Some(&file));
        assert_eq!(again.out, ran.out, "{program:?}");
        assert_eq!(again.dealt.unwrap().taken, 3);
    }
}

#[test]
fn a_later_run_replays_what_an_earlier_one_wrote() {
    if libraries().is_none() {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    }
    let folder = folder("file");
    let programs = programs(&folder);
    let from = RequestedSchedule { from: true, ..asked(Mode::Replay) };
    for program in &programs {
        let ran = with(program, &["owners"], RequestedSchedule { to: true, ..asked(Mode::Record) }, 2, None);
        let first = ran.out.lines().next().unwrap().to_owned();
        let all = std::fs::read_dir(&ran.folder).unwrap().flatten().map(|e| e.path());
        let mut all = all.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("schedules."));
        let file = program.with_extension("schedules");
        std::fs::rename(all.next().unwrap(), &file).unwrap();
        let read: Schedules = homenode_wire::read(&mut std::fs::File::open(&file).unwrap()).unwrap();
        assert_eq!(read.loops.len(), 1);
        // Both executions, from the first on.
        let ran = with(program, &["owners"], from, 2, Some(&file));
        assert_eq!(ran.out.lines().collect::<Vec<_>>(), [&first, &first], "{program:?}");
        assert_eq!(ran.dealt.unwrap().taken, 2);
        // Another trip count: said, and the program's own schedule runs.
        let ran = with(program, &["owners", "300"], from, 2, Some(&file));
        let dealt = ran.dealt.unwrap();
        assert_eq!((dealt.taken, dealt.own), (0, 2));
        assert!(dealt.refused[0].starts_with("a loop has 300 iterations"), "{dealt:?}");
    }
    // Another program.
    if let [one, other, ..] = &programs[..] {
        let ran = with(one, &["owners"], from, 2, Some(&other.with_extension("schedules")));
        let dealt = ran.dealt.unwrap();
        assert_eq!(dealt.taken, 0);
        assert!(dealt.refused.iter().any(|why| why.contains("are of another program")), "{dealt:?}");
    }
}
