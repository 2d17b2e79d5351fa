//! The processes' reports, with names: objects with their places over time, regions, iterations.

use std::collections::{BTreeMap, BTreeSet};

use homenode_dataset::fields::Fields;
use homenode_dataset::identity::{self, Slots};
use homenode_dataset::tables::{Object, ObjectKind, Region, RegionKind, RegionNo};
use homenode_log::recording::{Module, SourcePlace};
use homenode_model::{Bytes, Ns, ObjectId, is_runtime_library};
use homenode_wire::monitor::{ExecutedCode, MonitorReport};

use super::marks::{AllocationChange, AllocationMark, ProcessMarks, ProcessThread};

/// Most objects with names: a program that allocates for ever must not fill the disk.
pub const MOST_OBJECTS: usize = 1 << 16;
/// Most allocations that are followed.
pub const MOST_PIECES: usize = 1 << 20;

/// Addresses of a process that need names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnnamedAddresses {
    /// Return addresses of allocating calls.
    pub sites: BTreeSet<u64>,
    /// Return addresses of the functions with these calls.
    pub callers: BTreeSet<u64>,
    /// Of regions: outlined functions, or return addresses of forks.
    pub regions: BTreeSet<u64>,
}

/// A variable of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceVariable {
    /// As the source writes it.
    pub name: String,
    /// The type of an element.
    pub element_type: Option<String>,
    /// The size of an element.
    pub element_bytes: Option<u64>,
    /// Extents, slowest first. Empty where they are not known.
    pub dimensions: Vec<u64>,
    /// Fields of an element.
    pub fields: Fields,
    /// The call whose result it holds: 0 the allocating call, 1 that of the function with it.
    pub call: usize,
}

/// A static variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestStatic {
    /// The index of its module.
    pub module: u64,
    /// Its address, relative to the module's base.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// The variable.
    pub variable: SourceVariable,
    /// Where it is declared.
    pub declared: SourcePlace,
}

/// Looks up the names of a process's addresses.
pub trait NameLookup {
    /// The source of the call that returns to `back`; `None` if only the file of its code is known.
    fn call(&mut self, back: u64) -> Option<SourcePlace>;
    /// The source of the instruction at `pc`.
    fn place(&mut self, pc: u64) -> Option<SourcePlace>;
    /// The static variables of the program's own files.
    fn statics(&mut self) -> Vec<GuestStatic>;
    /// The variable that holds an allocation of `bytes` bytes by these calls, innermost first.
    fn allocation(&mut self, calls: &[u64], bytes: u64) -> Option<SourceVariable> {
        let _ = (calls, bytes);
        None
    }
    /// The build id of a module's file.
    fn build_id(&mut self, module: u64) -> Option<String> {
        let _ = module;
        None
    }
    /// Problems while looking up.
    fn trouble(&mut self) -> Vec<String>;
}

/// A place of an object in memory, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectStay {
    /// The process.
    pub process: u32,
    /// First byte.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// The object.
    pub object: ObjectId,
    /// Its start; `None`: the start.
    pub from: Option<Ns>,
    /// Its end; `None`: the end.
    pub until: Option<Ns>,
}

/// A stay of a thread on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuStay {
    /// The process.
    pub process: u32,
    /// The thread, counted over all processes.
    pub thread: u32,
    /// The CPU.
    pub cpu: u32,
    /// Its start.
    pub from: Ns,
    /// Its end.
    pub until: Ns,
}

/// The reports of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessReports {
    /// Objects.
    pub objects: Vec<Object>,
    /// Their places, in the order in which later ones hide earlier ones.
    pub pieces: Vec<ObjectStay>,
    /// Regions; their runs and times are those of all processes.
    pub regions: Vec<Region>,
    /// Each execution: the region, its start and its end.
    pub runs: Vec<(RegionNo, Ns, Ns)>,
    /// Calls of `hn_iteration`: process and time, by time.
    pub iterations: Vec<(u32, Ns)>,
    /// Stays of threads on CPUs.
    pub stays: Vec<CpuStay>,
    /// The source of first stores, by process and index of the code.
    pub stores: BTreeMap<(u32, u32), SourcePlace>,
    /// Problems.
    pub trouble: Vec<String>,
    /// What was left out to stay within the bounds.
    pub bounded: Vec<String>,
}

impl ProcessReports {
    /// Joins the reports of these processes. `found` has the code of first stores. `names` looks up
    /// the names of one process, by its files.
    pub fn of(
        processes: &[ProcessMarks],
        found: &MonitorReport,
        mut names: impl FnMut(&[Module], &UnnamedAddresses) -> Box<dyn NameLookup>,
    ) -> Self {
        let mut all = All::default();
        let codes = codes(found);
        for process in processes {
            let mut names = names(&process.modules, &wanted(process));
            all.process(process, names.as_mut());
            for (number, code) in codes.get(&process.process).into_iter().flatten() {
                all.store((process.process, *number), code, &process.modules, names.as_mut());
            }
            all.told.trouble.extend(process.trouble.iter().cloned().chain(names.trouble()));
        }
        all.finish()
    }
}

/// The code of first stores, by process.
fn codes(found: &MonitorReport) -> BTreeMap<u32, BTreeMap<u32, ExecutedCode>> {
    let mut codes: BTreeMap<u32, BTreeMap<u32, ExecutedCode>> = BTreeMap::new();
    for first in &found.firsts {
        let process = found.processes.get(&first.process).map_or(0, |p| p.id);
        if let Some(code) = found.codes.get(first.code as usize) {
            codes.entry(process).or_default().insert(first.code, *code);
        }
    }
    codes
}

/// The module of an address.
fn module_of(modules: &[Module], pc: u64) -> Option<&Module> {
    let inside = |m: &&Module| pc.checked_sub(m.base).is_some_and(|at| (m.low..m.high).contains(&at));
    modules.iter().find(inside)
}

/// The source of a store: of the instruction, or of the call if the instruction is the kernel's or
/// a run-time library's.
fn store(code: &ExecutedCode, modules: &[Module], names: &mut dyn NameLookup) -> Option<SourcePlace> {
    let is_library = |pc| module_of(modules, pc).map(|m| is_runtime_library(m.path.as_bytes()));
    if code.at != 0 && is_library(code.at) != Some(true) {
        return names.place(code.at);
    }
    // The call lies before the address to which it returns.
    let calls = code.calls.iter().filter_map(|back| back.checked_sub(1));
    match calls.into_iter().find(|call| is_library(*call) == Some(false)) {
        Some(call) => names.place(call),
        None if code.at != 0 => names.place(code.at),
        None => None,
    }
}

fn wanted(process: &ProcessMarks) -> UnnamedAddresses {
    let mut wanted = UnnamedAddresses::default();
    for (_, change) in &process.changes {
        if let AllocationChange::Birth(birth) = change {
            wanted.sites.insert(birth.site);
            wanted.callers.insert(birth.caller);
        }
    }
    wanted.regions.extend(process.regions.iter().map(|r| r.pc));
    wanted
}

/// The place of an allocation, as text.
type Place = (String, Option<String>);
/// File, line and function of a region.
type RegionPlace = (Option<String>, Option<u32>, Option<String>);

#[derive(Default)]
struct All {
    told: ProcessReports,
    /// By place, as they are distinguished.
    regions: BTreeMap<RegionPlace, RegionNo>,
    threads: u32,
    left_out: [u64; 2],
}

impl All {
    fn finish(mut self) -> ProcessReports {
        let told = &mut self.told;
        told.iterations.sort_by_key(|(process, time)| (*time, *process));
        told.trouble.sort();
        told.trouble.dedup();
        for (n, what, most) in
            [(self.left_out[0], "objects", MOST_OBJECTS), (self.left_out[1], "allocations", MOST_PIECES)]
        {
            if n > 0 {
                told.bounded.push(format!("of {} {what} only the first {most} have names", n + most as u64));
            }
        }
        self.told
    }

    fn process(&mut self, process: &ProcessMarks, names: &mut dyn NameLookup) {
        let module = |pc: u64| module_of(&process.modules, pc);
        self.statics(process, names);
        for (number, thread) in (0..).zip(&process.threads) {
            self.thread(process.process, number, thread);
        }
        let mut heap = Heap::default();
        for (time, change) in &process.changes {
            match change {
                AllocationChange::Birth(birth) => {
                    self.birth(&mut heap, process.process, *time, birth, names, &module);
                }
                AllocationChange::Death(address) => self.death(&mut heap, *time, *address),
            }
        }
        for run in &process.regions {
            let region = self.region(run.pc, names, &module);
            let (begin, end) = (run.begin, run.end);
            if let Some(region) = self.told.regions.get_mut(region.0 as usize) {
                region.runs += 1;
                region.time_ns = Ns(region.time_ns.0.saturating_add(end.0 - begin.0));
            }
            self.told.runs.push((region, begin, end));
        }
        self.told.iterations.extend(process.iterations.iter().map(|time| (process.process, *time)));
    }

    /// Adds the source of a first store. Of several programs of a process, the one counts that
    /// knows the line.
    fn store(
        &mut self,
        key: (u32, u32),
        code: &ExecutedCode,
        modules: &[Module],
        names: &mut dyn NameLookup,
    ) {
        let Some(place) = store(code, modules, names) else { return };
        let known = self.told.stores.entry(key).or_default();
        if known.line.is_none() {
            *known = place;
        }
    }

    /// Adds an object, unless there are too many.
    fn object(&mut self, object: Object) -> Option<ObjectId> {
        if self.told.objects.len() >= MOST_OBJECTS {
            self.left_out[0] += 1;
            return None;
        }
        let number = ObjectId(self.told.objects.len() as u32);
        self.told.objects.push(Object { object: number, ..object });
        Some(number)
    }

    /// Adds a place of an object, unless there are too many.
    fn piece(&mut self, piece: ObjectStay) -> Option<usize> {
        if self.told.pieces.len() >= MOST_PIECES {
            self.left_out[1] += 1;
            return None;
        }
        self.told.pieces.push(piece);
        Some(self.told.pieces.len() - 1)
    }

    fn statics(&mut self, process: &ProcessMarks, names: &mut dyn NameLookup) {
        let program = process.modules.first().map(|m| m.index);
        for s in names.statics() {
            let Some(module) = process.modules.iter().find(|m| m.index == s.module) else { continue };
            let library = (Some(module.index) != program).then(|| file_name(&module.path));
            let address = module.base.wrapping_add(s.address);
            let (bytes, process) = (s.bytes, process.process);
            let object = self.object(Object {
                id: identity::of_static(&s.variable.name, library),
                file: s.declared.file,
                line: s.declared.line,
                function: s.declared.function,
                ..blank(process, ObjectKind::Static, address, bytes, s.variable)
            });
            if let Some(object) = object {
                self.piece(ObjectStay { process, address, bytes, object, from: None, until: None });
            }
        }
    }

    fn thread(&mut self, process: u32, number: u32, thread: &ProcessThread) {
        let (from, until) = thread.lived().unzip();
        if let Some((low, high)) = thread.stack {
            let id = identity::of_stack(number);
            let variable = SourceVariable { name: id.clone(), ..SourceVariable::default() };
            let bytes = high - low;
            let stack = blank(process, ObjectKind::Stack, low, bytes, variable);
            if let Some(object) = self.object(Object { id, birth_ns: from, death_ns: until, ..stack }) {
                self.piece(ObjectStay { process, address: low, bytes, object, from, until });
            }
        }
        let thread_number = self.threads;
        self.threads += 1;
        let stay = |(cpu, from, until): &(u32, Ns, Ns)| CpuStay {
            process,
            thread: thread_number,
            cpu: *cpu,
            from: *from,
            until: *until,
        };
        self.told.stays.extend(thread.stays.iter().map(stay));
    }

    fn birth<'a>(
        &mut self,
        heap: &mut Heap,
        process: u32,
        time: Ns,
        birth: &AllocationMark,
        names: &mut dyn NameLookup,
        module: &impl Fn(u64) -> Option<&'a Module>,
    ) {
        // The former object there has died, even if nobody said so.
        self.death(heap, time, birth.address);
        let known = heap.places.entry((birth.site, birth.caller)).or_insert_with(|| {
            let (site, caller) = (names.call(birth.site), names.call(birth.caller));
            Known { place: place(birth, site.as_ref(), caller.as_ref(), module), site, caller }
        });
        let slot = heap.slots.take(known.place.clone());
        let key = (known.place.clone(), slot);
        let AllocationMark { address, bytes, .. } = *birth;
        let object = match heap.objects.get(&key) {
            Some(known) => *known,
            None => {
                let variable = names.allocation(&[birth.site, birth.caller], bytes);
                let object = self.object(allocated(process, birth, slot, known, variable));
                heap.objects.insert(key.clone(), object);
                object
            }
        };
        let mut piece = None;
        if let Some(object) = object {
            let places = ObjectStay { process, address, bytes, object, from: Some(time), until: None };
            piece = self.piece(places);
            if let Some(o) = self.told.objects.get_mut(object.index()) {
                o.bytes = o.bytes.max(Bytes(bytes));
                o.allocations += 1;
                o.birth_ns.get_or_insert(time);
                o.death_ns = None;
            }
        }
        let (place, slot) = key;
        heap.live.insert(address, Live { place, slot, object, piece });
    }

    fn death(&mut self, heap: &mut Heap, time: Ns, address: u64) {
        let Some(gone) = heap.live.remove(&address) else { return };
        heap.slots.give_back(&gone.place, gone.slot);
        if let Some(piece) = gone.piece.and_then(|p| self.told.pieces.get_mut(p)) {
            piece.until = Some(time);
        }
        if let Some(object) = gone.object.and_then(|o| self.told.objects.get_mut(o.index())) {
            object.death_ns = Some(time);
        }
    }

    fn region<'a>(
        &mut self,
        pc: u64,
        names: &mut dyn NameLookup,
        module: &impl Fn(u64) -> Option<&'a Module>,
    ) -> RegionNo {
        let place = names.place(pc).unwrap_or_default();
        let is_bare = place.function.is_none() && place.line.is_none();
        let function = if is_bare { Some(bare(pc, module)) } else { place.function };
        let key = (place.file, place.line, function);
        if let Some(known) = self.regions.get(&key) {
            return *known;
        }
        let region = RegionNo(self.told.regions.len() as u32);
        self.told.regions.push(Region {
            region,
            kind: RegionKind::Parallel,
            function: key.2.clone(),
            file: key.0.clone(),
            line: key.1,
            caller: None,
            build_id: module(pc).and_then(|m| names.build_id(m.index)),
            runs: 0,
            time_ns: Ns(0),
        });
        self.regions.insert(key, region);
        region
    }
}

/// The state of a process's allocations.
#[derive(Default)]
struct Heap {
    places: BTreeMap<(u64, u64), Known>,
    slots: Slots<Place>,
    objects: BTreeMap<(Place, u32), Option<ObjectId>>,
    live: BTreeMap<u64, Live>,
}

/// A place in the source that allocates.
struct Known {
    place: Place,
    site: Option<SourcePlace>,
    caller: Option<SourcePlace>,
}

/// A live allocation.
struct Live {
    place: Place,
    slot: u32,
    object: Option<ObjectId>,
    piece: Option<usize>,
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn bare<'a>(pc: u64, module: &impl Fn(u64) -> Option<&'a Module>) -> String {
    match module(pc) {
        Some(m) => identity::bare_place(&m.path, pc - m.base),
        None => format!("{pc:#x}"),
    }
}

/// The place of an allocation: by the source if known, else by its file.
fn place<'a>(
    birth: &AllocationMark,
    site: Option<&SourcePlace>,
    caller: Option<&SourcePlace>,
    module: &impl Fn(u64) -> Option<&'a Module>,
) -> Place {
    let text = |place: Option<&SourcePlace>, pc: u64| match place {
        Some(place) if place.line.is_some() => place.to_string(),
        _ => bare(pc, module),
    };
    if birth.site == 0 {
        return ("mmap".into(), None);
    }
    // Only callers in the program's own files count.
    (text(site, birth.site), caller.map(|c| text(Some(c), birth.caller)))
}

/// An object with only these properties.
fn blank(process: u32, kind: ObjectKind, address: u64, bytes: u64, variable: SourceVariable) -> Object {
    Object {
        object: ObjectId(0),
        id: String::new(),
        process,
        name: variable.name,
        kind,
        element_type: variable.element_type,
        element_bytes: variable.element_bytes,
        dimensions: variable.dimensions,
        fields: variable.fields,
        file: None,
        line: None,
        function: None,
        stack: Vec::new(),
        bytes: Bytes(bytes),
        address,
        allocations: u64::from(kind == ObjectKind::Static),
        birth_ns: None,
        death_ns: None,
    }
}

fn allocated(
    process: u32,
    birth: &AllocationMark,
    slot: u32,
    known: &Known,
    variable: Option<SourceVariable>,
) -> Object {
    let (site, caller) = &known.place;
    let place = match caller {
        Some(caller) => format!("{site} < {caller}"),
        None => site.clone(),
    };
    let variable = variable.unwrap_or_else(|| SourceVariable { name: place, ..SourceVariable::default() });
    let of_caller = known.caller.as_ref().filter(|place| variable.call == 1 && place.line.is_some());
    let source = of_caller.or(known.site.as_ref()).cloned().unwrap_or_default();
    let frame =
        |place: &Option<SourcePlace>, text: &str| match place.as_ref().and_then(|p| p.function.as_ref()) {
            Some(function) => format!("{function} ({text})"),
            None => text.to_owned(),
        };
    let mut stack = vec![frame(&known.site, site)];
    stack.extend(caller.as_ref().map(|caller| frame(&known.caller, caller)));
    Object {
        id: identity::of_allocation(site, caller.as_deref(), slot),
        file: source.line.and(source.file),
        line: source.line,
        function: source.function,
        stack,
        ..blank(process, ObjectKind::Allocated, birth.address, birth.bytes, variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::marks::RegionRun;
    use homenode_wire::monitor::{self, CALLS, FirstStore};

    /// A program whose code at 0x1000 + 16 × n is line n of `main.c`, and a library without names.
    struct Fake;

    fn source(pc: u64) -> Option<SourcePlace> {
        let line = Some((pc.checked_sub(0x1000)? / 16) as u32);
        (pc < 0x2000).then(|| SourcePlace {
            function: Some("work".into()),
            file: Some("/s/main.c".into()),
            line,
        })
    }

    impl NameLookup for Fake {
        fn call(&mut self, back: u64) -> Option<SourcePlace> {
            source(back)
        }
        fn place(&mut self, pc: u64) -> Option<SourcePlace> {
            source(pc)
        }
        fn statics(&mut self) -> Vec<GuestStatic> {
            let one = |module, name: &str| GuestStatic {
                module,
                address: 0x10,
                bytes: 8192,
                variable: SourceVariable { name: name.into(), ..SourceVariable::default() },
                declared: SourcePlace::default(),
            };
            vec![one(0, "table"), one(1, "table"), one(7, "nobody's")]
        }
        fn trouble(&mut self) -> Vec<String> {
            vec!["trouble".into()]
        }
    }

    fn module(index: u64, base: u64, path: &str) -> Module {
        Module { index, base, low: 0, high: 0x1000, path: path.into() }
    }

    fn birth(address: u64, bytes: u64, site: u64, caller: u64) -> AllocationChange {
        AllocationChange::Birth(AllocationMark { address, bytes, site, caller })
    }

    fn told(changes: &[(u64, AllocationChange)], regions: Vec<RegionRun>) -> ProcessReports {
        let process = ProcessMarks {
            process: 7,
            modules: vec![module(0, 0x1000, "/s/app"), module(1, 0x5000, "/s/libgrid.so")],
            threads: vec![ProcessThread { stack: Some((100, 200)), stays: vec![(3, Ns(1), Ns(9))] }],
            changes: changes.iter().map(|(time, change)| (Ns(*time), *change)).collect(),
            regions,
            ..ProcessMarks::default()
        };
        ProcessReports::of(&[process], &MonitorReport::default(), |_, _| Box::new(Fake))
    }

    #[test]
    fn every_object_has_an_id_that_does_not_depend_on_the_run() {
        let all = told(
            &[
                (1, birth(0x10_0000, 4096, 0x1030, 0x1090)),
                (2, birth(0x20_0000, 8192, 0x1030, 0x1090)),
                (3, AllocationChange::Death(0x10_0000)),
                (4, birth(0x30_0000, 9999, 0x1030, 0x1090)),
                (5, birth(0x40_0000, 1, 0x5123, 0)),
                (6, birth(0x50_0000, 1, 0, 0)),
            ],
            Vec::new(),
        );
        let ids: Vec<_> = all.objects.iter().map(|o| o.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "table",
                "table@libgrid.so",
                "stack of thread 0",
                "main.c:3 < main.c:9 #0",
                "main.c:3 < main.c:9 #1",
                "libgrid.so+0x123 #0",
                "mmap #0",
            ]
        );
        let first = &all.objects[3];
        assert_eq!((first.name.as_str(), first.line, first.allocations), ("main.c:3 < main.c:9", Some(3), 2));
        assert_eq!((first.bytes, first.address), (Bytes(9999), 0x10_0000));
        assert_eq!((first.birth_ns, first.death_ns), (Some(Ns(1)), None), "it lives again");
        assert_eq!(first.stack, ["work (main.c:3)", "work (main.c:9)"]);
        let lives: Vec<_> = all.pieces[3..6].iter().map(|p| (p.object.0, p.from, p.until)).collect();
        let at = |n| Some(Ns(n));
        assert_eq!(lives, [(3, at(1), at(3)), (4, at(2), None), (3, at(4), None)]);
        assert_eq!(all.trouble, ["trouble"]);
    }

    #[test]
    fn memory_that_comes_again_without_an_end_belongs_to_the_last() {
        let all = told(&[(1, birth(0x9000, 10, 0x1030, 0)), (5, birth(0x9000, 10, 0x1040, 0))], Vec::new());
        let lives: Vec<_> = all.pieces[3..].iter().map(|p| (p.from, p.until)).collect();
        assert_eq!(lives, [(Some(Ns(1)), Some(Ns(5))), (Some(Ns(5)), None)]);
    }

    #[test]
    fn regions_are_told_apart_by_their_place() {
        let run = |pc, begin, end| RegionRun { pc, begin: Ns(begin), end: Ns(end) };
        let all = told(&[], vec![run(0x1030, 1, 4), run(0x1034, 5, 7), run(0x5040, 7, 8)]);
        let of = |r: &Region| (r.function.clone().unwrap(), r.line, r.runs, r.time_ns.0);
        let regions: Vec<_> = all.regions.iter().map(of).collect();
        assert_eq!(regions, [("work".into(), Some(3), 2, 5), ("libgrid.so+0x40".into(), None, 1, 1)]);
        assert_eq!(all.runs.iter().map(|r| r.0.0).collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn a_program_that_allocates_for_ever_is_bounded() {
        let many: Vec<_> =
            (0..MOST_OBJECTS as u64 + 10).map(|i| (i, birth(i << 20, 1, 0x3000 + i, 0))).collect();
        let all = told(&many, Vec::new());
        assert_eq!(all.objects.len(), MOST_OBJECTS);
        assert_eq!(
            all.bounded,
            [format!("of {} objects only the first {MOST_OBJECTS} have names", MOST_OBJECTS + 13)]
        );
    }

    #[test]
    fn a_first_store_of_a_library_is_its_callers() {
        let process = ProcessMarks {
            process: 7,
            modules: vec![module(0, 0x1000, "/s/app"), module(1, 0x5000, "/lib/libc.so.6")],
            ..ProcessMarks::default()
        };
        let code = |at, inner: [u64; 4]| {
            let mut calls = [0; CALLS];
            calls[..4].copy_from_slice(&inner);
            ExecutedCode { at, calls }
        };
        let codes = vec![
            code(0x1050, [0x1091, 0, 0, 0]),
            code(0x5050, [0x5071, 0x1061, 0x1091, 0]),
            code(0, [0x1071, 0, 0, 0]),
            code(0x5050, [0; 4]),
            code(0, [0; 4]),
            code(0x9000, [0x1061, 0, 0, 0]),
        ];
        let firsts = (0..6).map(|code| FirstStore { interval: 0, process: 1, page: 0, cpu: 0, code });
        let found = MonitorReport {
            processes: [(1, monitor::Process { id: 7, name: "app".into() })].into(),
            firsts: firsts.collect(),
            codes,
            ..MonitorReport::default()
        };
        let stores = ProcessReports::of(&[process], &found, |_, _| Box::new(Fake)).stores;
        let lines: Vec<_> = stores.iter().map(|((_, code), place)| (*code, place.line)).collect();
        assert_eq!(lines, [(0, Some(5)), (1, Some(6)), (2, Some(7))], "nobody knows the other ones");
    }
}
