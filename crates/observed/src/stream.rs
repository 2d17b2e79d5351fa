//! The stream of one process, read once for what the rest needs to know beforehand.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use homenode_dataset::foreign;
use homenode_model::Ns;
use homenode_wire::facts::Module;
use homenode_wire::live::{Dropped, Live, Reader, Says};

/// Streams of at most so many processes are read.
const MOST: usize = 4096;

/// What is known of a stream before its rows are made.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Its file.
    pub path: PathBuf,
    /// The process.
    pub pid: u32,
    /// The monotonic clock at its start.
    pub clock: Ns,
    /// The nodes are pretended.
    pub pretended: bool,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The policy's spec.
    pub policy: String,
    /// What tells.
    pub source: String,
    /// What its answers are.
    pub says: Says,
    /// The machine's nodes.
    pub nodes: Vec<Live>,
    /// Loaded files.
    pub modules: Vec<Module>,
    /// What is missing, by kind.
    pub dropped: Vec<(Dropped, u64)>,
    /// How often somebody was seen.
    pub sightings: u64,
    /// Records.
    pub records: u64,
    /// It has an end.
    pub whole: bool,
    /// What is damaged, a sentence each.
    pub damage: Vec<String>,
}

/// The streams in a folder, by process.
pub fn all(folder: &Path) -> Vec<Stream> {
    let pid = |name: &std::ffi::OsStr| name.to_str()?.strip_prefix("live.")?.parse::<u32>().ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(u32, PathBuf)> =
        entries.filter_map(|e| Some((pid(&e.file_name())?, e.path()))).take(MOST).collect();
    files.sort();
    files.into_iter().filter_map(|(pid, path)| Stream::read(pid, path)).collect()
}

/// The records of a file, as far as it is whole.
pub fn records(path: &Path) -> Option<Reader<BufReader<File>>> {
    foreign::open(path).ok().map(|file| Reader::new(BufReader::with_capacity(1 << 18, file)))
}

impl Stream {
    /// `None`: it has no beginning.
    fn read(pid: u32, path: PathBuf) -> Option<Self> {
        let mut stream = Self { pid, path, ..Self::default() };
        let mut began = false;
        for record in records(&stream.path)? {
            match record {
                Ok(record) => {
                    began |= matches!(record, Live::Start { .. });
                    stream.note(record);
                }
                Err(why) => {
                    let text = foreign::clean(&why.to_string());
                    stream.damage.push(format!("the stream of process {pid} is cut off or damaged: {text}"));
                }
            }
        }
        began.then_some(stream)
    }

    fn note(&mut self, record: Live) {
        self.records += 1;
        match record {
            Live::Start { clock, pretended, page, policy, .. } => {
                self.clock = clock;
                (self.pretended, self.page_bytes, self.policy) = (pretended, page.0, foreign::clean(&policy));
            }
            Live::Node { .. } => self.nodes.push(record),
            Live::Module(module) => self.modules.push(module),
            Live::Source { name, says } => (self.source, self.says) = (foreign::clean(&name), says),
            Live::Seen { told, .. } => self.sightings = self.sightings.saturating_add(told.into()),
            Live::Dropped { what, how_many } => self.dropped.push((what, how_many)),
            Live::End { whole } => self.whole = whole,
            _ => {}
        }
    }
}

/// A sentence about what is missing.
pub fn dropped(what: Dropped, how_many: u64) -> String {
    let what = match what {
        Dropped::Touches => "touches were not told",
        Dropped::Samples => "samples of the guard were not written",
        Dropped::Migrations => "runs of moved pages were not written",
        Dropped::Objects => "objects were not written",
        Dropped::Regions => "regions were not written",
        Dropped::Seen => "rows of who was seen were not written",
        Dropped::Homes => "runs of homes were not written",
        Dropped::FirstTouches => "first touches were not written",
        Dropped::Intervals => "rounds were shorter than an interval and are not listed",
    };
    format!("{how_many} {what}")
}
