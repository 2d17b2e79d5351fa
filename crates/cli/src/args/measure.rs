//! `homenode measure`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use homenode_error::size;
use homenode_measure::{
    MeasureRequest, MeasurementKind, Mix, NodeNumber, NodePair, Op, PageSize, Sabotage, Stores,
};
use homenode_model::Bytes;

use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode measure --quick                                a minute on four nodes
  homenode measure --only latency,bandwidth --json > now.json
  homenode measure --pairs 0:1,1:0                        two threads, each on the other's memory, at once
  homenode measure --machine-file mine.toml --hwloc-xml mine.xml
  homenode measure --synthetic epyc-nps4                  what the report of a described machine looks like
  homenode diff before.json after.json

A cell is a number only if its thread and its pages were where they should be, before and after; others say why.
Noisy (~): the median varies by more than 2 %. Status 3: some cells are missing.";

/// Latency, bandwidth and migration between nodes, with proof of where the memory was
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct MeasureArgs {
    /// Measure with fewer loops and points, for less time: within a minute on four nodes. Without
    /// --time and --buffer, skip measurements that have not begun by then
    #[arg(long)]
    pub quick: bool,
    /// Measure these alone: latency, bandwidth, loaded, core, migration
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub only: Vec<MeasurementKind>,
    /// Bandwidth of these pairs (thread's node:memory's node), all at once
    #[arg(long, value_name = "T:M", value_delimiter = ',')]
    pub pairs: Vec<NodePair>,
    /// These nodes alone, for threads and for memory
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "pairs")]
    pub nodes: Vec<u16>,
    /// Page sizes [default: 4k,2m]
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub pages: Vec<PageSizeArg>,
    /// Loops [default: all; with --quick triad,read]
    #[arg(long, value_name = "LOOP", value_delimiter = ',')]
    pub ops: Vec<LoopArg>,
    /// Kinds of stores [default: both; with --quick regular]
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub stores: Vec<StoresArg>,
    /// Threads a pair [default: one for each core of the node]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Size of latency's buffer and of each array of bandwidth [default: 4 times all last-level
    /// cache]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub buffer: Option<Bytes>,
    /// Distance of the places that latency reads [default: 256]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub stride: Option<Bytes>,
    /// How much is moved at a time [default: 64M; with --quick 16M]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub move_buffer: Option<Bytes>,
    /// Lines read for each that is written back, under load: 1:0, 2:1, 1:1
    #[arg(long, value_name = "R:W", value_delimiter = ',')]
    pub mix: Vec<Mix>,
    /// Milliseconds of an idle latency; other kinds take their share of it [default: 1000; with
    /// --quick 300]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..600_000))]
    pub time: Option<u64>,
    /// How often all is measured, with memory placed anew: numbers that differ are marked noisy
    /// [default: 2; with --quick 3, as far as there is time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..100))]
    pub passes: Option<u32>,
    /// Measure nothing: report the description of a machine (a name, a file, hwloc's notation)
    #[arg(long, value_name = "M", conflicts_with = "tree")]
    pub synthetic: Option<String>,
    /// Measure nothing: report on a machine whose /sys and /proc were recorded (a folder, or a file
    /// of scripts/record-sysfs.sh)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["machine_file", "hwloc_xml"])]
    pub tree: Option<PathBuf>,
    /// Write a machine file, for --machine everywhere
    #[arg(long, value_name = "FILE")]
    pub machine_file: Option<PathBuf>,
    /// Write hwloc's XML with the measured latencies and bandwidths as memory attributes
    #[arg(long, value_name = "FILE")]
    pub hwloc_xml: Option<PathBuf>,
    /// Put a fault in, to see that it is found
    #[arg(long, value_name = "FAULT", hide = true)]
    pub sabotage: Option<FaultArg>,
    /// The form of the result.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageSizeArg {
    /// 4 KiB.
    #[value(name = "4k", alias = "4K")]
    Small,
    /// 2 MiB.
    #[value(name = "2m", alias = "2M")]
    Huge,
}

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoopArg {
    /// Sum of a.
    Read,
    /// c = q.
    Write,
    /// c = a.
    Copy,
    /// b = q c.
    Scale,
    /// c = a + b.
    Add,
    /// a = b + q c.
    Triad,
}

/// A kind of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoresArg {
    /// Through the caches.
    Regular,
    /// Past them.
    NonTemporal,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FaultArg {
    /// Memory on another node than is said.
    Misplace,
    /// A page that moves away.
    Migrate,
}

impl From<FaultArg> for Sabotage {
    fn from(fault: FaultArg) -> Self {
        match fault {
            FaultArg::Misplace => Self::Misplace,
            FaultArg::Migrate => Self::Migrate,
        }
    }
}

impl MeasureArgs {
    /// What is asked for.
    pub fn ask(&self) -> MeasureRequest {
        let mut ask = if self.quick { MeasureRequest::quick() } else { MeasureRequest::all() };
        if !self.only.is_empty() {
            ask.kinds = self.only.iter().copied().collect();
        } else if !self.pairs.is_empty() {
            ask.kinds = [MeasurementKind::Bandwidth].into();
        }
        ask.pairs.clone_from(&self.pairs);
        if !self.pairs.is_empty() && self.threads.is_none() {
            // As in Robertson's Table 1: a thread a pair.
            ask.threads = Some(1);
        }
        ask.nodes = self.nodes.iter().copied().map(NodeNumber).collect();
        if !self.pages.is_empty() {
            let size =
                |p: &PageSizeArg| if *p == PageSizeArg::Small { PageSize::Small } else { PageSize::Huge };
            ask.pages = self.pages.iter().map(size).collect();
        }
        if !self.ops.is_empty() {
            ask.ops = self.ops.iter().map(|o| o.op()).collect();
        }
        if !self.stores.is_empty() {
            let kind =
                |s: &StoresArg| if *s == StoresArg::Regular { Stores::Regular } else { Stores::NonTemporal };
            ask.stores = self.stores.iter().map(kind).collect();
        }
        if !self.mix.is_empty() {
            ask.mixes.clone_from(&self.mix);
        }
        ask.threads = self.threads.or(ask.threads);
        ask.buffer = self.buffer.map(|b| b.0);
        ask.stride = self.stride.map_or(ask.stride, |b| b.0);
        ask.move_buffer = self.move_buffer.map_or(ask.move_buffer, |b| b.0);
        ask.time_ms = self.time.unwrap_or(ask.time_ms);
        ask.passes = self.passes.unwrap_or(ask.passes);
        if self.time.is_some() || self.buffer.is_some() {
            // Who says how long or how much means it.
            ask.limit_s = None;
        }
        ask
    }
}

impl LoopArg {
    const fn op(self) -> Op {
        match self {
            Self::Read => Op::Read,
            Self::Write => Op::Write,
            Self::Copy => Op::Copy,
            Self::Scale => Op::Scale,
            Self::Add => Op::Add,
            Self::Triad => Op::Triad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn words_become_a_wish() {
        let ask = |line: &str| parse::<MeasureArgs>(line).unwrap().ask();
        let a = ask("measure --quick --only latency,core --pages 2m --buffer 8M");
        assert_eq!((a.kinds.len(), a.pages, a.buffer), (2, vec![PageSize::Huge], Some(8 << 20)));
        let a = ask("measure --pairs 0:1,1:0");
        assert_eq!(
            (a.kinds.len(), a.pairs, a.threads),
            (1, vec![NodePair::new(0, 1), NodePair::new(1, 0)], Some(1))
        );
        for wrong in ["--pairs 0", "--only x", "--mix 0:1", "--threads 0", "--pairs 0:0 --nodes 0"] {
            assert!(parse::<MeasureArgs>(&format!("measure {wrong}")).is_err(), "{wrong}");
        }
    }
}
