//! A process that runs: the recording that it writes, or what the kernel tells of it.
//!
//! `homenode run --record` and `homenode record --on live` name a folder in the program's
//! environment. The settings there name the recording. A process that was started in another way
//! has no recording; then the kernel tells where its memory lives and on which nodes its threads
//! ran last. The kernel does not tell who uses which memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use homenode_dataset::foreign::clean;
use homenode_error::{Error, Result};
use homenode_model::{Bytes, NodeId};
use homenode_report::objects::NodePages;
use homenode_wire::settings::{self, Settings};

use crate::alive::{PROC, fields, lives};
use crate::glance::{Glance, NodeLine, OBJECTS, ObjectLine, State};
use crate::watch::{SharedPicture, Watch};

/// Where the kernel lists nodes.
const NODES: &str = "/sys/devices/system/node";
/// Most bytes of an environment, of settings or of a list of mappings that are read.
const MOST: u64 = 64 << 20;
/// Most processes that are looked at for the children of one.
const CHILDREN: usize = 1 << 16;
/// The kernel walks the page tables for a list of homes: homenode asks with at most one part in
/// this number of the time.
const PART: u32 = 20;
/// And no sooner than that.
const SOONEST: Duration = Duration::from_secs(1);

/// Where a process's numbers come from.
#[derive(Clone, Debug)]
pub enum NumberSource {
    /// The recording that it writes.
    Recording(Watch),
    /// The kernel, and why there is no recording.
    Kernel(ProcessCounters),
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The value of a variable in an environment as `/proc` shows it.
fn variable(environment: &[u8], name: &str) -> Option<PathBuf> {
    let begin = format!("{name}=").into_bytes();
    let value = environment.split(|b| *b == 0).find_map(|v| v.strip_prefix(&begin[..]))?;
    Some(OsString::from_vec(value.to_vec()).into())
}

/// What the environment of a process tells of a run.
enum Run {
    /// It is not under homenode.
    None,
    /// It is, and records nothing.
    Unrecorded,
    /// It records here.
    Recorded(PathBuf),
}

fn run_of(environment: &[u8]) -> Run {
    let Some(folder) = variable(environment, settings::RUN_DIR) else { return Run::None };
    let settings = read(&folder.join(settings::FILE)).ok();
    let settings = settings.and_then(|bytes| homenode_wire::decode::<Settings>(&bytes).ok());
    match settings.and_then(|s| s.stream) {
        Some(streams) => streams.parent().map_or(Run::Unrecorded, |r| Run::Recorded(r.to_owned())),
        None => Run::Unrecorded,
    }
}

/// The children of a process.
fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_dir(PROC).into_iter().flatten().flatten().take(CHILDREN);
    let numbers = all.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let parent = pid.to_string();
    let is_child = |child: &u32| {
        let stat = fs::read_to_string(format!("{PROC}/{child}/stat")).unwrap_or_default();
        fields(&stat).get(1) == Some(&parent.as_str())
    };
    let mut all: Vec<u32> = numbers.filter(is_child).collect();
    all.sort_unstable();
    all
}

/// The command line of a process.
fn command(pid: u32) -> String {
    let words = read(Path::new(&format!("{PROC}/{pid}/cmdline"))).unwrap_or_default();
    let words: Vec<String> = words
        .split(|b| *b == 0)
        .filter(|w| !w.is_empty())
        .map(|w| clean(&String::from_utf8_lossy(w)))
        .collect();
    words.join(" ")
}

/// Where the numbers of a process come from. `pid` may also be a `homenode` that runs a program.
///
/// # Errors
/// There is no such process, or its environment may not be read.
pub fn source(pid: u32) -> Result<NumberSource> {
    if !lives(pid) {
        return Err(Error::usage(format!("there is no process {pid}"))
            .tried(format!("look for {PROC}/{pid}"))
            .hint("'pgrep -a NAME' lists the processes of a program"));
    }
    let environment = read(Path::new(&format!("{PROC}/{pid}/environ"))).map_err(|e| {
        Error::failed(format!("cannot look at process {pid}"))
            .tried(format!("read {PROC}/{pid}/environ: {e}"))
            .hint("a process can be watched by its own user and by root")
    })?;
    let recorded = |recording: PathBuf, process: u32| {
        let command = command(process);
        NumberSource::Recording(Watch { recording, command, notes: Vec::new(), process: Some(process) })
    };
    let mut under = match run_of(&environment) {
        Run::Recorded(recording) => return Ok(recorded(recording, pid)),
        Run::Unrecorded => true,
        Run::None => false,
    };
    for child in children(pid) {
        let environment = read(Path::new(&format!("{PROC}/{child}/environ"))).unwrap_or_default();
        match run_of(&environment) {
            Run::Recorded(recording) => return Ok(recorded(recording, child)),
            Run::Unrecorded => under = true,
            Run::None => {}
        }
    }
    let why = match under {
        true => "it runs under homenode without a recording",
        false => "it does not run under homenode",
    };
    Ok(NumberSource::Kernel(ProcessCounters { process: pid, why, nodes: NODES.into() }))
}

/// What the kernel tells of a process.
#[derive(Clone, Debug)]
pub struct ProcessCounters {
    process: u32,
    why: &'static str,
    nodes: PathBuf,
}

/// A mapping with its homes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Mapping {
    name: String,
    by_node: BTreeMap<NodeId, u64>,
    page: u64,
}

/// The mappings of `numa_maps`, a line each: `7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4`.
fn mappings(text: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next()?;
        let mut one = Mapping { name: format!("memory at 0x{address}"), page: 4096, ..Mapping::default() };
        for word in words {
            match word.split_once('=') {
                Some(("file", path)) => one.name = path.rsplit('/').next().unwrap_or(path).to_owned(),
                Some(("kernelpagesize_kB", kib)) => one.page = kib.parse::<u64>().ok()?.saturating_mul(1024),
                Some((node, pages)) if node.starts_with('N') => {
                    if let (Ok(node), Ok(pages)) = (node[1..].parse(), pages.parse::<u64>()) {
                        *one.by_node.entry(NodeId(node)).or_default() += pages;
                    }
                }
                None if matches!(word, "heap" | "stack") => one.name = word.to_owned(),
                _ => {}
            }
        }
        (!one.by_node.is_empty()).then_some(one)
    };
    text.lines().filter_map(mapping).collect()
}

/// A list such as `0-3,8`.
fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().take(1 << 16).collect()
}

impl ProcessCounters {
    /// Keeps `shown` up to date until the process is gone, or `stop` says so.
    ///
    /// # Errors
    /// The list of mappings may not be read.
    pub fn run(&self, shown: &SharedPicture, stop: &dyn Fn() -> bool) -> Result<()> {
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                let begun = Instant::now();
                let state = if lives(self.process) { State::Runs } else { State::Gone };
                match self.glance(state) {
                    Ok(glance) => shown.set(glance),
                    Err(_) if !lives(self.process) => {}
                    Err(e) => return Err(e),
                }
                next = Instant::now() + (begun.elapsed() * PART).max(SOONEST);
            }
            if stop() {
                return Ok(());
            }
            if !lives(self.process) {
                shown.set(Glance { state: State::Ended, ..(*shown.get()).clone() });
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What the kernel tells now.
    ///
    /// # Errors
    /// The list of mappings may not be read.
    pub fn glance(&self, state: State) -> Result<Glance> {
        let path = format!("{PROC}/{}/numa_maps", self.process);
        let maps = read(Path::new(&path)).map_err(|e| {
            let hint = match e.kind() {
                io::ErrorKind::NotFound => "this kernel has no support for NUMA: it lists no homes of pages",
                _ => "a process can be watched by its own user and by root",
            };
            Error::failed(format!("cannot see where the memory of process {} lives", self.process))
                .tried(format!("read {path}: {e}"))
                .hint(hint)
        })?;
        let mut nodes = self.nodes();
        let of_cpu: BTreeMap<u32, NodeId> =
            nodes.iter().flat_map(|(node, cpus)| cpus.iter().map(|cpu| (*cpu, *node))).collect();
        let mut threads: BTreeMap<NodeId, u64> = BTreeMap::new();
        for cpu in self.cpus() {
            *threads.entry(of_cpu.get(&cpu).copied().unwrap_or_default()).or_default() += 1;
        }
        let (mut pages, mut objects) =
            (BTreeMap::<NodeId, u64>::new(), BTreeMap::<String, ObjectLine>::new());
        for mapping in mappings(&String::from_utf8_lossy(&maps)) {
            let name = clean(&mapping.name);
            let one =
                objects.entry(name.clone()).or_insert_with(|| ObjectLine { name, ..ObjectLine::default() });
            for (node, n) in mapping.by_node {
                let small = n.saturating_mul(mapping.page / 4096);
                *pages.entry(node).or_default() += small;
                nodes.entry(node).or_default();
                let bytes = one.bytes.unwrap_or_default().0.saturating_add(n.saturating_mul(mapping.page));
                one.bytes = Some(Bytes(bytes));
                match one.lives.iter_mut().find(|l| l.node == node) {
                    Some(lives) => lives.pages += small,
                    None => one.lives.push(NodePages { node, pages: small }),
                }
            }
        }
        let mut objects: Vec<ObjectLine> = objects.into_values().collect();
        objects.iter_mut().for_each(|o| o.lives.sort_by_key(|l| (Reverse(l.pages), l.node)));
        objects.sort_by(|a, b| (Reverse(a.bytes), &a.name).cmp(&(Reverse(b.bytes), &b.name)));
        objects.truncate(OBJECTS);
        let line = |(node, cpus): (&NodeId, &Vec<u32>)| NodeLine {
            node: *node,
            cpus: Some(cpus.len() as u64),
            threads: Some(threads.get(node).copied().unwrap_or(0)),
            pages: Some(pages.get(node).copied().unwrap_or(0)),
            ..NodeLine::default()
        };
        Ok(Glance {
            command: command(self.process),
            state,
            nodes: nodes.iter().map(line).collect(),
            objects,
            notes: vec![
                format!(
                    "process {}: {}, so the kernel tells where its memory lives, and nobody tells who uses it",
                    self.process, self.why
                ),
                "remote share, moves and names of arrays need 'homenode top -- APP' or \
                 'homenode run --record REC -- APP'"
                    .into(),
            ],
            ..Glance::default()
        })
    }

    /// The CPUs on which its threads ran last.
    fn cpus(&self) -> Vec<u32> {
        let folder = format!("{PROC}/{}/task", self.process);
        let threads = fs::read_dir(folder).into_iter().flatten().flatten();
        // Field 39 of the whole line, which is field 36 behind the name.
        let cpu = |stat: String| fields(&stat).get(36).and_then(|cpu| cpu.parse().ok());
        threads.filter_map(|t| fs::read_to_string(t.path().join("stat")).ok().and_then(cpu)).collect()
    }

    /// The CPUs of each node.
    fn nodes(&self) -> BTreeMap<NodeId, Vec<u32>> {
        let all = fs::read_dir(&self.nodes).into_iter().flatten().flatten();
        let node = |e: fs::DirEntry| {
            let number = e.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let cpus = fs::read_to_string(e.path().join("cpulist")).unwrap_or_default();
            Some((NodeId(number), numbers(&cpus)))
        };
        all.filter_map(node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_names_and_homes() {
        let text = "\
55d0 default file=/usr/lib/libc.so.6 mapped=7 N0=5 N1=2 kernelpagesize_kB=4
55d1 default heap anon=3 dirty=3 N0=3 kernelpagesize_kB=4
7f00 default anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
7f10 default
7ffc default stack anon=1 N0=1 kernelpagesize_kB=4
garbage N0=x kernelpagesize_kB=4
";
        let all = mappings(text);
        let short = |m: &Mapping| {
            let by: Vec<(u16, u64)> = m.by_node.iter().map(|(n, p)| (n.0, *p)).collect();
            (m.name.clone(), by, m.page)
        };
        let all: Vec<_> = all.iter().map(short).collect();
        let expected = [
            ("libc.so.6".to_owned(), vec![(0, 5), (1, 2)], 4096),
            ("heap".to_owned(), vec![(0, 3)], 4096),
            ("memory at 0x7f00".to_owned(), vec![(1, 2)], 2 << 20),
            ("stack".to_owned(), vec![(0, 1)], 4096),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn the_name_of_a_program_may_hold_anything() {
        let stat = "7 (a) S 1 (x) R 1 2 3";
        assert_eq!(fields(stat)[..2], ["R", "1"]);
        assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
        assert!(numbers("").is_empty());
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"OTHER_X=1\0X=/run/a=b\0X=second";
        assert_eq!(variable(environment, "X"), Some("/run/a=b".into()));
        assert_eq!(variable(environment, "THER_X"), None);
    }

    #[test]
    fn this_process_has_threads_and_memory() {
        let NumberSource::Kernel(kernel) = source(std::process::id()).unwrap() else {
            panic!("it records nothing")
        };
        if !Path::new("/proc/self/numa_maps").exists() {
            eprintln!("skipped: this kernel has no /proc/PID/numa_maps");
            return;
        }
        let glance = kernel.glance(State::Runs).unwrap();
        assert!(glance.nodes.iter().filter_map(|n| n.threads).sum::<u64>() >= 1);
        assert!(glance.nodes.iter().filter_map(|n| n.pages).sum::<u64>() > 100);
        assert!(glance.objects.iter().any(|o| o.name == "heap" && o.bytes > Some(Bytes(0))));
        assert!(glance.objects.iter().all(|o| o.remote.is_none()), "nobody knows");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error_in_words() {
        // The kernel gives no number as high as that.
        let error = source(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("there is no process 4294967295"), "{error}");
    }
}
