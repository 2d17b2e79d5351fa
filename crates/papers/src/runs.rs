//! Recordings of the papers' programs, and simulations of them with several models of the CPU.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use homenode_error::{Context, Error, Result};
use homenode_kernels::{self as kernels, Kernel};
use homenode_launch::record::directory::RecordingTarget;
use homenode_launch::record::{AccessRecorder, OutputTarget, RecordSpec, record};
use homenode_log::recording::Recording;
use homenode_model::{Bytes, CpuId, Placement, Topology};
use homenode_schemes::scheme::{Layout, Variant};
use homenode_schemes::{self as schemes, LoadedRecording};
use homenode_sim::memory::{MemoryOptions, MoveWorker, Outcome, Percent};
use homenode_sim::run::Job;
use homenode_task::Task;

/// A scheme on a machine: what one simulation is of.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub machine: Arc<Topology>,
    pub page: Bytes,
    pub layout: Layout,
    pub policy: String,
    pub coverage: Percent,
    pub mover: MoveWorker,
    /// CPUs of the threads instead of the layout's.
    pub binding: Option<Vec<CpuId>>,
    /// Homes known beforehand, instead of those that the policy `plan` works out.
    pub homes: Option<Arc<Placement>>,
}

impl Case {
    /// First touch, moves by the program's threads.
    pub(super) fn new(machine: Arc<Topology>, page: Bytes, layout: Layout, coverage: Percent) -> Self {
        let (policy, mover) = ("first-touch".to_owned(), MoveWorker::Program);
        Self { machine, page, layout, policy, coverage, mover, binding: None, homes: None }
    }
}

/// Which run of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// Empty: `more` says how large the problem is.
    pub class: String,
    pub threads: u32,
    /// 0: as many as the class has.
    pub iterations: u32,
    pub variant: Variant,
    /// Lines of the recorder's filter, in proportion to the caches: what fits into it costs no
    /// time.
    pub filter_lines: u32,
    /// Further arguments of the kernel.
    pub more: Vec<String>,
}

impl Run {
    /// All iterations of a class, without further arguments.
    pub(super) fn new(class: &str, threads: u32, variant: Variant, filter_lines: u32) -> Self {
        Self { class: class.to_owned(), threads, iterations: 0, variant, filter_lines, more: Vec::new() }
    }
}

/// Makes recordings in a folder, once each, and simulates them.
pub(super) struct Workshop<'a> {
    pub folder: PathBuf,
    pub workers: usize,
    pub task: &'a dyn Task,
}

impl Workshop<'_> {
    /// Simulates all cases of one run of `kernel`; outcomes in their order.
    ///
    /// # Errors
    /// The program cannot be built, recorded or simulated; the first case that fails.
    pub(super) fn outcomes(&self, kernel: &str, run: &Run, cases: &[Case]) -> Result<Vec<Outcome>> {
        let loaded = LoadedRecording::new(self.recording(kernel, run)?)?;
        let mut jobs = Vec::new();
        for case in cases {
            let laid_out = || schemes::binding(&case.machine, case.layout, run.threads as usize);
            let binding = case.binding.clone().map_or_else(laid_out, Ok);
            let binding = binding.map_err(|e| Error::usage(format!("{}: {e}", case.machine.name)))?;
            jobs.push(Job {
                machine: case.machine.clone(),
                binding,
                page: case.page,
                policy: case.policy.clone(),
                way: None,
                options: MemoryOptions {
                    coverage: case.coverage,
                    mover: case.mover,
                    plan: case.homes.clone(),
                    ..MemoryOptions::default()
                },
            });
        }
        let pass = schemes::Pass { loaded: &loaded, workers: self.workers, task: self.task };
        if cases.iter().all(|case| case.homes.is_none()) {
            pass.plan_ahead(&mut jobs)?;
        }
        let results = pass.simulate(&jobs)?;
        let failed = |e| Error::failed(format!("cannot simulate {kernel}: {e}"));
        results.outcomes.into_iter().map(|o| o.map_err(failed)).collect()
    }

    fn recording(&self, kernel: &str, run: &Run) -> Result<Recording> {
        let kernel = Kernel::find(kernel)?;
        let name = format!(
            "{}-{}-{}-threads-{}-iterations-{}-filter-{}{}",
            kernel.name,
            run.class,
            run.threads,
            run.iterations,
            run.variant.name(),
            run.filter_lines,
            run.more.iter().map(|word| format!("-{}", word.trim_start_matches('-'))).collect::<String>()
        );
        let path = self.folder.join(name);
        if path.exists() {
            let cannot = || String::from("cannot go on with an earlier recording");
            let earlier = Recording::open(&path).context(cannot)?;
            return match &earlier.damage {
                Some(damage) => Err(Error::failed(cannot()).tried(format!("{}: {damage}", path.display()))),
                None => Ok(earlier),
            };
        }
        let class = Some(run.class.as_str()).filter(|c| !c.is_empty());
        let mut args = kernel.arguments(class, Some(run.threads))?;
        let options: Vec<&String> = match run.variant {
            Variant::Serial | Variant::Changed(_) => {
                kernel.options_serial.iter().chain(&kernel.options_next_touch).collect()
            }
            Variant::Parallel => kernel.options_parallel.iter().collect(),
        };
        args.extend(options.into_iter().chain(&run.more).map(OsString::from));
        if run.iterations > 0 {
            args.extend(["--iterations".into(), run.iterations.to_string().into()]);
        }
        let spec = RecordSpec {
            program: kernel.build(kernels::BuildVariant::Instrumented, self.task)?.into_os_string(),
            args,
            target: RecordingTarget::Path { path, force: false },
            filter_lines: run.filter_lines,
            threads: Some(run.threads),
            streams: OutputTarget::File,
            way: AccessRecorder::Instrumented,
        };
        self.task.remark(&format_args!("recording {}", spec.command()));
        let recorded = record(&spec, self.task)?;
        if self.task.stop_asked() {
            return Err(Error::interrupted());
        }
        if !recorded.status.success() {
            return Err(Error::failed(format!("{} failed: {}", spec.command(), recorded.status))
                .tried(recorded.last_words()));
        }
        Ok(recorded.recording)
    }
}
