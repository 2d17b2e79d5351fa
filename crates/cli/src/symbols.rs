//! Names for the addresses of a recording: static objects, and the places in the source that allocations and regions
//! come from.
//!
//! Done right after the run, while the program's own files are still those that ran. What cannot be found out is left
//! out: a place without a name is shown as an address.

mod commons;

pub use commons::{Common, commons_of};

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use addr2line::gimli::{self, EndianSlice, LittleEndian, SectionId};
use homenode_log::recording::{Module, SourcePlace, Static, Symbols};
use object::{CompressionFormat, Object, ObjectSection, ObjectSymbol, ReadCache, SymbolKind};

/// Smaller static objects share pages with others and get no name.
const SMALLEST: u64 = 4096;
/// Folders of libraries that are not the program's own.
const SYSTEM: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];
/// Folders of headers that are not the program's own.
const SYSTEM_SOURCES: [&str; 2] = ["/usr/include/", "/usr/lib/"];

type Cache = ReadCache<File>;
type Lines<'a> = addr2line::Context<EndianSlice<'a, LittleEndian>>;

/// What was found, and what was in the way.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The names.
    pub symbols: Symbols,
    /// Modules that could not be read, each with the reason.
    pub trouble: Vec<String>,
}

/// Addresses that want names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Return addresses of allocating calls.
    pub sites: BTreeSet<u64>,
    /// Return addresses of the functions with these calls; named where they are the program's own.
    pub callers: BTreeSet<u64>,
    /// Of regions: return addresses, or an outlined function's entry.
    pub regions: BTreeSet<u64>,
}

/// Looks up addresses in the modules that they belong to, and the static objects of the program's own ones.
pub fn resolve(modules: &[Module], addresses: &Addresses) -> Found {
    let mut found = Found::default();
    for module in modules {
        let own = own(&module.path);
        let Addresses { sites, callers, regions } = addresses;
        let callers = callers.iter().filter(|_| own);
        let returns = sites.iter().chain(callers).map(|pc| (*pc, true));
        let inside =
            |pc: &u64| pc.checked_sub(module.base).is_some_and(|at| (module.low..module.high).contains(&at));
        let pcs: BTreeMap<u64, bool> =
            returns.chain(regions.iter().map(|pc| (*pc, false))).filter(|(pc, _)| inside(pc)).collect();
        if !module.path.starts_with('/') || (!own && pcs.is_empty()) {
            continue;
        }
        match Binary::with(Path::new(&module.path), |binary| {
            (if own { binary.statics(module.index) } else { Vec::new() }, binary.places(module, &pcs, own))
        }) {
            Ok((statics, places)) => {
                found.symbols.statics.extend(statics);
                found.symbols.places.extend(places);
            }
            Err(why) => found.trouble.push(format!("no names from {}: {why}", module.path)),
        }
    }
    found
}

/// The static objects of a program's file of at least `smallest` bytes; none where it cannot be read.
pub fn statics_of(path: &Path, smallest: u64) -> Vec<Static> {
    let all = Binary::with(path, |binary| binary.statics(0)).unwrap_or_default();
    all.into_iter().filter(|s| s.bytes >= smallest).collect()
}

/// A line of a source file, by the file's own name without its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineOf {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// The addresses in a program's file whose instructions stand for the lines `wanted`, as [`resolve`] would name them; nothing where
/// it has no line numbers.
pub fn addresses_of(path: &Path, wanted: &[LineOf]) -> BTreeMap<LineOf, Vec<Range<u64>>> {
    if wanted.is_empty() {
        return BTreeMap::new();
    }
    Binary::with(path, |binary| binary.lines().map(|l| rows(&l, wanted)).unwrap_or_default())
        .unwrap_or_default()
}

fn rows(lines: &Lines<'_>, wanted: &[LineOf]) -> BTreeMap<LineOf, Vec<Range<u64>>> {
    let mut found: BTreeMap<LineOf, Vec<Range<u64>>> = BTreeMap::new();
    let own_name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let Ok(all) = lines.find_location_range(0, u64::MAX) else { return found };
    for (start, bytes, location) in all {
        let foreign = location.file.is_none_or(|f| SYSTEM_SOURCES.iter().any(|s| f.starts_with(s)));
        // Inlined code of the system's headers stands for the line that it was inlined at.
        let (file, line) = if foreign {
            let place = in_lines(lines, start).unwrap_or_default();
            (place.file, place.line)
        } else {
            (location.file.map(str::to_owned), location.line)
        };
        let (Some(file), Some(line)) = (file, line) else { continue };
        let this = LineOf { file: own_name(&file), line };
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

/// Whether a module is the program's own rather than the system's or homenode's.
fn own(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    path.starts_with('/') && !SYSTEM.iter().any(|s| path.starts_with(s)) && !file.starts_with("libhomenode")
}

struct Binary<'a> {
    file: object::File<'a, &'a Cache>,
    cache: &'a Cache,
    /// Functions by address: length and name.
    functions: BTreeMap<u64, (u64, String)>,
}

impl Binary<'_> {
    fn with<R>(path: &Path, f: impl FnOnce(&Binary<'_>) -> R) -> Result<R, String> {
        let file = File::open(path).map_err(|e| e.to_string())?;
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            return Err("it is not a file".into());
        }
        let cache = ReadCache::new(file);
        let file = object::File::parse(&cache).map_err(|e| e.to_string())?;
        let mut functions = BTreeMap::new();
        for s in file.symbols().chain(file.dynamic_symbols()) {
            if s.kind() == SymbolKind::Text
                && s.is_definition()
                && let Ok(name) = s.name()
            {
                functions.entry(s.address()).or_insert_with(|| (s.size(), name.to_owned()));
            }
        }
        Ok(f(&Binary { file, cache: &cache, functions }))
    }

    /// The large static objects.
    fn statics(&self, module: u64) -> Vec<Static> {
        let mut all: Vec<(u64, std::cmp::Reverse<u64>, bool, String)> = Vec::new();
        for s in self.file.symbols().chain(self.file.dynamic_symbols()) {
            if s.kind() == SymbolKind::Data
                && s.is_definition()
                && s.size() >= SMALLEST
                && let Ok(name) = s.name()
            {
                all.push((s.address(), std::cmp::Reverse(s.size()), !s.is_global(), readable(name)));
            }
        }
        all.sort();
        // Aliases, and parts of what is already named.
        let mut end = 0;
        let mut statics = Vec::new();
        for (address, std::cmp::Reverse(bytes), _, name) in all {
            if address >= end {
                end = address.saturating_add(bytes);
                statics.push(Static { module, address, bytes, name });
            }
        }
        statics
    }

    /// The places of process addresses; `true`: a return address.
    fn places(&self, module: &Module, pcs: &BTreeMap<u64, bool>, own: bool) -> BTreeMap<u64, SourcePlace> {
        if pcs.is_empty() {
            return BTreeMap::new();
        }
        let lines = own.then(|| self.lines()).flatten();
        let place = |(pc, returns): (&u64, &bool)| {
            let at = pc.wrapping_sub(module.base);
            // A fork's pc is the outlined function's entry (libgomp), or where the fork returns to (libomp).
            let probe = if !returns && self.functions.contains_key(&at) { at } else { at.saturating_sub(1) };
            let mut place = lines.as_ref().and_then(|l| in_lines(l, probe)).unwrap_or_default();
            if place.function.is_none() {
                place.function = self.function(probe);
            }
            if place.function.is_none() && place.file.is_none() {
                place.file = Some(module.path.clone());
            }
            (*pc, place)
        };
        pcs.iter().map(place).collect()
    }

    fn function(&self, at: u64) -> Option<String> {
        let (start, (bytes, name)) = self.functions.range(..=at).next_back()?;
        (at - start < (*bytes).max(1)).then(|| readable(name))
    }

    /// Line numbers, if the module has any.
    fn lines(&self) -> Option<Lines<'_>> {
        addr2line::Context::from_dwarf(self.dwarf()?).ok()
    }

    /// Debugging information, empty if the module has none.
    fn dwarf(&self) -> Option<gimli::Dwarf<EndianSlice<'_, LittleEndian>>> {
        let section = |id: SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
            let data = self.file.section_by_name(id.name()).and_then(|s| {
                let plain = s.compressed_file_range().ok()?.format == CompressionFormat::None;
                plain.then(|| s.data().ok()).flatten()
            });
            Ok(EndianSlice::new(data.unwrap_or(&[]), LittleEndian))
        };
        let _ = self.cache; // what the slices borrow from
        gimli::Dwarf::load(section).ok()
    }
}

/// Function, file and line: of inlined calls the innermost that is the program's own.
fn in_lines(lines: &Lines<'_>, probe: u64) -> Option<SourcePlace> {
    let mut frames = lines.find_frames(probe).skip_all_loads().ok()?;
    let mut first = None;
    while let Ok(Some(frame)) = frames.next() {
        let function =
            frame.function.and_then(|f| f.demangle().ok().map(|n| readable(&n))).filter(|n| !n.is_empty());
        let (file, line) = frame.location.map_or((None, None), |l| (l.file.map(str::to_owned), l.line));
        let foreign = file.as_ref().is_none_or(|f| SYSTEM_SOURCES.iter().any(|s| f.starts_with(s)));
        let place = SourcePlace { function, file, line: line.filter(|l| *l > 0) };
        if !foreign {
            return Some(place);
        }
        first.get_or_insert(place);
    }
    first
}

/// A linker's name as the programmer wrote it.
fn readable(name: &str) -> String {
    // gfortran: __module_MOD_variable
    if let Some((module, variable)) = name.strip_prefix("__").and_then(|n| n.split_once("_MOD_")) {
        return format!("{module}::{variable}");
    }
    addr2line::demangle(name, gimli::DW_LANG_C_plus_plus).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_modules_are_told_from_the_systems() {
        assert!(own("/home/me/app") && own("/opt/lib/libmine.so"));
        for other in
            ["/usr/lib/libc.so.6", "/lib/x86_64/libgomp.so.1", "linux-vdso.so.1", "/x/libhomenode_trace.so"]
        {
            assert!(!own(other), "{other}");
        }
    }

    #[test]
    fn names_read_as_written() {
        assert_eq!(readable("__grids_MOD_u"), "grids::u");
        assert_eq!(readable("_ZN4grid5tableE"), "grid::table");
        assert_eq!(readable("table"), "table");
        assert_eq!(readable("_Znot a name"), "_Znot a name");
    }

    #[test]
    fn this_test_knows_itself() {
        let path = std::env::current_exe().unwrap().display().to_string();
        let module = Module { index: 0, base: 0, low: 0, high: u64::MAX >> 1, path };
        let entry = Binary::with(Path::new(&module.path), |b| {
            b.functions.iter().find(|(_, (_, n))| n.contains("this_test_knows_itself")).map(|(a, _)| *a)
        });
        let entry = entry.unwrap().expect("a function of this test");
        let found = resolve(
            std::slice::from_ref(&module),
            &Addresses { regions: BTreeSet::from([entry]), ..Addresses::default() },
        );
        let place = &found.symbols.places[&entry];
        assert!(place.function.as_ref().unwrap().contains("this_test_knows_itself"), "{place:?}");
    }

    #[test]
    fn what_cannot_be_read_is_told_and_harmless() {
        let module = |path: &str| Module { index: 0, base: 0, low: 0, high: 100, path: path.into() };
        let pcs = Addresses { sites: BTreeSet::from([50]), ..Addresses::default() };
        let found = resolve(&[module("/nowhere/app"), module("/"), module("/etc/passwd")], &pcs);
        assert_eq!(found.symbols, Symbols::default());
        assert_eq!(found.trouble.len(), 3, "{:?}", found.trouble);
        assert!(resolve(&[module("linux-vdso.so.1")], &pcs).trouble.is_empty());
    }
}
