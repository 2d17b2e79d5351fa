//! A recording under way: what its page shows while the program runs.
//!
//! The program writes its recording as without a page; nothing is asked of it. Two things are read
//! from there:
//!
//! | what | how often |
//! |---|---|
//! | [`Pulse`]: a few sums, from what was appended since the last look | [`LOOK`], whatever the size |
//! | the whole page, from the beginning | at most every [`SOONEST`], and with at most a quarter of one CPU |
//!
//! The page gets both ([`crate::server::RecordingProgress`]). When the recording has its end, it is
//! read once more.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use homenode_dataset::layout::{META, STREAMS};
use homenode_dataset::{Dataset, foreign};
use homenode_model::{NodeId, Ns};
use homenode_wire::live::{LiveReader, LiveRecord};

use crate::opened::Opened;
pub use crate::pulse::Pulse;
use crate::server::{ServedContent, ServedPage, Server};
use crate::tiles::build::PyramidBudget;

/// How often the recording is looked at.
pub const LOOK: Duration = Duration::from_millis(200);
/// The page is made anew no sooner than that.
pub const SOONEST: Duration = Duration::from_millis(400);
/// Making the page takes at most one part in this number of the time.
const PART: u32 = 4;
/// Highest number of processes whose streams are followed.
const MOST: usize = 256;

/// How often a node was seen at pages of a home: `(node, home)`.
pub type NodeSightings = BTreeMap<(NodeId, NodeId), u64>;
/// Most pairs of nodes that are told apart.
const PAIRS: usize = 1 << 16;

/// One process's stream, as far as it was read.
#[derive(Clone, Debug, Default)]
struct Stream {
    read: u64,
    own: [Ns; 2],
}

/// Reads what is appended to the streams of a recording.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    streams: BTreeMap<PathBuf, Stream>,
    pulse: Pulse,
    traffic: NodeSightings,
}

impl Tail {
    /// Reads what was appended since the last call; says whether there was anything. What cannot be
    /// read is left for later: the page says what is damaged.
    pub fn read(&mut self, recording: &Path) -> bool {
        let folder = recording.join(STREAMS);
        if foreign::folder(&folder).is_err() {
            return false;
        }
        let is_stream =
            |p: &PathBuf| p.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("live."));
        let found = fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
        for path in found.filter(is_stream).take(MOST) {
            self.streams.entry(path).or_default();
        }
        let mut any = false;
        for (path, stream) in &mut self.streams {
            any |= stream.read(path, &mut self.pulse, &mut self.traffic);
        }
        let sum = |i: usize| self.streams.values().fold(0_u64, |n, s| n.saturating_add(s.own[i].0));
        [self.pulse.own_ns, self.pulse.cpu_ns] = [sum(0), sum(1)];
        self.pulse.processes = self.streams.len() as u64;
        any
    }

    /// What was read until now.
    pub const fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Who was seen at whose memory until now.
    pub const fn traffic(&self) -> &NodeSightings {
        &self.traffic
    }
}

impl Stream {
    fn read(&mut self, path: &Path, pulse: &mut Pulse, traffic: &mut NodeSightings) -> bool {
        let Ok(mut file) = foreign::open(path) else { return false };
        let grown = file.metadata().is_ok_and(|m| m.len() > self.read);
        if !grown || file.seek(SeekFrom::Start(self.read)).is_err() {
            return false;
        }
        let mut reader = LiveReader::new(BufReader::with_capacity(1 << 16, file));
        // A frame that is not whole yet is read when it is.
        for record in reader.by_ref().map_while(Result::ok) {
            pulse.add(&record);
            if let LiveRecord::Seen { node, home, told, .. } = record
                && (traffic.len() < PAIRS || traffic.contains_key(&(node, home)))
            {
                let sum = traffic.entry((node, home)).or_default();
                *sum = sum.saturating_add(told.into());
            }
            if let LiveRecord::Own { own, cpu, .. } = record {
                self.own = [own, cpu];
            }
        }
        self.read += reader.whole();
        reader.whole() > 0
    }
}

/// A recording under way, and its page.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The recording.
    pub recording: PathBuf,
    /// The program as a person types it.
    pub command: String,
    /// The folder in which the source lies; none: it is not looked for.
    pub source: Option<PathBuf>,
}

/// What a person is told while the program runs.
const RUNS: &str = "the program runs";

impl Follow {
    /// Keeps `site` up to date until the recording has its end, or `stop` says so.
    pub fn run(&self, site: &ServedContent, stop: &dyn Fn() -> bool) {
        let mut tail = Tail::default();
        let (mut news, mut next) = (true, Instant::now());
        while !stop() {
            // Looked at before the rest: what is written afterwards is news for the next time.
            let ended = self.ended();
            if tail.read(&self.recording) {
                news = true;
                site.tell(|p| p.pulse = Some(tail.pulse().clone()));
            }
            if ended || (news && Instant::now() >= next) {
                let begun = Instant::now();
                if self.show(site, ended) {
                    news = false;
                    site.tell(|p| p.doing = if ended { String::new() } else { RUNS.into() });
                }
                next = Instant::now() + (begun.elapsed() * (PART - 1)).max(SOONEST);
            }
            if ended {
                site.tell(|p| (p.ended, p.doing) = (true, String::new()));
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn ended(&self) -> bool {
        ended(&self.recording)
    }

    /// Reads everything and shows it; says whether there was anything.
    fn show(&self, site: &ServedContent, ended: bool) -> bool {
        let Ok(set) = Dataset::open(&self.recording).and_then(homenode_observed::adopt) else { return false };
        let mut opened = Opened::read(set, &mut |_| {}).explained(&self.command);
        opened.source.clone_from(&self.source);
        if !ended {
            so_far(&mut opened);
        }
        let model = opened.model(PyramidBudget::FILE, &mut |_| true);
        match ServedPage::new(&model, &[opened]) {
            Ok(shown) => {
                site.show(shown);
                true
            }
            Err(_) => false,
        }
    }
}

/// Whether a recording has its end.
pub fn ended(recording: &Path) -> bool {
    recording.join(META).exists() && Dataset::open(recording).is_ok_and(|set| set.meta().ended.is_some())
}

/// That a program which runs has no end yet is no lack; what else is missing is told when it has
/// ended.
fn so_far(opened: &mut Opened) {
    opened.report.summary.whole = true;
    opened.report.summary.missing.clear();
}

/// A page that follows a recording: a server, and what keeps its page up to date.
#[derive(Debug)]
pub struct Watching {
    site: Arc<ServedContent>,
    stop: Arc<AtomicBool>,
    server: JoinHandle<()>,
    follow: JoinHandle<()>,
}

/// A page that is open asks several times a second; after so long without a question there is none.
const CLOSED: Duration = Duration::from_secs(5);

impl Watching {
    /// Serves the page of a recording that is under way, or will be.
    pub fn start(server: Server, follow: Follow) -> Self {
        let site =
            Arc::new(ServedContent::empty(std::slice::from_ref(&follow.command), "waiting for the program"));
        let stop = Arc::new(AtomicBool::new(false));
        let asked = |stop: &Arc<AtomicBool>| {
            let stop = Arc::clone(stop);
            move || stop.load(Ordering::Relaxed)
        };
        let (served, ends) = (Arc::clone(&site), asked(&stop));
        let server = std::thread::spawn(move || server.run(&served, &ends));
        let (followed, ends) = (Arc::clone(&site), asked(&stop));
        let follow = std::thread::spawn(move || follow.run(&followed, &ends));
        Self { site, stop, server, follow }
    }

    /// Serves until `stop` says so.
    pub fn until(self, stop: &dyn Fn() -> bool) {
        while !stop() && !self.server.is_finished() {
            std::thread::sleep(LOOK);
        }
        self.end();
    }

    /// The program has ended: serves until nobody has the page open any more, or `stop` says so.
    pub fn until_closed(self, stop: &dyn Fn() -> bool) {
        let ended = Instant::now();
        let open = || self.site.asked().map_or(ended, |at| at.max(ended)).elapsed() < CLOSED;
        while !stop() && (open() || !self.follow.is_finished()) && !self.server.is_finished() {
            std::thread::sleep(LOOK);
        }
        self.end();
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has said so.
        let _ = (self.server.join(), self.follow.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_wire::live::{BUFFER, IntervalNo, IterationNo, ObjectNo, Pages, Writer};
    use std::io::Write as _;

    fn frame(records: &[LiveRecord]) -> Vec<u8> {
        let mut buffer = vec![0; BUFFER];
        let mut writer = Writer::new(&mut buffer).unwrap();
        records.iter().for_each(|r| writer.add(r).unwrap());
        writer.finish().to_vec()
    }

    fn seen(node: u16, told: u32) -> LiveRecord {
        LiveRecord::Seen {
            interval: IntervalNo(0),
            region: None,
            object: ObjectNo(0),
            pages: Pages { first: 0, count: 1 },
            node: NodeId(node),
            home: NodeId(0),
            kind: None,
            told,
        }
    }

    #[test]
    fn what_is_appended_is_read_once_and_half_a_frame_waits() {
        let folder = std::env::temp_dir().join(format!("homenode-view-tail-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join(STREAMS)).unwrap();
        let path = folder.join(STREAMS).join("live.7");
        let mut file = fs::File::create(&path).unwrap();
        let mut tail = Tail::default();
        assert!(!tail.read(&folder), "nothing is there");
        let round = LiveRecord::Iteration { number: IterationNo(1), begin: Ns(10), end: Ns(40), told: true };
        file.write_all(&frame(&[seen(0, 3), seen(1, 2), round])).unwrap();
        assert!(tail.read(&folder));
        assert!(!tail.read(&folder), "nothing new");
        let p = tail.pulse();
        assert_eq!((p.sightings, p.remote, p.iterations, p.last_iteration_ns), (5, 2, 1, Some(30)));
        let next = frame(&[seen(1, 10), LiveRecord::Own { time: Ns(90), own: Ns(5), cpu: Ns(50) }]);
        file.write_all(&next[..next.len() / 2]).unwrap();
        assert!(!tail.read(&folder), "half a frame");
        assert_eq!(tail.pulse().sightings, 5);
        file.write_all(&next[next.len() / 2..]).unwrap();
        assert!(tail.read(&folder));
        let p = tail.pulse();
        assert_eq!((p.sightings, p.remote, p.own_ns, p.cpu_ns, p.time_ns), (15, 12, 5, 50, 90));
        let seen: Vec<_> = tail.traffic().iter().map(|((node, home), n)| (node.0, home.0, *n)).collect();
        assert_eq!(seen, [(0, 0, 3), (1, 0, 12)]);
        fs::remove_dir_all(folder).unwrap();
    }
}
