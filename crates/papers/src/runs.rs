//! Recordings of the papers' programs, and simulations of them with several models of the CPU.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use homenode_error::{Context, Error, Result};
use homenode_kernels::{self as kernels, Kernel};
use homenode_launch::record::directory::Target;
use homenode_launch::record::{RecordSpec, Streams, Way, record};
use homenode_log::recording::Recording;
use homenode_model::{Bytes, Topology};
use homenode_schemes::scheme::{Layout, Variant};
use homenode_schemes::{self as schemes, Loaded};
use homenode_sim::memory::{MemoryOptions, Outcome, Percent};
use homenode_sim::run::Job;
use homenode_task::Task;

/// A scheme on a machine: what one simulation is of.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub machine: Arc<Topology>,
    pub page: Bytes,
    pub layout: Layout,
    pub policy: &'static str,
    pub coverage: Percent,
}

/// Which run of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub class: String,
    pub threads: u32,
    /// 0: as many as the class has.
    pub iterations: u32,
    pub variant: Variant,
    /// Lines of the recorder's filter, in proportion to the caches: what fits into it costs no
    /// time.
    pub filter_lines: u32,
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
        let loaded = Loaded::new(self.recording(kernel, run)?)?;
        let mut jobs = Vec::new();
        for case in cases {
            let binding = schemes::binding(&case.machine, case.layout, run.threads as usize)
                .map_err(|e| Error::usage(format!("{}: {e}", case.machine.name)))?;
            jobs.push(Job {
                machine: case.machine.clone(),
                binding,
                page: case.page,
                policy: case.policy.into(),
                way: None,
                options: MemoryOptions { coverage: case.coverage, ..MemoryOptions::default() },
            });
        }
        let pass = schemes::Pass { loaded: &loaded, workers: self.workers, task: self.task };
        pass.plan_ahead(&mut jobs)?;
        let results = pass.simulate(&jobs)?;
        let failed = |e| Error::failed(format!("cannot simulate {kernel}: {e}"));
        results.outcomes.into_iter().map(|o| o.map_err(failed)).collect()
    }

    fn recording(&self, kernel: &str, run: &Run) -> Result<Recording> {
        let kernel = Kernel::find(kernel)?;
        let name = format!(
            "{}-{}-{}-threads-{}-iterations-{}-filter-{}",
            kernel.name,
            run.class,
            run.threads,
            run.iterations,
            run.variant.name(),
            run.filter_lines
        );
        let path = self.folder.join(name);
        if path.exists() {
            return Recording::open(&path).context(|| "cannot go on with an earlier recording".into());
        }
        let mut args = kernel.arguments(Some(&run.class), Some(run.threads))?;
        let options: Vec<&String> = match run.variant {
            Variant::Serial => kernel.options_serial.iter().chain(&kernel.options_next_touch).collect(),
            Variant::Parallel => kernel.options_parallel.iter().collect(),
        };
        args.extend(options.into_iter().map(OsString::from));
        if run.iterations > 0 {
            args.extend(["--iterations".into(), run.iterations.to_string().into()]);
        }
        let spec = RecordSpec {
            program: kernel.build(kernels::Variant::Instrumented, self.task)?.into_os_string(),
            args,
            target: Target::Path { path, force: false },
            filter_lines: run.filter_lines,
            threads: Some(run.threads),
            streams: Streams::File,
            way: Way::Instrumented,
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
