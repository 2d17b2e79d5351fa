//! `homenode view`.

use std::path::PathBuf;

use clap::Args;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode view mine.hnrec                    in the browser; Ctrl-C ends it
  homenode view mine.hnrec -o report.html     one file, to keep or to send
  homenode view mine.hnrec --port 8400        for a tunnel: the printed ssh line stays the same
  homenode view mine.hnrec --against new.hnrec          both on the same axes
  homenode view trace.hnrec --against next-touch        a recording of accesses under two policies
  homenode view --live mine.hnrec             while 'homenode run --record mine.hnrec -- ./app' goes on

The page is served on 127.0.0.1 alone, under a secret path. A file needs no server and no network.
Status 3 with -o: the recording is not whole; the page says what is missing.";

/// Look at a recording: every page, its way and why, in the browser or as one file
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct ViewArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// Machine to simulate a recording of accesses on: a name or a file [default: this one if it
    /// has two nodes, else 2s-xeon]
    #[arg(short, long, value_name = "M")]
    pub machine: Option<String>,
    /// Placement policy to simulate [default: first-touch]
    #[arg(long, value_name = "P")]
    pub policy: Option<String>,
    /// Show another recording beside it, on the same axes; or REC under another policy, where it is
    /// simulated
    #[arg(long, value_name = "REC|P")]
    pub against: Option<String>,
    /// Follow a recording that a running program writes ('homenode run --record REC')
    #[arg(long, conflicts_with_all = ["output", "against", "machine", "policy"])]
    pub live: bool,
    /// Folder of the program's source, for the lines that the page shows beside a finding [default:
    /// this one]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Write the page to one file instead; it has at most 5 MB
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Port of the server [default: any that is free]
    #[arg(long, value_name = "N", conflicts_with = "output")]
    pub port: Option<u16>,
    /// Only print where the page is: start no browser
    #[arg(long, conflicts_with = "output")]
    pub no_browser: bool,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn a_file_needs_no_server() {
        assert!(parse::<ViewArgs>("view").is_err());
        assert_eq!(parse::<ViewArgs>("view x.hnrec --port 8400").unwrap().port, Some(8400));
        for wrong in ["-o a.html --port 1", "-o a.html --no-browser", "--port 70000", "--live -o a.html"] {
            assert!(parse::<ViewArgs>(&format!("view x.hnrec {wrong}")).is_err(), "{wrong}");
        }
    }
}
