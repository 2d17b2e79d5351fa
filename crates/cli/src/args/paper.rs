//! `homenode paper`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use homenode_error::size;
use homenode_model::Bytes;

use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode paper lof-table1                              times of all schemes, the paper's beside ours
  homenode paper lof-table1 --program nas-mg --class W   a smaller problem, with smaller caches
  homenode paper lof-table3 --keep recordings            go on with these recordings next time
  homenode paper tao-table1 --program sor                moves of pages, the paper's beside ours
  homenode paper robertson-table1                        bandwidth of pairs of threads and memory, measured here
  homenode paper lof-fit --program nas-cg                the coverage that gives the paper's SI/UMA

Löf's and Tao's are simulated, Robertson's are measured on this machine. Löf's sizes take minutes, memory and disk: NAS CG B records about 2 GB.";

/// A table or figure of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Löf et al.: times of all placement schemes
    LofTable1,
    /// Löf et al.: share of remote accesses
    LofTable2,
    /// Löf et al.: what migration costs
    LofTable3,
    /// Löf et al.: time per iteration of NAS-CG and NAS-MG
    LofFig1,
    /// Löf et al.: time per iteration of I-CG and I-MG
    LofFig2,
    /// Löf et al.: a daemon that migrates, on WildFire
    LofFig3,
    /// Not in the paper: the coverage of streams with which SI/UMA of Table 1 comes out
    LofFit,
    /// Tao et al.: moves of pages by program and migration scheme
    TaoTable1,
    /// Tao et al.: times of the unoptimised program, of each scheme, and of a manual placement
    TaoFig2,
    /// Robertson and Rendell: latency of one node's memory from all nodes
    RobertsonFig2,
    /// Robertson and Rendell: bandwidth of one or two threads, each with memory of one's choice
    RobertsonTable1,
    /// Robertson and Rendell: heat diffusion by two threads, placed and as the system likes it
    RobertsonTable2,
}

/// The papers' tables, theirs beside ours
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct PaperArgs {
    /// Which
    #[arg(value_enum, value_name = "TABLE")]
    pub what: What,
    /// Only this program (Löf: nas-cg, nas-mg, i-cg, i-mg; Tao: fft, lu, radix, water, sor); may be
    /// repeated
    #[arg(short, long = "program", value_name = "NAME")]
    pub programs: Vec<String>,
    /// Löf's: problem class instead of the paper's; caches shrink with the data
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Löf's: iterations to simulate; the rest is taken to be like the last [default: 3 to 5, by
    /// program]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub iterations: Option<u32>,
    /// Keep recordings in DIR, and use those that are there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Host threads that simulate; the result does not depend on it [default: one a CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Robertson's: compute from this machine's description instead of measuring (a name, or a
    /// file); Tao's: simulate this machine [default: smile]
    #[arg(short, long, value_name = "M")]
    pub machine: Option<String>,
    /// Robertson's: size of latency's buffer and of each array [default: 4 times all last-level
    /// cache]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub buffer: Option<Bytes>,
    /// Robertson's Table 2: runs of each experiment
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: u32,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: PaperArgs = parse("paper lof-table1 --program nas-mg --class W").unwrap();
        assert_eq!((a.what, a.programs.len()), (What::LofTable1, 1));
        assert!(parse::<PaperArgs>("paper lof-table4").is_err());
        assert!(parse::<PaperArgs>("paper lof-table1 --iterations 1").is_err());
    }
}
