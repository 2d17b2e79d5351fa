//! What lay where in the processes of a program that ran on the lab: told by a library that is loaded into them, named here
//! from the program's own files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use homenode_log::Mark;
use homenode_log::recording::{Meta, Recording, Symbols};

use super::PAGE;
use crate::recorder::finish::Summary;
use crate::symbols;

/// Objects that are kept: a program that allocates for ever must not fill the disk.
const MOST: usize = 1 << 16;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A variable of the program's file.
    Static,
    /// An allocation.
    Allocated,
    /// A thread's stack.
    Stack,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Static, Self::Allocated, Self::Stack];

    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Allocated => "allocated",
            Self::Stack => "stack",
        }
    }
}

/// An object of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The process's number in the guest.
    pub process: u32,
    /// First byte.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// What it is.
    pub kind: Kind,
    /// The variable, or the place in the source where it is allocated.
    pub name: String,
}

/// A line of `objects.csv`.
pub fn parse(line: &str) -> Option<Object> {
    let f: Vec<&str> = line.splitn(6, ',').collect();
    let [_, process, address, bytes, kind, name] = f[..] else { return None };
    Some(Object {
        process: process.parse().ok()?,
        address: u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?,
        bytes: bytes.parse().ok()?,
        kind: Kind::ALL.into_iter().find(|k| k.word() == kind)?,
        name: name.into(),
    })
}

/// What the processes told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Objects, in the order of the processes and of time.
    pub objects: Vec<Object>,
    /// Calls of `hn_iteration`: each began an interval.
    pub iterations: u32,
    /// What was in the way.
    pub trouble: Vec<String>,
}

/// What all processes that wrote their marks to `folder` told.
pub fn read(folder: &Path) -> Told {
    let mut processes: Vec<(u32, u32)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbers = name.split_once('.').and_then(|(id, n)| Some((id.parse().ok()?, n.parse().ok()?)));
        processes.extend(numbers);
    }
    processes.sort_unstable();
    let mut told = Told::default();
    for (process, program) in processes {
        let path = folder.join(format!("{process}.{program}"));
        one(process, &path, &mut told);
    }
    if told.objects.len() > MOST {
        told.trouble.push(format!("of {} objects only the first {MOST} are named", told.objects.len()));
        told.objects.truncate(MOST);
    }
    told.trouble.sort();
    told.trouble.dedup();
    told
}

fn one(process: u32, path: &Path, told: &mut Told) {
    let Told { objects, iterations, trouble } = told;
    let meta = Meta {
        format: homenode_log::VERSION,
        homenode: String::new(),
        kind: String::new(),
        command: Vec::new(),
        environment: BTreeMap::new(),
        filter_lines: 0,
        ended: None,
    };
    let recording = Recording { path: path.to_owned(), meta };
    let summary = Summary::of(&recording);
    let modules = recording.modules();
    let found = symbols::resolve(&modules, &summary.addresses);
    trouble.extend(found.trouble);
    let object = |address, bytes, kind, name| Object { process, address, bytes, kind, name };
    for s in &found.symbols.statics {
        if let Some(module) = modules.iter().find(|m| m.index == s.module) {
            objects.push(object(module.base + s.address, s.bytes, Kind::Static, s.name.clone()));
        }
    }
    let (mut threads, mut births) = (0, Vec::new());
    let read = recording.for_marks(|mark| match mark {
        Mark::ThreadStart { stack_low, stack_high, .. } if stack_low < stack_high => {
            let name = format!("stack of thread {threads}");
            threads += 1;
            objects.push(object(stack_low, stack_high - stack_low, Kind::Stack, name));
        }
        Mark::Alloc { address, bytes, site, caller, order } => {
            births.push((order, object(address, bytes, Kind::Allocated, name(&found.symbols, site, caller))));
        }
        Mark::Iteration { .. } => *iterations += 1,
        _ => {}
    });
    trouble.extend(read.err().map(|e| e.to_string()));
    births.sort_by_key(|(order, _)| *order);
    objects.extend(births.into_iter().map(|(_, o)| o));
}

/// What an allocation at this place in the source is called; as of traces.
fn name(symbols: &Symbols, site: u64, caller: u64) -> String {
    let place = |pc: u64| symbols.places.get(&pc).map(ToString::to_string);
    match (site, place(site), place(caller)) {
        (0, ..) => "mmap".into(),
        (_, Some(site), Some(caller)) => format!("{site} < {caller}"),
        (_, Some(site), None) => site,
        (_, None, _) => format!("allocated at {site:#x}"),
    }
}

/// Which object a page belongs to.
#[derive(Clone, Debug, Default)]
pub struct Owners(BTreeMap<(u32, u64), (usize, u64)>);

impl Owners {
    /// Of the pages at these places (process, address): the object with most bytes in it; the later one of equals.
    pub fn of(objects: &[Object], pages: impl Iterator<Item = (u32, u64)>) -> Self {
        let mut owners: BTreeMap<(u32, u64), (usize, u64)> =
            pages.map(|(process, address)| ((process, address / PAGE), (usize::MAX, 0))).collect();
        for (i, o) in objects.iter().enumerate() {
            let end = o.address.saturating_add(o.bytes);
            let (first, last) = (o.address / PAGE, end.div_ceil(PAGE));
            for ((_, page), place) in owners.range_mut((o.process, first)..(o.process, last.max(first))) {
                let bytes = end.min((page + 1).saturating_mul(PAGE)) - o.address.max(page * PAGE);
                if bytes >= place.1 {
                    *place = (i, bytes);
                }
            }
        }
        owners.retain(|_, (_, bytes)| *bytes > 0);
        Self(owners)
    }

    /// The object of the page at `address`.
    pub fn owner(&self, process: u32, address: u64) -> Option<usize> {
        self.0.get(&(process, address / PAGE)).map(|(i, _)| *i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(process: u32, address: u64, bytes: u64) -> Object {
        Object { process, address, bytes, kind: Kind::Allocated, name: "a, b".into() }
    }

    #[test]
    fn a_page_belongs_to_whom_most_of_it_belongs() {
        let objects = [
            object(7, PAGE, PAGE + 100),
            object(7, 2 * PAGE + 100, PAGE),
            object(7, PAGE, PAGE),
            object(8, 0, 1),
        ];
        let pages = (0..4).flat_map(|page| [7, 8].map(|process| (process, page * PAGE)));
        let owners = Owners::of(&objects, pages);
        let of = |process, page| owners.owner(process, page * PAGE + 5);
        assert_eq!([of(7, 0), of(7, 1), of(7, 2), of(7, 3)], [None, Some(2), Some(1), Some(1)]);
        assert_eq!((of(8, 0), of(8, 1)), (Some(3), None));
    }

    #[test]
    fn names_may_have_commas() {
        let o = parse("3,77,0x1000,8192,allocated,a, b").unwrap();
        assert_eq!(o, object(77, 4096, 8192));
        for bad in ["", "3,77,0x1000,8192,thing,a", "3,77,4096,8192,static,a", "3,77,0x1000"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
