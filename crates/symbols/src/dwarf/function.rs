//! Functions: their blocks, what is inlined into them, their variables and where these live.

use std::collections::BTreeMap;

use gimli::{AttributeValue, Expression};

use super::{Debug, Die, ENTRIES, Entry, Unit, within};
use crate::binary::Reader;
use crate::names::foreign;

/// Most variables of a function, with those of functions that are inlined into it.
const VARIABLES: usize = 20_000;
/// Most blocks and inlined calls of a function.
const BLOCKS: usize = 50_000;
/// Most ranges of one variable's list of locations.
const PLACES: usize = 2_000;

/// The functions of a unit, by address.
pub(crate) type Functions = Vec<(u64, u64, Die)>;

/// A function with all that is in it.
#[derive(Debug)]
pub(crate) struct Function {
    pub die: Die,
    pub blocks: Vec<Block>,
    pub variables: Vec<Local>,
    pub frame_base: Option<Expression<Reader>>,
}

/// A function, a block of it, or a call that was inlined.
#[derive(Debug)]
pub(crate) struct Block {
    /// The block around it; the function itself is its own.
    pub parent: usize,
    pub ranges: Vec<(u64, u64)>,
    /// The function that the source has, unless this is a mere block.
    pub function: Option<Inlined>,
}

/// The function of the source that an inlined call, or the function itself, stands for.
#[derive(Debug)]
pub(crate) struct Inlined {
    pub origin: Die,
    /// From a header of the system.
    pub foreign: bool,
    /// File and line of the call; nothing for the function itself.
    pub call: Option<(Option<String>, u32)>,
}

/// A variable or a parameter.
#[derive(Debug)]
pub(crate) struct Local {
    pub die: Die,
    pub block: usize,
    pub ty: Option<Die>,
    /// Its number among the parameters of its function, from 0.
    pub parameter: Option<usize>,
    pub locations: Vec<(u64, u64, Expression<Reader>)>,
}

impl Debug {
    /// The functions of a unit.
    pub(crate) fn functions(&self, unit: usize) -> Functions {
        let mut found = Vec::new();
        let _ = self.add_functions(unit, &mut found);
        found.sort_unstable();
        found
    }

    fn add_functions(&self, index: usize, found: &mut Functions) -> Option<()> {
        let unit = self.unit(index)?;
        let mut entries = unit.entries();
        for _ in 0..ENTRIES {
            let Ok(Some((_, entry))) = entries.next_dfs() else { break };
            if entry.tag() == gimli::DW_TAG_subprogram {
                let die = Die { unit: index, offset: entry.offset().0 };
                found.extend(self.ranges(unit, entry).into_iter().map(|(begin, end)| (begin, end, die)));
            }
        }
        Some(())
    }

    /// A function with all that is in it.
    pub(crate) fn function(&self, die: Die) -> Option<Function> {
        let unit = self.unit(die.unit)?;
        let mut function = Function { die, blocks: Vec::new(), variables: Vec::new(), frame_base: None };
        let mut entries = unit.entries_at_offset(gimli::UnitOffset(die.offset)).ok()?;
        let mut depth = 0;
        // Blocks that are open, with their depth; whose depth is beyond that of a function in the
        // function is skipped.
        let mut open: Vec<(isize, usize)> = Vec::new();
        let mut skip: Option<isize> = None;
        let mut parameters: BTreeMap<usize, usize> = BTreeMap::new();
        for _ in 0..ENTRIES {
            let Ok(Some((step, entry))) = entries.next_dfs() else { break };
            depth += step;
            if depth <= 0 && !function.blocks.is_empty() {
                break; // the next function
            }
            if skip.is_some_and(|s| depth > s) {
                continue;
            }
            skip = None;
            while open.last().is_some_and(|(d, _)| *d >= depth) {
                open.pop();
            }
            let around = open.last().map_or(0, |(_, block)| *block);
            let here = Die { unit: die.unit, offset: entry.offset().0 };
            match entry.tag() {
                gimli::DW_TAG_subprogram if function.blocks.is_empty() => {
                    if let Ok(Some(AttributeValue::Exprloc(e))) = entry.attr_value(gimli::DW_AT_frame_base) {
                        function.frame_base = Some(e);
                    }
                    self.add_block(unit, here, entry, 0, &mut function);
                    open.push((depth, 0));
                }
                gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block
                    if function.blocks.len() < BLOCKS =>
                {
                    let block = self.add_block(unit, here, entry, around, &mut function);
                    open.push((depth, block));
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter
                    if function.variables.len() < VARIABLES =>
                {
                    let parameter = (entry.tag() == gimli::DW_TAG_formal_parameter).then(|| {
                        let next = parameters.entry(around).or_default();
                        *next += 1;
                        *next - 1
                    });
                    function.variables.push(Local {
                        die: here,
                        block: around,
                        ty: self.refers(here, gimli::DW_AT_type),
                        parameter,
                        locations: self.locations(unit, entry),
                    });
                }
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_variable => {}
                // Of what else there is, nothing is of interest, nor what is in it.
                _ if function.blocks.is_empty() => return None,
                _ => skip = Some(depth),
            }
        }
        (!function.blocks.is_empty()).then_some(function)
    }

    fn add_block(
        &self,
        unit: &Unit,
        die: Die,
        entry: &Entry<'_>,
        parent: usize,
        function: &mut Function,
    ) -> usize {
        let inlined = (entry.tag() != gimli::DW_TAG_lexical_block).then(|| {
            let origin = self.origin(die);
            let call = (entry.tag() == gimli::DW_TAG_inlined_subroutine).then(|| {
                let line = self.own_attribute(die, gimli::DW_AT_call_line).and_then(|l| l.udata_value());
                let line = line.and_then(|l| u32::try_from(l).ok()).unwrap_or(0);
                (self.file(die, gimli::DW_AT_call_file), line)
            });
            let file = self.file(die, gimli::DW_AT_decl_file);
            Inlined { origin, foreign: file.is_some_and(|f| foreign(&f)), call }
        });
        let block = function.blocks.len();
        let ranges = self.ranges(unit, entry);
        function.blocks.push(Block { parent, ranges, function: inlined });
        block
    }

    /// Where a variable lives, by address of the code.
    fn locations(&self, unit: &Unit, entry: &Entry<'_>) -> Vec<(u64, u64, Expression<Reader>)> {
        match entry.attr_value(gimli::DW_AT_location) {
            Ok(Some(AttributeValue::Exprloc(expression))) => vec![(0, u64::MAX, expression)],
            Ok(Some(value)) => {
                let mut found = Vec::new();
                if let Ok(Some(mut list)) = self.dwarf.attr_locations(unit, value) {
                    while let Ok(Some(place)) = list.next() {
                        if found.len() == PLACES {
                            break;
                        }
                        found.push((place.range.begin, place.range.end, place.data));
                    }
                }
                found
            }
            _ => Vec::new(),
        }
    }
}

impl Function {
    /// The innermost block with the code at `at`.
    pub(crate) fn block_at(&self, at: u64) -> usize {
        let mut here = 0;
        // Children come behind their parents.
        for (i, block) in self.blocks.iter().enumerate().skip(1) {
            if block.parent == here && within(&block.ranges, at) {
                here = i;
            }
        }
        here
    }

    /// The block itself and those around it, innermost first.
    pub(crate) fn around(&self, block: usize) -> impl Iterator<Item = usize> {
        let mut next = Some(block);
        std::iter::from_fn(move || {
            let here = next?;
            // A parent comes before its children, so that this ends.
            next = (here > 0).then(|| self.blocks[here].parent);
            Some(here)
        })
    }

    /// The block of the function, inlined or not, that a block belongs to.
    pub(crate) fn function_of(&self, block: usize) -> usize {
        self.around(block).find(|b| self.blocks[*b].function.is_some()).unwrap_or(0)
    }

    /// The innermost function at a block that the programmer wrote, and the block of the system's
    /// function that it called, if there is one.
    pub(crate) fn users(&self, block: usize) -> Option<(usize, Option<usize>)> {
        let mut called = None;
        for b in self.around(block) {
            match &self.blocks[b].function {
                Some(f) if f.foreign => called = Some(b),
                Some(_) => return Some((b, called)),
                None => {}
            }
        }
        None
    }
}
