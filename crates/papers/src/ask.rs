//! What a user can ask of every table and figure.

use std::path::PathBuf;

use homenode_error::{Error, Result};

/// Options of all experiments; each takes those that it knows.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Programs by the paper's name or the kernel's; empty: all.
    pub programs: Vec<String>,
    /// Class of all programs instead of each one's default.
    pub class: Option<String>,
    /// Iterations to simulate instead of each program's own.
    pub iterations: Option<u32>,
    /// Numbers of processors instead of the paper's; empty: the paper's.
    pub processors: Vec<u32>,
    /// Machine instead of the paper's; `this` measures here (Robertson's alone).
    pub machine: Option<String>,
    /// Bytes of Robertson's buffers.
    pub buffer: Option<u64>,
    /// Runs of each of Robertson's experiments of Table 2.
    pub runs: u32,
    /// The smallest classes: the form of a table, not its numbers.
    pub small: bool,
    /// Where recordings are kept.
    pub folder: PathBuf,
    /// Host threads that simulate.
    pub workers: usize,
}

impl Ask {
    /// What is asked for unless a user says otherwise, with recordings in `folder`.
    pub fn usual(folder: PathBuf, workers: usize) -> Self {
        Self {
            programs: Vec::new(),
            class: None,
            iterations: None,
            processors: Vec::new(),
            machine: None,
            buffer: None,
            runs: 9,
            small: false,
            folder,
            workers,
        }
    }

    /// The class of a program: as asked for, else the smallest, else its default.
    pub(crate) fn class_of(&self, small: &str, usual: &str) -> String {
        match &self.class {
            Some(class) => class.to_uppercase(),
            None => (if self.small { small } else { usual }).to_owned(),
        }
    }

    /// Numbers of processors in ascending order, each once.
    pub(crate) fn processors_or(&self, usual: &[u32], most: u32) -> Result<Vec<u32>> {
        let mut all = if self.processors.is_empty() { usual.to_vec() } else { self.processors.clone() };
        all.sort_unstable();
        all.dedup();
        match all.iter().find(|p| **p < 2 || **p > most || **p % 2 == 1) {
            None => Ok(all),
            Some(p) => Err(Error::usage(format!("cannot use {p} processors"))
                .hint(format!("even numbers from 2 to {most}: the paper's machine has two a node"))),
        }
    }

    /// The same that tells results apart: folder and workers do not change a result.
    pub(crate) fn words(&self) -> String {
        format!(
            "programs {:?} class {:?} iterations {:?} processors {:?} machine {:?} buffer {:?} runs {} small {}",
            self.programs,
            self.class,
            self.iterations,
            self.processors,
            self.machine,
            self.buffer,
            self.runs,
            self.small
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_come_in_pairs() {
        let mut ask = Ask::usual(PathBuf::new(), 1);
        assert_eq!(ask.processors_or(&[16, 128], 128).unwrap(), [16, 128]);
        ask.processors = vec![8, 4, 8];
        assert_eq!(ask.processors_or(&[16], 128).unwrap(), [4, 8]);
        for bad in [1, 3, 130] {
            ask.processors = vec![bad];
            assert!(ask.processors_or(&[16], 128).is_err(), "{bad}");
        }
    }
}
