//! From the start of QEMU to the program's first instruction: four nodes, emulated. The goal is 8 s
//! on two cores.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use homenode_lab::kernel::WantedKernel;
use homenode_lab::machine::VirtualMachine;
use homenode_lab::run::{self, AccelChoice, Lab, Program, StreamTargets, Supervision};
use homenode_model::Bytes;

const REPETITIONS: usize = 3;

fn main() {
    let lab = Lab {
        machine: VirtualMachine::even(4, 1, Bytes::mib(512), 21).expect("a machine"),
        kernel: WantedKernel::Distribution,
        qemu: None,
        accel: AccelChoice::Tcg,
        deterministic: false,
        numa_balancing: None,
        thp: None,
        with: Vec::new(),
        spare: Bytes::mib(64),
        env: BTreeMap::new(),
        cwd: std::env::temp_dir(),
        carry_cwd: false,
        sync: false,
        root: false,
        guest: PathBuf::from(env!("CARGO_BIN_EXE_homenode-lab-guest")),
        scratch: std::env::temp_dir(),
        monitor: None,
        marks: None,
    };
    let program = Program { path: "/bin/true".into(), name: "true".into(), args: Vec::new() };
    let mut times = Vec::new();
    for _ in 0..REPETITIONS {
        let streams =
            StreamTargets { stdin: None, stdout: Box::new(io::sink()), stderr: Box::new(io::stderr()) };
        let mut watch =
            Supervision { timeout: None, signal: &mut || None, say: &mut |what| eprintln!("{what}") };
        match run::run(&lab, &program, streams, &mut watch) {
            Ok(outcome) => times.push(outcome.boot.as_secs_f64()),
            Err(e) => {
                println!("skipped: {e}");
                return;
            }
        }
    }
    times.sort_by(f64::total_cmp);
    println!("boots of four nodes to the first instruction: {times:.1?} s, goal 8 s");
    println!("bench: lab/boot {:.3} s", times[0]);
}
