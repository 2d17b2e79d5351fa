//! Variables with an address of their own: of C and C++, of Fortran's modules and common blocks.

use std::collections::BTreeMap;

use gimli::{AttributeValue, DwTag, Operation};

use super::{Debug, Die, ENTRIES, Entry, Unit};
use crate::variable::VariableScope;

/// Most such variables of a file.
const MOST: usize = 2_000_000;
/// Deepest nesting of name spaces, classes and blocks.
const DEEPEST: usize = 64;

/// A variable with an address of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Global {
    pub die: Die,
    pub ty: Option<Die>,
    /// Length in bytes; 0 if that is not known.
    pub bytes: u64,
    pub scope: VariableScope,
    /// The function, module, namespace, class or common block around it.
    pub within: Option<Die>,
}

/// Variables by address, and names of common blocks by the linker's names.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    pub variables: BTreeMap<u64, Global>,
    pub commons: BTreeMap<String, String>,
}

impl Debug {
    /// All such variables of the file. Of several at one address, the first is taken.
    pub(crate) fn globals(&self) -> Globals {
        let mut found = Globals::default();
        let mut left = ENTRIES * 8;
        for unit in 0..self.len() {
            let _ = self.add_globals(unit, &mut found, &mut left);
            if left == 0 || found.variables.len() >= MOST {
                break;
            }
        }
        found
    }

    fn add_globals(&self, index: usize, found: &mut Globals, left: &mut usize) -> Option<()> {
        let unit = self.unit(index)?;
        let mut entries = unit.entries();
        let mut depth = 0;
        let mut open: Vec<(isize, Die, DwTag)> = Vec::new();
        while *left > 0 {
            let Ok(Some((step, entry))) = entries.next_dfs() else { break };
            *left -= 1;
            depth += step;
            while open.last().is_some_and(|(d, ..)| *d >= depth) {
                open.pop();
            }
            let die = Die { unit: index, offset: entry.offset().0 };
            match entry.tag() {
                gimli::DW_TAG_variable => {
                    if let Some(address) = self.address(unit, entry)
                        && self.name(die).is_some()
                        && !self.flag(die, gimli::DW_AT_artificial)
                    {
                        self.add_global(die, address, &open, found);
                    }
                }
                gimli::DW_TAG_common_block => {
                    let linker = self.attribute(die, gimli::DW_AT_linkage_name);
                    let linker = linker.and_then(|(at, value)| self.text(at.unit, value));
                    if let (Some(linker), Some(name)) = (linker, self.name(die)) {
                        found.commons.entry(linker).or_insert(name);
                    }
                    if open.len() < DEEPEST {
                        open.push((depth, die, entry.tag()));
                    }
                }
                gimli::DW_TAG_subprogram
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_module
                | gimli::DW_TAG_namespace
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                    if open.len() < DEEPEST =>
                {
                    open.push((depth, die, entry.tag()));
                }
                _ => {}
            }
        }
        Some(())
    }

    fn add_global(&self, die: Die, address: u64, open: &[(isize, Die, DwTag)], found: &mut Globals) {
        let around = open.last().copied();
        let in_function = open
            .iter()
            .any(|(_, _, tag)| matches!(*tag, gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine));
        let scope = match around {
            Some((_, _, gimli::DW_TAG_common_block)) => VariableScope::Common,
            _ if !in_function && self.flag(die, gimli::DW_AT_external) => VariableScope::Global,
            _ => VariableScope::Static,
        };
        // A class's static member is declared in the class, and defined elsewhere.
        let within = around.map(|(_, die, _)| die);
        let ty = self.refers(die, gimli::DW_AT_type);
        let bytes = ty.and_then(|t| self.size(t)).unwrap_or(0);
        let this = Global { die, ty, bytes, scope, within };
        let known = found.variables.entry(address).or_insert_with(|| this.clone());
        // Of a common block's members, and of zero-length arrays, the longest.
        if known.bytes < this.bytes && known.scope == this.scope {
            *known = this;
        }
    }

    /// The address of a static variable: one that is given, and perhaps a number that is added.
    fn address(&self, unit: &Unit, entry: &Entry<'_>) -> Option<u64> {
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location).ok()? else {
            return None;
        };
        let mut operations = expression.operations(unit.encoding());
        let address = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::AddressIndex { index } => self.dwarf.address(unit, index).ok()?,
            _ => return None,
        };
        let address = match operations.next().ok()? {
            None => Some(address),
            Some(Operation::PlusConstant { value }) => address.checked_add(value),
            // Of a thread, or of a pointer.
            Some(_) => None,
        };
        address.filter(|a| *a > 0)
    }
}

impl Globals {
    /// The variable that holds an address, and how many bytes into it the address is.
    pub(crate) fn at(&self, address: u64) -> Option<(&Global, u64)> {
        let (start, global) = self.variables.range(..=address).next_back()?;
        let inside = address - start;
        (inside < global.bytes.max(1)).then_some((global, inside))
    }
}
