//! Places in the source for addresses of code, and addresses for lines.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use homenode_log::recording::{Module, SourcePlace, Symbols};

use crate::binary::{Binary, Reader};
use crate::names::{file_name, foreign, own, readable};
use crate::statics::statics;

/// Line numbers and inlined functions of a file.
pub(crate) type Lines = addr2line::Context<Reader>;

/// What was found, and what was in the way.
#[derive(Clone, Debug, Default)]
pub struct PlacesFound {
    /// The names.
    pub symbols: Symbols,
    /// Modules that could not be read, each with the reason.
    pub trouble: Vec<String>,
}

/// Addresses that want names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressList {
    /// Return addresses of allocating calls.
    pub sites: BTreeSet<u64>,
    /// Return addresses of the functions with these calls; named where they are the program's own.
    pub callers: BTreeSet<u64>,
    /// Of regions: return addresses, or an outlined function's entry.
    pub regions: BTreeSet<u64>,
    /// Return addresses of calls that tell of accesses; named where they are the program's own.
    pub accesses: BTreeSet<u64>,
}

/// Looks up addresses in the modules that they belong to, and the static objects of the program's
/// own ones.
pub fn resolve(modules: &[Module], addresses: &AddressList) -> PlacesFound {
    let mut found = PlacesFound::default();
    for module in modules {
        let own = own(&module.path);
        let AddressList { sites, callers, regions, accesses } = addresses;
        let callers = callers.iter().chain(accesses).filter(|_| own);
        let returns = sites.iter().chain(callers).map(|pc| (*pc, true));
        let inside =
            |pc: &u64| pc.checked_sub(module.base).is_some_and(|at| (module.low..module.high).contains(&at));
        let pcs: BTreeMap<u64, bool> =
            returns.chain(regions.iter().map(|pc| (*pc, false))).filter(|(pc, _)| inside(pc)).collect();
        if !module.path.starts_with('/') || (!own && pcs.is_empty()) {
            continue;
        }
        match Binary::open(Path::new(&module.path)) {
            Ok(binary) => {
                if own {
                    found.symbols.statics.extend(statics(&binary, module.index));
                }
                found.symbols.places.extend(places(&binary, module, &pcs, own));
            }
            Err(why) => found.trouble.push(format!("no names from {}: {why}", module.path)),
        }
    }
    found
}

/// A line of a source file, by the file's own name without its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineOf {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// The addresses in a program's file whose instructions stand for the lines `wanted`, as
/// [`resolve`] would name them; nothing where it has no line numbers.
pub fn addresses_of(path: &Path, wanted: &[LineOf]) -> BTreeMap<LineOf, Vec<Range<u64>>> {
    if wanted.is_empty() {
        return BTreeMap::new();
    }
    let lines = Binary::open(path).ok().and_then(|binary| lines(&binary));
    lines.map(|l| rows(&l, wanted)).unwrap_or_default()
}

fn rows(lines: &Lines, wanted: &[LineOf]) -> BTreeMap<LineOf, Vec<Range<u64>>> {
    let mut found: BTreeMap<LineOf, Vec<Range<u64>>> = BTreeMap::new();
    let Ok(all) = lines.find_location_range(0, u64::MAX) else { return found };
    for (start, bytes, location) in all {
        // Inlined code of the system's headers stands for the line that it was inlined at.
        let (file, line) = if location.file.is_none_or(foreign) {
            let place = in_lines(lines, start).unwrap_or_default();
            (place.file, place.line)
        } else {
            (location.file.map(str::to_owned), location.line)
        };
        let (Some(file), Some(line)) = (file, line) else { continue };
        let this = LineOf { file: file_name(&file).to_owned(), line };
        if wanted.binary_search(&this).is_ok() {
            let list = found.entry(this).or_default();
            match list.last_mut() {
                Some(last) if last.end == start => last.end = start + bytes,
                _ => list.push(start..start + bytes),
            }
        }
    }
    found
}

/// The places of process addresses; `true`: a return address.
fn places(
    binary: &Binary,
    module: &Module,
    pcs: &BTreeMap<u64, bool>,
    own: bool,
) -> BTreeMap<u64, SourcePlace> {
    if pcs.is_empty() {
        return BTreeMap::new();
    }
    let lines = own.then(|| lines(binary)).flatten();
    let place = |(pc, returns): (&u64, &bool)| {
        let at = pc.wrapping_sub(module.base);
        // A fork's pc is the outlined function's entry (libgomp), or where the fork returns to
        // (libomp).
        let probe = if !returns && binary.functions.contains_key(&at) { at } else { at.saturating_sub(1) };
        (*pc, place(binary, lines.as_ref(), &module.path, probe))
    };
    pcs.iter().map(place).collect()
}

/// The place of an address in a file: by its line numbers, else by its symbols, else the file
/// itself.
pub(crate) fn place(binary: &Binary, lines: Option<&Lines>, path: &str, probe: u64) -> SourcePlace {
    let mut place = lines.and_then(|l| in_lines(l, probe)).unwrap_or_default();
    if place.function.is_none() {
        place.function = binary.function(probe);
    }
    if place.function.is_none() && place.file.is_none() {
        place.file = Some(path.to_owned());
    }
    place
}

/// Line numbers, if the file has any.
fn lines(binary: &Binary) -> Option<Lines> {
    addr2line::Context::from_dwarf(binary.dwarf()?).ok()
}

/// Function, file and line: of inlined calls the innermost that is the program's own.
pub(crate) fn in_lines(lines: &Lines, probe: u64) -> Option<SourcePlace> {
    let mut frames = lines.find_frames(probe).skip_all_loads().ok()?;
    let mut first = None;
    while let Ok(Some(frame)) = frames.next() {
        let function =
            frame.function.and_then(|f| f.demangle().ok().map(|n| readable(&n))).filter(|n| !n.is_empty());
        let (file, line) = frame.location.map_or((None, None), |l| (l.file.map(str::to_owned), l.line));
        let foreign = file.as_ref().is_none_or(|f| foreign(f));
        let place = SourcePlace { function, file, line: line.filter(|l| *l > 0) };
        if !foreign {
            return Some(place);
        }
        first.get_or_insert(place);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_knows_itself() {
        let path = std::env::current_exe().unwrap().display().to_string();
        let module = Module { index: 0, base: 0, low: 0, high: u64::MAX >> 1, path };
        let binary = Binary::open(Path::new(&module.path)).unwrap();
        let entry = binary.functions.iter().find(|(_, (_, n))| n.contains("this_test_knows_itself"));
        let entry = *entry.expect("a function of this test").0;
        let found = resolve(
            std::slice::from_ref(&module),
            &AddressList { regions: BTreeSet::from([entry]), ..AddressList::default() },
        );
        let place = &found.symbols.places[&entry];
        assert!(place.function.as_ref().unwrap().contains("this_test_knows_itself"), "{place:?}");
    }

    #[test]
    fn what_cannot_be_read_is_told_and_harmless() {
        let module = |path: &str| Module { index: 0, base: 0, low: 0, high: 100, path: path.into() };
        let pcs = AddressList { sites: BTreeSet::from([50]), ..AddressList::default() };
        let found = resolve(&[module("/nowhere/app"), module("/"), module("/etc/passwd")], &pcs);
        assert_eq!(found.symbols, Symbols::default());
        assert_eq!(found.trouble.len(), 3, "{:?}", found.trouble);
        assert!(resolve(&[module("linux-vdso.so.1")], &pcs).trouble.is_empty());
    }
}
