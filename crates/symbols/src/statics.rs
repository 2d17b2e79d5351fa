//! Large static objects by the linker's symbols, without types.

use std::path::Path;

use homenode_log::recording::{Elements, Static};

use crate::binary::Binary;
use crate::names::readable;

/// Smaller static objects share pages with others and get no name.
const SMALLEST: u64 = 4096;

/// The static objects of a program's file of at least `smallest` bytes; none where it cannot be
/// read.
pub fn statics_of(path: &Path, smallest: u64) -> Vec<Static> {
    let all = Binary::open(path).map(|binary| statics(&binary, 0)).unwrap_or_default();
    all.into_iter().filter(|s| s.bytes >= smallest).collect()
}

/// The large static objects of a file.
pub(crate) fn statics(binary: &Binary, module: u64) -> Vec<Static> {
    // Aliases, and parts of variables that already have a name, are left out.
    let mut end = 0;
    let mut statics = Vec::new();
    for symbol in &binary.data {
        let bytes = symbol.bytes.0;
        if bytes >= SMALLEST && symbol.address >= end {
            end = symbol.address.saturating_add(bytes);
            statics.push(Static {
                module,
                address: symbol.address,
                bytes,
                name: readable(&symbol.name),
                variable: None,
                elements: Elements::default(),
            });
        }
    }
    statics
}
