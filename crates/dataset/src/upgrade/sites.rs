//! The objects of both forms: `objects.csv`, one line an allocation.
//!
//! The old forms do not say when memory was freed. An allocation that overlaps an earlier one of
//! the same place has taken its memory: both are one object.

use std::collections::BTreeMap;

use homenode_model::{Bytes, ObjectId};

use super::lines::{self, NO_SENSE, SkippedLine};
use crate::fields::Fields;
use crate::foreign::clean;
use crate::identity::{self, Slots};
use crate::tables::{Object, ObjectKind};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
const HEADING: &str = "object,process,address,bytes,kind,name";

/// A line of `objects.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsLine {
    pub process: u32,
    pub address: u64,
    pub bytes: u64,
    pub kind: ObjectKind,
    pub name: String,
}

impl ObjectsLine {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.splitn(6, ',').collect();
        let [_, process, address, bytes, kind, name] = fields[..] else { return None };
        let kinds = [ObjectKind::Static, ObjectKind::Allocated, ObjectKind::Stack];
        Some(Self {
            process: process.parse().ok()?,
            address: lines::hex(address)?,
            bytes: bytes.parse().ok()?,
            kind: kinds.into_iter().find(|k| k.as_str() == kind)?,
            name: clean(name),
        })
    }

    /// One past the last byte.
    const fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

/// What a line's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A variable, with the file name of its library.
    Variable(String, Option<String>),
    /// The place of an allocation, the call of its function, and the variable that gets it.
    Place { site: String, caller: Option<String>, variable: Option<String> },
    /// Something else.
    Other(String),
}

/// The objects, and which of them a line belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Lines by number; none for one that made no sense, so that the numbers hold.
    lines: Vec<Option<(ObjectsLine, ObjectId)>>,
    /// The objects.
    pub objects: Vec<Object>,
    /// Those that stand for the rest of a process's memory.
    others: BTreeMap<u32, ObjectId>,
}

/// Allocations of a place that live, by address: end and slot.
type Live = BTreeMap<u64, (u64, u32)>;

impl Sites {
    /// Reads `objects.csv`; `name` takes a line's name apart.
    ///
    /// # Errors
    /// Its heading is another one.
    pub fn read(
        text: &str,
        wrong: &mut SkippedLine,
        name: impl Fn(&ObjectsLine) -> Name,
    ) -> Result<Self, String> {
        let mut sites = Self::default();
        let mut places = Places::default();
        lines::each("objects.csv", text, HEADING, wrong, |text| {
            let line = ObjectsLine::parse(text);
            let found = line.is_some();
            sites.lines.push(line.map(|line| {
                let object = places.object(&line, name(&line), &mut sites.objects);
                (line, object)
            }));
            if found { Ok(()) } else { Err(NO_SENSE) }
        })?;
        Ok(sites)
    }

    /// The line of that number.
    pub fn line(&self, number: usize) -> Option<(&ObjectsLine, ObjectId)> {
        self.lines.get(number)?.as_ref().map(|(line, object)| (line, *object))
    }

    /// The object that stands for all memory of a process without a known object, made if need be.
    /// Its pages are counted from address 0.
    pub fn other(&mut self, process: u32) -> ObjectId {
        let objects = &mut self.objects;
        *self.others.entry(process).or_insert_with(|| {
            let object = ObjectId(objects.len() as u32);
            objects.push(identity::other_memory(object, process));
            object
        })
    }
}

#[derive(Default)]
struct Places {
    slots: Slots<(u32, String, Option<String>)>,
    live: BTreeMap<(u32, String, Option<String>), Live>,
    /// By process and id.
    known: BTreeMap<(u32, String), usize>,
}

impl Places {
    fn object(&mut self, line: &ObjectsLine, name: Name, objects: &mut Vec<Object>) -> ObjectId {
        let (id, shown, place) = match name {
            Name::Variable(name, library) => (identity::of_static(&name, library.as_deref()), name, None),
            Name::Place { site, caller, variable } => {
                let slot = self.slot(line, &site, caller.as_deref());
                let id = identity::of_allocation(&site, caller.as_deref(), slot);
                let place = match &caller {
                    Some(caller) => format!("{site} < {caller}"),
                    None => site.clone(),
                };
                (id, variable.unwrap_or(place), Some((site, caller)))
            }
            Name::Other(name) => (name.clone(), name, None),
        };
        let key = (line.process, id);
        if let Some(object) = self.known.get(&key).and_then(|at| objects.get_mut(*at)) {
            object.bytes = object.bytes.max(Bytes(line.bytes));
            object.allocations += 1;
            return object.object;
        }
        let object = ObjectId(objects.len() as u32);
        let (file, number) = place.as_ref().and_then(|(site, _)| file_and_line(site)).unzip();
        objects.push(Object {
            object,
            id: key.1.clone(),
            process: line.process,
            name: shown,
            kind: line.kind,
            element_type: None,
            element_bytes: None,
            dimensions: Vec::new(),
            fields: Fields::default(),
            file,
            line: number,
            function: None,
            stack: place.into_iter().flat_map(|(site, caller)| [Some(site), caller]).flatten().collect(),
            bytes: Bytes(line.bytes),
            address: line.address,
            allocations: 1,
            birth_ns: None,
            death_ns: None,
        });
        self.known.insert(key, object.index());
        object
    }

    /// The slot of an allocation; whoever had its memory before is gone.
    fn slot(&mut self, line: &ObjectsLine, site: &str, caller: Option<&str>) -> u32 {
        let key = (line.process, site.to_owned(), caller.map(str::to_owned));
        let live = self.live.entry(key.clone()).or_default();
        let gone = |live: &Live| {
            let before = live.range(..line.end().max(line.address.saturating_add(1))).next_back();
            before.filter(|(_, (end, _))| *end > line.address).map(|(at, (_, slot))| (*at, *slot))
        };
        while let Some((at, slot)) = gone(live) {
            live.remove(&at);
            self.slots.give_back(&key, slot);
        }
        let slot = self.slots.take(key);
        live.insert(line.address, (line.end(), slot));
        slot
    }
}

/// `init.c:31` as a file and a line.
fn file_and_line(place: &str) -> Option<(String, u32)> {
    let (file, line) = place.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?))
}

/// The page of an address within an object that lies at `start`; none where the object has none
/// there.
pub fn page_of(line: &ObjectsLine, address: u64) -> Option<u64> {
    let page = (address / PAGE).checked_sub(line.address / PAGE)?;
    (address / PAGE * PAGE < line.end()).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Sites, Option<String>) {
        let mut wrong = SkippedLine::default();
        let place = |line: &ObjectsLine| match line.kind {
            ObjectKind::Static => Name::Variable(line.name.clone(), None),
            _ => Name::Place { site: line.name.clone(), caller: None, variable: None },
        };
        let sites = Sites::read(&format!("{HEADING}\n{text}"), &mut wrong, place).unwrap();
        (sites, wrong.into_words())
    }

    #[test]
    fn allocations_of_one_place_are_told_apart_by_their_memory() {
        let (sites, wrong) = read(
            "0,7,0x1000,4096,allocated,a.c:3\n1,7,0x4000,4096,allocated,a.c:3\n\
             2,7,0x1800,4096,allocated,a.c:3\n3,8,0x1000,4096,allocated,a.c:3\n4,7,0x9000,8,static,x, y\n",
        );
        let ids: Vec<_> = sites.objects.iter().map(|o| (o.process, o.id.as_str(), o.allocations)).collect();
        assert_eq!(ids, [(7, "a.c:3 #0", 2), (7, "a.c:3 #1", 1), (8, "a.c:3 #0", 1), (7, "x, y", 1)]);
        assert_eq!(sites.line(2).unwrap().1, ObjectId(0));
        assert_eq!((sites.objects[0].file.as_deref(), sites.objects[0].line), (Some("a.c"), Some(3)));
        assert_eq!(wrong, None);
    }

    #[test]
    fn a_line_that_makes_no_sense_keeps_its_number() {
        let (sites, wrong) = read("0,7,1000,4096,static,a\n1,7,0x4000,4096,static,b\n2,7,0x1,1,thing,c\n");
        assert!(sites.line(0).is_none() && sites.line(2).is_none() && sites.line(9).is_none());
        assert_eq!(sites.line(1).unwrap().0.name, "b");
        assert!(wrong.unwrap().starts_with("objects.csv, line 2"));
    }

    #[test]
    fn pages_are_those_of_the_object() {
        let line = |address, bytes| ObjectsLine {
            process: 0,
            address,
            bytes,
            kind: ObjectKind::Static,
            name: String::new(),
        };
        let of = |address| page_of(&line(0x1800, 0x1000), address);
        assert_eq!(
            [of(0x1000), of(0x1fff), of(0x2000), of(0xfff), of(0x3000)],
            [Some(0), Some(0), Some(1), None, None]
        );
        assert_eq!(page_of(&line(u64::MAX, u64::MAX), u64::MAX), Some(0));
    }
}
