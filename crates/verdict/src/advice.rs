//! Advice in the source's terms: which array, allocated where, and what to do about it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use homenode_dataset::foreign;
use homenode_log::recording::{SourcePlace, Symbols};
use homenode_symbols::{self as symbols, Common, Resolver};

use homenode_wire::facts::{Facts, ObjectFacts, Origin};

use crate::facts::{addresses, numbered};
use crate::worked::{Worked, worked};

/// What things are called in the source of a process.
#[derive(Clone, Debug, Default)]
pub struct SourceNames {
    /// Places by return address.
    pub places: BTreeMap<u64, SourcePlace>,
    /// Static objects by address in the program's file.
    pub statics: BTreeMap<u64, String>,
    /// Fortran's common blocks by the same.
    pub commons: BTreeMap<u64, Common>,
    /// Static objects of libraries, by file and address in it, as [`name`] calls them.
    pub libraries: BTreeMap<(String, u64), String>,
    /// Variables that hold what was allocated, by the return addresses of the allocation: as the
    /// machine code and the debugging information tell, so that two arrays of one line differ. Each
    /// with the call whose result it holds, an index into these addresses.
    pub variables: BTreeMap<Vec<u64>, (String, usize)>,
}

impl SourceNames {
    /// Of what a process has left.
    pub fn of(facts: &Facts) -> Self {
        let modules = numbered(&facts.modules);
        let found = symbols::resolve(&modules, &addresses(facts)).symbols;
        let mut names = Self::from(found);
        let mut resolver = Resolver::new(&modules);
        for object in &facts.objects.most {
            let frames = object.origin.frames();
            if let Some(variable) = resolver.allocation(frames, object.bytes.0) {
                names.variables.insert(frames.to_vec(), (variable.name, variable.call));
            }
        }
        if let Some(program) = facts.modules.first()
            && facts.objects.most.iter().any(|o| names.may_be_common(o))
        {
            names.commons = symbols::commons_of(Path::new(&program.path));
        }
        for object in &facts.objects.most {
            if let Origin::Library(path, at) = &object.origin
                && !names.libraries.contains_key(&(path.to_string(), *at))
            {
                names.of_library(path);
            }
        }
        names
    }

    /// The static objects of a library.
    fn of_library(&mut self, path: &str) {
        let file = file_name(path);
        let statics = symbols::statics_of(Path::new(path), LARGE);
        let may_be_common = statics.iter().any(|s| s.name.ends_with('_'));
        let commons = if may_be_common { symbols::commons_of(Path::new(path)) } else { BTreeMap::new() };
        for s in statics {
            let name = match commons.get(&s.address) {
                Some(common) => format!("{} of {file}", block(common)),
                None => format!("array {} of {file}, static", s.name),
            };
            self.libraries.insert((path.to_owned(), s.address), name);
        }
    }

    /// Compilers put an underscore behind the names of common blocks. To look for them takes time
    /// in a large program.
    fn may_be_common(&self, object: &ObjectFacts) -> bool {
        matches!(&object.origin, Origin::Static(at) if self.statics.get(at).is_some_and(|n| n.ends_with('_')))
    }
}

impl From<Symbols> for SourceNames {
    /// The program is the first module.
    fn from(found: Symbols) -> Self {
        let of_program = found.statics.into_iter().filter(|s| s.module == 0);
        let statics = of_program.map(|s| (s.address, s.name)).collect();
        Self { places: found.places, statics, ..Self::default() }
    }
}

/// Smallest object.
const LARGE: u64 = 64 << 10;

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Objects that are worth a sentence.
const SENTENCES: usize = 6;
/// A node owns an object if it had this percentage of the pages.
const ALONE: u64 = 90;
/// A node that touched this percentage of the pages uses the object.
const USES: u64 = 5;

/// What an object is called: `array a, allocated at init.c:31`. `among`: all objects that the
/// report names.
pub fn name(object: &ObjectFacts, among: &[ObjectFacts], names: &SourceNames) -> String {
    if let Some(frames) = &object.python {
        return format!("the array allocated near {}", frames.replace(" < ", ", called from "));
    }
    match &object.origin {
        Origin::Static(at) => match (names.commons.get(at), names.statics.get(at)) {
            (Some(common), _) => block(common),
            (None, Some(name)) => format!("array {name}, static"),
            (None, None) => "a static array".into(),
        },
        Origin::Library(path, at) => match names.libraries.get(&(path.to_string(), *at)) {
            Some(name) => name.clone(),
            None => format!("a static array of {}", file_name(path)),
        },
        Origin::Allocated(_) => match (allocated_at(object, among, names), object.origin.frames().first()) {
            (Some(text), _) => text,
            (None, Some(pc)) => format!("the array allocated at {pc:#x}"),
            (None, None) => "an array".into(),
        },
    }
}

/// Callers that are asked for the variable.
const CALLERS: usize = 2;

/// The frames of which more than an address is known, innermost first.
fn known<'a>(
    frames: &'a [u64],
    names: &'a SourceNames,
) -> impl Iterator<Item = (u64, &'a SourcePlace)> + Clone {
    frames.iter().filter_map(|f| Some((*f, names.places.get(f)?)))
}

/// By the variable that gets it; the program's own allocating functions have none, or one that is
/// all arrays' name: then their callers say.
fn allocated_at(object: &ObjectFacts, among: &[ObjectFacts], names: &SourceNames) -> Option<String> {
    let frames = object.origin.frames();
    if let Some((variable, call)) = names.variables.get(frames) {
        let own = |place: &&SourcePlace| place.file.as_deref().is_some_and(|file| !is_header(file));
        let mut places = known(frames, names).map(|(_, place)| place);
        let named = frames.get(*call).and_then(|frame| names.places.get(frame));
        let named = named.filter(|place| place.line.is_some() && own(place));
        let place = named.or_else(|| places.clone().find(own)).or_else(|| places.next())?;
        return Some(format!("array {variable}, allocated at {place}"));
    }
    let mut places = known(frames, names);
    let (at, inner) = places.next()?;
    let callers: Vec<_> = places.filter(|(_, place)| place.line.is_some()).take(CALLERS).collect();
    let caller = callers.first().map(|(pc, _)| *pc);
    let is_shared = among.iter().any(|o| {
        let mut others = known(o.origin.frames(), names).map(|(pc, _)| pc);
        others.next() == Some(at) && caller.is_some() && others.next() != caller
    });
    if let Some(variable) = variable(inner, ALLOCATIONS).filter(|_| !is_shared) {
        return Some(format!("array {variable}, allocated at {inner}"));
    }
    let named = callers.iter().find_map(|(_, place)| Some((variable(place, CALL)?, place)));
    Some(match (named, callers.first()) {
        (Some((variable, place)), _) => format!("array {variable}, allocated at {place} by way of {inner}"),
        (None, Some((_, place))) => format!("the array allocated at {inner}, called from {place}"),
        (None, None) => format!("the array allocated at {inner}"),
    })
}

/// Variables of a common block that are listed.
const MEMBERS: usize = 8;

/// A common block as the source has it: `common block /grid/ (u, v)`.
fn block(common: &Common) -> String {
    let mut members: Vec<&str> = common.members.iter().take(MEMBERS).map(String::as_str).collect();
    if common.members.len() > MEMBERS {
        members.push("…");
    }
    format!("common block /{}/ ({})", common.name, members.join(", "))
}

/// What an allocation's call looks like.
const ALLOCATIONS: &[&str] = &["alloc", "new ", "new(", "mmap", "vector"];
/// Any call.
const CALL: &[&str] = &["("];

/// The variable that the result of one of these calls is assigned to, as the line in the source has
/// it.
fn variable(place: &SourcePlace, calls: &[&str]) -> Option<String> {
    let (file, line) = (place.file.as_ref()?, place.line?);
    let text = BufReader::new(fs::File::open(file).ok()?).lines().nth(line as usize - 1)?.ok()?;
    assigned(&text, calls)
}

fn assigned(line: &str, calls: &[&str]) -> Option<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let lower = line.to_ascii_lowercase();
    if let Some(name) = allocated(line, &lower) {
        return Some(name);
    }
    let call = calls.iter().filter_map(|a| lower.find(a)).min()?;
    // Several assignments may stand on the line: the last one before the call is its.
    let left = line.get(..call)?.rsplit_once('=')?.0;
    if left.ends_with(['=', '!', '<', '>']) {
        return None;
    }
    let left = left.trim_end();
    let name: String = left.chars().rev().take_while(|c| word(*c) || ".->[]".contains(*c)).collect();
    let name: String = name.chars().rev().collect();
    name.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(name)
}

/// The first array of Fortran's `allocate (real(8) :: a(n), b(n), stat=i)`.
fn allocated(line: &str, lower: &str) -> Option<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let statement = |at: usize| {
        let (before, after) = (line.get(..at)?, line.get(at + "allocate".len()..)?);
        let list = after.trim_start().strip_prefix('(')?;
        (!before.ends_with(word) && !before.contains('=')).then_some(list)
    };
    let list = lower.match_indices("allocate").find_map(|(at, _)| statement(at))?;
    let list = list.split_once("::").map_or(list, |(_, names)| names);
    let name: String = list.trim_start().chars().take_while(|c| word(*c) || *c == '%').collect();
    (!name.is_empty()).then_some(name)
}

/// What to change in the source for one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The array, with its place in the source: `array a, allocated at init.c:31`.
    pub name: String,
    /// The same in short: `a (init.c:31)`.
    pub short: String,
    /// What is wrong, and what to do.
    finding: String,
    /// What to do.
    remedy: Remedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Each thread the same part in every loop.
    SamePart,
    /// Its user touches it first.
    ByItsUser,
    /// In a parallel loop.
    InParallel,
    /// With its users' schedule.
    SameSchedule,
}

impl Advice {
    /// All of it in a sentence.
    pub fn sentence(&self) -> String {
        format!("{}, {}", self.name, self.finding)
    }

    /// What to do, in few words.
    pub fn remedy(&self) -> String {
        self.remedy_for(&self.short)
    }

    /// The same without the place of the allocation.
    pub fn brief(&self) -> String {
        self.remedy_for(self.short.split(" (").next().unwrap_or(&self.short))
    }

    fn remedy_for(&self, name: &str) -> String {
        match self.remedy {
            Remedy::SamePart => format!("give each thread the same part of {name} in every loop"),
            Remedy::ByItsUser => format!("let the thread that uses {name} touch it first"),
            Remedy::InParallel => format!("initialise {name} in a parallel loop"),
            Remedy::SameSchedule => format!("initialise {name} with the schedule of its loops"),
        }
    }
}

/// An object whose counts are of several lives is worth a sentence from this size on.
const REBORN: u64 = 1 << 20;
/// Functions of interpreters that get memory for many small objects.
const ARENAS: &[&str] = &["arena", "pymalloc", "mi_segment", "mi_os_alloc", "_PyMem_", "heap_init"];

/// Whether the object belongs to an interpreter's own allocator: nobody can initialise it
/// elsewhere.
fn is_arena(object: &ObjectFacts, names: &SourceNames) -> bool {
    let of = |place: &SourcePlace| {
        let function = place.function.as_deref().unwrap_or_default().to_ascii_lowercase();
        let file = place.file.as_deref().map_or("", file_name);
        ARENAS.iter().any(|a| function.contains(&a.to_ascii_lowercase())) || file == "obmalloc.c"
    };
    known(object.origin.frames(), names).take(1 + CALLERS).any(|(_, place)| of(place))
}

fn is_header(file: &str) -> bool {
    matches!(file.rsplit('.').next(), Some("h" | "hh" | "hpp" | "hxx" | "tcc" | "inl"))
}

/// Whether somebody who knows the source can find the object by its name: a variable, or a line of
/// theirs. A line of a header that allocates for everybody is none, nor is an address.
fn can_be_found(object: &ObjectFacts, names: &SourceNames) -> bool {
    match &object.origin {
        _ if is_arena(object, names) => false,
        _ if object.python.is_some() => true,
        Origin::Static(at) => names.commons.contains_key(at) || names.statics.contains_key(at),
        Origin::Library(path, at) => names.libraries.contains_key(&(path.to_string(), *at)),
        Origin::Allocated(frames) => known(frames, names).take(1 + CALLERS).any(|(_, place)| {
            place.file.as_deref().map_or(place.function.is_some(), |file| !is_header(file))
        }),
    }
}

/// The array in few words.
fn short(name: &str) -> String {
    let name = name.split(" by way of ").next().unwrap_or(name);
    if let Some((variable, place)) = name.split_once(", allocated at ") {
        return format!("{} ({place})", variable.trim_start_matches("array "));
    }
    if let Some(variable) = name.strip_suffix(", static") {
        return variable.trim_start_matches("array ").to_owned();
    }
    if let Some((_, caller)) = name.rsplit_once("called from ") {
        return format!("the array of {caller}");
    }
    if let Some((_, place)) = name.split_once(" allocated at ").or(name.split_once(" allocated near ")) {
        return format!("the array of {place}");
    }
    name.split(" (").next().unwrap_or(name).to_owned()
}

/// Advice for each object that was on the wrong nodes and can be found in the source, the largest
/// first. Empty for a short run of threads that are not bound: in the next run these threads may
/// use other nodes.
pub fn all(facts: &Facts, names: &SourceNames) -> Vec<Advice> {
    let mut said: Vec<Advice> = Vec::new();
    if worked(facts) == Worked::ThreadsNotBound {
        return said;
    }
    for object in &facts.objects.most {
        if said.len() == SENTENCES {
            break;
        }
        if !can_be_found(object, names) || object.lives > 1 && object.bytes.0 < REBORN {
            continue;
        }
        let Some((finding, remedy)) = finding(object) else { continue };
        let name = foreign::clean(&name(object, &facts.objects.most, names));
        // Several arrays of one line: nobody could tell them apart.
        if said.iter().all(|a| a.name != name) {
            said.push(Advice { short: short(&name), name, finding, remedy });
        }
    }
    said
}

/// A sentence for each object that was on the wrong nodes, the largest first.
pub fn sentences(facts: &Facts, names: &SourceNames) -> Vec<String> {
    all(facts, names).iter().map(Advice::sentence).collect()
}

fn in_turn(seen: &str) -> String {
    format!(
        "used by several nodes in turn: {seen}. Give each thread the same part in every loop (schedule(static)), or leave it \
         interleaved (numactl -i all)"
    )
}

fn finding(object: &ObjectFacts) -> Option<(String, Remedy)> {
    let pages: u64 = object.homes.iter().sum();
    let touched: u64 = object.touched.iter().sum();
    if object.contested {
        return Some((in_turn("no placement of its pages lasts"), Remedy::SamePart));
    }
    if pages == 0 || touched == 0 || object.moved * 100 < touched * USES {
        return None;
    }
    let owner = object.homes.iter().position(|n| *n * 100 >= pages * ALONE);
    let users: Vec<usize> =
        (0..object.touched.len()).filter(|n| object.touched[*n] * 100 >= touched * USES).collect();
    if object.ping_pongs * 2 > object.moved {
        return Some((in_turn("its pages went back and forth"), Remedy::SamePart));
    }
    Some(match (owner, users.as_slice()) {
        (Some(owner), [one]) if owner != *one => (
            format!(
                "first touched on node {owner} and used by node {one}: let the thread that uses it touch it first"
            ),
            Remedy::ByItsUser,
        ),
        (Some(_), [_]) => return None,
        (Some(owner), _) => {
            // Of many lives each has its share.
            let lives = object.lives.max(1);
            let text = format!(
                "first touched by one thread (node {owner} had {} of {} pages) and used by {} nodes: initialise it in a \
                 parallel loop with the schedule of the loops that use it",
                object.homes[owner] / lives,
                pages / lives,
                users.len()
            );
            (text, Remedy::InParallel)
        }
        (None, _) => {
            let text = "initialised with another distribution than it is used with: initialise it with the schedule of the \
                        loops that use it";
            (text.into(), Remedy::SameSchedule)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_off_the_line() {
        for (line, name) in [
            ("    double *a = malloc(n * sizeof *a);", Some("a")),
            ("  grid->cells = calloc(n, 8);", Some("grid->cells")),
            ("  allocate(u(n, n), v(n))", Some("u")),
            ("  ALLOCATE (u(n), v(n), stat=i)", Some("u")),
            ("  allocate(real(8) :: grid%u(n), source=v)", Some("grid%u")),
            ("  if (allocated(u)) deallocate(u)", None),
            ("  if (.not. allocated(u)) allocate(u(n))", Some("u")),
            ("  p = allocate(n);", Some("p")),
            ("  p = my_allocate(n);", Some("p")),
            ("  auto p = new double[n];", Some("p")),
            ("int n = 8; double *a = malloc(n);", Some("a")),
            ("  return malloc(8);", None),
            ("  if (x == malloc(8))", None),
            ("  x = y + 1;", None),
        ] {
            assert_eq!(assigned(line, ALLOCATIONS).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn any_call_assigns_where_its_function_allocates() {
        for (line, name) in [
            ("  double *u = grid(n);", Some("u")),
            ("  g.a[i] = own(n, m);", Some("g.a[i]")),
            ("  if (x == own(n))", None),
            ("  own(&u, n);", None),
        ] {
            assert_eq!(assigned(line, CALL).as_deref(), name, "{line}");
        }
    }

    fn object(homes: &[u64], touched: &[u64], moved: u64, ping_pongs: u64) -> ObjectFacts {
        let origin = Origin::Static(0);
        let (homes, touched) = (homes.into(), touched.into());
        ObjectFacts {
            origin,
            bytes: homenode_model::Bytes::mib(1),
            moved,
            ping_pongs,
            homes,
            touched,
            python: None,
            lives: 1,
            contested: false,
        }
    }

    #[test]
    fn advice_follows_homes_and_touches() {
        let says = |o: &ObjectFacts| finding(o).map(|f| f.0).unwrap_or_default();
        assert!(
            says(&object(&[100], &[50, 50], 50, 0))
                .starts_with("first touched by one thread (node 0 had 100 of")
        );
        assert!(says(&object(&[100], &[0, 100], 100, 0)).contains("used by node 1"));
        assert!(says(&object(&[50, 50], &[50, 50], 50, 0)).contains("another distribution"));
        assert!(says(&object(&[100], &[50, 50], 90, 60)).contains("back and forth"));
        assert_eq!(says(&object(&[100], &[100], 0, 0)), "");
        let mut names = SourceNames::default();
        assert_eq!(name(&object(&[], &[], 0, 0), &[], &names), "a static array");
        names.statics.insert(0, "grid".into());
        assert_eq!(name(&object(&[], &[], 0, 0), &[], &names), "array grid, static");
        let members = |n: usize| (0..n).map(|i| format!("u{i}")).collect();
        names.commons.insert(0, Common { name: "grid".into(), members: members(2) });
        assert_eq!(name(&object(&[], &[], 0, 0), &[], &names), "common block /grid/ (u0, u1)");
        names.commons.insert(0, Common { name: String::new(), members: members(9) });
        assert!(
            name(&object(&[], &[], 0, 0), &[], &names).ends_with("// (u0, u1, u2, u3, u4, u5, u6, u7, …)")
        );
    }

    #[test]
    fn advice_is_for_what_can_be_found_in_the_source_and_lived_long_enough() {
        let place = |file: &str, function: &str| SourcePlace {
            file: (!file.is_empty()).then(|| file.into()),
            line: Some(113),
            function: Some(function.into()),
        };
        let places = [
            (1, place("lulesh.h", "Allocate")),
            (2, place("lulesh.cc", "main")),
            (3, place("", "MAIN__")),
            (4, place("Objects/obmalloc.c", "new_arena")),
            (5, place("", "_PyObject_Arena_Alloc")),
        ];
        let names = SourceNames { places: places.into(), ..SourceNames::default() };
        let of = |frames: &[u64]| {
            let mut all = [0; homenode_wire::facts::FRAMES];
            all[..frames.len()].copy_from_slice(frames);
            ObjectFacts { origin: Origin::Allocated(all), ..object(&[100], &[50, 50], 50, 0) }
        };
        let said = |objects: &[ObjectFacts]| {
            let mut facts = Facts::default();
            facts.objects.most = objects.to_vec();
            all(&facts, &names).into_iter().map(|a| a.short).collect::<Vec<_>>()
        };
        // Addresses alone, a header alone, a static without a name, an interpreter's own memory.
        assert!(said(&[of(&[9]), of(&[1]), object(&[100], &[50, 50], 50, 0), of(&[4, 2])]).is_empty());
        let python = ObjectFacts { python: Some("a.py:1 (f)".into()), ..of(&[5]) };
        assert!(said(&[python]).is_empty());
        assert_eq!(said(&[of(&[1, 2])]), ["the array of lulesh.cc:113"]);
        assert_eq!(said(&[of(&[3]), of(&[3])]), ["the array of MAIN__"], "once");
        // An array of 125 pages that lived 149 times.
        let small = ObjectFacts { lives: 149, bytes: homenode_model::Bytes(125 << 12), ..of(&[2]) };
        assert!(said(std::slice::from_ref(&small)).is_empty());
        let large = ObjectFacts { bytes: homenode_model::Bytes::mib(1), lives: 4, ..small };
        assert!(finding(&large).unwrap().0.contains("node 0 had 25 of 25 pages"));
        assert_eq!(said(&[large]).len(), 1);
    }

    #[test]
    fn names_have_a_short_form() {
        for (name, want) in [
            ("array a, allocated at init.c:31", "a (init.c:31)"),
            ("array a, allocated at init.c:31 by way of own.c:2", "a (init.c:31)"),
            ("the array allocated at own.c:2, called from init.c:31", "the array of init.c:31"),
            ("the array allocated at own.c:2", "the array of own.c:2"),
            ("the array allocated near a.py:5 (make), called from a.py:6 (f)", "the array of a.py:6 (f)"),
            ("array grid, static", "grid"),
            ("array grid of libx.so, static", "grid of libx.so"),
            ("common block /grid/ (x, y)", "common block /grid/"),
        ] {
            assert_eq!(short(name), want);
        }
    }

    #[test]
    fn who_calls_the_programs_own_allocating_function_names_the_array() {
        let folder = std::env::temp_dir().join(format!("homenode-advice-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("own.c");
        let lines = [
            "void *own(long n) {",
            " void *p = malloc(n);",
            " return malloc(n); }",
            "u = own(n);",
            "w = get(own(n), alloc);",
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let place = |line| SourcePlace {
            file: Some(file.to_str().unwrap().into()),
            line: Some(line),
            ..SourcePlace::default()
        };
        let places = (1..=5).map(|line| (u64::from(line), place(line))).collect();
        let names = SourceNames { places, ..SourceNames::default() };
        let of = |frames: &[u64]| {
            let mut all = [0; homenode_wire::facts::FRAMES];
            all[..frames.len()].copy_from_slice(frames);
            ObjectFacts { origin: Origin::Allocated(all), ..object(&[], &[], 0, 0) }
        };
        let (u, w) = (of(&[9, 2, 4]), of(&[9, 2, 5]));
        let says = |o: &ObjectFacts, among: &[ObjectFacts]| {
            name(o, among, &names).replace(file.to_str().unwrap(), "own.c")
        };
        let name = |place: &SourcePlace| place.to_string().replace(file.to_str().unwrap(), "own.c");
        let [inner, bare, four, five] = [2, 3, 4, 5].map(|l| name(&place(l)));
        let both = [u.clone(), w.clone()];
        assert_eq!(says(&u, &both[..1]), format!("array p, allocated at {inner}"));
        assert_eq!(says(&u, &both), format!("array u, allocated at {four} by way of {inner}"));
        assert_eq!(says(&w, &both), format!("array w, allocated at {five} by way of {inner}"));
        assert_eq!(says(&of(&[3, 4]), &[]), format!("array u, allocated at {four} by way of {bare}"));
        assert_eq!(
            says(&of(&[3, 1]), &[]),
            format!("the array allocated at {bare}, called from {}", name(&place(1)))
        );
        assert_eq!(says(&of(&[3]), &[]), format!("the array allocated at {bare}"));
        fs::remove_dir_all(folder).unwrap();
    }
}
