//! Names for what a recording has addresses of.

use std::collections::BTreeMap;

use homenode_dataset::identity;
use homenode_log::recording::{Elements, Module, Recording, SourcePlace, Symbols};
use homenode_order::space::{ObjectSource, TracedObject};

/// An allocating call: its return address, and that of its function.
type Call = (u64, u64);

/// The names of a recording.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    symbols: &'a Symbols,
    modules: Vec<Module>,
    /// Of allocating calls that one line makes, all but the first: how many calls come before, and
    /// how many there are.
    same_line: BTreeMap<Call, (u32, u32)>,
}

/// What an object is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// The same in every kind of recording and every run.
    pub id: String,
    /// For people.
    pub name: String,
    /// Where it is allocated.
    pub place: SourcePlace,
    /// The allocating call and that of its function.
    pub stack: Vec<String>,
    /// What it consists of.
    pub elements: Elements,
}

impl<'a> Names<'a> {
    /// The names of `recording`.
    pub fn new(recording: &Recording, symbols: &'a Symbols) -> Self {
        Self { symbols, modules: recording.modules(), same_line: BTreeMap::new() }.with_lines()
    }

    /// Numbers the calls that share a line and a caller: an id tells of places alone, and must not
    /// name two arrays.
    fn with_lines(mut self) -> Self {
        let mut calls: BTreeMap<(String, Option<String>), Vec<Call>> = BTreeMap::new();
        for a in &self.symbols.allocated {
            let place = (self.site(a.site).unwrap_or_default(), self.caller(a.caller));
            calls.entry(place).or_default().push((a.site, a.caller));
        }
        for calls in calls.into_values().filter(|calls| calls.len() > 1) {
            let count = calls.len() as u32;
            self.same_line.extend((0..).zip(calls).map(|(before, call)| (call, (before, count))));
        }
        self
    }

    /// The place in the source of an address in the process.
    pub fn place(&self, pc: u64) -> Option<&'a SourcePlace> {
        self.symbols.places.get(&pc)
    }

    fn module(&self, pc: u64) -> Option<&Module> {
        self.modules.iter().find(|m| pc.checked_sub(m.base).is_some_and(|at| (m.low..m.high).contains(&at)))
    }

    /// A place as ids spell it: `file.c:12`, or `libfoo.so+0x1a2b` without debug information.
    fn site(&self, pc: u64) -> Option<String> {
        if let Some(SourcePlace { file: Some(file), line: Some(line), .. }) = self.place(pc) {
            return Some(format!("{}:{line}", file_name(file)));
        }
        self.module(pc).map(|m| identity::bare_place(&m.path, pc - m.base))
    }

    /// The same for a caller; none outside of the program's own files.
    fn caller(&self, pc: u64) -> Option<String> {
        let known = self.place(pc).is_some_and(|p| p.line.is_some());
        (known || self.module(pc).is_some_and(|m| identity::is_own(&m.path))).then(|| self.site(pc)).flatten()
    }

    /// The library of a static variable; none of the program's own file, which is the first.
    fn library(&self, module: u64) -> Option<&str> {
        let of = |m: &'_ &Module| m.index == module;
        self.modules.iter().skip(1).find(of).map(|m| file_name(&m.path))
    }

    /// What an object is called.
    pub fn object(&self, object: &TracedObject) -> Called {
        match &object.kind {
            ObjectSource::Static { module, name } => {
                let known = self.symbols.statics.iter().find(|s| s.module == *module && s.name == *name);
                let variable = known.and_then(|s| s.variable.as_ref()).unwrap_or(name);
                let members = known.and_then(|s| self.symbols.commons.get(&s.address));
                Called {
                    id: identity::of_static(variable, self.library(*module)),
                    name: members.and_then(|m| of_common(name, m)).unwrap_or_else(|| variable.clone()),
                    elements: known.map(|s| s.elements.clone()).unwrap_or_default(),
                    ..Called::default()
                }
            }
            ObjectSource::Site { pc, caller: caller_pc, slot } => {
                let site = match pc {
                    0 => "mmap".to_owned(),
                    pc => self.site(*pc).unwrap_or_else(|| format!("{pc:#x}")),
                };
                let caller = (*caller_pc != 0).then(|| self.caller(*caller_pc)).flatten();
                let (before, calls) = self.same_line.get(&(*pc, *caller_pc)).copied().unwrap_or((0, 1));
                let number = slot.saturating_mul(calls).saturating_add(before).min(identity::MOST_SLOTS - 1);
                let id = identity::of_allocation(&site, caller.as_deref(), number);
                let known = self.symbols.variable(*pc, *caller_pc);
                let name = match (known, slot) {
                    (Some(variable), 0) => variable.name.clone(),
                    (Some(variable), slot) => format!("{} #{slot}", variable.name),
                    (None, 0) => id.trim_end_matches(" #0").to_owned(),
                    (None, _) => id.clone(),
                };
                // A container allocates in a header of the system, and many programs in a function
                // of their own: people know the line that called it.
                let user = self.place(*caller_pc).filter(|p| p.line.is_some());
                let place = match (self.place(*pc), user) {
                    (Some(place), Some(user)) if is_system(place.file.as_deref()) => user.clone(),
                    (_, Some(user)) if known.is_some_and(|k| k.call == 1) => user.clone(),
                    (place, _) => place.cloned().unwrap_or_default(),
                };
                let elements = known.map(|a| a.elements.clone()).unwrap_or_default();
                Called {
                    id,
                    name,
                    place,
                    elements,
                    stack: [Some(site), caller].into_iter().flatten().collect(),
                }
            }
        }
    }
}

/// Whether a source file is not the programmer's.
pub fn is_system(file: Option<&str>) -> bool {
    file.is_some_and(|f| f.starts_with("/usr/") || f.contains("/include/c++/"))
}

/// What a Fortran common block is called: its only variable, or its first one and the block.
fn of_common(symbol: &str, members: &[String]) -> Option<String> {
    match members {
        [] => None,
        [only] => Some(only.clone()),
        [first, ..] => Some(format!("{first}, … of COMMON {}", symbol.trim_end_matches('_'))),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_log::recording::Allocated;

    fn place(line: Option<u32>) -> SourcePlace {
        SourcePlace { function: Some("f".into()), file: Some("/src/a.c".into()), line }
    }

    #[test]
    fn ids_are_places_and_do_not_depend_on_addresses() {
        let symbols = Symbols {
            places: [
                (0x5000_1010, place(Some(12))),
                (0x5000_2020, place(None)),
                (0x5000_3010, place(Some(30))),
                (0x5000_3020, place(Some(30))),
            ]
            .into(),
            allocated: [0x5000_3010, 0x5000_3020]
                .map(|site| Allocated {
                    site,
                    caller: 0,
                    name: "v".into(),
                    call: 0,
                    elements: Elements::default(),
                })
                .into(),
            ..Symbols::default()
        };
        let module =
            |index, base, path: &str| Module { index, base, low: 0, high: 0x10000, path: path.into() };
        let modules = vec![
            module(0, 0x5000_0000, "/home/me/app"),
            module(3, 0x7000_0000, "/opt/x/libgrid.so"),
            module(4, 0x7100_0000, "/lib/x86_64-linux-gnu/libc.so.6"),
        ];
        let names = Names { symbols: &symbols, modules, same_line: BTreeMap::new() }.with_lines();
        let called = |kind| {
            let mut space = homenode_order::space::AddressSpace::new(vec![]);
            space.allocate(0x9000_0010, 4096, (0, 0));
            let mut object = space.objects()[0].clone();
            object.kind = kind;
            let called = names.object(&object);
            (called.id, called.name)
        };
        let site = |pc, caller, slot| called(ObjectSource::Site { pc, caller, slot });
        assert_eq!(site(0x5000_1010, 0, 0), ("a.c:12 #0".into(), "a.c:12".into()));
        assert_eq!(
            site(0x5000_1010, 0x5000_2020, 1),
            ("a.c:12 < app+0x2020 #1".into(), "a.c:12 < app+0x2020 #1".into())
        );
        assert_eq!(
            site(0x7000_0abc, 0x7100_0040, 0),
            ("libgrid.so+0xabc #0".into(), "libgrid.so+0xabc".into()),
            "who calls the program is nobody's business"
        );
        assert_eq!(site(0, 0, 2).0, "mmap #2");
        // Two calls in one line are two arrays, whichever of them was made several times.
        let two =
            [(0x5000_3010, 0), (0x5000_3020, 0), (0x5000_3010, 1)].map(|(pc, slot)| site(pc, 0, slot).0);
        assert_eq!(two, ["a.c:30 #0", "a.c:30 #1", "a.c:30 #2"]);
        let variable = |module| called(ObjectSource::Static { module, name: "u".into() }).0;
        assert_eq!([variable(0), variable(3)], ["u", "u@libgrid.so"]);
    }
}
