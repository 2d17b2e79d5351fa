//! What a chunk costs that homenode hands out, records or leaves alone, beside libgomp's own and
//! libomp's, in one run: a loop without work in chunks of one iteration
//! (`tests/schedules/loops.c`). Two threads execute it; on a machine with 16 CPUs also 16 threads,
//! which wait for each other at a counter that they share.

use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_model::Bytes;
use homenode_wire::facts::Arming;
use homenode_wire::schedule::{Mode, RequestedSchedule};
use homenode_wire::settings::{self, MachineNodes, Settings};

/// Executions of the loop, iterations of each, and how often all of it is repeated.
const EXECUTIONS: &str = "300";
const ITERATIONS: &str = "20000";
const REPEATED: usize = 7;
/// Threads of the teams.
const TEAMS: [usize; 2] = [2, 16];

fn main() {
    let Some(libraries) = libraries() else {
        return println!("skipped: libhomenode.so and libhomenode_loops.so are not built");
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-schedule");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (compiler, run_time) in [("gcc", "libgomp"), ("clang", "libomp")] {
        let program = folder.join(run_time);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/loops.c");
        let built = Command::new(compiler).args(["-O2", "-fopenmp", "-o"]).arg(&program).arg(source).output();
        match built.is_ok_and(|o| o.status.success()) {
            true => TEAMS.iter().for_each(|team| compare(&program, &libraries, run_time, *team)),
            false => println!("skipped: there is no {compiler} with OpenMP"),
        }
    }
}

/// Prints what a chunk costs in each mode, beside the run-time's own.
fn compare(program: &Path, libraries: &str, run_time: &str, team: usize) {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cpus < team {
        return println!("skipped: a team of {team}, on {cpus} CPUs");
    }
    let run_time = &if team == TEAMS[0] { run_time.to_owned() } else { format!("{run_time}-{team}") };
    let modes = [None].into_iter().chain(Mode::ALL.iter().map(|(_, mode)| Some(*mode)));
    let mut times: Vec<(String, Vec<f64>)> = modes
        .clone()
        .map(|mode| (mode.map_or_else(|| run_time.clone(), |m| m.to_string()), Vec::new()))
        .collect();
    // One after the other, over and over: what else the machine does meets all of them.
    for _ in 0..REPEATED {
        for (mode, (_, times)) in modes.clone().zip(&mut times) {
            times.push(time(program, libraries, mode, team));
        }
    }
    let mut least = times.iter().map(|(_, t)| t.iter().copied().fold(f64::MAX, f64::min));
    let own = least.next().unwrap_or(f64::NAN);
    println!("bench: schedule/{run_time} {own:.2} ns");
    for ((name, _), ns) in times.iter().skip(1).zip(least) {
        let (more, ratio) = (ns - own, ns / own);
        println!("{name}: {ns:.2} ns a chunk, {run_time}'s own {own:.2} ns: {more:+.2} ns, {ratio:.2} times");
        println!("bench: schedule/{run_time}/{name} {ns:.2} ns");
    }
}

fn libraries() -> Option<String> {
    let folder = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let files: [PathBuf; 2] = ["libhomenode_loops.so", "libhomenode.so"].map(|name| folder.join(name));
    files.iter().all(|f| f.exists()).then(|| files.map(|f| f.display().to_string()).join(":"))
}

/// Nanoseconds of CPU time a chunk, which does not count what else the machine does.
fn time(program: &Path, libraries: &str, mode: Option<Mode>, team: usize) -> f64 {
    let mut command = Command::new(program);
    command
        .args(["time", EXECUTIONS, ITERATIONS])
        .env("OMP_NUM_THREADS", team.to_string())
        .env("OMP_WAIT_POLICY", "passive");
    if let Some(mode) = mode {
        let folder = program.with_extension("run");
        std::fs::create_dir_all(&folder).expect("a folder");
        let settings = Settings {
            policy: "first-touch".into(),
            arming: Arming::Asked,
            machine: MachineNodes::even(2, 1, Bytes::gib(1), 20),
            pretend: true,
            schedule: Some(RequestedSchedule { mode, from: false, to: false }),
            ..Settings::default()
        };
        let bytes = homenode_wire::encode(&settings).expect("settings");
        std::fs::write(folder.join(settings::FILE), bytes).expect("the settings' file");
        command.env("LD_PRELOAD", libraries).env(settings::RUN_DIR, &folder);
    }
    let out = command.output().expect("the program runs").stdout;
    String::from_utf8_lossy(&out).trim().parse().expect("a number")
}
