//! Counts of the lab's monitor, as they were written before data sets.
//!
//! | file | what |
//! |---|---|
//! | `accesses.csv` | main-memory accesses by interval, process, page, home, accessing node |
//! | `objects.csv` | what lay where in the processes ([`super::sites`]) |
//! | `lab.json` | the machine, and what its CPUs did |
//!
//! The form has no times. An interval's share of the program's time is that of its modelled time.

use homenode_model::{AccessKind, Bytes, NodeId, Ns, ObjectId};
use serde::{Deserialize, Serialize};

use super::lines::{self, NO_SENSE, SkippedLine};
use super::older_files::{Described, MAX_CSV, MAX_INTERVALS, MAX_NODES, OldMeta, OlderFiles};
use super::sites::{Name, ObjectsLine, PAGE, Sites, page_of};
use crate::basis::{Basis, SeenCount};
use crate::error::DatasetError;
use crate::homes::{Homes, PageInterval};
use crate::memory::MemoryDataset;
use crate::meta::{DatasetMeta, RecordingKind};
use crate::schema::RowSink as _;
use crate::tables::{
    Access, Interval, IntervalNo, Iteration, IterationSource, Link, Migration, MigrationCause, Node,
    ObjectKind,
};
use crate::times;

pub const ACCESSES: &str = "accesses.csv";
const OBJECTS: &str = "objects.csv";
const LAB: &str = "lab.json";
const HEADING: &str = "interval,process,address,physical_page,home,node,loads,stores,object";

/// `lab.json`, as far as a data set has a place for it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct About {
    machine: String,
    linux: String,
    latency_ns: Vec<Vec<u64>>,
    cpus: Vec<Cpu>,
    iterations_told: u32,
    #[serde(default)]
    lost: u64,
    /// Forms before the third one have none.
    #[serde(default)]
    intervals: Vec<Modelled>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Cpu {
    #[serde(default)]
    node: u16,
    program_local: u64,
    program_remote: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Modelled {
    modelled_ps: u64,
}

/// A line of `accesses.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    interval: u32,
    process: u32,
    address: u64,
    home: u16,
    node: u16,
    loads: u64,
    stores: u64,
    object: Option<usize>,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [interval, process, address, physical, home, node, loads, stores, object] = fields[..] else {
            return None;
        };
        let _: u64 = physical.parse().ok()?;
        Some(Self {
            interval: interval.parse().ok()?,
            process: process.parse().ok()?,
            address: lines::hex(address)?,
            home: home.parse().ok()?,
            node: node.parse().ok()?,
            loads: loads.parse().ok()?,
            stores: stores.parse().ok()?,
            object: if object.is_empty() { None } else { Some(object.parse().ok()?) },
        })
    }
}

/// Takes the name of an object apart: `init.c:31 < main.c:9`, `table`, `stack of thread 2`.
fn name(line: &ObjectsLine) -> Name {
    let name = line.name.clone();
    match line.kind {
        ObjectKind::Static => Name::Variable(name, None),
        ObjectKind::Allocated => {
            let (site, caller) = match name.split_once(" < ") {
                Some((site, caller)) => (site.to_owned(), Some(caller.to_owned())),
                None => (name, None),
            };
            Name::Place { site, caller, variable: None }
        }
        ObjectKind::Stack | ObjectKind::Other => Name::Other(name),
    }
}

/// Fields of `lab.json` without which something has to be assumed.
const NEEDED: [&str; 7] = ["machine", "linux", "latency_ns", "cpus", "iterations_told", "lost", "intervals"];

/// What `lab.json` says.
fn about(old: &OlderFiles<'_>) -> Result<Described<About>, DatasetError> {
    let unknown = || String::from("unknown");
    let assumed = About { machine: unknown(), linux: unknown(), ..About::default() };
    let described = old.described(LAB, assumed, &NEEDED, &[]);
    let about = &described.what;
    let nodes = about.latency_ns.len();
    let square = about.latency_ns.iter().all(|row| row.len() == nodes);
    let known = described.tells("latency_ns");
    if known && (nodes == 0 || nodes as u64 > MAX_NODES || !square) {
        return Err(old.wrong(format!("{LAB}: its latencies are not those of 1 to {MAX_NODES} nodes")));
    }
    let most = if known { nodes } else { MAX_NODES as usize };
    if about.cpus.iter().any(|c| usize::from(c.node) >= most) {
        return Err(old.wrong(format!("{LAB}: a CPU is on a node that is not there")));
    }
    Ok(described)
}

/// Reads the recording.
pub fn read(old: &OlderFiles<'_>, meta: OldMeta) -> Result<(DatasetMeta, MemoryDataset), DatasetError> {
    let described_by = about(old)?;
    let about = &described_by.what;
    let mut wrong = SkippedLine::default();
    let text = old.text(OBJECTS, MAX_CSV)?;
    let mut sites = Sites::read(&text, &mut wrong, name).map_err(|why| old.wrong(why))?;
    drop(text);
    let mut reader = Reader {
        about,
        most_nodes: if about.latency_ns.is_empty() { MAX_NODES as usize } else { about.latency_ns.len() },
        highest_node: about.cpus.iter().map(|c| c.node).max().unwrap_or(0),
        sites: &mut sites,
        tables: MemoryDataset::default(),
        seen: Vec::new(),
        sum: 0,
        last: 0,
    };
    let text = old.text(ACCESSES, MAX_CSV)?;
    let mut stuck = None;
    let read = lines::each(ACCESSES, &text, HEADING, &mut wrong, |line| {
        let row = Row::parse(line).ok_or(NO_SENSE)?;
        reader.row(&row, &mut stuck)
    });
    read.map_err(|why| old.wrong(why))?;
    drop(text);
    if let Some(error) = stuck {
        return Err(error);
    }
    let Reader { mut tables, seen, sum, last, highest_node, .. } = reader;
    let mut meta = described(meta, about);
    meta.incomplete.extend(described_by.said.clone());
    meta.incomplete.extend(wrong.into_words());
    let all = about.cpus.iter().map(|c| c.program_local.saturating_add(c.program_remote));
    let all = all.fold(0, u64::saturating_add);
    if described_by.tells("cpus") && sum > all {
        let why = format!("{ACCESSES}: its lines add up to {sum}, but all CPUs together counted {all}");
        meta.incomplete.push(why);
    }
    if about.lost > 0 {
        meta.incomplete.push(format!("{} accesses did not fit the model", about.lost));
    }
    let elapsed = Ns(meta.ended.as_ref().map_or(0, |e| e.elapsed_ns));
    let intervals = intervals(about, last, elapsed);
    intervals.iter().try_for_each(|i| tables.push(i))?;
    machine(about, highest_node, &mut tables)?;
    iterations(about, &intervals, &sites, &mut tables)?;
    homes(seen, &intervals, &sites, &mut tables)?;
    sites.objects.iter().try_for_each(|o| tables.push(o))?;
    Ok((meta, tables))
}

struct Reader<'a> {
    about: &'a About,
    /// Nodes that a row may name.
    most_nodes: usize,
    /// The highest node that a row or a CPU names.
    highest_node: u16,
    sites: &'a mut Sites,
    tables: MemoryDataset,
    seen: Vec<PageInterval>,
    sum: u64,
    last: u32,
}

impl Reader<'_> {
    fn row(&mut self, row: &Row, stuck: &mut Option<DatasetError>) -> Result<(), &'static str> {
        if usize::from(row.home.max(row.node)) >= self.most_nodes {
            return Err("there is no such node");
        }
        let known = self.about.intervals.len() as u64;
        let most = if known > 0 { known } else { MAX_INTERVALS };
        if u64::from(row.interval) >= most {
            return Err("there is no such interval");
        }
        let (object, page, memory) = match row.object {
            None => (self.sites.other(row.process), row.address / PAGE, u64::MAX),
            Some(number) => {
                let (line, object) = self.sites.line(number).ok_or("there is no such object")?;
                let page = page_of(line, row.address).filter(|_| line.process == row.process);
                (object, page.ok_or("the object has no such page")?, number as u64)
            }
        };
        let (loads, stores) = (row.loads, row.stores);
        self.last = self.last.max(row.interval);
        self.highest_node = self.highest_node.max(row.home).max(row.node);
        self.sum = self.sum.saturating_add(loads).saturating_add(stores);
        let interval = IntervalNo(row.interval);
        for (kind, n) in [(AccessKind::Read, loads), (AccessKind::Write, stores)] {
            if n == 0 {
                continue;
            }
            let pushed = self.tables.push(&Access {
                interval,
                region: None,
                object: Some(object),
                page,
                pages: 1,
                node: NodeId(row.node),
                home: NodeId(row.home),
                kind: Some(kind),
                tally: SeenCount::new(n, Basis::Emulated),
            });
            if let Err(error) = pushed {
                stuck.get_or_insert(error);
            }
        }
        self.seen.push(PageInterval {
            object,
            page,
            interval,
            order: None,
            home: NodeId(row.home),
            uses: loads.saturating_add(stores),
            memory,
            sole: true,
        });
        Ok(())
    }
}

fn described(meta: OldMeta, about: &About) -> DatasetMeta {
    let mut meta = meta.into_dataset_meta(RecordingKind::Lab, Basis::Emulated);
    meta.machine.clone_from(&about.machine);
    meta.source = "the lab's monitor".into();
    meta.notes = vec![
        format!("it ran on Linux {}", about.linux),
        "times of intervals are dealt out: each has a share of the program's time like its share of modelled time"
            .into(),
        "it is not known when memory was freed: an allocation that overlaps an earlier one of its place has taken its memory"
            .into(),
        "a move has the time at which the interval began in which it was first seen; who moved the pages is not known".into(),
    ];
    meta
}

/// The intervals; those between the first and the last iteration count.
fn intervals(about: &About, last: u32, elapsed: Ns) -> Vec<Interval> {
    let mut weights: Vec<u64> = about.intervals.iter().map(|i| i.modelled_ps).collect();
    if weights.is_empty() {
        weights = vec![1; last as usize + 1];
    }
    let told = about.iterations_told;
    let bounded = told > 1;
    let interval = |(number, (begin_ns, end_ns)): (u32, (Ns, Ns))| {
        let timed = !bounded || (1..told).contains(&number);
        let iteration = (bounded && timed).then(|| number - 1);
        Interval { interval: IntervalNo(number), begin_ns, end_ns, iteration, timed }
    };
    (0..).zip(times::dealt(elapsed, &weights)).map(interval).collect()
}

/// Nodes and links. Without known latencies, nodes up to the highest one that was named.
fn machine(about: &About, highest_node: u16, tables: &mut MemoryDataset) -> Result<(), DatasetError> {
    let nodes = match about.latency_ns.len() {
        0 => highest_node + 1,
        known => known as u16,
    };
    for node in 0..nodes {
        let cpus = about.cpus.iter().filter(|c| c.node == node).count() as u32;
        tables.push(&Node { node: NodeId(node), memory_bytes: None::<Bytes>, cpus })?;
    }
    for (row, from) in about.latency_ns.iter().zip(0..) {
        for (latency, to) in row.iter().zip(0..) {
            tables.push(&Link {
                from_node: NodeId(from),
                to_node: NodeId(to),
                distance: None,
                latency_ps: Some(homenode_model::Ps(latency.saturating_mul(1000))),
                bandwidth_mb_per_s: None,
            })?;
        }
    }
    Ok(())
}

/// Rounds, where each call of `hn_iteration` began an interval.
fn iterations(
    about: &About,
    intervals: &[Interval],
    sites: &Sites,
    tables: &mut MemoryDataset,
) -> Result<(), DatasetError> {
    if intervals.len() as u64 != u64::from(about.iterations_told) + 1 {
        return Ok(());
    }
    let process = sites.objects.first().map_or(0, |o| o.process);
    for interval in intervals {
        if let Some(iteration) = interval.iteration {
            tables.push(&Iteration {
                process,
                iteration,
                begin_ns: interval.begin_ns,
                end_ns: interval.end_ns,
                source: IterationSource::Told,
            })?;
        }
    }
    Ok(())
}

/// Residency of all pages; moves of those that are known to belong to one object.
fn homes(
    seen: Vec<PageInterval>,
    intervals: &[Interval],
    sites: &Sites,
    tables: &mut MemoryDataset,
) -> Result<(), DatasetError> {
    let last = IntervalNo(intervals.len().saturating_sub(1) as u32);
    let homes = Homes::of(seen, |_| last);
    homes.residency.iter().try_for_each(|r| tables.push(r))?;
    let other = |o: ObjectId| sites.objects.get(o.index()).is_none_or(|o| o.kind == ObjectKind::Other);
    for m in homes.moves.iter().filter(|m| !other(m.object)) {
        let begin = intervals.get(m.interval.0 as usize).map_or(Ns(0), |i| i.begin_ns);
        tables.push(&Migration {
            time_ns: begin,
            interval: m.interval,
            object: Some(m.object),
            page: m.page,
            pages: m.pages,
            from_node: m.from,
            to_node: m.to,
            cause: MigrationCause::Kernel,
            policy: None,
            region: None,
            thread: None,
            cost_ns: None,
            outcome: m.outcome,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_or_refused() {
        let parsed = Row::parse("0,77,0x7f0000001000,12,1,3,5,6,2").unwrap();
        assert_eq!((parsed.process, parsed.address, parsed.home, parsed.node), (77, 0x7f00_0000_1000, 1, 3));
        assert_eq!((parsed.loads, parsed.stores, parsed.object), (5, 6, Some(2)));
        assert_eq!(Row::parse("0,77,0x1000,12,1,3,5,6,").unwrap().object, None);
        for bad in ["", "0,77,0x1000,12,1,3,5,6", "0,77,1000,12,1,3,5,6,", "0,77,0x1000,12,1,-3,5,6,"] {
            assert_eq!(Row::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn iterations_bound_what_counts() {
        let about = |iterations_told| About {
            machine: String::new(),
            linux: String::new(),
            latency_ns: Vec::new(),
            cpus: Vec::new(),
            iterations_told,
            lost: 0,
            intervals: (0..4).map(|_| Modelled { modelled_ps: 1 }).collect(),
        };
        let timed = |told| {
            let all = intervals(&about(told), 3, Ns(8));
            all.iter().filter(|i| i.timed).map(|i| (i.interval.0, i.iteration)).collect::<Vec<_>>()
        };
        let all = [0, 1, 2, 3].map(|i| (i, None));
        assert_eq!((timed(0), timed(1)), (all.to_vec(), all.to_vec()));
        assert_eq!(
            timed(3),
            [(1, Some(0)), (2, Some(1))],
            "the first begins interval 1, the last interval 3"
        );
    }

    #[test]
    fn names_tell_where_an_allocation_stands() {
        let line =
            |kind, name: &str| ObjectsLine { process: 0, address: 0, bytes: 0, kind, name: name.into() };
        let place = |site: &str, caller: Option<&str>| Name::Place {
            site: site.into(),
            caller: caller.map(str::to_owned),
            variable: None,
        };
        assert_eq!(name(&line(ObjectKind::Allocated, "a.c:6 < b.c:8")), place("a.c:6", Some("b.c:8")));
        assert_eq!(name(&line(ObjectKind::Allocated, "mmap")), place("mmap", None));
        assert_eq!(
            name(&line(ObjectKind::Stack, "stack of thread 0")),
            Name::Other("stack of thread 0".into())
        );
    }
}
