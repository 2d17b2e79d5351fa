//! The simulations of an explanation.

use std::ops::Range;

use homenode_sim::run::Job;

use crate::effect::variants;

/// Jobs by number: one or several simulations each.
pub(crate) struct Jobs {
    /// All simulations.
    pub all: Vec<Job>,
    /// The simulations of each number.
    pub ranges: Vec<Range<usize>>,
    /// Whether effects have a range.
    pub vary: bool,
}

impl Jobs {
    fn add(&mut self, jobs: impl IntoIterator<Item = Job>) -> usize {
        let from = self.all.len();
        self.all.extend(jobs);
        self.ranges.push(from..self.all.len());
        self.ranges.len() - 1
    }

    /// One simulation.
    pub fn plain(&mut self, job: Job) -> usize {
        self.add([job])
    }

    /// One simulation for each further way to hide latency.
    pub fn variants(&mut self, job: &Job) -> usize {
        let all = if self.vary { variants(job).to_vec() } else { Vec::new() };
        self.add(all)
    }

    /// The job and its variants.
    pub fn varied(&mut self, job: &Job) -> usize {
        let all = if self.vary { variants(job).to_vec() } else { Vec::new() };
        self.add(std::iter::once(job.clone()).chain(all))
    }
}
