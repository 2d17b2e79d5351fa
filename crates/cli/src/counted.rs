//! Recordings of counts: what the lab's monitor saw, by page and accessing node, instead of a trace.
//!
//! | file | what | where |
//! |---|---|---|
//! | `accesses.csv` | main-memory accesses by interval, process, page, node | [`Row`] |
//! | `objects.csv` | what lay where in the processes | [`objects`] |
//! | `lab.json` | the machine and what its CPUs did | [`About`] |

pub mod objects;

use std::fmt::Write as _;
use std::fs;

use homenode_lab::monitor::{Found, Page, Whose};
use homenode_log::recording::Recording;
use homenode_model::{Matrix, Ns};
use serde_json::Value;

use crate::error::{CliError, Context, Result};
use crate::recorder::directory::{ACCESSES, LAB, OBJECTS};
use crate::recorder::shown;
use crate::sighted;
use objects::Object;

/// Bytes of the pages that are counted.
pub const PAGE: u64 = 4096;

const HEADING: &str = "interval,process,address,physical_page,home,node,loads,stores,object";
pub(crate) const OBJECTS_HEADING: &str = "object,process,address,bytes,kind,name";

/// A line of `accesses.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Between marks of the program, from 0.
    pub interval: u32,
    /// The process's number in the guest.
    pub process: u32,
    /// Virtual address of the page.
    pub address: u64,
    /// Place in the guest's memory, in pages.
    pub physical: u64,
    /// The node whose memory that is.
    pub home: u16,
    /// The accessing node.
    pub node: u16,
    /// Loads that reached memory.
    pub loads: u64,
    /// Stores that did.
    pub stores: u64,
    /// The object that most of the page belongs to, by its place in `objects.csv`.
    pub object: Option<usize>,
}

/// What a program's processes did, with what lay where in them.
pub fn rows(found: &Found, objects: &[Object]) -> Vec<Row> {
    let id = |page: &Page| found.processes.get(&page.process).map_or(0, |p| p.id);
    let own = || found.pages.iter().filter(|p| found.whose(p.process) == Whose::Program);
    let owners = objects::Owners::of(objects, own().map(|p| (id(p), p.page * PAGE)));
    let mut rows = Vec::new();
    for page in own() {
        let process = id(page);
        let address = page.page * PAGE;
        let object = owners.owner(process, address);
        for (node, [loads, stores]) in page.counts.iter().enumerate().filter(|(_, c)| **c != [0, 0]) {
            rows.push(Row {
                interval: page.interval,
                process,
                address,
                physical: page.physical,
                home: page.home.0,
                node: node as u16,
                loads: *loads,
                stores: *stores,
                object,
            });
        }
    }
    rows
}

/// Writes `accesses.csv` and `objects.csv`.
///
/// # Errors
/// They cannot be written.
pub fn write(recording: &Recording, rows: &[Row], objects: &[Object]) -> Result<()> {
    let mut text = format!("{HEADING}\n");
    for r in rows {
        let Row { interval, process, address, physical, home, node, loads, stores, object } = r;
        let object = object.map(|o| o.to_string()).unwrap_or_default();
        let _ = writeln!(
            text,
            "{interval},{process},{address:#x},{physical},{home},{node},{loads},{stores},{object}"
        );
    }
    put(recording, ACCESSES, &text)?;
    let mut text = format!("{OBJECTS_HEADING}\n");
    for (i, o) in objects.iter().enumerate() {
        let name = o.name.replace(['\n', '\r'], " ");
        let _ = writeln!(text, "{i},{},{:#x},{},{},{name}", o.process, o.address, o.bytes, o.kind.word());
    }
    put(recording, OBJECTS, &text)
}

/// Writes a file of a recording.
///
/// # Errors
/// It cannot be written.
pub fn put(recording: &Recording, name: &str, text: &str) -> Result<()> {
    let path = recording.path.join(name);
    fs::write(&path, text).context(|| format!("cannot write {}", path.display()))
}

/// What a command wants of a recording's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The modelled machine, in words.
    pub machine: String,
    /// Linux's version.
    pub linux: String,
    /// By accessing node and home.
    pub latency: Matrix<Ns>,
    /// Main-memory accesses of the program: what the rows add up to at most.
    pub program: u64,
    /// Calls of `hn_iteration`.
    pub iterations: u32,
}

/// A recording of counts.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Its rows.
    pub rows: Vec<Row>,
    /// Its objects.
    pub objects: Vec<Object>,
    /// Its machine.
    pub about: About,
}

/// Whether this is a recording of counts.
pub fn is(recording: &Recording) -> bool {
    recording.path.join(ACCESSES).is_file()
}

/// For commands that need a trace.
///
/// # Errors
/// The recording has counts, with what can be done instead.
pub fn refuse(recording: &Recording, what: &str) -> Result<()> {
    sighted::refuse(recording, what)?;
    if !is(recording) {
        return Ok(());
    }
    let path = shown(&recording.path);
    Err(CliError::usage(format!("cannot {what} {path}: it has counts by page and node, not a trace"))
        .tried("it was recorded on the lab, where Linux placed the pages: no other placement can be simulated from counts")
        .hint(format!(
            "'homenode show {path}' reads it; 'homenode compare --on lab' runs each scheme there; \
             'homenode record --on emulator' writes a trace of the same program"
        )))
}

impl Counted {
    /// The rows between the first and the last iteration that the program told of; all of them where it told of none. As traces are
    /// simulated.
    pub fn timed(&self) -> impl Iterator<Item = &Row> {
        let bounded = self.about.iterations > 1;
        self.rows.iter().filter(move |r| !bounded || (1..self.about.iterations).contains(&r.interval))
    }

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
            about(&read(LAB)?).ok_or_else(|| damaged(recording, LAB, "it is not what homenode writes"))?;
        let objects = lines(recording, OBJECTS, OBJECTS_HEADING, &read(OBJECTS)?, objects::parse)?;
        let rows = lines(recording, ACCESSES, HEADING, &read(ACCESSES)?, row)?;
        let nodes = about.latency.len();
        let wrong = rows.iter().position(|r| {
            usize::from(r.home).max(usize::from(r.node)) >= nodes
                || r.object.is_some_and(|o| o >= objects.len())
        });
        if let Some(at) = wrong {
            let why = format!("line {}: there is no such node or object", at + 2);
            return Err(damaged(recording, ACCESSES, &why));
        }
        let sum: u64 = rows.iter().map(|r| r.loads.saturating_add(r.stores)).fold(0, u64::saturating_add);
        if sum > about.program {
            let why = format!("its lines add up to {sum}, but all CPUs together counted {}", about.program);
            return Err(damaged(recording, ACCESSES, &why));
        }
        Ok(Self { rows, objects, about })
    }
}

pub(crate) fn damaged(recording: &Recording, name: &str, why: &str) -> CliError {
    CliError::failed(format!("{} is damaged", shown(&recording.path)))
        .tried(format!("read {name}: {why}"))
        .hint("record it again")
}

/// The lines behind a heading.
pub(crate) fn lines<T>(
    recording: &Recording,
    name: &str,
    heading: &str,
    text: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Vec<T>> {
    let mut lines = text.lines();
    if lines.next() != Some(heading) {
        return Err(damaged(recording, name, "its heading is another one"));
    }
    let one = |(i, line): (usize, &str)| {
        parse(line).ok_or_else(|| damaged(recording, name, &format!("line {} makes no sense", i + 2)))
    };
    lines.enumerate().map(one).collect()
}

fn row(line: &str) -> Option<Row> {
    let f: Vec<&str> = line.split(',').collect();
    let [interval, process, address, physical, home, node, loads, stores, object] = f[..] else {
        return None;
    };
    Some(Row {
        interval: interval.parse().ok()?,
        process: process.parse().ok()?,
        address: u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?,
        physical: physical.parse().ok()?,
        home: home.parse().ok()?,
        node: node.parse().ok()?,
        loads: loads.parse().ok()?,
        stores: stores.parse().ok()?,
        object: if object.is_empty() { None } else { Some(object.parse().ok()?) },
    })
}

fn about(text: &str) -> Option<About> {
    let json: Value = serde_json::from_str(text).ok()?;
    let number = |v: &Value| v.as_u64();
    let rows: Vec<Vec<u64>> = json["latency_ns"]
        .as_array()?
        .iter()
        .map(|row| row.as_array()?.iter().map(number).collect())
        .collect::<Option<_>>()?;
    let n = rows.len();
    if n == 0 || rows.iter().any(|r| r.len() != n) {
        return None;
    }
    let program = json["cpus"]
        .as_array()?
        .iter()
        .map(|c| Some(number(&c["program_local"])?.saturating_add(number(&c["program_remote"])?)));
    Some(About {
        machine: json["machine"].as_str()?.into(),
        linux: json["linux"].as_str()?.into(),
        latency: Matrix::from_fn(n, |i, j| Ns(rows[i][j])),
        program: program.sum::<Option<u64>>()?,
        iterations: u32::try_from(number(&json["iterations_told"])?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_or_refused() {
        let parsed = row("0,77,0x7f0000001000,12,1,3,5,6,2").unwrap();
        assert_eq!((parsed.process, parsed.address, parsed.home, parsed.node), (77, 0x7f00_0000_1000, 1, 3));
        assert_eq!((parsed.loads, parsed.stores, parsed.object), (5, 6, Some(2)));
        assert_eq!(row("0,77,0x1000,12,1,3,5,6,").unwrap().object, None);
        for bad in ["", "0,77,0x1000,12,1,3,5,6", "0,77,1000,12,1,3,5,6,", "0,77,0x1000,12,1,-3,5,6,"] {
            assert_eq!(row(bad), None, "{bad}");
        }
    }

    #[test]
    fn iterations_bound_what_counts() {
        let row = |interval| Row { interval, ..row("0,7,0x1000,1,0,0,1,0,").unwrap() };
        let about = |iterations| About {
            machine: String::new(),
            linux: String::new(),
            latency: Matrix::from_fn(1, |_, _| Ns(1)),
            program: 4,
            iterations,
        };
        let of = |iterations| {
            let counted =
                Counted { rows: (0..4).map(row).collect(), objects: Vec::new(), about: about(iterations) };
            counted.timed().map(|r| r.interval).collect::<Vec<_>>()
        };
        assert_eq!((of(0), of(1)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
        assert_eq!(of(3), [1, 2], "the first begins interval 1, the last interval 3");
    }

    #[test]
    fn a_machine_is_read_or_refused() {
        let text = r#"{"machine":"m","linux":"6","iterations_told":0,"latency_ns":[[1,2],[3,4]],
            "cpus":[{"program_local":1,"program_remote":2},{"program_local":3,"program_remote":4}]}"#;
        let read = about(text).unwrap();
        assert_eq!((read.program, read.latency.row(homenode_model::NodeId(1))), (10, &[Ns(3), Ns(4)][..]));
        assert!(about(&text.replace("[3,4]", "[3]")).is_none() && about("{}").is_none());
    }
}
