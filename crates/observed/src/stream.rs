//! The stream of one process, read once for what the rest needs to know beforehand.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use homenode_dataset::foreign;
use homenode_model::Ns;
use homenode_wire::facts::LoadedFile;
use homenode_wire::live::{Dropped, LiveReader, LiveRecord, SourceAnswers};

/// Highest number of processes whose streams are read.
const MOST: usize = 4096;
/// Bytes that a page may have.
const PAGE: RangeInclusive<u64> = 512..=1 << 30;

/// What is known of a stream before its rows are made.
#[derive(Clone, Debug, Default)]
pub struct StreamState {
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
    pub says: SourceAnswers,
    /// The machine's nodes.
    pub nodes: Vec<LiveRecord>,
    /// Loaded files.
    pub modules: Vec<LoadedFile>,
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

/// What lies in a folder of streams.
#[derive(Clone, Debug, Default)]
pub struct StreamFolder {
    /// The streams that have a beginning, by process.
    pub streams: Vec<StreamState>,
    /// What cannot be read, a sentence each.
    pub unread: Vec<String>,
    /// Processes whose streams are empty: a shell that only starts the program, or one that was
    /// killed at once.
    pub silent: Vec<u32>,
}

/// The streams in a folder, by process.
pub fn all(folder: &Path) -> StreamFolder {
    let mut found = StreamFolder::default();
    let pid = |name: &std::ffi::OsStr| name.to_str()?.strip_prefix("live.")?.parse::<u32>().ok();
    let entries = match foreign::folder(folder).and_then(|()| fs::read_dir(folder)) {
        Ok(entries) => entries,
        Err(e) => {
            found.unread.push(format!("the folder of streams cannot be read: {e}"));
            return found;
        }
    };
    let mut files: Vec<(u32, PathBuf)> =
        entries.flatten().filter_map(|e| Some((pid(&e.file_name())?, e.path()))).collect();
    files.sort();
    if files.len() > MOST {
        found.unread.push(format!("{} streams are there, and {MOST} are read", files.len()));
        files.truncate(MOST);
    }
    for (pid, path) in files {
        match StreamState::read(pid, path) {
            Ok(Some(stream)) => found.streams.push(stream),
            Ok(None) => found.silent.push(pid),
            Err(why) => found.unread.push(format!("the stream of process {pid} cannot be read: {why}")),
        }
    }
    found
}

/// The records of a file, as far as it is whole.
///
/// # Errors
/// It is no regular file, or the system refuses.
pub fn records(path: &Path) -> io::Result<LiveReader<BufReader<File>>> {
    foreign::open(path).map(|file| LiveReader::new(BufReader::with_capacity(1 << 18, file)))
}

impl StreamState {
    /// `None`: it is empty. An error: it has no beginning.
    fn read(pid: u32, path: PathBuf) -> Result<Option<Self>, String> {
        let mut stream = Self { pid, path, ..Self::default() };
        let mut damage = None;
        for record in records(&stream.path).map_err(|e| e.to_string())? {
            match record {
                Ok(LiveRecord::Start { page, .. })
                    if !PAGE.contains(&page.0) || !page.0.is_power_of_two() =>
                {
                    return Err(format!("it has pages of {} bytes", page.0));
                }
                Ok(record @ LiveRecord::Start { .. }) => stream.note(record),
                Ok(_) if stream.records == 0 => return Err("it does not begin with a start".into()),
                Ok(record) => stream.note(record),
                Err(why) => damage = Some(foreign::clean(&why.to_string())),
            }
        }
        if stream.records == 0 {
            return damage.map_or(Ok(None), Err);
        }
        let told = |why| format!("the stream of process {pid} is cut off or damaged: {why}");
        stream.damage.extend(damage.map(told));
        Ok(Some(stream))
    }

    fn note(&mut self, record: LiveRecord) {
        self.records += 1;
        match record {
            LiveRecord::Start { clock, pretended, page, policy, .. } => {
                self.clock = clock;
                (self.pretended, self.page_bytes, self.policy) = (pretended, page.0, foreign::clean(&policy));
            }
            LiveRecord::Node { .. } => self.nodes.push(record),
            LiveRecord::Module(module) => self.modules.push(module),
            LiveRecord::Source { name, says } => (self.source, self.says) = (foreign::clean(&name), says),
            LiveRecord::Seen { told, .. } => self.sightings = self.sightings.saturating_add(told.into()),
            LiveRecord::Dropped { what, how_many } => self.dropped.push((what, how_many)),
            LiveRecord::End { whole } => self.whole = whole,
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
