//! Recordings of the papers' programs, and simulations of them with several models of the CPU.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use homenode_log::recording::Recording;
use homenode_model::{Bytes, Topology};
use homenode_sim::memory::{MemoryOptions, Outcome, Percent};
use homenode_sim::run::Job;

use super::numbers::Program;
use crate::error::{CliError, Context, Result};
use crate::interrupt::Interrupt;
use crate::kernels::{self, Kernel};
use crate::output::say;
use crate::recorder::directory::Target;
use crate::recorder::{RecordSpec, Streams, Way, record};
use crate::simulate::scheme::{Layout, Variant};
use crate::simulate::{self, Loaded};

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
    pub iterations: u32,
    pub variant: Variant,
    /// Lines of the recorder's filter, in proportion to the caches: what fits into it costs no time.
    pub filter_lines: u32,
}

/// Makes recordings in a folder, once each, and simulates them.
pub(super) struct Workshop<'a> {
    pub folder: PathBuf,
    pub workers: usize,
    pub quiet: bool,
    pub interrupt: &'a Interrupt,
}

impl Workshop<'_> {
    /// Simulates all cases of one run of `program`; outcomes in their order.
    ///
    /// # Errors
    /// The program cannot be built, recorded or simulated; the first case that fails.
    pub(super) fn outcomes(&self, program: &Program, run: &Run, cases: &[Case]) -> Result<Vec<Outcome>> {
        let loaded = Loaded::new(self.recording(program, run)?)?;
        let mut jobs = Vec::new();
        for case in cases {
            let binding = simulate::binding(&case.machine, case.layout, run.threads as usize)
                .map_err(|e| CliError::usage(format!("{}: {e}", case.machine.name)))?;
            jobs.push(Job {
                machine: case.machine.clone(),
                binding,
                page: case.page,
                policy: case.policy.into(),
                way: None,
                options: MemoryOptions { coverage: case.coverage, ..MemoryOptions::default() },
            });
        }
        let (workers, quiet, interrupt) = (self.workers, self.quiet, self.interrupt);
        let results = simulate::Pass { loaded: &loaded, workers, quiet, interrupt }.simulate(&jobs)?;
        let failed = |e| CliError::failed(format!("cannot simulate {}: {e}", program.kernel));
        results.outcomes.into_iter().map(|o| o.map_err(failed)).collect()
    }

    fn recording(&self, program: &Program, run: &Run) -> Result<Recording> {
        let kernel = Kernel::find(program.kernel)?;
        let name = format!(
            "{}-{}-{}-threads-{}-iterations-{}-filter-{}",
            program.kernel,
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
        args.extend(["--iterations".into(), run.iterations.to_string().into()]);
        let spec = RecordSpec {
            program: kernel.build(kernels::Variant::Instrumented)?.into_os_string(),
            args,
            target: Target::Path { path, force: false },
            filter_lines: run.filter_lines,
            threads: Some(run.threads),
            streams: Streams::File,
            way: Way::Instrumented,
        };
        if !self.quiet {
            say(format_args!("recording {}", spec.command()));
        }
        let recorded = record(&spec)?;
        if self.interrupt.asked() {
            return Err(CliError::failed("interrupted").code(crate::exit::Exit::Partial));
        }
        if !recorded.status.success() {
            return Err(CliError::failed(format!("{} failed: {}", spec.command(), recorded.status))
                .tried(recorded.last_words()));
        }
        Ok(recorded.recording)
    }
}
