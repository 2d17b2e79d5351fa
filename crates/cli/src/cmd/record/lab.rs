//! `homenode record --on lab`: the program on the virtual machine, its main-memory accesses counted
//! from outside.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use homenode_dataset::{Basis, DatasetMeta, DatasetWriter, Ended, RecordingKind};
use homenode_error::{Context, Error, Result};
use homenode_kernels::BuildVariant;
use homenode_lab::monitor::{self, AccessOwner, MonitorReport};
use homenode_lab::recording::about::{self, About};
use homenode_lab::recording::told::ProcessReports;
use homenode_lab::recording::{LabRun, marks};
use homenode_lab::run::{self as lab, Lab, Marks, Monitoring, RunOutcome, Supervision};
use homenode_lab::wire::ProgramEnd;
use homenode_launch::places;
use homenode_launch::rank::own_path;
use homenode_launch::record::directory::{self, RecordingTarget};
use homenode_launch::record::{self as recorder, shown};
use homenode_model::{Ns, Topology};
use homenode_scratch::Scratch;

use super::names;
use crate::args::record::RecordArgs;
use crate::cmd::lab::{Signals, exit_of, program, report, streams};
use crate::exit::Exit;
use crate::output::say;

/// Whose caches and latencies are modelled when no machine is named.
const LIKE: &str = "epyc-nps4";
/// How the library in the program's processes learns where its marks go; `homenode_trace::start`
/// reads it.
const MARKS: &str = "HOMENODE_MARKS_DIR";
/// Variables that a data set may hold, by their beginning.
const KEPT: [&str; 3] = ["OMP_", "GOMP_", "KMP_"];

/// The machine that is modelled behind a lab: of `name`, or with the caches of [`LIKE`].
pub(in crate::cmd) fn modelled(lab: &Lab, name: Option<&str>) -> Result<Topology> {
    let like = homenode_schemes::machine(name.unwrap_or(LIKE))?;
    Ok(monitor::modelled(&lab.machine, &like.topology, name.is_some()))
}

impl RecordArgs {
    pub(super) fn on_lab(self) -> Result<Exit> {
        // Kernels that are linked with homenode's C library report their iterations. The counts are
        // then split by iteration.
        let program = program(self.subject()?, &self.run, BuildVariant::Linked)?;
        let mut lab = self.lab.lab(self.run.threads)?;
        let machine = modelled(&lab, self.lab.machine.as_deref())?;
        lab.monitor = Some(Monitoring { library: places::monitor()?, machine: machine.clone() });
        let scratch = Scratch::inside(&lab.scratch, "lab")?;
        if homenode_launch::program::is_static(&program.path) {
            let name = shown(&program.path);
            say(format_args!(
                "{name} is linked statically: nothing can tell of its allocations, so that its pages have no names"
            ));
        } else {
            let (library, folder) = (places::guest_library()?, scratch.path().to_owned());
            lab.marks = Some(Marks { library, variable: MARKS, folder });
        }
        let target = match &self.output {
            Some(path) => RecordingTarget::Path { path: own_path(path), force: self.force },
            None => RecordingTarget::Free(recorder::stem(program.path.file_name().unwrap_or(&program.name))),
        };
        let words = std::iter::once(&program.name).chain(&program.args);
        let command = words.map(|w| w.to_string_lossy().into_owned()).collect();
        let meta = described(command, &lab, &machine);
        let mut signals = Signals::watch().context(|| "cannot watch for signals".into())?;
        let mut watch = Supervision { timeout: None, signal: &mut || signals.next(), say: &mut |_| {} };
        // Known before the run: whether it may be written.
        let path = directory::make_folder(&target)?;
        let ran = lab::run(&lab, &program, streams(&lab), &mut watch);
        let outcome = ran.inspect_err(|_| drop(fs::remove_dir(&path)))?;
        let found = outcome.found.as_ref().ok_or_else(|| Error::failed("the monitor counted nothing"))?;
        let told = ProcessReports::of(&marks::read(scratch.path()), found, names::of);
        let elapsed = Ns(u64::try_from(outcome.elapsed.as_nanos()).unwrap_or(u64::MAX));
        let balancing = lab.numa_balancing;
        let run =
            LabRun { found, told: &told, machine: &lab.machine, modelled: &machine, elapsed, balancing };
        write(&path, meta, &run, &outcome)?;
        report(&outcome, &lab, self.quiet);
        for trouble in told.trouble.iter().chain(&told.bounded).filter(|_| !self.quiet) {
            say(trouble);
        }
        if !self.quiet {
            let text = table(found, &machine);
            match &self.summary {
                None => say(format_args!("{} (emulated)\n{text}", shown(&path))),
                Some(path) => fs::write(path, text).context(|| format!("cannot write {}", path.display()))?,
            }
        }
        Ok(exit_of(&outcome))
    }
}

/// What the data set says of itself before the run.
fn described(command: Vec<String>, lab: &Lab, machine: &Topology) -> DatasetMeta {
    let mut meta = DatasetMeta::new(RecordingKind::Lab, Basis::Emulated, command);
    meta.machine.clone_from(&machine.name);
    meta.source = "the lab's monitor".into();
    // As 'compare --on lab' calls them.
    meta.policy = lab.numa_balancing.map(|on| if on { "balancing" } else { "first-touch" }.to_owned());
    let kept = lab.env.iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| KEPT.iter().any(|k| name.starts_with(k)))?;
        Some((name.to_owned(), value.to_string_lossy().into_owned()))
    });
    meta.environment = kept.collect();
    meta
}

/// Writes the data set.
fn write(path: &Path, meta: DatasetMeta, run: &LabRun<'_>, outcome: &RunOutcome) -> Result<()> {
    let cannot = || format!("cannot write the recording {}", shown(path));
    let mut writer = DatasetWriter::create(path, meta).context(cannot)?;
    let said = run.fill(&mut writer).context(cannot)?;
    let meta = writer.meta();
    meta.notes.push(format!("it ran on Linux {}", outcome.kernel));
    meta.notes.extend(said.notes);
    meta.coarsened.extend(said.coarsened);
    meta.incomplete.extend(said.incomplete);
    let about = serde_json::to_string_pretty(&About::of(run, &outcome.kernel)).context(cannot)?;
    fs::write(path.join(about::FILE), about + "\n").context(cannot)?;
    let (status, signal) = match outcome.status {
        ProgramEnd::Exit(n) => (Some(i32::from(n)), None),
        ProgramEnd::Signal(n) => (None, Some(i32::from(n))),
    };
    writer.finish(Ended { status, signal, elapsed_ns: run.elapsed.0 }).context(cannot)?;
    Ok(())
}

/// A line a CPU.
fn table(found: &MonitorReport, machine: &Topology) -> String {
    let mut out = String::from(
        "  cpu  node      accesses    to memory        local       remote  remote  kernel's   modelled\n",
    );
    for (i, (c, node)) in found.cpus.iter().zip(&machine.cpus).enumerate() {
        let [program, kernel] = [AccessOwner::Program, AccessOwner::Kernel].map(|w| found.of(c, w));
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
