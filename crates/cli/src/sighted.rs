//! Recordings of a program as it ran here, told by samples: who was seen at which page, and how often that was told.
//!
//! | file | what | where |
//! |---|---|---|
//! | `sightings.csv` | who was seen, by process, page, home, node, kind | [`Row`] |
//! | `objects.csv` | the objects that were seen, as of the lab's recordings | [`Object`] |
//! | `live.json` | what told, what that is worth, what it cost | [`About`] |
//!
//! `told` is no count of accesses. Where the source samples, each stands for [`About::one_in`]; where it tells presence, it says that
//! a node came to the page first after it had been asked for.

use std::fmt::Write as _;
use std::fs;

use homenode_log::recording::Recording;
use serde_json::{Value, json};

use crate::counted::objects::{self, Kind, Object};
use crate::counted::{OBJECTS_HEADING, PAGE, damaged, lines, put};
use crate::error::{CliError, Context, Result};
use crate::live::advice::{self, Names};
use crate::live::facts::Origin;
use crate::live::touched::{Says, Touched};
use crate::recorder::directory::{LIVE, OBJECTS, SIGHTINGS};
use crate::recorder::shown;

const HEADING: &str = "process,address,home,node,kind,told,object";
/// Name and version of `live.json`.
const SCHEMA: &str = "homenode/live/1";
/// How a page was touched, as it is written.
const KINDS: [&str; 3] = ["-", "load", "store"];

/// A line of `sightings.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The process.
    pub process: u32,
    /// Address of the first of the pages.
    pub address: u64,
    /// The node whose memory that was when it was first looked at.
    pub home: u16,
    /// Who was there.
    pub node: u16,
    /// `load`, `store`, or `-`: not known.
    pub kind: String,
    /// How often that was told.
    pub told: u64,
    /// The object, by its place in `objects.csv`.
    pub object: usize,
}

/// What `live.json` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What told.
    pub source: String,
    /// Accesses that one sample stands for; `None`: presence.
    pub one_in: Option<u64>,
    /// What is known of how far it can be trusted, a sentence each.
    pub bias: Vec<String>,
    /// Nodes, and whether they are pretended.
    pub nodes: u64,
    /// They are pretended.
    pub pretended: bool,
    /// Bytes of the pages that a row tells of.
    pub bytes_together: u64,
    /// What the rows add up to.
    pub told: u64,
    /// Of so many processes none had come to its end when it was last written down.
    pub early: u64,
    /// Nanoseconds that the recording covers.
    pub covers: u64,
}

impl About {
    /// What its numbers are, in words.
    pub fn says(&self) -> String {
        match self.one_in {
            Some(n) => format!("sampled (one in {n})"),
            None => "presence (order only)".into(),
        }
    }
}

/// A recording of who was seen.
#[derive(Clone, Debug)]
pub struct Sighted {
    /// Its rows.
    pub rows: Vec<Row>,
    /// Its objects.
    pub objects: Vec<Object>,
    /// What told.
    pub about: About,
}

/// Whether this is a recording of who was seen.
pub fn is(recording: &Recording) -> bool {
    recording.path.join(LIVE).is_file() || recording.path.join(SIGHTINGS).is_file()
}

/// The word for a recording of what was told.
pub fn kind(all: &[Touched]) -> &'static str {
    let counts = |t: &Touched| matches!(t.says, Says::Sampled(_));
    let all_count = all.iter().filter(|t| !t.seen.is_empty()).all(counts);
    if main(all).is_some_and(counts) && all_count { "sampled" } else { "presence" }
}

/// The process that most was told of: a shell that started it has nothing to say.
pub fn main(all: &[Touched]) -> Option<&Touched> {
    all.iter().max_by_key(|t| (t.told[0], std::cmp::Reverse(t.pid)))
}

/// What a source is known to get wrong.
fn bias(all: &[Touched], pretended: bool) -> Vec<&'static str> {
    let mut list = match main(all).map(|t| t.says) {
        None | Some(Says::Nothing) => {
            vec!["nothing told: what is missing here was not seen, and may have been used"]
        }
        Some(Says::Sampled(_)) => vec![
            "each sample stands for as many accesses as it is one of: a row of n samples has a standard error of the square root of n",
        ],
        Some(Says::Presence) => vec![
            "each time is who came first to a page after it was asked for: not how often it is used",
            "pages are asked for in turn, whoever uses them how often: shares of nodes are those of a page's time, not of the program's accesses",
        ],
        Some(Says::Writers) => vec![
            "stores alone are told: who only reads a page is not seen at it",
            "each time is who came first to a page after it was asked for: not how often it is written",
        ],
    };
    list.push(
        "objects of 64 KiB and more, without their first and last page where these are shared; no stacks",
    );
    list.push("a home is where a page was when it was first looked at");
    if pretended {
        list.push("the nodes are pretended: CPUs were dealt into them");
    }
    list
}

/// What the recording is told of besides.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The nodes are pretended.
    pub pretended: bool,
    /// What a person should know.
    pub notes: &'a [String],
}

/// Writes the files of a recording. How many rows and objects there are.
///
/// # Errors
/// They cannot be written.
pub fn write(recording: &Recording, all: &[Touched], run: &Run<'_>) -> Result<(usize, usize)> {
    let (mut rows, mut named) = (format!("{HEADING}\n"), format!("{OBJECTS_HEADING}\n"));
    let (mut first, mut count, mut told) = (0, 0, 0_u64);
    for process in all {
        let pid = process.pid;
        for (i, (address, object)) in
            (first..).zip(process.objects.iter().zip(names(process)).map(|((a, o), n)| (*a, (o, n))))
        {
            let (object, name) = object;
            let kind = match object.origin {
                Origin::Static(_) | Origin::Library(..) => Kind::Static,
                Origin::Allocated(_) => Kind::Allocated,
            };
            let name = name.replace(['\n', '\r'], " ");
            let _ = writeln!(named, "{i},{pid},{address:#x},{},{},{name}", object.bytes, kind.word());
        }
        for seen in &process.seen {
            let object = first + seen.object;
            let start = process.objects[seen.object].0.next_multiple_of(PAGE);
            let address = start.saturating_add(seen.page.saturating_mul(PAGE));
            let (home, node, kind) = (seen.home, seen.node, &seen.kind);
            let _ = writeln!(rows, "{pid},{address:#x},{home},{node},{kind},{},{object}", seen.told);
            told = told.saturating_add(seen.told);
            count += 1;
        }
        first += process.objects.len();
    }
    put(recording, SIGHTINGS, &rows)?;
    put(recording, OBJECTS, &named)?;
    put(recording, LIVE, &format!("{:#}\n", about_json(all, run, told)))?;
    Ok((count, first))
}

/// Names of a process's objects; of those with one name that are alike, one says it for all.
fn names(process: &Touched) -> Vec<String> {
    let facts = process.facts();
    let names = Names::of(&facts);
    facts.most.iter().map(|o| advice::name(o, &facts.most, &names)).collect()
}

fn about_json(all: &[Touched], run: &Run<'_>, told: u64) -> Value {
    let first = main(all);
    let processes: Vec<_> = all
        .iter()
        .map(|t| {
            json!({
                "process": t.pid, "whole": t.whole, "covers_ns": t.elapsed, "own_ns": t.own[0], "cpu_ns": t.own[1],
                "told": t.told[0], "asked": t.told[1], "lost": t.told[2], "state_bytes": t.state[0],
                "watched_bytes": t.state[1], "pages_together": t.together,
            })
        })
        .collect();
    let mut notes: Vec<&String> = all.iter().flat_map(|t| &t.notes).chain(run.notes).collect();
    notes.sort();
    notes.dedup();
    json!({
        "schema": SCHEMA, "kind": kind(all), "source": first.map_or("nothing", |t| t.source.as_str()),
        "one_in": first.and_then(|t| if let Says::Sampled(n) = t.says { Some(n) } else { None }),
        "bias": bias(all, run.pretended), "nodes": all.iter().map(|t| t.nodes).max().unwrap_or(0),
        "pretended": run.pretended, "bytes_together": all.iter().map(|t| t.together).max().unwrap_or(1) * PAGE,
        "told": told, "processes": processes, "notes": notes,
    })
}

impl Sighted {
    /// Reads it.
    ///
    /// # Errors
    /// A file cannot be read, or a line makes no sense.
    pub fn open(recording: &Recording) -> Result<Self> {
        let read = |name: &str| {
            let path = recording.path.join(name);
            fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))
        };
        let about =
            about(&read(LIVE)?).ok_or_else(|| damaged(recording, LIVE, "it is not what homenode writes"))?;
        let objects = lines(recording, OBJECTS, OBJECTS_HEADING, &read(OBJECTS)?, objects::parse)?;
        let rows = lines(recording, SIGHTINGS, HEADING, &read(SIGHTINGS)?, row)?;
        let wrong = rows.iter().position(|r| {
            let node = u64::from(r.home.max(r.node));
            node >= about.nodes || objects.get(r.object).is_none_or(|o| !holds(o, r))
        });
        if let Some(at) = wrong {
            let why = format!("line {}: there is no such node or page of an object", at + 2);
            return Err(damaged(recording, SIGHTINGS, &why));
        }
        let sum = rows.iter().map(|r| r.told).fold(0, u64::saturating_add);
        if sum != about.told {
            let why = format!("its lines add up to {sum}, but {} were told", about.told);
            return Err(damaged(recording, SIGHTINGS, &why));
        }
        Ok(Self { rows, objects, about })
    }

    /// What was told of each object.
    pub fn by_object(&self) -> Vec<Totals> {
        let nodes = self.about.nodes as usize;
        let fresh = Totals { by: vec![0; nodes], at: vec![0; nodes], remote: 0 };
        let mut all = vec![fresh; self.objects.len()];
        for r in &self.rows {
            let totals = &mut all[r.object];
            totals.by[usize::from(r.node)] += r.told;
            totals.at[usize::from(r.home)] += r.told;
            totals.remote += if r.node == r.home { 0 } else { r.told };
        }
        all
    }
}

/// How often an object's pages were told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// By the node that was seen.
    pub by: Vec<u64>,
    /// By the page's home.
    pub at: Vec<u64>,
    /// Of nodes that are not the page's home.
    pub remote: u64,
}

fn holds(object: &Object, row: &Row) -> bool {
    let end = object.address.saturating_add(object.bytes);
    row.process == object.process && (object.address..end).contains(&row.address)
}

fn row(line: &str) -> Option<Row> {
    let f: Vec<&str> = line.split(',').collect();
    let [process, address, home, node, kind, told, object] = f[..] else { return None };
    Some(Row {
        process: process.parse().ok()?,
        address: u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?,
        home: home.parse().ok()?,
        node: node.parse().ok()?,
        kind: KINDS.contains(&kind).then(|| kind.to_owned())?,
        told: told.parse().ok()?,
        object: object.parse().ok()?,
    })
}

/// Nodes of the largest machine that is believed.
const MOST_NODES: u64 = 256;

fn about(text: &str) -> Option<About> {
    let json: Value = serde_json::from_str(text).ok()?;
    let number = |name: &str| json[name].as_u64();
    if json["schema"].as_str()? != SCHEMA {
        return None;
    }
    let processes = json["processes"].as_array()?;
    let texts = |name: &str| -> Option<Vec<String>> {
        json[name].as_array()?.iter().map(|t| Some(t.as_str()?.to_owned())).collect()
    };
    let one_in = match json["kind"].as_str()? {
        "sampled" => Some(number("one_in")?),
        "presence" => None,
        _ => return None,
    };
    Some(About {
        source: json["source"].as_str()?.into(),
        one_in,
        bias: texts("bias")?,
        nodes: number("nodes").filter(|n| *n <= MOST_NODES)?,
        pretended: json["pretended"].as_bool()?,
        bytes_together: number("bytes_together")?,
        told: number("told")?,
        early: processes.iter().filter(|p| p["whole"].as_bool() != Some(true)).count() as u64,
        covers: processes.iter().filter_map(|p| p["covers_ns"].as_u64()).max().unwrap_or(0),
    })
}

/// For commands that need a trace.
///
/// # Errors
/// The recording has none, with what can be done instead.
pub fn refuse(recording: &Recording, what: &str) -> Result<()> {
    if !is(recording) {
        return Ok(());
    }
    let path = shown(&recording.path);
    let kind = recording.meta.kind.as_str();
    Err(CliError::usage(format!("cannot {what} {path}: it has counts by page and node, not a trace"))
        .tried(format!(
            "it was told by samples ({kind}) while the program ran, where Linux placed the pages: no other placement can be simulated"
        ))
        .hint(format!(
            "'homenode show {path}' reads it; 'homenode record --on emulator' writes a trace of the same program"
        )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_or_refused() {
        let parsed = row("77,0x7f0000001000,1,3,load,6,2").unwrap();
        assert_eq!((parsed.process, parsed.address, parsed.home, parsed.node), (77, 0x7f00_0000_1000, 1, 3));
        assert_eq!((parsed.kind.as_str(), parsed.told, parsed.object), ("load", 6, 2));
        for bad in
            ["", "77,0x1000,1,3,load,6", "77,1000,1,3,-,6,2", "77,0x1000,1,-3,-,6,2", "77,0x1000,1,3,x,6,2"]
        {
            assert_eq!(row(bad), None, "{bad}");
        }
    }

    #[test]
    fn presence_is_never_called_a_count() {
        let touched = |says| Touched { nodes: 2, together: 1, says, ..Touched::default() };
        let run = Run { pretended: true, notes: &[] };
        let of = |says| {
            let all = [touched(says)];
            let text = about_json(&all, &run, 0).to_string();
            (kind(&all), about(&text).unwrap().says())
        };
        assert_eq!(of(Says::Sampled(4000)), ("sampled", "sampled (one in 4000)".into()));
        for says in [Says::Presence, Says::Writers, Says::Nothing] {
            assert_eq!(of(says), ("presence", "presence (order only)".into()));
        }
        assert_eq!(kind(&[touched(Says::Sampled(1)), touched(Says::Presence)]), "presence");
        assert_eq!(kind(&[]), "presence");
        assert!(about("{}").is_none());
    }
}
