//! Fortran's common blocks. The linker knows each as one object, `grid_`; the source's variables in
//! it stand in the debugging information of every routine that has the block.

use std::collections::BTreeMap;
use std::path::Path;

use gimli::{AttributeValue, Operation, Reader as _};

use crate::binary::{Binary, Reader};

type Entry<'u> = gimli::DebuggingInformationEntry<'u, 'u, Reader>;
type Unit = gimli::Unit<Reader>;

/// A common block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Its name; empty: blank common.
    pub name: String,
    /// Its variables in order, as the first routine that has them calls them.
    pub members: Vec<String>,
}

/// The common blocks of a program's file by address; none where it has no debugging information.
pub fn commons_of(path: &Path) -> BTreeMap<u64, Common> {
    Binary::open(path).ok().and_then(|b| b.dwarf()).map(|d| all(&d)).unwrap_or_default()
}

/// A block's name, and names of variables by address, of one routine.
type Block = (String, BTreeMap<u64, String>);

fn all(dwarf: &gimli::Dwarf<Reader>) -> BTreeMap<u64, Common> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Ok(unit) = dwarf.unit(header) {
            // What is damaged ends its unit.
            let _ = of_unit(dwarf, &unit, &mut blocks);
        }
    }
    let mut found: BTreeMap<u64, (String, BTreeMap<u64, String>)> = BTreeMap::new();
    for (name, members) in blocks {
        let Some(start) = members.keys().next() else { continue };
        let known = &mut found.entry(*start).or_insert_with(|| (name, BTreeMap::new())).1;
        for (at, member) in members {
            known.entry(at).or_insert(member);
        }
    }
    let common = |(name, members): Block| Common { name, members: members.into_values().collect() };
    found.into_iter().map(|(at, block)| (at, common(block))).collect()
}

fn of_unit(dwarf: &gimli::Dwarf<Reader>, unit: &Unit, blocks: &mut Vec<Block>) -> gimli::Result<()> {
    let mut entries = unit.entries();
    let (mut depth, mut inside) = (0, None);
    while let Some((step, entry)) = entries.next_dfs()? {
        depth += step;
        if inside.is_some_and(|block| depth <= block) {
            inside = None;
        }
        match entry.tag() {
            gimli::DW_TAG_compile_unit if !is_fortran(entry) => return Ok(()),
            gimli::DW_TAG_common_block => {
                inside = Some(depth);
                blocks.push((name(dwarf, unit, entry).unwrap_or_default(), BTreeMap::new()));
            }
            gimli::DW_TAG_variable if inside.is_some() => {
                if let (Some(name), Some(at), Some(block)) =
                    (name(dwarf, unit, entry), address(unit, entry), blocks.last_mut())
                {
                    block.1.entry(at).or_insert(name);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_fortran(unit: &Entry<'_>) -> bool {
    use gimli::{
        DW_LANG_Fortran03, DW_LANG_Fortran08, DW_LANG_Fortran77, DW_LANG_Fortran90, DW_LANG_Fortran95,
    };
    let fortran =
        [DW_LANG_Fortran77, DW_LANG_Fortran90, DW_LANG_Fortran95, DW_LANG_Fortran03, DW_LANG_Fortran08];
    match unit.attr_value(gimli::DW_AT_language) {
        Ok(Some(AttributeValue::Language(language))) => fortran.contains(&language),
        _ => false,
    }
}

fn name(dwarf: &gimli::Dwarf<Reader>, unit: &Unit, entry: &Entry<'_>) -> Option<String> {
    let value = entry.attr_value(gimli::DW_AT_name).ok()??;
    let text = dwarf.attr_string(unit, value).ok()?;
    Some(text.to_string_lossy().ok()?.into_owned())
}

/// The address of a static variable: one that is given, and perhaps a number that is added.
fn address(unit: &Unit, entry: &Entry<'_>) -> Option<u64> {
    let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location).ok()? else {
        return None;
    };
    let mut operations = expression.operations(unit.encoding());
    let Some(Operation::Address { address }) = operations.next().ok()? else { return None };
    match operations.next().ok()? {
        None => Some(address),
        Some(Operation::PlusConstant { value }) => address.checked_add(value),
        Some(_) => None,
    }
}
