//! Who was seen while a program ran here, as it was written before data sets.
//!
//! | file | what |
//! |---|---|
//! | `sightings.csv` | how often a node was told to be at a page |
//! | `objects.csv` | the objects that were seen ([`super::sites`]) |
//! | `live.json` | what told, what that is worth, what it cost |
//!
//! The form has no times: all of the recording is one interval.

use homenode_model::{AccessKind, NodeId, Ns};
use serde::{Deserialize, Serialize};

use super::lines::{self, NO_SENSE, SkippedLine};
use super::older_files::{Described, MAX_CSV, MAX_NODES, OldMeta, OlderFiles};
use super::sites::{Name, ObjectsLine, PAGE, Sites, page_of};
use crate::basis::{Basis, SeenCount};
use crate::error::DatasetError;
use crate::homes::{Homes, PageInterval};
use crate::memory::MemoryDataset;
use crate::meta::{DatasetMeta, RecordingKind};
use crate::schema::RowSink as _;
use crate::tables::{Access, Interval, IntervalNo, Node, ObjectKind, OwnCost};

pub const SIGHTINGS: &str = "sightings.csv";
pub const ABOUT: &str = "live.json";
const OBJECTS: &str = "objects.csv";
const HEADING: &str = "process,address,home,node,kind,told,object";
const SCHEMA: &str = "homenode/live/1";
/// Most bytes that a row tells of together.
const MOST_TOGETHER: u64 = 1 << 30;

/// `live.json`.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    schema: String,
    kind: String,
    source: String,
    one_in: Option<u64>,
    #[serde(default)]
    bias: Vec<String>,
    nodes: u64,
    pretended: bool,
    bytes_together: u64,
    told: u64,
    processes: Vec<Process>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Process {
    process: u32,
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    covers_ns: u64,
    #[serde(default)]
    own_ns: u64,
    #[serde(default)]
    cpu_ns: u64,
    #[serde(default)]
    lost: u64,
}

impl About {
    /// What holds where nothing is told. A presence claims least.
    fn assumed() -> Self {
        Self {
            schema: SCHEMA.into(),
            kind: "presence".into(),
            source: "unknown".into(),
            one_in: None,
            bias: Vec::new(),
            nodes: 0,
            pretended: false,
            bytes_together: PAGE,
            told: 0,
            processes: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn basis(&self) -> Option<Basis> {
        match (self.kind.as_str(), self.one_in) {
            ("sampled", Some(one_in)) if one_in > 0 => Some(Basis::Sampled { one_in }),
            ("presence", _) => Some(Basis::Presence),
            _ => None,
        }
    }
}

/// A line of `sightings.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    process: u32,
    address: u64,
    home: u16,
    node: u16,
    kind: Option<AccessKind>,
    told: u64,
    object: usize,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [process, address, home, node, kind, told, object] = fields[..] else { return None };
        Some(Self {
            process: process.parse().ok()?,
            address: lines::hex(address)?,
            home: home.parse().ok()?,
            node: node.parse().ok()?,
            kind: match kind {
                "-" => None,
                "load" => Some(AccessKind::Read),
                "store" => Some(AccessKind::Write),
                _ => return None,
            },
            told: told.parse().ok()?,
            object: object.parse().ok()?,
        })
    }
}

/// Takes the words apart that the report says of an object.
fn name(line: &ObjectsLine) -> Name {
    let text = line.name.as_str();
    let owned = |s: &str| s.to_owned();
    let array = text.strip_prefix("array ");
    if line.kind == ObjectKind::Static {
        let variable = array.and_then(|a| a.strip_suffix(", static"));
        return match variable.map(|v| v.split_once(" of ").map_or((v, None), |(v, l)| (v, Some(l)))) {
            Some((variable, library)) => Name::Variable(owned(variable), library.map(owned)),
            None => Name::Other(owned(text)),
        };
    }
    if let Some((variable, place)) = array.and_then(|a| a.split_once(", allocated at ")) {
        let (site, caller) = match place.split_once(" by way of ") {
            Some((caller, site)) => (site, Some(caller)),
            None => (place, None),
        };
        return Name::Place { site: owned(site), caller: caller.map(owned), variable: Some(owned(variable)) };
    }
    if let Some(place) = text.strip_prefix("the array allocated at ") {
        let (site, caller) = match place.split_once(", called from ") {
            Some((site, caller)) => (site, Some(caller)),
            None => (place, None),
        };
        return Name::Place { site: owned(site), caller: caller.map(owned), variable: None };
    }
    Name::Place { site: owned(text), caller: None, variable: None }
}

/// Fields of `live.json` without which something has to be assumed.
const NEEDED: [&str; 8] =
    ["kind", "one_in", "source", "nodes", "pretended", "bytes_together", "told", "processes"];

/// What `live.json` says, and what its numbers are worth.
fn about(old: &OlderFiles<'_>) -> Result<(Described<About>, Basis), DatasetError> {
    let mut described = old.described(ABOUT, About::assumed(), &NEEDED, &["schema"]);
    if described.what.kind == "sampled" && !described.tells("one_in") {
        described.what.kind = "presence".into();
        described.said = described.said.map(|said| said + "; its counts are read as presence");
    }
    let about = &described.what;
    let not = |why: &str| Err(old.wrong(format!("{ABOUT}: {why}")));
    if about.schema != SCHEMA {
        return not(&format!("it is not what {SCHEMA} says"));
    }
    let Some(basis) = about.basis() else { return not("it does not say what its numbers are worth") };
    if about.nodes > MAX_NODES {
        return not(&format!("it has more than {MAX_NODES} nodes"));
    }
    if !(PAGE..=MOST_TOGETHER).contains(&about.bytes_together) || !about.bytes_together.is_multiple_of(PAGE) {
        return not("a row tells of no number of pages");
    }
    Ok((described, basis))
}

/// Reads the recording.
pub fn read(old: &OlderFiles<'_>, meta: OldMeta) -> Result<(DatasetMeta, MemoryDataset), DatasetError> {
    let (mut described_by, basis) = about(old)?;
    let knows_nodes = described_by.tells("nodes");
    let most_nodes = if knows_nodes { described_by.what.nodes } else { MAX_NODES };
    let bytes_together = described_by.what.bytes_together;
    let mut wrong = SkippedLine::default();
    let text = old.text(OBJECTS, MAX_CSV)?;
    let sites = Sites::read(&text, &mut wrong, name).map_err(|why| old.wrong(why))?;
    let text = old.text(SIGHTINGS, MAX_CSV)?;
    let (mut rows, mut seen, mut told, mut nodes) = (Vec::new(), Vec::new(), 0_u64, 0);
    let read = lines::each(SIGHTINGS, &text, HEADING, &mut wrong, |line| {
        let row = Row::parse(line).ok_or(NO_SENSE)?;
        let node = u64::from(row.home.max(row.node));
        if node >= most_nodes {
            return Err("there is no such node");
        }
        let (line, object) = sites.line(row.object).ok_or("there is no such object")?;
        let page = page_of(line, row.address).filter(|_| line.process == row.process);
        let page = page.ok_or("the object has no such page")?;
        told = told.saturating_add(row.told);
        nodes = node.max(nodes);
        rows.push(access(&row, object, page, bytes_together / PAGE, basis));
        seen.push(PageInterval {
            object,
            page,
            interval: IntervalNo(0),
            order: None,
            home: NodeId(row.home),
            uses: row.told,
            memory: row.object as u64,
            sole: true,
        });
        Ok(())
    });
    read.map_err(|why| old.wrong(why))?;
    if !knows_nodes {
        described_by.what.nodes = nodes + 1;
    }
    let about = &described_by.what;
    let mut meta = described(meta, about, basis);
    meta.incomplete.extend(described_by.said.clone());
    meta.incomplete.extend(wrong.into_words());
    if described_by.tells("told") && told != about.told {
        meta.incomplete
            .push(format!("{SIGHTINGS}: its lines add up to {told}, but {} were told", about.told));
    }
    let elapsed = Ns(meta.ended.as_ref().map_or(0, |e| e.elapsed_ns));
    let tables = tables(about, elapsed, &sites, &rows, seen)?;
    Ok((meta, tables))
}

fn access(row: &Row, object: homenode_model::ObjectId, page: u64, pages: u64, basis: Basis) -> Access {
    Access {
        interval: IntervalNo(0),
        region: None,
        object: Some(object),
        page,
        pages,
        node: NodeId(row.node),
        home: NodeId(row.home),
        kind: row.kind,
        tally: SeenCount::new(row.told, basis),
    }
}

fn described(meta: OldMeta, about: &About, basis: Basis) -> DatasetMeta {
    let mut meta = meta.into_dataset_meta(RecordingKind::Live, basis);
    meta.machine = format!("{} nodes", about.nodes);
    meta.pretended = about.pretended;
    meta.source.clone_from(&about.source);
    meta.notes.clone_from(&about.bias);
    meta.notes.extend(about.notes.iter().cloned());
    if about.bytes_together > PAGE {
        meta.coarsened.push(format!("{} pages were told of together", about.bytes_together / PAGE));
    }
    let early = about.processes.iter().filter(|p| !p.whole).count();
    if early > 0 {
        let covers = about.processes.iter().map(|p| p.covers_ns).max().unwrap_or(0) as f64 * 1e-9;
        meta.incomplete.push(format!("{early} of its processes ended early; it covers {covers:.1} s"));
    }
    let lost = about.processes.iter().map(|p| p.lost).fold(0, u64::saturating_add);
    if lost > 0 {
        meta.notes.push(format!("{lost} touches were told and could not be kept"));
    }
    meta
}

/// The tables. `elapsed`: the program's time, for a recording that does not say what it covers.
fn tables(
    about: &About,
    elapsed: Ns,
    sites: &Sites,
    rows: &[Access],
    seen: Vec<PageInterval>,
) -> Result<MemoryDataset, DatasetError> {
    let mut tables = MemoryDataset::default();
    for node in 0..about.nodes as u16 {
        tables.push(&Node { node: NodeId(node), memory_bytes: None, cpus: 0 })?;
    }
    let end = about.processes.iter().map(|p| Ns(p.covers_ns)).max().unwrap_or(elapsed);
    let interval = IntervalNo(0);
    tables.push(&Interval { interval, begin_ns: Ns(0), end_ns: end, iteration: None, timed: true })?;
    sites.objects.iter().try_for_each(|o| tables.push(o))?;
    rows.iter().try_for_each(|r| tables.push(r))?;
    let together = about.bytes_together / PAGE;
    for mut stay in Homes::of(seen, |_| interval).residency {
        // A row's pages are counted together: only its first one is named.
        if together > 1 {
            stay.pages = stay.pages.saturating_mul(together);
        }
        tables.push(&stay)?;
    }
    for p in &about.processes {
        tables.push(&OwnCost {
            time_ns: Ns(p.covers_ns),
            process: p.process,
            own_ns: Ns(p.own_ns),
            cpu_ns: Ns(p.cpu_ns),
        })?;
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_or_refused() {
        let parsed = Row::parse("77,0x7f0000001000,1,3,load,6,2").unwrap();
        assert_eq!((parsed.process, parsed.address, parsed.home, parsed.node), (77, 0x7f00_0000_1000, 1, 3));
        assert_eq!((parsed.kind, parsed.told, parsed.object), (Some(AccessKind::Read), 6, 2));
        for bad in
            ["", "77,0x1000,1,3,load,6", "77,1000,1,3,-,6,2", "77,0x1000,1,-3,-,6,2", "77,0x1000,1,3,x,6,2"]
        {
            assert_eq!(Row::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_a_report_says_of_an_object_is_taken_apart() {
        let of = |kind, name: &str| {
            self::name(&ObjectsLine { process: 0, address: 0, bytes: 0, kind, name: name.into() })
        };
        let place = |site: &str, caller: Option<&str>, variable: Option<&str>| Name::Place {
            site: site.into(),
            caller: caller.map(str::to_owned),
            variable: variable.map(str::to_owned),
        };
        let fixed = |text| of(ObjectKind::Static, text);
        assert_eq!(fixed("array table, static"), Name::Variable("table".into(), None));
        assert_eq!(fixed("array u of libg.so, static"), Name::Variable("u".into(), Some("libg.so".into())));
        assert_eq!(fixed("common block /grid/"), Name::Other("common block /grid/".into()));
        let allocated = |text| of(ObjectKind::Allocated, text);
        assert_eq!(allocated("array a, allocated at i.c:3"), place("i.c:3", None, Some("a")));
        assert_eq!(
            allocated("array a, allocated at m.c:9 by way of i.c:3"),
            place("i.c:3", Some("m.c:9"), Some("a"))
        );
        assert_eq!(
            allocated("the array allocated at i.c:3, called from m.c:9"),
            place("i.c:3", Some("m.c:9"), None)
        );
        assert_eq!(allocated("an array"), place("an array", None, None));
    }

    #[test]
    fn presence_is_never_a_count_and_nothing_else_is_believed() {
        let about = |kind: &str, one_in: Option<u64>| About { kind: kind.into(), one_in, ..About::assumed() };
        assert_eq!(about("presence", None).basis(), Some(Basis::Presence));
        assert_eq!(about("sampled", Some(4000)).basis(), Some(Basis::Sampled { one_in: 4000 }));
        for (kind, one_in) in [("sampled", None), ("sampled", Some(0)), ("exact", None), ("", Some(1))] {
            assert_eq!(about(kind, one_in).basis(), None, "{kind}");
        }
    }
}
