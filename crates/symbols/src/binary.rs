//! A module's file: its symbols, its sections, what it imports, its build id.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use gimli::{EndianArcSlice, LittleEndian, SectionId};
use object::{
    Architecture, CompressionFormat, Object, ObjectSection, ObjectSymbol, ReadCache, RelocationTarget,
    SectionKind, SymbolKind,
};

use crate::names::readable;

/// Linux: opening a FIFO returns at once.
const O_NONBLOCK: i32 = 0o4000;
/// Longest section that is read, in bytes. Debugging information beyond that is left alone.
const LONGEST: u64 = 1 << 30;

/// Bytes of a section, shared by everything that reads it.
pub(crate) type Reader = EndianArcSlice<LittleEndian>;

/// A part of the file that the loader maps executable, or that debugging information lies in.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// Address in the file's own terms; 0: not loaded.
    address: u64,
    offset: u64,
    bytes: u64,
}

/// A data symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DataSymbol {
    /// Address in the file's own terms.
    pub address: u64,
    /// Length; larger ones come first.
    pub bytes: std::cmp::Reverse<u64>,
    /// Visible in this file only.
    pub local: bool,
    /// As the linker has it.
    pub name: String,
}

/// A module's file.
#[derive(Debug)]
pub(crate) struct Binary {
    file: File,
    /// It holds code of the architecture whose instructions are followed.
    pub x86_64: bool,
    /// Functions by address: length and name.
    pub functions: BTreeMap<u64, (u64, String)>,
    /// Data symbols by address.
    pub data: Vec<DataSymbol>,
    /// Names by the address of the slot that the loader fills for them.
    pub imports: BTreeMap<u64, String>,
    /// The linker's number of this very file.
    pub build_id: Option<Vec<u8>>,
    code: Vec<Section>,
    named: BTreeMap<String, Section>,
}

impl Binary {
    /// Opens a regular file; anything else, and what is not an object file, is an error in words.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let regular = |m: fs::Metadata| if m.is_file() { Ok(m) } else { Err("it is not a file".to_owned()) };
        fs::metadata(path).map_err(|e| e.to_string()).and_then(regular)?;
        let file =
            OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).map_err(|e| e.to_string())?;
        let length = regular(file.metadata().map_err(|e| e.to_string())?)?.len();
        let cache = ReadCache::new(file.try_clone().map_err(|e| e.to_string())?);
        let elf = object::File::parse(&cache).map_err(|e| e.to_string())?;
        if !elf.is_little_endian() {
            return Err("it is big-endian".into());
        }
        let (mut functions, mut data) = (BTreeMap::new(), Vec::new());
        for s in elf.symbols().chain(elf.dynamic_symbols()).filter(ObjectSymbol::is_definition) {
            let Ok(name) = s.name() else { continue };
            match s.kind() {
                SymbolKind::Text => {
                    functions.entry(s.address()).or_insert_with(|| (s.size(), name.to_owned()));
                }
                SymbolKind::Data => data.push(DataSymbol {
                    address: s.address(),
                    bytes: std::cmp::Reverse(s.size()),
                    local: !s.is_global(),
                    name: name.to_owned(),
                }),
                _ => {}
            }
        }
        data.sort();
        let (mut code, mut named) = (Vec::new(), BTreeMap::new());
        for s in elf.sections() {
            let (Ok(name), Ok(range)) = (s.name(), s.compressed_file_range()) else { continue };
            let whole = range.offset.checked_add(range.uncompressed_size).is_some_and(|end| end <= length);
            if range.format != CompressionFormat::None || !whole || range.uncompressed_size > LONGEST {
                continue;
            }
            let section =
                Section { address: s.address(), offset: range.offset, bytes: range.uncompressed_size };
            if s.kind() == SectionKind::Text {
                code.push(section);
            }
            named.entry(name.to_owned()).or_insert(section);
        }
        let mut imports = BTreeMap::new();
        for (slot, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let name = elf
                .dynamic_symbol_table()
                .and_then(|t| object::ObjectSymbolTable::symbol_by_index(&t, index).ok())
                .and_then(|s| s.name().ok().map(str::to_owned));
            if let Some(name) = name {
                imports.insert(slot, name);
            }
        }
        let build_id = elf.build_id().ok().flatten().map(<[u8]>::to_vec);
        let x86_64 = elf.architecture() == Architecture::X86_64;
        drop(elf);
        Ok(Self { file, x86_64, functions, data, imports, build_id, code, named })
    }

    /// The bytes of a section; `None` if the file lacks it, or has it compressed.
    fn bytes(&self, section: Section) -> Option<Arc<[u8]>> {
        let mut bytes = vec![0; usize::try_from(section.bytes).ok()?];
        self.file.read_exact_at(&mut bytes, section.offset).ok()?;
        Some(bytes.into())
    }

    fn section(&self, name: &str) -> Option<(u64, Arc<[u8]>)> {
        let section = *self.named.get(name)?;
        Some((section.address, self.bytes(section)?))
    }

    /// A section and its address, for a parser; empty if the file lacks it.
    pub(crate) fn reader(&self, name: &str) -> (u64, Reader) {
        let (address, bytes) = self.section(name).unwrap_or_else(|| (0, Arc::from([])));
        (address, EndianArcSlice::new(bytes, LittleEndian))
    }

    /// Where a section lies; 0 if the file lacks it.
    pub(crate) fn address_of(&self, section: &str) -> u64 {
        self.named.get(section).map_or(0, |s| s.address)
    }

    /// Debugging information, empty if the file has none.
    pub(crate) fn dwarf(&self) -> Option<gimli::Dwarf<Reader>> {
        gimli::Dwarf::load(|id: SectionId| Ok::<_, gimli::Error>(self.reader(id.name()).1)).ok()
    }

    /// Instructions from `start` to `end`, if one executable section holds them all.
    pub(crate) fn code(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let within = |s: &&Section| {
            s.address <= start && s.address.checked_add(s.bytes).is_some_and(|last| end <= last)
        };
        let section = self.code.iter().find(within)?;
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, section.offset.checked_add(start - section.address)?).ok()?;
        Some(bytes)
    }

    /// The function that an address lies in, by symbols.
    pub(crate) fn function(&self, at: u64) -> Option<String> {
        self.symbol(at).map(readable)
    }

    /// The same as the linker has it.
    pub(crate) fn symbol(&self, at: u64) -> Option<&str> {
        let (start, (bytes, name)) = self.functions.range(..=at).next_back()?;
        (at - start < (*bytes).max(1)).then_some(name.as_str())
    }
}

/// The linker's number of the very file at `path`; `None` where there is none, or no file.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    Binary::open(path).ok()?.build_id
}
