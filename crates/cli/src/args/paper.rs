//! `homenode paper`.

use std::path::PathBuf;

use clap::Args;
use homenode_error::size;
use homenode_model::Bytes;

use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode paper list                                    all tables and figures, and how long they take
  homenode paper lof-table1 --program nas-mg --class W   a smaller problem, with smaller caches
  homenode paper niko-fig1 --program mg                  times on 16 to 128 processors
  homenode paper robertson-table1 --machine this         bandwidth of threads and memory, measured here
  homenode paper all --small -o report.html              everything in one page, with the smallest classes
  homenode paper all -o report.html -o report.md         the same with the usual classes; goes on if stopped

Löf's sizes take minutes, memory and disk: NAS CG B records about 2 GB.";

/// The papers' tables, theirs beside ours
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct PaperArgs {
    /// A table or figure; `list` names them, `all` runs them
    #[arg(value_name = "TABLE")]
    pub what: String,
    /// Only this program (Löf: nas-cg, nas-mg, i-cg, i-mg; Nikolopoulos: bt, sp, cg, ft, mg; Tao:
    /// fft, lu, radix, water, sor); may be repeated
    #[arg(short, long = "program", value_name = "NAME")]
    pub programs: Vec<String>,
    /// Löf's and Nikolopoulos's: problem class instead of the usual one; caches shrink with the
    /// data
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// The smallest classes: minutes for everything
    #[arg(long)]
    pub small: bool,
    /// Iterations to simulate; the rest is taken to be like the last [default: by program]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub iterations: Option<u32>,
    /// Nikolopoulos's: numbers of processors [default: 16,32,64,128]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub processors: Vec<u32>,
    /// Write the results of `all` as a page: HTML or Markdown, by FILE's extension; may be repeated
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub pages: Vec<PathBuf>,
    /// Keep recordings and the results of `all` in DIR, and reuse those that are there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Host threads that simulate; the result does not depend on it [default: one a CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Another machine than the paper's (a name, or a file); Robertson's: `this` measures here
    #[arg(short, long, value_name = "M")]
    pub machine: Option<String>,
    /// Robertson's: size of latency's buffer and of each array [default: 4 times all last-level
    /// cache, or what the modelled node has room for]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub buffer: Option<Bytes>,
    /// Robertson's Table 2 with `--machine this`: runs of each experiment
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
        assert_eq!((a.what.as_str(), a.programs.len()), ("lof-table1", 1));
        let a: PaperArgs = parse("paper all --small --processors 4,8 -o a.html -o a.md").unwrap();
        assert_eq!((a.processors, a.pages.len(), a.small), (vec![4, 8], 2, true));
        assert!(parse::<PaperArgs>("paper lof-table1 --iterations 1").is_err());
    }
}
