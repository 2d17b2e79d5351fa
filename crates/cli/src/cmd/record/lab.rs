//! `homenode record --on lab`: the program on the virtual machine, its main-memory accesses counted from outside.

use std::fmt::Write as _;
use std::fs;

use homenode_lab::monitor::{self, Found, Whose};
use homenode_lab::run::{self as lab, Lab, Marks, Monitoring, Outcome, Watch};
use homenode_lab::scratch::Scratch;
use homenode_lab::wire::Status;
use homenode_log::recording::{Ended, Meta, Recording};
use homenode_model::Topology;
use serde_json::json;

use crate::args::record::RecordArgs;
use crate::cmd::lab::{Signals, exit_of, program, report, streams};
use crate::counted;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::kernels::Variant;
use crate::output::say;
use crate::places;
use crate::recorder::directory::{self, LAB, Target};
use crate::recorder::{self, shown};

/// Whose caches and latencies are modelled when no machine is named.
const LIKE: &str = "epyc-nps4";
/// How the library in the program's processes learns where its marks go; `homenode_trace::start` reads it.
const MARKS: &str = "HOMENODE_MARKS_DIR";

/// The machine that is modelled behind a lab: of `name`, or with the caches of [`LIKE`].
pub(in crate::cmd) fn modelled(lab: &Lab, name: Option<&str>) -> Result<Topology> {
    let like = homenode_machine::resolve(name.unwrap_or(LIKE))
        .context(|| format!("cannot use the machine '{}'", name.unwrap_or(LIKE)))?;
    Ok(monitor::modelled(&lab.machine, &like.topology, name.is_some()))
}

impl RecordArgs {
    pub(super) fn on_lab(self) -> Result<Exit> {
        // With homenode's C library kernels tell of their iterations, and what is counted is told apart by them.
        let program = program(self.subject()?, &self.run, Variant::Linked)?;
        let mut lab = self.lab.lab(self.run.threads)?;
        let machine = modelled(&lab, self.lab.machine.as_deref())?;
        lab.monitor = Some(Monitoring { library: places::monitor()?, machine: machine.clone() });
        let marks = Scratch::make(&lab.scratch).map_err(CliError::from)?;
        if recorder::program::is_static(&program.path) {
            let name = shown(&program.path);
            say(format_args!(
                "{name} is linked statically: nothing can tell of its allocations, so that its pages have no names"
            ));
        } else {
            let (library, folder) = (places::guest_library()?, marks.path().to_owned());
            lab.marks = Some(Marks { library, variable: MARKS, folder });
        }
        let target = match &self.output {
            Some(path) => Target::Path { path: path.clone(), force: self.force },
            None => Target::Free(recorder::stem(program.path.file_name().unwrap_or(&program.name))),
        };
        let words = std::iter::once(&program.name).chain(&program.args);
        let meta = Meta {
            format: homenode_log::VERSION,
            homenode: env!("CARGO_PKG_VERSION").into(),
            kind: "emulated".into(),
            command: words.map(|w| w.to_string_lossy().into_owned()).collect(),
            environment: Default::default(),
            filter_lines: 0,
            ended: None,
        };
        let mut signals = Signals::watch().context(|| "cannot watch for signals".into())?;
        let mut watch = Watch { timeout: None, signal: &mut || signals.next(), say: &mut |_| {} };
        let mut recording = directory::make(&target, meta)?;
        let ran = lab::run(&lab, &program, streams(&lab), &mut watch).map_err(CliError::from);
        let ran = ran.inspect_err(|_| drop(directory::remove(&recording.path)));
        let outcome = ran?;
        let found = outcome.found.as_ref().ok_or_else(|| CliError::failed("the monitor counted nothing"))?;
        let told = counted::objects::read(marks.path());
        let rows = counted::rows(found, &told.objects);
        counted::write(&recording, &rows, &told.objects)?;
        keep(&mut recording, &outcome, found, &machine, told.iterations)?;
        report(&outcome, &lab, self.quiet);
        for trouble in told.trouble.iter().filter(|_| !self.quiet) {
            say(trouble);
        }
        if !self.quiet {
            let text = table(found, &machine);
            match &self.summary {
                None => say(format_args!("{} (emulated)\n{text}", shown(&recording.path))),
                Some(path) => fs::write(path, text).context(|| format!("cannot write {}", path.display()))?,
            }
        }
        Ok(exit_of(&outcome))
    }
}

fn keep(
    recording: &mut Recording,
    outcome: &Outcome,
    found: &Found,
    machine: &Topology,
    iterations: u32,
) -> Result<()> {
    let (status, signal) = match outcome.status {
        Status::Exit(n) => (Some(i32::from(n)), None),
        Status::Signal(n) => (None, Some(i32::from(n))),
    };
    let elapsed_ns = u64::try_from(outcome.elapsed.as_nanos()).unwrap_or(u64::MAX);
    recording.meta.ended = Some(Ended { status, signal, elapsed_ns });
    recording.save_meta().context(|| "cannot finish the recording".into())?;
    let cpus: Vec<_> = found
        .cpus
        .iter()
        .zip(&machine.cpus)
        .map(|(c, node)| {
            let [program, others, kernel] =
                [Whose::Program, Whose::Others, Whose::Kernel].map(|w| found.of(c, w));
            json!({
                "node": node.0, "accesses_program": program.accesses, "accesses_others": others.accesses,
                "accesses_kernel": kernel.accesses, "memory_cold": c.misses[0], "memory_capacity": c.misses[1],
                "memory_coherence": c.misses[2], "memory_upgrade": c.misses[3],
                "program_local": program.local, "program_remote": program.remote,
                "others_local": others.local, "others_remote": others.remote,
                "kernel_local": kernel.local, "kernel_remote": kernel.remote, "modelled_ps": c.time.0,
            })
        })
        .collect();
    let caches: Vec<_> = machine
        .caches
        .iter()
        .map(|c| json!({ "level": c.level, "bytes": c.size.0, "line": c.line.0, "ways": c.ways }))
        .collect();
    let processes: Vec<_> = found
        .processes
        .iter()
        .map(|(number, p)| {
            let of = |c: &monitor::Cpu| c.shares.get(number).copied().unwrap_or_default();
            let sum = |f: fn(monitor::Share) -> u64| found.cpus.iter().map(|c| f(of(c))).sum::<u64>();
            json!({
                "process": p.id, "name": p.name, "of_the_program": found.whose(*number) == Whose::Program,
                "accesses": sum(|s| s.accesses), "local": sum(|s| s.local), "remote": sum(|s| s.remote),
            })
        })
        .collect();
    let about = json!({
        "schema": "homenode/lab/2", "kind": "emulated", "machine": machine.name, "linux": outcome.kernel,
        "iterations_told": iterations, "caches": caches, "cpus": cpus, "processes": processes, "lost": found.lost,
        "latency_ns": machine.node_ids().map(|n| machine.latency.row(n).iter().map(|l| l.0).collect()).collect::<Vec<Vec<u64>>>(),
        "modelled": "time: one miss at a time, no contention of controllers and links",
        "measured": "accesses by page and node",
    });
    counted::put(recording, LAB, &format!("{about:#}\n"))
}

/// A line a CPU.
fn table(found: &Found, machine: &Topology) -> String {
    let mut out = String::from(
        "  cpu  node      accesses    to memory        local       remote  remote  kernel's   modelled\n",
    );
    for (i, (c, node)) in found.cpus.iter().zip(&machine.cpus).enumerate() {
        let [program, kernel] = [Whose::Program, Whose::Kernel].map(|w| found.of(c, w));
        let (local, remote) = (program.local, program.remote);
        let share = 100.0 * remote as f64 / ((local + remote).max(1)) as f64;
        let (all, kernel) = (program.accesses, kernel.local + kernel.remote);
        let _ = writeln!(
            out,
            "  {i:3}  {:4}  {all:12} {:12} {local:12} {remote:12}  {share:4.1} %  {kernel:8}  {:7.3} s",
            node.0,
            local + remote,
            c.time.secs()
        );
    }
    out
}
