//! Debugging information of one file, read on demand.
//!
//! It may be damaged or hostile: every chain of references, every nesting and every list has a
//! bound, and what is beyond a bound is as if it were not there.

pub(crate) mod expression;
pub(crate) mod function;
pub(crate) mod globals;
pub(crate) mod types;

use std::cell::OnceCell;
use std::sync::Arc;

use gimli::{AttributeValue, DwAt, DwTag, Reader as _, UnitHeader};

use crate::binary::{Binary, Reader};
use crate::places::Lines;

pub(crate) type Unit = gimli::Unit<Reader>;
pub(crate) type Entry<'a> = gimli::DebuggingInformationEntry<'a, 'a, Reader>;
pub(crate) type Value = AttributeValue<Reader>;

/// Longest chain of specifications, abstract origins, typedefs, …
pub(crate) const CHAIN: usize = 16;
/// Most entries that one question may look at.
pub(crate) const ENTRIES: usize = 4_000_000;
/// Most children of one entry.
const CHILDREN: usize = 65_536;
/// Longest name in bytes.
const NAME: usize = 4096;

/// An entry: the unit's number, the entry's offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Die {
    pub unit: usize,
    pub offset: usize,
}

/// A unit of compilation, read when it is first asked for.
struct LazyUnit {
    /// Where its header begins in `.debug_info`.
    offset: usize,
    header: UnitHeader<Reader>,
    /// `None` in it: the unit cannot be read.
    unit: OnceCell<Option<Box<Unit>>>,
}

/// The debugging information of a file.
pub(crate) struct Debug {
    pub dwarf: Arc<gimli::Dwarf<Reader>>,
    /// Line numbers.
    pub lines: Lines,
    /// By offset.
    units: Vec<LazyUnit>,
}

impl Debug {
    /// Of a file; `None` if it has none that can be read.
    pub(crate) fn of(binary: &Binary) -> Option<Self> {
        let dwarf = Arc::new(binary.dwarf()?);
        let lines = addr2line::Context::from_arc_dwarf(Arc::clone(&dwarf)).ok()?;
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let Some(offset) = header.offset().as_debug_info_offset() {
                units.push(LazyUnit { offset: offset.0, header, unit: OnceCell::new() });
            }
        }
        (!units.is_empty()).then_some(Self { dwarf, lines, units })
    }

    /// Number of units.
    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    /// A unit.
    pub(crate) fn unit(&self, index: usize) -> Option<&Unit> {
        let lazy = self.units.get(index)?;
        lazy.unit.get_or_init(|| self.dwarf.unit(lazy.header.clone()).ok().map(Box::new)).as_deref()
    }

    /// The unit with the code at `at`.
    pub(crate) fn unit_at(&self, at: u64) -> Option<usize> {
        let unit = self.lines.find_dwarf_and_unit(at).skip_all_loads()?;
        let offset = unit.header.offset().as_debug_info_offset()?.0;
        self.units.binary_search_by_key(&offset, |unit| unit.offset).ok()
    }

    /// An entry.
    pub(crate) fn entry(&self, die: Die) -> Option<Entry<'_>> {
        self.unit(die.unit)?.entry(gimli::UnitOffset(die.offset)).ok()
    }

    pub(crate) fn tag(&self, die: Die) -> Option<DwTag> {
        Some(self.entry(die)?.tag())
    }

    /// An attribute of the entry itself.
    pub(crate) fn own_attribute(&self, die: Die, name: DwAt) -> Option<Value> {
        self.entry(die)?.attr_value(name).ok()?
    }

    /// An attribute of an entry, or of the one that it stands for; with the entry that has it.
    pub(crate) fn attribute(&self, die: Die, name: DwAt) -> Option<(Die, Value)> {
        let mut here = die;
        for _ in 0..CHAIN {
            let entry = self.entry(here)?;
            if let Ok(Some(value)) = entry.attr_value(name) {
                return Some((here, value));
            }
            here = self.stands_for(here.unit, &entry)?;
        }
        None
    }

    /// The entry that this one completes or is an instance of.
    fn stands_for(&self, unit: usize, entry: &Entry<'_>) -> Option<Die> {
        let link = |name| entry.attr_value(name).ok().flatten();
        let value = link(gimli::DW_AT_abstract_origin).or_else(|| link(gimli::DW_AT_specification))?;
        self.reference(unit, &value)
    }

    /// The entry at the end of that chain: the same for all instances of a variable or a function.
    pub(crate) fn origin(&self, die: Die) -> Die {
        let mut here = die;
        for _ in 0..CHAIN {
            match self.entry(here).and_then(|e| self.stands_for(here.unit, &e)) {
                Some(next) => here = next,
                None => break,
            }
        }
        here
    }

    /// The entry that a value refers to.
    pub(crate) fn reference(&self, unit: usize, value: &Value) -> Option<Die> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Die { unit, offset: offset.0 }),
            AttributeValue::DebugInfoRef(offset) => {
                let at = self.units.partition_point(|unit| unit.offset <= offset.0).checked_sub(1)?;
                Some(Die { unit: at, offset: offset.0 - self.units[at].offset })
            }
            _ => None,
        }
    }

    /// The entry that an attribute refers to.
    pub(crate) fn refers(&self, die: Die, name: DwAt) -> Option<Die> {
        let (at, value) = self.attribute(die, name)?;
        self.reference(at.unit, &value)
    }

    pub(crate) fn text(&self, unit: usize, value: Value) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit(unit)?, value).ok()?;
        (text.len() <= NAME).then(|| text.to_string_lossy().ok().map(std::borrow::Cow::into_owned))?
    }

    /// A name, of the entry itself or of the one that it stands for.
    pub(crate) fn name(&self, die: Die) -> Option<String> {
        let (at, value) = self.attribute(die, gimli::DW_AT_name)?;
        self.text(at.unit, value).filter(|n| !n.is_empty())
    }

    /// A number that is not an expression.
    pub(crate) fn number(&self, die: Die, name: DwAt) -> Option<u64> {
        self.attribute(die, name)?.1.udata_value()
    }

    pub(crate) fn flag(&self, die: Die, name: DwAt) -> bool {
        matches!(self.attribute(die, name), Some((_, AttributeValue::Flag(true))))
    }

    /// The direct children.
    pub(crate) fn children(&self, die: Die) -> Vec<(Die, DwTag)> {
        let mut found = Vec::new();
        let _ = self.each_child(die, |child, entry| {
            found.push((child, entry.tag()));
            found.len() < CHILDREN
        });
        found
    }

    fn each_child(&self, die: Die, mut f: impl FnMut(Die, &Entry<'_>) -> bool) -> Option<()> {
        let unit = self.unit(die.unit)?;
        let mut tree = unit.entries_tree(Some(gimli::UnitOffset(die.offset))).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            if !f(Die { unit: die.unit, offset: entry.offset().0 }, entry) {
                break;
            }
        }
        Some(())
    }

    /// The file and line that an entry is declared in.
    pub(crate) fn declared(&self, die: Die) -> (Option<String>, Option<u32>) {
        let line = self.number(die, gimli::DW_AT_decl_line).and_then(|l| u32::try_from(l).ok());
        (self.file(die, gimli::DW_AT_decl_file), line.filter(|l| *l > 0))
    }

    /// The file that an attribute names.
    pub(crate) fn file(&self, die: Die, name: DwAt) -> Option<String> {
        let (at, value) = self.attribute(die, name)?;
        let index = match value {
            AttributeValue::FileIndex(index) => index,
            other => other.udata_value()?,
        };
        let unit = self.unit(at.unit)?;
        let header = unit.line_program.as_ref()?.header();
        let file = header.file(index)?;
        let mut path =
            unit.comp_dir.as_ref().and_then(|d| d.to_string_lossy().ok()).unwrap_or_default().into_owned();
        if file.directory_index() != 0
            && let Some(directory) = file.directory(header)
        {
            push(&mut path, &self.text(at.unit, directory)?);
        }
        push(&mut path, &self.text(at.unit, file.path_name())?);
        Some(path)
    }

    /// Whether the unit is Fortran's.
    pub(crate) fn fortran(&self, unit: usize) -> bool {
        use gimli::{
            DW_LANG_Fortran03, DW_LANG_Fortran08, DW_LANG_Fortran18, DW_LANG_Fortran77, DW_LANG_Fortran90,
            DW_LANG_Fortran95,
        };
        let all = [
            DW_LANG_Fortran77,
            DW_LANG_Fortran90,
            DW_LANG_Fortran95,
            DW_LANG_Fortran03,
            DW_LANG_Fortran08,
            DW_LANG_Fortran18,
        ];
        self.language(unit).is_some_and(|l| all.contains(&l))
    }

    /// Whether the unit is C's, where structures have a name space of their own.
    pub(crate) fn plain_c(&self, unit: usize) -> bool {
        use gimli::{DW_LANG_C, DW_LANG_C11, DW_LANG_C17, DW_LANG_C89, DW_LANG_C99};
        let all = [DW_LANG_C, DW_LANG_C89, DW_LANG_C99, DW_LANG_C11, DW_LANG_C17];
        self.language(unit).is_some_and(|l| all.contains(&l))
    }

    fn language(&self, unit: usize) -> Option<gimli::DwLang> {
        let unit = self.unit(unit)?;
        let mut entries = unit.entries();
        let (_, root) = entries.next_dfs().ok()??;
        match root.attr_value(gimli::DW_AT_language).ok()?? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// The addresses of an entry's code.
    pub(crate) fn ranges(&self, unit: &Unit, entry: &Entry<'_>) -> Vec<(u64, u64)> {
        const MOST: usize = 4096;
        let mut found = Vec::new();
        if let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) {
            while let Ok(Some(range)) = ranges.next() {
                if range.begin < range.end && found.len() < MOST {
                    found.push((range.begin, range.end));
                }
            }
        }
        found
    }
}

fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}

/// Whether one of the ranges holds an address.
pub(crate) fn within(ranges: &[(u64, u64)], at: u64) -> bool {
    ranges.iter().any(|(begin, end)| (*begin..*end).contains(&at))
}
