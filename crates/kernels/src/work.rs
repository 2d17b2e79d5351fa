//! What one round of a kernel does, as formulas in its size: see `kernels/README.md`, "What a round
//! does".

use std::collections::BTreeMap;

use serde::Deserialize;

use super::formula::{FormulaValues, evaluate};

/// A kernel's `[kernel.work]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Names for the formulas after it, in order: name, formula.
    #[serde(default)]
    pub define: Vec<(String, String)>,
    /// Bytes of each main array.
    pub arrays: BTreeMap<String, String>,
    /// Loads of a round from the main arrays, as the source has them.
    pub loads: String,
    /// Stores of a round to the main arrays.
    pub stores: String,
    /// Floating-point operations of a round.
    pub flops: String,
    /// Parallel constructs of a round, in the order in which it first enters them.
    pub region: Vec<KernelRegion>,
    /// Sizes for the comparison with the recorder.
    pub tested: [u64; 2],
    /// More options for it.
    #[serde(default)]
    pub tested_options: Vec<String>,
}

/// One parallel construct.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct KernelRegion {
    /// The routine that it stands in, for people.
    pub name: String,
    /// Different 64-byte lines of heap arrays that a round touches in it, however often it enters
    /// it.
    pub lines: String,
}

/// The formulas' values.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Bytes of each array.
    pub arrays: BTreeMap<String, f64>,
    /// Loads, stores and floating-point operations of the round.
    pub loads: f64,
    /// See `loads`.
    pub stores: f64,
    /// See `loads`.
    pub flops: f64,
    /// Lines of each region.
    pub lines: Vec<(String, f64)>,
}

impl Work {
    /// The figures of round `round` (from 0) at `--size size` with `threads` threads.
    ///
    /// # Errors
    /// Which formula is wrong, and why.
    pub fn figures(&self, size: u64, threads: u32, round: u32) -> Result<Figures, String> {
        let mut names = FormulaValues::new();
        // Sizes are far below 2^53.
        names.insert("n".into(), size as f64);
        names.insert("t".into(), f64::from(threads));
        names.insert("i".into(), f64::from(round));
        for (name, formula) in &self.define {
            let value = evaluate(formula, &names)?;
            names.insert(name.clone(), value);
        }
        let value = |formula: &String| match evaluate(formula, &names)? {
            value if value < 0.0 => Err(format!("'{formula}' is {value} at size {size}")),
            value => Ok(value),
        };
        Ok(Figures {
            arrays: self
                .arrays
                .iter()
                .map(|(k, f)| Ok((k.clone(), value(f)?)))
                .collect::<Result<_, String>>()?,
            loads: value(&self.loads)?,
            stores: value(&self.stores)?,
            flops: value(&self.flops)?,
            lines: self
                .region
                .iter()
                .map(|r| Ok((r.name.clone(), value(&r.lines)?)))
                .collect::<Result<_, String>>()?,
        })
    }
}
